"""Rows of a pool that are labelled ones, or copies of others, teach nothing and do not count."""

import warnings

import numpy as np
import pytest
from numpy.random import default_rng

import expunge as ex
from expunge.inputs import check_rows
from expunge.pooling.different_rows import ROWS, different_rows, what_does_not_count
from expunge.pooling.membership import told_apart


def planted(n, seed=0, d=40, gap=2.0):
    rng = default_rng(seed)
    y = rng.integers(0, 2, n)
    u = np.linalg.qr(default_rng(99).normal(size=(d, 2)))[0].T
    return rng.normal(size=(n, d)) + gap * u[y], y


def table(n, seed=0, columns=4):
    """Small integers, that repeat by chance, and follow the class."""
    rng = default_rng(seed)
    y = rng.integers(0, 2, n)
    return (rng.integers(0, 5, size=(n, columns)) + y[:, None]).astype(float), y


def fitted(X, y, pool):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ex.PoolRepeats)
        return ex.LEACE().fit(X, y, unlabelled=pool)


X, y = planted(1500)
FEW, REST = X[:150], X[150:]
LABELS = y[:150]


def shuffled(*parts):
    return default_rng(3).permutation(np.vstack(parts))


# -- what counts ---------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [1, 10])
def test_the_labelled_rows_themselves_are_no_pool(times):
    alone, helped = ex.LEACE().fit(FEW, LABELS), fitted(FEW, LABELS, np.tile(FEW, (times, 1)))
    assert (helped.pool_.n_pool, helped.pool_.n_different) == (150 * times, 0)
    assert (helped.pool_.share, helped.pool_.variance) == (0, 1)
    assert "of no use" in str(helped.pool_)
    assert helped.erasure_.meta["fit"]["effective_n"] == 150
    np.testing.assert_array_equal(alone.erasure_.left, helped.erasure_.left)


@pytest.mark.parametrize("home", ["array", "file", "single"])
def test_labelled_rows_in_the_pool_change_nothing_to_the_last_bit(home, tmp_path):
    pool = np.vstack([FEW, REST, FEW[:40]])
    if home == "file":
        np.save(tmp_path / "all.npy", pool)
        pool = ex.open_rows(tmp_path / "all.npy")
    few, rest = (FEW, REST) if home != "single" else (FEW, REST.astype(np.float32))
    if home == "single":
        pool = pool.astype(np.float32)
    plain, helped = fitted(few, LABELS, rest), fitted(few, LABELS, pool)
    assert plain.pool_.share > 0
    assert (helped.pool_.n_pool, helped.pool_.n_different) == (1540, 1350)
    assert helped.pool_.variance == plain.pool_.variance
    np.testing.assert_allclose(plain.erasure_.left, helped.erasure_.left, rtol=1e-12)
    same = helped.erasure_.meta["fingerprint"] == plain.erasure_.meta["fingerprint"]
    assert same  # or an audit would take copies for chance


@pytest.mark.parametrize("times", [2, 5])
def test_copies_of_the_pool_count_once(times):
    once, often = fitted(FEW, LABELS, REST), fitted(FEW, LABELS, shuffled(*[REST] * times))
    assert often.pool_.n_different == 1350
    np.testing.assert_allclose(often.pool_.variance, once.pool_.variance, rtol=1e-9)
    both = fitted(FEW, LABELS, shuffled(FEW, *[REST] * times))
    assert both.pool_.n_different == 1350


def test_where_some_rows_are_there_often_the_size_is_an_estimate():
    many = planted(9000, seed=4, d=6)[0]
    pool = shuffled(many, *[many[:1800]] * 9)  # a fifth of them is there ten times
    found = different_rows(check_rows(FEW[:, :6]), check_rows(pool))
    assert abs(found - 9000) < 900


def test_without_copies_everything_counts():
    found = ex.LEACE().fit(FEW, LABELS, unlabelled=REST).pool_
    assert found.n_different == found.n_pool == 1350
    assert str(found).startswith("1,350 rows without labels make 150 labels worth")


def test_missing_labels_beside_copies_of_rows_that_have_one():
    known = np.array([*LABELS, *[None] * 1650], dtype=object)
    with pytest.warns(ex.PoolRepeats):
        found = ex.LEACE().fit(np.vstack([FEW, X, FEW]), known, missing="unlabelled")
    assert found.pool_.n_different == 1350


