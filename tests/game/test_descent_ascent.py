"""The paper's iteration: against a dense twin, against closed forms, and what it records."""

import tracemalloc

import numpy as np
import pytest
from test_fantope import dense_projection

import expunge as ex
from expunge.game.certificate import certify
from expunge.game.descent_ascent import DescentAscent, _Moves, _Run
from expunge.game.fantope import Fantope
from expunge.game.losses import LOSSES, loss_for
from expunge.game.predictor import Problem, fit_predictor
from expunge.game.result import StopReason
from expunge.game.solver import Game, SolveOptions
from expunge.inputs import check_concept, check_rows
from expunge.rows import DenseRows
from planted import plant


def problem(data, loss="cross_entropy", *, weights=None, intercept=True):
    rows = check_rows(data.X)
    concept = check_concept(data.y, rows.n_samples)
    loss = loss_for(loss, concept.kind, concept.width).smoothed
    moments = rows.moments(concept, weights)
    return Problem(rows, concept, loss, moments, weights=weights, fit_intercept=intercept)


def solved(p, rank, solver=None, **options):
    return (solver or DescentAscent()).solve(Game.on(p, rank), SolveOptions(**options))


def play(data, rank=1, *, seed=0, max_iter=300, step_size=0.05, evaluate_every=100, **options):
    return ex.RLACE(
        rank,
        solver=options.pop("solver", "descent_ascent"),
        max_iter=max_iter,
        step_size=step_size,
        evaluate_every=evaluate_every,
        random_state=seed,
        **options,
    )


def alignment(found, exact):
    """Cosine of the largest angle between two erased subspaces."""
    return np.linalg.svd(found.erasure_.basis @ exact.erasure_.basis.T)[1].min()


@pytest.fixture(scope="module")
def binary():
    data = plant("binary")
    eraser = play(data, max_iter=3000, evaluate_every=500, step_size=0.02, tol=0)
    return data, eraser.fit(data.X, data.y)


# -- the iteration ---------------------------------------------------------------------------------


class DenseTwin:
    """The paper's algorithm with d x d matrices on rows that are centred and scaled by hand."""

    def __init__(self, data, Y, loss, rank, seed, *, start, intercept, weights, size, batch):
        self.rng = np.random.default_rng(seed)
        n, d = data.X.shape
        w = np.ones(n) if weights is None else weights
        mean = w @ data.X / w.sum()
        spread = np.sqrt(np.mean(w @ (data.X - mean) ** 2 / w.sum()))
        self.X = (data.X - mean if intercept else data.X) * 0.4 / spread
        self.Y, self.w, self.loss, self.K = Y, w / w.mean(), loss, rank
        self.size, self.batch, self.intercept = size, batch, intercept
        self.Q = np.eye(d) * rank / d
        if start == "vertex":
            U = Fantope.random_vertex(d, rank, self.rng).U
            self.Q = U @ U.T
        self.theta = self.rng.standard_normal((d, Y.shape[1])) / np.sqrt(d)
        self.b = np.zeros(Y.shape[1])

    def gradients(self, X, Y, w):
        P = np.eye(len(self.Q)) - self.Q
        R = self.loss.derivative(Y, X @ P @ self.theta + self.b) * w[:, None] / len(X)
        return X.T @ R, R.sum(axis=0)

    def iterate(self, decay):
        index = self.rng.integers(0, len(self.X), self.batch)
        X, Y, w = self.X[index], self.Y[index], self.w[index]
        G, g = self.gradients(X, Y, w)
        self.theta -= self.size * (G - self.Q @ G + decay * self.theta)
        self.b -= self.size * g * self.intercept
        G, _ = self.gradients(X, Y, w)
        ascent = -(self.theta @ G.T + G @ self.theta.T) / 2
        self.Q = dense_projection(self.Q + self.size * ascent, self.K)[0]


