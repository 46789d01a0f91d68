"""Two homes of the same rows, read side by side whatever their blocks are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

from numpy.typing import NDArray

from expunge.rows.base import Rows
from expunge.rows.lazy_rows import ChangedRows

__all__ = ["each_pair", "together"]

T = TypeVar("T")


def together(a: Rows, b: Rows) -> Iterator[tuple[int, NDArray[Any], NDArray[Any]]]:
    """The same rows of two homes in order: the number of the first, and both arrays.

    Parameters
    ----------
    a, b : Rows
        Of the same number of rows.

    Yields
    ------
    int
    arrays of shapes (k, d) and (k, e)

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.rows.dense import DenseRows
    >>> from expunge.rows.together import together
    >>> X = DenseRows(np.eye(2))
    >>> [(start, len(A), len(B)) for start, A, B in together(X, X)]
    [(0, 2, 2)]
    """
    left, right = a.arrays(), b.arrays()
    _, A = next(left)
    at, B = next(right)
    while True:
        k = min(len(A), len(B))
        yield at, A[:k], B[:k]
        at, A, B = at + k, A[k:], B[k:]
        if at == a.n_samples:
            return
        A = A if len(A) else next(left)[1]
        B = B if len(B) else next(right)[1]


def each_pair(
    a: Rows, b: Rows, work: Callable[[NDArray[Any], NDArray[Any]], T]
) -> Iterator[tuple[int, T]]:
    """What a function gives of each block of two homes of the same rows, with its first number.

    Parameters
    ----------
    a, b : Rows
        Where they are far away and the second are the first, changed, it is sent there.
    work : function of two arrays
        As for `Rows.each_block`.

    Yields
    ------
    int
    object

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.rows.dense import DenseRows
    >>> from expunge.rows.together import each_pair
    >>> X = DenseRows(np.eye(2))
    >>> [(at, float(found)) for at, found in each_pair(X, X, lambda A, B: (A + B).sum())]
    [(0, 4.0)]
    """
    if isinstance(b, ChangedRows) and b.far:
        root, made = b.traced()
        if root is a:
            return a.each_block(partial(_on_both, work, made))
    return ((at, work(A, B)) for at, A, B in together(a, b))


def _on_both(work: Any, made: Any, start: int, X: NDArray[Any]) -> Any:
    return work(X, made(start, X))
