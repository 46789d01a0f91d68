"""Making class covariances equal: the Gaussian barycentre and the maps to it.

The barycentre S of Gaussians with covariances Σ_k and weights p_k is the fixed point of

    S = S^(-1/2) (Σ p_k (S^(1/2) Σ_k S^(1/2))^(1/2))² S^(-1/2),

and A_k = S^(1/2) (S^(1/2) Σ_k S^(1/2))^(-1/2) S^(1/2) is the least change that takes Σ_k there:
A_k Σ_k A_k = S for *any* S, so covariances come out equal also where the iteration stops early.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from expunge.linalg import Array, fix_signs, inverse_root, whitening_pair

__all__ = ["barycenter", "different_directions", "maps_to"]


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
    S = np.asarray(np.einsum("k,kij->ij", shares, covariances))
    for _ in range(max_iter):
        inverse, root = whitening_pair(S, rcond=0.0)
        middle = sum(p * _root(root @ C @ root) for p, C in zip(shares, covariances, strict=True))
        T = inverse @ middle @ middle @ inverse
        T = (T + T.T) / 2
        moved = float(np.linalg.norm(T - S))
        S = np.asarray(T)
        if moved <= tol * float(np.linalg.norm(S)):
            break
    return S


def maps_to(target: Array, covariances: Array) -> Array:
    """Symmetric maps A_k (c x d x d) with A_k Σ_k A_k = target."""
    root = _root(target)
    return np.stack([root @ inverse_root(root @ C @ root) @ root for C in covariances])


def different_directions(
    within: Array, means: Array, covariances: Array, sizes: Array, rank: int | None
) -> tuple[Array, Array]:
    """Factors of an oblique projector that removes where class means and covariances differ most.

    In coordinates where the pooled covariance within classes is I: first the span of the means,
    then the leading eigenvectors of Σ p_k (S_k - I)² in what remains.

    Parameters
    ----------
    within : array of shape (d, d)
        Pooled covariance within classes.
    means : array of shape (d, c)
        Class means, measured from the common mean.
    covariances : array of shape (c, d, d)
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
    d = len(within)
    W, back = whitening_pair(within, rcond=1e-10)
    U = scipy.linalg.orth(W @ means) if np.abs(means).max() > 0 else np.zeros((d, 0))
    shares = sizes / sizes.sum()
    D = np.zeros((d, d))
    for p, C in zip(shares, covariances, strict=True):
        E = W @ C @ W - np.eye(d)
        D += p * (E @ E)
    M = np.eye(d) - U @ U.T
    values, V = scipy.linalg.eigh(M @ D @ M)
    gamma = d / sizes
    noise = float(np.sum(shares * (2 * np.sqrt(gamma) + gamma) ** 2))
    wanted = int((values > noise).sum()) if rank is None else max(rank - U.shape[1], 0)
    V = V[:, ::-1][:, : min(wanted, d - 1 - U.shape[1])]
    U = fix_signs(np.hstack([U, V])[:, : rank or d])
    return back @ U, U.T @ W


def _root(S: Array) -> Array:
    values, V = scipy.linalg.eigh(S, check_finite=False)
    return np.asarray((V * np.sqrt(np.maximum(values, 0.0))) @ V.T)
