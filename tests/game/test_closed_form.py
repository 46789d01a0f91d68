"""The theorem of the null residual, by roads that share no code with it."""

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
from sklearn.linear_model import LogisticRegression

import expunge as ex
from expunge.game.losses import loss_for
from planted import KINDS, plant

SETTINGS = [
    (kind, loss)
    for kind in KINDS
    for loss in ("cross_entropy", "squared", "squared_hinge", "hinge")
    if loss == "squared" or kind in ("binary", "classes", "labels")
]
KIND_OF = {"binary": "classes", "classes": "classes", "labels": "labels"}


def encoded(kind, loss_name, Z):
    columns = np.hstack([1 - Z, Z]) if kind == "binary" else Z
    loss = loss_for(loss_name, KIND_OF.get(kind, "continuous"), columns.shape[1])
    return loss, loss.encode(columns, KIND_OF.get(kind, "continuous"))


def best_loss(loss, X, Y, intercept, ridge=1e-9):
    """Minimum mean loss of a linear predictor by scipy, with a ridge (vanishing by default)."""
    loss = loss.surrogates[-1]
    d, m, n = X.shape[1], Y.shape[1], len(X)

    def objective(v):
        theta, b = v[: d * m].reshape(d, m), v[d * m :] * intercept
        S = X @ theta + b
        R = loss.derivative(Y, S) / n
        g = np.concatenate([(X.T @ R).ravel() + ridge * v[: d * m], R.sum(axis=0) * intercept])
        return loss.values(Y, S).mean() + ridge / 2 * np.sum(theta**2), g

    start = np.zeros(d * m + m)
    options = {"maxiter": 5000, "maxfun": 10000, "ftol": 1e-15, "gtol": 1e-9}
    return scipy.optimize.minimize(
        objective, start, jac=True, method="L-BFGS-B", options=options
    ).fun


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("kind", "loss_name"), SETTINGS)
def test_no_linear_predictor_beats_the_null_model(kind, loss_name, intercept):
    data = plant(kind)
    loss, Y = encoded(kind, loss_name, data.Z)
    eraser = ex.RLACE(loss=loss_name, fit_intercept=intercept).fit(data.X, data.y)
    bound = eraser.certificate_.bound
    assert best_loss(loss, data.X, Y, intercept) < 0.9 * bound  # the concept was there
    clean = eraser.transform(data.X)
    slack = 1e-3 * Y.shape[1] if loss_name == "hinge" else 1e-7  # what smoothing takes off
    assert best_loss(loss, clean, Y, intercept) >= bound - slack
    assert eraser.certificate_.gap <= 1e-8 * bound
    assert eraser.certificate_.erased
    assert eraser.certificate_.optimal


@pytest.mark.parametrize("intercept", [True, False])
def test_logistic_regression_of_scikit_learn_learns_nothing(intercept):
    data = plant("binary")
    model = LogisticRegression(C=1e6, fit_intercept=intercept, max_iter=5000, tol=1e-10)
    assert model.fit(data.X, data.y).score(data.X, data.y) > 0.85
    clean = ex.RLACE(fit_intercept=intercept).fit_transform(data.X, data.y)
    guess = model.fit(clean, data.y).predict_proba(clean)[:, 1]
    np.testing.assert_allclose(guess, data.y.mean() if intercept else 0.5, atol=1e-4)


def test_class_means_span_what_is_erased_for_cross_entropy():
    data = plant("classes")
    means = np.array([data.X[data.y == c].mean(axis=0) for c in np.unique(data.y)])
    angles = scipy.linalg.subspace_angles(
        ex.RLACE().fit(data.X, data.y).erasure_.basis.T, (means - means[0])[1:].T
    )
    assert angles.max() < 1e-10


