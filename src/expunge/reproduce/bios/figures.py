"""Figures of the experiment on biographies: accuracy by rank, gaps by share of women."""

from __future__ import annotations

from typing import Any

import numpy as np

from expunge.linalg import Array
from expunge.reproduce.bios import paper
from expunge.reproduce.bios.synthetic import CALLED
from expunge.reproduce.bios.tables import FEW
from expunge.reproduce.runner.declaration import ExperimentFigure
from expunge.reproduce.runner.drawing import (
    BLACK,
    BLUE,
    GREY,
    ORANGE,
    Style,
    curve,
    legend_below,
    new_figure,
)
from expunge.reproduce.runner.experiment_results import ExperimentResults

__all__ = ["pictures"]

STYLES = {"RLACE exact": Style(BLUE, "o", "-"), "INLP": Style(ORANGE, "s", "--")}
LABELS = {"RLACE exact": "RLACE, closed form", "INLP": "INLP"}
GAP_STAGES = {"frozen": "frozen encoder", "finetuned": "fine-tuned encoder"}
GAP_STYLES = {
    "nothing": ("before", Style(GREY, "o", "--", hollow=True)),
    "RLACE exact one": ("after rank-1 RLACE", Style(BLUE, "o", "-")),
}
STAGES = {"frozen-curve": "frozen encoder", "finetuned-curve": "fine-tuned encoder"}


def pictures(results: ExperimentResults) -> list[ExperimentFigure]:
    """The figures for which there are measurements."""
    found = []
    if any(results.has(part) for part in STAGES):
        found.append(_accuracy(results))
    if results.has("frozen"):
        found.append(_gap_picture(results))
    return found


def _accuracy(results: ExperimentResults) -> ExperimentFigure:
    return ExperimentFigure(
        "bios-accuracy",
        "Accuracy against the number of directions removed",
        "Test accuracy of logistic regressions for gender (solid and dashed lines, lower is "
        "better) and for the profession (thin lines, higher is better) after K directions are "
        "removed; bands are one standard deviation over runs. Dotted: the commonest gender. RLACE "
        "is solved by the closed form at every K; the paper's solver, which costs far more, is in "
        "the tables for the smallest and largest K.",
        _draw,
        where=paper.CURVE_FIGURE,
        section="Biographies",
    )


def _gap_picture(results: ExperimentResults) -> ExperimentFigure:
    return ExperimentFigure(
        "bios-gaps",
        "TPR gap of each profession against its share of women",
        "Mark: a profession, mean over runs; above 0 the classifier finds the women of the "
        "profession more often than the men. Lines, where there are ten professions or more: least "
        "squares. A flat line at 0 would be a classifier that treats both alike everywhere.",
        _draw_gaps,
        section="Biographies",
    )


def _draw(results: ExperimentResults) -> Any:
    parts = [part for part in STAGES if results.has(part)]
    figure, axes = new_figure(6.4, 3.3, columns=len(parts), sharey=True, squeeze=False)
    most = results.number("majority", "gender").mean
    for ax, part in zip(axes[0], parts, strict=True):
        ranks = results.first(part, "ranks")
        for method, style in STYLES.items():
            mean, sd = results.series(part, method, "gender")
            curve(ax, ranks, mean, sd, f"gender, {LABELS[method]}", style)
            mean, _ = results.series(part, method, "profession")
            ax.plot(
                ranks,
                mean,
                color=style.color,
                linewidth=0.9,
                linestyle=style.line,
                label=f"profession, {LABELS[method]}",
            )
        ax.axhline(most, color=BLACK, linestyle=":", linewidth=1.1, label="commonest gender")
        ax.set_xlabel("directions removed, K")
        ax.set_title(_title(results, STAGES[part]), color=GREY)
    axes[0][0].set_ylabel("test accuracy")
    legend_below(figure, axes[0][0], columns=2)
    return figure


def _draw_gaps(results: ExperimentResults) -> Any:
    parts = [part for part in GAP_STAGES if results.has(part)]
    figure, axes = new_figure(6.4, 3.3, columns=len(parts), sharey=True, squeeze=False)
    for ax, part in zip(axes[0], parts, strict=True):
        ax.axhline(0, color=BLACK, linewidth=0.8)
        for line, (label, style) in GAP_STYLES.items():
            women, gaps = _by_profession(results, part, line)
            fill = "none" if style.hollow else style.color
            ax.scatter(
                women, gaps, s=22, marker=style.marker, facecolor=fill, edgecolor=style.color
            )
            if len(np.unique(women)) >= FEW:
                ends = np.array([women.min(), women.max()])
                fit = np.polyval(np.polyfit(women, gaps, 1), ends)
                ax.plot(ends, fit, color=style.color, linestyle=style.line)
            line_style = {"color": style.color, "linestyle": style.line, "marker": style.marker}
            ax.plot([], [], **line_style, markerfacecolor=fill, label=label)
        ax.locator_params(axis="x", nbins=6)
        ax.set_xlabel("women in the profession (%)")
        ax.set_title(_title(results, GAP_STAGES[part]), color=GREY)
    axes[0][0].set_ylabel("TPR of women - TPR of men")
    legend_below(figure, axes[0][0], columns=2)
    return figure


def _by_profession(results: ExperimentResults, part: str, line: str) -> tuple[Array, Array]:
    """Shares of women in percent, and gaps: means over the runs in which a profession has a gap."""
    at = ("lines", line)
    shares = np.array(results.values(part, *at, "women"), dtype=np.float64)
    gaps = np.array(results.values(part, *at, "gaps"), dtype=np.float64)
    defined = ~np.isnan(gaps)
    some = defined.any(axis=0)
    count = defined.sum(axis=0)[some]
    kept = [np.where(defined, values, 0.0).sum(axis=0)[some] / count for values in (shares, gaps)]
    return 100 * kept[0], kept[1]


def _title(results: ExperimentResults, stage: str) -> str:
    """The stage, and a warning where the texts are made up."""
    return f"{stage}, synthetic texts" if CALLED in results.data.source else stage
