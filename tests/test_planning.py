"""How many labels: the formula against simulation, the plan against fits."""

import numpy as np
import pytest
from numpy.random import default_rng
from scipy.stats import norm

import expunge as ex
from expunge.audit.separation import separations
from expunge.inputs import check_concept
from expunge.planning import expected_share_left


def planted(n, d=20, gap=2.0, seed=0):
    rng = default_rng(seed)
    y = rng.integers(0, 2, n)
    return rng.normal(size=(n, d)) + gap * np.outer(y, np.eye(d)[0]), y


@pytest.mark.parametrize(("d", "kappa"), [(5, 0.0), (5, 3.0), (40, 10.0), (40, 400.0)])
def test_the_share_left_is_that_of_simulated_directions(d, kappa):
    """The sine squared between a direction and its estimate with unit noise."""
    rng = default_rng(0)
    estimate = rng.normal(size=(40_000, d)) + np.sqrt(kappa) * np.eye(d)[0]
    sine = 1 - estimate[:, 0] ** 2 / np.sum(estimate**2, axis=1)
    error = sine.std() / np.sqrt(len(sine))
    assert abs(expected_share_left(d, 1, kappa) - sine.mean()) < 4 * error


def test_the_share_left_goes_over_into_its_limit():
    near = expected_share_left(50, 1, 1.9e8)
    np.testing.assert_allclose(near, 49 / (50 + 1.9e8), rtol=1e-6)


def accuracy_on_new_rows(eraser, d=20, gap=2.0):
    """Of the best linear probe, from the known distribution: Φ(½√q), q the distance left."""
    e = eraser.erasure_
    M = np.eye(d) - e.left @ e.right
    delta = M @ (gap * np.eye(d)[0])
    return norm.cdf(0.5 * np.sqrt(delta @ np.linalg.pinv(M @ M.T) @ delta))


def test_the_plan_says_what_fits_do():
    """So many fits of the planned size stay below the target."""
    X, y = planted(600)
    plan = ex.plan_labels(X, y, 0.56)
    assert plan.labels_low < plan.labels < plan.labels_high
    assert plan.pool == 0
    assert plan.with_pool is None
    shares = {}
    for n in (plan.labels_low, plan.labels, plan.labels_high):
        found = [
            accuracy_on_new_rows(ex.RLACE().fit(*planted(n, seed=seed))) for seed in range(200)
        ]
        shares[n] = np.mean(np.array(found) <= 0.56)
    assert shares[plan.labels_low] < 0.15
    assert 0.3 < shares[plan.labels] < 0.75
    assert shares[plan.labels_high] > 0.87


def test_a_pool_asks_for_fewer_labels_and_keeps_its_word():
    X, y = planted(500, gap=4.0)
    plan = ex.plan_labels(X, y, 0.56, unlabelled=10_000)
    assert plan.correlation > 0.5
    assert plan.with_pool < 0.6 * plan.labels
    found = []
    for seed in range(30):
        A, z = planted(plan.with_pool + 10_000, gap=4.0, seed=100 + seed)
        n = plan.with_pool
        eraser = ex.RLACE().fit(A[:n], z[:n], unlabelled=A[n:])
        found.append(accuracy_on_new_rows(eraser, gap=4.0))
    assert abs(np.mean(found) - 0.56) < 0.02


def test_rows_of_a_pool_are_counted():
    X, y = planted(300)
    assert ex.plan_labels(X, y, unlabelled=planted(50)[0]).pool == 50
    with pytest.raises(ex.InputError, match="features"):
        ex.plan_labels(X, y, unlabelled=np.ones((4, 3)))


def test_labels_that_nothing_predicts_gain_nothing_from_a_pool():
    X, y = planted(300, gap=0.0)
    plan = ex.plan_labels(X, y, 0.55, unlabelled=10_000)
    assert plan.correlation == 0
    assert plan.with_pool == plan.labels


def test_copies_of_a_row_are_no_labels():
    X, y = planted(200)
    once = ex.plan_labels(X, y, 0.6)
    groups = np.repeat(np.arange(200), 3)
    thrice = ex.plan_labels(np.repeat(X, 3, axis=0), np.repeat(y, 3), 0.6, groups=groups)
    assert 2.2 < thrice.labels / once.labels < 4.5


def test_several_classes_and_a_picture():
    rng = default_rng(0)
    y = rng.integers(0, 4, 800)
    X = rng.normal(size=(800, 10)) + 3 * np.eye(10)[y]
    plan = ex.plan_labels(X, y, 0.3, unlabelled=5000)
    assert plan.labels > 100
    axes = plan.plot()
    assert [line.get_label() for line in axes.get_lines()][-1] == "target"
    assert f"{plan.labels:,} labels" in str(plan)
    assert plan.to_dict()["pool"] == 5000


