"""The inner problem of the game: the best linear predictor on erased rows.

    f(Θ, b) = mean ℓ(y, Θᵀ(x' - μ) + b) + ρ/2 ‖Θ‖²,     x' = Mx + t the erased row, M = I - LR.

Rows are never erased for it: with an intercept Θᵀ M (x - x̄) + b gives the same scores, so the
predictor sees x through the coefficients MᵀΘ and its gradient is M XᵀR. Lengths are measured in the
average standard deviation u of a column of X, which makes the ridge relative: ρ = α u², and α alone
appears in the scaled problem.

The solver is L-BFGS with a changing first guess of the inverse Hessian: at first that of the null
model, κ M Σxx Mᵀ + α with b on its own curvature; where that proves slow and the problem is small,
the Hessian itself, kept from one solve to the next and formed again only when it has aged.
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
PATIENCE = 10  # steps after which the guess of the Hessian is formed anew
SMALL = 1500  # most variables of one Hessian block for it to be formed at all


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
        No predictor has a lower objective: `value` minus ‖∇‖²/(2ρ), by strong convexity.
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


class Problem:
    """The scaled inner problem: value, gradient and guesses of the Hessian; a value is one pass.

    Parameters
    ----------
    rows : Rows
    concept : Concept
    loss : Loss
        Smooth.
    moments : Moments
        Of the same rows, with Sxx if the first guess of the Hessian is to use it.
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
        self.unit = float(np.sqrt(moments.mean_variance)) or 1.0
        self.ridge = alpha * self.unit**2
        self.center = moments.mean_x if fit_intercept else None
        self.null = null_model(loss, moments, fit_intercept)
        self.hessian: Array | None = None
        self._inverted: tuple[float, Array] | None = None
        self.n_passes = 0
        self.set_erasure(erasure)

    def set_erasure(self, erasure: Erasure | None) -> None:
        """Change what has been done to the rows; what is known of the Hessian stays."""
        self.left = self.right = self.shift = None
        if erasure is None:
            return
        self.left, self.right = erasure.left, erasure.right
        if not self.fit_intercept and (erasure.center is not None or erasure.offset is not None):
            # the constant t in x' = Mx + t, which an intercept would absorb
            origin = erasure.transform(np.zeros((1, erasure.n_features)))[0]
            self.shift = np.asarray(origin / self.unit)

    def erase(self, A: Array) -> Array:
        """M A for a matrix A (d x m)."""
        return A if self.left is None else A - self.left @ (self.right @ A)

    def erase_transposed(self, A: Array) -> Array:
        """Mᵀ A for a matrix A (d x m)."""
        return A if self.right is None else A - self.right.T @ (self.left.T @ A)

    def evaluate(self, theta: Array, b: Array) -> tuple[float, Array, Array, GlmPass]:
        """Objective, gradients in Θ and b, and the pass itself, at scaled coefficients."""
        got = self.rows.glm_pass(
            self.loss, *self._seen(theta, b), self.concept, self.weights, center=self.center
        )
        self.n_passes += 1
        value = got.value + self.alpha / 2 * float(np.sum(theta**2))
        gradient = self.erase(got.coef) / self.unit + self.alpha * theta
        if self.shift is not None:
            gradient += np.outer(self.shift, got.intercept)
        return value, gradient, got.intercept, got

    def _seen(self, theta: Array, b: Array) -> tuple[Array, Array]:
        """Coefficients and intercept on the rows as they are."""
        coef = self.erase_transposed(theta) / self.unit
        return coef, b if self.shift is None else b + self.shift @ theta

    @property
    def may_form_hessian(self) -> bool:
        """Whether the Hessian is small enough, and the erasure a projector it can be cut to."""
        if self.shift is not None or (
            self.left is not None and not np.array_equal(self.left, self.right.T)
        ):
            return False
        m = self.null.gradient.shape[1]
        coupled = self.loss.hessian(np.zeros((1, m)), np.zeros((1, m)))[1] is not None
        return (self.moments.n_features + 1) * (m if coupled else 1) <= SMALL

    def form_hessian(self, theta: Array, b: Array) -> None:
        """Form the Hessian of the loss at a point, in the coefficients before erasure."""
        self.hessian = self.rows.glm_hessian(
            self.loss, *self._seen(theta, b), self.concept, self.weights, center=self.center
        )
        self._inverted = None

    def inverse(self, curvature: float) -> Callable[[Array], Array]:
        """A guess of the inverse Hessian, for gradients in Θ with b as the last row."""
        if self.hessian is None:
            base = self._null_inverse(curvature)
            return lambda G: np.vstack([base(G[:-1]), G[-1:] / curvature])
        return self._hessian_inverse()

    def _hessian_inverse(self) -> Callable[[Array], Array]:
        """Inverse of the kept Hessian plus ridge on the coefficients that the erasure leaves.

        For an orthogonal projector these are the Θ with UᵀΘ = 0, and the inverse there is
        A - AU(UᵀAU)⁻¹UᵀA with A the inverse on all coefficients, formed once per Hessian and ridge.
        """
        A = self._full_inverse()
        if self.right is None or len(self.right) == 0:
            return lambda G: _by_blocks(A, G)
        U = np.vstack([self.right.T, np.zeros((1, len(self.right)))])
        AU = np.einsum("...ij,jk->...ik", A, U, optimize=True)
        m, size, K = A.shape[0], A.shape[-1], U.shape[1]
        if A.ndim == 3:
            small = [scipy.linalg.cho_factor(U.T @ block) for block in AU]

            def separate(G: Array) -> Array:
                shares = [scipy.linalg.cho_solve(f, B.T @ g) for f, B, g in zip(small, AU, G.T)]
                return _by_blocks(A, G) - np.column_stack([B @ c for B, c in zip(AU, shares)])

            return separate
        T = AU.reshape(m * size, m * K)
        coupled = scipy.linalg.cho_factor(np.einsum("ji,kjlc->kilc", U, AU).reshape(m * K, m * K))

        def joint(G: Array) -> Array:
            share = scipy.linalg.cho_solve(coupled, T.T @ G.T.ravel(), check_finite=False)
            return _by_blocks(A, G) - (T @ share).reshape(m, size).T

        return joint

    def _full_inverse(self) -> Array:
        """Inverse of the kept Hessian plus ridge, in scaled coefficients; cached."""
        assert self.hessian is not None
        if self._inverted is None or self._inverted[0] != self.alpha:
            m, size = self.hessian.shape[0], self.hessian.shape[-1]
            scale = np.append(np.full(size - 1, 1 / self.unit), 1.0)
            ridge = np.append(np.full(size - 1, self.alpha), 1e-8)  # b stays safely positive
            H = self.hessian * scale
            H *= scale[:, None] if H.ndim == 3 else scale[:, None, None]
            if H.ndim == 3:
                found = np.stack([_spd_inverse(block + np.diag(ridge)) for block in H])
            else:
                flat = H.reshape(m * size, m * size)
                flat[np.diag_indices_from(flat)] += np.tile(ridge, m)
                found = _spd_inverse(flat).reshape(H.shape)
            self._inverted = self.alpha, found
        return self._inverted[1]

    def _null_inverse(self, curvature: float) -> Callable[[Array], Array]:
        """(κ M Σ Mᵀ / u² + α)⁻¹, the inverse Hessian in Θ if every row had curvature κ."""
        if self.moments.xx is None:
            return lambda G: G / (curvature + self.alpha)
        S = self.moments.cov_xx
        if not self.fit_intercept:
            S = S + np.outer(self.moments.mean_x, self.moments.mean_x)
        H = self.erase(self.erase(S).T) * (curvature / self.unit**2)
        H[np.diag_indices_from(H)] += self.alpha
        factor = scipy.linalg.cho_factor(H, check_finite=False)
        return lambda G: np.asarray(scipy.linalg.cho_solve(factor, G, check_finite=False))


