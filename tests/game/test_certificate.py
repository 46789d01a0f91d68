"""A certificate proves; it must refuse whatever is not proven."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax
from sklearn.linear_model import LogisticRegression
from test_closed_form import best_loss, encoded

import expunge as ex
from expunge.game import certificate as certificate_module
from expunge.game.certificate import certify, certify_moments
from expunge.game.losses import loss_for
from expunge.game.predictor import Problem, dual_bound, fit_predictor
from expunge.inputs import check_concept, check_rows
from expunge.rows.dense import DenseRows
from planted import plant


def identity(d):
    return ex.Erasure(np.zeros((d, 0)), np.zeros((0, d)))


def certificate(X, y, erasure, loss="cross_entropy", **options):
    rows = check_rows(X)
    concept = check_concept(y, rows.n_samples)
    return certify(rows, concept, erasure, loss_for(loss, concept.kind, concept.width), **options)


def test_an_exact_erasure_is_certified_and_says_so():
    data = plant("binary")
    found = certificate(data.X, data.y, ex.RLACE().fit(data.X, data.y).erasure_)
    assert found.erased
    assert found.gap <= 1e-8 * found.bound
    assert found.bits_left == pytest.approx(found.gap / np.log(2))
    assert str(found).startswith("erased: every linear predictor has cross_entropy loss >=")
    assert found.to_dict()["ridge"] == found.ridge


@pytest.mark.parametrize("passes", [1, 2, 4])
def test_a_half_converged_predictor_proves_nothing(passes):
    data = plant("binary")
    found = certificate(data.X, data.y, identity(8), max_passes=passes)
    assert not found.erased
    assert found.value <= certificate(data.X, data.y, identity(8)).primal + 1e-9


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_scaling_the_rows_changes_nothing(scale):
    data = plant("binary")
    found = certificate(data.X * scale, data.y, identity(8))
    assert not found.erased
    plain = certificate(data.X, data.y, identity(8))
    assert found.value == pytest.approx(plain.value, rel=1e-6)
    assert found.ridge == pytest.approx(plain.ridge * scale**2)
    erased = certificate(data.X * scale, data.y, ex.RLACE().fit(data.X, data.y).erasure_)
    assert erased.erased


def test_an_erasure_rotated_by_one_degree_is_rejected():
    data = plant("binary")
    u = ex.RLACE().fit(data.X, data.y).erasure_.basis[0]
    v = np.linalg.qr(np.column_stack([u, np.eye(8)]))[0][:, 1]
    turned = np.cos(np.radians(1)) * u + np.sin(np.radians(1)) * v
    found = certificate(data.X, data.y, ex.Erasure(turned[:, None], turned[None]))
    assert not found.erased
    assert found.gap > 1e-4


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", ["cross_entropy", "squared", "squared_hinge", "hinge"])
def test_the_value_brackets_the_true_loss(loss, intercept):
    data = plant("binary")
    erasure = ex.RayleighEraser(1, objective="pca").fit(data.X).erasure_
    found = certificate(data.X, data.y, erasure, loss, fit_intercept=intercept, alpha=1e-2)
    exact, Y = encoded("binary", loss, data.Z)
    # an independent solver on rows erased by hand, with the same ridge for each column
    truth = best_loss(exact, erasure(data.X) / np.sqrt(found.ridges), Y, intercept, ridge=1.0)
    assert found.value <= truth + 1e-7
    assert found.primal >= truth - 1e-7
    assert found.primal - found.value < (0.01 if loss == "hinge" else 1e-6) * found.bound
    assert truth < 0.9 * found.bound


def test_moments_alone_give_a_valid_if_loose_bound():
    data = plant("classes")
    rows, concept = check_rows(data.X), check_concept(data.y, len(data.X))
    loss = loss_for("cross_entropy", "classes", 4)
    partly = ex.RayleighEraser(1, objective="pls").fit(data.X, data.y).erasure_
    quick = certify_moments(rows.moments(concept, second=False), partly, loss)
    full = certify(rows, concept, partly, loss)
    assert not quick.erased
    assert quick.value <= full.primal
    assert full.value > quick.value


def test_weights_count():
    data = plant("binary")
    w = np.where(data.y == 1, 3.0, 1.0)
    eraser = ex.RLACE().fit(data.X, data.y, sample_weight=w)
    assert eraser.certificate_.erased
    repeated = np.repeat(np.arange(len(w)), w.astype(int))
    again = ex.RLACE().fit(data.X[repeated], data.y[repeated])
    assert eraser.certificate_.bound == pytest.approx(again.certificate_.bound)
    np.testing.assert_allclose(eraser.erasure_.matrix(), again.erasure_.matrix(), atol=1e-12)


def test_no_tolerance_at_all_does_not_mean_endless_passes():
    class Counted(DenseRows):
        passes = 0

        def glm_pass(self, *args, **options):
            Counted.passes += 1
            return super().glm_pass(*args, **options)

    data = plant("binary")
    concept = check_concept(data.y, len(data.X))
    loss = loss_for("cross_entropy", concept.kind, concept.width)
    found = certify(Counted(data.X), concept, identity(8), loss, tol=0.0)
    exact = certificate(data.X, data.y, identity(8), tol=1e-9)
    assert not found.erased
    assert found.value == pytest.approx(exact.value, rel=1e-7)
    assert Counted.passes < 100


# -- sound whatever the weights, the units and the intercept ---------------------------------------


def independent(X, y, weights, ridges):
    """Loss plus ridge of the best multinomial predictor, by a general-purpose minimiser."""
    Z, w = np.eye(y.max() + 1)[y], weights / weights.sum()
    A = (X - np.average(X, axis=0, weights=w)) / np.sqrt(ridges)
    shape = (A.shape[1] + 1, Z.shape[1])

    def f(flat):
        theta = flat.reshape(shape)
        S = A @ theta[:-1] + theta[-1]
        R = w[:, None] * (softmax(S, axis=1) - Z)
        value = w @ (logsumexp(S, axis=1) - (S * Z).sum(1)) + 0.5 * np.sum(theta[:-1] ** 2)
        return value, np.vstack([A.T @ R + theta[:-1], R.sum(0)]).ravel()

    start = np.zeros(shape)
    start[-1] = np.log(w @ Z)
    options = {"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-12}
    return minimize(f, start.ravel(), jac=True, method="L-BFGS-B", options=options).fun


def heavy(seed):
    rng = np.random.default_rng(seed)
    y = np.arange(60) % 3
    y[3:] %= 2
    X = rng.normal(size=(60, 2)) + 30 * rng.normal(size=(3, 2))[y]
    return X, y, rng.choice([1, 1e6], 60)


@pytest.mark.parametrize("seed", [273, *range(12)])
def test_heavy_weights_do_not_flatter(seed):
    X, y, w = heavy(seed)
    found = ex.RLACE(strength=0.0).fit(X, y, sample_weight=w).certificate_
    truth = independent(X, y, w, found.ridges)
    assert truth < 0.5 * found.bound  # the classes lie far apart
    assert not found.erased
    assert found.value <= truth * (1 + 1e-6) + 1e-12
    assert found.value <= found.primal <= found.bound


@pytest.mark.parametrize("shift", [0.0, 1e-7, 0.3, -3.0, 40.0])
@pytest.mark.parametrize("kind", ["binary", "classes", "labels", "number", "vector"])
def test_the_dual_bound_holds_at_any_intercept(kind, shift):
    """The bound is taken at intercepts far from the best; it must stay below the optimum."""
    data = plant(kind)
    rows = check_rows(data.X)
    concept = check_concept(data.y, rows.n_samples)
    name = "squared" if concept.kind == "continuous" else "cross_entropy"
    problem = Problem(
        rows, concept, loss_for(name, concept.kind, concept.width), rows.moments(concept)
    )
    best = fit_predictor(problem, tol=1e-10)
    direction = np.linspace(-1, 1, best.intercept.size + 1)[1:]
    b = best.intercept + shift * direction
    *_, got = problem.evaluate(best.coef * problem.unit, b)
    bound = dual_bound(problem, best.coef * problem.unit, b, got)
    assert bound <= best.value + 1e-12
    if shift == 0:
        assert bound == pytest.approx(best.value, rel=1e-6)
    if shift == 1e-7:
        assert bound > 0.99 * best.value  # and it is not vacuous


def test_bounds_that_contradict_each_other_prove_nothing(monkeypatch):
    data = plant("binary")
    monkeypatch.setattr(certificate_module, "fit_predictor", flattering)
    with pytest.warns(ex.NotConverged, match="contradict each other"):
        found = certificate(data.X, data.y, identity(8))
    assert not found.erased
    assert found.value <= found.primal <= found.bound


def flattering(problem, **options):
    """A solver whose arithmetic has gone wrong."""
    found = fit_predictor(problem, **options)
    return replace(found, lower_bound=found.value + 1.0)


@pytest.mark.parametrize("wide", [1.0, 1e2, 1e5, 1e8])
def test_a_wide_column_hides_no_other(wide):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 600)
    X = rng.normal(size=(600, 4)) + 1.5 * rng.normal(size=(3, 4))[y]
    X = X * [wide, 1, 1, 1]
    e1 = np.eye(4)[:, :1]
    gone = ex.Erasure(e1, e1.T, X.mean(0))
    found = certificate(X, y, gone)
    score = LogisticRegression().fit(gone(X)[:, 1:], y).score(gone(X)[:, 1:], y)
    assert score > 0.6
    assert not found.erased
    assert found.gap > 0.2 * found.bound
    plain = certificate(X / [wide, 1, 1, 1], y, ex.Erasure(e1, e1.T))
    assert found.value == pytest.approx(plain.value, rel=1e-5)


@pytest.mark.parametrize("left", [1e-3, 1e-6])
def test_a_column_that_is_only_scaled_down_is_not_erased(left):
    """Who standardises the erased rows reads it again."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    X = np.column_stack([y + 0.1 * rng.normal(size=400), rng.normal(size=400)])
    e1 = np.eye(2)[:, :1]
    found = certificate(X, y, ex.Erasure((1 - left) * e1, e1.T, X.mean(0)))
    assert not found.erased
    assert found.gap > 0.9 * found.bound
    assert certificate(X, y, ex.RLACE().fit(X, y).erasure_).erased


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3, 1e12])
def test_several_concepts_are_judged_one_by_one(unit):
    rng = np.random.default_rng(0)
    g, t = rng.integers(0, 2, 500), rng.normal(size=500)
    X = rng.normal(size=(500, 4)) + np.outer(g, [2, 0, 0, 1]) + np.outer(t, [0, 1, 1, 0])
    both = {"gender": g, "when": unit * t}
    only_when = ex.RLACE(loss="squared").fit(X, t)
    read = LogisticRegression().fit(only_when.transform(X), g).score(only_when.transform(X), g)
    assert read > 0.8
    found = ex.certify(only_when, X, both)
    assert not found.erased
    assert str(found.worst).startswith("gender")
    for name in ("LEACE", "SAL", "RLACE"):
        options = {"loss": "squared"} if name == "RLACE" else {}
        full = ex.ERASERS[name](**options).fit(X, both)
        assert full.rank_ == 2
        assert full.certificate_.erased


