"""The null model: the best the predictor can do when it sees nothing of x.

With scores s = Θᵀx + b the predictor may always play Θ = 0, so V(Q) <= V0 = min_b mean ℓ(y, b).
Let R0 be the derivative of the loss in the scores there. By convexity Θ = 0 is optimal on erased
rows iff (I - Q) Xᵀ R0 = 0; XᵀR0 is what a closed form has to remove. R0 depends on a row only
through its concept, and linearly on the concept's columns, so XᵀR0 follows from `Moments`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from expunge.errors import InputError
from expunge.game.losses import Loss, Squared
from expunge.linalg import Array, range_basis
from expunge.moments import Moments

__all__ = ["NullModel", "null_model"]


@dataclass(frozen=True)
class NullModel:
    """The predictor that ignores x.

    Attributes
    ----------
    value : float
        V0, the bound on what any erasure can reach.
    intercept : array of shape (m,)
        Its constant scores.
    gradient : array of shape (d, m)
        XᵀR0 as a weighted mean: the derivative in the coefficients. With an intercept X may be
        centred, since the columns of R0 sum to zero.
    residual_mean : array of shape (m,)
        Mean of R0: zero with an intercept.
    scale : float
        The largest norm the gradient could have (Cauchy-Schwarz): the measure of "zero".
    """

    value: float
    intercept: Array
    gradient: Array
    residual_mean: Array
    scale: float

    @cached_property
    def directions(self) -> Array:
        """Orthonormal basis (d x rank) of the columns of the gradient: what has to be erased."""
        return range_basis(self.gradient, scale=self.scale)

    @property
    def rank(self) -> int:
        """The concept's own rank: the fewest directions that erase it."""
        return int(self.directions.shape[1])


def null_model(loss: Loss, moments: Moments, fit_intercept: bool) -> NullModel:
    """Null model of a loss from moments alone.

    Parameters
    ----------
    loss : Loss
    moments : Moments
    fit_intercept : bool
        Without it the constant scores are 0 and X is not centred.

    Returns
    -------
    NullModel
    """
    if moments.kind == "continuous":
        return _of_numbers(loss, moments, fit_intercept)
    Y, w = _support(loss, moments)
    m = Y.shape[1]
    b = loss.null_intercept(Y, w) if fit_intercept else np.zeros(m)
    R0 = loss.null_residual(Y, w, b)
    if moments.kind == "classes":
        value = float(w[:, 0] @ loss.values(Y, np.ones((len(Y), 1)) * b))
        slopes, mean_R0 = moments.cov_xz @ R0, w[:, 0] @ R0
    else:
        value = float((w * loss.elements(Y, np.ones((2, 1)) * b)).sum())  # type: ignore[attr-defined]
        slopes, mean_R0 = moments.cov_xz * (R0[1] - R0[0]), (w * R0).sum(axis=0)
    return _assemble(moments, fit_intercept, value, b, slopes, mean_R0, float((w * R0**2).sum()))


def _support(loss: Loss, moments: Moments) -> tuple[Array, Array]:
    """The distinct targets and their shares: per class, or 0 and 1 for every label."""
    if moments.kind == "classes":
        return loss.encode(np.eye(len(moments.labels)), "classes"), moments.mean_z[:, None]
    p = moments.mean_z
    return loss.encode(np.vstack([np.zeros_like(p), np.ones_like(p)]), "labels"), np.vstack(
        [1 - p, p]
    )


def _of_numbers(loss: Loss, moments: Moments, fit_intercept: bool) -> NullModel:
    """Squared loss on numbers: b = mean y, R0 = 2(b - y)."""
    if not isinstance(loss, Squared):
        raise InputError(
            "Only the squared loss has a closed form for a continuous concept",
            f"loss {loss.name!r}",
            "Pass loss='squared', or bin the concept into classes",
        )
    mean = moments.mean_z
    b = mean if fit_intercept else np.zeros_like(mean)
    value = float(np.trace(moments.cov_zz) + ((mean - b) ** 2).sum())
    return _assemble(
        moments, fit_intercept, value, b, -2 * moments.cov_xz, 2 * (b - mean), 4 * value
    )


def _assemble(
    moments: Moments,
    fit_intercept: bool,
    value: float,
    b: Array,
    slopes: Array,
    mean_R0: Array,
    square_R0: float,
) -> NullModel:
    square_x = moments.trace_xx / moments.weight
    if fit_intercept:
        mean_R0 = np.zeros_like(mean_R0)  # b is optimal; what is left is rounding
    else:
        slopes = slopes + np.outer(moments.mean_x, mean_R0)
        square_x += float(moments.mean_x @ moments.mean_x)
    return NullModel(value, b, slopes, mean_R0, float(np.sqrt(square_x * square_R0)))
