"""Losses of the predictor: what it minimises and the eraser maximises.

A loss ℓ(y, s) is convex in the scores s, m numbers per row, and nowhere negative. Five come built
in. To plug in another, subclass `ColumnLoss` (a sum over columns) or `Loss` and give values and
derivatives; the null model, the closed form, the predictor and the certificate then work with it,
for classes, labels and numbers alike.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.optimize
from scipy.special import expit, logit

from expunge.concept import Concept, Kind
from expunge.errors import InputError
from expunge.linalg import Array

__all__ = [
    "LOSSES",
    "ColumnLoss",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "Multinomial",
    "SmoothHinge",
    "Squared",
    "SquaredHinge",
    "check_tangents",
    "loss_for",
    "solves_by_least_squares",
]

PROBED = 64  # rows on which a plugged-in loss is tried before it is believed
TINY = 1e-200  # a step up to which there is none, and its inverse would overflow


class Loss(ABC):
    """A convex loss of targets Y (b x m) and scores S (b x m), never negative."""

    name: ClassVar[str] = "custom"
    kinds: ClassVar[frozenset[Kind]] = frozenset({"classes"})
    in_bits: ClassVar[bool] = False  # whether a gap in this loss is an amount of information
    threshold: ClassVar[float] = 0.0  # scores above it say "yes"
    separable: ClassVar[bool] = False  # whether it is a sum of losses of single columns
    smooth: ClassVar[bool] = True  # whether it has no kink
    # whether it is c‖y - s‖²: then means and covariances tell all of it, for numbers too
    quadratic: ClassVar[bool] = False

    def encode(self, Z: Array, kind: Kind) -> Array:
        """Targets (b x m) of concept columns (b x width): one 0/1 column for two classes."""
        return Z[:, 1:] if kind == "classes" and Z.shape[1] == 2 else Z

    @abstractmethod
    def values(self, Y: Array, S: Array) -> Array:
        """Loss of every row, shape (b,)."""

    @abstractmethod
    def derivative(self, Y: Array, S: Array) -> Array:
        """(Sub)derivative in the scores, shape (b, m)."""

    @abstractmethod
    def hessian(self, Y: Array, S: Array) -> tuple[Array, Array | None]:
        """Second derivative in the scores of every row, as diag(D) - F Fᵀ; D, F of shape (b, m).

        F is None where the scores do not interact.
        """

    def curvature(self, Y: Array, S: Array, w: Array) -> Array:
        """Weighted sum over rows of the second derivative in the scores, shape (m, m)."""
        return _summed_hessian(*self.hessian(Y, S), w)

    def pieces(self, Y: Array, S: Array) -> tuple[Array, Array, Array, Array | None]:
        """Values, derivative and both parts of the second derivative, computed together."""
        return self.values(Y, S), self.derivative(Y, S), *self.hessian(Y, S)

    def null_intercept(self, Y: Array, w: Array) -> Array:
        """Constant scores b (m,) that minimise Σ w ℓ(y, b), with weights w of shape (b, 1)."""
        ones, w1 = np.ones((len(Y), 1)), w[:, 0]

        def slope(b: Array) -> Array:
            return np.asarray(w1 @ self.derivative(Y, ones * b))

        b = scipy.optimize.minimize(
            lambda b: float(w1 @ self.values(Y, ones * b)),
            np.zeros(Y.shape[1]),
            jac=slope,
            hess=lambda b: self.curvature(Y, ones * b, w1),
            method="trust-exact",
            options={"gtol": 1e-13},
        ).x
        for _ in range(8):  # values tell half the digits of b, derivatives all of them
            closer = b - _solve(self.curvature(Y, ones * b, w1), slope(b))
            if not np.linalg.norm(slope(closer)) < np.linalg.norm(slope(b)):
                break
            b = closer
        return np.asarray(b)

    def null_residual(self, Y: Array, w: Array, intercept: Array) -> Array:
        """Derivative at constant scores (b x m); its weighted sum is 0 where they are optimal."""
        return self.derivative(Y, np.ones((len(Y), 1)) * intercept)

    def balance(self, Y: Array, w: Array, intercept: Array, slope: Array) -> tuple[Array, float]:
        """Constant scores b and a share t with (1 - t) slope + t Σ w ℓ'(y, b) = 0.

        For the certificate: a small t makes it tight. Σ w ℓ'(y, b) = -τ slope is solved by Newton's
        steps, for a τ that moves the scores by about a spread of the targets, or less. The answer
        where that fails, the best constant scores and t = 1, is right for every loss, and never
        tight.
        """
        ones, w1 = np.ones((len(Y), 1)), w[:, 0]
        spread = np.sqrt(w1 @ (Y - w1 @ Y) ** 2).max()

        def step(b: Array, left: Array) -> Array:
            bend = self.curvature(Y, ones * b, w1)
            if not np.isfinite(bend).all():
                return np.full_like(b, np.nan)
            return _solve(bend, left)

        # what no scores can change, the sum of a softmax, has no slope but rounding
        slope = self.curvature(Y, ones * intercept, w1) @ step(intercept, slope)
        size = float(np.abs(step(intercept, slope)).max())
        times = spread / size if size > TINY else 0.0
        with np.errstate(all="ignore"):  # too long a step is noticed by where it leads
            for _ in range(10):
                b = intercept
                for _ in range(20):
                    left = w1 @ self.derivative(Y, ones * b) + times * slope
                    if np.abs(left).max() <= 1e-12 * times * np.abs(slope).max():
                        return b, 1 / (1 + times)
                    b = b - step(b, left)
                times /= 4
        return intercept, 1.0

    def hits(self, Y: Array, S: Array, kind: Kind) -> Array:
        """How right the scores are per row: 1 or 0 for classes, a share of the labels, else nan."""
        if kind == "continuous":
            return np.full(len(S), np.nan)
        if kind == "classes" and S.shape[1] > 1:
            return np.asarray(S.argmax(axis=1) == Y.argmax(axis=1), dtype=np.float64)
        return np.asarray(((self.threshold < S) == (Y > 0)).mean(axis=1))

    @property
    def surrogates(self) -> tuple[Loss, ...]:
        """Smooth losses nowhere above this one, for the certificate, from rough to close."""
        return (self,)

    @property
    def smoothed(self) -> Loss:
        """The smooth loss that solvers of the game play on."""
        return self

    def encoder(self, concept: Concept) -> Callable[[int, int], Array]:
        """A function (start, stop) -> targets; classes are encoded once, as a table."""
        if concept.kind != "classes":
            return lambda lo, hi: self.encode(concept.columns(lo, hi), concept.kind)
        table = self.encode(np.eye(concept.width), "classes")
        return lambda lo, hi: np.asarray(table[concept.values[lo:hi]])


class ColumnLoss(Loss):
    """A loss that is a sum over columns, ℓ(y, s) = Σⱼ e(yⱼ, sⱼ)."""

    kinds = frozenset({"classes", "labels"})
    separable = True

    @abstractmethod
    def elements(self, Y: Array, S: Array) -> Array:
        """e(y, s) for every entry, shape (b, m)."""

    @abstractmethod
    def second(self, Y: Array, S: Array) -> Array:
        """Second derivative of e in s for every entry, shape (b, m)."""

    def values(self, Y: Array, S: Array) -> Array:
        """Loss of every row, shape (b,)."""
        return np.asarray(self.elements(Y, S).sum(axis=1))

    def hessian(self, Y: Array, S: Array) -> tuple[Array, Array | None]:
        """Second derivative in the scores of every row: diagonal."""
        return self.second(Y, S), None

    def null_intercept(self, Y: Array, w: Array) -> Array:
        """Constant scores that minimise Σ w e(y, b) in each column; w is (b, 1) or (b, m).

        The derivative grows with b, so its zero can be bracketed. Newton's steps find it, or
        halving where they leave the bracket.
        """
        ones = np.ones((len(Y), 1))

        def slope(b: Array) -> Array:
            return np.asarray((w * self.derivative(Y, ones * b)).sum(axis=0))

        b, high = np.zeros(Y.shape[1]), np.ones(Y.shape[1])
        for _ in range(1000):
            if np.all(slope(-high) <= 0) and np.all(slope(high) >= 0):
                break
            high = 2 * high
        low = -high
        for _ in range(50):
            R = w * self.derivative(Y, ones * b)
            left = R.sum(axis=0)
            if np.all(np.abs(left) <= 1e-15 * np.abs(R).sum(axis=0)):
                return np.asarray(b)
            low, high = np.where(left > 0, low, b), np.where(left > 0, b, high)
            bend = (w * self.second(Y, ones * b)).sum(axis=0)
            step = np.divide(left, bend, out=np.full_like(b, np.inf), where=bend > 0)
            inside = (b - step > low) & (b - step < high)
            b = np.where(inside, b - step, (low + high) / 2)
        return _zero(slope, low, high)

    def balance(self, Y: Array, w: Array, intercept: Array, slope: Array) -> tuple[Array, float]:
        """Scores moved against the slope, by at most 1, as far as the flattest column allows."""

        def mean(b: Array) -> Array:
            return np.asarray((w * self.derivative(Y, np.ones((len(Y), 1)) * b)).sum(axis=0))

        sign, leans = np.sign(slope), slope != 0
        if not leans.any():
            return intercept, 0.0
        far = intercept - sign
        times = float((mean(far)[leans] / -slope[leans]).min())
        if not 0 < times < np.inf:
            return intercept, 1.0
        if len(slope) == 1:
            return far, 1 / (1 + times)
        low, high = np.minimum(far, intercept), np.maximum(far, intercept)
        return _zero(lambda b: mean(b) + times * slope, low, high), 1 / (1 + times)


class Logistic(ColumnLoss):
    """Cross-entropy of 0/1 targets, log(1 + eˢ) - y s, summed over columns."""

    name = "cross_entropy"
    in_bits = True

    def elements(self, Y: Array, S: Array) -> Array:
        """Log(1 + eˢ) - y s."""
        return np.logaddexp(0.0, S) - Y * S

    def derivative(self, Y: Array, S: Array) -> Array:
        """σ(s) - y."""
        return np.asarray(expit(S) - Y)

    def second(self, Y: Array, S: Array) -> Array:
        """σ(s)(1 - σ(s))."""
        p = expit(S)
        return np.asarray(p * (1 - p))

    def null_intercept(self, Y: Array, w: Array) -> Array:
        """Log-odds of the mean target (finite also for a label that never varies)."""
        return np.asarray(logit(np.clip(_column_means(Y, w), 1e-16, 1 - 1e-16)))

    def balance(self, Y: Array, w: Array, intercept: Array, slope: Array) -> tuple[Array, float]:
        """Shares moved against the slope until one of them, or its rest, is halved."""
        p = np.clip(_column_means(Y, w), 1e-16, 1 - 1e-16)
        room = np.where(slope > 0, p, 1 - p)[slope != 0] / np.abs(slope[slope != 0])
        if not room.size:
            return intercept, 0.0
        times = float(room.min()) / 2
        moved = np.clip(p - times * slope, 1e-16, 1 - 1e-16)  # rounding may have made it 0 or 1
        return np.asarray(logit(moved)), 1 / (1 + times)


class Multinomial(Loss):
    """Cross-entropy of one-hot targets, log Σₖ exp sₖ - Σₖ yₖ sₖ."""

    name = "cross_entropy"
    in_bits = True

    def values(self, Y: Array, S: Array) -> Array:
        """Log-sum-exp of the scores minus the score of the class."""
        return self.pieces(Y, S)[0]

    def derivative(self, Y: Array, S: Array) -> Array:
        """Softmax(s) - y."""
        return self.pieces(Y, S)[1]

    def hessian(self, Y: Array, S: Array) -> tuple[Array, Array | None]:
        """Diag(p) - p pᵀ with p = softmax(s)."""
        return self.pieces(Y, S)[2:]

    def pieces(self, Y: Array, S: Array) -> tuple[Array, Array, Array, Array | None]:
        """Values, derivative and both parts of the second derivative, from one softmax."""
        peak = S.max(axis=1, keepdims=True)
        p = np.exp(S - peak)
        total = p.sum(axis=1, keepdims=True)
        p /= total
        values = np.log(total[:, 0]) + peak[:, 0] - np.einsum("ij,ij->i", Y, S)
        return values, p - Y, p, p

    def null_intercept(self, Y: Array, w: Array) -> Array:
        """Logarithms of the class shares."""
        return np.log(_column_means(Y, w))

    def balance(self, Y: Array, w: Array, intercept: Array, slope: Array) -> tuple[Array, float]:
        """Shares moved against the slope until one of them is halved."""
        p = _column_means(Y, w)
        rising = slope > 0
        if not rising.any():
            return intercept, 0.0
        times = float((p[rising] / slope[rising]).min()) / 2
        return np.log(p - times * slope), 1 / (1 + times)


class Squared(ColumnLoss):
    """Squared error ‖y - s‖²: 0/1 or one-hot targets for classes, else the numbers themselves."""

    name = "squared"
    threshold = 0.5
    kinds = frozenset({"classes", "labels", "continuous"})
    quadratic = True

    def elements(self, Y: Array, S: Array) -> Array:
        """(y - s)²."""
        return (Y - S) ** 2

    def derivative(self, Y: Array, S: Array) -> Array:
        """2(s - y)."""
        return 2.0 * (S - Y)

    def second(self, Y: Array, S: Array) -> Array:
        """2."""
        return np.full_like(S, 2.0)

    def null_intercept(self, Y: Array, w: Array) -> Array:
        """Mean target."""
        return _column_means(Y, w)


@dataclass(frozen=True)
class Huber(ColumnLoss):
    """Huber's loss: ½ r² for errors r = y - s up to `delta`, then delta (|r| - delta/2).

    Large errors count by their size, not by its square, so a few wild numbers decide little.

    Parameters
    ----------
    delta : float
        Where it turns linear, in the units of the concept.

    Examples
    --------
    >>> import numpy as np
    >>> import expunge as ex
    >>> from expunge.game.losses import Huber
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> z = X @ [1.0, 0.0, -1.0, 0.0] + rng.standard_cauchy(300)
    >>> ex.RLACE(loss=Huber(delta=0.5)).fit(X, z).certificate_.erased
    True
    """

    name = "huber"
    threshold = 0.5
    kinds = frozenset({"classes", "labels", "continuous"})

    delta: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.delta < np.inf:
            raise InputError(
                "delta must be a positive number", f"delta={self.delta!r}", "Pass e.g. delta=1.0"
            )

    def elements(self, Y: Array, S: Array) -> Array:
        """½ r² or delta (|r| - delta/2)."""
        r = np.abs(Y - S)
        c = np.minimum(r, self.delta)
        return c * (r - c / 2)

    def derivative(self, Y: Array, S: Array) -> Array:
        """S - y, clipped at ±delta."""
        return np.clip(S - Y, -self.delta, self.delta)

    def second(self, Y: Array, S: Array) -> Array:
        """1 where the error is below delta."""
        return np.asarray(np.abs(Y - S) < self.delta, dtype=np.float64)


class _Margin(ColumnLoss):
    """A function of the margin y s with targets -1 and +1; several classes one against the rest."""

    def encode(self, Z: Array, kind: Kind) -> Array:
        """Targets -1 and +1."""
        return 2.0 * super().encode(Z, kind) - 1.0


class SquaredHinge(_Margin):
    """Squared hinge max(0, 1 - y s)²."""

    name = "squared_hinge"

    def elements(self, Y: Array, S: Array) -> Array:
        """max(0, 1 - y s)²."""
        return np.maximum(0.0, 1.0 - Y * S) ** 2

    def derivative(self, Y: Array, S: Array) -> Array:
        """-2 y max(0, 1 - y s)."""
        return -2.0 * Y * np.maximum(0.0, 1.0 - Y * S)

    def second(self, Y: Array, S: Array) -> Array:
        """2 where the margin is below 1."""
        return np.where(Y * S < 1.0, 2.0, 0.0)

    def null_intercept(self, Y: Array, w: Array) -> Array:
        """Mean of the -1/+1 targets."""
        return _column_means(Y, w)


class Hinge(_Margin):
    """Hinge max(0, 1 - y s).

    Not differentiable at its null model when classes are unequal: there the majority sits on the
    kink, and `null_residual` is the subderivative whose sum is zero, constant within each class.
    Solvers work on `SmoothHinge`, which lies below the hinge by at most half its width, so lower
    bounds found with it hold for the hinge.
    """

    name = "hinge"
    smooth = False

    def elements(self, Y: Array, S: Array) -> Array:
        """max(0, 1 - y s)."""
        return np.maximum(0.0, 1.0 - Y * S)

    def derivative(self, Y: Array, S: Array) -> Array:
        """-y where the margin is below 1, else 0."""
        return -Y * (Y * S < 1.0)

    def second(self, Y: Array, S: Array) -> Array:
        """0."""
        return np.zeros_like(S)

    def null_intercept(self, Y: Array, w: Array) -> Array:
        """Sign of the mean target, 0 when balanced."""
        return np.sign(_column_means(Y, w))

    def null_residual(self, Y: Array, w: Array, intercept: Array) -> Array:
        """-y, scaled down on the majority so that the weighted sum is zero."""
        on_kink = Y * intercept == 1.0
        minority = (w * ~on_kink).sum(axis=0)
        majority = np.where(on_kink.any(axis=0), (w * on_kink).sum(axis=0), 1.0)
        return np.where(on_kink, -Y * minority / majority, -Y)

    @property
    def surrogates(self) -> tuple[Loss, ...]:
        """The hinge with its kink rounded, ever less, down to a width of 1e-3."""
        return tuple(SmoothHinge(width) for width in (0.3, 0.1, 0.03, 0.01, 0.003, 0.001))

    @property
    def smoothed(self) -> Loss:
        """A width of 0.1: below it solvers stall and their answers get no better."""
        return SmoothHinge(0.1)


class SmoothHinge(_Margin):
    """Hinge with a quadratic piece of the given width before the kink; never above the hinge."""

    name = "smooth_hinge"

    def __init__(self, width: float) -> None:
        self.width = width

    def _slack(self, margin: Array) -> Array:
        return np.maximum(0.0, 1.0 - margin)

    def elements(self, Y: Array, S: Array) -> Array:
        """u²/(2 width) for slack u below the width, else u - width/2."""
        u = self._slack(Y * S)
        c = np.minimum(u, self.width)
        return c * (u - c / 2) / self.width

    def derivative(self, Y: Array, S: Array) -> Array:
        """-y min(1, u/width)."""
        return -Y * np.minimum(1.0, self._slack(Y * S) / self.width)

    def second(self, Y: Array, S: Array) -> Array:
        """1/width on the quadratic piece."""
        u = self._slack(Y * S)
        return ((u > 0) & (u < self.width)) / self.width


def _zero(increasing: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """Where each entry of an increasing function passes zero between `low` and `high`."""
    for _ in range(200):
        middle = (low + high) / 2
        if np.all((middle <= low) | (middle >= high)):
            break
        right = increasing(middle) > 0
        low, high = np.where(right, low, middle), np.where(right, middle, high)
    return np.asarray((low + high) / 2)


def _solve(H: Array, g: Array) -> Array:
    """The shortest x with Hx = g, where H may be singular."""
    return np.asarray(np.linalg.lstsq(H, g, rcond=1e-15)[0])


def _summed_hessian(D: Array, F: Array | None, w: Array) -> Array:
    """Σ w (diag(D) - F Fᵀ) over rows, shape (m, m)."""
    total = np.diag(w @ D)
    return total if F is None else total - (F * w[:, None]).T @ F


def _column_means(Y: Array, w: Array) -> Array:
    return np.asarray((w * Y).sum(axis=0) / np.broadcast_to(w, Y.shape).sum(axis=0))


def _cross_entropy(kind: Kind, width: int) -> Loss:
    return Multinomial() if kind == "classes" and width > 2 else Logistic()


LOSSES: dict[str, Callable[[Kind, int], Loss]] = {
    "cross_entropy": _cross_entropy,
    "squared": lambda kind, width: Squared(),
    "huber": lambda kind, width: Huber(),
    "hinge": lambda kind, width: Hinge(),
    "squared_hinge": lambda kind, width: SquaredHinge(),
}


def loss_for(loss: str | Loss, kind: Kind, width: int) -> Loss:
    """The loss of that name for a concept of this kind and width.

    Parameters
    ----------
    loss : str or Loss
        A key of `LOSSES`; "auto", the squared loss for a continuous concept and cross-entropy
        otherwise; or an object, which is tried before it is used as it is.
    kind : {"classes", "labels", "continuous"}
    width : int
        Number of classes, labels or components.

    Returns
    -------
    Loss

    Raises
    ------
    InputError
        For an unknown name, an object that lacks a piece, or a loss that cannot score this kind of
        concept.

    Examples
    --------
    >>> from expunge.game.losses import loss_for
    >>> type(loss_for("cross_entropy", "classes", 3)).__name__
    'Multinomial'
    >>> loss_for("auto", "continuous", 1).name
    'squared'
    """
    if isinstance(loss, str) and loss == "auto":
        loss = "squared" if kind == "continuous" else "cross_entropy"
    if isinstance(loss, str):
        if loss not in LOSSES:
            raise InputError(
                "Unknown loss",
                repr(loss),
                f"Pass one of {', '.join(sorted(LOSSES))}, 'auto', or a Loss object",
            )
        chosen = LOSSES[loss](kind, width)
    else:
        chosen = _plugged_in(loss, kind, width)
    if kind not in chosen.kinds:
        fitting = [name for name, make in LOSSES.items() if kind in make(kind, width).kinds]
        raise InputError(
            f"The loss {chosen.name!r} cannot score a concept of kind {kind!r}",
            f"a {kind} concept with {width} columns",
            f"Pass loss={fitting[0]!r}, or say what the concept is with concept_type",
        )
    return chosen


def solves_by_least_squares(loss: str | Loss) -> bool:
    """Whether least squares trains the predictor of a loss, from moments alone, for any concept."""
    if isinstance(loss, str):
        return loss in LOSSES and LOSSES[loss]("classes", 2).quadratic
    return bool(getattr(loss, "quadratic", False))


def _plugged_in(loss: Any, kind: Kind, width: int) -> Loss:
    """A loss object, if it has all pieces and keeps what they promise on a few targets."""
    pieces = [name for name in vars(Loss) if not name.startswith("_")]
    missing = [name for name in pieces if not hasattr(loss, name)]
    if not missing and (loss.separable or kind == "labels" in loss.kinds):
        missing = [] if hasattr(loss, "elements") else ["elements"]
    if missing or isinstance(loss, type):
        what = f"no {', '.join(missing)}" if missing else "a class, not an object of it"
        raise InputError(
            "This is not a loss that can be plugged in",
            f"{loss!r} with {what}",
            "Pass an object of a subclass of ColumnLoss or Loss",
        )
    found: Loss = loss
    if kind != "continuous" and kind in found.kinds:  # those of numbers are tried on the numbers
        ends = np.outer([0.0, 1.0], np.ones(width))
        Z = np.eye(min(width, PROBED)) if kind == "classes" else ends
        Y = found.encode(Z, kind)
        check_tangents(found, Y, np.zeros(Y.shape[1]), np.ones(Y.shape[1]))
    if kind == "continuous" in found.kinds and found.quadratic:
        Z, S = np.random.default_rng(0).normal(size=(2, 16, width))
        half = found.hessian(Z, S)[0][0] / 2
        if not np.allclose(found.values(found.encode(Z, kind), S), (Z - S) ** 2 @ half):
            raise InputError(
                f"The loss {found.name!r} says it is `quadratic`, but it is not c‖y - s‖²",
                f"a {type(found).__name__}",
                "Leave `quadratic` False; the rows then tell what moments cannot",
            )
    return found


def check_tangents(loss: Loss, Y: Array, middle: Array, spread: Array) -> None:
    """Refuse a loss that is not convex, not what its derivative says, or negative.

    A certificate is as true as the inequality ℓ(y, t) >= ℓ(y, s) + ℓ'(y, s)(t - s), so that is
    what is tried, at random scores; with kinks it holds for every subderivative.

    Parameters
    ----------
    loss : Loss
    Y : array of shape (b, m)
        Targets.
    middle, spread : arrays of shape (m,)
        Where scores are tried, and how far from there.

    Raises
    ------
    InputError

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.game.losses import Squared, check_tangents
    >>> check_tangents(Squared(), np.array([[0.0], [1.0]]), np.zeros(1), np.ones(1))
    """
    rng = np.random.default_rng(0)
    Y = np.repeat(Y[:PROBED], 16, axis=0)
    near, far = (middle + size * spread * rng.normal(size=Y.shape) for size in (0.5, 3.0))
    step = (far - near) / 100  # up or down, a slope that is too steep or too flat by little shows
    Y, S = np.vstack([Y] * 4), np.vstack([near, far, far, far])
    T = np.vstack([far, near, far + step, far - step])
    with np.errstate(all="ignore"):
        at, there, R = loss.values(Y, S), loss.values(Y, T), loss.derivative(Y, S)
        tangent = (R * (T - S)).sum(axis=1)
        digits = 1e-9 * np.abs([at, there, tangent]).max()
        rounded = [smooth.values(Y, S) for smooth in loss.surrogates]
        summed = loss.elements(Y, S).sum(axis=1) if loss.separable else at  # type: ignore[attr-defined]
    if not np.isfinite(digits):
        fault = "is not a finite number for these targets"
    elif not np.all(there >= at + tangent - digits):
        fault = "lies below its tangents: it is not convex in the scores, or `derivative` is wrong"
    elif not min(at.min(), there.min()) >= -digits:
        fault = "is negative: a bound on what is left would mean nothing"
    elif any(np.any(values > at + digits) for values in rounded):
        fault = "has `surrogates` above it, which prove nothing"
    elif np.any(np.abs(summed - at) > digits):
        fault = "says it is `separable`, but `values` is not the sum of `elements`"
    else:
        return
    raise InputError(
        f"The loss {loss.name!r} {fault}",
        f"a {type(loss).__name__} tried on {len(Y)} targets and scores",
        "Compare `derivative` with differences of `values`; to a negative loss add what depends on "
        "the target alone",
    )
