"""Rayleigh quotients against plain twins: centred or not, at any scale, down to one column."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg

import expunge as ex
from planted import plant


def cross(data, center):
    """Second moments of rows and of rows with the concept, about the mean or about zero."""
    X, Z = data.X, data.Z
    if center:
        X, Z = X - X.mean(axis=0), Z - Z.mean(axis=0)
    return X.T @ X / len(X), X.T @ Z / len(X), Z.T @ Z / len(X)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("kind", ["classes", "labels"])
def test_covariance_below_the_rank(kind, rank, center):
    data = plant(kind)
    data = replace(data, X=data.X * [1, 30, 0.1, 1, 1, 1, 5, 1])
    U, s, _ = np.linalg.svd(cross(data, center)[1], full_matrices=False)
    eraser = ex.RayleighEraser(rank, center=center).fit(data.X, data.y)
    P = np.eye(8) - U[:, :rank] @ U[:, :rank].T
    np.testing.assert_allclose(eraser.erasure_.matrix(), P, atol=1e-8)
    own = 3 if center or kind == "labels" else 4
    assert eraser.value_ == (pytest.approx(-(s[rank] ** 2)) if rank < own else 0.0)
    assert (eraser.erasure_.center is None) is not center
    assert eraser.certificate_.loss == ("cross_entropy" if center else "squared")


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("rank", [1, 2, "auto"])
@pytest.mark.parametrize("units", [1.0, 1e-5])
def test_correlation_below_the_rank_in_any_units_of_the_concept(rank, center, units):
    data = plant("labels")
    Sxx, C, Szz = cross(data, center)
    sd, K = np.sqrt(np.diag(Sxx)), 3 if rank == "auto" else rank
    root = scipy.linalg.sqrtm(Sxx / np.outer(sd, sd)).real  # the least change in units of spreads
    W = np.linalg.inv(root)
    U, rho, _ = np.linalg.svd(W @ (C / sd[:, None]) @ np.linalg.inv(scipy.linalg.sqrtm(Szz).real))
    expected = np.eye(8) - (sd[:, None] * root) @ U[:, :K] @ U[:, :K].T @ (W / sd)
    settings = {"objective": "cca", "center": center, "concept_type": "continuous"}
    eraser = ex.RayleighEraser(rank, **settings).fit(data.X, data.Z * [1.0, units, 1 / units])
    np.testing.assert_allclose(eraser.erasure_.matrix(), expected, atol=1e-9)
    assert eraser.value_ == (0.0 if K == 3 else pytest.approx(-(rho[K] ** 2)))


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("rank", [1, 3, "auto"])
def test_principal_components(rank, center):
    data = plant("number")
    values, V = np.linalg.eigh(cross(data, center)[0])
    K = 1 if rank == "auto" else rank
    eraser = ex.RayleighEraser(rank, objective="pca", center=center).fit(data.X)
    V = V[:, ::-1][:, :K]
    np.testing.assert_allclose(eraser.erasure_.matrix(), np.eye(8) - V @ V.T, atol=1e-9)
    assert eraser.value_ == pytest.approx(-values[::-1][K])
    assert eraser.rank_ == K
    assert eraser.erasure_.meta["concept"] is None
    assert eraser.erasure_.meta["fit"] is None


@pytest.mark.filterwarnings("ignore::expunge.errors.NothingLeft")
def test_of_one_column_nothing_is_left():
    X, y = np.arange(6.0)[:, None], np.arange(6) % 2
    for objective in ("pca", np.array([[2.0]]), "pls", "cca"):
        eraser = ex.RayleighEraser(objective=objective).fit(X, y)
        assert (eraser.rank_, eraser.value_) == (1, 0.0)
        np.testing.assert_allclose(eraser.transform(X), 2.5)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_how_symmetric_a_matrix_has_to_be(size):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(4, 4))
    A, X = size * (A + A.T), rng.normal(size=(9, 4))
    odd = size * np.triu(np.ones((4, 4)), 1)
    values, V = np.linalg.eigh(A)
    found = ex.RayleighEraser(2, objective=A + 1e-13 * odd).fit(X)
    expected = np.eye(4) - V[:, :2] @ V[:, :2].T
    np.testing.assert_allclose(found.erasure_.matrix(), expected, atol=1e-9)
    assert found.value_ == pytest.approx(values[2])
    assert ex.RayleighEraser(objective=A).fit(X).rank_ == 1
    for wrong in (A + 1e-3 * odd, A + 1e-6 * odd):
        with pytest.raises(ex.InputError, match="not symmetric"):
            ex.RayleighEraser(2, objective=wrong).fit(X)
    with pytest.raises(ex.InputError, match=r"received shape \(3, 3\)|shape \(3, 3\)"):
        ex.RayleighEraser(2, objective=np.eye(3)).fit(X)


@pytest.mark.filterwarnings("ignore::expunge.errors.UnitsMatter")
@pytest.mark.parametrize("objective", ["pls", "cca"])
@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_every_direction_counts_at_any_scale(objective, scale):
    """Also one in a column of another size, with a concept of another size."""
    data = plant("vector")
    plain = ex.RayleighEraser(objective=objective).fit(data.X, data.y)
    other = ex.RayleighEraser(objective=objective).fit(data.X * scale, data.y * 1e-9)
    assert plain.rank_ == other.rank_ == 2
    np.testing.assert_allclose(other.erasure_.matrix(), plain.erasure_.matrix(), atol=1e-8)
    X = np.c_[data.y[:, :1] + np.random.default_rng(0).normal(size=(600, 1)), data.X[:, :3]]
    X[:, 1] = (X[:, 1] + data.y[:, 1]) * 1e-9
    clean = ex.RayleighEraser(objective=objective).fit_transform(X, data.y)
    D = data.y - data.y.mean(axis=0)
    before, after = (
        np.abs((A - A.mean(axis=0)).T @ D) / A.std(axis=0)[:, None] for A in (X, clean)
    )
    assert before[1].max() > 100
    assert after.max() < 1e-4


@pytest.mark.parametrize("objective", ["pls", "cca"])
@pytest.mark.parametrize("rank", [4, 6])
@pytest.mark.parametrize("center", [True, False])
def test_more_directions_are_those_that_change_the_rows_least(objective, rank, center):
    """No other directions of the same number, beside the concept's own, change less."""
    data = plant("vector", d=7)
    X = data.X * [1, 3, 0.2, 1, 0.5, 2, 1]
    settings = {"objective": objective, "center": center}
    own = ex.RayleighEraser(**settings).fit(X, data.y)
    more = ex.RayleighEraser(rank, **settings).fit(X, data.y)
    assert (own.rank_, more.rank_, more.value_) == (2, rank, 0.0)
    change = [np.mean(np.sum((e.transform(X) - X) ** 2, axis=1)) for e in (own, more)]
    C = own.transform(X) - (X.mean(axis=0) if center else 0)
    if objective == "pls":
        costs = np.linalg.eigvalsh(C.T @ C / len(C))[2:]
    else:  # a direction u between whitened columns costs what root u is worth in the units of each
        C = X - (X.mean(axis=0) if center else 0)
        sd = np.sqrt((C**2).mean(axis=0))
        root = scipy.linalg.sqrtm(C.T @ C / len(C) / np.outer(sd, sd)).real
        free = scipy.linalg.null_space(own.erasure_.right * sd @ root)
        costs = np.linalg.eigvalsh(free.T @ root.T @ np.diag(sd**2) @ root @ free)
    assert change[1] - change[0] == pytest.approx(np.sort(costs)[: rank - 2].sum(), rel=1e-6)
    P = more.erasure_.matrix()
    np.testing.assert_allclose(P @ P, P, atol=1e-9)
    np.testing.assert_allclose(P @ own.erasure_.left, 0, atol=1e-9)


def test_what_it_says_of_itself():
    concept, none = ex.RayleighEraser(objective="cca"), ex.RayleighEraser(objective="pca")
    assert concept._why_not_pooling() == ""
    assert "no concept" in none._why_not_pooling()
    matrix = ex.RayleighEraser(objective=np.eye(3))
    assert [e._depends_on_units() for e in (ex.RayleighEraser(), none, concept, matrix)] == [
        True,
        True,
        False,
        False,
    ]
    assert not matrix._needs_concept()
