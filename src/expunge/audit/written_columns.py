"""Columns that tell the concept by a threshold after erasure, where no line fitted to a loss need.

An oblique erasure takes from a column what the concept says of it, as read from all columns. Where
most rows have the same value there, the trace of the others is all that tells these apart, and a
threshold finds the concept in it. The few rows with another value make up for it in every
covariance, so no mean loss gains by that threshold. Nor does it where classes have one mean and
another shape: a skewed column, whose means are its few far rows.
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

__all__ = ["WrittenColumn", "headline_of_written", "warnings_of_written", "written_columns"]

ROWS, NUMBERS = 5_000, 1 << 22  # looked at
FEWEST = 100  # rows of a class below which one column tells too little of it
MORE = {"AUC": 0.05, "rank correlation": 0.1}  # over none, and over that before, that is said
ERRORS = 5.0  # the same in standard errors: there are many columns
NAMED = 3  # columns that the warning names


@dataclass(frozen=True)
class WrittenColumn:
    """A column that tells the concept by itself after erasure.

    Attributes
    ----------
    column : int
    name : str
    before, after : float
        Area under the curve of the column alone, at least one half; of several classes or labels
        that which it tells best. Of numbers the size of the rank correlation.
    statistic : {"AUC", "rank correlation"}
    written : bool
        Whether it tells more than before.
    """

    column: int
    name: str
    before: float
    after: float
    statistic: str
    written: bool

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        return asdict(self)


def written_columns(
    part: AuditedRows, names: list[str] | None, seed: int, *, linear: bool = False
) -> list[WrittenColumn]:
    """Columns of these rows that tell the concept by themselves after erasure.

    Parameters
    ----------
    part : AuditedRows
    names : list of str, optional
        Of the columns; by default their numbers.
    seed : int
    linear : bool
        Whether lines find the concept too: then only columns are named that tell more than before.

    Returns
    -------
    list of WrittenColumn
        The one that tells most first, those that tell more than before above all.
    """
    size = int(np.clip(NUMBERS // max(part.before.n_features, 1), ROWS // 5, ROWS))
    some = part.take(stratified(part.concept, size, seed))
    statistic, none, ranks, error = _measure(some.concept)
    if not ranks.size:
        return []
    after = _scores(some.after.array(), ranks, statistic)
    margin = np.maximum(MORE[statistic], ERRORS * error)
    at = np.flatnonzero((after > none + margin).any(axis=1))
    before = _scores(some.before.array()[:, at], ranks, statistic)
    found = []
    for j, old, new in zip(at.tolist(), before, after[at], strict=True):
        over = new - np.maximum(none, old) - margin
        k = int(over.argmax()) if over.max() > 0 else int((new - margin).argmax())
        if over[k] > 0 or not linear:
            name = str(j) if names is None else names[j]
            ends = float(old[k]), float(new[k])
            found.append(WrittenColumn(j, name, *ends, statistic, bool(over[k] > 0)))
    return sorted(found, key=lambda column: (not column.written, -column.after))


def warnings_of_written(found: list[WrittenColumn]) -> list[str]:
    """What to say of such columns, in one sentence of each kind."""
    written, shaped = ([c for c in found if c.written is kind] for kind in (True, False))
    said = []
    if written:
        said.append(
            "Columns tell the concept by themselves after erasure, and did not before: "
            f"{_listed(written)}. Where most rows have the same value in a column, what the "
            "erasure writes there is all that tells these apart, and a threshold does, though no "
            "line fitted to a mean loss need find it. Merge such categories with others before "
            "fit, or leave their rows out. Columns dropped alone leave their trace in the sum of "
            "the categories that stay."
        )
    if shaped:
        said.append(
            f"Columns tell the concept by their order though fitted lines do not: "
            f"{_listed(shaped)}. The means are equal and the shape is not: a few far values make "
            "up for many others. Where values are skewed, take logarithms or ranks (of numbers "
            "that are the concept too) before fit."
        )
    return said


def headline_of_written(found: list[WrittenColumn]) -> str:
    """The same in a sentence beside what probes find."""
    if not found:
        return ""
    first = found[0]
    how = "A threshold on" if first.statistic == "AUC" else "The order of"
    return f"{how} column {first.name!r} alone finds it ({first.statistic} {first.after:.2f})."


def _listed(found: list[WrittenColumn]) -> str:
    named = ", ".join(
        f"{c.name!r} ({c.statistic} {c.before:.2f} before, {c.after:.2f} after)"
        for c in found[:NAMED]
    )
    return named + (f" and {len(found) - NAMED} more" if len(found) > NAMED else "")


def _measure(concept: Concept) -> tuple[str, float, Array, Array]:
    """The measure, its value of noise, what it is taken with (n x m) and its errors of noise (m).

    Of classes or labels with rows enough a column of 0 and 1 each; of numbers their ranks.
    """
    Z = concept.columns()
    if concept.kind == "continuous":
        varies = np.ptp(Z, axis=0) > 0
        ranks = rankdata(Z[:, varies if len(Z) >= 2 * FEWEST else []], axis=0)
        return "rank correlation", 0.0, ranks, np.full(ranks.shape[1], len(Z) ** -0.5)
    Z = Z if Z.shape[1] > 2 or concept.kind == "labels" else Z[:, 1:]
    having = Z.sum(axis=0)
    Z = np.asarray(Z[:, np.minimum(having, len(Z) - having) >= FEWEST])
    p = Z.sum(axis=0)
    return "AUC", 0.5, Z, np.sqrt((len(Z) + 1) / (12 * p * (len(Z) - p)))


def _scores(X: NDArray[Any], Z: Array, statistic: str) -> Array:
    """The measure (d x m) of each column with each column of Z, whichever way round."""
    R = rankdata(X, axis=0)
    if statistic == "AUC":
        p = Z.sum(axis=0)
        below = R.T @ Z - p * (p + 1) / 2
        return np.asarray(np.maximum(below, p * (len(Z) - p) - below) / (p * (len(Z) - p)))
    R, Z = (A - A.mean(axis=0) for A in (R, Z))
    size = np.linalg.norm(R, axis=0)[:, None] * np.linalg.norm(Z, axis=0)
    return np.asarray(np.abs(R.T @ Z) / np.where(size > 0, size, 1.0))
