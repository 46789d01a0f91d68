"""Solvers plug in: by an object, by a line in the registry, and not where they cannot work."""

import ast
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from plugged_in import Pinball, RandomProjector
from sklearn.base import clone

import expunge as ex
from expunge.game import losses as losses_module
from expunge.game.losses import Hinge, Loss, loss_for
from expunge.game.null_model import Observed
from expunge.game.problem import Problem
from expunge.game.result import SolveResult, Step, StopReason
from expunge.game.solver import Game, Needs, SolveOptions, Solver
from expunge.game.solvers import SOLVERS, solver_for
from expunge.inputs import check_concept, check_rows
from planted import plant


@pytest.fixture
def registered(monkeypatch):
    """One line in the registry, taken back after the test."""
    monkeypatch.setitem(SOLVERS, "random", RandomProjector)


@dataclass(frozen=True)
class Noted(Solver):
    """Leading directions of XᵀR0, from moments alone; it notes that it was run."""

    calls: list
    asks_for: Needs | None = None

    name = "noted"

    @property
    def needs(self):
        return self.asks_for or Needs(rows=False)

    def solve(self, game, options):
        self.calls.append((game, options))
        U = game.null.directions[:, : game.rank]
        return SolveResult(U, game.null.value, self.name, StopReason.EXACT, (Step(1, 0.0),))


# -- by name and by object -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["binary", "classes", "labels", "number", "vector"])
def test_a_solver_of_ones_own_by_name_and_as_an_object(registered, kind):
    data = plant(kind, n=300)
    named = ex.RLACE(1, solver="random").fit(data.X, data.y)
    given = ex.RLACE(1, solver=RandomProjector(tries=3)).fit(data.X, data.y)
    np.testing.assert_array_equal(named.erasure_.left, given.erasure_.left)
    assert named.solver_ == named.erasure_.meta["solver"] == "random"
    assert repr(named).endswith("fitted: rank 1 by random")
    assert given.erasure_.meta["parameters"]["solver"] == "RandomProjector(tries=3)"
    assert named.n_iter_ == 3
    assert not named.certificate_.erased
    best = max(record.value for record in named.history_)
    assert best <= named.certificate_.bound
    auto = ex.RLACE(1).fit(data.X, data.y)
    assert auto.certificate_.primal >= named.certificate_.primal - 1e-6


def test_a_solver_without_a_history_has_taken_one_step():
    @dataclass(frozen=True)
    class Silent(Noted):
        def solve(self, game, options):
            return replace(super().solve(game, options), history=())

    data = plant("classes", n=300)
    eraser = ex.RLACE(1, solver=Silent([])).fit(data.X, data.y)
    assert eraser.history_ == ()
    assert eraser.n_iter_ == 1


def test_a_game_around_a_problem_takes_what_its_moments_lack_from_the_rows():
    data, w = plant("classes", n=300), np.random.default_rng(0).uniform(0.5, 2, 300)
    rows, concept = check_rows(data.X), check_concept(data.y, 300)
    loss = loss_for("cross_entropy", "classes", 4)
    known, unknown = (rows.moments(concept, w, second=second) for second in (True, False))
    game = Game.on(Problem(rows, concept, loss, unknown, weights=w), 1)
    assert game.moments.xx is None
    np.testing.assert_allclose(game.full_moments.xx, known.xx)


def test_the_parameters_of_rlace_reach_it(registered):
    data = plant("classes", n=300)
    steps = []
    options = {"random_state": 3, "max_iter": 7, "callback": steps.append}
    eraser = ex.RLACE(2, solver="random", **options).fit(data.X, data.y)
    assert [record.step for record in steps] == list(range(1, 8))
    assert eraser.history_ == tuple(steps)
    again = clone(eraser).fit(data.X, data.y)
    np.testing.assert_array_equal(again.erasure_.left, eraser.erasure_.left)
    other = clone(eraser).set_params(random_state=4).fit(data.X, data.y)
    assert np.abs(other.erasure_.left - eraser.erasure_.left).max() > 0.1
    calls = []
    values = {"step_size": 0.1, "batch_size": 7, "evaluate_every": 9, "restarts": 2, "tol": 1e-3}
    ex.RLACE(solver=Noted(calls), alpha=0.5, fit_intercept=False, **values).fit(data.X, data.y)
    game, seen = calls[0]
    assert {name: getattr(seen, name) for name in values} == values
    assert (game.rank, game.alpha, game.fit_intercept) == (game.null.rank, 0.5, False)


