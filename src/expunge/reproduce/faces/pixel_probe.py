"""A linear probe for rows with more pixels than there are rows.

The coefficients of a ridge predictor lie in the span of its centred training rows, so with n rows
of d > n pixels it is found in n coordinates of an orthonormal basis of that span: the same
predictor, from n x n instead of d x d matrices. The ridge is relative to the mean variance of a
coordinate, which has to be the mean variance of a pixel: α n/d in place of α.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from expunge.audit.families import FamilyResult, judged
from expunge.audit.linear_probes import logistic_scores
from expunge.audit.measures import ProbeScores
from expunge.audit.probe import Probe, Training
from expunge.audit.running import cross_fitted, transferred
from expunge.concept import Concept
from expunge.erasure import Erasure
from expunge.linalg import Array

__all__ = ["RIDGE", "compact", "fresh_rows", "pixel_probe", "same_rows", "span"]

RIDGE = 0.1  # relative to the mean variance of a pixel
CONFIDENCE = 0.95
LEAK = 0.02

Erasures = Mapping[str, Erasure]


def pixel_probe(ridge: float = RIDGE) -> Probe:
    """A logistic regression that is as fast with few rows as it should be."""

    def score(training: Training, X: Array, seed: int) -> ProbeScores:
        small, others, share = compact(training, X)
        S = logistic_scores(small, others, ridge * share, own_units=False)
        return ProbeScores(S, True, small.prior)

    return Probe(f"logistic regression, ridge {ridge:g}", "linear", ("classes",), score)


def compact(training: Training, X: NDArray[Any]) -> tuple[Training, NDArray[Any], float]:
    """Training rows, and rows X, in as few coordinates as the training rows need.

    Parameters
    ----------
    training : Training
        n rows of d columns.
    X : array of shape (m, d)

    Returns
    -------
    training : Training
        Unchanged for n >= d, else of n columns.
    X : array of shape (m, d) or (m, n)
        Without what is orthogonal to the centred training rows, of which the probe knows nothing.
    share : float
        New columns per old one: n/d, or 1.
    """
    n, d = training.X.shape
    if n >= d:
        return training, X, 1.0
    center, Q = span(training.X)
    return Training((training.X - center) @ Q, training.concept), (X - center) @ Q, n / d


def span(X: NDArray[Any]) -> tuple[Array, Array]:
    """The mean of rows, and an orthonormal basis of the span of the centred rows.

    Parameters
    ----------
    X : array of shape (n, d), n <= d
        Its rows.

    Returns
    -------
    center : array of shape (d,)
    basis : array of shape (d, n)

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.reproduce.faces.pixel_probe import span
    >>> X = np.random.default_rng(0).normal(size=(3, 7))
    >>> center, Q = span(X)
    >>> bool(np.allclose(center + (X - center) @ Q @ Q.T, X))
    True
    """
    center = X.mean(axis=0, dtype=np.float64)
    Q, _ = scipy.linalg.qr((X - center).T, mode="economic", check_finite=False)
    return center, Q


def same_rows(
    train: tuple[NDArray[Any], Concept], test: tuple[NDArray[Any], Concept], erasures: Erasures
) -> dict[str, FamilyResult]:
    """What a probe of the rows of the fit finds in new rows, after each erasure.

    Parameters
    ----------
    train, test : pairs of an array (n, d) and a Concept
        Before erasure.
    erasures : mapping from str to Erasure

    Returns
    -------
    dict from str to FamilyResult
    """
    probes = [pixel_probe()]
    found = {}
    for name, erasure in erasures.items():
        training = Training(erasure.transform(train[0]), train[1])
        scores = transferred(probes, training, erasure.transform(test[0]), 0, _quietly)
        found[name] = _judged(probes, scores, test[1], len(train[0]), 1)
    return found


def fresh_rows(
    X: NDArray[Any], concept: Concept, folds: NDArray[np.intp], erasures: Erasures
) -> dict[str, FamilyResult]:
    """What a probe finds that learns from new rows too, cross-fitted.

    Parameters
    ----------
    X : array of shape (n, d)
        Rows that no eraser has seen, before erasure.
    concept : Concept
    folds : int array of shape (n,)
        Rows of one fold are tested by a probe of the others.
    erasures : mapping from str to Erasure

    Returns
    -------
    dict from str to FamilyResult
    """
    probes = [pixel_probe()]
    count = int(folds.max()) + 1
    found = {}
    for name, erasure in erasures.items():
        scores = cross_fitted(probes, erasure.transform(X), concept, folds, 0, _quietly)
        found[name] = _judged(probes, scores, concept, len(X) - len(X) // count, count)
    return found


def _quietly(name: str) -> None:
    pass


def _judged(
    probes: Sequence[Probe], scores: Sequence[ProbeScores], truth: Concept, n_train: int, folds: int
) -> FamilyResult:
    return judged(
        "linear",
        probes,
        scores,
        truth,
        confidence=CONFIDENCE,
        leak=LEAK,
        n_train=n_train,
        n_train_all=n_train,
        n_test_all=truth.n_samples,
        folds=folds,
    )
