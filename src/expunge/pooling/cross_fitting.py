"""Predictions of the concept, for every labelled row by models that have not seen its label.

The labelled rows are cut into folds; a ridge model is trained without each. A row of a fold is
predicted by the model without it, any other row by the mean of all models, so that errors are the
same on both but for chance. One ridge serves all folds: the one whose predictions of rows not seen
have the least loss.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.special import expit, softmax

from expunge.concept import Concept
from expunge.linalg import Array
from expunge.moments import Moments
from expunge.rows.base import Rows

__all__ = ["CrossFit", "cross_fit", "fold_numbers"]

FOLDS = 5
MOST_NUMBERS = 1 << 24  # of the rows that models are trained on
RIDGES = 10.0 ** np.arange(1.0, -4.6, -0.5)  # relative to the variance of a column; largest first
STEPS = 200  # of the solver; a model that stops early predicts as well
LEAST_SHARE = 1e-12  # of a class, where its logarithm is taken
SURE = 2.0  # standard errors by which predictions must beat the average


@dataclass(frozen=True, eq=False)
class CrossFit:
    """Predictions of labelled rows by models without them, and the models.

    Attributes
    ----------
    own : array of shape (n, m)
        Of the labelled rows, each by the model that has not seen it; shares of classes or labels,
        or numbers.
    gain : float
        By how much the loss of these is below that of the average, in standard errors.
    ridge : float
        Relative to the variance of a column.
    center, units : arrays of shape (d,)
        In which the models read the rows.
    coef : array of shape (folds, d, m)
    intercept : array of shape (folds, m)
    link : callable
        From scores to predictions.
    """

    own: Array
    gain: float
    ridge: float
    center: Array
    units: Array
    coef: Array
    intercept: Array
    link: Callable[[Array], Array]

    @property
    def informative(self) -> bool:
        """Whether predictions are better than the average, beyond chance."""
        return self.gain > SURE

    def predict(self, X: NDArray[Any]) -> Array:
        """Predictions (k x m) of other rows (k x d): the mean over the models."""
        return np.asarray(np.mean(self.each(X), axis=0))

    def each(self, X: NDArray[Any]) -> Array:
        """Predictions (folds x k x m) of other rows (k x d) by each of the models."""
        scaled = (np.asarray(X, dtype=np.float64) - self.center) / self.units
        models = zip(self.coef, self.intercept, strict=True)
        return np.stack([self.link(scaled @ coef + b) for coef, b in models])


def fold_numbers(
    concept: Concept, groups: NDArray[np.intp] | None, rng: np.random.Generator
) -> NDArray[np.intp]:
    """A fold for each labelled row; rows of one group share theirs, classes are spread evenly.

    Parameters
    ----------
    concept : Concept
    groups : int array of shape (n,), optional
    rng : Generator

    Returns
    -------
    int array of shape (n,)
    """
    from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

    n = concept.n_samples
    count = n if groups is None else len(np.unique(groups))
    folds, seed = min(FOLDS, count), int(rng.integers(2**31))
    by_class = concept.kind == "classes"
    if by_class:
        most = int(np.bincount(concept.values).max())
        by_class, folds = most > 1, min(folds, max(most, 2))
    if groups is None:
        rule = StratifiedKFold if by_class else KFold
        cut = rule(folds, shuffle=True, random_state=seed)
    elif by_class:
        cut = StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
    else:
        cut = GroupKFold(folds, shuffle=True, random_state=seed)
    found = np.zeros(n, dtype=np.intp)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of classes with fewer members than folds
        parts = cut.split(np.zeros(n), concept.values if by_class else None, groups)
        for number, (_, held) in enumerate(parts):
            found[held] = number
    return found


def cross_fit(
    rows: Rows,
    concept: Concept,
    moments: Moments,
    weights: Array | None,
    groups: NDArray[np.intp] | None,
    rng: np.random.Generator,
    *,
    ridges: Array = RIDGES,
    most_numbers: int = MOST_NUMBERS,
) -> CrossFit:
    """Train the models and choose their ridge.

    Parameters
    ----------
    rows : Rows
        With labels; of many, the models are trained on some.
    concept : Concept
    moments : Moments
        Of the rows.
    weights : array of shape (n,), optional
    groups : int array of shape (n,), optional
        Rows of one group are never in different folds.
    rng : Generator
    ridges : array
        To choose from, relative to the variance of a column; largest first.
    most_numbers : int
        Of the rows that models are trained on.

    Returns
    -------
    CrossFit
    """
    folds = fold_numbers(concept, groups, rng)
    w = np.ones(concept.n_samples) if weights is None else weights
    learnt = _some(rows, w, rng, most_numbers)
    center, units = moments.mean_x, moments.spreads
    X = (np.asarray(rows.take(learnt).array(), dtype=np.float64) - center) / units
    axes = _axes(X)
    F = X if axes is None else X @ axes
    known = concept.take(learnt)
    family = _family(concept)
    numbers = range(int(folds.max()) + 1)
    fits = [family.path(F, known, w[learnt] * (folds[learnt] != k), ridges) for k in numbers]
    losses = [
        _loss_of(family, F, known, w[learnt], folds[learnt], [fit[j] for fit in fits])
        for j in range(len(ridges))
    ]
    best = int(np.argmin([float(w[learnt] @ each) for each in losses]))
    chosen = [fit[best] for fit in fits]
    coef = np.stack([c if axes is None else axes @ c for c, _ in chosen])
    found = CrossFit(
        own=np.zeros((concept.n_samples, concept.width)),
        gain=_gain(family, known, w[learnt], folds[learnt], groups, learnt, losses[best]),
        ridge=float(ridges[best]),
        center=center,
        units=units,
        coef=coef,
        intercept=np.stack([b for _, b in chosen]),
        link=family.link,
    )
    for start, A in rows.arrays():
        here = slice(start, start + len(A))
        scaled = (np.asarray(A, dtype=np.float64) - center) / units
        for k in np.unique(folds[here]):
            own = np.flatnonzero(folds[here] == k)
            found.own[start + own] = family.link(scaled[own] @ coef[k] + found.intercept[k])
    return found


def _some(rows: Rows, w: Array, rng: np.random.Generator, most_numbers: int) -> NDArray[np.intp]:
    """Numbers of rows that count, as many as fit in memory."""
    counted = np.flatnonzero(w > 0)
    most = max(2, most_numbers // rows.n_features)
    if len(counted) <= most:
        return counted
    return np.sort(rng.choice(counted, most, replace=False))


def _axes(X: Array) -> Array | None:
    """Orthonormal axes (d x n) that hold all rows, where there are fewer rows than columns.

    The coefficients of a ridge model are a combination of its rows, so nothing is lost.
    """
    n, d = X.shape
    if n >= d:
        return None
    values, V = scipy.linalg.eigh(X @ X.T, check_finite=False)
    there = values > n * np.finfo(np.float64).eps * max(float(values[-1]), 0.0)
    if not there.any():  # all rows are the same
        return None
    return np.asarray(X.T @ (V[:, there] / np.sqrt(values[there])))


def _loss_of(
    family: Any,
    F: Array,
    concept: Concept,
    w: Array,
    folds: NDArray[np.intp],
    fits: Sequence[tuple[Array, Array]],
) -> Array:
    """The loss of every row under the model that has not seen it."""
    found = np.zeros(len(F))
    for k, (coef, b) in enumerate(fits):
        own = np.flatnonzero((folds == k) & (w > 0))
        found[own] = family.loss(concept.take(own), family.link(F[own] @ coef + b))
    return found


def _gain(
    family: Any,
    concept: Concept,
    w: Array,
    folds: NDArray[np.intp],
    groups: NDArray[np.intp] | None,
    index: NDArray[np.intp],
    loss: Array,
) -> float:
    """By how many standard errors the loss is below that of the average of the other folds."""
    Z, average = concept.columns(), np.zeros(len(w))
    for k in range(int(folds.max()) + 1):
        own, others = folds == k, w * (folds != k)
        if others.sum() > 0 and own.any():
            mean = others @ Z / others.sum()
            average[own] = family.loss(concept.take(own), np.tile(mean, (int(own.sum()), 1)))
    better = w * (average - loss) / w.sum()
    if groups is not None:
        better = np.bincount(np.unique(groups[index], return_inverse=True)[1], weights=better)
    mean = better.mean()
    error = np.sqrt(np.sum((better - mean) ** 2))
    return float(better.sum() / error) if error > 0 else 0.0


# -- families of models --------------------------------------------------------------------------


class _Classes:
    """Multinomial logistic regression."""

    link = staticmethod(lambda S: softmax(S, axis=1))

    def path(
        self, F: Array, concept: Concept, w: Array, ridges: Array
    ) -> list[tuple[Array, Array]]:
        """Coefficients (d x m) and intercepts (m,) for each ridge, each begun at the one before."""
        from sklearn.linear_model import LogisticRegression

        used = w > 0
        y = concept.values[used]
        there = np.unique(y)
        found = []
        if len(there) < 2:
            b = np.full(concept.width, -30.0)
            b[there] = 0.0
            return [(np.zeros((F.shape[1], concept.width)), b)] * len(ridges)
        model = LogisticRegression(max_iter=STEPS, warm_start=True)
        for ridge in ridges:
            model.set_params(C=1 / (ridge * w.sum()))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a model that stops early will do
                model.fit(F[used], y, sample_weight=w[used])
            coef = np.zeros((F.shape[1], concept.width))
            b = np.full(concept.width, -30.0)
            if len(there) == 2:  # one score, which is the difference
                coef[:, there[1]], b[there] = model.coef_[0], [0.0, model.intercept_[0]]
            else:
                coef[:, there], b[there] = model.coef_.T, model.intercept_
            found.append((coef, b))
        return found

    def loss(self, concept: Concept, p: Array) -> Array:
        """Logarithmic loss of each row."""
        own = p[np.arange(len(p)), concept.values]
        return np.asarray(-np.log(np.maximum(own, LEAST_SHARE)))


class _Labels:
    """A logistic regression for each label."""

    link = staticmethod(expit)

    def path(
        self, F: Array, concept: Concept, w: Array, ridges: Array
    ) -> list[tuple[Array, Array]]:
        """As of `_Classes`."""
        each = [
            _Classes().path(F, Concept("classes", column.astype(np.intp), (0, 1)), w, ridges)
            for column in concept.values.T
        ]
        return [
            (
                np.column_stack([fit[j][0][:, 1] - fit[j][0][:, 0] for fit in each]),
                np.array([fit[j][1][1] - fit[j][1][0] for fit in each]),
            )
            for j in range(len(ridges))
        ]

    def loss(self, concept: Concept, p: Array) -> Array:
        """Sum of the logarithmic losses of the labels."""
        own = np.where(concept.values > 0.5, p, 1 - p)
        return np.asarray(-np.log(np.maximum(own, LEAST_SHARE)).sum(axis=1))


class _Numbers:
    """Ridge regression, every number in units of its own spread."""

    link = staticmethod(lambda S: S)

    def __init__(self, concept: Concept) -> None:
        spread = concept.values.std(axis=0)
        self.units = np.where(spread > 0, spread, 1.0)

    def path(
        self, F: Array, concept: Concept, w: Array, ridges: Array
    ) -> list[tuple[Array, Array]]:
        """As of `_Classes`."""
        from sklearn.linear_model import Ridge

        used, found = w > 0, []
        Z = concept.values[used] / self.units
        for ridge in ridges:
            model = Ridge(alpha=ridge * w.sum()).fit(F[used], Z, sample_weight=w[used])
            coef, b = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
            found.append((coef.T * self.units, b * self.units))
        return found

    def loss(self, concept: Concept, p: Array) -> Array:
        """Squared error of each row."""
        return np.asarray((((concept.values - p) / self.units) ** 2).sum(axis=1))


def _family(concept: Concept) -> Any:
    if concept.kind == "classes":
        return _Classes()
    return _Labels() if concept.kind == "labels" else _Numbers(concept)
