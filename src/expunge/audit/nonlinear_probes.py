"""Non-linear probes: kernel machine, small network, boosted trees, neighbours and their reverse.

The learners are scikit-learn's, imported when they are run. Rows come centred and scaled.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from expunge.audit.measures import Scores
from expunge.audit.probe import Probe, Training
from expunge.linalg import Array

__all__ = ["NONLINEAR_PROBES"]

HIDDEN = 128  # units of the network's one hidden layer
BATCH = 200
STEPS = 1500  # gradient steps the network may take, on however few rows
PATIENCE = 60  # of them without progress before it stops
VALIDATED = 500  # rows from which a tenth is set aside to tell when to stop
NEIGHBOURS = 11
KERNEL_RIDGE = 1.0
TREES = 60
FEATURES = 0.3  # share of the columns tried at each split of a tree

Codes = NDArray[np.intp]
Classifier = Callable[[Array, Codes, Array, int], Array]  # X, codes, X_test, seed -> (n x classes)
Regressor = Callable[[Array, Array, Array, int], Array]  # X, Z, X_test, seed -> (n x columns)


def _rbf_svm(X: Array, y: Codes, X_test: Array, seed: int) -> Array:
    """Margins; the kernel is formed by matrix products, whose cost hardly grows with the width."""
    from sklearn.svm import SVC

    gamma = _gamma(X)
    machine = SVC(kernel="precomputed", class_weight="balanced", cache_size=500)
    margin = machine.fit(_kernel(X, X, gamma), y).decision_function(_kernel(X_test, X, gamma))
    return np.column_stack([-margin / 2, margin / 2]) if margin.ndim == 1 else margin


def _network(X: Array, y: Codes, X_test: Array, seed: int) -> Array:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    steps = -(-len(X) // BATCH)  # in an epoch; patience is counted in steps
    network = MLPClassifier(
        (HIDDEN,),
        batch_size=min(BATCH, len(X)),
        early_stopping=bool(len(X) >= VALIDATED and np.bincount(y).min() >= 10),
        n_iter_no_change=max(5, -(-PATIENCE // steps)),
        max_iter=max(100, -(-STEPS // steps)),
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        network.fit(X, y)
    return np.asarray(np.log(np.maximum(network.predict_proba(X_test), 1e-12)))


def _trees(X: Array, y: Codes, X_test: Array, seed: int) -> Array:
    from sklearn.ensemble import HistGradientBoostingClassifier

    trees = HistGradientBoostingClassifier(
        early_stopping=False, max_iter=TREES, max_features=FEATURES, random_state=seed
    )
    return np.asarray(np.log(np.maximum(trees.fit(X, y).predict_proba(X_test), 1e-12)))


def _kernel_ridge(X: Array, Z: Array, X_test: Array, seed: int) -> Array:
    from sklearn.kernel_ridge import KernelRidge

    gamma = _gamma(X)
    machine = KernelRidge(alpha=KERNEL_RIDGE, kernel="precomputed").fit(_kernel(X, X, gamma), Z)
    return np.asarray(machine.predict(_kernel(X_test, X, gamma)))


def _regression_trees(X: Array, Z: Array, X_test: Array, seed: int) -> Array:
    from sklearn.ensemble import HistGradientBoostingRegressor

    trees = HistGradientBoostingRegressor(
        early_stopping=False, max_iter=TREES, max_features=FEATURES, random_state=seed
    )
    return np.column_stack([trees.fit(X, z).predict(X_test) for z in Z.T])


def _gamma(X: Array) -> float:
    return float(1 / (X.shape[1] * (X.var() or 1.0)))


def _kernel(A: Array, B: Array, gamma: float) -> Array:
    """exp(-γ ‖a - b‖²) for all pairs of rows."""
    K = A @ B.T
    K *= 2
    K -= np.einsum("ij,ij->i", A, A)[:, None]
    K -= np.einsum("ij,ij->i", B, B)
    K *= gamma
    return np.asarray(np.exp(np.minimum(K, 0, out=K), out=K))


def _classifying(name: str, learn: Classifier, *, in_nats: bool = True) -> Probe:
    """A probe of classes, and of labels one by one."""

    def score(training: Training, X: Array, seed: int) -> Scores:
        concept = training.concept
        if concept.kind == "classes":
            S = learn(training.X, concept.values, X, seed)
        else:
            pairs = [learn(training.X, z.astype(np.intp), X, seed) for z in concept.values.T]
            S = np.column_stack([pair[:, 1] - pair[:, 0] for pair in pairs])
        return Scores(S, in_nats, training.prior)

    return Probe(name, "nonlinear", ("classes", "labels"), score)


def _regressing(name: str, learn: Regressor) -> Probe:
    """A probe of numbers; columns are centred and scaled for it."""

    def score(training: Training, X: Array, seed: int) -> Scores:
        Z = training.concept.values
        spread = Z.std(axis=0)
        unit = np.where(spread > 0, spread, 1.0)
        S = learn(training.X, (Z - training.prior) / unit, X, seed)
        return Scores(S * unit + training.prior, False, training.prior)

    return Probe(name, "nonlinear", ("continuous",), score)


def _shares_nearby(training: Training, X: Array) -> Array:
    """Shares of each class (n x width) among the nearest rows, with one more vote by prior."""
    near = training.nearest(X, NEIGHBOURS)
    votes = training.concept.columns()[near].sum(axis=1)
    return np.asarray((votes + training.prior) / (near.shape[1] + 1))


def _neighbours(training: Training, X: Array, seed: int) -> Scores:
    return Scores(_log_odds(_shares_nearby(training, X), training), True, training.prior)


def _anti_clustering(training: Training, X: Array, seed: int) -> Scores:
    """Bet against the neighbours: after a projection they may be of the *other* class.

    The votes are reversed about the prior: what is twice as common nearby as elsewhere counts as
    half as likely.
    """
    S = _log_odds(_shares_nearby(training, X), training)
    usual = _log_odds(np.tile(training.prior, (len(X), 1)), training)
    return Scores(2 * usual - S, True, training.prior)


def _log_odds(shares: Array, training: Training) -> Array:
    """Logarithms of the shares of classes; log-odds of labels."""
    tiny = 1e-12
    if training.concept.kind == "classes":
        return np.asarray(np.log(np.maximum(shares, tiny)))
    return np.asarray(np.log(np.maximum(shares, tiny)) - np.log(np.maximum(1 - shares, tiny)))


def _neighbour_means(training: Training, X: Array, seed: int) -> Scores:
    Z = training.concept.values[training.nearest(X, NEIGHBOURS)].mean(axis=1)
    return Scores(Z, False, training.prior)


NONLINEAR_PROBES: tuple[Probe, ...] = (
    _classifying("RBF-SVM", _rbf_svm, in_nats=False),
    _classifying("MLP, 128 ReLU", _network),
    _classifying("boosted trees", _trees),
    Probe("nearest neighbours", "nonlinear", ("classes", "labels"), _neighbours),
    Probe("anti-clustering", "nonlinear", ("classes", "labels"), _anti_clustering),
    _regressing("kernel ridge, RBF", _kernel_ridge),
    _regressing("boosted regression trees", _regression_trees),
    Probe("means of neighbours", "nonlinear", ("continuous",), _neighbour_means),
)
