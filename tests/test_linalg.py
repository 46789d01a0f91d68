"""Small kernels against plain twins."""

import numpy as np
import pytest
import scipy.optimize

from expunge import RankTruncated, linalg

rng = np.random.default_rng(0)


def orthonormal(d, r, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, r)))[0]


def with_singular_values(d, m, s):
    return orthonormal(d, len(s), 1) @ np.diag(s) @ orthonormal(m, len(s), 2).T


def test_fix_signs_makes_the_largest_entry_positive():
    U = np.array([[1.0, -3.0, 0.0], [-2.0, 2.0, 0.0]])
    np.testing.assert_array_equal(linalg.fix_signs(U), [[-1.0, 3.0, 0.0], [2.0, -2.0, 0.0]])
    np.testing.assert_array_equal(linalg.fix_signs(-U), linalg.fix_signs(U))
    assert linalg.fix_signs(np.zeros((4, 0))).shape == (4, 0)


@pytest.mark.parametrize("scale", [1.0, 1e-8, 1e8])
def test_range_basis_spans_the_columns_at_any_scale(scale):
    A = scale * with_singular_values(9, 5, [3.0, 1.0, 1e-3])
    B = linalg.range_basis(A)
    assert B.shape == (9, 3)
    np.testing.assert_allclose(B.T @ B, np.eye(3), atol=1e-14)
    np.testing.assert_allclose(B @ (B.T @ A), A, atol=1e-14 * scale)
    np.testing.assert_allclose(np.abs(B[:, 0] @ A).max() / scale, np.abs(A.T @ B).max() / scale)


def test_weak_directions_are_dropped_with_a_warning():
    A = with_singular_values(6, 4, [1.0, 1e-11])
    with pytest.warns(RankTruncated, match="1 singular value"):
        assert linalg.range_basis(A).shape == (6, 1)
    assert linalg.range_basis(A, rcond=1e-12).shape == (6, 2)


def test_rounding_is_dropped_in_silence():
    assert linalg.range_basis(with_singular_values(6, 4, [1.0, 1e-15])).shape == (6, 1)
    assert linalg.range_basis(with_singular_values(6, 4, [1e-14]), scale=1.0).shape == (6, 0)
    assert linalg.range_basis(with_singular_values(6, 4, [1e-14])).shape == (6, 1)


@pytest.mark.parametrize("shape", [(5, 3), (5, 0), (1, 1)])
def test_nothing_spans_nothing(shape):
    U, s, kept = linalg.column_space(np.zeros(shape))
    assert U.shape == (shape[0], min(shape))
    assert s.shape == kept.shape == (min(shape),)
    assert not kept.any()


@pytest.mark.parametrize("r", [0, 1, 3, 7])
def test_complete_basis(r):
    B = orthonormal(7, r)
    N = linalg.complete_basis(B)
    assert N.shape == (7, 7 - r)
    Q = np.hstack([B, N])
    np.testing.assert_allclose(Q.T @ Q, np.eye(7), atol=1e-14)


@pytest.mark.parametrize(("r", "count"), [(0, 2), (2, 1), (2, 3)])
def test_least_variance_directions(r, count):
    A = rng.normal(size=(6, 6))
    S, B = A @ A.T, orthonormal(6, r)
    V = linalg.least_variance_directions(B, S, count)
    np.testing.assert_allclose(V.T @ V, np.eye(count), atol=1e-13)
    np.testing.assert_allclose(B.T @ V, 0, atol=1e-13)
    complement = np.eye(6) - B @ B.T
    costs = np.sort(np.linalg.eigvalsh(complement @ S @ complement + 1e6 * B @ B.T))
    np.testing.assert_allclose(np.trace(V.T @ S @ V), costs[:count].sum(), rtol=1e-9)


def test_the_least_variance_direction_by_a_general_optimiser():
    A, B = rng.normal(size=(4, 4)), orthonormal(4, 1)
    S = A @ A.T

    def variance(v):
        v = v - B @ (B.T @ v)
        return (v @ S @ v) / (v @ v)

    best = min(scipy.optimize.minimize(variance, start).fun for start in np.eye(4))
    v = linalg.least_variance_directions(B, S, 1)[:, 0]
    np.testing.assert_allclose(variance(v), best, rtol=1e-6)


@pytest.mark.parametrize("scale", [1.0, 1e-16, 1e16])
def test_whitening_pair(scale):
    A = rng.normal(size=(5, 5))
    S = scale * (A @ A.T)
    W, W_inv = linalg.whitening_pair(S, 1e-12)
    np.testing.assert_allclose(W @ S @ W, np.eye(5), atol=1e-10)
    np.testing.assert_allclose(W_inv @ W_inv, S, atol=1e-12 * scale * np.abs(S / scale).max())
    np.testing.assert_allclose(W @ W_inv, np.eye(5), atol=1e-10)


def test_whitening_stays_invertible_on_a_singular_covariance():
    A = rng.normal(size=(5, 2))
    W, W_inv = linalg.whitening_pair(A @ A.T, 1e-8)
    np.testing.assert_allclose(W @ W_inv, np.eye(5), atol=1e-9)
    usual = np.linalg.eigvalsh(A @ A.T)[-2:].mean()  # stands in for the three that are noise
    np.testing.assert_allclose(np.linalg.eigvalsh(W_inv @ W_inv).sum(), 5 * usual)
    np.testing.assert_array_equal(linalg.whitening_pair(np.zeros((3, 3)), 1e-8)[0], np.eye(3))
