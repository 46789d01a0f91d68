"""A small experiment on the framework: means of random numbers, one part of which may crash."""

import numpy as np

from expunge.reproduce.runner.declaration import (
    Experiment,
    ExperimentFigure,
    ExperimentPart,
    LoadedData,
    SkipPart,
)
from expunge.reproduce.runner.drawing import BLUE, Style, curve, new_figure
from expunge.reproduce.runner.experiment_results import Number
from expunge.reproduce.runner.paper_table import PaperLine, PaperTable

calls = []  # what was measured, in order
trouble = {}  # (part, run) -> what to do there instead


def load(path, settings):
    level = 0.0 if path is None else float(path.read_text())
    return LoadedData(level, f"level {level}", f"digest of {level}", "a toy", {"level": level})


def measuring(name):
    def measure(run):
        calls.append((name, run.number))
        if (name, run.number) in trouble:
            trouble.pop((name, run.number))()
        draws = run.kept(f"draws-{name}", lambda: {"x": _draw(run, name)})["x"]
        return {"mean": draws.mean(), "curve": draws[:3], "label": "normal"}

    return measure


def _draw(run, name):
    calls.append(("draw", name, run.number))
    return np.random.default_rng([run.seed, len(name)]).normal(run.data, size=20)


def skip(run):
    raise SkipPart("toys do not have it")


def tables(results):
    ours = results.number("first", "mean")
    lines = [
        PaperLine(("a|b",), ours, Number(0.25, 0.01, 10)),
        PaperLine(("other",), None, "a word"),
    ]
    return [PaperTable("means", "Means", ("what",), lines, "Table 9", section="Numbers")]


def draw(results):
    figure, axes = new_figure(4, 3)
    curve(axes, [1, 2, 3], *results.series("first", "curve"), "first", Style(BLUE))
    axes.set(xlabel="place", ylabel="draw")
    return figure


def pictures(results):
    return [ExperimentFigure("draws", "Draws", "Three draws.", draw, "Figure 9", section="Numbers")]


EXPERIMENT = Experiment(
    name="toy",
    title="A toy",
    about="Means of random numbers.",
    load=load,
    parts=(
        ExperimentPart("first", "first means", measuring("first")),
        ExperimentPart("second", "second means", measuring("second"), weight=2),
        ExperimentPart("once", "a mean for all runs", measuring("once"), runs=1),
        ExperimentPart("never", "what toys do not have", skip, runs=1),
    ),
    tables=tables,
    pictures=pictures,
    findings=lambda results: [f"The mean is {results.number('first', 'mean').text(2)}."],
    runs=3,
    quick_runs=1,
)
