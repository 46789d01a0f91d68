"""Monotone ascent on V over K-dimensional subspaces: the game where no closed form applies.

    V(Q) = min over Θ, b of mean ℓ(y, Θᵀ(I - Q)x + b) + α/2 ‖Θ‖²      (lengths in units of X's
    spread)

Two engines. (1) Alternation: by Fenchel duality V(Q) = max over R of -L*(R) - ‖(I - Q)XᵀR‖²/(2α),
so the game is a joint maximisation. For fixed Q the best R is the derivative of the loss at the
best predictor; for fixed R the best Q removes the K leading left singular vectors of XᵀR. Both
steps are exact, so V never falls; they are long for a large ridge and short for a small one.
(2) Gradient ascent: by the envelope theorem ∇V = -(ΘGᵀ + GΘᵀ)/2 with G = XᵀR at the best
predictor, and on an orthonormal basis U of the erased space 2(I - Q)∇V U = -Θ(GᵀU). L-BFGS on the
Grassmann manifold with a polar retraction follows it.

The landscape has several maxima. A few starts (the leading directions of XᵀR0 and random ones
within its span) are carried to a moderate ridge, where V is smooth and one solve is cheap; the
best of them goes on along falling ridges to the one asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from expunge.erasure import Erasure
from expunge.game.closed_form import closed_form
from expunge.game.predictor import Predictor, Problem, fit_predictor
from expunge.game.result import Callback, SolveResult, Step, StopReason
from expunge.inputs import check_number
from expunge.linalg import Array, fix_signs
from expunge.parallel import one_blas_thread
from expunge.progress import Progress

__all__ = ["SubspaceAscent", "subspace_ascent"]

MEMORY = 20  # pairs kept by L-BFGS
ARMIJO = 1e-4
ROUGH = 1e-5  # tolerance of inner solves where exact ones are dear
FINALISTS = 2  # points compared at the final ridge
KEEP = 3  # starts that go on from one ridge to the next
SAME = 1e-3  # values this close, relatively, belong to one maximum


@dataclass(frozen=True)
class SubspaceAscent:
    """Settings of the solver.

    Parameters
    ----------
    explore : int
        Random starts beside the leading directions; `restarts` of `RLACE` adds to them.
    rows : int
        Rows per feature (4,096 in all at the least) that are enough to explore on.
    ridges : tuple of float
        Relative ridges to pass through, falling; those not above the final one are left out.
    """

    explore: int = 4
    rows: int = 8
    ridges: tuple[float, ...] = (3e-2, 3e-3)


@dataclass(frozen=True)
class _Point:
    """A subspace with the predictor it leaves and the gradient of V there."""

    U: Array
    found: Predictor
    gradient: Array

    @property
    def value(self) -> float:
        return self.found.value


class _Ascent:
    """V, its gradient and the two engines, at a ridge that can be changed."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.warm: tuple[Array, Array] | None = None
        self.reached: Array | None = None  # what an interruption falls back on
        self.n_passes = 0

    def at_ridge(self, alpha: float) -> None:
        self.problem.alpha = alpha
        self.problem.curvature_pairs.clear()

    def solve(self, U: Array, tol: float) -> _Point:
        """The inner problem at U, started where the last one ended."""
        self.problem.set_erasure(Erasure(U, U.T))
        start = self.warm
        if start is not None:
            start = start[0] - U @ (U.T @ start[0]), start[1]
        found = fit_predictor(
            self.problem, tol=tol, start=start, max_passes=300, exact_intercept=False
        )
        self.n_passes += found.n_passes
        self.warm = found.coef, found.intercept
        gradient = -found.coef @ (found.raw_gradient.T @ U)
        return _Point(U, found, gradient - U @ (U.T @ gradient))

    def alternate(self, point: _Point, steps: int, tol: float) -> _Point:
        """Engine 1; stops early when a step gains nothing."""
        for _ in range(steps):
            U, _, _ = scipy.linalg.svd(point.found.raw_gradient, full_matrices=False)
            new = self.solve(U[:, : point.U.shape[1]], tol)
            if new.value <= point.value:
                break
            point = new
        return point

    def climb(
        self, U: Array, steps: int, tol: float, flat: float, callback: Callback | None = None
    ) -> tuple[_Point, list[Step], StopReason]:
        """Engine 2 from U, until the gradient is below `flat` times the null model's value.

        With a callback, an interruption ends it where it stands; without, it is passed on.
        """
        point = self.solve(U, tol)
        history, reason = [_record(0, point)], StopReason.MAX_ITER
        pairs: list[tuple[Array, Array, float]] = []
        small = flat * self.problem.null.value
        for step in range(1, steps + 1):
            if np.linalg.norm(point.gradient) <= small:
                reason = StopReason.CONVERGED
                break
            self.reached = point.U
            try:
                new = self._ascend(point, pairs, tol)
                if new is None:
                    reason = StopReason.STALLED
                    break
                pairs = _transported(pairs, point, new)
                point = new
                history.append(_record(step, point))
                if callback is not None and callback(history[-1]):
                    reason = StopReason.STOPPED
                    break
            except KeyboardInterrupt:
                if callback is None:
                    raise
                reason = StopReason.INTERRUPTED
                break
        return point, history, reason

    def _ascend(
        self, point: _Point, pairs: list[tuple[Array, Array, float]], tol: float
    ) -> _Point | None:
        """One step along the L-BFGS direction or, failing that, the plain one."""
        metric = self._metric(point)
        new = self._line_search(point, _direction(point.gradient, pairs, metric), tol)
        if new is None and pairs:
            pairs.clear()
            new = self._line_search(point, metric(point.gradient), tol)
        return new

    def _metric(self, point: _Point) -> Callable[[Array], Array]:
        """Where V bends little, steps may be long: a guess of its inverse Hessian at a point.

        Turning an erased direction towards v exposes it the more, the less x varies along v, since
        the predictor can then read it with larger coefficients; and the more, the stronger it is.
        So steps are multiplied by κ(I - Q)Σxx(I - Q) + α on the left, by (UᵀGGᵀU)⁻¹ on the right.
        """
        problem, U = self.problem, point.U
        S = problem.moments.cov_xx / problem.unit**2
        kappa = float(np.trace(point.found.curvature)) / point.found.curvature.shape[0]
        strength = problem.unit**-2 * (U.T @ point.found.raw_gradient)
        strength = strength @ (U.T @ point.found.raw_gradient).T
        right = np.linalg.inv(strength + 1e-9 * np.trace(strength) * np.eye(U.shape[1]))

        def apply(A: Array) -> Array:
            B = kappa * (S @ A) + problem.alpha * A
            return np.asarray((B - U @ (U.T @ B)) @ right)

        return apply

    def _line_search(self, point: _Point, D: Array, tol: float) -> _Point | None:
        """A step along D that raises V enough (Armijo), or None."""
        slope = float(np.sum(D * point.gradient))
        if slope <= 0:
            return None
        t = min(1.0, 0.5 / float(np.linalg.norm(D, 2)))  # turn by half a radian at the most
        for _ in range(12):
            new = self.solve(_retract(point.U + t * D), tol)
            if new.value >= point.value + ARMIJO * t * slope:
                return new
            best = slope * t * t / (2 * (slope * t + point.value - new.value))
            t = float(np.clip(best, t / 10, t / 2))
        return None


