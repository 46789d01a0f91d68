"""Rayleigh quotients: the lemma by brute force, each objective by its definition."""

import numpy as np
import pytest
import scipy.linalg
from sklearn.cross_decomposition import CCA

import expunge as ex
from planted import plant


def random_subspaces(d, K, count, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield np.linalg.qr(rng.normal(size=(d, d)))[0][:, : d - K]


@pytest.mark.parametrize("K", [1, 2, 3])
def test_lemma_by_brute_force(K):
    """No space of dimension d - K has a larger smallest quotient than the one left over."""
    rng = np.random.default_rng(K)
    A = rng.normal(size=(4, 4))
    A = A + A.T
    eraser = ex.RayleighEraser(K, objective=A, center=False).fit(rng.normal(size=(9, 4)))
    kept = scipy.linalg.null_space(eraser.erasure_.basis)
    value = np.linalg.eigvalsh(kept.T @ A @ kept)[0]
    assert eraser.value_ == pytest.approx(value)
    assert eraser.value_ == pytest.approx(np.linalg.eigvalsh(A)[K])
    others = [np.linalg.eigvalsh(S.T @ A @ S)[0] for S in random_subspaces(4, K, 4000)]
    assert max(others) <= value + 1e-12
    assert max(others) > value - 0.6  # the search came near, so it could have found a better one


def test_pls_removes_the_covariance_not_the_uninformative_direction():
    data = plant("number")
    eraser = ex.RayleighEraser(1, objective="pls").fit(data.X, data.y)
    covariance = (data.X - data.X.mean(0)).T @ (data.y - data.y.mean())
    np.testing.assert_allclose(
        np.abs(eraser.erasure_.basis[0] @ covariance), np.linalg.norm(covariance)
    )
    assert eraser.value_ == pytest.approx(0, abs=1e-12)
    assert eraser.certificate_.erased


def test_pls_value_below_the_rank_is_the_next_singular_value():
    data = plant("vector")
    s = np.linalg.svd(np.cov(data.X.T, data.y.T, ddof=0)[:8, 8:], compute_uv=False)
    eraser = ex.RayleighEraser(1, objective="pls").fit(data.X, data.y)
    assert eraser.value_ == pytest.approx(-(s[1] ** 2))
    assert not eraser.certificate_.erased


def test_pca_removes_leading_components():
    data = plant("number")
    variances = np.linalg.eigvalsh(np.cov(data.X.T, ddof=0))[::-1]
    eraser = ex.RayleighEraser(2, objective="pca").fit(data.X)
    left = np.linalg.eigvalsh(np.cov(eraser.transform(data.X).T, ddof=0))[::-1]
    np.testing.assert_allclose(left[:6], variances[2:], atol=1e-10)
    assert eraser.value_ == pytest.approx(-variances[2])
    assert eraser.certificate_ is None


def test_cca_value_is_the_next_canonical_correlation():
    data = plant("vector")
    model = CCA(n_components=2, max_iter=5000, tol=1e-12).fit(data.X, data.y)
    U, V = model.transform(data.X, data.y)
    rho = [np.corrcoef(U[:, k], V[:, k])[0, 1] for k in range(2)]
    eraser = ex.RayleighEraser(1, objective="cca").fit(data.X, data.y)
    assert eraser.value_ == pytest.approx(-(rho[1] ** 2), rel=1e-4)
    assert not eraser.erasure_.is_orthogonal


@pytest.mark.parametrize("kind", ["binary", "classes", "labels", "vector"])
def test_cca_at_full_rank_is_the_least_squares_erasure(kind):
    """x - E[projection]: the closed form of least-squares erasure, written out densely."""
    data = plant(kind)
    X, Z = data.X - data.X.mean(0), data.Z - data.Z.mean(0)
    S, C = X.T @ X / len(X), X.T @ Z / len(X)
    root = scipy.linalg.sqrtm(S).real
    W = np.linalg.inv(root)
    U = scipy.linalg.orth(W @ C, rcond=1e-10)
    expected = np.eye(8) - root @ U @ U.T @ W
    eraser = ex.RayleighEraser(objective="cca").fit(data.X, data.y)
    np.testing.assert_allclose(eraser.erasure_.matrix(), expected, atol=1e-9)
    assert eraser.certificate_.erased


def test_cca_with_more_columns_than_rows_erases_too():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 50)), rng.integers(0, 2, 30)
    X[y == 1, :3] += 2
    clean = ex.RayleighEraser(objective="cca").fit_transform(X, y)
    assert np.linalg.norm(X[y == 0].mean(0) - X[y == 1].mean(0)) > 1
    np.testing.assert_allclose(clean[y == 0].mean(0), clean[y == 1].mean(0), atol=1e-10)


