"""The survey: values of V at many subspaces at once, against one solve for each."""

import numpy as np
import pytest

import expunge as ex
from expunge.game import survey as module
from expunge.game.losses import loss_for
from expunge.game.predictor import Problem, fit_predictor
from expunge.game.survey import cost, survey
from expunge.inputs import check_concept, check_rows
from planted import plant

GAMES = [
    ("classes", "cross_entropy"),
    ("labels", "cross_entropy"),
    ("vector", "squared"),
    ("classes", "squared_hinge"),
    ("classes", "hinge"),
]


def problem(kind, loss, *, weights=None, intercept=True, alpha=1e-4, dtype=float):
    data = plant(kind, n=150, d=5)
    rows = check_rows(data.X.astype(dtype))
    concept = check_concept(data.y, 150)
    loss = loss_for(loss, concept.kind, concept.width).smoothed
    moments = rows.moments(concept, weights)
    options = {"weights": weights, "alpha": alpha, "fit_intercept": intercept}
    return Problem(rows, concept, loss, moments, **options)


def bases(count, d, K):
    return np.linalg.qr(np.random.default_rng(0).normal(size=(count, d, K)))[0]


def one_by_one(p, U):
    values = []
    for basis in U:
        p.set_erasure(ex.Erasure(basis, basis.T))
        values.append(fit_predictor(p, tol=1e-10).value)
    return np.array(values)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("kind", "loss"), GAMES)
def test_values_are_those_of_one_solve_each(kind, loss, intercept, weighted):
    weights = np.random.default_rng(1).uniform(0, 2, 150) if weighted else None
    p, U = problem(kind, loss, weights=weights, intercept=intercept), bases(6, 5, 2)
    exact = one_by_one(p, U)
    found = survey(p, U, tol=1e-6)
    assert np.ptp(exact) > 0.01 * p.null.value  # they differ, so there is something to get right
    assert np.all(found >= exact - 1e-9 * p.null.value)
    assert np.all(found < p.null.value)
    if loss != "hinge":  # its smoothing is nearly a kink, where Newton steps get stuck
        np.testing.assert_allclose(found, exact, atol=1e-5 * p.null.value)


@pytest.mark.parametrize("alpha", [1e-8, 1e-1])
def test_the_ridge_may_be_small_or_large(alpha):
    p, U = problem("classes", "cross_entropy", alpha=alpha), bases(4, 5, 3)
    np.testing.assert_allclose(survey(p, U), one_by_one(p, U), atol=2e-3 * p.null.value)


def test_float32_rows_and_batches(monkeypatch):
    p, U = problem("classes", "cross_entropy", dtype=np.float32), bases(7, 5, 1)
    whole = survey(p, U)
    monkeypatch.setattr(module, "TOGETHER", 2 * 150 * 5 * 4)  # two at once
    np.testing.assert_allclose(survey(p, U), whole, rtol=1e-9)
    np.testing.assert_allclose(whole, one_by_one(p, U), atol=2e-3 * p.null.value)


def test_rows_without_any_spread_stop_at_the_null_model():
    rows, concept = check_rows(np.ones((20, 3))), check_concept(np.arange(20) % 4, 20)
    loss = loss_for("cross_entropy", "classes", 4)
    p = Problem(rows, concept, loss, rows.moments(concept))
    np.testing.assert_allclose(survey(p, bases(2, 3, 1)), np.log(4), rtol=1e-6)


def test_cost_grows_with_rows_and_with_what_is_left():
    p = problem("classes", "cross_entropy")
    assert cost(p, 1) == 150 * (5 * 4) ** 2
    assert cost(p, 3) < cost(p, 1)
