"""The predictor's solver step by step: directions, when it stops, what it keeps, its bound."""

import numpy as np
import pytest
from test_problem_twins import BASIS, ERASURES, UNITS, make, point

import expunge as ex
from expunge.game import predictor as module
from expunge.game import problem as problem_module
from expunge.game.losses import SmoothHinge
from expunge.game.null_model import Observed, balancing_point
from expunge.game.predictor import _Lbfgs, dual_bound, fit_predictor
from expunge.game.problem import Problem
from expunge.inputs import check_concept, check_rows
from planted import plant


def gradient_at(p, found):
    """The gradient in Θ and b at a predictor, in scaled units."""
    _, g, g_b, _ = p.evaluate(found.coef * p.unit, found.intercept)
    return g, g_b if p.fit_intercept else 0 * g_b


# -- directions ------------------------------------------------------------------------------------


def dense_bfgs(H0, pairs):
    """The inverse Hessian that BFGS makes of a first guess, as a matrix."""
    H = H0
    for s, y in pairs:
        s, y = s.ravel(), y.ravel()
        V = np.eye(len(s)) - np.outer(s, y) / (s @ y)
        H = V @ H @ V.T + np.outer(s, s) / (s @ y)
    return H


@pytest.mark.parametrize("formed", [False, True])
@pytest.mark.parametrize("taken", [0, 1, 4])
def test_a_direction_is_that_of_dense_bfgs(taken, formed):
    """Its first guess is scaled to the last pair unless it is the Hessian itself."""
    _, p = make("labels", alpha=1e-2)
    if formed:
        p.form_hessian(*point(p))
    state = _Lbfgs(p, *point(p))
    for _ in range(taken):
        assert state.step()
    assert len(state.pairs) == state.age == taken
    guess = p.inverse(state.got.curvature) if taken == 0 else state.inverse
    g, m = state.g, state.g.shape[1]
    H0 = np.array([guess(e.reshape(-1, m)).ravel() for e in np.eye(g.size)]).T
    pairs = [(s, y) for s, y, _ in state.pairs]
    if pairs and not formed:
        s, y = pairs[-1]
        H0 = H0 * np.sum(s * y) / (y.ravel() @ H0 @ y.ravel())
    expected = -(dense_bfgs(H0, pairs) @ g.ravel()).reshape(g.shape)
    np.testing.assert_allclose(state._direction(), expected, rtol=1e-8)


def test_pairs_are_of_the_last_steps_and_of_those_that_curve():
    _, p = make("labels")
    state = _Lbfgs(p, *point(p))
    shape = state.g.shape
    steps = [np.full(shape, float(k)) for k in range(1, module.MEMORY + 4)]
    for s in steps:
        state._remember(s, 2 * s)
        state._remember(s, -s)  # says that the objective bends down
        state._remember(s, 0 * s)
    assert state.age == 3 * len(steps)
    assert len(state.pairs) == module.MEMORY == 40
    for (s, y, rho), expected in zip(state.pairs, steps[-40:], strict=True):
        np.testing.assert_array_equal(s, expected)
        np.testing.assert_array_equal(y, 2 * expected)
        assert rho == pytest.approx(1 / np.sum(s * y))


@pytest.mark.parametrize("intercept", [True, False])
def test_pairs_of_the_last_solve_are_cut_to_what_is_left(intercept, monkeypatch):
    monkeypatch.setattr(problem_module, "SMALL", 1)
    _, p = make("binary", alpha=1e-2, fit_intercept=intercept)
    fit_predictor(p)
    kept = p.curvature_pairs
    assert kept
    p.set_erasure(ex.Erasure(BASIS, BASIS.T))
    state = _Lbfgs(p, *point(p))
    M = np.eye(6)
    M[:5, :5] -= BASIS @ BASIS.T
    assert len(state.pairs) == len(kept)
    for (s, y, rho), (old_s, old_y) in zip(state.pairs, kept, strict=True):
        np.testing.assert_allclose(s, M @ old_s, atol=1e-14)
        np.testing.assert_allclose(y, M @ old_y, atol=1e-14)
        assert rho == pytest.approx(1 / np.sum(s * y))
    p.curvature_pairs = [(old_s, -old_y) for old_s, old_y in kept]
    assert _Lbfgs(p, *point(p)).pairs == []  # they would lead uphill
    p.curvature_pairs = kept
    p.set_erasure(ERASURES["half"])
    assert _Lbfgs(p, *point(p)).pairs == []  # what it leaves is no subspace


def test_pairs_of_the_last_solve_save_passes(monkeypatch):
    monkeypatch.setattr(problem_module, "SMALL", 1)
    passes = {True: 0, False: 0}
    for keeps in passes:
        for seed in range(4):
            _, p = make("binary", alpha=1e-5, n=400, d=12)
            first = fit_predictor(p, exact_intercept=False)
            u = np.linalg.qr(np.random.default_rng(seed).normal(size=(12, 1)))[0]
            p.set_erasure(ex.Erasure(u, u.T))
            if not keeps:
                p.curvature_pairs = []
            start = first.coef - u @ (u.T @ first.coef), first.intercept
            passes[keeps] += fit_predictor(p, start=start, exact_intercept=False).n_passes
    assert passes[True] < passes[False]


