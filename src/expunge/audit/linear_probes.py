"""Linear probes: logistic regression at several strengths, a linear support vector machine, LDA.

For numbers, ridge regression at the same strengths. All but the discriminants are the library's own
predictor, trained until its lower bound proves it. Columns in units of their own are scaled first.
A ridge and shrinkage are blind to directions in which rows hardly vary, such as the sum of the
categories of a column; LDA without shrinkage and least squares are not.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from expunge.audit.measures import ProbeScores
from expunge.audit.probe import Probe, Training
from expunge.game.predictor import Problem, fit_predictor
from expunge.linalg import Array
from expunge.parallel import blas_for
from expunge.shrinkage import shrink

__all__ = ["LINEAR_PROBES", "logistic_scores"]

STRENGTHS = (1e-4, 1e-2, 1e-1, 1.0)  # ridges relative to the mean variance of a column
SVM_RIDGE = 1e-2
SILENCE = 1e-4  # nats that scores may vary by without saying anything: some 1e-9 bits
TOL = 1e-6
MAX_PASSES = 200
BARE, BARE_SINGLE = 1e-9, 1e-7  # ridges that keep rounding out and no more; of float32 rows


def logistic_scores(training: Training, X: Array, alpha: float, *, own_units: bool = True) -> Array:
    """Log-odds on the rows X of a logistic regression: (n x classes) or (n x labels).

    Parameters
    ----------
    training : Training
    X : array of shape (n, d)
    alpha : float
        Ridge, relative to the mean variance of a column.
    own_units : bool
        Whether columns of uneven spread are scaled one by one; not where they are coordinates.

    Returns
    -------
    array of shape (n, width)
        Up to a constant per row.
    """
    if own_units:
        training, X = training.even, training.scaled(X)
    return _one_per_class(_trained(training.problem("cross_entropy"), X, alpha), training)


def _trained(problem: Problem, X: Array, alpha: float) -> Array:
    """Scores (n x m) on the rows X of the predictor that solves the problem with this ridge."""
    problem.alpha = alpha
    problem.curvature_pairs = []  # of another ridge
    found = fit_predictor(problem, tol=TOL, max_passes=MAX_PASSES, exact_intercept=False)
    return _audible((X - problem.moments.mean_x) @ found.coef, found.intercept)


def _one_per_class(S: Array, training: Training) -> Array:
    """One column per class, where two classes share one score."""
    if training.concept.kind == "classes" and S.shape[1] == 1:
        return np.column_stack([np.zeros(len(S)), S[:, 0]])
    return S


def _logistic(alpha: float) -> Probe:
    def score(training: Training, X: Array, seed: int) -> ProbeScores:
        return ProbeScores(logistic_scores(training, X, alpha), True, training.prior)

    return Probe(f"logistic regression, ridge {alpha:g}", "linear", ("classes", "labels"), score)


def _svm(training: Training, X: Array, seed: int) -> ProbeScores:
    training, X = training.even, training.scaled(X)
    S = _trained(training.balanced_problem("squared_hinge"), X, SVM_RIDGE)
    return ProbeScores(_one_per_class(S, training), False, training.prior)


def _lda(name: str, shrinkage: str) -> Probe:
    """Gaussian classes with one covariance: log-odds linear in x, from moments alone."""

    def score(training: Training, X: Array, seed: int) -> ProbeScores:
        ridge = BARE
        if shrinkage == "none":
            training, ridge = training.double, _bare(training)
        training, X = training.even, training.scaled(X)
        moments, concept = training.moments, training.concept
        if concept.kind == "classes":
            S = _discriminant(training, moments.xz, moments.mean_z, X, shrinkage, ridge)
            return ProbeScores(S, True, training.prior)
        columns = []
        for xz, share in zip(moments.xz.T, moments.mean_z, strict=True):
            shares = np.array([1 - share, share])
            both = np.column_stack([-xz, xz])
            S = _discriminant(training, both, shares, X, shrinkage, ridge)
            columns.append(S[:, 1] - S[:, 0])
        return ProbeScores(np.column_stack(columns), True, training.prior)

    return Probe(name, "linear", ("classes", "labels"), score)


def _discriminant(
    training: Training, xz: Array, shares: Array, X: Array, shrinkage: str, ridge: float
) -> Array:
    """Scores of classes with shares π_k and centred sums xz_k.

    Class k has (x - x̄)ᵀ w_k - m_kᵀ w_k / 2 + log π_k, with m_k its mean less x̄, w_k = Σ⁻¹ m_k,
    and Σ the covariance within classes.
    """
    moments = training.moments
    means = xz / np.maximum(moments.weight * shares, 1e-300)
    within = shrink(moments.cov_xx - (means * shares) @ means.T, moments.weight, shrinkage)
    w = _solve(within, means, ridge * _mean_variance(moments.cov_xx))
    offset = np.log(np.maximum(shares, 1e-12)) - np.sum(means * w, axis=0) / 2
    return _audible((X - moments.mean_x) @ w, offset)


def _audible(S: Array, intercept: Array) -> Array:
    """Scores, or the intercept alone where they vary by rounding only.

    After an exact erasure the rows of the fit teach nothing. What is left of a closed form is then
    a direction made by rounding, and its sign on new rows would be a matter of luck.
    """
    heard = float(S.std(axis=0).max()) > SILENCE
    return np.asarray(S + intercept if heard else 0 * S + intercept)


def _bare(training: Training) -> float:
    return BARE if training.X.dtype.itemsize > 4 else BARE_SINGLE


def _ridge(strength: float | None) -> Probe:
    """Ridge regression; None: least squares."""

    def score(training: Training, X: Array, seed: int) -> ProbeScores:
        alpha = strength or _bare(training)
        training = training if strength else training.double
        training, X = training.even, training.scaled(X)
        moments = training.moments
        w = _solve(moments.cov_xx, moments.cov_xz, alpha * _mean_variance(moments.cov_xx))
        S = (X - moments.mean_x) @ w + moments.mean_z
        return ProbeScores(np.asarray(S), False, training.prior)

    name = "least squares" if strength is None else f"ridge regression, ridge {strength:g}"
    return Probe(name, "linear", ("continuous",), score)


def _mean_variance(C: Array) -> float:
    return float(np.trace(C)) / len(C) or 1.0


def _solve(C: Array, B: Array, ridge: float) -> Array:
    """(C + ridge · I)⁻¹ B."""
    ridged = C.copy()
    ridged[np.diag_indices(len(C))] += ridge
    with blas_for(len(C)):
        return np.asarray(scipy.linalg.solve(ridged, B, assume_a="pos"))


LINEAR_PROBES: tuple[Probe, ...] = (
    *(_logistic(alpha) for alpha in STRENGTHS),
    Probe("linear SVM", "linear", ("classes", "labels"), _svm),
    _lda("linear discriminant", "ledoit_wolf"),
    _lda("linear discriminant, not shrunk", "none"),
    *(_ridge(alpha) for alpha in STRENGTHS),
    _ridge(None),
)
