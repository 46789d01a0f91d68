"""What moments are taken of: rows, a concept and weights that go together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.concept import Concept
from expunge.errors import InputError
from expunge.linalg import Array

__all__ = ["check_batch"]


def check_batch(X: Any, concept: Any, weights: Any) -> tuple[NDArray[Any], Concept, Array | None]:
    """Rows, concept and weights of a batch, if they are numbers and of one length.

    The rows themselves are not looked at: what is not finite shows in their moments.

    Parameters
    ----------
    X : array of shape (n, d)
    concept : Concept, or array of shape (n,) or (n, m)
    weights : array of shape (n,), optional
        They may all be zero.

    Returns
    -------
    array of shape (n, d)
    Concept
    float64 array of shape (n,), or None
    """
    X = _numbers(X, "X", ndim=2)
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise InputError(
            "There are no rows to take moments of",
            f"X of shape {X.shape}",
            "Pass at least one row with at least one column",
        )
    if not isinstance(concept, Concept):
        Z = _numbers(concept, "concept")
        Z = Z[:, None] if Z.ndim == 1 else Z
        if Z.ndim != 2 or not np.isfinite(Z).all():
            raise InputError(
                "concept must be finite numbers, one or more for each row",
                f"shape {Z.shape}",
                "Pass an array of shape (n,) or (n, m)",
            )
        concept = Concept.of_numbers(Z)
    w = None if weights is None else np.asarray(_numbers(weights, "weights", 1), dtype=np.float64)
    lengths = {X.shape[0], concept.n_samples, X.shape[0] if w is None else w.shape[0]}
    if len(lengths) > 1:
        raise InputError(
            "X, the concept and the weights differ in their number of rows",
            f"{X.shape[0]} rows, {concept.n_samples} of the concept"
            + ("" if w is None else f", {w.shape[0]} weights"),
            "Pass one entry per row",
        )
    if w is not None and not (np.isfinite(w).all() and (w >= 0).all()):
        raise InputError(
            "Weights must be finite and not negative",
            f"weights from {w.min():g} to {w.max():g}",
            "Give every row to be used a positive weight, and others 0",
        )
    return X, concept, w


def _numbers(values: Any, name: str, ndim: int | None = None) -> NDArray[Any]:
    """An array of real numbers; memory maps stay what they are."""
    try:
        found = values if isinstance(values, np.memmap) else np.asarray(values)
    except Exception as error:  # whatever the object's own methods raise
        raise InputError(
            f"{name} cannot be read as an array", f"{type(values).__name__} ({error})", "Pass one"
        ) from error
    if found.dtype.kind not in "fiub" or (ndim is not None and found.ndim != ndim):
        raise InputError(
            f"{name} must be an array of real numbers" + (f" with {ndim} axes" if ndim else ""),
            f"{type(values).__name__} of shape {found.shape} and type {found.dtype}",
            "Pass such an array",
        )
    return found
