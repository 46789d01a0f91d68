"""The end of the page: method, parameters, data, versions, and what was not shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from expunge.number_text import count, number, percent
from expunge.report.parts import Block, Details, Facts, Items, Section, Table, cell
from expunge.report.values import clip

__all__ = ["data_section", "limits_section", "method_section", "title_of"]

Audit = Mapping[str, Any]
LABELS = 100  # rows of a table of labels
NOTES = (
    "Linear predictors only. What is removed is what a linear predictor can read. Other predictors "
    "may read the rest.",
    "These data only. Measure again where the vectors will be used: on its data, with its measures "
    "of fairness, in its whole application.",
    "Binary labels are a simplification. Gender, for one, is not binary; two classes of it are a "
    "choice made by whoever labelled the data.",
    "One step, not a solution. Bias shows in many ways, some of them subtle. Expect that other "
    "forms of it remain in the vectors.",
)


def title_of(audit: Audit) -> tuple[str, str]:
    """The title of the page and the line below it.

    Parameters
    ----------
    audit : mapping
        Of `Audit.to_dict`.

    Returns
    -------
    (str, str)
    """
    erasure, data, concept = audit["erasure"], audit["data"], audit["concept"]
    labels = [clip(name, 30) for name in concept["labels"]]
    if concept["kind"] == "continuous":
        subject = "a number" if len(labels) < 2 else f"{len(labels)} numbers"
    else:
        subject = " / ".join(labels[:4]) + (f" / {len(labels) - 4} more" if len(labels) > 4 else "")
    made = erasure["method"] or erasure["type"]
    rank = "" if erasure["rank"] is None else f", {_directions(erasure)} removed"
    rows = f"{count(data['n_train'])} training rows" if data["n_train"] else "No rows of the fit"
    if data["n_test"]:
        rows += f", {count(data['n_test'])} test rows of which {count(data['n_fresh'])} are fresh"
    return f"Erasure audit: {subject}", f"{clip(made)}{rank}. {rows}."


def _directions(erasure: Mapping[str, Any]) -> str:
    rank = erasure["rank"]
    return f"{count(rank)} of {count(erasure['n_features'])} directions"


def method_section(audit: Audit) -> Section:
    """What was audited, what made it, and how it was measured."""
    erasure = audit["erasure"]
    facts = [("Audited", str(erasure["type"]))]
    for name, key in (("Method", "method"), ("Solver", "solver")):
        if erasure[key] is not None:
            facts.append((name, clip(erasure[key])))
    if erasure["rank"] is not None:
        facts.append(("Rank", f"{_directions(erasure)} removed"))
    if erasure["orthogonal"] is not None:
        kind = "orthogonal projection" if erasure["orthogonal"] else "oblique (least-squares) map"
        facts.append(("Kind of map", kind))
    if erasure["needs_concept"]:
        facts.append(("Applied with", "the concept of every row"))
    if erasure["n_fitted"] is not None:
        pool = erasure.get("n_unlabelled")
        helped = f", and {count(pool)} without labels" if pool else ""
        facts.append(("Rows of the fit", count(erasure["n_fitted"]) + helped))
    content: list[Block] = [Facts(facts)]
    if erasure["parameters"]:
        content.append(Section("Parameters", [_parameters(erasure["parameters"])]))
    content.append(_settings(audit["settings"]))
    return Section("Method", content)


def _parameters(parameters: Mapping[str, Any]) -> Table:
    rows = [[clip(name), clip(_text(value), 120)] for name, value in parameters.items()]
    return Table(["parameter", "value"], rows, "Parameters of the method, as fitted.")


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _settings(settings: Mapping[str, Any]) -> Section:
    pairs = [
        ("Confidence of intervals", percent(settings["confidence"], 0)),
        ("Least excess over chance that matters", f"{settings['leak']:g}"),
    ]
    for key, name in (("random_state", "Random state"), ("seed", "Seed")):
        if settings.get(key) is not None:
            pairs.append((name, str(settings[key])))
    content: list[Block] = [Facts(pairs)]
    if settings.get("probes"):
        content.append(Details("Probes", [Items(settings["probes"])]))
    if settings.get("sizes"):
        rows = [[name.replace("_", " "), value] for name, value in settings["sizes"].items()]
        table = Table(["setting", "rows"], rows, "Most rows that probes look at, and the folds.")
        content.append(Details("Most rows used", [table]))
    return Section("How it was measured", content)


def data_section(audit: Audit) -> Section:
    """The rows, their labels, their fingerprint, and the versions of the software."""
    data, erasure = audit["data"], audit["erasure"]
    fitted = "none" if not data["n_train"] else f"{count(data['n_train'])} rows"
    facts = [("Training rows", fitted), ("Columns", count(data["n_features"]))]
    if data["n_test"]:
        facts += [
            ("Test rows", count(data["n_test"])),
            ("of these fresh", count(data["n_fresh"])),
        ]
        for key, name in (
            ("n_in_train", "of these among the training rows"),
            ("n_known", "of these known from the fit"),
            ("n_undecided", "of these perhaps seen"),
            ("n_repeats", "fresh rows with the numbers of a row of the fit, by chance"),
        ):
            if data.get(key):
                facts.append((name, count(data[key])))
    if data.get("share_of_fit") is not None:
        facts.append(("Training rows that the eraser saw", percent(data["share_of_fit"], 0)))
    print_ = erasure["fingerprint"]
    if print_ is not None:
        facts.append(("Fingerprint of the fit", f"{print_['digest']}, {count(print_['n'])} rows"))
    content: list[Block] = [Facts(facts)]
    if audit["concept"]["labels"]:
        content.append(_labels(audit["concept"]))
    content.append(_versions(audit))
    return Section("Data and versions", content)


def _labels(concept: Mapping[str, Any]) -> Table:
    """Shares of the labels, or means of the numbers."""
    numbers = concept["kind"] == "continuous"

    def shown(value: float) -> Any:
        return cell(number(value) if numbers else percent(value), value)

    named = {"training rows": concept["train_means"], "test rows": concept["test_means"]}
    heads = [head for head, means in named.items() if means]
    columns = [named[head] for head in heads]
    rows = [
        [clip(name), *(shown(means[i]) for means in columns)]
        for i, name in enumerate(concept["labels"][:LABELS])
    ]
    what = (
        "Mean of each number of the concept." if numbers else "Share of the rows with each label."
    )
    more = len(concept["labels"]) - LABELS
    return Table(
        ["column" if numbers else "label", *heads],
        rows,
        what + (f" {more} more are not listed." if more > 0 else ""),
    )


def _versions(audit: Audit) -> Table:
    audited, fitted = audit["versions"], audit["erasure"]["versions"] or {}
    names = list(dict.fromkeys([*audited, *fitted]))
    rows = [[clip(n), clip(audited.get(n, "–")), clip(fitted.get(n, "–"))] for n in names]
    return Table(["software", "of the audit", "of the fit"], rows, "Versions of the software.")


def limits_section(audit: Audit) -> Section:
    """What must not be read into the page."""
    content: list[Block] = [Items(audit["limits"])] if audit["limits"] else []
    content.append(Section("Of every audit of this kind", [Items(NOTES)]))
    return Section("What was not shown", content)
