"""Erased rows in extended precision, from the map alone, and the units of their columns.

In float64 the rounding of a column in large units can drown one in small units; a certificate
speaks of the map, so the map is applied here with 64 bits of mantissa (where the platform has them)
and a range that 1e200 squared does not leave.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from building import Case, columns_of
from findings import Finding

__all__ = [
    "center_of",
    "doubtful",
    "erased_rows",
    "features",
    "rounding_of",
    "spreads",
    "units",
    "written_to",
]

Array = np.ndarray
Wide = np.longdouble


def erased_rows(eraser: Any, case: Case) -> Array:
    """Rows of the case after a fitted eraser or an erasure; extended precision."""
    X = case.values.astype(Wide)
    found = _map_of(eraser)
    if hasattr(found, "predict"):  # a fold: which class a row predicts is settled in float64
        return found.transform(case.values.astype(np.float64)).astype(Wide)
    if hasattr(found, "frequencies"):
        centred, part = X - found.center, {n: t.astype(Wide) for n, t in found.tensors().items()}
        features = np.cos(centred @ part["frequencies"] + part["phases"]) - part["means"]
        taken = centred @ part["right"].T + features @ part["coef"].T
        return X - found.strength * (taken @ part["left"].T)
    if not getattr(found, "needs_concept", False):
        left, right = found.left.astype(Wide), found.right.astype(Wide)
        centre = 0 if found.center is None else found.center.astype(Wide)
        offset = 0 if found.offset is None else found.offset.astype(Wide)
        return X - ((X - centre) @ right.T) @ left.T + offset
    centre = found.center.astype(Wide)
    Z = case.Z
    if Z.shape[1] != len(found.mean_z):  # fitted without weights, so on all classes
        Z = columns_of(case.y, None)[1]
    moved = X - (Z - found.mean_z.astype(Wide)) @ found.shift.astype(Wide).T
    if found.maps is not None:
        own = Z.argmax(axis=1)
        moved = centre + np.stack(
            [found.maps[k].astype(Wide) @ row for k, row in zip(own, moved - centre, strict=True)]
        )
    moved = (1 - found.strength) * X + found.strength * moved
    return np.where(found.becoming_constant, centre, moved)


def _map_of(eraser: Any) -> Any:
    """The map of a fitted eraser; a map itself as it is."""
    if not hasattr(eraser, "get_params"):
        return eraser
    told = hasattr(eraser, "conditional_erasure_")
    return eraser.conditional_erasure_ if told else eraser.erasure_


def center_of(X: Array, w: Array) -> Array:
    """Weighted mean."""
    return w.astype(Wide) @ X.astype(Wide)


def spreads(X: Array, w: Array) -> Array:
    """Standard deviation of each column over the rows that count; 0 where it never varies."""
    X = X.astype(Wide)
    found = np.sqrt(w.astype(Wide) @ (X - center_of(X, w)) ** 2)
    used = X[w > 0]
    return np.where(used.max(axis=0) == used.min(axis=0), 0, found)


def units(
    certificate: Any, erased: Array, case: Case, rounding: Array, reach: Array | float = 0.0
) -> Array:
    """Unit of each column in the certificate's ridge; `Finding` if one is too large.

    A unit that is too large would hide what is left; a smaller one is only a harder test. It may be
    the spread of the column after erasure, or where next to nothing is left a millionth of the
    spread before (and a billionth of the mean, of which every row carries rounding); a stream,
    which does not know the rows after erasure, may take the spread before. A column that does not
    vary after erasure, but for rounding, may have 1: rounding is also what variances cannot tell of
    the spread (`reach`) that a map may have written to a column.
    """
    stated = np.sqrt(certificate.ridges.astype(Wide) / certificate.alpha)
    before, after = spreads(case.values, case.w), spreads(erased, case.w)
    least = np.minimum(1e-6 * before + 1e-9 * np.abs(center_of(case.values, case.w)), before)
    due = np.maximum(after + 10 * rounding, least)
    written = 1e-12 * (np.abs(center_of(case.values, case.w)) + before.max())
    narrow = case.plan.rows.dtype in ("float16", "float32")
    written = np.maximum(written, (1e-3 if narrow else 3e-8) * reach)  # variances tell no less
    nothing = after <= np.where(before > 0, 10 * rounding, written)
    allowed = np.where(nothing, np.maximum(due, 1), due)
    unclear = doubtful(case)
    if (stated > 1.001 * allowed)[~unclear].any():
        worst = int(np.argmax(np.where(unclear, 0, stated / allowed)))
        details = f"column {worst}: unit {stated[worst]:.6g}, should be {allowed[worst]:.6g}"
        raise Finding("unsound", "a column in too large a unit", details)
    return stated


def rounding_of(eraser: Any, case: Case) -> Array:
    """What float64 may add to the spread of each column on the way through the map."""
    size = np.abs(case.values[case.w > 0]).max(axis=0).astype(Wide)
    found = _map_of(eraser)
    if hasattr(found, "left"):
        centre = 0 if found.center is None else np.abs(found.center).astype(Wide)
        passed = np.abs(found.left).astype(Wide) @ (
            np.abs(found.right).astype(Wide) @ (size + centre)
        )
        return 1e-14 * (size + passed)
    return 1e-14 * np.full(len(size), size.max())


def written_to(eraser: Any, case: Case) -> Array:
    """The largest spread that the map may have written to each column."""
    found = _map_of(eraser)
    if not hasattr(found, "left"):
        return np.zeros(case.values.shape[1])
    read = np.linalg.norm(found.right * spreads(case.values, case.w).astype(float), axis=1)
    return np.abs(found.left) @ read


def doubtful(case: Case) -> Array:
    """Columns whose spread is within rounding of their size: whether constant is open."""
    spread = spreads(case.values, case.w)
    size = np.abs(case.values[case.w > 0]).max(axis=0)
    return (spread > 0) & (spread <= 1e-9 * size)


def features(erased: Array, case: Case, units: Array, *, intercept: bool) -> Array:
    """Erased rows in units of their columns, centred if there is an intercept, as float64.

    Doubtful columns are left out: without them the predictor can only be worse.
    """
    shift = center_of(erased, case.w) if intercept else 0
    F = (erased - shift) / units
    F[:, doubtful(case)] = 0
    return F.astype(np.float64)
