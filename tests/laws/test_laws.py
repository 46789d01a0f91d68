"""The laws of erasure, over every registered eraser. Each first shows the concept was there."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import expunge as ex
from conftest import KINDS, plant

CONFIGURATIONS = [
    pytest.param(name, kind, id=f"{name}-{kind}") for name in ex.ERASERS for kind in KINDS
]


def make(name, kind, **parameters):
    if name == "RLACE" and kind in ("number", "vector"):
        parameters = {"loss": "squared", **parameters}
    return ex.ERASERS[name](**parameters)


def cross_covariance(X, Z, weights=None):
    w = np.ones(len(X)) if weights is None else weights
    X, Z = X - np.average(X, axis=0, weights=w), Z - np.average(Z, axis=0, weights=w)
    return X.T @ (w[:, None] * Z) / w.sum()


def explained(X, Z):
    """Share of the concept's variance that least squares finds in X: an independent solver."""
    return LinearRegression().fit(X, Z).score(X, Z)


def class_gap(X, y):
    means = np.array([X[y == c].mean(axis=0) for c in np.unique(y)])
    return np.abs(means - means[0]).max()


# -- claims, each checked only where an eraser makes it -------------------------------------------


def equal_means(eraser, data):
    if data.y.ndim == 1 and data.y.dtype.kind != "f":
        assert class_gap(data.X, data.y) > 0.5
        assert class_gap(eraser.transform(data.X), data.y) < 1e-10


def zero_cross_covariance(eraser, data):
    assert np.abs(cross_covariance(data.X, data.Z)).max() > 0.1
    assert np.abs(cross_covariance(eraser.transform(data.X), data.Z)).max() < 1e-12
    assert explained(data.X, data.Z) > 0.2
    assert explained(eraser.transform(data.X), data.Z) < 1e-10


def mean_preserved(eraser, data):
    np.testing.assert_allclose(eraser.transform(data.X).mean(0), data.X.mean(0), atol=1e-12)


def orthogonal(eraser, data):
    P = eraser.erasure_.matrix()
    np.testing.assert_allclose(P, P.T, atol=1e-12)
    assert eraser.erasure_.is_orthogonal


CLAIMS = {f.__name__: f for f in (equal_means, zero_cross_covariance, mean_preserved, orthogonal)}


@pytest.mark.parametrize(("name", "kind"), CONFIGURATIONS)
def test_keeps_its_promises(name, kind):
    data = plant(kind)
    eraser = make(name, kind).fit(data.X, data.y)
    assert eraser.guarantees
    for claim in eraser.guarantees:
        CLAIMS[claim](eraser, data)


@pytest.mark.parametrize(("name", "kind"), CONFIGURATIONS)
def test_idempotent_and_of_the_rank_it_says(name, kind):
    data = plant(kind)
    own = make(name, kind).fit(data.X, data.y)
    for eraser in (own, make(name, kind, rank=5).fit(data.X, data.y)):
        P = eraser.erasure_.matrix()
        np.testing.assert_allclose(P @ P, P, atol=1e-9)
        assert np.linalg.matrix_rank(np.eye(8) - P, tol=1e-8) == eraser.rank_
        once = eraser.transform(data.X)
        np.testing.assert_allclose(eraser.transform(once), once, atol=1e-9)
    assert eraser.rank_ == 5
    assert explained(data.X, data.Z) > 0.2
    assert explained(eraser.transform(data.X), data.Z) < 1e-10


@pytest.mark.parametrize("scale", [1e-8, 1e8])
@pytest.mark.parametrize(("name", "kind"), CONFIGURATIONS)
def test_scaling_changes_nothing_but_the_scale(name, kind, scale):
    data = plant(kind)
    plain = make(name, kind).fit(data.X, data.y)
    scaled = make(name, kind).fit(data.X * scale, data.y)
    np.testing.assert_allclose(
        scaled.erasure_.matrix(), plain.erasure_.matrix(), atol=1e-9 if name == "RLACE" else 1e-7
    )
    assert scaled.certificate_.erased == plain.certificate_.erased is True
    assert scaled.certificate_.bound == pytest.approx(plain.certificate_.bound)


@pytest.mark.parametrize(("name", "kind"), CONFIGURATIONS)
def test_rotating_the_rows_rotates_the_erasure(name, kind):
    data = plant(kind)
    R = np.linalg.qr(np.random.default_rng(1).normal(size=(8, 8)))[0]
    plain = make(name, kind).fit(data.X, data.y).transform(data.X)
    turned = make(name, kind).fit(data.X @ R, data.y).transform(data.X @ R)
    np.testing.assert_allclose(turned, plain @ R, atol=1e-8)


@pytest.mark.parametrize(("name", "kind"), CONFIGURATIONS)
def test_the_order_of_rows_does_not_matter(name, kind):
    data = plant(kind)
    order = np.random.default_rng(2).permutation(len(data.X))
    plain = make(name, kind).fit(data.X, data.y).erasure_
    mixed = make(name, kind).fit(data.X[order], data.y[order]).erasure_
    np.testing.assert_allclose(mixed.matrix(), plain.matrix(), atol=1e-10)
    assert mixed.meta["fingerprint"]["digest"] == plain.meta["fingerprint"]["digest"]


