"""An erasure knows the columns of its fit, of a Dask frame or a file as of a frame in memory."""

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import expunge as ex
from planted import plant

NAMES = list("abcdefgh")


@pytest.fixture
def frame():
    data = plant("classes")
    return pd.DataFrame(data.X, columns=NAMES).assign(y=np.asarray(data.y), name="x")


def as_dask(frame, folder):
    return dd.from_pandas(frame, npartitions=3)


def as_parquet(frame, folder):
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), folder / "x.parquet")
    return ex.open_rows(folder / "x.parquet")


def as_folder(frame, folder):
    (folder / "x").mkdir(exist_ok=True)
    for at, part in enumerate(np.array_split(np.arange(len(frame)), 3)):
        table = pa.Table.from_pandas(frame.iloc[part], preserve_index=False)
        pq.write_table(table, folder / "x" / f"{at}.parquet")
    return ex.cluster_rows(folder / "x")


def as_csv(frame, folder):
    frame.to_csv(folder / "x.csv", index=False)
    return ex.open_rows(folder / "x.csv")


HOMES = [as_dask, as_parquet, as_folder, as_csv]


def values(found, names=NAMES):
    found = found.compute() if hasattr(found, "compute") else found
    return found[names].to_numpy() if isinstance(found, pd.DataFrame) else np.asarray(found)


@pytest.mark.parametrize("home", HOMES)
def test_columns_are_known_put_in_order_and_refused(home, frame, tmp_path):
    found = ex.LEACE().fit(home(frame, tmp_path), concept="y").erasure_
    assert found.meta["columns"]["vectors"] == NAMES
    found.save(tmp_path / "e.safetensors")
    saved = ex.Erasure.load(tmp_path / "e.safetensors")
    expected = ex.LEACE().fit(frame[NAMES], frame["y"]).transform(frame[NAMES])
    other = frame[["name", *reversed(NAMES), "y"]]
    assert abs(frame["a"] - frame["h"]).max() > 1  # that is another order
    np.testing.assert_allclose(values(saved.transform(other[reversed(NAMES)])), expected, atol=1e-9)
    for again in HOMES:
        rows = again(other, tmp_path)
        np.testing.assert_allclose(values(saved.transform(rows)), expected, atol=1e-9)
        with pytest.raises(ex.InputError, match=r"'c' missing"):
            saved.transform(again(other.rename(columns={"c": "k"}), tmp_path))
        more = again(frame.assign(weight=1.5), tmp_path)  # a float that was not there
        np.testing.assert_allclose(values(saved.transform(more)), expected, atol=1e-9)


@pytest.mark.parametrize("home", [as_dask, as_parquet, as_folder])
def test_a_column_of_lists_is_known_by_name(home, frame, tmp_path):
    vectors = pd.Series(list(frame[NAMES].to_numpy()), dtype=pd.ArrowDtype(pa.list_(pa.float64())))
    lists = pd.DataFrame({"v": vectors, "y": frame["y"]})
    found = ex.LEACE().fit(home(lists, tmp_path), concept="y").erasure_
    assert found.meta["columns"] == {"vectors": "v"}


def test_vectors_without_names_have_none(frame, tmp_path):
    np.savez(tmp_path / "x.npz", vectors=frame[NAMES].to_numpy(), y=frame["y"].to_numpy(str))
    found = ex.LEACE().fit(ex.open_rows(tmp_path / "x.npz"), concept="y").erasure_
    assert "columns" not in found.meta


def test_a_dask_frame_keeps_its_other_columns_and_their_order(frame, tmp_path):
    found = ex.LEACE().fit(frame[NAMES], frame["y"]).erasure_
    other = frame[["h", *NAMES[:-1]]]
    clean = found.transform(dd.from_pandas(other, npartitions=2))
    assert list(clean.columns) == list(other.columns)
    np.testing.assert_allclose(values(clean), found.transform(frame[NAMES]), atol=1e-9)