@pytest.mark.parametrize("objective", ["pls", "cca"])
def test_rank_above_the_concept_is_filled_up(objective):
    data = plant("binary")
    eraser = ex.RayleighEraser(4, objective=objective).fit(data.X, data.y)
    assert eraser.rank_ == 4
    P = eraser.erasure_.matrix()
    np.testing.assert_allclose(P @ P, P, atol=1e-9)
    assert eraser.value_ == 0
    assert eraser.certificate_.erased


def test_streaming_equals_batch():
    data = plant("classes")
    for objective in ("pls", "pca", "cca"):
        stream = ex.RayleighEraser(objective=objective)
        for part in np.array_split(np.arange(600), 5):
            stream.partial_fit(data.X[part], data.y[part])
        whole = ex.RayleighEraser(objective=objective).fit(data.X, data.y)
        np.testing.assert_allclose(stream.erasure_.matrix(), whole.erasure_.matrix(), atol=1e-9)


def test_a_matrix_that_is_not_symmetric_is_refused():
    with pytest.raises(ex.InputError, match="symmetric matrix of shape"):
        ex.RayleighEraser(objective=np.triu(np.ones((3, 3)))).fit(np.eye(3))
    with pytest.raises(ex.InputError, match="Unknown objective"):
        ex.RayleighEraser(objective="svd").fit(np.eye(3))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("rank", ["auto", 1, 4])
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("repeated", [True, False])
def test_cca_with_constant_and_repeated_columns(repeated, center, rank, dtype):
    data = plant("classes")
    X = np.column_stack([data.X, np.full(600, 7.0), data.X[:, 0], np.zeros(600)]).astype(dtype)
    if not repeated:
        X[:, 9] = np.random.default_rng(0).normal(size=600)
    eraser = ex.RayleighEraser(rank, objective="cca", center=center).fit(X, data.y)
    assert eraser.rank_ == (rank if rank != "auto" else 3 + (not center))
    clean = eraser.transform(X.astype(float))
    assert np.isfinite(clean).all()
    if rank == 1:
        return
    gaps = np.array([clean[data.y == c].mean(0) for c in np.unique(data.y)])
    before = np.array([X[data.y == c].mean(0) for c in np.unique(data.y)])
    assert np.ptp(before, axis=0).max() > 1
    assert np.ptp(gaps, axis=0).max() < 1e-5
    if center:
        np.testing.assert_allclose(clean[:, [8, 10]], X[:, [8, 10]].astype(float), atol=1e-12)


def test_cca_does_not_depend_on_the_units_of_the_columns():
    """Down to columns of 1e-16 of the spread of others, which the concept moves too."""
    data = plant("classes")
    units = 10.0 ** np.array([-8, 8, 0, -4, 3, 0, 5, -6])
    plain = ex.RayleighEraser(objective="cca").fit(data.X, data.y)
    scaled = ex.RayleighEraser(objective="cca").fit(data.X * units, data.y)
    np.testing.assert_allclose(
        scaled.transform(data.X * units) / units, plain.transform(data.X), atol=1e-7
    )


def test_cca_fills_up_with_what_changes_the_rows_least():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 500)
    X = rng.normal(size=(500, 4)) * [1, 3, 0.1, 2] + np.outer(y, [2, 0, 0, 0])
    own = ex.RayleighEraser(objective="cca").fit_transform(X, y)
    filled = ex.RayleighEraser(2, objective="cca").fit_transform(X, y)
    more = np.mean(np.sum((filled - X) ** 2, axis=1)) - np.mean(np.sum((own - X) ** 2, axis=1))
    assert more == pytest.approx(0.01, rel=0.1)
