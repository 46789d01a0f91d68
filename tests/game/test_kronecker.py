"""The guess of the inverse Hessian: the dense inverse, and covariances that rounding spoilt."""

import numpy as np
import pytest

import expunge as ex
from expunge.game.kronecker import kronecker_inverse


@pytest.mark.parametrize("erased", [0, 2])
def test_is_the_dense_inverse_on_what_is_left(erased):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(9, 5))
    variances, axes = np.linalg.eigh(A.T @ A)
    C = np.array([[2.0, 0.3], [0.3, 1.0]])
    U = np.linalg.qr(rng.normal(size=(5, 2)))[0][:, :erased]
    N = np.linalg.qr(np.hstack([U, rng.normal(size=(5, 5))]))[0][:, erased:5]
    G = N @ rng.normal(size=(5 - erased, 2))
    H = np.kron(N.T @ A.T @ A @ N, C) + 0.1 * np.eye(2 * (5 - erased))
    expected = N @ np.linalg.solve(H, (N.T @ G).ravel()).reshape(-1, 2)
    np.testing.assert_allclose(
        kronecker_inverse(variances, axes, C, 0.1, U)(G), expected, atol=1e-10
    )


@pytest.mark.parametrize("size", [1.0, 1e-5])
def test_a_direction_without_curvature_has_a_thousandth_of_the_mean(size):
    """A softmax does not see equal shifts of all scores."""
    p = np.array([0.5, 0.3, 0.2])
    C = size * (np.diag(p) - np.outer(p, p))
    assert np.abs(C @ np.ones(3)).max() < 1e-15
    variances, G = np.array([3.0, 0.5]), np.outer([1.0, -2.0], np.ones(3))
    found = kronecker_inverse(variances, np.eye(2), C, 1e-9, np.zeros((2, 0)))(G)
    expected = G / (1e-3 * np.trace(C) / 3 * variances[:, None] + 1e-9)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_stays_positive_where_rounding_made_variances_negative():
    """A curvature of 1e6 makes -1e-8 more than any ridge; the step must still go downhill."""
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    variances = np.array([-1e-8, -1e-9, 0.0, 0.5, 2.0])
    solve = kronecker_inverse(variances, axes, np.array([[1e6]]), 1e-4, axes[:, :2] @ np.eye(2))
    G = rng.normal(size=(5, 1))
    G -= axes[:, :2] @ (axes[:, :2].T @ G)
    assert float(np.sum(G * solve(G))) > 0


@pytest.mark.filterwarnings("ignore::expunge.errors.NotConverged")
@pytest.mark.parametrize("solver", ["descent_ascent", "auto"])
def test_hinge_on_few_wide_rows_in_single_precision(solver):
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    X = (rng.normal(size=(30, 100)) + rng.normal(size=(3, 100))[y] + 1).astype(np.float32)
    rank = 1 if solver == "descent_ascent" else "auto"
    eraser = ex.RLACE(
        rank, loss="hinge", solver=solver, max_iter=50, evaluate_every=25, random_state=0
    ).fit(X, y)
    assert np.isfinite(eraser.transform(X)).all()
    assert 0 <= eraser.certificate_.value <= eraser.certificate_.bound
