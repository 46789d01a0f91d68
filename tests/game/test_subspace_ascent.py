"""Ascent on V: its gradient, that it never falls, exact answers, brute force, how it stops."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import scipy.stats
from sklearn.datasets import load_digits

import expunge as ex
from expunge.game import climbing
from expunge.game import subspace_ascent as module
from expunge.game.climbing import Ascent, retract
from expunge.game.closed_form import closed_form
from expunge.game.losses import loss_for
from expunge.game.predictor import Problem, fit_predictor
from expunge.game.result import StopReason
from expunge.game.solver import Game, SolveOptions
from expunge.game.subspace_ascent import SubspaceAscent, _distinct, _smaller
from expunge.inputs import check_concept, check_rows
from planted import Planted, plant

GAMES = [
    ("classes", "cross_entropy"),
    ("labels", "cross_entropy"),
    ("vector", "squared"),
    ("classes", "squared_hinge"),
    ("classes", "hinge"),
]
HARD = [5, 7, 19]  # seeds of problems whose best maximum no larger ridge leads to


def problem(data, loss="cross_entropy", *, weights=None, intercept=True, alpha=1e-4):
    rows = check_rows(data.X)
    concept = check_concept(data.y, rows.n_samples)
    loss = loss_for(loss, concept.kind, concept.width).smoothed
    moments = rows.moments(concept, weights)
    options = {"weights": weights, "alpha": alpha, "fit_intercept": intercept}
    return Problem(rows, concept, loss, moments, **options)


def play(p, rank=1, *, seed=0, explore=1, solver=None, start=None, **options):
    solver = solver or SubspaceAscent(explore=explore)
    options = SolveOptions(np.random.default_rng(seed), **options)
    return solver.solve(Game.on(p, rank), options, start=start)


def value_at(p, U, tol=1e-13):
    """V(Q), by a solve of its own."""
    p.set_erasure(ex.Erasure(U, U.T))
    return fit_predictor(p, tol=tol).value


def random_subspace(d, K, seed):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, K)))[0]


# -- the two engines -------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("kind", "loss"), GAMES)
def test_the_gradient_by_finite_differences(kind, loss, intercept):
    p = problem(plant(kind), loss, alpha=1e-2, intercept=intercept)
    U, h = random_subspace(8, 1 if kind == "vector" else 2, 0), 1e-4
    point = Ascent(p).solve(U, 1e-15)
    np.testing.assert_allclose(U.T @ point.gradient, 0, atol=1e-12)  # tangent
    for seed in range(3):
        D = np.random.default_rng(100 + seed).normal(size=U.shape)
        D -= U @ (U.T @ D)
        up, down = (value_at(p, retract(U + t * D), 1e-15) for t in (h, -h))
        slope = float(np.sum(point.gradient * D))
        assert (up - down) / (2 * h) == pytest.approx(slope, rel=2e-4, abs=1e-7)
        assert abs(slope) > 1e-4


@pytest.mark.parametrize("alpha", [1e-1, 1e-2, 1e-4])
@pytest.mark.parametrize(("kind", "loss"), GAMES[:4])
def test_alternation_never_lowers_the_value(kind, loss, alpha):
    p = problem(plant(kind), loss, alpha=alpha)
    ascent = Ascent(p)
    for seed in range(2):
        point = ascent.solve(random_subspace(8, 1, seed), 1e-12)
        first = point.value
        for _ in range(6):
            # the step itself, before `alternate` may refuse it
            U = scipy.linalg.svd(point.found.raw_gradient, full_matrices=False)[0][:, :1]
            new = ascent.solve(U, 1e-12)
            assert new.value >= point.value - 1e-10
            point = new
        assert point.value > first + 1e-6
        whole = ascent.alternate(ascent.solve(random_subspace(8, 1, seed), 1e-12), 6, 1e-12)
        assert whole.value == pytest.approx(point.value, rel=1e-6)


@pytest.mark.parametrize(("kind", "loss"), GAMES)
def test_from_the_null_residual_one_alternation_gives_the_closed_form(kind, loss):
    p = problem(plant(kind), loss)
    own = p.null.rank
    ascent = Ascent(p)
    anywhere = ascent.solve(random_subspace(8, own, 0), 1e-6)
    at_null = replace(anywhere.found, raw_gradient=p.null.gradient)
    found = ascent.alternate(replace(anywhere, found=at_null), 1, 1e-12)
    exact = closed_form(p.null, p.moments)
    assert scipy.linalg.subspace_angles(found.U, exact).max() < 1e-10
    assert found.value == pytest.approx(p.null.value, rel=1e-10)
    assert anywhere.value < 0.95 * p.null.value


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("kind", "loss"), GAMES[:4])
def test_climbing_never_falls(kind, loss, intercept):
    p = problem(plant(kind), loss, intercept=intercept)
    start = random_subspace(8, 1, 3)  # far from the answer, so that there is a way to go
    point, history, _ = Ascent(p).climb(start, 40, 1e-10, 1e-4)
    values = [record.value for record in history]
    assert [record.step for record in history] == list(range(len(values)))
    assert len(values) > 5
    assert min(np.diff(values)) >= -1e-9
    assert values[0] == pytest.approx(value_at(p, start), rel=1e-6)
    assert values[-1] > 1.05 * values[0]
    assert values[-1] == point.value == pytest.approx(value_at(p, point.U), rel=1e-6)


@pytest.mark.parametrize(("kind", "loss"), GAMES[:4])
def test_the_value_is_the_last_of_the_history_and_that_of_the_basis(kind, loss):
    p = problem(plant(kind), loss)
    found = play(p, tol=1e-9)
    values = [record.value for record in found.history]
    assert len(values) > 1
    assert min(np.diff(values)) >= -1e-9
    assert found.value == values[-1] == pytest.approx(value_at(p, found.basis), rel=1e-6)
    np.testing.assert_allclose(found.basis.T @ found.basis, np.eye(1), atol=1e-12)
    if kind != "vector":
        assert 0 < found.history[-1].accuracy < 1


def test_a_start_is_used_instead_of_exploring(monkeypatch):
    p, tried = problem(plant("classes")), []
    solve = Ascent.solve

    def spy(self, U, tol):
        tried.append(U)
        return solve(self, U, tol)

    monkeypatch.setattr(Ascent, "solve", spy)
    monkeypatch.setattr(module, "_Search", None)  # calling it would fail
    start = random_subspace(8, 2, 5)
    found = play(p, 2, start=start)
    np.testing.assert_array_equal(tried[0], start)
    assert found.value > value_at(p, start)


@pytest.mark.parametrize("tol", [1e-6, 1e-4])
@pytest.mark.parametrize(("kind", "loss"), GAMES[:4])
def test_where_it_says_converged_it_is_stationary(kind, loss, tol):
    p = problem(plant(kind), loss)
    found = play(p, tol=tol)
    assert found.reason is StopReason.CONVERGED
    there = Ascent(p).solve(found.basis, 1e-13)
    assert np.linalg.norm(there.gradient) <= 1.2 * 0.1 * np.sqrt(tol) * p.null.value


# -- exact answers and brute force -----------------------------------------------------------------


@pytest.mark.parametrize("K", [1, 2, 3])
@pytest.mark.parametrize("intercept", [True, False])
def test_squared_loss_on_white_rows_has_an_exact_answer(K, intercept):
    """With Σxx = I, V(Q) = tr Σyy - ‖(I - Q)Σxy‖²/(1 + ρ/2): the leading directions of Σxy go."""
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(400, 4)) * [1, 2, 3, 4]
    X = rng.normal(size=(400, 6)) + Y @ rng.normal(size=(4, 6))
    if intercept:
        X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    X = X @ np.linalg.inv(np.linalg.cholesky(X.T @ X / 400)).T
    data = Planted(X + (3.0 if intercept else 0.0), Y, Y)
    p = problem(data, "squared", intercept=intercept)
    found = play(p, K, tol=1e-8)
    U, s, _ = np.linalg.svd(X.T @ Y / 400)
    exact = np.sum(Y**2) / 400 - np.sum(s[K:] ** 2) / (1 + p.ridge / 2)
    assert found.value == pytest.approx(exact, rel=1e-9)
    assert scipy.linalg.subspace_angles(found.basis, U[:, :K]).max() < 1e-3


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["classes", "labels", "vector"])
def test_nothing_tried_at_random_does_better(kind, seed):
    """Thousands of random lines in three dimensions, and many around the answer."""
    data = plant(kind, d=3, n=120, seed=seed)
    loss = "squared"
    p = problem(data, loss)
    found = play(p)
    Y = p.loss.encoder(p.concept)(0, 120)
    X, Y = data.X - data.X.mean(axis=0), Y - Y.mean(axis=0)
    S, A = X.T @ X / 120, X.T @ Y / 120
    rng = np.random.default_rng(0)
    lines = rng.normal(size=(3000, 3))
    lines[1000:] = found.basis[:, 0] + 0.05 * lines[1000:]
    lines /= np.linalg.norm(lines, axis=1, keepdims=True)
    M = np.eye(3) - np.einsum("ni,nj->nij", lines, lines)
    H = M @ S @ M + p.ridge / 2 * np.eye(3)
    gain = np.einsum("nij,nij->n", M @ A, np.linalg.solve(H, M @ A))
    values = np.sum(Y**2) / 120 - gain
    assert found.value >= values.max() - 1e-9
    assert found.value > np.median(values[:1000]) + 1e-3
    assert values.max() > found.value - 1e-3 * p.null.value  # the grid is fine enough to tell


@pytest.mark.parametrize(("kind", "loss"), [GAMES[0], GAMES[1], GAMES[3], GAMES[4]])
def test_no_random_line_does_better_against_other_losses(kind, loss):
    data = plant(kind, d=3, n=120)
    p = problem(data, loss, alpha=1e-2)
    found = play(p)
    lines = np.random.default_rng(0).normal(size=(60, 3, 1))
    lines[30:] = found.basis + 0.1 * lines[30:]
    values = [value_at(p, line / np.linalg.norm(line), 1e-7) for line in lines]
    assert found.value >= max(values[30:]) - 1e-6 * p.null.value
    assert found.value >= max(values[:30]) - 2e-3 * p.null.value  # there may be other maxima
    assert found.value > np.median(values[:30])


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    X = X[:, X.std(axis=0) > 0.5][::5]
    return Planted(X, y[::5], np.eye(10)[y[::5]])


@pytest.mark.parametrize("K", [2, 4])
def test_handwritten_digits(digits, K):
    """Better than the leading directions of XᵀR0 and than the paper's iteration, by far."""
    p = problem(digits)
    found = play(p, K, tol=1e-4)
    svd = p.null.directions[:, :K]
    assert found.value > 1.5 * value_at(p, svd, 1e-6)
    paper = ex.RLACE(K, solver="descent_ascent", max_iter=2000, step_size=0.05, batch_size=64)
    paper.fit(digits.X, digits.y)
    assert found.value > 1.2 * max(record.value for record in paper.history_)
    polished = play(p, K, start=svd, tol=1e-4)
    assert polished.value > 1.5 * value_at(p, svd, 1e-6)
    assert found.value >= polished.value - 1e-3 * p.null.value


