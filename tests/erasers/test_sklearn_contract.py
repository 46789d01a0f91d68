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
    ex.LEACE(shrinkage="oas"),
    ex.QuadraticLEACE(label_free=True),
]

CALLS_TRANSFORM_WITHOUT_A_CONCEPT = [
    "check_n_features_in_after_fitting",
    "check_estimators_dtypes",
    "check_sample_weight_equivalence_on_dense_data",
    "check_dtype_object",
    "check_estimators_nan_inf",
    "check_estimators_pickle",
    "check_f_contiguous_array_estimator",
    "check_transformer_data_not_an_array",
    "check_transformer_general",
    "check_transformer_preserve_dtypes",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_dict_unchanged",
    "check_fit_idempotent",
    "check_fit2d_predict1d",
]


def needs_concept(estimator):
    told = isinstance(estimator, ex.OracleLEACE | ex.QuadraticLEACE)
    return told and not getattr(estimator, "label_free", False)


def expected_failures(estimator):
    if needs_concept(estimator):
        reason = "the map depends on the concept of the row; transform(X) alone is refused"
        return dict.fromkeys(CALLS_TRANSFORM_WITHOUT_A_CONCEPT, reason)
    if isinstance(estimator, ex.INLP) and estimator.rank == "auto":
        reason = "rows are held out by their place, and a repeated row has several"
        return {"check_sample_weight_equivalence_on_dense_data": reason}
    return {}


# some of the checks have more classes than columns
@pytest.mark.filterwarnings("ignore::expunge.errors.NothingLeft")
@parametrize_with_checks(VARIANTS, expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


BINARY = [
    est
    for est in VARIANTS
    if est._certifies() and not isinstance(est, ex.OracleLEACE | ex.QuadraticLEACE)
]


def cleaned(eraser, X, z):
    return eraser.transform(X, **({"concept": z} if needs_concept(eraser) else {}))


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
    np.testing.assert_array_equal(cleaned(copy, X, z), cleaned(fitted, X, z))
    assert clone(fitted).get_params().keys() == estimator.get_params().keys()
    with pytest.raises(sklearn.exceptions.NotFittedError):
        cleaned(clone(fitted), X, z)


@pytest.mark.parametrize("estimator", VARIANTS, ids=repr)
def test_frames_come_back_as_set_output_asks(estimator, words):
    X, z, _ = words
    names, index = [f"v{j}" for j in range(6)], np.arange(300) * 2
    frame = pd.DataFrame(X, columns=names, index=index)
    fitted = clone(estimator).fit(frame, z)
    plain = cleaned(fitted, frame, z)
    assert isinstance(plain, np.ndarray)
    assert list(fitted.get_feature_names_out()) == names
    back = cleaned(fitted.set_output(transform="pandas"), frame, z)
    assert list(back.columns) == names
    np.testing.assert_array_equal(back.index, index)
    np.testing.assert_array_equal(back.to_numpy(), plain)
    polars = clone(estimator).set_output(transform="polars").fit(pl.DataFrame(frame), z)
    back = cleaned(polars, pl.DataFrame(frame), z)
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
    keeps_task = isinstance(estimator, ex.SPLINCE)
    alone = clone(estimator).fit(X, task if keeps_task else z, concept=z)
    np.testing.assert_allclose(pipe[0].transform(X), alone.transform(X), atol=1e-12)
    assert pipe.score(X, task) > 0.75


def test_a_told_eraser_inside_a_pipeline(words):
    X, z, task = words
    with sklearn.config_context(enable_metadata_routing=True):
        eraser = ex.OracleLEACE().set_fit_request(concept=True).set_transform_request(concept=True)
        pipe = make_pipeline(eraser, LogisticRegression())
        pipe.fit(X, task, concept=z)
        guess = pipe.predict(X, concept=z)
    assert (guess == task).mean() > 0.75


@pytest.mark.parametrize("name", sorted({type(e).__name__ for e in BINARY}))
@pytest.mark.parametrize(
    ("parameter", "grid"), [("rank", ["auto", 1, 2, 3]), ("strength", [0.0, 0.5, 1.0])]
)
def test_grid_search(name, words, parameter, grid):
    X, z, task = words
    if parameter not in ex.ERASERS[name]().get_params():
        pytest.skip(f"{name} has no {parameter}")
    pipe = Pipeline([("erase", ex.ERASERS[name]()), ("probe", LogisticRegression())])
    with sklearn.config_context(enable_metadata_routing=True):
        pipe.set_params(erase=ex.ERASERS[name]().set_fit_request(concept=True))
        search = GridSearchCV(pipe, {f"erase__{parameter}": grid}, cv=3, error_score="raise")
        search.fit(X, task, concept=z)
    assert search.best_params_[f"erase__{parameter}"] in grid
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
    if hasattr(eraser, "partial_fit"):
        with pytest.raises(ex.InputError, match="X has 5 features, but"):
            eraser.partial_fit(X[:, :5], z)
    with pytest.raises(ex.InputError, match="X has 5 features, but"):
        cleaned(eraser, X[:, :5], z)
    assert pickle.dumps(eraser) == before


def test_an_empty_stream_says_what_is_missing(words):
    X, z, _ = words
    eraser = ex.RLACE().partial_fit(X[z == 0], z[z == 0])
    with pytest.raises(ex.InputError, match="Add chunks with other classes"):
        _ = eraser.erasure_
    eraser.partial_fit(X[z == 1], z[z == 1])
    assert eraser.certificate_.erased
