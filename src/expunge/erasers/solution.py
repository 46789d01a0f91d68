"""What a method found, and small checks around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any

import numpy as np

from expunge.errors import InputError
from expunge.game.result import Step
from expunge.linalg import Array
from expunge.moments import Moments
from expunge.nonlinear_erasure import NonlinearErasure

__all__ = ["Solution", "check_varies", "jsonable"]


@dataclass(frozen=True)
class Solution:
    """What a method found: the map and how it was found.

    Attributes
    ----------
    left, right, center : arrays
        Factors of the erasure; see `Erasure`.
    solver : str
        What was run.
    history : tuple of Step
        Of the objective, in the method's own terms.
    spectrum : array of shape (d,) or None
        Eigenvalues before rounding, where a solver relaxed the problem.
    shift : array of shape (d, m) or None
        For a map that is told the concept; see `ConditionalErasure`. Then left and right are empty.
    maps : array of shape (m, d, d) or None
    nonlinear : NonlinearErasure or None
        For a map that no factors are.
    covariance_left : array of shape (d, m) or None
        Sums Sxz that it leaves on the rows of the fit, where factors do not tell.
    choice : Choice, RidgeChoice or None
        What held-out rows said of it.
    """

    left: Array
    right: Array
    center: Array | None
    solver: str
    history: tuple[Step, ...]
    spectrum: Array | None = None
    shift: Array | None = None
    maps: Array | None = None
    nonlinear: NonlinearErasure | None = None
    covariance_left: Array | None = None
    choice: Any = None


def check_varies(moments: Moments) -> None:
    """Refuse moments of a concept that has not varied so far."""
    if moments.kind == "classes" and len(moments.labels) < 2:
        raise InputError(
            "The concept has one class only (1 class): there is nothing to erase yet",
            f"{moments.n} rows of {list(moments.labels)!r}",
            "Add chunks with other classes by partial_fit first",
        )
    if not np.trace(moments.zz) > 0:
        raise InputError(
            "The concept never varies: there is nothing to erase yet",
            f"{moments.n} rows with one value",
            "Add chunks with other values by partial_fit first",
        )


def jsonable(value: Any) -> Any:
    """A parameter as a JSON value; what JSON has no word for (infinity too) as text."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape}"
    if isinstance(value, Mapping):
        return {str(key): jsonable(part) for key, part in value.items()}
    if is_dataclass(value):  # the settings of a solver
        return repr(value)
    return type(value).__name__
