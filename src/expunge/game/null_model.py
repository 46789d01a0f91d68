"""The null model: the best the predictor can do when it sees nothing of x.

With scores s = Θᵀx + b the predictor may always play Θ = 0, so V(Q) <= V0 = min_b mean ℓ(y, b).
Let R0 be the derivative of the loss in the scores there. By convexity Θ = 0 is optimal on erased
rows iff (I - Q) Xᵀ R0 = 0; XᵀR0 is what a closed form has to remove. R0 depends on a row only
through its concept. For classes, labels and, under a quadratic loss, numbers it is linear in the
concept's columns, so XᵀR0 follows from `Moments`; for numbers under any other loss it takes one
pass over the rows with R0 in place of the concept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from expunge.concept import Concept
from expunge.errors import InputError
from expunge.game.losses import PROBED, Loss, check_tangents
from expunge.linalg import Array, concept_span
from expunge.moments import Moments
from expunge.rows.base import Rows

__all__ = ["Constant", "NullModel", "Observed", "balancing_point", "needs_rows", "null_model"]

SUMS = 1e-9  # of the largest residual: a sum that is zero but for rounding
ROUNDING = 1e-13  # the same of a mean over all rows


@dataclass(frozen=True)
class Observed:
    """The rows with their concept and weights, for a null model that moments do not tell."""

    rows: Rows
    concept: Concept
    weights: Array | None = None

    def only(self, columns: Sequence[int]) -> Observed:
        """The same rows with some columns of the concept."""
        return replace(self, concept=self.concept.only(columns))


@dataclass(frozen=True)
class Constant:
    """The residuals of constant scores, column by column: a point of the dual problem.

    Attributes
    ----------
    dual : array of shape (m,)
        Mean of ℓ(y, b) less b times the mean residual, scores measured from the best constant's.
    gradient : array of shape (d, m)
    residual_mean : array of shape (m,)
    """

    dual: Array
    gradient: Array
    residual_mean: Array

    def only(self, columns: Sequence[int]) -> Constant:
        """Some of the columns."""
        at = list(columns)
        return Constant(self.dual[at], self.gradient[:, at], self.residual_mean[at])

    def in_units(self, units: Array) -> Constant:
        """The same for rows ``x / units``."""
        return replace(self, gradient=self.gradient / units[:, None])


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
    leaning : tuple of three Constant, or None
        Where it took the rows: the columns at the intercept, below it and above it.
    """

    value: float
    intercept: Array
    gradient: Array
    residual_mean: Array
    x_units: Array
    residual_units: Array
    leaning: tuple[Constant, Constant, Constant] | None = None

    @cached_property
    def directions(self) -> Array:
        """Orthonormal basis (d x rank) of the columns of the gradient: what has to be erased."""
        return concept_span(self.gradient, self.x_units, self.residual_units)

    @property
    def rank(self) -> int:
        """The concept's own rank: the fewest directions that erase it."""
        return int(self.directions.shape[1])

    def only(self, columns: Sequence[int]) -> NullModel:
        """The null model of some columns, where those of a sum over columns are known."""
        assert self.leaning is not None
        at, (here, below, above) = list(columns), (part.only(columns) for part in self.leaning)
        return NullModel(
            float(here.dual.sum()),
            self.intercept[at],
            self.gradient[:, at],
            self.residual_mean[at],
            self.x_units,
            self.residual_units[at],
            (here, below, above),
        )

    def in_units(self, units: Array) -> NullModel:
        """The null model of rows ``x / units``, with one unit (d,) for each column."""
        leaning = self.leaning
        if leaning is not None:
            here, below, above = (part.in_units(units) for part in leaning)
            leaning = here, below, above
        gradient = self.gradient / units[:, None]
        return replace(self, gradient=gradient, x_units=self.x_units / units, leaning=leaning)


def needs_rows(loss: Loss, kind: str) -> bool:
    """Whether moments do not tell the null model of a loss on this kind of concept."""
    return kind == "continuous" and not loss.quadratic


