"""What an erasure leaves: variances of the columns, counted on the erased rows themselves."""

from dataclasses import replace

import numpy as np
import pytest

import expunge as ex
from expunge.game import kept
from expunge.game.kept import kept_in_moments, kept_in_rows, least_spreads, rows_to_look_at
from expunge.inputs import check_concept, check_rows

UNITS = np.array([1.0, 10.0, 0.01, 1.0, 1.0])


def setting(n=300, offset=3.0, dtype=float):
    """Five columns of other units, the last of them constant."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(n, 5)) @ (np.eye(5) + 0.3) + offset) * UNITS
    X[:, 4] = 5.0
    y = rng.integers(0, 3, n)
    return X.astype(dtype), y


def some_erasure(share=0.7):
    """It takes most of a direction of the first two columns, and almost all of the third."""
    left, right = np.zeros((5, 2)), np.zeros((2, 5))
    left[:2, 0], right[0, :2] = [1.0, 5.0], [0.5, 0.1 * share]
    left[2, 1], right[1, 2] = 0.995, 1.0
    return ex.Erasure(left, right)


def variances(X, w=None):
    w = np.ones(len(X)) if w is None else w
    return np.average((X - np.average(X, axis=0, weights=w)) ** 2, axis=0, weights=w)


def check(found, before, after, mean, *, atol=0.0):
    """All that is said, of variances before and after."""
    varies = before > 1e-20
    share = np.divide(after, before, out=np.ones_like(before), where=varies)
    spread = np.sqrt(before)
    least = np.where(varies, np.minimum(1e-6 * spread + 1e-9 * np.abs(mean), spread), 0)
    expected = np.where(varies, np.clip(np.sqrt(after), least, spread), 1.0)
    np.testing.assert_allclose(found.spreads, expected, rtol=1e-6, atol=atol)
    np.testing.assert_allclose(found.least, least, rtol=1e-9)
    assert found.variance == pytest.approx(after.sum() / before.sum(), rel=1e-9)
    assert found.average == pytest.approx(share[varies].mean(), rel=1e-9)
    assert found.columns == np.sum(share >= 0.01)
    assert found.n_features == len(before)
    assert found.to_meta() == {
        "variance": found.variance,
        "columns": found.columns,
        "of": len(before),
    }


@pytest.mark.parametrize("unit", [1.0, 1e-3])
@pytest.mark.parametrize("weighted", [False, True])
def test_of_rows_and_of_moments_it_is_what_the_erased_rows_show(weighted, unit):
    X, y = setting()
    X *= unit
    w = np.random.default_rng(1).integers(0, 3, len(X)) * 1.0 if weighted else None
    rows, concept, erasure = check_rows(X), check_concept(y, len(X)), some_erasure()
    moments = rows.moments(concept, w)
    before, after = variances(X, w), variances(erasure(X), w)
    mean = np.average(X, axis=0, weights=w)
    assert after[1] < 0.9 * before[1]
    for found in (
        kept_in_rows(rows, erasure, moments, concept, w),
        kept_in_moments(moments, erasure),
    ):
        check(found, before, after, mean)
        assert found.columns == 4  # the third keeps a hundredth of a hundredth


def test_a_told_erasure_is_told():
    X, y = setting()
    rows, concept = check_rows(X), check_concept(y, len(X))
    told = ex.OracleLEACE().fit(X, y)
    found = kept_in_rows(rows, told.conditional_erasure_, rows.moments(concept), concept, None)
    check(found, variances(X), variances(told.transform(X, concept=y)), X.mean(axis=0))
    assert found.variance < 1


def test_many_rows_are_sampled_and_scaled_to_all(monkeypatch):
    """The share is that of the sample; the spread is that share of the spread of all rows."""
    monkeypatch.setattr(kept, "FEW", 0)
    X, y = setting(n=5000)
    rows, concept, erasure = check_rows(X), check_concept(y, len(X)), some_erasure()
    for w in (None, np.random.default_rng(0).uniform(0.1, 9, 5000)):
        moments = rows.moments(concept, w, second=False)
        at = rows_to_look_at(5000, w)
        before, after = variances(X[at]), variances(erasure(X)[at])
        found = kept_in_rows(rows, erasure, moments, concept, w)
        share = after[:4] / before[:4]
        spreads = np.sqrt(np.minimum(share, 1) * variances(X, w)[:4])
        np.testing.assert_allclose(found.spreads[:4], spreads, rtol=1e-9)
        assert found.variance == pytest.approx(after.sum() / before.sum(), rel=1e-9)
        assert found.sampled
        truth = variances(erasure(X), w).sum() / variances(X, w).sum()
        assert found.variance == pytest.approx(truth, rel=0.05)
        for exact in (
            kept_in_rows(rows, erasure, rows.moments(concept, w), concept, w),
            kept._of_all(rows, erasure, moments, concept, w),
        ):
            assert not exact.sampled
            assert exact.variance == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_one_row_of_each_stretch_of_weight_is_looked_at(weighted):
    rng = np.random.default_rng(0)
    n = 3000
    w = rng.exponential(size=n) * (rng.random(n) < 0.7) if weighted else np.ones(n)
    w[-1] = 50.0  # a stretch or more of its own
    at = rows_to_look_at(n, w)
    assert at.shape == (1024,)
    assert at[-1] == n - 1
    assert np.all(w[at] > 0)
    ends = np.cumsum(w)
    width = ends[-1] / 1024
    stretch = np.arange(1024) * width
    assert np.all(ends[at] > stretch)  # ends within its stretch or after it
    assert np.all(ends[at] - w[at] <= stretch + width)
    if not weighted:
        np.testing.assert_array_equal(rows_to_look_at(n, None), rows_to_look_at(n, np.ones(n)))
        steps = rows_to_look_at(n, None) - np.arange(1024) * n / 1024
        assert -1 < steps.min() < 0.2
        assert 1.5 < steps.max() < n / 1024  # the places are spread over each stretch
        assert abs(steps.mean() - (n / 1024 - 1) / 2) < 0.1


def test_few_rows_are_all_looked_at():
    for n in (5, 1023, 1024):
        np.testing.assert_array_equal(rows_to_look_at(n, None), np.arange(n))
        w = np.arange(2.0 * n) % 2
        np.testing.assert_array_equal(rows_to_look_at(2 * n, w), np.arange(1, 2 * n, 2))
    assert len(np.unique(rows_to_look_at(1025, None))) < 1025
    assert len(rows_to_look_at(1025, np.ones(1025))) == 1024


def test_few_rows_that_count_are_weighted():
    """Among many of no weight; those that count are all seen, each by its weight."""
    X, y = setting(n=2000)
    w = np.where(np.arange(2000) < 40, np.arange(2000) + 1.0, 0)
    rows, concept, erasure = check_rows(X), check_concept(y, 2000), some_erasure()
    found = kept_in_rows(rows, erasure, rows.moments(concept, w), concept, w)
    before, after = variances(X[:40], w[:40]), variances(erasure(X[:40]), w[:40])
    check(found, before, after, np.average(X[:40], axis=0, weights=w[:40]))


# -- from moments ----------------------------------------------------------------------------------


def test_without_second_moments_only_what_mixes_nothing_is_known():
    X, y = setting()
    concept = check_concept(y, len(X))
    full = check_rows(X).moments(concept)
    part = check_rows(X).moments(concept, second=False)
    assert part.xx is None
    assert kept_in_moments(part, some_erasure()) is None
    same = kept_in_moments(part, ex.Erasure.identity(5))
    assert (same.variance, same.average, same.columns) == (1.0, 1.0, 5)
    np.testing.assert_allclose(same.spreads[:4], X.std(axis=0)[:4], rtol=1e-12)
    for strength in (1.0, 0.8):  # all that varies goes, or a share of it
        L = np.vstack([strength * np.eye(4), np.zeros((1, 4))])
        gone = ex.Erasure(L, np.eye(5)[:4])
        quick, exact = kept_in_moments(part, gone), kept_in_moments(full, gone)
        for found in (quick, exact):
            assert found.variance == pytest.approx((1 - strength) ** 2, abs=1e-12)
            assert found.columns == (5 if strength < 1 else 1)
        np.testing.assert_allclose(quick.spreads, exact.spreads, rtol=1e-6)
    mixing = np.vstack([np.eye(4) + 1e-9 * np.eye(4)[::-1], np.zeros((1, 4))])
    assert kept_in_moments(part, ex.Erasure(mixing, np.eye(5)[:4])) is None
    fewer = ex.Erasure(np.eye(5)[:, :3], np.eye(5)[:3])
    assert kept_in_moments(part, fewer) is None
    assert kept_in_moments(full, fewer).variance == pytest.approx(
        X[:, 3].var() / X.var(axis=0).sum(), rel=1e-9
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("left", [0.0, 1e-9, 1e-4, 3e-2, 0.3])
def test_what_sums_cannot_tell_from_rounding_is_not_called_left(left, dtype):
    """A variance is known to 32 times the precision of the spreads that went into it."""
    X, y = setting(offset=0.0, dtype=dtype)
    moments = check_rows(X).moments(check_concept(y, len(X)))
    erasure = ex.Erasure((1 - left) * np.eye(5)[:, :1], np.eye(5)[:1])
    found = kept_in_moments(moments, erasure)
    spread = X.astype(float).std(axis=0)
    after, noise = left**2, 32 * np.finfo(dtype).eps * (2 - left) ** 2
    sure = np.sqrt(max(after - noise, 0)) * spread[0]
    assert moments.eps == np.finfo(dtype).eps
    least = 1e-6 * spread[0] + 1e-9 * abs(X[:, 0].astype(float).mean())
    assert found.spreads[0] == pytest.approx(max(sure, least), rel=1e-4)
    others = 32 * np.finfo(dtype).eps  # of columns that are left alone
    np.testing.assert_allclose(found.spreads[1:4], spread[1:4] * np.sqrt(1 - others), rtol=1e-7)
    total = (spread**2).sum()
    gone = spread[0] ** 2 * (1 - (after if after > noise else 0.0))
    assert 1 - found.variance == pytest.approx(gone / total, rel=1e-4)


def test_a_constant_column_that_is_written_to_has_the_spread_it_got():
    X, y = setting()
    rows, concept = check_rows(X), check_concept(y, len(X))
    moments = rows.moments(concept)
    own = X[:, 0].std()
    hidden = 1e-8 * 1e-13 * own  # what variances would not tell from nothing
    for size, in_rows, in_moments in (
        (0.5, 0.5 * own, 0.5 * own),
        (1e-13, 1.0, hidden),
        (1e9, 1e9 * own, 1e9 * own),
        (0.0, 1.0, 1.0),
    ):
        L = np.zeros((5, 1))
        L[4] = size
        erasure = ex.Erasure(L, np.eye(5)[:1])
        for found, expected in (
            (kept_in_rows(rows, erasure, moments, concept, None), in_rows),
            (kept_in_moments(moments, erasure), in_moments),
        ):
            assert found.spreads[4] == pytest.approx(expected, rel=1e-6)
            assert found.least[4] == 0
            assert found.columns == 5


def test_a_column_of_zeros_that_is_written_to_may_be_as_narrow_as_the_others():
    X, y = setting()
    X = 1e-14 * X
    X[:, 4] = 0.0
    rows, concept = check_rows(X), check_concept(y, len(X))
    erasure = ex.Erasure(np.eye(5)[:, 4:] / 2, np.eye(5)[:1])
    found = kept_in_rows(rows, erasure, rows.moments(concept), concept, None)
    assert found.spreads[4] == pytest.approx(X[:, 0].std() / 2, rel=1e-6, abs=0)


def test_rows_that_never_vary_are_kept():
    X, y = np.full((20, 3), 7.25), np.arange(20) % 2
    rows, concept = check_rows(X), check_concept(y, 20)
    moments = rows.moments(concept)
    identity = ex.Erasure.identity(3)
    for found in (
        kept_in_rows(rows, identity, moments, concept, None),
        kept_in_moments(moments, identity),
    ):
        assert (found.variance, found.average, found.columns) == (1.0, 1.0, 3)
        np.testing.assert_array_equal(found.spreads, 1.0)


def test_the_least_spread_follows_the_spread_and_the_mean():
    X, y = setting()
    moments = check_rows(X).moments(check_concept(y, len(X)))
    far = replace(moments, mean_x=np.array([0.0, -1e6, 1e9, 1e3, 5.0]))
    spread = np.sqrt(moments.squares / len(X))
    expected = 1e-6 * spread + 1e-9 * np.abs(far.mean_x)
    assert expected[2] > spread[2]
    np.testing.assert_allclose(least_spreads(far), np.minimum(expected, spread), rtol=1e-12)


def test_few_rows_of_a_file_are_all_looked_at(tmp_path):
    """A far value among some thousand rows has most of the variance."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, y = setting(n=3000)
    X[1234, 0] = 1e4
    flat = pa.array(X.ravel())
    pq.write_table(
        pa.table({"x": pa.FixedSizeListArray.from_arrays(flat, X.shape[1])}), tmp_path / "x.parquet"
    )
    rows, concept = ex.open_rows(tmp_path / "x.parquet"), check_concept(y, len(X))
    assert not rows.in_memory
    moments = rows.moments(concept, second=False)
    found = kept_in_rows(rows, some_erasure(), moments, concept, None)
    assert not found.sampled
    truth = variances(some_erasure()(X)).sum() / variances(X).sum()
    assert found.variance == pytest.approx(truth, rel=1e-9)
