"""Rounds of nullspace projection, one by one: which directions, how exact, when it ends."""

import numpy as np
import pytest
from test_problem_twins import make

from expunge.erasure import Erasure
from expunge.errors import InputError
from expunge.game import inlp as module
from expunge.game.inlp import Found, _directions, glm_finder, least_squares_finder, nullspace
from expunge.game.losses import loss_for
from expunge.game.predictor import Problem, fit_predictor
from expunge.inputs import check_concept, check_rows
from planted import Planted, plant


def told(coefs, at_chance=()):
    """A finder that says what it is told, round by round."""
    rounds = []

    def find(basis):
        k = len(rounds)
        rounds.append(basis)
        return Found(coefs[k], 10.0 + k, k in at_chance)

    return find, rounds


def axes(*which, d=5):
    return np.eye(d)[:, list(which)]


MOMENTS = make(d=5)[1].moments


# -- round by round --------------------------------------------------------------------------------


def test_directions_are_collected_until_there_are_enough():
    find, rounds = told([axes(0), 2 * axes(1, 3) * [1, 3], axes(2)])
    basis, history = nullspace(find, MOMENTS, 4, verbose=False)
    np.testing.assert_allclose(np.abs(basis), axes(0, 3, 1, 2))  # the strongest first
    assert [(step.step, step.value) for step in history] == [(1, 10.0), (3, 11.0), (4, 12.0)]
    assert [r.shape[1] for r in rounds] == [0, 1, 3]
    find, rounds = told([axes(0), axes(1, 3) * [1, 3]])
    basis, history = nullspace(find, MOMENTS, 2, verbose=False)
    np.testing.assert_allclose(np.abs(basis), axes(0, 3))  # no more than were asked for
    assert len(rounds) == 2


def test_without_a_rank_it_ends_at_chance_and_leaves_one_direction():
    coefs = [axes(k) for k in range(5)]
    for stop in range(4):
        find, rounds = told(coefs, at_chance=(stop,))
        basis, history = nullspace(find, MOMENTS, None, verbose=False)
        assert basis.shape[1] == len(history) == stop
        assert len(rounds) == stop + 1
    find, rounds = told(coefs)
    assert nullspace(find, MOMENTS, None, verbose=False)[0].shape[1] == 4
    assert len(rounds) == 4
    find, rounds = told(coefs, at_chance=(0,))  # a rank that is asked for is taken
    assert nullspace(find, MOMENTS, 2, verbose=False)[0].shape[1] == 2


def test_where_nothing_is_found_the_rest_is_what_varies_least():
    nothing = np.zeros((5, 1))
    find, rounds = told([axes(0), nothing, axes(1)])
    basis, history = nullspace(find, MOMENTS, 3, verbose=False)
    assert len(rounds) == 2
    assert [step.step for step in history] == [1, 3]
    P = np.eye(5) - axes(0) @ axes(0).T
    _, V = np.linalg.eigh(P @ MOMENTS.cov_xx @ P)
    least = V[:, 1:3]  # the first is what was erased
    np.testing.assert_allclose(basis[:, 1:] @ basis[:, 1:].T, least @ least.T, atol=1e-8)
    find, rounds = told([axes(0), nothing, axes(1)])
    basis, history = nullspace(find, MOMENTS, None, verbose=False)
    assert (basis.shape[1], len(history), len(rounds)) == (1, 1, 2)


def test_moments_that_are_no_numbers_are_an_error():
    data = plant("number", n=50, d=3)
    _, p = make("number", loss="squared", d=3, n=50)
    huge = p.rows.moments(p.concept)
    object.__setattr__(huge, "xx", np.full((3, 3), np.nan))
    find, _ = told([np.full((3, 1), np.nan)] * 3)
    with pytest.raises(InputError, match="No 2 directions"):
        nullspace(find, huge, 2, verbose=False)
    assert np.isfinite(data.X).all()


def test_a_column_that_never_varies_is_in_no_direction():
    data = plant("labels", n=60, d=4)
    data.X[:, 2] = 7.0
    rows, concept = check_rows(data.X), check_concept(data.y, 60)
    find, _ = told([np.ones((4, 1))])
    basis, _ = nullspace(find, rows.moments(concept), 1, verbose=False)
    np.testing.assert_allclose(np.abs(basis[:, 0]), np.array([1, 1, 0, 1]) / np.sqrt(3))


