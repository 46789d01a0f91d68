"""Warnings of fits that would surprise: nothing left, rows stretched, units that decide."""

from __future__ import annotations

import warnings

import numpy as np

from expunge.errors import NothingLeft, RowsStretched, UnitsMatter
from expunge.game.kept import Kept
from expunge.moments import Moments
from expunge.number_text import short

__all__ = ["caution_of_stretching", "caution_of_units", "caution_of_what_is_left"]

LITTLE = 0.01  # share of the variance below which nothing to speak of is left
MUCH = 10  # times the variance from which rows are no longer what they were
ROUNDING = 1e-9  # relative to its mean: the spread of a narrow column that may be constant
DIGITS = 1e-13  # the same of any column
DEAD = 0.05  # share of columns that may be as narrow as they like: networks have dead ones
UNITS = 1000  # ratio of spreads from which one column decides for all
WIDE = {  # what a concept that spans everything has too many of, and what to do
    "classes": ("classes", "Take fewer classes, concept_type='continuous' for numbers"),
    "labels": ("labels", "Take fewer labels"),
    "continuous": ("columns", "Take fewer columns of the concept"),
}
LEAST = {"classes": 2, "labels": 1, "continuous": 1}  # of which there cannot be fewer
ALONE = "To keep anything, more columns are needed: name them by vectors=, if a table has them"
SPANNED = "Take more columns that do not follow the concept, or a lower rank if it is above 1"


def caution_of_what_is_left(who: str, moments: Moments, kept: Kept, *, stacklevel: int) -> None:
    """Warn where an erasure leaves next to nothing of the rows."""
    if kept.average < LITTLE:
        d, (parts, remedy) = kept.n_features, WIDE[moments.kind]
        remedy, held = f"{remedy}, or a lower rank", f"{d} columns hold"
        if d == 1:
            remedy, held = ALONE, "only column holds"
        elif len(moments.labels) <= LEAST[moments.kind]:
            remedy = SPANNED
        warnings.warn(
            NothingLeft(
                f"{who} leaves {short(100 * kept.average)} % of the variance of "
                "the average column: all rows become nearly the same row. The "
                f"concept ({len(moments.labels)} {parts}) spans what the {held}. {remedy}"
            ),
            stacklevel=stacklevel + 1,
        )


def caution_of_stretching(who: str, kept: Kept, *, stacklevel: int) -> None:
    """Warn where keeping a task makes rows far wider than they were."""
    if kept.average > MUCH:
        warnings.warn(
            RowsStretched(
                f"{who} makes the variance of the average column {short(kept.average)} times what "
                "it was: the task lies next to the concept, and keeping one without the other "
                "stretches the rows. Take LEACE, which never does, or a task less like the concept"
            ),
            stacklevel=stacklevel + 1,
        )


def caution_of_units(who: str, moments: Moments, *, stacklevel: int) -> None:
    """Warn where columns differ so much in spread that the widest decides what is erased."""
    spreads = np.sqrt(moments.squares / moments.weight)
    size, digits = np.abs(moments.mean_x), 8 * moments.eps
    sure = np.sort(spreads[spreads > max(ROUNDING, digits) * size])
    widest = spreads[spreads > max(DIGITS, digits) * size].max(initial=0.0)
    narrowest = sure[int(DEAD * sure.size)] if sure.size else widest
    if widest > UNITS * narrowest:
        warnings.warn(
            UnitsMatter(
                f"{who} depends on the units of the columns, and their spreads "
                f"differ by a factor of {short(widest / narrowest)}: the widest column "
                "decides what is erased. Standardise the columns first, or take LEACE() or "
                "RLACE(scale='std'), which do not depend on units"
            ),
            stacklevel=stacklevel + 1,
        )
