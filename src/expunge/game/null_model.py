"""The null model: the best the predictor can do when it sees nothing of x.

With scores s = Θᵀx + b the predictor may always play Θ = 0, so V(Q) <= V0 = min_b mean ℓ(y, b).
Let R0 be the derivative of the loss in the scores there. By convexity Θ = 0 is optimal on erased
rows iff (I - Q) Xᵀ R0 = 0; XᵀR0 is what a closed form has to remove. R0 depends on a row only
through its concept, and linearly on the concept's columns, so XᵀR0 follows from `Moments`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from expunge.errors import InputError
from expunge.game.losses import Loss, Squared
from expunge.linalg import Array, concept_span
from expunge.moments import Moments

__all__ = ["NullModel", "balancing_model", "null_model"]


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
    x_units, residual_units : arrays of shape (d,) and (m,)
        Root mean squares of the columns of x and of R0: by Cauchy and Schwarz no entry of the
        gradient exceeds their product, which is the measure of "zero".
    """

    value: float
    intercept: Array
    gradient: Array
    residual_mean: Array
    x_units: Array
    residual_units: Array

    @cached_property
    def directions(self) -> Array:
        """Orthonormal basis (d x rank) of the columns of the gradient: what has to be erased."""
        return concept_span(self.gradient, self.x_units, self.residual_units)

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
        mean = _squared_only(loss, moments).mean_z
        return _of_numbers(moments, mean if fit_intercept else 0 * mean, fit_intercept)
    Y, w = _support(loss, moments)
    b = loss.null_intercept(Y, w) if fit_intercept else np.zeros(Y.shape[1])
    found = _of_support(loss, moments, b, loss.null_residual(Y, w, b), fit_intercept)
    # with an intercept b is optimal, and what is left of the mean residual is rounding
    return replace(found, residual_mean=0 * b) if fit_intercept else found


def balancing_model(loss: Loss, moments: Moments, slope: Array) -> tuple[NullModel, float]:
    """Constant scores whose residuals make up for a mean residual that is not zero.

    A dual point of a problem with an intercept must have residuals that add up to zero. Those of a
    predictor whose intercept is not optimal have a mean `slope`; mixed with a share t of those of
    the constant model found here they have the mean ``(1 - t) slope + t residual_mean = 0``.

    Parameters
    ----------
    loss : Loss
    moments : Moments
    slope : array of shape (m,)

    Returns
    -------
    model : NullModel
        Of constant scores, not the best ones.
    share : float
        t, between 0 and 1; small where the slope is.
    """
    if moments.kind == "continuous":
        reach = 2 * _squared_only(loss, moments).concept_spreads
        leans = np.abs(slope) > 1e-200 * reach  # a slope of 1e-300 is none, and would overflow
        times = float((reach[leans] / np.abs(slope[leans])).min(initial=1e200))
        b = moments.mean_z - times * slope / 2
        return _of_numbers(moments, b, True), 1 / (1 + times)
    Y, w = _support(loss, moments)
    b, share = loss.balance(Y, w, loss.null_intercept(Y, w), slope)
    R = loss.derivative(Y, np.ones((len(Y), 1)) * b)
    if share == 1.0:
        return null_model(loss, moments, True), share
    return _of_support(loss, moments, b, R, True), share


def _support(loss: Loss, moments: Moments) -> tuple[Array, Array]:
    """The distinct targets and their shares: per class, or 0 and 1 for every label."""
    if moments.kind == "classes":
        return loss.encode(np.eye(len(moments.labels)), "classes"), moments.mean_z[:, None]
    p = np.clip(moments.mean_z, 0.0, 1.0)
    return loss.encode(np.vstack([np.zeros_like(p), np.ones_like(p)]), "labels"), np.vstack(
        [1 - p, p]
    )


def _of_support(loss: Loss, moments: Moments, b: Array, R: Array, fit_intercept: bool) -> NullModel:
    """The model of constant scores b, with residuals R (one row per distinct target)."""
    Y, w = _support(loss, moments)
    scores = np.ones((len(Y), 1)) * b
    if moments.kind == "classes":
        value = float(w[:, 0] @ loss.values(Y, scores))
        slopes = moments.cov_xz @ R
    else:
        value = float((w * loss.elements(Y, scores)).sum())  # type: ignore[attr-defined]
        slopes = moments.cov_xz * (R[1] - R[0])
    mean_R, square_R = (w * R).sum(axis=0), (w * R**2).sum(axis=0)
    return _assemble(moments, fit_intercept, value, b, slopes, mean_R, square_R)


def _squared_only(loss: Loss, moments: Moments) -> Moments:
    """The moments, if the loss has a null model for numbers."""
    if not isinstance(loss, Squared):
        raise InputError(
            "Only the squared loss has a closed form for a continuous concept",
            f"loss {loss.name!r}",
            "Pass loss='squared', or bin the concept into classes",
        )
    return moments


def _of_numbers(moments: Moments, b: Array, fit_intercept: bool) -> NullModel:
    """Squared loss on numbers at constant scores b: R = 2(b - y)."""
    squares = np.diag(moments.cov_zz) + (moments.mean_z - b) ** 2
    return _assemble(
        moments,
        fit_intercept,
        float(squares.sum()),
        b,
        -2 * moments.cov_xz,
        2 * (b - moments.mean_z),
        4 * squares,
    )


def _assemble(
    moments: Moments,
    fit_intercept: bool,
    value: float,
    b: Array,
    slopes: Array,
    mean_R: Array,
    square_R: Array,
) -> NullModel:
    square_x = moments.squares / moments.weight
    if not fit_intercept:
        slopes = slopes + np.outer(moments.mean_x, mean_R)
        square_x = square_x + moments.mean_x**2
    roots = (np.sqrt(np.maximum(square, 0.0)) for square in (square_x, square_R))
    units = (np.where(root > 0, root, 1.0) for root in roots)
    return NullModel(value, b, slopes, mean_R, *units)
