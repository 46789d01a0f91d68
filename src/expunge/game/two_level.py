"""A two-level preconditioner: the Hessian itself where classes differ, a product elsewhere.

The Kronecker product C ⊗ Σ of `kronecker` is the Hessian wherever the curvature of the loss does
not depend on x. It does where classes lie apart: rows between two classes have all the curvature,
and only along the line from one to the other. But that happens within few directions. Let B (d x q)
be the span of the differences of the classes' means, and

    D = (λΣ + α)⁻¹B        on coefficients that the erasure leaves

the coarse space: predictors that tell class means apart. All others can be had from the N with
NᵀB = 0, and those are conjugate to D: Dᵀ(λΣ + α)N = BᵀN = 0. If rows are spread about their means
independently of the class, then the scores of N are independent of those of D and of the curvature,
and the Hessian has two blocks: H_D in (D, b), small enough to be formed, and C ⊗ Σ in N. So

    P⁻¹ = D H_D⁻¹ Dᵀ + N(C ⊗ NᵀΣN + α)⁻¹Nᵀ.

H_D is formed on a sample of the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from expunge.game.kronecker import kronecker_inverse
from expunge.game.losses import Loss
from expunge.linalg import Array, positive_cholesky
from expunge.parallel import blocks

__all__ = ["Sample", "coarse_hessian", "two_level_inverse"]

BLOCK = 512  # rows handled at once
LEAST = 1e-6  # of the largest diagonal entry of a coarse Hessian, added to it


@dataclass(frozen=True)
class Sample:
    """Some of the rows in scaled units, measured from the mean, with their targets and weights.

    The rows are float32: a preconditioner need not be more exact.
    """

    X: NDArray[np.float32]
    Y: Array
    weights: Array


def coarse_hessian(sample: Sample, loss: Loss, theta: Array, b: Array, D: Array) -> Array:
    """Second derivative of the mean loss at (Θ, b), along D for every class and in b.

    Parameters
    ----------
    sample : Sample
    loss : Loss
    theta, b : arrays of shape (d, m) and (m,)
        Scaled coefficients as the rows see them, and intercept.
    D : array of shape (d, q)

    Returns
    -------
    array of shape (m (q + 1), m (q + 1))
        By class; b comes last within each.
    """
    m, size = len(b), D.shape[1] + 1
    found = np.zeros((m * size, m * size))
    reads = np.hstack([D, theta]).astype(np.float32)
    for lo, hi in blocks(0, len(sample.X), BLOCK):
        read, w = sample.X[lo:hi] @ reads, sample.weights[lo:hi]
        Z = np.hstack([read[:, : size - 1], np.ones((hi - lo, 1), np.float32)])
        own, crossed = loss.hessian(sample.Y[lo:hi], read[:, size - 1 :] + b)
        own = (own * w[:, None]).astype(np.float32)
        for k in range(m):
            at = slice(k * size, (k + 1) * size)
            found[at, at] += (Z * own[:, k, None]).T @ Z
        if crossed is not None:
            F = (np.sqrt(w)[:, None] * crossed).astype(np.float32)[:, :, None] * Z[:, None, :]
            F = F.reshape(hi - lo, m * size)
            found -= F.T @ F
    return np.asarray(found / sample.weights.sum())


def two_level_inverse(
    variances: Array,
    axes: Array,
    C: Array,
    alpha: float,
    U: Array,
    B: Array,
    hessian: Callable[[Array], Array],
) -> Callable[[Array], Array]:
    """The map (G, g) -> P⁻¹(G, g) on coefficients orthogonal to U, and the intercept.

    Parameters
    ----------
    variances, axes : arrays of shape (d,) and (d, d)
        Eigenvalues and eigenvectors of Σ.
    C : array of shape (m, m)
        Mean curvature, symmetric and positive.
    alpha : float
        Ridge.
    U : array of shape (d, K)
        Orthonormal directions that are erased; K may be 0.
    B : array of shape (d, q)
        What the coarse space tells apart.
    hessian : callable
        From D (d x q) to the coarse Hessian, as `coarse_hessian` gives it.

    Returns
    -------
    callable
        From arrays of shape (d + 1, m), b in the last row, to the same.
    """
    B = scipy.linalg.orth(B - U @ (U.T @ B), rcond=1e-6)
    m, q = len(C), B.shape[1]
    strengths = np.trace(C) / m * np.eye(q)
    D, _ = np.linalg.qr(kronecker_inverse(variances, axes, strengths, alpha, U)(B))
    H = hessian(D)
    ridge = np.append(np.full(q, alpha), LEAST * float(np.diag(H).max()))
    H[np.diag_indices_from(H)] += np.tile(ridge, m)
    factor = positive_cholesky(H)
    fine = kronecker_inverse(variances, axes, C, alpha, np.hstack([U, B]))

    def solve(G: Array) -> Array:
        coarse = np.vstack([D.T @ G[:-1], G[-1:]])
        step = scipy.linalg.cho_solve(factor, coarse.T.ravel(), check_finite=False)
        step = step.reshape(m, q + 1).T
        return np.vstack([fine(G[:-1]) + D @ step[:-1], step[-1:]])

    return solve
