"""What probes of one family say together: measures with limits that hold for all of them.

In cross-fitting rows teach the probes of each other, so their scores are not independent. Where
nothing is to be learnt, a score is a sum Σ_j K_ij y_j over other rows and the measure a sum of
y_i K_ij y_j in which every pair of rows counts twice: its variance is up to twice that of
independent rows. Accuracy, which takes signs, feels a share 2/π of the doubling; AUC, which takes
ranks, 3/π. Standard errors are widened accordingly. Where much is learnt that is more than needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import pi
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, ndtri

from expunge.audit.measures import (
    Interval,
    Measure,
    ProbeScores,
    exact_binomial,
    mean_measures,
    measures_by_column,
    measures_of,
    one_class_against_the_rest,
    simultaneous_quantile,
)
from expunge.audit.probe import Family, Probe
from expunge.concept import Concept
from expunge.linalg import Array

__all__ = [
    "FamilyResult",
    "PartFound",
    "ProbeResult",
    "Status",
    "chance_of",
    "judged",
    "least_excess",
    "statistic_of",
    "status_of",
]

Status = Literal["at chance", "found", "cannot tell"]

BELOW = 3.0  # times the least excess that matters: limits that reach further below show nothing
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


@dataclass(frozen=True)
class PartFound:
    """One of several labels, numbers or more than two classes that probes find by itself.

    Attributes
    ----------
    column : int
        Its number.
    label : str
    limits : Interval
        Of the strongest probe: balanced accuracy, of a class that of "this one or not", or R²; with
        limits that hold for all of them and all probes at once.
    chance : float
        Its value without information.
    against_rest : bool
        Whether it is a class, told from all the others.
    """

    column: int
    label: str
    limits: Interval
    chance: float
    against_rest: bool

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        plain = {key: value for key, value in vars(self).items() if key != "limits"}
        return {**plain, **self.limits.to_dict()}


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
        The probe that was chosen beforehand, where one was; else that with the highest statistic.
    strongest : Interval
        Of the best any probe of the family can do: the largest value, lower and upper limit, with
        limits that hold for all probes at once. Where a probe was chosen without a look at the
        tested rows, the value and the lower limit are its own.
    part : PartFound or None
        Of several labels or numbers, or more than two classes, the one that is read most clearly,
        if it is found by itself. It counts whatever the mean over all of them is.
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
    untaught : tuple of str
        Classes and labels of which no probe tested on them has met other rows, as all belong
        together. What could be read of them is not known: upper limits take it for all of them.
    """

    family: Family
    statistic: str
    chance: float
    worst: str
    strongest: Interval
    part: PartFound | None
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
    untaught: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        plain = dict(vars(self))
        plain["strongest"] = self.strongest.to_dict()
        plain["part"] = None if self.part is None else self.part.to_dict()
        plain["bits"] = None if self.bits is None else self.bits.to_dict()
        plain["untaught"] = list(self.untaught)
        plain["probes"] = [probe.to_dict() for probe in self.probes]
        return plain


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
    untaught: Sequence[str] = (),
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
    untaught : sequence of str
        Classes and labels that no probe could learn where it was tested on them.

    Returns
    -------
    FamilyResult
    """
    results, statistic, chance = [], statistic_of(truth), chance_of(truth)
    apart: dict[int, list[Measure]] = {}
    for probe, given in zip(probes, scores, strict=True):
        if truth.kind == "classes":
            measures = measures_of(given, truth)
            alone = one_class_against_the_rest(given, truth) if chance < 0.5 else {}
        else:
            columns = measures_by_column(given, truth)
            measures = mean_measures(columns)
            alone = {j: column[statistic] for j, column in columns.items()}
        for j, own in alone.items():
            one = own if groups is None else own.grouped(groups)
            wider = WIDER[statistic] if folds > 1 else 1.0
            apart.setdefault(j, []).append(one.widened(wider))
        if groups is not None:
            measures = {key: found.grouped(groups) for key, found in measures.items()}
        if folds > 1:
            measures = {key: found.widened(WIDER[key]) for key, found in measures.items()}
        single = simultaneous_quantile([], confidence)
        intervals = {key: found.interval(single) for key, found in measures.items()}
        if folds == 1 and groups is None and truth.kind == "classes":
            hits = round(measures["accuracy"].value * truth.n_samples)
            intervals["accuracy"] = exact_binomial(hits, truth.n_samples, confidence)
        results.append(ProbeResult(probe.name, measures, intervals))
    part = _part_found(apart, truth, confidence, leak)
    strongest, quantile = _strongest([r.measures[statistic] for r in results], confidence)
    worst = max(results, key=lambda r: r.measures[statistic].value).name
    for result, given in zip(results, scores, strict=True):
        if given.by:
            limits = result.intervals[statistic]
            worst, strongest = given.by, Interval(limits.value, limits.low, strongest.high)
    if untaught:
        most = min(strongest.high + len(untaught) / _averaged(truth), 1.0)
        strongest = Interval(strongest.value, strongest.low, most)
    informative = [r.measures["bits"] for r in results if "bits" in r.measures]
    bits = None
    if informative:
        found, _ = _strongest(informative, confidence)
        most = _entropy_bits(truth)
        low, value, high = (min(max(x, 0.0), most) for x in (found.low, found.value, found.high))
        bits = Interval(value, low, most if untaught else high)
    return FamilyResult(
        family=family,
        statistic=statistic,
        chance=chance,
        worst=worst,
        strongest=strongest,
        part=part,
        bits=bits,
        status=status_of(strongest, chance, leak) if part is None else "found",
        quantile=quantile,
        n_train=n_train,
        n_test=truth.n_samples,
        n_train_all=n_train_all,
        n_test_all=n_test_all,
        folds=folds,
        majority=_majority(truth),
        probes=tuple(results),
        untaught=tuple(untaught),
    )


def _part_found(
    apart: dict[int, list[Measure]], truth: Concept, confidence: float, leak: float
) -> PartFound | None:
    """The column whose lower limit, for all columns and probes at once, is furthest over chance."""
    if len(apart) < 2:
        return None
    tests = sum(len(measures) for measures in apart.values())
    quantile = float(ndtri(1 - (1 - confidence) / (2 * tests)))
    classes = truth.kind == "classes"
    chance = 0.5 if classes else chance_of(truth)  # of this one or not
    found = [
        PartFound(j, str(truth.labels[j]), _largest(each), chance, classes)
        for j, each in ((j, [m.interval(quantile) for m in own]) for j, own in apart.items())
    ]
    found = [part for part in found if status_of(part.limits, chance, leak) == "found"]
    return max(found, key=lambda part: part.limits.low, default=None)


def _strongest(measures: list[Measure], confidence: float) -> tuple[Interval, float]:
    """Interval of the largest of several unknown values: largest limits that hold for all."""
    quantile = simultaneous_quantile(measures, confidence)
    return _largest([m.interval(quantile) for m in measures]), quantile


def _largest(each: list[Interval]) -> Interval:
    return Interval(max(i.value for i in each), max(i.low for i in each), max(i.high for i in each))


def least_excess(chance: float, leak: float) -> float:
    """The least excess over chance that matters, where `leak` is that of two classes.

    Of many classes an excess of two points may be twice chance. So it is as many standard
    deviations of a guess, √(c (1 - c)), as `leak` is where c = ½: the rows it takes to exclude it
    do not depend on how many classes there are. Numbers (R², chance 0) have `leak` itself.

    Examples
    --------
    >>> from expunge.audit.families import least_excess
    >>> [round(least_excess(c, 0.02), 4) for c in (0.0, 1 / 2, 1 / 3, 1 / 60)]
    [0.02, 0.02, 0.0189, 0.0051]
    """
    return 2 * leak * float(np.sqrt(chance * (1 - chance))) if chance > 0 else leak


def status_of(strongest: Interval, chance: float, leak: float) -> Status:
    """At chance: the least excess that matters is excluded. Found: no excess at all is excluded.

    Recall wholly below chance is no chance: turned round, such scores tell the concept. Nor is
    anything shown by limits that reach far below.

    Parameters
    ----------
    strongest : Interval
        Score of the strongest probe.
    chance, leak : float
        See `least_excess`.

    Returns
    -------
    {"at chance", "found", "cannot tell"}
    """
    least = least_excess(chance, leak)
    if strongest.low > chance and strongest.high >= chance + least:
        return "found"
    if chance > 0 and (strongest.high < chance or strongest.low < chance - BELOW * least):
        return "cannot tell"
    return "at chance" if strongest.high < chance + least else "cannot tell"


def statistic_of(truth: Concept) -> str:
    """What probes of such a concept are judged by: balanced accuracy, or R² of numbers."""
    return "r2" if truth.kind == "continuous" else "balanced_accuracy"


def chance_of(truth: Concept) -> float:
    """One over the number of classes in the rows; half for labels; 0 for R²."""
    if truth.kind == "continuous":
        return 0.0
    return 0.5 if truth.kind == "labels" else 1 / len(np.unique(truth.values))


def _averaged(truth: Concept) -> int:
    """Of how many classes or labels the statistic is the mean: those that the rows have."""
    if truth.kind == "classes":
        return len(np.unique(truth.values))
    return int(np.sum(np.ptp(truth.values, axis=0) > 0))


def _entropy_bits(truth: Concept) -> float:
    """Bits per row that there are to be read, at most; of labels the mean."""
    share = np.asarray(truth.columns().mean(axis=0))
    each = entr(share) + (entr(1 - share) if truth.kind == "labels" else 0.0)
    return float((each.mean() if truth.kind == "labels" else each.sum()) / np.log(2))


def _majority(truth: Concept) -> float | None:
    if truth.kind == "continuous":
        return None
    share: Array = truth.columns().mean(axis=0)
    return float(share.max() if truth.kind == "classes" else np.maximum(share, 1 - share).mean())
