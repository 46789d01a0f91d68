"""Losses of numbers, built in and plugged in: the theorem and the certificate, by other roads."""

import numpy as np
import pytest
import scipy.optimize
from plugged_in import LOSSES, PLAIN, Poisson, best_loss

import expunge as ex
from expunge.game.certificate import certify, certify_moments
from expunge.game.losses import ColumnLoss, Huber, Loss, Multinomial, loss_for
from expunge.game.null_model import Observed, balancing_point, null_model
from expunge.game.predictor import Problem, dual_bound
from expunge.inputs import check_concept, check_rows
from planted import plant


def planted(kind="number", n=250, d=5, seed=0):
    """Rows that move with one or two positive numbers, so that every loss takes them."""
    rng = np.random.default_rng(seed)
    Z = rng.gamma(2.0, 0.7, size=(n, 1 if kind == "number" else 2))
    mix = rng.normal(size=(d, d)) / np.sqrt(d) + np.eye(d)
    W = rng.normal(size=(Z.shape[1], d)) / np.sqrt(d)
    return 0.5 * rng.normal(size=(n, d)) @ mix + 2 * Z @ W + 0.3, Z


def given(name):
    """The loss as a user passes it."""
    return LOSSES[name]


def certificate(X, Z, erasure, loss, **options):
    rows, concept = check_rows(X), check_concept(Z, len(X), concept_type="continuous")
    return certify(rows, concept, erasure, loss, **options)


NAMES = list(LOSSES)
TIGHT = [name for name in NAMES if name != "pinball"]


# -- the null model --------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_the_null_model_is_the_best_constant(name, weighted):
    X, Z = planted("vector")
    w = np.random.default_rng(1).uniform(0.1, 3, len(X)) if weighted else None
    shares = np.full(len(X), 1 / len(X)) if w is None else w / w.sum()
    rows, concept = check_rows(X), check_concept(Z, len(X), concept_type="continuous")
    null = null_model(given(name), rows.moments(concept, w), True, Observed(rows, concept, w))

    def mean_loss(b):
        return shares @ PLAIN[name](Z, np.ones((len(Z), 1)) * b)

    best = scipy.optimize.minimize(mean_loss, np.zeros(2), method="Nelder-Mead", tol=1e-10).fun
    assert null.value == pytest.approx(best, rel=1e-8)
    assert mean_loss(null.intercept) == pytest.approx(null.value, rel=1e-12)
    assert np.abs(null.residual_mean).max() == 0
    none = null_model(given(name), rows.moments(concept, w), False, Observed(rows, concept, w))
    assert none.value == pytest.approx(mean_loss(np.zeros(2)), rel=1e-12)
    assert np.abs(none.residual_mean).max() > 0.1


@pytest.mark.parametrize("intercept", [True, False])
def test_columns_of_the_null_model_are_the_null_models_of_the_columns(intercept):
    X, Z = planted("vector")
    rows, concept = check_rows(X), check_concept(Z, len(X), concept_type="continuous")
    seen, loss = Observed(rows, concept), Huber(0.5)
    whole = null_model(loss, rows.moments(concept), intercept, seen)
    for j in range(2):
        part, alone = whole.only((j,)), seen.only((j,))
        alone = null_model(loss, rows.moments(alone.concept), intercept, alone)
        for field in ("value", "intercept", "gradient", "residual_mean", "residual_units"):
            np.testing.assert_allclose(
                getattr(part, field), getattr(alone, field), rtol=1e-12, atol=1e-15
            )