@pytest.mark.parametrize("alpha", [1e300, -1e-4, 0.0, float("nan"), "1e-4", None])
def test_certify_refuses_a_ridge_that_is_none(alpha):
    data = plant("binary")
    with pytest.raises(ex.InputError, match="alpha must be"):
        ex.certify(identity(8), data.X, data.y, alpha=alpha)


@pytest.mark.parametrize("tol", [-1.0, float("nan"), "small"])
def test_certify_refuses_a_tolerance_that_is_none(tol):
    data = plant("binary")
    with pytest.raises(ex.InputError, match="tol must be"):
        ex.certify(identity(8), data.X, data.y, tol=tol)


def test_certify_takes_whatever_erases():
    data = plant("classes")
    oracle = ex.OracleLEACE().fit(data.X, data.y)
    for eraser in (ex.LEACE().fit(data.X, data.y), oracle, oracle.conditional_erasure_):
        assert ex.certify(eraser, data.X, data.y).erased
        assert ex.certify(eraser, data.X, data.y, as_transformed=True).erased
    for wrong in (None, "gender", data.X, ex.LEACE, 3):
        with pytest.raises(ex.InputError, match="not an erasure"):
            ex.certify(wrong, data.X, data.y)


@pytest.mark.parametrize("name", ["OracleLEACE", "QuadraticLEACE"])
@pytest.mark.parametrize("strength", [0.0, 0.5, 0.9])
def test_told_erasers_below_full_strength_have_a_real_certificate(name, strength):
    data = plant("classes")
    eraser = ex.ERASERS[name](strength=strength).fit(data.X, data.y)
    found = eraser.certificate_
    assert not found.erased
    clean = eraser.transform(data.X, concept=data.y)
    codes = np.unique(data.y, return_inverse=True)[1]
    truth = independent(clean, codes, np.ones(len(codes)), found.ridges)
    assert 0 < truth < 0.99 * found.bound
    assert found.value == pytest.approx(truth, rel=1e-5)
    again = ex.certify(eraser, data.X, data.y)
    assert again.value == pytest.approx(found.value, rel=1e-4)
    stream = ex.ERASERS[name](strength=strength).partial_fit(data.X, data.y)
    assert stream.certificate_ is None  # a share of a told map needs the rows


