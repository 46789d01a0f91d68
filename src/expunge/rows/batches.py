"""Random batches of rows, read in long runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from expunge.rows.base import Rows

__all__ = ["Batch", "batches"]

RUN = 1024  # neighbours read together
POOL = 64 * RUN  # rows that batches are drawn from

Batch = tuple[NDArray[Any], NDArray[np.intp]]  # some rows and their numbers


def batches(rows: Rows, size: int, rng: np.random.Generator) -> Iterator[Batch]:
    """Batches without end; see `Rows.batches`.

    Parameters
    ----------
    rows : Rows
    size : int
        Rows of a batch.
    rng : Generator

    Yields
    ------
    array of shape (size, d)
        float32 for rows of float32 and less, else float64.
    array of shape (size,)
        The numbers of these rows.
    """
    n, single = rows.n_samples, rows.dtype.kind == "f" and rows.dtype.itemsize <= 4
    kind = np.float32 if single else np.float64
    if n <= POOL:
        pool = rows.array()
        while True:
            index = rng.integers(0, n, size)
            yield pool[index].astype(kind, copy=False), index
    while True:
        runs = rng.permutation(-(-n // RUN))
        for first in range(0, len(runs), POOL // RUN):
            some = np.sort(runs[first : first + POOL // RUN])
            numbers = (some[:, None] * RUN + np.arange(RUN)).ravel()
            numbers = numbers[numbers < n]
            pool = rows.take(numbers).array().astype(kind, copy=False)
            for _ in range(max(1, len(pool) // size)):
                index = rng.integers(0, len(pool), size)
                yield pool[index], numbers[index]
