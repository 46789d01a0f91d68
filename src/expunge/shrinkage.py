"""Shrinkage of a covariance towards a multiple of the identity, from moments alone.

    Σ̂ = (1 - γ) S + γ (tr S / d) I

γ is chosen for the least expected squared error under a Gaussian model. Ledoit and Wolf's own
formula needs fourth moments of the rows; its Rao-Blackwellised form needs only tr S and tr S²
(Chen, Wiesel, Eldar, Hero 2010, Shrinkage Algorithms for MMSE Covariance Estimation).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from expunge.inputs import check_choice, check_number
from expunge.linalg import Array

__all__ = ["check_shrinkage", "shrink"]

CHOICES = ("none", "ledoit_wolf", "oas")


def check_shrinkage(shrinkage: Any) -> None:
    """Refuse what is neither a choice nor a share between 0 and 1."""
    if isinstance(shrinkage, str):
        check_choice(shrinkage, CHOICES, "shrinkage")
    else:
        check_number(shrinkage, "shrinkage", most=1.0)


def shrink(covariance: Array, n: float, shrinkage: str | float) -> Array:
    """The covariance after shrinkage.

    Parameters
    ----------
    covariance : array of shape (d, d)
        Of n rows, divided by n.
    n : float
        Number of rows, or the sum of their weights.
    shrinkage : {"none", "ledoit_wolf", "oas"} or float
        The share γ itself, or how to choose it.

    Returns
    -------
    array of shape (d, d)

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.shrinkage import shrink
    >>> shrink(np.diag([3.0, 1.0]), 10, 0.5)
    array([[2.5, 0. ],
           [0. , 1.5]])
    """
    gamma = shrinkage if not isinstance(shrinkage, str) else _share(covariance, n, shrinkage)
    if gamma == 0:
        return covariance
    d = len(covariance)
    shrunk = (1 - gamma) * covariance
    shrunk[np.diag_indices(d)] += gamma * np.trace(covariance) / d
    return np.asarray(shrunk)


def _share(S: Array, n: float, rule: str) -> float:
    if rule == "none":
        return 0.0
    d, size = len(S), float(np.abs(np.diag(S)).max(initial=0.0))
    S = S / size if size > 0 else S  # the share has no unit, and squares could overflow
    square_of_trace, trace_of_square = float(np.trace(S)) ** 2, float(np.sum(S**2))
    spread = trace_of_square - square_of_trace / d
    if spread <= 0:
        return 0.0
    if rule == "oas":
        wanted = (1 - 2 / d) * trace_of_square + square_of_trace
        return float(np.clip(wanted / ((n + 1 - 2 / d) * spread), 0, 1))
    wanted = (n - 2) / n * trace_of_square + square_of_trace
    return float(np.clip(wanted / ((n + 2) * spread), 0, 1))
