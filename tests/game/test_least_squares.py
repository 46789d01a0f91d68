"""Second moments as the squared loss sees them, against the rows themselves."""

import numpy as np
import pytest

from expunge.game.least_squares import (
    cross_moment,
    second_moment,
    spreads,
)
from expunge.inputs import check_concept, check_rows
from expunge.linalg import in_own_units, regression
from planted import plant


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("kind", ["binary", "classes", "labels", "number", "vector"])
def test_moments_are_sums_over_the_rows(kind, center):
    data = plant(kind, n=50, d=3)
    moments = check_rows(data.X).moments(check_concept(data.y, 50))
    X, Z = (A - A.mean(axis=0) if center else A for A in (data.X, data.Z))
    np.testing.assert_allclose(second_moment(moments, center), X.T @ X / 50, atol=1e-12)
    C, Szz = cross_moment(moments, center)
    np.testing.assert_allclose(C, X.T @ Z / 50, atol=1e-12)
    np.testing.assert_allclose(Szz, Z.T @ Z / 50, atol=1e-12)


def test_own_units_of_a_covariance():
    S = np.array([[4.0, 1.0, 0.0], [1.0, 9.0, 0.0], [0.0, 0.0, 1e-10]])
    R, units = in_own_units(S)
    np.testing.assert_allclose(units, [1 / 2, 1 / 3, 1e5])
    np.testing.assert_allclose(R, [[1, 1 / 6, 0], [1 / 6, 1, 0], [0, 0, 1]])
    for least, constant in ((1e-12, False), (1e-10, True), (0.5, True)):
        R, units = in_own_units(S, least=least)
        assert (units[2] == 0) == constant
        assert R[2, 2] == pytest.approx(0 if constant else 1)
    np.testing.assert_array_equal(in_own_units(S, least=0.5)[1], [0, 1 / 3, 0])
    np.testing.assert_allclose(in_own_units(1e-20 * S, least=1e-12)[1], [5e9, 1e10 / 3, 1e15])
    assert in_own_units(np.zeros((0, 0)), least=0.5)[1].shape == (0,)
    R, units = in_own_units(np.zeros((2, 2)))
    assert not R.any()
    assert not units.any()


def test_a_spread_below_the_last_digits_of_the_mean_is_none():
    eps = np.finfo(float).eps
    mean = np.array([1.0, 1.0, -1e6, 0.0, 0.0])
    variance = np.array([(9 * eps) ** 2, (7 * eps) ** 2, 25.0, 1e-60, 0.0])
    sd, varies = spreads(variance, mean)
    np.testing.assert_array_equal(varies, [True, False, True, True, False])
    np.testing.assert_allclose(sd, [9 * eps, 1e-30, 5.0, 1e-30, 1e-30])
    sd, varies = spreads(np.zeros(3), np.ones(3))
    np.testing.assert_array_equal(sd, 1)
    assert not varies.any()


def test_a_narrow_column_has_a_unit_of_the_size_of_the_others_digits():
    variance = np.array([4.0, 9.0, 1e-40, 16.0, 0.0])
    sd, varies = spreads(variance, np.zeros(5), eps=1e-3)
    least = 8e-3 * 2.5  # times the median of those that vary
    np.testing.assert_allclose(sd, [2, 3, least, 4, least])
    np.testing.assert_array_equal(varies, [True] * 4 + [False])
    np.testing.assert_allclose(spreads(variance, np.zeros(5))[0], [2, 3, 1e-20, 4, 1e-20])


def test_a_regression_on_columns_that_add_up():
    """One of every row: Szz is singular, and what is predicted is that of least squares."""
    rng = np.random.default_rng(0)
    Z = np.eye(3)[rng.integers(0, 3, 60)]
    X = rng.normal(size=(60, 2)) + Z @ rng.normal(size=(3, 2))
    Z, X = Z - Z.mean(axis=0), X - X.mean(axis=0)
    B = regression(X.T @ Z / 60, Z.T @ Z / 60)
    assert B.shape == (2, 3)
    expected = Z @ np.linalg.lstsq(Z, X, rcond=None)[0]
    np.testing.assert_allclose(Z @ B.T, expected, atol=1e-10)
    assert np.abs(expected).max() > 0.1
    Z[:, 1] = 0  # a label that never varies
    B = regression(X.T @ Z / 60, Z.T @ Z / 60)
    np.testing.assert_array_equal(B[:, 1], 0)
    assert np.isfinite(B).all()
