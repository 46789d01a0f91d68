"""Oblique projectors of least change: against the Lagrangian, and on covariances hard to invert."""

import numpy as np
import pytest

from expunge.errors import InputError
from expunge.game.oblique import least_change, least_change_keeping, oblique, whitener
from expunge.linalg import in_own_units, regression
from planted import plant

EPS = float(np.finfo(float).eps)


def covariances(X, Z):
    X, Z = X - X.mean(0), Z - Z.mean(0)
    return X.T @ X / len(X), X.T @ Z / len(X), Z.T @ Z / len(X)


def of_condition(d, condition, seed=0):
    """A covariance with the given condition number, along no particular axes."""
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]
    values = (
        np.geomspace(1.0, 1 / condition, d) if np.isfinite(condition) else [1.0] * 4 + [0.0] * 8
    )
    return (Q * values) @ Q.T


def by_lagrange(S, C, kept=None):
    """min tr (P - I)S(P - I)ᵀ with PC = 0 and PT = T: one linear system for P and multipliers."""
    d = len(S)
    T = np.zeros((d, 0)) if kept is None else kept
    A = np.hstack([C, T])
    values = np.hstack([np.zeros_like(C), T])
    K = np.block([[2 * S, A], [A.T, np.zeros((A.shape[1],) * 2)]])
    right = np.vstack([2 * S, values.T])
    return np.linalg.lstsq(K, right, rcond=None)[0][:d].T


@pytest.mark.parametrize("kind", ["binary", "classes", "labels", "number", "vector"])
def test_least_change_solves_the_lagrangian(kind):
    data = plant(kind)
    S, C, Z = covariances(data.X, data.Z)
    left, right = least_change(S, C, Z, eps=EPS)
    assert np.abs(C).max() > 0.1
    np.testing.assert_allclose(np.eye(8) - left @ right, by_lagrange(S, C), atol=1e-10)


def test_least_change_keeping_solves_the_lagrangian():
    data, task = plant("classes"), plant("vector").Z
    S, C, Z = covariances(data.X, data.Z)
    _, T, TT = covariances(data.X + task @ np.ones((2, 8)), task)
    left, right = least_change_keeping(S, C, Z, T, TT, eps=EPS)
    np.testing.assert_allclose(np.eye(8) - left @ right, by_lagrange(S, C, T), atol=1e-9)
    assert np.abs(left @ right @ T).max() < 1e-10 * np.abs(T).max()


@pytest.mark.parametrize("condition", [1e2, 1e6, 1e10, 1e13, np.inf])
def test_what_is_to_go_is_gone_whatever_the_condition(condition):
    S = of_condition(12, condition)
    C = S @ np.random.default_rng(1).normal(size=(12, 2))
    left, right = least_change(S, C, np.eye(2), eps=EPS)
    P = np.eye(12) - left @ right
    assert np.linalg.norm(P @ C) < 1e-10 * np.linalg.norm(C) * max(1, np.linalg.norm(P))
    np.testing.assert_allclose(right @ left, np.eye(2), atol=1e-9)


@pytest.mark.parametrize("eps", [EPS, float(np.finfo(np.float32).eps)])
def test_a_column_of_huge_variance_hides_no_other(eps):
    """Scaling a column changes the map only by that scale, in float32 too."""
    data = plant("binary")
    S, C, Z = covariances(data.X, data.Z)
    scale = np.array([1e4, 1, 1, 1, 1e-4, 1, 1, 1])
    plain, kept = least_change(S, C, Z, eps=eps)
    left, right = least_change(S * np.outer(scale, scale), C * scale[:, None], Z, eps=eps)
    found = (left @ right) / scale[:, None] * scale
    np.testing.assert_allclose(found, plain @ kept, atol=1e-9)


def test_a_constant_column_is_neither_read_nor_changed():
    data = plant("binary")
    X = data.X.copy()
    X[:, 3] = 7.0
    left, right = least_change(*covariances(X, data.Z), eps=EPS)
    assert not left[3].any()
    assert not right[:, 3].any()


def test_nothing_to_erase_gives_no_directions():
    left, right = least_change(np.eye(3), np.zeros((3, 2)), np.eye(2), eps=EPS)
    assert (left.shape, right.shape) == ((3, 0), (0, 3))
    C = np.eye(3)[:, :1]
    for Cz, Ct, rank in ((C, 0 * C, 1), (0 * C, C, 0)):
        left, _ = least_change_keeping(np.eye(3), Cz, np.eye(1), Ct, np.eye(1), eps=EPS)
        assert left.shape == (3, rank)