@pytest.mark.parametrize(
    ("kind", "loss", "rank", "start", "intercept", "weighted"),
    [
        ("binary", "cross_entropy", 1, "vertex", True, False),
        ("binary", "squared_hinge", 2, "center", False, True),
        ("classes", "cross_entropy", 2, "vertex", True, True),
        ("classes", "squared", 3, "center", True, False),
        ("labels", "cross_entropy", 2, "center", True, True),
        ("vector", "squared", 1, "vertex", False, False),
    ],
)
def test_every_iterate_is_that_of_the_dense_algorithm(kind, loss, rank, start, intercept, weighted):
    data = plant(kind)
    weights = np.random.default_rng(7).uniform(0, 2, 600) if weighted else None
    p = problem(data, loss, weights=weights, intercept=intercept)
    Y = p.loss.encoder(p.concept)(0, 600)
    settings = DescentAscent(start=start, width=None, weight_decay=0.01)
    run = _Run(
        p, rank, settings, SolveOptions(np.random.default_rng(5), step_size=0.1, batch_size=16)
    )
    options = {"start": start, "intercept": intercept, "weights": weights}
    twin = DenseTwin(data, Y, p.loss, rank, 5, **options, size=0.1, batch=16)
    for _ in range(60):
        run.iterate()
        twin.iterate(0.01)
    np.testing.assert_allclose(run.theta, twin.theta, atol=1e-9)
    np.testing.assert_allclose(run.b, twin.b, atol=1e-9)
    np.testing.assert_allclose(run.Q.apply(np.eye(8)), twin.Q, atol=1e-9)
    assert not np.allclose(twin.Q, twin.Q @ twin.Q) or rank == 1  # the relaxation is at work


def test_momentum_and_adam_by_hand():
    g = np.array([[2.0], [-0.5]])
    heavy = _Moves(DescentAscent(momentum=0.9), 0.1)
    for factor in (1, 1.9, 2.71):
        np.testing.assert_allclose(heavy(g, g)[0], 0.1 * factor * g)
    adam, first, second = _Moves(DescentAscent(optimizer="adam"), 0.1), 0.0, 0.0
    for t in range(1, 6):
        g = g * -1.5
        first, second = 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g**2
        expected = 0.1 * first / (1 - 0.9**t) / (np.sqrt(second / (1 - 0.999**t)) + 1e-8)
        np.testing.assert_allclose(adam(g, g)[1], expected, rtol=1e-12)


def test_batches_cost_next_to_nothing_in_the_number_of_rows():
    """A billion rows (all views of one): no shuffled list of them may ever exist."""
    rows = DenseRows(np.broadcast_to(np.arange(4.0), (10**9, 4)))
    tracemalloc.start()
    try:
        X, index = next(rows.batches(128, np.random.default_rng(0)))
        assert tracemalloc.get_traced_memory()[1] < 30_000_000
    finally:
        tracemalloc.stop()
    assert X.shape == (128, 4)
    assert index.shape == (128,)
    assert len(set(index.tolist())) > 120


def test_rows_are_drawn_batch_by_batch():
    p, sizes = problem(plant("binary")), []
    batches = p.rows.batches

    def spy(size, rng):
        for X, index in batches(size, rng):
            sizes.append((size, len(index)))
            yield X, index

    p.rows.batches = spy
    solved(p, 1, batch_size=7, max_iter=20)
    assert sizes == [(7, 7)] * 20


# -- what it finds ---------------------------------------------------------------------------------


def test_two_classes_approach_the_closed_form(binary):
    data, eraser = binary
    assert alignment(eraser, ex.RLACE().fit(data.X, data.y)) > 0.99
    assert eraser.history_[0].value < 0.98 * eraser.certificate_.bound  # it had a way to go
    assert eraser.certificate_.gap < 0.01 * eraser.certificate_.bound
    assert eraser.solver_ == "descent_ascent"


PAIRS = [(kind, loss) for kind in ("binary", "classes", "labels") for loss in LOSSES]


@pytest.mark.parametrize(("kind", "loss"), [*PAIRS, ("vector", "squared"), ("number", "squared")])
def test_every_loss_and_concept(kind, loss):
    """At the concept's own rank it comes near the bound that the closed form reaches."""
    data = plant(kind)
    exact = ex.RLACE(loss=loss).fit(data.X, data.y)
    eraser = play(data, exact.rank_, max_iter=500, evaluate_every=250, loss=loss)
    found = eraser.fit(data.X, data.y).certificate_
    plain = ex.Erasure(np.zeros((8, 0)), np.zeros((0, 8)))
    rows, concept = check_rows(data.X), check_concept(data.y, 600)
    before = certify(rows, concept, plain, loss_for(loss, concept.kind, concept.width))
    assert found.gap < 0.15 * before.gap


