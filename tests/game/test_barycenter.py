"""The Gaussian barycentre: closed forms, the textbook iteration, and maps that reach it."""

import numpy as np
import pytest
import scipy.linalg

from expunge.game.barycenter import (
    APART,
    barycenter,
    different_directions,
    directions_apart,
    filled,
    maps_to,
    shrunk,
)
from expunge.shrinkage import shrink


def wishart(d, count, seed=0, n=40):
    rng = np.random.default_rng(seed)
    parts = [rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) for _ in range(count)]
    return np.stack([A.T @ A / n for A in parts])


def root(S):
    values, V = np.linalg.eigh((S + S.T) / 2)
    return (V * np.sqrt(values)) @ V.T


def test_of_commuting_matrices_it_is_the_square_of_the_mean_root():
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0]
    values = np.random.default_rng(1).uniform(0.1, 4, size=(3, 5))
    shares = np.array([0.5, 0.3, 0.2])
    covariances = np.stack([(Q * v) @ Q.T for v in values])
    expected = (Q * (shares @ np.sqrt(values)) ** 2) @ Q.T
    np.testing.assert_allclose(barycenter(covariances, shares, tol=1e-12), expected, atol=1e-9)


def test_of_two_matrices_it_is_the_point_between_them():
    """((1 - t)I + tT)A((1 - t)I + tT) with T the optimal map from A to B, in roots."""
    A, B = wishart(4, 2)
    t, rootA = 0.3, root(A)
    back = np.linalg.inv(rootA)
    T = back @ root(rootA @ B @ rootA) @ back
    middle = 0.7 * np.eye(4) + t * T
    np.testing.assert_allclose(
        barycenter(np.stack([A, B]), np.array([0.7, t]), tol=1e-12), middle @ A @ middle, rtol=1e-7
    )


def test_equals_the_textbook_iteration():
    covariances, shares = wishart(5, 3), np.array([0.2, 0.2, 0.6])
    S = np.eye(5)
    for _ in range(300):
        r = root(S)
        middle = sum(p * root(r @ C @ r) for p, C in zip(shares, covariances, strict=True))
        S = np.linalg.inv(r) @ middle @ middle @ np.linalg.inv(r)
    np.testing.assert_allclose(barycenter(covariances, shares, tol=1e-12), S, rtol=1e-6)


def cost(S, covariances, shares):
    """Mean squared distance of Bures and Wasserstein."""
    r = root(S)
    return sum(
        p * np.trace(S + C - 2 * root(r @ C @ r)) for p, C in zip(shares, covariances, strict=True)
    )


def test_nothing_near_it_is_nearer_to_all():
    covariances, shares = wishart(4, 3), np.array([0.5, 0.25, 0.25])
    S = barycenter(covariances, shares)
    best = cost(S, covariances, shares)
    rng = np.random.default_rng(2)
    for _ in range(30):
        E = rng.normal(size=(4, 4))
        for h in (1e-2, -1e-2):
            assert cost(S + h * (E + E.T), covariances, shares) > best
    assert cost(np.einsum("k,kij", shares, covariances), covariances, shares) > best + 1e-2


@pytest.mark.parametrize("max_iter", [0, 1, 100])
def test_maps_reach_any_target_and_are_the_least_change(max_iter):
    covariances, shares = wishart(4, 3), np.full(3, 1 / 3)
    S = barycenter(covariances, shares, max_iter=max_iter)
    for A, C in zip(maps_to(S, covariances), covariances, strict=True):
        np.testing.assert_allclose(A @ C @ A.T, S, rtol=1e-10)
        np.testing.assert_allclose(A, A.T, atol=1e-9)  # symmetric and
        assert np.linalg.eigvalsh((A + A.T) / 2)[0] > 0  # positive: the gradient of a convex map
        r = root(S)
        textbook = r @ np.linalg.inv(root(r @ C @ r)) @ r
        np.testing.assert_allclose(A, textbook, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("turned", [0.0, 0.3])
def test_maps_reach_a_target_that_does_not_vary_everywhere(turned):
    """Rounding makes an eigenvalue negative where there is no variance."""
    turn = np.array([[np.cos(turned), -np.sin(turned)], [np.sin(turned), np.cos(turned)]])
    target = turn @ np.diag([-1e-17, 4.0]) @ turn.T
    target = (target + target.T) / 2
    assert np.linalg.eigvalsh(target)[0] < 1e-15
    covariances = wishart(2, 3)
    for A, C in zip(maps_to(target, covariances), covariances, strict=True):
        np.testing.assert_allclose(A @ C @ A.T, target, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-3, 1e-6])
