"""QuadraticLEACE against what defines it: optimal transport of every class to one barycentre."""

import numpy as np
import pytest
import scipy.linalg

import expunge as ex


def shaped(n=900, units=(1.0, 1.0, 1.0), seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice(3, size=n, p=[0.5, 0.3, 0.2])
    mixes = rng.normal(size=(3, 3, 3)) + 2 * np.eye(3)
    X = np.einsum("nij,nj->ni", mixes[y], rng.normal(size=(n, 3))) + rng.normal(size=(3, 3))[y]
    return X * units, y


def root(A):
    return scipy.linalg.sqrtm(A).real


@pytest.mark.parametrize("shrinkage", ["auto", 0.3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("units", "own"),
    [((1.0, 1.0, 1.0), False), ((1e-3, 2e-3, 1e-1), False), ((1e-3, 1.0, 1e4), True)],
    ids=["alike", "narrow", "far apart"],
)
def test_maps_are_optimal_transport_to_the_barycentre(units, own, weighted, shrinkage):
    """Symmetric, and to Σ = Σₖ πₖ (Σ^½ Σₖ Σ^½)^½, in the units of the columns, or in their own."""
    X, y = shaped(units=units)
    w = np.random.default_rng(1).random(900) if weighted else np.ones(900)
    found = ex.QuadraticLEACE(shrinkage=shrinkage).fit(X, y, sample_weight=w if weighted else None)
    mean = np.average(X, axis=0, weights=w)
    sd = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=w)) if own else np.ones(3)
    maps = found.conditional_erasure_.maps * sd / sd[:, None]
    shares = np.array([w[y == k].sum() for k in range(3)]) / w.sum()
    classes = [np.cov((X[y == k] / sd).T, aweights=w[y == k], ddof=0) for k in range(3)]
    if shrinkage != "auto":  # towards the covariance within all classes, at the size of its own
        common = np.einsum("k,kij->ij", shares, classes)
        sizes = [np.trace(np.linalg.solve(common, S)) / 3 for S in classes]
        classes = [
            (1 - shrinkage) * S + shrinkage * size * common
            for S, size in zip(classes, sizes, strict=True)
        ]
    size = np.abs(classes).max()
    after = [M @ S @ M.T for M, S in zip(maps, classes, strict=True)]
    for M, S in zip(maps, after, strict=True):
        np.testing.assert_allclose(M, M.T, atol=1e-6 * np.abs(M).max())
        assert np.linalg.eigvalsh((M + M.T) / 2).min() > 0
        np.testing.assert_allclose(S, after[0], atol=1e-6 * size)
    R = root(after[0])
    mixed = sum(p * root(R @ S @ R) for p, S in zip(shares, classes, strict=True))
    np.testing.assert_allclose(after[0], mixed, atol=1e-6 * size)
    clean = found.transform(X, concept=y)
    for k in range(3):
        np.testing.assert_allclose(
            np.average(clean[y == k], axis=0, weights=w[y == k]), mean, atol=1e-9 * max(units)
        )


def test_constant_columns_are_not_touched():
    X, y = shaped()
    X = np.c_[X[:, :1], np.full(900, 1 / 3), X[:, 1:]]
    found = ex.QuadraticLEACE().fit(X, y)
    maps = found.conditional_erasure_.maps
    np.testing.assert_array_equal(maps[:, 1], np.tile(np.eye(4)[1], (3, 1)))
    np.testing.assert_array_equal(maps[:, :, 1], np.tile(np.eye(4)[1], (3, 1)))
    np.testing.assert_allclose(found.transform(X, concept=y)[:, 1], 1 / 3, rtol=1e-12)
    plain = ex.QuadraticLEACE().fit(X[:, [0, 2, 3]], y).conditional_erasure_.maps
    np.testing.assert_allclose(maps[:, [0, 2, 3]][:, :, [0, 2, 3]], plain, atol=1e-9)


@pytest.mark.parametrize(("n", "rule"), [(3, "oas"), (4, "oas"), (5, "none")])
def test_classes_of_no_more_rows_than_columns_are_shrunk(n, rule):
    part = ex.Moments.of(np.random.default_rng(0).normal(size=(n, 4)), np.arange(float(n)))
    assert ex.QuadraticLEACE()._rule(part) == rule
    assert ex.QuadraticLEACE(shrinkage=0.25)._rule(part) == 0.25
    assert ex.QuadraticLEACE(shrinkage="none")._rule(part) == "none"


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_without_labels_units_do_not_matter(scale):
    """The directions are found in units of the spreads, and given in those of the columns."""
    X, y = shaped()
    units = np.array([1.0, scale, 1.0])
    plain, other = (
        ex.QuadraticLEACE(1, label_free=True).fit(A, y).erasure_.matrix() for A in (X, X * units)
    )
    np.testing.assert_allclose(other / np.outer(units, 1 / units), plain, atol=1e-7)
    assert ex.QuadraticLEACE("auto", label_free=True).fit(X, y).rank_ >= 1


def test_without_labels_the_directions_of_the_means_go():
    rng = np.random.default_rng(0)
    y = np.arange(600) % 2
    X = rng.normal(size=(600, 4)) * [1, 5, 1, 1]
    X[:, 2] *= np.where(y, 3.0, 1.0)  # spreads differ here
    X[:, 1] += 10 * y  # and means here
    eraser = ex.QuadraticLEACE(2, label_free=True).fit(X, y)
    clean = eraser.transform(X)
    np.testing.assert_allclose(clean[y == 0].mean(0), clean[y == 1].mean(0), atol=1e-1)
    assert X[y == 1, 2].std() > 2.5 * X[y == 0, 2].std()
    assert clean[y == 1, 2].std() < 1.2 * clean[y == 0, 2].std() + 0.2