def _retract(A: Array) -> Array:
    """The orthonormal columns nearest to A: the polar factor."""
    U, _, Vt = scipy.linalg.svd(A, full_matrices=False, check_finite=False)
    return np.asarray(U @ Vt)


def _direction(
    g: Array, pairs: list[tuple[Array, Array, float]], metric: Callable[[Array], Array]
) -> Array:
    """Two-loop recursion for ascent; the metric is the first guess of the inverse Hessian."""
    q, memory = g.copy(), []
    for s, y, rho in reversed(pairs):
        a = rho * float(np.sum(s * q))
        memory.append(a)
        q -= a * y
    q = metric(q)
    if pairs:
        s, y, rho = pairs[-1]
        q *= 1.0 / (rho * float(np.sum(y * metric(y))))
    for (s, y, rho), a in zip(pairs, reversed(memory), strict=True):
        q += (a - rho * float(np.sum(y * q))) * s
    return q


def _transported(
    pairs: list[tuple[Array, Array, float]], old: _Point, new: _Point
) -> list[tuple[Array, Array, float]]:
    """Old pairs and the newest, projected on the tangent space at the new point."""

    def onto(A: Array) -> Array:
        return A - new.U @ (new.U.T @ A)

    fresh = (onto(new.U - old.U), onto(old.gradient) - new.gradient)
    moved = [(onto(s), onto(y)) for s, y, _ in pairs] + [fresh]
    curved = [(s, y, float(np.sum(s * y))) for s, y in moved]
    return [(s, y, 1.0 / sy) for s, y, sy in curved if sy > 1e-12 * np.sum(s * s)][-MEMORY:]


def _record(step: int, point: _Point) -> Step:
    return Step(step, point.value, accuracy=point.found.accuracy)


