"""The inner problem of the game: the best linear predictor on erased rows.

    f(Θ, b) = mean ℓ(y, Θᵀ(x' - μ) + b) + ρ/2 ‖Θ‖²,     x' = Mx + t the erased row, M = I - LR.

Rows are never erased for it: with an intercept Θᵀ M (x - x̄) + b gives the same scores, so the
predictor sees x through the coefficients MᵀΘ and its gradient is M XᵀR. Lengths are measured in the
average standard deviation u of a column of X, which makes the ridge relative: ρ = α u², and α alone
appears in the scaled problem. The solver is L-BFGS started from the inverse of κ M Σxx Mᵀ + α (the
Hessian at the null model up to the label mix), with b on its own curvature.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from expunge.concept import Concept
from expunge.erasure import Erasure
from expunge.game.losses import Loss
from expunge.game.null_model import null_model
from expunge.linalg import Array
from expunge.moments import Moments
from expunge.rows.base import GlmPass, Rows

__all__ = ["Predictor", "Problem", "fit_predictor"]

MEMORY = 20  # pairs of steps and gradient changes kept by L-BFGS
ARMIJO = 1e-4


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
    lower_bound : float
        No predictor has a lower objective: `value` minus ‖∇‖²/(2ρ), by strong convexity.
    gradient_norm : float
        Norm of the gradient in Θ, scaled to columns of unit variance.
    n_passes : int
        Passes over the rows.
    converged : bool
        Whether the lower bound came within the tolerance.
    """

    coef: Array
    intercept: Array
    value: float
    loss: float
    lower_bound: float
    gradient_norm: float
    n_passes: int
    converged: bool


class Problem:
    """The scaled inner problem: value, gradient and preconditioner; every value is one pass.

    Parameters
    ----------
    rows : Rows
    concept : Concept
    loss : Loss
        Smooth.
    moments : Moments
        Of the same rows, with Sxx if the preconditioner is to use it.
    weights : array of shape (n,), optional
    alpha : float
        Relative ridge.
    fit_intercept : bool
    erasure : Erasure, optional
        What has been done to the rows; nothing by default.
    """

    def __init__(
        self,
        rows: Rows,
        concept: Concept,
        loss: Loss,
        moments: Moments,
        *,
        weights: Array | None = None,
        alpha: float = 1e-4,
        fit_intercept: bool = True,
        erasure: Erasure | None = None,
    ) -> None:
        self.rows, self.concept, self.loss, self.weights = rows, concept, loss, weights
        self.moments, self.alpha, self.fit_intercept = moments, alpha, fit_intercept
        self.erasure = erasure
        self.unit = float(np.sqrt(moments.mean_variance)) or 1.0
        self.ridge = alpha * self.unit**2
        self.center = moments.mean_x if fit_intercept else None
        self.shift = self._shift()
        self.n_passes = 0

    def _shift(self) -> Array | None:
        """The constant t in x' = Mx + t; it only matters where no intercept absorbs it."""
        e = self.erasure
        if self.fit_intercept or e is None or (e.center is None and e.offset is None):
            return None
        return np.asarray(e.transform(np.zeros((1, e.n_features)))[0] / self.unit)

    def erase(self, A: Array) -> Array:
        """M A for a matrix A (d x m)."""
        return A if self.erasure is None else A - self.erasure.left @ (self.erasure.right @ A)

    def erase_transposed(self, A: Array) -> Array:
        """Mᵀ A for a matrix A (d x m)."""
        return A if self.erasure is None else A - self.erasure.right.T @ (self.erasure.left.T @ A)

    def evaluate(self, theta: Array, b: Array) -> tuple[float, Array, Array, GlmPass]:
        """Objective, gradients in Θ and b, and the pass itself, at scaled coefficients."""
        coef = self.erase_transposed(theta) / self.unit
        intercept = b if self.shift is None else b + self.shift @ theta
        got = self.rows.glm_pass(
            self.loss, coef, intercept, self.concept, self.weights, center=self.center
        )
        self.n_passes += 1
        value = got.value + self.alpha / 2 * float(np.sum(theta**2))
        gradient = self.erase(got.coef) / self.unit + self.alpha * theta
        if self.shift is not None:
            gradient += np.outer(self.shift, got.intercept)
        return value, gradient, got.intercept, got

    def preconditioner(self, curvature: float) -> Callable[[Array], Array]:
        """Approximate inverse Hessian in Θ: (κ M Σ Mᵀ / u² + α)⁻¹."""
        if self.moments.xx is None:
            return lambda G: G / (curvature + self.alpha)
        S = self.moments.cov_xx
        if not self.fit_intercept:
            S = S + np.outer(self.moments.mean_x, self.moments.mean_x)
        H = self.erase(self.erase(S).T) * (curvature / self.unit**2)
        H[np.diag_indices_from(H)] += self.alpha
        factor = scipy.linalg.cho_factor(H, check_finite=False)
        return lambda G: np.asarray(scipy.linalg.cho_solve(factor, G, check_finite=False))


