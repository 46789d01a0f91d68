"""Is a certificate true? Judged by a predictor of our own on explicit erased rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from best_predictor import best_predictor, encoded, null_values
from building import Case
from exact_rows import (
    doubtful,
    erased_rows,
    features,
    rounding_of,
    spreads,
    units,
    written_to,
)
from findings import Finding
from sklearn.linear_model import LogisticRegression

__all__ = ["check_certificate"]

ROUNDING = 1e-6  # of V, allowed to the certificate
SMALLER = 100.0  # how much less regularised the second predictor is


def check_certificate(
    certificate: Any,
    eraser: Any,
    case: Case,
    *,
    intercept: bool = True,
    stream: bool = False,
    transformed: np.ndarray | None = None,
) -> None:
    """Raise `Finding` where the certificate promises more than is so.

    It speaks of the rows in exact arithmetic, or of those `transformed`. That of a stream may state
    its ridge by the rows before erasure.
    """
    c, name = certificate, str(certificate.loss)
    numbers = (c.value, c.primal, c.bound, c.gap, c.ridge, *c.ridges)
    if not np.isfinite(numbers).all():
        raise Finding("unsound", "certificate is not finite", str(numbers))
    loss = _loss_name(name, case)
    Y = encoded(case.Z, case.kind, loss)
    if loss == "squared":
        Y = Y.astype(np.longdouble)
        Y = Y - case.w @ Y if intercept else Y
        Y = Y.astype(np.float64)
    exact = erased_rows(eraser, case) if transformed is None else transformed.astype(np.longdouble)
    slack = rounding_of(eraser, case)
    if stream:
        slack = spreads(case.values, case.w) + 1e-7 * written_to(eraser, case)
    if transformed is not None:
        digits = np.finfo(transformed.dtype).eps if transformed.dtype.kind == "f" else 0.0
        slack = slack + 1e-3 * spreads(exact, case.w) + digits * np.abs(transformed).max(axis=0)
    unit = units(c, exact, case, slack, written_to(eraser, case))
    used = case.w > 0  # nothing is said of rows that do not count
    F, Y, w = features(exact, case, unit, intercept=intercept)[used], Y[used], case.w[used]
    if not np.isfinite(F).all() or np.abs(F).max(initial=0) > 1e100:
        spread = spreads(case.values, case.w)
        wide = np.abs(case.values).max() > 1e90 or spread.max() > 1e60 * spread[spread > 0].min()
        if wide or not hasattr(eraser, "get_params"):
            return  # columns too far apart to be judged
        raise Finding("silent", "erased rows are out of range", f"{np.abs(F).max():.3g}")
    bounds = null_values(Y, w, loss, intercept)
    bound = float(bounds.sum())
    if not np.isclose(c.bound, bound, rtol=1e-6, atol=1e-12):
        raise Finding("unsound", "wrong bound", f"{c.bound!r}, should be {bound!r}")
    tiny = 1e-9 * bound + 1e-12
    if not c.value <= c.primal * (1 + ROUNDING) + tiny <= c.bound * (1 + 2 * ROUNDING) + 3 * tiny:
        raise Finding("unsound", "not value <= primal <= bound", f"{c}")
    best = best_predictor(F, Y, w, loss, c.alpha, intercept)
    tiny += _noise(best.coef, rounding_of(eraser, case) / unit, loss, bound)
    if not c.value <= best.value * (1 + ROUNDING) + tiny:
        said = f"value {c.value:.9g} of bound {c.bound:.9g}, erased {c.erased}"
        raise Finding(
            "unsound", "value above what a predictor reached", f"{said}; {best.value:.9g}"
        )
    # without doubtful columns, which are not in F, a predictor may be worse than with them
    clear = not doubtful(case).any() and float(np.sum(F**2, axis=1).max()) < 1e10 * c.alpha
    digits = max(ROUNDING, 1e-13 / c.alpha)  # a small ridge lets rounding of the rows be read
    if clear and not c.primal >= best.least.sum() * (1 - digits) - tiny:
        raise Finding(
            "unsound", "primal below what is possible", f"{c.primal:.9g}, {best.least.sum():.9g}"
        )
    if not c.erased:
        return
    # "erased" is said of every label and every component, each by its own bound
    left = bounds - best.values
    if intercept and len(left) == Y.shape[1]:
        left[Y.max(axis=0) == Y.min(axis=0)] = 0  # what never varies, but for rounding
    worst = int(np.argmax(left - c.tol * bounds))
    if left[worst] > (c.tol + ROUNDING) * bounds[worst] + tiny * bounds[worst] / (bound or 1.0):
        raise Finding(
            "unsound",
            "erased, but a column is not",
            f"column {worst}: {bounds[worst]:.6g} to {best.values[worst]:.6g}, tol {c.tol:g}",
        )
    entropy = loss in ("logistic", "multinomial") and case.kind == "classes"
    if entropy and intercept and case.plan.seed % 2 == 0:
        _check_scikit_learn(F, case.Z[used], w, c, bound, tiny)


def _noise(coef: np.ndarray, rounding: np.ndarray, loss: str, bound: float) -> float:
    """By how much rounding of float64 in each column (in its unit) can move the predictor's loss.

    Much where a column in large units was taken away and the predictor lives on what is left.
    """
    slope = 2 * np.sqrt(bound) if loss.startswith("squared") else 1.0
    return min(slope * float(np.abs(coef).max(axis=1) @ rounding), bound)


def _loss_name(name: str, case: Case) -> str:
    if name != "cross_entropy":
        return name
    return "multinomial" if case.kind == "classes" and case.Z.shape[1] > 2 else "logistic"


def _check_scikit_learn(
    F: np.ndarray, Z: np.ndarray, w: np.ndarray, c: Any, bound: float, tiny: float
) -> None:
    """An off-the-shelf classifier with a hundredth of the ridge gains at most 100 times the gap.

    With g(α) the gain at ridge α, concavity gives g(α/100) <= 100 g(α).
    """
    y, alpha = Z.argmax(axis=1), c.alpha / SMALLER
    if alpha < 1e-7 or len(np.unique(y)) < 2 or np.abs(F).max() > 1e4:
        return  # it would not converge
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegression(C=1 / alpha, tol=1e-8, max_iter=500)
        model.fit(F, y, sample_weight=w)
    with np.errstate(divide="ignore"):  # it may be sure, and wrong
        p = model.predict_log_proba(F)[np.arange(len(y)), y]
    reached = -(w @ p) + alpha / 2 * float(np.sum(model.coef_**2))
    allowed = SMALLER * (c.tol + ROUNDING) * bound
    if bound - reached > allowed + SMALLER * tiny:
        raise Finding(
            "unsound",
            "erased, but LogisticRegression gains",
            f"{bound:.6g} to {reached:.6g} with ridge {alpha:g}",
        )
