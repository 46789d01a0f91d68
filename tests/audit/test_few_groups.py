"""Classes of few groups: each is learnt and tested wherever that can be, and else nobody knows."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_score

import expunge as ex
from expunge.audit.sampling import fold_numbers, untaught
from expunge.concept import Concept

NOTHING = ex.Erasure(np.zeros((5, 0)), np.zeros((0, 5)))
PROBE = ["linear discriminant"]


def few_sources(n, count, kind="classes"):
    """Class 1 comes from so many sources, the other rows from one each."""
    i = np.arange(n)
    y = (i < n // 3).astype(int)
    X = np.random.default_rng(0).normal(size=(n, 5))
    X[:, 0] += 3 * y
    groups = np.where(y == 1, i % count, 10_000 + i)
    labels = np.column_stack([y, i % 2]) if kind == "labels" else y
    return X, labels, groups


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", ["classes", "labels"])
@pytest.mark.parametrize("count", [2, 3])
def test_a_class_of_few_groups_is_learnt_and_tested(count, kind, seed):
    X, y, groups = few_sources(600, count, kind)
    plain = y if kind == "classes" else y[:, 0]
    assert (
        cross_val_score(LogisticRegression(), X, plain, groups=groups, cv=GroupKFold(2)).min() > 0.8
    )
    a = ex.audit(
        NOTHING, X_test=X, y_test=y, groups=groups, fresh=True, probes=PROBE, random_state=seed
    )
    assert a.verdict.linear == "found"
    assert a.fresh_rows.after["linear"].untaught == ()


@pytest.mark.parametrize("kind", ["classes", "labels"])
def test_of_a_class_of_one_group_nothing_is_known(kind):
    X, y, groups = few_sources(3000, 1, kind)
    a = ex.audit(NOTHING, X_test=X, y_test=y, groups=groups, fresh=True, probes=PROBE)
    found = a.fresh_rows.after["linear"]
    assert a.verdict.linear == "cannot tell"
    assert found.strongest.value < 0.55 < 0.9 < found.strongest.high
    assert found.bits is None or found.bits.high > 0.9
    assert "belong together" in " ".join(a.verdict.headline.split())
    assert found.to_dict()["untaught"] == list(found.untaught)


def test_compare_does_not_call_it_at_chance_either():
    X, y, groups = few_sources(3000, 4)
    found = ex.compare(X, y, ["LEACE"], groups=groups, probes=PROBE, runs=2)
    assert found.rows[0].fresh.status != "at chance"
    assert found.rows[0].linear.status == "found"


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("seed", [*range(20), 56, 105])
def test_every_value_with_two_groups_is_in_two_folds(seed, mixed):
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 8, 60)
    either = np.array([rng.choice(3, size=2) for _ in range(8)])  # classes of each group
    codes = either[groups, rng.integers(0, 1 + mixed, 60)]
    classes = Concept("classes", codes, ("a", "b", "c"))
    each = np.column_stack([codes == k for k in range(3)]).astype(float)
    labels = Concept("labels", each, (*"abc",))
    for concept, values in ((classes, [codes == k for k in range(3)]), (labels, [*each.T])):
        folds = fold_numbers(concept, 5 if seed % 2 else 2, seed, groups)
        assert all(len(np.unique(folds[groups == g])) <= 1 for g in range(8))
        assert np.array_equal(np.unique(folds), np.arange(folds.max() + 1))
        alone = set()
        for name, has in zip("abc", values, strict=True):
            for rows in [has > 0] if concept is classes else [has > 0, has == 0]:
                if rows.sum() > 1 and len(np.unique(groups[rows])) == 1:
                    alone.add(name)
        assert set(untaught(concept, folds)) == alone


def test_a_class_of_one_group_is_unknown_beside_classes_that_are_not_tested():
    """It was "at chance", as the share of one class of 200 was added to the upper limit."""
    rng = np.random.default_rng(0)
    y = np.arange(12_000) % 2
    X, groups = rng.normal(size=(12_000, 5)), np.where(y == 1, -1, np.arange(12_000))
    many = np.arange(800) % 200
    others = rng.normal(size=(800, 5)), many, X, y
    a = ex.audit(NOTHING, *others, groups=(50_000 + many, groups), fresh=True, probes=PROBE)
    found = a.fresh_rows.after["linear"]
    assert found.untaught == ("1",)
    assert found.status == "cannot tell"
    assert found.strongest.high - found.strongest.value > 0.5  # all of one class of the two
