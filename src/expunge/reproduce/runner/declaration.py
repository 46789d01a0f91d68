"""How an experiment is declared: its data, the parts of a run, tables and figures. Values only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from expunge.reproduce.runner.experiment_results import ExperimentResults
    from expunge.reproduce.runner.paper_table import PaperTable
    from expunge.reproduce.runner.runs import ExperimentRun

__all__ = [
    "Experiment",
    "ExperimentFigure",
    "ExperimentPart",
    "LoadedData",
    "RunSettings",
    "SkipPart",
]


class SkipPart(Exception):
    """Raised by a part that these data do not allow; the reason is reported, the rest goes on."""


@dataclass(frozen=True)
class RunSettings:
    """What the user asked for."""

    runs: int
    quick: bool = False
    seed: int = 0
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def seeds(self) -> list[int]:
        """One for each run."""
        return [self.seed + number for number in range(self.runs)]


@dataclass(frozen=True, eq=False)
class LoadedData:
    """The data of an experiment."""

    content: Any  # what the parts work on
    source: str  # what it is, for people
    fingerprint: str  # a resumed experiment must have the same
    not_comparable: str = ""  # how the data differ from the paper's; empty if they do not
    facts: Mapping[str, Any] = field(default_factory=dict)  # to be reported


@dataclass(frozen=True)
class ExperimentPart:
    """One kind of measurement, repeated in every run; a part of a run is never half finished.

    ``measure(run)`` gives nested dictionaries and lists of numbers and text, or raises `SkipPart`.
    """

    name: str
    title: str  # for the progress bar: "gender accuracy"
    measure: Callable[[ExperimentRun], Mapping[str, Any]]
    runs: int | None = None  # at most so many; 1 for what does not depend on the seed
    weight: float = 1.0  # about how many seconds it takes, for the time left


@dataclass(frozen=True)
class ExperimentFigure:
    """A figure, written as PNG and PDF; ``draw(results)`` gives it as matplotlib has it."""

    name: str  # of its files
    title: str
    caption: str  # what is shown, on which rows, in which unit, and what the paper's figure shows
    draw: Callable[[ExperimentResults], Any]
    where: str = ""  # the figure of the paper; empty when it has nothing like it
    section: str = "Results"  # the heading of the report under which it stands


@dataclass(frozen=True)
class Experiment:
    """One experiment of the paper.

    ``load(path, settings)`` gives the data; `path` is None for those that come with the package.
    """

    name: str
    title: str
    about: str  # a paragraph
    load: Callable[[Path | None, RunSettings], LoadedData]
    parts: Sequence[ExperimentPart]  # in the order in which a run does them
    tables: Callable[[ExperimentResults], Sequence[PaperTable]]
    pictures: Callable[[ExperimentResults], Sequence[ExperimentFigure]]
    findings: Callable[[ExperimentResults], Sequence[str]]  # sentences with what came out
    runs: int = 10
    quick_runs: int = 2
    options: Mapping[str, str] = field(default_factory=dict)  # what it can be told: name, meaning
    packages: Sequence[str] = ()  # that results depend on, beside numpy, scipy and scikit-learn
    parallel: bool = False  # runs side by side, each with one BLAS thread

    def parts_of(self, number: int) -> list[ExperimentPart]:
        """What the run of this number, counted from 0, does."""
        return [part for part in self.parts if part.runs is None or number < part.runs]