def test_a_column_of_small_scale_is_kept(scale):
    """Its variance comes out as it would on its own, not as rounding of the others."""
    covariances = np.stack([np.diag([1.0, 4.0]), np.diag([9.0, 1.0])])
    shares = np.array([0.5, 0.5])
    units = np.diag([1.0, scale])
    S = barycenter(units @ covariances @ units, shares)
    np.testing.assert_allclose(np.diag(S), [4.0, 2.25 * scale**2], rtol=1e-6)
    A = maps_to(S, units @ covariances @ units)
    np.testing.assert_allclose(A[0], np.diag([2.0, 0.75]), atol=1e-6)


def test_where_a_class_does_not_vary_it_gets_the_variance_of_all():
    flat = np.diag([1.0, 0.0, 4.0])
    covariances = np.stack([flat, np.eye(3), np.zeros((3, 3))])
    shares = np.array([0.5, 0.25, 0.25])
    pooled = np.einsum("k,kij", shares, covariances)
    found = filled(covariances, shares)
    np.testing.assert_allclose(found[0], flat + np.diag([0, pooled[1, 1], 0]), atol=1e-12)
    np.testing.assert_allclose(found[1], np.eye(3))
    np.testing.assert_allclose(found[2], pooled, atol=1e-12)
    A = maps_to(barycenter(found, shares), found)
    assert np.abs(A).max() < 5  # a new row of the third class is not blown up


def test_full_covariances_are_left_as_they_are():
    covariances = wishart(5, 3)
    np.testing.assert_array_equal(filled(covariances, np.full(3, 1 / 3)), covariances)


def different(covariances, sizes, rank=None, means=None):
    shares, d = sizes / sizes.sum(), covariances.shape[-1]
    means = np.zeros((d, len(sizes))) if means is None else means
    return different_directions(means, covariances, shares, sizes, rank)


def test_directions_that_differ_are_found_in_order():
    """Spreads 9, 1.5 and 1 times as large in one class: first the first, then the second."""
    covariances = np.stack([np.eye(4), np.diag([9.0, 1.5, 1.0, 1.0])])
    sizes = np.array([10_000, 10_000])
    for rank, axes in ((1, [0]), (2, [0, 1])):
        left, right = different(covariances, sizes, rank)
        np.testing.assert_allclose(np.diag(left @ right)[axes], 1, atol=1e-10)
        assert np.linalg.matrix_rank(left @ right) == rank
    assert different(covariances, sizes)[0].shape == (4, 2)


def test_means_come_first():
    covariances = np.stack([np.eye(3), np.diag([9.0, 1.0, 1.0])])
    means = np.outer([0, 0, 1], [1, -1])
    left, right = different(covariances, np.array([99, 99]), 1, means=means)
    np.testing.assert_allclose(left @ right, np.diag([0, 0, 1.0]), atol=1e-12)


def test_directions_of_the_means_are_those_of_leace_for_classes_of_any_size():
    covariances, rng = wishart(4, 3), np.random.default_rng(5)
    sizes = np.array([900, 80, 20])
    shares = sizes / sizes.sum()
    means = rng.normal(size=(4, 3))
    means -= (means @ shares)[:, None]
    left, right = different(covariances, sizes, 2, means=means)
    total = np.einsum("k,kij", shares, covariances) + (means * shares) @ means.T
    W = np.linalg.inv(root(total))
    Q = np.linalg.svd(W @ means)[0][:, :2]
    np.testing.assert_allclose(left @ right, root(total) @ Q @ Q.T @ W, atol=1e-9)


def test_equal_covariances_give_no_directions():
    rng = np.random.default_rng(0)
    parts = rng.normal(size=(2, 2000, 6))
    covariances = np.einsum("kni,knj->kij", parts, parts) / 2000
    assert different(covariances, np.array([2000, 2000]))[0].shape == (6, 0)


@pytest.mark.parametrize("scale", [0.0, 1e-8])
def test_a_constant_or_tiny_column_is_no_difference(scale):
    D = np.diag([1.0, 1.0, scale])
    covariances = np.stack([D @ D, D @ np.diag([9.0, 1.0, 1.0]) @ D])
    left, right = different(covariances, np.array([9999, 9999]))
    np.testing.assert_allclose(left @ right, np.diag([1.0, 0, 0]), atol=1e-9)


