"""The finished runs of an experiment: means over them, ready for tables and figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.linalg import Array
from expunge.report.values import cleaned
from expunge.reproduce.runner.declaration import ExperimentPart, LoadedData, RunSettings

__all__ = ["NOTHING", "SKIPPED", "Arrays", "ExperimentResults", "Number", "summarise"]

Arrays = dict[str, NDArray[Any]]

NOTHING = "–"  # where there is no number
SKIPPED = "skipped"  # the key of the reason in the tree of a part that was not measured


@dataclass(frozen=True)
class Number:
    """A mean over runs, nan where nothing could be measured, and their standard deviation.

    Examples
    --------
    >>> from expunge.reproduce.runner.experiment_results import Number
    >>> print(Number.of([0.5, 0.7]))
    0.600 ± 0.141
    >>> Number(1.57).text(2)
    '1.57'
    """

    mean: float
    sd: float | None = None  # ddof = 1; None for a single measurement
    runs: int | None = None  # None where a paper does not say

    @classmethod
    def of(cls, values: Sequence[float | None]) -> Number:
        """From measurements; what is None was not measured."""
        known = [float(value) for value in values if value is not None]
        if not known:
            return cls(math.nan, None, 0)
        sd = float(np.std(known, ddof=1)) if len(known) > 1 else None
        return cls(float(np.mean(known)), sd, len(known))

    def times(self, factor: float) -> Number:
        """The same in another unit, percent say."""
        sd = None if self.sd is None else self.sd * abs(factor)
        return Number(self.mean * factor, sd, self.runs)

    def text(self, digits: int = 3) -> str:
        """Mean ± standard deviation, with so many digits after the decimal point."""
        if math.isnan(self.mean):
            return NOTHING
        spread = "" if self.sd is None else f" ± {self.sd:.{digits}f}"
        return f"{self.mean:.{digits}f}{spread}"

    def __str__(self) -> str:
        return self.text()

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"mean": cleaned(self.mean), "sd": cleaned(self.sd), "runs": self.runs}


def summarise(trees: Sequence[Any]) -> Any:
    """The tree of one run with a mean, a standard deviation and a count at every number.

    Where trees differ in shape or hold text, the values are kept: one if all agree, else a list.
    """
    first = trees[0]
    if all(isinstance(tree, dict) and tree.keys() == first.keys() for tree in trees):
        return {key: summarise([tree[key] for tree in trees]) for key in first}
    if all(isinstance(tree, list) and len(tree) == len(first) for tree in trees):
        return [summarise(list(entries)) for entries in zip(*trees, strict=True)]
    if {type(tree) for tree in trees} - {type(None)} in ({int}, {float}, {int, float}):
        return Number.of(trees).to_dict()
    return first if all(tree == first for tree in trees) else list(trees)


class ExperimentResults:
    """What the parts measured: for each part a tree of plain values from every run.

    ``read_arrays(key, run)`` gives the arrays that a run has kept, or raises KeyError.
    """

    def __init__(
        self,
        settings: RunSettings,
        data: LoadedData,
        parts: Mapping[str, Sequence[Any]],
        read_arrays: Callable[[str, int], Arrays] | None = None,
    ) -> None:
        self.settings, self.data, self._all, self._read_arrays = settings, data, parts, read_arrays

    def runs(self, part: str) -> list[Any]:
        """The trees of a part, one for each run that measured it."""
        return [tree for tree in self._all.get(part, []) if SKIPPED not in tree]

    def has(self, part: str) -> bool:
        """Whether a part was measured in some run."""
        return bool(self.runs(part))

    def skipped(self, part: str) -> str:
        """Why a part was skipped in every run; empty if some run has it."""
        return "" if self.has(part) else next(iter(self._reasons(part).values()), "")

    def left_out(self, parts: Sequence[ExperimentPart]) -> list[str]:
        """Parts that were skipped, in which runs and why, for people."""
        said = []
        for part in parts:
            if reasons := self._reasons(part.name):
                numbers = ", ".join(map(str, reasons)) if self.has(part.name) else ""
                where = f" (in runs {numbers}; the figures are of the others)" if numbers else ""
                said.append(f"{part.title}{where}: {next(iter(reasons.values()))}")
        return said

    def _reasons(self, part: str) -> dict[int, str]:
        """The runs, counted from 1, that skipped a part, and why."""
        trees = enumerate(self._all.get(part, []), start=1)
        return {number: tree[SKIPPED] for number, tree in trees if SKIPPED in tree}

    def values(self, part: str, *path: str | int) -> list[Any]:
        """What stands at a place in the tree of each run that measured the part."""
        return [_at(tree, path) for tree in self.runs(part)]

    def first(self, part: str, *path: str | int) -> Any:
        """What stands at a place in the tree of the first run that measured the part."""
        return self.values(part, *path)[0]

    def number(self, part: str, *path: str | int) -> Number:
        """Mean and standard deviation of a number over the runs that have it at a place."""
        return Number.of([_at(tree, path, lacking=True) for tree in self.runs(part)])

    def series(self, part: str, *path: str | int) -> tuple[Array, Array]:
        """Means and standard deviations (0 for a single run) of the list of numbers at a place."""
        values = np.array(self.values(part, *path), dtype=np.float64)
        sd = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1:])
        return values.mean(axis=0), np.asarray(sd)

    def arrays(self, key: str, run: int | None = None) -> Arrays:
        """Arrays under this key, by default from the first run that has kept them."""
        for number in range(self.settings.runs) if run is None else [run]:
            with suppress(KeyError):
                if self._read_arrays is not None:
                    return self._read_arrays(key, number)
        raise KeyError(key)

    def to_dict(self) -> dict[str, Any]:
        """For each part the trees of its runs and their summary."""
        return {
            name: {"summary": summarise(self.runs(name) or trees), "runs": trees}
            for name, trees in self._all.items()
            if trees
        }


def _at(tree: Any, path: Sequence[str | int], *, lacking: bool = False) -> Any:
    for step in path:
        if lacking and not (isinstance(tree, list) or step in (tree or {})):
            return None
        tree = tree[step]
    return tree
