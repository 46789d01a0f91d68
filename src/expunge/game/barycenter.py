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

from collections.abc import Sequence

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from expunge.game.oblique import oblique, whitener
from expunge.linalg import (
    Array,
    complete_basis,
    fix_signs,
    range_basis,
    whitening_pair,
)
from expunge.shrinkage import shrink

__all__ = [
    "barycenter",
    "different_directions",
    "directions_apart",
    "filled",
    "maps_to",
    "shrunk",
]

EPS = float(np.finfo(np.float64).eps)
NOTHING = 1e-4  # variance of a class, relative to that of all, below which it does not vary
APART = 0.01  # difference of variances, relative to that of all classes, that a probe could read


def filled(covariances: Array, shares: Array, *, eps: float = EPS) -> Array:
    """Covariances of the classes (c x d x d), none of them nearly singular.

    Where a class hardly varies, little is known of its spread, and a map that made up for it would
    blow up the first new row that does: there the class gets the variance of all classes as well.
    In the units of the spread of all classes no filled covariance is below `NOTHING`, and that of
    the barycentre is 2 at the most; so no map to it stretches by more than √(2 / NOTHING) = 141.

    Parameters
    ----------
    covariances : array of shape (c, d, d)
        Of columns in units of their spread.
    shares : array of shape (c,)
        Weights that add up to 1.
    eps : float
        Relative precision of the covariances.

    Returns
    -------
    array of shape (c, d, d)
    """
    W, root = _pooled_pair(covariances, shares, eps)
    found = []
    for S in covariances:
        values, V = scipy.linalg.eigh(W @ S @ W, check_finite=False)
        missing = root @ V[:, values < NOTHING]
        found.append(S + missing @ missing.T)
    return np.stack(found)


def shrunk(
    covariances: Array, shares: Array, sizes: Array, rules: Sequence[str | float], *, eps: float
) -> Array:
    """Covariances of the classes (c x d x d) after shrinkage towards that of all classes.

    That is shrinkage towards a multiple of I where the pooled covariance is I, so neither the units
    of the columns nor a rotation matter.

    Parameters
    ----------
    covariances : array of shape (c, d, d)
        Of columns in units of their spread.
    shares : array of shape (c,)
        Weights that add up to 1.
    sizes : array of shape (c,)
        Rows of each class, or the sum of their weights.
    rules : sequence of {"none", "ledoit_wolf", "oas"} or float
        For each class, see `expunge.shrinkage.shrink`.
    eps : float
        Relative precision of the covariances.

    Returns
    -------
    array of shape (c, d, d)
    """
    if all(rule in ("none", 0) for rule in rules):
        return covariances
    W, root = _pooled_pair(covariances, shares, eps)
    found = []
    for S, n, rule in zip(covariances, sizes, rules, strict=True):
        own = W @ S @ W
        after = shrink(own, n, rule)
        found.append(S if after is own else root @ after @ root)
    return np.stack(found)


def _pooled_pair(covariances: Array, shares: Array, eps: float) -> tuple[Array, Array]:
    """Inverse root and root of the pooled covariance, mended where nothing varies."""
    pooled = np.einsum("k,kij->ij", shares, covariances)
    return whitening_pair(pooled, rcond=len(pooled) * eps)


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


def directions_apart(covariances: Array, shares: Array, *, eps: float = EPS) -> NDArray[np.intp]:
    """For each class, in how many directions its covariance is not that of all classes, shape (c,).

    Parameters
    ----------
    covariances : array of shape (c, d, d)
    shares : array of shape (c,)
        Weights that add up to 1.
    eps : float
        Relative precision of the covariances.
    """
    pooled = np.einsum("k,kij->ij", shares, covariances)
    differences = covariances - pooled
    if _all_small(differences, pooled):
        return np.zeros(len(covariances), dtype=np.intp)
    W, _ = whitening_pair(pooled, rcond=len(pooled) * eps / APART)  # below, rounding is as much
    apart = [np.abs(np.linalg.eigvalsh(W @ D @ W)) > APART for D in differences]
    return np.asarray(np.sum(apart, axis=1))


def _all_small(differences: Array, pooled: Array) -> bool:
    """Whether no direction at all is apart, told without eigenvalues: ‖L⁻¹DL⁻ᵀ‖ <= APART."""
    L, failed = scipy.linalg.lapack.dpotrf(pooled, lower=1)
    if failed:
        return False
    half = scipy.linalg.blas.dtrsm
    both = [half(1.0, L, half(1.0, L, D, lower=1), side=1, lower=1, trans_a=1) for D in differences]
    return all(np.linalg.norm(D) <= APART for D in both)


def different_directions(
    deviations: Array,
    covariances: Array,
    shares: Array,
    sizes: Array,
    rank: int | None,
    *,
    eps: float = EPS,
) -> tuple[Array, Array]:
    """Factors of an oblique projector that removes where class means and covariances differ most.

    In coordinates where the covariance of all rows is I: first the span of the means, then the
    leading eigenvectors of Σ p_k (S_k - S)² in what remains, S the pooled covariance within
    classes. Directions of the means alone would give LEACE; a column that is constant within
    classes is one of them.

    Parameters
    ----------
    deviations : array of shape (d, c)
        Means of the classes, measured from the mean of all rows.
    covariances : array of shape (c, d, d)
        Of columns in units of their spread.
    shares : array of shape (c,)
        Weights of the classes, which add up to 1.
    sizes : array of shape (c,)
        Rows of each class.
    rank : int or None
        Directions in all; None takes those whose difference exceeds sampling noise,
        (2√γ + γ)² with γ = d / n_k, the edge of the spectrum of equal covariances. Of directions in
        which classes differ alike, or not at all, those of least change come first.
    eps : float
        Relative precision of the covariances.

    Returns
    -------
    left : array of shape (d, r)
    right : array of shape (r, d)
    """
    d = len(deviations)
    within = np.einsum("k,kij->ij", shares, covariances)
    B = deviations * np.sqrt(shares)
    total = within + B @ B.T
    constant = np.diag(total) == 0
    total[constant, constant] = 1.0
    W = whitener(total, rcond=d * eps)
    C = range_basis(B, scale=float(np.sqrt(np.trace(total))))
    U = scipy.linalg.svd(W @ (C @ (C.T @ B)), full_matrices=False)[0][:, : C.shape[1]]
    D = np.zeros((d, d))
    for p, S in zip(shares, covariances, strict=True):
        E = W @ (S - within) @ W.T
        D += p * (E @ E)
    root = np.linalg.inv(W)
    change = root.T @ root  # by removing a direction
    change *= max(float(np.linalg.norm(D)), 1.0) / float(np.linalg.norm(change))
    N = complete_basis(U)
    values, V = scipy.linalg.eigh(N.T @ (D - np.cbrt(eps) * change) @ N, check_finite=False)
    gamma = d / sizes
    noise = float(np.sum(shares * (2 * np.sqrt(gamma) + gamma) ** 2))
    wanted = int((values > noise).sum()) if rank is None else rank
    V = V[:, ::-1][:, : max(min(wanted, d - 1 - U.shape[1]), 0)]
    return oblique(fix_signs(np.hstack([U, N @ V])[:, :rank]), W, C)


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