# -- the closed form -------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", ["number", "vector"])
@pytest.mark.parametrize("name", NAMES)
def test_no_linear_predictor_beats_the_null_model(name, kind, intercept):
    X, Z = planted(kind)
    eraser = ex.RLACE(loss=given(name), fit_intercept=intercept, concept_type="continuous")
    eraser.fit(X, Z)
    found = eraser.certificate_
    one = name == "pinball" and not intercept  # all residuals are the same below all numbers
    assert (eraser.rank_, eraser.solver_) == (1 if one else Z.shape[1], "closed_form")
    assert found.erased
    assert found.optimal
    assert found.gap <= 1e-8 * found.bound
    assert found.loss == given(name).name
    few = slice(None, 80) if name == "pinball" else slice(None)  # a dense quadratic programme
    if few.stop:
        X, Z = X[few], Z[few]
        eraser = ex.RLACE(loss=given(name), fit_intercept=intercept, concept_type="continuous")
        found = eraser.fit(X, Z).certificate_
    ridge = 1e-6 * X.var(axis=0)
    clean = eraser.transform(X)
    assert best_loss(name, X, Z, intercept=intercept, ridges=ridge) < 0.9 * found.bound
    assert best_loss(name, clean, Z, intercept=intercept, ridges=ridge) >= found.bound * (1 - 1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_an_erasure_rotated_by_one_degree_is_rejected(name):
    X, Z = planted("number")
    u = ex.RLACE(loss=given(name), concept_type="continuous").fit(X, Z).erasure_.basis[0]
    v = np.linalg.qr(np.column_stack([u, np.eye(5)]))[0][:, 1]
    for degrees, erased in ((0, True), (1, False)):
        turned = np.cos(np.radians(degrees)) * u + np.sin(np.radians(degrees)) * v
        found = certificate(X, Z, ex.Erasure(turned[:, None], turned[None]), given(name))
        assert found.erased == erased
    assert found.gap > 1e-5 * found.bound


def test_huber_is_not_the_squared_loss():
    """A few wild numbers turn the direction of the squared loss, not that of Huber's."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 6))
    z = X[:, 0] + 0.3 * rng.normal(size=2000)
    wild = z + np.where(rng.random(2000) < 0.01, 300 * X[:, 1], 0)
    first = np.eye(6)[0]
    tame, turned = (
        abs(ex.RLACE(loss=loss).fit(X, wild).erasure_.basis[0] @ first)
        for loss in ("huber", "squared")
    )
    assert tame > 0.999
    assert turned < 0.6


def test_what_is_erased_for_one_loss_is_not_called_erased_for_another():
    X, Z = planted("number")
    eraser = ex.RLACE(loss=Huber(0.3), concept_type="continuous").fit(X, Z)
    assert eraser.certificate_.erased
    assert not ex.certify(eraser, X, Z, concept_type="continuous").erased
    assert ex.certify(eraser, X, Z, loss=Huber(0.3), concept_type="continuous").erased
    assert "huber loss" in str(eraser.certificate_)


# -- the certificate where something is left -------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", ["number", "vector"])
@pytest.mark.parametrize("name", NAMES)
def test_the_value_brackets_the_true_loss(name, kind, intercept):
    X, Z = planted(kind, n=80 if name == "pinball" else 250)
    erasure = ex.Erasure(np.eye(5)[:, :1], np.eye(5)[:1], X.mean(axis=0) if intercept else None)
    found = certificate(X, Z, erasure, given(name), fit_intercept=intercept, alpha=1e-2)
    truth = best_loss(name, erasure(X), Z, intercept=intercept, ridges=found.ridges)
    assert found.value <= truth + 1e-7 * found.bound
    assert found.primal >= truth - 1e-7 * found.bound
    assert truth < 0.95 * found.bound
    assert not found.erased
    if name in TIGHT:
        assert found.primal - found.value < 1e-6 * found.bound
    assert found.value <= found.primal <= found.bound


@pytest.mark.parametrize("passes", [1, 2, 4])
@pytest.mark.parametrize("name", NAMES)
def test_a_half_trained_predictor_cannot_flatter(name, passes):
    X, Z = planted("vector", n=80 if name == "pinball" else 250)
    identity = ex.Erasure.identity(5)
    found = certificate(X, Z, identity, given(name), max_passes=passes, alpha=1e-2)
    assert not found.erased
    truth = best_loss(name, X, Z, ridges=found.ridges)
    assert found.value <= truth + 1e-7 * found.bound


@pytest.mark.parametrize("name", TIGHT)
def test_any_predictor_with_any_intercept_gives_a_lower_bound(name):
    """The dual point is balanced whatever the mean residual is."""
    X, Z = planted("vector")
    rng = np.random.default_rng(3)
    w = rng.uniform(0.2, 2, len(X))
    rows, concept = check_rows(X), check_concept(Z, len(X), concept_type="continuous")
    options = {"weights": w, "alpha": 1e-2}
    problem = Problem(rows, concept, given(name), rows.moments(concept, w), **options)
    ridges = np.full(5, problem.ridge)
    truth = best_loss(name, X - problem.center, Z, ridges=ridges, weights=w)
    bounds = []
    for size in (0.0, 1e-9, 1e-3, 0.1, 1.0):
        for _ in range(4):
            theta = size * rng.normal(size=(5, 2))
            b = problem.null.intercept + size * rng.normal(size=2)
            bounds.append(dual_bound(problem, theta, b, problem.evaluate(theta, b)[3]))
    assert max(bounds) <= truth + 1e-9
    assert min(bounds) >= 0
    near = dual_bound(problem, 0 * theta, b * 0 + problem.null.intercept + 1e-9, *_at(problem))
    quick = certify_bound(problem)
    assert near == pytest.approx(quick, rel=1e-5)  # a small slope costs little


SLOPES = [(0.2, 0.1), (-0.3, 0.02), (-0.1, -0.2), (0.0, 0.05), (1e-3, -1e-4)]


@pytest.mark.parametrize("unit", [1.0, 1e-2])
@pytest.mark.parametrize("slope", SLOPES)
@pytest.mark.parametrize("name", TIGHT)
def test_what_makes_up_for_a_slope_are_residuals_with_the_opposite_mean(name, slope, unit):
    """Of constant scores; for a sum over columns those of the best ones, mixed with others'."""
    X, Z = planted("vector")
    Z, slope, loss = unit * Z, unit * np.array(slope), given(name)
    rows, concept = check_rows(X), check_concept(Z, len(X), concept_type="continuous")
    seen, moments = Observed(rows, concept), rows.moments(concept)
    null = null_model(loss, moments, True, seen)
    dual, gradient, share = balancing_point(loss, moments, null, slope, seen)
    assert 0 < share < 1
    wanted = -(1 - share) / share * slope  # mixed with the slope its mean is zero
    ones, start = np.ones((len(Z), 1)), null.intercept

    def at(b):
        R = loss.derivative(Z, ones * b)
        return R, R.mean(axis=0)

    if name in ("length", "half_squared"):
        b = scipy.optimize.root(lambda b: at(b)[1] - wanted, start, tol=1e-14).x
        R, mean = at(b)
        expected = loss.values(Z, ones * b).mean() - (b - start) @ mean
    else:
        b = start - np.sign(slope) * Z.std(axis=0)
        there, mean = at(b)
        part = np.where(slope != 0, wanted / np.where(slope != 0, mean, 1.0), 0.0)
        assert np.all((part >= 0) & (part <= 1 + 1e-12))
        R = (1 - part) * at(start)[0] + part * there
        best, other = (loss.elements(Z, ones * c).mean(axis=0) for c in (start, b))
        expected = ((1 - part) * best + part * (other - (b - start) * mean)).sum()
    np.testing.assert_allclose(R.mean(axis=0), wanted, atol=1e-9 * unit)
    np.testing.assert_allclose(
        gradient, (X - X.mean(axis=0)).T @ R / len(X), rtol=1e-7, atol=1e-8 * unit
    )
    assert dual == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("size", [0.02, -0.02, 1e-5])
@pytest.mark.parametrize("name", ["cross_entropy", "squared", "squared_hinge"])
@pytest.mark.parametrize("kind", ["binary", "mostly ones", "classes", "labels"])
def test_what_makes_up_for_a_slope_are_residuals_of_constants(kind, name, size):
    """Their mean is opposite to the slope, for classes and labels from moments alone."""
    data = plant("binary" if kind == "mostly ones" else kind)
    concept = check_concept(1 - data.y if kind == "mostly ones" else data.y, len(data.X))
    loss = loss_for(name, concept.kind, concept.width)
    moments = check_rows(data.X).moments(concept)
    Y = loss.encoder(concept)(0, len(data.X))
    slope = size * np.array([1.0, -0.5, 0.3, -0.8])[: Y.shape[1]]
    null = null_model(loss, moments, True)
    dual, gradient, share = balancing_point(loss, moments, null, slope)
    assert 0 < share < 0.5
    wanted, ones = -(1 - share) / share * slope, np.ones((len(Y), 1))

    def mean(b):
        return loss.derivative(Y, ones * b).mean(axis=0)

    b = scipy.optimize.root(
        lambda b: mean(b) - wanted, null.intercept, method="lm", options={"xtol": 1e-14}
    ).x
    np.testing.assert_allclose(mean(b), wanted, atol=1e-9)
    R = loss.derivative(Y, ones * b)
    expected = (data.X - data.X.mean(axis=0)).T @ R / len(R)
    np.testing.assert_allclose(gradient, expected, atol=1e-8)
    value = loss.values(Y, ones * b).mean() - (b - null.intercept) @ wanted
    assert dual == pytest.approx(value, rel=1e-7)
    assert dual < (1 - 1e-3) * null.value  # these scores are not the best ones


def _at(problem):
    theta = np.zeros((5, 2))
    return (problem.evaluate(theta, problem.null.intercept + 1e-9)[3],)


def certify_bound(problem):
    """The bound of the null model's own residuals, written out."""
    G = problem.null.gradient / problem.unit
    return max(problem.null.value - np.sum(G**2) / (2 * problem.alpha), 0.0)


@pytest.mark.parametrize("name", ["huber", "poisson", "pinball", "length"])
def test_weights_are_repetitions(name):
    X, Z = planted("vector")
    w = np.random.default_rng(1).integers(0, 4, len(X))
    again = np.repeat(np.arange(len(X)), w)
    options = {"loss": given(name), "concept_type": "continuous"}
    weighted = ex.RLACE(**options).fit(X, Z, sample_weight=w.astype(float))
    repeated = ex.RLACE(**options).fit(X[again], Z[again])
    assert weighted.certificate_.bound == pytest.approx(repeated.certificate_.bound, rel=1e-9)
    np.testing.assert_allclose(weighted.erasure_.matrix(), repeated.erasure_.matrix(), atol=1e-6)
    identity = ex.Erasure.identity(5)
    one, other = (
        ex.certify(identity, *rows, sample_weight=weights, **options)
        for rows, weights in (((X, Z), w.astype(float)), ((X[again], Z[again]), None))
    )
    assert one.primal == pytest.approx(other.primal, rel=1e-4)


@pytest.mark.parametrize(("unit", "offset"), [(1e-6, 0.0), (1.0, 1e6), (1e6, -1e9)])
def test_units_and_offsets_of_the_numbers_change_nothing(unit, offset):
    X, Z = planted("number")
    plain = ex.RLACE(loss=Huber(0.5), concept_type="continuous").fit(X, Z)
    options = {"loss": Huber(0.5 * unit), "concept_type": "continuous"}
    moved = ex.RLACE(**options).fit(X, unit * Z + offset)
    assert moved.certificate_.erased
    np.testing.assert_allclose(moved.erasure_.matrix(), plain.erasure_.matrix(), atol=1e-6)
    assert moved.certificate_.bound == pytest.approx(unit**2 * plain.certificate_.bound, rel=1e-6)
    identity = ex.Erasure.identity(5)
    before = ex.certify(identity, X, Z, loss=Huber(0.5), concept_type="continuous")
    found = ex.certify(identity, X, unit * Z + offset, **options)
    assert not found.erased
    assert found.value <= unit**2 * before.primal * (1 + 1e-6)
    assert found.value == pytest.approx(unit**2 * before.value, rel=1e-5)


def test_a_number_in_large_units_hides_no_other():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    Z = np.column_stack([1e6 * (X[:, 0] + rng.normal(size=300)), X[:, 1] + rng.normal(size=300)])
    first = ex.Erasure(np.eye(5)[:, :1], np.eye(5)[:1])
    exact = ex.RLACE(loss=Huber(0.5)).fit(X, Z)
    assert exact.certificate_.erased
    found = ex.certify(ex.RLACE(loss=Huber(0.5)).fit(X, Z[:, 0]), X, Z, loss=Huber(0.5))
    assert not found.erased
    assert found.worst == 1
    assert not ex.certify(first, X, Z, loss=Huber(0.5)).erased


@pytest.mark.parametrize("seed", range(2))
def test_a_number_in_small_units_is_measured_as_closely_as_one_in_large_units(seed):
    """Less is left of the second, so the first is the worst."""
    rng = np.random.default_rng(seed)
    X, noise = rng.normal(size=(300, 5)), 3 * rng.normal(size=300)
    A = np.column_stack([X, np.ones(300)])
    noise -= A @ np.linalg.lstsq(A, noise)[0]
    Z = np.column_stack([1e8 * (X[:, 0] + rng.normal(size=300)), noise + 0.03 * X[:, 1]])
    both, *alone = (ex.certify(ex.Erasure.identity(5), X, z, loss=Huber(30.0)) for z in (Z, *Z.T))
    large, small = (found.gap / found.bound for found in alone)
    assert large > 2 * small > 1e-5
    assert both.worst == 0


def test_a_column_that_never_varies_is_erased_already():
    X, Z = planted("vector")
    Z[:, 1] = 7.25
    eraser = ex.RLACE(loss=Huber(0.5)).fit(X, Z)
    assert eraser.rank_ == 1
    assert eraser.certificate_.erased
    assert eraser.certificate_.worst == 0 or eraser.certificate_.gap == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_narrow_rows(dtype):
    X, Z = planted("number")
    X = X.astype(dtype)
    narrow = ex.RLACE(loss="huber", concept_type="continuous").fit(X, Z)
    wide = ex.RLACE(loss="huber", concept_type="continuous").fit(X.astype(float), Z)
    assert narrow.certificate_.erased
    np.testing.assert_allclose(narrow.erasure_.matrix(), wide.erasure_.matrix(), atol=1e-9)


# -- below the rank --------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", ["huber", "log_cosh", "poisson", "length"])
def test_below_the_rank_both_solvers_play(name, intercept):
    X, Z = planted("vector")
    Z = Z / 3  # gentle for the exponential
    options = {"loss": given(name), "concept_type": "continuous", "fit_intercept": intercept}
    found = ex.RLACE(1, **options).fit(X, Z)
    assert found.solver_ == "subspace_ascent"
    assert not found.certificate_.erased
    values = [record.value for record in found.history_]
    assert values == sorted(values)
    clean = found.transform(X)
    truth = best_loss(
        name, clean, Z, intercept=intercept, ridges=np.full(5, 1e-4 * X.var(axis=0).mean())
    )
    assert values[-1] == pytest.approx(truth, rel=1e-4)
    paper = ex.RLACE(
        1, solver="descent_ascent", max_iter=600, evaluate_every=200, step_size=0.05, **options
    ).fit(X, Z)
    assert max(record.value for record in paper.history_) <= values[-1] * (1 + 1e-5)
    directions = np.random.default_rng(0).normal(size=(20, 5))
    for u in directions / np.linalg.norm(directions, axis=1, keepdims=True):
        some = ex.Erasure(u[:, None], u[None], X.mean(axis=0) if intercept else None)
        left = ex.certify(some, X, Z, **options)
        assert left.value <= found.certificate_.primal + 1e-3 * left.bound


def test_a_kink_is_rounded_below_the_rank():
    X, Z = planted("vector")
    found = ex.RLACE(1, loss=LOSSES["pinball"], concept_type="continuous").fit(X, Z)
    assert found.solver_ == "subspace_ascent"
    assert found.certificate_.loss == "pinball"
    assert 0 < found.certificate_.value < found.certificate_.primal < found.certificate_.bound


def test_scale_std_plays_on_standardised_columns():
    X, Z = planted("vector")
    units = np.array([1.0, 10, 0.1, 3, 1])
    for rank in ("auto", 1, 4):
        options = {"loss": Huber(0.5), "concept_type": "continuous"}
        found = ex.RLACE(rank, scale="std", **options).fit(X * units, Z)
        by_hand = ex.RLACE(rank, **options).fit(X / X.std(axis=0), Z)
        np.testing.assert_allclose(
            found.transform(X * units) / (units * X.std(axis=0)),
            by_hand.transform(X / X.std(axis=0)),
            atol=1e-6,
        )


# -- streams ---------------------------------------------------------------------------------------


def test_a_stream_refuses_numbers_whose_residuals_need_all_rows():
    X, Z = planted("number")
    for loss in ("huber", Poisson()):
        eraser = ex.RLACE(loss=loss, concept_type="continuous")
        with pytest.raises(ex.InputError, match=r"cannot stream.*loss='squared', which streams"):
            eraser.partial_fit(X[:50], Z[:50])
        assert not hasattr(eraser, "n_features_in_")  # nothing was kept
    moments = check_rows(X).moments(check_concept(Z, len(X), concept_type="continuous"))
    with pytest.raises(ex.InputError, match="needs the rows themselves"):
        certify_moments(moments, ex.Erasure.identity(5), Huber())


@pytest.mark.parametrize("loss", ["auto", "squared", LOSSES["half_squared"]])
def test_a_stream_of_numbers_under_a_quadratic_loss_equals_the_whole(loss):
    X, Z = planted("vector")
    stream = ex.RLACE(loss=loss, concept_type="continuous")
    for part in np.array_split(np.arange(len(X)), 4):
        stream.partial_fit(X[part], Z[part])
    whole = ex.RLACE(loss=loss, concept_type="continuous").fit(X, Z)
    np.testing.assert_allclose(stream.erasure_.matrix(), whole.erasure_.matrix(), atol=1e-10)
    assert stream.certificate_.erased


def test_a_stream_of_classes_takes_every_loss():
    data = plant("binary")
    stream = ex.RLACE(loss="huber").partial_fit(data.X[:200], data.y[:200])
    stream.partial_fit(data.X[200:], data.y[200:])
    whole = ex.RLACE(loss="huber").fit(data.X, data.y)
    np.testing.assert_allclose(stream.erasure_.matrix(), whole.erasure_.matrix(), atol=1e-10)


# -- losses that would prove nothing ---------------------------------------------------------------


class Broken(ColumnLoss):
    """Squared, but for what a test changes."""

    name = "broken"
    kinds = frozenset({"classes", "continuous"})

    def elements(self, Y, S):
        return (Y - S) ** 2

    def derivative(self, Y, S):
        return 2 * (S - Y)

    def second(self, Y, S):
        return np.full_like(S, 2.0)


class WrongSign(Broken):
    def derivative(self, Y, S):
        return 2 * (Y - S)


class WrongScale(Broken):
    def derivative(self, Y, S):
        return 3 * (S - Y)


class NotConvex(Broken):
    def elements(self, Y, S):
        return np.log1p((Y - S) ** 2)

    def derivative(self, Y, S):
        return 2 * (S - Y) / (1 + (Y - S) ** 2)


class Negative(Broken):
    """Squared without what depends on y alone: the same predictor, another null model."""

    def elements(self, Y, S):
        return S**2 - 2 * Y * S


class Twice(Broken):
    def elements(self, Y, S):
        return 2 * (Y - S) ** 2


class Above(Broken):
    @property
    def surrogates(self):
        return (Twice(),)


class Kinked(Broken):
    def elements(self, Y, S):
        return np.abs(Y - S)

    def derivative(self, Y, S):
        return np.where(S > Y, 1.0, -1.0)

    def second(self, Y, S):
        return np.zeros_like(S)


class NoSum(Broken):
    """Claims to be a sum over columns, and is their product."""

    def values(self, Y, S):
        return (1 + super().elements(Y, S)).prod(axis=1)


class Undefined(Broken):
    def elements(self, Y, S):
        return np.sqrt(S - Y)


@pytest.mark.parametrize(
    ("loss", "fault"),
    [
        (NoSum(), "sum of `elements`|below its tangents"),
        (Undefined(), "not a finite number"),
        (WrongSign(), "below its tangents"),
        (WrongScale(), "below its tangents"),
        (NotConvex(), "below its tangents"),
        (Negative(), "is negative"),
        (Above(), "surrogates"),
    ],
    ids=lambda v: type(v).__name__,
)
@pytest.mark.parametrize("intercept", [True, False])
def test_a_loss_that_would_prove_nothing_is_refused(loss, fault, intercept):
    X, Z = planted("number")
    concepts = {"continuous": Z, "classes": (Z[:, 0] > 1).astype(int)}
    for kind, y in concepts.items():
        options = {"loss": loss, "concept_type": kind, "fit_intercept": intercept}
        with pytest.raises(ex.InputError, match=fault):
            ex.RLACE(**options).fit(X, y)
        with pytest.raises(ex.InputError, match=fault):
            ex.certify(ex.Erasure.identity(5), X, y, **options)


def test_a_kink_at_the_best_constant_asks_for_its_residuals():
    X, Z = planted("number", n=251)
    with pytest.raises(ex.InputError, match=r"do not add up to zero.*null_residual"):
        ex.RLACE(loss=Kinked(), concept_type="continuous").fit(X, Z)


def test_residuals_that_are_no_subderivatives_are_refused():
    class Flat(Kinked):
        surrogates = property(lambda self: (Huber(1e-3),))

        def null_residual(self, Y, w, intercept):
            return 0 * Y  # they add up, but to be erased already

    X, Z = planted("number", n=251)
    with pytest.raises(ex.InputError, match="holds no subderivatives"):
        ex.certify(ex.Erasure.identity(5), X, Z, loss=Flat(), concept_type="continuous")


def test_where_the_best_constant_makes_no_error_nothing_can_be_left():
    class WideTube(ColumnLoss):
        """Half the square of what an error exceeds 100 by."""

        name = "wide_tube"
        kinds = frozenset({"continuous"})

        def elements(self, Y, S):
            return self.derivative(Y, S) ** 2 / 2

        def derivative(self, Y, S):
            return np.sign(S - Y) * np.maximum(np.abs(S - Y) - 100, 0)

        def second(self, Y, S):
            return 1.0 * (np.abs(S - Y) > 100)

    X, Z = planted("vector")
    found = ex.certify(ex.Erasure.identity(5), X, Z, loss=WideTube())
    assert found.value == found.bound == 0
    assert found.erased
    assert not ex.certify(ex.Erasure.identity(5), X, 1e3 * Z, loss=WideTube()).erased


def test_a_quadratic_loss_is_one():
    class Cubic(Broken):
        quadratic = True

        def elements(self, Y, S):
            return np.abs(Y - S) ** 3

        def derivative(self, Y, S):
            return 3 * (S - Y) * np.abs(S - Y)

    class Logarithms(Broken):
        """Quadratic in another encoding than the moments have."""

        quadratic = True

        def encode(self, Z, kind):
            return np.sinh(Z)

    X, Z = planted("number")
    for loss in (Cubic(), Logarithms()):
        with pytest.raises(ex.InputError, match="says it is `quadratic`"):
            ex.RLACE(loss=loss, concept_type="continuous").fit(X, Z)
        type(loss).quadratic = False
        assert ex.RLACE(loss=loss, concept_type="continuous").fit(X, Z).certificate_.erased


def test_a_balance_that_is_none_is_not_believed():
    """A share that leaves the residuals a mean would prove too much."""

    class Unbalanced(Huber):
        def balance(self, Y, w, intercept, slope):
            return intercept, 0.0

    data = plant("binary")
    found = ex.certify(ex.Erasure.identity(8), data.X, data.y, loss=Unbalanced(0.3))
    exact = ex.certify(ex.Erasure.identity(8), data.X, data.y, loss=Huber(0.3))
    assert found.value <= exact.primal + 1e-9
    assert not found.erased


def test_scores_that_interact_are_certified_without_help():
    """A softmax that gives nothing but its derivatives."""

    class Plain(Multinomial):
        name = "plain"
        null_intercept, balance = Loss.null_intercept, Loss.balance

    data = plant("classes")
    erasure = ex.RayleighEraser(1, objective="pca").fit(data.X).erasure_
    found, known = (ex.certify(erasure, data.X, data.y, loss=o) for o in (Plain(), Multinomial()))
    assert not found.erased
    assert found.value == pytest.approx(known.value, rel=1e-6)
    assert found.value <= known.primal
    assert ex.RLACE(loss=Plain()).fit(data.X, data.y).certificate_.erased


def test_a_loss_that_lacks_a_piece_is_told_which():
    class Half:
        name = "half"

        def derivative(self, Y, S):
            return S - Y

    X, Z = planted("number")
    with pytest.raises(ex.InputError, match=r"no .*values") as caught:
        ex.RLACE(loss=Half(), concept_type="continuous").fit(X, Z)
    assert "hessian" in str(caught.value)
    with pytest.raises(ex.InputError, match="a class, not an object"):
        ex.RLACE(loss=Huber).fit(X, Z)
    with pytest.raises(ex.InputError, match="Unknown loss"):
        ex.RLACE(loss="hubert").fit(X, Z)
    with pytest.raises(ex.InputError, match="delta must be a positive number"):
        Huber(0.0)


# -- the default -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("binary", "cross_entropy"),
        ("classes", "cross_entropy"),
        ("labels", "cross_entropy"),
        ("number", "squared"),
        ("vector", "squared"),
    ],
)
def test_one_rule_for_the_loss_by_default(kind, name):
    data = plant(kind, n=200)
    eraser = ex.RLACE().fit(data.X, data.y)
    assert eraser.certificate_.loss == name
    assert eraser.certificate_.erased
    named = ex.RLACE(loss=name).fit(data.X, data.y)
    np.testing.assert_array_equal(eraser.erasure_.left, named.erasure_.left)
    assert ex.certify(eraser, data.X, data.y).loss == name
    assert ex.certify(eraser, data.X, data.y, loss=None).loss == name
    assert ex.LEACE().fit(data.X, data.y).certificate_.loss == name
    assert ex.INLP(1).fit(data.X, data.y).certificate_.loss == name
    assert eraser.erasure_.meta["parameters"]["loss"] == "auto"
    assert loss_for("auto", "continuous" if name == "squared" else "classes", 2).name == name
    path = ex.rank_path(data.X, data.y, ranks=["auto"])
    assert path.bound == pytest.approx(eraser.certificate_.bound)


def test_floats_just_work():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    z = X @ [1.0, 2.0, 0.0, 0.0] + rng.normal(size=200)
    eraser = ex.RLACE().fit(X, z)
    clean = eraser.transform(X)
    assert np.abs(np.corrcoef(clean.T, z)[-1, :-1]).max() < 1e-12
