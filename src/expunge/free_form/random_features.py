"""Random cosines of rows: features whose products stand for a Gaussian kernel.

With frequencies ω ~ N(0, I/w²) and phases uniform, 2 E[cos(ωᵀu + b) cos(ωᵀv + b)] is the kernel
exp(-‖u - v‖²/2w²) (Rahimi and Recht 2007). Columns are measured in their own spreads, so that units
do not matter, and w is the median distance of two rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from expunge.concept import Concept
from expunge.free_form_erasure import cosines
from expunge.linalg import Array
from expunge.moments import Moments
from expunge.parallel import BLOCK
from expunge.rows.base import Rows

__all__ = ["RandomFeatures", "draw_features", "sums_by_fold"]

FEW = 1 << 23  # numbers of rows with their features that are held at once


@dataclass(frozen=True, eq=False)
class RandomFeatures:
    """Cosines of rows, ``cos((x - center) @ frequencies + phases)``.

    Attributes
    ----------
    center, units : arrays of shape (d,)
        Mean and spread of the columns.
    frequencies : array of shape (d, D)
        Of rows in their own numbers, not in units.
    phases : array of shape (D,)
    """

    center: Array
    units: Array
    frequencies: Array
    phases: Array

    def beside(self, X: NDArray[np.float64]) -> Array:
        """Rows (n x d) in units, with their features beside them (n x (d + D))."""
        C = X - self.center
        return np.hstack([C / self.units, cosines(C, self.frequencies, self.phases)])


def draw_features(
    sample: Array, moments: Moments, count: int, rng: np.random.Generator
) -> RandomFeatures:
    """Features for rows like these.

    Parameters
    ----------
    sample : array of shape (k, d)
        Some rows, whose median distance is the width of the kernel.
    moments : Moments
        Of all rows.
    count : int
    rng : Generator

    Returns
    -------
    RandomFeatures
    """
    d, units = moments.n_features, moments.spreads
    U = (sample - moments.mean_x) / units
    directions = rng.normal(size=(d, count)) / _median_distance(U)
    phases = rng.uniform(0, 2 * np.pi, count)
    return RandomFeatures(moments.mean_x, units, directions / units[:, None], phases)


def _median_distance(U: Array) -> float:
    """Between rows of the first half and those of the second; 1 where all are the same."""
    A, B = U[::2], U[1::2]
    squares = (A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2 * (A @ B.T)
    apart = squares[squares > 1e-12 * max(float(squares.max(initial=0.0)), 1e-300)]
    return float(np.sqrt(np.median(apart))) if apart.size else 1.0


def sums_by_fold(
    rows: Rows,
    targets: Callable[[int, int], Array],
    weights: Array | None,
    features: RandomFeatures,
    folds: NDArray[np.intp],
) -> list[Moments]:
    """Second moments of [x in units, features, concept] for each fold: one pass.

    Parameters
    ----------
    rows : Rows
    targets : function (start, stop) -> array of shape (stop - start, m)
        The concept of rows, in units.
    weights : array of shape (n,), optional
    features : RandomFeatures
    folds : int array of shape (n,)

    Returns
    -------
    list of Moments
        Of d + D + m columns. A fold without weight is not in it.
    """
    found: dict[int, Moments] = {}
    width = rows.n_features + features.phases.size
    size = max(BLOCK, FEW // width)
    for start, A in rows.arrays():
        for lo in range(0, len(A), size):
            hi = min(lo + size, len(A))
            here = slice(start + lo, start + hi)
            X = features.beside(np.asarray(A[lo:hi], dtype=np.float64))
            F = np.hstack([X, targets(here.start, here.stop)])
            w = None if weights is None else weights[here]
            counts = np.ones(hi - lo, bool) if w is None else w > 0
            for k in np.unique(folds[here][counts]):
                own = np.flatnonzero((folds[here] == k) & counts)
                part = Moments.of(F[own], Concept.none(own.size), None if w is None else w[own])
                found[k] = found[k].merge(part) if k in found else part
    return [found[k] for k in sorted(found)]
