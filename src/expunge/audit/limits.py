"""What an audit did not show, and what to know about its rows."""

from __future__ import annotations

from expunge.audit.fresh import Freshness
from expunge.audit.given import Given
from expunge.audit.probing import Sizes
from expunge.audit.verdict import Verdict

__all__ = ["limits_of", "notes_of"]


def limits_of(given: Given, verdict: Verdict) -> list[str]:
    """What must not be read into the result.

    Parameters
    ----------
    given : Given
    verdict : Verdict

    Returns
    -------
    list of str
    """
    limits = [
        "A probe that fails proves nothing about probes that were not tried. Only the certificate "
        "speaks of all linear predictors, and only on its own rows.",
        "The numbers hold for rows like these. Rows from elsewhere may differ.",
    ]
    if verdict.nonlinear == "found":
        limits.append(
            "The concept is hidden from linear predictors at best: the non-linear probes above "
            "read it from the erased rows."
        )
    if given.train.concept.kind == "classes" and given.train.concept.width == 2:
        limits.append(
            "Two classes are a simplification made by the labels. What they leave out is neither "
            "erased nor measured."
        )
    else:
        limits.append("What the labels leave out is neither erased nor measured.")
    limits.append(
        "Other columns, other files and the task itself may still give the concept away; erased "
        "vectors do not make a decision fair."
    )
    return limits


def notes_of(
    given: Given, freshness: Freshness | None, share: float | None, sizes: Sizes
) -> list[str]:
    """What to know about the rows.

    Parameters
    ----------
    given : Given
    freshness : Freshness or None
    share : float or None
        Share of the training rows that the erasure was fitted on.
    sizes : Sizes

    Returns
    -------
    list of str
    """
    notes = []
    if getattr(given.subject, "needs_concept", False):
        notes.append("This erasure was told the concept of every row, the test rows included.")
    if freshness is not None and not freshness.fingerprint:
        notes.append(
            "What was audited has no fingerprint of its fit: test rows count as fresh if they are "
            "not among the training rows."
        )
    if freshness is not None and (seen := len(freshness.fresh) - int(freshness.fresh.sum())):
        notes.append(
            f"{seen:,} test rows were left out: {freshness.n_in_train:,} are among the training "
            f"rows, {freshness.n_known:,} are known from the fit, {freshness.n_undecided:,} may be."
        )
    if share is not None and share < 1:
        notes.append(
            f"About {share:.0%} of the training rows belong to the fit: the protocol of same rows "
            "is meant for exactly the rows of the fit."
        )
    if len(given.train) > sizes.linear_train:
        notes.append(
            f"Linear probes learn from {sizes.linear_train:,} of {len(given.train):,} rows of the "
            "fit; on a part of them even an exact eraser is not at chance by construction."
        )
    return notes
