"""Which of the rows passed belong to the fit and which are fresh, whatever they were passed as."""

from __future__ import annotations

from dataclasses import dataclass

from expunge.audit.disguise import Resemblance, resemblance
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
from expunge.audit.sampling import FEWEST, too_few

__all__ = ["Roles", "roles_of"]

SWAPPED = (
    "the fit knows some of the test rows and none of the training rows: if the two were swapped, "
    "pass them the other way round"
)
UNCLEAR = (
    "some of the rows are rows of the fit and others only repeat their numbers, and values do not "
    "tell which; pass ids of the rows, or fresh=True if none of them was in the fit"
)
DISGUISED = (
    "the erasure fits these rows more closely than rows it has not seen: they are rows of the fit "
    "in another form, or were matched to each other; pass fresh=True if none of them was in the fit"
)
UNSURE = (
    "cannot tell whether these rows were in the fit: its fingerprint does not know them, but the "
    "erasure fits them more closely than most rows it has not seen; pass fresh=True if none of "
    "them was in the fit"
)
REASONS: dict[Resemblance, str] = {"fit": DISGUISED, "unclear": UNSURE}
SAME = 1 - 1e-9  # rows with equal weights are worth their number, up to rounding


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
    disguised : {"none", "unclear", "fit"}
        Whether rows passed as training rows are rows of the fit in another form.
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
    disguised: Resemblance = "none"


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
    looks: Resemblance = "none"
    if share == 0:
        looks = _looks(given, train, claimed=True)
        if looks == "none":
            return _all_new(given, train, test, fresh=fresh)
    if fresh:
        freshness = trusted(len(test), given.meta)
    elif train.ids is not None and test.ids is not None:
        freshness = fresh_by_ids(test.ids, train.ids, given.meta)
    else:
        freshness = fresh_rows(test.before, train.before, given.meta)
    new, reason = _new(given, test, freshness)
    fit = None if looks == "unclear" else train
    known = None if looks == "fit" else share
    return Roles(fit, new, freshness, known, reason, n_test=len(test), disguised=looks)


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
        new, reason = _new(given, part, freshness)
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
    unknown = test.take(freshness.fresh[len(train) :]) if len(test) else test
    looks = _looks(given, unknown)  # by themselves: others would dilute what they show
    if looks != "none":
        return Roles(None, None, freshness, None, REASONS[looks], n_test=len(part))
    new, reason = _new(given, part, freshness)
    if new is None and freshness.n_known:
        reason = SWAPPED
    return Roles(None, new, freshness, None, reason, new is not None, len(part))


def _judged(given: Given, part: AuditedRows, freshness: Freshness, *, renamed: bool) -> Roles:
    new, reason = _new(given, part, freshness, claimed=renamed)
    return Roles(None, new, freshness, None, reason, renamed and new is not None, len(part))


def _new(
    given: Given, part: AuditedRows, freshness: Freshness, *, claimed: bool = False
) -> tuple[AuditedRows | None, str]:
    """The fresh rows, unless they look like rows of the fit in another form."""
    new, reason = _enough(part, freshness)
    if new is None or freshness.judged_by != "values":
        return new, reason
    looks = _looks(given, new, claimed=claimed)
    return (new, "") if looks == "none" else (None, REASONS[looks])


def _looks(given: Given, part: AuditedRows, *, claimed: bool = False) -> Resemblance:
    """Whether rows that no fingerprint knows look like rows of the fit all the same."""
    if not len(part):
        return "none"
    n, record = given.meta.get("n"), given.meta.get("fit") or {}
    pool = given.meta.get("pool") or {}
    others = pool.get("n_different") or pool.get("n_pool", 0)  # copies are no further rows
    everything = n + others if n is not None and pool.get("share") else n
    looks = resemblance(part, given.subject, everything, claimed=claimed)
    if looks == "none" and claimed and n == len(part) and record.get("effective_n", n) < SAME * n:
        return "unclear"  # of a fit with weights the means of its rows say nothing
    return looks


def _enough(part: AuditedRows, freshness: Freshness) -> tuple[AuditedRows | None, str]:
    """The fresh rows, or why they cannot be probed."""
    if freshness.unclear:
        return None, UNCLEAR
    new = part if freshness.fresh.all() else part.take(freshness.fresh)
    if not len(new):
        return None, "all test rows are rows the eraser was fitted on"
    if len(new) < FEWEST:
        return None, f"only {len(new)} of the test rows are fresh, too few to probe"
    if why := too_few(new):
        return None, f"{len(new):,} of the test rows are fresh, but {why}"
    return new, ""
