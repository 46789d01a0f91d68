"""The judges themselves: the predictor is the best there is, and a false claim is found."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
from best_predictor import best_predictor, encoded, null_values
from building import build
from calling import run
from certificates import check_certificate
from findings import Finding
from plans import Plan, Rows, Target, Weights
from promises import broken_promise
from sklearn.linear_model import LogisticRegression, Ridge

import expunge as ex

ALPHAS = (1.0, 1e-2, 1e-4)
LOSSES = ("logistic", "multinomial", "squared", "hinge", "squared_hinge")


def rows(loss, n=80, d=4, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3 if loss == "multinomial" else 2, n)
    F = rng.normal(size=(n, d)) + rng.normal(size=(3, d))[y]
    w = rng.random(n) * (rng.random(n) < 0.8)
    return F, encoded(np.eye(y.max() + 1)[y], "classes", loss), y, w / w.sum()


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("loss", ["logistic", "multinomial"])
def test_entropy_agrees_with_scikit_learn(loss, alpha):
    F, Y, y, w = rows(loss)
    best = best_predictor(F, Y, w, loss, alpha)
    model = LogisticRegression(C=1 / alpha, tol=1e-10, max_iter=5000).fit(F, y, sample_weight=w)
    p = model.predict_log_proba(F)[np.arange(len(y)), y]
    reached = -(w @ p) + alpha / 2 * np.sum(model.coef_**2)
    assert best.value == pytest.approx(reached, rel=1e-7)
    assert best.value <= reached * (1 + 1e-9)
    assert best.least.sum() == pytest.approx(best.value, rel=1e-7)


@pytest.mark.parametrize("units", [1.0, 1e21, 1e-21])
@pytest.mark.parametrize("intercept", [True, False])
def test_squares_agree_with_ridge_regression(intercept, units):
    F, _, _, w = rows("squared")
    Y = F @ np.random.default_rng(1).normal(size=(4, 2)) + np.random.default_rng(2).normal(
        size=(80, 2)
    )
    Y *= units
    alpha = 0.1  # ½ alpha |Θ|² beside the squared error is a ridge of alpha / 2
    model = Ridge(alpha=alpha / 2, fit_intercept=intercept).fit(F, Y, sample_weight=w)
    reached = w @ (Y - model.predict(F)) ** 2 + alpha / 2 * (model.coef_**2).sum(axis=1)
    best = best_predictor(F, Y, w, "squared", alpha, intercept)
    np.testing.assert_allclose(best.values, reached, rtol=1e-9)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_margins_agree_with_a_quadratic_program(loss, alpha):
    """Slacks as variables, solved by SLSQP from the null model."""
    F, Y, _, w = rows(loss, n=30, d=2)
    d, n, y, power = 2, 30, Y[:, 0], 2 if loss == "squared_hinge" else 1

    def value(v):
        return w @ v[d + 1 :] ** power + alpha / 2 * v[:d] @ v[:d]

    def slope(v):
        u = v[d + 1 :]
        return np.concatenate([alpha * v[:d], [0], w * (2 * u if power == 2 else 1)])

    limits = {
        "type": "ineq",
        "fun": lambda v: v[d + 1 :] - 1 + y * (F @ v[:d] + v[d]),
        "jac": lambda v: np.hstack([y[:, None] * F, y[:, None], np.eye(n)]),
    }
    solved = scipy.optimize.minimize(
        value,
        np.append(np.zeros(d + 1), np.ones(n)),
        jac=slope,
        constraints=[limits],
        bounds=[(None, None)] * (d + 1) + [(0, None)] * n,
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    best = best_predictor(F, Y, w, loss, alpha)
    assert best.value == pytest.approx(solved.fun, rel=1e-3 if loss == "hinge" else 1e-6)
    assert best.least.sum() <= solved.fun * (1 + 1e-9)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", [True, False])
def test_the_null_model_is_what_a_blind_predictor_reaches(loss, intercept):
    F, Y, _, w = rows(loss)
    blind = best_predictor(np.zeros_like(F), Y, w, loss, 1e-4, intercept)
    np.testing.assert_allclose(null_values(Y, w, loss, intercept), blind.values, atol=1e-3)
    seeing = best_predictor(F, Y, w, loss, 1e-4, intercept)
    assert seeing.value < 0.9 * blind.value


# -- a certificate that says too much is found -----------------------------------------------------

PLAN = Plan("LEACE", rows=Rows(n=60, d=4), target=Target("classes", 3))


def certified(plan=PLAN, **parameters):
    case = build(plan)
    eraser = ex.ERASERS[plan.entry](**parameters).fit(case.X, case.y)
    return case, eraser, eraser.certificate_


def test_true_certificates_pass():
    for parameters in ({}, {"strength": 0.5}, {"rank": 1}):
        case, eraser, certificate = certified(**parameters)
        assert certificate.erased == (not parameters)
        check_certificate(certificate, eraser, case)


@pytest.mark.parametrize(
    ("lie", "name"),
    [
        (lambda c: {"value": c.primal * 1.001}, "value"),
        (lambda c: {"value": c.bound, "primal": c.bound}, "value above"),
        (lambda c: {"primal": c.primal * 0.99, "value": 0.0}, "primal below"),
        (lambda c: {"primal": c.bound * 1.1}, "value <= primal <= bound"),
        (lambda c: {"bound": c.bound * 1.01}, "wrong bound"),
        (lambda c: {"value": float("nan")}, "not finite"),
        (lambda c: {"value": 0.0, "primal": c.bound, "erased": True}, "a column is not"),
    ],
)
def test_false_certificates_are_found(lie, name):
    case, eraser, certificate = certified(strength=0.5)
    told = replace(certificate, **lie(certificate))
    with pytest.raises(Finding, match=name):
        check_certificate(told, eraser, case)


def test_another_erasure_than_the_certified_one_is_found():
    case, eraser, certificate = certified()
    assert broken_promise(eraser, case) is None
    weak = ex.LEACE(strength=0.99).fit(case.X, case.y)
    with pytest.raises(Finding, match="value above"):
        check_certificate(certificate, weak.erasure_, case)


def test_a_ridge_that_hides_a_column_is_found():
    """One ridge for all columns hides what sits in a column a million times smaller."""
    case = build(Plan("certify", rows=Rows(n=60, d=2, gap=3.0, one_scale=1e6)))
    first = ex.Erasure([[1.0], [0.0]], [[1.0, 0.0]], case.values.mean(axis=0))
    certificate = ex.certify(first, case.X, case.y)
    assert not certificate.erased
    check_certificate(certificate, first, case)
    c = certificate
    blind = replace(c, ridges=c.ridges * 0 + 1e8, value=c.bound, primal=c.bound, erased=True)
    with pytest.raises(Finding, match="too large a unit"):
        check_certificate(blind, first, case)


def test_a_broken_promise_is_found(monkeypatch):
    case = build(PLAN)
    half = ex.LEACE(strength=0.5).fit(case.X, case.y)
    monkeypatch.setattr(half, "strength", 1.0)
    assert broken_promise(half, case).name == "equal_means does not hold"


# -- and so are the other faults -------------------------------------------------------------------


def faulty(monkeypatch, method, replacement):
    monkeypatch.setattr(ex.LEACE, method, replacement)
    with pytest.raises(Finding) as found:
        run(PLAN)
    return found.value


def test_raw_errors_are_found(monkeypatch):
    def fit(self, X, y, **_):
        raise np.linalg.LinAlgError("Singular matrix")

    found = faulty(monkeypatch, "fit", fit)
    assert (found.outcome, found.name) == ("raw", "LinAlgError in the caller")


def test_foreign_warnings_are_found(monkeypatch):
    before = ex.LEACE.fit

    def fit(self, X, y, **others):
        np.float64(1.0) / np.float64(0.0)
        return before(self, X, y, **others)

    assert faulty(monkeypatch, "fit", fit).name.startswith("RuntimeWarning")


def test_endless_calls_are_found(monkeypatch):
    def fit(self, X, y, **_):
        while True:
            pass

    monkeypatch.setattr("calling.SECONDS", 0.2)
    assert faulty(monkeypatch, "fit", fit).name == "fit takes too long"


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_none_are_found(monkeypatch, value):
    def transform(self, X):
        return np.full_like(X, value)

    assert faulty(monkeypatch, "transform", transform).name == "NaN or infinity out of transform"


def test_a_stream_that_forgets_is_found(monkeypatch):
    before = ex.LEACE.partial_fit

    def partial_fit(self, X, y, **others):
        return before(self, 2 * X, y, **others)

    assert faulty(monkeypatch, "partial_fit", partial_fit).name == "a stream differs from a fit"


def test_bad_input_that_is_accepted_is_found(monkeypatch):
    monkeypatch.setattr("expunge.erasers.base.check_weights", lambda w, n: None)
    with pytest.raises(Finding, match="accepted bad negative"):
        run(replace(PLAN, weights=Weights(defect="negative")))