def null_model(
    loss: Loss, moments: Moments, fit_intercept: bool, observed: Observed | None = None
) -> NullModel:
    """Null model of a loss, from moments alone where they tell it.

    Parameters
    ----------
    loss : Loss
    moments : Moments
    fit_intercept : bool
        Without it the constant scores are 0 and X is not centred.
    observed : Observed, optional
        The rows the moments are of, for numbers under a loss that is not quadratic.

    Returns
    -------
    NullModel

    Raises
    ------
    InputError
        Where the rows are needed and not given, where the loss is negative, and where its residuals
        do not add up to zero at the best constant.
    """
    if not needs_rows(loss, moments.kind):
        if moments.kind == "continuous":
            b = moments.mean_z if fit_intercept else np.zeros_like(moments.mean_z)
            return _of_numbers(loss, moments, b, fit_intercept)
        Y, w = _support(loss, moments)
        b = loss.null_intercept(Y, w) if fit_intercept else np.zeros(Y.shape[1])
        R, slack = _residuals(loss, Y, w, b), np.zeros(Y.shape[1])
        found = _of_support(loss, moments, b, R, fit_intercept)
    elif observed is None:
        raise InputError(
            f"The loss {loss.name!r} needs the rows themselves for a continuous concept",
            "moments, as a stream by partial_fit keeps them",
            "Call fit on all rows, or take loss='squared', which streams",
        )
    else:
        found, R, slack = _of_rows(loss, moments, fit_intercept, observed)
    largest = np.abs(R).max(axis=0, initial=0.0)
    if not found.value >= -SUMS * largest.max(initial=0.0):
        raise InputError(
            f"The loss {loss.name!r} is negative, or no number: a bound on what is left would mean "
            "nothing",
            f"a mean of {found.value:.3g} for the best constant",
            "Add to it what depends on the target alone, so that it is never below zero",
        )
    if not fit_intercept:
        return found
    if np.any(np.abs(found.residual_mean) > SUMS * largest + slack):
        raise InputError(
            f"The residuals of the loss {loss.name!r} do not add up to zero at the best constant",
            f"a mean residual of {np.abs(found.residual_mean).max():.3g}",
            "For a kink give `null_residual`, subderivatives that do add up, and `surrogates`",
        )
    # with an intercept b is optimal, and what is left of the mean residual is rounding
    return replace(found, residual_mean=0 * found.residual_mean)


def balancing_point(
    loss: Loss, moments: Moments, null: NullModel, slope: Array, observed: Observed | None = None
) -> tuple[float, Array, float]:
    """Residuals of constant scores that make up for a mean residual that is not zero.

    A dual point of a problem with an intercept must have residuals that add up to zero. Those of a
    predictor whose intercept is not optimal have a mean `slope`; mixed with a share t of those
    found here they have the mean 0.

    Parameters
    ----------
    loss : Loss
    moments : Moments
    null : NullModel
        Of this loss and these moments, with an intercept.
    slope : array of shape (m,)
    observed : Observed, optional
        The rows, which a loss of numbers that is no sum over columns takes one more pass over.

    Returns
    -------
    dual : float
        A lower bound on -L* of the residuals found, with scores measured from the null model's:
        what is mixed adds up to zero, so the origin is free, and this one loses no digits.
    gradient : array of shape (d, m)
        XᵀR of them.
    share : float
        t, between 0 and 1; small where the slope is. 1 is right for every loss, and never tight.
    """
    if needs_rows(loss, moments.kind) and null.leaning is not None:
        return _leaning(*null.leaning, slope)
    if needs_rows(loss, moments.kind):
        assert observed is not None
        Y, w = _targets(loss, observed)
        b, share = loss.balance(Y, w, null.intercept, slope)
        if share == 1.0:
            return null.value, null.gradient, share
        value, gradient, mean = _at_constant(loss, b, Y, w, observed)
    elif moments.kind == "continuous":
        twice = _twice(loss, moments)
        reach = twice * moments.concept_spreads
        times = _times(reach, slope)
        b, share = moments.mean_z - times * slope / twice, 1 / (1 + times)
        other = _of_numbers(loss, moments, b, True)
        value, gradient, mean = other.value, other.gradient, other.residual_mean
    else:
        Y, w = _support(loss, moments)
        b, share = loss.balance(Y, w, loss.null_intercept(Y, w), slope)
        if share == 1.0:
            return null.value, null.gradient, share
        R = loss.derivative(Y, np.ones((len(Y), 1)) * b)
        other = _of_support(loss, moments, b, R, True)
        value, gradient, mean = other.value, other.gradient, other.residual_mean
    left = np.abs((1 - share) * slope + share * mean)
    if np.any(left > 1e-6 * np.abs(slope).max() + ROUNDING * null.residual_units.max()):
        return null.value, null.gradient, 1.0  # not a balance at all
    return value - float((b - null.intercept) @ mean), gradient, share


