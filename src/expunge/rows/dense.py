"""Rows in memory (or memory-mapped): a NumPy array."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from expunge.concept import Concept
from expunge.parallel import SPAN, blocks, map_spans, n_threads
from expunge.rows.apply import apply_to_array
from expunge.rows.base import Rows

if TYPE_CHECKING:
    from expunge.maps import Map

__all__ = ["DenseRows"]


class DenseRows(Rows):
    """A checked array of shape (n, d) as rows.

    Parameters
    ----------
    X : array of shape (n, d)
        Real numbers; never copied as a whole.
    """

    in_memory = True
    local = True

    def __init__(self, X: NDArray[Any]) -> None:
        self.X = X

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Width of a row."""
        return int(self.X.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers."""
        return self.X.dtype

    def blocks(self) -> Iterator[tuple[int, NDArray[Any]]]:
        """The array itself; a memory map in pieces, so that each is read from disk once."""
        if not isinstance(self.X, np.memmap):
            yield 0, self.X
            return
        for lo, hi in blocks(0, self.n_samples, 4 * n_threads() * SPAN):
            yield lo, self.X[lo:hi]

    def check_finite(self, name: str = "X") -> None:
        """Refuse NaN and infinity; one pass of BLAS where there are none."""
        A = self.X
        quick = A.dtype.kind == "f" and A.dtype != np.float16 and A.flags.c_contiguous
        if not quick or not np.isfinite(_sum_of_squares(A)):  # which may overflow
            super().check_finite(name)

    def take(self, index: NDArray[np.intp]) -> DenseRows:
        """The rows with these numbers as rows in memory."""
        return DenseRows(np.asarray(self.X[index]))

    def array(self) -> NDArray[Any]:
        """The array itself."""
        return np.asarray(self.X)

    def transform(self, erasure: Map, out: Any = None, *, concept: Concept | None = None) -> Any:
        """One pass: the rows after an erasure; see `Rows`."""
        if concept is not None and out is not None:
            return super().transform(erasure, out, concept=concept)
        if concept is not None:
            return erasure.transform_known(np.asarray(self.X), concept)  # type: ignore[union-attr]
        return apply_to_array(erasure, self.X, out)  # type: ignore[arg-type]


def _sum_of_squares(A: NDArray[Any]) -> float:
    def part(start: int, stop: int) -> float:
        flat = A[start:stop].ravel()
        with np.errstate(over="ignore", invalid="ignore"):
            return float(np.vdot(flat, flat))

    return sum(map_spans(part, A.shape[0], A.shape[1]))
