"""A small experiment on the framework: means of random numbers, one part of which may crash."""

import numpy as np

from expunge.reproduce.experiment import Experiment, Line, Loaded, Part, Picture, SkipPart, Table
from expunge.reproduce.figures import BLUE, Style, curve, new_figure
from expunge.reproduce.numbers import Number

calls = []  # what was measured, in order
trouble = {}  # (part, run) -> what to do there instead


def load(path, settings):
    level = 0.0 if path is None else float(path.read_text())
    return Loaded(level, f"level {level}", f"digest of {level}", "a toy", {"level": level})


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
    lines = [Line(("a|b",), ours, Number(0.25, 0.01, 10)), Line(("other",), None, "a word")]
    return [Table("means", "Means", ("what",), lines, "Table 9", section="Numbers")]


def draw(results):
    figure, axes = new_figure(4, 3)
    curve(axes, [1, 2, 3], *results.series("first", "curve"), "first", Style(BLUE))
    axes.set(xlabel="place", ylabel="draw")
    return figure


def pictures(results):
    return [Picture("draws", "Draws", "Three draws.", draw, "Figure 9", section="Numbers")]


EXPERIMENT = Experiment(
    name="toy",
    title="A toy",
    about="Means of random numbers.",
    load=load,
    parts=(
        Part("first", "first means", measuring("first")),
        Part("second", "second means", measuring("second"), weight=2),
        Part("once", "a mean for all runs", measuring("once"), runs=1),
        Part("never", "what toys do not have", skip, runs=1),
    ),
    tables=tables,
    pictures=pictures,
    findings=lambda results: [f"The mean is {results.number('first', 'mean').text(2)}."],
    runs=3,
    quick_runs=1,
)
