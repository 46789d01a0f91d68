"""Shrinkage of a covariance: the formulas of its authors, and scikit-learn beside them."""

import numpy as np
import pytest
from sklearn.covariance import OAS, LedoitWolf

from expunge.errors import InputError
from expunge.shrinkage import check_shrinkage, shrink


def rows(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return (
        rng.normal(size=(n, d))
        * np.geomspace(3, 0.3, d)
        @ (np.eye(d) + rng.normal(size=(d, d)) / d)
    )


def covariance(X):
    return np.cov(X.T, ddof=0)


def share(S, shrunk):
    """γ read off an entry away from the diagonal."""
    i, j = np.unravel_index(np.abs(S - np.diag(np.diag(S))).argmax(), S.shape)
    return 1 - shrunk[i, j] / S[i, j]


def traces(S):
    return np.trace(S @ S), np.trace(S) ** 2


CASES = [(20, 5), (20, 40), (200, 10), (50, 3)]


@pytest.mark.parametrize(("n", "d"), CASES)
def test_oas_is_the_formula_of_its_authors(n, d):
    """Chen, Wiesel, Eldar and Hero (2010), equation 23."""
    S = covariance(rows(n, d))
    square, trace = traces(S)
    expected = ((1 - 2 / d) * square + trace) / ((n + 1 - 2 / d) * (square - trace / d))
    assert share(S, shrink(S, n, "oas")) == pytest.approx(min(expected, 1), rel=1e-10)


@pytest.mark.parametrize(("n", "d"), CASES)
def test_oas_differs_from_scikit_learn_by_its_term_in_two_over_d_alone(n, d):
    """Scikit-learn leaves out 2/d; put back there, its share is exactly ours."""
    X = rows(n, d)
    S = covariance(X)
    square, trace = traces(S)
    theirs = OAS().fit(X).shrinkage_
    assert 0 < theirs < 1
    put_back = theirs * (n + 1) / (n + 1 - 2 / d) * (1 - 2 / d * square / (square + trace))
    assert share(S, shrink(S, n, "oas")) == pytest.approx(put_back, rel=1e-10)
    assert put_back == pytest.approx(theirs, rel=2 / d)


def test_ledoit_wolf_is_its_rao_blackwellised_form():
    n, d = 40, 10
    S = covariance(rows(n, d))
    square, trace = traces(S)
    expected = ((n - 2) / n * square + trace) / ((n + 2) * (square - trace / d))
    assert share(S, shrink(S, n, "ledoit_wolf")) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(("n", "d"), [(100, 20), (400, 60)])
def test_ledoit_wolf_is_near_scikit_learn_on_gaussian_rows(n, d):
    ours, theirs = [], []
    for seed in range(20):
        X = rows(n, d, seed)
        S = covariance(X)
        ours.append(share(S, shrink(S, n, "ledoit_wolf")))
        theirs.append(LedoitWolf().fit(X).shrinkage_)
    assert 0.01 < np.mean(theirs) < 0.9
    np.testing.assert_allclose(ours, theirs, rtol=0.15)
    assert np.mean(ours) == pytest.approx(np.mean(theirs), rel=0.05)


@pytest.mark.parametrize("rule", ["ledoit_wolf", "oas"])
def test_the_choice_lowers_the_error(rule):
    n, d = 30, 25
    truth = covariance(rows(200_000, d))
    errors = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, d)) @ np.linalg.cholesky(truth).T
        S = covariance(X)
        errors.append([np.linalg.norm(A - truth) for A in (S, shrink(S, n, rule))])
    plain, shrunk = np.mean(errors, axis=0)
    assert shrunk < 0.95 * plain


@pytest.mark.parametrize("rule", ["none", "ledoit_wolf", "oas", 0.0, 0.4, 1.0])
def test_the_trace_stays_and_the_input_too(rule):
    S = covariance(rows(20, 6))
    before = S.copy()
    shrunk = shrink(S, 20, rule)
    assert np.trace(shrunk) == pytest.approx(np.trace(S))
    np.testing.assert_array_equal(S, before)
    np.testing.assert_array_equal(shrunk, shrunk.T)
    spread = np.ptp(np.linalg.eigvalsh(shrunk))
    assert spread <= np.ptp(np.linalg.eigvalsh(S)) + 1e-12


def test_the_ends_of_the_scale():
    S = covariance(rows(20, 6))
    np.testing.assert_array_equal(shrink(S, 20, 0.0), S)
    np.testing.assert_array_equal(shrink(S, 20, "none"), S)
    np.testing.assert_allclose(shrink(S, 20, 1.0), np.trace(S) / 6 * np.eye(6))


@pytest.mark.parametrize("rule", ["ledoit_wolf", "oas"])
def test_more_rows_shrink_less_and_few_give_the_identity(rule):
    S = covariance(rows(200, 6))
    shares = [share(S, shrink(S, n, rule)) for n in (2, 10, 100, 10_000)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] <= 1
    assert shares[-1] < 1e-2


@pytest.mark.parametrize("rule", ["ledoit_wolf", "oas"])
@pytest.mark.parametrize("S", [np.zeros((3, 3)), 2 * np.eye(3), np.array([[5.0]])])
def test_nothing_to_shrink_is_left_alone(rule, S):
    np.testing.assert_allclose(shrink(S, 10, rule), S)


@pytest.mark.parametrize("bad", ["auto", "", -1e-9, 1.5, float("nan"), True, None, [0.5]])
def test_what_is_no_share_is_refused(bad):
    with pytest.raises(InputError, match="shrinkage"):
        check_shrinkage(bad)
