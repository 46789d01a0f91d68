"""What a fit does with groups and with rows that have no label, before anything is estimated."""

import warnings

import numpy as np
import pytest

import expunge as ex
from expunge.erasers.pooled_fit import check_groups, pool_of, without_missing
from expunge.inputs import check_rows
from expunge.rows.base import Rows
from planted import plant


def values(rows):
    return np.vstack([X for _, X in rows.arrays()])


X = np.arange(24.0).reshape(6, 4)


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        (None, None),
        (["b", "a", "b", "c", "a", "b"], [1, 0, 1, 2, 0, 1]),
        ([7, 7, 7, 7, 7, 9], [0, 0, 0, 0, 0, 1]),
        (np.array([3.5, 1.5, 3.5, 3.5, 3.5, 1.5]), [1, 0, 1, 1, 1, 0]),
    ],
)
def test_groups_become_numbers(groups, expected):
    found = check_groups(groups, check_rows(X))
    assert (None if found is None else found.tolist()) == expected


@pytest.mark.parametrize(
    ("groups", "match"),
    [
        (["a"] * 6, "All rows are of one group"),
        (["a", "b"], "one entry per row"),
        (np.zeros((6, 2)), "one entry per row"),
    ],
)
def test_groups_that_say_nothing_are_refused(groups, match):
    with pytest.raises(ex.InputError, match=match):
        check_groups(groups, check_rows(X))


def test_rows_are_parted_with_all_that_belongs_to_them():
    y = ["f", None, "m", "", "f", "m"]
    both = {"sex": y, "age": [1.0, 2.0, 3.0, 4.0, float("nan"), 6.0]}
    w = np.arange(6.0)
    rows, kept, pool = without_missing(X, y, None, w, 3.0, {"t": [1, 2, 3, 4, 5, 6]})
    np.testing.assert_array_equal(values(rows), X[[0, 2, 4, 5]])
    np.testing.assert_array_equal(values(pool), X[[1, 3]])
    assert kept[0].tolist() == ["f", "m", "f", "m"]
    assert kept[1] is None
    assert kept[2].tolist() == [0, 2, 4, 5]
    assert kept[3] == 3.0  # refused elsewhere
    assert kept[4]["t"].tolist() == [1, 3, 5, 6]
    rows, kept, pool = without_missing(X, both)
    np.testing.assert_array_equal(values(rows), X[[0, 2, 5]])
    assert kept[0]["age"].tolist() == [1.0, 3.0, 6.0]
    assert isinstance(rows, Rows)
    assert pool.n_samples == 3


def test_where_all_or_none_have_a_label():
    y = list("fmfmfm")
    rows, kept, pool = without_missing(X, y, None)
    assert rows is X
    assert kept == [y, None]
    assert pool is None
    with pytest.raises(ex.InputError, match="No row has a label"):
        without_missing(X, [None] * 6)
    bad = X.copy()
    bad[1, 1] = np.nan  # looked at when rows are read
    without_missing(bad, [*y[:5], None])


def test_rows_without_labels_come_from_either_side_or_both():
    missing = check_rows(X[:2])
    assert pool_of(None, None, 4, "LEACE") is None
    assert pool_of(None, missing, 4, "LEACE") is missing
    np.testing.assert_array_equal(values(pool_of(X[2:3], None, 4, "LEACE")), X[2:3])
    np.testing.assert_array_equal(
        values(pool_of(X[2:], missing, 4, "LEACE")), X[[2, 3, 4, 5, 0, 1]]
    )
    with pytest.raises(ex.InputError, match="LEACE is expecting 4 features"):
        pool_of(X[:, :3], None, 4, "LEACE")
    with pytest.raises(ex.InputError, match="unlabelled"):
        pool_of(X[:0], None, 4, "LEACE")


def few(n=60, pool=200, kind="binary", shift=0.0):
    data = plant(kind, n=n + pool)
    return data.X[:n], data.y[:n], data.X[n:] + shift


