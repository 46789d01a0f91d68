"""Word vectors with gender labels: the embedded slice, or any file of GloVe or word2vec."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from expunge.data import GloveGender, LabelledWords, load_glove, load_word_lists
from expunge.erasers import INLP, RLACE, PairPCA
from expunge.erasure import Erasure
from expunge.errors import InputError
from expunge.linalg import Array
from expunge.reproduce.glove.word_vectors import WordVectors, read_word_vectors
from expunge.reproduce.runner.declaration import LoadedData, RunSettings

__all__ = ["GloveData", "label_words", "load", "projection"]

SIDE = 7500  # words at either end of he - she
SHARES = (0.49, 0.21)  # of them for training and development: 7,350 and 3,150 of 15,000
PAPER_WIDTH, PAPER_WORDS = 300, 390_000  # GloVe 6B has 400,000 words
MAX_RANK = 20
LEAST_WORDS = 60


@dataclass(frozen=True, eq=False)
class GloveData:
    """The words, and the directions that do not depend on a seed.

    Attributes
    ----------
    glove : GloveGender
    """

    glove: GloveGender

    @property
    def max_rank(self) -> int:
        """The largest K tried: 20, or one less than the width."""
        return min(MAX_RANK, int(self.glove.vectors.shape[1]) - 1)

    @cached_property
    def bases(self) -> dict[str, Array]:
        """Orthonormal columns by method; the first K of them are the answer at rank K."""
        train = self.glove.train
        return {
            "RLACE exact": RLACE(self.max_rank).fit(train.X, train.y).erasure_.left,
            "INLP": INLP(self.max_rank).fit(train.X, train.y).erasure_.left,
            **self._pair_basis(),
        }

    def _pair_basis(self) -> dict[str, Array]:
        """Of the pairs whose words are both there; nothing if there are none."""
        pairs = load_word_lists().definitional_pairs
        known = [(a, b) for a, b in pairs if a in self.glove and b in self.glove]
        if not known:
            return {}
        female, male = (
            np.stack([self.glove.vector(w) for w in side]) for side in zip(*known, strict=True)
        )
        rank = min(len(known), self.max_rank)
        return {"PairPCA": PairPCA.from_pairs(female, male, rank).erasure_.left}


def projection(basis: Array) -> Erasure:
    """The map x -> x - QQᵀx of the paper, for orthonormal columns Q (d x K)."""
    return Erasure(basis, basis.T)


def load(path: Path | None, settings: RunSettings) -> LoadedData:
    """The embedded slice, or the file at `path`.

    Parameters
    ----------
    path : path, optional
    settings : RunSettings
        Its seed decides the split of the words of a file.

    Returns
    -------
    LoadedData
        With a `GloveData`.
    """
    if path is None:
        glove = load_glove()
        source = f"embedded slice of GloVe 6B, {glove.vectors.shape[1]} dimensions"
        differs = (
            "a slice of the 100-dimensional GloVe vectors, and our own words at the ends of "
            "he - she, instead of 300-dimensional vectors and the paper's words"
        )
    else:
        found = read_word_vectors(path)
        glove = label_words(found, settings.seed)
        width = found.vectors.shape[1]
        source = f"{path.name} ({found.kind}, {width} dimensions)"
        differs = _differs(found)
    facts = {
        "Words": len(glove),
        "Training words": len(glove.train),
        "Development words": len(glove.dev),
        "Test words": len(glove.test),
        "Dimensions": glove.vectors.shape[1],
        "Share of female-biased test words": f"{glove.test.y.mean():.1%}",
    }
    return LoadedData(GloveData(glove), source, _digest(glove), differs, facts)


def _differs(found: WordVectors) -> str:
    """How vectors differ from GloVe 6B with 300 dimensions; empty if they do not."""
    width, words = found.vectors.shape[1], len(found.words)
    reasons = [] if width == PAPER_WIDTH else [f"{width} dimensions instead of {PAPER_WIDTH}"]
    if found.kind != "GloVe, text":
        reasons.append(f"a file of {found.kind} instead of GloVe")
    if words < PAPER_WORDS:
        reasons.append(f"{words:,} words instead of 400,000")
    return ", and ".join(reasons)


def label_words(found: WordVectors, seed: int = 0) -> GloveGender:
    """Label the words at either end of *he - she* and split them as the paper does.

    A word's place is the projection of its vector on he - she. The 7,500 largest are male-biased
    (0), the 7,500 smallest female-biased (1); of a small vocabulary, a third at either end. 49 % of
    them are for training, 21 % for development, the rest for testing.

    Parameters
    ----------
    found : WordVectors
    seed : int
        Decides the split.

    Returns
    -------
    GloveGender

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.reproduce.glove.labelled_words import label_words
    >>> from expunge.reproduce.glove.word_vectors import WordVectors
    >>> words = ("he", "she", *(f"w{i}" for i in range(88)))
    >>> place = np.linspace(-1, 1, 90, dtype=np.float32)
    >>> vectors = np.column_stack([np.concatenate([[2, -2], place[2:]]), np.ones(90)])
    >>> glove = label_words(WordVectors(words, vectors.astype(np.float32), "text"))
    >>> len(glove.train), len(glove.dev), len(glove.test)
    (29, 13, 18)
    """
    places = {word: row for row, word in enumerate(found.words)}
    if "he" not in places or "she" not in places:
        raise InputError(
            "Labels come from the line between two words that are not both there",
            f"{len(places):,} words without {'he' if 'he' not in places else 'she'!r}",
            "Name English word vectors",
        )
    if len(places) < LEAST_WORDS:
        raise InputError(
            "There are too few words to train on", f"{len(places)}", f"Pass {LEAST_WORDS} or more"
        )
    V = found.vectors
    scores = V @ (V[places["he"]] - V[places["she"]])
    side = min(SIDE, len(places) // 3)
    order = np.argsort(scores, kind="stable")
    rows = np.concatenate([order[::-1][:side], order[:side]])
    labels = np.repeat([0, 1], side)
    shuffled = np.random.default_rng(seed).permutation(2 * side)
    cuts = np.round(np.cumsum(SHARES) * 2 * side).astype(int)
    train, dev, test = (
        _labelled(found, rows[part], labels[part]) for part in np.split(shuffled, cuts)
    )
    return GloveGender(found.words, V, train, dev, test)


def _labelled(
    found: WordVectors, rows: NDArray[np.intp], labels: NDArray[np.int64]
) -> LabelledWords:
    words = tuple(found.words[row] for row in rows)
    return LabelledWords(words, found.vectors[rows], labels.astype(np.int64))


def _digest(glove: GloveGender) -> str:
    """A digest of the vectors, the words and the labelled parts."""
    digest = hashlib.sha256(np.ascontiguousarray(glove.vectors).tobytes())
    digest.update("\n".join(glove.words).encode())
    for part in (glove.train, glove.dev, glove.test):
        digest.update("\n".join(part.words).encode())
        digest.update(part.y.tobytes())
    return digest.hexdigest()[:16]
