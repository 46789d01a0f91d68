"""Nearest neighbours by cosine, before and after a change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.audit.similarity import places
from expunge.errors import InputError
from expunge.inputs import check_list, check_number, check_rng, check_rows
from expunge.parallel import blocks

__all__ = [
    "NeighbourChange",
    "NeighbourSample",
    "nearest_neighbours",
    "nearest_rows",
    "neighbour_changes",
    "neighbour_overlap",
    "neighbour_sample",
    "unit_rows",
]

CELLS = 1 << 22  # similarities held at once


@dataclass(frozen=True)
class NeighbourChange:
    """The nearest words of a word before and after a change, nearest first."""

    word: str
    before: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def kept(self) -> float:
        """Share of the neighbours before that are neighbours after."""
        return len({*self.before} & {*self.after}) / len(self.before)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        lists = {"before": list(self.before), "after": list(self.after)}
        return {**asdict(self), **lists, "kept": self.kept}


@dataclass(frozen=True, eq=False)
class NeighbourSample:
    """Which rows are asked for their neighbours, and among which rows those are looked for.

    Attributes
    ----------
    base : int array of shape (b,)
        Row numbers, ascending.
    queries : int array of shape (q,)
        Places in `base`.
    """

    base: NDArray[np.intp]
    queries: NDArray[np.intp]

    def overlaps(self, before: Any, after: Any, ks: Sequence[int]) -> dict[int, float]:
        """Mean share of the k nearest rows that stay among the k nearest, for each k."""
        deepest = max(ks)
        near = [
            nearest_rows(unit_rows(np.asarray(X[self.base])), self.queries, deepest)
            for X in (before, after)
        ]
        return {k: _shared(near[0][:, :k], near[1][:, :k]) for k in ks}


def nearest_neighbours(
    vectors: Any, words: Sequence[str], queries: Sequence[str], k: int = 5
) -> dict[str, tuple[str, ...]]:
    """The `k` nearest words of each query by cosine, nearest first, without the query itself.

    Parameters
    ----------
    vectors : array of shape (n, d)
    words : sequence of n str
        One for each vector.
    queries : sequence of str
        Among `words`.
    k : int

    Returns
    -------
    dict from query to tuple of str

    Examples
    --------
    >>> from expunge.audit.neighbours import nearest_neighbours
    >>> from expunge.data import load_glove
    >>> glove = load_glove()
    >>> nearest_neighbours(glove.vectors, glove.words, ["ocean"], k=3)
    {'ocean': ('sea', 'waters', 'seas')}
    """
    V = check_rows(vectors, name="vectors").X
    at = places(words, len(V))
    _check_k(k, len(V))
    queries = [str(query) for query in check_list(queries, "queries")]
    if unknown := [query for query in queries if query not in at]:
        raise InputError(
            "There is no vector for some of the queries",
            ", ".join(map(repr, unknown[:5])),
            "Ask for words that are among `words`",
        )
    rows = np.array([at[query] for query in queries], dtype=np.intp)
    found = nearest_rows(unit_rows(V), rows, k)
    return {q: tuple(str(words[i]) for i in near) for q, near in zip(queries, found, strict=True)}


def neighbour_changes(
    before: Any, after: Any, words: Sequence[str], queries: Sequence[str], k: int = 5
) -> tuple[NeighbourChange, ...]:
    """The nearest words of each query before and after a change of the vectors.

    Parameters
    ----------
    before, after : arrays of shape (n, d) and (n, e)
    words : sequence of n str
    queries : sequence of str
    k : int

    Returns
    -------
    tuple of NeighbourChange

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.audit.neighbours import neighbour_changes
    >>> before = np.array([[1.0, 0.0], [1.0, 0.2], [1.0, 0.9], [0.1, 1.0]])
    >>> after = before * [0.1, 1.0] + [0.3, 0.0]
    >>> neighbour_changes(before, after, ["a", "b", "c", "d"], ["c"], k=1)
    (NeighbourChange(word='c', before=('b',), after=('d',)),)
    """
    first = nearest_neighbours(before, words, queries, k)
    second = nearest_neighbours(after, words, queries, k)
    return tuple(NeighbourChange(query, first[query], second[query]) for query in first)


def neighbour_overlap(
    before: Any,
    after: Any,
    k: int = 10,
    *,
    max_queries: int = 1000,
    max_base: int = 50_000,
    random_state: Any = 0,
) -> float:
    """Mean share of a row's `k` nearest rows that stay among its `k` nearest, by cosine.

    At most `max_base` rows are drawn, and among them at most `max_queries` are asked for their
    neighbours within the drawn rows; fewer rows are used whole. A row of zeros has cosine 0 with
    all others.

    Parameters
    ----------
    before, after : arrays of shape (n, d) and (n, e)
        The same rows before and after a change.
    k : int
    max_queries, max_base : int
    random_state : int, Generator or None

    Returns
    -------
    float
        From 0 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.audit.neighbours import neighbour_overlap
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> neighbour_overlap(X, 3 * X, k=10)
    1.0
    >>> neighbour_overlap(X, X * [1, 1, 1, 1, 0], k=10) < 1
    True
    """
    A, B = check_rows(before, name="before").X, check_rows(after, name="after").X
    sample = neighbour_sample(
        A, B, max_queries=max_queries, max_base=max_base, rng=check_rng(random_state)
    )
    _check_k(k, len(sample.base))
    return sample.overlaps(A, B, [k])[k]


def neighbour_sample(
    before: NDArray[Any],
    after: NDArray[Any],
    *,
    max_queries: int,
    max_base: int,
    rng: np.random.Generator,
) -> NeighbourSample:
    """Rows to compare neighbours on; all of them where the limits allow.

    Parameters
    ----------
    before, after : arrays of shape (n, d) and (n, e)
    max_queries, max_base : int
    rng : Generator

    Returns
    -------
    NeighbourSample
    """
    check_number(max_queries, "max_queries", least=1, whole=True)
    check_number(max_base, "max_base", least=2, whole=True)
    n = len(before)
    if len(after) != n:
        raise InputError(
            "before and after must be the same rows", f"{n} and {len(after)} rows", "Pass all rows"
        )

    def some(size: int, most: int) -> NDArray[np.intp]:
        return np.sort(rng.permutation(size)[:most]).astype(np.intp)

    base = some(n, max_base)
    return NeighbourSample(base, some(len(base), max_queries))


def unit_rows(X: NDArray[Any]) -> NDArray[Any]:
    """Rows (n x d) divided by their lengths, in float32 or float64; rows of zeros stay."""
    single = X.dtype in (np.float16, np.float32)
    U: NDArray[Any] = np.asarray(X, dtype=np.float32 if single else np.float64)
    size = np.linalg.norm(U, axis=1, keepdims=True)
    return np.asarray(U / np.where(size > 0, size, 1))


def nearest_rows(unit: NDArray[Any], queries: NDArray[np.intp], k: int) -> NDArray[np.intp]:
    """The `k` nearest other rows of some rows, nearest first; similarities exist in blocks only.

    Parameters
    ----------
    unit : array of shape (n, d)
        Rows of length 1.
    queries : int array of shape (q,)
        Row numbers.
    k : int
        Below n.

    Returns
    -------
    int array of shape (q, k)
    """
    found = np.empty((len(queries), k), dtype=np.intp)
    for lo, hi in blocks(0, len(queries), max(CELLS // len(unit), 1)):
        S = unit[queries[lo:hi]] @ unit.T
        S[np.arange(hi - lo), queries[lo:hi]] = -np.inf
        near = np.argpartition(-S, k - 1, axis=1)[:, :k]
        order = np.lexsort((near, -np.take_along_axis(S, near, axis=1)), axis=1)
        found[lo:hi] = np.take_along_axis(near, order, axis=1)
    return found


def _shared(a: NDArray[np.intp], b: NDArray[np.intp]) -> float:
    """Mean share of the numbers in a row of `a` that are in that row of `b`."""
    k = a.shape[1]
    common = 0
    for lo, hi in blocks(0, len(a), max(CELLS // k**2, 1)):
        common += int((a[lo:hi, :, None] == b[lo:hi, None, :]).sum())
    return common / a.size


def _check_k(k: int, n: int) -> None:
    check_number(k, "k", least=1, most=n - 1, whole=True)
