"""The sketch of a set of rows: independent of order and chunks, exact where it speaks."""

import json
from dataclasses import replace
from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expunge import fingerprint, parallel
from expunge.fingerprint import SIZE, Fingerprint
from expunge.rows.equal_rows import hashed


def rows(n, d=12, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


def same(a, b):
    return a.to_meta() == b.to_meta()


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(1, 5999), max_size=6), st.integers(0, 2**32 - 1))
def test_order_and_chunks_do_not_matter(cuts, seed):
    X = rows(6000)
    shuffled = np.random.default_rng(seed).permutation(X)
    parts = [Fingerprint.of(part) for part in np.split(shuffled, sorted(set(cuts)))]
    assert same(reduce(Fingerprint.merge, parts), Fingerprint.of(X))
    assert same(reduce(Fingerprint.merge, parts[::-1]), Fingerprint.of(X))


def test_spans_and_threads_do_not_matter(monkeypatch):
    X = rows(2 * parallel.SPAN + 100, d=9)
    alone = Fingerprint.of(X)
    monkeypatch.setattr(parallel, "WORTH_THREADS", 0)
    monkeypatch.setattr(parallel, "n_threads", lambda: 3)
    assert same(alone, Fingerprint.of(X))


@pytest.mark.parametrize("n", [1, 2, SIZE])
def test_complete_up_to_its_size(n):
    X = rows(n)
    seen = Fingerprint.of(X)
    assert seen.complete
    assert seen.known(X).all()
    assert not seen.known(rows(3000, seed=1)).any()


def test_a_large_set_is_sampled():
    X = rows(20_000)
    seen = Fingerprint.of(X)
    assert not seen.complete
    assert seen.n == 20_000
    assert seen.known(X).sum() == SIZE
    assert not seen.known(rows(50_000, seed=1)).any()
    half = seen.known(X[::2]).sum()  # a fair sample: about half of it lies in half the rows
    assert 0.4 * SIZE < half < 0.6 * SIZE


@pytest.mark.parametrize(
    "copy",
    [
        lambda X: X.astype(np.float64),
        np.asfortranarray,
        lambda X: X.astype(">f4"),
        lambda X: np.where(X == 0, -0.0, X),
        lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    ],
    ids=["float64", "Fortran", "big-endian", "negative zero", "strided"],
)
def test_copies_are_recognised(copy):
    X = rows(5000)
    X[:, 3] = 0
    assert same(Fingerprint.of(X), Fingerprint.of(copy(X)))
    np.testing.assert_array_equal(Fingerprint.of(X[:1000]).known(copy(X)), np.arange(5000) < 1000)


def test_a_row_differs_by_one_entry_or_by_the_order_of_its_entries():
    X = rows(500)
    seen = Fingerprint.of(X)
    for column in range(X.shape[1]):
        other = X.copy()
        other[:, column] += 1e-3
        assert not seen.known(other).any()
    assert not seen.known(X[:, ::-1]).any()
    assert not seen.known(X[:, :-1]).any()


def test_integers_and_indicators():
    X = np.random.default_rng(0).integers(0, 2, (3000, 60))
    np.testing.assert_array_equal(Fingerprint.of(X[:1500]).known(X), np.arange(3000) < 1500)
    assert Fingerprint.of(X[:1500] > 0).known(X[:1500] > 0).all()
    assert Fingerprint.of(np.eye(40)).known(np.eye(40)).all()


def test_values_beyond_float32_do_no_harm():
    X = np.array([[1e300, 1.0], [-1e300, 2.0], [1e-300, 3.0]])
    np.testing.assert_array_equal(Fingerprint.of(X[:2]).known(X), [True, True, False])


def test_constant_columns_do_not_break_it():
    X = rows(9000, d=100)
    X[:, np.linspace(0, 99, 8).astype(int)] = 5.0  # every column that is peeked at
    seen = Fingerprint.of(X)
    assert seen.known(X).sum() == SIZE
    assert same(seen, Fingerprint.of(X[:100]).merge(Fingerprint.of(X[100:])))
    other = rows(9000, d=100, seed=1)
    other[:, np.linspace(0, 99, 8).astype(int)] = 5.0
    assert not seen.known(other).any()


def test_equal_rows_take_one_place():
    X = rows(1000)
    repeated = np.repeat(X, 50, axis=0)
    seen = Fingerprint.of(repeated)
    assert seen.complete
    assert seen.known(X).all()
    np.testing.assert_array_equal(seen.hashes, Fingerprint.of(X).hashes)
    parts = [Fingerprint.of(p) for p in np.split(repeated, [7, 30_000])]
    assert same(reduce(Fingerprint.merge, parts), seen)


@pytest.mark.parametrize("seed", range(8))
def test_padding_rows_do_not_crowd_out_the_others(seed):
    X = rows(3 * SIZE, seed=seed)
    padded = np.vstack([X, np.full((10_000, X.shape[1]), seed)])
    seen = Fingerprint.of(padded)
    assert seen.known(X).sum() >= SIZE - 1
    assert same(seen, Fingerprint.of(padded[:9000]).merge(Fingerprint.of(padded[9000:])))


