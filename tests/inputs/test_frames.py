"""Tables: columns by name, lists as vectors, several concepts as a frame; odd tables refused."""

import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from refused import assert_refused
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import expunge as ex
from expunge.inputs.frames import rows_of_table

N, NAMES = 240, list("abcde")


def people(seed=0):
    """Numbers in which a race of three, a sex and an age lie, and a job that is the task."""
    rng = np.random.default_rng(seed)
    race, sex = rng.integers(0, 3, N), rng.integers(0, 2, N)
    age = rng.normal(size=N)
    job = (rng.normal(size=N) + sex > 0.5).astype(int)
    X = rng.normal(size=(N, 5)) + 2 * np.eye(5)[race]
    X += (
        np.outer(sex, [0, 0, 0, 3, 1])
        + np.outer(age, [1, 0, 0, 0, 2])
        + np.outer(job, [0] * 4 + [1])
    )
    frame = pd.DataFrame(X, columns=NAMES, index=np.arange(N)[::-1] + 7)
    frame["race"] = pd.Categorical(np.array(["x", "y", "z"])[race], categories=[*"wxyz"])
    frame["sex"], frame["age"], frame["job"] = np.where(sex, "f", "m"), age, job
    return frame


def as_kind(frame, kind):
    if kind == "pandas":
        return frame
    table = pa.Table.from_pandas(frame, preserve_index=False)
    return table if kind == "pyarrow" else pl.from_arrow(table)


def listed(frame, kind, dtype=np.float64):
    """The same with the numbers as one column of lists."""
    vectors = frame[NAMES].to_numpy().astype(dtype)
    rest = frame[["race", "sex"]].astype(str)
    if kind == "pandas":
        return rest.assign(embedding=list(vectors))
    inner, flat = pa.from_numpy_dtype(dtype), pa.array(vectors.ravel())
    if kind in ("polars Array", "pyarrow fixed"):
        column = pa.FixedSizeListArray.from_arrays(flat, 5)
    else:
        column = pa.array(vectors.tolist(), pa.list_(inner))
    table = pa.Table.from_pandas(rest, preserve_index=False)
    table = table.append_column("embedding", column)
    if kind.startswith("pyarrow"):
        halves = [table.slice(0, 100), table.slice(100)]
        return pa.concat_tables([*halves[:1], halves[1]])  # in chunks, the second with an offset
    return pl.from_arrow(table)


def gap(X, labels):
    """The largest difference of a class mean from the mean, in standard deviations."""
    X, labels = np.asarray(X), np.asarray(labels)
    means = [X[labels == label].mean(axis=0) - X.mean(axis=0) for label in np.unique(labels)]
    return np.abs(means / X.std(axis=0)).max()


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_a_concept_by_name(kind):
    frame = people()
    table = as_kind(frame.drop(columns=["sex", "age", "job"]), kind)
    assert gap(frame[NAMES], frame["race"]) > 0.5
    eraser = ex.LEACE().fit(table, concept="race")
    assert eraser.certificate_.erased
    assert eraser.erasure_.meta["concept"]["labels"] == ["x", "y", "z"]
    clean = eraser.transform(table)
    assert clean.shape == (N, 5)
    assert gap(clean, frame["race"]) < 1e-10
    same = ex.LEACE().fit(frame[NAMES].to_numpy(), frame["race"].astype(str))
    np.testing.assert_allclose(clean, same.transform(frame[NAMES].to_numpy()), atol=1e-12)
    np.testing.assert_array_equal(clean, eraser.transform(as_kind(frame[NAMES], kind)))


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_several_concepts_by_name(kind):
    frame = people()
    table = as_kind(frame.drop(columns="job"), kind)
    eraser = ex.LEACE().fit(table, concept=["race", "sex", "age"])
    labels = eraser.erasure_.meta["concept"]["labels"]
    assert labels == ["race=x", "race=y", "race=z", "sex=f", "sex=m", "age"]
    clean = eraser.transform(table)
    for name in ("race", "sex"):
        assert gap(frame[NAMES], frame[name]) > 0.5
        assert gap(clean, frame[name]) < 1e-10
    assert abs(np.corrcoef(clean[:, 4], frame["age"])[0, 1]) < 1e-10


