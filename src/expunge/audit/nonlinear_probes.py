"""Non-linear probes: kernel machine, small network, boosted trees, neighbours and their reverse.

The learners are scikit-learn's, imported when they are run. Rows come centred and scaled. Kernel
machines and, in tables, trees choose their settings inside the rows they learn from.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.audit.kernel_probes import choose_ridge, choose_svm, ridge_values, svm_margins
from expunge.audit.measures import ProbeScores
from expunge.audit.probe import Probe, Training
from expunge.audit.repeats import discrete
from expunge.linalg import Array

__all__ = [
    "NONLINEAR_PROBES",
    "Codes",
    "classifying",
    "log_odds",
    "network_settings",
    "regressing",
]

HIDDEN = 128  # units of the network's one hidden layer
BATCH = 200
STEPS = 1500  # gradient steps the network may take, on however few rows
PATIENCE = 60  # of them without progress before it stops
VALIDATED = 500  # rows from which a tenth is set aside to tell when to stop
NEIGHBOURS = 11
NARROW = 40  # columns up to which every split of a tree tries them all
TREES = 60
FEATURES = 0.3  # share of the columns tried at each split, where there are more

Codes = NDArray[np.intp]
Classifier = Callable[[Array, Codes, Array, int, Any], Array]  # X, codes, X_test, seed, settings
Regressor = Callable[[Array, Array, Array, int], Array]  # X, Z, X_test, seed -> (n x columns)
Chooser = Callable[[Array, Codes, int], Any]  # X, codes, seed -> settings


def _rbf_svm(X: Array, y: Codes, X_test: Array, seed: int, settings: Any) -> Array:
    return svm_margins(X, y, X_test, settings)


def _network(X: Array, y: Codes, X_test: Array, seed: int, settings: Any) -> Array:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    network = MLPClassifier((HIDDEN,), random_state=seed, **network_settings(len(X), y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        network.fit(X, y)
    return np.asarray(np.log(np.maximum(network.predict_proba(X_test), 1e-12)))


def network_settings(n: int, y: Codes | None = None) -> dict[str, Any]:
    """When a network stops; many rows are enough to set some aside that tell, if classes are.

    Parameters
    ----------
    n : int
        Rows to learn from.
    y : int array of shape (n,), optional
        Their classes.

    Returns
    -------
    dict
        Settings of scikit-learn's networks.
    """
    steps = -(-n // BATCH)  # in an epoch; patience is counted in steps
    return {
        "batch_size": min(BATCH, n),
        "early_stopping": bool(n >= VALIDATED and (y is None or np.bincount(y).min() >= 10)),
        "n_iter_no_change": max(5, -(-PATIENCE // steps)),
        "max_iter": max(100, -(-STEPS // steps)),
    }


def _trees(X: Array, y: Codes, X_test: Array, seed: int, settings: Any) -> Array:
    return np.asarray(
        np.log(np.maximum(_boosted(X, y, seed, settings).predict_proba(X_test), 1e-12))
    )


def _boosted(X: Array, y: Codes, seed: int, settings: dict[str, Any]) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(early_stopping=False, random_state=seed, **settings).fit(
        X, y
    )


def _choose_trees(X: Array, y: Codes, seed: int) -> dict[str, Any]:
    """All columns at every split where there are few; in tables also the better of two sizes."""
    if X.shape[1] > NARROW:
        return {"max_iter": TREES, "max_features": FEATURES}
    sizes: list[dict[str, Any]] = [{"max_leaf_nodes": 31}, {"max_leaf_nodes": 5}]
    order = np.random.default_rng(seed).permutation(len(X))
    a, b = order[: 2 * len(X) // 3], order[2 * len(X) // 3 :]
    if not discrete(X) or len(np.unique(y[a])) < len(np.unique(y)):
        return sizes[0]
    prior = np.bincount(y[a]) / len(a)

    def right(settings: dict[str, Any]) -> float:
        said = (_boosted(X[a], y[a], seed, settings).predict_proba(X[b]) / prior).argmax(axis=1)
        return float(np.mean([np.mean(said[y[b] == k] == k) for k in np.unique(y[b])]))

    return max(sizes, key=right)


def _kernel_ridge(X: Array, Z: Array, X_test: Array, seed: int) -> Array:
    return ridge_values(X, Z, X_test, choose_ridge(X, Z, seed))


def _regression_trees(X: Array, Z: Array, X_test: Array, seed: int) -> Array:
    from sklearn.ensemble import HistGradientBoostingRegressor

    trees = HistGradientBoostingRegressor(
        early_stopping=False, max_iter=TREES, max_features=FEATURES, random_state=seed
    )
    return np.column_stack([trees.fit(X, z).predict(X_test) for z in Z.T])


def classifying(
    name: str, learn: Classifier, choose: Chooser | None = None, *, in_nats: bool = True
) -> Probe:
    """A probe of classes, and of labels one by one; settings are chosen on the evenest label."""

    def score(training: Training, X: Array, seed: int) -> ProbeScores:
        concept = training.concept
        every = concept.kind == "classes"
        columns = [concept.values] if every else list(concept.values.T.astype(np.intp))
        first = max(columns, key=lambda z: z.var()) if choose is not None else columns[0]
        settings = None if choose is None else choose(training.X, first, seed)
        found = [learn(training.X, z, X, seed, settings) for z in columns]
        S = found[0] if every else np.column_stack([pair[:, 1] - pair[:, 0] for pair in found])
        return ProbeScores(S, in_nats, training.prior)

    return Probe(name, "nonlinear", ("classes", "labels"), score)


def regressing(name: str, learn: Regressor) -> Probe:
    """A probe of numbers; columns are centred and scaled for it."""

    def score(training: Training, X: Array, seed: int) -> ProbeScores:
        Z = training.concept.values
        spread = Z.std(axis=0)
        unit = np.where(spread > 0, spread, 1.0)
        S = learn(training.X, (Z - training.prior) / unit, X, seed)
        return ProbeScores(S * unit + training.prior, False, training.prior)

    return Probe(name, "nonlinear", ("continuous",), score)


def _shares_nearby(training: Training, X: Array) -> Array:
    """Shares of each class (n x width) among the nearest rows, with one more vote by prior."""
    near = training.nearest(X, NEIGHBOURS)
    votes = training.concept.columns()[near].sum(axis=1)
    return np.asarray((votes + training.prior) / (near.shape[1] + 1))


def _neighbours(training: Training, X: Array, seed: int) -> ProbeScores:
    return ProbeScores(log_odds(_shares_nearby(training, X), training), True, training.prior)


def _anti_clustering(training: Training, X: Array, seed: int) -> ProbeScores:
    """Bet against the neighbours: after a projection they may be of the *other* class.

    The votes are reversed about the prior: what is twice as common nearby as elsewhere counts as
    half as likely.
    """
    S = log_odds(_shares_nearby(training, X), training)
    usual = log_odds(np.tile(training.prior, (len(X), 1)), training)
    return ProbeScores(2 * usual - S, True, training.prior)


def log_odds(shares: Array, training: Training) -> Array:
    """Logarithms of the shares of classes; log-odds of labels."""
    tiny = 1e-12
    if training.concept.kind == "classes":
        return np.asarray(np.log(np.maximum(shares, tiny)))
    return np.asarray(np.log(np.maximum(shares, tiny)) - np.log(np.maximum(1 - shares, tiny)))


def _neighbour_means(training: Training, X: Array, seed: int) -> ProbeScores:
    Z = training.concept.values[training.nearest(X, NEIGHBOURS)].mean(axis=1)
    return ProbeScores(Z, False, training.prior)


NONLINEAR_PROBES: tuple[Probe, ...] = (
    classifying("RBF-SVM", _rbf_svm, choose_svm, in_nats=False),
    classifying("MLP, 128 ReLU", _network),
    classifying("boosted trees", _trees, _choose_trees),
    Probe("nearest neighbours", "nonlinear", ("classes", "labels"), _neighbours),
    Probe("anti-clustering", "nonlinear", ("classes", "labels"), _anti_clustering),
    regressing("kernel ridge, RBF", _kernel_ridge),
    regressing("boosted regression trees", _regression_trees),
    Probe("means of neighbours", "nonlinear", ("continuous",), _neighbour_means),
)
