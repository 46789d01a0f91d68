"""Does an eraser keep what its `guarantees` say, on the rows of its fit, in their own units?"""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Any

import numpy as np
from building import Case, columns_of
from exact_rows import center_of, erased_rows, spreads
from findings import Finding

__all__ = ["broken_promise", "is_full_fit"]

Array = np.ndarray
# correlation with the concept that erased rows may keep, measured by the spread before erasure:
# what a certificate cannot tell from nothing (a gain of c²/2, one part in a million), and on tame
# rows nothing but rounding
CORRELATION, TAME = 2e-3, 1e-6


def is_full_fit(eraser: Any, case: Case) -> bool:
    """Whether the guarantees are meant: full strength, the concept's own rank, no second choice."""
    given = eraser.get_params(deep=False)
    return (
        case.plan.entry != "PairPCA"
        and given.get("strength", 1.0) == 1.0
        and given.get("rank", "auto") == "auto"
        and given.get("fit_intercept", True)
        and given.get("center", True)
        and not given.get("label_free", False)
        and isinstance(given.get("objective", "pls"), str)
        and given.get("objective", "pls") != "pca"
    )


def broken_promise(eraser: Any, case: Case, warned_of: Set[str] = frozenset()) -> Finding | None:
    """The first promise that does not hold, if any; but for those a warning has taken back."""
    if not is_full_fit(eraser, case):
        return None
    with np.errstate(all="ignore"):
        clean = erased_rows(eraser, case)
        spread = spreads(case.values, case.w)
        size = np.abs(case.values).max(axis=0)
        sure = spread > 1e-9 * size  # else the columns are constant but for rounding
        for claim in sorted(eraser.guarantees - warned_of):
            check = CHECKS.get(claim)
            if check is None or not sure.any():
                continue
            now = np.maximum(spread, spreads(clean, case.w))  # of columns that were written to
            measured, limit = check(eraser, case, clean, np.where(sure, now, np.inf))
            if not measured <= limit:
                return Finding("silent", f"{claim} does not hold", f"{measured:.3g} > {limit:.3g}")
    return None


def _covariance(X: Array, Z: Array, w: Array) -> Array:
    Z = Z.astype(np.longdouble)
    return (X - center_of(X, w)).T @ (w[:, None] * (Z - center_of(Z, w)))


def _correlation(clean: Array, Z: Array, case: Case, spread: Array) -> float:
    of_z = spreads(Z, case.w)
    if not (of_z > 0).any():
        return 0.0
    found = _covariance(clean, Z, case.w) / spread[:, None]
    return float(np.abs(found[:, of_z > 0] / of_z[of_z > 0]).max())


def _allowed(case: Case) -> float:
    given = case.plan.parameters
    if given.get("solver") == "descent_ascent":  # it stops at a gain of the tolerance asked for
        return max(CORRELATION, 2 * float(given.get("tol", 1e-6)) ** 0.5)
    looser = max(1.0, float(given.get("tol", 1e-6)) / 1e-6) ** 0.5
    return TAME if case.plan.is_tame else CORRELATION * looser


def _zero_cross_covariance(
    eraser: Any, case: Case, clean: Array, spread: Array
) -> tuple[float, float]:
    return _correlation(clean, case.Z, case, spread), _allowed(case)


def _equal_means(eraser: Any, case: Case, clean: Array, spread: Array) -> tuple[float, float]:
    """As a correlation with the class, so that a rare class is measured by what it can show."""
    if case.kind != "classes":
        return 0.0, 0.0
    return _correlation(clean, case.Z, case, spread), _allowed(case)


def _mean_preserved(eraser: Any, case: Case, clean: Array, spread: Array) -> tuple[float, float]:
    """Up to the rounding of the centre, which reaches every column through the map."""
    before, after = center_of(case.values, case.w), center_of(clean, case.w)
    rounding = 1e-14 * np.abs(before)
    if not hasattr(eraser, "conditional_erasure_"):
        found = eraser.erasure_
        for part in [found, found.closing] if hasattr(found, "closing") else [found]:
            rounding = rounding + np.abs(part.left) @ (np.abs(part.right) @ rounding)
    excess = np.maximum(np.abs(after - before) - rounding, 0)
    return float((excess / spread).max()), 1e-5


def _orthogonal(eraser: Any, case: Case, clean: Array, spread: Array) -> tuple[float, float]:
    if eraser.get_params().get("scale", "none") != "none":
        return 0.0, 0.0  # orthogonal in other units
    P = eraser.erasure_.matrix()
    return float(max(np.abs(P - P.T).max(), np.abs(P @ P - P).max())), 1e-8


def _least_squares_optimal(
    eraser: Any, case: Case, clean: Array, spread: Array
) -> tuple[float, float]:
    """Not a larger change than that of the orthogonal projection that erases the same."""
    if not case.plan.is_tame or eraser.get_params().get("shrinkage", "none") != "none":
        return 0.0, 0.0
    X, w = case.values - center_of(case.values, case.w), case.w
    U, s, _ = np.linalg.svd(_covariance(case.values, case.Z, w).astype(float), full_matrices=False)
    U = U[:, s > 1e-10 * s[0]]
    moved = float(w @ ((clean - case.values) ** 2).sum(axis=1))
    plain = float(w @ ((X @ U @ U.T) ** 2).sum(axis=1))
    return moved, plain * (1 + 1e-6)


def _task_covariance_kept(
    eraser: Any, case: Case, clean: Array, spread: Array
) -> tuple[float, float]:
    if case.task is None:
        return 0.0, 0.0
    T = columns_of(case.task, case.weights)[1]
    return _correlation(clean - case.values, T, case, spread), _allowed(case)


def _equal_class_covariances(
    eraser: Any, case: Case, clean: Array, spread: Array
) -> tuple[float, float]:
    """On tame rows; classes whose covariance cannot be made equal are warned of."""
    shrunk = eraser.get_params().get("shrinkage") not in ("auto", "none")
    if not case.plan.is_tame or shrunk or case.Z.sum(axis=0).min() < 2:
        return 0.0, 0.0
    parts = [np.cov((clean / spread).astype(float)[z > 0].T, ddof=0) for z in case.Z.T]
    return float(max(np.abs(part - parts[0]).max() for part in parts)), 1e-5


CHECKS: dict[str, Callable[[Any, Case, Array, Array], tuple[float, float]]] = {
    "zero_cross_covariance": _zero_cross_covariance,
    "equal_means": _equal_means,
    "mean_preserved": _mean_preserved,
    "orthogonal": _orthogonal,
    "least_squares_optimal": _least_squares_optimal,
    "task_covariance_kept": _task_covariance_kept,
    "equal_class_covariances": _equal_class_covariances,
}
