"""Rows of which some have been kept in memory: these are not read again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.linalg import Array
from expunge.moments import Moments
from expunge.rows.base import GlmPass, Reading, Rows
from expunge.rows.dense import DenseRows

__all__ = ["RememberedRows"]


class RememberedRows(Rows):
    """Rows of another home, with some of them at hand.

    Parameters
    ----------
    rows : Rows
    index : array of row numbers, ascending
    kept : array of shape (k, d)
        The rows with these numbers.
    """

    def __init__(self, rows: Rows, index: NDArray[np.intp], kept: NDArray[Any]) -> None:
        self.rows, self.index, self.kept, self.math = rows, index, kept, rows.math

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
        """Type of the numbers."""
        return self.rows.dtype

    def blocks(self) -> Iterator[tuple[int, Any]]:
        """All rows, from their home."""
        return self.rows.blocks()

    def take(self, index: NDArray[np.intp]) -> Rows:
        """The rows with these numbers: from memory if all of them are there."""
        at = np.minimum(np.searchsorted(self.index, index), max(len(self.index) - 1, 0))
        if len(self.index) and np.array_equal(self.index[at], index):
            return DenseRows(self.kept[at])
        return self.rows.take(index)

    # what a home does better than by blocks, it does here too

    def read(self, *args: Any, **kwargs: Any) -> Reading:
        """One pass, at their home; see `Rows`."""
        return self.rows.read(*args, **kwargs)

    def moments(self, *args: Any, **kwargs: Any) -> Moments:
        """One pass, at their home; see `Rows`."""
        return self.rows.moments(*args, **kwargs)

    def glm_pass(self, *args: Any, **kwargs: Any) -> GlmPass:
        """One pass, at their home; see `Rows`."""
        return self.rows.glm_pass(*args, **kwargs)

    def glm_hessian(self, *args: Any, **kwargs: Any) -> Array:
        """One pass, at their home; see `Rows`."""
        return self.rows.glm_hessian(*args, **kwargs)

    def check_finite(self, name: str = "X") -> None:
        """One pass, at their home; see `Rows`."""
        self.rows.check_finite(name)
