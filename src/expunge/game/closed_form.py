"""The exact solution of the game where one exists: the span of the null residual.

Theorem. Let A = XᵀR0 be the derivative of the mean loss in the coefficients at the null model. If
the erased subspace contains the columns of A, then (I - Q)A = 0, so Θ = 0 satisfies the first-order
condition of a convex problem and the predictor can do no better than the null model; V0 is also an
upper bound, so this Q solves the game. Where the loss is differentiable the converse holds: any
solution contains the columns of A. So K = rank A is the fewest directions that suffice.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from expunge.errors import InputError
from expunge.game.null_model import NullModel
from expunge.linalg import Array, least_variance_directions
from expunge.moments import Moments

__all__ = ["Rank", "closed_form"]

Rank = int | Literal["auto"]


def closed_form(null: NullModel, moments: Moments, rank: Rank = "auto") -> Array:
    """Orthonormal directions (d x K) whose removal brings the predictor down to the null model.

    Parameters
    ----------
    null : NullModel
    moments : Moments
        With Sxx when `rank` exceeds the concept's own.
    rank : int or "auto"
        "auto" is the rank of XᵀR0. More directions are filled up with those of least variance.

    Returns
    -------
    array of shape (d, K)

    Raises
    ------
    InputError
        When `rank` is below the rank of XᵀR0: then no K directions reach the bound.
    """
    U, own = null.directions, null.rank
    if rank == "auto" or rank == own:
        return U
    if rank < own:
        raise InputError(
            f"solver='closed_form' needs rank >= {own} for this concept",
            f"rank={rank}",
            f"Pass rank={own} or rank='auto' for the exact solution",
        )
    return np.hstack([U, least_variance_directions(U, moments.cov_xx, rank - own)])