def test_pairs_that_lead_uphill_are_forgotten():
    _, p = make("labels")
    state = _Lbfgs(p, *point(p))
    f, g = state.f, state.g.copy()
    state.pairs = [(g, -100 * g, -1 / (100 * np.sum(g * g)))]
    assert np.sum(state._direction() * g) > 0
    assert state.step()
    assert state.f < f
    assert len(state.pairs) == 1  # only the new one


def test_no_way_down_is_said():
    _, p = make("labels")
    state = _Lbfgs(p, *point(p))
    state.inverse = lambda A: -A
    assert not state.step()
    state.inverse = lambda A: 1e-300 * A  # a step below the last digit
    passes = p.n_passes
    assert not state.step()
    assert p.n_passes == passes


# -- when it stops ---------------------------------------------------------------------------------


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("kind", ["binary", "labels"])
def test_it_goes_on_until_the_gradient_is_small_and_no_further(kind, exact):
    _, p = make(kind, alpha=1e-2, n=80, d=3)
    passes = []
    for tol in np.geomspace(1e-1, 1e-11, 41):
        p.hessian, p.curvature_pairs = None, []
        found = fit_predictor(p, tol=tol, exact_intercept=exact)
        g, g_b = gradient_at(p, found)
        target = np.sqrt(2 * 1e-2 * tol * p.null.value)
        assert found.converged
        assert found.gradient_norm == pytest.approx(np.linalg.norm(g), rel=1e-6, abs=1e-15)
        assert exact or np.hypot(np.linalg.norm(g), np.linalg.norm(g_b)) <= 1.0001 * target
        assert np.linalg.norm(g) <= 1.1 * target
        passes.append(found.n_passes)
    assert passes[0] < passes[20] < passes[40]


@pytest.mark.parametrize("exact", [True, False])
def test_passes_are_limited_and_counted(exact):
    _, p = make("binary", alpha=1e-4)
    need = fit_predictor(make("binary", alpha=1e-4)[1], exact_intercept=False).n_passes
    assert need > 6
    for most in (1, 2, 3, 6):
        p = make("binary", alpha=1e-4)[1]
        found = fit_predictor(p, max_passes=most, exact_intercept=exact)
        assert found.n_passes == p.n_passes
        assert found.n_passes == most or (exact and found.n_passes > most)
        assert not found.converged
        assert found.value == pytest.approx(
            p.evaluate(found.coef * p.unit, found.intercept)[0], rel=1e-12
        )


def test_it_says_converged_up_to_twice_the_target():
    """Polishing the intercept moves the gradient in Θ a little."""
    _, p = make("labels")
    state = _Lbfgs(p, *point(p))
    norm = np.linalg.norm(state.g[:-1])
    for times, expected in ((0.9, True), (1.9, True), (2.1, False)):
        assert state.finish(norm / times, bounded=False).converged == expected


def test_a_warm_start_is_where_it_begins():
    _, p = make("labels", units=np.array([0.5, 1.0, 2.0, 3.0, 0.7]))
    theta, b = point(p)
    found = fit_predictor(p, start=(theta / p.unit, b), max_passes=1, exact_intercept=False)
    np.testing.assert_allclose(found.coef, theta / p.unit)
    np.testing.assert_array_equal(found.intercept, b)
    assert found.value == pytest.approx(p.evaluate(theta, b)[0], rel=1e-12)
    assert found.lower_bound == 0.0  # none was asked for
    np.testing.assert_array_equal(found.raw_gradient, p.evaluate(theta, b)[3].coef)


@pytest.mark.parametrize("kind", ["binary", "labels", "classes"])
@pytest.mark.parametrize("far", [0.0, 1.5, 3.0])
def test_the_intercept_is_polished_however_early_one_stops(kind, far):
    _, p = make(kind)
    theta, b = point(p)
    start = theta / p.unit, b + far * (-1) ** np.arange(len(b))
    rough = fit_predictor(p, start=start, max_passes=1, exact_intercept=False)
    exact = fit_predictor(p, start=start, max_passes=1)
    assert np.abs(gradient_at(p, rough)[1]).max() > 1e-2
    assert np.abs(gradient_at(p, exact)[1]).max() < 1e-12
    np.testing.assert_array_equal(exact.coef, rough.coef)  # b alone
    assert exact.value < rough.value
    assert exact.n_passes <= 17


def test_one_step_polishes_the_intercept_of_a_quadratic():
    _, p = make("vector", loss="squared")
    theta, b = point(p)
    found = fit_predictor(p, start=(theta / p.unit, b + 2), max_passes=1)
    assert np.abs(gradient_at(p, found)[1]).max() < 1e-14
    assert found.n_passes <= 3


def test_without_an_intercept_there_is_nothing_to_polish():
    _, p = make("labels", fit_intercept=False)
    theta, _ = point(p)
    found = fit_predictor(p, start=(theta / p.unit, np.zeros(3)), max_passes=1)
    assert found.n_passes == 1
    assert not found.intercept.any()


