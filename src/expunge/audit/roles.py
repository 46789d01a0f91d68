"""Which of the rows passed belong to the fit and which are fresh, whatever they were passed as."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from expunge.audit.fresh import (
    Freshness,
    fingerprints,
    fresh_by_ids,
    fresh_rows,
    share_of_fit,
    trusted,
)
from expunge.audit.given import AuditedRows, Given
from expunge.audit.repeats import by_chance
from expunge.audit.sampling import too_few
from expunge.metrics.row_blocks import block_moments

__all__ = ["Roles", "roles_of"]

TOO_EQUAL = 1e-5  # squared distance of class means, in units of what sampling error makes of it
COLUMNS = 4  # fewer say little about how equal means can be by luck
UNCLEAR = (
    "some of the rows are rows of the fit and others only repeat their numbers, and values do not "
    "tell which; pass ids of the rows, or fresh=True if none of them was in the fit"
)
DISGUISED = (
    "the class means of these rows, once erased, are more equal than those of rows the eraser has "
    "not seen can be: they are rows of the fit in another form"
)


@dataclass(frozen=True, eq=False)
class Roles:
    """What the rows are.

    Attributes
    ----------
    fit : AuditedRows or None
        Rows of the fit.
    new : AuditedRows or None
        Fresh rows to probe.
    freshness : Freshness or None
        Of the rows that `new` is taken from; None where all rows are rows of the fit by claim.
    share : float or None
        Share of the rows of `fit` that the erasure was fitted on; None where that is not known.
    reason : str
        Why there are no fresh rows, if there are none.
    renamed : bool
        Whether rows passed as training rows are fresh: the fingerprint does not know them.
    n_test : int
        Rows that were looked at for fresh ones.
    """

    fit: AuditedRows | None
    new: AuditedRows | None
    freshness: Freshness | None
    share: float | None
    reason: str
    renamed: bool = False
    n_test: int = 0


def roles_of(given: Given, *, fresh: bool) -> Roles:
    """Find the rows of the fit and the fresh ones.

    Parameters
    ----------
    given : Given
    fresh : bool
        Whether to trust that the test rows (without training rows: all rows) are fresh.

    Returns
    -------
    Roles
    """
    if given.train is None or given.test is None:
        return _lone(given, given.first, claimed_new=given.train is None, fresh=fresh)
    train, test = given.train, given.test
    share = share_of_fit(train.before, given.meta)
    if share == 0:
        return _all_new(given, train, test, fresh=fresh)
    if fresh:
        freshness = trusted(len(test), given.meta)
    elif train.ids is not None and test.ids is not None:
        freshness = fresh_by_ids(test.ids, train.ids, given.meta)
    else:
        freshness = fresh_rows(test.before, train.before, given.meta)
    new, reason = _enough(test, freshness)
    return Roles(train, new, freshness, share, reason, n_test=len(test))


def _lone(given: Given, part: AuditedRows, *, claimed_new: bool, fresh: bool) -> Roles:
    """One set of rows: of the fit, fresh, or some of each."""
    if fresh:
        return _judged(given, part, trusted(len(part), given.meta), renamed=not claimed_new)
    sketches = list(fingerprints(given.meta))
    only = "it was measured on the training rows only"
    if not claimed_new and not sketches:
        return Roles(part, None, None, None, only)
    freshness = fresh_rows(part.before, None, given.meta)
    if not claimed_new:
        share = share_of_fit(part.before, given.meta)
        if share is None or not (freshness.fresh.any() or freshness.unclear):
            return Roles(part, None, None, share, only)
        if freshness.fresh.all() and share:  # a table whose repeats do not tell
            return Roles(part, None, None, share, only)
    if freshness.fresh.any() and not freshness.fresh.all() and all(s.complete for s in sketches):
        old = part.take(~freshness.fresh)
        new, reason = _enough(part, freshness)
        return Roles(old, new, freshness, 1.0, reason, not claimed_new, len(part))
    return _judged(given, part, freshness, renamed=not claimed_new)


def _all_new(given: Given, train: AuditedRows, test: AuditedRows, *, fresh: bool) -> Roles:
    """The fingerprint knows none of the training rows: they are as fresh as the others."""
    if train.ids is None and not by_chance(test.before):  # a row that is there twice counts once
        twice = fresh_rows(test.before, train.before, {})
        test = test.take(twice.fresh)
    part = train.joined(test) if len(test) else train
    if fresh:
        return _judged(given, part, trusted(len(part), given.meta), renamed=True)
    freshness = fresh_rows(part.before, None, given.meta)
    return _judged(given, part, freshness, renamed=True)


def _judged(given: Given, part: AuditedRows, freshness: Freshness, *, renamed: bool) -> Roles:
    new, reason = _enough(part, freshness)
    if new is not None and freshness.judged_by == "values" and _too_equal(new):
        new, reason = None, DISGUISED
    return Roles(None, new, freshness, None, reason, renamed and new is not None, len(part))


def _enough(part: AuditedRows, freshness: Freshness) -> tuple[AuditedRows | None, str]:
    """The fresh rows, or why they cannot be probed."""
    if freshness.unclear:
        return None, UNCLEAR
    new = part if freshness.fresh.all() else part.take(freshness.fresh)
    if not len(new):
        return None, "all test rows are rows the eraser was fitted on"
    if too_few(new):
        return None, f"only {len(new)} of the test rows are fresh, too few to probe"
    return new, ""


def _too_equal(part: AuditedRows) -> bool:
    """Whether class means after erasure differ by far less than sampling error makes them.

    The squared distance of two means of fresh rows is about tr Σ/n_eff; of rows of the fit it is 0
    up to rounding. In several columns it is never so small by luck.
    """
    if part.concept.kind == "continuous" or part.after.n_features < COLUMNS:
        return False
    moments = block_moments(part.after, part.concept, second=False)
    spread = np.diag(moments.zz)
    there = spread > 0
    if not there.any() or moments.trace_xx <= 0:
        return False
    slopes = np.sum(moments.xz[:, there] ** 2, axis=0) / spread[there]  # n_eff · ‖δ‖²
    return bool(np.max(slopes) < TOO_EQUAL * moments.trace_xx / moments.weight)
