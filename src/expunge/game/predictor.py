"""The best linear predictor on erased rows: the inner minimisation of the game.

The solver is L-BFGS with a changing preconditioner, its first guess of the inverse Hessian: at
first that of the null model, κ M Σxx Mᵀ + α with b on its own curvature; where that proves slow and
the problem is small, the Hessian itself, kept from one solve to the next and formed again only when
it has aged. With many classes in many columns it is one of `two_level`, formed again every few
steps; what earlier ones saw of the Hessian is then dropped, since that only misled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from expunge.game.null_model import Observed, balancing_point
from expunge.game.problem import Problem
from expunge.linalg import Array
from expunge.parallel import one_blas_thread
from expunge.rows.base import GlmPass

__all__ = ["Predictor", "Problem", "dual_bound", "fit_predictor"]

MEMORY = 40  # pairs of steps and gradient changes kept by L-BFGS
ARMIJO = 1e-4
PATIENCE = 10  # steps after which the guess of the Hessian is formed anew
TINY = float(np.finfo(np.float64).tiny)  # of a normal number, whose inverse is one too
SHORT_PATIENCE = 5  # the same for the preconditioner of two levels, which costs less than a pass


@dataclass(frozen=True)
class Predictor:
    """A linear predictor of the concept from erased rows.

    Attributes
    ----------
    coef : array of shape (d, m)
        Θ, in the units of X.
    intercept : array of shape (m,)
        Score of the mean row; zero when none was fitted.
    value : float
        Objective: mean loss plus ridge term.
    loss : float
        Mean loss alone.
    accuracy : float
        Share of rows whose class it gets right.
    lower_bound : float
        No predictor has a lower objective, whatever its intercept: the value of a dual point. 0,
        which no loss is below, where `exact_intercept` was not asked for.
    gradient_norm : float
        Norm of the gradient in Θ, scaled to columns of unit variance.
    raw_gradient : array of shape (d, m)
        XᵀR, the derivative of the mean loss in the coefficients before erasure.
    curvature : array of shape (m, m)
        Mean second derivative of the loss in the scores.
    n_passes : int
        Passes over the rows.
    converged : bool
        Whether the lower bound came within the tolerance.
    """

    coef: Array
    intercept: Array
    value: float
    loss: float
    accuracy: float
    lower_bound: float
    gradient_norm: float
    raw_gradient: Array
    curvature: Array
    n_passes: int
    converged: bool


def fit_predictor(
    problem: Problem,
    *,
    tol: float = 1e-9,
    max_passes: int = 500,
    start: tuple[Array, Array] | None = None,
    exact_intercept: bool = True,
) -> Predictor:
    """Minimise the inner problem until value and lower bound agree.

    Parameters
    ----------
    problem : Problem
    tol : float
        Stop when ``‖∇‖²/(2α) <= tol * V0``: the first-order tolerance, relative to the null model.
    max_passes : int
        Passes over the rows at the most.
    start : (coef, intercept), optional
        Warm start, in the units of X.
    exact_intercept : bool
        Whether to spend passes on an optimal b, and work on `lower_bound`.

    Returns
    -------
    Predictor

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.game.losses import loss_for
    >>> from expunge.game.predictor import Problem, fit_predictor
    >>> from expunge.inputs import check_concept, check_rows
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 1, 0, 1]
    >>> rows, concept = check_rows(X), check_concept(y, 4)
    >>> loss = loss_for("cross_entropy", "classes", 2)
    >>> fit = fit_predictor(Problem(rows, concept, loss, rows.moments(concept)))
    >>> fit.converged, round(fit.loss, 3)
    (True, 0.587)
    """
    theta, b = np.zeros_like(problem.null.gradient), problem.null.intercept
    if start is not None:
        theta, b = start[0] * problem.unit, start[1]
    target = float(np.sqrt(2 * problem.alpha * tol * max(problem.null.value, 1e-300)))
    problem.allow_single(0.0 if exact_intercept else tol)
    with one_blas_thread():
        state = _Lbfgs(problem, theta, b)
        while state.gradient_norm() > target and state.passes() < max_passes and state.step():
            pass
        if exact_intercept:
            state.polish_intercept()
    return state.finish(target, bounded=exact_intercept)


def dual_bound(problem: Problem, theta: Array, b: Array, got: GlmPass) -> float:
    """A lower bound on the objective of every predictor, from one pass at any of them.

    By Fenchel's inequality residuals R that add up to zero (with an intercept) give

        V >= -L*(R) - ‖M XᵀR‖²/(2α),    L*(R) = mean sᵀR - ℓ(y, s) for the residuals R of scores s.

    Those of a predictor do not quite add up to zero, so they are mixed with a share t of those of a
    constant model that leans the other way; L* is convex, so the mixture costs no more than the
    parts. Nothing is asked of b: where it is far from optimal the bound is low, not wrong.

    Parameters
    ----------
    problem : Problem
    theta, b : arrays of shape (d, m) and (m,)
        Scaled coefficients and intercept.
    got : GlmPass
        The pass at them.

    Returns
    -------
    float
    """
    slope, R = got.intercept, problem.erase(got.coef / problem.unit)
    if problem.shift is not None:
        R = R + np.outer(problem.shift, slope)
    dual = got.value - float(np.sum(theta * R)) - float((b - problem.null.intercept) @ slope)
    if problem.fit_intercept and np.any(slope):
        seen = Observed(problem.rows, problem.concept, problem.weights)
        fixed, G, t = balancing_point(problem.loss, problem.moments, problem.null, slope, seen)
        dual = (1 - t) * dual + t * fixed
        R = (1 - t) * R + t * problem.erase(G / problem.unit)
    return max(dual - float(np.sum(R**2)) / (2 * problem.alpha), 0.0)


class _Lbfgs:
    """L-BFGS on (Θ, b) stacked as one (d + 1) x m matrix."""

    def __init__(self, problem: Problem, theta: Array, b: Array) -> None:
        self.problem, self.before = problem, problem.n_passes
        self.z = np.vstack([theta, b])
        self.f, self.g, self.got = self._evaluate(self.z)
        self.pairs = self._inherited()
        self._guess()

    def _inherited(self) -> list[tuple[Array, Array, float]]:
        """Curvature seen in the last solve, cut to what the erasure leaves now."""
        problem = self.problem
        if not problem.is_projector or problem.hessian is not None or problem.two_level:
            return []

        def cut(A: Array) -> Array:
            return np.vstack([problem.erase(A[:-1]), A[-1:]])

        moved = [(cut(s), cut(y)) for s, y in problem.curvature_pairs]
        curved = [(s, y, float(np.sum(s * y))) for s, y in moved]
        return [(s, y, 1.0 / sy) for s, y, sy in curved if sy > 1e-300]

    def _guess(self) -> None:
        """Start over with a fresh guess of the inverse Hessian, made when a step asks for it."""
        self.inverse: Callable[[Array], Array] | None = None
        self.age = 0

    def base(self, A: Array) -> Array:
        """The guess of the inverse Hessian, applied; a start that is optimal never needs it."""
        if self.inverse is None:
            self.inverse = self.problem.inverse(self.got.curvature, self.z[:-1], self.z[-1])
        return self.inverse(A)

    def _evaluate(self, z: Array) -> tuple[float, Array, GlmPass]:
        f, g_theta, g_b, got = self.problem.evaluate(z[:-1], z[-1])
        if not self.problem.fit_intercept:
            g_b = np.zeros_like(g_b)
        return f, np.vstack([g_theta, g_b]), got

    def passes(self) -> int:
        """Passes made in this solve."""
        return self.problem.n_passes - self.before

    def gradient_norm(self) -> float:
        """Norm of the gradient in Θ and b."""
        return float(np.linalg.norm(self.g))

    def _direction(self) -> Array:
        """Two-loop recursion."""
        q, memory = self.g.copy(), []
        for s, y, rho in reversed(self.pairs):
            a = rho * float(np.sum(s * q))
            memory.append(a)
            q -= a * y
        r = self.base(q)
        if self.pairs and self.problem.hessian is None:
            s, y, rho = self.pairs[-1]
            curvature = rho * float(np.sum(y * self.base(y)))
            if curvature > TINY:  # it may underflow where columns are far apart
                r *= 1.0 / curvature
        for (s, y, rho), a in zip(self.pairs, reversed(memory), strict=True):
            r += (a - rho * float(np.sum(y * r))) * s
        return -r

    def step(self) -> bool:
        """One line search; False when no descent is left in floating point."""
        if self.age >= (SHORT_PATIENCE if self.problem.two_level else PATIENCE):
            if self.problem.may_form_hessian:
                self.problem.form_hessian(self.z[:-1], self.z[-1])
            if self.problem.may_form_hessian or self.problem.two_level:
                self.pairs = []
            self._guess()
        p = self._direction()
        slope = float(np.sum(self.g * p))
        if not slope < 0:
            if not self.pairs:
                return False
            self.pairs.clear()
            return self.step()
        t = 1.0
        for _ in range(30):
            z = self.z + t * p
            if np.array_equal(z, self.z):  # the step is below the last digit
                return False
            f, g, got = self._evaluate(z)
            if self._accept(f, float(np.sum(g * p)), slope, t):
                self._remember(z - self.z, g - self.g)
                self.z, self.f, self.g, self.got = z, f, g, got
                return True
            t = self._shorter(t, f, slope)
        return False

    def _accept(self, f: float, new_slope: float, slope: float, t: float) -> bool:
        """Armijo's condition, or, where values differ by rounding only, its derivative form."""
        if f <= self.f + ARMIJO * t * slope:
            return True
        flat = f <= self.f + 1e-13 * max(abs(self.f), self.problem.null.value)
        return flat and abs(new_slope) <= (1 - 2 * ARMIJO) * abs(slope)

    def _shorter(self, t: float, f: float, slope: float) -> float:
        """Minimum of the parabola through what is known, kept within a tenth and a half."""
        if not np.isfinite(f):
            return t / 10
        best = -slope * t * t / (2 * (f - self.f - slope * t))
        return float(np.clip(best, t / 10, t / 2))

    def _remember(self, s: Array, y: Array) -> None:
        self.age += 1
        sy = float(np.sum(s * y))
        if sy > 1e-300:
            self.pairs.append((s, y, 1.0 / sy))
            del self.pairs[:-MEMORY]

    def polish_intercept(self) -> None:
        """Newton steps in b alone, cut until they lower its gradient and raise no loss."""
        t = 1.0
        for _ in range(20):
            left = np.abs(self.g[-1]).max()
            if left <= 1e-15 or t < 1e-3:
                break
            z = self.z.copy()
            z[-1] -= t * (np.linalg.pinv(self.got.curvature, hermitian=True) @ self.g[-1])
            f, g, got = self._evaluate(z)
            if f <= self.f + 1e-13 * abs(self.f) and np.abs(g[-1]).max() < left:
                self.z, self.f, self.g, self.got, t = z, f, g, got, 1.0
            else:
                t /= 4

    def finish(self, target: float, *, bounded: bool) -> Predictor:
        """The predictor at the current point, all of its numbers from the same pass."""
        problem, norm = self.problem, float(np.linalg.norm(self.g[:-1]))
        bound = dual_bound(problem, self.z[:-1], self.z[-1], self.got) if bounded else 0.0
        problem.curvature_pairs = [(s, y) for s, y, _ in self.pairs]
        return Predictor(
            coef=self.z[:-1] / problem.unit,
            intercept=self.z[-1],
            value=self.f,
            loss=self.got.value,
            accuracy=self.got.accuracy,
            lower_bound=bound,
            gradient_norm=norm,
            raw_gradient=self.got.coef,
            curvature=self.got.curvature,
            n_passes=self.passes(),
            converged=bool(norm <= 2 * target),
        )