# -- guesses of the Hessian ------------------------------------------------------------------------


def counted(monkeypatch, name):
    calls, method = [], getattr(Problem, name)

    def counting(self, *args):
        calls.append(args)
        return method(self, *args)

    monkeypatch.setattr(Problem, name, counting)
    return calls


def test_a_slow_solve_forms_the_hessian_and_keeps_it(monkeypatch):
    formed = counted(monkeypatch, "form_hessian")
    _, p = make("classes", alpha=1e-5)
    state = _Lbfgs(p, *point(p))
    for taken in range(1, 12):
        assert state.step()
        assert len(formed) == (taken > module.PATIENCE)
    assert len(state.pairs) == 1  # those of the first guess went with it
    assert state.age == 1
    assert p.hessian is not None
    state.finish(0.0, bounded=False)
    np.testing.assert_array_equal(p.curvature_pairs[0][0], state.pairs[0][0])


def test_where_no_hessian_can_be_formed_pairs_are_all_there_is(monkeypatch):
    monkeypatch.setattr(problem_module, "SMALL", 1)
    formed, guessed = (counted(monkeypatch, name) for name in ("form_hessian", "inverse"))
    _, p = make("binary", alpha=1e-7, n=60)
    state = _Lbfgs(p, *point(p))
    for taken in range(1, 13):
        assert state.step()
        assert len(state.pairs) == taken
    assert not formed
    assert len(guessed) == 2  # another with the curvature of later


def test_two_levels_are_formed_anew_every_five_steps_and_forget_pairs(monkeypatch):
    monkeypatch.setattr(problem_module, "SMALL", 1)
    guessed = counted(monkeypatch, "inverse")
    _, p = make("classes", alpha=1e-5)
    state = _Lbfgs(p, *point(p))
    assert p.two_level
    for taken in range(12):
        assert len(state.pairs) == (0 if taken == 0 else (taken - 1) % 5 + 1)
        assert state.step()
        assert len(guessed) == taken // 5 + 1
    np.testing.assert_array_equal(guessed[0][1], point(p)[0])
    np.testing.assert_array_equal(guessed[0][2], point(p)[1])
    p.curvature_pairs = [(s, y) for s, y, _ in state.pairs]
    assert _Lbfgs(p, *point(p)).pairs == []


def test_a_formed_hessian_needs_no_pairs_of_the_last_solve():
    _, p = make("classes", alpha=1e-5)
    fit_predictor(p)
    assert p.hessian is not None
    assert p.curvature_pairs
    assert _Lbfgs(p, *point(p)).pairs == []


# -- the lower bound -------------------------------------------------------------------------------


CASES = [("labels", "cross_entropy"), ("classes", "cross_entropy"), ("vector", "squared")]


@pytest.mark.parametrize("units", [None, UNITS], ids=["one unit", "many"])
@pytest.mark.parametrize("name", ["nothing", "about a point", "oblique"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("kind", "loss"), CASES)
def test_the_bound_holds_at_any_point_and_is_reached_at_the_best(
    kind, loss, intercept, name, units
):
    options = {"fit_intercept": intercept, "units": units, "alpha": 0.3}
    _, p = make(kind, loss=loss, erasure=ERASURES[name], **options)
    found = fit_predictor(p, tol=1e-13)
    best = found.coef * p.unit, found.intercept
    assert found.lower_bound == pytest.approx(found.value, rel=1e-9)
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-2, 0.1, 1.0, 10.0):
        theta = best[0] + size * rng.normal(size=best[0].shape)
        b = best[1] + (size * rng.normal(size=len(best[1])) if intercept else 0)
        value, gradient, slope, got = p.evaluate(theta, b)
        bound = dual_bound(p, theta, b, got)
        assert 0 <= bound <= found.value + 1e-12
        dual = value - 0.15 * np.sum(theta**2) - (b - p.null.intercept) @ slope
        R = gradient - 0.3 * theta
        dual -= np.sum(theta * R)
        if intercept:
            seen = Observed(p.rows, p.concept, None)
            fixed, G, t = balancing_point(p.loss, p.moments, p.null, slope, seen)
            dual, R = (1 - t) * dual + t * fixed, (1 - t) * R + t * p.erase(G / p.unit)
        expected = dual - np.sum(R**2) / 0.6
        assert bound == pytest.approx(max(expected, 0), rel=1e-9)
        assert bound > 0.9 * found.value or size > 1e-3
        assert bound < found.value - 1e-3 or size < 10


def test_a_loss_with_flat_parts_is_solved_too():
    """No curvature at all at the start: the ridge alone guides the first step."""
    data = plant("binary", n=200, d=4)
    rows, concept = check_rows(data.X), check_concept(data.y, 200)
    p = Problem(rows, concept, SmoothHinge(0.1), rows.moments(concept), alpha=1e-2)
    start = np.zeros((4, 1)), np.array([30.0])
    found = fit_predictor(p, start=start, tol=1e-8)
    cold = fit_predictor(p, tol=1e-8)
    assert found.value == pytest.approx(cold.value, rel=1e-5)