def test_fewer_directions_than_the_concept_has():
    data = plant("classes")
    eraser = play(data, 2, max_iter=1500, evaluate_every=300).fit(data.X, data.y)
    best = ex.RLACE(2).fit(data.X, data.y)
    assert eraser.rank_ == 2
    assert eraser.certificate_.value > 0.9 * best.certificate_.value
    assert eraser.certificate_.value <= best.certificate_.primal + 1e-6


@pytest.mark.parametrize(
    "solver",
    [
        DescentAscent(optimizer="adam"),
        DescentAscent(momentum=0.9),
        DescentAscent(weight_decay=1e-3),
        DescentAscent(start="center"),
        DescentAscent(width=3),
        DescentAscent(width=None),
    ],
    ids=repr,
)
def test_every_setting_approaches_the_closed_form(solver):
    data = plant("binary")
    size = 0.01 if solver.momentum else 0.03
    eraser = play(data, solver=solver, max_iter=1000, evaluate_every=500, step_size=size)
    assert alignment(eraser.fit(data.X, data.y), ex.RLACE().fit(data.X, data.y)) > 0.97


def test_weights_move_the_answer_to_the_weighted_closed_form():
    data = plant("binary", gap=0.5)
    w = np.where(data.X[:, 0] > data.X[:, 0].mean(), 3.0, 0.1)
    exact = ex.RLACE().fit(data.X, data.y, sample_weight=w)
    plain = ex.RLACE().fit(data.X, data.y)
    eraser = play(data, max_iter=1500, evaluate_every=500).fit(data.X, data.y, sample_weight=w)
    assert alignment(plain, exact) < 0.95  # the weights matter
    assert alignment(eraser, exact) > 0.99


def test_a_class_of_no_weight_is_not_played_against():
    data = plant("classes")
    w = (data.y != "cat").astype(float)
    eraser = play(data, 2, max_iter=1000, step_size=0.1).fit(data.X, data.y, sample_weight=w)
    kept = data.y != "cat"
    assert eraser.erasure_.meta["concept"]["labels"] == ["ant", "bee", "dog"]
    exact = ex.RLACE().fit(data.X[kept], data.y[kept])
    assert eraser.certificate_.bound == pytest.approx(exact.certificate_.bound)
    assert alignment(eraser, exact) > 0.95


@pytest.mark.parametrize(("scale", "offset"), [(1e-8, 0.0), (1e6, 0.0), (1.0, 1e5)])
def test_scale_and_offset_change_nothing(scale, offset):
    data = plant("classes")
    plain = play(data, 2).fit(data.X, data.y)
    moved = play(data, 2).fit(data.X * scale + offset, data.y)
    np.testing.assert_allclose(moved.erasure_.matrix(), plain.erasure_.matrix(), atol=1e-6)
    assert moved.history_[-1].value == pytest.approx(plain.history_[-1].value, rel=1e-6)


# -- what it records -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def labels_run():
    """A run whose best evaluation is not its last."""
    p = problem(plant("labels"))
    options = {"step_size": 0.3, "max_iter": 500, "evaluate_every": 50}
    return p, solved(p, 2, **options, rng=np.random.default_rng(1))


def test_the_value_is_the_best_of_the_history_and_that_of_the_basis(labels_run):
    p, found = labels_run
    values = [record.value for record in found.history]
    assert np.argmax(values) < len(values) - 1
    assert found.value == max(values)
    p.set_erasure(ex.Erasure(found.basis, found.basis.T))
    exact = fit_predictor(p, tol=1e-12)
    assert found.value == pytest.approx(exact.value, rel=1e-5)
    assert exact.value > min(values) * 1.01  # another evaluation's basis would not do
    best = found.history[int(np.argmax(values))]
    assert best.accuracy == pytest.approx(exact.accuracy, abs=0.01)
    np.testing.assert_allclose(found.basis.T @ found.basis, np.eye(2), atol=1e-12)


