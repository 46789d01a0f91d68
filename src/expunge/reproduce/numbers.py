"""Means and standard deviations over runs, of single numbers and of whole trees of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from expunge.errors import InputError

__all__ = ["Number", "plain", "summarise"]


@dataclass(frozen=True)
class Number:
    """A mean over runs.

    Attributes
    ----------
    mean : float
        nan where nothing could be measured.
    sd : float, optional
        Standard deviation over the runs (ddof = 1); None for a single measurement.
    runs : int, optional
        How many; None where a paper does not say.

    Examples
    --------
    >>> from expunge.reproduce.numbers import Number
    >>> print(Number.of([0.5, 0.7]))
    0.600 ± 0.141
    >>> Number(1.57).text(2)
    '1.57'
    """

    mean: float
    sd: float | None = None
    runs: int | None = None

    @classmethod
    def of(cls, values: Sequence[float | None]) -> Number:
        """Mean and standard deviation of measurements; what is None was not measured.

        Parameters
        ----------
        values : sequence of float or None

        Returns
        -------
        Number
        """
        known = [float(value) for value in values if value is not None]
        if not known:
            return cls(math.nan, None, 0)
        sd = float(np.std(known, ddof=1)) if len(known) > 1 else None
        return cls(float(np.mean(known)), sd, len(known))

    def times(self, factor: float) -> Number:
        """The same in another unit, percent say.

        Parameters
        ----------
        factor : float

        Returns
        -------
        Number
        """
        sd = None if self.sd is None else self.sd * abs(factor)
        return Number(self.mean * factor, sd, self.runs)

    def text(self, digits: int = 3) -> str:
        """Mean ± standard deviation.

        Parameters
        ----------
        digits : int
            After the decimal point.

        Returns
        -------
        str
        """
        if math.isnan(self.mean):
            return "–"
        spread = "" if self.sd is None else f" ± {self.sd:.{digits}f}"
        return f"{self.mean:.{digits}f}{spread}"

    def __str__(self) -> str:
        return self.text()

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"mean": plain(self.mean), "sd": plain(self.sd), "runs": self.runs}


def plain(tree: Any) -> Any:
    """A tree as JSON has it: lists, dictionaries, text, finite numbers; None for nan.

    Parameters
    ----------
    tree : object

    Returns
    -------
    object

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.reproduce.numbers import plain
    >>> plain({"a": np.array([1.5, np.nan]), 2: np.float32(0.5)})
    {'a': [1.5, None], '2': 0.5}
    """
    if isinstance(tree, Mapping):
        return {str(key): plain(value) for key, value in tree.items()}
    if isinstance(tree, np.ndarray | np.generic):
        return plain(tree.tolist())
    if isinstance(tree, list | tuple):
        return [plain(value) for value in tree]
    if isinstance(tree, float):
        return tree if math.isfinite(tree) else None
    if tree is None or isinstance(tree, bool | int | str):
        return tree
    raise InputError(
        "A part of an experiment returned what JSON does not have",
        repr(type(tree).__name__),
        "Return dictionaries, lists, numbers and text",
    )


def summarise(trees: Sequence[Any]) -> Any:
    """The tree of one run with a mean, a standard deviation and a count at every number.

    Parameters
    ----------
    trees : sequence of trees
        One for each run, as `plain` makes them. Where they differ in shape or hold text, the
        values are kept: one if all agree, else the list of them.

    Returns
    -------
    tree

    Examples
    --------
    >>> from expunge.reproduce.numbers import summarise
    >>> summarise([{"d": 1.0, "by": "sgd"}, {"d": 3.0, "by": "sgd"}])["by"]
    'sgd'
    >>> summarise([{"d": [1.0]}, {"d": [3.0]}])["d"][0]["mean"]
    2.0
    """
    first = trees[0]
    if all(isinstance(tree, dict) and tree.keys() == first.keys() for tree in trees):
        return {key: summarise([tree[key] for tree in trees]) for key in first}
    if all(isinstance(tree, list) and len(tree) == len(first) for tree in trees):
        return [summarise(list(entries)) for entries in zip(*trees, strict=True)]
    if all(_is_number(tree) for tree in trees) and any(tree is not None for tree in trees):
        return Number.of(trees).to_dict()
    return first if all(tree == first for tree in trees) else list(trees)


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
