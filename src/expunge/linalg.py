"""Small pure kernels on d-sized matrices, all in float64."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from expunge.errors import RankTruncated
from expunge.parallel import blas_for

__all__ = [
    "RCOND",
    "ROUNDING",
    "Array",
    "column_space",
    "complete_basis",
    "concept_span",
    "fix_signs",
    "in_own_units",
    "inverse_root",
    "least_variance_directions",
    "positive_cholesky",
    "range_basis",
    "regression",
    "units_if_far_apart",
    "whitening_pair",
]

Array = NDArray[np.float64]

RCOND = 1e-10  # singular values below RCOND times the largest count as zero
GRADED = 1e-4  # below this ratio a singular vector has lost too many digits in units not its own
APART = 1e4  # ratio of spreads from which columns are measured in their own
ROUNDING = 1e-13  # what float64 sums cannot tell from zero, relative to the largest possible value


def fix_signs(U: Array) -> Array:
    """Columns of `U` (d x r), each with its largest entry positive: equal input, equal bytes."""
    if U.size == 0:
        return U
    peak = np.abs(U).argmax(axis=0)
    return np.asarray(U * np.where(U[peak, np.arange(U.shape[1])] < 0, -1.0, 1.0))


def column_space(
    A: Array, *, scale: float = 0.0, rcond: float = RCOND
) -> tuple[Array, Array, Array]:
    """Left singular vectors, singular values and the mask of those that count as non-zero.

    Parameters
    ----------
    A : array of shape (d, m)
    scale : float
        The largest singular value `A` could have had; below ``ROUNDING * scale`` lies only
        rounding.
    rcond : float
        Relative cut: values up to ``rcond * s[0]`` count as zero, with a `RankTruncated` warning
        when they are more than rounding.

    Returns
    -------
    U : array of shape (d, min(d, m)), signs fixed
    s : array of shape (min(d, m),), descending
    kept : boolean array of the same shape
    """
    with blas_for(min(A.shape)):
        U, s, _ = scipy.linalg.svd(A, full_matrices=False, check_finite=False)
    floor = max(ROUNDING * scale, ROUNDING * float(s[0]) if s.size else 0.0)
    kept = (s > floor) & (s > rcond * s[0]) if s.size else np.zeros(0, dtype=bool)
    dropped = s[~kept & (s > floor)]
    if dropped.size:
        warnings.warn(
            RankTruncated(
                f"{dropped.size} singular values up to {dropped[0]:.3g} were treated as zero: "
                f"they are below rcond={rcond:g} times the largest, {s[0]:.3g}."
            ),
            stacklevel=3,
        )
    U = fix_signs(U)
    U[:, kept] = _zero_rows(U[:, kept], A)
    return U, s, kept


def range_basis(A: Array, *, scale: float = 0.0, rcond: float = RCOND) -> Array:
    """Orthonormal basis (d x rank) of the column space of `A` (d x m), strongest first."""
    U, _, kept = column_space(A, scale=scale, rcond=rcond)
    return U[:, kept]


def units_if_far_apart(variances: Array) -> Array:
    """Units (d,) in which columns of these variances are measured: 1, or each its own spread.

    Their own where spreads are more than `APART` apart, so that rounding of a wide column does not
    drown a narrow one; a constant column has 1.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.linalg import units_if_far_apart
    >>> units_if_far_apart(np.array([4.0, 1.0])), units_if_far_apart(np.array([1e12, 0.0, 1.0]))
    (array([1., 1.]), array([1.e+06, 1.e+00, 1.e+00]))
    """
    varying = variances[variances > 0]
    if varying.size == 0 or np.sqrt(varying.max()) <= APART * np.sqrt(varying.min()):
        return np.ones(len(variances))
    return np.sqrt(np.where(variances > 0, variances, 1.0))


def concept_span(A: Array, x_units: Array, z_units: Array) -> Array:
    """Orthonormal basis (d x rank) of the column space of cross moments A (d x m), strongest first.

    The rank is that of the correlations ``A / (x_units z_unitsᵀ)``, so it depends neither on the
    units of the columns of x nor on those of z: a column in nanoseconds hides no other.

    Parameters
    ----------
    A : array of shape (d, m)
    x_units, z_units : arrays of shape (d,) and (m,)
        Spreads of the columns of x and z.

    Returns
    -------
    array of shape (d, rank)

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.linalg import concept_span
    >>> concept_span(np.array([[1e18, 0.0], [0.0, 1.0]]), np.ones(2), np.array([1e18, 1.0])).shape
    (2, 2)
    """
    U, _, kept = column_space(A / x_units[:, None] / z_units, scale=float(np.sqrt(A.size)))
    rank = int(kept.sum())
    if rank == 0:
        return np.zeros((len(A), 0))
    with blas_for(min(A.shape)):
        direct, s, _ = scipy.linalg.svd(A, full_matrices=False, check_finite=False)
    if s[rank - 1] > GRADED * s[0] and not np.any(s[rank:] > RCOND * s[0]):
        return _zero_rows(fix_signs(direct[:, :rank]), A)
    graded, _ = scipy.linalg.qr(U[:, kept] * x_units[:, None], mode="economic", check_finite=False)
    turn, _, _ = scipy.linalg.svd(graded.T @ (A / z_units), full_matrices=False, check_finite=False)
    return _zero_rows(fix_signs(graded @ turn), A)


def _zero_rows(U: Array, A: Array) -> Array:
    """U, the column space of A, with zeros where a row of A is zero.

    Rounding there would move a column that never varied, and by what is to be erased.
    """
    U[~A.any(axis=1)] = 0.0
    return U


def least_variance_directions(basis: Array, covariance: Array, count: int) -> Array:
    """`count` orthonormal directions orthogonal to `basis` along which x varies least.

    They are the eigenvectors of the smallest eigenvalues of the covariance restricted to the
    orthogonal complement of `basis` (d x r), so removing them costs the least mean squared change.
    Columns that do not vary come first, each by itself: through a direction that is next to one of
    them, rounding of the others would be written to it.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.linalg import least_variance_directions
    >>> least_variance_directions(np.eye(3)[:, :1], np.diag([1.0, 2.0, 0.0]), 1).T
    array([[0., 0., 1.]])
    """
    apart = ~covariance.any(axis=0) & ~basis.any(axis=1)
    alone = np.eye(len(basis))[:, apart][:, :count]
    rest = count - alone.shape[1]
    if rest == 0:
        return alone
    N = complete_basis(basis[~apart])
    with blas_for(len(N)):
        _, V = scipy.linalg.eigh(
            N.T @ covariance[np.ix_(~apart, ~apart)] @ N,
            subset_by_index=[0, rest - 1],
            check_finite=False,
        )
    found = np.zeros((len(basis), V.shape[1]))  # fewer where the covariance is not a number
    found[~apart] = fix_signs(N @ V)
    return np.hstack([alone, found])


def complete_basis(basis: Array) -> Array:
    """Orthonormal basis of what is orthogonal to the orthonormal columns of `basis` (d x r)."""
    d, r = basis.shape
    if r == 0:
        return np.eye(d)
    with blas_for(d):
        Q, _ = scipy.linalg.qr(basis, mode="full", check_finite=False)
    return np.asarray(Q[:, r:])


def whitening_pair(covariance: Array, rcond: float) -> tuple[Array, Array]:
    """Inverse root W and root W⁻¹ of a covariance, invertible also where the covariance is not.

    Eigenvalues up to ``rcond`` times the largest are noise; they are replaced by the mean of the
    others. Any invertible W makes the oblique projector ``I - W⁻¹UUᵀW`` annihilate exactly what
    ``W⁻¹U`` spans; cutting the noise off would not, and keeping it would amplify rounding.
    """
    with blas_for(len(covariance)):
        eigenvalues, V = scipy.linalg.eigh(covariance, check_finite=False)
    real = eigenvalues > rcond * max(float(eigenvalues[-1]), 0.0)
    usual = float(eigenvalues[real].mean()) if real.any() else 1.0
    root = np.sqrt(np.where(real, eigenvalues, usual))
    return (V / root) @ V.T, (V * root) @ V.T


def inverse_root(S: Array) -> Array:
    """S^(-1/2) of a symmetric positive semi-definite matrix, on its range."""
    with blas_for(len(S)):
        eigenvalues, V = scipy.linalg.eigh(S, check_finite=False)
    kept = eigenvalues > 1e-12 * max(eigenvalues[-1], 0.0)
    V = V[:, kept]
    return np.asarray((V / np.sqrt(eigenvalues[kept])) @ V.T)


def positive_cholesky(H: Array) -> tuple[Array, bool]:
    """Factor of a matrix that is positive definite but for rounding, by as much more as it takes.

    It only guides steps, so a little too much on the diagonal does no harm.

    Parameters
    ----------
    H : array of shape (n, n), symmetric

    Returns
    -------
    (array, bool)
        As `scipy.linalg.cho_factor` gives it, for `cho_solve`.
    """
    size = float(np.abs(np.diag(H)).max(initial=0.0)) or 1.0
    for more in (0.0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4):
        try:
            bent = H if more == 0 else H + more * size * np.eye(len(H))
            return scipy.linalg.cho_factor(bent, lower=True)  # type: ignore[no-any-return]
        except (scipy.linalg.LinAlgError, ValueError):
            continue
    return np.sqrt(size) * np.eye(len(H)), True


def in_own_units(S: Array, *, least: float = 0.0) -> tuple[Array, Array]:
    """A covariance in units of the standard deviations of its columns: the correlations.

    Parameters
    ----------
    S : array of shape (d, d)
    least : float
        Variance, relative to the largest, up to which a column counts as constant.

    Returns
    -------
    R : array of shape (d, d)
    units : array of shape (d,)
        What the columns are multiplied by; 0 for a constant one.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.linalg import in_own_units
    >>> R, units = in_own_units(np.array([[4.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 1.0]]))
    >>> R
    array([[1. , 0. , 0.5],
           [0. , 0. , 0. ],
           [0.5, 0. , 1. ]])
    >>> units
    array([0.5, 0. , 1. ])
    """
    variance = np.diag(S)
    varies = variance > least * variance.max(initial=0.0)
    units = np.zeros(len(S))
    units[varies] = 1 / np.sqrt(variance[varies])
    return units[:, None] * S * units, units


def regression(Sxz: Array, Szz: Array) -> Array:
    """Coefficients Sxz Szz⁺ of x on z, whatever the units of the columns of z.

    Parameters
    ----------
    Sxz : array of shape (d, m)
    Szz : array of shape (m, m)

    Returns
    -------
    array of shape (d, m)

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.linalg import regression
    >>> regression(np.array([[2.0, 1e9]]), np.diag([1.0, 1e18])).round(12)
    array([[2.e+00, 1.e-09]])
    """
    R, units = in_own_units(Szz)
    inverse = np.linalg.pinv(R, rcond=1e-12, hermitian=True)
    return np.asarray(((Sxz * units) @ inverse) * units)