LISTS = ["pandas", "polars List", "polars Array", "pyarrow", "pyarrow fixed"]


@pytest.mark.parametrize("kind", LISTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_column_of_lists(kind, dtype):
    frame = people()
    table = listed(frame, kind, dtype)
    named = ex.LEACE().fit(table, concept="race", vectors="embedding")
    found = ex.LEACE().fit(table, concept="race")  # the only column of lists
    X = frame[NAMES].to_numpy().astype(dtype)
    for eraser in (named, found):
        clean = eraser.transform(table)
        assert clean.dtype == dtype
        assert gap(X, frame["race"]) > 0.5
        assert gap(clean, frame["race"]) < 1e-5
        np.testing.assert_array_equal(clean, eraser.transform(X))
        np.testing.assert_array_equal(clean, eraser.erasure_(table))
        assert eraser.erasure_.meta["columns"] == {"vectors": "embedding"}


def test_vectors_by_names_and_patterns():
    frame = people().rename(columns={name: f"e_{name}" for name in NAMES})
    some = ex.LEACE().fit(frame, concept="race", vectors=["e_c", "e_a", "e_b"])
    assert some.transform(frame).shape == (N, 3)
    assert list(some.feature_names_in_) == ["e_c", "e_a", "e_b"]
    every = ex.LEACE().fit(frame, concept="race", vectors="e_*")
    assert every.n_features_in_ == 5
    assert every.transform(frame.assign(more=1)).shape == (N, 5)


def test_a_frame_of_concepts_survives_cross_validation():
    frame = people()
    X, concepts, task = frame[NAMES], frame[["race", "sex"]], frame["job"]
    eraser = ex.LEACE().fit(X, concepts)
    assert eraser.erasure_.meta["concept"]["labels"][-2:] == ["sex=f", "sex=m"]
    seen = []

    class Watched(ex.LEACE):
        def fit(self, X, y=None, *, concept=None, **more):
            super().fit(X, y, concept=concept, **more)
            seen.append(max(gap(self.transform(X), concept[name]) for name in concept))
            return self

    with sklearn.config_context(enable_metadata_routing=True):
        pipe = make_pipeline(Watched().set_fit_request(concept=True), LogisticRegression())
        scores = cross_val_score(pipe, X, task, params={"concept": concepts}, cv=3)
        search = GridSearchCV(pipe, {"logisticregression__C": [0.1, 1.0]}, cv=3)
        search.fit(X, task, concept=concepts)
    assert len(scores) == 3
    assert len(seen) == 3 + 6 + 1
    assert max(seen) < 1e-9
    grid = GridSearchCV(
        ex.RLACE(), {"rank": [1, 3]}, scoring=lambda e, X, y: -gap(e.transform(X), y["sex"])
    )
    grid.fit(X, concepts)
    assert grid.best_params_ == {"rank": 3}


def test_names_survive_cross_validation():
    frame = people().drop(columns=["sex", "age"])
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = make_pipeline(ex.LEACE().set_fit_request(concept=True), LogisticRegression())
        params = {"concept": "race"}
        scores = cross_val_score(pipe, frame.drop(columns="job"), frame["job"], params=params)
    assert len(scores) == 5
    assert np.isfinite(scores).all()


def test_a_routed_concept_that_is_forgotten_is_an_error():
    frame = people()
    with sklearn.config_context(enable_metadata_routing=True):
        for name in (True, "hidden"):
            eraser = ex.LEACE().set_fit_request(concept=name)
            pipe = make_pipeline(eraser, LogisticRegression())
            assert_refused("no concept", pipe.fit, frame[NAMES], frame["job"])
            assert_refused("no concept", eraser.partial_fit, frame[NAMES], frame["job"])
            pipe.fit(
                frame[NAMES], frame["job"], **{"concept" if name is True else name: frame["sex"]}
            )
            assert gap(pipe[:-1].transform(frame[NAMES]), frame["sex"]) < 1e-10
        ex.LEACE().set_fit_request(concept=False).fit(frame[NAMES], frame["job"])
    ex.LEACE().fit(frame[NAMES], frame["job"])


def test_kinds_of_concepts_by_name():
    frame = people().drop(columns="job")
    frame["n_counts"] = np.random.default_rng(1).integers(0, 50, N)
    kinds = {"n_counts": "continuous"}
    eraser = ex.LEACE(concept_type=kinds).fit(
        frame.drop(columns="age"), concept=["n_counts", "race", "sex"]
    )
    assert eraser.erasure_.meta["concept"]["labels"][:2] == ["n_counts", "race=x"]
    assert eraser.erasure_.meta["parameters"]["concept_type"] == kinds
    one = ex.LEACE(concept_type=kinds)
    for call in (
        lambda: one.fit(frame[[*NAMES, "n_counts"]], concept="n_counts"),
        lambda: one.fit(frame[NAMES], frame["n_counts"]),
        lambda: one.fit(frame[NAMES], frame[["n_counts", "sex"]]),
        lambda: one.fit(frame[NAMES], {"n_counts": frame["n_counts"]}),
    ):
        assert call().erasure_.meta["concept"]["kind"] == "continuous"
    assert_refused("speaks of 'n_counts'", one.fit, frame[NAMES], frame["sex"])
    bad = ex.LEACE(concept_type={"sex": "colour"})
    assert_refused("concept_type", bad.fit, frame[NAMES], frame["sex"])


def test_frames_of_one_kind_stay_one_matrix():
    frame = people()
    numbers = pd.DataFrame({"u": frame["age"], "v": frame["age"] ** 2})
    assert ex.LEACE().fit(frame[NAMES], numbers).erasure_.meta["concept"] == {
        **{"kind": "continuous", "labels": ["u", "v"]}
    }
    yes = pd.DataFrame({"u": frame["sex"] == "f", "v": frame["job"]})
    assert ex.LEACE().fit(frame[NAMES], yes).erasure_.meta["concept"]["labels"] == ["u", "v"]
    codes = pd.DataFrame({"u": frame["race"].cat.codes.astype(int), "v": frame["age"]})
    labels = ex.LEACE().fit(frame[NAMES], codes).erasure_.meta["concept"]["labels"]
    assert labels == ["u=1", "u=2", "u=3", "v"]


def test_a_saved_erasure_knows_its_columns(tmp_path):
    frame = people()
    table = frame[[*NAMES, "race"]]
    ex.LEACE().fit(table, concept="race").erasure_.save(tmp_path / "race.safetensors")
    e = ex.Erasure.load(tmp_path / "race.safetensors")
    right = e(frame[NAMES].to_numpy())
    np.testing.assert_array_equal(e(table[["race", *NAMES[::-1]]]), right)
    np.testing.assert_array_equal(e(pl.from_pandas(frame[NAMES[::-1]])), right)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(e))(frame[NAMES[::-1]]), right)
    assert_refused("'e' missing", e, frame[NAMES[:4]])
    assert_refused("'age' unknown", e, frame[[*NAMES, "age"]])
    assert_refused("'a' missing, 'A' unknown", e, table.rename(columns={"a": "A"}))
    with pytest.raises(ValueError, match="same order"):  # scikit-learn's own rule for estimators
        ex.LEACE().fit(table, concept="race").transform(table[["race", *NAMES[::-1]]])
    other = ex.LEACE().fit(frame[NAMES[::-1]], frame["sex"])
    assert_refused("same order", e.then, other)
    both = e.then(ex.LEACE().fit(frame[NAMES], frame["sex"]))
    np.testing.assert_array_equal(both(frame[NAMES[::-1]]), both(frame[NAMES].to_numpy()))


