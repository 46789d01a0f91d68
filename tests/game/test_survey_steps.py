"""Newton steps of the survey: against dense solves, and how many there are."""

import numpy as np
import pytest
from test_problem_twins import dense_hessian, make, settled
from test_survey import bases

import expunge as ex
from expunge.game import survey as module
from expunge.game.predictor import fit_predictor
from expunge.game.survey import _Batch, cost, survey


def batch_of(p, U, weights=None):
    """The batch as `survey` makes it, and the bases of what is left."""
    X = p.rows.array()
    X = (X if p.center is None else X - p.center) / p.unit
    w = np.ones(len(X)) if weights is None else weights
    W = np.linalg.qr(U, mode="complete")[0][:, :, U.shape[2] :]
    Y = p.loss.encoder(p.concept)(0, len(X))
    return _Batch(p, X @ W, Y, w / w.sum()), W


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", ["labels", "classes"])
def test_a_step_is_newtons(kind, intercept, weighted):
    """From the null model, on what each subspace leaves, if the whole step lowers the objective."""
    weights = np.random.default_rng(1).uniform(0.2, 2, 120) if weighted else None
    _, p = make(kind, weights=weights, fit_intercept=intercept)
    U = bases(3, 5, 2)
    batch, W = batch_of(p, U, weights)
    theta0 = np.zeros((5, p.null.gradient.shape[1]))
    value = p.evaluate(theta0, p.null.intercept)[0]
    np.testing.assert_allclose(batch.f, value, rtol=1e-9)
    assert batch.step(1e-12)
    for k in range(3):
        p.set_erasure(ex.Erasure(U[k], U[k].T))
        _, g, g_b, _ = p.evaluate(theta0, p.null.intercept)
        g = np.vstack([g, g_b if intercept else 0 * g_b])
        H = dense_hessian(p, theta0, p.null.intercept)
        step = np.linalg.solve(H, g.T.ravel()).reshape(g.shape[1], -1).T
        found = np.vstack([W[k] @ batch.theta[k, :-1], batch.theta[k, -1:]])
        expected = np.vstack([theta0, p.null.intercept]) - step
        if kind == "classes":
            found, expected = settled(found), settled(expected)
        np.testing.assert_allclose(found[:-1], expected[:-1], atol=1e-5)
        assert not intercept or np.allclose(found[-1], expected[-1], atol=1e-5)
        value = p.evaluate(W[k] @ batch.theta[k, :-1], batch.theta[k, -1])[0]
        assert batch.f[k] == pytest.approx(value, rel=1e-8)


def counted(monkeypatch, p):
    calls, hessian = [], type(p.loss).hessian

    def counting(self, Y, S):
        calls.append(len(Y))
        return hessian(self, Y, S)

    monkeypatch.setattr(type(p.loss), "hessian", counting)
    return calls


def test_a_quadratic_takes_one_step_and_a_look(monkeypatch):
    _, p = make("vector", loss="squared")
    U = bases(4, 5, 2)
    exact = []
    for basis in U:
        p.set_erasure(ex.Erasure(basis, basis.T))
        exact.append(fit_predictor(p, tol=1e-13).value)
    calls = counted(monkeypatch, p)
    np.testing.assert_allclose(survey(p, U), exact, rtol=1e-8)
    assert calls == [4 * 120] * 2


def test_those_that_have_arrived_are_left_alone(monkeypatch):
    _, p = make("labels", alpha=1e-2)
    for tol, steps in ((1e-1, 3), (1e-3, 5), (1e-5, 6)):
        calls = counted(monkeypatch, p)
        survey(p, bases(40, 5, 1), tol=tol)
        monkeypatch.undo()
        assert calls[:-1] == [40 * 120] * (steps - 1)  # quadratic convergence: all at about once
        assert 0 < calls[-1] < 40 * 120


def test_steps_that_go_too_far_are_halved_until_the_objective_falls():
    _, p = make("binary", alpha=1e-4)
    batch, _ = batch_of(p, bases(3, 5, 1))
    batch.theta[:, -1] = [[0.5], [6.0], [9.0]]
    batch.f = batch._values(batch.at_work, batch.theta)
    before, start = batch.f.copy(), batch.theta.copy()
    for _ in range(25):
        was = batch.f.copy()
        if not batch.step(1e-10):
            break
        assert np.all(batch.f <= was)
    exact = survey(p, bases(3, 5, 1), tol=1e-10)
    np.testing.assert_allclose(batch.f[0], exact[0], rtol=1e-6)
    assert np.all(batch.f < before)
    np.testing.assert_allclose(batch.f, exact, rtol=1e-5)
    assert np.abs(start - batch.theta).max() > 1


def test_what_cannot_fall_is_left_where_it_is():
    _, p = make("labels", alpha=1e-2)
    batch, _ = batch_of(p, bases(3, 5, 1))
    newton = batch._newton
    batch._newton = lambda which, *args: (
        newton(which, *args) * np.array([1, -1, 1e-9])[which, None, None]
    )
    was, theta = batch.f.copy(), batch.theta.copy()
    assert batch.step(1e-12)
    assert batch.f[0] < was[0]
    assert batch.f[1] == was[1]  # uphill
    np.testing.assert_array_equal(batch.theta[1], theta[1])
    assert list(batch.at_work) == [0, 2]
    assert not batch.step(1e6)  # nothing gains so much
    assert len(batch.at_work) == 0


def test_a_hessian_without_an_inverse_ends_it(monkeypatch):
    _, p = make("labels")
    batch, _ = batch_of(p, bases(2, 5, 1))

    def singular(*args):
        raise np.linalg.LinAlgError

    monkeypatch.setattr(batch, "_newton", singular)
    assert not batch.step(1e-6)


@pytest.mark.parametrize(("together", "sizes"), [(120 * 4 * 3, [1, 1, 1]), (120 * 12 * 2, [2, 1])])
def test_as_many_at_once_as_fit(monkeypatch, together, sizes):
    made = []

    class Noted(_Batch):
        def __init__(self, problem, F, Y, w):
            made.append(len(F))
            super().__init__(problem, F, Y, w)

    monkeypatch.setattr(module, "_Batch", Noted)
    monkeypatch.setattr(module, "TOGETHER", together)
    _, p = make("labels")
    survey(p, bases(3, 5, 2))
    assert made == sizes
    monkeypatch.setattr(module, "TOGETHER", 1)
    survey(p, bases(2, 5, 2))
    assert made[len(sizes) :] == [1, 1]  # one at the least
    assert cost(p, 2) == 120 * (4 * 3) ** 2
