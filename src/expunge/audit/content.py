"""Sections of an audit beside the probes: provenance, pictures, damage, words, fairness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from expunge.audit.association import paper_weat_tests, weat_tests
from expunge.audit.damage import damage
from expunge.audit.fairness import tpr_gaps
from expunge.audit.geometry import pca_scatter, v_measure
from expunge.audit.given import STAGES, Given, Part
from expunge.audit.linear_probes import logistic_scores
from expunge.audit.measures import exact_binomial
from expunge.audit.neighbours import neighbour_changes
from expunge.audit.probe import Training
from expunge.audit.probing import stratified
from expunge.audit.roles import Roles
from expunge.audit.similarity import places, similarity_correlation
from expunge.concept import Concept
from expunge.errors import InputError

if TYPE_CHECKING:
    from expunge.data import WeatTest

__all__ = [
    "association_section",
    "concept_section",
    "damage_section",
    "erasure_section",
    "fairness_section",
    "pca_section",
    "v_measure_section",
]

POINTS = 1500  # of a scatter plot
CLUSTERS = (2, 4, 8, 16)
CLUSTERED = 5000  # rows that are clustered
BASE = 20_000  # rows among which neighbours are looked for
TASK_RIDGE = 1e-2  # of the task's classifier, relative to the mean variance of a column
TASK_ROWS = 20_000  # it learns from
QUERIES = 8  # rows whose neighbours are listed


def erasure_section(given: Given) -> dict[str, Any]:
    """What was audited and what made it."""
    e, meta = given.erasure, given.meta
    fingerprint = meta.get("fingerprint")
    return {
        "type": type(given.subject).__name__,
        "rank": getattr(given.subject, "rank", None),
        "n_features": int(given.first.before.shape[1]),
        "orthogonal": None if e is None else e.is_orthogonal,
        "needs_concept": bool(getattr(given.subject, "needs_concept", False)),
        "method": meta.get("method"),
        "solver": meta.get("solver"),
        "parameters": meta.get("parameters", {}),
        "n_fitted": meta.get("n"),
        "fingerprint": None
        if fingerprint is None
        else {key: value for key, value in fingerprint.items() if key != "sketch"},
        "versions": meta.get("versions", {}),
    }


def concept_section(given: Given, roles: Roles) -> dict[str, Any]:
    """The concept and how common each label is among the rows of the fit and the others."""
    concept = given.first.concept

    def means(part: Part | None) -> list[float] | None:
        return None if part is None else part.concept.columns().mean(axis=0).tolist()

    return {
        "kind": concept.kind,
        "labels": [str(label) for label in concept.labels],
        "train_means": means(roles.fit),
        "test_means": means(given.test if roles.fit is given.train else roles.new),
    }


def pca_section(part: Part, seed: int) -> dict[str, Any] | None:
    """Coordinates for a scatter plot, with the label and the name of every point."""
    if not _comparable(part) or part.before.shape[1] < 2:
        return None
    found = pca_scatter(part.before, part.after, max_rows=POINTS, random_state=seed)
    shown = part.take(found.rows)
    return {
        "n_rows": len(part),
        "labels": _shown_labels(shown.concept),
        "names": None if shown.names is None else list(shown.names),
        **_rounded(found.to_dict()),
    }


def v_measure_section(part: Part, seed: int) -> dict[str, Any] | None:
    """How far clusters follow the concept, before and after."""
    if part.concept.kind != "classes" or len(np.unique(part.concept.values)) < 2:
        return None
    rows = stratified(part.concept, CLUSTERED, seed)
    y = part.concept.values[rows]
    clusters = [k for k in CLUSTERS if k <= len(rows) // 2]
    if not clusters:
        return None
    return {
        stage: v_measure(part.at(stage)[rows], y, clusters, random_state=seed).to_dict()
        for stage in STAGES
    }


def damage_section(part: Part, seed: int) -> dict[str, Any] | None:
    """What the rows lost."""
    if not _comparable(part):
        return None
    varies = bool(np.any(part.concept.values != part.concept.values[0]))
    concept = part.concept.values if varies else None
    kind = part.concept.kind
    found = damage(
        part.before,
        part.after,
        concept=concept,
        concept_type=kind,
        max_base=BASE,
        random_state=seed,
    )
    return found.to_dict()


def association_section(
    words: Sequence[str], before: NDArray[Any], after: NDArray[Any], seed: int
) -> dict[str, Any]:
    """Association tests, agreement with people and neighbours, as far as the words allow."""
    tests, skipped = [], []
    known = places(words, len(words))
    for test in paper_weat_tests():
        if (lacking := _lacking(test, known)) is not None:
            skipped.append(lacking)
            continue
        pair = [weat_tests(V, words, tests=[test], random_state=seed) for V in (before, after)]
        first, second = (found[0].to_dict() for found in pair)
        tests.append({"name": test.name, "before": first, "after": second})
    try:
        agreement = [similarity_correlation(V, words).to_dict() for V in (before, after)]
        similarity = {"name": "SimLex-999", "before": agreement[0], "after": agreement[1]}
    except InputError as error:  # too few of its words
        similarity = None
        skipped.append(
            {"name": "SimLex-999", "reason": f"{error.problem} ({error.received})", "missing": []}
        )
    queries = _queries(words)
    changes = neighbour_changes(before, after, words, queries, min(5, len(words) - 1))
    return {
        "n_words": len(words),
        "weat": tests,
        "skipped": skipped,
        "similarity": similarity,
        "neighbours": [change.to_dict() for change in changes],
    }


def fairness_section(
    train: Part, test: Part, confidence: float, seed: int
) -> dict[str, Any] | None:
    """True positive rates of a task's classifier by class of the concept, before and after."""
    if train.task is None or test.task is None or test.concept.kind != "classes":
        return None
    rows = stratified(train.task, TASK_ROWS, seed)
    task = train.task.take(rows)
    labels = np.array([str(label) for label in task.labels])
    group = np.array([str(label) for label in test.concept.labels])[test.concept.values]
    found: dict[str, Any] = {
        "classifier": f"logistic regression, ridge {TASK_RIDGE:g}",
        "n_train": len(rows),
        "n_test": len(test),
    }
    for stage in STAGES:
        training = Training(train.at(stage)[rows], task)
        predicted = logistic_scores(training, test.at(stage), TASK_RIDGE).argmax(axis=1)
        hits = int(np.sum(predicted == test.task.values))
        gaps = tpr_gaps(labels[test.task.values], labels[predicted], group)
        low, high = gaps.rms_interval(level=confidence, random_state=seed)
        found[stage] = {
            "accuracy": exact_binomial(hits, len(test), confidence).to_dict(),
            "rms": gaps.rms,
            "rms_low": low,
            "rms_high": high,
            "gaps": gaps.to_dict(),
        }
    return found


