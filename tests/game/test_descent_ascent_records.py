"""What a run of the paper's iteration keeps, how it judges, and with how much work."""

import itertools

import numpy as np
import pytest
from test_descent_ascent import DenseTwin, problem

import expunge as ex
from expunge.game import descent_ascent as module
from expunge.game.descent_ascent import DescentAscent, _Moves, _Run
from expunge.game.fantope import Fantope
from expunge.game.predictor import fit_predictor
from expunge.game.result import StopReason
from expunge.game.solver import Game, SolveOptions
from planted import Planted, plant


def run_of(p, rank=1, settings=None, seed=0, **options):
    options = {"step_size": 0.1, "batch_size": 16, **options}
    return _Run(p, rank, settings or DescentAscent(), SolveOptions(seeded(seed), **options))


def seeded(seed=0):
    return np.random.default_rng(seed)


def moved(kind, offset, dtype):
    """Rows whose columns have a mean of so many standard deviations."""
    data = plant(kind)
    X = data.X - data.X.mean(axis=0)
    X = X / X.std() + offset
    return Planted(X.astype(dtype), data.y, data.Z)


# -- the iteration ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("offset", "exact"), [(0.0, False), (25.0, False), (40.0, True)])
def test_float32_rows_far_from_zero_are_read_in_float64(offset, exact):
    data = moved("classes", offset, np.float32)
    p = problem(data)
    run = run_of(p, 2, DescentAscent(width=None), 5)
    wide = Planted(data.X.astype(float), data.y, data.Z)
    twin = DenseTwin(
        wide,
        p.loss.encoder(p.concept)(0, 600),
        p.loss,
        2,
        5,
        start="vertex",
        intercept=True,
        weights=None,
        size=0.1,
        batch=16,
    )
    for _ in range(20):
        run.iterate()
        twin.iterate(0.0)
    error = np.abs(run.theta - twin.theta).max()
    assert (error < 1e-9) == exact
    assert error < 1e-2


def test_where_it_starts():
    p = problem(plant("classes"))
    run = run_of(p, 2, DescentAscent(start="center"))
    np.testing.assert_allclose(run.Q.spectrum(), 2 / 8)
    assert not run.b.any()
    assert run.width == 2 + 2 * 4 + 32
    assert run_of(p, 2, DescentAscent(width=5)).width == 5
    assert run_of(p, 2, DescentAscent(width=None)).width is None
    sizes = [np.linalg.norm(run_of(p, 2, seed=seed).theta) ** 2 for seed in range(60)]
    assert np.mean(sizes) == pytest.approx(4, rel=0.1)  # columns of length one on average
    vertex = run_of(p, 2).Q
    np.testing.assert_allclose(vertex.spectrum(), [1, 1, 0, 0, 0, 0, 0, 0], atol=1e-12)


@pytest.mark.parametrize("intercept", [True, False])
def test_losses_are_those_of_the_batches_before_the_step(intercept):
    weights = seeded(7).uniform(0, 2, 600)
    data = plant("labels")
    p = problem(data, weights=weights, intercept=intercept)
    run = run_of(p, 2)
    mean = weights @ data.X / weights.sum()
    X = (data.X - mean if intercept else data.X) * 0.4 / p.unit
    for _ in range(5):
        theta, Q, b = run.theta, run.Q.apply(np.eye(8)), run.b
        index = []
        batches = run.batches

        def watched(batches=batches, index=index):
            block, numbers = next(batches)
            index.append(numbers)
            yield block, numbers

        run.batches = watched()
        run.iterate()
        run.batches = batches
        S = X[index[0]] @ (theta - Q @ theta) + b
        values = p.loss.values(data.Z[index[0]], S)
        shares = weights[index[0]] / weights.mean() / 16
        assert run.losses[-1] == pytest.approx(shares @ values)
    assert len(run.losses) == run.steps == 5
    assert intercept == bool(run.b.any())


