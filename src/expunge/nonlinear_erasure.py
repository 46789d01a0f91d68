"""Maps of rows that no matrix does: what all of them share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from expunge.errors import InputError
from expunge.inputs.frames import rows_of_table
from expunge.inputs.matrices import apply_map, as_matrix
from expunge.linalg import Array
from expunge.saved_map import SavedMap

__all__ = ["NonlinearErasure", "frozen"]


class NonlinearErasure(SavedMap):
    """Base of erasures that need nothing but the row and are not linear.

    They take rows wherever an `Erasure` does. What needs a matrix (weights to be folded into, an
    index of FAISS) refuses them. A subclass moves blocks of float64; `noun` is what messages call
    it, and `projection` what it does, in a few words.
    """

    noun: ClassVar[str]
    projection: ClassVar[str]
    strength: float

    @abstractmethod
    def _move(self, block: Array) -> Array:
        """Erase a block (k x d) of float64 in place, at full strength.

        What comes back is infinite or NaN where rows are.
        """

    @abstractmethod
    def _parts(self) -> dict[str, Any]:
        """All that `__init__` takes."""

    @property
    @abstractmethod
    def reads(self) -> Array:
        """Directions (d x r) in which rounding may show what was erased."""

    def with_(self, **parts: Any) -> Self:
        """The same map with other parts, named as when it is made.

        Parameters
        ----------
        **parts

        Returns
        -------
        a map of this class
        """
        return type(self)(**{**self._parts(), **parts})

    def transform(self, X: Any, out: Any = None) -> NDArray[Any]:
        """Erased rows, in one pass and one block at a time.

        Parameters
        ----------
        X : array, frame or Rows of shape (n, d); arrays and torch tensors of shape (..., d) too
            Floating types are kept; integers and booleans give float64.
        out : array or tensor of the shape and type of the result, str or path, optional
            As of `Erasure.transform`.

        Returns
        -------
        array of the shape of X, or rows of the new file
        """
        return cast(NDArray[Any], apply_map(self, rows_of_table(X, known=self.columns), out))

    def __call__(self, X: Any) -> NDArray[Any]:
        """Erased rows; the same as `transform`."""
        return self.transform(X)

    def erase_block(self, block: Array) -> Array:
        """Erase a block (k x d) of float64 in place; what comes back is infinite where rows are."""
        if self.strength == 1:
            return self._move(block)
        before = block.copy()
        seen = self._move(block)
        block -= before
        block *= self.strength
        block += before
        return seen


def frozen(values: Any, name: str) -> Array:
    """A finite float64 array that cannot be written to.

    Parameters
    ----------
    values : array
    name : str
        What to call it.

    Returns
    -------
    array
    """
    array = np.array(as_matrix(values, name=name), dtype=np.float64, order="C")
    if not np.isfinite(array).all():
        raise InputError(f"{name} must be finite", "NaN or infinity", "Fit it again")
    array.flags.writeable = False
    return array
