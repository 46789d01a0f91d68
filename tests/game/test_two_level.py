"""The preconditioner of two levels: its parts against plain twins, and what it is good for."""

import numpy as np
import pytest

from expunge.erasure import Erasure
from expunge.game import predictor
from expunge.game.kronecker import kronecker_inverse
from expunge.game.losses import Huber, loss_for
from expunge.game.predictor import Problem, fit_predictor
from expunge.game.two_level import Sample, coarse_hessian, two_level_inverse
from expunge.inputs import check_concept, check_rows


def classes_apart(n=3000, d=130, classes=12, gap=2.0, seed=0):
    """Classes whose means lie apart within four dimensions: too many variables for a Hessian."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    means = gap * rng.standard_normal((classes, 4)) @ rng.standard_normal((4, d)) / 2
    return rng.standard_normal((n, d)) * np.linspace(2, 0.5, d) + means[y], y


def problem(X, y, *, weights=None, **options):
    rows, concept = check_rows(X), check_concept(y, len(X))
    loss = loss_for("cross_entropy", concept.kind, concept.width)
    moments = rows.moments(concept, weights)
    return Problem(rows, concept, loss, moments, weights=weights, **options)


@pytest.mark.parametrize("kind", ["classes", "labels"])
def test_a_coarse_hessian_is_the_hessian_along_its_directions(kind):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((700, 9)), rng.integers(0, 4, 700)
    if kind == "labels":
        y = np.eye(4, dtype=int)[y] | (rng.random((700, 4)) < 0.2)
    weights = rng.uniform(0.5, 2.0, 700)
    p = problem(X, y, weights=weights)
    m = p.null.gradient.shape[1]
    theta, b, D = rng.standard_normal((9, m)), rng.standard_normal(m), rng.standard_normal((9, 3))
    Y = p.loss.encoder(p.concept)(0, 700)
    found = coarse_hessian(Sample(X.astype(np.float32), Y, weights), p.loss, theta, b, D)
    full = p.rows.glm_hessian(p.loss, theta, b, p.concept, weights)
    D1 = np.zeros((10, 4))
    D1[:9, :3], D1[9, 3] = D, 1
    if full.ndim == 3:
        expected = np.zeros((m, 4, m, 4))
        for k in range(m):
            expected[k, :, k] = D1.T @ full[k] @ D1
    else:
        expected = np.einsum("ai,kalb,bj->kilj", D1, full, D1)
    np.testing.assert_allclose(found, expected.reshape(4 * m, 4 * m), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("erased", [0, 2])
def test_where_curvature_is_constant_it_is_the_inverse_itself(erased):
    rng = np.random.default_rng(1)
    d, m, strength, alpha = 12, 3, 0.7, 1e-2
    A = rng.standard_normal((d, d))
    S = A @ A.T / d
    variances, axes = np.linalg.eigh(S)
    U = np.linalg.qr(rng.standard_normal((d, erased)))[0] if erased else np.zeros((d, 0))
    C = strength * np.eye(m)

    def hessian(D):
        one = np.zeros((D.shape[1] + 1,) * 2)
        one[:-1, :-1], one[-1, -1] = strength * D.T @ S @ D, strength
        return np.kron(np.eye(m), one)

    B = rng.standard_normal((d, 4))
    solve = two_level_inverse(variances, axes, C, alpha, U, B, hessian)
    G = rng.standard_normal((d + 1, m))
    found = solve(G)
    expected = kronecker_inverse(variances, axes, C, alpha, U)(G[:-1])
    np.testing.assert_allclose(found[:-1], expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(found[-1], G[-1] / strength, rtol=1e-4)
    np.testing.assert_allclose(U.T @ found[:-1], 0, atol=1e-10)


@pytest.mark.parametrize("erased", [0, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_reaches_the_same_predictor_in_far_fewer_passes(erased, weighted, monkeypatch):
    X, y = classes_apart()
    weights = np.random.default_rng(2).uniform(0.5, 2.0, len(y)) if weighted else None
    found = []
    for two_level in (True, False):
        p = problem(X, y, weights=weights, alpha=1e-3)
        if not two_level:
            monkeypatch.setattr(Problem, "_coarse", None)
        U = p.null.directions[:, :erased]
        p.set_erasure(Erasure(U, U.T, p.moments.mean_x))
        assert p.two_level == two_level
        assert not p.may_form_hessian
        found.append(fit_predictor(p, tol=1e-9, exact_intercept=False))
    ours, plain = found
    assert ours.converged
    assert ours.value == pytest.approx(plain.value, rel=1e-7)
    np.testing.assert_allclose(ours.coef, plain.coef, atol=1e-3 * np.abs(plain.coef).max())
    assert ours.n_passes < 0.7 * plain.n_passes


def test_two_classes_and_small_problems_do_without(monkeypatch):
    X, y = classes_apart(n=600)
    assert not problem(X, y % 2).two_level
    assert not problem(X[:, :20], y).two_level
    assert not problem(X, y, fit_intercept=False).two_level
    p = problem(X, y)
    assert p.two_level
    p.set_erasure(Erasure(2 * np.eye(130)[:, :1], np.eye(130)[:1]))
    assert not p.two_level  # it is no projector


def test_a_problem_that_never_moves_asks_for_no_preconditioner(monkeypatch):
    monkeypatch.setattr(predictor.Problem, "inverse", None)
    X, y = classes_apart(n=600)
    p = problem(X, y)
    U = p.null.directions
    p.set_erasure(Erasure(U, U.T, p.moments.mean_x))
    assert fit_predictor(p, tol=1e-6).converged


@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_units_of_numbers_cost_no_passes(monkeypatch, unit):
    monkeypatch.setattr("expunge.game.problem.SMALL", 1)
    rng, passes = np.random.default_rng(0), []
    X = rng.standard_normal((300, 5))
    Z = X[:, :1] + X[:, :3] * [0.0, 0.3, 0.1] + 0.5 * rng.standard_normal((300, 3))
    for size in (1.0, unit):
        rows, concept = check_rows(X), check_concept(size * Z, 300)
        p = Problem(rows, concept, Huber(size / 2), rows.moments(concept), alpha=1e-6)
        assert p.two_level
        found = fit_predictor(p, exact_intercept=False)
        assert found.converged
        passes.append(found.n_passes)
    assert passes[0] == passes[1]
