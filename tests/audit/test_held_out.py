"""Rows to hold out: class shares kept, copies together, the same in every process."""

import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from expunge.audit.given import as_given
from expunge.audit.held_out import held_out
from expunge.audit.probe import Training
from expunge.audit.probe_memory import remembered
from expunge.audit.probes import PROBES
from expunge.audit.repeats import by_chance, numbered
from expunge.inputs import check_concept, check_rows
from planted import plant


def test_classes_keep_their_shares_and_runs_differ():
    data = plant("classes", n=1000)
    concept = check_concept(data.y, 1000)
    test = held_out(check_rows(data.X), [concept], 0.3, 0)
    assert len(test) == 300
    shares = np.bincount(concept.values[test]) / 300
    np.testing.assert_allclose(shares, np.bincount(concept.values) / 1000, atol=0.003)
    assert not np.array_equal(test, held_out(check_rows(data.X), [concept], 0.3, 1))


@pytest.mark.parametrize("times", [2, 7])
def test_copies_stay_together_and_rows_that_agree_by_chance_do_not(times):
    data = plant("binary", n=140)
    X, y = np.repeat(data.X, times, axis=0), np.repeat(data.y, times)
    assert not by_chance(check_rows(X))
    test = held_out(check_rows(X), [check_concept(y, len(y))], 0.3, 0)
    group = numbered(check_rows(X))
    assert not set(group[test]) & set(np.delete(group, test))
    assert len(test) / len(X) == pytest.approx(0.3, abs=0.02)
    assert y[test].mean() == pytest.approx(y.mean(), abs=0.05)
    table = np.random.default_rng(0).integers(0, 4, size=(900, 4))
    assert by_chance(check_rows(table))
    test = held_out(check_rows(table), [check_concept(np.arange(900) % 2, 900)], 0.3, 0)
    assert len(test) == 270
    group = numbered(check_rows(table))
    assert set(group[test]) & set(np.delete(group, test))


def test_rows_partly_copied_keep_the_share():
    data = plant("binary", n=600)
    X = np.vstack([data.X, data.X[:100], data.X[:50]])
    y = np.concatenate([data.y, data.y[:100], data.y[:50]])
    test = held_out(check_rows(X), [check_concept(y, 750)], 0.3, 0)
    assert len(test) / 750 == pytest.approx(0.3, abs=0.01)
    assert not set(numbered(check_rows(X))[test]) & set(np.delete(numbered(check_rows(X)), test))


def test_every_class_of_concept_and_task_keeps_a_row_in_the_fit():
    data = plant("binary", n=300)
    y, task = data.y.copy(), np.arange(300) % 2
    y[7], task[11] = 5, 9
    concepts = [check_concept(y, 300), check_concept(task, 300)]
    for seed in range(20):
        rest = np.delete(np.arange(300), held_out(check_rows(data.X), concepts, 0.5, seed))
        assert {7, 11} <= set(rest)


def test_equal_seeds_hold_out_equal_rows_in_every_process():
    code = (
        "import numpy as np; from expunge.audit.held_out import held_out;"
        "from expunge.inputs import check_concept, check_rows;"
        "X = np.repeat(np.random.default_rng(0).normal(size=(60, 3)), 3, axis=0);"
        "print(held_out(check_rows(X), [check_concept(np.arange(180) % 2, 180)], 0.3, 4).tolist())"
    )
    command = [sys.executable, "-c", code]
    found = {subprocess.run(command, capture_output=True, check=True).stdout for _ in range(2)}
    assert len(found) == 1
    assert b"[" in found.pop()


def test_a_concept_survives_being_given_again(planted):
    concept = check_concept(planted.y, len(planted.y))
    again = check_concept(as_given(concept), len(planted.y), concept_type=concept.kind)
    assert again.kind == concept.kind
    np.testing.assert_array_equal(again.values, concept.values)


def test_a_remembered_probe_answers_once_and_the_same():
    data = plant("binary", n=200)
    concept, asked = check_concept(data.y, 200), Counter()
    plain = PROBES["linear discriminant"]

    def score(training, X, seed):
        asked["times"] += 1
        return plain.score(training, X, seed)

    probe = remembered(type(plain)("own", "linear", ("classes",), score))
    training, X = Training(data.X[:100], concept.take(slice(0, 100))), data.X[100:]
    first = probe.scores(training, X, 0)
    second = probe.scores(Training(data.X[:100].copy(), training.concept), X.copy(), 0)
    assert asked["times"] == 1
    np.testing.assert_array_equal(first.values, second.values)
    np.testing.assert_array_equal(first.values, plain.scores(training, X, 0).values)
    others = [
        probe.scores(training, X + 1, 0),
        probe.scores(Training(data.X[:100] * 2, training.concept), X, 0),
        probe.scores(Training(data.X[:100], concept.take(slice(100, 200))), X, 0),
    ]
    assert asked["times"] == 4
    assert not any(np.array_equal(first.values, other.values) for other in others)
