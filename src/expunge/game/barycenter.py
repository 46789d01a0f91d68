"""Making class covariances equal: the Gaussian barycentre and the maps to it.

The barycentre S of Gaussians with covariances Σ_k and weights p_k is the fixed point of

    S = S^(-1/2) (Σ p_k (S^(1/2) Σ_k S^(1/2))^(1/2))² S^(-1/2),

and A_k = S^(1/2) (S^(1/2) Σ_k S^(1/2))^(-1/2) S^(1/2) is the least change that takes Σ_k there.
In factors Σ_k = L_kL_kᵀ, S = MMᵀ both need only orthogonal matrices, the polar factors O_k of
L_kᵀM, which turn L_k nearest to M:

    M <- Σ p_k L_kO_k,    A_k = M O_kᵀ L_k⁻¹.

No root of a product is formed, so columns of any scale come out right. A_k Σ_k A_kᵀ = S for *any* S
and any orthogonal O_k: covariances are equal also where the iteration stops early.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from expunge.game.oblique import whitener
from expunge.linalg import Array, fix_signs, whitening_pair

__all__ = ["barycenter", "different_directions", "filled", "maps_to"]

EPS = float(np.finfo(np.float64).eps)
NOTHING = 1e-10  # variance of a class, relative to that of all, below which it does not vary


def filled(covariances: Array, shares: Array) -> Array:
    """Covariances of the classes (c x d x d), none of them singular.

    Where a class does not vary, nothing can be known of its spread, and a map that made up for it
    would blow up the first new row that does: there the class gets the variance of all classes.
    """
    pooled = np.einsum("k,kij->ij", shares, covariances)
    W, root = whitening_pair(pooled, rcond=len(pooled) * EPS)
    found = []
    for S in covariances:
        values, V = scipy.linalg.eigh(W @ S @ W, check_finite=False)
        missing = root @ V[:, values < NOTHING]
        found.append(S + missing @ missing.T)
    return np.stack(found)


def barycenter(
    covariances: Array, shares: Array, *, tol: float = 1e-6, max_iter: int = 100
) -> Array:
    """Covariance of the Gaussian barycentre.

    Parameters
    ----------
    covariances : array of shape (c, d, d), positive definite
    shares : array of shape (c,)
        Weights that add up to 1.
    tol : float
        Relative change at which to stop.
    max_iter : int

    Returns
    -------
    array of shape (d, d)

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.game.barycenter import barycenter
    >>> barycenter(np.array([np.eye(1), 9 * np.eye(1)]), np.array([0.5, 0.5]))
    array([[4.]])
    """
    factors = [_factor(C) for C in covariances]
    M = _factor(np.einsum("k,kij->ij", shares, covariances))
    S = M @ M.T
    for _ in range(max_iter):
        M = sum(p * (L @ _turn(L, M)) for p, L in zip(shares, factors, strict=True))
        before, S = S, M @ M.T
        if np.linalg.norm(S - before) <= tol * np.linalg.norm(S):
            break
    return np.asarray(S)


def maps_to(target: Array, covariances: Array) -> Array:
    """Maps A_k (c x d x d) with A_k Σ_k A_kᵀ = target, symmetric up to rounding."""
    M = _factor(target)
    return np.stack([M @ np.linalg.solve(L.T, _turn(L, M)).T for L in map(_factor, covariances)])


def different_directions(
    means: Array, covariances: Array, shares: Array, sizes: Array, rank: int | None
) -> tuple[Array, Array]:
    """Factors of an oblique projector that removes where class means and covariances differ most.

    In coordinates where the pooled covariance within classes is I: first the span of the means,
    then the leading eigenvectors of Σ p_k (S_k - I)² in what remains.

    Parameters
    ----------
    means : array of shape (d, r), of rank r
        Its columns span the differences of the class means.
    covariances : array of shape (c, d, d)
    shares : array of shape (c,)
        Weights of the classes, which add up to 1.
    sizes : array of shape (c,)
        Rows of each class.
    rank : int or None
        Directions in all; None takes those whose difference exceeds sampling noise,
        (2√γ + γ)² with γ = d / n_k, the edge of the spectrum of equal covariances.

    Returns
    -------
    left : array of shape (d, r)
    right : array of shape (r, d)
    """
    d = len(means)
    within = np.einsum("k,kij->ij", shares, covariances)
    W = whitener(within, rcond=d * EPS)
    U = scipy.linalg.orth(W @ means)
    D = np.zeros((d, d))
    for p, C in zip(shares, covariances, strict=True):
        E = W @ (C - within) @ W.T
        D += p * (E @ E)
    M = np.eye(d) - U @ U.T
    values, V = scipy.linalg.eigh(M @ D @ M)
    gamma = d / sizes
    noise = float(np.sum(shares * (2 * np.sqrt(gamma) + gamma) ** 2))
    wanted = int((values > noise).sum()) if rank is None else rank - U.shape[1]
    V = V[:, ::-1][:, : max(min(wanted, d - 1 - U.shape[1]), 0)]
    right = fix_signs(np.hstack([U, V])[:, :rank]).T @ W
    return within @ right.T, right


def _turn(L: Array, M: Array) -> Array:
    """The orthogonal O for which LO is nearest to M: the polar factor of LᵀM."""
    U, _, Vt = scipy.linalg.svd(L.T @ M, check_finite=False)
    return np.asarray(U @ Vt)


def _factor(S: Array) -> Array:
    """L with S = LLᵀ: by Cholesky, or by eigenvalues where rounding makes some negative."""
    L, failed = scipy.linalg.lapack.dpotrf(S, lower=1)
    if not failed:
        return np.asarray(L)
    values, V = scipy.linalg.eigh(S, check_finite=False)
    return np.asarray(V * np.sqrt(np.maximum(values, EPS * values[-1])))
