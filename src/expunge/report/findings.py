"""The sections after the probes: picture, words, damage, fairness, spectrum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from expunge.number_text import count, number, percent, score, signed
from expunge.report.line_figures import cluster_figure, gap_figure, spectrum_figure
from expunge.report.parts import Block, Cell, Details, Facts, Items, Section, Table, cell
from expunge.report.scatter_figure import along_figure, scatter_figure
from expunge.report.values import clip, scored

__all__ = [
    "damage_section",
    "fairness_section",
    "picture_section",
    "spectrum_section",
    "words_section",
]

Audit = Mapping[str, Any]
STAGES = ("before", "after")
ROWS = 300  # of a table
GROUPS = 12  # to choose from in a figure
FEW = 12  # rates left out that are named


def picture_section(audit: Audit) -> Section | None:
    """The rows in two dimensions, and whether clusters follow the concept.

    Parameters
    ----------
    audit : mapping
        Of `Audit.to_dict`.

    Returns
    -------
    Section or None
    """
    pca, content = audit["pca"], list[Block]()
    if pca is not None:
        numeric = audit["concept"]["kind"] == "continuous"
        content.append(scatter_figure(pca, numeric=numeric))
        along = along_figure(pca, numeric=numeric)
        content += [] if along is None else [along]
    if audit["v_measure"] is not None:
        content.append(Section("Clusters", [cluster_figure(audit["v_measure"])]))
    return Section("Before and after", content) if content else None


def words_section(audit: Audit) -> Section | None:
    """Neighbours, association tests and agreement with people."""
    words, content = audit["association"], list[Block]()
    if words is None:
        return None
    if words["neighbours"]:
        content.append(_neighbours(words))
    if words["weat"]:
        content.append(Section("Association tests", [_weat(words["weat"])]))
    if words.get("skipped"):
        content.append(Section("Not run for want of words", [_skipped(words["skipped"])]))
    if words["similarity"] is not None:
        content.append(Section("Agreement with people", [_similarity(words["similarity"])]))
    return Section("Words", content) if content else None


def _neighbours(words: Mapping[str, Any]) -> Table:
    rows = []
    for found in words["neighbours"][:ROWS]:
        known = set(found["before"])
        pieces: list[tuple[str, bool]] = []
        for word in found["after"]:
            pieces += [(", ", False)] if pieces else []
            pieces.append((clip(word), word not in known))
        before = ", ".join(clip(word) for word in found["before"])
        kept = cell(percent(found["kept"], 0), found["kept"])
        rows.append([clip(found["word"]), before, Cell(tuple(pieces)), kept])
    return Table(
        ["word", "nearest before", "nearest after", "kept"],
        rows,
        f"Nearest words by cosine among {count(words['n_words'])}, the nearest first. Underlined: "
        f"not among the nearest before.{_cut(words['neighbours'])}",
        search="Search words",
    )


def _cut(rows: Sequence[Any]) -> str:
    """What a caption says of rows that are not shown."""
    return f" The first {ROWS} of {count(len(rows))}." if len(rows) > ROWS else ""


def _weat(tests: list[Mapping[str, Any]]) -> Table:
    rows = []
    for test in tests:
        before, after = test["before"], test["after"]
        sizes = [
            cell(None) if found["effect_size"] is None else _signed(found["effect_size"])
            for found in (before, after)
        ]
        targets = " and ".join(count(n) for n in before["n_targets"])
        attributes = " and ".join(count(n) for n in before["n_attributes"])
        chances = [_p_value(found) for found in (before, after)]
        rows.append([test["name"], *sizes, *chances, f"{targets}; {attributes}"])
    return Table(
        ["test", "effect before", "effect after", "p before", "p after", "words"],
        rows,
        "Word embedding association tests: effect size d (0: no association; the sign says which "
        "set of words leans which way) and one-sided p-value of a permutation test. Words: in "
        "the two target sets; in the two attribute sets.",
    )


def _skipped(tests: list[Mapping[str, Any]]) -> Items:
    """Tests that could not be run, why, and the words they lack."""
    texts = []
    for test in tests:
        missing = ", ".join(clip(word, 30) for word in test["missing"][:20])
        more = f" and {len(test['missing']) - 20} more" if len(test["missing"]) > 20 else ""
        texts.append(f"{test['name']}: {test['reason']}{f' ({missing}{more})' if missing else ''}.")
    return Items(texts)


def _signed(value: float) -> Cell:
    return cell(signed(value, 2), value)


def _p_value(found: Mapping[str, Any]) -> Cell:
    value = found["p_value"]
    return cell("< 0.0001" if value < 1e-4 else f"{value:.4f}", value)


def _similarity(found: Mapping[str, Any]) -> Table:
    rows = [
        [stage, *(_signed3(found[stage][key]) for key in ("spearman", "pearson"))]
        for stage in STAGES
    ]
    used = found["before"]
    return Table(
        ["vectors", "Spearman", "Pearson"],
        rows,
        f"Correlation of cosines with the judgements of people in {found['name']}; "
        f"{count(used['n_used'])} of {count(used['n_pairs'])} pairs have both words.",
    )


def _signed3(value: float | None) -> Cell:
    return cell(None) if value is None else cell(score(value, "r2"), value)


def damage_section(audit: Audit) -> Section | None:
    """What the rows lost."""
    found = audit["damage"]
    if not found:
        return None
    pairs = list(_losses(found))
    content: list[Block] = [Facts(pairs)] if pairs else []
    if cosine := found.get("cosine"):
        content.append(
            Table(
                ["percentile of the rows", *(f"{q}%" for q in cosine)],
                [["cosine", *(cell(f"{value:.3f}", value) for value in cosine.values())]],
                "Cosine of a row with itself before; 1 is no change.",
            )
        )
    if overlap := found.get("neighbour_overlap"):
        content.append(
            Table(
                ["nearest rows", "share that stay among the nearest"],
                [[int(k), cell(percent(v), v)] for k, v in overlap.items()],
                f"Mean over {count(found.get('n_queries'))} rows, neighbours looked for among "
                f"{count(found.get('n_base'))}.",
            )
        )
    return Section("Damage", content) if content else None


def _losses(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The single numbers that are there."""
    n = found.get("n_rows")
    pairs = [("Rows measured", count(n))] if n is not None else []
    if "variance_kept" in found:
        pairs.append(("Variance kept", percent(found["variance_kept"], 2)))
    if "mean_squared_change" in found:
        text = number(found["mean_squared_change"], 4)
        if "relative_change" in found:
            text += f", {percent(found['relative_change'], 2)} of the total variance before"
        pairs.append(("Mean squared change of a row", text))
    if found.get("least_change") is not None:
        pairs.append(
            (
                "Least change that erases it from these very rows",
                f"{number(found['least_change'], 4)}, for an affine map fitted on them",
            )
        )
    if found.get("rank_correlation") is not None:
        pairs.append(
            (
                "Order of similarities kept",
                f"{found['rank_correlation']:.3f}, Spearman correlation of the cosines of "
                f"{count(found.get('n_pairs'))} pairs of rows",
            )
        )
    return pairs


