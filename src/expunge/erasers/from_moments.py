"""Moments that somebody else has summed up, as what an eraser knows of its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from expunge.concept import Concept
from expunge.erasers.statistics import Statistics
from expunge.errors import InputError
from expunge.fingerprint import Fingerprint
from expunge.moments import Moments, RangeCheck

if TYPE_CHECKING:
    from expunge.erasers.base import BaseEraser

__all__ = ["statistics_of"]


def statistics_of(eraser: BaseEraser, moments: Any, fingerprint: Any = None) -> Statistics:
    """What an eraser would know of the rows behind these moments, if that is enough for it.

    Parameters
    ----------
    eraser : BaseEraser
    moments : Moments
    fingerprint : Fingerprint, optional
        Of the same rows.

    Returns
    -------
    Statistics

    Raises
    ------
    InputError
        Where the eraser needs more than moments, or other ones; in one line.
    """
    name = type(eraser).__name__
    if not isinstance(moments, Moments) or not isinstance(fingerprint, Fingerprint | None):
        given = moments if not isinstance(moments, Moments) else fingerprint
        raise InputError(
            "fit_moments takes Moments and, if there is one, their Fingerprint",
            type(given).__name__,
            "Pass Moments.of(X, concept), or what such were merged to",
        )
    if reason := eraser._why_not_moments():
        raise InputError(
            f"{name} cannot be fitted on moments alone: {reason}",
            f"moments of {moments.n} rows",
            "Call fit with the rows, or take LEACE",
        )
    if moments.n < 2 or not moments.weight > 0:
        raise InputError("There are too few rows to fit on", f"{moments.n} rows", "Add more")
    if eraser._needs_second() and moments.xx is None:
        raise InputError(
            f"{name} needs the d x d matrix of second moments",
            "moments that were taken with second=False",
            "Take them with second=True",
        )
    if eraser._needs_concept():
        if moments.kind not in eraser.kinds:
            raise InputError(
                f"{name} erases concepts of kind {', '.join(sorted(eraser.kinds))} only",
                f"a concept of kind {moments.kind!r}",
                "Take LEACE, SAL or RLACE",
            )
        eraser._check_stream(Concept(moments.kind, np.zeros(0), moments.labels))
    RangeCheck().settle(moments)
    return Statistics(moments, fingerprint)
