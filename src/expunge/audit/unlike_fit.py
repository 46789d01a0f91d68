"""Rows in another scale than those of the fit: normalised, standardised, or of another model.

The erasure is for rows as the fit had them. What is found on others says nothing of it, good or
bad, and what sampling error leaves on rows like its own is no measure for it.
"""

from __future__ import annotations

import numpy as np

from expunge.audit.fit import FitFacts
from expunge.audit.given import AuditedRows, Given
from expunge.likeness import ROWS, unlikeness_of_rows
from expunge.maps import Map

__all__ = ["warning_of_unlike", "without_excuse"]

OTHERS = "these rows are in another scale than those of the fit, or lie elsewhere"


def warning_of_unlike(given: Given) -> str:
    """What to say of rows that do not look like those of the fit; empty where all do.

    Parameters
    ----------
    given : Given

    Returns
    -------
    str
    """
    parts = {"the training": given.train, "the test": given.test}
    there = {name: part for name, part in parts.items() if part is not None}
    found = {name: _unlikeness(part, given) for name, part in there.items()}
    strange = {name: said for name, said in found.items() if said}
    if not strange:
        return ""
    which = "These" if len(strange) == len(there) else next(iter(strange)).capitalize()
    return (
        f"{which} rows do not look like those that the erasure was fitted on: "
        f"{next(iter(strange.values()))}. What is found on them says nothing of the erasure. Is it "
        "the same model, and are both normalised or neither?"
    )


def without_excuse(facts: FitFacts, unlike: str) -> FitFacts:
    """The same facts; nothing is known of sampling error where rows do not look like the fit's.

    Parameters
    ----------
    facts : FitFacts
    unlike : str
        What `warning_of_unlike` says.

    Returns
    -------
    FitFacts
    """
    return FitFacts(None, None, OTHERS) if unlike and facts.exact is not False else facts


def _unlikeness(part: AuditedRows, given: Given) -> str:
    if not isinstance(given.subject, Map):
        return ""
    some = np.linspace(0, len(part) - 1, min(ROWS, len(part))).astype(np.intp)
    return unlikeness_of_rows(given.subject, part.before.take(some).array().astype(np.float64))