@pytest.mark.parametrize(
    ("kind", "loss", "seed"),
    [
        ("classes", "cross_entropy", 1),  # its best maximum is not one at high ridges
        ("classes", "cross_entropy", 3),  # the leading directions lead to a worse one
        ("labels", "cross_entropy", 0),
        ("classes", "squared_hinge", 1),
    ],
)
def test_exploring_is_no_worse_than_polishing_the_leading_directions(kind, loss, seed):
    p = problem(plant(kind, seed=seed), loss)
    floor = play(p, start=p.null.directions[:, :1]).value
    slack = 1e-5 * p.null.value
    some = play(p, explore=4).value
    assert some >= floor - slack
    assert play(p, explore=4, restarts=2).value >= some - slack


# -- several maxima --------------------------------------------------------------------------------


def separate_classes(seed, d=3, classes=5, n=200):
    """Few rows in few dimensions, classes far apart: V has several maxima at a small ridge."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % classes)
    mix = rng.normal(size=(d, d)) / np.sqrt(d)
    X = rng.normal(size=(n, d)) @ mix + 4 * rng.normal(size=(classes, d))[y]
    return Planted(X, y, np.eye(classes)[y])


def blind(p, rank, count, seed):
    """The best of many random subspaces, polished by a method that knows no gradient."""
    rng = np.random.default_rng(seed)
    d = p.moments.n_features
    tried = [random_subspace(d, rank, rng) for _ in range(count)]
    best = max(tried, key=lambda U: value_at(p, U, 1e-5))
    frame = np.linalg.qr(np.hstack([best, rng.normal(size=(d, d - rank))]))[0]
    rest = frame[:, rank:]

    def loss(angles):
        return -value_at(p, retract(best + rest @ angles.reshape(d - rank, rank)), 1e-8)

    options = {"maxfev": 60, "xatol": 1e-3, "fatol": 1e-6}
    found = scipy.optimize.minimize(
        loss, np.zeros((d - rank) * rank), method="Nelder-Mead", options=options
    )
    return -found.fun


@pytest.mark.parametrize("seed", HARD)
def test_blind_search_in_few_dimensions_does_no_better(seed):
    """Maxima of the final ridge that no larger ridge leads to."""
    p = problem(separate_classes(seed))
    by_ridges = play(p, solver=SubspaceAscent(explore=0)).value
    best = blind(p, 1, 80, seed)
    assert by_ridges < 0.99 * best  # so that there is something to be missed
    assert play(p, explore=4).value >= best - 1e-4 * p.null.value


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("kind", "loss"), [*GAMES[:4], ("separate", "cross_entropy")])
def test_more_restarts_are_never_worse(kind, loss, seed):
    data = separate_classes(seed) if kind == "separate" else plant(kind, n=150, d=5, seed=seed)
    values = [play(problem(data, loss), seed=seed, explore=1, restarts=r).value for r in (0, 1, 4)]
    assert min(np.diff(values)) >= 0.0  # not by a rounding error


@pytest.mark.parametrize("n", [300, 9000])
def test_more_restarts_are_never_worse_where_solves_are_dear(monkeypatch, n):
    """The same where the Hessian is never formed; of many rows exploring sees only some."""
    monkeypatch.setattr("expunge.game.problem.SMALL", 1)
    data, values = plant("classes", n=n, d=4), []
    for restarts in (0, 2, 5):
        p = problem(data)
        assert not p.may_form_hessian
        values.append(play(p, 2, restarts=restarts).value)
        assert p.alpha == 1e-4  # the problem is left as it came
    assert min(np.diff(values)) >= 0.0


def test_exploring_compares_starts_at_the_final_ridge():
    """What is best at a larger ridge is not the best there."""
    p = problem(separate_classes(HARD[1]))
    by_ridges = play(p, solver=SubspaceAscent(explore=0)).value
    assert play(p, explore=1).value > 1.2 * by_ridges


@pytest.mark.parametrize("ridges", [(), (1e-2,), (1e-1, 1e-2, 1e-3)])
def test_any_ridges_lead_to_a_flat_place_where_solves_are_dear(monkeypatch, ridges):
    monkeypatch.setattr("expunge.game.problem.SMALL", 1)
    p = problem(plant("classes", n=300, d=4))
    start = random_subspace(4, 2, 0)
    solver = SubspaceAscent(explore=1, ridges=ridges)
    assert not p.may_form_hessian
    for found in (play(p, 2, solver=solver), play(p, 2, solver=solver, start=start)):
        assert found.reason is StopReason.CONVERGED
        assert found.value > value_at(p, start) + 1e-2
        gradient = np.linalg.norm(Ascent(p).solve(found.basis, 1e-10).gradient)
        assert gradient <= 1.1 * 3 * np.sqrt(1e-6) * p.null.value


def test_a_restart_that_finds_more_goes_on_with_the_history():
    data, told = separate_classes(HARD[0]), []
    p = problem(data)
    # nothing but the leading directions at first, so that restarts have something to find
    none = SubspaceAscent(explore=0)
    few = play(problem(data), solver=none)
    many = play(p, solver=none, restarts=8, callback=told.append)
    assert many.value > 1.01 * few.value
    assert tuple(told) == many.history[1:]
    assert many.history[: len(few.history)] == few.history
    values = [record.value for record in many.history]
    assert min(np.diff(values)) >= -1e-9
    assert [record.step for record in many.history] == list(range(len(values)))
    assert many.value == values[-1] == pytest.approx(value_at(p, many.basis), rel=1e-6)


def test_an_interrupted_restart_keeps_the_best(monkeypatch):
    data = separate_classes(HARD[0])
    whole = play(problem(data))

    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(module._Search, "another", interrupted)
    found = play(problem(data), restarts=3)
    assert found.reason is StopReason.INTERRUPTED
    assert found.value == whole.value
    np.testing.assert_array_equal(found.basis, whole.basis)


def test_points_of_equal_value_but_different_subspaces_stay_apart():
    X = np.vstack([np.eye(2), -np.eye(2)]).repeat(25, axis=0)  # a square: its axes are alike
    y = np.arange(4).repeat(25)
    ascent = Ascent(problem(Planted(X, y, None), alpha=3e-2))
    one, other = (ascent.solve(np.eye(2)[:, [j]], 1e-10) for j in (0, 1))
    assert one.value == pytest.approx(other.value, rel=1e-9)
    turned = ascent.solve(retract(np.array([[1.0], [0.01]])), 1e-10)
    assert len(_distinct([one, other, turned])) == 2


@pytest.mark.parametrize("K", [1, 2])
def test_squared_loss_has_its_best_subspace_in_the_span_of_the_gradient(K):
    """Why starts are looked for there. As the ridge goes to zero, erasing U costs the predictor

        tr (UᵀΣ⁻¹U)⁻¹ UᵀΣ⁻¹AAᵀΣ⁻¹U,    A = Σxy,

    which is largest for Σ^(-1/2)U the leading directions of Σ^(-1/2)A: U lies in the span of A.
    """
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(300, 3)) * [1, 2, 3]
    X = rng.normal(size=(300, 7)) @ rng.normal(size=(7, 7)) + Y @ rng.normal(size=(3, 7))
    p = problem(Planted(X, Y, Y), "squared", alpha=1e-8)
    found = play(p, K, tol=1e-9)
    X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    S, A = X.T @ X / 300, X.T @ Y / 300
    white = np.linalg.svd(np.linalg.inv(scipy.linalg.sqrtm(S)) @ A)
    left = np.sum(Y**2) / 300 - np.sum(white[1][K:] ** 2)
    assert found.value == pytest.approx(left, rel=1e-5)
    assert scipy.linalg.subspace_angles(found.basis, p.null.directions).max() < 1e-2
    assert scipy.linalg.subspace_angles(random_subspace(7, K, 0), p.null.directions).max() > 0.5


def test_every_pass_is_counted():
    p = problem(plant("classes"))
    assert play(p, restarts=1).n_passes == p.n_passes


def test_exploring_on_some_rows_keeps_every_class():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 10_000)
    X = rng.normal(size=(10_000, 4)) + rng.normal(size=(4, 4))[y]
    some = _smaller(problem(Planted(X, y, None)), 8, rng)
    assert some.rows.n_samples == 4096
    assert some.null.value == pytest.approx(np.log(3), rel=1e-2)
    y[5] = 3  # one row of its own class, which a sample is likely to miss
    p = problem(Planted(X, y, None))
    for seed in range(6):
        some = _smaller(p, 8, np.random.default_rng(seed))
        assert some.concept.labels == (0, 1, 2, 3)
    found = play(p, 2)
    assert found.basis.shape == (4, 2)


# -- invariance ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "loss"), GAMES[:3])
@pytest.mark.parametrize("change", ["scale", "offset", "rotation"])
def test_units_origin_and_axes_do_not_matter(kind, loss, change):
    data = plant(kind)
    R = scipy.stats.ortho_group.rvs(8, random_state=np.random.default_rng(0))
    X = {"scale": data.X * 1e-8, "offset": data.X + 1e4, "rotation": data.X @ R}[change]
    plain, moved = play(problem(data, loss)), play(problem(replace(data, X=X), loss))
    assert moved.value == pytest.approx(plain.value, rel=1e-6)
    back = R @ moved.basis if change == "rotation" else moved.basis
    assert scipy.linalg.subspace_angles(back, plain.basis).max() < 2e-2


@pytest.mark.parametrize(("kind", "loss"), GAMES[:3])
def test_weights_equal_repetition(kind, loss):
    data = plant(kind)
    w = np.random.default_rng(4).integers(0, 4, 600)
    again = Planted(*(np.repeat(part, w, axis=0) for part in (data.X, data.y, data.Z)))
    weighted = play(problem(data, loss, weights=w.astype(float)))
    repeated = play(problem(again, loss))
    plain = play(problem(data, loss))
    assert weighted.value == pytest.approx(repeated.value, rel=1e-7)
    assert weighted.value != pytest.approx(plain.value, rel=1e-3)
    assert scipy.linalg.subspace_angles(weighted.basis, repeated.basis).max() < 1e-3


def test_equal_fits_give_equal_bytes(tmp_path):
    data = plant("classes")
    for name in ("one", "two"):
        ex.RLACE(2, restarts=1, random_state=5).fit(data.X, data.y).erasure_.save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


# -- at the concept's rank and above ---------------------------------------------------------------


@pytest.mark.parametrize("K", [3, 4, 7])
def test_at_the_rank_and_above_it_is_the_closed_form(K):
    data = plant("classes")
    found = ex.RLACE(K, solver="subspace_ascent").fit(data.X, data.y)
    exact = ex.RLACE(K, solver="closed_form").fit(data.X, data.y)
    assert found.rank_ == K  # never fewer than asked for
    assert found.certificate_.erased
    np.testing.assert_allclose(found.erasure_.matrix(), exact.erasure_.matrix(), atol=1e-8)


def test_a_concept_that_is_not_there():
    X, y = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]), [0, 0, 1, 1]
    assert ex.RLACE(solver="subspace_ascent").fit(X, y).rank_ == 0
    assert ex.RLACE(1, solver="subspace_ascent").fit(X, y).rank_ == 1


def test_hinge_is_played_through_its_smoothing():
    data = plant("classes", n=300)
    hinge = ex.RLACE(2, loss="hinge").fit(data.X, data.y)
    leading = ex.RLACE(loss="hinge").fit(data.X, data.y).erasure_.basis[:2]
    from expunge.game.certificate import certify

    rows, concept = check_rows(data.X), check_concept(data.y, 300)
    start = certify(rows, concept, ex.Erasure(leading.T, leading), loss_for("hinge", "classes", 4))
    assert hinge.certificate_.loss == "hinge"
    assert hinge.certificate_.value > start.value + 0.01
    assert hinge.certificate_.primal - hinge.certificate_.value < 0.01 * hinge.certificate_.bound


# -- how it stops ----------------------------------------------------------------------------------


def test_reaching_max_iter_is_said():
    data = plant("classes")
    with pytest.warns(ex.NotConverged, match="raise max_iter") as caught:
        eraser = ex.RLACE(1, max_iter=1, tol=1e-10).fit(data.X, data.y)
    assert caught[0].filename == __file__  # it points at the call of fit
    assert eraser.n_iter_ == 1
    assert eraser.certificate_.value > 0


def test_a_callback_sees_the_steps_and_can_stop():
    p, seen = problem(plant("classes")), []

    def stop_at_two(record):
        seen.append(record)
        return record.step == 2

    found = play(p, tol=1e-10, callback=stop_at_two)
    assert found.reason is StopReason.STOPPED
    assert [record.step for record in seen] == [1, 2]
    assert tuple(seen) == found.history[1:]


def interrupt(record):
    raise KeyboardInterrupt


def test_an_interruption_keeps_what_was_reached():
    data = plant("classes")
    with pytest.warns(ex.NotConverged, match="interrupted"):
        eraser = ex.RLACE(1, callback=interrupt).fit(data.X, data.y)
    assert eraser.n_iter_ == 1
    assert 0 < eraser.history_[-1].value < eraser.certificate_.bound
    assert eraser.certificate_.value <= eraser.certificate_.primal < eraser.certificate_.bound


@pytest.mark.parametrize("solves", [1, 2, 12, 20])
def test_an_interruption_while_exploring_is_not_swallowed(monkeypatch, solves):
    p, calls = problem(plant("classes")), []
    solve = climbing.fit_predictor

    def interrupted(*args, **options):
        calls.append(1)
        if len(calls) == solves:
            raise KeyboardInterrupt
        return solve(*args, **options)

    monkeypatch.setattr(climbing, "fit_predictor", interrupted)
    found = play(p, 2)
    assert found.reason is StopReason.INTERRUPTED
    assert len(calls) <= solves + 4  # only the values of what was reached
    assert found.basis.shape == (8, 2)
    assert found.value == pytest.approx(value_at(p, found.basis), rel=1e-6)
    assert p.alpha == 1e-4
    leading = value_at(p, p.null.directions[:, :2])
    assert found.value >= leading - 1e-6
    assert found.value > leading + 1e-4 or solves < 20  # by then it has got somewhere


def test_a_bar_on_request_and_only_on_standard_error(capfd):
    data = plant("classes", n=200)
    ex.RLACE(2).fit(data.X, data.y)
    assert capfd.readouterr() == ("", "")
    ex.RLACE(2, verbose=True).fit(data.X, data.y)
    out, err = capfd.readouterr()
    assert out == ""
    assert "subspace ascent" in err


@pytest.mark.parametrize(
    ("name", "value"),
    [("explore", -1), ("explore", 1.5), ("ridges", (0.1, 0.0)), ("ridges", ("x",))],
)
def test_bad_settings(name, value):
    data = plant("classes")
    with pytest.raises(ex.InputError, match=name):
        ex.RLACE(2, solver=SubspaceAscent(**{name: value})).fit(data.X, data.y)
