"""The two ways up, piece by piece: on V itself and on a landscape whose top is known."""

from types import SimpleNamespace

import numpy as np
import pytest
from test_predictor_steps import counted, dense_bfgs
from test_problem_twins import make

from expunge.game import climbing as module
from expunge.game.climbing import Ascent, Point, _direction, _transported, retract
from expunge.game.predictor import fit_predictor
from expunge.game.result import StopReason


def subspace(d, K, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, K)))[0]


def tangent(U, seed):
    A = np.random.default_rng(seed).normal(size=U.shape)
    return A - U @ (U.T @ A)


class Landscape(Ascent):
    """tr UᵀAU over subspaces, whose top is known; each solve is noted."""

    def __init__(self, A):
        self.A, self.tried, self.reached = A, [], None
        self.problem = SimpleNamespace(null=SimpleNamespace(value=1.0))

    def solve(self, U, tol):
        self.tried.append(U)
        G = 2 * self.A @ U
        found = SimpleNamespace(value=float(np.sum(U * (self.A @ U))), accuracy=0.5)
        return Point(U, found, G - U @ (U.T @ G))

    def _metric(self, point):
        return lambda B: B.copy()


HEIGHTS = np.diag([5.0, 4.0, 1.5, 1.0, 0.5, 0.1])


# -- one solve -------------------------------------------------------------------------------------


def test_solves_start_where_the_last_one_ended(monkeypatch):
    asked = []

    def noted(problem, **options):
        asked.append(options)
        return fit_predictor(problem, **options)

    monkeypatch.setattr(module, "fit_predictor", noted)
    _, p = make()
    ascent = Ascent(p)
    one, other = subspace(5, 2), subspace(5, 2, 1)
    first = ascent.solve(one, 1e-8)
    second = ascent.solve(other, 1e-8)
    assert asked[0]["start"] is None
    coef, b = asked[1]["start"]
    np.testing.assert_allclose(coef, first.found.coef - other @ (other.T @ first.found.coef))
    np.testing.assert_array_equal(b, first.found.intercept)
    assert not any(options["exact_intercept"] for options in asked)
    assert ascent.n_passes == p.n_passes == first.found.n_passes + second.found.n_passes
    assert ascent.solve(other, 1e-8).found.n_passes <= 1  # it is there already


def test_small_problems_form_their_hessian_before_the_first_step(monkeypatch):
    formed = counted(monkeypatch, "form_hessian")
    passes = {}
    for limit in (120 * (6 * 4) ** 2, 120 * (6 * 4) ** 2 - 1):
        monkeypatch.setattr(module, "EAGER", limit)
        _, p = make()
        ascent = Ascent(p)
        formed.clear()
        if ascent.eager:
            ascent.warm = first = np.ones((5, 4)) / 9, np.arange(4.0) / 9
        ascent.solve(subspace(5, 1), 1e-3)
        passes[ascent.eager] = [len(formed)]
        if ascent.eager:
            U = subspace(5, 1)
            start = first[0] - U @ (U.T @ first[0])
            np.testing.assert_allclose(formed[0][0], start * p.unit)
            np.testing.assert_array_equal(formed[0][1], first[1])
            ascent.solve(subspace(5, 1, 1), 1e-3)
            assert len(formed) == 1  # it serves the next ones too
    assert passes == {True: [1], False: [0]}
    monkeypatch.setattr("expunge.game.problem.SMALL", 1)
    assert not Ascent(make()[1]).eager  # one that may not be formed is not


def test_a_hessian_of_the_null_model_where_nothing_is_known_yet(monkeypatch):
    formed = counted(monkeypatch, "form_hessian")
    _, p = make()
    Ascent(p).solve(subspace(5, 1), 1e-3)
    theta, b = formed[0]
    assert not theta.any()
    np.testing.assert_array_equal(b, p.null.intercept)


def test_alternation_ends_where_a_step_gains_nothing():
    _, p = make(alpha=1.0)
    ascent = Ascent(p)
    calls, solve = [], ascent.solve
    ascent.solve = lambda U, tol: calls.append(tol) or solve(U, tol)
    start = solve(subspace(5, 1), 1e-10)
    once = ascent.alternate(start, 1, 1e-10)
    assert len(calls) == 1
    assert once.value > start.value
    calls.clear()
    top = ascent.alternate(start, 200, 1e-10)
    assert 3 < len(calls) < 100
    assert set(calls) == {1e-10}
    assert top.value > once.value
    calls.clear()
    assert ascent.alternate(top, 50, 1e-10).value == top.value
    assert len(calls) <= 2