def test_a_worth_that_is_no_more_than_the_truth_excuses_no_more():
    """What an audit expects of a fit is what one of the labelled rows alone leaves."""
    new, labels = planted(6000, seed=8)
    expected = []
    for pool in (None, np.tile(FEW, (10, 1))):
        eraser = ex.LEACE().fit(FEW, LABELS) if pool is None else fitted(FEW, LABELS, pool)
        found = ex.audit(eraser, X_test=new, y_test=labels, probes="linear")
        assert found.verdict.explained
        expected.append(found.residue.balanced_accuracy)
    assert expected[0] == expected[1]


# -- what is no copy -----------------------------------------------------------------------------


def test_rows_of_a_table_that_repeat_by_chance_all_count():
    rows, labels = table(4400)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = ex.LEACE().fit(rows[:400], labels[:400], unlabelled=rows[400:]).pool_
    assert found.n_different == 4000
    assert found.share > 0


@pytest.mark.parametrize(
    ("pool", "counted"),
    [
        (lambda rows: rows[:400], 0),
        (lambda rows: np.tile(rows[:400], (10, 1)), 0),
        (lambda rows: np.repeat(rows[400:], 3, axis=0), 4000),
    ],
)
def test_copies_in_such_a_table_are_seen_beyond_chance(pool, counted):
    rows, labels = table(4400)
    assert fitted(rows[:400], labels[:400], pool(rows)).pool_.n_different == counted


def test_a_value_that_many_rows_have_belongs_to_the_population():
    """Empty texts all have one vector, among the labelled rows and in the pool."""
    few, rest = FEW.copy(), REST.copy()
    few[:30], rest[:270] = 0.0, 0.0
    found = ex.LEACE().fit(few, LABELS, unlabelled=rest).pool_
    assert found.n_different == 1350


# -- what is said --------------------------------------------------------------------------------


def test_a_notable_share_is_named_once():
    with pytest.warns(ex.PoolRepeats, match="Of 600 rows without labels 150 are") as heard:
        found = ex.SAL().fit(FEW, LABELS, unlabelled=X[:600]).pool_
    assert len(heard) == 1
    assert "of which 450 are different" in str(found)
    with pytest.warns(ex.PoolRepeats, match="All 150 rows without labels are labelled rows"):
        ex.SAL().fit(FEW, LABELS, unlabelled=FEW)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a tenth is what `fit few --unlabelled all` has anyway
        ex.SAL().fit(FEW, LABELS, unlabelled=X)
    assert what_does_not_count(100, 90) == ""
    assert "11 are" in what_does_not_count(100, 89)


# -- siblings ------------------------------------------------------------------------------------


def test_a_plan_counts_rows_that_are_not_in_the_pilot_once(tmp_path):
    plain = ex.plan_labels(FEW, LABELS, 0.6, unlabelled=1350)
    for pool in (X, shuffled(X, REST)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ex.PoolRepeats)
            assert ex.plan_labels(FEW, LABELS, 0.6, unlabelled=pool) == plain
    with pytest.warns(ex.PoolRepeats):
        found = ex.plan_labels(FEW, LABELS, 0.6, unlabelled=FEW)
    assert (found.pool, found.with_pool) == (0, None)


def test_a_plan_estimates_from_a_sample_of_a_file(tmp_path):
    many = planted(3 * ROWS, seed=5, d=6)[0].astype(np.float32)
    few = many[:ROWS]
    np.save(tmp_path / "all.npy", many)
    found = different_rows(check_rows(few), ex.open_rows(tmp_path / "all.npy"))
    assert abs(found - 2 * ROWS) < 0.03 * ROWS
    np.save(tmp_path / "twice.npy", np.vstack([many, many]))
    found = different_rows(check_rows(few[:10]), ex.open_rows(tmp_path / "twice.npy"))
    assert abs(found - 3 * ROWS) < 0.1 * ROWS


def test_copies_do_not_tell_a_pool_from_labelled_rows():
    wrong = 0
    for seed in range(12):
        rng = default_rng(seed)
        few, others = rng.normal(size=(200, 60)), rng.normal(size=(200, 60))
        _, sure = told_apart(check_rows(few), check_rows(np.tile(others, (10, 1))), rng)
        wrong += sure
        both = np.tile(np.vstack([few, others]), (3, 1))
        assert abs(told_apart(check_rows(few), check_rows(both), rng)[0] - 0.5) < 0.1
    assert wrong == 0
    moved = others + 0.5
    assert told_apart(check_rows(few), check_rows(np.tile(moved, (10, 1))), rng)[1]
