"""Rows that are made when they are asked for: erased, selected or joined.

Whoever looks at samples and at one block after another needs neither the erased rows nor a
selection of rows as a whole.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from expunge.concept import Concept
from expunge.errors import InputError
from expunge.linalg import Array
from expunge.moments import Moments
from expunge.parallel import SPAN, blocks
from expunge.rows.base import Rows
from expunge.rows.dense import DenseRows
from expunge.rows.finite import refuse_nan

__all__ = ["ChangedRows", "JoinedRows", "LazyRows", "SelectedRows", "extent"]

T = TypeVar("T")
Index = NDArray[np.intp]
Made = Callable[[int, NDArray[Any]], NDArray[Any]]  # (first row, block) -> changed block
ROWS = 8192  # changed at once
MANY = 16  # share of rows, one in so many, from which all are read rather than each looked up


class LazyRows(Rows):
    """n vectors of width d that are made by `take`.

    Parameters
    ----------
    n_samples, n_features : int
    dtype : dtype
    """

    def __init__(self, n_samples: int, n_features: int, dtype: Any) -> None:
        self._shape, self._dtype = (n_samples, n_features), dtype

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self._shape[0]

    @property
    def n_features(self) -> int:
        """Width of a row."""
        return self._shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers."""
        found: np.dtype[Any] = np.dtype(self._dtype)
        return found

    def blocks(self) -> Iterator[tuple[int, NDArray[Any]]]:
        """Some thousand rows at a time, as `Rows.arrays` cuts any others."""
        for lo, hi in blocks(0, self.n_samples, SPAN):
            yield lo, self._made(np.arange(lo, hi))

    def take(self, index: Index) -> DenseRows:
        """The rows with these numbers, in memory."""
        return DenseRows(self._made(np.asarray(index)))

    @abstractmethod
    def _made(self, index: Index) -> NDArray[Any]:
        """The rows with these numbers."""


class ChangedRows(LazyRows):
    """What a map that works row by row makes of other rows.

    Parameters
    ----------
    rows : rows of shape (n, d)
    change : callable
        ``(X, index) -> array`` for the rows X with the numbers `index`.
    alike : bool
        Whether it changes a row in the same way whatever its number is, and so can be sent to
        where the rows are.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.rows.lazy_rows import ChangedRows
    >>> from expunge.inputs import check_rows
    >>> double = ChangedRows(check_rows([[1.0], [2.0], [3.0]]), lambda X, index: 2 * X)
    >>> double.take(np.array([2])).array()
    array([[6.]])
    """

    def __init__(
        self, rows: Rows, change: Callable[[NDArray[Any], Index], Any], *, alike: bool = False
    ) -> None:
        self.rows, self.change, self.alike = rows, change, alike
        self.far = alike and rows.far
        first = self._changed(np.arange(1))
        super().__init__(rows.n_samples, first.shape[1], first.dtype)

    def blocks(self) -> Iterator[tuple[int, NDArray[Any]]]:
        """Blocks of the others, changed: these are read in one go."""
        shape = (self.n_features, self.dtype)
        for start, X in self.rows.arrays():
            yield start, _changed_block(self.change, shape, start, X)

    def each_block(self, work: Callable[[int, NDArray[Any]], T]) -> Iterator[tuple[int, T]]:
        """What a function gives of each block, made where the others are, if that can be."""
        if not self.alike:
            return super().each_block(work)
        return self.rows.each_block(partial(_work_on_changed, work, *self._how()))

    def _how(self) -> tuple[Any, Any]:
        return self.change, (self.n_features, self.dtype)

    def moments(
        self, concept: Concept, weights: Array | None = None, *, second: bool = True
    ) -> Moments:
        """One pass: counts, means and centred second moments; where the others are, if need be."""
        if not self.far:
            return super().moments(concept, weights, second=second)
        root, made = self.traced()
        there = root.seen_through(made, self.n_features, self.dtype)
        return there.moments(concept, weights, second=second)

    def traced(self) -> tuple[Rows, Made]:
        """The rows at the beginning of all changes, and how a block of these comes from theirs.

        Returns
        -------
        Rows
        function of the number of the first row and a block
        """
        own = partial(_changed_block, *self._how())
        if not isinstance(self.rows, ChangedRows):
            return self.rows, own
        root, before = self.rows.traced()
        return root, partial(_one_after_other, before, own)

    def _made(self, index: Index) -> NDArray[Any]:
        made = np.empty((len(index), self.n_features), self.dtype)
        for lo, hi in blocks(0, len(index), ROWS):  # never all of them before and after at once
            made[lo:hi] = self._changed(index[lo:hi])
        return made

    def _changed(self, index: Index) -> NDArray[Any]:
        return np.asarray(self.change(self.rows.take(index).array(), index))


