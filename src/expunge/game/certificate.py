"""The certificate: a lower bound on what is left for every linear predictor, proven from the rows.

With a ridge ρ the inner problem is ρ-strongly convex in Θ, so at any point with b optimal

    V(Q) >= f(Θ, b) - ‖∇Θ f(Θ, b)‖² / (2ρ).

At Θ = 0 this is V0 - ‖M XᵀR0‖²/(2ρ), one pass and no iteration; it is what a closed form
satisfies to rounding. Otherwise a predictor is trained on the erased rows and the bound is taken
where it stopped: a half-trained predictor has a large gradient and hence a low bound, it cannot
flatter. What is proven: every Θ, b has mean loss >= value - ρ/2 ‖Θ‖², with ρ = α times the mean
variance of a column.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from expunge.concept import Concept
from expunge.erasure import Erasure
from expunge.game.losses import Loss
from expunge.game.null_model import null_model
from expunge.game.predictor import Problem, fit_predictor
from expunge.linalg import Array
from expunge.moments import Moments
from expunge.rows.base import Rows

__all__ = ["Certificate", "certify", "certify_moments"]

PRECISION = (1e-10, 1e-3)  # within these the predictor follows `tol`, which may be 0


@dataclass(frozen=True)
class Certificate:
    """What is proven about an erasure on the rows it was computed from.

    Attributes
    ----------
    value : float
        Lower bound on the loss (ridge term included) of every linear predictor on erased rows.
    primal : float
        Loss (ridge term included) that a trained predictor reached: V(Q) lies between the two.
    bound : float
        V0, the loss of a predictor that ignores x; no erasure can force more.
    gap : float
        ``bound - value``: at most this much can be gained from x.
    bits_left : float or None
        The gap in bits per row, for cross-entropy.
    erased : bool
        Whether ``gap <= tol * bound``.
    optimal : bool or None
        Whether no erasure of the same rank does better; None where that is not known.
    loss : str
    alpha, ridge : float
        The ridge, relative to the mean variance of a column and absolute.
    tol : float
    """

    value: float
    primal: float
    bound: float
    gap: float
    bits_left: float | None
    erased: bool
    optimal: bool | None
    loss: str
    alpha: float
    ridge: float
    tol: float

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values."""
        return asdict(self)

    def __str__(self) -> str:
        bits = "" if self.bits_left is None else f", at most {self.bits_left:.2g} bits per row left"
        if self.erased:
            return (
                f"erased: every linear predictor has {self.loss} loss >= {self.value:.6g}; "
                f"ignoring x gives {self.bound:.6g}{bits} (ridge {self.alpha:g} relative)"
            )
        return (
            f"NOT erased: the best linear predictor has {self.loss} loss plus ridge term between "
            f"{self.value:.6g} and {self.primal:.6g}; ignoring x gives {self.bound:.6g}{bits} "
            f"(ridge {self.alpha:g} relative)"
        )


def certify(
    rows: Rows,
    concept: Concept,
    erasure: Erasure,
    loss: Loss,
    *,
    weights: Array | None = None,
    fit_intercept: bool = True,
    alpha: float = 1e-4,
    tol: float = 1e-6,
    max_passes: int = 500,
    moments: Moments | None = None,
) -> Certificate:
    """Certificate of an erasure on given rows, whatever way it was found.

    Parameters
    ----------
    rows : Rows
    concept : Concept
    erasure : Erasure
    loss : Loss
    weights : array of shape (n,), optional
    fit_intercept : bool
        Whether the predictor has an intercept.
    alpha : float
        Ridge relative to the mean variance of a column.
    tol : float
        What still counts as erased, relative to the bound.
    max_passes : int
        Passes to spend on the predictor when one is needed.
    moments : Moments, optional
        Of these rows and weights, where they are known already.

    Returns
    -------
    Certificate

    Examples
    --------
    >>> import numpy as np
    >>> from expunge import Erasure
    >>> from expunge.game.certificate import certify
    >>> from expunge.game.losses import loss_for
    >>> from expunge.inputs import check_concept, check_rows
    >>> X, y = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]]), [0, 0, 1, 1]
    >>> rows, concept = check_rows(X), check_concept(y, 4)
    >>> loss = loss_for("cross_entropy", "classes", 2)
    >>> certify(rows, concept, Erasure([[1.0], [0.0]], [[1.0, 0.0]]), loss).erased
    True
    >>> certify(rows, concept, Erasure([[0.0], [1.0]], [[0.0, 1.0]]), loss).erased
    False
    """
    if moments is None:
        moments = rows.moments(concept, weights, second=False)
    quick = certify_moments(
        moments, erasure, loss, fit_intercept=fit_intercept, alpha=alpha, tol=tol
    )
    if quick.erased:
        return quick
    full = moments if moments.xx is not None else rows.moments(concept, weights, second=True)

    def problem(of: Loss) -> Problem:
        return Problem(
            rows,
            concept,
            of,
            full,
            weights=weights,
            alpha=alpha,
            fit_intercept=fit_intercept,
            erasure=erasure,
        )

    value, primal, start = quick.value, quick.primal, None
    precision = float(np.clip(tol, *PRECISION)) / 10
    for smooth in loss.surrogates:
        found = fit_predictor(problem(smooth), tol=precision, max_passes=max_passes, start=start)
        start = found.coef, found.intercept
        value, primal = max(value, found.lower_bound), min(primal, found.value)
    if smooth is not loss:
        exact = problem(loss)
        primal = min(quick.primal, exact.evaluate(found.coef * exact.unit, found.intercept)[0])
    return _certificate(value, primal, quick.bound, loss, alpha, quick.ridge, tol)


def certify_moments(
    moments: Moments,
    erasure: Erasure,
    loss: Loss,
    *,
    fit_intercept: bool = True,
    alpha: float = 1e-4,
    tol: float = 1e-6,
) -> Certificate:
    """Certificate from moments alone, by the bound at Θ = 0; exact for closed forms.

    Parameters
    ----------
    moments : Moments
    erasure, loss, fit_intercept, alpha, tol
        As in `certify`.

    Returns
    -------
    Certificate
        Its `value` is a valid bound for any erasure, but a loose one where much is left.
    """
    null = null_model(loss, moments, fit_intercept)
    G = null.gradient - erasure.left @ (erasure.right @ null.gradient)
    if not fit_intercept:
        origin = erasure.transform(np.zeros((1, erasure.n_features)))[0]
        G = G + np.outer(origin, null.residual_mean)
    ridge = alpha * (moments.mean_variance or 1.0)
    value = null.value - float(np.sum(G**2)) / (2 * ridge)
    return _certificate(max(value, 0.0), null.value, null.value, loss, alpha, ridge, tol)


def _certificate(
    value: float, primal: float, bound: float, loss: Loss, alpha: float, ridge: float, tol: float
) -> Certificate:
    gap = max(bound - value, 0.0)
    erased = gap <= tol * bound
    return Certificate(
        value=value,
        primal=primal,
        bound=bound,
        gap=gap,
        bits_left=gap / float(np.log(2)) if loss.in_bits else None,
        erased=erased,
        optimal=True if erased else None,  # the bound is reached, so nothing can do better
        loss=loss.name,
        alpha=alpha,
        ridge=ridge,
        tol=tol,
    )
