"""What an erasure does to narrow types: the exact result, rounded once.

Products of float32 would put the concept back where one column is far wider than the others: what
is left of that column is of the size of their errors, and those follow what was taken away.
"""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import expunge as ex
from expunge.integrations.torch import ErasureLayer
from expunge.rows import apply_tensor

pytestmark = pytest.mark.filterwarnings(
    "ignore::expunge.errors.UnitsMatter",
    "ignore::expunge.errors.RoundingShows",
    "ignore::expunge.errors.NothingLeft",
)

HALF = {"float16": torch.float16, "bfloat16": torch.bfloat16}


def rows_with_a_wide_column(seed, *, classes=2, offset=0.0, wide=1e4, n=1500, d=10):
    """Rows of float32 whose first column has `wide` times the spread of the others."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    means = rng.normal(size=(classes, d))
    scale = np.where(np.arange(d) == 0, wide, 1.0)
    return ((rng.normal(size=(n, d)) + means[y] + offset) * scale).astype(np.float32), y


def exactly(e, X):
    """The formula in extended precision."""
    X = np.asarray(X, dtype=np.longdouble)
    centred = X if e.center is None else X - e.center
    moved = X - centred @ e.right.T.astype(np.longdouble) @ e.left.T.astype(np.longdouble)
    return moved if e.offset is None else moved + e.offset


def found_by_a_probe(X, y):
    probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
    return probe.fit(X, y).score(X, y)


def applied(way, e, X):
    """The rows after the erasure, as an array, by one of the ways there are."""
    x = torch.from_numpy(X.copy())
    if way == "array":
        return e(X)
    if way == "in place":
        return e.transform(X.copy(), out=X.copy())
    if way == "gradient":
        return e(x.requires_grad_()).detach().numpy()
    if way == "layer":
        return ErasureLayer(e)(x).numpy()
    return e(x).numpy()


WAYS = ("array", "in place", "tensor", "blocks of a tensor", "gradient", "layer")


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    if request.param == "blocks of a tensor":
        monkeypatch.setattr(apply_tensor, "SMALL", -1)
    return request.param


# -- rounded once --------------------------------------------------------------------------------


def differing(found, expected):
    """Share of numbers that are not the expected ones; none is further away than the next one."""
    apart = np.abs(found.astype(np.float64) - expected.astype(np.float64))
    assert (apart <= np.spacing(np.abs(expected))).all()
    return np.mean(found != expected)


def an_erasure(d, rank, *, points):
    rng = np.random.default_rng(rank)
    L, R = rng.normal(size=(d, rank)), rng.normal(size=(rank, d))
    at = {"center": 3 * rng.normal(size=d), "offset": rng.normal(size=d)} if points else {}
    return ex.Erasure(L, np.linalg.solve(R @ L, R), **at)


@pytest.mark.parametrize("points", [False, True])
@pytest.mark.parametrize("rank", [0, 1, 3])
def test_float32_is_the_exact_result_rounded_once(way, rank, points):
    X, _ = rows_with_a_wide_column(0, d=24)
    e = an_erasure(24, rank, points=points)
    assert differing(applied(way, e, X), exactly(e, X).astype(np.float32)) < 1e-5


@pytest.mark.parametrize("offset", [1e3, 1e5])
@pytest.mark.parametrize("eraser", [ex.LEACE, ex.RLACE], ids=lambda c: c.__name__)
def test_it_is_so_far_from_zero_too(way, eraser, offset):
    X, y = rows_with_a_wide_column(1, classes=4, offset=offset)
    e = eraser().fit(X, y).erasure_
    assert differing(applied(way, e, X), exactly(e, X).astype(np.float32)) < 1e-5


@pytest.mark.parametrize("rank", [1, 3])
def test_float16_is_the_exact_result_rounded_once(rank):
    X = rows_with_a_wide_column(0, d=24, wide=1e2)[0].astype(np.float16)
    e = an_erasure(24, rank, points=True)
    assert differing(e(X), exactly(e, X).astype(np.float64).astype(np.float16)) < 1e-5


@pytest.mark.parametrize("dtype", HALF.values(), ids=HALF)
@pytest.mark.parametrize("kept", [apply_tensor.SMALL, -1], ids=["one expression", "blocks"])
def test_half_tensors_too_but_for_ties(monkeypatch, dtype, kept):
    """torch rounds float64 to half types by way of float32, which can tell on a tie only."""
    monkeypatch.setattr(apply_tensor, "SMALL", kept)
    x = torch.from_numpy(rows_with_a_wide_column(0, d=24, wide=1e2)[0]).to(dtype)
    for rank in (1, 3):
        e = an_erasure(24, rank, points=True)
        exact = torch.from_numpy(exactly(e, x.double().numpy()).astype(np.float64)).to(dtype)
        assert (e(x) != exact).double().mean() < 1e-3
        step = torch.finfo(dtype).eps * exact.double().abs()
        assert ((e(x).double() - exact.double()).abs() <= step).all()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_column_that_is_not_erased_keeps_its_bits(dtype):
    X = (1e3 + np.random.default_rng(0).normal(size=(600, 6))).astype(dtype)
    X[::7, 0] = 1e-30
    for rank in (1, 2):
        left = np.zeros((6, rank))
        left[3 : 3 + rank] = np.eye(rank)
        e = ex.Erasure(left, left.T, center=X.mean(axis=0))
        np.testing.assert_array_equal(e(X)[:, :3], X[:, :3])
        assert (e(X)[:, 3] != X[:, 3]).any()


# -- what a probe finds --------------------------------------------------------------------------


def no_more_than_chance(way, eraser, *, seeds, **settings):
    for seed in range(seeds):
        X, y = rows_with_a_wide_column(seed, **settings)
        fitted = eraser.fit(X, y)
        assert fitted.certificate_.erased
        chance = np.bincount(y).max() / len(y)
        assert found_by_a_probe(X, y) > chance + 0.2
        assert found_by_a_probe(applied(way, fitted.erasure_, X), y) < chance + 0.025


@pytest.mark.parametrize("offset", [0.0, 1e3])
@pytest.mark.parametrize("classes", [2, 4], ids=["rank 1", "rank 3"])
@pytest.mark.parametrize("eraser", [ex.LEACE(), ex.RLACE(), ex.SAL()], ids=repr)
def test_a_wide_column_does_not_bring_the_concept_back(eraser, classes, offset):
    no_more_than_chance("array", eraser, seeds=5, classes=classes, offset=offset)


def test_nor_does_it_on_any_other_way(way):
    no_more_than_chance(way, ex.RLACE(), seeds=2)


@pytest.mark.parametrize("eraser", [ex.OracleLEACE, ex.QuadraticLEACE], ids=lambda c: c.__name__)
@pytest.mark.parametrize("home", ["array", "tensor"])
def test_nor_does_it_where_the_concept_is_told(eraser, home):
    for seed in range(3):
        X, y = rows_with_a_wide_column(seed, offset=1e3)
        e = eraser().fit(X, y).conditional_erasure_
        chance = np.bincount(y).max() / len(y)
        assert found_by_a_probe(X, y) > chance + 0.2
        clean = e.transform(X if home == "array" else torch.from_numpy(X), concept=y)
        exact = e.transform(X.astype(np.float64), concept=y).astype(np.float32)
        assert differing(np.asarray(clean), exact) < 1e-4
        assert found_by_a_probe(np.asarray(clean), y) < chance + 0.025


# -- what any combination of columns finds --------------------------------------------------------


def explained(X, y):
    """Share of the variance of y that some linear combination of the columns explains.

    In units of each column's spread, and down to directions in which nothing but rounding is left.
    """
    C, t = X.astype(np.float64), y - y.mean()
    C = (C - C.mean(axis=0)) / C.std(axis=0)
    values, V = np.linalg.eigh(C.T @ C)
    kept = values > 1e-17 * values[-1]
    return float((((V.T @ (C.T @ t)) ** 2)[kept] / values[kept]).sum() / (t @ t))


def test_no_combination_of_columns_finds_it_even_where_all_are_equally_wide():
    """In the direction that is erased nothing is left but errors, and these must tell nothing."""
    singly, plain = [], []
    for seed in range(6):
        X, y = rows_with_a_wide_column(seed, wide=1.0, n=20_000, d=32)
        e = ex.RLACE(1).fit(X, y).erasure_
        singly.append(explained(e(X), y))
        left, right, center = (a.astype(np.float32) for a in (e.left, e.right, e.center))
        plain.append(explained(X - ((X - center) @ right.T) @ left.T, y))
        assert explained(X, y) > 0.5
    assert max(singly) < 1e-3
    assert max(plain) > 1e-2  # with products of float32
