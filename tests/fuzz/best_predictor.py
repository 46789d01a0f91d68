"""The best linear predictor by a plain method of our own: the certificate's judge.

    V = min over Θ, b of  Σ wᵢ ℓ(yᵢ, Θᵀfᵢ + b) + α/2 ‖Θ‖²

on explicit rows f, each column in its own unit, by Newton's method with the full Hessian. A column
loss falls apart into one problem per column. What is returned as `value` was evaluated at a point,
so V is no larger; `least` is below V, by strong convexity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logsumexp, softmax, xlog1py, xlogy

__all__ = ["Best", "best_predictor", "encoded", "null_values"]

Array = np.ndarray
WIDTHS = (0.3, 0.03, 3e-3, 3e-4)  # of the rounded kink of the hinge


@dataclass(frozen=True)
class Best:
    """V of every problem (one per column of a column loss): a reached value and a lower bound."""

    values: Array
    least: Array
    coef: Array  # (d, m), in units of the columns

    @property
    def value(self) -> float:
        return float(self.values.sum())


def encoded(Z: Array, kind: str, loss: str) -> Array:
    """Targets: one column for two classes, -1 and +1 for the losses of a margin."""
    Y = Z[:, 1:] if kind == "classes" and Z.shape[1] == 2 else Z
    return 2 * Y - 1 if "hinge" in loss else Y


def best_predictor(
    F: Array, Y: Array, w: Array, loss: str, alpha: float, intercept: bool = True
) -> Best:
    """V for rows F (n x d) in units of their columns, targets Y (n x m), weights that sum to 1."""
    F, Y, w = F[w > 0], Y[w > 0], w[w > 0]
    A = np.hstack([F, np.full((len(F), 1), float(intercept))])
    ridge = np.append(np.full(F.shape[1], alpha), 0.0)
    # numbers as targets have units: V(s y) = s² V(y), and the search is for targets near 1
    unit = np.abs(Y).max(axis=0) if loss == "squared" else np.ones(Y.shape[1])
    unit[unit == 0] = 1.0
    if loss == "multinomial":
        found = [_solve(_Joint(A, Y, w, ridge), alpha)]
    else:
        found = [
            (s**2 * value, s**2 * least, s * point)
            for y, s in zip(Y.T, unit, strict=True)
            for value, least, point in [_solve(_Column(A, y / s, w, ridge, loss), alpha)]
        ]
    values, least, points = zip(*found, strict=True)
    coef = np.hstack([z.reshape(-1, A.shape[1]).T[:-1] for z in points])
    return Best(np.array(values), np.array(least), coef)


def null_values(Y: Array, w: Array, loss: str, intercept: bool) -> Array:
    """V0 of every problem: the best constant, in closed form."""
    mean = w @ Y
    if loss == "multinomial":
        p = mean[mean > 0]
        return np.array([-(p @ np.log(p)) if intercept else np.log(Y.shape[1])])
    if loss == "squared":
        centre = mean if intercept else 0.0
        return w @ (Y - centre) ** 2
    if not intercept:
        return np.full(Y.shape[1], np.log(2) if loss == "logistic" else 1.0)
    if loss == "logistic":
        p = np.minimum(mean, w @ (1 - Y))  # 1 - mean has few digits where nearly all are 1
        return -(xlogy(p, p) + xlog1py(1 - p, -p))
    if loss == "squared_hinge":
        return np.maximum(1 - mean**2, 0)
    return np.maximum(1 - np.abs(mean), 0)


# -- objectives: value, gradient, Hessian at (Θ, b) as one vector ----------------------------------


class _Column:
    """One column of targets; `width` rounds the kink of the hinge, 0 leaves it."""

    def __init__(self, A: Array, y: Array, w: Array, ridge: Array, loss: str) -> None:
        self.A, self.y, self.w, self.ridge, self.loss = A, y, w, ridge, loss
        self.width = WIDTHS[0]
        self.size = A.shape[1]

    def plain(self, z: Array) -> float:
        """The loss itself, without ridge and without rounding of a kink."""
        s, y = self.A @ z, self.y
        if self.loss == "logistic":
            each = np.logaddexp(0, np.where(y > 0, -s, s))  # with all digits of a small loss
        elif self.loss == "squared":
            each = (y - s) ** 2
        else:
            each = np.maximum(0, 1 - y * s) ** (2 if self.loss == "squared_hinge" else 1)
        return float(self.w @ each)

    def value(self, z: Array) -> float:
        if self.loss != "hinge":
            return self.plain(z) + float(self.ridge @ z**2) / 2
        u = np.maximum(0, 1 - self.y * (self.A @ z))
        near = np.minimum(u, self.width)  # whose squares stay in range
        each = np.where(u < self.width, near**2 / (2 * self.width), u - self.width / 2)
        return float(self.w @ each) + float(self.ridge @ z**2) / 2

    def slopes(self, z: Array) -> tuple[Array, Array]:
        s, y = self.A @ z, self.y
        if self.loss == "logistic":
            p = expit(s)
            first, second = p - y, p * expit(-s)
        elif self.loss == "squared":
            first, second = 2 * (s - y), np.full_like(s, 2.0)
        else:
            u = np.maximum(0, 1 - y * s)
            if self.loss == "squared_hinge":
                first, second = -2 * y * u, 2.0 * (u > 0)
            else:
                first = -y * np.minimum(1, u / self.width)
                second = ((u > 0) & (u < self.width)) / self.width
        gradient = self.A.T @ (self.w * first) + self.ridge * z
        hessian = (self.A * (self.w * second)[:, None]).T @ self.A + np.diag(self.ridge)
        return gradient, hessian


class _Joint:
    """All classes at once; (Θ, b) is stacked class by class."""

    def __init__(self, A: Array, Y: Array, w: Array, ridge: Array) -> None:
        self.A, self.Y, self.w = A, Y, w
        self.ridge = np.tile(ridge, Y.shape[1])
        self.size = A.shape[1] * Y.shape[1]
        self.loss = "multinomial"

    def _scores(self, z: Array) -> Array:
        return self.A @ z.reshape(self.Y.shape[1], -1).T

    def plain(self, z: Array) -> float:
        S = self._scores(z)
        return float(self.w @ (logsumexp(S, axis=1) - (self.Y * S).sum(axis=1)))

    def value(self, z: Array) -> float:
        return self.plain(z) + float(self.ridge @ z**2) / 2

    def slopes(self, z: Array) -> tuple[Array, Array]:
        p, (m, k) = softmax(self._scores(z), axis=1), (self.Y.shape[1], self.A.shape[1])
        gradient = ((p - self.Y) * self.w[:, None]).T @ self.A
        H = np.empty((m, k, m, k))
        for a in range(m):
            for b in range(m):
                curve = self.w * p[:, a] * ((a == b) - p[:, b])
                H[a, :, b, :] = (self.A * curve[:, None]).T @ self.A
        return gradient.ravel() + self.ridge * z, H.reshape(m * k, m * k) + np.diag(self.ridge)


# -- Newton's method -------------------------------------------------------------------------------


def _solve(problem: _Column | _Joint, alpha: float) -> tuple[float, float, Array]:
    """Value reached, a bound below it, and where; from a second start too if the first was poor."""
    found = _descend(problem, np.zeros(problem.size))
    if problem.value(found) - _least(problem, found, alpha) > 1e-7 * abs(problem.value(found)):
        far = _descend(problem, np.random.default_rng(0).normal(size=problem.size))
        found = min(found, far, key=problem.value)
    if problem.loss == "hinge":
        assert isinstance(problem, _Column)
        for problem.width in WIDTHS[1:]:
            found = _descend(problem, found)
    value = problem.plain(found) + float(problem.ridge @ found**2) / 2
    return value, min(_least(problem, found, alpha), value), found


def _least(problem: _Column | _Joint, z: Array, alpha: float) -> float:
    """A number below V: strong convexity in Θ, and plain convexity in the intercept.

    f(z') >= f(z) + ∇b (b' - b) - ‖∇Θ‖²/(2α), and at the optimum α/2 ‖Θ'‖² <= f(0), so that b' is
    no further than the scores Θ' can reach, plus what a constant alone would be.
    """
    gradient, _ = problem.slopes(z)
    start = problem.value(np.zeros(problem.size))
    furthest = np.sqrt(2 * start / alpha) * np.abs(problem.A).sum(axis=1).max() + 50
    on_theta = problem.ridge > 0
    slack = np.abs(gradient[~on_theta]) @ (furthest + np.abs(z[~on_theta]))
    bend = float(gradient[on_theta] @ gradient[on_theta]) / (2 * alpha)
    return problem.value(z) - bend - float(slack)


def _descend(problem: _Column | _Joint, z: Array, steps: int = 60) -> Array:
    f = problem.value(z)
    damping = 1e-10
    for _ in range(steps):
        g, H = problem.slopes(z)
        if np.abs(g).max() <= 1e-12 * (1 + abs(f)):
            break
        move = _newton(H, g, damping)
        z_new, f_new = _search(problem.value, z, f, move, float(g @ move))
        if not f_new < f:
            if damping > 1e-2:
                break
            damping *= 1e3
            continue
        done = f - f_new <= 1e-14 * abs(f)
        z, f = z_new, f_new
        if done:
            break
    return z


def _newton(H: Array, g: Array, damping: float) -> Array:
    """-(H + damping tr H / k)⁻¹ g by eigenvalues: H is singular along shared intercepts."""
    values, V = np.linalg.eigh(H)
    floor = damping * max(float(values[-1]), 1e-300)
    return -(V @ ((V.T @ g) / np.maximum(values, floor)))


def _search(
    value: Callable[[Array], float], z: Array, f: float, move: Array, slope: float
) -> tuple[Array, float]:
    t = 1.0
    for _ in range(40):
        new = value(z + t * move)
        if new <= f + 1e-4 * t * slope:
            return z + t * move, new
        t /= 2
    return z, f