def test_nothing_else_takes_it_up(registered):
    assert "random" in ex.SOLVERS
    assert "random" not in ex.ERASERS
    assert ex.RLACE().solver == "auto"
    data = plant("classes", n=300)
    assert ex.RLACE(2).fit(data.X, data.y).solver_ == "subspace_ascent"
    path = ex.rank_path(data.X, data.y, ranks=[2])
    assert [point.solver for point in path.points] == ["none", "subspace_ascent"]


def test_an_unknown_name_is_answered_with_the_registry(registered):
    data = plant("binary", n=100)
    with pytest.raises(ex.InputError, match="Unknown solver") as caught:
        ex.RLACE(solver="sgd").fit(data.X, data.y)
    for name in ("auto", *SOLVERS):
        assert repr(name) in caught.value.remedy
    assert "'random'" in caught.value.remedy
    for wrong in (ex.DescentAscent, None, 3, RandomProjector):  # a class is no object of it
        with pytest.raises(ex.InputError, match="Unknown solver"):
            ex.RLACE(solver=wrong).fit(data.X, data.y)


def test_the_registry_is_as_it_was():
    assert set(SOLVERS) == {"closed_form", "descent_ascent", "subspace_ascent"}


# -- every solver there is -------------------------------------------------------------------------


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("kind", ["binary", "vector"])
def test_every_solver_keeps_to_the_protocol(name, kind):
    data = plant(kind, n=300)
    solver = SOLVERS[name]()
    assert isinstance(solver, Solver)
    assert solver.name == name
    assert isinstance(solver.needs, Needs)
    options = {"solver": name, "max_iter": 50, "evaluate_every": 25}
    first, second = (ex.RLACE(**options).fit(data.X, data.y) for _ in range(2))
    np.testing.assert_array_equal(first.erasure_.left, second.erasure_.left)
    assert first.solver_ == name
    assert first.erasure_.is_orthogonal
    assert first.rank_ == data.Z.shape[1]


@pytest.mark.parametrize("name", SOLVERS)
def test_a_concept_that_is_not_there_has_nothing_to_erase(name):
    X = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    eraser = ex.RLACE(solver=name, max_iter=5).fit(X, [0, 0, 1, 1])
    assert eraser.rank_ == 0
    np.testing.assert_array_equal(eraser.transform(X), X)


# -- what cannot work fails before the first iteration ---------------------------------------------


def refused(eraser, data, message):
    with pytest.raises(ex.InputError, match=message):
        eraser.fit(data.X, data.y)


def test_a_missing_piece_is_named_before_anything_is_run():
    data, calls = plant("classes", n=300), []
    refused(
        ex.RLACE(2, solver=Noted(calls, Needs(rows=False, own_rank=True))),
        data,
        r"solver='noted' needs rank >= 3.*rank=2",
    )
    refused(
        ex.RLACE(2, solver=Noted(calls, Needs(loss=("values", "proximal", "conjugate")))),
        data,
        r"solver='noted' needs a loss with proximal, conjugate.*'cross_entropy'",
    )

    class Sharp(Hinge):
        name = "sharp"
        smoothed = property(lambda self: self)

    refused(ex.RLACE(2, solver=Noted(calls), loss=Sharp()), data, r"needs a smooth loss.*'sharp'")
    for solver in ("subspace_ascent", "descent_ascent"):
        refused(ex.RLACE(2, solver=solver, loss=Sharp()), data, r"smooth loss.*`smoothed`")
    stream = ex.RLACE(2, solver=Noted(calls, Needs())).partial_fit(data.X, data.y)
    with pytest.raises(ex.InputError, match=r"solver='noted' needs the rows themselves"):
        _ = stream.erasure_
    assert calls == []
    assert ex.RLACE(3, loss=Sharp()).fit(data.X, data.y).certificate_.erased  # needs no smooth loss
    numbers = plant("number", n=300)
    assert ex.RLACE(loss=Pinball()).fit(numbers.X, numbers.y).certificate_.erased


def test_a_solver_of_moments_streams():
    data, calls = plant("classes", n=300), []
    eraser = ex.RLACE(solver=Noted(calls))
    for part in np.array_split(np.arange(300), 3):
        eraser.partial_fit(data.X[part], data.y[part])
    assert eraser.certificate_.erased
    assert calls[0][0].observed is None


@pytest.mark.parametrize(
    "basis",
    [
        np.eye(8)[:, :2],
        np.ones((8, 1)),
        np.full((8, 1), np.nan),
        np.zeros((8, 1)),
        np.eye(9)[:, :1],
    ],
    ids=["two", "long", "nan", "zero", "tall"],
)
def test_a_result_that_is_no_projector_is_refused(basis):
    class Wrong(Solver):
        name = "wrong"

        def solve(self, game, options):
            return SolveResult(basis, 0.0, self.name, StopReason.EXACT, ())

    data = plant("binary", n=100)
    refused(ex.RLACE(1, solver=Wrong()), data, r"'wrong' did not return 1 orthonormal directions")


