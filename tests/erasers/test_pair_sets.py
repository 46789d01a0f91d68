"""PairPCA's sums within sets: blocks, passes, weights, rounding, against plain loops."""

import numpy as np
import pytest

import expunge as ex
from expunge.erasers import pair_pca
from expunge.fingerprint import Fingerprint
from expunge.rows.base import Rows
from expunge.rows.dense import DenseRows


class Blocks(Rows):
    """Rows that come a few at a time; counts the passes."""

    def __init__(self, X, size):
        self._X, self.size, self.passes = X, size, 0

    n_samples = property(lambda self: len(self._X))
    n_features = property(lambda self: self._X.shape[1])
    dtype = property(lambda self: self._X.dtype)

    def blocks(self):
        self.passes += 1
        for lo in range(0, len(self._X), self.size):
            yield lo, np.array(self._X[lo : lo + self.size])

    def take(self, index):
        return DenseRows(np.array(self._X[index]))


def sets_of(n=60, d=4, count=17, seed=0, offset=3.0):
    rng = np.random.default_rng(seed)
    ids = np.concatenate([np.arange(count), rng.integers(0, count, n - count)])
    ids = rng.permutation(ids)
    X = offset + rng.normal(size=(count, d))[ids] * 5 + rng.normal(size=(n, d)) * [4, 2, 1, 0.5]
    w = np.where(rng.random(n) < 0.2, 0.0, rng.random(n) / 8)
    w[ids == 3] = 0.0  # a set of no weight
    return X, ids, w


def slow_within(X, ids, w):
    """Σ w (x - mean of its set)(x - mean of its set)ᵀ, set by set."""
    xx = np.zeros((X.shape[1],) * 2)
    for i in np.unique(ids):
        own = ids == i
        if w[own].sum() > 0:
            C = X[own] - np.average(X[own], axis=0, weights=w[own])
            xx += C.T @ (w[own][:, None] * C)
    return xx


