"""Erased rows in extended precision, from the map alone, and the units of their columns.

In float64 the rounding of a column in large units can drown one in small units; a certificate
speaks of the map, so the map is applied here with 64 bits of mantissa (where the platform has them)
and a range that 1e200 squared does not leave.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from building import Case

__all__ = ["center_of", "erased_rows", "features", "spreads", "units_after"]

Array = np.ndarray
Wide = np.longdouble


def erased_rows(eraser: Any, case: Case) -> Array:
    """Rows of the case after a fitted eraser or an erasure; extended precision."""
    X = case.values.astype(Wide)
    found = eraser if not hasattr(eraser, "_settled") else _map_of(eraser)
    if not getattr(found, "needs_concept", False):
        left, right = found.left.astype(Wide), found.right.astype(Wide)
        centre = 0 if found.center is None else found.center.astype(Wide)
        offset = 0 if found.offset is None else found.offset.astype(Wide)
        return X - ((X - centre) @ right.T) @ left.T + offset
    centre = found.center.astype(Wide)
    moved = X - (case.Z - found.mean_z.astype(Wide)) @ found.shift.astype(Wide).T
    if found.maps is not None:
        own = case.Z.argmax(axis=1)
        moved = centre + np.stack(
            [found.maps[k].astype(Wide) @ row for k, row in zip(own, moved - centre, strict=True)]
        )
    return (1 - found.strength) * X + found.strength * moved


def _map_of(eraser: Any) -> Any:
    try:
        return eraser.erasure_
    except AttributeError:
        return eraser.conditional_erasure_


def center_of(X: Array, w: Array) -> Array:
    """Weighted mean."""
    return w.astype(Wide) @ X.astype(Wide)


def spreads(X: Array, w: Array) -> Array:
    """Standard deviation of each column over the rows that count; 0 where it never varies."""
    X = X.astype(Wide)
    found = np.sqrt(w.astype(Wide) @ (X - center_of(X, w)) ** 2)
    used = X[w > 0]
    return np.where(used.max(axis=0) == used.min(axis=0), 0, found)


def units_after(erased: Array, case: Case) -> Array:
    """The spread of each erased column, no more than before and no less than a millionth of that.

    1 for a column that is constant before and after.
    """
    before, after = spreads(case.values, case.w), spreads(erased, case.w)
    rounding = 1e-12 * (np.abs(center_of(case.values, case.w)) + before.max())
    after = np.where((before > 0) | (after > rounding), after, 0)
    least = np.minimum(1e-6 * before + 1e-9 * np.abs(center_of(case.values, case.w)), before)
    found = np.where(before > 0, np.clip(after, least, before), after)
    return np.where(found > 0, found, 1)


def features(erased: Array, case: Case, units: Array, *, intercept: bool) -> Array:
    """Erased rows in the given units, centred if there is an intercept, as float64.

    A column whose spread is within rounding of its mean is left out: whether it counts as constant
    is a matter of taste, and without it the predictor can only be worse.
    """
    spread = spreads(case.values, case.w)
    size = np.abs(case.values[case.w > 0]).max(axis=0)
    doubtful = (spread > 0) & (spread <= 1e-9 * size)
    shift = center_of(erased, case.w) if intercept else 0
    F = (erased - shift) / units
    F[:, doubtful] = 0
    return F.astype(np.float64)
