"""A round of local moves: cells that every class fills alike, and a shift of each class in each.

Clusters of meaning are what Gaussian maps leave: a place where one class is at home. J centres are
laid out, and every class is dealt out to them in the same shares, by a potential for each cell and
class (semi-discrete optimal transport). A cell then holds neighbours of different classes, and the
mean of each class in it moves to the mean of all. The centres are the means of what they hold, so
they move to the barycentre of the classes with J atoms (Cuturi, Doucet 2014).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from expunge.fold_erasure import Cells, soft_cells
from expunge.linalg import Array

__all__ = ["MOST_ROWS", "cells_for", "fit_cells"]

CELLS = 1000
ROWS_PER_CELL = 7  # fewer cells where there are fewer rows
MOST_ROWS = 40_000  # that cells are fitted on
SOFT = 0.05  # width of the borders, in squared distances to the nearest centre
NARROW = 1e-4  # squared distance to a centre, relative to the spread, below which it is rounding
FIRM = 5.0  # rows from which half of a shift is believed
LLOYD, TURNS = 3, 3  # steps of the centres alone, and with potentials
STEPS, RENEWALS = 8, 3  # of potentials: with one kernel, and kernels on a level
LATER = 3  # levels of borders, at the least
EVEN = 0.02  # share of the rows in a wrong cell at which potentials will do
SHARP = 0.5  # width while potentials are found, relative to that of the borders


def cells_for(X: Array, rng: np.random.Generator) -> int:
    """How many cells rows (n x d) can fill: no more than there are different rows."""
    J = min(CELLS, len(X) // ROWS_PER_CELL)
    return min(J, len(np.unique(X[rng.permutation(len(X))[: 4 * J]], axis=0))) if J > 1 else J


def fit_cells(
    X: Array,
    codes: NDArray[np.intp],
    weights: Array,
    shares: Array,
    J: int,
    rng: np.random.Generator,
) -> Cells:
    """Cells and shifts for rows of known or predicted class.

    Parameters
    ----------
    X : array of shape (n, d)
    codes : int array of shape (n,)
    weights : array of shape (n,)
    shares : array of shape (c,)
        Weights of the classes, which add up to 1.
    J : int
        How many cells; at least 2.
    rng : Generator

    Returns
    -------
    Cells
    """
    spread = X.std(axis=0)
    units = np.where(spread > 0, spread, 1.0) * np.sqrt(X.shape[1])
    Z = X / units
    centers = _lloyd(Z, weights, J, rng)
    wide = float(np.mean((Z - Z.mean(axis=0)) ** 2)) * Z.shape[1]
    nearest = float(np.median(_squares(Z, centers).min(axis=1)))
    width = SOFT * max(nearest, NARROW * wide)
    mass = _mass(Z, weights, centers)
    levels = _levels(wide, width)
    potentials = np.zeros((len(shares), J))
    rows = [np.flatnonzero(codes == code) for code in range(len(shares))]
    for turn in range(TURNS):
        means, counts = np.zeros((len(shares), *centers.shape)), np.zeros((len(shares), J))
        for code, own in enumerate(rows):
            if not own.size:
                means[code] = centers
                continue
            potentials[code] = _balanced(
                Z[own], weights[own], centers, mass, potentials[code], SHARP * width, levels
            )
            P = soft_cells(Z[own], centers, potentials[code], width) * weights[own, None]
            counts[code] = P.sum(axis=0)
            held = np.maximum(counts[code], 1e-12)[:, None]
            means[code] = np.where(counts[code][:, None] > 0, P.T @ Z[own] / held, centers)
        target = np.einsum("k,kjd->jd", shares, means)
        if turn < TURNS - 1:
            moved = float(np.mean(np.sum((target - centers) ** 2, axis=1)))
            levels = _levels(2 * np.sqrt(wide * moved), width)  # by which potentials are off
            centers = target
    scale = weights.sum() / len(weights)
    belief = counts / (counts + FIRM * scale)
    shifts = (target - means) * belief[:, :, None] * units
    return Cells(centers, units, potentials, shifts, width)


def _lloyd(Z: Array, weights: Array, J: int, rng: np.random.Generator) -> Array:
    """A few steps of k-means from random rows."""
    chosen = rng.choice(len(Z), J, replace=False, p=weights / weights.sum())
    centers = Z[chosen]
    for _ in range(LLOYD):
        at = _squares(Z, centers).argmin(axis=1)
        count = np.bincount(at, weights=weights, minlength=J)
        total = np.zeros_like(centers)
        np.add.at(total, at, Z * weights[:, None])
        held = count > 0
        centers = np.where(held[:, None], total / np.where(held, count, 1.0)[:, None], centers)
    return np.asarray(centers)


def _mass(Z: Array, weights: Array, centers: Array) -> Array:
    """Share of all rows that each cell is to hold of every class."""
    at = _squares(Z, centers).argmin(axis=1)
    count = np.maximum(np.bincount(at, weights=weights, minlength=len(centers)), 1e-9)
    count = np.maximum(count, 0.2 * count.mean())
    return np.asarray(count / count.sum())


def _balanced(
    Z: Array, w: Array, centers: Array, mass: Array, start: Array, width: float, levels: int
) -> Array:
    """Potentials with which the rows fill the cells as wanted: Sinkhorn's fixed point.

    It is found for soft borders first, and for borders half as wide on each level.
    """
    share, h = w / w.sum(), start.copy()
    distances = 2 * (Z @ centers.T) - np.einsum("ij,ij->i", centers, centers)
    for level in reversed(range(levels)):
        soft = width * 2.0**level
        for _ in range(RENEWALS):
            scores = distances + h
            scores -= scores.max(axis=1, keepdims=True)
            scores /= soft
            kernel = np.exp(scores.astype(np.float32))
            u = np.ones(len(centers))
            for _ in range(STEPS):
                filled = u * ((share / np.maximum(kernel @ u.astype(np.float32), 1e-30)) @ kernel)
                u *= np.clip(mass / np.maximum(filled, 1e-30), 1e-3, 1e3)
            h += soft * np.log(u)
            if np.abs(filled - mass).sum() < EVEN:
                break
    return np.asarray(h - h.mean())


def _levels(error: float, width: float) -> int:
    """How often borders are halved from as soft as potentials are off."""
    return int(np.clip(np.ceil(np.log2(max(error, width) / (SHARP * width))), LATER, 30))


def _squares(Z: Array, centers: Array) -> Array:
    """Squared distances (n x J)."""
    found = np.einsum("ij,ij->i", Z, Z)[:, None] - 2 * (Z @ centers.T)
    found += np.einsum("ij,ij->i", centers, centers)
    return np.asarray(np.maximum(found, 0.0))
