"""The figures of the experiment on faces."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.reproduce.faces.grey_images import SIDE
from expunge.reproduce.faces.measurements import SHOWN
from expunge.reproduce.faces.tables import SECTIONS, WHERE, measured
from expunge.reproduce.runner.declaration import ExperimentFigure
from expunge.reproduce.runner.drawing import (
    BLACK,
    BLUE,
    GREY,
    ORANGE,
    VERMILION,
    legend_below,
    new_figure,
)
from expunge.reproduce.runner.experiment_results import ExperimentResults

__all__ = ["pictures"]

STAGES = (
    "original",
    "RLACE,\nstrength 0.5",
    "RLACE",
    "LEACE",
    "RLACE,\nmean not kept",
)
GAP, WIDE_GAP = 3, 14  # pixels between faces, and between the two classes
WIDTH, LABELS, HEADS = 7.0, 1.05, 0.5  # inches: of the figure, left of the faces, above and below
HEADINGS = {
    "glasses": ("with glasses", "without glasses"),
    "smile": ("smiling", "not smiling"),
    "mustache": ("with a mustache", "without a mustache"),
    "beard": ("with a beard", "without a beard"),
    "bald": ("bald", "not bald"),
    "hat": ("with a hat", "without a hat"),
}
SERIES = {  # protocol and erasure -> label, colour, marker
    ("same", "original"): ("original", GREY, "v"),
    ("same", "RLACE"): ("RLACE, probe of the faces of the fit", BLUE, "o"),
    ("fresh", "RLACE"): ("RLACE, probe of fresh faces", VERMILION, "^"),
    ("fresh", "LEACE"): ("LEACE, probe of fresh faces", ORANGE, "s"),
}


def pictures(results: ExperimentResults) -> list[ExperimentFigure]:
    """All figures for which there are measurements."""
    concepts = measured(results)
    if not concepts:
        return []
    grids = [
        ExperimentFigure(
            f"faces-{concept}",
            f"Faces before and after erasing the concept {concept}",
            f"Held-out faces drawn at random, {SHOWN} with the concept and {SHOWN} without, cut to "
            "the range of grey. The last row is the map as the paper writes it, without the mean: "
            "it moves every face past both classes. " + _credit(results),
            partial(_draw_faces, concept),
            WHERE,
            SECTIONS["pictures"],
        )
        for concept in concepts
    ]
    directions = ExperimentFigure(
        "directions",
        "The erased directions as pictures",
        "Mean faces of the fit, the direction that RLACE and LEACE take away (the difference of "
        "the means) and the one by which LEACE reads how much. Red pixels are lighter with the "
        "concept, blue ones darker; each picture has its own scale. " + _credit(results),
        _draw_directions,
        section=SECTIONS["pictures"],
    )
    accuracy = ExperimentFigure(
        "accuracy",
        "What a linear probe finds in new faces",
        "Accuracy on held-out faces of other people, classes balanced; mean over the runs, with "
        "the mean of the 95 % intervals, which take faces as independent. The dashed line is the "
        "commoner class.",
        _draw_accuracy,
        WHERE,
        SECTIONS["accuracy"],
    )
    return [accuracy, *grids, directions]


def _credit(results: ExperimentResults) -> str:
    return f"Data: {results.data.source}."


def _draw_faces(concept: str, results: ExperimentResults) -> Any:
    faces = results.arrays(f"pictures-{concept}")["faces"]
    stages, shown, _ = faces.shape
    canvas, lefts, tops = _montage(np.clip(faces, 0, 1), shown // 2)
    height = (WIDTH - LABELS) * canvas.shape[0] / canvas.shape[1] + HEADS
    figure, axes = new_figure(WIDTH, height)
    axes.imshow(canvas, cmap="gray", vmin=0, vmax=1)
    _bare(axes)
    axes.set_xlabel(results.data.source, color=GREY, fontsize=7, loc="right")
    axes.set_yticks([top + SIDE / 2 for top in tops], STAGES[:stages])
    axes.tick_params(length=0)
    half = shown // 2
    for first, title in zip((0, half), HEADINGS[concept], strict=True):
        middle = (lefts[first] + lefts[first + half - 1] + SIDE) / 2
        axes.text(middle, -GAP, title, ha="center", va="bottom")
    return figure


def _montage(faces: NDArray[Any], half: int) -> tuple[NDArray[Any], list[int], list[int]]:
    """One white picture of all faces (rows, columns, 2500), and where columns and rows begin."""
    rows, columns, _ = faces.shape
    lefts = [k * (SIDE + GAP) + (WIDE_GAP if k >= half else 0) for k in range(columns)]
    tops = [k * (SIDE + GAP) for k in range(rows)]
    canvas = np.ones((tops[-1] + SIDE, lefts[-1] + SIDE))
    for i, top in enumerate(tops):
        for j, left in enumerate(lefts):
            canvas[top : top + SIDE, left : left + SIDE] = faces[i, j].reshape(SIDE, SIDE)
    return canvas, lefts, tops


def _draw_directions(results: ExperimentResults) -> Any:
    concepts = measured(results)
    heads = ("mean with", "mean without", "taken away", "read by LEACE")
    figure, axes = new_figure(
        6.4, 0.5 + 1.36 * len(concepts), len(concepts), len(heads), squeeze=False
    )
    shown = None
    for concept, line in zip(concepts, axes, strict=True):
        kept = results.arrays(f"pictures-{concept}")
        for key, cell in zip(("with", "without"), line[:2], strict=True):
            cell.imshow(kept[key].reshape(SIDE, SIDE), cmap="gray", vmin=0, vmax=1)
        for key, cell in zip(("removed", "read"), line[2:], strict=True):
            direction = kept[key].reshape(SIDE, SIDE)
            scaled = direction / np.abs(direction).max()
            shown = cell.imshow(scaled, cmap="RdBu_r", vmin=-1, vmax=1)
        for cell in line:
            _bare(cell)
        line[0].set_ylabel(concept)
    for head, cell in zip(heads, axes[0], strict=True):
        cell.set_title(head)
    axes[-1, -1].set_xlabel(results.data.source, color=GREY, fontsize=7, loc="right")
    bar = figure.colorbar(shown, ax=axes, shrink=0.75, aspect=10 * len(concepts), ticks=(-1, 0, 1))
    bar.ax.set_yticklabels(["darker\nwith it", "alike", "lighter\nwith it"])
    bar.outline.set_visible(False)
    return figure


def _draw_accuracy(results: ExperimentResults) -> Any:
    concepts = measured(results)
    figure, axes = new_figure(6.4, 3.9)
    places = np.arange(len(concepts), dtype=float)
    for k, ((protocol, name), (label, color, marker)) in enumerate(SERIES.items()):
        value, low, high = (
            np.array([_percent(results, c, protocol, name, key) for c in concepts])
            for key in ("value", "low", "high")
        )
        axes.errorbar(
            places + 0.16 * (k - 1.5),
            value,
            yerr=np.maximum([value - low, high - value], 0),
            fmt=marker,
            color=color,
            markeredgecolor="white",
            markeredgewidth=0.6,
            markersize=6.5,
            elinewidth=1.2,
            label=label,
            zorder=3,
        )
    majority = [_percent(results, c, "same", "original", None) for c in concepts]
    axes.hlines(
        majority, places - 0.42, places + 0.42, color=BLACK, linestyle="--", linewidth=1, zorder=2
    )
    axes.set_xticks(places, concepts)
    axes.set_xlim(-0.5, len(concepts) - 0.5)
    axes.grid(visible=False, axis="x")
    axes.set_ylabel("accuracy, percent")
    axes.set_ylim(top=100)
    legend_below(figure, axes, columns=2)
    return figure


def _percent(
    results: ExperimentResults, concept: str, protocol: str, name: str, limit: str | None
) -> float:
    path = ("majority",) if limit is None else ("accuracy", limit)
    return results.number(concept, protocol, name, *path).times(100).mean


def _bare(axes: Any) -> None:
    """Nothing but the picture."""
    axes.grid(visible=False)
    axes.set(xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set_visible(False)
