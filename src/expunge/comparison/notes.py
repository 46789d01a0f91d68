"""What to know when reading a comparison."""

from __future__ import annotations

from typing import Any

import numpy as np

from expunge.audit.repeats import by_chance, row_hashes
from expunge.comparison.methods import Method
from expunge.concept import Concept
from expunge.erasers import INLP
from expunge.rows.base import Rows

__all__ = ["method_notes", "row_notes"]

LOOKED_AT = 5000  # rows whose values are counted
FEW = 0.1  # different values of a column, as a share of these rows, that make it discrete
MOST = 0.9  # share of the variance in one column that makes the others invisible


def row_notes(rows: Rows) -> list[str]:
    """What is peculiar to these rows.

    Parameters
    ----------
    rows : rows of shape (n, d)

    Returns
    -------
    list of str
    """
    notes, n = [], rows.n_samples
    different = len(np.unique(row_hashes(rows)))
    if different < n:
        kept = (
            "They look like rows that agree by chance and are held out one by one."
            if by_chance(rows)
            else "They look like copies and are held out together."
        )
        notes.append(f"{n - different:,} of the {n:,} rows repeat others. {kept}")
    moments = rows.moments(Concept.none(n), second=False)
    spread = moments.squares / moments.weight
    share = float(spread.max() / (spread.sum() or 1.0))
    if rows.n_features > 1 and share > MOST:
        notes.append(
            f"column {_called(rows, int(spread.argmax()))} alone has {share:.1%} of the "
            "variance: variance kept, neighbours kept and the probes that go by distance see "
            "little else. Scale the columns."
        )
    return notes


def method_notes(
    told: list[str], skipped: dict[str, list[int]], chosen: list[Method], rows: Rows
) -> list[str]:
    """What is peculiar to these methods.

    Parameters
    ----------
    told : list of str
        Methods that need the concept of every row.
    skipped : dict from str to list of int
        Ranks that a method had no use for.
    chosen : list of Method
    rows : rows of shape (n, d)

    Returns
    -------
    list of str
    """
    notes = []
    if told:
        some = rows.take(np.arange(min(LOOKED_AT, rows.n_samples))).array()
        discrete = sum(len(np.unique(column)) <= FEW * len(some) for column in some.T)
        here = f", as in {discrete} of the {rows.n_features} here" if discrete else ""
        notes.append(
            f"{_listed(told)}: needs the concept of every row, later too, and was told that of the "
            "held-out rows. Each class is changed by a map of its own, which can write the class "
            f"in: surely into columns of few different values{here}. Linear probes do not see that."
        )
    for name, ranks in skipped.items():
        notes.append(
            f"{name} has nothing to remove beyond its rank above: not shown at {_listed(ranks)}."
        )
    fixed = [m.name for m in chosen if m.asked is None and "rank" not in m.eraser.get_params()]
    if fixed and any(isinstance(m.asked, int) for m in chosen):
        notes.append(f"{_listed(fixed)}: no rank to choose, shown at the concept's own.")
    if any(isinstance(m.eraser, INLP) and m.asked == "auto" for m in chosen):
        notes.append(
            "INLP is shown at the concept's own rank, like the others. By itself it goes on until "
            "a probe is at chance: pass INLP() instead of its name."
        )
    return notes


def _called(rows: Rows, column: int) -> str:
    if rows.chosen is None or rows.chosen.lists:
        return f"{column}, counted from 0,"
    return repr(rows.chosen.names[column])


def _listed(items: list[Any]) -> str:
    return ", ".join(map(str, items))
