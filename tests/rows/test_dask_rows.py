"""Dask collections as rows: partitions, labels, names, what is lazy, what is sent."""

import pickle

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import expunge as ex
from expunge.audit import Sizes
from expunge.rows.dask_graph import Runner, each, tree
from expunge.rows.dask_parts import FileParts, PartedColumn
from expunge.rows.dask_rows import DaskRows
from planted import KINDS, plant

LISTS = pd.ArrowDtype(pa.list_(pa.float32()))


def people(n=600, lists=False):
    data = plant("classes", n=n)
    names = np.asarray(data.y).astype(str)
    vectors = {f"e{j}": data.X[:, j].astype(np.float32) for j in range(8)}
    if lists:
        vectors = {"embedding": pd.Series(list(data.X.astype(np.float32)), dtype=LISTS)}
    frame = pd.DataFrame(
        {"job": names, **vectors, "age": np.arange(n) % 90, "w": 1.0 + data.X[:, 0] ** 2}
    )
    frame.index = pd.Index(np.arange(n) * 10, name="id")
    return data, frame


def same_map(found, expected, close=1e-9):
    size = np.abs(expected.erasure_.matrix()).max()
    np.testing.assert_allclose(
        found.erasure_.matrix(), expected.erasure_.matrix(), rtol=0, atol=close * size
    )


# -- what is taken -------------------------------------------------------------------------------


@pytest.mark.parametrize("lists", [False, True])
def test_columns_of_a_frame_by_name(lists):
    _, frame = people(lists=lists)
    ddf = dd.from_pandas(frame, npartitions=4)
    X = (
        np.stack(frame["embedding"])
        if lists
        else frame.filter(like="e").filter(regex=r"e\d").to_numpy()
    )
    X = X.astype(np.float32)
    vectors = "embedding" if lists else None
    rows = ex.cluster_rows(ddf, vectors=vectors)
    assert rows.dtype == np.float32
    assert rows.columns == ("job", "age", "w")
    found = ex.LEACE().fit(rows, concept="job", sample_weight="w")
    same_map(found, ex.LEACE().fit(X, frame["job"], sample_weight=frame["w"]))
    assert found.certificate_.erased
    with pytest.raises(ex.InputError, match="nearest is 'job'"):
        ex.LEACE().fit(rows, concept="jobs")


@pytest.mark.parametrize("text", [False, True])
def test_columns_that_something_names_are_no_vectors(text):
    rng = np.random.default_rng(0)
    age, years = rng.normal(40, 10, 600), rng.integers(0, 20, 600)
    X = rng.normal(size=(600, 3)) + np.outer(age, [1, 0.5, 0])
    frame = pd.DataFrame(X, columns=list("abc")).assign(years=years, age=age)
    frame["weight"] = 1 + rng.random(600)
    here = frame.drop(columns="years") if text else frame  # beside text, whole numbers are left
    given = {"concept": "age", "sample_weight": "weight"}
    expected = ex.LEACE().fit(here, **given)
    assert np.abs(np.corrcoef(age, frame["a"])[0, 1]) > 0.9
    frame = frame.assign(name="someone") if text else frame
    found = ex.LEACE().fit(dd.from_pandas(frame, npartitions=4), **given)
    assert found.erasure_.columns.names == expected.erasure_.columns.names
    same_map(found, expected)
    clean = found.transform(dd.from_pandas(frame, npartitions=3)).compute()
    assert np.abs(np.corrcoef(age, clean["a"])[0, 1]) < 0.1
    np.testing.assert_array_equal(clean["age"], age)


def test_a_concept_among_the_vectors_is_said():
    ddf = dd.from_pandas(pd.DataFrame(np.eye(4), columns=list("abcd")), 2)
    with pytest.raises(ex.InputError, match=r"one of the vectors.*'d'.*vectors="):
        ex.LEACE().fit(ex.cluster_rows(ddf), concept="d")


def test_labels_in_a_list_are_no_names():
    rng = np.random.default_rng(0)
    y = ["f", "m"] * 20
    frame = dd.from_pandas(pd.DataFrame(rng.normal(size=(40, 3)), columns=list("fgh")), 2)
    assert ex.LEACE().fit(frame, y).n_features_in_ == 3


