"""The finished runs of an experiment, ready for tables and pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.linalg import Array
from expunge.reproduce.experiment import Loaded, Part, Settings
from expunge.reproduce.numbers import Number, plain, summarise

__all__ = ["Results"]

SKIPPED = "skipped"


class Results:
    """What the parts measured.

    Parameters
    ----------
    settings : Settings
    data : Loaded
    parts : mapping from str to sequence of trees
        For each part the results of its runs.
    read_arrays : callable
        ``read_arrays(key, run)`` -> the arrays that a run has kept.

    Examples
    --------
    >>> from expunge.reproduce.experiment import Loaded, Settings
    >>> from expunge.reproduce.results import Results
    >>> trees = {"weat": [{"d": [0.5, 1.0]}, {"d": [0.7, 1.0]}]}
    >>> results = Results(Settings(2), Loaded(None, "nothing", "0"), trees)
    >>> print(results.number("weat", "d", 0))
    0.600 ± 0.141
    >>> mean, sd = results.series("weat", "d")
    >>> mean.round(3)
    array([0.6, 1. ])
    """

    def __init__(
        self,
        settings: Settings,
        data: Loaded,
        parts: Mapping[str, Sequence[Any]],
        read_arrays: Callable[[str, int], dict[str, NDArray[Any]]] | None = None,
    ) -> None:
        self.settings, self.data = settings, data
        trees = {name: [plain(tree) for tree in found] for name, found in parts.items()}
        self._all = trees
        self._parts = {
            name: [tree for tree in found if not _reason(tree)] for name, found in trees.items()
        }
        self._read_arrays = read_arrays

    def has(self, part: str) -> bool:
        """Whether a part was measured in some run."""
        return bool(self._parts.get(part))

    def skipped(self, part: str) -> str:
        """Why a part was skipped in every run; empty if some run has it."""
        reasons = self.skipped_runs(part)
        return "" if self.has(part) or not reasons else reasons[min(reasons)]

    def skipped_runs(self, part: str) -> dict[int, str]:
        """The runs, counted from 1, that skipped a part, and why."""
        reasons = {n: _reason(tree) for n, tree in enumerate(self._all.get(part, []), start=1)}
        return {number: reason for number, reason in reasons.items() if reason}

    def left_out(self, parts: Sequence[Part]) -> list[str]:
        """Parts that were skipped, in which runs and why, for people.

        Parameters
        ----------
        parts : sequence of Part

        Returns
        -------
        list of str
        """
        said = []
        for part in parts:
            if reasons := self.skipped_runs(part.name):
                numbers = ", ".join(map(str, reasons)) if self.has(part.name) else ""
                where = f" (in runs {numbers}; the figures are of the others)" if numbers else ""
                said.append(f"{part.title}{where}: {next(iter(reasons.values()))}")
        return said

    def runs(self, part: str) -> list[Any]:
        """The trees of a part, one for each run that measured it."""
        return list(self._parts[part])

    def first(self, part: str, *path: str | int) -> Any:
        """What stands at a place in the tree of the first run that measured the part."""
        return _at(self._parts[part][0], path)

    def values(self, part: str, *path: str | int) -> list[Any]:
        """What stands at a place in the tree of each run that measured the part."""
        return [_at(tree, path) for tree in self._parts[part]]

    def number(self, part: str, *path: str | int) -> Number:
        """Mean and standard deviation over the runs of the number at a place.

        Parameters
        ----------
        part : str
        *path : str or int
            Keys and positions on the way to it.

        Returns
        -------
        Number
        """
        return Number.of(self.values(part, *path))

    def series(self, part: str, *path: str | int) -> tuple[Array, Array]:
        """Means and standard deviations of the list of numbers at a place.

        Parameters
        ----------
        part : str
        *path : str or int

        Returns
        -------
        mean, sd : arrays of shape (k,)
            The standard deviation is 0 for a single run.
        """
        values = np.array(self.values(part, *path), dtype=np.float64)
        sd = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1:])
        return values.mean(axis=0), np.asarray(sd)

    def arrays(self, key: str, run: int | None = None) -> dict[str, NDArray[Any]]:
        """Arrays under this key, by default from the first run that has kept them.

        Parameters
        ----------
        key : str
        run : int, optional

        Returns
        -------
        dict from str to array
        """
        read = self._read_arrays
        for number in range(self.settings.runs) if run is None else [run]:
            with suppress(FileNotFoundError):
                if read is not None:
                    return read(key, number)
        raise KeyError(key)

    def to_dict(self) -> dict[str, Any]:
        """For each part the trees of its runs and their summary."""
        return {
            name: {"summary": summarise(self._parts[name] or trees), "runs": trees}
            for name, trees in self._all.items()
            if trees
        }


def _reason(tree: Any) -> str:
    """Why a part was skipped; empty if it was measured."""
    return str(tree.get(SKIPPED, "")) if isinstance(tree, dict) else ""


def _at(tree: Any, path: Sequence[str | int]) -> Any:
    for step in path:
        tree = tree[int(step)] if isinstance(tree, list) else tree[str(step)]
    return tree
