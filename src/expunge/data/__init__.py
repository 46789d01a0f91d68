"""The embedded examples: a slice of GloVe with gender labels, word lists, SimLex-999, faces.

Nothing is read before a function is called. Sources and licences: ``SOURCES.md`` in this folder.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.data.faces import OrlFaces, load_orl_faces
from expunge.errors import InputError

__all__ = [
    "GloveGender",
    "LabelledWords",
    "OrlFaces",
    "SimLex",
    "WeatTest",
    "WordLists",
    "WordSet",
    "load_glove",
    "load_orl_faces",
    "load_simlex",
    "load_word_lists",
]

Vectors = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class LabelledWords:
    """Words with their vectors and a gender label.

    Attributes
    ----------
    words : tuple of str
    X : float32 array of shape (n, 100)
    y : int array of shape (n,)
        0 = male-biased, 1 = female-biased.
    """

    words: tuple[str, ...]
    X: Vectors
    y: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.words)


@dataclass(frozen=True, eq=False)
class GloveGender:
    """A slice of GloVe in order of frequency, with gendered words in three disjoint parts.

    Attributes
    ----------
    words : tuple of str
    vectors : float32 array of shape (n, 100)
        Not normalised.
    train, dev, test : LabelledWords
        The words nearest to either end of *he - she*, by cosine.
    """

    words: tuple[str, ...]
    vectors: Vectors
    train: LabelledWords
    dev: LabelledWords
    test: LabelledWords

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._places

    @cached_property
    def _places(self) -> dict[str, int]:
        return {word: place for place, word in enumerate(self.words)}

    def index(self, word: str) -> int:
        """Row of a word in `vectors`.

        Raises
        ------
        InputError
            If the slice does not hold it.
        """
        if word not in self._places:
            raise InputError(
                "This word is not in the embedded slice",
                repr(word),
                f"Pass one of its {len(self):,} words, in lower case",
            )
        return self._places[word]

    def vector(self, word: str) -> Vectors:
        """The vector of a word, a copy."""
        return np.array(self.vectors[self.index(word)])

    def neighbours(
        self, word: str, k: int = 3, vectors: NDArray[np.floating[Any]] | None = None
    ) -> tuple[str, ...]:
        """The `k` nearest words of the slice by cosine, nearest first, without the word itself.

        Parameters
        ----------
        word : str
        k : int
        vectors : array of shape (n, m), optional
            Other vectors of the same words, erased ones say.

        Returns
        -------
        tuple of str

        Examples
        --------
        >>> from expunge.data import load_glove
        >>> load_glove().neighbours("ocean")
        ('sea', 'waters', 'seas')
        """
        V = self.vectors if vectors is None else np.asarray(vectors)
        if V.ndim != 2 or V.shape[0] != len(self):
            raise InputError(
                f"vectors must have one row for each of the {len(self):,} words of the slice",
                f"shape {V.shape}",
                "Transform all of `vectors`",
            )
        if not 1 <= k < len(self):
            raise InputError("k must be a positive number below that of words", str(k), "Pass k=3")
        row = self.index(word)
        length = np.linalg.norm(V, axis=1)
        cosine = (V @ V[row]) / np.where(length > 0, length, 1)
        cosine[row] = -np.inf
        return tuple(self.words[i] for i in np.argsort(-cosine, kind="stable")[:k])


@dataclass(frozen=True)
class WordSet:
    """A named list of words."""

    name: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class WeatTest:
    """One word embedding association test: two sets of targets, two of attributes."""

    name: str
    first_target: WordSet
    second_target: WordSet
    first_attribute: WordSet
    second_attribute: WordSet


@dataclass(frozen=True)
class WordLists:
    """Word lists in lower case; a few words are not in the slice (ask ``word in glove``).

    Attributes
    ----------
    weat : tuple of WeatTest
        The ten tests of Caliskan et al. (2017), in their order.
    definitional_pairs : tuple of pairs of str
        Ten pairs (female, male) of Bolukbasi et al. (2016).
    neighbour_words : tuple of str
        The words whose neighbours Ravfogel et al. (2022) list.
    """

    weat: tuple[WeatTest, ...]
    definitional_pairs: tuple[tuple[str, str], ...]
    neighbour_words: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class SimLex:
    """SimLex-999: pairs of words and how similar people find them.

    Attributes
    ----------
    pairs : tuple of pairs of str
    scores : float64 array of shape (999,)
        From 0 to 10.
    """

    pairs: tuple[tuple[str, str], ...]
    scores: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.pairs)


def load_glove() -> GloveGender:
    """The embedded slice of GloVe, a fresh copy on every call.

    Returns
    -------
    GloveGender

    References
    ----------
    Pennington, Socher, Manning (2014), GloVe: Global Vectors for Word Representation, EMNLP.

    Examples
    --------
    >>> from expunge.data import load_glove
    >>> glove = load_glove()
    >>> glove.vectors.shape
    (23338, 100)
    >>> len(glove.train), len(glove.dev), len(glove.test)
    (7350, 3150, 4500)
    >>> glove.vector("ocean").dtype
    dtype('float32')
    """
    words = tuple(_text("glove_words.txt").split())
    with (
        files(__name__).joinpath("glove_gender.npz").open("rb") as stream,
        np.load(stream, allow_pickle=False) as stored,
    ):
        vectors = stored["vectors"].astype(np.float32)
        parts = {
            name: _labelled(words, vectors, stored[f"rows_{name}"], stored[f"labels_{name}"])
            for name in ("train", "dev", "test")
        }
    return GloveGender(words, vectors, **parts)


def load_word_lists() -> WordLists:
    """Word lists for association tests, definitional pairs and neighbours.

    Returns
    -------
    WordLists

    Examples
    --------
    >>> from expunge.data import load_word_lists
    >>> lists = load_word_lists()
    >>> lists.weat[5].name
    'WEAT 6: Male names / Female names, Career / Family'
    >>> lists.weat[5].first_target.words[:3]
    ('john', 'paul', 'mike')
    >>> lists.definitional_pairs[0]
    ('woman', 'man')
    """
    stored = json.loads(_text("word_lists.json"))
    return WordLists(
        weat=tuple(_weat(test) for test in stored["weat"]),
        definitional_pairs=tuple((female, male) for female, male in stored["definitional_pairs"]),
        neighbour_words=tuple(stored["neighbour_words"]),
    )


def load_simlex() -> SimLex:
    """SimLex-999; every word of it is in the slice.

    Returns
    -------
    SimLex

    References
    ----------
    Hill, Reichart, Korhonen (2015), SimLex-999, Computational Linguistics 41(4).

    Examples
    --------
    >>> from expunge.data import load_simlex
    >>> simlex = load_simlex()
    >>> simlex.pairs[1], float(simlex.scores[1])
    (('smart', 'intelligent'), 9.2)
    """
    stored = json.loads(_text("simlex999.json"))
    pairs = tuple((first, second) for first, second, _ in stored)
    return SimLex(pairs, np.array([score for *_, score in stored], dtype=np.float64))


def _text(name: str) -> str:
    return files(__name__).joinpath(name).read_text(encoding="utf-8")


def _labelled(
    words: tuple[str, ...], vectors: Vectors, rows: NDArray[Any], labels: NDArray[Any]
) -> LabelledWords:
    return LabelledWords(tuple(words[row] for row in rows), vectors[rows], labels.astype(np.int64))


def _weat(stored: dict[str, Any]) -> WeatTest:
    def part(key: str) -> WordSet:
        return WordSet(stored[key]["name"], tuple(stored[key]["words"]))

    return WeatTest(
        stored["name"],
        part("first_target"),
        part("second_target"),
        part("first_attribute"),
        part("second_attribute"),
    )
