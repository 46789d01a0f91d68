"""Confidence limits of the root mean squared gap in true positive rate.

The rates of the cells (class, group) are independent shares, so the m estimated gaps ĝ are about
normal with means g and a covariance Σ that the rates tell. Their sum of squares T = ‖ĝ‖² has, with
s = ‖g‖², u = g/‖g‖ and a = uᵀΣu,

    mean κ = tr Σ + s        variance v = 2 tr Σ² + 4 s a        T ≈ v/2κ · χ² with 2κ²/v degrees

of freedom (Satterthwaite 1946, Patnaik 1949), which gives P(T ≤ t; s). The limits are the s that
make the t found just too large, P = 1 - α/2, and just too small, P = α/2. Noise adds tr Σ to T,
which this takes off; where s = 0 is credible the lower limit is 0. A t below tr Σ is luck, and
would else exclude every s: the upper limit is then that of tr Σ.

Which gaps are the large ones is not known. u is taken along ĝ with each gap moved away from 0 by
its own limit: gaps that are measured badly may be larger than they look.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.optimize
import scipy.special
from numpy.typing import NDArray

from expunge.linalg import Array
from expunge.metrics.parity import Counts

__all__ = ["rms_limits"]


def rms_limits(
    gaps: Array,
    hits: Counts,
    counts: Counts,
    columns: NDArray[np.intp],
    level: float,
    wider: float = 1.0,
) -> tuple[float, float]:
    """Lower and upper limit of the root of the mean squared gap.

    Parameters
    ----------
    gaps : array of shape (c, k)
        As they were estimated; nan where a gap is left out.
    hits, counts : int arrays of shape (c, g)
        Rows of a class and group that were classified rightly, and all of them.
    columns : int array of shape (k,)
        The group of each column of `gaps`.
    level : float
    wider : float
        Times the standard error of a rate, where rows are not independent.

    Returns
    -------
    (float, float)
        nan where there is no gap.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.metrics.gap_interval import rms_limits
    >>> hits, counts = np.array([[90, 60]]), np.array([[100, 100]])
    >>> low, high = rms_limits(np.array([[-0.3]]), hits, counts, np.array([1]), 0.95)
    >>> round(low, 2), round(high, 2)
    (0.18, 0.41)
    """
    estimated = [row[~np.isnan(row)] for row in gaps]
    m = sum(map(len, estimated))
    if m == 0:
        return float("nan"), float("nan")
    noise = [
        _covariance(n, v, columns[~np.isnan(row)])
        for n, v, row in zip(counts, wider**2 * _variances(hits, counts), gaps, strict=True)
    ]
    tail = (1 - level) / 2
    far = _moved_out(estimated, noise, -float(scipy.special.ndtri(tail)))
    total = sum(float(g @ g) for g in estimated)
    square = sum(float(np.sum(cov**2)) for cov in noise)
    trace = sum(float(np.trace(cov)) for cov in noise)
    along = _along(far, noise)

    def below(t: float, s: float) -> float:
        mean, variance = trace + s, 2 * square + 4 * s * along
        return float(scipy.special.gammainc(mean**2 / variance, t * mean / variance))

    low = _size_at(1 - tail, lambda s: below(total, s))
    high = _size_at(tail, lambda s: below(max(total, trace), s))
    return _root_mean(low, m), _root_mean(high, m)


def _root_mean(s: float, m: int) -> float:
    """√(s/m), at most 1 as any gap is."""
    return min(float(np.sqrt(s / m)), 1.0)


def _variances(hits: Counts, counts: Counts) -> Array:
    """Of the rate of each cell: p (1 - p)/n, with a row answered rightly and one wrongly added.

    A cell whose rows are all right is no certainty (Agresti and Coull 1998).
    """
    p = (hits + 1) / (counts + 2)
    return np.asarray(p * (1 - p) / np.maximum(counts, 1))


def _covariance(n: Counts, variances: Array, columns: NDArray[np.intp]) -> Array:
    """Σ of the gaps of one class: a gap is p_k - Σ_{j≠k} n_j p_j / (N - n_k)."""
    weights = -n / (n.sum() - n[columns])[:, None]
    weights[np.arange(len(columns)), columns] = 1.0
    return np.asarray((weights * variances) @ weights.T)


def _moved_out(gaps: list[Array], noise: list[Array], quantile: float) -> list[Array]:
    """Each gap as far from 0 as its own error allows."""
    return [
        g + np.where(g < 0, -1.0, 1.0) * quantile * np.sqrt(np.diag(cov))
        for g, cov in zip(gaps, noise, strict=True)
    ]


def _along(direction: list[Array], noise: list[Array]) -> float:
    """uᵀΣu, u the direction at unit length."""
    length = sum(float(u @ u) for u in direction)
    return sum(float(u @ cov @ u) for u, cov in zip(direction, noise, strict=True)) / length


def _size_at(share: float, below: Callable[[float], float]) -> float:
    """The s at which P(T ≤ t; s) is this share; 0 if it is no more than that at s = 0."""
    if below(0.0) <= share:
        return 0.0
    most = 1.0
    while below(most) > share:
        most *= 2
    return float(scipy.optimize.brentq(lambda s: below(s) - share, 0.0, most))
