"""Nearest neighbours by cosine, before and after a change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.errors import InputError
from expunge.inputs import check_list, check_number, check_rng, check_rows
from expunge.metrics.similarity import places
from expunge.rows.base import Rows

__all__ = [
    "NeighbourChange",
    "NeighbourSample",
    "nearest_neighbours",
    "nearest_rows",
    "neighbour_changes",
    "neighbour_overlap",
    "neighbour_sample",
    "overlap_of_rows",
]

MEGABYTES = 16  # of distances held at once
SHORT = 1e-5  # numbers of a row below which, in float32, it may be taken for a row of zeros


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

    def overlaps(self, before: Rows, after: Rows, ks: Sequence[int]) -> dict[int, float]:
        """Mean share of the k nearest rows that stay among the k nearest, for each k."""
        near = [
            nearest_rows(rows.take(self.base).array(), self.queries, max(ks))
            for rows in (before, after)
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
    >>> from expunge.metrics.neighbours import nearest_neighbours
    >>> from expunge.data import load_glove
    >>> glove = load_glove()
    >>> nearest_neighbours(glove.vectors, glove.words, ["ocean"], k=3)
    {'ocean': ('sea', 'waters', 'seas')}
    """
    V = check_rows(vectors, name="vectors").array()
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
    found = nearest_rows(V, rows, k) if queries else ()
    return {q: tuple(str(words[i]) for i in near) for q, near in zip(queries, found, strict=True)}


def neighbour_changes(
    before: Any, after: Any, words: Sequence[str], queries: Sequence[str], k: int = 5
) -> tuple[NeighbourChange, ...]:
    """The nearest words of each query before and after a change of the vectors.

    Parameters
    ----------
    before, after : arrays of shape (n, d) and (n, e)
        The vectors of the same words.
    words : sequence of n str
    queries : sequence of str
        The words whose neighbours are looked for, among `words`.
    k : int
        Neighbours of each.

    Returns
    -------
    tuple of NeighbourChange

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.metrics.neighbours import neighbour_changes
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
    >>> from expunge.metrics.neighbours import neighbour_overlap
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> neighbour_overlap(X, 3 * X, k=10)
    1.0
    >>> neighbour_overlap(X, X * [1, 1, 1, 1, 0], k=10) < 1
    True
    """
    return overlap_of_rows(
        check_rows(before, name="before"),
        check_rows(after, name="after"),
        k,
        max_queries=max_queries,
        max_base=max_base,
        rng=check_rng(random_state),
    )


def overlap_of_rows(
    before: Rows,
    after: Rows,
    k: int,
    *,
    max_queries: int,
    max_base: int,
    rng: np.random.Generator,
) -> float:
    """The same of rows of which only the sample is read, wherever they are.

    Parameters
    ----------
    before, after : rows of shape (n, d) and (n, e)
    k, max_queries, max_base : int
        As in `neighbour_overlap`.
    rng : Generator

    Returns
    -------
    float
        From 0 to 1.
    """
    sample = neighbour_sample(before, after, max_queries=max_queries, max_base=max_base, rng=rng)
    _check_k(k, len(sample.base))
    return sample.overlaps(before, after, [k])[k]


def neighbour_sample(
    before: Rows,
    after: Rows,
    *,
    max_queries: int,
    max_base: int,
    rng: np.random.Generator,
) -> NeighbourSample:
    """Rows to compare neighbours on; all of them where the limits allow.

    Parameters
    ----------
    before, after : rows of shape (n, d) and (n, e)
    max_queries, max_base : int
        Most rows that are asked, and among which neighbours are looked for.
    rng : Generator

    Returns
    -------
    NeighbourSample
    """
    check_number(max_queries, "max_queries", least=1, whole=True)
    check_number(max_base, "max_base", least=2, whole=True)
    n = before.n_samples
    if after.n_samples != n:
        raise InputError(
            "before and after must be the same rows",
            f"{n} and {after.n_samples} rows",
            "Pass all rows",
        )

    def some(size: int, most: int) -> NDArray[np.intp]:
        return np.sort(rng.permutation(size)[:most]).astype(np.intp)

    base = some(n, max_base)
    return NeighbourSample(base, some(len(base), max_queries))


def nearest_rows(X: NDArray[Any], queries: NDArray[np.intp], k: int) -> NDArray[np.intp]:
    """The `k` nearest other rows of some rows by cosine, nearest first.

    Parameters
    ----------
    X : array of shape (n, d)
        A row of zeros has cosine 0 with all others.
    queries : int array of shape (q,)
        Row numbers.
    k : int
        Below n.

    Returns
    -------
    int array of shape (q, k)

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.metrics.neighbours import nearest_rows
    >>> nearest_rows(np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]), np.array([0, 2]), 1)
    array([[1],
           [1]])
    """
    from sklearn import config_context
    from sklearn.neighbors import NearestNeighbors

    single = X.dtype in (np.float16, np.float32)
    work: NDArray[Any] = np.asarray(X, dtype=np.float32 if single else np.float64)
    largest = np.maximum(work.max(axis=1), -work.min(axis=1))[:, None]
    if np.any((largest < SHORT) | (largest > 1 / SHORT)):  # the search takes these for zeros
        work = np.ldexp(work, -np.frexp(largest)[1])
    search = NearestNeighbors(n_neighbors=k + 1, metric="cosine", algorithm="brute").fit(work)
    with config_context(working_memory=MEGABYTES):
        near = search.kneighbors(work[queries], return_distance=False)
    own = near == queries[:, None]
    own[~own.any(axis=1), -1] = True  # copies of the row crowd it out: then the last has to go
    return np.asarray(near[~own].reshape(len(queries), k))


def _shared(a: NDArray[np.intp], b: NDArray[np.intp]) -> float:
    """Mean share of the numbers in a row of `a` that are in that row of `b`."""
    both = np.sort(np.hstack([a, b]), axis=1)  # a number in both comes twice in a row
    return float((both[:, 1:] == both[:, :-1]).sum() / a.size)


def _check_k(k: int, n: int) -> None:
    check_number(k, "k", least=1, most=n - 1, whole=True)
