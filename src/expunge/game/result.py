"""What a solver hands back: point, value, history and why it stopped, all of one iterate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from expunge.linalg import Array

__all__ = ["Callback", "SolveResult", "Step", "StopReason"]


class StopReason(Enum):
    """Why a solver stopped."""

    EXACT = "solved exactly"
    CONVERGED = "converged"
    MAX_ITER = "reached max_iter"
    STALLED = "no further progress"
    STOPPED = "stopped by the callback"
    INTERRUPTED = "interrupted"
    DIVERGED = "diverged"


@dataclass(frozen=True)
class Step:
    """One record of a solver's history.

    Attributes
    ----------
    step : int
    value : float
        Loss of a predictor trained to convergence against the eraser of this step.
    relaxed : float or None
        Mean minibatch loss of the relaxed game since the last record (descent-ascent).
    accuracy : float or None
        Accuracy of that predictor on the rows of the fit.
    width : int or None
        Columns kept by the point of the Fantope (descent-ascent).
    """

    step: int
    value: float
    relaxed: float | None = None
    accuracy: float | None = None
    width: int | None = None


Callback = Callable[[Step], Any]


@dataclass(frozen=True)
class SolveResult:
    """The subspace a solver chose and how it came to it.

    Attributes
    ----------
    basis : array of shape (d, K)
        Orthonormal directions to erase.
    value : float
        V, the loss the best predictor is left with (ridge term included).
    solver : str
    reason : StopReason
    history : tuple of Step
    n_passes : int
        Passes over the rows.
    spectrum : array of shape (d,) or None
        Eigenvalues before rounding to a projector (descent-ascent).
    lost : float
        Frobenius norm dropped by the cap on the width (descent-ascent).
    """

    basis: Array
    value: float
    solver: str
    reason: StopReason
    history: tuple[Step, ...]
    n_passes: int = 0
    spectrum: Array | None = None
    lost: float = 0.0
