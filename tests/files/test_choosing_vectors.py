"""Which columns are the vectors, and what is said where that is not clear."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made import vectors

import expunge as ex
from expunge.files import open_file


def lists(d=3, n=10):
    rows = [[float(i + j) for j in range(d)] for i in range(n)]
    return pa.array(rows, pa.list_(pa.float32()))


def parquet(folder, **columns):
    pq.write_table(pa.table(columns), folder / "t.parquet")
    return folder / "t.parquet"


def test_the_only_column_of_lists(tmp_path):
    path = parquet(tmp_path, tags=pa.array([["a"]] * 10), emb=lists(), x0=np.ones(10))
    file = open_file(path)
    assert (file.vectors, file.d, file.columns) == ("emb", 3, ("tags", "x0"))


def test_numbered_columns_before_other_floats(tmp_path):
    columns = {f"dim_{j}": np.random.default_rng(j).random(10) for j in range(12)}
    file = open_file(parquet(tmp_path, age=np.ones(10), **columns))
    assert file.vector_columns == tuple(columns)
    assert file.columns == ("age",)


def test_all_floats(tmp_path):
    path = parquet(tmp_path, x=np.ones(10), y=np.zeros(10), label=np.arange(10))
    assert open_file(path).vector_columns == ("x", "y")


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"a": lists(), "b": lists(4)}, "More than one thing.*'a', 'b'"),
        (
            {"a0": [0.5], "a1": [0.5], "b0": [0.5], "b1": [0.5]},
            r"More than one thing.*'a0 \.\.\. a1', 'b0 \.\.\. b1'",
        ),
        ({"label": [1], "text": ["x"]}, "Nothing in t.parquet.*'label', 'text'"),
    ],
)
def test_doubt(columns, said, tmp_path):
    with pytest.raises(ex.InputError, match=said):
        open_file(parquet(tmp_path, **columns))


def test_said_which(tmp_path):
    path = parquet(tmp_path, a=lists(), b=lists(4), n=np.arange(10), m=np.arange(10))
    assert open_file(path, "b").d == 4
    assert open_file(path, ["m", "n"]).vector_columns == ("m", "n")
    with pytest.raises(ex.InputError, match=r"no column 'bb'.*the nearest is 'b'"):
        open_file(path, "bb")
    with pytest.raises(ex.InputError, match="one column of lists"):
        open_file(path, ["a", "b"])


def test_a_pattern(tmp_path):
    path = parquet(tmp_path, e1=[0.5], e2=[1.5], f1=[1.0], f2=[2.0])
    assert open_file(path, "e*").vector_columns == ("e1", "e2")
    with pytest.raises(ex.InputError, match="named twice, or none"):
        open_file(path, "g*")


def test_arrays_and_tensors(tmp_path):
    from safetensors.numpy import save_file

    np.savez(tmp_path / "two.npz", a=vectors(), b=vectors(), y=np.zeros(1000))
    save_file({"a": vectors(), "b": vectors()}, tmp_path / "two.safetensors")
    for name in ("two.npz", "two.safetensors"):
        with pytest.raises(ex.InputError, match=r"could be the vectors.*'a', 'b'"):
            open_file(tmp_path / name)
        assert open_file(tmp_path / name, "b").vectors == "b"
        with pytest.raises(ex.InputError, match="the nearest is 'a'"):
            open_file(tmp_path / name, "aa")
    np.save(tmp_path / "one.npy", vectors())
    with pytest.raises(ex.InputError, match="Leave vectors out"):
        open_file(tmp_path / "one.npy", "a")


def test_whole_numbers_in_csv_are_labels(tmp_path):
    (tmp_path / "t.csv").write_text("label,x,y\n1,0.5,1\n0,2,2.5\n")
    assert open_file(tmp_path / "t.csv").vector_columns == ("x", "y")


def test_unknown_files(tmp_path):
    (tmp_path / "a.parqet").write_text("")
    (tmp_path / "rows.npy").write_text("")
    with pytest.raises(ex.InputError, match=r"the nearest is '\.parquet'"):
        open_file(tmp_path / "a.parqet")
    with pytest.raises(ex.InputError, match=r"no such file; the nearest is 'rows\.npy'"):
        open_file(tmp_path / "row.npy")
    with pytest.raises(ex.InputError, match="A path is needed"):
        open_file(3)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ex.InputError, match="files of one format"):
        open_file(tmp_path / "empty")
