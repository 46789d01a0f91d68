"""The bars of an audit: every probe before and after, with intervals and the chance line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from expunge.number_text import percent, score
from expunge.report.parts import Figure, View, label

__all__ = ["FAMILIES", "STATISTICS", "Expected", "probe_figure"]

FAMILIES = {"linear": "Linear probes", "nonlinear": "Non-linear probes"}
STATISTICS = {"balanced_accuracy": "balanced accuracy", "r2": "R²"}
ROW = 42  # pixels of one probe
STYLE = {"before": "var(--before)", "after": "var(--after)"}


class Expected(NamedTuple):
    """What a linear probe finds on fresh rows by sampling error of the fit alone.

    Attributes
    ----------
    limit : float or None
        With unlimited rows to learn from.
    high : float or None
        What that exceeds in one fit of twenty.
    here : float or None
        With the rows the probes had.
    """

    limit: float | None
    high: float | None
    here: float | None

    @classmethod
    def of(cls, residue: Mapping[str, Any], statistic: str) -> Expected:
        """From that section of an audit."""
        limit = residue.get(statistic)
        if limit is None and statistic == "r2":
            limit = residue["q"]
        return cls(limit, residue.get(f"{statistic}_high"), residue.get(f"{statistic}_here"))

    @property
    def most(self) -> float | None:
        """The largest of what is known of a probe with unlimited rows."""
        return self.limit if self.high is None else self.high


def probe_figure(
    protocol: Mapping[str, Any], residue: Mapping[str, Any] | None, caption: str, confidence: float
) -> Figure:
    """Bars from the chance line to the value of each probe, one panel per family.

    Parameters
    ----------
    protocol : mapping
        One protocol of an audit.
    residue : mapping or None
        What sampling error alone leaves; drawn behind the linear probes.
    caption : str
    confidence : float
        Of the intervals.

    Returns
    -------
    Figure
    """
    families = [name for name in FAMILIES if name in protocol["after"]]
    first = protocol["after"][families[0]]
    statistic = first["statistic"]
    rows = [len(protocol["after"][name]["probes"]) + 1 for name in families]
    height = ROW * sum(rows) + 46 * len(rows) + 70
    span = _span(protocol, families)
    share = statistic != "r2"
    layout: dict[str, Any] = {
        "height": height,
        "barmode": "group",
        "bargap": 0.25,
        "bargroupgap": 0.05,
        "margin": {"t": 64, "b": 48},
        "annotations": [],
        "shapes": [],
        "legend": {"y": 1, "yref": "container", "yanchor": "top", "traceorder": "normal"},
    }
    data: list[dict[str, Any]] = []
    top = 1.0
    for place, (name, count) in enumerate(zip(families, rows, strict=True)):
        size = count / sum(rows) * (1 - 0.13 * (len(rows) - 1))
        axis = "" if place == 0 else str(place + 1)
        last = place == len(families) - 1
        layout[f"yaxis{axis}"] = _rows_axis(protocol["after"][name], [top - size, top])
        layout[f"xaxis{axis}"] = {
            "anchor": f"y{axis}",
            "range": span,
            "tickformat": ".0%" if share else ".2f",
            "title": {"text": STATISTICS[statistic] if last else ""},
            "fixedrange": True,
            "nticks": 7,
        }
        chance = protocol["after"][name]["chance"]
        beside = "left" if chance < span[0] + 0.15 * (span[1] - span[0]) else "center"
        layout["annotations"] += _notes(name, axis, top, chance, statistic, beside)
        layout["shapes"] += _marks(axis, chance, residue if name == "linear" else None, statistic)
        for stage in ("before", "after"):
            family = protocol[stage].get(name)
            if family is not None:
                data += _bars(family, stage, axis, first=place == 0)
        top -= size + 0.13
    near = _near_chance(protocol, residue, span)
    views = (
        []
        if near is None
        else [View("Whole scale", []), View("Near chance", [], near, paper=False)]
    )
    alt = f"Bars of {STATISTICS[statistic]} for every probe before and after erasure, with "
    alt = f"{alt}{percent(confidence, 0)} intervals. {caption}"
    return Figure(data, layout, caption, alt, views)


def _span(protocol: Mapping[str, Any], families: list[str]) -> list[float]:
    """Limits of the axis: everything shown, and some air."""
    values = []
    for stage in ("before", "after"):
        for name in families:
            family = protocol[stage].get(name)
            if family is None:
                continue
            values.append(family["chance"])
            for found in [p[family["statistic"]] for p in family["probes"]] + [family["strongest"]]:
                values += [found["low"], found["high"]]
    low, high = min(values), max(values)
    low = max(low, -0.5)  # an R² far below zero says no more than one below zero
    air = 0.04 * (high - low or 1.0)
    return [low - air, high + air]


def _near_chance(
    protocol: Mapping[str, Any], residue: Mapping[str, Any] | None, span: list[float]
) -> dict[str, Any] | None:
    """The axis of the linear probes cut to what is left after erasure, if that is little."""
    family = protocol["after"].get("linear")
    if family is None:
        return None
    values = [family["chance"]]
    for found in [p[family["statistic"]] for p in family["probes"]] + [family["strongest"]]:
        values += [found["low"], found["high"]]
    if residue is not None and (most := Expected.of(residue, family["statistic"]).most):
        values.append(most)
    low, high = max(min(values), span[0]), max(values)
    air = 0.1 * (high - low)
    if not 0 < high - low + 2 * air < 0.5 * (span[1] - span[0]):
        return None
    return {"xaxis.range": [low - air, high + air], "xaxis.tickformat": ".1%"}


def _rows_axis(family: Mapping[str, Any], domain: list[float]) -> dict[str, Any]:
    names = [label(probe["name"], 48).replace(", ", ",<br>", 1) for probe in family["probes"]]
    names.append("<b>strongest,</b><br>joint limits")
    return {
        "domain": [max(domain[0], 0.0), domain[1]],
        "tickvals": list(range(len(names))),
        "ticktext": names,
        "range": [len(names) - 0.4, -0.6],
        "showgrid": False,
        "ticks": "",
        "fixedrange": True,
    }


def _notes(
    name: str, axis: str, top: float, chance: float, statistic: str, beside: str
) -> list[dict[str, Any]]:
    place = {"yref": "paper", "y": top, "yanchor": "bottom", "showarrow": False}
    return [
        {
            **place,
            "xref": "paper",
            "x": 0,
            "xanchor": "right",
            "text": f"<b>{FAMILIES[name]}</b>",
        },
        {
            **place,
            "xref": f"x{axis}",
            "x": chance,
            "xanchor": beside,
            "text": f"chance {score(chance, statistic)}",
            "font": {"color": "var(--muted)", "size": 11},
        },
    ]


def _marks(
    axis: str, chance: float, residue: Mapping[str, Any] | None, statistic: str
) -> list[dict[str, Any]]:
    """The chance line; behind it what sampling error alone would give."""
    line = {"type": "line", "xref": f"x{axis}", "yref": f"y{axis} domain", "y0": 0, "y1": 1}
    marks: list[dict[str, Any]] = []
    if residue is not None:
        expected = Expected.of(residue, statistic)
        if expected.most is not None:
            marks.append(
                {
                    **line,
                    "type": "rect",
                    "x0": chance,
                    "x1": expected.most,
                    "fillcolor": "var(--band)",
                    "line": {"width": 0},
                    "layer": "below",
                }
            )
        if expected.here is not None:
            dots = {"color": "var(--unsure)", "width": 1.5, "dash": "dot"}
            marks.append({**line, "x0": expected.here, "x1": expected.here, "line": dots})
    solid = {"color": "var(--chance)", "width": 1.5}
    return [*marks, {**line, "x0": chance, "x1": chance, "line": solid}]


def _bars(family: Mapping[str, Any], stage: str, axis: str, *, first: bool) -> list[dict[str, Any]]:
    statistic, chance = family["statistic"], family["chance"]
    found = [probe[statistic] for probe in family["probes"]]
    joint = family["strongest"]
    common = {
        "name": stage,
        "legendgroup": stage,
        "xaxis": f"x{axis}",
        "yaxis": f"y{axis}",
        "orientation": "h",
    }
    unit = ":.1%" if statistic != "r2" else ":.3f"
    hover = (
        f"%{{customdata[0]}}, {stage}<br><b>%{{customdata[1]{unit}}}</b> "
        f"(%{{customdata[2]{unit}}} to %{{customdata[3]{unit}}})<extra></extra>"
    )
    names = [label(probe["name"]) for probe in family["probes"]]
    bars = {
        **common,
        "type": "bar",
        "base": chance,
        "x": [f["value"] - chance for f in found],
        "y": list(range(len(found))),
        "marker": {"color": STYLE[stage]},
        "error_x": _whiskers(found),
        "customdata": [
            [name, f["value"], f["low"], f["high"]] for name, f in zip(names, found, strict=True)
        ],
        "hovertemplate": hover,
        "offsetgroup": stage,
        "showlegend": first,
    }
    shift = -0.16 if stage == "before" else 0.16
    point = {
        **common,
        "type": "scatter",
        "mode": "markers",
        "x": [joint["value"]],
        "y": [len(found) + shift],
        "marker": {
            "color": STYLE[stage],
            "symbol": "diamond",
            "size": 10,
            "line": {"color": "var(--ink)", "width": 1},
        },
        "error_x": _whiskers([joint]),
        "customdata": [["strongest", joint["value"], joint["low"], joint["high"]]],
        "hovertemplate": hover,
        "showlegend": False,
    }
    return [bars, point]


def _whiskers(found: list[Mapping[str, float]]) -> dict[str, Any]:
    return {
        "type": "data",
        "array": [f["high"] - f["value"] for f in found],
        "arrayminus": [f["value"] - f["low"] for f in found],
        "color": "var(--ink)",
        "thickness": 1.2,
        "width": 4,
    }
