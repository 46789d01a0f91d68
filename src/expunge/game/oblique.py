"""Oblique projectors that change the rows least, in the mean square.

With W = Σxx^(-1/2) and U an orthonormal basis of col(WΣxz), the map

    P = I - W⁻¹UUᵀW

is the one of least mean squared change E‖Px - x‖² among all with PΣxz = 0 (Belrose et al. 2023,
LEACE). It is the projection along C = col(Σxz) onto what Σ⁻¹C annihilates, so with a basis C

    P = I - C (CᵀΣ⁻¹C)⁻¹ CᵀΣ⁻¹,

which asks for one Cholesky factor instead of an eigendecomposition. That PΣxz = 0 does not depend
on Σ being right; only the optimality does. So an ill-conditioned Σ may be mended freely.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from expunge.errors import InputError
from expunge.linalg import Array, column_space, fix_signs, inverse_root, range_basis, whitening_pair

__all__ = ["least_change", "least_change_keeping"]

MEET = 1e-6  # sine of the angle below which a task's direction counts as the concept's


def least_change(
    Sxx: Array, Sxz: Array, Szz: Array, *, eps: float, rank: int | None = None
) -> tuple[Array, Array]:
    """Factors of LEACE, or of its leading canonical directions.

    Parameters
    ----------
    Sxx, Sxz, Szz : arrays of shape (d, d), (d, m) and (m, m)
        Covariances.
    eps : float
        Relative precision of `Sxx`.
    rank : int, optional
        Fewer directions than the rank of Sxz: those of the largest canonical correlations.

    Returns
    -------
    left : array of shape (d, r)
    right : array of shape (r, d)

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.game.oblique import least_change
    >>> left, right = least_change(np.diag([1.0, 4.0]), np.ones((2, 1)), np.eye(1), eps=1e-16)
    >>> (np.eye(2) - left @ right) @ np.ones(2)
    array([0., 0.])
    """
    scale = float(np.sqrt(np.trace(Sxx) * np.trace(Szz)))
    C = range_basis(Sxz, scale=scale)
    own = C.shape[1]
    if rank is not None and rank < own:
        W, root = whitening_pair(Sxx, rcond=len(Sxx) * eps)
        U, _, _ = column_space(W @ Sxz @ inverse_root(Szz), scale=float(np.sqrt(own)))
        return root @ U[:, :rank], U[:, :rank].T @ W
    Y = _solve(Sxx, C, rcond=len(Sxx) * eps)
    return C, np.asarray(np.linalg.solve(C.T @ Y, Y.T))


def least_change_keeping(
    Sxx: Array, Sxz: Array, Szz: Array, Sxt: Array, Stt: Array, *, eps: float
) -> tuple[Array, Array]:
    """Factors of the map of least change with PΣxz = 0 and PΣxt = Σxt (SPLINCE).

    With U, B orthonormal bases of col(WΣxz), col(WΣxt) and M = I - BBᵀ:
    P = I - W⁻¹U(UᵀMU)⁻¹UᵀMW.

    Parameters
    ----------
    Sxx, Sxz, Szz : arrays of shape (d, d), (d, m) and (m, m)
        Covariances of rows and concept.
    Sxt, Stt : arrays of shape (d, k) and (k, k)
        Covariances with the task.
    eps : float
        Relative precision of `Sxx`.

    Returns
    -------
    left : array of shape (d, r)
    right : array of shape (r, d)

    Raises
    ------
    InputError
        When a direction of the task is one of the concept: it cannot be kept and erased.
    """
    W, root = whitening_pair(Sxx, rcond=len(Sxx) * eps)
    size = float(np.trace(Sxx))
    Cz = range_basis(Sxz, scale=float(np.sqrt(size * np.trace(Szz))))
    Ct = range_basis(Sxt, scale=float(np.sqrt(size * np.trace(Stt))))
    U, B = scipy.linalg.orth(W @ Cz), scipy.linalg.orth(W @ Ct)
    MU = U - B @ (B.T @ U)
    angles = np.linalg.svd(MU, compute_uv=False)  # sines of the angles between the two spans
    if angles.size and angles[-1] <= MEET:
        raise InputError(
            "The task lies in the span of the concept: it cannot be kept while that is erased",
            f"{int((angles <= MEET).sum())} of {U.shape[1]} directions of the concept within the "
            f"task's (least angle {np.degrees(np.arcsin(min(angles[-1], 1.0))):.2g} degrees)",
            "Take LEACE, which keeps no task, or a task that is not a copy of the concept",
        )
    U = fix_signs(U)
    MU = U - B @ (B.T @ U)
    return root @ U, np.asarray(np.linalg.solve(U.T @ MU, MU.T @ W))


def _solve(S: Array, C: Array, *, rcond: float) -> Array:
    """S⁻¹C by Cholesky; where S is singular to `rcond`, by a whitening that mends its noise."""
    norm = float(np.linalg.norm(S, 1))
    L, failed = scipy.linalg.lapack.dpotrf(S, lower=1)
    if not failed:
        conditioned, _ = scipy.linalg.lapack.dpocon(L, norm, uplo="L")
        if conditioned > rcond:
            return np.asarray(scipy.linalg.cho_solve((L, True), C, check_finite=False))
    W, _ = whitening_pair(S, rcond=rcond)
    return np.asarray(W @ (W @ C))