@pytest.mark.parametrize("name", ["LEACE", "OracleLEACE"])
def test_a_pool_is_remembered(name):
    A, y, U = few()
    eraser = ex.ERASERS[name]().fit(A, y, unlabelled=U)
    plain = ex.ERASERS[name]().fit(A, y)
    assert plain.pool_ is None
    pool = eraser.pool_
    assert (pool.n_labelled, pool.n_pool) == (60, 200)
    erasure = eraser._settled()[0]
    assert erasure.meta["pool"] == pool.to_meta()
    assert plain._settled()[0].meta["pool"] is None
    assert erasure.meta["n"] == 60
    assert eraser._seen.own.n == 60
    fit = erasure.meta["fit"]
    assert fit["effective_n"] == pytest.approx(60 / pool.variance)
    assert "60 labelled rows" in eraser.certificate_.rows
    assert "200 rows without labels" in eraser.certificate_.rows
    assert plain.certificate_.rows != eraser.certificate_.rows
    seen = ex.fingerprint.Fingerprint.of(np.vstack([A, U])).to_meta()
    assert erasure.meta["fingerprint"] == seen


def test_a_pool_of_another_population_is_named():
    A, y, U = few(n=150)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ex.LEACE().fit(A, y, unlabelled=U)
    with pytest.warns(ex.errors.PoolDiffers, match="not of one population") as said:
        eraser = ex.LEACE().fit(A, y, unlabelled=U + 3.0)
    share = eraser.pool_.share
    assert (f"λ = {share:.2g}" if share else "not used") in str(said[0].message)


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("pooled", [False, True])
def test_rows_of_a_group_count_together(size, pooled):
    """Every row three times over tells no more than once."""
    A, y, U = few()
    groups = np.repeat(np.arange(60), size)
    more = {"unlabelled": U} if pooled else {}
    eraser = ex.LEACE().fit(A.repeat(size, axis=0), y.repeat(size), groups=groups, **more)
    assert eraser._seen.design == pytest.approx(size, rel=1e-6)
    own = eraser.erasure_.meta["fit"]["effective_n"]
    assert own == pytest.approx(60 / (eraser.pool_.variance if pooled else 1), rel=1e-6)
    assert ex.LEACE().fit(A, y)._seen.design == 1.0


def test_missing_labels_part_the_task_the_weights_and_the_groups():
    A, y, _ = few(n=100)
    known = np.array([*y[:40], *[None] * 60], dtype=object)
    w, task = np.random.default_rng(0).random(100) + 0.5, np.arange(100) % 3
    settings = {"sample_weight": w, "missing": "unlabelled", "groups": np.arange(100)}
    for concept in (None, known):
        given = (known,) if concept is None else (task,)
        found = ex.SPLINCE().fit(A, *given, concept=concept, **settings)
        part = (y[:40],) if concept is None else (task[:40],)
        named = ex.SPLINCE().fit(
            A[:40],
            *part,
            concept=None if concept is None else y[:40],
            sample_weight=w[:40],
            unlabelled=A[40:],
            groups=np.arange(40),
        )
        np.testing.assert_allclose(found.erasure_.matrix(), named.erasure_.matrix(), atol=1e-8)
        assert found.pool_.n_pool == 60
    both = ex.LEACE().fit(A, known, missing="unlabelled", unlabelled=A[:5])
    assert both.pool_.n_pool == 65


@pytest.mark.filterwarnings("ignore::expunge.errors.NotConverged")
def test_what_cannot_use_them_says_so_before_anything_is_learnt():
    A, y, U = few(kind="classes")
    for eraser, match in (
        (ex.INLP(1), "INLP cannot use rows without labels: it needs the concept"),
        (ex.QuadraticLEACE(), "QuadraticLEACE cannot use rows"),
        (ex.LEACE(predictor="random_features"), "random_features"),
        (ex.RLACE(1, solver="descent_ascent", max_iter=5), "closed forms only"),
    ):
        with pytest.raises(ex.InputError, match=match):
            eraser.fit(A, y, unlabelled=U)
        assert not hasattr(eraser, "n_features_in_")
    with pytest.raises(ex.InputError, match="missing"):
        ex.LEACE().fit(A, y, missing="somehow")
    grouped = ex.RayleighEraser(objective="pca").fit(A, groups=np.arange(60) // 2)
    assert grouped._seen.design == 1.0