@pytest.mark.parametrize("angle", [0.0, 1e-8, 1e-4, 0.5])
def test_spans_that_meet_are_refused(angle):
    z, t = np.array([[1.0], [0.0], [0.0]]), np.array([[np.cos(angle)], [np.sin(angle)], [0.0]])
    arguments = (np.eye(3), z, np.eye(1), t, np.eye(1))
    if angle < 1e-6:
        with pytest.raises(InputError, match="task lies in the span of the concept"):
            least_change_keeping(*arguments, eps=EPS)
        return
    left, right = least_change_keeping(*arguments, eps=EPS)
    P = np.eye(3) - left @ right
    np.testing.assert_allclose(P @ t, t, atol=1e-10)
    np.testing.assert_allclose(P @ z, 0, atol=1e-10)


def test_only_the_span_in_common_has_to_be_small():
    """Two directions of the concept, one of them the task's: refused, and the count is told."""
    z, t = np.eye(4)[:, :2], np.eye(4)[:, 1:3]
    with pytest.raises(InputError, match="1 of 2 directions"):
        least_change_keeping(np.eye(4), z, np.eye(2), t, np.eye(2), eps=EPS)


@pytest.mark.parametrize("condition", [1.0, 1e3, 1e9])
def test_whitener_whitens(condition):
    S = of_condition(10, condition)
    W = whitener(S, rcond=10 * EPS)
    np.testing.assert_allclose(W @ S @ W.T, np.eye(10), atol=1e-15 * condition + 1e-13)


def test_whitener_of_a_singular_matrix_whitens_its_range():
    A = np.random.default_rng(0).normal(size=(10, 4))
    W = whitener(A @ A.T, rcond=10 * EPS)
    values = np.linalg.eigvalsh(W @ A @ A.T @ W.T)
    np.testing.assert_allclose(values, [0] * 6 + [1] * 4, atol=1e-10)


