"""What rounding erased rows to their type puts back: an estimate from a few rows.

Erased rows x' are rounded to the type of the rows they come from, x' + e. The certificate of a fit
speaks of x'. Where a column lies many spreads from zero, the steps of its type are as large as what
was taken away, and e returns it: the predictor's derivative at the null model, zero on x', is

    G = E[e R0ᵀ]        R0 the derivative of the loss in the scores, given by the concept alone.

A few rows tell G well, since e is small where there is little to fear. To second order, with each
column in units of its own spread, and with the ridge ρ of a certificate, a predictor Θ then gains

    -⟨G, Θ⟩ - ½ tr(H Θᵀ Σ Θ) - ½ ρ ‖Θ‖²        Σ = Cov(x' + e), H the curvature of the loss.

It is looked for among few directions: those the erasure reads, in which x' does not vary, and those
of G. One half of the rows chooses Θ and the other says what it gains: chance adds nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from expunge.concept import Concept
from expunge.conditional import ConditionalErasure
from expunge.linalg import Array
from expunge.maps import Map
from expunge.moments import Moments
from expunge.nonlinear_erasure import NonlinearErasure
from expunge.parallel import one_blas_thread
from expunge.rows.base import Rows

__all__ = ["PutBack", "put_back_by_rounding", "rounding_shows", "rows_that_round"]

SIZE = 4096  # rows looked at
GLANCE = 512  # rows that tell whether to look further
CLEAR = 0.2  # share of the tolerance below which a glance is enough
LEFT = 0.1  # of the spread of a column: less than it keeps, as long as it still matters
DUST = 1e-9  # of the size of a column: a spread that is rounding of float64
FEWEST = 64  # rows below which halves of them tell nothing


@dataclass(frozen=True)
class PutBack:
    """What rounding puts back, estimated.

    Attributes
    ----------
    gap : float
        What a linear predictor gains over one that ignores x: in cross-entropy, or in squared loss
        for a continuous concept.
    bound : float
        Loss of the predictor that ignores x, so that ``gap / bound`` is the share put back.
    bits : float or None
        The gap in bits per row; None for a continuous concept.
    most : float
        The gap of the predictor on the rows it was chosen on: an estimate from above.
    shows : bool
        Whether ``gap > tol * bound``, and both halves of the rows say so.
    """

    gap: float
    bound: float
    bits: float | None
    most: float
    shows: bool


def rounding_shows(
    erasure: Map,
    rows: Rows,
    concept: Concept,
    weights: Array | None = None,
    *,
    moments: Moments | None = None,
    alpha: float = 1e-4,
    tol: float = 1e-3,
) -> PutBack | None:
    """Whether rounding erased rows to their type puts part of the concept back.

    Parameters
    ----------
    erasure : Erasure, ConditionalErasure or NonlinearErasure
    rows : Rows
        Before erasure, in the type they will be erased in.
    concept : Concept
    weights : array of shape (n,), optional
    moments : Moments, optional
        Of these rows; they often tell that nothing can show, and no row is looked at.
    alpha : float
        Ridge of the predictor, relative to the variance of each column.
    tol : float
        What counts as nothing, as a share of the bound. Less than 1e-4 cannot be told from the
        4,096 rows that are looked at, the same ones at every call.

    Returns
    -------
    PutBack or None
        None where nothing can show (float64, float32 not far from zero), or where there are too few
        rows to tell, no weight or no concept that varies.

    Examples
    --------
    >>> import numpy as np
    >>> import expunge as ex
    >>> from expunge.inputs import check_concept, check_rows
    >>> from expunge.rounding import rounding_shows
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 500)
    >>> X = rng.normal(size=(500, 4)) + np.outer(y, [2, 0, 0, 1])
    >>> for offset in (0, 1_000):
    ...     rows = check_rows((X + offset).astype(np.float16))
    ...     erasure = ex.RLACE().fit(rows.array().astype(float), y).erasure_
    ...     print(rounding_shows(erasure, rows, check_concept(y, 500)).shows)
    False
    True
    """
    if not _may_round(rows):
        return None
    if moments is not None and _share_at_most(moments, rows.eps, alpha) <= tol:
        return None
    if not concept.width:
        return None
    found, read = None, _read_by(erasure)
    for size in (GLANCE, SIZE):
        index = _some(rows.n_samples, size)
        part = rows.take(index)
        some, w = concept.take(index), None if weights is None else weights[index]
        exact, rounded = _erased(erasure, part, some)
        found = put_back_by_rounding(exact, rounded, some, read, w, alpha=alpha, tol=tol)
        if found is not None and found.most <= CLEAR * tol * found.bound:
            break
    return found


def _read_by(erasure: Map) -> Array:
    """Directions (d x r) that an erasure reads, in which nothing is left of the concept."""
    if isinstance(erasure, ConditionalErasure):
        return erasure.shift
    return erasure.reads if isinstance(erasure, NonlinearErasure) else erasure.right.T


def rows_that_round(rows: Rows) -> NDArray[np.intp]:
    """The numbers of the rows that `rounding_shows` may look at, ascending."""
    if not _may_round(rows):
        return np.zeros(0, dtype=np.intp)
    return np.union1d(_some(rows.n_samples, GLANCE), _some(rows.n_samples, SIZE))


def _may_round(rows: Rows) -> bool:
    return rows.dtype.kind == "f" and rows.dtype.itemsize < 8 and rows.n_samples >= FEWEST


def _some(n: int, size: int) -> NDArray[np.intp]:
    return np.sort(np.random.default_rng(0).choice(n, min(size, n), replace=False))


def _share_at_most(moments: Moments, eps: float, alpha: float) -> float:
    """A bound on the gap as a share of the loss without x, from sums alone.

    The gain is at most Σ Gⱼ²/2ρⱼ, and Gⱼ² <= E eⱼ² E‖R0‖² with |eⱼ| <= ½ eps |x'ⱼ|. Erasing is
    taken to leave a tenth of each column's spread, and to no more than double it; E‖R0‖² is at most
    four times the loss without x.
    """
    spread = np.sqrt(moments.squares / moments.weight)
    far = np.abs(moments.mean_x[spread > 0]) / spread[spread > 0]
    return eps**2 * float(np.sum(far**2 + 4)) / (2 * alpha * LEFT**2)


def put_back_by_rounding(
    exact: Array,
    rounded: Array,
    concept: Concept,
    read: Array,
    weights: Array | None = None,
    *,
    alpha: float,
    tol: float,
) -> PutBack | None:
    """The estimate from erased rows before and after rounding.

    Parameters
    ----------
    exact, rounded : arrays of shape (n, d)
    concept : Concept
    read : array of shape (d, r)
        Directions in which rounding may show though they were erased.
    weights : array of shape (n,), optional
    alpha, tol : float
        As in `rounding_shows`.

    Returns
    -------
    PutBack or None
        None where these rows have no weight or one class.
    """
    w = np.full(len(exact), 1.0) if weights is None else weights
    second = np.sort(np.random.default_rng(1).permutation(len(exact))[::2])
    first = np.setdiff1d(np.arange(len(exact)), second)  # classes may alternate, so not by turns
    if min(w[first].sum(), w[second].sum()) <= 0:
        return None
    counted = concept.values[w > 0]
    if (counted == counted[0]).all():
        return None
    bound, R0, H = _null_model(concept, w / w.sum())
    unit = _spreads(rounded, w / w.sum())
    errors, rounded, read = (rounded - exact) / unit, rounded / unit, read * unit[:, None]
    with one_blas_thread():
        one, two = (_half(errors[i], rounded[i], R0[i], w[i] / w[i].sum()) for i in (first, second))
        pairs = _gains(one, two, read, H, alpha), _gains(two, one, read, H, alpha)
    own, gains = zip(*pairs, strict=True)
    gap = max(float(np.mean(gains)), 0.0)
    bits = None if concept.kind == "continuous" else gap / float(np.log(2))
    shows = gap > tol * bound and min(gains) > tol * bound / 2
    return PutBack(gap, bound, bits, float(np.mean(own)), shows)


def _erased(erasure: Map, rows: Rows, concept: Concept) -> tuple[Array, Array]:
    """The rows after erasure, and rounded to their type as `transform` rounds them: once."""
    X = np.asarray(rows.array(), dtype=np.float64)
    if not isinstance(erasure, ConditionalErasure):
        exact = erasure.transform(X)
    else:
        labels = np.array(concept.labels, dtype=object)
        known = labels[concept.values] if concept.kind == "classes" else concept.values
        exact = erasure.transform(X, concept=known)
    return exact, rows.rounded(exact)


def _spreads(X: Array, w: Array) -> Array:
    """The unit of each column: its spread, or 1 where it does not vary but for rounding."""
    spread = np.sqrt(w @ (X - w @ X) ** 2)
    return np.where(spread > DUST * np.abs(X).max(axis=0), spread, 1.0)


def _null_model(concept: Concept, w: Array) -> tuple[float, Array, Array]:
    """Loss of the predictor that ignores x, its derivative (n x q) and curvature (q x q).

    Squared loss ‖z - s‖² for numbers; else cross-entropy, with one column for two classes.
    """
    Z = concept.columns()
    if concept.kind == "classes" and Z.shape[1] == 2:
        Z = Z[:, 1:]
    p = w @ Z
    R = p - Z
    if concept.kind == "continuous":
        return float(w @ (R**2).sum(axis=1)), 2 * R, 2 * np.eye(len(p))
    if concept.kind == "classes" and Z.shape[1] > 1:
        return float(entr(p).sum()), R, np.diag(p) - np.outer(p, p)
    return float((entr(p) + entr(1 - p)).sum()), R, np.diag(p * (1 - p))


@dataclass(frozen=True)
class _Half:
    """One half of the rows: G (d x q), and the centred rows times the root of their weights."""

    G: Array
    rows: Array


def _half(errors: Array, rounded: Array, R0: Array, w: Array) -> _Half:
    G = (errors - w @ errors).T @ (w[:, None] * (R0 - w @ R0))
    return _Half(G, np.sqrt(w)[:, None] * (rounded - w @ rounded))


def _gains(
    chooses: _Half, tells: _Half, read: Array, H: Array, alpha: float
) -> tuple[float, float]:
    """What the predictor chosen on one half gains there and on the other, ridge term included."""
    variances = np.einsum("ij,ij->j", chooses.rows, chooses.rows)
    ridge = alpha  # of columns in units of their spread
    if not variances.any():
        return 0.0, 0.0
    G = chooses.G
    B, _ = np.linalg.qr(np.hstack([read, G, G / (variances + ridge)[:, None]]))
    curvatures, V = np.linalg.eigh(H)
    A, told = (half.rows @ B for half in (chooses, tells))
    A, told = A.T @ A, told.T @ told
    own, other = 0.0, 0.0
    for h, v in zip(np.maximum(curvatures, 0), V.T, strict=True):
        g, unit = B.T @ (G @ v), ridge * np.eye(B.shape[1])
        theta = np.linalg.solve(h * A + unit, g)
        own += float(theta @ g) / 2  # at its own optimum
        other += float(theta @ (B.T @ (tells.G @ v)) - theta @ (h * told + unit) @ theta / 2)
    return own, other
