"""The figure of the experiment on biographies: accuracy against the number of directions."""

from __future__ import annotations

from typing import Any

from expunge.reproduce import paper
from expunge.reproduce.experiment import Picture
from expunge.reproduce.figures import (
    BLACK,
    BLUE,
    GREY,
    ORANGE,
    Style,
    curve,
    legend_below,
    new_figure,
)
from expunge.reproduce.results import Results

__all__ = ["pictures"]

STYLES = {"RLACE exact": Style(BLUE, "o", "-"), "INLP": Style(ORANGE, "s", "--")}
LABELS = {"RLACE exact": "RLACE, closed form", "INLP": "INLP"}
STAGES = {"frozen-curve": "frozen encoder", "finetuned-curve": "fine-tuned encoder"}


def pictures(results: Results) -> list[Picture]:
    """The figures for which there are measurements.

    Parameters
    ----------
    results : Results

    Returns
    -------
    list of Picture
    """
    if not any(results.has(part) for part in STAGES):
        return []
    return [
        Picture(
            "bios-accuracy",
            "Accuracy against the number of directions removed",
            "Test accuracy of logistic regressions for gender (solid and dashed lines, lower is "
            "better) and for the profession (thin lines, higher is better) after K directions are "
            "removed; bands are one standard deviation over runs. Dotted: the commonest gender.",
            _draw,
            where=paper.BIOS_CURVE_FIGURE,
            section="Biographies",
        )
    ]


def _draw(results: Results) -> Any:
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
        ax.set_title(STAGES[part], color=GREY)
    axes[0][0].set_ylabel("test accuracy")
    legend_below(figure, axes[0][0], columns=2)
    return figure
