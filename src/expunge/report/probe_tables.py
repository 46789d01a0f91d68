"""What probes find, under the two protocols that must not be confused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from expunge.number_text import count, percent, score
from expunge.report.parts import Block, Cell, Details, Items, Section, Table, Tone, cell
from expunge.report.probe_figure import FAMILIES, STATISTICS, Expected, probe_figure
from expunge.report.values import scored

__all__ = ["probe_section"]

Audit = Mapping[str, Any]
TITLES = {
    "fresh_rows": "Fresh rows",
    "same_rows": "Rows of the fit",
    "training_rows": "These rows only",
}
BADGES: dict[str, tuple[str, Tone]] = {
    "fresh_rows": ("the headline", "good"),
    "same_rows": ("not evidence about new rows", "plain"),
    "training_rows": ("shows nothing about new rows", "bad"),
}
MEANINGS = {
    "fresh_rows": "Each probe learns from rows that the eraser has never seen and is tested on "
    "others of them, in turns. This is what somebody with new data could find.",
    "same_rows": "Each probe learns from the rows the eraser was fitted on and is tested on new "
    "rows. An exact eraser is at chance here by construction, so a good result checks the "
    "arithmetic and no more.",
    "training_rows": "There were no fresh rows. Each probe learns from some of these rows and is "
    "tested on others of them. Nothing may be called erased from this.",
}
COLUMNS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "auc": "AUC",
    "bits": "bits per row",
    "r2": "R²",
}


WORSE = {
    "balanced_accuracy": "wrong more often than chance",
    "r2": "worse than a constant answer",
}


def probe_section(audit: Audit) -> Section:
    """A table of both protocols, then each with its bars and numbers.

    Parameters
    ----------
    audit : mapping
        Of `Audit.to_dict`.

    Returns
    -------
    Section
    """
    there = [name for name in TITLES if audit[name] is not None]
    content: list[Block] = []
    if len(there) > 1:
        content.append("Two questions, two protocols. Their answers differ and must not be mixed.")
    content.append(_summary(audit, there))
    if audit["data"].get("notes"):
        content.append(Items(audit["data"]["notes"]))
    content += [_protocol(audit, name) for name in there]
    return Section("What probes find", content)


def _summary(audit: Audit, there: list[str]) -> Table:
    """The strongest probe of each family under each protocol."""
    rows: list[list[Any]] = []
    for name in there:
        for family, title in FAMILIES.items():
            after = audit[name]["after"].get(family)
            if after is None:
                continue
            before, statistic = audit[name]["before"].get(family), after["statistic"]
            rows.append(
                [
                    TITLES[name],
                    title.lower(),
                    None if before is None else _shown(before["strongest"]["value"], statistic),
                    cell(scored(after["strongest"], statistic), after["strongest"]["value"]),
                    _expectation(audit, name, family, statistic),
                    "not shown" if name == "training_rows" else after["status"],
                ]
            )
    statistic = next(iter(audit[there[0]]["after"].values()))["statistic"]
    chance = next(iter(audit[there[0]]["after"].values()))["chance"]
    return Table(
        ["probes learn from", "probes", "before", "after", "sampling error alone", "verdict"],
        rows,
        f"The strongest probe of each family, {STATISTICS[statistic]}; chance is "
        f"{score(chance, statistic)}. In brackets: {_limits(audit)} limits, valid for all probes "
        "of the family at once. Sampling error alone: what an exact eraser would leave on fresh "
        "rows to a linear probe that learns from as many rows.",
    )


def _expectation(audit: Audit, name: str, family: str, statistic: str) -> Cell:
    if name != "fresh_rows" or family != "linear" or audit["residue"] is None:
        return cell(None)
    limit, _, here = Expected.of(audit["residue"], statistic)
    return _shown(limit if here is None else here, statistic)


def _shown(value: float | None, statistic: str) -> Cell:
    return cell(score(value, statistic), value)


def _limits(audit: Audit) -> str:
    return percent(audit["settings"]["confidence"], 0)


def _protocol(audit: Audit, name: str) -> Section:
    protocol, confidence = audit[name], audit["settings"]["confidence"]
    residue = audit["residue"] if name == "fresh_rows" else None
    badge, tone = BADGES[name]
    figure = probe_figure(protocol, residue, _caption(audit, name, residue), confidence)
    return Section(
        TITLES[name],
        [MEANINGS[name], figure, Details("The numbers of every probe", [_numbers(audit, name)])],
        badge,
        tone,
    )


def _caption(audit: Audit, name: str, residue: Mapping[str, Any] | None) -> str:
    after = audit[name]["after"]
    statistic = next(iter(after.values()))["statistic"]
    parts = [
        f"{TITLES[name]}: {STATISTICS[statistic]} of each probe, drawn from the chance line; a "
        f"probe to its left is {WORSE[statistic]}. "
        f"Whiskers: {_limits(audit)} intervals of each probe alone; diamonds: the strongest, with "
        "limits that hold for all probes of the family at once."
    ]
    parts += [_sizes(family, found) for family, found in after.items()]
    if residue is not None and "linear" in after:
        parts.append(_band(residue, statistic))
    return " ".join(parts)


def _band(residue: Mapping[str, Any], statistic: str) -> str:
    """What is drawn behind the linear probes."""
    limit, high, here = Expected.of(residue, statistic)
    text = (
        "Shaded: what the sampling error of the fit alone leaves a probe with unlimited rows, "
        f"{score(limit, statistic)} on average"
    )
    if high is not None:
        text += f" and more than {score(high, statistic)} in one fit of twenty"
    if here is not None:
        rows = count(residue["probe_rows"])
        text += f"; dotted: {score(here, statistic)}, for one that learns from {rows} rows"
    return f"{text}."


def _sizes(family: str, found: Mapping[str, Any]) -> str:
    learn, test = count(found["n_train"]), count(found["n_test"])
    if found["n_train"] < found["n_train_all"]:
        learn = f"{learn} (a sample of {count(found['n_train_all'])})"
    if found["n_test"] < found["n_test_all"]:
        test = f"{test} (a sample of {count(found['n_test_all'])})"
    turns = f", in {found['folds']} turns" if found["folds"] > 1 else ""
    return f"{FAMILIES[family]} learn from {learn} rows and are tested on {test}{turns}."


def _numbers(audit: Audit, name: str) -> Table:
    """Every measure of every probe, before and after."""
    protocol = audit[name]
    stages = [
        (s, f, found)
        for f in FAMILIES
        for s in ("before", "after")
        if (found := protocol[s].get(f)) is not None
    ]
    keys = [
        key for key in COLUMNS if any(key in p for _, _, found in stages for p in found["probes"])
    ]
    rows = []
    for stage, family, found in stages:
        for probe in found["probes"]:
            measures = [
                cell(scored(probe[key], key), probe[key]["value"]) if key in probe else None
                for key in keys
            ]
            rows.append([probe["name"], FAMILIES[family].split()[0].lower(), stage, *measures])
    return Table(
        ["probe", "family", "rows", *(COLUMNS[key] for key in keys)],
        rows,
        f"{TITLES[name]}: every probe, with {_limits(audit)} intervals of each alone. "
        "Bits per row: gain over answering with the class shares; below 0 a probe is worse.",
        search="Search probes",
    )