# -- steps -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("K", [1, 2])
def test_the_metric_is_what_its_formula_says(K):
    data, p = make()
    U = subspace(5, K)
    ascent = Ascent(p)
    point = ascent.solve(U, 1e-6)
    S = np.cov(data.X.T, bias=True) / p.unit**2
    kappa = np.trace(point.found.curvature) / 4
    G = U.T @ point.found.raw_gradient / p.unit
    right = G @ G.T
    right = np.linalg.inv(right + 1e-9 * np.trace(right) * np.eye(K))
    A = tangent(U, 1)
    left = (np.eye(5) - U @ U.T) @ (kappa * S + p.alpha * np.eye(5))
    np.testing.assert_allclose(ascent._metric(point)(A), left @ A @ right, rtol=1e-6)


@pytest.mark.parametrize("taken", [0, 1, 4])
def test_a_direction_is_that_of_dense_bfgs(taken):
    U = subspace(6, 2)
    g = tangent(U, 50)
    R = np.random.default_rng(9).normal(size=(12, 12))
    H0 = R @ R.T + np.eye(12)
    pairs = []
    for seed in range(taken):
        s = tangent(U, seed)
        y = s + 0.3 * tangent(U, 20 + seed)
        pairs.append((s, y, 1 / np.sum(s * y)))
    scaled = H0
    if pairs:
        s, y, rho = pairs[-1]
        scaled = H0 / (rho * (y.ravel() @ H0 @ y.ravel()))
    expected = dense_bfgs(scaled, [(s, y) for s, y, _ in pairs]) @ g.ravel()
    found = _direction(g.copy(), pairs, lambda A: (H0 @ A.ravel()).reshape(A.shape))
    np.testing.assert_allclose(found.ravel(), expected, rtol=1e-8)


def test_pairs_are_carried_along_and_the_newest_comes_last():
    hill = Landscape(HEIGHTS)
    top = np.eye(6)[:, :2]
    old, new = (hill.solve(retract(top + t * tangent(top, 1)), 0) for t in (0.2, 0.1))
    M = np.eye(6) - new.U @ new.U.T
    s, y = M @ (new.U - old.U), M @ old.gradient - new.gradient
    kept = [(tangent(old.U, k), tangent(old.U, k), 1.0) for k in range(25)]
    bent = [(tangent(old.U, 0), -tangent(old.U, 0), 1.0)]  # says that the hill bends up
    found = _transported(kept + bent, old, new)
    assert len(found) == module.MEMORY == 20
    assert np.sum(s * y) > 0
    np.testing.assert_allclose(found[-1][0], s, atol=1e-14)
    np.testing.assert_allclose(found[-1][1], y, atol=1e-14)
    for (a, b, rho), (was, _, _) in zip(found[:-1], kept[-19:], strict=True):
        np.testing.assert_allclose(a, M @ was, atol=1e-14)
        np.testing.assert_allclose(b, M @ was, atol=1e-14)
        assert rho == pytest.approx(1 / np.sum(a * b))
    assert found[-1][2] == pytest.approx(1 / np.sum(s * y))


class Slope(Ascent):
    """V rises along a line as it is told: `rise` of how far one has gone."""

    def __init__(self, rise, D):
        self.rise, self.D, self.went = rise, D, []

    def solve(self, U, tol):
        went = float(np.sum(U * self.D) / np.sum(self.D**2) / (U[0, 0] or 1))  # polar coordinates
        self.went.append(went)
        return Point(U, SimpleNamespace(value=self.rise(went)), np.zeros_like(U))


@pytest.mark.parametrize("length", [0.1, 0.4, 0.5, 2.0])
def test_a_step_turns_by_half_a_radian_at_the_most_and_is_cut_until_it_rises(length):
    U, D = np.eye(3)[:, :1], np.array([[0.0], [length], [0.0]])
    start = Point(U, SimpleNamespace(value=0.0), D)  # slope of length²
    slope, first = length**2, min(1.0, 0.5 / length)
    easy = Slope(lambda t: 0.3 * slope * t, D)  # less than the slope says, and enough
    assert easy._line_search(start, D, 0).value == pytest.approx(0.3 * slope * first)
    assert easy.went == pytest.approx([first])
    curved = Slope(lambda t: slope * t - slope * t**2 / (2 * 0.3 * first), D)  # top at 0.3
    curved._line_search(start, D, 0)
    assert curved.went == pytest.approx([first, 0.3 * first])
    steep = Slope(lambda t: slope * t - slope * t**2 / (2 * 0.02 * first), D)
    steep._line_search(start, D, 0)
    assert steep.went[:2] == pytest.approx([first, first / 10])  # not shorter at once
    bumpy = Slope(lambda t: -1e-9 * slope * first if t > 0.6 * first else slope * t, D)
    bumpy._line_search(start, D, 0)
    assert bumpy.went == pytest.approx([first, first / 2], rel=1e-6)
    flat = Slope(lambda t: 0.0, D)
    assert flat._line_search(start, D, 0) is None
    assert len(flat.went) == 12
    assert flat._line_search(start, -D, 0) is None  # downhill: not even tried
    assert flat._line_search(start, 0 * D, 0) is None
    assert len(flat.went) == 12


