"""Plain words for what was measured, and what was not shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from expunge.audit.families import FamilyResult, least_excess
from expunge.audit.fit import FitFacts
from expunge.audit.protocols import ProtocolResult
from expunge.audit.residue import Residue
from expunge.files.naming import listed
from expunge.number_text import in_words

__all__ = ["Verdict", "verdict_of", "warning_of_unreadable"]

IF_THE_SAME = "if this is the concept it was fitted for"

EXPLAINED = ", which sampling error of the fit explains"
MAYBE = ", by limits that sampling error of the fit may reach"
NOT_BEFORE = "They did not find it before the erasure either, which is then not tested."

Answer = Literal["at chance", "found", "cannot tell", "not shown"]


@dataclass(frozen=True)
class Verdict:
    """What the audit says in the end.

    Attributes
    ----------
    linear, nonlinear : {"at chance", "found", "cannot tell", "not shown"}
        From fresh rows. "not shown": there were none, or no such probe.
    explained : bool or None
        Where linear probes find the concept: whether sampling error of the fit explains as much;
        never for an eraser that is not exact. None where nothing was found or that cannot be told.
    excuse : str
        Why sampling error of the fit is no excuse, or why that is not known; empty where it may be
        one.
    headline : str
        One or two sentences.
    lines : tuple of str
        The reasons, one per line.
    condition : str
        On which sampling error of the fit explains what was found; empty where there is none.
    warnings : tuple of str
        Why the rows are less evidence than they look: copies, and groups that tell the concept.
    """

    linear: Answer
    nonlinear: Answer
    explained: bool | None
    excuse: str
    headline: str
    lines: tuple[str, ...]
    condition: str = ""
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {**vars(self), "lines": list(self.lines), "warnings": list(self.warnings)}


def verdict_of(
    same: ProtocolResult | None,
    fresh: ProtocolResult | None,
    residue: Residue | None,
    facts: FitFacts,
    *,
    leak: float,
    reason: str,
    beside: str = "",
    warnings: tuple[str, ...] = (),
) -> Verdict:
    """Judge what was measured.

    Parameters
    ----------
    same, fresh : ProtocolResult or None
    residue : Residue or None
    facts : FitFacts
        Whether there is an excuse.
    leak : float
        The least excess over chance that matters.
    reason : str
        Why there is no fresh result, if there is none.
    beside : str
        What one column alone tells.
    warnings : tuple of str
        About the rows.

    Returns
    -------
    Verdict
    """
    excuse = _excuse(facts)
    if fresh is None:
        return Verdict(
            "not shown",
            "not shown",
            None,
            excuse,
            f"Not shown to be erased: {reason}.",
            (
                "Pass rows that the eraser has not seen as X_test and y_test, with fresh=True if "
                "they share numbers with rows of the fit.",
            ),
            warnings=warnings,
        )
    linear, nonlinear = fresh.after.get("linear"), fresh.after.get("nonlinear")
    explained = _explained(linear, residue, facts)
    condition = "" if facts.sure or residue is None else IF_THE_SAME
    lines = []
    for name, protocol in (("rows of the fit", same), ("fresh rows", fresh)):
        results = () if protocol is None else protocol.after.values()
        lines += [f"{name}, {_sentence(result)}" for result in results]
    if residue is not None and linear is not None:
        lines.append(_residue_line(residue, linear) + (f", {condition}" if condition else ""))
    elif excuse and linear is not None:
        lines.append(excuse)
    found = linear is not None and linear.status == "found"
    why = excuse if found and facts.exact is False else ""
    said = [
        _claim("Linear probes", linear, leak, explained, why, condition, MAYBE if residue else ""),
        _claim("Non-linear probes", nonlinear, leak, None, ""),
        beside,
        NOT_BEFORE if _unreadable(fresh) else "",
    ]
    return Verdict(
        linear.status if linear else "not shown",
        nonlinear.status if nonlinear else "not shown",
        explained,
        excuse,
        " ".join(claim for claim in said if claim),
        tuple(lines),
        condition,
        warnings,
    )


def warning_of_unreadable(fresh: ProtocolResult) -> str:
    """What to say where no probe found the concept before the erasure; empty where one did.

    Parameters
    ----------
    fresh : ProtocolResult

    Returns
    -------
    str
    """
    if not _unreadable(fresh):
        return ""
    return (
        "No probe found the concept in the fresh rows before the erasure: that none finds it after "
        "shows nothing about the erasure. Are the labels those of these rows, in their order? Are "
        "the rows as they were before erasure?"
    )


def _unreadable(fresh: ProtocolResult) -> bool:
    results = [*fresh.before.values(), *fresh.after.values()]
    return bool(results) and all(result.status != "found" for result in results)


def _excuse(facts: FitFacts) -> str:
    if facts.exact is False:
        return f"sampling error of the fit is no excuse: {facts.why}"
    return f"what sampling error of the fit leaves is not known: {facts.why}" if facts.why else ""


def _explained(
    linear: FamilyResult | None, residue: Residue | None, facts: FitFacts
) -> bool | None:
    """Whether the residue may well be as large as what was found; None between yes and no."""
    if linear is None or linear.status != "found":
        return None
    if facts.exact is False:
        return False
    if residue is None:
        return None
    found = [(linear.strongest, residue.high(linear.statistic))]
    if linear.part is not None:
        found.append((linear.part.limits, residue.parts_high.get(linear.part.column, -np.inf)))
    if all(limits.value <= high for limits, high in found):
        return True
    return None if all(limits.low <= high for limits, high in found) else False


def _claim(
    title: str,
    result: FamilyResult | None,
    leak: float,
    explained: bool | None,
    excuse: str,
    condition: str = "",
    doubt: str = "",
) -> str:
    """The verdict on a family of probes in one sentence."""
    if result is None:
        return ""
    if result.status == "at chance":
        return f"{title}: at chance."
    value = in_words(result.statistic, result.strongest.value)
    if result.part is not None:
        worst, label = in_words(result.statistic, result.part.limits.value), result.part.label
        if result.part.against_rest:  # by a measure of two, beside one of all classes
            of_two, of_all = (
                in_words(result.statistic, chance) for chance in (result.part.chance, result.chance)
            )
            value = (
                f"{worst} for {label!r} against the rest (chance {of_two}), {value} for all "
                f"classes (chance {of_all})"
            )
        else:
            value = f"{worst} of {label!r}, {value} on average"
    if result.status == "cannot tell" and result.untaught:
        return (
            f"{title}: cannot tell; all rows of {listed(result.untaught)} belong together, or to "
            "groups that could not be parted, so no probe tested on them has learnt from others."
        )
    if result.status == "cannot tell" and result.strongest.high < result.chance > 0:
        chance = in_words(result.statistic, result.chance)
        return (
            f"{title}: cannot tell; they reach {value}, below chance ({chance}) by more than "
            "sampling explains. Turned round, such scores tell the concept."
        )
    if result.status == "cannot tell":
        least = least_excess(result.chance, leak)
        return (
            f"{title}: cannot tell; they reach {value}, and {result.n_test:,} fresh rows are too "
            f"few to exclude an excess of {in_words(result.statistic, least)}."
        )
    why = {True: EXPLAINED, None: doubt, False: ""}[explained]
    why += f", {condition}" if why and condition else ""
    why = f"; {excuse}" if excuse else why
    return f"{title}: still find it, {value}{why}."


def _sentence(result: FamilyResult) -> str:
    found = result.strongest
    value, low, high, chance = (
        in_words(result.statistic, x) for x in (found.value, found.low, found.high, result.chance)
    )
    title = "linear" if result.family == "linear" else "non-linear"
    most = ""
    if result.part is not None:
        ends = (result.part.limits.value, result.part.limits.low, result.part.limits.high)
        worst, least, top = (in_words(result.statistic, x) for x in ends)
        most = f"; most of all {result.part.label!r}: {worst}, between {least} and {top}"
        if result.part.against_rest:
            two = in_words(result.statistic, result.part.chance)
            most = f"; {result.part.label!r} against the rest: {worst}, between {least} and {top}"
            most += f", chance is {two}"
    return (
        f"{title} probes: {result.status} ({result.worst}: {value}, between {low} and {high}; "
        f"chance is {chance}{most}; {result.n_test:,} rows)"
    )


def _residue_line(residue: Residue, linear: FamilyResult) -> str:
    ceiling, here = (
        in_words(linear.statistic, x)
        for x in (residue.ceiling(linear.statistic), residue.here(linear.statistic))
    )
    return (
        f"sampling error of the fit alone ({residue.n:,} rows) leaves {here} on fresh rows for a "
        f"probe that learns from {residue.probe_rows:,} of them, {ceiling} for one with unlimited "
        "rows"
    )