def fit_predictor(
    problem: Problem,
    *,
    tol: float = 1e-9,
    max_passes: int = 500,
    start: tuple[Array, Array] | None = None,
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
    null = null_model(problem.loss, problem.moments, problem.fit_intercept)
    theta, b = np.zeros_like(null.gradient), null.intercept
    if start is not None:
        theta, b = start[0] * problem.unit, start[1]
    state = _Lbfgs(problem, theta, b, null.value)
    target = np.sqrt(2 * problem.alpha * tol * max(null.value, 1e-300))
    while state.theta_norm() > target and problem.n_passes < max_passes and state.step():
        pass
    state.polish_intercept(max_passes + 10)
    return state.finish(target)


class _Lbfgs:
    """L-BFGS on (Θ, b) stacked as one (d + 1) x m matrix."""

    def __init__(self, problem: Problem, theta: Array, b: Array, v0: float) -> None:
        self.problem, self.v0 = problem, v0
        self.pairs: list[tuple[Array, Array, float]] = []
        self.z = np.vstack([theta, b])
        self.f, self.g, self.got = self._evaluate(self.z)
        self.scale = max(float(np.trace(self.got.curvature)) / b.size, 1e-3 * problem.alpha)
        self.inverse = problem.preconditioner(self.scale)

    def _evaluate(self, z: Array) -> tuple[float, Array, GlmPass]:
        f, g_theta, g_b, got = self.problem.evaluate(z[:-1], z[-1])
        return f, np.vstack([g_theta, g_b if self.problem.fit_intercept else 0 * g_b]), got

    def theta_norm(self) -> float:
        """Norm of the gradient; the intercept counts, for the bound needs it optimal."""
        return float(np.linalg.norm(self.g))

    def _base(self, g: Array) -> Array:
        return np.vstack([self.inverse(g[:-1]), g[-1:] / self.scale])

    def _direction(self) -> Array:
        """Two-loop recursion."""
        q, memory = self.g.copy(), []
        for s, y, rho in reversed(self.pairs):
            a = rho * float(np.sum(s * q))
            memory.append(a)
            q -= a * y
        r = self._base(q)
        if self.pairs:
            s, y, rho = self.pairs[-1]
            r *= 1.0 / (rho * float(np.sum(y * self._base(y))))
        for (s, y, rho), a in zip(self.pairs, reversed(memory), strict=True):
            r += (a - rho * float(np.sum(y * r))) * s
        return -r

    def step(self) -> bool:
        """One line search; False when no descent is left in floating point."""
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
        flat = f <= self.f + 1e-13 * max(abs(self.f), self.v0)
        return flat and abs(new_slope) <= (1 - 2 * ARMIJO) * abs(slope)

    def _shorter(self, t: float, f: float, slope: float) -> float:
        """Minimum of the parabola through what is known, kept within a tenth and a half."""
        if not np.isfinite(f):
            return t / 10
        best = -slope * t * t / (2 * (f - self.f - slope * t))
        return float(np.clip(best, t / 10, t / 2))

    def _remember(self, s: Array, y: Array) -> None:
        sy = float(np.sum(s * y))
        if sy > 1e-300:
            self.pairs.append((s, y, 1.0 / sy))
            del self.pairs[:-MEMORY]

    def polish_intercept(self, max_passes: int) -> None:
        """Newton steps in b alone: the lower bound supposes it optimal."""
        if not self.problem.fit_intercept:
            return
        while np.abs(self.g[-1]).max() > 1e-15 and self.problem.n_passes < max_passes:
            z = self.z.copy()
            z[-1] -= np.linalg.pinv(self.got.curvature, hermitian=True) @ self.g[-1]
            f, g, got = self._evaluate(z)
            if not np.abs(g[-1]).max() < np.abs(self.g[-1]).max():
                break
            self.z, self.f, self.g, self.got = z, f, g, got

    def finish(self, target: float) -> Predictor:
        """The predictor at the current point, all of its numbers from the same pass."""
        problem, norm = self.problem, float(np.linalg.norm(self.g[:-1]))
        return Predictor(
            coef=self.z[:-1] / problem.unit,
            intercept=self.z[-1],
            value=self.f,
            loss=self.got.value,
            lower_bound=max(self.f - norm**2 / (2 * problem.alpha), 0.0),
            gradient_norm=norm,
            n_passes=problem.n_passes,
            converged=bool(norm <= 2 * target),
        )
