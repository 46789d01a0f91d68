"""How far a class, a label or a number is from the rest before erasure, as a sample tells.

The errors of an estimated covariance with the concept z, of what of a row x it does not explain, e,
have the covariance E[eeᵀz²]/n. Where lengths of rows and of z have nothing to do with each other
that is E[eeᵀ] E[z²]/n, and n rows count for n. Elsewhere, with ‖·‖ in units of the spread of e,

    excess = E[‖e‖² z²] / (E‖e‖² E[z²]):

where the longest rows have the largest numbers, n rows say as little as n / excess. What z explains
goes by each row too, which makes its e shorter by the share h = z²/Σz²: it is made longer again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy.linalg

from expunge.audit.sampling import stratified
from expunge.concept import Concept
from expunge.linalg import Array
from expunge.moments import Moments
from expunge.parallel import blas_for
from expunge.rows.base import Rows

__all__ = ["WIDE", "LabelledSample", "Separation", "concept_rank", "separations"]

ENOUGH = 0.1  # rows beyond the rank, as a share of all, below which Δ cannot be estimated
WIDE = 4000  # features beyond which Δ is not estimated either: an eigendecomposition is too slow
RANK = 1e-10  # variances this small, of columns of one spread, relative to the largest are none
DEPENDENT = 1e-9  # the same of columns of a concept
CONSTANT = 1e-13  # a spread this small, relative to the mean, is rounding
ROWS = 2000  # whose lengths are looked at
FEW = 20.0  # rows that have all of the concept between them and tell nothing of its lengths


@dataclass(frozen=True, eq=False)
class LabelledSample:
    """Some rows with their concept, to see how lengths go together.

    Attributes
    ----------
    X : array of shape (m, d)
    Z : array of shape (m, k)
    """

    X: Array
    Z: Array

    @classmethod
    def of(cls, rows: Rows, concept: Concept) -> LabelledSample:
        """At most 2,000 of these rows."""
        index = stratified(concept, ROWS, 0)
        X = np.asarray(rows.take(index).array(), np.float64)
        return cls(X, concept.take(index).columns())


@dataclass(frozen=True)
class Separation:
    """How far a class is from the rest, as a sample tells.

    Attributes
    ----------
    squared : float or None
        Δ², without what sampling error adds (of numbers ρ²); None where the sample is too small.
    rank : int
        Directions in which rows vary.
    variance : float
        π(1 - π) of the class.
    erased : int
        Directions that an eraser of the whole concept takes.
    share : float
        π of the class; of a number its mean.
    excess : float
        How many rows say as little as one would if its length had nothing to do with its concept.
    """

    squared: float | None
    rank: int
    variance: float
    erased: int
    share: float
    excess: float = 1.0


def separations(
    moments: Moments,
    *,
    fitted: int | None = None,
    sample: Callable[[], LabelledSample] | None = None,
) -> dict[int, Separation]:
    """How far each class, label or number is from the rest; one entry for two classes.

    Parameters
    ----------
    moments : Moments
        With Sxx, for at most 4,000 features.
    fitted : int, optional
        Rows of the fit, which limit the rank, if they are others than these.
    sample : function that gives a LabelledSample, optional
        Of the same rows, asked for where they tell enough; without it all lengths are taken to be
        alike.

    Returns
    -------
    dict from int to Separation
        By the column of the concept; those that do not vary are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge import Moments
    >>> from expunge.audit.separation import separations
    >>> from expunge.inputs import check_concept
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 4000)
    >>> X = rng.normal(size=(4000, 10)) + 2 * np.outer(y, np.eye(10)[0])
    >>> found = separations(Moments.of(X, check_concept(y, 4000)))
    >>> round(found[1].squared), found[1].rank, found[1].erased
    (4, 10, 1)
    """
    erased = concept_rank(moments)
    size = moments.n if fitted is None else fitted
    drawn = None if sample is None else cache(sample)
    return {j: _of_column(moments, j, erased, size, drawn) for j in _varying(moments)}


def concept_rank(moments: Moments) -> int:
    """How many directions the concept has: its columns, without those that follow from others."""
    spread = np.sqrt(np.maximum(np.diag(moments.zz), 0.0))
    there = spread > 0
    if moments.kind == "classes":
        return max(int(there.sum()) - 1, 0)
    correlation = moments.zz[np.ix_(there, there)] / spread[there] / spread[there][:, None]
    return int(np.sum(np.linalg.eigvalsh(correlation) > DEPENDENT)) if there.any() else 0


def _varying(moments: Moments) -> list[int]:
    """Columns of the concept that vary; of two classes the one is the other, reversed."""
    found = [j for j in range(len(moments.labels)) if moments.zz[j, j] > 0]
    return found[1:] if moments.kind == "classes" and len(found) == 2 else found


def _of_column(
    moments: Moments,
    j: int,
    erased: int,
    fitted: int,
    sample: Callable[[], LabelledSample] | None,
) -> Separation:
    """Squared Mahalanobis distance of the two means (of numbers, in their units), and the rank.

    Where there are fewer rows here than features, the rank is what the rows of the fit allow.
    """
    n, d = moments.weight, moments.n_features
    variance = float(moments.zz[j, j] / n)  # π(1 - π) of a class: n_eff = n π(1 - π)
    share = float(moments.mean_z[j])
    if d > WIDE:
        return Separation(None, int(min(d, max(n, fitted) - 2)), variance, erased, share)
    units = _spreads(moments)  # in one unit for all, a wide column would hide the rank of others
    slope = moments.xz[:, j] / moments.zz[j, j] / units  # of classes: the difference of the means
    within = moments.cov_xx / units / units[:, None] - variance * np.outer(slope, slope)
    with blas_for(d):
        values, vectors = scipy.linalg.eigh(within)
    kept = values > max(RANK, moments.eps) * max(values[-1], 0.0)
    rank = int(kept.sum())
    if n - rank - 3 < ENOUGH * n:
        rank = rank if d < n else max(rank, min(d, fitted - 2))
        return Separation(None, rank, variance, erased, share)
    whitening = vectors[:, kept] / np.sqrt(values[kept])
    excess = 1.0
    if sample is not None:
        some = sample()
        Z = some.Z[:, j] - moments.mean_z[j]
        E = (some.X - moments.mean_x) / units - np.outer(Z, slope)
        excess = _excess(E @ whitening, Z, float(moments.zz[j, j]))
    gap = float(np.sum((whitening.T @ slope) ** 2))
    squared = _unbiased(gap, moments, variance, rank, excess)
    return Separation(squared, rank, variance, erased, share, excess)


def _spreads(moments: Moments) -> Array:
    """The spread of each column; infinity for one that is constant."""
    found = np.sqrt(moments.squares / moments.weight)
    return np.where(found > CONSTANT * np.abs(moments.mean_x), found, np.inf)


def _unbiased(gap: float, moments: Moments, variance: float, d: int, excess: float) -> float:
    """Δ² from its estimate, which sampling error makes too large; ρ² for numbers."""
    n = moments.weight
    if moments.kind == "continuous":
        signal = gap * variance  # R²/(1 - R²); without excess what comes back is the adjusted R²
        return max((signal - d * excess / (n - d - 1)) / (1 + signal), 0.0)
    return max(gap * (n - d - 3) / (n - 2) - d * excess / (n * variance), 0.0)


def _excess(E: Array, z: Array, whole: float) -> float:
    """E[‖e‖² z²] / (E‖e‖² E[z²]), from some rows of those whose z² sum up to `whole`."""
    squares = z**2 / whole
    if squares.sum() ** 2 < FEW * np.sum(squares**2):
        return 1.0
    lengths = np.einsum("ij,ij->i", E, E) / np.maximum(1 - squares, 0.5)
    alike = float(lengths.mean() * squares.mean())
    return float(np.mean(lengths * squares)) / alike if alike > 0 else 1.0
