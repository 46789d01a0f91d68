"""Points of the Fantope where something is degenerate: nothing new, nothing left, ties, the cap."""

import numpy as np
import pytest
from test_fantope import dense, dense_projection

from expunge.game.fantope import Fantope, capped_shift


def turned(d, K, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, K)))[0]


def some_point(d=7, K=2, columns=3, seed=0):
    """A point with several eigenvalues and a tail, by hand."""
    rng = np.random.default_rng(seed)
    values = np.sort(rng.uniform(0.2, 0.9, columns))[::-1]
    tail = (K - values.sum()) / (d - columns)
    assert 0 < tail < 0.2
    return Fantope(turned(d, columns, seed), values, tail, K)


# -- steps -----------------------------------------------------------------------------------------


def against_dense(point, theta, G, size):
    found = point.step(theta, G, size)
    expected = dense_projection(dense(point) - size / 2 * (theta @ G.T + G @ theta.T), point.K)[0]
    np.testing.assert_allclose(dense(found), expected, atol=1e-12)
    np.testing.assert_allclose(found.U.T @ found.U, np.eye(found.width), atol=1e-13)
    return found


@pytest.mark.parametrize("m", [1, 2])
def test_steps_along_directions_that_are_new_or_old_or_none(m):
    rng, point = np.random.default_rng(1), some_point()
    new, old = rng.normal(size=(7, m)), point.U @ rng.normal(size=(3, m))
    for theta in (new, old, 0 * new, 1e-200 * new, old + 1e-13 * new, old + 1e-5 * new, old + new):
        for G in (rng.normal(size=(7, m)), old, 0 * new):
            found = against_dense(point, theta, G, 0.1)
            assert found.lost == 0
    grown = against_dense(point, new, old, 0.1)
    assert grown.width == 3 + m
    assert against_dense(point, old, old, 0.1).width == 3  # no column for what is there
    # what is outside by no more than rounding is not there
    assert against_dense(point, old + 1e-14 * new, old, 0.1).width == 3
    assert against_dense(point, old + 1e-6 * new, old, 0.1).width > 3


def test_two_columns_that_are_one_are_not_counted_twice():
    rng, point = np.random.default_rng(1), some_point()
    v, g = rng.normal(size=(2, 7, 1))
    assert against_dense(point, np.hstack([v, 2 * v]), np.hstack([g, g]), 0.05).width == 5


def test_a_point_of_all_columns_has_no_tail():
    rng = np.random.default_rng(2)
    point = Fantope.center(4, 2)
    for _ in range(5):
        point = against_dense(point, *rng.normal(size=(2, 4, 3)), 0.1)
    assert point.width == 4
    assert point.tail == 0.0
    assert point.spectrum().sum() == pytest.approx(2)
    point = against_dense(point, *rng.normal(size=(2, 4, 3)), 0.1)  # and stays one


def test_columns_whose_eigenvalue_is_that_of_the_rest_are_given_back():
    point = Fantope.center(6, 2)
    there = point.step(np.eye(6)[:, :1], np.eye(6)[:, :1], 0.1)
    assert there.width == 1
    back = there.step(np.eye(6)[:, :1], np.eye(6)[:, :1], -0.1)
    np.testing.assert_allclose(back.spectrum(), 1 / 3, atol=1e-12)
    still = point.step(np.zeros((6, 1)), np.ones((6, 1)), 0.1)
    assert still.width == 0
    assert still.tail == pytest.approx(1 / 3)