def _times(reach: Array, slope: Array) -> float:
    """How many times the slope fits into what can be reached in every column."""
    leans = np.abs(slope) > 1e-200 * reach  # a slope of 1e-300 is none, and would overflow
    return float((reach[leans] / np.abs(slope[leans])).min(initial=1e200))


def _leaning(
    here: Constant, below: Constant, above: Constant, slope: Array
) -> tuple[float, Array, float]:
    """The balance from what is known of three constants, mixed column by column.

    The conjugate of a sum over columns is one too, and convex, so a mixture costs no more than its
    parts.
    """
    falls = slope > 0
    mean = np.where(falls, below.residual_mean, above.residual_mean)
    reach = np.maximum(np.where(falls, -mean, mean), 0.0)
    times = _times(reach, slope)
    wanted = times * np.abs(slope)
    part = np.divide(wanted, reach, out=np.zeros_like(reach), where=reach > 0)
    part = np.minimum(part, 1.0)  # but for rounding
    dual = (1 - part) * here.dual + part * np.where(falls, below.dual, above.dual)
    gradient = (1 - part) * here.gradient
    gradient += part * np.where(falls, below.gradient, above.gradient)
    return float(dual.sum()), gradient, 1 / (1 + times)


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
        value = float((w * _elements(loss, Y, scores)).sum())
        slopes = moments.cov_xz * (R[1] - R[0])
    mean_R, square_R = (w * R).sum(axis=0), (w * R**2).sum(axis=0)
    return _assemble(moments, fit_intercept, value, b, slopes, mean_R, square_R)


def _twice(loss: Loss, moments: Moments) -> Array:
    """2c of a quadratic loss c‖y - s‖², for every column."""
    zeros = np.zeros((1, len(moments.labels)))
    return np.asarray(loss.hessian(zeros, zeros)[0][0])


def _of_numbers(loss: Loss, moments: Moments, b: Array, fit_intercept: bool) -> NullModel:
    """A quadratic loss on numbers at constant scores b: R = 2c(b - y)."""
    twice = _twice(loss, moments)
    squares = np.diag(moments.cov_zz) + (moments.mean_z - b) ** 2
    return _assemble(
        moments,
        fit_intercept,
        float((twice / 2 * squares).sum()),
        b,
        -twice * moments.cov_xz,
        twice * (b - moments.mean_z),
        twice**2 * squares,
    )