def test_a_frame_goes_in_and_a_frame_comes_out():
    _, frame = people()
    ddf = dd.from_pandas(frame, npartitions=4)
    eraser = ex.LEACE().fit(ddf, concept="job", vectors="e*")
    clean = eraser.transform(ddf)
    assert isinstance(clean, dd.DataFrame)
    assert (clean.npartitions, clean.divisions) == (4, ddf.divisions)
    pd.testing.assert_frame_equal(clean._meta, ddf._meta)
    found = clean.compute()
    pd.testing.assert_frame_equal(found[["job", "age", "w"]], ddf[["job", "age", "w"]].compute())
    pd.testing.assert_series_equal(found.dtypes, ddf.compute().dtypes)
    X = frame.filter(regex=r"e\d").to_numpy()
    np.testing.assert_allclose(
        found.filter(regex=r"e\d").to_numpy(), eraser.erasure_.transform(X), atol=1e-6
    )


def test_lists_stay_lists():
    _, frame = people(lists=True)
    ddf = dd.from_pandas(frame, npartitions=3)
    eraser = ex.MeanProjection().fit(ddf, concept="job")
    found = eraser.transform(ddf).compute()
    assert found["embedding"].dtype == LISTS
    assert found.index.equals(frame.index)
    expected = eraser.erasure_.transform(np.stack(frame["embedding"]).astype(np.float32))
    np.testing.assert_allclose(np.stack(found["embedding"]), expected, atol=1e-6)


def test_columns_that_are_chunked_and_lengths_that_are_unknown():
    data, _ = people()
    X = data.X
    dX, dy = da.from_array(X, chunks=(170, 3)), da.from_array(np.asarray(data.y), chunks=50)
    same_map(ex.LEACE().fit(dX, dy), ex.LEACE().fit(X, data.y))
    unknown = dd.from_pandas(pd.DataFrame(X), npartitions=3).to_dask_array()
    assert np.isnan(unknown.shape[0])
    same_map(ex.LEACE().fit(unknown, data.y), ex.LEACE().fit(X, data.y))
    labels = dd.from_pandas(pd.Series(np.asarray(data.y)), npartitions=3)
    same_map(ex.LEACE().fit(unknown, labels), ex.LEACE().fit(X, data.y))
    assert ex.LEACE().fit(unknown, labels).transform(unknown).npartitions == 3


@pytest.mark.parametrize("kind", KINDS)
def test_labels_of_every_kind_as_dask(kind):
    data = plant(kind, n=500)
    y = np.asarray(data.y)
    dX, dy = da.from_array(data.X, chunks=(120, 8)), da.from_array(y, chunks=120)
    found, expected = ex.LEACE().fit(dX, dy), ex.LEACE().fit(data.X, y)
    same_map(found, expected)
    assert found.erasure_.meta["concept"] == expected.erasure_.meta["concept"]


def test_several_concepts_and_a_task():
    _, frame = people()
    ddf = dd.from_pandas(frame, npartitions=4)
    X = frame.filter(regex=r"e\d").to_numpy()
    both = ex.LEACE().fit(ddf, ["job", "w"], vectors="e*")
    same_map(both, ex.LEACE().fit(X, {"job": frame["job"], "w": frame["w"]}))
    frame["t"] = (frame["age"] > 40).astype(int)
    ddf = dd.from_pandas(frame, npartitions=4)
    found = ex.SPLINCE().fit(ddf, "t", concept="job", vectors="e*")
    same_map(found, ex.SPLINCE().fit(X, frame["t"], concept=frame["job"]))


def test_told_at_transform_time():
    _, frame = people()
    ddf = dd.from_pandas(frame, npartitions=4)
    X = frame.filter(regex=r"e\d").to_numpy()
    found = ex.OracleLEACE().fit(ddf, concept="job", vectors="e*")
    clean = found.transform(ddf, concept="job")
    assert clean.divisions == ddf.divisions
    expected = ex.OracleLEACE().fit(X, frame["job"]).transform(X, concept=frame["job"])
    np.testing.assert_allclose(clean.compute().filter(regex=r"e\d").to_numpy(), expected, atol=1e-5)