@pytest.mark.parametrize("size", [1, 7, 60])
@pytest.mark.parametrize("at_once", [1, 5, 1 << 24])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_within_sets_are_those_of_a_plain_loop(monkeypatch, weighted, at_once, size):
    """However many rows come at a time, and however many sets are held at once."""
    monkeypatch.setattr(pair_pca, "AT_ONCE", 4 * at_once + 2)
    X, ids, w = sets_of()
    rows = Blocks(X, size)
    weights = w if weighted else None
    eraser = ex.PairPCA(2)
    data = eraser._check(rows, ids, None, weights, whole=True)
    before = rows.passes
    seen, data = eraser._statistics(data, second=True)
    w = w if weighted else np.ones(len(X))
    there = len(np.unique(ids[w > 0]))
    assert rows.passes - before == 2 * -(-there // at_once)
    m, expected = seen.moments, slow_within(X, ids, w)
    np.testing.assert_allclose(m.xx, expected, atol=1e-12 * expected.max())
    np.testing.assert_array_equal(m.squares, np.diag(m.xx))
    assert (m.n, m.weight, m.labels) == (60, pytest.approx(w.sum()), ())
    assert (m.mean_z.shape, m.xz.shape, m.zz.shape) == ((0,), (4, 0), (0, 0))
    np.testing.assert_array_equal(m.mean_x, np.zeros(4))
    assert seen.rounding == pytest.approx(
        float(w[w > 0] @ (np.finfo(float).eps * X[w > 0]) ** 2 @ np.ones(4)) / 12, rel=1e-9, abs=0
    )
    assert seen.seen.to_meta() == Fingerprint.of(X).to_meta()
    passes = rows.passes
    found = eraser._solve(seen, data)
    values, V = np.linalg.eigh(expected / w.sum())
    np.testing.assert_allclose(found.left @ found.right, V[:, 2:] @ V[:, 2:].T, atol=1e-9)
    assert found.history[0].value == pytest.approx(values[1])
    assert found.history[0].step == 1
    np.testing.assert_allclose(found.spectrum, values[::-1])
    fitted = ex.PairPCA(2).fit(Blocks(X, size), ids, sample_weight=weights)
    np.testing.assert_allclose(fitted.erasure_.left @ fitted.erasure_.right, V[:, 2:] @ V[:, 2:].T)
    kept = fitted.erasure_.meta["kept"]
    assert kept is not None
    near = ex.PairPCA(2).fit(X, ids, sample_weight=weights).erasure_.meta["kept"]
    assert kept == pytest.approx(near)
    assert rows.passes == passes


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_as_many_directions_as_rows_differ_in(scale):
    rng = np.random.default_rng(0)
    for p in (1, 3):
        A, B = scale * rng.normal(size=(2, p, 6))
        for rank, expected in ((1, 1), (5, p)):
            eraser = ex.PairPCA.from_pairs(A, B, rank)
            assert eraser.rank_ == min(rank, expected)
        shares = eraser.explained_variance_ratio_
        assert shares.sum() == pytest.approx(1)
        s = np.linalg.svd(A - B, compute_uv=False) ** 2
        np.testing.assert_allclose(shares[:p], s / s.sum(), rtol=1e-6)
        np.testing.assert_allclose(shares[p:], 0, atol=1e-12)


def test_defaults_of_pairs():
    A, B = np.random.default_rng(0).normal(size=(2, 5, 4))
    found = ex.PairPCA.from_pairs(A, B)
    assert found.get_params() == {"rank": 1, "strength": 1.0}
    assert ex.PairPCA.from_pairs(A, B, "auto", strength=0.5).get_params()["strength"] == 0.5
    assert ex.PairPCA.from_pairs(A, B, "auto").rank_ == 1
    for a, b in ((A, B[:4]), (A[0], B[0]), (A[None], B[None])):
        with pytest.raises(ex.InputError, match="A and B"):
            ex.PairPCA.from_pairs(a, b)


def test_a_set_may_come_alone_in_a_stream_but_not_in_a_fit():
    X, ids, _ = sets_of()
    stream = ex.PairPCA(2)
    for i in np.unique(ids):
        stream.partial_fit(X[ids == i], ids[ids == i])
    whole = ex.PairPCA(2).fit(X, ids)
    np.testing.assert_allclose(stream.erasure_.matrix(), whole.erasure_.matrix(), atol=1e-9)
    assert stream._seen.rounding == pytest.approx(whole._seen.rounding)
    assert ex.PairPCA().fit(X[:2], ["a", "a"]).rank_ == 1
    with pytest.raises(ex.InputError):
        ex.PairPCA().fit(X[:3], ["a", "a", "a"])


def test_of_one_column_nothing_is_left_and_constants_are_not_touched():
    eraser = ex.PairPCA().fit(np.array([[0.0], [1.0], [5.0], [7.0]]), [0, 0, 1, 1])
    assert eraser.history_[0].value == 0.0
    X, ids, _ = sets_of()
    X = np.c_[X[:, :2], np.full(60, 1 / 3), X[:, 2:]]
    found = ex.PairPCA(4).fit(X, ids).erasure_
    np.testing.assert_array_equal(found.left[2], 0.0)
    assert np.abs(found.left).max() > 0.5
    small = ex.PairPCA(2).fit(X * 1e-4, ids).erasure_
    np.testing.assert_allclose(small.matrix(), ex.PairPCA(2).fit(X, ids).erasure_.matrix())


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_none_are_refused(bad):
    X, ids, _ = sets_of()
    X[7, 2] = bad
    with pytest.raises(ex.InputError, match=r"NaN|infinity"):
        ex.PairPCA().fit(X, ids)
    with pytest.raises(ex.InputError, match=r"NaN|infinity"):
        ex.PairPCA().partial_fit(X, ids)


def test_rows_that_differ_by_nothing_are_no_pairs():
    X = np.repeat(np.random.default_rng(0).normal(size=(5, 3)), 2, axis=0)
    with pytest.raises(ex.InputError, match="No two different rows"):
        ex.PairPCA().fit(X, np.arange(10) // 2)
