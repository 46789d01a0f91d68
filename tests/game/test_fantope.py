"""The low-rank Fantope against the paper's dense algorithm: eigendecomposition and bisection."""

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

from expunge.game.fantope import Fantope, capped_shift


def dense_projection(A, K):
    """Π of Vu et al. (2013) as the paper runs it: full eigh, γ by bisection. Returns Q and γ."""
    values, V = np.linalg.eigh((A + A.T) / 2)
    low, high = values[0] - 1.0, values[-1]
    for _ in range(200):
        middle = (low + high) / 2
        if np.clip(values - middle, 0, 1).sum() > K:
            low = middle
        else:
            high = middle
    return (V * np.clip(values - middle, 0, 1)) @ V.T, middle


def dense(point):
    d = len(point.U)
    P = point.U @ point.U.T
    return point.tail * (np.eye(d) - P) + (point.U * point.eigenvalues) @ point.U.T


@given(
    st.lists(st.floats(-3, 3), min_size=2, max_size=6),
    st.integers(1, 4),
    st.integers(0, 20),
)
@settings(max_examples=300, deadline=None)
def test_breakpoints_give_the_nearest_capped_values(values, K, repeats):
    values = np.array(values)
    counts = np.ones(len(values))
    counts[0] += repeats
    K = min(K, int(counts.sum()))
    gamma = capped_shift(values, counts, K)
    assert counts @ np.clip(values - gamma, 0, 1) == pytest.approx(K, abs=1e-12)


def test_projection_is_the_nearest_point_by_a_general_purpose_optimiser():
    rng = np.random.default_rng(0)
    for _ in range(20):
        values, K = rng.normal(size=5) * 1.5, int(rng.integers(1, 5))
        ours = np.clip(values - capped_shift(values, np.ones(5), K), 0, 1)
        found = scipy.optimize.minimize(
            lambda g, v=values: np.sum((g - v) ** 2),
            np.full(5, K / 5),
            jac=lambda g, v=values: 2 * (g - v),
            bounds=[(0, 1)] * 5,
            constraints={"type": "eq", "fun": lambda g, K=K: g.sum() - K},
            options={"ftol": 1e-14},
        )
        np.testing.assert_allclose(ours, found.x, atol=1e-6)


@pytest.mark.parametrize("start", ["centre", "vertex"])
@pytest.mark.parametrize("K", [1, 3, 10])
@pytest.mark.parametrize("m", [1, 5])
def test_same_iterates_as_the_dense_algorithm(m, K, start, record_property):
    """500 steps of minibatch descent-ascent on the relaxed game, side by side."""
    rng, d, n, size = np.random.default_rng(K + 10 * m), 30, 400, 0.05
    X = rng.normal(size=(n, d)) @ np.diag(np.linspace(2, 0.3, d))
    Y = X @ rng.normal(size=(d, m)) / 5 + rng.normal(size=(n, m))
    point = Fantope.center(d, K) if start == "centre" else Fantope.random_vertex(d, K, rng)
    Q, theta = dense(point), rng.normal(size=(d, m)) / 10
    widest, negative, farthest = 0, 0, 0.0
    for step in range(500):
        along = -size if step % 10 == 9 else size  # a step back now and then makes γ < 0
        batch = rng.integers(0, n, 32)
        R = 2 * (X[batch] @ (theta - Q @ theta) - Y[batch]) / 32
        G = X[batch].T @ R
        theta = theta - size * (G - Q @ G)
        point = point.step(theta, G, along)
        Q, gamma = dense_projection(Q - along / 2 * (theta @ G.T + G @ theta.T), K)
        farthest = max(farthest, np.abs(dense(point) - Q).max())
        widest, negative = max(widest, point.width), negative + (gamma < 0)
    record_property("widest", widest)
    assert farthest < 1e-9
    assert negative > 0
    assert point.lost == 0
    np.testing.assert_allclose(point.U.T @ point.U, np.eye(point.width), atol=1e-12)
    np.testing.assert_allclose(point.spectrum(), np.linalg.eigvalsh(Q)[::-1], atol=1e-9)
    top = np.linalg.eigh(Q)[1][:, -K:]
    V = point.nearest_vertex()
    if point.spectrum()[K - 1] - point.spectrum()[K] > 1e-6:
        np.testing.assert_allclose(V @ V.T, top @ top.T, atol=1e-6)


@pytest.mark.parametrize("width", [4, 8])
def test_a_capped_width_stays_in_the_fantope_and_says_what_it_lost(width):
    rng, d, K = np.random.default_rng(0), 40, 2
    point, exact = Fantope.center(d, K), Fantope.center(d, K)
    for _ in range(100):
        theta, G = rng.normal(size=(2, d, 1)) / 3
        point, exact = point.step(theta, G, 0.1, width), exact.step(theta, G, 0.1)
        assert point.width <= width
        assert point.spectrum().sum() == pytest.approx(K)
        assert point.spectrum().min() >= 0
        assert point.spectrum().max() <= 1
    assert exact.width > width
    assert exact.lost == 0
    assert point.lost > 0


def test_what_the_cap_drops_is_the_norm_of_the_difference():
    rng = np.random.default_rng(1)
    point = Fantope.center(20, 3)
    for _ in range(6):
        point = point.step(rng.normal(size=(20, 1)), rng.normal(size=(20, 1)), 0.05)
    capped = point._capped(5)
    assert capped.lost == pytest.approx(np.linalg.norm(dense(point) - dense(capped)))
    assert np.trace(dense(capped)) == pytest.approx(3)


def test_apply_and_nearest_vertex():
    rng = np.random.default_rng(2)
    point = Fantope.center(9, 4).step(rng.normal(size=(9, 2)), rng.normal(size=(9, 2)), 0.3)
    A = rng.normal(size=(9, 3))
    np.testing.assert_allclose(point.apply(A), dense(point) @ A, atol=1e-12)
    V = point.nearest_vertex()
    np.testing.assert_allclose(V.T @ V, np.eye(4), atol=1e-12)
    # no projector of rank 4 has a larger overlap than the leading eigenvalues
    assert np.trace(V.T @ dense(point) @ V) == pytest.approx(point.spectrum()[:4].sum())
    assert Fantope.center(5, 2).nearest_vertex().shape == (5, 2)


@pytest.mark.parametrize("K", [1, 2, 3])
def test_what_a_long_step_leaves_no_room_for_is_one_and_no_more(K):
    """All but K directions are pushed out, so that those never looked at have to be whole."""
    d = 5
    theta = np.eye(d)[:, : d - K]
    point = Fantope.center(d, K).step(theta, theta, 100.0)
    np.testing.assert_allclose(point.spectrum(), np.arange(d) < K, atol=1e-12)
    np.testing.assert_allclose(dense(point), np.diag(1.0 * (np.arange(d) >= d - K)), atol=1e-12)
