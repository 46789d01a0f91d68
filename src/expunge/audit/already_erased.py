"""Rows that were erased before they were passed: nothing is left to measure the erasure by."""

from __future__ import annotations

import numpy as np

from expunge.audit.given import AuditedRows, Given
from expunge.audit.sampling import stratified
from expunge.audit.units import ROUNDING
from expunge.erasure import Erasure
from expunge.linalg import Array

__all__ = ["warning_of_erased"]

ROWS = 1_000  # looked at
STILL = 5e-3  # spreads of a column that rows written with few digits move by
MOVES = 1e-2  # spreads that the same erasure moves rows of noise by


def warning_of_erased(given: Given, seed: int) -> str:
    """What to say of rows that the erasure changes nothing in; empty where it changes all.

    Parameters
    ----------
    given : Given
    seed : int

    Returns
    -------
    str
    """
    erasure = given.subject
    if not isinstance(erasure, Erasure):
        return ""
    parts = {"the training": given.train, "the test": given.test}
    there = {name: part for name, part in parts.items() if part is not None}
    still = [name for name, part in there.items() if _still(part, erasure, seed)]
    if not still:
        return ""
    return (
        f"The erasure changes nothing in {'these' if len(still) == len(there) else still[0]} rows, "
        "as if they had been erased before: 'before' and 'after' are the same then, and what was "
        "lost is not seen. Pass the rows as they were before erasure."
    )


def _still(part: AuditedRows, erasure: Erasure, seed: int) -> bool:
    """Whether these rows stay where they are, and rows of noise as wide do not."""
    some = part.take(stratified(part.concept, ROWS, seed))
    X = some.before.array()
    spread = X.std(axis=0, dtype=np.float64)
    unit = np.where(spread > 0, spread, 1.0)
    level = STILL + ROUNDING * some.before.eps * np.abs(X).max(axis=0) / unit
    noise = X.mean(axis=0, dtype=np.float64)
    noise = noise + np.random.default_rng(seed).normal(size=X.shape) * unit
    moved = _length(some.after.array() - X) / unit
    would = _length(erasure.transform(noise) - noise) / unit
    return bool(np.all(moved <= level) and would.max() > MOVES)


def _length(changes: Array) -> Array:
    """Root mean square of each column."""
    return np.asarray(np.sqrt(np.mean(changes.astype(np.float64) ** 2, axis=0)))