def _changed_block(change: Any, shape: Any, start: int, X: NDArray[Any]) -> NDArray[Any]:
    """The rows X, of which the first has the number `start`, changed."""
    width, dtype = shape
    made = np.empty((len(X), width), dtype)
    for lo, hi in blocks(0, len(X), ROWS):
        try:
            made[lo:hi] = change(X[lo:hi], np.arange(start + lo, start + hi))
        except InputError:
            refuse_nan(X[lo:hi], "X", start + lo)  # with the number of the row among all
            raise
    return made


def _one_after_other(first: Made, second: Made, start: int, X: NDArray[Any]) -> NDArray[Any]:
    return second(start, first(start, X))


def _work_on_changed(work: Any, change: Any, shape: Any, start: int, X: NDArray[Any]) -> Any:
    return work(start, _changed_block(change, shape, start, X))


class SelectedRows(LazyRows):
    """Some rows of others.

    Parameters
    ----------
    rows : rows of shape (n, d)
    index : int array of shape (k,)
    """

    def __init__(self, rows: Rows, index: Index) -> None:
        super().__init__(len(index), rows.n_features, rows.dtype)
        self.rows, self.index = rows, index

    def blocks(self) -> Iterator[tuple[int, NDArray[Any]]]:
        """The rows in order; of rows that are not in memory, in one go where many are wanted."""
        many = len(self.index) > SPAN and MANY * len(self.index) > self.rows.n_samples
        if self.rows.in_memory or not many or (np.diff(self.index) < 0).any():
            yield from super().blocks()
            return
        for start, X in self.rows.arrays():
            lo, hi = np.searchsorted(self.index, [start, start + len(X)])
            if lo < hi:
                yield int(lo), X[self.index[lo:hi] - start]

    def _made(self, index: Index) -> NDArray[Any]:
        return self.rows.take(self.index[index]).array()


class JoinedRows(LazyRows):
    """Rows and then others of the same width.

    Parameters
    ----------
    first, second : rows of shapes (n, d) and (m, d)

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.rows.lazy_rows import JoinedRows
    >>> from expunge.inputs import check_rows
    >>> both = JoinedRows(check_rows([[1.0], [2.0]]), check_rows([[3.0], [4.0]]))
    >>> both.take(np.array([3, 0])).array()
    array([[4.],
           [1.]])
    """

    def __init__(self, first: Rows, second: Rows) -> None:
        dtype = np.result_type(first.dtype, second.dtype)
        super().__init__(first.n_samples + second.n_samples, first.n_features, dtype)
        self.first, self.second = first, second

    def blocks(self) -> Iterator[tuple[int, NDArray[Any]]]:
        """Blocks of either, one after the other."""
        for start, X in self.first.arrays():
            yield start, X.astype(self.dtype, copy=False)
        for start, X in self.second.arrays():
            yield self.first.n_samples + start, X.astype(self.dtype, copy=False)

    def _made(self, index: Index) -> NDArray[Any]:
        made = np.empty((len(index), self.n_features), self.dtype)
        early = index < self.first.n_samples
        made[early] = self.first.take(index[early]).array()
        made[~early] = self.second.take(index[~early] - self.first.n_samples).array()
        return made


def extent(rows: Rows) -> tuple[Array, Array, Array]:
    """Least, greatest and mean value of each column (d,), in one pass.

    Parameters
    ----------
    rows : rows of shape (n, d)

    Returns
    -------
    low, high, mean : float64 arrays of shape (d,)
        NaN where a column holds one.

    Examples
    --------
    >>> from expunge.rows.lazy_rows import extent
    >>> from expunge.inputs import check_rows
    >>> extent(check_rows([[1, 2], [3, -2]]))
    (array([ 1., -2.]), array([3., 2.]), array([2., 0.]))
    """
    low, high = np.full((2, rows.n_features), [[np.inf], [-np.inf]])
    total = np.zeros(rows.n_features)
    with np.errstate(invalid="ignore"):  # of infinities that cancel
        for _, (least, most, some) in rows.each_block(_extent_of):
            low, high, total = np.minimum(low, least), np.maximum(high, most), total + some
    return low, high, total / rows.n_samples


def _extent_of(start: int, X: NDArray[Any]) -> tuple[Any, Any, Array]:
    with np.errstate(invalid="ignore"):
        return X.min(axis=0), X.max(axis=0), X.sum(axis=0, dtype=np.float64)
