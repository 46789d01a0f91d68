"""Rows seen through a map: every block is changed on its way, and no copy of all is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.parallel import SPAN, blocks, n_threads
from expunge.rows.base import Rows
from expunge.rows.dense import DenseRows

__all__ = ["MappedRows"]

Which = slice | NDArray[np.intp]


class MappedRows(Rows):
    """Rows of another home after a map that keeps their shape.

    Parameters
    ----------
    rows : Rows
    change : function of an array of shape (k, d) and the numbers of its rows
        Gives an array of that shape; the numbers are a slice or an array.
    dtype : dtype
        Of what it gives.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.rows.dense import DenseRows
    >>> from expunge.rows.mapped import MappedRows
    >>> halved = MappedRows(DenseRows(np.array([[2.0], [4.0]])), lambda X, which: X / 2, float)
    >>> halved.array()
    array([[1.],
           [2.]])
    """

    def __init__(
        self,
        rows: Rows,
        change: Callable[[NDArray[Any], Which], NDArray[Any]],
        dtype: Any = np.float64,
    ) -> None:
        self.rows, self.change, self._dtype = rows, change, np.dtype(dtype)

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self.rows.n_samples

    @property
    def n_features(self) -> int:
        """Width of a row."""
        return self.rows.n_features

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers after the map."""
        found: np.dtype[Any] = np.dtype(self._dtype)
        return found

    def blocks(self) -> Iterator[tuple[int, NDArray[Any]]]:
        """Blocks of the other home, cut to a few thousand rows for each core, after the map."""
        math = self.rows.math
        for start, X in self.rows.blocks():
            for lo, hi in blocks(0, len(X), n_threads() * SPAN):
                here = slice(start + lo, start + hi)
                yield start + lo, self.change(math.arrays(X[lo:hi]), here)

    def take(self, index: NDArray[np.intp]) -> DenseRows:
        """The rows with these numbers, after the map, in memory."""
        return DenseRows(self.change(self.rows.take(index).array(), index))
