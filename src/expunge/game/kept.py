"""What an erasure leaves of the rows: how much each column still varies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.concept import Concept
from expunge.erasure import Erasure
from expunge.linalg import Array
from expunge.moments import Moments
from expunge.rows.base import Rows

__all__ = ["LEAST", "Kept", "kept_in_moments", "kept_in_rows", "least_spreads", "rows_to_look_at"]

ROWS = 1024  # looked at: a share of variance needs no more, but of heavy tails
FEW = 1_000_000  # numbers of which all are looked at
OFF = 2  # times the variance of a column that a sample may be off by to be one of all rows
GONE = 0.01  # share of its variance below which a column is no longer there
ROUNDING = 1e-12  # what sums in float64 may add to a column that does not vary
FAR = 1e-9  # the same relative to the mean, of which every row carries rounding
LEAST = 1e-6  # a spread, relative to the one before, at which scores still have ten digits
HIDDEN = 1e-8  # a spread, relative to what a map may write, that variances cannot tell from none
SUMS = 32  # how many times the precision a sum of products may be off


@dataclass(frozen=True)
class Kept:
    """How much rows vary after an erasure.

    Attributes
    ----------
    spreads : array of shape (d,)
        Standard deviation of each column after the erasure; where next to nothing is left, a
        millionth of the one before; 1 where there was none.
    variance : float
        Share of the total variance that is left.
    average : float
        The same share, averaged over columns: whatever their units.
    columns : int
        Columns that keep at least a hundredth of their variance; one that never varied is kept.
    least : array of shape (d,)
        The smallest spread that could be told from rounding; 0 where there was none before.
    sampled : bool
        Whether all this is an estimate from some of the rows.
    """

    spreads: Array
    variance: float
    average: float
    columns: int
    least: Array
    sampled: bool = False

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.spreads)

    def to_meta(self) -> dict[str, Any]:
        """As JSON values."""
        return {"variance": self.variance, "columns": self.columns, "of": self.n_features}


def kept_in_rows(
    rows: Rows, erasure: Any, moments: Moments, concept: Concept, weights: Array | None
) -> Kept:
    """What is left, estimated from up to 1,024 rows that represent all, or from all.

    From all of them where they are few numbers, where second moments tell, and where the variance
    of a column is that of a few rows, which a sample misses: heavy tails, flags rarely set.

    Parameters
    ----------
    rows : Rows
    erasure : Erasure, ConditionalErasure or NonlinearErasure
    moments : Moments
        Of the rows.
    concept : Concept
        Told to an erasure that needs it.
    weights : array of shape (n,), optional

    Returns
    -------
    Kept
    """
    index = rows_to_look_at(rows.n_samples, weights)
    sampled = len(index) < (rows.n_samples if weights is None else np.count_nonzero(weights))
    if sampled and rows.local and rows.n_samples * rows.n_features <= FEW:
        return _of_all(rows, erasure, moments, concept, weights)
    if sampled and isinstance(erasure, Erasure):
        exact = kept_in_moments(moments, erasure)
        if exact is not None:
            return exact
    X = np.asarray(rows.take(index).array(), dtype=np.float64)
    few = weights is not None and len(index) == np.count_nonzero(weights)
    w = weights[index] if few and weights is not None else np.ones(len(index))
    if not erasure.needs_concept:
        clean = erasure.transform(X)
    else:
        clean = erasure.transform_known(X, concept.take(index))

    w = w / w.sum()

    def variances(A: Array) -> Array:
        A = A - A[0]  # a constant column is none but zeros
        A -= w @ A
        return np.asarray(w @ np.square(A, out=A))

    before = variances(X)
    if not sampled:
        return _kept(before, variances(clean), moments)
    found = replace(_kept(before, variances(clean), moments), sampled=True)
    whole = moments.squares / moments.weight
    if rows.in_memory and np.any((before * OFF < whole) | (before > OFF * whole)):
        return _of_all(rows, erasure, moments, concept, weights)
    return found


def _of_all(
    rows: Rows, erasure: Any, moments: Moments, concept: Concept, weights: Array | None
) -> Kept:
    """What is left of all rows, in a pass; those without weight count for nothing."""
    w = np.ones(rows.n_samples) if weights is None else weights
    w, shift = w / w.sum(), moments.mean_x
    sums = np.zeros((2, 2, rows.n_features))  # before and after: first and second moments
    for start, block in rows.arrays():
        part = slice(start, start + len(block))
        X = np.asarray(block, dtype=np.float64)
        if erasure.needs_concept:
            clean = erasure.transform_known(X, concept.take(np.arange(part.start, part.stop)))
        else:
            clean = erasure.transform(X)
        for at, A in enumerate((X, clean)):
            A = A - shift
            sums[at] += w[part] @ A, w[part] @ A**2
    before, after = (np.maximum(squares - means**2, 0.0) for means, squares in sums)
    before = np.where(moments.squares > 0, before, 0.0)
    return _kept(before, after, moments)


def rows_to_look_at(n_samples: int, weights: Array | None) -> NDArray[np.intp]:
    """The numbers of the rows that `kept_in_rows` takes, ascending: all, or a sample by weight.

    One at a random place of each of as many equal stretches of weight, so that no period in the
    order of the rows, and no few heavy ones, are missed.
    """
    if weights is None:
        if n_samples <= ROWS:
            return np.arange(n_samples)
        weights = np.ones(n_samples)
    if (weights > 0).sum() <= ROWS:
        return np.flatnonzero(weights > 0)
    ends = np.cumsum(weights)
    places = (np.arange(ROWS) + np.random.default_rng(0).random(ROWS)) / ROWS * ends[-1]
    return np.asarray(np.minimum(np.searchsorted(ends, places, side="right"), n_samples - 1))


def kept_in_moments(moments: Moments, erasure: Erasure) -> Kept | None:
    """What is left, from second moments; None where they are not known and something is left.

    Parameters
    ----------
    moments : Moments
    erasure : Erasure

    Returns
    -------
    Kept or None
    """
    if moments.xx is None and not _mixes_nothing(erasure, moments.squares > 0):
        return None
    S = np.diag(moments.squares) / moments.weight if moments.xx is None else moments.cov_xx
    T = S - erasure.left @ (erasure.right @ S)  # M Σ
    after = np.diag(T) - np.einsum("ij,ij->i", T @ erasure.right.T, erasure.left)
    before = moments.squares / moments.weight
    # an entry of Σ is off by some eps of the spreads it belongs to, and so are the products with M
    spread = np.sqrt(before)
    reach = spread + np.abs(erasure.left) @ (np.abs(erasure.right) @ spread)
    noise = SUMS * moments.eps * reach**2
    hidden = np.minimum(HIDDEN * reach, 1.0)
    return _kept(before, np.where(after > noise, after, 0.0), moments, noise, hidden)


def _mixes_nothing(erasure: Erasure, varies: NDArray[np.bool_]) -> bool:
    """Whether columns that vary are only shrunk, so that covariances play no part.

    So it is where every direction is erased, as far as the strength of the erasure goes.
    """
    if erasure.rank < np.count_nonzero(varies):
        return erasure.rank == 0
    taken = (erasure.left @ erasure.right)[:, varies]
    taken[np.flatnonzero(varies), np.arange(taken.shape[1])] = 0.0
    return bool(np.abs(taken).max(initial=0.0) <= ROUNDING)


def least_spreads(moments: Moments) -> Array:
    """The smallest spread of each column (d,) that can be told from rounding."""
    spread = np.sqrt(moments.squares / moments.weight)
    return np.minimum(LEAST * spread + FAR * np.abs(moments.mean_x), spread)


def _kept(
    before: Array,
    after: Array,
    moments: Moments,
    noise: Array | float = 0.0,
    hidden: Array | float = 0.0,
) -> Kept:
    """From variances before and after on the same rows, and the moments of all rows before.

    Spreads are those that are left for sure, if the variances after are off by `noise`, and
    `hidden` in columns that did not vary, to which less may have been written.
    """
    whole = moments.squares / moments.weight
    total = float(before.sum())
    spread, size = np.sqrt(whole), np.abs(moments.mean_x)
    least = least_spreads(moments)
    sure = np.maximum(after - noise, 0.0)
    with np.errstate(over="ignore"):  # a wide column may be written to a narrow one
        share, sure = (
            np.divide(part, before, out=np.ones_like(before), where=before > 0)
            for part in (after, sure)
        )
    units = np.clip(spread * np.sqrt(sure), least, spread)
    rounding = ROUNDING * (size + spread.max(initial=0.0))
    written = np.where(np.sqrt(after) > rounding, np.sqrt(after), hidden)
    units = np.where(whole > 0, units, written)  # a constant column that was written to
    return Kept(
        spreads=np.where(units > 0, units, 1.0),
        variance=float(after.sum()) / total if total > 0 else 1.0,
        average=float(share[before > 0].mean()) if total > 0 else 1.0,
        columns=int((share >= GONE).sum()),
        least=least,
    )
