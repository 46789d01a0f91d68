"""What an experiment of the paper is made of: data, parts, tables, pictures. Values only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from expunge.reproduce.numbers import Number

if TYPE_CHECKING:
    from expunge.reproduce.results import Results
    from expunge.reproduce.runs import Run

__all__ = ["Experiment", "Line", "Loaded", "Part", "Picture", "Settings", "SkipPart", "Table"]


class SkipPart(Exception):
    """Raised by a part that these data do not allow; the reason is reported, the rest goes on."""


@dataclass(frozen=True)
class Settings:
    """What the user asked for.

    Attributes
    ----------
    runs : int
    quick : bool
        Whether to measure less of everything, in about a minute.
    seed : int
        Run number i, counted from 0, has the seed ``seed + i``.
    options : mapping from str to str
        What this experiment alone can be told; see `Experiment.options`.
    """

    runs: int
    quick: bool = False
    seed: int = 0
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def seeds(self) -> list[int]:
        """One for each run."""
        return [self.seed + number for number in range(self.runs)]


@dataclass(frozen=True, eq=False)
class Loaded:
    """The data of an experiment.

    Attributes
    ----------
    content : object
        What the parts work on.
    source : str
        What it is, for people.
    fingerprint : str
        A digest of it: a resumed experiment must have the same.
    not_comparable : str
        How the data differ from the paper's; empty when they are the paper's.
    facts : mapping
        Numbers and words about the data, to be reported.
    """

    content: Any
    source: str
    fingerprint: str
    not_comparable: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Part:
    """One kind of measurement, repeated in every run; a part of a run is never half finished.

    Attributes
    ----------
    name : str
        A short name, also of files.
    title : str
        What is done, for the progress bar: "gender accuracy".
    measure : callable
        ``measure(run)`` -> nested dictionaries and lists of numbers and text. It may raise
        `SkipPart`.
    runs : int, optional
        At most this many runs; 1 for what does not depend on the seed.
    weight : float
        About how many seconds it takes, for the time left.
    """

    name: str
    title: str
    measure: Callable[[Run], Mapping[str, Any]]
    runs: int | None = None
    weight: float = 1.0


@dataclass(frozen=True)
class Line:
    """One line of a table: what it is, the paper's figure, ours.

    Attributes
    ----------
    labels : tuple of str
        One for each head of the table.
    ours : Number, str or None
    paper : Number, str or None
        A word, such as "above 90", where the paper prints no number; None where it prints nothing.
    """

    labels: tuple[str, ...]
    ours: Number | str | None
    paper: Number | str | None = None


@dataclass(frozen=True)
class Table:
    """Our figures beside the paper's.

    Attributes
    ----------
    name : str
    title : str
        With the unit of its numbers.
    heads : tuple of str
        Of the labels.
    lines : sequence of Line
    where : str
        The table, figure or section of the paper; empty when it has nothing like it.
    digits : int
        After the decimal point.
    note : str
    section : str
        The heading of the report under which it stands.
    """

    name: str
    title: str
    heads: tuple[str, ...]
    lines: Sequence[Line]
    where: str = ""
    digits: int = 3
    note: str = ""
    section: str = "Results"


@dataclass(frozen=True)
class Picture:
    """A figure, written as PNG and PDF.

    Attributes
    ----------
    name : str
        Of its files.
    title : str
    caption : str
        What is shown, on which rows, in which unit, and what the paper's figure shows.
    draw : callable
        ``draw(results)`` -> matplotlib figure.
    where : str
        The figure of the paper; empty when it has nothing like it.
    section : str
        The heading of the report under which it stands.
    """

    name: str
    title: str
    caption: str
    draw: Callable[[Results], Any]
    where: str = ""
    section: str = "Results"


@dataclass(frozen=True)
class Experiment:
    """One experiment of the paper.

    Attributes
    ----------
    name, title, about : str
        A word, a line and a paragraph.
    load : callable
        ``load(path, settings)`` -> `Loaded`; `path` is None for the data that come with the
        package.
    parts : sequence of Part
        In the order in which a run does them.
    tables, pictures : callable
        ``tables(results)`` and ``pictures(results)`` -> sequences of `Table` and `Picture`.
    findings : callable
        ``findings(results)`` -> sentences with what came out.
    runs, quick_runs : int
        How many by default.
    options : mapping from str to str
        Names of what it can be told beyond the data, and what they mean.
    packages : sequence of str
        Those whose versions the results depend on, beside numpy, scipy and scikit-learn.
    parallel : bool
        Whether runs may be done side by side, by processes that load the data each for itself and
        use one BLAS thread; for parts that keep one core busy.
    """

    name: str
    title: str
    about: str
    load: Callable[[Path | None, Settings], Loaded]
    parts: Sequence[Part]
    tables: Callable[[Results], Sequence[Table]]
    pictures: Callable[[Results], Sequence[Picture]]
    findings: Callable[[Results], Sequence[str]]
    runs: int = 10
    quick_runs: int = 2
    options: Mapping[str, str] = field(default_factory=dict)
    packages: Sequence[str] = ()
    parallel: bool = False
