"""Columns that few rows have anything in, and that tell the concept after erasure.

An oblique erasure takes from a column what the concept says of it, as read from all columns. Where
a flag is set in a few rows of the fit, that is a trace of the others in every row; in the rows in
which the flag is not set, the trace is all there is, and a threshold on it tells the concept. The
few rows with the flag make up for it in every covariance, so no mean loss gains by that threshold.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from expunge.audit.given import AuditedRows
from expunge.audit.sampling import stratified
from expunge.concept import Concept
from expunge.linalg import Array

__all__ = ["WrittenColumn", "headline_of_written", "warning_of_written", "written_columns"]

SAME = 0.99  # share of rows with the commonest value, from which a column is nearly empty
ROWS = 5_000  # looked at
FEWEST = 100  # rows of a class below which one column tells too little of it
MORE = 0.05  # area over one half, and over that before erasure, that is said
ERRORS = 5.0  # the same in standard errors: there are many columns
NAMED = 3  # columns that the warning names


@dataclass(frozen=True)
class WrittenColumn:
    """A column that tells the concept by itself only after erasure.

    Attributes
    ----------
    column : int
    name : str
    before, after : float
        Area under the curve of the column alone, at least one half; of several classes or labels
        that which it tells best.
    """

    column: int
    name: str
    before: float
    after: float

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        return asdict(self)


def written_columns(part: AuditedRows, names: list[str] | None, seed: int) -> list[WrittenColumn]:
    """Nearly empty columns of these rows that tell the concept by themselves only after erasure.

    Parameters
    ----------
    part : AuditedRows
    names : list of str, optional
        Of the columns; by default their numbers.
    seed : int

    Returns
    -------
    list of WrittenColumn
        The one that tells most first. Empty for numbers.
    """
    if part.concept.kind == "continuous":
        return []
    some = part.take(stratified(part.concept, ROWS, seed))
    before = some.before.array()
    empty = _nearly_empty(before)
    Z = _contrasts(some.concept)
    if not empty.size or not Z.size:
        return []
    p = Z.sum(axis=0)
    error = np.sqrt((len(Z) + 1) / (12 * p * (len(Z) - p)))  # of the area of a column of noise
    after, found = some.after.array(), []
    for j in empty:
        old, new = _areas(before[:, j], Z), _areas(after[:, j], Z)
        k = int(new.argmax())
        if new[k] > max(0.5, old[k]) + max(MORE, ERRORS * error[k]):
            name = str(j) if names is None else names[j]
            found.append(WrittenColumn(int(j), name, float(old[k]), float(new[k])))
    return sorted(found, key=lambda column: -column.after)


def warning_of_written(found: list[WrittenColumn]) -> str:
    """What to say of such columns; empty where there are none."""
    if not found:
        return ""
    named = ", ".join(
        f"{c.name!r} (AUC {c.before:.2f} before, {c.after:.2f} after)" for c in found[:NAMED]
    )
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return (
        f"Nearly empty columns tell the concept by themselves after erasure, and did not before: "
        f"{named}{more}. What the erasure writes there is all that most rows have, and a threshold "
        "on it tells them apart, though no line fitted to a mean loss need find it. Merge such "
        "categories with others before fit, or leave their rows out. Columns dropped alone leave "
        "their trace in the sum of the categories that stay."
    )


def headline_of_written(found: list[WrittenColumn]) -> str:
    """The same in a sentence beside what probes find."""
    if not found:
        return ""
    return f"A threshold on column {found[0].name!r} alone finds it (AUC {found[0].after:.2f})."


def _nearly_empty(X: NDArray[Any]) -> NDArray[np.intp]:
    """Numbers of the columns in which nearly all rows have the median."""
    median = np.median(X, axis=0).astype(X.dtype)
    return np.flatnonzero(np.mean(median == X, axis=0) >= SAME)


def _contrasts(concept: Concept) -> Array:
    """A column of 0 and 1 for each class or label that has rows enough."""
    Z = concept.columns()
    Z = Z if Z.shape[1] > 2 or concept.kind == "labels" else Z[:, 1:]
    having = Z.sum(axis=0)
    return np.asarray(Z[:, np.minimum(having, len(Z) - having) >= FEWEST])


def _areas(x: Array, Z: Array) -> Array:
    """Areas under the curve of one column for each contrast, whichever way round."""
    p = Z.sum(axis=0)
    q = len(Z) - p
    below = rankdata(x) @ Z - p * (p + 1) / 2
    return np.asarray(np.maximum(below, p * q - below) / (p * q))