def _comparable(part: Part) -> bool:
    return part.before.shape == part.after.shape and len(part) > 1


def _lacking(test: WeatTest, known: Mapping[str, int]) -> dict[str, Any] | None:
    """Why an association test cannot be run, with the words it lacks; None if it can."""
    sets = test.first_target, test.second_target, test.first_attribute, test.second_attribute
    empty = [part for part in sets if not any(word in known for word in part.words)]
    if not empty:
        return None
    names = " and ".join(repr(part.name) for part in empty)
    return {
        "name": test.name,
        "reason": f"no word of the set {names} has a vector here",
        "missing": [word for part in empty for word in part.words],
    }


def _queries(words: Sequence[str]) -> list[str]:
    """The words whose neighbours the literature lists, or a few evenly spaced ones."""
    from expunge.data import load_word_lists

    known = places(words, len(words))
    listed = [word for word in load_word_lists().neighbour_words if word in known]
    if listed:
        return listed[:QUERIES]
    spaced = np.linspace(0, len(words) - 1, min(QUERIES, len(words))).astype(int)
    return list(dict.fromkeys(str(words[i]) for i in spaced))


def _shown_labels(concept: Concept) -> list[Any]:
    """One label, list of labels or number for each point."""
    if concept.kind == "classes":
        return [str(concept.labels[code]) for code in concept.values]
    if concept.kind == "labels":
        names = [str(label) for label in concept.labels]
        return [
            ", ".join(name for name, has in zip(names, row, strict=True) if has) or "none"
            for row in concept.values
        ]
    return [float(value) for value in concept.values[:, 0]]


def _rounded(value: Any) -> Any:
    """Numbers cut to what a picture can show, which halves the size of a report."""
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_rounded(part) for part in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value