def test_the_certificate_agrees_with_the_history(binary):
    data, eraser = binary
    p = problem(data)
    p.set_erasure(eraser.erasure_)
    best = max(record.value for record in eraser.history_)
    assert fit_predictor(p).value == pytest.approx(best, rel=1e-4)
    assert eraser.certificate_.value <= best + 1e-9


def test_the_spectrum_lies_in_the_fantope(labels_run, binary):
    for spectrum, K in ((labels_run[1].spectrum, 2), (binary[1].spectrum_, 1)):
        assert spectrum.shape == (8,)
        assert spectrum.sum() == pytest.approx(K, abs=1e-10)
        assert (np.diff(spectrum) <= 0).all()
        assert spectrum[0] <= 1
        assert spectrum[-1] >= 0


def test_history_has_one_record_per_evaluation():
    seen = []
    data = plant("classes")
    eraser = play(data, 2, max_iter=250, callback=seen.append, tol=0).fit(data.X, data.y)
    assert [record.step for record in eraser.history_] == [100, 200, 250]
    assert eraser.n_iter_ == 250
    assert tuple(seen) == eraser.history_
    for record in eraser.history_:
        assert 0 < record.value <= eraser.certificate_.bound + 1e-9
        assert 0 < record.relaxed < 5
        assert 0.25 < record.accuracy <= 1
        assert 2 <= record.width <= 8
    number = plant("number")
    told = play(number, loss="squared", max_iter=10).fit(number.X, number.y).history_
    assert np.isnan(told[0].accuracy)  # numbers have no accuracy


def test_the_relaxed_loss_is_the_mean_since_the_last_record():
    options = SolveOptions(_seeded(), step_size=0.1, batch_size=8)
    run = _Run(problem(plant("binary")), 1, DescentAscent(), options)
    for size in (5, 3):
        for _ in range(size):
            run.iterate()
        losses = list(run.losses)
        assert len(losses) == size
        assert run.evaluate(run.steps)[0].relaxed == pytest.approx(np.mean(losses))


def test_the_cap_on_the_width_holds_and_what_it_drops_is_told():
    p = problem(plant("classes", d=30))
    options = {"max_iter": 100, "evaluate_every": 100, "step_size": 0.1}
    capped, free = (
        solved(p, 2, DescentAscent(start="center", width=w), **options) for w in (5, None)
    )
    assert capped.history[0].width <= 5 < free.history[0].width
    assert capped.lost > 0
    assert free.lost == 0
    assert capped.spectrum.sum() == pytest.approx(2)


def _seeded():
    return np.random.default_rng(0)


def test_a_seed_fixes_every_byte(tmp_path):
    data = plant("classes")

    def saved(name, seed):
        play(data, 2, max_iter=100, seed=seed).fit(data.X, data.y).erasure_.save(tmp_path / name)
        return (tmp_path / name).read_bytes()

    one = saved("one", 3)
    assert saved("two", 3) == one
    assert saved("three", 4) != one
    assert saved("four", np.random.default_rng(3))[-64:] == one[-64:]  # the arrays, not the meta
    none, zero = (play(data, 2, max_iter=100, seed=s).fit(data.X, data.y) for s in (None, 0))
    np.testing.assert_array_equal(none.erasure_.left, zero.erasure_.left)


# -- how it stops ----------------------------------------------------------------------------------


def test_tol_stops_early_and_zero_never_does():
    data = plant("binary")
    early = play(data, max_iter=3000, tol=0.05).fit(data.X, data.y)
    assert early.n_iter_ < 3000
    assert early.certificate_.gap <= 0.0501 * early.certificate_.bound
    assert all(r.value < 0.95 * early.certificate_.bound for r in early.history_[:-1])
    exact = solved(problem(data), 8 - 1, tol=0, max_iter=40, evaluate_every=10)
    assert exact.reason is StopReason.MAX_ITER
    assert len(exact.history) == 4


def test_a_callback_can_stop_it():
    data = plant("binary")
    eraser = play(data, callback=lambda record: record.step >= 200).fit(data.X, data.y)
    assert eraser.n_iter_ == 200


