"""Which fold holds on rows it has not seen: candidates are judged by a probe inside the fit's rows.

Some rows fit every candidate; on the others a kernel machine and, of few columns, boosted trees are
trained and tested, both ways round. Candidates come in the order of their cost, LEACE first, and a
later one is taken only if the better of these probes reads less after it, beyond chance and by a
point at the least: so a fold is not worse than LEACE but by bad luck of these rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from expunge.concept import Concept
from expunge.linalg import Array
from expunge.rows.base import Rows
from expunge.rows.dense import DenseRows

__all__ = ["Candidates", "Choice", "choose", "probe_accuracy"]

MOST_ROWS = 10_000  # that take part
MOST_NUMBERS = 1 << 23
TO_FIT = 0.6  # share of them that the candidates are fitted on
WIDTHS = (0.5, 2.0)  # of the kernel, times 1 / d, for standardised columns
RIDGE = 0.1
TREES = 20
TABLE = 128  # columns up to which trees are asked as well
FEWEST = 40  # rows of a class below which a probe tells nothing
SURE = 0.5  # standard errors by which a candidate must be better than a cheaper one
WORTH = 0.01  # by how much it must be, at the least
SPLITS = 3  # at most, where rows are few

Groups = NDArray[np.intp] | None
Candidates = Callable[[Rows, Concept, Array | None, Groups], Mapping[str, Callable[[Array], Array]]]


@dataclass(frozen=True)
class Choice:
    """What a probe read after each candidate.

    Attributes
    ----------
    name : str
        Of the candidate that was taken.
    accuracy : mapping of str to float
        Mean share over the classes that the probe tells rightly; empty where there are too few
        rows to tell.
    error : float
        Standard error of one of them.
    """

    name: str
    accuracy: Mapping[str, float]
    error: float

    def to_meta(self) -> dict[str, object]:
        """As JSON values."""
        return {
            "chosen": self.name,
            "accuracy": {name: round(value, 4) for name, value in self.accuracy.items()},
            "error": round(self.error, 4),
        }


def choose(
    rows: Rows,
    concept: Concept,
    weights: Array | None,
    groups: Groups,
    candidates: Candidates,
    rng: np.random.Generator,
) -> Choice:
    """Fit every candidate on some of the rows and probe the others.

    Parameters
    ----------
    rows : Rows
        Of many, some take part.
    concept : Concept of kind "classes"
    weights : array of shape (n,), optional
    groups : int array of shape (n,), optional
        Rows of one group are all held out, or none is.
    candidates : function of rows, concept, weights and groups
        Gives functions from rows (k x d) to erased rows, by name, the cheapest first.
    rng : Generator

    Returns
    -------
    Choice
    """
    counted = np.arange(rows.n_samples) if weights is None else np.flatnonzero(weights > 0)
    most = min(MOST_ROWS, MOST_NUMBERS // rows.n_features)
    found: dict[str, list[float]] = {}
    errors = []
    for _ in range(int(np.clip(most // max(len(counted), 1), 1, SPLITS))):
        parts = _parts(counted, groups, most, rng)
        counts = [_counts(part, concept, groups) for part in parts[1:]]
        if min(part.min() for part in counts) < FEWEST:
            return Choice("leace", {}, 0.0)
        for name, read in _readings(rows, concept, weights, groups, candidates, parts).items():
            found.setdefault(name, []).append(read)
        errors.append(np.sqrt((0.25 / (counts[0] + counts[1])).sum()) / concept.width)
    accuracy = {name: float(np.mean(read)) for name, read in found.items()}
    error = float(np.mean(errors) / np.sqrt(len(errors)))
    best = next(iter(accuracy))
    for name, read in accuracy.items():
        best = name if read < accuracy[best] - max(SURE * error, WORTH) else best
    return Choice(best, accuracy, error)


def _readings(
    rows: Rows,
    concept: Concept,
    weights: Array | None,
    groups: Groups,
    candidates: Candidates,
    parts: Sequence[NDArray[np.intp]],
) -> dict[str, float]:
    """What the better probe tells after every candidate, on the two parts not fitted on."""
    fitted, first, second = (np.sort(part) for part in parts)
    A, B, C = (
        np.asarray(rows.take(part).array(), dtype=np.float64) for part in (fitted, first, second)
    )
    w = None if weights is None else weights[fitted]
    own = None if groups is None else np.unique(groups[fitted], return_inverse=True)[1]
    y, z = concept.values[first], concept.values[second]
    found = {}
    for name, erase in candidates(DenseRows(A), concept.take(fitted), w, own).items():
        one, two = (erase(B), y), (erase(C), z)
        told = [probe_accuracy(*a, *b, concept.width) for a, b in ((one, two), (two, one))]
        found[name] = float(np.mean(told))
        if rows.n_features <= TABLE:
            found[name] = max(found[name], (_trees(*one, *two) + _trees(*two, *one)) / 2)
    return found


def _parts(
    counted: NDArray[np.intp], groups: Groups, most: int, rng: np.random.Generator
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Rows to fit on and two parts to probe, at random; no group is in two of them."""
    if groups is None:
        order = rng.permutation(counted)[:most]
        places = np.arange(len(order))
    else:
        places = rng.permutation(int(groups.max()) + 1)[groups[counted]]
        by_place = np.argsort(places, kind="stable")[:most]
        order, places = counted[by_place], places[by_place]
    if not len(order):
        return order, order, order
    cut = int(TO_FIT * len(order))
    ends = [cut, cut + (len(order) - cut + 1) // 2]
    first, second = (int(np.searchsorted(places, places[min(e, len(places) - 1)])) for e in ends)
    return order[:first], order[first:second], order[second:]


def _counts(part: NDArray[np.intp], concept: Concept, groups: Groups) -> NDArray[np.intp]:
    """How many rows, or groups, have each class."""
    codes = concept.values[part]
    if groups is not None:
        codes = np.unique(np.column_stack([groups[part], codes]), axis=0)[:, 1]
    return np.bincount(codes, minlength=concept.width)


def probe_accuracy(X: Array, y: Array, new: Array, new_y: Array, n_classes: int) -> float:
    """Mean share over the classes that a kernel machine tells rightly; the better of two widths.

    Least squares on indicators with a Gaussian kernel, every class weighted alike.

    Parameters
    ----------
    X : array of shape (n, d)
    y : int array of shape (n,)
    new : array of shape (k, d)
    new_y : int array of shape (k,)
    n_classes : int

    Returns
    -------
    float
    """
    mean, spread = X.mean(axis=0), X.std(axis=0)
    units = np.where(spread > 1e-9 * (np.abs(mean) + spread.max(initial=0.0)), spread, np.inf)
    A, B = (X - mean) / units, (new - mean) / units
    own, across = _squares(A, A), _squares(B, A)
    share = np.bincount(y, minlength=n_classes) / len(y)
    T = np.eye(n_classes)[y] - share
    weight = 1 / np.maximum(n_classes * share[y], 1e-12)
    found: list[float] = []
    for width in WIDTHS:
        K = np.exp(-width / A.shape[1] * own)
        K[np.diag_indices_from(K)] += RIDGE / weight
        scores = np.exp(-width / A.shape[1] * across) @ scipy.linalg.solve(K, T, assume_a="pos")
        found.append(_balanced(scores.argmax(axis=1), new_y))
    return max(found)


def _trees(X: Array, y: Array, new: Array, new_y: Array) -> float:
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(
        max_iter=TREES, max_bins=64, early_stopping=False, random_state=0
    ).fit(X, y)
    there, counts = np.unique(y, return_counts=True)
    return _balanced(there[(model.predict_proba(new) / counts).argmax(axis=1)], new_y)


def _balanced(told: Array, y: Array) -> float:
    """Mean share over the classes that is told rightly."""
    return float(np.mean([(told[y == code] == code).mean() for code in np.unique(y)]))


def _squares(A: Array, B: Array) -> Array:
    found = -2 * (A @ B.T)
    found += np.einsum("ij,ij->i", A, A)[:, None] + np.einsum("ij,ij->i", B, B)
    return np.maximum(found, 0.0)