def test_the_first_step_from_a_vertex_is_that_of_the_dense_projection():
    rng, vertex = np.random.default_rng(3), Fantope.vertex(turned(6, 2))
    assert (vertex.K, vertex.tail, vertex.lost) == (2, 0.0, 0.0)
    np.testing.assert_array_equal(vertex.eigenvalues, [1, 1])
    against_dense(vertex, *rng.normal(size=(2, 6, 1)), 0.2)
    drawn = Fantope.random_vertex(6, 2, np.random.default_rng(0))
    np.testing.assert_allclose(drawn.U.T @ drawn.U, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(Fantope.center(6, 2).spectrum(), 1 / 3)


@pytest.mark.parametrize("K", [0, 1, 2.5, 5])
def test_the_shift_at_the_ends(K):
    values, counts = np.array([0.3, -1.0, 2.0, 0.3]), np.array([1.0, 2.0, 1.0, 1.0])
    gamma = capped_shift(values, counts, K)
    assert counts @ np.clip(values - gamma, 0, 1) == pytest.approx(K, abs=1e-12)


# -- the cap ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [0, 1, 2, 3])
def test_the_cap_averages_what_is_nearest_to_the_rest(width):
    point = some_point()
    capped = point._capped(width)
    assert capped.width == width
    far = np.argsort(-np.abs(point.eigenvalues - point.tail))[:width]
    np.testing.assert_array_equal(capped.eigenvalues, point.eigenvalues[np.sort(far)])
    np.testing.assert_array_equal(capped.U, point.U[:, np.sort(far)])
    others = np.delete(point.spectrum(), np.searchsorted(-point.spectrum(), -capped.eigenvalues))
    assert capped.tail == pytest.approx(others.mean())
    assert capped.lost == pytest.approx(np.linalg.norm(dense(point) - dense(capped)), abs=1e-12)
    assert capped.K == 2
    assert capped.spectrum().sum() == pytest.approx(2)


def test_what_was_lost_adds_up():
    rng, point, total = np.random.default_rng(4), Fantope.center(12, 2), 0.0
    for _ in range(4):
        theta, G = rng.normal(size=(2, 12, 1))
        free = point.step(theta, G, 0.2)
        point = point.step(theta, G, 0.2, 2)
        total += np.linalg.norm(dense(free) - dense(point))
        assert point.width == 2
        assert point.lost == pytest.approx(total)
    assert total > 0.01
    same = some_point().step(np.zeros((7, 1)), np.zeros((7, 1)), 0.1, 3)
    assert (same.width, same.lost) == (3, 0.0)  # as many as it has


# -- rounding to a projector -----------------------------------------------------------------------


def test_the_nearest_vertex_takes_the_largest_whatever_their_order():
    U = turned(6, 3)
    point = Fantope(U, np.array([0.1, 0.9, 0.6]), 0.4 / 3, 2)
    V = point.nearest_vertex()
    np.testing.assert_allclose(V @ V.T, U[:, 1:] @ U[:, 1:].T, atol=1e-12)
    assert np.abs(V.T @ U[:, 1]).max() == pytest.approx(1)


@pytest.mark.parametrize(("values", "tail", "K"), [([0.0], 0.4, 2), ([0.9, 0.0, 0.1], 0.5, 2)])
def test_where_the_rest_is_among_the_largest_it_is_taken_from_the_first_axes(values, tail, K):
    """Orthogonal to all columns, those that are taken and those that are not."""
    U = np.eye(6)[:, [1, 0, 3][: len(values)]]
    point = Fantope(U, np.array(values), tail, K)
    V = point.nearest_vertex()
    np.testing.assert_allclose(V.T @ V, np.eye(K), atol=1e-12)
    expected = np.eye(6)[:, [0, 2]] if len(values) == 1 else np.eye(6)[:, [1, 2]]
    np.testing.assert_allclose(V @ V.T, expected @ expected.T, atol=1e-12)
    turned_point = Fantope(turned(6, len(values)), np.array(values), tail, K)
    V = turned_point.nearest_vertex()
    best = turned_point.spectrum()[:K].sum()
    assert np.trace(V.T @ dense(turned_point) @ V) == pytest.approx(best)
    wide = Fantope(turned(20, len(values)), np.array(values), tail, K)
    axes = np.eye(20)[:, : len(values) + K - (values[0] > tail)]  # no more than it takes
    span = np.linalg.qr(np.hstack([wide.U, axes]))[0]
    V = wide.nearest_vertex()
    np.testing.assert_allclose(span @ (span.T @ V), V, atol=1e-12)


def test_little_that_is_new_stays_orthogonal_over_many_steps():
    """Almost all of each step is within the columns, and rounding must not pile up."""
    rng, point = np.random.default_rng(5), some_point(d=12, K=2, columns=3)
    for _ in range(60):
        theta = point.U @ rng.normal(size=(point.width, 1))
        theta = theta + 1e-9 * rng.normal(size=(12, 1))
        point = point.step(theta, theta, 1e-3, 5)
        np.testing.assert_allclose(point.U.T @ point.U, np.eye(point.width), atol=2e-14)