def test_an_interruption_keeps_the_best_so_far():
    data = plant("binary")

    def interrupt(record):
        if record.step == 200:
            raise KeyboardInterrupt

    with pytest.warns(ex.NotConverged, match="interrupted") as caught:
        eraser = play(data, callback=interrupt).fit(data.X, data.y)
    assert caught[0].filename == __file__  # it points at the call of fit
    assert [record.step for record in eraser.history_] == [100, 200]
    p = problem(data)
    p.set_erasure(eraser.erasure_)
    best = max(record.value for record in eraser.history_)
    assert fit_predictor(p).value == pytest.approx(best, rel=1e-4)


def test_an_interruption_before_the_first_evaluation_evaluates_what_is_there():
    p, calls = problem(plant("binary")), []
    batches = p.rows.batches

    def interrupted(size, rng):
        for batch in batches(size, rng):
            calls.append(size)
            if len(calls) == 30:
                raise KeyboardInterrupt
            yield batch

    p.rows.batches = interrupted
    found = solved(p, 1)
    assert found.reason is StopReason.INTERRUPTED
    assert [record.step for record in found.history] == [29]
    assert found.value == found.history[0].value > 0


def test_steps_that_diverge_are_noticed():
    data = plant("number")
    with pytest.raises(ex.InputError, match=r"diverged.*step_size=50.*smaller"):
        play(data, loss="squared", step_size=50.0).fit(data.X, data.y)
    with pytest.warns(ex.NotConverged, match="diverged"):
        eraser = play(data, loss="squared", step_size=50.0, evaluate_every=1).fit(data.X, data.y)
    assert np.isfinite(eraser.erasure_.left).all()
    p = problem(data, "squared")
    p.set_erasure(eraser.erasure_)
    best = max(record.value for record in eraser.history_)
    assert fit_predictor(p).value == pytest.approx(best, rel=1e-4)


def test_a_bar_on_request_and_only_on_standard_error(capfd):
    data = plant("binary")
    play(data, max_iter=50).fit(data.X, data.y)
    assert capfd.readouterr() == ("", "")
    play(data, max_iter=50, verbose=True).fit(data.X, data.y)
    out, err = capfd.readouterr()
    assert out == ""
    assert "descent-ascent" in err
    assert "50/50" in err


# -- settings --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("step_size", 0),
        ("step_size", float("nan")),
        ("step_size", "small"),
        ("batch_size", 0),
        ("batch_size", 12.5),
        ("max_iter", 0),
        ("max_iter", -3),
        ("evaluate_every", 0),
        ("random_state", "seed"),
        ("random_state", -1),
        ("callback", 3),
        ("solver", "descent"),
        ("solver", None),
    ],
)
def test_bad_parameters(name, value):
    data = plant("binary")
    with pytest.raises(ex.InputError, match=name) as caught:
        play(data).set_params(**{name: value}).fit(data.X, data.y)
    assert repr(value) in caught.value.received


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("optimizer", "lbfgs"),
        ("start", "corner"),
        ("momentum", -0.1),
        ("momentum", 1.5),
        ("weight_decay", -1e-4),
        ("width", 1),
        ("width", 4.5),
        ("width", "wide"),
    ],
)
def test_bad_settings(name, value):
    data = plant("classes")
    with pytest.raises(ex.InputError, match=name) as caught:
        play(data, 2, solver=DescentAscent(**{name: value})).fit(data.X, data.y)
    assert repr(value) in caught.value.received


def test_the_papers_settings():
    static, deep = ex.paper_settings("static"), ex.paper_settings("deep")
    assert (static["step_size"], static["batch_size"], static["max_iter"]) == (0.005, 128, 50_000)
    assert (deep["step_size"], deep["batch_size"], deep["evaluate_every"]) == (0.005, 256, 1000)
    assert (static["solver"].weight_decay, deep["solver"].weight_decay) == (0.0, 1e-4)
    data = plant("binary")
    eraser = ex.RLACE(1, **{**deep, "max_iter": 20}).fit(data.X, data.y)
    assert eraser.solver_ == "descent_ascent"
    assert "weight_decay=0.0001" in eraser.erasure_.meta["parameters"]["solver"]
    with pytest.raises(ex.InputError, match="experiment"):
        ex.paper_settings("images")
