"""The Gaussian maps of a fold: class covariances are made equal, at the least change.

In coordinates where the covariance Σ within classes is I, class k has covariance I + E_k. Noise in
E_k is what makes a map worse than none, so its eigenvalues are measured on rows that did not choose
its eigenvectors (cross-validation, made monotone), which sets those of pure noise to about 0. Then
only the r directions U in which Σ p_k E_k² is large count, and

    x -> x + L (M_k - I) R x        R = UᵀΣ^(-1/2), L = Σ^(1/2)U

where M_k takes I + UᵀE_kU to the barycentre of all classes. Of all such maps the least change
E‖x' - x‖² is that of optimal transport in the metric LᵀL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.linalg

from expunge.game.barycenter import barycenter, maps_to
from expunge.linalg import Array, fix_signs, whitening_pair
from expunge.moments import Moments

__all__ = ["ClassMoments", "GaussianMaps", "gaussian_maps"]

KEPT = 0.995  # share of all differences between classes that the directions of "auto" hold
LEAST = 0.02  # variance of a class relative to that of all: no map stretches by more than seven


@dataclass(frozen=True)
class ClassMoments:
    """Moments of each class, whole and in parts whose rows are different ones.

    Attributes
    ----------
    whole : sequence of Moments, one for each class
    parts : sequence of sequences of Moments
        For each class its moments on every part of the rows; empty without cross-validation.
    """

    whole: Sequence[Moments]
    parts: Sequence[Sequence[Moments]] = ()

    @property
    def shares(self) -> Array:
        """Weights of the classes, which add up to 1."""
        weights = np.array([part.weight for part in self.whole])
        return np.asarray(weights / weights.sum())


@dataclass(frozen=True, eq=False)
class GaussianMaps:
    """Factors of the maps; see `FoldErasure`.

    Attributes
    ----------
    left : array of shape (d, r)
    right : array of shape (r, d)
    maps : array of shape (c, r, r)
        M_k - I.
    """

    left: Array
    right: Array
    maps: Array


def gaussian_maps(
    seen: ClassMoments,
    *,
    shrinkage: float | Literal["auto"],
    directions: int | Literal["auto"],
) -> GaussianMaps:
    """The maps from moments of the classes.

    Parameters
    ----------
    seen : ClassMoments
    shrinkage : float or "auto"
        Share of E_k that is taken away, or cross-validated eigenvalues.
    directions : int or "auto"
        How many count; "auto" takes those that hold 99.5 % of all differences.

    Returns
    -------
    GaussianMaps
    """
    shares = seen.shares
    pooled = sum(p * part.cov_xx for p, part in zip(shares, seen.whole, strict=True))
    d, sd = len(pooled), np.sqrt(np.diag(pooled))
    sd = np.where(sd > 0, sd, 1.0)
    W, root = whitening_pair(pooled / sd[:, None] / sd, rcond=d * seen.whole[0].eps)
    W, root = W / sd, sd[:, None] * root  # of columns in their own units
    E = np.stack([_difference(seen, k, W, pooled, shrinkage) for k in range(len(shares))])
    D = np.tensordot(shares, E @ E, axes=1)
    values, U = scipy.linalg.eigh((D + D.T) / 2, check_finite=False)
    values, U = np.maximum(values[::-1], 0.0), U[:, ::-1]
    if directions == "auto":
        total = float(values.sum())
        count = int(np.searchsorted(np.cumsum(values), KEPT * total) + 1) if total > 0 else 0
    else:
        count = directions
    U = fix_signs(U[:, : min(count, int((values > 0).sum()))])
    if not U.shape[1]:
        return GaussianMaps(np.zeros((d, 0)), np.zeros((0, d)), np.zeros((len(shares), 0, 0)))
    spreads = np.stack([_positive(np.eye(U.shape[1]) + U.T @ e @ U) for e in E])
    left = root @ U
    metric = scipy.linalg.cholesky(left.T @ left + _ridge(left), lower=True)
    moved = metric.T @ spreads @ metric
    moved /= np.abs(moved).max()  # maps have no unit, and squares could overflow
    maps = maps_to(barycenter(moved, shares), moved)
    back = [scipy.linalg.solve_triangular(metric.T, A @ metric.T) for A in maps]
    return GaussianMaps(left, U.T @ W, np.stack(back) - np.eye(U.shape[1]))


def _ridge(left: Array) -> Array:
    """What keeps the metric from being singular where columns repeat one another."""
    size = 1e-10 * float(np.einsum("ij,ij->", left, left)) / left.shape[1]
    return np.asarray(size * np.eye(left.shape[1]))


def _difference(
    seen: ClassMoments, code: int, W: Array, pooled: Array, shrinkage: float | Literal["auto"]
) -> Array:
    """E_k after shrinkage."""
    E = _white(seen.whole[code], W, pooled)
    if shrinkage != "auto":
        return (1 - shrinkage) * E
    values, V = scipy.linalg.eigh(E, check_finite=False)
    parts = seen.parts[code] if seen.parts else ()
    if len(parts) < 2:
        return np.zeros_like(E)  # nothing tells differences from noise
    held, weight = np.zeros(len(values)), 0.0
    for number, part in enumerate(parts):
        others = _merged([p for i, p in enumerate(parts) if i != number])
        _, U = scipy.linalg.eigh(_white(others, W, pooled), check_finite=False)
        own = _white(part, W, pooled, others.mean_x)
        held += part.weight * np.einsum("ij,ij->j", U, own @ U)
        weight += part.weight
    from sklearn.isotonic import isotonic_regression

    told = isotonic_regression(held / weight)
    share = np.divide(told, values, out=np.zeros_like(told), where=values != 0)
    return np.asarray((V * (values * np.clip(share, 0.0, 1.0))) @ V.T)


def _white(moments: Moments, W: Array, pooled: Array, mean: Array | None = None) -> Array:
    """W (Σ_k - Σ) Wᵀ, with the covariance of a class measured from `mean`."""
    S = moments.cov_xx - pooled
    if mean is not None:
        away = moments.mean_x - mean
        S = S + np.outer(away, away)
    found = W @ S @ W.T
    return np.asarray((found + found.T) / 2)


def _merged(parts: Sequence[Moments]) -> Moments:
    total = parts[0]
    for part in parts[1:]:
        total = total.merge(part)
    return total


def _positive(S: Array) -> Array:
    """A covariance none of whose variances is below `LEAST`."""
    values, V = scipy.linalg.eigh(S, check_finite=False)
    return np.asarray((V * np.maximum(values, LEAST)) @ V.T)
