"""A linear predictor of the class, from rows or from moments alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from expunge.concept import Concept
from expunge.linalg import Array
from expunge.moments import Moments
from expunge.pooling.cross_fitting import cross_fit
from expunge.rows.base import Rows

__all__ = ["LinearPredictor", "discriminant", "logistic"]

RIDGES = 10.0 ** np.array([-0.5, -2.0, -3.5])  # of logistic regression
MOST_NUMBERS = 1 << 23  # of the rows it is trained on
RIDGE = 1e-3  # of a discriminant, relative to the mean variance within classes


@dataclass(frozen=True, eq=False)
class LinearPredictor:
    """Scores ``(x - center) @ coef + intercept``, of which the largest is predicted.

    Attributes
    ----------
    center : array of shape (d,)
    coef : array of shape (d, c)
    intercept : array of shape (c,)
    accuracy : float or None
        Mean over classes of the share predicted rightly, on rows it was not trained on.
    error : float
        Its standard error.
    """

    center: Array
    coef: Array
    intercept: Array
    accuracy: float | None = None
    error: float = 0.0

    def predict(self, rows: Rows) -> NDArray[np.intp]:
        """The number of a class for each row: one pass."""
        found = np.zeros(rows.n_samples, dtype=np.intp)
        for start, A in rows.arrays():
            scores = (np.asarray(A, dtype=np.float64) - self.center) @ self.coef + self.intercept
            found[start : start + len(A)] = scores.argmax(axis=1)
        return found


def logistic(
    rows: Rows,
    concept: Concept,
    moments: Moments,
    weights: Array | None,
    rng: np.random.Generator,
    groups: NDArray[np.intp] | None = None,
) -> LinearPredictor:
    """Multinomial logistic regression, its ridge chosen by cross-validation.

    Parameters
    ----------
    rows : Rows
        Of many, it is trained on some.
    concept : Concept of kind "classes"
    moments : Moments
        Of the rows.
    weights : array of shape (n,), optional
    rng : Generator
    groups : int array of shape (n,), optional
        No row is predicted by a model that has seen another of its group.

    Returns
    -------
    LinearPredictor
        The mean of the models of all folds.
    """
    models = cross_fit(
        rows, concept, moments, weights, groups, rng, ridges=RIDGES, most_numbers=MOST_NUMBERS
    )
    accuracy, error = _accuracy(models.own.argmax(axis=1), concept, weights, groups)
    coef = models.coef.mean(axis=0) / models.units[:, None]
    return LinearPredictor(models.center, coef, models.intercept.mean(axis=0), accuracy, error)


def _accuracy(
    predicted: NDArray[np.intp],
    concept: Concept,
    weights: Array | None,
    groups: NDArray[np.intp] | None,
) -> tuple[float, float]:
    """Mean share over the classes, and its standard error; rows of a group err together."""
    w = np.ones(len(predicted)) if weights is None else weights
    right, total, squares = (
        np.bincount(concept.values, weights=each, minlength=concept.width)
        for each in (w * (predicted == concept.values), w, w**2)
    )
    there = total > 0
    share = right[there] / total[there]
    if groups is None:
        errors = share * (1 - share) * squares[there] / total[there] ** 2
        return float(share.mean()), float(np.sqrt(errors.sum()) / there.sum())
    each = np.divide(right, total, out=np.zeros_like(total), where=there)
    off = w * ((predicted == concept.values) - each[concept.values])
    together = np.bincount(groups, weights=off / total[concept.values])
    return float(share.mean()), float(np.sqrt(np.sum(together**2)) / there.sum())


def discriminant(moments: Moments, classes: Sequence[Moments]) -> LinearPredictor:
    """Linear discriminant analysis: Gaussian classes of one covariance, from moments.

    Parameters
    ----------
    moments : Moments
        Of all rows.
    classes : sequence of Moments
        Of each class by itself.

    Returns
    -------
    LinearPredictor
    """
    shares = np.array([part.weight for part in classes]) / moments.weight
    means = np.stack([part.mean_x for part in classes]) - moments.mean_x
    within = sum(p * part.cov_xx for p, part in zip(shares, classes, strict=True))
    sd = np.sqrt(np.maximum(np.diag(within), 0.0))
    unit = np.where(sd > 0, sd, np.inf)  # a column that never varies within classes says nothing
    S = within / unit[:, None] / unit
    S[np.diag_indices_from(S)] += RIDGE + (sd == 0)
    coef = scipy.linalg.solve(S, (means / unit).T, assume_a="pos") / unit[:, None]
    intercept = np.log(shares) - np.einsum("kd,dk->k", means, coef) / 2
    return LinearPredictor(moments.mean_x, coef, intercept)