def test_the_bar_counts_directions(monkeypatch):
    shown = []

    class Bar:
        def __init__(self, title, total, verbose):
            shown.append((total, verbose))

        __enter__ = lambda self: self  # noqa: E731
        __exit__ = lambda self, *args: None  # noqa: E731

        def update(self, step, text):
            shown.append((step, text))

    monkeypatch.setattr(module, "Progress", Bar)
    nullspace(told([axes(0), axes(1, 2)])[0], MOMENTS, 3, verbose=True)
    assert shown == [(3, True), (1, "loss 10"), (3, "loss 11")]
    shown.clear()
    nullspace(told([axes(0)], at_chance=(0,))[0], MOMENTS, None, verbose=False)
    assert shown == [(4, False)]


# -- directions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_directions_are_those_of_the_svd_outside_the_basis(size):
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(6, 2)))[0]
    left = np.linalg.qr(np.hstack([basis, rng.normal(size=(6, 4))]))[0][:, 2:]
    coef = left[:, :3] @ np.diag([3.0, 2.0, 1.0]) @ rng.permutation(np.eye(3))
    found = _directions(size * (coef + basis @ rng.normal(size=(2, 3))), basis)
    assert found.shape == (6, 3)
    np.testing.assert_allclose(np.abs(found.T @ left[:, :3]), np.eye(3), atol=1e-9)
    np.testing.assert_allclose(basis.T @ found, 0, atol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(found, axis=0), 1, rtol=1e-14)


def test_directions_that_are_rounding_are_none():
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(6, 2)))[0]
    out = np.linalg.qr(np.hstack([basis, rng.normal(size=(6, 4))]))[0][:, 2:]
    weak = out[:, :2] * [1.0, 1e-9]
    assert _directions(weak, basis).shape == (6, 1)  # nothing beside the other
    two = _directions(out[:, :2] * [1.0, 1e-7] + basis, basis)
    np.testing.assert_allclose(two.T @ np.hstack([two, basis]), np.eye(2, 4), atol=1e-14)
    inside = basis + 1e-9 * out[:, :2]
    assert _directions(inside, basis).shape == (6, 0)  # nothing beside what is gone
    assert _directions(np.zeros((6, 2)), basis).shape == (6, 0)
    for bad in (np.nan, np.inf):
        broken = out[:, :2].copy()
        broken[3, 1] = bad
        assert _directions(broken, basis).shape == (6, 0)


# -- predictors ------------------------------------------------------------------------------------


def in_scale(kind, scale, loss):
    """Rows in other units, with their problem."""
    data = plant(kind, n=120, d=5)
    data = Planted(scale * data.X, data.y, data.Z)
    rows, concept = check_rows(data.X), check_concept(data.y, 120)
    loss = loss_for(loss, concept.kind, concept.width)
    return data, Problem(rows, concept, loss, rows.moments(concept), alpha=1e-2)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize(("alpha", "scale"), [(0.0, 1.0), (0.5, 1.0), (0.5, 1e-7), (0.5, 1e7)])
def test_rounds_of_least_squares_are_ridge_regressions_on_what_is_left(alpha, center, scale):
    data, p = in_scale("vector", scale, "squared")
    find = least_squares_finder(p.moments, alpha=alpha, center=center)
    U = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 2)))[0]
    X, Y = data.X, data.Z
    if center:
        X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    n = len(X)
    for basis in (np.zeros((5, 0)), U):
        M = np.eye(5) - basis @ basis.T
        F = X @ M
        ridge = alpha * data.X.var(axis=0).mean()
        coef = np.linalg.pinv(F.T @ F / n + ridge * M, rcond=1e-10) @ (F.T @ Y / n)
        found = find(basis)
        np.testing.assert_allclose(found.coef, coef, atol=1e-9 / scale)
        left = np.sum(Y**2) / n - np.sum(coef * (F.T @ Y / n))
        assert found.value == pytest.approx(left, rel=1e-10)
        assert not found.at_chance


