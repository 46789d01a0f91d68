"""Rows of a matrix that lies in a store and is read by slices: an HDF5 dataset, a Zarr array."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.rows.lazy_rows import Index, LazyRows

__all__ = ["StoredRows"]


class StoredRows(LazyRows):
    """A matrix of shape (n, d) outside memory; a block of rows is read at a time.

    Parameters
    ----------
    stored : object with shape and dtype that can be indexed by slices and ascending numbers

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.rows.stored_rows import StoredRows
    >>> StoredRows(np.arange(6.0).reshape(3, 2)).take(np.array([2, 0, 2])).array()
    array([[4., 5.],
           [0., 1.],
           [4., 5.]])
    """

    def __init__(self, stored: Any) -> None:
        super().__init__(int(stored.shape[0]), int(stored.shape[1]), stored.dtype)
        self.stored = stored

    def _made(self, index: Index) -> NDArray[Any]:
        if not len(index):
            return np.empty((0, self.n_features), self.dtype)
        first, last = int(index.min()), int(index.max())
        if last - first + 1 == len(index) and (np.diff(index) == 1).all():
            return np.asarray(self.stored[first : last + 1])
        rows, place = np.unique(index, return_inverse=True)  # stores want each once, ascending
        return np.asarray(self.stored[rows])[place.reshape(-1)]
