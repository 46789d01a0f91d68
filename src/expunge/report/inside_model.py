"""What scrubbing does inside a model: probes by layer, the language it models, a task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from expunge.number_text import count, number, percent
from expunge.report.parts import Block, Details, Figure, Section, Table, cell, label

__all__ = ["model_section"]

# condition -> colour, dash and mark of its line
STYLES = {
    "before": ("var(--before)", "solid", "circle-open"),
    "after": ("var(--after)", "solid", "circle"),
    "control": ("var(--c4)", "dot", "triangle-up-open"),
}
MOST_TICKS = 24  # names of layers below a figure
MEASURES = {  # of the whole model: key -> title
    "loss": "loss, bits per token",
    "perplexity": "perplexity",
    "kl": "Kullback-Leibler divergence from before, bits per token",
    "task": "accuracy for the task",
}


def model_section(audit: Mapping[str, Any]) -> Section | None:
    """What an evaluation of a scrubbed model found; None where there is none.

    Parameters
    ----------
    audit : mapping
        Of an audit with an entry "model", as ``ScrubEvaluation.to_dict`` gives it.

    Returns
    -------
    Section or None

    Examples
    --------
    >>> from expunge.report.inside_model import model_section
    >>> probes = {"before": [0.9], "after": [0.5], "control": [0.9]}
    >>> found = {"layers": ["h.0"], "texts": 80, "chance": 0.5, "probes": probes}
    >>> model_section({"model": found}).content[0][:76]
    'A linear probe for the concept is right on 90.0% of texts before, on 50.0% a'
    """
    found = audit.get("model")
    if not found:
        return None
    probes = found["probes"]
    spans = {name: _span(probes[name]) for name in STYLES}
    told = (
        f"A linear probe for the concept is right on {spans['before']} of texts before, on "
        f"{spans['after']} after, and on {spans['control']} with as many directions erased at "
        f"random (the control). The largest class has {percent(found['chance'])}."
    )
    content: list[Block] = [told, _figure(found), Details("The same as a table", [_layers(found)])]
    whole = _whole(found)
    return Section(
        "Inside the model",
        content if whole is None else [*content, whole],
        badge=f"{count(found['texts'])} texts",
    )


def _figure(found: Mapping[str, Any]) -> Figure:
    names = [label(layer) for layer in found["layers"]]
    places = list(range(len(names)))  # two names that are cut may be the same
    data: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": condition,
            "x": places,
            "y": list(found["probes"][condition]),
            "text": names,
            "marker": {"symbol": mark, "size": 9},
            "line": {"color": colour, "width": 2, "dash": dash},
            "hovertemplate": f"%{{text}}, {condition}: <b>%{{y:.1%}}</b><extra></extra>",
        }
        for condition, (colour, dash, mark) in STYLES.items()
    ]
    data.append(
        {
            "type": "scatter",
            "mode": "lines",
            "name": "largest class",
            "x": places,
            "y": [found["chance"]] * len(names),
            "line": {"color": "var(--chance)", "width": 1},
            "hoverinfo": "skip",
        }
    )
    layout = {
        "height": 380,
        "margin": {"t": 40, "b": 48},
        "xaxis": {
            "tickvals": places[:: 1 + len(places) // MOST_TICKS],
            "ticktext": names[:: 1 + len(places) // MOST_TICKS],
            "automargin": True,
            "zeroline": False,
            "fixedrange": True,
        },
        "yaxis": {
            "title": {"text": "accuracy"},
            "range": [0, 1.04],
            "tickformat": ".0%",
            "fixedrange": True,
        },
    }
    caption = (
        "Accuracy of a linear probe for the concept at each layer, cross-validated on "
        f"{count(found['texts'])} texts: as the model is, scrubbed, and with as many directions "
        "erased at the same places at random."
    )
    return Figure(data, layout, caption, alt="Probe accuracy by layer, before, after and control.")


def _layers(found: Mapping[str, Any]) -> Table:
    ranks = found.get("ranks") or [None] * len(found["layers"])
    rows = [
        [layer, rank, *(_share(found["probes"][name][i]) for name in STYLES)]
        for i, (layer, rank) in enumerate(zip(found["layers"], ranks, strict=True))
    ]
    heads = ["layer", "directions erased", *STYLES]
    return Table(heads, rows, "Accuracy of a linear probe for the concept at each layer.")


def _whole(found: Mapping[str, Any]) -> Table | None:
    rows = [
        [title, *(_amount(key, found[key].get(name)) for name in STYLES)]
        for key, title in MEASURES.items()
        if found.get(key)
    ]
    caption = (
        "Of the whole model. Loss and perplexity are of its own predictions of tokens; the "
        "divergence says how far these moved; the task is read from the last layer by a probe "
        "that was trained before."
    )
    return Table(["measure", *STYLES], rows, caption) if rows else None


def _span(shares: Sequence[float]) -> str:
    low, high = (percent(value) for value in (min(shares), max(shares)))
    return low if low == high else f"{low} to {high}"


def _share(value: float) -> Any:
    return cell(percent(value), value)


def _amount(key: str, value: float | None) -> Any:
    if value is None:
        return cell(None)
    return _share(value) if key == "task" else cell(number(value, 4), value)
