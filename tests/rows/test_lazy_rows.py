"""Rows that are made when they are asked for, and an audit that never holds all of them."""

import tracemalloc

import numpy as np
import pytest

import expunge as ex
from expunge.audit import Sizes
from expunge.audit.given import gather
from expunge.inputs import check_concept, check_rows
from expunge.moments import Moments
from expunge.rows import lazy_rows
from expunge.rows.equal_rows import hashed, numbered, row_hashes
from expunge.rows.lazy_rows import ChangedRows, JoinedRows, SelectedRows, extent


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(lazy_rows, "SPAN", 7)


def whole(rows):
    return rows.take(np.arange(rows.n_samples)).array()


def test_lazy_rows_are_those_of_numpy(rng, small_blocks):
    X, Y = rng.normal(size=(17, 3)), rng.normal(size=(5, 3)).astype(np.float32)
    index = np.array([4, 4, 0, 16])
    cases = {
        "changed": (ChangedRows(check_rows(X), lambda A, at: A + at[:, None]), None),
        "selected": (SelectedRows(check_rows(X), index), X[index]),
        "joined": (JoinedRows(check_rows(X), check_rows(Y)), np.vstack([X, Y])),
    }
    for name, (rows, wanted) in cases.items():
        wanted = X + np.arange(17)[:, None] if wanted is None else wanted
        assert (rows.n_samples, rows.n_features) == wanted.shape, name
        assert rows.dtype == wanted.dtype, name
        np.testing.assert_array_equal(whole(rows), wanted)
        np.testing.assert_array_equal(np.vstack([B for _, B in rows.arrays()]), wanted)
        np.testing.assert_array_equal(rows.take(np.array([2, 1])).X, wanted[[2, 1]])
        low, high, mean = extent(rows)
        np.testing.assert_array_equal(low, wanted.min(axis=0))
        np.testing.assert_array_equal(high, wanted.max(axis=0))
        np.testing.assert_allclose(mean, wanted.mean(axis=0), rtol=1e-12, atol=1e-15)


def test_moments_by_blocks_are_those_of_all_rows(rng, small_blocks):
    X, y = rng.normal(size=(101, 4)) * 3 + 5, rng.integers(0, 3, 101)
    concept, index = check_concept(y, 101), np.arange(101)
    found, wanted = SelectedRows(check_rows(X), index).moments(concept), Moments.of(X, concept)
    for name in ("mean_x", "mean_z", "xx", "xz", "zz"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=1e-10)


def test_erased_rows_are_made_when_asked_for(rng):
    """Those of the library's maps; another object is given all rows at once, and only once."""
    X, y = rng.normal(size=(60, 4)), np.arange(60) % 2
    extra = {"task": None, "names": None, "concept_type": "auto"}
    for eraser in (ex.LEACE(), ex.OracleLEACE()):
        given = gather(eraser.fit(X, y), X, y, X[:9], y[:9], **extra)
        assert isinstance(given.train.after, ChangedRows)
        known = {"concept": y} if isinstance(eraser, ex.OracleLEACE) else {}
        np.testing.assert_allclose(whole(given.train.after), eraser.transform(X, **known))

    calls = []

    class Standardised:
        def transform(self, X):
            calls.append(len(X))
            return (X - X.mean(axis=0)) / X.std(axis=0)

    given = gather(Standardised(), X, y, None, None, **extra)
    assert calls == [60]
    np.testing.assert_allclose(whole(given.train.after).std(axis=0), 1)


def test_hashes_tell_rows_apart_as_their_numbers_do(rng, small_blocks):
    for X in (
        rng.integers(0, 3, size=(400, 3)).astype(float),
        rng.integers(0, 2, size=(300, 12)) * 0.5,
        np.repeat(rng.normal(size=(50, 2)), 3, axis=0),
        np.eye(70) * 1e-30,
    ):
        _, wanted = np.unique(X.astype(np.float32), axis=0, return_inverse=True)
        same = wanted.reshape(-1)[:, None] == wanted.reshape(-1)
        hashes = row_hashes(check_rows(X))
        np.testing.assert_array_equal(hashes[:, None] == hashes, same)
        np.testing.assert_array_equal(hashes, hashed(X.astype(np.float32)))
        assert numbered(check_rows(X)).max() + 1 == len(np.unique(wanted))
    assert hashed(np.array([[0.0, 1.0]])) != hashed(np.array([[1.0, 0.0]]))


def peak_of_an_audit(n):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 64)).astype(np.float32)
    X[:, 0] += y
    half = n // 2
    erasure = ex.LEACE().fit(X[:half], y[:half]).erasure_
    sizes = Sizes(linear_train=2000, linear_before=2000, linear_test=2000)
    tracemalloc.start()
    start = tracemalloc.get_traced_memory()[0]
    found = ex.audit(
        erasure, X[:half], y[:half], X[half:], y[half:], probes=["linear discriminant"], sizes=sizes
    )
    peak = tracemalloc.get_traced_memory()[1] - start
    tracemalloc.stop()
    assert found.fresh_rows.after["linear"].n_test_all == half
    assert f"2,000 of {half:,}" in str(found)
    return peak


def test_memory_beside_the_rows_does_not_grow_with_them():
    """Beyond the samples, a few numbers per row."""
    peak_of_an_audit(5_000)  # what is loaded once
    fewer, more = peak_of_an_audit(20_000), peak_of_an_audit(40_000)
    assert more - fewer < 20_000 * 64 * 4 * 2 / 3  # less than the rows that were added
