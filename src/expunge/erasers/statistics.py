"""What an eraser keeps of the rows it has seen: mergeable sums, never the rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from expunge.concept import Concept, Label
from expunge.errors import InputError
from expunge.files.vector_columns import VectorColumns
from expunge.fingerprint import Fingerprint
from expunge.linalg import Array
from expunge.moments import Moments
from expunge.pooling.sharpened import PoolRecord
from expunge.rows.base import Rows

__all__ = ["Data", "Statistics"]


@dataclass(frozen=True)
class Data:
    """The rows of a fit: concept, weights and groups, a task, and rows without labels."""

    rows: Rows
    concept: Concept
    weights: Array | None
    task: Concept | None = None
    pool: Rows | None = None
    groups: NDArray[np.intp] | None = None


@dataclass(frozen=True)
class Statistics:
    """Sums over all rows seen.

    Attributes
    ----------
    moments : Moments
        Of the rows with the concept.
    seen : Fingerprint or None
        None where nobody knows which rows these were.
    task : Moments or None
        Of the rows with a task whose covariance is to be kept.
    by_class : mapping of class to Moments, or None
        Mean and covariance of each class.
    rounding : float
        Sum of squares that may be rounding of the numbers, where a method asks for it.
    squared_weights : float or None
        Sum of the squared weights; None without weights.
    labelled : Moments or None
        Of the labelled rows alone, where `moments` were sharpened by rows without labels.
    pool : PoolRecord or None
        What these did.
    folded : int
        Rows without labels that a fold moves by their predicted class.
    design : float
        By how much more sums vary because rows come in groups.
    columns : VectorColumns or None
        Which columns of a table the rows were.
    """

    moments: Moments
    seen: Fingerprint | None
    task: Moments | None = None
    by_class: Mapping[Label, Moments] | None = None
    rounding: float = 0.0
    squared_weights: float | None = None
    labelled: Moments | None = None
    pool: PoolRecord | None = None
    folded: int = 0
    design: float = 1.0
    columns: VectorColumns | None = None

    @property
    def own(self) -> Moments:
        """Moments of the rows that have labels."""
        return self.moments if self.labelled is None else self.labelled

    @property
    def effective_n(self) -> float:
        """Independent labelled rows of equal weight that estimate as well: (Σw)²/Σw² (Kish 1965).

        Fewer where rows come in groups, more where others without labels helped.
        """
        n = float(self.own.n)
        if self.squared_weights is not None:
            n = self.own.weight**2 / self.squared_weights
        return n / self.design / (1.0 if self.pool is None else self.pool.variance)

    @property
    def with_covariances(self) -> Moments:
        """The moments with second ones, where classes have them or they were asked for."""
        if self.moments.xx is not None or not self.by_class:
            return self.moments
        return reduce(Moments.merge, self.by_class.values())

    def merge(self, other: Statistics) -> Statistics:
        """Sums over both sets of rows."""
        if (self.task is None) != (other.task is None):
            raise InputError(
                "The task is missing from some chunks",
                "chunks with and without a task",
                "Pass the task with every chunk, or with none",
            )
        task, by_class = self.task, self.by_class
        if task is not None and other.task is not None:
            task = task.merge(other.task)
        if by_class is not None and other.by_class is not None:
            both = dict(by_class)
            for label, part in other.by_class.items():
                both[label] = both[label].merge(part) if label in both else part
            by_class = both
        squared = None
        if self.squared_weights is not None or other.squared_weights is not None:
            squared = sum(
                part.moments.n if part.squared_weights is None else part.squared_weights
                for part in (self, other)
            )
        moments, seen = self.moments.merge(other.moments), None
        if self.seen is not None and other.seen is not None:
            seen = self.seen.merge(other.seen)
        rounding = self.rounding + other.rounding
        columns = other.columns if self.columns is None else self.columns
        return Statistics(moments, seen, task, by_class, rounding, squared, columns=columns)