def _spd_inverse(H: Array) -> Array:
    factor = scipy.linalg.cho_factor(H, check_finite=False)
    return np.asarray(scipy.linalg.cho_solve(factor, np.eye(len(H)), check_finite=False))


def _by_blocks(A: Array, G: Array) -> Array:
    """A G for G of shape (d + 1, m), with A by class or over all classes at once."""
    if A.ndim == 3:
        return np.column_stack([block @ g for block, g in zip(A, G.T, strict=True)])
    m, size = A.shape[:2]
    return np.asarray((A.reshape(m * size, m * size) @ G.T.ravel()).reshape(m, size).T)


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
        Whether to spend passes on an optimal b, without which `lower_bound` is only approximate.

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
    state = _Lbfgs(problem, theta, b)
    target = float(np.sqrt(2 * problem.alpha * tol * max(problem.null.value, 1e-300)))
    while state.gradient_norm() > target and state.passes() < max_passes and state.step():
        pass
    if exact_intercept:
        state.polish_intercept(max_passes + 10)
    return state.finish(target)


class _Lbfgs:
    """L-BFGS on (Θ, b) stacked as one (d + 1) x m matrix."""

    def __init__(self, problem: Problem, theta: Array, b: Array) -> None:
        self.problem, self.before = problem, problem.n_passes
        self.z = np.vstack([theta, b])
        self.f, self.g, self.got = self._evaluate(self.z)
        self._guess()

    def _guess(self) -> None:
        """Start over with a fresh guess of the inverse Hessian."""
        m = self.z.shape[1]
        curvature = max(float(np.trace(self.got.curvature)) / m, 1e-3 * self.problem.alpha)
        self.base = self.problem.inverse(curvature)
        self.pairs: list[tuple[Array, Array, float]] = []
        self.age = 0

    def _evaluate(self, z: Array) -> tuple[float, Array, GlmPass]:
        f, g_theta, g_b, got = self.problem.evaluate(z[:-1], z[-1])
        return f, np.vstack([g_theta, g_b if self.problem.fit_intercept else 0 * g_b]), got

    def passes(self) -> int:
        """Passes made in this solve."""
        return self.problem.n_passes - self.before

    def gradient_norm(self) -> float:
        """Norm of the gradient in Θ and b; the bound needs b optimal."""
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
            r *= 1.0 / (rho * float(np.sum(y * self.base(y))))
        for (s, y, rho), a in zip(self.pairs, reversed(memory), strict=True):
            r += (a - rho * float(np.sum(y * r))) * s
        if not self.problem.fit_intercept:
            r[-1] = 0
        return -r

    def step(self) -> bool:
        """One line search; False when no descent is left in floating point."""
        if self.age >= PATIENCE and self.problem.may_form_hessian:
            self.problem.form_hessian(self.z[:-1], self.z[-1])
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

    def polish_intercept(self, max_passes: int) -> None:
        """Newton steps in b alone: the lower bound supposes it optimal."""
        if not self.problem.fit_intercept:
            return
        while np.abs(self.g[-1]).max() > 1e-15 and self.passes() < max_passes:
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
            accuracy=self.got.accuracy,
            lower_bound=max(self.f - norm**2 / (2 * problem.alpha), 0.0),
            gradient_norm=norm,
            raw_gradient=self.got.coef,
            curvature=self.got.curvature,
            n_passes=self.passes(),
            converged=bool(norm <= 2 * target),
        )