# -- the game they are given -----------------------------------------------------------------------


def test_a_game_reads_the_rows_only_when_asked(monkeypatch):
    data = plant("binary", n=300)
    calls = []
    ex.RLACE(solver=Noted(calls)).fit(data.X, data.y)
    game = calls[0][0]
    assert game.moments.xx is None
    assert "problem" not in vars(game)
    assert game.full_moments.xx.shape == (8, 8)
    assert game.problem.alpha == game.alpha
    same = Game.on(game.problem, 1)
    assert same.problem is game.problem
    assert same.full_moments is game.problem.moments


def test_options_have_the_defaults_of_rlace():
    defaults, eraser = SolveOptions(), ex.RLACE()
    for name in ("max_iter", "tol", "step_size", "batch_size", "evaluate_every", "restarts"):
        assert getattr(defaults, name) == getattr(eraser, name)


def test_what_is_not_said_is_as_in_rlace_too():
    null, loss = object(), object()
    game, eraser = Game(1, loss, object(), null), ex.RLACE()
    assert (game.alpha, game.fit_intercept) == (eraser.alpha, eraser.fit_intercept)
    assert SolveOptions().rng.random() == np.random.default_rng(0).random()
    assert SolveOptions().verbose == eraser.verbose is False
    assert Needs() == Needs(True, True, ("values", "derivative", "hessian"), False)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_a_game_in_units_is_one_of_rows_in_these_units(dtype):
    data, units = plant("classes", n=300), np.linspace(0.5, 3, 8)
    X = (10 * data.X).astype(dtype)
    rows, concept = check_rows(X), check_concept(data.y, 300)
    loss, moments = loss_for("hinge", "classes", 4), rows.moments(concept, second=False)
    null = Problem(rows, concept, loss.smoothed, moments).null
    game = Game(1, loss, moments.in_units(units), null, False, 0.1, Observed(rows, concept, None))
    game = replace(game, units=units)
    problem, expected = game.problem, X / units
    assert problem.rows.dtype == (np.float64 if dtype == np.int32 else dtype)
    np.testing.assert_allclose(problem.rows.array(), expected, rtol=1e-6)
    np.testing.assert_allclose(game.full_moments.cov_xx, np.cov(expected.T, bias=True), rtol=1e-5)
    assert problem.moments is game.full_moments
    assert (problem.alpha, problem.fit_intercept, problem.loss.smooth) == (0.1, False, True)


@pytest.mark.parametrize(("off", "fine"), [(1e-8, True), (3e-6, False)])
def test_a_basis_may_be_orthonormal_but_for_rounding(off, fine):
    class Close(Solver):
        name = "close"

        def solve(self, game, options):
            U = np.eye(8)[:, :2] * (1 + off)
            return SolveResult(U, 0.0, self.name, StopReason.EXACT, ())

    data = plant("classes", n=100)
    if fine:
        assert ex.RLACE(2, solver=Close()).fit(data.X, data.y).rank_ == 2
    else:
        refused(ex.RLACE(2, solver=Close()), data, "did not return 2 orthonormal")


@pytest.mark.parametrize(("rank", "name"), [(2, "subspace_ascent"), (3, "closed_form")])
def test_auto_takes_the_closed_form_from_the_own_rank_on(rank, name):
    data = plant("classes", n=100)
    rows, concept = check_rows(data.X), check_concept(data.y, 100)
    loss = loss_for("cross_entropy", "classes", 4)
    game = Game.on(Problem(rows, concept, loss, rows.moments(concept)), rank)
    assert game.null.rank == 3
    assert solver_for("auto", game).name == name
    mine = Noted([])
    assert solver_for(mine, game) is mine
    with pytest.raises(ex.InputError, match="Unknown solver"):
        solver_for("sgd", game)


# -- no one asks for names -------------------------------------------------------------------------


def concrete():
    """Names of all losses and solvers that are not abstract."""
    found = {
        name
        for name, thing in vars(losses_module).items()
        if isinstance(thing, type) and issubclass(thing, Loss) and not thing.__abstractmethods__
    }
    return found | {type(make()).__name__ for make in SOLVERS.values()}


def test_nothing_asks_what_class_a_loss_or_a_solver_is():
    names, source = concrete(), Path(ex.__file__).parent
    assert {"Squared", "Huber", "DescentAscent"} <= names
    for folder in ("game", "erasers", "rank_path", "compare"):
        for path in (source / folder).glob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "type"):
                    asked = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
                    assert not asked & names, f"{path.name}:{node.lineno}"
