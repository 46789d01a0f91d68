"""What an audit did not show, and what to know about its rows."""

from __future__ import annotations

import numpy as np

from expunge.audit.given import AuditedRows, Given
from expunge.audit.protocols import Sizes
from expunge.audit.roles import Roles
from expunge.audit.verdict import Verdict
from expunge.files.naming import listed

__all__ = ["limits_of", "notes_of"]


def limits_of(given: Given, verdict: Verdict) -> list[str]:
    """What must not be read into the result."""
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
    if given.first.concept.kind == "classes" and given.first.concept.width == 2:
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


def notes_of(given: Given, roles: Roles, sizes: Sizes) -> list[str]:
    """What to know about the rows."""
    notes = []
    if getattr(given.subject, "needs_concept", False):
        notes.append(
            "This erasure was told the concept of every row, the test rows included. It moves rows "
            "by their class: where numbers are whole or few, what is left behind the decimal point "
            "can give the class away."
        )
    if given.widened:
        notes.append("Rows of 16 bits were erased in 32 bits, as the fit saw them.")
    if roles.renamed:
        notes.append(
            "Rows passed as training rows were not in the fit, so they count as fresh. No probe "
            "could learn from the rows of the fit."
        )
    if roles.disguised == "fit":
        notes.append(
            "The fingerprint does not know the training rows, but the erasure fits them more "
            "closely than rows it has not seen: they are taken for rows of the fit in another form."
        )
    if roles.disguised == "unclear":
        notes.append(
            "Whether the training rows were in the fit cannot be told, so they were left out: no "
            "probe learns from them."
        )
    rare = _too_rare(given.first if roles.new is None else roles.new)
    return notes + rare + _on_freshness(roles) + _on_the_fit(given, roles, sizes)


def _too_rare(part: AuditedRows) -> list[str]:
    """Labels that one row has, or all but one: the probe that is to read it has not met it."""
    if part.concept.kind != "labels":
        return []
    having = part.concept.values.sum(axis=0)
    alone = np.flatnonzero((having == 1) | (having == len(part) - 1))
    if not alone.size:
        return []
    names = listed([str(part.concept.labels[j]) for j in alone])
    return [f"Nothing was measured of labels that a single row has, or lacks: {names}."]


def _on_freshness(roles: Roles) -> list[str]:
    """How fresh rows were told from others."""
    freshness, notes = roles.freshness, list[str]()
    if freshness is None:
        return notes
    if freshness.judged_by == "trust":
        return ["That these rows are fresh was taken on trust (fresh=True)."]
    if freshness.judged_by == "ids":
        notes.append("Rows were told apart by the ids that were passed, not by their values.")
    elif not freshness.fingerprint:
        notes.append(
            "What was audited has no fingerprint of its fit: test rows count as fresh if they are "
            "not among the training rows."
        )
    if freshness.n_repeats:
        notes.append(
            f"{freshness.n_repeats:,} of {len(freshness.fresh):,} test rows have the same numbers "
            f"as a row of the fit. Chance alone makes {freshness.repeats_expected:.0%} of rows "
            "like these repeat others, so they were kept as fresh. Pass ids to be sure."
        )
    seen = len(freshness.fresh) - int(freshness.fresh.sum())
    if seen and not freshness.unclear:
        reasons = [
            f"{count:,} {why}"
            for count, why in (
                (freshness.n_in_train, "are among the training rows"),
                (freshness.n_known, "are known from the fit"),
                (freshness.n_undecided, "may be rows of the fit"),
            )
            if count
        ]
        notes.append(f"{seen:,} test rows were left out: {', '.join(reasons)}.")
    return notes


def _on_the_fit(given: Given, roles: Roles, sizes: Sizes) -> list[str]:
    """How far the training rows are the rows of the fit."""
    notes, fit, n = list[str](), roles.fit, given.meta.get("n")
    if fit is None:
        return notes
    if roles.share is not None and roles.share < 1:
        notes.append(
            f"About {roles.share:.0%} of the training rows belong to the fit: the protocol of same "
            "rows is meant for exactly the rows of the fit."
        )
    elif n is not None and len(fit) != n:
        notes.append(
            f"The fit had {n:,} rows, not these {len(fit):,}: the protocol of same rows is meant "
            "for exactly the rows of the fit."
        )
    if len(fit) > sizes.linear_train:
        notes.append(
            f"Linear probes learn from {sizes.linear_train:,} of {len(fit):,} rows of the "
            "fit; on a part of them even an exact eraser is not at chance by construction."
        )
    return notes
