"""One pass over rows that learns everything a fit wants to know of them."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.blockmath import BlockMath
from expunge.concept import Concept, Label
from expunge.fingerprint import Fingerprint
from expunge.linalg import Array
from expunge.moments import Moments, RangeCheck, span_moments
from expunge.parallel import SPAN, blocks
from expunge.rows.finite import refuse_nan

__all__ = ["Reader", "Reading"]

TOGETHER = 4 * SPAN  # rows among which those of a class are gathered


@dataclass(frozen=True)
class Reading:
    """What one pass learnt.

    Attributes
    ----------
    moments : Moments
        Of the rows with the concept.
    fingerprint : Fingerprint
    task : Moments or None
        Of the rows with a task.
    by_class : mapping of class to Moments, or None
        Of the rows of each class that count.
    look : array of shape (k, d)
        The rows that were asked for.
    """

    moments: Moments
    fingerprint: Fingerprint
    task: Moments | None
    by_class: Mapping[Label, Moments] | None
    look: NDArray[Any]


class Reader:
    """Sees blocks of rows in order and adds up what it sees.

    Parameters
    ----------
    math : BlockMath
        Of the library that holds the blocks.
    concept : Concept
    weights : array of shape (n,), optional
    second, task, by_class, look
        As of `Rows.read`.
    recognise : bool
        Whether a fingerprint is wanted.
    """

    def __init__(
        self,
        math: BlockMath,
        concept: Concept,
        weights: Array | None = None,
        second: bool = True,
        task: Concept | None = None,
        by_class: bool = False,
        look: NDArray[np.intp] | None = None,
        recognise: bool = True,
    ) -> None:
        self.math, self.concept, self.weights, self.second = math, concept, weights, second
        self.task, self.recognise = task, recognise
        self.wanted = np.zeros(0, np.intp) if look is None else look
        self.total: Moments | None = None
        self.of_task: Moments | None = None
        self.of_class: dict[Label, Moments] | None = {} if by_class else None
        self.seen: Fingerprint | None = None
        self.looks: list[NDArray[Any]] = []
        self.range = RangeCheck()

    def see(self, start: int, X: Any) -> None:
        """Take in a block (k x d) whose first row has the number `start`."""
        here = slice(start, start + len(X))
        w = None if self.weights is None else self.weights[here]
        concept = self.concept.take(here)
        own = self._moments(X, concept, w, self.second)
        if not (np.isfinite(own.squares).all() and np.isfinite(own.mean_x).all()):
            refuse_nan(self.math.glance(X), "X", start)
        self.range.see(X, own, w, self.math)
        self.total = own if self.total is None else self.total.merge(own)
        if self.task is not None:
            part = self._moments(X, self.task.take(here), w, False)
            self.of_task = part if self.of_task is None else self.of_task.merge(part)
        if self.of_class is not None:
            self._see_classes(X, concept, w)
        if self.recognise:
            rows = self.math.glance(X)
            self.seen = Fingerprint.of(rows) if self.seen is None else self.seen.extended(rows)
        lo, hi = np.searchsorted(self.wanted, [here.start, here.stop])
        if lo < hi:
            self.looks.append(self.math.arrays(self.math.rows(X, self.wanted[lo:hi] - start)))

    def _moments(self, X: Any, concept: Concept, w: Array | None, second: bool) -> Moments:
        return reduce(Moments.merge, span_moments(X, concept, w, second=second, math=self.math))

    def _see_classes(self, X: Any, concept: Concept, w: Array | None) -> None:
        """Moments of each class by itself, without rows of no weight."""
        assert self.of_class is not None
        for lo, hi in blocks(0, len(X), TOGETHER):
            codes = concept.values[lo:hi]
            counts = np.ones(hi - lo, bool) if w is None else w[lo:hi] > 0
            for code in np.unique(codes[counts]):
                own = lo + np.flatnonzero((codes == code) & counts)
                part = self._moments(
                    self.math.rows(X, own),
                    Concept.none(own.size),
                    None if w is None else w[own],
                    True,
                )
                label = concept.labels[code]
                before = self.of_class.get(label)
                self.of_class[label] = part if before is None else before.merge(part)

    def moments(self) -> Moments:
        """Of all blocks seen, if their numbers can be worked with."""
        assert self.total is not None  # there is a row
        self.range.settle(self.total)
        return self.total

    def finish(self) -> Reading:
        """What was learnt, if the numbers can be worked with."""
        moments = self.moments()
        assert self.seen is not None
        look = np.concatenate(self.looks) if self.looks else np.zeros((0, moments.n_features))
        return Reading(moments, self.seen, self.of_task, self.of_class, look)

    def without_rows(self) -> Reader:
        """Itself, with its sums only: what belongs to single rows is forgotten."""
        self.concept, self.weights, self.task = self.concept.take(slice(0)), None, None
        return self

    def joined(self, other: Reader) -> Reader:
        """A reader that has seen these rows and then those of another; both stay as they are.

        Parameters
        ----------
        other : Reader
            With the same settings.

        Returns
        -------
        Reader
        """
        if self.total is None or other.total is None:
            return other if self.total is None else self
        both = copy(self)
        both.total = self.total.merge(other.total)
        if self.of_task is not None and other.of_task is not None:
            both.of_task = self.of_task.merge(other.of_task)
        if self.of_class is not None and other.of_class is not None:
            both.of_class = dict(self.of_class)
            for label, part in other.of_class.items():
                before = both.of_class.get(label)
                both.of_class[label] = part if before is None else before.merge(part)
        if self.seen is not None and other.seen is not None:
            both.seen = self.seen.merge(other.seen)
        both.looks = self.looks + other.looks
        both.range = self.range.joined(other.range)
        return both