def test_one_direction_at_least_is_left():
    """More means than columns: every direction but those of the means may stay."""
    covariances = np.stack([np.eye(2), 50 * np.eye(2), np.eye(2)])
    sizes = np.array([999, 999, 999])
    left, _ = different(covariances, sizes, means=np.array([[1.0, 0, -1], [0, 1, -1]]))
    assert left.shape == (2, 2)
    assert different(covariances, sizes)[0].shape == (2, 1)


def test_directions_beyond_the_means_are_those_of_least_change_where_classes_vary_alike():
    covariances, shares = np.stack([np.diag([4.0, 1.0, 0.25, 2.0])] * 2), np.array([0.5, 0.5])
    deviations = np.array([[1.0, -1.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    left, right = different_directions(deviations, covariances, shares, np.array([50, 50]), 3)
    taken = np.linalg.svd(left @ right)[0][:, :3]
    np.testing.assert_allclose(taken @ taken.T, np.diag([1.0, 1.0, 1.0, 0.0]), atol=1e-6)


@pytest.mark.parametrize(("variance", "is_filled"), [(0.9e-4, True), (1.1e-4, False)])
def test_below_a_hundredth_of_the_spread_of_all_a_class_is_filled(variance, is_filled):
    """Along any axis, in the units of the pooled covariance."""
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    flat, other = np.diag([1.0, variance, 1.0]), np.diag([1.0, 2 - variance, 1.0])
    mix = turn @ np.diag([1.0, 3.0, 0.2])
    covariances = np.stack([mix @ S @ mix.T for S in (flat, other)])
    found = filled(covariances, np.array([0.5, 0.5]))  # the pooled one is mix @ mixᵀ
    whole = np.diag([1.0, variance + is_filled, 1.0])
    np.testing.assert_allclose(found[0], mix @ whole @ mix.T, atol=1e-9)
    np.testing.assert_allclose(found[1], covariances[1], atol=1e-12)


def test_shrinkage_goes_towards_a_multiple_of_the_covariance_of_all():
    covariances, shares = wishart(4, 3), np.array([0.5, 0.3, 0.2])
    pooled = np.einsum("k,kij", shares, covariances)
    W = np.linalg.inv(root(pooled))
    sizes, rules = np.array([30, 20, 10]), ["none", 0.3, "oas"]
    found = shrunk(covariances, shares, sizes, rules, eps=1e-16)
    np.testing.assert_array_equal(found[0], covariances[0])
    size = np.trace(W @ covariances[1] @ W) / 4
    np.testing.assert_allclose(found[1], 0.7 * covariances[1] + 0.3 * size * pooled, atol=1e-10)
    after = shrink(W @ covariances[2] @ W, 10, "oas")
    np.testing.assert_allclose(found[2], root(pooled) @ after @ root(pooled), atol=1e-10)
    assert np.abs(found[2] - covariances[2]).max() > 1e-3
    for rule in ("none", 0, 0.0):
        assert shrunk(covariances, shares, sizes, [rule] * 3, eps=1e-16) is covariances


def test_the_iteration_stops_where_it_hardly_moves():
    covariances, shares = wishart(5, 3), np.array([0.2, 0.2, 0.6])
    exact = barycenter(covariances, shares, tol=1e-14, max_iter=1000)
    errors = [
        np.linalg.norm(barycenter(covariances, shares, tol=tol) - exact) / np.linalg.norm(exact)
        for tol in (1e-1, 1e-3, 1e-6)
    ]
    assert 1e-5 < errors[0] < 0.2
    assert 1e-7 < errors[1] < 1e-3
    assert errors[2] < 1e-6
    usual = barycenter(covariances, shares)
    np.testing.assert_array_equal(usual, barycenter(covariances, shares, tol=1e-6, max_iter=100))


@pytest.mark.parametrize(
    ("shares", "sizes", "found"),
    [
        ((0.5, 0.5), (120, 120), 0),  # 0.111 against 0.116
        ((0.5, 0.5), (135, 135), 1),  # 0.103
        ((0.2, 0.8), (60, 500), 0),  # 0.049 against 0.070
        ((0.2, 0.8), (200, 500), 1),  # 0.034
    ],
)
def test_a_difference_counts_above_the_noise_of_the_rows(shares, sizes, found):
    """Σ p (2√γ + γ)² with γ = d / n; the differences are 1/9 and 4/81 of the pooled variance."""
    covariances, means = np.stack([np.eye(3), np.diag([2.0, 1.0, 1.0])]), np.zeros((3, 2))
    given = means, covariances, np.array(shares), np.array(sizes)
    assert different_directions(*given, None)[0].shape == (3, found)


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 7])
def test_directions_are_those_of_the_squared_differences_where_all_rows_are_white(rank):
    """By roots and eigenvalues; the one that is left is never taken."""
    covariances, shares = wishart(4, 3, seed=3), np.array([0.5, 0.3, 0.2])
    means = np.outer([1.0, 0.5, 0.0, -1.0], [0.3, -0.1, -0.6])
    means -= (means @ shares)[:, None]
    left, right = different_directions(means, covariances, shares, np.full(3, 500), rank)
    within = np.einsum("k,kij", shares, covariances)
    total = within + (means * shares) @ means.T
    W = np.linalg.inv(root(total))
    u = W @ means[:, :1] / np.linalg.norm(W @ means[:, :1])
    N = np.linalg.svd(u)[0][:, 1:]
    E = W @ (covariances - within) @ W
    D = np.einsum("k,kij,kjl->il", shares, E, E)
    values, V = np.linalg.eigh(N.T @ D @ N)
    assert np.diff(values).min() > 0.01
    Q = np.hstack([u, N @ V[:, ::-1]])[:, : min(rank, 3)]
    expected = root(total) @ Q @ Q.T @ W
    np.testing.assert_allclose(left @ right, expected, atol=1e-3)
    np.testing.assert_allclose(right @ left, np.eye(min(rank, 3)), atol=1e-9)


@pytest.mark.parametrize("scale", [1e8, 1e-8])
def test_the_unit_of_all_columns_does_not_matter(scale):
    covariances, shares = wishart(4, 3), np.array([0.5, 0.3, 0.2])
    np.testing.assert_allclose(
        barycenter(scale * covariances, shares, tol=1e-2),
        scale * barycenter(covariances, shares, tol=1e-2),
        rtol=1e-9,
    )
    means = np.outer([1.0, 0.5, 0.0, -1.0], [0.3, -0.1, -0.6])
    for rank in (2, None):
        one, other = (
            different_directions(np.sqrt(c) * means, c * covariances, shares, np.full(3, 500), rank)
            for c in (1.0, scale)
        )
        np.testing.assert_allclose(other[0] @ other[1], one[0] @ one[1], atol=1e-6)
    flat = scale * np.diag([-1e-17, -1e-17, 4.0])  # zeros after rounding
    A = maps_to(flat, wishart(3, 1))[0]
    np.testing.assert_allclose(A @ wishart(3, 1)[0] @ A.T, flat, atol=1e-12 * scale)


def test_where_classes_vary_alike_the_axes_of_least_variance_go():
    S = wishart(4, 1)[0]
    V = np.linalg.eigh(S)[1]
    for rank in (1, 2, 3):
        left, right = different(np.stack([S, S]), np.array([50, 70]), rank)
        least = V[:, :rank]
        np.testing.assert_allclose(left @ right, least @ least.T, atol=1e-6)


@pytest.mark.parametrize(("apart", "expected"), [(0, 0), (1, 1), (4, 4)])
@pytest.mark.parametrize("small", [0.0, 0.1, 0.9])
def test_directions_apart_are_generalised_eigenvalues(apart, expected, small):
    """Whether none is apart is told first, by a norm that many small differences exceed."""
    d, rng = 30, np.random.default_rng(0)
    change = np.full(d, small * APART)
    change[:apart] = 1.1 * APART
    Q = np.linalg.qr(rng.normal(size=(d, d)))[0]
    root = rng.normal(size=(d, d))
    covariances = np.stack([root @ (Q * (1 + s * change)) @ Q.T @ root.T for s in (1, -1)])
    shares = np.array([0.5, 0.5])
    pooled = covariances.mean(axis=0)
    values = [scipy.linalg.eigh(S - pooled, pooled, eigvals_only=True) for S in covariances]
    np.testing.assert_array_equal(np.sum(np.abs(values) > APART, axis=1), expected)
    np.testing.assert_array_equal(directions_apart(covariances, shares), expected)


def test_nothing_is_apart_of_what_does_not_vary():
    """No factor exists there; rounding below it says nothing."""
    covariances = np.stack([np.diag([1.0, 0.0, 0.0]), np.diag([1.0, 0.0, 1e-18])])
    assert not directions_apart(covariances, np.array([0.5, 0.5])).any()