def test_what_is_refused():
    data, frame = people()
    dX = da.from_array(data.X, chunks=(120, 8))
    with pytest.raises(ex.InputError, match="inconsistent numbers of samples"):
        ex.LEACE().fit(dX, da.zeros(599, chunks=100))
    with pytest.raises(ex.InputError, match="two dimensions"):
        ex.cluster_rows(dX[:, 0])
    with pytest.raises(ex.InputError, match="Complex"):
        ex.LEACE().fit(dX * 1j, data.y)
    with pytest.raises(ex.InputError, match="1 class"):
        ex.LEACE().fit(dX, da.zeros(600, chunks=120, dtype=int))
    with pytest.raises(ex.InputError, match="expecting 8 features"):
        ex.LEACE().fit(dX, data.y).transform(dX[:, :5])
    missing = frame["job"].astype(object).where(np.arange(600) != 333, None)
    labels = dd.from_pandas(missing, npartitions=3)
    with pytest.raises(ex.InputError, match=r"labels are missing.*partition 1"):
        ex.LEACE().fit(dX.rechunk((200, 8)), labels)
    ragged = pd.DataFrame({"v": pd.Series([[1.0, 2.0]] * 5 + [[1.0]], dtype=LISTS)})
    with pytest.raises(ex.InputError, match="row 5 of partition 0"):
        ex.cluster_rows(dd.from_pandas(ragged, npartitions=1)).array()


def test_a_partition_with_nan_names_itself():
    X = plant("binary", n=600).X.copy()
    X[333, 5] = np.nan
    dX = da.from_array(X, chunks=(100, 8))
    with pytest.raises(ex.InputError, match=r"row 333, column 5, in partition 3 .*at row 300"):
        ex.LEACE().fit(dX, np.arange(600) % 2)
    clean = ex.LEACE().fit(X[:300], np.arange(300) % 2).transform(dX)
    with pytest.raises(ex.InputError, match=r"first is row 33, counted within partition 3"):
        clean.compute()


# -- what is lazy, and what is sent --------------------------------------------------------------


def counting(X, chunks):
    """A Dask array that counts how often each of its chunks is made."""
    made = []

    def chunk(block_info=None):
        at = block_info[None]["array-location"]
        made.append(at[0][0])
        return X[tuple(slice(*where) for where in at)]

    sizes = da.core.normalize_chunks(chunks, X.shape)
    return da.map_blocks(chunk, chunks=sizes, dtype=X.dtype, meta=X[:0]), made


def test_transform_reads_nothing_and_a_fit_reads_each_chunk_once():
    data = plant("binary", n=500)
    dX, made = counting(data.X, (100, 8))
    eraser = ex.LEACE().fit(dX, data.y)
    assert sorted(made) == [0, 100, 200, 300, 400]
    made.clear()
    clean = eraser.transform(dX)
    assert not made
    assert clean.chunks == dX.chunks
    clean[:100].compute()
    assert made == [0]
    told = ex.OracleLEACE().fit(data.X, data.y).transform(dX, concept=data.y)
    assert made == [0]
    assert told.shape == dX.shape


def test_rows_by_number_read_only_their_partitions():
    data = plant("binary", n=500)
    dX, made = counting(data.X, (100, 8))
    rows = ex.cluster_rows(dX)
    np.testing.assert_array_equal(rows.take(np.array([499, 3, 3])).array(), data.X[[499, 3, 3]])
    assert sorted(made) == [0, 400]


def test_few_partitions_are_in_flight():
    data = plant("binary", n=2000)
    dX, made = counting(data.X, (50, 8))
    blocks = ex.cluster_rows(dX).blocks()
    next(blocks)
    assert len(made) <= 3
    blocks.close()


def graph_bytes(lazy):
    return {key: len(pickle.dumps(task)) for key, task in dict(lazy.__dask_graph__()).items()}


class Recorder(Runner):
    """Keeps the graphs it runs."""

    def __init__(self):
        super().__init__()
        self.graphs = []

    def compute(self, values):
        self.graphs += [value.__dask_graph__() for value in values]
        return super().compute(values)


