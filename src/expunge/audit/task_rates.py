"""A task's classifier before and after: what it gets right beside chance, its rates by group."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.audit.families import WIDER, chance_of
from expunge.audit.given import STAGES, AuditedRows, Given, Stage
from expunge.audit.measures import (
    Interval,
    Measure,
    ProbeScores,
    exact_binomial,
    measures_of,
    simultaneous_quantile,
)
from expunge.audit.probe import Training
from expunge.audit.probes import PROBES
from expunge.audit.protocols import Terms
from expunge.audit.roles import Roles
from expunge.audit.running import cross_fitted
from expunge.audit.sampling import fold_numbers, groups_of, stratified
from expunge.concept import Concept
from expunge.metrics.fairness import TprGaps, tpr_gaps
from expunge.metrics.similarity import pearson

__all__ = ["fairness_section"]

CLASSIFIER = PROBES["logistic regression, ridge 0.01"]
LEAST_ROWS = 5  # of a class and group, for a rate
LEAST_CLASSES = 3  # for a correlation
TASK_ROWS, TASK_TESTED = 20_000, 50_000  # it learns from and is tested on
NO_SECTION = "The task that was passed was not measured: "


@dataclass(frozen=True, eq=False)
class Answers:
    """What the classifier says of rows that it did not learn from.

    Attributes
    ----------
    scores : dict from stage to ProbeScores
    truth : Concept
        The task of these rows.
    groups : array of shape (n,)
        Their classes of the concept, as text.
    majority : float
        Accuracy of always answering the commonest class of the rows learnt from.
    n_train, n_train_all, n_test_all, folds : int
        As in `FamilyResult`.
    own : int array of shape (n,) or None
        Rows that belong together and are no independent evidence.
    """

    scores: dict[Stage, ProbeScores]
    truth: Concept
    groups: NDArray[Any]
    majority: float
    n_train: int
    n_train_all: int
    n_test_all: int
    folds: int
    own: NDArray[np.intp] | None = None


def fairness_section(given: Given, roles: Roles, terms: Terms) -> tuple[dict[str, Any] | None, str]:
    """A task's classifier before and after: accuracy, and true positive rates by group.

    The groups are the classes of the concept. The classifier learns from the training rows and is
    tested on the others. Where there is one set of rows, it learns from some of the fresh ones and
    is tested on the others, in turns.

    Returns
    -------
    (dict or None, str)
        The section; without one, why a task that was passed has none.
    """
    if given.first.task is None:
        return None, ""
    both = given.train is not None and given.test is not None
    tested = given.test if both else roles.new
    if why := _why_not(given.first.concept, tested):
        return None, NO_SECTION + why
    assert tested is not None
    if given.train is not None and both:
        found = _carried_over(given.train, tested, terms.seed)
    else:
        found = _cross_fitted(tested, terms)
    if len(np.unique(found.groups)) < 2:  # a sample may lack a rare one
        return None, NO_SECTION + "the tested rows have one class of the concept. Pass rows of two."
    return _section(found, terms.confidence), ""


def _why_not(concept: Concept, tested: AuditedRows | None) -> str:
    """What is missing for rates by group; empty if nothing is."""
    if concept.kind != "classes":
        return "its rates are compared between the classes of a concept, and this one has none."
    if tested is None:
        return "it takes fresh rows. Pass rows that were not in the fit as X_test and y_test."
    if len(np.unique(_task(tested).values)) < 2:
        return "the tested rows have one class of it only. Pass rows of two."
    return ""


def _task(part: AuditedRows) -> Concept:
    assert part.task is not None
    return part.task


def _carried_over(train: AuditedRows, test: AuditedRows, seed: int) -> Answers:
    """Of a classifier that learns from the training rows, on the test rows."""
    learnt = stratified(_task(train), TASK_ROWS, seed)
    tested = stratified(_task(test), TASK_TESTED, seed)
    task, truth = _task(train).take(learnt), _task(test).take(tested)
    scores = {}
    for stage in STAGES:
        training = Training(train.at(stage).take(learnt).array(), task)
        scores[stage] = CLASSIFIER.scores(training, test.at(stage).take(tested).array(), seed)
    return Answers(
        scores=scores,
        truth=truth,
        groups=_names(test.concept.take(tested)),
        majority=_majority(task, truth),
        n_train=len(learnt),
        n_train_all=len(train),
        n_test_all=len(test),
        folds=1,
        own=_together(test.take(tested)),
    )


def _cross_fitted(part: AuditedRows, terms: Terms) -> Answers:
    """Of classifiers that learn from the other folds; rows of one id are in one fold."""
    sample, seed = stratified(_task(part), TASK_ROWS, terms.seed), terms.seed
    some, task = part.take(sample), _task(part).take(sample)
    own = _together(some)
    folds = fold_numbers(task, terms.sizes.linear_folds, seed, own)
    scores = {
        stage: cross_fitted(
            [CLASSIFIER], some.at(stage).array(), task, folds, seed, lambda note: None, own
        )[0]
        for stage in STAGES
    }
    count, n = int(folds.max()) + 1, len(sample)
    return Answers(
        scores=scores,
        truth=task,
        groups=_names(some.concept),
        majority=_majority(task, task),
        n_train=n - n // count,
        n_train_all=len(part) - len(part) // count,
        n_test_all=len(part),
        folds=count,
        own=own,
    )


def _section(found: Answers, confidence: float) -> dict[str, Any]:
    stages: dict[str, Any] = {
        stage: _correct(scores, found, confidence) | _rates(scores, found, confidence)
        for stage, scores in found.scores.items()
    }
    return {
        "classifier": CLASSIFIER.name,
        "n_train": found.n_train,
        "n_train_all": found.n_train_all,
        "n_test": found.truth.n_samples,
        "n_test_all": found.n_test_all,
        "folds": found.folds,
        "majority": found.majority,
        "chance": chance_of(found.truth),
        **stages,
        "least_rows": LEAST_ROWS,
        "left_out": _few(stages["before"]["gaps"]),
    }


def _correct(scores: ProbeScores, found: Answers, confidence: float) -> dict[str, Any]:
    """How many answers are right, over rows and over classes.

    Balanced accuracy is that of the answers as they are, without allowance for the shares of the
    classes.
    """
    measures = measures_of(replace(scores, in_nats=False), found.truth)
    quantile = simultaneous_quantile([], confidence)

    def limits(name: str) -> Interval:
        wider = WIDER[name] if found.folds > 1 else 1.0
        return _as_evidence(measures[name], found).widened(wider).interval(quantile)

    accuracy = limits("accuracy")
    if found.folds == 1 and found.own is None:
        n = found.truth.n_samples
        accuracy = exact_binomial(round(accuracy.value * n), n, confidence)
    return {
        "accuracy": accuracy.to_dict(),
        "balanced_accuracy": limits("balanced_accuracy").to_dict(),
    }


def _together(part: AuditedRows) -> NDArray[np.intp] | None:
    return groups_of(part.before, part.ids)


def _as_evidence(measure: Measure, found: Answers) -> Measure:
    """The measure, its error that of the groups where rows belong together."""
    return measure if found.own is None else measure.grouped(found.own)


def _rates(scores: ProbeScores, found: Answers, confidence: float) -> dict[str, Any]:
    """True positive rates by group, their gaps, and the RMS gap with its limits."""
    answers = replace(found.truth, values=scores.values.argmax(axis=1))
    gaps = _of_enough_rows(tpr_gaps(_names(found.truth), _names(answers), found.groups))
    right = measures_of(replace(scores, in_nats=False), found.truth)["accuracy"]
    wider = _as_evidence(right, found).error / right.error if right.error > 0 else 1.0
    low, high = gaps.rms_interval(level=confidence, wider=wider)
    limits = {"rms": gaps.rms, "rms_low": low, "rms_high": high}
    known = {name: None if np.isnan(value) else value for name, value in limits.items()}
    return {**known, "gaps": gaps.to_dict()}


def _majority(learnt: Concept, tested: Concept) -> float:
    return float(np.mean(tested.values == np.bincount(learnt.values).argmax()))


def _of_enough_rows(found: TprGaps) -> TprGaps:
    """The same with gaps between rates of `LEAST_ROWS` rows or more only.

    With fewer than three classes it has no correlation: through two points there is always a line.
    """
    columns = [found.groups.index(group) for group in found.gap_groups]
    own = found.counts[:, columns]
    fewest = np.minimum(own, found.counts.sum(axis=1, keepdims=True) - own)
    gaps = np.where(fewest < LEAST_ROWS, np.nan, found.gaps)
    kept = ~np.isnan(gaps)
    lines = int(kept.any(axis=1).sum()) >= LEAST_CLASSES
    return replace(
        found,
        gaps=gaps,
        n_gaps=int(kept.sum()),
        rms=float(np.sqrt(np.mean(gaps[kept] ** 2))) if kept.any() else np.nan,
        correlation=pearson(gaps[kept], found.shares[kept]) if lines else np.nan,
    )


def _few(gaps: dict[str, Any]) -> list[list[Any]]:
    """Class, group and rows of the cells with too few rows for a rate."""
    return [
        [name, group, rows]
        for name, counts in zip(gaps["classes"], gaps["counts"], strict=True)
        for group, rows in zip(gaps["groups"], counts, strict=True)
        if rows < LEAST_ROWS
    ]


def _names(concept: Concept) -> NDArray[Any]:
    """The class of each row, as text."""
    names: NDArray[Any] = np.array([str(label) for label in concept.labels])
    return np.asarray(names[concept.values])
