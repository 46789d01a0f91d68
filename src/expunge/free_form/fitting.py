"""Free-form LEACE from rows: features, one pass of sums, a ridge, the map."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from expunge.concept import Concept
from expunge.emptied import nothing_left, with_emptied_columns
from expunge.free_form.random_features import draw_features, sums_by_fold
from expunge.free_form.readout import Blocks, Readout
from expunge.free_form.ridge_choice import RidgeChoice, choose_ridge
from expunge.free_form_erasure import FreeFormErasure
from expunge.game.kept import rows_to_look_at
from expunge.linalg import Array
from expunge.moments import Moments
from expunge.parallel import one_blas_thread
from expunge.pooling.cross_fitting import fold_numbers
from expunge.rows.base import Rows

__all__ = ["FreeForm", "fit_free_form"]

FEWEST = 20  # rows of which some can be held out
EXACT = 1e-9  # what rounding may leave of the covariance with the concept, as a correlation


@dataclass(frozen=True)
class FreeForm:
    """A map, what held-out rows said of it and, where it is LEACE alone, why."""

    erasure: FreeFormErasure
    choice: RidgeChoice
    why_linear: str = ""


def fit_free_form(
    rows: Rows,
    concept: Concept,
    weights: Array | None,
    groups: NDArray[np.intp] | None,
    moments: Moments,
    factors: tuple[Array, Array],
    shrunk: Array | None,
    *,
    n_components: int,
    effective_n: float,
    rng: np.random.Generator,
) -> FreeForm:
    """The map that takes from rows what LEACE takes, read from features too: one more pass.

    Parameters
    ----------
    rows : Rows
    concept : Concept
    weights : array of shape (n,), optional
    groups : int array of shape (n,), optional
        Rows of one group are held out together.
    moments : Moments
        Of rows and concept.
    factors : (array of shape (d, r), array of shape (r, d))
        Of LEACE.
    shrunk : array of shape (d, d), optional
        The covariance of the rows that LEACE was told, if not their own.
    n_components : int
        Of the features; without any it is LEACE.
    effective_n : float
        Independent rows.
    rng : Generator

    Returns
    -------
    FreeForm
    """
    left, right = factors
    d, m = moments.n_features, concept.width
    look = rows_to_look_at(rows.n_samples, weights)
    sample = np.asarray(rows.take(look).array(), dtype=np.float64)
    features = draw_features(sample, moments, n_components, rng)
    folds = np.zeros(rows.n_samples, dtype=np.intp)
    if rows.n_samples >= FEWEST:
        folds = fold_numbers(concept, groups, rng)
    mean, unit = moments.mean_z, moments.concept_spreads
    parts = sums_by_fold(
        rows, lambda lo, hi: (concept.columns(lo, hi) - mean) / unit, weights, features, folds
    )
    whole = reduce(Moments.merge, parts)
    blocks, units = Blocks.of(whole, d, m), features.units
    T = (right * units) @ blocks.uz
    with one_blas_thread():  # many small factorisations, for which threads wait for each other
        choice = choose_ridge(parts, d, m, effective_n)
        readout = Readout(blocks, None if shrunk is None else shrunk / np.outer(units, units))
        read = readout.reading(T, choice.ridge)
    why = ""
    if len(parts) < 2:
        why = "there are too few rows to hold some out"
    elif not np.isfinite(choice.ridge):
        why = "in rows held out they predict no better than x alone, or leave more to find"
    elif not _is_exact(left, read, T, blocks, units):
        why = "rounding would leave some of the covariance with the concept"
    if why:
        choice = replace(choice, ridge=np.inf)
        factors = with_emptied_columns(left, right, moments)
        return FreeForm(_without_features(*factors, moments.mean_x), choice, why)
    right, coef = read[:d].T / units, read[d:].T
    if (gone := nothing_left(*factors, moments)).any():  # a constant is written to these
        own = np.eye(d)[gone]
        left = np.hstack([np.where(gone[:, None], 0.0, left), own.T])
        right, coef = np.vstack([right, own]), np.pad(coef, ((0, len(own)), (0, 0)))
    return FreeForm(
        FreeFormErasure(
            left,
            right,
            features.center,
            features.frequencies,
            features.phases,
            coef,
            whole.mean_x[d:-m],
        ),
        choice,
    )


def _is_exact(left: Array, read: Array, T: Array, blocks: Blocks, units: Array) -> bool:
    """Whether no more than rounding is left of the correlations with the concept."""
    missing = (left / units[:, None]) @ (T - read.T @ blocks.fz)
    return bool(np.abs(missing).max(initial=0.0) <= EXACT * np.abs(blocks.uz).max(initial=0.0))


def _without_features(left: Array, right: Array, center: Array) -> FreeFormErasure:
    d, r = left.shape
    none = np.zeros((d, 0)), np.zeros(0), np.zeros((r, 0)), np.zeros(0)
    return FreeFormErasure(left, right, center, *none)
