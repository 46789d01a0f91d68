"""The inner problem: against scikit-learn, scipy, and rows erased by hand."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from test_closed_form import KIND_OF, encoded

import expunge as ex
from expunge.game.losses import Huber
from expunge.game.predictor import Problem, _Lbfgs, fit_predictor
from expunge.inputs import check_concept, check_rows
from planted import plant


def problem(data, kind, loss_name, *, X=None, **options):
    rows = check_rows(data.X if X is None else X)
    concept = check_concept(data.y, rows.n_samples)
    assert concept.kind == KIND_OF.get(kind, "continuous")
    loss = encoded(kind, loss_name, data.Z)[0]
    moments = rows.moments(concept, options.get("weights"))
    return Problem(rows, concept, loss.surrogates[-1], moments, **options)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", ["binary", "classes"])
def test_equals_logistic_regression_of_scikit_learn(kind, intercept, weighted):
    data = plant(kind)
    w = np.random.default_rng(5).uniform(0.1, 2, len(data.X)) if weighted else None
    p = problem(data, kind, "cross_entropy", fit_intercept=intercept, alpha=1e-2, weights=w)
    found = fit_predictor(p, tol=1e-14)
    total = len(data.X) if w is None else w.sum()
    model = LogisticRegression(
        C=1 / (p.ridge * total), fit_intercept=intercept, tol=1e-12, max_iter=10_000
    ).fit(data.X, data.y, sample_weight=w)
    coef = found.coef.T
    if kind == "classes":
        coef = coef - coef.mean(axis=0)
    np.testing.assert_allclose(coef, model.coef_, atol=2e-5)
    assert found.converged


def test_equals_ridge_regression():
    data = plant("vector")
    p = problem(data, "vector", "squared", alpha=1e-2)
    found = fit_predictor(p, tol=1e-15)
    model = Ridge(alpha=p.ridge / 2 * len(data.X)).fit(data.X, data.y)
    np.testing.assert_allclose(found.coef.T, model.coef_, atol=1e-8)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", ["binary", "labels"])
def test_seeing_through_an_erasure_equals_erasing_the_rows(kind, intercept):
    data, rng = plant(kind), np.random.default_rng(3)
    erasure = ex.Erasure(
        rng.normal(size=(8, 2)) / 3, rng.normal(size=(2, 8)) / 3, rng.normal(size=8)
    )
    seen = problem(data, kind, "cross_entropy", fit_intercept=intercept, erasure=erasure)
    # the same ridge for both: relative to the variance before erasure
    plain = problem(data, kind, "cross_entropy", X=erasure(data.X), fit_intercept=intercept)
    plain.unit = seen.unit
    theta, b = rng.normal(size=(8, data.Z.shape[1])), rng.normal(size=data.Z.shape[1])
    if intercept:
        b_plain = b
        f1, g1, h1, _ = seen.evaluate(theta, b)
        f2, g2, h2, _ = plain.evaluate(theta, b_plain)
    else:
        f1, g1, h1, _ = seen.evaluate(theta, 0 * b)
        f2, g2, h2, _ = plain.evaluate(theta, 0 * b)
    assert f1 == pytest.approx(f2)
    np.testing.assert_allclose(g1, g2, atol=1e-12)
    np.testing.assert_allclose(h1, h2, atol=1e-12)


def test_gradient_matches_finite_differences():
    data, rng = plant("classes"), np.random.default_rng(0)
    erasure = ex.RLACE(5).fit(data.X, data.y).erasure_
    p = problem(data, "classes", "cross_entropy", erasure=erasure)
    theta, b = rng.normal(size=(8, 4)), rng.normal(size=4)
    _, gradient, gradient_b, _ = p.evaluate(theta, b)
    direction, direction_b, h = rng.normal(size=(8, 4)), rng.normal(size=4), 1e-6
    up = p.evaluate(theta + h * direction, b + h * direction_b)[0]
    down = p.evaluate(theta - h * direction, b - h * direction_b)[0]
    slope = np.sum(gradient * direction) + gradient_b @ direction_b
    assert (up - down) / (2 * h) == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("passes", [1, 3, 6, 100])
def test_the_lower_bound_holds_however_early_one_stops(passes):
    data = plant("classes")
    exact = fit_predictor(problem(data, "classes", "cross_entropy"), tol=1e-13)
    early = fit_predictor(problem(data, "classes", "cross_entropy"), max_passes=passes)
    assert early.lower_bound <= exact.value + 1e-12
    assert early.value >= exact.value - 1e-12
    assert exact.value - exact.lower_bound < 1e-9


def test_a_warm_start_saves_passes():
    data = plant("classes")
    cold = fit_predictor(problem(data, "classes", "cross_entropy"))
    warm = fit_predictor(
        problem(data, "classes", "cross_entropy"), start=(cold.coef, cold.intercept)
    )
    assert warm.n_passes < cold.n_passes / 2
    assert warm.value == pytest.approx(cold.value, rel=1e-8)


class NoWayDown(Problem):
    """Whatever step is taken, the value rises."""

    def evaluate(self, theta, b):
        value, *rest = super().evaluate(theta, b)
        return value + self.n_passes, *rest


def test_a_search_that_finds_no_way_down_ends_and_says_so():
    data = plant("binary")
    rows, concept = check_rows(data.X), check_concept(data.y, len(data.X))
    loss = encoded("binary", "cross_entropy", data.Z)[0]
    p = NoWayDown(rows, concept, loss, rows.moments(concept))
    found = fit_predictor(p, max_passes=1000, exact_intercept=False)
    assert not found.converged
    assert found.n_passes < 50
    assert not found.coef.any()


@pytest.mark.parametrize("unit", [1e-4, 1.0, 1e4])
def test_a_step_that_changes_the_value_by_rounding_is_judged_by_its_slope(unit):
    """In whatever units the loss is: values of one size differ by rounding, or they do not."""
    data = plant("number")
    rows, concept = check_rows(data.X), check_concept(unit * data.y, len(data.X))
    p = Problem(rows, concept, Huber(unit / 2), rows.moments(concept))
    state = _Lbfgs(p, np.zeros_like(p.null.gradient), p.null.intercept)
    slope = -state.f
    assert state._accept(0.9 * state.f, slope, slope, 1.0)
    assert state._accept(state.f * (1 + 1e-14), slope / 2, slope, 1.0)
    assert not state._accept(state.f * (1 + 1e-14), slope, slope, 1.0)
    assert not state._accept(state.f * (1 + 1e-11), slope / 2, slope, 1.0)


@pytest.mark.parametrize("t", [1.0, 0.25])
def test_a_step_too_long_is_cut_to_the_lowest_point_of_a_parabola(t):
    data = plant("binary")
    p = problem(data, "binary", "cross_entropy")
    state = _Lbfgs(p, np.zeros_like(p.null.gradient), p.null.intercept)
    slope = -3.0
    for lowest, expected in ((0.3 * t, 0.3 * t), (0.01 * t, 0.1 * t), (0.49 * t, 0.49 * t)):
        f = state.f + slope * t - slope * t * t / (2 * lowest)  # the parabola at t
        assert state._shorter(t, f, slope) == pytest.approx(expected)
    assert state._shorter(t, np.inf, slope) == pytest.approx(t / 10)


def test_rows_in_single_precision_are_no_excuse_for_a_bound_in_single_precision():
    """Only a solve that asks for no bound may form its products there."""
    data = plant("classes")
    X = data.X.astype(np.float32)
    narrow, wide = (
        problem(data, "classes", "cross_entropy", X=rows) for rows in (X, X.astype(np.float64))
    )
    for tol in (1e-3, 1e-9):
        found, expected = (fit_predictor(p, tol=tol) for p in (narrow, wide))
        assert found.value == pytest.approx(expected.value, rel=1e-13)
        assert found.lower_bound == pytest.approx(expected.lower_bound, rel=1e-11)
    rough, exact = (fit_predictor(p, tol=1e-3, exact_intercept=False) for p in (narrow, wide))
    assert rough.value == pytest.approx(exact.value, rel=1e-3)
    assert rough.value != exact.value