def _of_rows(
    loss: Loss, moments: Moments, fit_intercept: bool, observed: Observed
) -> tuple[NullModel, Array, Array]:
    """The null model of numbers under any loss: one pass over the rows.

    For a sum over columns the same pass takes along the residuals one spread below and above. Also
    returned are the residuals, and what the last digit of the intercept may change in their mean.
    """
    Y, w = _targets(loss, observed)
    mean = (w * Y).sum(axis=0)
    spread = np.sqrt((w * (Y - mean) ** 2).sum(axis=0))
    spread = np.where(spread > 0, spread, 1.0)
    counted = Y[w[:, 0] > 0]
    some = counted[np.linspace(0, len(counted) - 1, min(PROBED, len(counted))).astype(np.intp)]
    check_tangents(loss, some, mean, spread)
    b = loss.null_intercept(Y, w) if fit_intercept else np.zeros(Y.shape[1])
    ones, m = np.ones((len(Y), 1)), Y.shape[1]
    leans = fit_intercept and loss.separable
    constants = [b, b - spread, b + spread] if leans else [b]
    residuals = [_residuals(loss, Y, w, b)]
    residuals += [loss.derivative(Y, ones * c) for c in constants[1:]]
    passed = observed.rows.moments(
        Concept.of_numbers(np.hstack(residuals)), observed.weights, second=False
    )
    R, value = residuals[0], float(w[:, 0] @ loss.values(Y, ones * b))
    means = [(w * part).sum(axis=0) for part in residuals]
    slopes = passed.cov_xz[:, :m]
    square_R = (w * R**2).sum(axis=0)
    found = _assemble(moments, fit_intercept, value, b, slopes, means[0], square_R)
    if loss.separable:
        parts = [
            Constant((w * _elements(loss, Y, ones * c)).sum(axis=0) - (c - b) * mean, slopes, mean)
            for c, mean, slopes in zip(
                constants, means, np.split(passed.cov_xz, len(means), axis=1), strict=True
            )
        ]
        here, below, above = parts if leans else 3 * parts
        found = replace(found, leaning=(here, below, above))
    bend = np.diag(loss.curvature(Y, ones * b, w[:, 0]))
    return found, R, 4 * np.spacing(np.abs(b)) * bend


def _targets(loss: Loss, observed: Observed) -> tuple[Array, Array]:
    """Targets (n x m) of all rows and their shares (n x 1)."""
    Y = loss.encode(observed.concept.columns(), observed.concept.kind)
    weights = np.ones(len(Y)) if observed.weights is None else observed.weights
    return Y, (weights / weights.sum())[:, None]


def _at_constant(
    loss: Loss, b: Array, Y: Array, w: Array, observed: Observed
) -> tuple[float, Array, Array]:
    """Value, gradient and mean residual of constant scores b on numbers: one pass over the rows."""
    S = np.ones((len(Y), 1)) * b
    R, value = loss.derivative(Y, S), float(w[:, 0] @ loss.values(Y, S))
    passed = observed.rows.moments(Concept.of_numbers(R), observed.weights, second=False)
    return value, passed.cov_xz, (w * R).sum(axis=0)


def _residuals(loss: Loss, Y: Array, w: Array, b: Array) -> Array:
    """R0; what a loss with a kink gives as such has to lie under it, as its tangents do."""
    R = loss.null_residual(Y, w, b)
    if getattr(type(loss), "null_residual", None) is Loss.null_residual:
        return R
    some = np.linspace(0, len(Y) - 1, min(PROBED, len(Y))).astype(np.intp)
    Y, R_some, ones = Y[some], R[some], np.ones((len(some), 1))
    for T in b + (1 + Y.std(axis=0)) * np.random.default_rng(0).normal(size=(8, 1, len(b))):
        below = loss.values(Y, ones * b) + (R_some * (T - b)).sum(axis=1)
        above = loss.values(Y, ones * T)
        if not np.all(above >= below - 1e-9 * np.abs([above, below]).max()):
            raise InputError(
                f"`null_residual` of the loss {loss.name!r} holds no subderivatives",
                f"a {type(loss).__name__} that lies below the tangents they give",
                "Return between the slopes on both sides of the kink, and `derivative` elsewhere",
            )
    return R


def _elements(loss: Loss, Y: Array, S: Array) -> Array:
    """What every entry adds to a loss that is a sum over columns."""
    return np.asarray(loss.elements(Y, S))  # type: ignore[attr-defined]


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
    x_units, residual_units = (np.where(root > 0, root, 1.0) for root in roots)
    return NullModel(value, b, slopes, mean_R, x_units, residual_units)
