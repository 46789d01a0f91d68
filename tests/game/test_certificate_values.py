"""Certificates of given erasures, from the public door, against what can be said by hand."""

import numpy as np
import pytest
from scipy.stats import entropy

import expunge as ex


def test_without_an_intercept_a_row_that_stays_put_is_one():
    """Where all rows go to one point that is not zero, its coefficients tell the larger class."""
    rng = np.random.default_rng(0)
    y = (np.arange(500) % 5 == 0).astype(int)
    X = 3 + rng.normal(size=(500, 4)) + np.outer(y, [1.0, -1.0, 0.5, 0.0])
    mean = X.mean(axis=0)
    gap = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
    Q = np.linalg.qr(np.column_stack([gap, mean]))[0]
    shares = entropy([0.2, 0.8])
    for points in ({"center": mean}, {"offset": Q @ (Q.T @ mean)}):
        erasure = ex.Erasure(Q, Q.T, **points)
        found = ex.certify(erasure, X, y, fit_intercept=True)
        assert found.erased
        assert found.bound == pytest.approx(shares)
        found = ex.certify(erasure, X, y, fit_intercept=False)
        assert found.bound == pytest.approx(np.log(2))
        assert not found.erased
        assert found.value <= found.primal < shares + 0.01
    assert ex.certify(ex.Erasure(Q, Q.T), X, y, fit_intercept=False).erased


@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_what_is_kept_is_counted_in_variances(scale):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(800, 5)) * [1, 2, 3, 4, 5] * scale
    y = rng.integers(0, 2, 800)
    Q = np.zeros((5, 2))
    Q[1, 0], Q[3, 1] = 1, 0.995  # the fourth column keeps (1 - 0.995²)² of its variance
    erasure = ex.Erasure(Q, Q.T, center=X.mean(axis=0))
    found = ex.certify(erasure, X, y)
    left = erasure(X).var(axis=0)
    assert found.variance_kept == pytest.approx(left.sum() / X.var(axis=0).sum(), rel=1e-6)
    assert found.columns_kept == 3 == np.sum(left >= 0.01 * X.var(axis=0))
    np.testing.assert_allclose(found.ridges[[0, 2, 3, 4]], 1e-4 * left[[0, 2, 3, 4]], rtol=1e-6)
    assert found.ridge == pytest.approx(found.ridges.mean(), rel=1e-6)
    Q[3, 1] = np.sqrt(1 - 0.11)  # and now 0.0121
    assert ex.certify(ex.Erasure(Q, Q.T), X, y).columns_kept == 4


def test_weights_decide_what_is_kept():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(600, 3)), np.arange(600) % 2
    X[300:, 0] *= 10
    w = np.r_[np.ones(300), np.zeros(300)]
    erasure = ex.Erasure(np.eye(3)[:, 1:2], np.eye(3)[1:2])
    found, alone = (
        ex.certify(erasure, X, y, sample_weight=w),
        ex.certify(erasure, X[:300], y[:300]),
    )
    assert found.variance_kept == pytest.approx(alone.variance_kept, rel=1e-9)
    np.testing.assert_allclose(found.ridges, alone.ridges, rtol=1e-6)
    assert found.value == pytest.approx(alone.value, rel=1e-6)
    assert found.bound == pytest.approx(alone.bound, rel=1e-12)
