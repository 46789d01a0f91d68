"""The scikit-learn contract, for every registered eraser."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import expunge as ex

VARIANTS = [
    *(cls() for cls in ex.ERASERS.values()),
    ex.RLACE(fit_intercept=False, loss="squared"),
    ex.RLACE(loss="hinge"),
    ex.RayleighEraser(objective="pca"),
    ex.RayleighEraser(objective="cca"),
]


@parametrize_with_checks(VARIANTS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


BINARY = [est for est in VARIANTS if est._needs_concept()]


@pytest.fixture
def words():
    rng = np.random.default_rng(0)
    z, task = rng.integers(0, 2, 300), rng.integers(0, 2, 300)
    X = (
        rng.normal(size=(300, 6))
        + np.outer(z, [2, 0, 1, 0, 0, 0])
        + np.outer(task, [0, 2, 0, 0, 0, 1])
    )
    return X, z, task


@pytest.mark.parametrize("estimator", VARIANTS, ids=repr)
def test_clone_and_pickle(estimator, words):
    X, z, _ = words
    fitted = clone(estimator).fit(X, z)
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.transform(X), fitted.transform(X))
    assert clone(fitted).get_params().keys() == estimator.get_params().keys()
    with pytest.raises(sklearn.exceptions.NotFittedError):
        clone(fitted).transform(X)


@pytest.mark.parametrize("estimator", VARIANTS, ids=repr)
def test_frames_come_back_as_set_output_asks(estimator, words):
    X, z, _ = words
    names, index = [f"v{j}" for j in range(6)], np.arange(300) * 2
    frame = pd.DataFrame(X, columns=names, index=index)
    fitted = clone(estimator).fit(frame, z)
    plain = fitted.transform(frame)
    assert isinstance(plain, np.ndarray)
    assert list(fitted.get_feature_names_out()) == names
    back = fitted.set_output(transform="pandas").transform(frame)
    assert list(back.columns) == names
    np.testing.assert_array_equal(back.index, index)
    np.testing.assert_array_equal(back.to_numpy(), plain)
    polars = clone(estimator).set_output(transform="polars").fit(pl.DataFrame(frame), z)
    back = polars.transform(pl.DataFrame(frame))
    assert isinstance(back, pl.DataFrame)
    assert back.columns == names
    np.testing.assert_allclose(back.to_numpy(), plain)


@pytest.mark.parametrize("estimator", BINARY, ids=repr)
def test_inside_a_pipeline_with_a_task_beside_the_concept(estimator, words):
    X, z, task = words
    with sklearn.config_context(enable_metadata_routing=True):
        eraser = clone(estimator).set_fit_request(concept=True, sample_weight=True)
        pipe = make_pipeline(eraser, LogisticRegression().set_fit_request(sample_weight=True))
        pipe.fit(X, task, concept=z, sample_weight=np.ones(300))
    alone = clone(estimator).fit(X, z)
    np.testing.assert_allclose(pipe[0].erasure_.matrix(), alone.erasure_.matrix(), atol=1e-12)
    assert pipe.score(X, task) > 0.75


@pytest.mark.parametrize("name", ex.ERASERS)
def test_grid_search_over_the_rank(name, words):
    X, z, task = words
    pipe = Pipeline([("erase", ex.ERASERS[name]()), ("probe", LogisticRegression())])
    with sklearn.config_context(enable_metadata_routing=True):
        pipe.set_params(erase=ex.ERASERS[name]().set_fit_request(concept=True))
        search = GridSearchCV(pipe, {"erase__rank": ["auto", 1, 2, 3]}, cv=3, error_score="raise")
        search.fit(X, task, concept=z)
    assert search.best_params_["erase__rank"] in ("auto", 1, 2, 3)
    assert search.best_score_ > 0.75


@pytest.mark.parametrize("name", ex.ERASERS)
def test_a_failed_fit_changes_nothing(name, words):
    X, z, _ = words
    eraser = ex.ERASERS[name]().fit(X, z)
    before = pickle.dumps(eraser)
    bad = X.copy()
    bad[3, 2] = np.nan
    for arguments in ((bad, z), (X, z[:-1]), (X, np.zeros(300)), (X[:, 0], z)):
        with pytest.raises(ex.InputError):
            eraser.fit(*arguments)
        assert pickle.dumps(eraser) == before
    with pytest.raises(ex.InputError, match="X has 5 features, but"):
        eraser.partial_fit(X[:, :5], z)
    with pytest.raises(ex.InputError, match="X has 5 features, but"):
        eraser.transform(X[:, :5])
    assert pickle.dumps(eraser) == before


def test_an_empty_stream_says_what_is_missing(words):
    X, z, _ = words
    eraser = ex.RLACE().partial_fit(X[z == 0], z[z == 0])
    with pytest.raises(ex.InputError, match="Add chunks with other classes"):
        _ = eraser.erasure_
    eraser.partial_fit(X[z == 1], z[z == 1])
    assert eraser.certificate_.erased
