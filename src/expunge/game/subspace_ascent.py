"""Monotone ascent on V over K-dimensional subspaces: the game where no closed form applies.

`climbing` has V, its gradient and the two ways up. The landscape has several maxima, and those of a
large ridge are not those of a small one, so the search is made of

- starts along falling ridges: the leading directions of XᵀR0 and random ones within its span are
  carried to a moderate ridge, where V is smooth and a solve is cheap; the best few go on;
- a survey, where the problem is small: V at many random subspaces, of which the best are climbed
  at the final ridge from the beginning, since not every maximum there has one at a larger ridge
  that leads to it;
- restarts: more random starts, one after the other. Each is judged by those before it alone, and
  each that is worth it is climbed to the end on all rows. So r + 1 restarts do what r do and
  something more, and the best end is kept: they are never worse.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from expunge.game.climbing import Ascent, Point
from expunge.game.closed_form import closed_form
from expunge.game.predictor import Problem
from expunge.game.result import Callback, SolveResult, Step, StopReason
from expunge.game.solver import Game, SolveOptions, Solver
from expunge.game.survey import cost, survey
from expunge.inputs import check_number
from expunge.linalg import Array, fix_signs
from expunge.parallel import one_blas_thread
from expunge.progress import Progress

__all__ = ["SubspaceAscent"]

ROUGH = 1e-5  # tolerance of inner solves where exact ones are dear
FINALISTS = 2  # points of the moderate ridge compared at the final one
KEEP = 3  # starts that go on from one ridge to the next
SAME = 1e-3  # values this close, relatively, may belong to one maximum
NEAR = 0.1  # and do, if the squared sines of the angles between the subspaces sum to no more
WORTH = 1e-2  # a restart this much below the best, relatively, is still climbed to the end
SURVEY = 256  # random subspaces looked at in a survey
SURVEY_LEAST = 32  # fewer are not worth it
SURVEY_COST = 200_000_000  # most multiplications of a Newton step at all of them
SURVEY_DIMENSIONS = 32  # most dimensions K(d - K) of the set of subspaces


@dataclass(frozen=True)
class SubspaceAscent(Solver):
    """The solver below the concept's rank, with its settings.

    Parameters
    ----------
    explore : int
        Random starts along falling ridges, beside the leading directions. Where the problem is
        small, twice as many more come from a survey of random subspaces. `restarts` of `RLACE`
        adds to them.
    rows : int
        Rows per feature (4,096 in all at the least) that are enough to explore on.
    ridges : tuple of float
        Relative ridges to pass through, falling; those not above the final one are left out.
    """

    explore: int = 4
    rows: int = 8
    ridges: tuple[float, ...] = (3e-2, 3e-3)

    name = "subspace_ascent"

    def caution(self, reason: StopReason) -> str:
        """As for every solver, and where it had not finished climbing."""
        if reason is StopReason.MAX_ITER:
            return "reached max_iter before its gradient was small; raise max_iter"
        return super().caution(reason)

    def solve(
        self, game: Game, options: SolveOptions, *, start: Array | None = None
    ) -> SolveResult:
        """The best K directions found to erase.

        Parameters
        ----------
        game : Game
            Its ridge is the final one. At the concept's own rank and above it the closed form is
            the start, and stays.
        options : SolveOptions
            `restarts` are more random starts; with the same `rng` more of them never lead to a
            lower value. `max_iter` is 100 gradient steps at the final ridge by default, for each
            start climbed to the end. Stops when ``‖∇V‖ <= 0.1 √tol V0``, or ``3 √tol V0`` where the
            problem is so large that the predictor's Hessian is never formed. `callback` is called
            with each `Step` at the final ridge that is the best so far.
        start : array of shape (d, K), optional
            A subspace to begin with instead of exploring; there are no restarts then.

        Returns
        -------
        SolveResult
            Its history is that of the best value at the final ridge and never falls. An
            interruption (Ctrl-C) returns what was reached, with `reason` INTERRUPTED.
        """
        check_number(self.explore, "explore", whole=True)
        for ridge in self.ridges:
            check_number(ridge, "every one of ridges", strict=True)
        problem, rank = game.problem, game.rank
        if start is None and rank >= problem.null.rank:
            start = closed_form(problem.null, problem.moments, rank)
        steps = options.max_iter or 100
        with Progress("subspace ascent", steps, options.verbose) as progress, one_blas_thread():

            def tell(record: Step) -> Any:
                gap = 1 - record.value / (problem.null.value or 1.0)
                progress.update(min(record.step, steps), f"gap {gap:.2e}")
                return options.callback(record) if options.callback is not None else False

            climb = _Climb(problem, rank, self, steps, options.tol, tell)
            if start is not None:
                end = climb.finish(start, climb.higher[-1:])
            else:
                end = climb.explore_and_finish(options.restarts, options.rng)
            climb.ascent.at_ridge(climb.final)  # as it was given
        return SolveResult(
            basis=fix_signs(end.point.U),
            value=end.point.value,
            solver=self.name,
            reason=end.reason,
            history=tuple(end.history),
            n_passes=climb.n_passes(),
        )


@dataclass(frozen=True)
class _End:
    """Where a climb at the final ridge on all rows ended, and how it came there."""

    point: Point
    history: list[Step]
    reason: StopReason


class _Climb:
    """All rows and the final ridge, with the search that finds where to start on them."""

    def __init__(
        self,
        problem: Problem,
        rank: int,
        settings: SubspaceAscent,
        steps: int,
        tol: float,
        tell: Callback,
    ) -> None:
        self.ascent, self.rank, self.settings = Ascent(problem), rank, settings
        self.steps, self.tell, self.final = steps, tell, problem.alpha
        self.higher = [ridge for ridge in settings.ridges if ridge > self.final]
        self.dear = not problem.may_form_hessian  # exact solves would cost too much
        self.inner, self.flat = max(tol, 1e-7) / 100, 0.1 * float(np.sqrt(tol))
        if self.dear:
            self.inner, self.flat = ROUGH, 3 * float(np.sqrt(tol))
        self.between: list[float] = []
        if self.dear and self.higher:
            self.between = [float(np.sqrt(self.higher[-1] * self.final))]
        self.search: _Search | None = None

    def n_passes(self) -> int:
        """Passes over all rows, those over some of them counted by their share."""
        found = self.ascent.n_passes
        if self.search is not None:
            share = self.search.few.problem.rows.n_samples / self.ascent.problem.rows.n_samples
            found += int(self.search.few.n_passes * share)
        return found

    def finish(self, U: Array, ridges: list[float], tell: Callback | None = None) -> _End:
        """Climb from U on all rows, through some ridges to the final one."""
        try:
            for ridge in ridges + self.between:
                self.ascent.at_ridge(ridge)
                U = self.ascent.climb(U, 6, 10 * ROUGH, 1e-2)[0].U
        except KeyboardInterrupt:
            return self._interrupted([U, self.ascent.reached])
        self.ascent.at_ridge(self.final)
        return _End(*self.ascent.climb(U, self.steps, self.inner, self.flat, tell or self.tell))

    def _interrupted(self, reached: list[Array | None]) -> _End:
        """The best of what was reached, by its value alone."""
        self.ascent.at_ridge(self.final)
        tried = [self.ascent.solve(U, ROUGH) for U in reached if U is not None]
        best = max(tried, key=lambda point: point.value).U
        point, history, _ = self.ascent.climb(best, 0, self.inner, self.flat)
        return _End(point, history, StopReason.INTERRUPTED)

    def explore_and_finish(self, restarts: int, rng: np.random.Generator) -> _End:
        """Explore, climb to the end, and do better with every restart that can."""
        leading = self.ascent.problem.null.directions[:, : self.rank]
        try:
            few = Ascent(_smaller(self.ascent.problem, self.settings.rows, rng))
            last = self.higher[-1] if self.dear and self.higher else self.final
            self.search = _Search(few, self.rank, self.higher, last, rng)
            U = self.search.explore(self.settings.explore)
        except KeyboardInterrupt:
            search = self.search
            reached = [] if search is None else [search.best, search.few.reached]
            return self._interrupted([leading, *reached])
        best = self.finish(U, [])
        for _ in range(restarts):
            if best.reason in (StopReason.STOPPED, StopReason.INTERRUPTED):
                break
            best = self._restart(best)
        return best

    def _restart(self, best: _End) -> _End:
        """The better of the best end so far and that of one more start."""
        assert self.search is not None
        try:
            U = self.search.another()
        except KeyboardInterrupt:
            return replace(best, reason=StopReason.INTERRUPTED)
        if U is None:
            return best
        history = list(best.history)

        def tell_if_better(record: Step) -> Any:
            if record.value <= history[-1].value:
                return False
            history.append(replace(record, step=history[-1].step + 1))
            return self.tell(history[-1])

        end = self.finish(U, [], tell_if_better)
        if end.point.value > best.point.value:
            tell_if_better(end.history[-1])  # where it started there and never took a step
            return replace(end, history=history)
        if end.reason is StopReason.INTERRUPTED:
            return replace(best, reason=end.reason)
        return best


class _Search:
    """Where starts lead on some of the rows: along the higher ridges, and on to the last one.

    The last ridge is the final one, or the lowest of the higher ones where solves are dear.
    """

    def __init__(
        self, few: Ascent, rank: int, higher: list[float], last: float, rng: np.random.Generator
    ) -> None:
        self.few, self.rank, self.rng = few, rank, rng
        self.higher, self.last = higher, last
        d = few.problem.moments.n_features
        self.stops_higher = higher[-1:] == [last]
        self.pool = int(min(SURVEY, SURVEY_COST // cost(few.problem, rank)))
        few_dimensions = rank * (d - rank) <= SURVEY_DIMENSIONS
        self.small = few_dimensions and self.pool >= SURVEY_LEAST and not self.stops_higher
        self.best = few.problem.null.directions[:, :rank]  # where exploring has led
        self.found: list[Point] = []  # all ends at the last ridge: what a restart has to beat
        self.n_restarts = 0

    def explore(self, count: int) -> Array:
        """The best of the leading directions, `count` starts in the span of XᵀR0, and a survey."""
        span = self.few.problem.null.directions
        starts = [span[:, : self.rank], *(self._within(span) for _ in range(count))]
        surveyed = self._surveyed(2 * count) if self.small and count else []
        for ridge in self.higher:
            points = _distinct([self._through(ridge, U) for U in starts])
            starts = [point.U for point in (points if self.small else points[:KEEP])]
            self.best = starts[0]
        if self.stops_higher:
            self.found = points
            return starts[0]
        ends = starts if self.small or not self.higher else starts[:FINALISTS]
        if len(ends + surveyed) == 1:
            return ends[0]
        self.found = _distinct([self._to_last(U) for U in ends + surveyed])
        if self.small:
            further = [self._to_last(point.U, 60, 1e-3) for point in self.found[:KEEP]]
            self.found = _distinct(further + self.found[KEEP:])
        self.best = self.found[0].U
        return self.best

    def another(self) -> Array | None:
        """Where one more random start leads, unless others have been there or much higher.

        Every second one leaves the higher ridges out, all but the last of them where a start at
        the last ridge would be too far from anything.
        """
        if not self.found:
            self.found = [self._to_last(self.best)]
        self.n_restarts += 1
        direct = self.n_restarts % 2 == 0
        whole = np.eye(self.few.problem.moments.n_features)
        U = self._within(whole if direct and self.small else self.few.problem.null.directions)
        ridges = self.higher if not direct else [] if self.small else self.higher[-1:]
        for ridge in ridges:
            point = self._through(ridge, U)
            U = point.U
        if not self.stops_higher:
            point = self._to_last(U)
        known = any(_same(point, other) for other in self.found)
        best = max(other.value for other in self.found)
        self.found.append(point)
        return None if known or point.value < (1 - WORTH) * best else point.U

    def _within(self, span: Array) -> Array:
        """A random subspace of a given one."""
        return np.asarray(
            span @ np.linalg.qr(self.rng.standard_normal((span.shape[1], self.rank)))[0]
        )

    def _surveyed(self, count: int) -> list[Array]:
        """The best of many random subspaces at the final ridge, none near another.

        Half of them are within the span of XᵀR0: squared loss has its best one there as the ridge
        goes to zero, and other losses were seen to have it near there.
        """
        spans = self.few.problem.null.directions, np.eye(self.few.problem.moments.n_features)
        pool = np.stack([self._within(spans[i % 2]) for i in range(self.pool)])
        self.few.at_ridge(self.last)
        pool = pool[np.argsort(-survey(self.few.problem, pool), kind="stable")]
        chosen: list[Array] = []
        while len(chosen) < count and len(pool) > 0:
            chosen.append(pool[0])
            pool = pool[self.rank - ((pool[0].T @ pool) ** 2).sum(axis=(1, 2)) > NEAR]
        return chosen

    def _through(self, ridge: float, U: Array) -> Point:
        """Where a start leads at a higher ridge."""
        self.few.at_ridge(ridge)
        point = self.few.alternate(self.few.solve(U, 1e-3), 3, 1e-3)
        return self.few.climb(point.U, 15, 1e-4, 1e-2)[0]

    def _to_last(self, U: Array, steps: int = 8, flat: float = 1e-2) -> Point:
        """Where it leads at the last ridge."""
        self.few.at_ridge(self.last)
        return self.few.climb(U, steps, ROUGH, flat)[0]


def _same(a: Point, b: Point) -> bool:
    """Whether two points are of one maximum: nearly equal values of nearly equal subspaces."""
    close = abs(a.value - b.value) <= SAME * max(a.value, b.value)
    return close and a.U.shape[1] - float(np.sum((a.U.T @ b.U) ** 2)) <= NEAR


def _distinct(points: list[Point]) -> list[Point]:
    """One point of each maximum, best first."""
    kept: list[Point] = []
    for point in sorted(points, key=lambda point: -point.value):
        if not any(_same(point, other) for other in kept):
            kept.append(point)
    return kept


def _smaller(problem: Problem, rows_per_feature: int, rng: np.random.Generator) -> Problem:
    """The same problem on some of the rows, enough to tell good starts from bad at a high ridge."""
    size = max(4096, rows_per_feature * problem.moments.n_features)
    if 2 * size > problem.rows.n_samples:
        return problem
    rows, index = problem.rows.subset(size, rng)
    weights = None if problem.weights is None else problem.weights[index]
    seen = np.ones(size) if weights is None else weights
    concept = problem.concept.take(index).with_weight(seen)
    if concept.labels != problem.concept.labels:  # a class too rare to be among these rows
        return problem
    moments = rows.moments(concept, weights)
    return Problem(
        rows,
        concept,
        problem.loss,
        moments,
        weights=weights,
        alpha=problem.alpha,
        fit_intercept=problem.fit_intercept,
    )
