"""V-measure against scikit-learn, pictures against its PCA."""

import json

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.metrics import v_measure_score

import expunge as ex
from expunge.data import load_glove
from expunge.errors import InputError
from expunge.metrics.geometry import pca_scatter, v_measure, v_measure_of
from planted import plant


@pytest.mark.parametrize("seed", range(5))
def test_formula_agrees_with_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, 4, 300)
    clusters = np.where(rng.random(300) < 0.2 * seed, classes, rng.integers(0, 6, 300))
    expected = v_measure_score(classes, clusters)
    assert v_measure_of(classes, clusters) == pytest.approx(expected, abs=1e-12)
    assert v_measure_of(classes.astype(str), clusters) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("classes", "clusters"),
    [([0, 0, 1, 1], [5, 5, 5, 5]), ([0, 0, 0], [1, 2, 3]), ([1, 1], [2, 2]), ([0, 1], [0, 1])],
)
def test_corner_cases_agree_with_scikit_learn(classes, clusters):
    expected = v_measure_score(classes, clusters)
    assert v_measure_of(classes, clusters) == pytest.approx(expected, abs=1e-12)


def test_clusters_of_word_vectors_follow_gender_until_it_is_erased():
    glove = load_glove()
    erased = ex.RLACE(rank=1).fit(glove.train.X, glove.train.y).transform(glove.test.X)
    before, after = v_measure(glove.test.X, glove.test.y), v_measure(erased, glove.test.y)
    assert before.clusters == (2, 4, 8, 16)
    assert before.mean[0] > 0.95
    assert before.n_rows == 4500
    for old, new in zip(before.mean, after.mean, strict=True):
        assert new < 0.3 * old
    assert v_measure(erased, glove.test.y) == after


def test_runs_and_samples_are_stated():
    data = plant("classes", n=900)
    found = v_measure(data.X, data.y, 3, runs=4, max_rows=500)
    assert (found.clusters, found.runs, found.n_rows) == ((3,), 4, 500)
    assert len(found.mean) == len(found.std) == 1
    assert json.loads(json.dumps(found.to_dict())) == {
        "clusters": [3],
        "mean": list(found.mean),
        "std": list(found.std),
        "runs": 4,
        "n_rows": 500,
    }


def test_repeated_rows_and_one_cluster_are_no_trouble():
    X = np.repeat(np.eye(3), 20, axis=0)
    y = np.repeat([0, 0, 1], 20)
    found = v_measure(X, y, [1, 3, 5])
    assert found.mean[0] == 0
    assert found.mean[1] == pytest.approx(v_measure_score(y, np.repeat([0, 1, 2], 20)))


def test_only_classes_can_be_compared():
    data = plant("number")
    with pytest.raises(InputError, match="compares clusters with classes"):
        v_measure(data.X, data.y)
    with pytest.raises(InputError, match="clusters must be"):
        v_measure(np.eye(4), [0, 0, 1, 1], [5])


@pytest.mark.parametrize("shape", [(300, 7), (40, 90)])
def test_coordinates_are_those_of_scikit_learn(shape):
    rng = np.random.default_rng(0)
    before = rng.normal(size=shape) * np.linspace(3, 0.3, shape[1]) + 5
    after = before.copy()
    after[:, 0] = 1.0
    found = pca_scatter(before, after)
    assert found.rows.tolist() == list(range(shape[0]))
    for X, shown, explained in (
        (before, found.before, found.explained_before),
        (after, found.after, found.explained_after),
    ):
        model = PCA(2, svd_solver="full").fit(X)
        np.testing.assert_allclose(np.abs(shown), np.abs(model.transform(X)), atol=1e-8)
        np.testing.assert_allclose(explained, model.explained_variance_ratio_)
    model = PCA(2, svd_solver="full").fit(before)
    signs = np.sign(np.sum(found.before * model.transform(before), axis=0))
    np.testing.assert_allclose(found.after_shared, model.transform(after) * signs, atol=1e-8)
    shared = found.after_shared.var(axis=0) / after.var(axis=0).sum()
    np.testing.assert_allclose(found.explained_shared, shared)
    assert sum(found.explained_shared) < sum(found.explained_after)


def test_the_erased_direction_is_shown():
    data = plant("binary")
    erasure = ex.RLACE(rank=1).fit(data.X, data.y).erasure_
    found = pca_scatter(data.X, erasure.transform(data.X))
    coordinate = (data.X - data.X.mean(axis=0)) @ erasure.basis[0]
    assert coordinate.std() > 0.5
    np.testing.assert_allclose(np.abs(found.along[:, 0]), np.abs(coordinate), atol=1e-10)
    np.testing.assert_allclose(found.along[:, 1], 0, atol=1e-10)


def test_a_sample_is_stated_and_the_same_each_time():
    data = plant("binary")
    found = pca_scatter(data.X, data.X, max_rows=100)
    assert len(found.rows) == len(found.before) == 100
    assert len(set(found.rows.tolist())) == 100
    np.testing.assert_array_equal(found.rows, pca_scatter(data.X, data.X, max_rows=100).rows)
    other = pca_scatter(data.X, data.X, max_rows=100, random_state=1)
    assert (found.rows != other.rows).any()
    np.testing.assert_allclose(found.before, found.after, atol=1e-12)
    plain = json.loads(json.dumps(found.to_dict()))
    assert np.shape(plain["along"]) == (100, 2)
    assert plain["explained_before"] == list(found.explained_before)


def test_pictures_need_two_columns_and_equal_shapes():
    with pytest.raises(InputError, match="at least 2"):
        pca_scatter(np.ones((5, 1)), np.ones((5, 1)))
    with pytest.raises(InputError, match="at least 2"):
        pca_scatter(np.ones((5, 3)), np.ones((4, 3)))


def test_a_cloud_that_is_gone_can_still_be_shown():
    found = pca_scatter(np.random.default_rng(0).normal(size=(20, 3)), np.zeros((20, 3)))
    assert found.explained_after == (0.0, 0.0)
    assert np.isfinite(found.after).all()


@pytest.mark.parametrize("unit", [2.0**100, 2.0**-100])
def test_clusters_of_float32_do_not_depend_on_its_range(unit):
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    X = (rng.normal(size=(300, 3)) + 4 * y[:, None]).astype(np.float32)
    plain, scaled = (v_measure(rows, y) for rows in (X, X * np.float32(unit)))
    assert max(plain.mean) > 0.3
    assert scaled.mean == plain.mean