@pytest.mark.parametrize("eraser", [ex.LEACE(), ex.RLACE(rank=1)])
def test_graphs_grow_with_partitions_and_not_with_rows(eraser, tmp_path, monkeypatch):
    """Labels that are on the cluster are not sent there: no task holds anything of size n."""
    monkeypatch.setattr("expunge.game.problem.HELD", 0)
    monkeypatch.setattr("expunge.game.survey.HELD", 0, raising=False)

    def sizes(n, partitions):
        _, frame = people(n)
        folder = tmp_path / f"{n}-{partitions}"
        folder.mkdir()
        for at, part in enumerate(np.array_split(np.arange(n), partitions)):
            pq.write_table(pa.Table.from_pandas(frame.iloc[part]), folder / f"{at:02}.parquet")
        file, runner = ex.open_rows(folder, vectors="e*").file, Recorder()
        type(eraser)(**eraser.get_params()).fit(DaskRows(FileParts(file, runner)), concept="job")
        graphs = [dict(graph) for graph in runner.graphs]
        largest = max(len(pickle.dumps(task)) for graph in graphs for task in graph.values())
        return max(map(len, graphs)), largest

    few, many = sizes(12_000, 6), sizes(12_000, 12)
    assert few[0] < many[0] < 2.3 * few[0]
    long = sizes(36_000, 6)
    assert long[0] == few[0]
    assert long[1] < few[1] + 1024


def test_labels_of_a_client_are_sent_as_bytes():
    data = plant("classes", n=500)
    rows = ex.cluster_rows(da.from_array(data.X, chunks=(100, 8)))
    values = np.unique(data.y, return_inverse=True)[1]
    assert rows._slices(values)[1].nbytes == 100
    assert rows._slices(np.ones(500))[0].nbytes == 100


def test_labels_on_the_cluster_are_found_again_and_forgotten():
    _, frame = people()
    rows = ex.cluster_rows(dd.from_pandas(frame, npartitions=4))
    from expunge.inputs import check_concept

    concept = check_concept("job", rows)
    assert concept.values.dtype == np.int32
    assert all(dask.is_dask_collection(part) for part in rows._slices(concept.values))
    (codes,) = rows.runner.compute([rows._slices(concept.values)[1]])
    np.testing.assert_array_equal(codes, concept.values[150:300])
    del concept
    assert not rows._known


def test_a_tree_merges_in_order():
    found = Runner().compute([tree(each(str, range(100)), "".join)])[0]
    assert found == "".join(map(str, range(100)))
    lazy = tree(each(str, range(100)), "".join)
    assert len(dict(lazy.__dask_graph__())) < 120


def test_a_column_knows_its_shape():
    column = PartedColumn(each(np.arange, [3, 0, 2]), (3, 0, 2), Runner())
    assert (len(column), column.shape) == (5, (5,))
    assert column.gather().tolist() == [0, 1, 2, 0, 1]


# -- audit, certify ------------------------------------------------------------------------------


def test_audit_and_certify():
    _, frame = people(800)
    ddf = dd.from_pandas(frame, npartitions=4)
    X = frame.filter(regex=r"e\d").to_numpy()
    train, test = ddf.partitions[:2], ddf.partitions[2:]
    eraser = ex.LEACE().fit(train, concept="job", vectors="e*")
    some = ["linear discriminant", "nearest neighbours"]
    found = ex.audit(eraser, train, "job", test, "job", probes=some)
    half, y = len(train), frame["job"]
    expected = ex.audit(eraser, X[:half], y[:half], X[half:], y[half:], probes=some)
    ours, theirs = found.to_dict(), expected.to_dict()
    assert ours["verdict"] == theirs["verdict"]
    a = ex.certify(eraser, train, train["job"])
    b = ex.certify(eraser, X[:half], frame["job"][:half])
    assert a.erased
    assert a.bound == pytest.approx(b.bound)


# -- writing -------------------------------------------------------------------------------------


def parquet_folder(folder, n=600, shards=4):
    data, frame = people(n)
    folder.mkdir()
    for at, part in enumerate(np.array_split(np.arange(n), shards)):
        table = pa.Table.from_pandas(frame.iloc[part], preserve_index=False)
        pq.write_table(table, folder / f"{at:02}.parquet", row_group_size=60)
    return data, frame


