"""What sums over a block of rows ask of the library that holds it: NumPy here, torch elsewhere.

Sums over rows are written once, against these few operations and the operators that libraries of
arrays share (``@``, ``*``, ``.T``, slices). A home whose rows lie on a device gives its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.half import copy_numbers
from expunge.linalg import Array

__all__ = ["NUMPY", "BlockMath"]

SINGLE = (np.float16, np.float32)  # types whose products of second moments are formed in float32
FEW_COLUMNS = 64  # of fewer, products take less time than the rows' way through memory
FEW_SUMS = 4  # up to which a product with each vector takes less time than one with all
SAFE_SINGLE = (1e-15, 1e15)  # spread within which float32 squares neither vanish nor overflow


class BlockMath:
    """NumPy: blocks are arrays, and everything stays where it is.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.blockmath import NUMPY
    >>> NUMPY.double(np.array([[1, 2], [3, 4]]), np.array([1.0, 1.0]))
    array([[0., 1.],
           [2., 3.]])
    """

    serial = False  # whether one block at a time is worked on, not one in each thread

    def here(self, A: Array) -> Any:
        """A float64 array beside the block, for products with it."""
        return A

    def back(self, A: Any) -> Array:
        """A result as a float64 NumPy array."""
        return np.asarray(A)

    def arrays(self, X: Any) -> NDArray[Any]:
        """Rows of a block as a NumPy array of their type, or the nearest one."""
        return np.asarray(X)

    def glance(self, X: Any) -> Any:
        """Rows of a block, of which only what is looked at becomes an array."""
        return X

    def rows(self, X: Any, index: NDArray[np.intp]) -> Any:
        """Some rows of a block, by their numbers."""
        return X[index]

    def with_ones(self, C: Any) -> Any:
        """A block in float64 with a column of ones behind it."""
        return np.hstack([C, np.ones((len(C), 1))])

    def at_once(self, n_features: int) -> int:
        """Rows in a block of products; 0 where the caller may choose."""
        return 0

    def room(self, n_rows: int, n_columns: int) -> Any:
        """Memory that `double` may use again and again."""
        return np.empty((n_rows, n_columns))

    def double(self, X: Any, center: Array | None = None, room: Any = None) -> Any:
        """The block (k x d) in float64, measured from the center; a view where it can be."""
        if center is None and X.dtype == np.float64:
            return np.asarray(X)
        out = np.empty(X.shape) if room is None else room[: len(X)]
        copy_numbers(out, np.asarray(X))  # a subtraction of two types takes ten times as long
        if center is not None:
            out -= center
        return out

    def squares(self, C: Any, weights: Array, room: Any = None) -> Array:
        """Σ w c² of each column (d,) of a block in float64; what lies in `room` is lost."""
        out = np.empty(C.shape) if room is None else room[: len(C)]
        return np.asarray(weights @ np.multiply(C, C, out=out))

    def sums(self, D: Array, C: Any) -> Array:
        """D C (m x d): sums over the rows of a block in float64, one for each row of D (m x k).

        BLAS is quick for one vector and for many; a few are quicker one by one.
        """
        if len(D) <= FEW_SUMS:
            return np.stack([row @ C for row in D])
        return np.asarray((C.T @ D.T).T)

    def gram(self, X: Any, shift: Array | None, weights: Array | None, spread: float) -> Array:
        """Σ w (x - shift)(x - shift)ᵀ of a block (d x d).

        Products are formed in float32 where X is, where that saves time, and where numbers of this
        spread allow it.
        """
        tame = spread == 0 or SAFE_SINGLE[0] < spread < SAFE_SINGLE[1]
        single = X.dtype in SINGLE and X.shape[1] >= FEW_COLUMNS and tame
        work = np.float32 if single else np.float64
        C: NDArray[Any] = np.asarray(X)
        if C.dtype != work:
            C = np.empty(C.shape, work)
            copy_numbers(C, np.asarray(X))
        if shift is not None:
            C = C - shift.astype(work)
        if weights is not None:
            C = C * np.sqrt(weights[:, None]).astype(work)
        return np.asarray(C.T @ C)

    def eps(self, X: Any) -> float:
        """Relative precision of `gram`, or of the numbers where that is less."""
        return float(np.finfo(np.float32 if X.dtype in SINGLE else np.float64).eps)


NUMPY = BlockMath()
