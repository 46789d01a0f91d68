"""What is fuzzed: a plan describes one call completely, in a few words that can be printed.

A plan is drawn from a source of choices, so that Hypothesis and a plain random generator draw from
the same distribution. Numbers come from `Plan.seed`; everything else is a choice by name. Fields at
their default are not printed, and a plan is made simpler by putting fields back to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

__all__ = ["Plan", "RandomSource", "Rows", "Target", "Weights", "simpler"]


class _Terse:
    """A dataclass that prints only what differs from its defaults."""

    def __repr__(self) -> str:
        shown = [f"{name}={value!r}" for name, value, default in _values(self) if value != default]
        return f"{type(self).__name__}({', '.join(shown)})"


def _values(thing: Any) -> Iterator[tuple[str, Any, Any]]:
    for spec in fields(thing):
        made = spec.default_factory() if callable(spec.default_factory) else spec.default
        yield spec.name, getattr(thing, spec.name), made


@dataclass(frozen=True, repr=False)
class Rows(_Terse):
    """Rows of X: Gaussian or few integers, moved by the concept, then spoilt in the ways named."""

    n: int = 20
    d: int = 2
    gap: float = 1.0  # how far the concept moves the rows, in standard deviations
    tails: float = 0.0  # how far the tails of each column reach: sinh of so many times the number
    empty: float = 0.0  # share of rows that have 0 in each column
    integers: bool = False  # repeated small integers instead of Gaussian numbers
    mixed: float = 0.0  # columns in units from 10^-mixed to 10^mixed
    scale: float = 1.0  # of all columns
    one_scale: float = 1.0  # of the first column alone
    offset: float = 0.0  # in standard deviations of each column
    constants: int = 0  # columns that never vary
    twins: bool = False  # the last column repeats the first
    nearly: float = 0.0  # the last column is the first plus so much noise
    copies: int = 0  # only so many different rows
    outlier: float = 0.0  # X[0, 0]
    dtype: str = "float64"
    home: str = "array"  # "fortran", "strided", "list", "frame" or "tensor"
    defect: str = ""  # "nan", "inf", "empty", "flat", "complex" or "text"


@dataclass(frozen=True, repr=False)
class Target(_Terse):
    """The concept: two or several classes, labels, a number, a vector, or several by name."""

    kind: str = "binary"  # "classes", "labels", "number", "vector", "several" or "sets"
    count: int = 2  # classes, labels or components
    rare: bool = False  # all but the first class (or label) have a row or two
    text: bool = False  # classes as strings
    units: float = 1.0  # of numbers
    origin: float = 0.0  # of numbers, in their units
    frozen: bool = False  # one label (or component) never varies
    twin: bool = False  # the last label (or component) repeats the first
    defect: str = ""  # "none", "short", "nan" or "single"


@dataclass(frozen=True, repr=False)
class Weights(_Terse):
    """Weights: none, or two sizes `ratio` apart, with a share of zeros."""

    ratio: float = 1.0
    zeros: float = 0.0
    lost_class: bool = False  # the last class (or the rows where a number is largest) has none
    defect: str = ""  # "negative", "nan", "short" or "zero"


@dataclass(frozen=True, repr=False)
class Plan(_Terse):
    """One call with everything it is given.

    `entry` is a name in `expunge.ERASERS`, "certify", "rank_path", "compare" or "audit";
    `erasure` what is certified or audited: "nothing", "random", "turned" or the name of an eraser.
    """

    entry: str
    seed: int = 0
    rows: Rows = Rows()
    target: Target = Target()
    weights: Weights = Weights()
    task: bool = False
    erasure: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    bad: str = ""  # the parameter that is not valid

    @property
    def is_valid(self) -> bool:
        """Whether nothing was drawn that has to be refused."""
        return not (self.bad or self.rows.defect or self.target.defect or self.weights.defect)

    @property
    def is_tame(self) -> bool:
        """Whether nothing about it should trouble anyone: here every promise has to be kept."""
        rows, target, weights = self.rows, self.target, self.weights
        return (
            self.is_valid
            and rows.n >= 20
            and 2 <= rows.d <= rows.n // 4
            and rows.dtype != "float16"
            and not (rows.mixed or rows.constants or rows.twins or rows.nearly or rows.copies)
            and rows.scale == rows.one_scale == 1.0
            and not (rows.offset or rows.outlier or rows.integers or rows.tails or rows.empty)
            and not (target.rare or target.frozen or target.twin or target.origin)
            and target.units == 1.0
            and weights == Weights()
        )


def simpler(plan: Plan) -> Iterator[Plan]:
    """Plans with one thing less, the largest cuts first."""
    for name in ("weights", "target", "rows"):
        part = getattr(plan, name)
        for key, value, default in _values(part):
            if value == default:
                continue
            numbers = [default]
            if key in ("n", "d", "count", "constants") and value > default:
                numbers += [(value + default) // 2, value - 1]
            if key in ("n", "d") and value > 2 - (key == "d"):
                numbers += [value // 2, value - 1]
            if key in ("scale", "one_scale", "gap", "offset", "units", "ratio") and value > 0:
                numbers += [float(f"1e{round(np.log10(value))}")]
            for other in dict.fromkeys(numbers):
                if other != value:
                    yield replace(plan, **{name: replace(part, **{key: other})})
    for key in plan.parameters:
        if key != plan.bad:
            rest = {k: v for k, v in plan.parameters.items() if k != key}
            yield replace(plan, parameters=rest)
    if plan.task:
        yield replace(plan, task=False)
    if plan.seed:
        yield replace(plan, seed=0)


class RandomSource:
    """Choices from a NumPy generator; Hypothesis has one with the same methods."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def integer(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def number(self, low: float, high: float) -> float:
        return float(self.rng.uniform(low, high))

    def choice(self, options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)