def test_regression_proposition_by_brute_force():
    """Squared loss, no intercept, K = 1: of all directions, Xᵀy leaves the largest error, ‖y‖²."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    y = y + X @ [1.0, 0.5, -0.5]

    def left(u):
        P = X - np.outer(X @ u, u)
        return np.sum((y - P @ np.linalg.lstsq(P, y, rcond=1e-10)[0]) ** 2)

    a, b = np.meshgrid(np.linspace(0, np.pi, 60), np.linspace(0, 2 * np.pi, 120))
    sphere = np.stack([np.sin(a) * np.cos(b), np.sin(a) * np.sin(b), np.cos(a)], -1).reshape(-1, 3)
    eraser = ex.RLACE(1, loss="squared", fit_intercept=False, concept_type="continuous").fit(X, y)
    u = eraser.erasure_.basis[0]
    np.testing.assert_allclose(abs(u @ (X.T @ y)), np.linalg.norm(X.T @ y))
    assert left(u) == pytest.approx(np.sum(y**2))
    assert max(map(left, sphere)) <= left(u) + 1e-9
    assert eraser.certificate_.bound == pytest.approx(np.mean(y**2))


def test_at_its_own_rank_the_solution_is_the_only_one():
    data = plant("binary")
    u = ex.RLACE().fit(data.X, data.y).erasure_.basis[0]
    v = np.linalg.qr(np.column_stack([u, np.eye(len(u))[0]]))[0][:, 1]
    loss, Y = encoded("binary", "cross_entropy", data.Z)
    bound = ex.RLACE().fit(data.X, data.y).certificate_.bound
    left = []
    for degrees in (0, 1, 10, 90):
        w = np.cos(np.radians(degrees)) * u + np.sin(np.radians(degrees)) * v
        left.append(bound - best_loss(loss, data.X - np.outer(data.X @ w, w), Y, True))
    assert left[0] < 1e-8
    assert 1e-4 < left[1] < left[2] < left[3]  # a turned direction leaves more, the more it turns


def test_more_directions_than_needed_are_those_of_least_variance():
    data = plant("binary")
    own = ex.RLACE().fit(data.X, data.y).erasure_.basis
    more = ex.RLACE(3).fit(data.X, data.y)
    B = more.erasure_.basis
    assert B.shape == (3, 8)
    np.testing.assert_allclose(B @ B.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(np.abs(own @ B[0]), 1)
    rest = scipy.linalg.null_space(own)
    least = np.sort(np.linalg.eigvalsh(rest.T @ np.cov(data.X.T, ddof=0) @ rest))[:2]
    np.testing.assert_allclose(np.sort(np.var(data.X @ B[1:].T, axis=0)), least)
    assert more.certificate_.erased


def test_fewer_directions_than_needed_are_refused_with_the_number():
    data = plant("classes")
    with pytest.raises(ex.InputError, match=r"needs rank >= 3.*rank=2.*rank=3 or rank='auto'"):
        ex.RLACE(2, solver="closed_form").fit(data.X, data.y)


def test_a_concept_that_is_not_there_has_rank_zero():
    X = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    eraser = ex.RLACE().fit(X, [0, 0, 1, 1])
    assert eraser.rank_ == 0
    np.testing.assert_array_equal(eraser.transform(X), X)
    assert eraser.certificate_.erased
    assert ex.RLACE(1).fit(X, [0, 0, 1, 1]).rank_ == 1  # never fewer than asked for


def test_without_intercept_nothing_is_centred_and_the_encoding_matters():
    data = plant("binary")
    eraser = ex.RLACE(fit_intercept=False).fit(data.X, data.y)
    assert eraser.erasure_.center is None
    direction = data.X.T @ (data.y - 0.5)
    np.testing.assert_allclose(
        np.abs(eraser.erasure_.basis[0] @ direction), np.linalg.norm(direction)
    )
    # it does not protect against a predictor with an intercept
    clean = eraser.transform(data.X)
    assert np.linalg.norm(clean[data.y == 0].mean(0) - clean[data.y == 1].mean(0)) > 0.1


def test_a_loss_of_ones_own_is_erased_too():
    from test_losses import Huber

    data = plant("binary")
    eraser = ex.RLACE(loss=Huber()).fit(data.X, data.y)
    assert eraser.certificate_.erased
    assert eraser.erasure_.meta["parameters"]["loss"] == "Huber"


@pytest.mark.parametrize("kind", ["binary", "classes"])
def test_from_a_stream_of_moments(kind):
    data = plant(kind)
    order = np.argsort(data.y, kind="stable")  # one class after the other
    X, y = data.X[order], data.y[order]
    stream = ex.RLACE()
    for part in np.array_split(np.arange(len(X)), 7):
        stream.partial_fit(X[part], y[part])
    whole = ex.RLACE().fit(data.X, data.y)
    np.testing.assert_allclose(stream.erasure_.matrix(), whole.erasure_.matrix(), atol=1e-10)
    assert stream.certificate_.erased


@pytest.mark.parametrize("rank", ["auto", 3, 5])
def test_there_is_nothing_to_iterate(rank):
    data = plant("classes")
    eraser = ex.RLACE(rank, solver="closed_form").fit(data.X, data.y)
    assert eraser.rank_ == (3 if rank == "auto" else rank)
    (step,) = eraser.history_
    assert (step.step, step.value) == (1, eraser.certificate_.bound)
    assert eraser.certificate_.erased
    stream = ex.RLACE(rank).partial_fit(data.X, data.y)  # it needs no rows
    np.testing.assert_allclose(stream.erasure_.matrix(), eraser.erasure_.matrix(), atol=1e-9)
