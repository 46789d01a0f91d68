"""Small figures: clusters, the spectrum of a relaxation, gaps of a classifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from expunge.number_text import count
from expunge.report.parts import Figure, View, label
from expunge.report.values import clip

__all__ = ["cluster_figure", "gap_figure", "spectrum_figure"]

SHOWN = 40  # classes or eigenvalues
NEGLIGIBLE = 1e-3  # eigenvalues not worth a bar


def cluster_figure(v_measure: Mapping[str, Any]) -> Figure:
    """V-measure of clusters with the concept against the number of clusters.

    Parameters
    ----------
    v_measure : mapping
        That section of an audit.

    Returns
    -------
    Figure
    """
    data = []
    for stage, symbol in (("before", "circle-open"), ("after", "circle")):
        found = v_measure[stage]
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": stage,
                "x": [str(k) for k in found["clusters"]],
                "y": found["mean"],
                "error_y": {
                    "type": "data",
                    "array": found["std"],
                    "thickness": 1.2,
                    "width": 4,
                    "color": "var(--ink)",
                },
                "marker": {"symbol": symbol, "size": 9},
                "line": {"color": f"var(--{stage})", "width": 2},
                "hovertemplate": f"%{{x}} clusters, {stage}: <b>%{{y:.3f}}</b><extra></extra>",
            }
        )
    found = v_measure["after"]
    caption = (
        "Agreement of k-means clusters with the labels (V-measure: 1 where clusters and labels "
        f"coincide, 0 where they have nothing in common). {count(found['n_rows'])} rows; mean and "
        f"standard deviation of {found['runs']} starts."
    )
    layout = {
        "height": 320,
        "margin": {"t": 40, "b": 44},
        "xaxis": {"title": {"text": "clusters"}, "type": "category", "fixedrange": True},
        "yaxis": {"title": {"text": "V-measure"}, "range": [-0.04, 1.06], "fixedrange": True},
    }
    return Figure(data, layout, caption)


def spectrum_figure(spectrum: Sequence[float], rank: int | None) -> Figure:
    """Eigenvalues of the relaxed solution before it was rounded.

    Parameters
    ----------
    spectrum : sequence of float
    rank : int or None
        Directions kept by the rounding.

    Returns
    -------
    Figure
    """
    kept = rank or 0
    large = sum(value > NEGLIGIBLE for value in spectrum)
    values = sorted(spectrum, reverse=True)[: min(max(large, kept) + 4, SHOWN)]
    data = [
        {
            "type": "bar",
            "x": list(range(1, len(values) + 1)),
            "y": values,
            "marker": {
                "color": [f"var(--{'after' if i < kept else 'before'})" for i in range(len(values))]
            },
            "hovertemplate": "eigenvalue %{x}: <b>%{y:.4f}</b><extra></extra>",
            "showlegend": False,
        }
    ]
    more = f" The largest {len(values)} of {count(len(spectrum))} are shown."
    caption = (
        "Eigenvalues of the relaxed projector before rounding. The relaxation was tight if those "
        f"of the {kept} kept directions (dark) are 1 and the others 0.{more}"
    )
    layout = {
        "height": 280,
        "margin": {"t": 16, "b": 44},
        "xaxis": {"title": {"text": "eigenvalue, by size"}, "fixedrange": True, "tickformat": "d"},
        "yaxis": {"title": {"text": "value"}, "range": [0, 1.05], "fixedrange": True},
    }
    return Figure(data, layout, caption)


def gap_figure(before: Mapping[str, Any], after: Mapping[str, Any], caption: str) -> Figure:
    """Gap in the true positive rate of every class, before and after; a view for each group.

    Parameters
    ----------
    before, after : mapping
        The gaps of a classifier on the same rows.
    caption : str

    Returns
    -------
    Figure
    """
    groups = range(len(before["gap_groups"]))
    order = sorted(
        range(len(before["classes"])),
        key=lambda i: -max(abs(row[j] or 0.0) for row in [before["gaps"][i]] for j in groups),
    )[:SHOWN]
    names = [label(before["classes"][i], 32) for i in order]
    views = [
        View(
            clip(before["gap_groups"][j]),
            [_lines(before, after, order, j), *_dots(before, after, order, j)],
        )
        for j in groups
    ]
    styles = _gap_styles(names)
    layout = {
        "height": 110 + 26 * len(order),
        "margin": {"t": 40, "b": 44},
        "shapes": [
            {
                "type": "line",
                "x0": 0,
                "x1": 0,
                "yref": "paper",
                "y0": 0,
                "y1": 1,
                "line": {"color": "var(--chance)", "width": 1.5},
            }
        ],
        "xaxis": {
            "title": {"text": "gap in true positive rate"},
            "tickformat": "+.2f",
            "range": _around_zero([v for view in views for part in view.data for v in part["x"]]),
            "fixedrange": True,
        },
        "yaxis": {
            "tickvals": list(range(len(order))),
            "ticktext": names,
            "range": [len(order) - 0.4, -0.6],
            "fixedrange": True,
        },
    }
    data = [{**style, **first} for style, first in zip(styles, views[0].data, strict=True)]
    return Figure(data, layout, caption, views=views if len(views) > 1 else ())


def _around_zero(values: Sequence[float | None]) -> list[float]:
    """Limits that hold all values and zero, with some air."""
    known = [0.0, *(value for value in values if value is not None)]
    low, high = min(known), max(known)
    air = 0.06 * (high - low) or 0.1
    return [low - air, high + air]


def _dots(
    before: Mapping[str, Any], after: Mapping[str, Any], order: list[int], j: int
) -> list[dict[str, Any]]:
    rows = list(range(len(order)))
    return [{"x": [gaps["gaps"][i][j] for i in order], "y": rows} for gaps in (before, after)]


def _lines(
    before: Mapping[str, Any], after: Mapping[str, Any], order: list[int], j: int
) -> dict[str, Any]:
    """Both ends of each line, and a hole before the next."""
    x = [v for i in order for v in (before["gaps"][i][j], after["gaps"][i][j], None)]
    return {"x": x, "y": [v for row in range(len(order)) for v in (row, row, None)]}


def _gap_styles(names: list[str]) -> list[dict[str, Any]]:
    """The lines between before and after, and the markers at their ends."""
    styles: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines",
            "line": {"color": "var(--before)", "width": 2},
            "showlegend": False,
            "hoverinfo": "skip",
        }
    ]
    for stage, symbol in (("before", "circle-open"), ("after", "circle")):
        styles.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": stage,
                "marker": {
                    "color": "var(--after)" if stage == "after" else "var(--muted)",
                    "symbol": symbol,
                    "size": 10,
                    "line": {"width": 2},
                },
                "customdata": [[name] for name in names],
                "hovertemplate": f"%{{customdata[0]}}, {stage}: <b>%{{x:+.3f}}</b><extra></extra>",
            }
        )
    return styles