def subspace_ascent(
    problem: Problem,
    rank: int,
    *,
    settings: SubspaceAscent | None = None,
    restarts: int = 0,
    max_iter: int | None = None,
    tol: float = 1e-6,
    rng: np.random.Generator,
    start: Array | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> SolveResult:
    """The best K directions found to erase.

    Parameters
    ----------
    problem : Problem
        The inner problem; its `alpha` is the final ridge.
    rank : int
        K; at the concept's own rank and above it the closed form is the start, and stays.
    settings : SubspaceAscent, optional
    restarts : int
        More random starts.
    max_iter : int, optional
        Gradient steps at the final ridge, 100 by default.
    tol : float
        Stops when ``‖∇V‖ <= 0.1 √tol V0``, or ``3 √tol V0`` where the problem is so large that the
        predictor's Hessian is never formed.
    rng : numpy.random.Generator
    start : array of shape (d, K), optional
        A subspace to begin with instead of exploring.
    callback : callable, optional
        Called with each `Step` at the final ridge; a true answer stops.
    verbose : bool
        Whether to show a progress bar.

    Returns
    -------
    SolveResult
        Its history is that of the final ridge and never falls. An interruption (Ctrl-C) returns
        what was reached, with `reason` INTERRUPTED.
    """
    settings = settings or SubspaceAscent()
    check_number(settings.explore, "explore", whole=True)
    for ridge in settings.ridges:
        check_number(ridge, "every one of ridges", strict=True)
    final, ascent = problem.alpha, _Ascent(problem)
    higher = [ridge for ridge in settings.ridges if ridge > final]
    dear = not problem.may_form_hessian  # exact solves would cost too much
    inner, flat = (ROUGH, 3 * np.sqrt(tol)) if dear else (max(tol, 1e-7) / 100, 0.1 * np.sqrt(tol))
    between = [float(np.sqrt(higher[-1] * final))] if dear and higher else []
    steps = max_iter or 100
    with Progress("subspace ascent", steps, verbose) as progress, one_blas_thread():

        def tell(record: Step) -> Any:
            gap = 1 - record.value / problem.null.value
            progress.update(record.step, f"gap {gap:.2e}")
            return callback(record) if callback is not None else False

        if start is None and rank >= problem.null.rank:
            start = closed_form(problem.null, problem.moments, rank)
        U = problem.null.directions[:, :rank] if start is None else start
        few = ascent
        try:
            if start is None:
                few = _Ascent(_smaller(problem, settings.rows, rng))
                best = _explore(few, rank, higher, settings.explore + restarts, rng)
                U = best[0].U if dear else _best_at(few, best[:FINALISTS], final)
                if few.problem is not problem:
                    ascent.n_passes += few.n_passes * few.problem.moments.n // problem.moments.n
            for ridge in (higher[-1:] if start is not None else []) + between:
                ascent.at_ridge(ridge)
                U = ascent.climb(U, 6, ROUGH, 1e-2)[0].U
        except KeyboardInterrupt:
            ascent.at_ridge(final)
            tries = [U, *(a.reached for a in (few, ascent) if a.reached is not None)]
            U = max((ascent.solve(V, 1e-5) for V in tries), key=lambda point: point.value).U
            steps = 0
        ascent.at_ridge(final)
        point, history, reason = ascent.climb(U, steps, inner, flat, tell)
        if steps == 0:
            reason = StopReason.INTERRUPTED
    return SolveResult(
        basis=fix_signs(point.U),
        value=point.value,
        solver="subspace_ascent",
        reason=reason,
        history=tuple(history),
        n_passes=ascent.n_passes,
    )


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


def _distinct(points: list[_Point]) -> list[_Point]:
    """Points of different value, best first: equal ones lead to the same place."""
    ordered = sorted(points, key=lambda point: -point.value)
    kept = ordered[:1]
    for point in ordered[1:]:
        if point.value < (1 - SAME) * kept[-1].value:
            kept.append(point)
    return kept


def _explore(
    ascent: _Ascent, rank: int, ridges: list[float], count: int, rng: np.random.Generator
) -> list[_Point]:
    """Where several starts lead at a moderate ridge, best first."""
    span = ascent.problem.null.directions
    starts = [span[:, :rank]]
    starts += [
        span @ np.linalg.qr(rng.standard_normal((span.shape[1], rank)))[0] for _ in range(count)
    ]
    for ridge in ridges:
        ascent.at_ridge(ridge)
        points = []
        for U in starts:
            point = ascent.alternate(ascent.solve(U, 1e-3), 3, 1e-3)
            points.append(ascent.climb(point.U, 15, 1e-4, 1e-2)[0])
        starts = [point.U for point in _distinct(points)[:KEEP]]
    if not ridges:
        points = [ascent.solve(U, 1e-3) for U in starts]
    return _distinct(points)


def _best_at(ascent: _Ascent, points: list[_Point], ridge: float) -> Array:
    """The point that leads highest at the final ridge; it need not have been the best before."""
    if len(points) == 1:
        return points[0].U
    ascent.at_ridge(ridge)
    ends = [ascent.climb(point.U, 8, ROUGH, 1e-2)[0] for point in points]
    return max(ends, key=lambda point: point.value).U
