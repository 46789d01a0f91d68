"""Two homes of the same rows, read side by side whatever their blocks are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

from expunge.rows.base import Rows

__all__ = ["together"]


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