def fairness_section(audit: Audit) -> Section | None:
    """A task's classifier by group, if a task was given."""
    found = audit["fairness"]
    if found is None:
        return None
    before, after = found["before"]["gaps"], found["after"]["gaps"]
    against = "each group against all others"
    if len(before["gap_groups"]) == 1:
        others = [clip(group) for group in before["groups"] if group not in before["gap_groups"]]
        against = f"“{clip(before['gap_groups'][0])}” minus “{'”, “'.join(others)}”"
    classes = count(len(before["classes"]))
    figure = gap_figure(
        before,
        after,
        f"Gap in the true positive rate of each class, {against}; 0 is equal treatment by this "
        f"measure. {classes} classes, {count(found['n_test'])} test rows."
        + (" The 40 classes with the largest gaps." if len(before["classes"]) > 40 else ""),
    )
    return Section(
        "Fairness",
        [
            f"A classifier ({found['classifier']}) learnt the task from {count(found['n_train'])} "
            f"rows and was tested on {count(found['n_test'])}"
            f"{_in_turns(found)}, before and after erasure.",
            _task(audit, found),
            *([] if len(before["gap_groups"]) > GROUPS else [figure]),
            Details("Rates of every class and group", [_rates(before, after)]),
            "Equal rates here are one of several measures that exclude each other. Fairness has to "
            "be measured where decisions are made.",
        ],
    )


def _task(audit: Audit, found: Mapping[str, Any]) -> Table:
    rows = []
    for stage in STAGES:
        part = found[stage]
        shares = [
            cell(scored(part[name], name), part[name]["value"])
            for name in ("accuracy", "balanced_accuracy")
        ]
        rms = cell(None)
        if part["rms"] is not None:
            limits = f"{part['rms_low']:.3f} to {part['rms_high']:.3f}"
            rms = cell(f"{part['rms']:.3f} ({limits})", part["rms"])
        rows.append([stage, *shares, rms, _signed3(part["gaps"]["correlation"])])
    heads = ["vectors", "accuracy", "balanced accuracy", "RMS gap", "correlation of gap and share"]
    about = (
        f"Who always answers the commonest class has an accuracy of {percent(found['majority'])}; "
        f"of balanced accuracy chance is {percent(found['chance'])}. RMS gap: root of the mean "
        f"squared gap over {found['after']['gaps']['n_gaps']} gaps; in "
        f"brackets {percent(audit['settings']['confidence'], 0)} intervals, with the sampling "
        "error that adds to every square taken off."
    )
    if all(found[stage]["gaps"]["correlation"] is None for stage in STAGES):  # of two classes
        heads, rows = heads[:-1], [row[:-1] for row in rows]
    else:
        about += " Correlation: over classes, of the gap with the group's share of the class."
    return Table(heads, rows, about + _left_out(found))


def _in_turns(found: Mapping[str, Any]) -> str:
    return f", in {found['folds']} turns" if found["folds"] > 1 else ""


def _left_out(found: Mapping[str, Any]) -> str:
    """Which rates have too few rows."""
    few = found["left_out"]
    if not few:
        return ""
    cells = [f"“{clip(name)}” in “{clip(group)}” ({rows})" for name, group, rows in few[:FEW]]
    more = f" and {len(few) - FEW} more" if len(few) > FEW else ""
    return (
        f" Left out, as rates of fewer than {found['least_rows']} rows: {', '.join(cells)}{more}."
    )


def _rates(before: Mapping[str, Any], after: Mapping[str, Any]) -> Table:
    rows = []
    for i, name in enumerate(before["classes"]):
        for j, group in enumerate(before["groups"]):
            rates = [
                cell(None)
                if gaps["tpr"][i][j] is None
                else cell(percent(gaps["tpr"][i][j]), gaps["tpr"][i][j])
                for gaps in (before, after)
            ]
            rows.append([clip(name), clip(group), before["counts"][i][j], *rates])
    return Table(
        ["class", "group", "rows", "rate before", "rate after"],
        rows[:ROWS],
        "True positive rate: share of the rows of a class and group that were classified rightly."
        + _cut(rows),
        search="Search classes and groups",
    )


def spectrum_section(audit: Audit) -> Section | None:
    """The relaxed solution, where a solver relaxed the problem."""
    if not audit["spectrum"]:
        return None
    return Section("Spectrum", [spectrum_figure(audit["spectrum"], audit["erasure"]["rank"])])
