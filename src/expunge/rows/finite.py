"""Whether erased rows are numbers: noticed within the pass, at next to no cost.

A NaN or an infinity anywhere in a row x makes the coordinates (x - c) Rᵀ that are taken from it NaN
or infinite. So these few numbers show them all. That finite rows leave the range of their type is
seen by the processor, whose flags NumPy reads after each step. Either is a suspicion only: the
result is then looked at entry by entry.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from expunge.errors import InputError
from expunge.half import are_finite
from expunge.parallel import BLOCK, blocks

__all__ = ["Watch", "refuse_infinite", "refuse_nan"]

T = TypeVar("T")


class Watch:
    """Watches a pass over rows.

    Parameters
    ----------
    rank : int
        Of the erasure; without any coordinate to read, the result is looked at in any case.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.rows.finite import Watch
    >>> watch = Watch(1)
    >>> watch.see(np.array([1.0, np.nan]))
    >>> watch.suspicious
    True
    """

    def __init__(self, rank: int) -> None:
        self.suspicious = rank == 0

    def over(self, work: Callable[[int, int], T]) -> Callable[[int, int], T]:
        """`work` on a span of rows, with an eye on the flags of the processor.

        Parameters
        ----------
        work : callable
            Of the first row and the last.

        Returns
        -------
        callable
        """

        def watched(start: int, stop: int) -> T:
            with np.errstate(over="call", invalid="call", call=self._flagged):
                return work(start, stop)

        return watched

    def _flagged(self, *event: Any) -> None:
        self.suspicious = True

    def see(self, coordinates: NDArray[Any]) -> None:
        """Look at the coordinates that were taken from a block of rows."""
        flat = coordinates.ravel()
        if not isfinite(flat.dot(flat)):  # blocks are small, so the quickest question counts
            self.suspicious = True

    def settle(self, X: NDArray[Any], out: NDArray[Any]) -> None:
        """Refuse a result that holds NaN or infinity, if there was reason to look for them.

        Parameters
        ----------
        X, out : arrays of shape (n, d)
            Before and after; may be the same.
        """
        if self.suspicious:
            refuse_infinite(X, out)


def refuse_infinite(X: NDArray[Any], out: NDArray[Any], dtype: str = "") -> None:
    """Refuse a result that holds NaN or infinity.

    Parameters
    ----------
    X, out : arrays of shape (n, d)
        Before and after; may be the same.
    dtype : str
        What to call the type of the result, if not by that of `out`.

    Raises
    ------
    InputError
        It says whether rows were so before, or left the range of their type.
    """
    bad, first = 0, -1
    for lo, hi in blocks(0, out.shape[0]):
        wrong = np.flatnonzero(~np.isfinite(out[lo:hi]).all(axis=1))
        first = lo + int(wrong[0]) if wrong.size and first < 0 else first
        bad += wrong.size
    if not bad:
        return
    found = f"{bad} such row{'s' if bad > 1 else ''}, the first is row {first}"
    in_place = np.may_share_memory(X, out)
    if not in_place and np.isfinite(X[first]).all():
        raise InputError(
            f"Erased rows exceed what {dtype or out.dtype} can hold: they would become infinite",
            found,
            "Pass X in a wider type, such as float32, or divide it by a constant",
        )
    raise InputError(
        "Input X contains NaN or infinity" + (", or values too large for its type" * in_place),
        found + ("; the others are erased already" * in_place),
        "Drop or impute those rows first",
    )


def refuse_nan(X: Any, name: str, start: int = 0) -> None:
    """Refuse rows that hold NaN or infinity, with their number and the first place.

    Parameters
    ----------
    X : array of shape (n,) or (n, d), or a view that becomes one
    name : str
        What to call it.
    start : int
        Number of the first row among all of them.

    Raises
    ------
    InputError
    """
    bad, first = 0, None
    for lo, hi in blocks(0, len(X), 8 * BLOCK):
        part = np.asarray(X[lo:hi])
        if part.dtype == np.float16 and are_finite(part):
            continue
        wrong = ~np.isfinite(part)
        count = int(wrong.sum())
        if count and first is None:
            row, column = np.argwhere(wrong.reshape(hi - lo, -1))[0]
            first = (start + lo + int(row), int(column))
        bad += count
    if first is None:
        return
    where = f"row {first[0]}, column {first[1]}" if len(X.shape) > 1 else f"position {first[0]}"
    raise InputError(
        f"Input {name} contains NaN or infinity",
        f"{bad} such value{'s' if bad > 1 else ''}, the first in {where}",
        "Drop or impute those rows first",
    )