def test_a_direction_that_fails_is_followed_by_the_plain_one():
    hill = Landscape(HEIGHTS)
    point = hill.solve(subspace(6, 1), 0)
    g = point.gradient
    misleading = [(g, -100 * g, -1 / (100 * np.sum(g * g)))]
    assert np.sum(_direction(g, misleading, hill._metric(point)) * g) < 0
    new = hill._ascend(point, misleading, 0)
    assert new.value > point.value
    assert misleading == []
    hill.tried.clear()
    flat = Point(point.U, point.found, 0 * g)
    assert hill._ascend(flat, [], 0) is None
    assert hill.tried == []


# -- the climb -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("K", "tries"), [(1, 16), (2, 24), (3, 26)])
def test_a_climb_ends_at_the_top_and_is_soon_there(K, tries):
    hill = Landscape(HEIGHTS)
    point, history, reason = hill.climb(subspace(6, K), 100, 0, 1e-7)
    assert reason is StopReason.CONVERGED
    assert point.value == pytest.approx(np.sort(np.diag(HEIGHTS))[-K:].sum(), abs=1e-10)
    assert np.linalg.norm(point.gradient) <= 1e-7
    assert len(hill.tried) <= tries
    values = [step.value for step in history]
    assert values == sorted(values)
    assert [step.step for step in history] == list(range(len(values)))
    assert history[0].accuracy == 0.5


def test_how_a_climb_stops():
    U = subspace(6, 2)
    for steps in (0, 1, 3):
        hill = Landscape(HEIGHTS)
        _, history, reason = hill.climb(U, steps, 0, 1e-7)
        assert len(history) == steps + 1
        assert reason is StopReason.MAX_ITER
    hill = Landscape(HEIGHTS)
    g = np.linalg.norm(hill.solve(U, 0).gradient)
    assert hill.climb(U, 5, 0, 1.001 * g)[2] is StopReason.CONVERGED
    assert len(hill.tried) == 2
    assert len(hill.climb(U, 5, 0, 0.999 * g)[1]) > 1
    hill.problem.null.value = 2.0  # flatness is relative to it
    assert hill.climb(U, 5, 0, 0.501 * g)[2] is StopReason.CONVERGED
    hill._line_search = lambda *_: None
    assert hill.climb(U, 5, 0, 0.0)[2] is StopReason.STALLED
    seen = []
    hill = Landscape(HEIGHTS)
    found = hill.climb(U, 9, 0, 1e-7, lambda record: seen.append(record) or record.step == 2)
    assert found[2] is StopReason.STOPPED
    assert seen == found[1][1:]
    assert len(seen) == 2


def test_an_interruption_leaves_the_last_point():
    def interrupt(record):
        raise KeyboardInterrupt

    U, hill = subspace(6, 2), Landscape(HEIGHTS)
    point, history, reason = hill.climb(U, 9, 0, 1e-7, interrupt)
    assert reason is StopReason.INTERRUPTED
    assert point.value == history[-1].value
    assert len(history) == 2
    np.testing.assert_array_equal(hill.reached, U)
    hill = Landscape(HEIGHTS)
    search, calls = hill._line_search, []

    def late(*args):
        calls.append(args)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return search(*args)

    hill._line_search = late
    with pytest.raises(KeyboardInterrupt):
        hill.climb(U, 9, 0, 1e-7)
    np.testing.assert_array_equal(hill.reached, calls[-1][0].U)


@pytest.mark.parametrize("K", [1, 2, 3])
def test_the_polar_factor_is_the_nearest_basis(K):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(5, K))
    U = retract(A)
    np.testing.assert_allclose(U.T @ U, np.eye(K), atol=1e-14)
    np.testing.assert_allclose(U @ (U.T @ A), A, atol=1e-12)  # of the same columns
    for seed in range(20):
        other = subspace(5, K, seed)
        assert np.linalg.norm(A - U) <= np.linalg.norm(A - other) + 1e-12
