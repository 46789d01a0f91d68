"""Oblique projectors that change the rows least, in the mean square.

With W = Σxx^(-1/2) and U an orthonormal basis of col(WΣxz), the map

    P = I - W⁻¹UUᵀW

is the one of least mean squared change E‖Px - x‖² among all with PΣxz = 0 (Belrose et al. 2023,
LEACE). It is the projection along C = col(Σxz) onto what Σ⁻¹C annihilates, so with a basis C

    P = I - C (CᵀΣ⁻¹C)⁻¹ CᵀΣ⁻¹,

which asks for one Cholesky factor instead of an eigendecomposition; any W with WᵀW = Σ⁻¹ serves.
That PΣxz = 0 does not depend on Σ being right; only the optimality does. So an ill-conditioned Σ
may be mended freely.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from expunge.errors import InputError
from expunge.linalg import (
    Array,
    column_space,
    concept_span,
    in_own_units,
    inverse_root,
    units_if_far_apart,
    whitening_pair,
)

__all__ = ["least_change", "least_change_keeping", "oblique", "whitener"]

MEET = 1e-6  # sine of the angle below which a task's direction counts as the concept's
CONSTANT = 1e-18  # variance of a column, relative to the largest, below which it does not vary


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
    >>> bool(np.allclose((np.eye(2) - left @ right) @ np.ones(2), 0))
    True
    """
    sd, Sxx, Sxz = _standardised(Sxx, Sxz)
    C = _span(Sxx, Sxz, Szz)
    W = whitener(Sxx, rcond=len(Sxx) * eps)
    if rank is not None and rank < C.shape[1]:
        Rzz, units = in_own_units(Szz)
        U, _, _ = column_space(
            W @ (Sxz * units) @ inverse_root(Rzz), scale=float(np.sqrt(C.shape[1]))
        )
        right = U[:, :rank].T @ W
        return sd[:, None] * (Sxx @ right.T), right / sd
    return sd[:, None] * C, _dual(W.T @ (W @ C), C) / sd


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
    sd, Sxx, Sxz, Sxt = _standardised(Sxx, Sxz, Sxt)
    W = whitener(Sxx, rcond=len(Sxx) * eps)
    Cz, Ct = _span(Sxx, Sxz, Szz), _span(Sxx, Sxt, Stt)
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
    return sd[:, None] * Cz, _dual(W.T @ (MU - B @ (B.T @ MU)), Cz) / sd


def _standardised(Sxx: Array, *crossed: Array) -> tuple[Array, ...]:
    """Units of the columns, and Sxx and cross covariances in them.

    Units change nothing but rounding, and, with fewer rows than columns, what is done outside of
    the span of the rows. So columns are taken as they are unless their spreads are far apart.
    """
    sd = units_if_far_apart(np.diag(Sxx))
    return sd, Sxx / np.outer(sd, sd), *(S / sd[:, None] for S in crossed)


def _span(Sxx: Array, Sxz: Array, Szz: Array) -> Array:
    """Orthonormal basis of col(Sxz)."""
    x, z = (np.sqrt(np.maximum(np.diag(S), 0.0)) for S in (Sxx, Szz))
    return concept_span(Sxz, np.where(x > 0, x, 1.0), np.where(z > 0, z, 1.0))


def _dual(Y: Array, C: Array) -> Array:
    """The rows in the span of Yᵀ that read off the coordinates in C: their product with C is I."""
    try:
        return np.asarray(np.linalg.solve(Y.T @ C, Y.T))
    except np.linalg.LinAlgError:  # columns that are next to copies of each other
        return np.asarray(np.linalg.lstsq(Y.T @ C, Y.T)[0])


def oblique(Q: Array, W: Array, C: Array) -> tuple[Array, Array]:
    """Factors of the projector W⁻¹QQᵀW, exact on the span that its first directions stand for.

    Parameters
    ----------
    Q : array of shape (d, r)
        Orthonormal whitened directions; the first span WC, if there are as many.
    W : array of shape (d, d)
        A whitener of full rank.
    C : array of shape (d, k)
        Of full rank. That nothing of it is left does not depend on how well W was found.

    Returns
    -------
    left : array of shape (d, r)
    right : array of shape (r, d)
    """
    read, left = W.T @ Q, np.array(np.linalg.solve(W, Q), dtype=np.float64)
    if Q.shape[1] >= C.shape[1]:
        left[:, : C.shape[1]] = C
    return left, _dual(read, left)


def whitener(S: Array, *, rcond: float) -> Array:
    """W with WᵀW = S⁻¹, the inverse of a Cholesky factor.

    S is factored in units of its own columns, so that one of huge variance hides no other. A column
    that does not vary is not read. Where S is singular to `rcond`, W comes from eigenvalues whose
    noise is mended.

    Parameters
    ----------
    S : array of shape (d, d)
        A covariance.
    rcond : float
        Its relative precision.

    Returns
    -------
    array of shape (d, d)

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.game.oblique import whitener
    >>> S = np.array([[4.0, 1e-3], [1e-3, 1e-6]])
    >>> W = whitener(S, rcond=1e-6)
    >>> bool(np.allclose(W @ S @ W.T, np.eye(2)))
    True
    """
    R, units = in_own_units(S, least=CONSTANT)
    np.fill_diagonal(R, 1.0)  # also of a constant column
    norm = float(np.linalg.norm(R, 1))
    L, failed = scipy.linalg.lapack.dpotrf(R, lower=1)
    if not failed and scipy.linalg.lapack.dpocon(L, norm, uplo="L")[0] > rcond:
        inverse, _ = scipy.linalg.lapack.dtrtri(L, lower=1)
        return np.asarray(inverse * units)
    return whitening_pair(S, rcond=rcond)[0]