@pytest.mark.parametrize("scale", [1e-7, 1.0, 1e7])
def test_where_nothing_is_left_least_squares_find_nothing(scale):
    data, p = in_scale("vector", scale, "squared")
    find = least_squares_finder(p.moments, alpha=0.0, center=True)
    cross = (data.X - data.X.mean(axis=0)).T @ (data.Z - data.Z.mean(axis=0))
    found = find(np.linalg.qr(cross)[0])
    assert found.coef.shape == (5, 2)
    assert not found.coef.any()
    assert found.value == pytest.approx(data.Z.var(axis=0).sum())


def noted(monkeypatch):
    asked = []

    def fit(problem, **options):
        asked.append((options["tol"], problem.hessian, list(problem.curvature_pairs)))
        assert not options["exact_intercept"]
        return fit_predictor(problem, **options)

    monkeypatch.setattr(module, "fit_predictor", fit)
    return asked


@pytest.mark.parametrize(("tol", "used"), [(None, None), (1e-3, 1e-3), (1e-30, None)])
def test_how_exact_a_round_is(monkeypatch, tol, used):
    asked = noted(monkeypatch)
    _, p = make("labels", alpha=1e-2)
    find = glm_finder(p, tol=tol)
    U = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 1)))[0]
    for basis in (np.zeros((5, 0)), U):
        found = find(basis)
        assert np.abs(basis.T @ found.coef).max(initial=0) < 1e-12
        assert np.abs(found.coef).max() > 1e-2
        assert not found.at_chance
    exact = 1e-20 / (2 * 1e-2 * p.null.value)  # a gradient of 1e-10
    assert [tol for tol, *_ in asked] == pytest.approx([used or exact] * 2, rel=1e-9, abs=0)
    assert all(hessian is None and not pairs for _, hessian, pairs in asked)  # each on its own
    alone = fit_predictor(make("labels", alpha=1e-2)[1], tol=1e-14)
    first = glm_finder(make("labels", alpha=1e-2)[1], tol=tol)(np.zeros((5, 0)))
    assert first.value == pytest.approx(alone.value, rel=1e-2 if used else 1e-12)


def test_what_is_below_the_tolerance_is_looked_at_again(monkeypatch):
    asked = noted(monkeypatch)
    _, p = make("labels", alpha=1e-2)
    seen = []
    find = glm_finder(p, lambda found: seen.append(found) or True, tol=50.0)
    found = find(np.zeros((5, 0)))  # such a fit does not move at all
    exact = 1e-20 / (2 * 1e-2 * p.null.value)
    assert [tol for tol, *_ in asked] == pytest.approx([50.0, exact], rel=1e-9, abs=0)
    assert found.at_chance
    assert len(seen) == 1
    assert np.abs(found.coef).max() > 1e-2
    assert not Found(found.coef, found.value).at_chance  # unless it is said
    asked.clear()
    nothing = find(p.null.directions)
    assert len(asked) == 2
    assert not nothing.coef.any()
    assert nothing.value == pytest.approx(p.null.value)


@pytest.mark.parametrize("scale", [1e-10, 1e10])
def test_what_is_nothing_does_not_depend_on_units(scale):
    _, p = in_scale("labels", scale, "cross_entropy")
    find = glm_finder(p)
    assert np.abs(find(np.zeros((5, 0))).coef).max() * scale > 1e-2
    assert not find(p.null.directions).coef.any()


def test_rows_are_held_for_all_rounds():
    _, p = make("labels", alpha=1e-2)
    find = glm_finder(p)
    expected = glm_finder(make("labels", alpha=1e-2)[1])(np.zeros((5, 0)))
    p.rows = None
    np.testing.assert_allclose(find(np.zeros((5, 0))).coef, expected.coef, rtol=1e-9)


def test_without_an_intercept_rows_keep_their_origin():
    _, p = make("labels", alpha=1e-2, fit_intercept=False)
    U = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 1)))[0]
    found = glm_finder(p)(U)
    _, twin = make("labels", alpha=1e-2, fit_intercept=False)
    twin.set_erasure(Erasure(U, U.T))
    assert found.value == pytest.approx(fit_predictor(twin, tol=1e-13).value, rel=1e-10)
