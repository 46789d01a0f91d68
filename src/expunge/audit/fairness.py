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
from expunge.metrics.fairness import TprGaps, tpr_gaps
from expunge.metrics.similarity import pearson

__all__ = ["fairness_section"]

CLASSIFIER = PROBES["logistic regression, ridge 0.01"]
LEAST_ROWS = 5  # of a class and group, for a rate
LEAST_CLASSES = 3  # for a correlation
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
    return found | {"least_rows": LEAST_ROWS, "left_out": _few(found["before"]["gaps"])}


def _stage(
    scores: ProbeScores, truth: Concept, groups: NDArray[Any], confidence: float
) -> dict[str, Any]:
    answers = scores.values.argmax(axis=1)
    hits = int(np.sum(answers == truth.values))
    gaps = _of_enough_rows(tpr_gaps(_names(truth), _names(replace(truth, values=answers)), groups))
    rms, low, high = (
        None if np.isnan(x) else x for x in (gaps.rms, *gaps.rms_interval(level=confidence))
    )
    # of the answers as they are: no allowance for the shares of the classes
    plain = measures_of(replace(scores, in_nats=False), truth)["balanced_accuracy"]
    return {
        "accuracy": exact_binomial(hits, truth.n_samples, confidence).to_dict(),
        "balanced_accuracy": plain.interval(simultaneous_quantile([], confidence)).to_dict(),
        "rms": rms,
        "rms_low": low,
        "rms_high": high,
        "gaps": gaps.to_dict(),
    }


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
