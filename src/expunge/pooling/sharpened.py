"""Moments of few labelled rows, sharpened by many without labels.

Every closed form rests on one estimate, A = cov(x, z). With predictions f of the concept, those of
labelled rows cross-fitted, and with covariances over labelled rows (n) and over the pool (N),

    Â(ω) = cov_n(x, z) - ω (cov_n(x, f) - cov_N(x, f))

is unbiased for every f and ω: the bracket is zero but for chance where both are rows of one
population. The better f follows z, the more of the error of the first term is taken away. With
g = x̃z̃ᵀ, h = x̃f̃ᵀ for each row, the trace of its variance is

    (‖g‖² - 2ω ⟨g, h⟩ + ω² ‖h‖²)_n / n + ω² ‖h‖²_N / N + ω² bias²,

and ω is where that is least. N counts the rows of the pool that are different, and no labelled ones
(`expunge.pooling.different_rows`). In the terms of prediction-powered inference (Angelopoulos et
al. 2023) ω = λ N/(n + N), with λ from 0, labelled rows alone, to 1. The bias is what the bracket
shows beyond chance, where the pool is another population.

Often predictions may as well stand in for the labels that are not there,

    B(ω) = (1 - ω) cov_n(x, z) + ω cov_N(x, f),     ω at most N/(n + N), every row counted once.

Of a calibrated predictor, E[z | x], cov(x, f) is cov(x, z) itself. The first estimate pays for its
unbiasedness with the noise of cov_n(x, z - f), this one with the error of training and with the
bias of f; the smaller is taken. For a wrong f that is Â, as soon as its bias shows. Rows x are
measured in units of their columns,
and across the directions of cov_n(x, z): errors along these change the length of what is erased,
not where it points.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from expunge.concept import Concept
from expunge.fingerprint import Fingerprint
from expunge.linalg import Array, range_basis
from expunge.moments import Moments
from expunge.pooling.cross_fitting import CrossFit
from expunge.pooling.different_rows import NewRows
from expunge.rows.base import Rows

__all__ = ["Influence", "PoolRecord", "Sharpened", "design_effect", "influence_of", "sharpen"]

TOGETHER = 4096  # rows of whole groups
PAIRS = 1000  # labelled rows whose pairs tell how many directions chance has
LEVEL = 0.01  # chance of calling a pool of the same population another one
WORTH = 0.01  # share of the variance that must be saved


@dataclass(frozen=True)
class PoolRecord:
    """What unlabelled rows did for a fit.

    Attributes
    ----------
    n_labelled, n_pool : int
    share : float
        λ, from 0, labelled rows alone, to 1.
    variance : float
        Of the estimated covariance, relative to that of labelled rows alone.
    gain : float
        By how many standard errors predictions of rows not seen beat the average.
    bias : float
        What the pool and the labelled rows differ by beyond chance, as a squared length, relative
        to the variance of labelled rows alone.
    corrected : bool
        Whether predictions were corrected by the labels, Â(ω); else they stand in for labels, B(ω).
    n_different : int or None
        Rows of the pool that are different from each other and from the labelled ones: the others
        teach nothing. None in records of old versions.
    """

    n_labelled: int
    n_pool: int
    share: float
    variance: float
    gain: float
    bias: float
    corrected: bool = True
    n_different: int | None = None

    def to_meta(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        rows, n = f"{self.n_pool:,} rows without labels", self.n_different
        if n is not None and n < self.n_pool:
            rows += f", of which {n:,} are different and not among the labelled ones,"
        if self.share == 0:
            return f"{rows} were of no use: the fit is that of the labelled rows alone"
        return (
            f"{rows} make {self.n_labelled:,} labels worth {self.n_labelled / self.variance:,.0f}"
        )


@dataclass(frozen=True, eq=False)
class Influence:
    """Sums over labelled rows: what each adds to the covariances with the concept and with f.

    Attributes
    ----------
    z, f : arrays of shape (d, m)
        Covariances with the concept and with its predictions.
    zz, zf, ff : float
        Squared lengths and product of what rows (or groups) add, summed, in units of the columns.
    freedom : float
        How many directions chance has: (tr V)² / tr V² of what rows add to f.
    axes : array of shape (d, r)
        Orthonormal directions, in units of the columns, whose errors do not count.
    units : array of shape (d,)
        Of the columns.
    """

    z: Array
    f: Array
    zz: float
    zf: float
    ff: float
    freedom: float
    axes: Array
    units: Array

    def across(self, A: Array) -> Array:
        """Rows (k x d), in units of the columns, without their part along the axes."""
        return np.asarray(A - (A @ self.axes) @ self.axes.T)


def influence_of(
    rows: Rows,
    concept: Concept,
    predictions: Array,
    moments: Moments,
    weights: Array | None,
    groups: NDArray[np.intp] | None,
) -> Influence:
    """One pass over the labelled rows.

    Parameters
    ----------
    rows : Rows
    concept : Concept
    predictions : array of shape (n, m)
    moments : Moments
        Of rows and concept.
    weights : array of shape (n,), optional
    groups : int array of shape (n,), optional
        Rows of one group count together.

    Returns
    -------
    Influence
    """
    n, m = concept.n_samples, concept.width
    w = np.full(n, 1 / n) if weights is None else weights / weights.sum()
    Z = concept.columns() - moments.mean_z
    F = predictions - w @ predictions
    both, u = np.hstack([Z, F]), moments.spreads
    axes = range_basis(moments.cov_xz / u[:, None])
    total, squares = np.zeros((rows.n_features, 2 * m)), np.zeros((2 * m, 2 * m))
    for which, X in _in_turn(rows, groups):
        A = (np.asarray(X, np.float64) - moments.mean_x) / u
        U = both[which] * w[which, None]
        total += A.T @ U
        A -= (A @ axes) @ axes.T
        if groups is None:
            squares += (U * np.einsum("ij,ij->i", A, A)[:, None]).T @ U
        else:
            squares += _of_groups(A, U, groups[which])
    across = total - axes @ (axes.T @ total)
    z, f = across[:, :m], across[:, m:]
    mass = w if groups is None else np.bincount(np.unique(groups, return_inverse=True)[1], w)
    shrink = float(mass @ mass)  # what is centred on the mean varies less
    zz, zf, ff = (
        float(np.trace(part)) - shrink * float(np.sum(a * b))
        for part, a, b in (
            (squares[:m, :m], z, z),
            (squares[:m, m:], z, f),
            (squares[m:, m:], f, f),
        )
    )
    freedom = _freedom(rows, F, moments, w, axes)
    z, f = (total[:, part] * u[:, None] for part in (slice(m), slice(m, None)))
    return Influence(z, f, zz, zf, max(ff, 0.0), freedom, axes, u)


def design_effect(
    rows: Rows,
    concept: Concept,
    moments: Moments,
    weights: Array | None,
    groups: NDArray[np.intp],
) -> float:
    """By how much more the covariance with the concept varies because rows come in groups.

    Parameters
    ----------
    rows : Rows
    concept : Concept
    moments : Moments
        Of both.
    weights : array of shape (n,), optional
    groups : int array of shape (n,)

    Returns
    -------
    float
        At least 1.
    """
    nothing: Array = np.zeros((rows.n_samples, concept.width))
    together, alone = (
        influence_of(rows, concept, nothing, moments, weights, by).zz for by in (groups, None)
    )
    return max(together / alone, 1.0) if alone > 0 else 1.0


def _in_turn(
    rows: Rows, groups: NDArray[np.intp] | None
) -> Iterator[tuple[slice | NDArray[np.intp], NDArray[Any]]]:
    """All rows with their numbers, a few thousand at a time; no group is cut in two."""
    if groups is None:
        for start, X in rows.arrays():
            yield slice(start, start + len(X)), X
        return
    order = np.argsort(groups, kind="stable")
    ends = np.flatnonzero(np.diff(groups[order])) + 1
    cuts = ends[np.flatnonzero(np.diff(ends // TOGETHER, prepend=0))]
    for which in np.split(order, cuts):
        yield which, rows.take(which).array()


def _of_groups(A: Array, U: Array, groups: NDArray[np.intp]) -> Array:
    """Σ over groups of SᵀS (2m x 2m), S = Σ x̃uᵀ over the rows of a group (in order)."""
    starts = np.flatnonzero(np.diff(groups, prepend=groups[0] - 1))
    k = U.shape[1]
    found = np.zeros((k, k))
    sums = [np.add.reduceat(A * U[:, [j]], starts, axis=0) for j in range(k)]
    for i in range(k):
        for j in range(i, k):
            found[i, j] = found[j, i] = float(np.sum(sums[i] * sums[j]))
    return found


def _freedom(rows: Rows, F: Array, moments: Moments, w: Array, axes: Array) -> float:
    """(tr V)² / tr V² of h = x̃f̃ᵀ, from the products of pairs of rows."""
    counted = np.flatnonzero(w > 0)
    some = counted[np.linspace(0, len(counted) - 1, min(PAIRS, len(counted))).astype(np.intp)]
    A = (np.asarray(rows.take(some).array(), np.float64) - moments.mean_x) / moments.spreads
    A -= (A @ axes) @ axes.T
    G = (A @ A.T) * (F[some] @ F[some].T)
    G = G - G.mean(axis=0) - G.mean(axis=1, keepdims=True) + G.mean()
    n = len(G)
    off = (float(np.sum(G**2)) - float(np.sum(np.diag(G) ** 2))) / max(n * (n - 1), 1)
    return max(float(np.diag(G).mean()) ** 2 / off, 1.0) if off > 0 else float(n)


@dataclass(frozen=True, eq=False)
class Sharpened:
    """What came of a pool: moments for a closed form, and what is known of them.

    Attributes
    ----------
    moments : Moments
        Of all rows, with the sharpened covariance; those of the labelled rows where λ = 0.
    record : PoolRecord
    seen : Fingerprint or None
        Of the pool without labelled rows; None if there are no others.
    """

    moments: Moments
    record: PoolRecord
    seen: Fingerprint | None = field(repr=False)


def sharpen(
    labelled: Moments,
    influence: Influence,
    models: CrossFit,
    pool: Rows,
    *,
    second: bool,
    new: NewRows | None = None,
) -> Sharpened:
    """One pass over the pool, then the share λ and the moments.

    Parameters
    ----------
    labelled : Moments
        Of the labelled rows.
    influence : Influence
        Of the same.
    models : CrossFit
    pool : Rows
        Without labels.
    second : bool
        Whether the d x d matrix is wanted.
    new : NewRows, optional
        Knows which rows of the pool are labelled ones; by default none are looked for.

    Returns
    -------
    Sharpened
    """
    found, prints, spread = [], [], 0.0
    for _, X in pool.arrays():
        if new is not None and not len(X := new.of(X)):
            continue
        each = models.each(X)
        F = each.mean(axis=0)
        found.append(Moments.of(X, Concept.of_numbers(np.hstack(list(each))), second=second))
        prints.append(Fingerprint.of(X))
        away = (np.asarray(X, np.float64) - labelled.mean_x) / labelled.spreads
        away = influence.across(away)
        length = np.einsum("ij,ij->i", away, away)
        spread += float(length @ np.sum((F - models.own.mean(axis=0)) ** 2, axis=1))
        found, prints = [reduce(Moments.merge, found)], [reduce(Fingerprint.merge, prints)]
    seen_rows = prints[0] if prints else None
    n, total = labelled.n, found[0].n if new is None else new.seen
    N = total if new is None else new.count(pool, seen_rows)
    if not found or N == 0:
        record = PoolRecord(n, total, 0.0, 1.0, models.gain, 0.0, True, N)
        return Sharpened(labelled, record, seen_rows)
    there, u = found[0], labelled.spreads[:, None]
    by_model = np.stack(np.split(there.cov_xz, len(models.coef), axis=1))
    imputed = by_model.mean(axis=0)
    apart = influence.f - imputed
    own = influence.across((imputed / u).T)
    pp = max(spread / there.n - float(np.sum(own**2)), 0.0) / N
    chance = influence.ff + pp
    seen = float(np.sum(influence.across((apart / u).T) ** 2))
    limit = float(scipy.stats.chi2.isf(LEVEL, influence.freedom)) / influence.freedom
    bias = seen - chance if seen > limit * chance else 0.0
    omega, variance = _best(influence, pp, bias)
    plain, judged, told = _instead(influence, by_model / u, pp, bias, N / (n + N))
    corrected = judged >= variance
    if not corrected:
        omega, variance = plain, told
    if not models.informative or variance > 1 - WORTH:
        omega, variance, corrected = 0.0, 1.0, True
    share = min(omega * (n + N) / N, 1.0)
    bias /= max(influence.zz, 1e-300)
    record = PoolRecord(n, total, share, variance, models.gain, bias, corrected, N)
    if omega == 0:
        return Sharpened(labelled, record, seen_rows)
    subtracted = apart if corrected else labelled.cov_xz - imputed
    covariance = labelled.cov_xz - omega * subtracted
    return Sharpened(_all_rows(labelled, there, covariance), record, seen_rows)


def _best(a: Influence, pool: float, bias: float) -> tuple[float, float]:
    """ω of the least mean squared error, and that relative to ω = 0; 0 if bias outweighs it."""
    if not (a.zz > 0 and a.zf > 0):
        return 0.0, 1.0
    omega = min(a.zf / (a.ff + pool + bias), 1.0)
    saved = 2 * omega * a.zf - omega**2 * (a.ff + pool)
    if omega**2 * bias > saved:
        return 0.0, 1.0
    return omega, max(1 - (saved - omega**2 * bias) / a.zz, 1e-6)


def _instead(
    a: Influence, by_model: Array, pool: float, bias: float, most: float
) -> tuple[float, float, float]:
    """ω of B(ω), and its error relative to labels alone: to be judged by, and to be told.

    Models without one fold each (folds x d x m, in units of the columns) are a jackknife of their
    training: its variance is t = (K - 1)/K Σ ‖c_k - c̄‖². What of cov_n(x, z - f) chance does not
    explain is bias. Errors of labels, of variance v, and of predictions learnt from them go
    together: with the covariance t, where these use the labels well (Hausman 1978), the best share
    is (v - t) / (v - t + the rest). It is judged by the error of the best mean of independent
    estimates. Told is that with the covariance t, in units of its own length, which is less where
    predictions are cautious: it is rather too large than too small.
    """
    K = len(by_model)
    spread = by_model - by_model.mean(axis=0)
    trained = (K - 1) / K * sum(float(np.sum(a.across(part.T) ** 2)) for part in spread)
    seen = float(np.sum(a.across((a.z - a.f).T / a.units) ** 2))
    chance = a.zz - 2 * a.zf + a.ff
    other = pool + bias + max(seen - chance, 0.0)
    if not a.zz > 0:
        return 0.0, 1.0, 1.0
    free, independent = max(a.zz - trained, 0.0), a.zz / (a.zz + trained + other)
    omega = max(free / (free + other) if free > 0 else 0.0, independent)
    omega = min(omega, most)
    own = a.z / a.units[:, None]
    length = 1 - omega + omega * float(np.sum(own * by_model.mean(axis=0)) / np.sum(own**2))
    error = (1 - omega) ** 2 * a.zz + 2 * omega * (1 - omega) * trained
    error = (error + omega**2 * (trained + other)) / a.zz / max(length, 1e-6) ** 2
    told = min(max(error, 1 - most), 1 - WORTH)  # as labels for all at best
    return omega, max(1 - independent, 1 - most), told


def _all_rows(labelled: Moments, pool: Moments, covariance: Array) -> Moments:
    """Moments of x over all rows, each counted once, with the covariance and concept given."""
    scale = labelled.n / labelled.weight
    first = replace(
        _without_concept(labelled),
        weight=float(labelled.n),
        squares=labelled.squares * scale,
        xx=None if labelled.xx is None else labelled.xx * scale,
    )
    both = first.merge(_without_concept(pool))
    return replace(
        both,
        mean_z=labelled.mean_z,
        zz=labelled.cov_zz * both.weight,
        xz=covariance * both.weight,
        labels=labelled.labels,
        kind=labelled.kind,
    )


def _without_concept(moments: Moments) -> Moments:
    return replace(moments.only([]), kind="continuous")
