"""Sections of an audit beside the probes: provenance, pictures, damage, words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from expunge.audit.given import STAGES, AuditedRows, Given
from expunge.audit.roles import Roles
from expunge.audit.sampling import stratified
from expunge.concept import Concept
from expunge.errors import InputError
from expunge.linalg import Array
from expunge.metrics.association import paper_weat_tests, weat_tests
from expunge.metrics.change import damage_of_rows, least_change
from expunge.metrics.geometry import scatter_of_rows, v_measure
from expunge.metrics.neighbours import neighbour_changes
from expunge.metrics.similarity import places, similarity_correlation
from expunge.number_text import rounded
from expunge.rows.base import Rows

if TYPE_CHECKING:
    from expunge.data import WeatTest

__all__ = [
    "association_section",
    "concept_section",
    "damage_section",
    "erasure_section",
    "pca_section",
    "v_measure_section",
]

POINTS = 1500  # of a scatter plot
CLUSTERS = (2, 4, 8, 16)
CLUSTERED = 5000  # rows that are clustered
BASE = 20_000  # rows among which neighbours are looked for
WORDS = 50_000  # of a vocabulary that are read
QUERIES = 8  # rows whose neighbours are listed


def erasure_section(given: Given) -> dict[str, Any]:
    """What was audited and what made it."""
    e, meta = given.erasure, given.meta
    fingerprint = meta.get("fingerprint")
    return {
        "type": type(given.subject).__name__,
        "rank": getattr(given.subject, "rank", None),
        "n_features": given.first.before.n_features,
        "orthogonal": None if e is None else e.is_orthogonal,
        "needs_concept": bool(getattr(given.subject, "needs_concept", False)),
        "method": meta.get("method"),
        "solver": meta.get("solver"),
        "parameters": meta.get("parameters", {}),
        "n_fitted": meta.get("n"),
        "n_unlabelled": (meta.get("pool") or {}).get("n_pool"),
        "fingerprint": None
        if fingerprint is None
        else {key: value for key, value in fingerprint.items() if key != "sketch"},
        "versions": meta.get("versions", {}),
    }


def concept_section(given: Given, roles: Roles) -> dict[str, Any]:
    """The concept and how common each label is among the rows of the fit and the others."""
    concept = given.first.concept

    def means(part: AuditedRows | None) -> list[float] | None:
        return None if part is None else _shares(part.concept).tolist()

    return {
        "kind": concept.kind,
        "labels": [str(label) for label in concept.labels],
        "means": means(given.last),
        "train_means": means(roles.fit),
        "test_means": means(given.test if roles.fit is given.train else roles.new),
    }


def pca_section(part: AuditedRows, seed: int) -> dict[str, Any] | None:
    """Coordinates for a scatter plot, with the label and the name of every point."""
    if not _comparable(part) or part.before.n_features < 2:
        return None
    rng = np.random.default_rng(seed)
    found = scatter_of_rows(part.before, part.after, max_rows=POINTS, rng=rng)
    shown = part.take(found.rows)
    return {
        "n_rows": len(part),
        "labels": _shown_labels(shown.concept),
        "names": None if shown.names is None else list(shown.names),
        **rounded(found.to_dict(), 5),  # what a picture can show, which halves the size of a page
    }


def v_measure_section(part: AuditedRows, seed: int) -> dict[str, Any] | None:
    """How far clusters follow the concept, before and after."""
    if part.concept.kind != "classes" or len(np.unique(part.concept.values)) < 2:
        return None
    rows = stratified(part.concept, CLUSTERED, seed)
    y = part.concept.values[rows]
    clusters = [k for k in CLUSTERS if k <= len(rows) // 2]
    if not clusters:
        return None
    return {
        stage: v_measure(
            part.at(stage).take(rows).array(), y, clusters, random_state=seed
        ).to_dict()
        for stage in STAGES
    }


def damage_section(part: AuditedRows, seed: int, *, told: bool) -> dict[str, Any] | None:
    """What the rows lost; for maps that are not told the concept beside the least they can lose."""
    if not _comparable(part):
        return None
    least = None
    if not told and np.any(part.concept.values != part.concept.values[0]):
        own = part.concept.with_weight(np.ones(len(part)))  # classes of these rows only
        least = least_change(part.before.moments(own))
    rng = np.random.default_rng(seed)
    return damage_of_rows(part.before, part.after, least=least, max_base=BASE, rng=rng).to_dict()


def association_section(
    words: Sequence[str], rows_before: Rows, rows_after: Rows, seed: int
) -> dict[str, Any]:
    """Association tests, agreement with people and neighbours, as far as the words allow.

    Of a large vocabulary the words that these ask for are read, and others up to `WORDS`.
    """
    tests, skipped = [], []
    n_words, queries = len(words), _queries(words)
    chosen = _asked_for(words, queries, seed)
    words = [words[row] for row in chosen]
    before, after = rows_before.take(chosen).array(), rows_after.take(chosen).array()
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
    changes = neighbour_changes(before, after, words, queries, min(5, len(words) - 1))
    return {
        "n_words": n_words,
        "n_words_read": len(words),
        "weat": tests,
        "skipped": skipped,
        "similarity": similarity,
        "neighbours": [change.to_dict() for change in changes],
    }


def _comparable(part: AuditedRows) -> bool:
    return part.before.n_features == part.after.n_features and len(part) > 1


def _shares(concept: Concept) -> Array:
    """Share of each class or label, mean of each number (width,)."""
    if concept.kind == "classes":
        counts = np.bincount(concept.values, minlength=concept.width)
        return np.asarray(counts / concept.n_samples)
    return np.asarray(concept.values.mean(axis=0))


def _asked_for(words: Sequence[str], queries: Sequence[str], seed: int) -> NDArray[np.intp]:
    """Rows of all words; of more than `WORDS` those that are asked for, and others at random."""
    from expunge.data import load_simlex

    n = len(words)
    if n <= WORDS:
        return np.arange(n)
    tests = paper_weat_tests()
    sets = [
        part
        for test in tests
        for part in (
            test.first_target,
            test.second_target,
            test.first_attribute,
            test.second_attribute,
        )
    ]
    rated = {word for pair in load_simlex().pairs for word in pair}
    named = {*queries, *rated, *(word for part in sets for word in part.words)}
    wanted = np.array([word in named for word in words])
    others = np.random.default_rng(seed).permutation(np.flatnonzero(~wanted))
    room = max(WORDS - int(wanted.sum()), 0)
    return np.sort(np.concatenate([np.flatnonzero(wanted), others[:room]]))


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
