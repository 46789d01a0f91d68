"""The figures of the experiment on word vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from expunge.reproduce.glove import paper
from expunge.reproduce.glove.tables import LABELS, SECTIONS, word_part
from expunge.reproduce.runner.declaration import ExperimentFigure
from expunge.reproduce.runner.drawing import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    Style,
    curve,
    legend_below,
    new_figure,
)
from expunge.reproduce.runner.experiment_results import ExperimentResults

__all__ = ["pictures"]

STYLES = {
    "original": Style(GREY, "v", ":"),
    "PairPCA": Style(GREEN, "D", "-."),
    "RLACE": Style(BLUE, "o", "-"),
    "RLACE exact": Style(BLACK, "s", "--", hollow=True),
    "INLP": Style(VERMILION, "^", "-"),
}
SHOWN_EIGENVALUES = 20


def pictures(results: ExperimentResults) -> list[ExperimentFigure]:
    """All figures for which there are measurements."""
    drawn = {
        "accuracy": ExperimentFigure(
            "accuracy",
            "Gender accuracy against the dimension of the removed subspace",
            "Logistic regression on test words, trained on the erased words of the fit; bands are "
            "one standard deviation over the runs. Closed form, INLP and PCA of pairs do not "
            "depend on a seed. The paper's figure shows RLACE near chance at every K and INLP "
            "above it up to K = 20.",
            _draw_accuracy,
            paper.ACCURACY_FIGURE,
            SECTIONS["accuracy"],
        ),
        "scatter": ExperimentFigure(
            "scatter",
            "Words before and after rank-1 RLACE",
            "Test words on the two leading principal axes of each cloud.",
            _draw_scatter,
            paper.PCA_FIGURE,
            SECTIONS["geometry"],
        ),
        "clusters": ExperimentFigure(
            "clusters",
            "Clusters that follow gender",
            "V-measure of k-means clusters of test words against gender after rank-1 erasure; 0 "
            "means that clusters say nothing about gender. Bands are one standard deviation over "
            "the runs.",
            _draw_clusters,
            paper.CLUSTER_FIGURE,
            SECTIONS["geometry"],
        ),
        "words": ExperimentFigure(
            "weat",
            "Association of names with stereotypes",
            "WEAT d after rank-1 erasure, ours (filled) and the paper's (open); lines are one "
            "standard deviation.",
            _draw_weat,
            paper.WEAT_WHERE,
            SECTIONS["weat"],
        ),
        "spectrum": ExperimentFigure(
            "spectrum",
            "Eigenvalues of the relaxed eraser before rounding",
            "From the centre of the Fantope and from a random projector, mean over the runs. Only "
            "the first eigenvalue is decided by the data; the others stay where they began.",
            _draw_spectrum,
            paper.SPECTRUM_FIGURE,
            SECTIONS["relaxation"],
        ),
        "angles": ExperimentFigure(
            "angles",
            "Angles between the subspaces of RLACE and INLP",
            "All principal angles at each K; 0 degrees is a shared direction, 90 an orthogonal "
            "one. Mean over the runs.",
            _draw_angles,
            "",
            SECTIONS["angles"],
        ),
    }
    return [picture for part, picture in drawn.items() if results.has(part)]


def _draw_accuracy(results: ExperimentResults) -> Any:
    figure, axes = new_figure(6.2, 3.9)
    exact = results.first("accuracy_exact")
    for name in ("PairPCA", "INLP", "RLACE exact", "RLACE"):
        if name == "RLACE":
            ranks, (mean, sd) = (
                results.first("accuracy", "ranks"),
                results.series("accuracy", "fit"),
            )
        elif name in exact:
            ranks, mean = exact[name]["ranks"], np.array(exact[name]["fit"])
            sd = np.zeros(len(mean))
        else:
            continue
        curve(axes, ranks, 100 * mean, 100 * sd, LABELS[name], STYLES[name])
    for key, value in (
        ("before erasure", exact["original"]["fit"]),
        ("majority", exact["majority"]),
    ):
        style = (0, (1, 1.5)) if key == "majority" else (0, (5, 2))
        axes.axhline(100 * value, color=GREY, linewidth=1.2, linestyle=style, label=key, zorder=1)
    axes.set(xlabel="dimension K of the removed subspace", ylabel="gender accuracy (%)")
    axes.set_xticks(_ticks(max(exact["INLP"]["ranks"])))
    axes.set_ylim(45, 102)
    legend_below(figure, axes)
    return figure


def _ticks(most: int) -> list[int]:
    return [1, *range(5, most + 1, 5)] if most >= 5 else list(range(1, most + 1))


def _draw_scatter(results: ExperimentResults) -> Any:
    kept = results.arrays("scatter")
    figure, both = new_figure(6.4, 3.3, columns=2)
    titles = ("before", "after rank-1 RLACE")
    looks = ((0, "male-biased", BLUE, "o"), (1, "female-biased", ORANGE, "^"))
    order = np.random.default_rng(0).permutation(len(kept["y"]))
    for axes, stage, title in zip(both, ("before", "after"), titles, strict=True):
        for label, name, color, marker in looks:
            rows = order[kept["y"][order] == label]
            axes.scatter(
                *kept[stage][rows].T,
                s=7,
                color=color,
                marker=marker,
                alpha=0.55,
                linewidths=0,
                label=name,
            )
        shares = results.first("scatter", f"explained_{stage}")
        axes.set(
            title=title,
            xlabel=f"first axis ({shares[0]:.0%} of the variance)",
            ylabel=f"second axis ({shares[1]:.0%})",
        )
        axes.grid(visible=False)
    legend = legend_below(figure, both[0], 2, markerscale=2.2)
    for handle in legend.legend_handles:
        handle.set_alpha(1)
    return figure


def _draw_clusters(results: ExperimentResults) -> Any:
    figure, axes = new_figure(6.2, 3.7)
    counts, known = results.first("clusters", "clusters"), results.first("clusters")
    for name in ("original", "PairPCA", "INLP", "RLACE exact", "RLACE"):
        if name in known:
            curve(axes, counts, *results.series("clusters", name), LABELS[name], STYLES[name])
    axes.set(xlabel="number of clusters", ylabel="V-measure with gender", ylim=(-0.03, 1.05))
    axes.set_xticks([count for count in counts if count not in (3, 5)])
    legend_below(figure, axes)
    return figure


def _draw_weat(results: ExperimentResults) -> Any:
    tests = list(results.first("words", "RLACE", "weat"))
    methods = [m for m in LABELS if m == "RLACE" or m in results.first("words_exact")]
    figure, all_axes = new_figure(6.4, 2.9, columns=len(tests), sharey=True, sharex=True)
    for axes, test in zip(all_axes, tests, strict=True):
        for place, method in enumerate(methods):
            style = STYLES[method]
            ours = results.number(word_part(method), method, "weat", test, "d")
            axes.errorbar(
                ours.mean, place - 0.13, xerr=ours.sd or 0, fmt="o", color=style.color, ms=6
            )
            if method in paper.WEAT[test]:
                theirs = paper.WEAT[test][method][0]
                axes.errorbar(
                    theirs.mean,
                    place + 0.13,
                    xerr=theirs.sd or 0,
                    fmt="o",
                    color=style.color,
                    mfc="white",
                    ms=6,
                )
        axes.axvline(0, color=BLACK, linewidth=0.8)
        axes.set(title=test, xlabel="WEAT d")
        axes.set_yticks(range(len(methods)), [LABELS[method] for method in methods])
    all_axes[0].invert_yaxis()
    marks = [
        all_axes[0].plot([], [], "o", color=GREY, mfc=face, ms=6, label=name)[0]
        for face, name in ((GREY, "ours"), ("white", "paper"))
    ]
    figure.legend(handles=marks, loc="outside lower center", ncols=2)
    return figure


def _draw_spectrum(results: ExperimentResults) -> Any:
    rank = results.first("spectrum", "rank")
    figure, both = new_figure(6.4, 2.9, columns=2, sharey=True)
    starts = (("center", "start: centre", SKY), ("vertex", "start: random projector", PURPLE))
    for axes, (start, title, color) in zip(both, starts, strict=True):
        mean, sd = (values[:SHOWN_EIGENVALUES] for values in results.series("spectrum", start))
        x = np.arange(1, len(mean) + 1)
        axes.bar(x, mean, color=color, width=0.72, edgecolor=BLACK, linewidth=0.5)
        axes.errorbar(x, mean, yerr=sd, fmt="none", ecolor=BLACK, elinewidth=0.8)
        axes.axvline(rank + 0.5, color=GREY, linewidth=1.2, linestyle=(0, (5, 2)))
        axes.text(rank + 0.8, 0.93, f"K = {rank}", color=GREY, fontsize=8.5)
        axes.set(title=title, xlabel="number of the eigenvalue", ylim=(0, 1.05))
        axes.set_xticks(_ticks(len(mean)))
        axes.grid(visible=False, axis="x")
    both[0].set_ylabel("eigenvalue")
    return figure


def _draw_angles(results: ExperimentResults) -> Any:
    ranks = results.first("angles", "ranks")
    figure, both = new_figure(6.4, 3.2, columns=2, sharey=True)
    for axes, name in zip(both, ("RLACE", "RLACE exact"), strict=True):
        color = STYLES[name].color
        found = [results.series("angles", name, place)[0] for place in range(len(ranks))]
        for rank, values in zip(ranks, found, strict=True):
            axes.scatter([rank] * len(values), values, s=9, color=color, alpha=0.45, linewidths=0)
        axes.plot(ranks, [v[0] for v in found], color=color, marker="v", label="smallest angle")
        axes.plot(ranks, [v[-1] for v in found], color=color, marker="^", label="largest angle")
        axes.set(title=f"{LABELS[name]}, and INLP", xlabel="dimension K", ylim=(-3, 93))
        axes.set_xticks(_ticks(max(ranks)))
        axes.set_yticks(range(0, 91, 15))
    legend_below(figure, both[1], 2)
    both[0].set_ylabel("principal angle (degrees)")
    return figure