@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_both_parts_of_the_predictor_move_on_their_own(momentum):
    moves = _Moves(DescentAscent(momentum=momentum), 0.1)
    a, b = np.array([[2.0]]), np.array([7.0])
    for factor in (1, 1 + momentum):
        first, second = moves(a, b)
        np.testing.assert_allclose(first, 0.1 * factor * a)
        np.testing.assert_allclose(second, 0.1 * factor * b)
    adam = _Moves(DescentAscent(optimizer="adam"), 0.1)
    first, second = adam(a, -b)
    np.testing.assert_allclose(first, 0.1, rtol=1e-7)
    np.testing.assert_allclose(second, -0.1, rtol=1e-7)
    tiny = _Moves(DescentAscent(optimizer="adam"), 0.1)(1e-8 * a, b)[0]
    np.testing.assert_allclose(tiny, 0.1 * 2e-8 / (2e-8 + 1e-8), rtol=1e-6)


def test_a_number_that_grows_without_end_is_noticed():
    p = problem(plant("binary"))
    run = run_of(p)
    run.theta = run.theta * 1e160
    with pytest.raises(module._Diverged), np.errstate(all="ignore"):
        run.iterate()
    assert run.steps == 0
    for broken in (np.nan, np.inf):
        run = run_of(p)
        run.theta[0] = broken
        with pytest.raises(module._Diverged), np.errstate(all="ignore"):
            run.iterate()
    run = run_of(p)
    run.theta = run.theta * 1e9  # far away, and yet a number
    run.iterate()
    assert run.steps == 1


# -- evaluations -----------------------------------------------------------------------------------


def test_evaluations_start_where_the_last_one_ended(monkeypatch):
    asked = []

    def fit(problem, **options):
        found = fit_predictor(problem, **options)
        asked.append((options, found, problem.right.T))
        return found

    monkeypatch.setattr(module, "fit_predictor", fit)
    run = run_of(problem(plant("classes")), 2)
    for _ in range(3):
        run.iterate()
        run.evaluate(run.steps)
    assert asked[0][0]["start"] is None
    for (_, before, _), (options, _, U) in itertools.pairwise(asked):
        coef, b = options["start"]
        np.testing.assert_allclose(coef, before.coef - U @ (U.T @ before.coef), atol=1e-14)
        np.testing.assert_array_equal(b, before.intercept)
    assert {options["tol"] for options, *_ in asked} == {1e-6}
    assert run.problem.n_passes == sum(found.n_passes for _, found, _ in asked)


class Told:
    """A predictor that is as good as it is told."""

    def __init__(self, value, bound):
        self.value, self.lower_bound, self.accuracy = value, bound, 0.5


def test_the_best_eraser_and_the_smallest_gap_are_kept():
    p = problem(plant("binary"))
    run, top = run_of(p), p.null.value
    told = [(0.5, 0.4), (0.9, 0.8), (0.7, 0.85), (0.9, 0.1)]
    bases = []
    for k, (value, bound) in enumerate(told):
        run.Q = Fantope.random_vertex(8, 1, seeded(k))
        bases.append(run.Q)
        run._train = lambda U, value=value, bound=bound: Told(value * top, bound * top)
        record, gap = run.evaluate(k)
        assert gap == pytest.approx(1 - bound)
        assert (record.step, record.value, record.relaxed) == (k, value * top, None)
        assert (record.accuracy, record.width) == (0.5, 1)
    assert run.best_gap == pytest.approx(0.15)
    found = run.finish(StopReason.STOPPED)
    assert found.value == 0.9 * top
    assert found.reason is StopReason.STOPPED
    assert abs(found.basis[:, 0] @ bases[1].U[:, 0]) == pytest.approx(1)  # the first of equals
    assert [record.step for record in found.history] == [0, 1, 2, 3]
    assert found.n_passes == p.n_passes == 0
    run._train = lambda U: Told(top, 1.1 * top)
    assert run.evaluate(4)[1] == 0.0  # rounding leaves no gap below zero