@pytest.mark.parametrize(("name", "kind"), CONFIGURATIONS)
def test_chunks_equal_the_whole(name, kind):
    data = plant(kind)
    whole = make(name, kind).fit(data.X, data.y)
    stream = make(name, kind)
    for part in np.array_split(np.arange(len(data.X)), [7, 8, 300, 599]):
        stream.partial_fit(data.X[part], data.y[part])
    np.testing.assert_allclose(stream.erasure_.matrix(), whole.erasure_.matrix(), atol=1e-10)
    np.testing.assert_allclose(stream.erasure_.center, whole.erasure_.center, atol=1e-10)
    assert stream.certificate_.erased
    assert stream.erasure_.meta["n"] == 600


@pytest.mark.parametrize(("name", "kind"), CONFIGURATIONS)
def test_refitting_equals_a_fresh_fit_and_gives_equal_bytes(name, kind, tmp_path):
    data, other = plant(kind), plant("binary", d=5, seed=9)
    parameters = {"loss": "squared"} if name == "RLACE" else {}
    eraser = ex.ERASERS[name](**parameters)
    eraser.fit(other.X, other.y).partial_fit(other.X, other.y)
    eraser.fit(data.X, data.y).erasure_.save(tmp_path / "again")
    ex.ERASERS[name](**parameters).fit(data.X, data.y).erasure_.save(tmp_path / "fresh")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "fresh").read_bytes()


@pytest.mark.parametrize(("name", "kind"), CONFIGURATIONS)
def test_weights_equal_repetition(name, kind):
    data = plant(kind)
    w = np.random.default_rng(4).integers(0, 4, len(data.X))
    weighted = make(name, kind).fit(data.X, data.y, sample_weight=w)
    repeated = np.repeat(np.arange(len(w)), w)
    plain = make(name, kind).fit(data.X[repeated], data.y[repeated])
    np.testing.assert_allclose(weighted.erasure_.matrix(), plain.erasure_.matrix(), atol=1e-10)
    assert np.abs(cross_covariance(weighted.transform(data.X), data.Z, w)).max() < 1e-12


# -- data that break careless numerics -------------------------------------------------------------


@pytest.mark.parametrize("name", ex.ERASERS)
def test_a_rare_class_is_fully_erased(name):
    """0.5 % of the rows, 1.4 standard deviations away: a covariance of 0.007."""
    rng = np.random.default_rng(0)
    y = np.zeros(20_000, dtype=int)
    y[:100] = 1
    X = rng.normal(size=(20_000, 10))
    X[:100, 4] += 1.4
    assert class_gap(X, y) > 1.2
    eraser = ex.ERASERS[name]().fit(X, y)
    assert class_gap(eraser.transform(X), y) < 1e-10
    assert eraser.certificate_.erased


@pytest.mark.parametrize("name", ex.ERASERS)
def test_integer_labels_are_classes_not_numbers(name):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 2000)
    X = rng.normal(size=(2000, 10)) + rng.normal(size=(4, 10))[y]
    eraser = ex.ERASERS[name]().fit(X, y)
    assert eraser.rank_ == 3
    assert class_gap(X, y) > 1
    assert class_gap(eraser.transform(X), y) < 1e-10


@pytest.mark.parametrize("name", ex.ERASERS)
def test_half_precision_input(name):
    data = plant("binary", n=4000)
    X = data.X.astype(np.float16)
    eraser = ex.ERASERS[name]().fit(X, data.y)
    assert eraser.certificate_.erased
    assert eraser.transform(X).dtype == np.float16
    wide = X.astype(np.float64)
    assert class_gap(wide, data.y) > 0.5
    assert class_gap(eraser.transform(wide), data.y) < (1e-10 if name == "RLACE" else 1e-6)


@pytest.mark.parametrize("name", ex.ERASERS)
def test_a_large_common_offset_in_single_precision(name):
    data = plant("binary", n=20_000)
    X = (data.X + 1e6).astype(np.float32)
    wide = X.astype(np.float64)
    within = np.mean([wide[data.y == c].std(axis=0) for c in (0, 1)], axis=0)
    assert class_gap(wide / within, data.y) > 0.5
    eraser = ex.ERASERS[name]().fit(X, data.y)
    assert class_gap(eraser.transform(wide) / within, data.y) < 1e-5
    assert eraser.certificate_.erased


@pytest.mark.parametrize("name", ex.ERASERS)
@pytest.mark.parametrize("case", ["more columns than rows", "constant columns", "repeated rows"])
def test_degenerate_rows(name, case):
    rng = np.random.default_rng(0)
    n, d = (40, 60) if case == "more columns than rows" else (60, 10)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, d)) + np.outer(y, rng.normal(size=d))
    if case == "constant columns":
        X[:, [2, 5]] = 7.0
    if case == "repeated rows":
        X, y = np.repeat(X[:6], 10, axis=0), np.repeat(y[:6], 10)
    assert class_gap(X, y) > 0.5
    eraser = ex.ERASERS[name]().fit(X, y)
    assert class_gap(eraser.transform(X), y) < 1e-9
    assert eraser.certificate_.erased
