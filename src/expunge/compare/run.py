"""One run of a comparison: rows of the fit, held-out rows, and what is measured on them."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.audit.given import Given, Part, gather
from expunge.audit.held_out import as_given, held_out, numbered
from expunge.audit.neighbours import neighbour_overlap
from expunge.audit.probes import choose_probes
from expunge.audit.probing import Terms, fresh_protocol, same_protocol, too_few
from expunge.audit.protocol import FamilyResult
from expunge.audit.remembered import remembered
from expunge.audit.residue import Residue, expected_residue, of_tested_classes
from expunge.compare.methods import Method, Pairs
from expunge.concept import Concept
from expunge.erasers import SAL, PairPCA
from expunge.erasers.base import BaseEraser
from expunge.erasure import Erasure
from expunge.errors import InputError
from expunge.moments import Moments

__all__ = ["Everything", "Measured", "Run"]

QUERIES = 500  # rows asked for their neighbours
NEIGHBOURS = 10


@dataclass(frozen=True, eq=False)
class Measured:
    """What one method leaves and costs in one run."""

    rank: int
    told: bool
    exact: bool
    linear: FamilyResult | None
    fresh: FamilyResult | None
    nonlinear: FamilyResult | None
    task: FamilyResult | None
    variance: float
    neighbours: float
    seconds: float


@dataclass(frozen=True, eq=False)
class Everything:
    """All rows with all that is known of them.

    Attributes
    ----------
    values : array of shape (n, d)
    concept : Concept
    task : Concept or None
    pairs : pair of arrays or None
    terms : Terms
        Of the audit's probing.
    """

    values: NDArray[Any]
    concept: Concept
    task: Concept | None
    pairs: Pairs | None
    terms: Terms

    def run(self, seed: int, test_size: float) -> Run:
        """Rows split anew; copies of a row stay on one side."""
        known = [self.concept] if self.task is None else [self.concept, self.task]
        test = held_out(self.values, known, test_size, seed)
        train = np.setdiff1d(np.arange(len(self.values)), test)
        terms = replace(self.terms, probes=[remembered(p) for p in self.terms.probes], seed=seed)
        run = Run(self, train, test, terms)
        for index in (train, test):
            X = self.values[index]
            if len(index) == 0 or too_few(Part(X, X, self.concept.take(index), None, None)):
                different = len(np.unique(numbered(self.values)))
                raise InputError(
                    "There are too few different rows, or rows of a class, to hold some out",
                    f"{len(self.values)} rows, {different} of them different, {len(test)} held out",
                    "Pass more rows, or another test_size",
                )
        self._check_task(test)
        return run

    def _check_task(self, test: NDArray[np.intp]) -> None:
        """Refuse a task that the held-out rows cannot show: then there is nothing to tell apart."""
        if self.task is None:
            return
        there = np.flatnonzero(np.bincount(self.task.values[test]))
        if len(there) < 2:
            raise InputError(
                "The held-out rows have one class of the task only",
                f"{self.task.labels[there[0]]!r} on all {len(test):,} of them",
                "Pass a task with more rows of its other classes, or another test_size",
            )


@dataclass(frozen=True, eq=False)
class Run:
    """One split of the rows."""

    all: Everything
    train: NDArray[np.intp]
    test: NDArray[np.intp]
    terms: Terms

    @cached_property
    def own_rank(self) -> int:
        """Directions in which the concept moves the rows of the fit, and at least one."""
        eraser = SAL(concept_type=self.all.concept.kind)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a method that nobody asked for
            eraser.fit(self.all.values[self.train], self._labels(self.train))
        most: int = self.all.values.shape[1] - 1
        return max(min(eraser.rank_, most), 1)

    def fitted(self, method: Method) -> tuple[BaseEraser, float]:
        """The method fitted on the rows of the fit, and the seconds it took."""
        eraser = method.made(self.all.concept.kind, lambda: self.own_rank)
        started = time.perf_counter()
        if isinstance(eraser, PairPCA):
            assert self.all.pairs is not None
            ids = np.arange(len(self.all.pairs[0]))
            eraser.fit(np.vstack(self.all.pairs), np.concatenate([ids, ids]))
        elif self.all.task is None:
            eraser.fit(self.all.values[self.train], self._labels(self.train))
        else:
            task = self.all.task.values[self.train]
            eraser.fit(self.all.values[self.train], task, concept=self._labels(self.train))
        return eraser, time.perf_counter() - started

    def measure(self, eraser: BaseEraser | None, seconds: float = 0.0) -> Measured:
        """Everything about a fitted eraser, or about the rows as they are."""
        d = self.all.values.shape[1]
        nothing = Erasure(np.zeros((d, 0)), np.zeros((0, d)))
        given = self._given(nothing if eraser is None else eraser)
        train, test = given.train, given.test
        assert train is not None
        assert test is not None
        linear = self._terms("linear")
        same = same_protocol(train, test, linear).after if linear.probes else {}
        fresh = fresh_protocol(test, self.terms).after
        certificate = None if eraser is None else eraser.certificate_
        return Measured(
            rank=0 if eraser is None else eraser.rank_,
            exact=certificate is not None and certificate.erased,
            told=getattr(given.subject, "needs_concept", False),
            linear=same.get("linear"),
            fresh=fresh.get("linear"),
            nonlinear=fresh.get("nonlinear"),
            task=self._task(train, test),
            variance=_variance(test.after) / (_variance(test.before) or 1.0),
            neighbours=self._neighbours(test),
            seconds=seconds,
        )

    def residue(self, probe_rows: int) -> Residue | None:
        """What sampling error of an exact fit leaves to a probe that has so many fresh rows."""
        fitted, tested = (self.all.concept.take(index) for index in (self.train, self.test))
        rows = of_tested_classes(self.all.values[self.train], fitted, tested)
        return expected_residue(Moments.of(*rows), probe_rows)

    def _labels(self, index: NDArray[np.intp]) -> NDArray[Any]:
        return as_given(self.all.concept.take(index))

    def _given(self, erasure: Any) -> Given:
        """Rows before and after, as an audit has them; what needs the concept is told it."""
        X, task = self.all.values, self.all.task
        return gather(
            erasure,
            X[self.train],
            self._labels(self.train),
            X[self.test],
            self._labels(self.test),
            task=None if task is None else (task.values[self.train], task.values[self.test]),
            names=None,
            concept_type=self.all.concept.kind,
        )

    def _terms(self, family: str) -> Terms:
        return replace(self.terms, probes=[p for p in self.terms.probes if p.family == family])

    def _task(self, train: Part, test: Part) -> FamilyResult | None:
        if train.task is None or test.task is None:
            return None
        terms = replace(self.terms, probes=self._task_probes)
        sides = replace(train, concept=train.task), replace(test, concept=test.task)
        return same_protocol(*sides, terms).after["linear"]

    @cached_property
    def _task_probes(self) -> list[Any]:
        return [remembered(probe) for probe in choose_probes("linear", "classes")]

    def _neighbours(self, part: Part) -> float:
        """Share of neighbours kept, among different rows: which of equal rows is nearer is luck."""
        first = np.unique(numbered(part.before), return_index=True)[1]
        return neighbour_overlap(
            part.before[first],
            part.after[first],
            min(NEIGHBOURS, len(first) - 1),
            max_queries=QUERIES,
            max_base=self.terms.sizes.linear_test,
            random_state=self.terms.seed,
        )


def _variance(X: NDArray[Any]) -> float:
    return float(X.var(axis=0, dtype=np.float64).sum())
