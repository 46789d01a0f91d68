"""The two ways of probing, which must never be confused.

*Same rows*: a probe learns from the rows the eraser was fitted on and is tested on new rows. An
exact eraser is at chance there by construction. *Fresh rows*: the probe learns from rows that the
eraser has never seen as well, and is tested on others of them, in turns (cross-fitting).

In cross-fitting rows teach the probes of each other, so their scores are not independent. Where
nothing is to be learnt, a score is a sum Σ_j K_ij y_j over other rows and the measure a sum of
y_i K_ij y_j in which every pair of rows counts twice: its variance is up to twice that of
independent rows. Accuracy, which takes signs, feels a share 2/π of the doubling; AUC, which takes
ranks, 3/π. Standard errors are widened accordingly. Where much is learnt that is more than needed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import pi
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from expunge.audit.measures import (
    Interval,
    Measure,
    ProbeScores,
    exact_binomial,
    measures_of,
    simultaneous_quantile,
)
from expunge.audit.probe import Family, Probe, Training
from expunge.concept import Concept
from expunge.linalg import Array
from expunge.parallel import n_threads, one_blas_thread

__all__ = [
    "FamilyResult",
    "ProbeResult",
    "Status",
    "cross_fitted",
    "judged",
    "status_of",
    "transferred",
]

Status = Literal["at chance", "found", "cannot tell"]
Tell = Callable[[str], None]

SIGNS, RANKS, SUMS = (1 + 2 / pi) ** 0.5, (1 + 3 / pi) ** 0.5, 2**0.5
WIDER = {
    "accuracy": SIGNS,
    "excess": SIGNS,
    "balanced_accuracy": SIGNS,
    "auc": RANKS,
    "cross_entropy": SUMS,
    "bits": SUMS,
    "r2": SUMS,
}


@dataclass(frozen=True, eq=False)
class ProbeResult:
    """One probe on held-out rows.

    Attributes
    ----------
    name : str
    measures : dict of Measure
    intervals : dict of Interval
        Each at the confidence asked for, of this probe alone. That of accuracy is exact where
        probes were carried over from other rows.
    """

    name: str
    measures: dict[str, Measure]
    intervals: dict[str, Interval]

    def to_dict(self) -> dict[str, Any]:
        """The name and the intervals as plain values."""
        found = {key: value.to_dict() for key, value in self.intervals.items()}
        return {"name": self.name, **found}


@dataclass(frozen=True, eq=False)
class FamilyResult:
    """All probes of one family on the same held-out rows, and what they say together.

    Attributes
    ----------
    family : {"linear", "nonlinear"}
    statistic : str
        What the verdict is about: balanced_accuracy, or r2 for a continuous concept.
    chance : float
        Its value without information.
    worst : str
        The probe with the highest statistic.
    strongest : Interval
        Of the best any probe of the family can do: the largest value, lower and upper limit, with
        limits that hold for all probes at once.
    bits : Interval or None
        The same for bits per row; the lower limit is at least 0.
    status : {"at chance", "found", "cannot tell"}
    quantile : float
        Standard errors in the simultaneous limits.
    n_train, n_test, n_train_all, n_test_all : int
        Rows learnt from and tested on, and those there were before sampling.
    folds : int
        Parts in cross-fitting; 1 where probes were carried over from other rows.
    majority : float
        Share of the commonest class in the tested rows; nan for numbers.
    probes : tuple of ProbeResult
    """

    family: Family
    statistic: str
    chance: float
    worst: str
    strongest: Interval
    bits: Interval | None
    status: Status
    quantile: float
    n_train: int
    n_test: int
    n_train_all: int
    n_test_all: int
    folds: int
    majority: float | None
    probes: tuple[ProbeResult, ...]

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        plain = dict(vars(self))
        plain["strongest"] = self.strongest.to_dict()
        plain["bits"] = None if self.bits is None else self.bits.to_dict()
        plain["probes"] = [probe.to_dict() for probe in self.probes]
        return plain


def transferred(
    probes: Sequence[Probe],
    training: Training,
    X: NDArray[Any],
    seed: int,
    tell: Tell,
) -> list[ProbeScores]:
    """Scores on the rows X of probes that learnt from other rows.

    Linear probes use all cores by themselves. The others run side by side, each on one thread.
    """

    def run(probe: Probe) -> ProbeScores:
        tell(probe.name)
        return probe.scores(training, X, seed)

    def alone(probe: Probe) -> ProbeScores:
        with threadpool_limits(1, user_api="openmp"):  # holds for the thread that says so
            return run(probe)

    if all(probe.family == "linear" for probe in probes):
        return [run(probe) for probe in probes]
    with warnings.catch_warnings(), one_blas_thread(), ThreadPoolExecutor(n_threads()) as pool:
        warnings.simplefilter("ignore", ConvergenceWarning)  # filters are shared by all threads
        return list(pool.map(alone, probes))


def cross_fitted(
    probes: Sequence[Probe],
    X: NDArray[Any],
    concept: Concept,
    folds: NDArray[np.intp],
    seed: int,
    tell: Tell,
) -> list[ProbeScores]:
    """Scores on every row of X of probes that learnt from the other folds.

    Parameters
    ----------
    probes : sequence of Probe
    X : array of shape (n, d)
    concept : Concept
    folds : int array of shape (n,)
        The fold of each row.
    seed : int
    tell : callable
        Told which probe is at work.

    Returns
    -------
    list of ProbeScores
    """
    parts: list[list[ProbeScores]] = []
    for fold in range(int(folds.max()) + 1):
        training = Training(X[folds != fold], concept.take(folds != fold))
        parts.append(transferred(probes, training, X[folds == fold], seed, tell))
    joined = []
    for per_fold in zip(*parts, strict=True):
        values, prior = np.empty((2, len(X), concept.width))
        for fold, scores in enumerate(per_fold):
            values[folds == fold], prior[folds == fold] = scores.values, scores.prior
        joined.append(ProbeScores(values, all(scores.in_nats for scores in per_fold), prior))
    return joined


def judged(
    family: Family,
    probes: Sequence[Probe],
    scores: Sequence[ProbeScores],
    truth: Concept,
    *,
    confidence: float,
    leak: float,
    n_train: int,
    n_train_all: int,
    n_test_all: int,
    folds: int,
    groups: NDArray[np.intp] | None = None,
) -> FamilyResult:
    """Measures and a verdict from the scores of all probes of a family.

    Parameters
    ----------
    family : {"linear", "nonlinear"}
    probes : sequence of Probe
    scores : sequence of ProbeScores
        One for each probe, on the same rows.
    truth : Concept
        Of these rows.
    confidence : float
    leak : float
        The least excess over chance that matters.
    n_train, n_train_all, n_test_all, folds : int
        As in `FamilyResult`.
    groups : int array of shape (n,), optional
        Rows of one group are not independent.

    Returns
    -------
    FamilyResult
    """
    results = []
    for probe, given in zip(probes, scores, strict=True):
        measures = measures_of(given, truth)
        if groups is not None:
            measures = {key: found.grouped(groups) for key, found in measures.items()}
        if folds > 1:
            measures = {key: found.widened(WIDER[key]) for key, found in measures.items()}
        alone = simultaneous_quantile([], confidence)
        intervals = {key: found.interval(alone) for key, found in measures.items()}
        if folds == 1 and groups is None and truth.kind == "classes":
            hits = round(measures["accuracy"].value * truth.n_samples)
            intervals["accuracy"] = exact_binomial(hits, truth.n_samples, confidence)
        results.append(ProbeResult(probe.name, measures, intervals))
    statistic = "r2" if truth.kind == "continuous" else "balanced_accuracy"
    chance = _chance(truth)
    strongest, quantile = _strongest([r.measures[statistic] for r in results], confidence)
    informative = [r.measures["bits"] for r in results if "bits" in r.measures]
    bits = None
    if informative:
        found, _ = _strongest(informative, confidence)
        bits = Interval(max(found.value, 0.0), max(found.low, 0.0), max(found.high, 0.0))
    return FamilyResult(
        family=family,
        statistic=statistic,
        chance=chance,
        worst=max(results, key=lambda r: r.measures[statistic].value).name,
        strongest=strongest,
        bits=bits,
        status=status_of(strongest, chance, leak),
        quantile=quantile,
        n_train=n_train,
        n_test=truth.n_samples,
        n_train_all=n_train_all,
        n_test_all=n_test_all,
        folds=folds,
        majority=_majority(truth),
        probes=tuple(results),
    )


def _strongest(measures: list[Measure], confidence: float) -> tuple[Interval, float]:
    """Interval of the largest of several unknown values: largest limits that hold for all."""
    quantile = simultaneous_quantile(measures, confidence)
    each = [m.interval(quantile) for m in measures]
    largest = Interval(
        max(i.value for i in each), max(i.low for i in each), max(i.high for i in each)
    )
    return largest, quantile


def status_of(strongest: Interval, chance: float, leak: float) -> Status:
    """At chance: an excess of `leak` is excluded. Found: no excess at all is excluded.

    Parameters
    ----------
    strongest : Interval
        Score of the strongest probe.
    chance, leak : float

    Returns
    -------
    {"at chance", "found", "cannot tell"}
    """
    if strongest.high < chance + leak:
        return "at chance"
    return "found" if strongest.low > chance else "cannot tell"


def _chance(truth: Concept) -> float:
    """One over the number of classes in the rows; half for labels; 0 for R²."""
    if truth.kind == "continuous":
        return 0.0
    return 0.5 if truth.kind == "labels" else 1 / len(np.unique(truth.values))


def _majority(truth: Concept) -> float | None:
    if truth.kind == "continuous":
        return None
    share: Array = truth.columns().mean(axis=0)
    return float(share.max() if truth.kind == "classes" else np.maximum(share, 1 - share).mean())