@pytest.mark.parametrize(
    "columns", [["a"], {"vectors": 3}, {"vectors": ["a", "a"]}, {"vectors": "e", "beside": []}]
)
def test_damaged_columns_are_refused(columns):
    assert_refused(
        "damaged", ex.Erasure, np.eye(2)[:, :1], np.eye(2)[:1], meta={"columns": columns}
    )


def test_everything_that_takes_rows_takes_names():
    train, test = people(), people(1)
    keep = [*NAMES, "race", "job"]
    train, test = train[keep], test[keep]
    eraser = ex.LEACE().fit(train, "job", concept="race")
    assert eraser.erasure_.meta["columns"]["beside"] == ["job", "race"]
    assert ex.certify(eraser, train, "race").erased
    a = ex.audit(eraser, train, "race", test, "race", task="job", probes="linear").to_dict()
    X, y = train[NAMES].to_numpy(), train["race"].astype(str).to_numpy()
    jobs = train["job"].to_numpy(), test["job"].to_numpy()
    fresh = test[NAMES].to_numpy(), test["race"].astype(str).to_numpy()
    b = ex.audit(eraser.erasure_, X, y, *fresh, task=jobs, probes="linear").to_dict()
    assert a["fairness"] is not None
    assert a["verdict"] == b["verdict"]
    plain = ex.compare(X, y, methods=["LEACE"], probes="linear", task=train["job"].to_numpy())
    named = ex.compare(train, "race", methods=["LEACE"], probes="linear", task="job")
    assert [row.linear.mean for row in named.rows] == [row.linear.mean for row in plain.rows]
    path = ex.rank_path(
        train[[*NAMES, "race"]], "race", ranks=[2], X_test=test[[*NAMES, "race"]], y_test="race"
    )
    assert path.points[-1].score == pytest.approx(1 / 3)
    small = train[[*NAMES, "race"]]
    assert ex.plan_labels(small, "race").labels == ex.plan_labels(X, y).labels
    oracle = ex.OracleLEACE().fit(small, concept="race")
    assert gap(oracle.transform(small, concept="race"), y) < 1e-10
    assert gap(oracle.conditional_erasure_(small, "race"), y) < 1e-10
    assert gap(ex.OracleLEACE().fit_transform(small, concept="race"), y) < 1e-10
    several = ex.OracleLEACE().fit(train, concept=["race", "job"])
    assert gap(several.transform(train[NAMES], concept=train[["race", "job"]]), y) < 1e-10
    weighted = ex.LEACE().fit(
        people()[[*NAMES, "race", "age"]].assign(age=1.0), concept="race", sample_weight="age"
    )
    np.testing.assert_allclose(weighted.erasure_(X), ex.LEACE().fit(X, y).transform(X), atol=1e-10)
    stream = ex.LEACE()
    for part in (small.iloc[:100], small.iloc[100:]):
        stream.partial_fit(part, concept="race")
    np.testing.assert_allclose(stream.erasure_(small), ex.LEACE().fit(X, y).transform(X), atol=1e-9)
    assert stream.erasure_.meta["columns"]["vectors"] == NAMES