def test_units_of_the_concept_do_not_matter_to_a_regression():
    """Of x on z, with a column of z in units of a ten-millionth; lstsq as the twin."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(200, 3)) * [1.0, 1e7, 1e-3]
    X = Z / [1.0, 1e7, 1e-3] @ rng.normal(size=(3, 4)) + rng.normal(size=(200, 4))
    _, Sxz, Szz = covariances(X, Z)
    expected = np.linalg.lstsq(Z - Z.mean(0), X - X.mean(0), rcond=None)[0].T
    np.testing.assert_allclose(regression(Sxz, Szz), expected, rtol=1e-8)


def test_units_are_those_of_the_columns():
    S = np.diag([4.0, 1e-12, 0.0])
    R, units = in_own_units(S)
    np.testing.assert_allclose(units, [0.5, 1e6, 0.0])
    np.testing.assert_allclose(np.diag(R), [1, 1, 0])
    np.testing.assert_allclose(in_own_units(S, least=1e-10)[1], [0.5, 0.0, 0.0])


# -- by roots of covariances, as in a textbook -----------------------------------------------------


def power(S, exponent):
    """S to a power, on its range."""
    values, V = np.linalg.eigh(S)
    real = values > 1e-12 * values[-1]
    return (V[:, real] * values[real] ** exponent) @ V[:, real].T


@pytest.mark.parametrize("scale", [1.0, 1e6])
@pytest.mark.parametrize("rank", [0, 1, 2, 3, 9])
@pytest.mark.parametrize("kind", ["classes", "labels"])
def test_fewer_directions_are_those_of_the_largest_canonical_correlations(kind, rank, scale):
    """Whatever the units of a column of x, or of one of the concept."""
    data = plant(kind, d=5)
    S, C, Z = covariances(data.X, data.Z)
    U, s, _ = np.linalg.svd(power(S, -0.5) @ C @ power(Z, -0.5))
    assert np.all(s[:2] - s[1:3] > 0.01)
    U = U[:, : min(rank, 3)]
    expected = power(S, 0.5) @ U @ U.T @ power(S, -0.5)
    x, z = np.array([1, scale, 1, 1, 1 / scale]), np.array([1, scale, 3, 0.1])[: len(Z)]
    left, right = least_change(
        S * np.outer(x, x), C * np.outer(x, z), Z * np.outer(z, z), eps=EPS, rank=rank
    )
    assert left.shape == (5, min(rank, 3))
    np.testing.assert_allclose(left @ right / np.outer(x, 1 / x), expected, atol=1e-8)
    np.testing.assert_allclose(right @ left, np.eye(min(rank, 3)), atol=1e-9)


@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_a_task_is_kept_in_any_units(scale):
    data, task = plant("classes", d=6), plant("vector").Z
    X = data.X + task @ np.random.default_rng(0).normal(size=(2, 6))
    S, C, Z = covariances(X, data.Z)
    _, T, TT = covariances(X, task)
    expected = np.eye(6) - by_lagrange(S, C, T)
    x, t = np.array([1, scale, 1, 1, 1 / scale, 1]), np.array([scale, 1.0])
    left, right = least_change_keeping(
        S * np.outer(x, x),
        C * x[:, None],
        Z,
        T * np.outer(x, t),
        TT * np.outer(t, t),
        eps=EPS,
    )
    np.testing.assert_allclose(left @ right / np.outer(x, 1 / x), expected, atol=1e-7)


@pytest.mark.parametrize("k", [0, 1, 2, 3])
def test_a_projector_of_whitened_directions(k):
    """Exact on the span that its first directions stand for, however they were found."""
    rng = np.random.default_rng(0)
    S = of_condition(5, 50.0)
    W = whitener(S, rcond=EPS)
    C = rng.normal(size=(5, k))
    Q = np.linalg.qr(np.hstack([W @ C, rng.normal(size=(5, 5))]))[0][:, :2]
    left, right = oblique(Q, W, C)
    expected = np.linalg.inv(W) @ Q @ Q.T @ W
    np.testing.assert_allclose(left @ right, expected, atol=1e-12)
    if k <= 2:
        np.testing.assert_array_equal(left[:, :k], C)
        off = 1e-6 * rng.normal(size=Q.shape)
        left, right = oblique(Q + off, W, C)
        np.testing.assert_allclose(left @ (right @ C), C, atol=1e-13)


def test_a_whitener_is_lower_triangular_in_the_units_of_the_columns():
    S = of_condition(4, 10.0)
    expected = np.linalg.inv(np.linalg.cholesky(S))
    np.testing.assert_allclose(whitener(S, rcond=EPS), expected, atol=1e-12)
    scale = np.array([1.0, 1e4, 1e-4, 1.0])
    np.testing.assert_allclose(
        whitener(S * np.outer(scale, scale), rcond=EPS) * scale, expected, atol=1e-10
    )
    # a variance of 1e-19 of the largest is none, and of 1e-16 it is one
    tiny = whitener(np.diag([1.0, 1e-19, 1e-16, 0.0]), rcond=EPS)
    np.testing.assert_allclose(tiny, np.diag([1.0, 0.0, 1e8, 0.0]), rtol=1e-9)


@pytest.mark.parametrize("gap", [1e-3, 1e-5])
def test_what_the_precision_cannot_tell_is_mended(gap):
    """Two columns that are next to copies: told apart in double, and not in single precision."""
    S = np.array([[1.0, 1 - gap], [1 - gap, 1.0]])
    exact = whitener(S, rcond=1e-12)
    np.testing.assert_allclose(exact @ S @ exact.T, np.eye(2), atol=1e-9)
    mended = whitener(S, rcond=1e-2)
    assert np.abs(mended).max() < 1.1  # the difference is read as loudly as the sum
    assert np.abs(exact).max() > 10


@pytest.mark.parametrize("z", [(1, 1e14, 1e-14), (1e-14, 1e-14, 1e-14), (1, 0, 1)])
@pytest.mark.parametrize("x", [1.0, 1e-14, 1e14])
def test_the_unit_of_the_rows_and_those_of_the_concept_do_not_matter(x, z):
    """A label in nanoseconds hides no other; one that never varies is none."""
    data = plant("labels", d=5)
    S, C, Z = covariances(data.X, data.Z)
    z = np.array(z)
    expected = np.eye(5) - by_lagrange(S, C * (z > 0))
    given = x * x * S, x * C * z, Z * np.outer(z, z)
    left, right = least_change(*given, eps=EPS)
    np.testing.assert_allclose(left @ right, expected, atol=1e-9)
    again = least_change(*given, eps=EPS, rank=left.shape[1])
    for one, other in zip((left, right), again, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_span_that_the_directions_do_not_see_is_not_read():
    left, right = oblique(np.eye(3)[:, :1], np.eye(3), np.eye(3)[:, 1:2])
    np.testing.assert_array_equal(left, np.eye(3)[:, 1:2])
    np.testing.assert_array_equal(right, np.zeros((1, 3)))
