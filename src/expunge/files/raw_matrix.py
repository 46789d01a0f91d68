"""A matrix as plain numbers at some place of a file: read by rows, without mapping it to memory.

Plain reads keep to the memory that was asked for. Mapped pages would count as memory of the
process, and a file cut short by somebody else would end it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from expunge.files.number_types import decoded
from expunge.files.table import truncated

__all__ = ["RawMatrix"]

NEAR = 16  # rows in between that are read along rather than stepped over


@dataclass(frozen=True)
class RawMatrix:
    """Numbers of a matrix in a file.

    Attributes
    ----------
    path : Path
    offset : int
        Of the first byte.
    n, d : int
    raw : dtype
        Of the bytes.
    kind : str
        What they mean.
    by_columns : bool
        Whether columns follow one another, not rows.
    """

    path: Path
    offset: int
    n: int
    d: int
    raw: np.dtype[Any]
    kind: str
    by_columns: bool = False

    def check_size(self) -> None:
        """Refuse a file that ends before the matrix does."""
        size, row = self.path.stat().st_size, self.d * self.raw.itemsize
        if size < self.offset + self.n * row:
            rows = max(0, size - self.offset) // max(row, 1)
            where = "" if self.by_columns else f", in row {rows} of {self.n}"
            raise truncated(self.path, f"byte {size}{where}")

    def blocks(self, size: int, start: int = 0) -> Iterator[tuple[int, NDArray[Any]]]:
        """Rows in order from `start`, at most `size` at a time, each with its first row."""
        with self.path.open("rb", buffering=0) as stream:
            for lo in range(start, self.n, size):
                yield lo, self._read(stream, lo, min(lo + size, self.n))

    def take(self, index: NDArray[np.intp]) -> NDArray[Any]:
        """The rows with these numbers; neighbours are read together.

        Parameters
        ----------
        index : int array of shape (k,)

        Returns
        -------
        array of shape (k, d)
        """
        index = np.asarray(index, dtype=np.intp)
        wanted, back = np.unique(index, return_inverse=True)
        rows = np.empty((len(wanted), self.d), decoded(np.empty(0, self.raw), self.kind).dtype)
        cuts = np.flatnonzero(np.diff(wanted) > NEAR) + 1
        edges = [0, *cuts.tolist(), len(wanted)] if len(wanted) else []
        with self.path.open("rb", buffering=0) as stream:
            for lo, hi in pairwise(edges):
                first, last = int(wanted[lo]), int(wanted[hi - 1])
                rows[lo:hi] = self._read(stream, first, last + 1)[wanted[lo:hi] - first]
        in_order = len(wanted) == len(index) and bool((np.diff(index) > 0).all())
        return rows if in_order else rows[back.reshape(-1)]

    def _read(self, stream: IO[bytes], lo: int, hi: int) -> NDArray[Any]:
        if not self.by_columns:
            return self._numbers(stream, lo * self.d, (hi - lo) * self.d, lo).reshape(-1, self.d)
        columns = [self._numbers(stream, j * self.n + lo, hi - lo, lo) for j in range(self.d)]
        return np.stack(columns, axis=1)

    def _numbers(self, stream: IO[bytes], first: int, count: int, row: int) -> NDArray[Any]:
        stream.seek(self.offset + first * self.raw.itemsize)
        found = np.fromfile(stream, self.raw, count)
        if found.size < count:
            raise truncated(self.path, f"row {row + found.size // self.d} of {self.n}")
        return decoded(found, self.kind)
