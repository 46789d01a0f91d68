"""One run of a comparison: rows of the fit, held-out rows, and what is measured on them."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.audit.families import FamilyResult
from expunge.audit.fit import fit_size
from expunge.audit.given import AuditedRows, Given, as_given, gather
from expunge.audit.held_out import held_out
from expunge.audit.probe_memory import remembered
from expunge.audit.probes import choose_probes
from expunge.audit.protocols import Terms, fresh_protocol, same_protocol
from expunge.audit.repeats import row_hashes
from expunge.audit.residue import Residue, residue_of_fit
from expunge.audit.sampling import too_few
from expunge.comparison.methods import Method, Pairs
from expunge.concept import Concept
from expunge.erasers import SAL, PairPCA
from expunge.erasers.base import BaseEraser
from expunge.erasure import Erasure
from expunge.errors import InputError
from expunge.metrics.change import total_variance
from expunge.metrics.neighbours import overlap_of_rows
from expunge.rows.base import Rows
from expunge.rows.dense import DenseRows
from expunge.rows.lazy_rows import SelectedRows

__all__ = ["ComparedRows", "ComparisonRun", "Measured"]

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
class ComparedRows:
    """All rows with all that is known of them.

    Attributes
    ----------
    rows : rows of shape (n, d)
    concept : Concept
    task : Concept or None
    pairs : pair of arrays or None
    terms : Terms
        Of the audit's probing.
    pool : Rows or None
        Rows without labels, for methods that can use them.
    groups : int array of shape (n,) or None
        Rows that belong together.
    """

    rows: Rows
    concept: Concept
    task: Concept | None
    pairs: Pairs | None
    terms: Terms
    pool: Rows | None = None
    groups: NDArray[np.intp] | None = None

    def run(self, seed: int, test_size: float) -> ComparisonRun:
        """Rows split anew; copies of a row stay on one side."""
        known = [self.concept] if self.task is None else [self.concept, self.task]
        n = self.rows.n_samples
        test = held_out(self.rows, known, test_size, seed, self.groups)
        train = np.setdiff1d(np.arange(n), test)
        terms = replace(self.terms, probes=[remembered(p) for p in self.terms.probes], seed=seed)
        run = ComparisonRun(self, train, test, terms)
        for index in (train, test):
            some = SelectedRows(self.rows, index)
            part = AuditedRows(some, some, self.concept.take(index), None, None)
            if len(index) == 0 or too_few(part):
                different = len(np.unique(row_hashes(self.rows)))
                raise InputError(
                    "There are too few different rows, or rows of a class, to hold some out",
                    f"{n} rows, {different} of them different, {len(test)} held out",
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
class ComparisonRun:
    """One split of the rows."""

    all: ComparedRows
    train: NDArray[np.intp]
    test: NDArray[np.intp]
    terms: Terms

    @cached_property
    def fitted_on(self) -> NDArray[Any]:
        """The rows of the fit, the one copy that a run makes of them: an eraser wants an array."""
        return self.all.rows.take(self.train).array()

    @cached_property
    def own_rank(self) -> int:
        """Directions in which the concept moves the rows of the fit, and at least one."""
        eraser = SAL(concept_type=self.all.concept.kind)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a method that nobody asked for
            eraser.fit(self.fitted_on, self._labels(self.train))
        most = self.all.rows.n_features - 1
        return max(min(eraser.rank_, most), 1)

    def fitted(self, method: Method) -> tuple[BaseEraser, float]:
        """The method fitted on the rows of the fit, and the seconds it took."""
        eraser = method.made(self.all.concept.kind, lambda: self.own_rank)
        X = self.fitted_on
        started = time.perf_counter()
        if isinstance(eraser, PairPCA):
            assert self.all.pairs is not None
            ids = np.arange(len(self.all.pairs[0]))
            eraser.fit(np.vstack(self.all.pairs), np.concatenate([ids, ids]))
        elif self.all.task is None:
            eraser.fit(X, self._labels(self.train), **self._beside(eraser))
        else:
            task = self.all.task.values[self.train]
            eraser.fit(X, task, concept=self._labels(self.train), **self._beside(eraser))
        return eraser, time.perf_counter() - started

    def _beside(self, eraser: BaseEraser) -> dict[str, Any]:
        """Groups of the rows, and rows without labels where the method can use them."""
        found: dict[str, Any] = {}
        if self.all.groups is not None:
            found["groups"] = self.all.groups[self.train]
        rank: Any = getattr(eraser, "rank", "auto")
        enough = rank == "auto" or rank >= self.own_rank
        if self.all.pool is not None and enough and not eraser._why_not_pooling():
            found["unlabelled"] = self.all.pool
        return found

    def measure(self, eraser: BaseEraser | None, seconds: float = 0.0) -> Measured:
        """ComparedRows about a fitted eraser, or about the rows as they are."""
        given = self.given(eraser)
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
            variance=total_variance(test.after) / (total_variance(test.before) or 1.0),
            neighbours=self.neighbours_kept(test),
            seconds=seconds,
        )

    def residue(self, probe_rows: int) -> Residue | None:
        """What sampling error of an exact fit leaves to a probe that has so many fresh rows."""
        fitted, tested = (self.all.concept.take(index) for index in (self.train, self.test))
        every = DenseRows(self.fitted_on)
        ids = None if self.all.groups is None else self.all.groups[self.train]
        size = fit_size(every, fitted, tested, ids)
        new = SelectedRows(self.all.rows, self.test), tested
        return residue_of_fit(size, probe_rows, (every, fitted), new)

    def _labels(self, index: NDArray[np.intp]) -> NDArray[Any]:
        return as_given(self.all.concept.take(index))

    def given(self, eraser: BaseEraser | None) -> Given:
        """Rows before and after, as an audit has them; what needs the concept is told it."""
        d = self.all.rows.n_features
        erasure = Erasure(np.zeros((d, 0)), np.zeros((0, d))) if eraser is None else eraser
        task, groups = self.all.task, self.all.groups
        return gather(
            erasure,
            SelectedRows(self.all.rows, self.train),
            self._labels(self.train),
            SelectedRows(self.all.rows, self.test),
            self._labels(self.test),
            task=None if task is None else (task.values[self.train], task.values[self.test]),
            names=None,
            concept_type=self.all.concept.kind,
            ids=None if groups is None else (groups[self.train], groups[self.test]),
        )

    def _terms(self, family: str) -> Terms:
        return replace(self.terms, probes=[p for p in self.terms.probes if p.family == family])

    def _task(self, train: AuditedRows, test: AuditedRows) -> FamilyResult | None:
        if train.task is None or test.task is None:
            return None
        terms = replace(self.terms, probes=self._task_probes)
        sides = replace(train, concept=train.task), replace(test, concept=test.task)
        return same_protocol(*sides, terms).after["linear"]

    @cached_property
    def _task_probes(self) -> list[Any]:
        return [remembered(probe) for probe in choose_probes("linear", "classes")]

    def neighbours_kept(self, part: AuditedRows) -> float:
        """Share of neighbours kept, among different rows: which of equal rows is nearer is luck."""
        first = np.sort(np.unique(row_hashes(part.before), return_index=True)[1])
        different = part.take(first)
        return overlap_of_rows(
            different.before,
            different.after,
            min(NEIGHBOURS, len(first) - 1),
            max_queries=QUERIES,
            max_base=self.terms.sizes.linear_test,
            rng=np.random.default_rng(self.terms.seed),
        )
