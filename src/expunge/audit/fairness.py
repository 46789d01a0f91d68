"""A task's classifier before and after: what it gets right beside chance, its rates by group."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.audit.families import chance_of
from expunge.audit.given import STAGES, AuditedRows
from expunge.audit.measures import (
    ProbeScores,
    exact_binomial,
    measures_of,
    simultaneous_quantile,
)
from expunge.audit.probe import Training
from expunge.audit.probes import PROBES
from expunge.audit.sampling import stratified
from expunge.concept import Concept
from expunge.metrics.fairness import tpr_gaps

__all__ = ["fairness_section"]

CLASSIFIER = PROBES["logistic regression, ridge 0.01"]
TASK_ROWS, TASK_TESTED = 20_000, 50_000  # it learns from and is tested on


def fairness_section(
    train: AuditedRows, test: AuditedRows, confidence: float, seed: int
) -> dict[str, Any] | None:
    """A task's classifier before and after: accuracy, and true positive rates by group.

    The groups are the classes of the concept.
    """
    if train.task is None or test.task is None or test.concept.kind != "classes":
        return None
    learnt = stratified(train.task, TASK_ROWS, seed)
    tested = stratified(test.task, TASK_TESTED, seed)
    task, truth = train.task.take(learnt), test.task.take(tested)
    groups = _names(test.concept.take(tested))
    found: dict[str, Any] = {
        "classifier": CLASSIFIER.name,
        "n_train": len(learnt),
        "n_train_all": len(train),
        "n_test": len(tested),
        "n_test_all": len(test),
        "majority": float(np.mean(truth.values == np.bincount(task.values).argmax())),
        "chance": chance_of(truth),
    }
    for stage in STAGES:
        training = Training(train.at(stage).take(learnt).array(), task)
        scores = CLASSIFIER.scores(training, test.at(stage).take(tested).array(), seed)
        found[stage] = _stage(scores, truth, groups, confidence)
    return found


def _stage(
    scores: ProbeScores, truth: Concept, groups: NDArray[Any], confidence: float
) -> dict[str, Any]:
    answers = scores.values.argmax(axis=1)
    hits = int(np.sum(answers == truth.values))
    gaps = tpr_gaps(_names(truth), _names(replace(truth, values=answers)), groups)
    low, high = gaps.rms_interval(level=confidence)
    # of the answers as they are: no allowance for the shares of the classes
    plain = measures_of(replace(scores, in_nats=False), truth)["balanced_accuracy"]
    return {
        "accuracy": exact_binomial(hits, truth.n_samples, confidence).to_dict(),
        "balanced_accuracy": plain.interval(simultaneous_quantile([], confidence)).to_dict(),
        "rms": gaps.rms,
        "rms_low": low,
        "rms_high": high,
        "gaps": gaps.to_dict(),
    }


def _names(concept: Concept) -> NDArray[Any]:
    """The class of each row, as text."""
    names: NDArray[Any] = np.array([str(label) for label in concept.labels])
    return np.asarray(names[concept.values])
