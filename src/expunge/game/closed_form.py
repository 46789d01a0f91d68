"""The exact solution of the game where one exists: the span of the null residual.

Theorem. Let A = XᵀR0 be the derivative of the mean loss in the coefficients at the null model. If
the erased subspace contains the columns of A, then (I - Q)A = 0, so Θ = 0 satisfies the first-order
condition of a convex problem and the predictor can do no better than the null model; V0 is also an
upper bound, so this Q solves the game. Where the loss is differentiable the converse holds: any
solution contains the columns of A. So K = rank A is the fewest directions that suffice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from expunge.game.null_model import NullModel
from expunge.game.result import SolveResult, Step, StopReason
from expunge.game.solver import Game, Needs, SolveOptions, Solver
from expunge.linalg import Array, least_variance_directions
from expunge.moments import Moments

__all__ = ["ClosedForm", "Rank", "closed_form"]

Rank = int | Literal["auto"]


@dataclass(frozen=True)
class ClosedForm(Solver):
    """The exact solution at the concept's own rank and above it, from moments alone."""

    name = "closed_form"
    needs = Needs(rows=False, smooth=False, loss=(), own_rank=True)

    def solve(self, game: Game, options: SolveOptions) -> SolveResult:
        """The span of XᵀR0, filled up with what varies least; there is nothing to iterate.

        Parameters
        ----------
        game : Game
        options : SolveOptions
            Not used.

        Returns
        -------
        SolveResult
        """
        moments = game.moments if game.rank == game.null.rank else game.full_moments
        U, value = closed_form(game.null, moments, game.rank), game.null.value
        return SolveResult(U, value, self.name, StopReason.EXACT, (Step(1, value),))


def closed_form(null: NullModel, moments: Moments, rank: Rank = "auto") -> Array:
    """Orthonormal directions (d x K) whose removal brings the predictor down to the null model.

    Parameters
    ----------
    null : NullModel
    moments : Moments
        With Sxx when `rank` exceeds the concept's own.
    rank : int or "auto"
        "auto" is the rank of XᵀR0, the least there may be: no fewer directions reach the bound.
        More are filled up with those of least variance.

    Returns
    -------
    array of shape (d, K)
    """
    U, own = null.directions, null.rank
    if rank == "auto" or rank == own:
        return U
    assert rank > own
    return np.hstack([U, least_variance_directions(U, moments.cov_xx, rank - own)])
