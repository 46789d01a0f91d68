"""A guess of the inverse Hessian of a generalised linear model, from second moments alone.

If the curvature of the loss did not depend on x, the Hessian in the coefficients would be the
Kronecker product C ⊗ Σ of the mean curvature C in the scores (m x m) and the covariance Σ of x.
With both diagonalised, C ⊗ Σ + α is inverted entry by entry.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg

from expunge.linalg import Array

__all__ = ["kronecker_inverse"]


def kronecker_inverse(
    variances: Array, axes: Array, C: Array, alpha: float, U: Array
) -> Callable[[Array], Array]:
    """The map G -> (C ⊗ Σ + α)⁻¹ G on coefficients orthogonal to U.

    On those, the inverse is A - AU(UᵀAU)⁻¹UᵀA with A = (λΣ + α)⁻¹, for each eigenvalue λ of C.

    Parameters
    ----------
    variances, axes : arrays of shape (d,) and (d, d)
        Eigenvalues and eigenvectors of Σ.
    C : array of shape (m, m)
        Mean curvature, symmetric and not negative.
    alpha : float
        Ridge.
    U : array of shape (d, K)
        Orthonormal directions that are erased; K may be 0.

    Returns
    -------
    callable
        From arrays of shape (d, m) to the same.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.game.kronecker import kronecker_inverse
    >>> solve = kronecker_inverse(np.ones(2), np.eye(2), np.eye(1), 1.0, np.eye(2)[:, :1])
    >>> solve(np.ones((2, 1))).round(12)
    array([[0. ],
           [0.5]])
    """
    strengths, W = np.linalg.eigh(C)
    strengths = np.maximum(strengths, 1e-3 * strengths.mean())  # softmax leaves one at zero
    variances = np.maximum(variances, 0.0)  # rounding may leave some below, and λ may be huge
    # (d, m): A in the axes of Σ, for each λ
    weights = 1.0 / (np.outer(variances, strengths) + alpha)
    seen = axes.T @ U
    cuts = []
    for w in weights.T if U.shape[1] else ():
        AU = seen * w[:, None]
        cuts.append((AU, scipy.linalg.cho_factor(AU.T @ seen, check_finite=False)))

    def solve(G: Array) -> Array:
        T = weights * (axes.T @ (G @ W))
        for k, (AU, small) in enumerate(cuts):
            T[:, k] -= AU @ scipy.linalg.cho_solve(small, seen.T @ T[:, k], check_finite=False)
        return np.asarray(axes @ T @ W.T)

    return solve