def test_the_gap_where_the_bound_is_nothing_is_absolute():
    p = problem(plant("binary"))
    run = run_of(p)
    object.__setattr__(p.null, "value", 0.0)
    run._train = lambda U: Told(0.0, -0.25)
    assert run.evaluate(0)[1] == 0.25


def test_an_evaluation_is_made_once_after_an_interruption():
    run = run_of(problem(plant("binary")))
    run.iterate()
    run.evaluate_if_never()
    assert [record.step for record in run.history] == [1]
    run.evaluate_if_never()
    assert len(run.history) == 1


@pytest.mark.parametrize(("max_iter", "steps"), [(6, [2, 4, 6]), (7, [2, 4, 6, 7]), (1, [1])])
def test_when_it_evaluates_and_what_the_bar_shows(monkeypatch, max_iter, steps):
    shown = []

    class Bar:
        def __init__(self, title, total, verbose):
            shown.append(total)

        __enter__ = lambda self: self  # noqa: E731
        __exit__ = lambda self, *args: None  # noqa: E731

        def update(self, step, text):
            shown.append((step, text.split(",")[0]))

    monkeypatch.setattr(module, "Progress", Bar)
    p = problem(plant("binary"))
    options = SolveOptions(seeded(), max_iter=max_iter, evaluate_every=2)
    found = DescentAscent().solve(Game.on(p, 1), options)
    assert [record.step for record in found.history] == steps
    assert found.reason is StopReason.MAX_ITER
    assert shown[0] == max_iter
    assert [step for step, _ in shown[1:]] == steps


def test_a_gap_of_the_tolerance_is_small_enough(monkeypatch):
    p = problem(plant("binary"))
    for tol, reason in ((0.25, "CONVERGED"), (0.2499, "MAX_ITER"), (0.0, "MAX_ITER")):
        gap = 0.25 if tol else 0.0
        monkeypatch.setattr(
            _Run, "_train", lambda self, U, gap=gap: Told(1.0, (1 - gap) * self.problem.null.value)
        )
        options = SolveOptions(seeded(), max_iter=3, evaluate_every=1, tol=tol * (1 + 1e-12))
        found = DescentAscent().solve(Game.on(p, 1), options)
        assert found.reason is StopReason[reason]
        assert len(found.history) == (1 if reason == "CONVERGED" else 3)


# -- settings --------------------------------------------------------------------------------------


def test_what_users_are_told():
    solver = DescentAscent()
    assert "lower step_size" in solver.caution(StopReason.DIVERGED)
    assert "interrupted" in solver.caution(StopReason.INTERRUPTED)
    for reason in (StopReason.MAX_ITER, StopReason.CONVERGED, StopReason.STOPPED):
        assert solver.caution(reason) == ""


@pytest.mark.parametrize("experiment", ["static", "deep"])
def test_settings_of_the_paper(experiment):
    deep = experiment == "deep"
    assert ex.paper_settings(experiment) == {
        "solver": DescentAscent(weight_decay=1e-4 if deep else 0.0),
        "step_size": 0.005,
        "batch_size": 256 if deep else 128,
        "max_iter": 50_000,
        "evaluate_every": 1000,
    }
    assert DescentAscent() == DescentAscent("sgd", 0.0, 0.0, "vertex", "auto")


def test_limits_of_settings():
    p = problem(plant("binary"))
    run_of(p, 2, DescentAscent(momentum=1.0, width=2))  # the ends belong to it
    for wrong in (DescentAscent(momentum=1.01), DescentAscent(width=1)):
        with pytest.raises(ex.InputError):
            run_of(p, 2, wrong)


def test_fifty_thousand_iterations_unless_it_is_told_otherwise(monkeypatch):
    steps = []

    def iterate(self):
        steps.append(1)
        self.steps += 1

    monkeypatch.setattr(_Run, "iterate", iterate)
    p = problem(plant("binary"))
    found = DescentAscent().solve(
        Game.on(p, 1), SolveOptions(seeded(), tol=0, evaluate_every=25_000)
    )
    assert len(steps) == 50_000
    assert [record.step for record in found.history] == [25_000, 50_000]
