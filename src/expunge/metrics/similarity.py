"""Similarity of vectors and of words: cosines, rank correlations, people's judgements."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from expunge.errors import InputError
from expunge.inputs import check_list, check_rows
from expunge.linalg import Array

__all__ = [
    "SimilarityCorrelation",
    "directions",
    "pearson",
    "places",
    "similarity_correlation",
    "spearman",
]

Pair = tuple[str, str, float]

FIRST = ("word1", "w1", "first", "firstword", "worda")
SECOND = ("word2", "w2", "second", "secondword", "wordb")
SCORES = ("score", "simlex999", "similarity", "humanmean", "human", "mean", "rating", "gold", "sim")


@dataclass(frozen=True)
class SimilarityCorrelation:
    """Agreement of cosines with people's judgements.

    Attributes
    ----------
    pearson, spearman : float
    n_used, n_pairs : int
        Pairs with both words known, of all pairs.
    missing : tuple of str
        Words without a vector.
    """

    pearson: float
    spearman: float
    n_used: int
    n_pairs: int
    missing: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {**asdict(self), "missing": list(self.missing)}


def similarity_correlation(
    vectors: Any,
    words: Sequence[str],
    pairs: Iterable[tuple[str, str, float]] | str | os.PathLike[str] | None = None,
) -> SimilarityCorrelation:
    """Correlation of cosines with people's judgements of similarity.

    Parameters
    ----------
    vectors : array of shape (n, d)
    words : sequence of n str
        One for each vector. A word of a pair that is not among them is looked up in lower case.
    pairs : iterable of (word, word, score), or path of a table, optional
        A tab, comma, semicolon or space separated file with two columns of words and one of
        scores, with or without a header. By default the embedded SimLex-999.

    Returns
    -------
    SimilarityCorrelation

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.metrics.similarity import similarity_correlation
    >>> vectors = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    >>> pairs = [("cat", "dog", 9), ("cat", "tax", 1), ("dog", "tax", 2), ("cat", "eel", 5)]
    >>> found = similarity_correlation(vectors, ["cat", "dog", "tax"], pairs)
    >>> round(found.spearman, 6), found.n_used, found.missing
    (1.0, 3, ('eel',))
    """
    V = check_rows(vectors, name="vectors")
    at = places(words, V.n_samples)
    rated = _pairs(pairs)
    rows, scores = [], []
    missing: dict[str, None] = {}
    for first, second, score in rated:
        found = [at.get(word, at.get(word.lower())) for word in (first, second)]
        missing |= {w: None for w, row in zip((first, second), found, strict=True) if row is None}
        if None not in found:
            rows.append(found)
            scores.append(score)
    if len(rows) < 3:
        raise InputError(
            "Fewer than three pairs have vectors for both words",
            f"{len(rows)} of {len(rated)} pairs, without {', '.join(list(missing)[:5])}",
            "Pass vectors of the words in the pairs",
        )
    left, right = np.array(rows, dtype=np.intp).T
    cosines = np.einsum(
        "ij,ij->i", directions(V.take(left).array()), directions(V.take(right).array())
    )
    human = np.array(scores)
    return SimilarityCorrelation(
        pearson(cosines, human), spearman(cosines, human), len(rows), len(rated), tuple(missing)
    )


def pearson(a: Array, b: Array) -> float:
    """Pearson correlation of two arrays (n,); nan for fewer than two numbers or without spread."""
    if a.size < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    return float(np.corrcoef(a, b)[0, 1])


def spearman(a: Array, b: Array) -> float:
    """Spearman correlation of two arrays (n,): that of their ranks, ties sharing a mean rank."""
    from scipy.stats import rankdata

    return pearson(rankdata(a), rankdata(b))


def directions(vectors: Any, name: str = "vectors") -> Array:
    """Rows (n x d) divided by their lengths, in float64; a row of zeros is refused."""
    V = np.asarray(check_rows(vectors, name=name, least=1).array(), dtype=np.float64)
    size = np.linalg.norm(V, axis=1, keepdims=True)
    if not size.all():
        raise InputError(
            f"{name} has rows of zeros, which have no direction",
            f"{int((size == 0).sum())} of {len(V)}, the first in row {int(size.argmin())}",
            "Leave those words out",
        )
    return np.asarray(V / size)


def places(words: Sequence[str], n: int) -> dict[str, int]:
    """Row of each word; of a word that comes twice, the first."""
    listed = check_list(words, "words")
    if len(listed) != n:
        raise InputError(
            "There must be one word for each vector",
            f"{len(listed)} words and {n} vectors",
            "Pass the words in the order of the vectors",
        )
    return {str(listed[row]): row for row in range(n - 1, -1, -1)}


def _pairs(pairs: Any) -> list[Pair]:
    """Rated pairs from whatever holds them."""
    if pairs is None:
        from expunge.data import load_simlex

        simlex = load_simlex()
        return [(a, b, float(s)) for (a, b), s in zip(simlex.pairs, simlex.scores, strict=True)]
    if isinstance(pairs, str | os.PathLike):
        return _read_pairs(Path(pairs))
    found = []
    for number, pair in enumerate(check_list(pairs, "pairs")):
        try:
            first, second, score = pair
        except (TypeError, ValueError) as error:
            raise InputError(
                "A rated pair is two words and a number", f"{pair!r}", "Pass (word, word, score)"
            ) from error
        found.append((str(first), str(second), _score(score, f"pair {number}")))
    return found


def _score(value: Any, where: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not np.isfinite(number):
        raise InputError("A score is not a number", f"{value!r} in {where}", "Mend that entry")
    return number


def _read_pairs(path: Path) -> list[Pair]:
    lines = list(_cells(path))
    if not lines:
        raise InputError("The file of rated pairs is empty", str(path), "Pass one pair a line")
    columns, header = _columns(lines[0][1], path)
    found = []
    for number, cells in lines[header:]:
        if len(cells) <= max(columns):
            raise InputError(
                "A line has too few columns for two words and a score",
                f"{len(cells)} columns in {path}, line {number}",
                "Mend that line",
            )
        first, second, score = (cells[column].strip() for column in columns)
        found.append((first, second, _score(score, f"{path}, line {number}")))
    return found


def _cells(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and cells, without blank lines and comments."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            "The file of rated pairs cannot be read", f"{path} ({error})", "Pass a text table"
        ) from error
    lines = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
    lines = [(n, line) for n, line in lines if not line.startswith("#")]
    separator = next((s for s in "\t;," if lines and s in lines[0][1]), None)
    for number, line in lines:
        if separator in (None, "\t"):
            yield number, line.split(separator)
        else:
            yield number, next(csv.reader([line], delimiter=separator))


def _columns(head: list[str], path: Path) -> tuple[tuple[int, int, int], int]:
    """Numbers of the columns with the words and the score; and whether there is a header."""
    if len(head) >= 3 and _is_number(head[2]):
        return (0, 1, 2), 0
    names = ["".join(c for c in cell.lower() if c.isalnum()) for cell in head]

    def column(known: tuple[str, ...], default: int | None) -> int | None:
        return next((names.index(name) for name in known if name in names), default)

    first, second, score = column(FIRST, 0), column(SECOND, 1), column(SCORES, None)
    if first is None or second is None or score is None or len({first, second, score}) < 3:
        raise InputError(
            "The columns of the two words and of the score cannot be told",
            f"{path} with the columns {', '.join(map(repr, head[:8]))}",
            "Name them word1, word2 and score",
        )
    return (first, second, score), 1


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
