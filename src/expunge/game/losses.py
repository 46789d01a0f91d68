"""Losses of the predictor: what it minimises and the eraser maximises.

A loss ℓ(y, s) is convex in the scores s, m numbers per row. Four come built in. To plug in another,
subclass `ColumnLoss` (a sum over columns) or `Loss` and give values and derivatives; the null
model, the closed form, the predictor and the certificate then work with it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np
import scipy.optimize
from scipy.special import expit

from expunge.concept import Concept, Kind
from expunge.errors import InputError
from expunge.linalg import Array

__all__ = [
    "LOSSES",
    "ColumnLoss",
    "Hinge",
    "Logistic",
    "Loss",
    "Multinomial",
    "SmoothHinge",
    "Squared",
    "SquaredHinge",
    "loss_for",
]


class Loss(ABC):
    """A convex loss of targets Y (b x m) and scores S (b x m)."""

    name: ClassVar[str] = "custom"
    kinds: ClassVar[frozenset[Kind]] = frozenset({"classes"})
    in_bits: ClassVar[bool] = False  # whether a gap in this loss is an amount of information
    threshold: ClassVar[float] = 0.0  # scores above it say "yes"

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
        found = scipy.optimize.minimize(
            lambda b: float(w1 @ self.values(Y, ones * b)),
            np.zeros(Y.shape[1]),
            jac=lambda b: w1 @ self.derivative(Y, ones * b),
            hess=lambda b: self.curvature(Y, ones * b, w1),
            method="trust-exact",
            options={"gtol": 1e-13},
        )
        return np.asarray(found.x)

    def null_residual(self, Y: Array, w: Array, intercept: Array) -> Array:
        """Derivative at constant scores (b x m); its weighted sum is 0 where they are optimal."""
        return self.derivative(Y, np.ones((len(Y), 1)) * intercept)

    def hits(self, Y: Array, S: Array, kind: Kind) -> Array:
        """How right the scores are per row: 1 or 0 for classes, a share of the labels, else nan."""
        if kind == "continuous":
            return np.full(len(S), np.nan)
        if kind == "classes" and S.shape[1] > 1:
            return np.where(S.argmax(axis=1) == Y.argmax(axis=1), 1.0, 0.0)
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

        The derivative grows with b, so bisection finds its zero.
        """

        def slope(b: Array) -> Array:
            return np.asarray((w * self.derivative(Y, np.ones((len(Y), 1)) * b)).sum(axis=0))

        low, high = -np.ones(Y.shape[1]), np.ones(Y.shape[1])
        for _ in range(1000):
            if not (np.any(slope(low) > 0) or np.any(slope(high) < 0)):
                break
            low, high = 2 * low, 2 * high
        for _ in range(200):
            middle = (low + high) / 2
            right = slope(middle) > 0
            low, high = np.where(right, low, middle), np.where(right, middle, high)
        return (low + high) / 2


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
        p = np.clip(_column_means(Y, w), 1e-16, 1 - 1e-16)
        return np.asarray(np.log(p) - np.log1p(-p))


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


class Squared(ColumnLoss):
    """Squared error ‖y - s‖²: 0/1 or one-hot targets for classes, else the numbers themselves."""

    name = "squared"
    threshold = 0.5
    kinds = frozenset({"classes", "labels", "continuous"})

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

    def _slack(self, Y: Array, S: Array) -> Array:
        return np.maximum(0.0, 1.0 - Y * S)

    def elements(self, Y: Array, S: Array) -> Array:
        """u²/(2 width) for slack u below the width, else u - width/2."""
        u = self._slack(Y, S)
        return np.where(u < self.width, u**2 / (2 * self.width), u - self.width / 2)

    def derivative(self, Y: Array, S: Array) -> Array:
        """-y min(1, u/width)."""
        return -Y * np.minimum(1.0, self._slack(Y, S) / self.width)

    def second(self, Y: Array, S: Array) -> Array:
        """1/width on the quadratic piece."""
        u = self._slack(Y, S)
        return ((u > 0) & (u < self.width)) / self.width


def _summed_hessian(D: Array, F: Array | None, w: Array) -> Array:
    """Σ w (diag(D) - F Fᵀ) over rows, shape (m, m)."""
    total = np.diag(w @ D)
    return total if F is None else total - (F * w[:, None]).T @ F


def _column_means(Y: Array, w: Array) -> Array:
    return np.asarray((w * Y).sum(axis=0) / (w * np.ones_like(Y)).sum(axis=0))


def _cross_entropy(kind: Kind, width: int) -> Loss:
    return Multinomial() if kind == "classes" and width > 2 else Logistic()


LOSSES: dict[str, Callable[[Kind, int], Loss]] = {
    "cross_entropy": _cross_entropy,
    "squared": lambda kind, width: Squared(),
    "hinge": lambda kind, width: Hinge(),
    "squared_hinge": lambda kind, width: SquaredHinge(),
}


def loss_for(loss: str | Loss, kind: Kind, width: int) -> Loss:
    """The loss of that name for a concept of this kind and width.

    Parameters
    ----------
    loss : str or Loss
        A key of `LOSSES`, or an object that is used as it is.
    kind : {"classes", "labels", "continuous"}
    width : int
        Number of classes, labels or components.

    Returns
    -------
    Loss

    Raises
    ------
    InputError
        For an unknown name, or a loss that cannot score this kind of concept.

    Examples
    --------
    >>> from expunge.game.losses import loss_for
    >>> type(loss_for("cross_entropy", "classes", 3)).__name__
    'Multinomial'
    """
    if loss not in LOSSES if isinstance(loss, str) else not hasattr(loss, "derivative"):
        raise InputError(
            "Unknown loss", repr(loss), f"Pass one of {', '.join(sorted(LOSSES))}, or a Loss object"
        )
    chosen = LOSSES[loss](kind, width) if isinstance(loss, str) else loss
    if kind not in chosen.kinds:
        fitting = [name for name, make in LOSSES.items() if kind in make(kind, width).kinds]
        raise InputError(
            f"The loss {chosen.name!r} cannot score a concept of kind {kind!r}",
            f"a {kind} concept with {width} columns",
            f"Pass loss={fitting[0]!r}, or say what the concept is with concept_type",
        )
    return chosen