def test_rounded_rows_are_certified_as_they_come_out():
    """float16 far from zero: the map is exact, the rows are not."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 4000)
    X = (rng.normal(size=(4000, 6)) * 0.05 + 0.3 * y[:, None] + 100).astype(np.float16)
    with pytest.warns(ex.RoundingShows):
        eraser = ex.LEACE().fit(X, y)
    assert eraser.certificate_.erased
    assert ex.certify(eraser, X, y).erased
    found = ex.certify(eraser, X, y, as_transformed=True)
    clean = eraser.transform(X).astype(float)
    truth = independent(clean, y, np.ones(len(y)), found.ridges)
    assert found.value == pytest.approx(truth, rel=1e-4)
    assert not found.erased


def accuracy_of_scaled(X, y, weights=None):
    X = X - np.average(X, axis=0, weights=weights)
    X = X / np.sqrt(np.average(X**2, axis=0, weights=weights))
    return LogisticRegression(C=1e4, max_iter=5000).fit(X, y, weights).score(X, y, weights)


@pytest.mark.parametrize("n", [2047, 2048])
def test_classes_that_alternate_hide_nothing(n):
    """Of every second row the spread is that of one class, and gave far too large a ridge."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, 3))
    X[:, 0] += 1e5 * y
    eraser = ex.OracleLEACE(strength=0.99999).fit(X, y)
    assert accuracy_of_scaled(eraser.transform(X, concept=y), y) > 0.65
    assert not eraser.certificate_.erased
    plain = ex.certify(ex.Erasure.identity(3), X, y)
    assert plain.bits_left > 0.9
    assert plain.variance_kept == pytest.approx(1.0)


