"""V at many subspaces at once, roughly: a look at the landscape where problems are small.

For a small problem the time of a solve is that of calling NumPy, so all subspaces take their Newton
steps together, each on its own coordinates x ↦ Wᵀx with W an orthonormal basis of what it leaves:

    f(Θ, b) = mean ℓ(y, ΘᵀWᵀx + b) + α/2 ‖Θ‖²,     Hessian by rows, halved steps until f falls.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from expunge.game.losses import Loss
from expunge.game.problem import Problem
from expunge.linalg import Array

__all__ = ["cost", "survey"]

TOGETHER = 1_000_000  # numbers in the arrays of subspaces worked through at once
STEPS = 25  # Newton steps at the most
HALVINGS = 12


def cost(problem: Problem, rank: int) -> int:
    """Multiplications of one Newton step at one subspace."""
    d, m = problem.null.gradient.shape
    return int(problem.rows.n_samples * ((d - rank + 1) * m) ** 2)


def survey(problem: Problem, U: Array, tol: float = 1e-3) -> Array:
    """Values of V, each at or above the true one, most by less than `tol` times the null model's.

    Where the loss is flat or nearly kinked (a smoothed hinge) some may stay above by much more.

    Parameters
    ----------
    problem : Problem
        Its erasure plays no part.
    U : array of shape (B, d, K)
        Orthonormal bases of the subspaces to erase.
    tol : float

    Returns
    -------
    array of shape (B,)
    """
    X = np.asarray(problem.rows.array(), dtype=np.float64)
    X = (X if problem.center is None else X - problem.center) / problem.unit
    weights = np.ones(len(X)) if problem.weights is None else problem.weights
    Y = problem.loss.encoder(problem.concept)(0, len(X))
    W = np.linalg.qr(U, mode="complete")[0][:, :, U.shape[2] :]
    size = max(1, TOGETHER // (len(X) * (W.shape[2] + 1) * Y.shape[1]))
    small = tol * problem.null.value
    parts: list[Array] = []
    for lo in range(0, len(U), size):
        batch = _Batch(problem, X @ W[lo : lo + size], Y, weights / weights.sum())
        for _ in range(STEPS):
            if not batch.step(small):
                break
        parts.append(batch.f)
    return np.concatenate(parts)


class _Batch:
    """Predictors on several sets of coordinates of the same rows: Θ with b below, (B, q, m)."""

    def __init__(self, problem: Problem, F: Array, Y: Array, w: Array) -> None:
        self.loss: Loss = problem.loss
        column = np.full((*F.shape[:2], 1), float(problem.fit_intercept))
        self.F, self.Y, self.w = np.concatenate([F, column], axis=2), Y, w
        self.ridge = np.append(np.full(F.shape[2], problem.alpha), 1e-10)[:, None]
        self.theta = np.zeros((len(F), F.shape[2] + 1, Y.shape[1]))
        self.theta[:, -1] = problem.null.intercept
        self.at_work: NDArray[np.intp] = np.arange(len(F))
        self.f = self._values(self.at_work, self.theta)

    def _scores(self, which: NDArray[np.intp], theta: Array) -> tuple[Array, Array]:
        """Targets and scores of all rows for every predictor, one below the other."""
        S = (self.F[which] @ theta).reshape(len(which) * len(self.w), theta.shape[2])
        return np.tile(self.Y, (len(which), 1)), S

    def _values(self, which: NDArray[np.intp], theta: Array) -> Array:
        loss = self.loss.values(*self._scores(which, theta)).reshape(len(which), len(self.w))
        return np.asarray(loss @ self.w + (self.ridge * theta**2).sum(axis=(1, 2)) / 2)

    def step(self, small: float) -> bool:
        """One Newton step of all that still gain from it; False when there are none."""
        which = self.at_work
        theta = self.theta[which]
        targets, S = self._scores(which, theta)
        shape = (len(which), len(self.w), theta.shape[2])
        R = self.loss.derivative(targets, S).reshape(shape) * self.w[:, None]
        G = self.F[which].transpose(0, 2, 1) @ R + self.ridge * theta
        D, C = self.loss.hessian(targets, S)
        try:
            P = self._newton(which, G, D.reshape(shape), None if C is None else C.reshape(shape))
        except np.linalg.LinAlgError:
            return False
        slope = (G * P).sum(axis=(1, 2))
        t, left = np.ones(len(which)), np.arange(len(which))
        for _ in range(HALVINGS):
            trial = theta[left] - t[left, None, None] * P[left]
            f = self._values(which[left], trial)
            fell = (slope[left] > 0) & (f <= self.f[which[left]] - 1e-4 * t[left] * slope[left])
            self.theta[which[left[fell]]], self.f[which[left[fell]]] = trial[fell], f[fell]
            left = left[~fell]
            if len(left) == 0:
                break
            t[left] /= 2
        stuck = np.isin(np.arange(len(which)), left)
        self.at_work = which[(slope > small) & ~stuck]
        return len(self.at_work) > 0

    def _newton(self, which: NDArray[np.intp], G: Array, D: Array, C: Array | None) -> Array:
        """H⁻¹G, with H = Σ w (diag(D) - CCᵀ) ⊗ xxᵀ + ridge over the rows."""
        F, (B, q, m) = self.F[which], G.shape
        ridge = np.diag(self.ridge[:, 0])
        if C is None:
            own = [F.transpose(0, 2, 1) @ (F * (self.w[:, None] * D[:, :, [k]])) for k in range(m)]
            H = np.stack(own, axis=1) + ridge
            found = np.linalg.solve(H, G.transpose(0, 2, 1)[..., None])[..., 0]
            return np.asarray(found.transpose(0, 2, 1))
        Z = np.sqrt(self.w)[:, None, None] * C[:, :, :, None] * F[:, :, None, :]
        Z = Z.reshape(B, len(self.w), m * q)
        H = -(Z.transpose(0, 2, 1) @ Z).reshape(B, m, q, m, q)
        for k in range(m):
            own_k = F.transpose(0, 2, 1) @ (F * (self.w[:, None] * D[:, :, [k]]))
            H[:, k, :, k, :] += own_k + ridge
        flat = H.reshape(B, m * q, m * q)
        g = G.transpose(0, 2, 1).reshape(B, m * q, 1)
        return np.asarray(np.linalg.solve(flat, g).reshape(B, m, q).transpose(0, 2, 1))
