"""Rows that are made when they are asked for: erased, selected, joined, widened or all the same.

An audit looks at samples and at one block after another, so neither the erased rows nor a selection
of rows ever exists as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.concept import Concept
from expunge.linalg import Array
from expunge.metrics.row_blocks import RowSource, block_moments, read_rows, row_blocks
from expunge.moments import Moments
from expunge.parallel import blocks
from expunge.rows.dense import DenseRows

__all__ = ["ChangedRows", "ConstantRows", "JoinedRows", "LazyRows", "SelectedRows", "extent"]

Index = NDArray[np.intp]
ROWS = 8192  # changed at once


class LazyRows:
    """n vectors of width d that are made by `take`."""

    def __init__(self, n_samples: int, n_features: int, dtype: Any) -> None:
        self.n_samples, self.n_features, self.dtype = n_samples, n_features, np.dtype(dtype)

    def take(self, index: Index) -> DenseRows:
        """The rows with these numbers, in memory."""
        return DenseRows(self._made(np.asarray(index)))

    def moments(self, concept: Concept, *, second: bool = True) -> Moments:
        """One pass: counts, means and centred second moments."""
        return block_moments(self, concept, second=second)

    def _made(self, index: Index) -> NDArray[Any]:
        raise NotImplementedError


class ChangedRows(LazyRows):
    """What a map that works row by row makes of other rows.

    Parameters
    ----------
    rows : rows of shape (n, d)
    change : callable
        ``(X, index) -> array`` for the rows X with the numbers `index`.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.audit.lazy_rows import ChangedRows
    >>> from expunge.inputs import check_rows
    >>> double = ChangedRows(check_rows([[1.0], [2.0], [3.0]]), lambda X, index: 2 * X)
    >>> double.take(np.array([2])).X
    array([[6.]])
    """

    def __init__(self, rows: RowSource, change: Callable[[NDArray[Any], Index], Any]) -> None:
        self.rows, self.change = rows, change
        first = self._changed(np.arange(1))
        super().__init__(rows.n_samples, first.shape[1], first.dtype)

    def _made(self, index: Index) -> NDArray[Any]:
        made = np.empty((len(index), self.n_features), self.dtype)
        for lo, hi in blocks(0, len(index), ROWS):  # never all of them before and after at once
            made[lo:hi] = self._changed(index[lo:hi])
        return made

    def _changed(self, index: Index) -> NDArray[Any]:
        return np.asarray(self.change(read_rows(self.rows, index), index))


class SelectedRows(LazyRows):
    """Some rows of others.

    Parameters
    ----------
    rows : rows of shape (n, d)
    index : int array of shape (k,)
    """

    def __init__(self, rows: RowSource, index: Index) -> None:
        super().__init__(len(index), rows.n_features, rows.dtype)
        self.rows, self.index = rows, index

    def _made(self, index: Index) -> NDArray[Any]:
        return read_rows(self.rows, self.index[index])


class JoinedRows(LazyRows):
    """Rows and then others of the same width.

    Parameters
    ----------
    first, second : rows of shapes (n, d) and (m, d)

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.audit.lazy_rows import JoinedRows
    >>> from expunge.inputs import check_rows
    >>> both = JoinedRows(check_rows([[1.0], [2.0]]), check_rows([[3.0], [4.0]]))
    >>> both.take(np.array([3, 0])).X
    array([[4.],
           [1.]])
    """

    def __init__(self, first: RowSource, second: RowSource) -> None:
        dtype = np.result_type(first.dtype, second.dtype)
        super().__init__(first.n_samples + second.n_samples, first.n_features, dtype)
        self.first, self.second = first, second

    def _made(self, index: Index) -> NDArray[Any]:
        made = np.empty((len(index), self.n_features), self.dtype)
        early = index < self.first.n_samples
        made[early] = read_rows(self.first, index[early])
        made[~early] = read_rows(self.second, index[~early] - self.first.n_samples)
        return made


class ConstantRows(LazyRows):
    """The same row n times.

    Parameters
    ----------
    row : array of shape (d,)
    n_samples : int
    """

    def __init__(self, row: NDArray[Any], n_samples: int) -> None:
        super().__init__(n_samples, len(row), row.dtype)
        self.row = row

    def _made(self, index: Index) -> NDArray[Any]:
        return np.tile(self.row, (len(index), 1))


def extent(rows: RowSource) -> tuple[Array, Array, Array]:
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
    >>> from expunge.audit.lazy_rows import extent
    >>> from expunge.inputs import check_rows
    >>> extent(check_rows([[1, 2], [3, -2]]))
    (array([ 1., -2.]), array([3., 2.]), array([2., 0.]))
    """
    low, high = np.full((2, rows.n_features), [[np.inf], [-np.inf]])
    total = np.zeros(rows.n_features)
    with np.errstate(invalid="ignore"):  # of infinities that cancel
        for _, X in row_blocks(rows):
            low, high = np.minimum(low, X.min(axis=0)), np.maximum(high, X.max(axis=0))
            total += X.sum(axis=0, dtype=np.float64)
    return low, high, total / rows.n_samples