def test_few_heavy_rows_decide_on_the_ridge():
    """Their spread is that of the column, not that of the many rows that hardly count."""
    rng, n = np.random.default_rng(0), 6000
    y, w, X = np.arange(n) % 2, np.ones(n), rng.normal(size=(n, 3))
    w[:400] = 1e6
    X[:400, 0] += 3e5 * y[:400]
    order = rng.permutation(n)
    X, y, w = X[order], y[order], w[order]
    eraser = ex.OracleLEACE(strength=0.999995).fit(X, y, sample_weight=w)
    clean, found = eraser.transform(X, concept=y), eraser.certificate_
    spread = np.average((clean - np.average(clean, axis=0, weights=w)) ** 2, axis=0, weights=w)
    np.testing.assert_allclose(found.ridges, 1e-4 * spread, rtol=1e-6)
    truth = independent(clean, y, w, found.ridges)
    assert found.value <= truth * (1 + 1e-9)
    assert found.value == pytest.approx(truth, rel=1e-6)


def test_certify_wants_two_classes_that_count():
    X, y = np.random.default_rng(0).normal(size=(50, 3)), np.arange(50) % 2
    with pytest.raises(ex.InputError, match="one class only"):
        ex.certify(ex.Erasure.identity(3), X, y, sample_weight=y.astype(float))
