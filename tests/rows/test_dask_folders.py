"""Folders of files on a cluster: what one machine makes of them, or a refusal."""

import dask.array as da
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import expunge as ex
from expunge.files import rewrite
from planted import plant


def table(X, y, kind):
    lists = pa.array(list(X), kind)
    return pa.table({"z": pa.array(y.tolist(), pa.string()), "v": lists})


@pytest.fixture
def folder(tmp_path):
    """Lists of unknown length; in the second file, and in a group of rows, there are none."""
    data, place = plant("classes", n=300), tmp_path / "people"
    place.mkdir()
    X, y, kind = data.X.astype(np.float32), np.asarray(data.y), pa.list_(pa.float32())
    for number, rows in enumerate([slice(0, 200), slice(200, 200), slice(200, 300)]):
        with pq.ParquetWriter(place / f"{number}.parquet", table(X[:0], y[:0], kind).schema) as to:
            for some in (slice(0, 0), rows, slice(0, 0)):
                to.write_table(table(X[some], y[some], kind))
    (place / "_SUCCESS").touch()
    return place


def test_files_without_rows_are_written_too(folder, tmp_path):
    here, rows = ex.open_rows(folder), ex.cluster_rows(folder)
    expected = ex.LEACE().fit(here, concept="z")
    found = ex.LEACE().fit(rows, concept="z")
    np.testing.assert_allclose(found.erasure_.matrix(), expected.erasure_.matrix(), atol=1e-9)
    expected.transform(here, out=tmp_path / "one")
    expected.transform(rows, out=tmp_path / "many")
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names[:3] == ["0.parquet", "1.parquet", "2.parquet"]
    assert names == sorted(path.name for path in (tmp_path / "many").iterdir())
    for name in names:
        assert (tmp_path / "many" / name).read_bytes() == (tmp_path / "one" / name).read_bytes()


def test_a_folder_of_files_without_rows_is_refused(folder):
    (folder / "0.parquet").unlink()
    (folder / "2.parquet").unlink()
    for opened in (ex.open_rows, ex.cluster_rows):
        with pytest.raises(ex.InputError, match="No rows"):
            opened(folder)
    columns = pa.table({"z": pa.array([], pa.string()), "e": pa.array([], pa.float64())})
    pq.write_table(columns, folder / "1.parquet")
    for opened in (ex.open_rows, ex.cluster_rows):
        with pytest.raises(ex.InputError, match=r"0 sample\(s\)"):
            ex.LEACE().fit(opened(folder), concept="z")
    assert ex.open_rows(folder).column("z").shape == (0,)


def test_a_folder_does_not_take_the_name_of_a_file(folder, tmp_path):
    rows = ex.cluster_rows(folder)
    eraser = ex.LEACE().fit(rows, concept="z")
    rewrite(folder, eraser, tmp_path / "clean.npz")
    assert (tmp_path / "clean.npz").is_file()
    array = da.from_array(plant("classes", n=300).X, chunks=(90, 8))
    for given in (rows, ex.cluster_rows(array.to_dask_dataframe(columns=list("abcdefgh"))), array):
        with pytest.raises(ex.InputError, match=r"a folder of .* another format.*clean\.csv"):
            eraser.transform(given, out=tmp_path / "clean.csv")
        assert not (tmp_path / "clean.csv").exists()
    assert eraser.transform(rows, out=tmp_path / "clean.parquet").n_samples == 300
