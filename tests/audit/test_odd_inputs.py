"""Too few rows, ids that are missing, answers that are neither yes nor no."""

import numpy as np
import pytest

import expunge as ex
from expunge.audit.given import gather
from expunge.audit.roles import roles_of
from expunge.errors import InputError
from expunge.fingerprint import Fingerprint

LINEAR = ["linear discriminant"]


def draw(rng, n, d=6):
    y = np.arange(n) % 2
    return rng.normal(size=(n, d)) + np.outer(y, np.eye(d)[0]), y


def roles(erasure, X, y):
    given = gather(erasure, X, y, None, None, task=None, names=None, concept_type="auto")
    return roles_of(given, fresh=False)


@pytest.mark.parametrize("role", ["train", "test"])
@pytest.mark.parametrize("n", [3, 6])
def test_a_handful_of_rows_is_refused(role, n):
    rng = np.random.default_rng(0)
    e = ex.LEACE().fit(*draw(rng, 100)).erasure_
    X, y = draw(rng, n)
    with pytest.raises(InputError, match="too few rows"):
        ex.audit(e, **{f"X_{role}": X, f"y_{role}": y}, probes=LINEAR)


def test_one_class_on_few_rows_is_refused():
    e = ex.Erasure.identity(2)
    y = np.zeros(20, dtype=int)
    y[0] = 1
    with pytest.raises(InputError, match="two rows of two classes"):
        ex.audit(e, X_test=np.random.default_rng(1).normal(size=(20, 2)), y_test=y, probes=LINEAR)


@pytest.mark.parametrize(
    "ids",
    [
        np.full(200, np.nan),
        np.array([None] * 200),
        np.array(["a", None] * 100, dtype=object),
        np.full(200, np.datetime64("NaT")),
    ],
    ids=["nan", "none", "some", "time"],
)
def test_missing_ids_are_refused(ids):
    X, y = draw(np.random.default_rng(2), 400)
    e = ex.LEACE().fit(X[:200], y[:200])
    with pytest.raises(InputError, match="are missing"):
        ex.audit(e, X[:200], y[:200], X[:200], y[:200], ids=(np.arange(200), ids), probes=LINEAR)


def test_ids_that_are_text_here_and_numbers_there_are_refused():
    X, y = draw(np.random.default_rng(3), 400)
    e = ex.LEACE().fit(X[:200], y[:200])
    ids = np.arange(200), np.arange(200).astype(float).astype(str)
    with pytest.raises(InputError, match="one type"):
        ex.audit(e, X[:200], y[:200], X[:200], y[:200], ids=ids, probes=LINEAR)


def test_one_id_for_all_rows_is_named_as_what_it_is():
    X, y = draw(np.random.default_rng(4), 400)
    e = ex.LEACE().fit(X[:200], y[:200])
    ids = np.arange(200), np.full(200, 999)
    a = ex.audit(e, X[:200], y[:200], X[200:], y[200:], ids=ids, probes=LINEAR)
    assert a.verdict.linear == "not shown"
    assert "1 different id " in a.verdict.headline


@pytest.mark.parametrize("fresh", ["no", 1, None])
def test_fresh_is_yes_or_no(fresh):
    X, y = draw(np.random.default_rng(5), 40)
    with pytest.raises(InputError, match="fresh"):
        ex.audit(ex.Erasure.identity(6), X_test=X, y_test=y, fresh=fresh)


@pytest.mark.parametrize("middle", [0.0, "coins"])
def test_a_fit_whose_middle_columns_are_alike_is_remembered(middle):
    """The key of a row comes from these columns."""
    rng = np.random.default_rng(6)
    X, y = draw(rng, 4500, 10)
    X[:, 3:7] = rng.integers(0, 2, (4500, 4)) if middle == "coins" else middle
    e = ex.LEACE().fit(X[:3000], y[:3000]).erasure_
    seen = Fingerprint.from_meta(e.meta["fingerprint"])
    decided = seen.decides(X)
    assert 0.5 < decided[3000:].mean() < 0.85  # 2,048 of 3,000 rows are kept
    np.testing.assert_array_equal(seen.known(X), decided & (np.arange(4500) < 3000))
    assert roles(e, X[3000:], y[3000:]).freshness.fresh.sum() == 1500
    old = roles(e, X[:3000], y[:3000])
    assert old.new is None
    assert old.share == 1


def test_a_class_is_not_audited():
    with pytest.raises(ex.InputError, match=r"a class.*Pass a fitted one, as in LEACE\(\)\.fit"):
        ex.audit(ex.LEACE, X_test=np.eye(4), y_test=[0, 1, 0, 1])


def test_many_small_classes_raise_no_warning_of_scikit_learn():
    rng = np.random.default_rng(0)
    erasure = ex.LEACE().fit(rng.normal(size=(400, 5)), np.arange(400) % 2).erasure_
    a = ex.audit(erasure, X_test=rng.normal(size=(50, 5)), y_test=np.arange(50) % 26)
    assert len(a.fresh_rows.after["nonlinear"].probes) > 3  # warnings are errors here
