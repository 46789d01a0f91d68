"""One look for all figures: made for print, told apart without colours too, kept as PNG and PDF."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from expunge.artifact import write_atomically
from expunge.linalg import Array
from expunge.optional import require

__all__ = ["Style", "curve", "legend_below", "look", "new_figure", "write_figure"]

# the palette of Okabe and Ito, told apart by people with any colour vision
BLUE, ORANGE, GREEN, VERMILION = "#0072b2", "#e69f00", "#009e73", "#d55e00"
PURPLE, SKY, BLACK, GREY = "#cc79a7", "#56b4e9", "#1a1a1a", "#7a7a7a"

LOOK = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "pdf.fonttype": 42,
}
DPI = 200
MARKS = 20  # on a curve, about


@dataclass(frozen=True)
class Style:
    """How a method looks in every figure, in the words of matplotlib.

    A hollow one has large and empty markers, to be seen around those of a line that covers it.
    """

    color: str
    marker: str = "o"
    line: str = "-"
    hollow: bool = False


@contextmanager
def look() -> Iterator[None]:
    """The common look for everything drawn inside; `reproduce` draws all figures in it."""
    with require("matplotlib", "reproduce").rc_context(LOOK):
        yield


def new_figure(
    width: float = 6.0, height: float = 3.4, rows: int = 1, columns: int = 1, **kwargs: Any
) -> tuple[Any, Any]:
    """A figure in the common look, without a window, and its axes: one, or an array of them.

    Of `width` x `height` inches, of which 6 fill a page; `kwargs` are those of ``Figure.subplots``.
    """
    make = require("matplotlib.figure", "reproduce").Figure
    with look():
        figure = make(figsize=(width, height), layout="constrained")
        return figure, figure.subplots(rows, columns, **kwargs)


def curve(
    axes: Any, x: Sequence[float] | Array, mean: Array, sd: Array, label: str, style: Style
) -> None:
    """A line through k points with a band of one standard deviation."""
    hollow = style.hollow
    axes.plot(
        x,
        mean,
        label=label,
        color=style.color,
        marker=style.marker,
        linestyle=style.line,
        markerfacecolor="white" if hollow else style.color,
        markeredgecolor=style.color if hollow else "white",
        markeredgewidth=1.1 if hollow else 0.6,
        markersize=6.5 if hollow else 5,
        markevery=max(1, len(x) // MARKS),
        zorder=2.5 if hollow else 3,
    )
    if np.any(sd > 0):
        axes.fill_between(x, mean - sd, mean + sd, color=style.color, alpha=0.2, linewidth=0)


def legend_below(figure: Any, axes: Any, columns: int = 3, **kwargs: Any) -> Any:
    """One legend, of the labels of `axes`, under all axes of a figure, where it hides nothing."""
    handles, labels = axes.get_legend_handles_labels()
    return figure.legend(handles, labels, loc="outside lower center", ncols=columns, **kwargs)


def write_figure(figure: Any, folder: Path, name: str) -> bytes:
    """Write a figure as PNG and PDF and give the PNG; the same figure gives the same files."""
    png = _saved(figure, "png", {"Software": None})
    figure.set_layout_engine("none")  # the PDF takes over the places found for the PNG
    write_atomically(folder / f"{name}.png", png)
    write_atomically(folder / f"{name}.pdf", _saved(figure, "pdf", {"CreationDate": None}))
    return png


def _saved(figure: Any, kind: str, metadata: dict[str, Any]) -> bytes:
    stream = io.BytesIO()
    with look():
        figure.savefig(stream, format=kind, dpi=DPI, metadata=metadata)
    return stream.getvalue()