def test_what_cannot_be_planned_is_refused():
    X, y = planted(300)
    with pytest.raises(ex.InputError, match="too small"):
        ex.plan_labels(X[:15], y[:15])
    with pytest.raises(ex.InputError, match="classes only"):
        ex.plan_labels(X, X[:, 0])
    with pytest.raises(ex.InputError, match="target"):
        ex.plan_labels(X, y, 0.5)


def test_a_target_out_of_reach_is_said():
    X, y = planted(300)
    plan = ex.plan_labels(X, y, 0.5 + 1e-6)
    assert plan.labels is None
    assert "more than a billion" in str(plan)


def test_a_target_that_any_fit_meets_is_said():
    rng = default_rng(0)
    y = rng.choice(5, 2000, p=[0.6, 0.2, 0.1, 0.06, 0.04])
    X = rng.normal(size=(2000, 5)) + 0.6 * np.eye(5)[y]
    plan = ex.plan_labels(X, y, 0.9, unlabelled=1000)
    rarest = np.bincount(y).min() / 2000
    assert plan.fewest == np.ceil(2 / rarest)
    every = (plan.labels, plan.labels_low, plan.labels_high)
    assert {*every, plan.with_pool, plan.with_pool_low, plan.with_pool_high} == {plan.fewest}
    assert 0.2 < plan.before < 0.9
    said = str(plan)
    assert "met before anything is erased: by the pilot, such a probe is at" in said
    assert f"met by any fit with two rows of each class: from about {plan.fewest} labels" in said
    assert "1 labels" not in said


def test_no_end_of_a_plan_is_below_what_a_fit_can_take():
    X, y = planted(600, d=5, gap=1.5)
    plan = ex.plan_labels(X, y, 0.6)
    assert plan.fewest in (4, 5)
    assert plan.fewest == plan.labels_low < plan.labels < plan.labels_high
    assert plan.before > 0.7
    assert "before" not in str(plan)


def test_a_label_is_there_or_not_whatever_other_labels_there_are():
    """Chance of each of three labels is a half; they were planned for as if they were classes."""
    rng = default_rng(5)
    labels = rng.integers(0, 2, (800, 3))
    X = rng.normal(size=(800, 20)) + 2 * labels @ np.eye(20)[:3]
    with pytest.raises(ex.InputError, match="target"):
        ex.plan_labels(X, labels, 0.45)
    together = ex.plan_labels(X, labels, 0.56)
    alone = ex.plan_labels(X, labels[:, 0], 0.56)
    assert together.labels == pytest.approx(alone.labels, rel=0.3)


def test_a_plan_allows_for_a_rare_class_that_varies_more():
    rng = default_rng(6)
    d = 20

    def draw(n):
        y = (rng.random(n) < 0.1).astype(int)
        y[:2] = 0, 1
        spread = np.where(y, 4.0, 1.0)[:, None]
        return rng.normal(size=(n, d)) * spread + 4 * np.outer(y, np.eye(d)[0]), y

    plan = ex.plan_labels(*draw(3000), 0.56)
    Z, new = draw(40_000)
    found = [ex.RLACE().fit(*draw(plan.labels)).transform(Z) for _ in range(15)]
    gaps = [separations(ex.Moments.of(A, check_concept(new, len(new))))[1].squared for A in found]
    assert np.mean(norm.cdf(np.sqrt(gaps) / 2)) == pytest.approx(0.56, abs=0.012)


@pytest.mark.parametrize(
    ("classes", "d", "shares"), [(8, 6, "even"), (8, 5, "even"), (30, 20, "power")]
)
def test_more_contrasts_than_columns_leave_nothing_to_plan_for(classes, d, shares):
    """Classes that span all columns are erased with them: chance is all that is left."""
    rng = default_rng(0)
    weight = np.ones(classes) if shares == "even" else 1 / np.arange(1, classes + 1)
    y = rng.choice(classes, 3000, p=weight / weight.sum())
    X = rng.normal(size=(3000, d)) + rng.normal(size=(classes, d))[y]
    plan = ex.plan_labels(X, y, 0.2)
    assert plan.labels == plan.labels_low == plan.labels_high == plan.fewest
    assert [alone for _, alone, _ in plan.table] == pytest.approx([1 / classes] * len(plan.table))
    assert f"{100 / classes:.1f} %" in str(plan)


def test_no_share_is_left_where_all_directions_are_erased():
    assert expected_share_left(5, 7, 10.0) == expected_share_left(5, 7, 1e9) == 0