def test_missing_labels_of_a_column():
    frame = people()[[*NAMES, "race"]]
    frame.loc[frame.index[:30], "race"] = None
    assert_refused("labels are missing", ex.LEACE().fit, frame, concept="race")
    eraser = ex.LEACE().fit(frame, concept="race", missing="unlabelled")
    assert eraser.erasure_.meta["n"] == N - 30
    counts = people()[NAMES].assign(n=pd.array([None, *np.resize([1, 2], N - 1)], dtype="Int64"))
    assert_refused("NaN", ex.LEACE().fit, counts, concept="n")
    whole = counts.iloc[1:]
    assert ex.LEACE().fit(whole, concept="n").erasure_.meta["concept"]["labels"] == [1, 2]


def test_an_arrow_dictionary_is_labels():
    frame = people()
    race = pa.array(frame["race"].astype(str)).dictionary_encode()
    table = pa.Table.from_pandas(frame[NAMES], preserve_index=False).append_column("race", race)
    assert ex.LEACE().fit(table, concept="race").erasure_.meta["concept"]["labels"] == [*"xyz"]


def bad_lists(change):
    frame = listed(people(), "pandas")
    vectors = list(frame["embedding"])
    change(vectors)
    return frame.assign(embedding=pd.Series(vectors, index=frame.index, dtype=object))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (
            lambda v: v.__setitem__(3, v[3][:2]),
            "has 2 numbers, and the first one 5. Received row 3",
        ),
        (lambda v: v.__setitem__(4, None), "missing .null.. Received row 4"),
        (
            lambda v: v.__setitem__(5, [1.0, None, 2.0, 3.0, 4.0]),
            "entry that is missing. Received row 5",
        ),
        (lambda v: v.__setitem__(6, "text"), "cannot be read"),
        (lambda v: v.__setitem__(7, np.eye(5)), "cannot be read"),
        (
            lambda v: v.__setitem__(8, [1.0, 2.0, 3.0, 4.0, np.nan]),
            "entry that is missing. Received row 8",
        ),
    ],
)
def test_odd_lists_are_refused_with_their_row(change, match):
    error = assert_refused(match, ex.LEACE().fit, bad_lists(change), concept="race")
    assert len(str(error)) < 400


