"""Probes for those who want to be sure: what the hardest protocols of the field use, and more.

Kernel machines over a wide grid, also of whitened rows, where directions of little variance count
as much as others; wide and deep networks with their decay chosen; many boosted trees; neighbours
with their number and distance chosen; Gaussian classes with a covariance each, who see what an
eraser of means leaves. Everything is chosen inside the rows to learn from.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from expunge.audit.kernel_probes import WIDE, Choice, choose_svm, svm_margins
from expunge.audit.nonlinear_probes import Codes, classifying, network_settings, regressing
from expunge.audit.probe import Probe
from expunge.linalg import Array

__all__ = ["THOROUGH_PROBES"]

DECAYS = (1e-4, 1.0)  # of networks, as scikit-learn counts them
ROUNDS = 300  # trees
FEATURES = 0.3  # share of the columns tried at each split
COUNTS = (1, 3, 5, 11, 25, 51)  # neighbours
RIDGE = 0.02  # of whitening, relative to the mean variance of a direction
SHARES = (0.02, 0.1, 0.3, 0.6)  # of the covariance of all in that of a class
DIRECTIONS = 300  # most, of Gaussian classes

Settings = Any


def _wide_svm(X: Array, y: Codes, X_test: Array, seed: int, settings: Settings) -> Array:
    return svm_margins(X, y, X_test, settings)


def _choose_wide(X: Array, y: Codes, seed: int) -> Choice:
    return choose_svm(X, y, seed, WIDE)


def _whitened_svm(X: Array, y: Codes, X_test: Array, seed: int, settings: Settings) -> Array:
    white = _whitening(X)
    return svm_margins(white(X), y, white(X_test), settings)


def _choose_whitened(X: Array, y: Codes, seed: int) -> Choice:
    return choose_svm(_whitening(X)(X), y, seed)


def _whitening(X: Array) -> Callable[[Array], Array]:
    """Rows in their principal directions, each divided by √(variance + ridge)."""
    mean, V, variance = _principal(X)
    scale = np.sqrt(variance + RIDGE * float(variance.mean() or 1.0))
    return lambda rows: np.asarray((rows - mean) @ V / scale)


def _principal(X: Array) -> tuple[Array, Array, Array]:
    """Mean (d), principal directions (d x r) and the variances along them."""
    mean = X.mean(axis=0, dtype=np.float64)
    _, s, V = scipy.linalg.svd(X - mean, full_matrices=False)
    return mean, V.T, s**2 / len(X)


def _network(*hidden: int) -> Callable[[Array, Codes, Array, int, Settings], Array]:
    """Log-probabilities of a network whose decay was chosen by the rows that tell it to stop."""

    def learn(X: Array, y: Codes, X_test: Array, seed: int, settings: Settings) -> Array:
        from sklearn.neural_network import MLPClassifier

        networks = [
            MLPClassifier(
                hidden_layer_sizes=hidden,
                alpha=decay,
                random_state=seed,
                **network_settings(len(X), y),
            )
            for decay in DECAYS
        ]
        best = _best_trained(networks, X, y)
        return np.asarray(np.log(np.maximum(best.predict_proba(X_test), 1e-12)))

    return learn


def _best_trained(networks: list[Any], X: Array, target: NDArray[Any]) -> Any:
    """The network with the best score on the rows set aside; without such rows the last."""
    from sklearn.exceptions import ConvergenceWarning

    if not networks[0].early_stopping:
        networks = networks[-1:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for network in networks:
            network.fit(X, target)
    return max(networks, key=lambda network: network.best_validation_score_ or 0.0)


def _many_trees(X: Array, y: Codes, X_test: Array, seed: int, settings: Settings) -> Array:
    from sklearn.ensemble import HistGradientBoostingClassifier

    trees = HistGradientBoostingClassifier(
        early_stopping=False, max_iter=ROUNDS, max_features=FEATURES, random_state=seed
    ).fit(X, y)
    return np.asarray(np.log(np.maximum(trees.predict_proba(X_test), 1e-12)))


def _near_votes(X: Array, y: Codes, X_test: Array, settings: tuple[str, int]) -> Array:
    """Logarithms of the shares of classes nearby, with one more vote by prior."""
    from sklearn.neighbors import NearestNeighbors

    metric, count = settings
    search = NearestNeighbors(n_neighbors=min(count, len(X)), metric=metric, algorithm="brute").fit(
        X
    )
    near = y[search.kneighbors(X_test, return_distance=False)]
    width = int(y.max()) + 1
    votes = np.stack([(near == k).sum(axis=1) for k in range(width)], axis=1)
    prior = np.bincount(y, minlength=width) / len(y)
    return np.asarray(np.log((votes + prior) / (near.shape[1] + 1)))


def _neighbours(X: Array, y: Codes, X_test: Array, seed: int, settings: Settings) -> Array:
    return _near_votes(X, y, X_test, settings)


def _choose_neighbours(X: Array, y: Codes, seed: int) -> tuple[str, int]:
    candidates = [(metric, count) for metric in ("euclidean", "cosine") for count in COUNTS]
    best: tuple[str, int] = _best_held_out(X, y, seed, candidates, _near_votes)
    return best


def _gaussian(X: Array, y: Codes, X_test: Array, seed: int, settings: Settings) -> Array:
    return _gaussian_scores(X, y, X_test, settings)


def _choose_gaussian(X: Array, y: Codes, seed: int) -> float:
    return float(_best_held_out(X, y, seed, list(SHARES), _gaussian_scores))


def _gaussian_scores(X: Array, y: Codes, X_test: Array, share: float) -> Array:
    """Log-probabilities of Gaussian classes: log π - ½ log det Σ_k - ½ ‖x - m_k‖² in Σ_k.

    Σ_k = (1 - share) S_k + share S, with S_k the class's covariance, S that within all classes, and
    a hundredth of S's mean variance on the diagonal.
    """
    mean, V, _ = _principal(X)
    V = V[:, :DIRECTIONS]
    A, B = (X - mean) @ V, (X_test - mean) @ V
    counts = np.bincount(y)
    means = np.stack([A[y == k].mean(axis=0) for k in range(len(counts))])
    centred = A - means[y]
    pooled = centred.T @ centred / len(A)
    ridge = 0.01 * float(np.trace(pooled) / len(pooled) or 1.0)
    columns = []
    for k, count in enumerate(counts):
        own = centred[y == k]
        cov = (1 - share) * (own.T @ own) / count + share * pooled
        cov[np.diag_indices(len(cov))] += ridge
        L = np.linalg.cholesky(cov)
        Z = scipy.linalg.solve_triangular(L, (B - means[k]).T, lower=True)
        spread = 2 * float(np.log(np.diag(L)).sum())
        columns.append(np.log(count / len(A)) - (spread + np.einsum("ij,ij->j", Z, Z)) / 2)
    return np.column_stack(columns)


def _best_held_out(
    X: Array,
    y: Codes,
    seed: int,
    candidates: list[Any],
    learn: Callable[[Array, Codes, Array, Any], Array],
) -> Any:
    """The settings with the largest balanced accuracy on a third of the rows; the first of equals.

    Log-probabilities are taken relative to the shares of the classes.
    """
    splits = list(_thirds(y, seed))
    if not splits:
        return candidates[0]

    def right(settings: Any) -> float:
        total = 0.0
        for a, b in splits:
            prior = np.log(np.bincount(y[a]) / len(a))
            said = (learn(X[a], y[a], X[b], settings) - prior).argmax(axis=1)
            total += float(np.mean([np.mean(said[y[b] == k] == k) for k in np.unique(y[b])]))
        return total

    return max(candidates, key=right)


def _thirds(y: Codes, seed: int) -> Iterator[tuple[Codes, Codes]]:
    """The first third of the rows held out, if the others have every class."""
    order = np.random.default_rng(seed).permutation(len(y))
    b, a = np.split(order, [len(order) // 3])
    if len(b) and len(np.unique(y[a])) == int(y.max()) + 1:
        yield a, b


def _deep_regression(X: Array, Z: Array, X_test: Array, seed: int) -> Array:
    from sklearn.neural_network import MLPRegressor

    def predicted(z: Array) -> Array:
        networks = [
            MLPRegressor(
                hidden_layer_sizes=(256, 128),
                alpha=decay,
                random_state=seed,
                **network_settings(len(X)),
            )
            for decay in DECAYS
        ]
        return np.asarray(_best_trained(networks, X, z).predict(X_test))

    return np.column_stack([predicted(z) for z in Z.T])


def _many_regression_trees(X: Array, Z: Array, X_test: Array, seed: int) -> Array:
    from sklearn.ensemble import HistGradientBoostingRegressor

    trees = HistGradientBoostingRegressor(
        early_stopping=False, max_iter=ROUNDS, max_features=FEATURES, random_state=seed
    )
    return np.column_stack([trees.fit(X, z).predict(X_test) for z in Z.T])


THOROUGH_PROBES: tuple[Probe, ...] = (
    classifying("RBF-SVM, wide grid", _wide_svm, _choose_wide, in_nats=False),
    classifying("RBF-SVM, whitened rows", _whitened_svm, _choose_whitened, in_nats=False),
    classifying("MLP, 512 ReLU", _network(512)),
    classifying("MLP, 256 and 128 ReLU", _network(256, 128)),
    classifying(f"boosted trees, {ROUNDS} rounds", _many_trees),
    classifying("nearest neighbours, number chosen", _neighbours, _choose_neighbours),
    classifying("Gaussian classes", _gaussian, _choose_gaussian),
    regressing("MLP regression, 256 and 128 ReLU", _deep_regression),
    regressing(f"boosted regression trees, {ROUNDS} rounds", _many_regression_trees),
)