def content(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_folders_of_files_are_written_as_one_machine_writes_them(tmp_path):
    parquet_folder(tmp_path / "in")
    rows = ex.cluster_rows(tmp_path / "in", vectors="e*")
    eraser = ex.LEACE().fit(rows, concept="job")
    clean = eraser.transform(rows, out=tmp_path / "out")
    assert isinstance(clean, DaskRows)
    assert clean.columns == ("job", "age", "w")
    eraser.transform(ex.open_rows(tmp_path / "in", vectors="e*"), out=tmp_path / "alone")
    assert content(tmp_path / "out") == content(tmp_path / "alone")
    told = ex.OracleLEACE().fit(rows, concept="job")
    told.transform(rows, concept="job", out=tmp_path / "told")
    files = ex.open_rows(tmp_path / "in", vectors="e*")
    told.transform(files, concept="job", out=tmp_path / "told alone")
    assert content(tmp_path / "told") == content(tmp_path / "told alone")
    assert {path.name for path in tmp_path.iterdir()} == {
        "in",
        "out",
        "alone",
        "told",
        "told alone",
    }


def test_frames_and_arrays_are_written_to_folders(tmp_path):
    data, frame = people()
    ddf = dd.from_pandas(frame, npartitions=3)
    eraser = ex.LEACE().fit(ddf, concept="job", vectors="e*")
    clean = eraser.transform(ddf, out=tmp_path / "frames")
    assert clean.n_samples == 600
    assert "job" in clean.columns
    lazy = eraser.transform(ddf).compute().filter(regex=r"e\d").to_numpy()
    np.testing.assert_array_equal(clean.array(), lazy)
    dX = da.from_array(data.X, chunks=(200, 8))
    eraser.transform(dX, out=tmp_path / "arrays")
    written = ex.open_rows(tmp_path / "arrays").array()
    np.testing.assert_array_equal(written, eraser.transform(dX).compute())
    eraser.transform(dX, out=tmp_path / "arrays")  # what was written before is replaced


def test_nothing_is_left_of_a_folder_that_went_wrong(tmp_path):
    data, _ = people()
    X = data.X.copy()
    X[450, 2] = np.inf
    dX = da.from_array(X, chunks=(100, 8))
    eraser = ex.LEACE().fit(data.X, data.y)
    with pytest.raises(ex.InputError, match="partition 4"):
        eraser.transform(dX, out=tmp_path / "out")
    assert not list(tmp_path.iterdir())
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(ex.InputError, match=r"other things.*letter.txt"):
        eraser.transform(da.from_array(data.X), out=tmp_path / "mine")
    parquet_folder(tmp_path / "in")
    rows = ex.cluster_rows(tmp_path / "in", vectors="e*")
    with pytest.raises(ex.InputError, match="into its folder"):
        eraser.transform(rows, out=tmp_path / "in")


def test_an_audit_asks_for_some_rows_only(monkeypatch):
    """What is asked of every row is worked out where they are; the rest is a sample."""
    fitted = plant("classes", n=2000, seed=1)
    erasure = ex.LEACE().fit(fitted.X, fitted.y).erasure_
    terms = {"probes": "linear", "sizes": Sizes(500, 500, 500)}
    sizes = ("content.BASE", "content.CLUSTERED", "certificates.ROWS", "near_copies.ROWS")
    for name in sizes:
        monkeypatch.setattr(f"expunge.audit.{name}", 500)
    data = plant("classes", n=12_000)
    expected = ex.audit(erasure, None, None, data.X, data.y, **terms)
    taken, take = [], DaskRows.take

    def counted(self, index):
        taken.append(len(index))
        return take(self, index)

    def stream(self):
        raise AssertionError("all rows come here")

    monkeypatch.setattr(DaskRows, "take", counted)
    monkeypatch.setattr(DaskRows, "blocks", stream)

    def audited(n):
        taken.clear()
        X, y = da.from_array(data.X[:n], chunks=(500, 8)), da.from_array(data.y[:n], chunks=500)
        return ex.audit(erasure, None, None, X, y, **terms), sum(taken)

    few, many = audited(6_000), audited(12_000)
    assert 0 < many[1] <= few[1] + 100
    assert many[0].verdict == expected.verdict
    (there, here) = (found.to_dict()["damage"] for found in (many[0], expected))
    for name in ("variance_kept", "mean_squared_change", "rank_correlation"):
        np.testing.assert_allclose(there[name], here[name], rtol=1e-9, err_msg=name)