def test_what_cannot_be_chosen_is_said():
    frame = people()
    fit = ex.LEACE().fit
    assert_refused(
        "'rac', which the table does not have; the nearest is 'race'", fit, frame, concept="rac"
    )
    assert_refused("columns that are not numbers", fit, frame, concept="race")  # sex is text
    assert_refused("There is no column 'emb'", fit, frame, concept="race", vectors="emb")
    assert_refused("holds no numbers", fit, frame, concept="race", vectors="sex")
    assert_refused("No column is left", fit, frame[["race"]], concept="race")
    two = listed(frame, "pandas")
    two["other"] = two["embedding"]
    assert_refused("Several columns of lists", fit, two, concept="race")
    assert_refused(
        "one column of lists, or", fit, two, concept="race", vectors=["other", "embedding"]
    )
    assert_refused("is no table", fit, frame[NAMES].to_numpy(), frame["sex"], vectors="a")
    assert_refused("these rows have none", fit, frame[NAMES].to_numpy(), concept="race")
    twice = pd.concat([frame[NAMES], frame[["a"]]], axis=1)
    assert_refused("unique|same name", fit, twice, concept="race")
    short = assert_refused(
        "not numeric", fit, pd.DataFrame({"o": [np.eye(40)] * 5}), [0, 1, 0, 1, 0]
    )
    assert len(str(short)) < 400  # however much there is


def test_names_that_are_no_text():
    frame = people()
    plain = pd.DataFrame(frame[NAMES].to_numpy())
    plain["race"] = frame["race"].to_numpy()
    eraser = ex.LEACE().fit(plain, concept="race")
    assert gap(eraser.transform(plain), plain["race"]) < 1e-10
    assert "columns" not in eraser.erasure_.meta
    levels = frame[[*NAMES, "race"]]
    levels.columns = pd.MultiIndex.from_tuples([*(("v", name) for name in NAMES), ("race", "")])
    assert_refused("'race', which the table does not have", ex.LEACE().fit, levels, concept="race")
    eraser = ex.LEACE().fit(levels["v"], levels["race"])
    assert gap(eraser.transform(levels["v"]), frame["race"]) < 1e-10
    both = ex.LEACE().fit(levels[[("v", name) for name in NAMES]], frame["race"])
    assert both.transform(levels[[("v", name) for name in NAMES]]).shape == (N, 5)


def test_rows_of_a_table_pickle_and_meta_is_plain():
    frame = people()[[*NAMES, "race"]]
    eraser = pickle.loads(pickle.dumps(ex.LEACE().fit(frame, concept="race")))
    assert eraser.transform(frame).shape == (N, 5)
    json.dumps(eraser.erasure_.meta)
    rows = rows_of_table(frame, "race")
    assert_refused("'sx'", rows.column, "sx")
    assert rows.take(np.arange(3)).array().shape == (3, 5)


