"""Dask frames of every kind of column: the same answer as of the frame in memory, or a refusal."""

import warnings
from itertools import pairwise

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import expunge as ex
from planted import plant

N, CUTS = 400, (0, 0, 150, 150, 151, 400)
NAMES = list("abcdefgh")


@pytest.fixture
def data():
    return plant("classes", n=N)


def codes(data):
    return np.unique(np.asarray(data.y), return_inverse=True)[1]


def lazily(frame, cuts=CUTS):
    """Partitions of very different lengths, some of them empty, with unknown divisions."""
    parts = [dask.delayed(frame.iloc[lo:hi]) for lo, hi in pairwise(cuts)]
    return dd.from_delayed(parts, meta=frame.iloc[:0])


def same_fit(found, expected):
    np.testing.assert_allclose(
        found.erasure_.matrix(), expected.erasure_.matrix(), rtol=0, atol=1e-9
    )
    assert found.erasure_.meta["concept"] == expected.erasure_.meta["concept"]
    assert expected.certificate_.erased
    assert found.certificate_.erased


# -- vectors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", ["Float64", "Float32", "double[pyarrow]", "float[pyarrow]", "float16"]
)
def test_types_of_columns_stay(data, kind):
    frame = pd.DataFrame(data.X, columns=NAMES).astype(kind).assign(z=np.asarray(data.y))
    expected = ex.LEACE().fit(frame, concept="z")
    found = ex.LEACE().fit(lazily(frame), concept="z")
    same_fit(found, expected)
    clean = found.transform(lazily(frame)).compute()
    pd.testing.assert_series_equal(clean.dtypes, frame.dtypes)
    close = 1e-9 if kind in ("Float64", "double[pyarrow]") else 1e-2
    np.testing.assert_allclose(
        clean[NAMES].to_numpy(float), expected.transform(frame).astype(float), atol=close
    )


@pytest.mark.parametrize("kind", ["Int64", "boolean", "Float64", "int8[pyarrow]"])
def test_a_missing_number_is_refused_whatever_its_type(data, kind):
    whole = pd.DataFrame(np.round(data.X), columns=NAMES)
    frame = (whole > 0 if kind == "boolean" else whole).astype(kind).assign(z=np.asarray(data.y))
    same_fit(ex.LEACE().fit(lazily(frame), concept="z"), ex.LEACE().fit(frame, concept="z"))
    frame.iloc[300, 2] = pd.NA
    with pytest.raises(ex.InputError, match=r"NaN.*row 300, column 2, in partition 4"):
        ex.LEACE().fit(lazily(frame), concept="z")


def test_whole_numbers_in_the_first_list_cut_nothing_off_the_others(data):
    lists = [[round(x) for x in data.X[0]], *data.X[1:].tolist()]
    frame = pd.DataFrame({"v": lists, "z": np.asarray(data.y)})
    X = np.array(lists)
    expected = ex.LEACE().fit(X, data.y)
    with dask.config.set({"dataframe.convert-string": False}):
        found = ex.LEACE().fit(lazily(frame), concept="z")
        same_fit(found, expected)
        clean = found.transform(lazily(frame)).compute()
    np.testing.assert_allclose(np.stack(clean["v"]), expected.transform(X), atol=1e-9)


@pytest.mark.parametrize("vectors", [None, "v"])
def test_lists_that_dask_made_text_of_are_told(data, vectors):
    ddf = dd.from_pandas(pd.DataFrame({"v": list(data.X), "z": np.asarray(data.y)}), 2)
    with pytest.raises(ex.InputError, match=r"'v' holds lists as text.*convert-string"):
        ex.LEACE().fit(ddf, concept="z", vectors=vectors)
    with dask.config.set({"dataframe.convert-string": False}):
        ddf = dd.from_pandas(pd.DataFrame({"v": list(data.X), "z": np.asarray(data.y)}), 2)
    same_fit(ex.LEACE().fit(ddf, concept="z", vectors=vectors), ex.LEACE().fit(data.X, data.y))


def test_masked_entries_are_refused(data):
    hidden = da.ma.masked_greater(da.from_array(data.X, chunks=(150, 4)), 2.0)
    open_ = da.ma.masked_greater(da.from_array(data.X, chunks=(150, 4)), 1e9)
    eraser = ex.LEACE().fit(data.X, data.y)
    same_fit(ex.LEACE().fit(open_, data.y), eraser)
    np.testing.assert_allclose(eraser.transform(open_), eraser.transform(data.X), atol=1e-9)
    y = da.ma.masked_equal(da.from_array(codes(data), chunks=100), 1)
    wide = da.ma.masked_equal(da.from_array(np.eye(4)[codes(data)], chunks=100), 1)
    for call in (
        lambda: ex.LEACE().fit(hidden, data.y),
        lambda: eraser.transform(hidden).compute(),
        lambda: ex.LEACE().fit(open_, y),
        lambda: ex.LEACE().fit(data.X, y),
        lambda: ex.LEACE().fit(open_, wide),
        lambda: ex.LEACE().fit(open_, data.y, sample_weight=y),
    ):
        with pytest.raises(ex.InputError, match="masked entries"):
            call()


@pytest.mark.parametrize("kind", [object, str])
def test_arrays_that_hold_no_numbers_are_refused(data, kind):
    X = da.from_array(data.X.astype(kind), chunks=(150, 8))
    with pytest.raises(ex.InputError, match="not numeric"):
        ex.LEACE().fit(X, data.y)