@pytest.mark.parametrize("n", [3, 5000])
def test_meta_round_trip(n):
    seen = Fingerprint.of(rows(n))
    back = Fingerprint.from_meta(json.loads(json.dumps(seen.to_meta())))
    assert same(seen, back)
    assert back.n == n
    np.testing.assert_array_equal(back.known(rows(n)), seen.known(rows(n)))
    assert same(
        back.merge(Fingerprint.of(rows(9, seed=1))), seen.merge(Fingerprint.of(rows(9, seed=1)))
    )


def test_the_digest_tells_sets_apart():
    digests = {Fingerprint.of(rows(50, seed=seed)).to_meta()["digest"] for seed in range(20)}
    assert len(digests) == 20


def test_it_foretells_how_many_new_rows_of_a_table_repeat_old_ones():
    """A table of small integers: the share of repeats is known from the rows seen alone."""
    rng = np.random.default_rng(0)
    table = rng.poisson(1.0, size=(12_000, 6)).astype(float)
    seen = Fingerprint.of(table[:6_000])
    found = seen.known(table[6_000:])[seen.decides(table[6_000:])].mean()
    assert 0.3 < found < 0.98
    assert seen.repeated() == pytest.approx(found, abs=0.05)
    parts = [Fingerprint.of(part) for part in np.split(table[:6_000], [100, 2_000, 2_001])]
    assert same(reduce(Fingerprint.merge, parts), seen)
    stored = Fingerprint.from_meta(json.loads(json.dumps(seen.to_meta())))
    np.testing.assert_array_equal(stored.counts, seen.counts)
    assert stored.repeated() == seen.repeated()
    assert Fingerprint.of(rows(5000)).repeated() == 0


def test_sketches_of_old_versions_are_read_and_say_less():
    table = np.random.default_rng(0).integers(0, 3, size=(900, 3)).astype(float)
    meta = Fingerprint.of(table).to_meta()
    del meta["counts"]
    old = Fingerprint.from_meta(meta)
    assert old.counts is None
    assert old.known(table).all()
    assert 0.9 < old.repeated() <= Fingerprint.of(table).repeated()
    assert old.merge(Fingerprint.of(table)).counts is None


@pytest.mark.parametrize("repeats", [1, 3, 4000])
def test_extended_is_merged(repeats):
    """Also where rows repeat, in full sketches and in those that are not."""
    X = np.random.default_rng(1).normal(size=(6000, 5)).repeat(repeats, axis=0)[:18_000]
    for cut in (100, 5000):
        seen = Fingerprint.of(X[:cut])
        for at in range(cut, len(X), 5000):
            expected = seen.merge(Fingerprint.of(X[at : at + 5000]))
            seen = seen.extended(X[at : at + 5000])
            assert seen.to_meta() == expected.to_meta()
    assert Fingerprint.of(X).to_meta() == seen.to_meta()


def test_rows_of_a_table_that_a_sketch_decides_of_are_a_fair_sample():
    """Flags amid a table: keys of these alone would pick the rows of one kind."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 20_000)
    flags = (rng.random((20_000, 4)) < np.where(kind, 0.9, 0.1)[:, None]).astype(float)
    X = np.column_stack([rng.normal(size=(20_000, 3)), flags, rng.normal(size=(20_000, 3))])
    seen = Fingerprint.of(X[:10_000])
    decided = seen.decides(X[10_000:])
    assert 1000 < decided.sum() < 4000
    assert abs(kind[10_000:][decided].mean() - kind[10_000:].mean()) < 0.05
    assert seen.known(X[:10_000]).sum() == 2048
    assert not seen.known(X[10_000:]).any()


def test_a_sketch_of_an_old_version_recognises_rows_by_its_own_keys():
    X = np.random.default_rng(1).normal(size=(5000, 7))
    keys = fingerprint._keys(X, old=True)
    best = np.argsort(keys)[:2048]
    meta = replace(Fingerprint._of_some(X, keys, best)._trimmed(), old_keys=True).to_meta()
    assert "keys" not in meta
    again = Fingerprint.from_meta(meta)
    assert again.known(X).sum() == again.decides(X).sum() == 2048


@pytest.mark.parametrize("unit", [1e-300, 1e-90, 1e-45, 1e39, 1e90, 1e300])
def test_rows_that_float32_cannot_hold_are_told_apart(unit):
    rng = np.random.default_rng(0)
    X = unit * rng.normal(size=(200, 3))
    X[::3, 0] = 0.0
    seen = Fingerprint.of(X[:100])
    assert seen.known(X[:100]).all()
    assert not seen.known(X[100:]).any()
    assert len(np.unique(hashed(X))) == 200
    mixed = np.vstack([X[:50], rng.normal(size=(50, 3)), np.zeros((1, 3))])
    assert Fingerprint.of(mixed).known(X[:50]).all()
    assert len(np.unique(hashed(mixed))) == 101


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_the_sign_of_zero_tells_no_rows_apart(dtype):
    zeros = np.array([[0.0, 0.0], [-0.0, 0.0], [0.0, -0.0], [-0.0, -0.0]], dtype=dtype)
    assert len(np.unique(hashed(zeros))) == 1
    assert Fingerprint.of(zeros[:1]).known(zeros).all()
