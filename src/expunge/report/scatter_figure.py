"""Pictures of the rows: a scatter plot before and after, and the direction that moved most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from expunge.number_text import count, percent
from expunge.number_text import number as number_text
from expunge.report.parts import Figure, View, label

__all__ = ["along_figure", "scatter_figure"]

COLOURS = 7  # labels with a colour of their own; the rest share one
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "star", "x", "circle-open")
POINTS = 2000
BINS = 36
SLICES = 4  # of the points of a label
FILLED = 3  # curves that may overlap

Array = NDArray[np.float64]
Group = tuple[str, NDArray[np.intp], int]


class Kind(NamedTuple):
    """A state of the scatter plot, and the keys of the audit it is made of."""

    name: str
    key: str
    explained: str
    axes: str
    stage: str


VIEWS = (
    Kind("Before", "before", "explained_before", "before", "before"),
    Kind("After", "after_shared", "explained_shared", "before", "after"),
    Kind("After, on its own axes", "after", "explained_after", "after", "after"),
)


def scatter_figure(pca: Mapping[str, Any], *, numeric: bool) -> Figure:
    """Rows on principal axes; a toggle moves them from before to after.

    Parameters
    ----------
    pca : mapping
        That section of an audit.
    numeric : bool
        Whether labels are numbers, to be shown on a colour scale.

    Returns
    -------
    Figure
    """
    pca = _at_most(pca, POINTS)
    shown, names = len(pca["rows"]), pca["names"]
    points = [label(name) for name in names] if names else [f"row {r}" for r in pca["rows"]]
    groups = _interleaved(_groups(pca["labels"], numeric))
    coordinates = {view.key: np.asarray(pca[view.key], dtype=float) for view in VIEWS}
    named: set[int] = set()
    traces = []
    for group in groups:
        first = not numeric and group[2] not in named
        traces.append(_trace(group, points, pca["labels"], numeric) | {"showlegend": first})
        named.add(group[2])
    views = []
    for view in VIEWS:
        xy = coordinates[view.key]
        moved = [{"x": xy[rows, 0].tolist(), "y": xy[rows, 1].tolist()} for _, rows, _ in groups]
        titles = {
            f"{side}axis.title.text": f"principal axis {place + 1} of the rows {view.axes}"
            f"<br>({percent(pca[view.explained][place])} of the variance {view.stage})"
            for place, side in enumerate("xy")
        }
        views.append(View(view.name, moved, titles))
    return Figure(
        data=[{**trace, **first} for trace, first in zip(traces, views[0].data, strict=True)],
        layout=_layout(np.vstack(list(coordinates.values())), numeric),
        caption=_caption(pca, shown, named=bool(names)),
        alt=f"Scatter plot of {count(shown)} rows on two principal axes, coloured by label.",
        views=views,
        find="Find a word" if names else "Find a row",
    )


def along_figure(pca: Mapping[str, Any], *, numeric: bool) -> Figure | None:
    """How each label spreads along the direction in which rows moved most, before and after.

    Returns
    -------
    Figure or None
        None for labels that are numbers.
    """
    pca = _at_most(pca, POINTS)
    along = np.asarray(pca["along"], dtype=float)
    if numeric or not along.size:
        return None
    low, high = float(along.min()), float(along.max())
    if high == low:
        return None
    edges = np.linspace(low, high, BINS + 1)
    data, groups = [], _groups(pca["labels"], numeric)
    for place, stage in enumerate(("before", "after")):
        axis = "" if place == 0 else "2"
        for name, rows, number in groups:
            heights, _ = np.histogram(along[rows, place], edges)
            data.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "x": [edges[0], *((edges[1:] + edges[:-1]) / 2), edges[-1]],
                    "y": [0.0, *(heights / len(rows)), 0.0],
                    "xaxis": "x",
                    "yaxis": f"y{axis}",
                    "name": label(name),
                    "legendgroup": str(number),
                    "showlegend": place == 0,
                    "line": {"shape": "hvh", "width": 1.6, "color": f"var(--c{number})"},
                    "fill": "tozeroy" if len(groups) <= FILLED else "none",
                    "hovertemplate": f"%{{fullData.name}}, {stage}: %{{y:.1%}}<extra></extra>",
                }
            )
    share = {"tickformat": ".0%", "fixedrange": True, "rangemode": "tozero", "nticks": 4}
    layout = {
        "height": 360,
        "margin": {"t": 40, "b": 40},
        "xaxis": {
            "title": {"text": "position along the direction, from the mean before"},
            "anchor": "y2",
            "fixedrange": True,
        },
        "yaxis": {**share, "domain": [0.56, 1], "title": {"text": "before"}},
        "yaxis2": {**share, "domain": [0, 0.44], "title": {"text": "after"}},
    }
    caption = (
        "Rows along the one direction in which they moved most, in the unit of the vectors. "
        "Height: share of the rows of a label in a bin. "
        f"The same {count(len(along))} rows as above."
    )
    return Figure(data, layout, caption, f"Two histograms, before and after. {caption}")


def _at_most(pca: Mapping[str, Any], most: int) -> dict[str, Any]:
    """The same with evenly spaced points, where there are more."""
    keep = np.linspace(0, len(pca["rows"]) - 1, min(len(pca["rows"]), most)).astype(int)
    lists = ("rows", "labels", "names", "along", *(view.key for view in VIEWS))
    cut = {key: [pca[key][i] for i in keep] for key in lists if pca.get(key) is not None}
    return {**pca, "names": None, **cut}


def _groups(labels: Sequence[Any], numeric: bool) -> list[Group]:
    """(name, places, number of its colour) of each label; rare ones together at the end."""
    if numeric:
        return [("", np.arange(len(labels)), 0)]
    names = [str(name) for name in labels]
    common = [name for name, _ in sorted(Counter(names).items(), key=lambda pair: -pair[1])]
    own = sorted(common[: COLOURS if len(common) > COLOURS + 1 else COLOURS + 1])
    column = np.array(names, dtype=object)
    groups = [(name, np.flatnonzero(column == name), i) for i, name in enumerate(own)]
    if len(common) > len(own):
        rest = np.flatnonzero([name not in own for name in names])
        groups.append((f"{len(common) - len(own)} others", rest, COLOURS))
    return groups


def _interleaved(groups: list[Group]) -> list[Group]:
    """The groups in slices, in turns, so that no label covers all the others."""
    if len(groups) == 1:
        return groups
    return [
        (name, rows[part::SLICES], number)
        for part in range(SLICES)
        for name, rows, number in groups
        if len(rows) > part
    ]


def _trace(group: Group, points: list[str], labels: Sequence[Any], numeric: bool) -> dict[str, Any]:
    name, rows, number = group
    marker: dict[str, Any] = {
        "size": 6,
        "opacity": 0.65,
        "color": f"var(--c{number})",
        "symbol": SYMBOLS[number],
        "line": {"width": 0.5, "color": "var(--paper)"},
    }
    if numeric:
        marker["color"] = [float(labels[i]) for i in rows]
        marker.update(
            colorscale="Cividis", colorbar={"title": {"text": "concept"}, "thickness": 12}
        )
    return {
        "type": "scatter",
        "mode": "markers",
        "name": label(name),
        "customdata": [
            [points[i], number_text(labels[i]) if numeric else label(labels[i])] for i in rows
        ],
        "marker": marker,
        "hovertemplate": "<b>%{customdata[0]}</b><br>%{customdata[1]}<extra></extra>",
        "legendgroup": str(number),
    }


def _layout(xy: Array, numeric: bool) -> dict[str, Any]:
    """Equal units on both axes, the same limits in every view."""
    low, high = xy.min(axis=0), xy.max(axis=0)
    reach = np.maximum(high - low, 0.3 * float((high - low).max()) or 1.0)
    middle = (low + high) / 2
    limits = [
        [float(m - 0.53 * r), float(m + 0.53 * r)] for m, r in zip(middle, reach, strict=True)
    ]
    axis = {"zeroline": True, "constrain": "domain"}
    return {
        "meta": {"aspect": float(reach[1] / reach[0])},
        "dragmode": "zoom",
        "hovermode": "closest",
        "margin": {"t": 30, "b": 56},
        "xaxis": {**axis, "range": limits[0]},
        "yaxis": {**axis, "range": limits[1], "scaleanchor": "x"},
        "showlegend": not numeric,
    }


def _caption(pca: Mapping[str, Any], shown: int, *, named: bool) -> str:
    what = "words" if named else "rows"
    drawn = f"{count(shown)} {what}"
    if shown < pca["n_rows"]:
        drawn = f"{drawn}, drawn at random from {count(pca['n_rows'])}"
    return (
        f"Principal component plot of {drawn}, in the unit of the vectors, with the same limits in "
        "every view. Before and After share the two axes of the rows before; the third view takes "
        "the axes of the erased rows, which shows whatever structure is left. Two axes are a small "
        "part of the space: a picture cannot show that a concept is gone."
    )
