"""V and its gradient over K-dimensional subspaces, and the two ways of climbing it.

    V(Q) = min over Θ, b of mean ℓ(y, Θᵀ(I - Q)x + b) + α/2 ‖Θ‖²      (lengths in units of X's
    spread)

(1) Alternation: by Fenchel duality V(Q) = max over R of -L*(R) - ‖(I - Q)XᵀR‖²/(2α), so the game is
a joint maximisation. For fixed Q the best R is the derivative of the loss at the best predictor;
for fixed R the best Q removes the K leading left singular vectors of XᵀR. Both steps are exact, so
V never falls; they are long for a large ridge and short for a small one.
(2) Gradient ascent: by the envelope theorem ∇V = -(ΘGᵀ + GΘᵀ)/2 with G = XᵀR at the best
predictor, and on an orthonormal basis U of the erased space 2(I - Q)∇V U = -Θ(GᵀU). L-BFGS on the
Grassmann manifold with a polar retraction follows it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from expunge.erasure import Erasure
from expunge.game.predictor import Predictor, Problem, fit_predictor
from expunge.game.result import Callback, Step, StopReason
from expunge.linalg import Array

__all__ = ["Ascent", "Point", "retract"]

MEMORY = 20  # pairs kept by L-BFGS
ARMIJO = 1e-4
PASSES = 300  # of an inner solve, at the most
EAGER = 20_000_000  # multiplications of a Hessian that is formed before the first step


@dataclass(frozen=True)
class Point:
    """A subspace with the predictor it leaves and the gradient of V there."""

    U: Array
    found: Predictor
    gradient: Array

    @property
    def value(self) -> float:
        """V there, at the ridge of the solve."""
        return self.found.value


class Ascent:
    """V, its gradient and the two engines, at a ridge that can be changed."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        d, m = problem.null.gradient.shape
        rows = problem.rows.n_samples
        self.eager = problem.may_form_hessian and rows * ((d + 1) * m) ** 2 <= EAGER
        self.warm: tuple[Array, Array] | None = None
        self.reached: Array | None = None  # what an interruption falls back on
        self.n_passes = 0

    def at_ridge(self, alpha: float) -> None:
        """Change the ridge."""
        self.problem.alpha = alpha

    def solve(self, U: Array, tol: float) -> Point:
        """The inner problem at U, started where the last one ended."""
        self.problem.set_erasure(Erasure(U, U.T))
        start = self.warm
        if start is not None:
            start = start[0] - U @ (U.T @ start[0]), start[1]
        if self.eager and self.problem.hessian is None:
            theta, b = start or (
                np.zeros_like(self.problem.null.gradient),
                self.problem.null.intercept,
            )
            self.problem.form_hessian(theta * self.problem.unit, b)
        found = fit_predictor(
            self.problem, tol=tol, start=start, max_passes=PASSES, exact_intercept=False
        )
        self.n_passes += found.n_passes
        self.warm = found.coef, found.intercept
        gradient = -found.coef @ (found.raw_gradient.T @ U)
        return Point(U, found, gradient - U @ (U.T @ gradient))

    def alternate(self, point: Point, steps: int, tol: float) -> Point:
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
    ) -> tuple[Point, list[Step], StopReason]:
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
        self, point: Point, pairs: list[tuple[Array, Array, float]], tol: float
    ) -> Point | None:
        """One step along the L-BFGS direction or, failing that, the plain one."""
        metric = self._metric(point)
        new = self._line_search(point, _direction(point.gradient, pairs, metric), tol)
        if new is None and pairs:
            pairs.clear()
            new = self._line_search(point, metric(point.gradient), tol)
        return new

    def _metric(self, point: Point) -> Callable[[Array], Array]:
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

    def _line_search(self, point: Point, D: Array, tol: float) -> Point | None:
        """A step along D that raises V enough (Armijo), or None."""
        slope = float(np.sum(D * point.gradient))
        if slope <= 0:
            return None
        t = min(1.0, 0.5 / float(np.linalg.norm(D, 2)))  # turn by half a radian at the most
        for _ in range(12):
            new = self.solve(retract(point.U + t * D), tol)
            if new.value >= point.value + ARMIJO * t * slope:
                return new
            best = slope * t * t / (2 * (slope * t + point.value - new.value))
            t = float(np.clip(best, t / 10, t / 2))
        return None


def retract(A: Array) -> Array:
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
    pairs: list[tuple[Array, Array, float]], old: Point, new: Point
) -> list[tuple[Array, Array, float]]:
    """Old pairs and the newest, projected on the tangent space at the new point."""

    def onto(A: Array) -> Array:
        return A - new.U @ (new.U.T @ A)

    fresh = (onto(new.U - old.U), onto(old.gradient) - new.gradient)
    moved = [(onto(s), onto(y)) for s, y, _ in pairs] + [fresh]
    curved = [(s, y, float(np.sum(s * y))) for s, y in moved]
    return [(s, y, 1.0 / sy) for s, y, sy in curved if sy > 1e-12 * np.sum(s * s)][-MEMORY:]


def _record(step: int, point: Point) -> Step:
    return Step(step, point.value, accuracy=point.found.accuracy)
