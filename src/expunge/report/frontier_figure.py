"""What erasers of growing cost leave to the strongest probe, where that was traced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from expunge.erasers import ERASERS
from expunge.number_text import count, percent, score
from expunge.report.parts import Figure, Section, Table, View, cell, label
from expunge.report.probe_figure import STATISTICS
from expunge.report.values import clip, scored

__all__ = ["fold_advice", "frontier_section"]

FOLD = "FoldEraser"
TITLES = {
    "change": "change: mean squared move / variance",
    "neighbours": "share of the ten nearest neighbours kept",
}
KINDS = {False: ("projections", "circle", "before"), True: ("folds", "diamond", "after")}


def frontier_section(audit: Mapping[str, Any]) -> Section | None:
    """The strongest probe against change, and against neighbours kept.

    Parameters
    ----------
    audit : mapping
        Of `Audit.to_dict`.

    Returns
    -------
    Section or None
        None where no frontier was passed.
    """
    found = audit.get("frontier")
    if found is None:
        return None
    text = (
        "No map that keeps all of a row can erase. Every eraser pays for what it takes away, and "
        f"this is the price here. Erasers were fitted on {count(found['n_fit'])} rows; the "
        f"strongest probe was chosen on {count(found['n_probe'])} others, on which it learnt, and "
        f"tested on {count(found['n_test'])} more. They are not the erasure audited above."
    )
    return Section("What erasing more would cost", [text, _figure(found), _table(found)])


def fold_advice(audit: Mapping[str, Any]) -> str:
    """What a fold would do about what non-linear probes find; empty where there is no saying.

    Parameters
    ----------
    audit : mapping
        Of `Audit.to_dict`.

    Returns
    -------
    str
        With the numbers of the frontier, where there is one with a fold in it.
    """
    found = audit.get("frontier")
    folds = [] if found is None else [p for p in found["points"] if p["fold"]]
    if found is not None and folds:
        best = min(folds, key=lambda point: point["probe"]["value"])
        same = next((p for p in found["points"] if p["name"] == "LEACE"), found["points"][0])
        return f"{_said(best, found, 'A fold')}; {_said(same, found, '')}. "
    is_fold = audit["erasure"]["method"] == FOLD
    if FOLD not in ERASERS or is_fold or audit["concept"]["kind"] != "classes":
        return ""
    return (
        "A projection cannot take more away without removing much of the rows. A fold can: see "
        "FoldEraser, and ex.frontier for what it would leave and cost here. "
    )


def _said(point: Mapping[str, Any], found: Mapping[str, Any], kind: str) -> str:
    name = f"{kind}, {clip(point['name'])}," if kind else clip(point["name"])
    return (
        f"{name} leaves {scored(point['probe'], found['statistic'])} to the strongest probe on "
        f"new rows, at a change of {percent(point['change'])} of the variance"
    )


def _figure(found: Mapping[str, Any]) -> Figure:
    statistic = found["statistic"]
    traces, other = [], []
    for fold, (name, symbol, color) in KINDS.items():
        some = [point for point in found["points"] if bool(point["fold"]) == fold]
        if not some:
            continue
        probes = [point["probe"] for point in some]
        traces.append(
            {
                "type": "scatter",
                "mode": "markers+text",
                "name": name,
                "x": [point["change"] for point in some],
                "y": [probe["value"] for probe in probes],
                "error_y": {
                    "type": "data",
                    "array": [probe["high"] - probe["value"] for probe in probes],
                    "arrayminus": [probe["value"] - probe["low"] for probe in probes],
                    "thickness": 1.2,
                    "width": 4,
                    "color": "var(--ink)",
                },
                "text": [label(point["name"], 28) for point in some],
                "textposition": "top right",
                "textfont": {"size": 10, "color": "var(--muted)"},
                "customdata": [[label(p["name"]), label(p["probe"]["name"])] for p in some],
                "marker": {"symbol": symbol, "size": 9, "color": f"var(--{color})"},
                "hovertemplate": "%{customdata[0]}: <b>%{y:.3f}</b> by %{customdata[1]}<br>"
                "%{x:.3f}<extra></extra>",
            }
        )
        other.append({"x": [point["neighbours"] for point in some]})
    layout = {
        "height": 440,
        "margin": {"t": 40, "b": 48},
        "xaxis": {"title": {"text": TITLES["change"]}, "fixedrange": True, "rangemode": "tozero"},
        "yaxis": {"title": {"text": STATISTICS[statistic]}, "fixedrange": True},
        "shapes": [
            {
                "type": "line",
                "xref": "paper",
                "x0": 0,
                "x1": 1,
                "y0": found["chance"],
                "y1": found["chance"],
                "line": {"color": "var(--chance)", "width": 1.5},
            }
        ],
    }
    caption = (
        f"{STATISTICS[statistic].capitalize()} of the strongest probe on {count(found['n_test'])} "
        f"new rows, with {percent(found['confidence'], 0)} intervals, against what the eraser "
        f"changes; the line is chance, {score(found['chance'], statistic)}."
    )
    views = [
        View("Against change", [{"x": trace["x"]} for trace in traces]),
        View("Against neighbours", other, {"xaxis.title.text": TITLES["neighbours"]}),
    ]
    return Figure(traces, layout, caption, f"Points of a frontier. {caption}", views)


def _table(found: Mapping[str, Any]) -> Table:
    statistic, efficient = found["statistic"], set(found["efficient"])
    rows = [
        [
            clip(point["name"]),
            cell(scored(point["probe"], statistic), point["probe"]["value"]),
            clip(point["probe"]["name"]),
            cell(percent(point["change"]), point["change"]),
            cell(percent(point["neighbours"]), point["neighbours"]),
            "no" if point["name"] in efficient else "yes",
        ]
        for point in found["points"]
    ]
    return Table(
        ["eraser", "strongest probe", "which", "change", "neighbours kept", "beaten"],
        rows,
        f"{STATISTICS[statistic].capitalize()}, with {percent(found['confidence'], 0)} intervals. "
        "Change: mean squared move of a row, as a share of the total variance. Beaten: another "
        "both leaves less to the probes and changes less.",
    )