@pytest.mark.parametrize("twice", ["a", 1])
def test_columns_of_one_name_are_refused(twice):
    names = ["b", "1", "a", twice, "c"]
    ddf = dd.from_pandas(pd.DataFrame(np.eye(5), columns=names), 2)
    with pytest.raises(ex.InputError, match=rf"several columns of the same name.*'{twice}'"):
        ex.LEACE().fit(ddf, [0, 1, 0, 1, 0])


def test_a_map_of_a_frame_in_memory_finds_its_columns_on_a_cluster(data):
    frame = pd.DataFrame(data.X, columns=NAMES)
    eraser = ex.LEACE().fit(frame, data.y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # scikit-learn has a word about names that are missing
        clean = eraser.transform(lazily(frame[NAMES[::-1]])).compute()
    np.testing.assert_allclose(clean[NAMES], eraser.transform(frame), atol=1e-9)


# -- labels --------------------------------------------------------------------------------------


@pytest.mark.parametrize("cuts", [(0, 100, 400), CUTS])
@pytest.mark.parametrize("kind", ["Int64", "Float64", "boolean", "int64[pyarrow]", "category"])
def test_labels_of_types_that_numpy_does_not_know(data, kind, cuts):
    X = pd.DataFrame(data.X, columns=NAMES)
    y = pd.Series(codes(data) > 0 if kind == "boolean" else codes(data)).astype(kind)
    expected = ex.LEACE().fit(X, y)
    same_fit(ex.LEACE().fit(lazily(X), lazily(y, cuts)), expected)
    weights = pd.Series(1.0 + np.arange(N) % 3, dtype="Float64")
    same_fit(
        ex.LEACE().fit(lazily(X), lazily(y, cuts), sample_weight=lazily(weights, cuts)),
        ex.LEACE().fit(X, y, sample_weight=weights),
    )


@pytest.mark.parametrize("columns", [["job", "t"], ["t", "u"], ["w", "v"], ["job"], ["w"]])
def test_a_frame_of_labels_is_as_many_concepts_as_in_memory(data, columns):
    X = pd.DataFrame(data.X, columns=NAMES)
    labels = pd.DataFrame({"job": np.asarray(data.y).astype(str)})
    labels["t"], labels["u"] = data.X[:, 0] > 0, data.X[:, 1] > 0
    labels["w"], labels["v"] = data.X[:, 2] ** 2, np.exp(data.X[:, 3])
    expected = ex.LEACE().fit(X, labels[columns])
    same_fit(ex.LEACE().fit(lazily(X), lazily(labels[columns])), expected)
    same_fit(ex.LEACE().fit(X, lazily(labels[columns])), expected)


def test_a_missing_label_says_from_where_its_row_is_counted(data):
    frame = pd.DataFrame(data.X, columns=NAMES).assign(z=codes(data).astype(float))
    frame.loc[200, "z"] = np.nan
    with pytest.raises(
        ex.InputError, match="position 49, counted within partition 4, which begins at row 151"
    ):
        ex.LEACE().fit(lazily(frame), concept="z")


@pytest.mark.parametrize("kind", ["name", "array"])
def test_an_audit_takes_ids_from_the_cluster(data, kind):
    frame = pd.DataFrame(data.X, columns=NAMES).assign(z=np.asarray(data.y), who=np.arange(N) // 4)
    eraser = ex.LEACE().fit(frame[:200], concept="z", vectors=NAMES)
    fresh = frame[200:]
    ids = fresh["who"].to_numpy()
    terms = {"probes": "linear"}
    expected = ex.audit(eraser, None, None, fresh, "z", ids=ids, **terms).to_dict()
    alone = ex.audit(eraser, None, None, fresh, "z", **terms).to_dict()
    assert expected["verdict"] != alone["verdict"]  # there are fewer of them than rows
    ddf = lazily(fresh, (0, 0, 90, 200))
    ids = "who" if kind == "name" else da.from_array(ids, chunks=70)
    found = ex.audit(eraser, None, None, ddf, "z", ids=ids, **terms).to_dict()
    assert found["verdict"] == expected["verdict"]


def test_an_audit_names_the_row_with_nan(data):
    eraser = ex.LEACE().fit(data.X[:200], data.y[:200])
    X = data.X[200:].copy()
    X[150, 2] = np.nan
    with pytest.raises(ex.InputError, match=r"NaN.*row 150, column 2"):
        ex.audit(eraser, None, None, da.from_array(X, chunks=(70, 8)), data.y[200:])


# -- which columns are the vectors ---------------------------------------------------------------


@pytest.mark.parametrize("given", ["name", "values"])
def test_all_numbers_that_nothing_names_are_vectors_as_in_memory(data, given):
    frame = pd.DataFrame(data.X, columns=[f"e{j}" for j in range(8)])
    frame["age"], frame["old"] = np.arange(N) % 90 + 9 * codes(data), codes(data) > 0
    whole = frame if given == "values" else frame.assign(z=np.asarray(data.y))
    y = {"y": np.asarray(data.y)} if given == "values" else {"concept": "z"}
    expected = ex.LEACE().fit(whole, **y)
    assert expected.n_features_in_ == 10
    found = ex.LEACE().fit(lazily(whole), **y)
    same_fit(found, expected)
    clean = found.transform(lazily(whole)).compute()
    means = clean.groupby(np.asarray(data.y))["age"].mean()
    assert np.ptp(frame.groupby(np.asarray(data.y))["age"].mean()) > 5
    assert np.ptp(means) < 1e-6
    chosen = ex.LEACE().fit(lazily(whole), **y, vectors="e*")
    assert chosen.n_features_in_ == 8