def test_names_in_an_array_or_an_index():
    frame = people().drop(columns=["age", "job"])
    for names in (np.array(["race", "sex"]), pd.Index(["race", "sex"]), ("race", "sex")):
        labels = ex.LEACE().fit(frame, concept=names).erasure_.meta["concept"]["labels"]
        assert labels[-1] == "sex=m"
    assert ex.LEACE().fit(frame, concept="race", vectors=pd.Index(NAMES)).n_features_in_ == 5
    few = frame[NAMES].iloc[:6]
    y = np.array(["a", "b", "c", "a", "b", "c"], dtype=object)  # classes, not all of them names
    assert ex.LEACE().fit(few, y).erasure_.meta["concept"]["labels"] == ["a", "b", "c"]
    assert_refused("name of a column", ex.LEACE().fit, frame, concept="race", vectors=3)


def test_a_frame_on_a_cluster_is_put_in_order_too():
    dd = pytest.importorskip("dask.dataframe")
    frame = people()[[*NAMES, "race"]]
    erasure = ex.LEACE().fit(frame, concept="race").erasure_
    parts = dd.from_pandas(frame[["race", *NAMES[::-1]]], npartitions=2, sort=False)
    found = erasure(parts).compute()
    assert list(found.columns) == ["race", *NAMES[::-1]]  # what is beside the vectors stays there
    np.testing.assert_allclose(found[NAMES], erasure(frame), atol=1e-12)
    assert_refused("'a' missing", erasure, parts[NAMES[1:]])
    assert ex.LEACE().fit(parts, concept="race", vectors=NAMES).certificate_.erased


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (pd.Series([1.5, None, "?", 2.0] * 15, dtype=object), "'?' in row 2, column 'odd'"),
        (pd.Series([1.5, pd.NA, 2.0, 2.5] * 15, dtype=object), "<NA> in row 1, column 'odd'"),
        (pd.array([True, None, False, True] * 15, dtype="boolean"), "<NA> in row 1, column 'odd'"),
    ],
)
def test_an_entry_that_is_no_number_is_named_with_its_column(values, said):
    frame = pd.DataFrame({"a": np.arange(60.0), "odd": values, "b": np.ones(60)})
    y = np.arange(60) % 2
    assert_refused(said, ex.LEACE().fit, frame, y)
    assert_refused(said, ex.LEACE().fit, frame.assign(sex=y), concept="sex")
    assert_refused(said, ex.LEACE().fit(frame[["a", "b"]].assign(odd=y), y[::-1]).transform, frame)
    array = frame.to_numpy(dtype=object)
    assert_refused(said.replace("'odd'", "1"), ex.LEACE().fit, array, y)


@pytest.mark.parametrize("cluster", [False, True])
def test_what_is_named_later_need_not_have_been_in_the_fit(cluster):
    """An id and a task beside the columns of the fit were "unknown", though they were named."""
    rng = np.random.default_rng(0)
    sex, job = rng.choice(["f", "m"], 1200), rng.integers(0, 2, 1200)
    frame = pd.DataFrame(rng.normal(size=(1200, 4)), columns=list("abcd"))
    frame["a"] += sex == "m"
    frame = frame.assign(sex=sex)
    erasure = ex.LEACE().fit(frame[:600], "sex").erasure_
    new = frame[600:].assign(job=job[600:], id=np.arange(600))
    plain = ex.audit(erasure, X_test=frame[600:], y_test="sex", probes=["linear discriminant"])
    if cluster:
        dd = pytest.importorskip("dask.dataframe")
        new = dd.from_pandas(new, npartitions=2)
    named = {"y_test": "sex", "task": "job", "ids": "id"}
    found = ex.audit(erasure, X_test=new, **named, probes=["linear discriminant"])
    assert found.to_dict()["fairness"] is not None
    before = plain.fresh_rows.before["linear"].strongest.value
    assert found.fresh_rows.before["linear"].strongest.value == pytest.approx(before, abs=0.05)
    with pytest.raises(ex.InputError, match="'job' unknown"):
        ex.audit(erasure, X_test=new, y_test="sex", ids="id", probes=["linear discriminant"])
