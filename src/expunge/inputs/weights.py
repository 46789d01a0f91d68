"""Weights of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from expunge.errors import InputError
from expunge.inputs.columns import by_name, count_of
from expunge.inputs.matrices import as_matrix, check_finite
from expunge.linalg import Array
from expunge.rows.base import Rows

__all__ = ["check_weights"]

LARGEST_WEIGHT = 1e50


def check_weights(sample_weight: Any, rows: Rows | int) -> Array | None:
    """Non-negative finite weights, one per row, or None.

    Parameters
    ----------
    sample_weight : None, number, array of shape (n,), or the name of a column of the rows
    rows : Rows or int
        What they are for, or the number of them.

    Returns
    -------
    float64 array of shape (n,), or None
    """
    n_samples, sample_weight = count_of(rows), by_name(sample_weight, rows, "sample_weight")
    if sample_weight is None:
        return None
    if np.isscalar(sample_weight):  # the same weight for all is no weight, but it must be one
        check_weights([sample_weight], 1)
        return None
    w = np.asarray(as_matrix(sample_weight, name="sample_weight"), dtype=np.float64)
    if w.ndim != 1:
        raise InputError(
            "Sample weights must be 1D array or scalar",
            f"shape {w.shape}",
            "Pass one weight per row",
        )
    if w.shape[0] != n_samples:
        raise InputError(
            f"sample_weight.shape == {w.shape}, expected {(n_samples,)}",
            f"{w.shape[0]} weights for {n_samples} rows",
            "Pass one weight per row",
        )
    check_finite(w, "sample_weight")
    if (w < 0).any() or not w.max(initial=0.0) > 0:
        raise InputError(
            "Sample weights must be non-negative and not all zero",
            f"weights from {w.min():g} to {w.max():g}",
            "Give every row to be used a positive weight",
        )
    if not 1 / LARGEST_WEIGHT <= w.max() <= LARGEST_WEIGHT:  # of products with squares of X
        raise InputError(
            f"Sample weights are out of range: the largest must lie between {1 / LARGEST_WEIGHT:g} "
            f"and {LARGEST_WEIGHT:g}, or sums would overflow or vanish",
            f"a largest weight of {w.max():g}",
            "Multiply all weights by a constant; only their ratios matter",
        )
    if isinstance(rows, Rows):
        rows.lies_at(w, sample_weight)
    return w
