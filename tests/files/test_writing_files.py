"""What is kept when a file is written anew, and what a format cannot hold."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made import MADE, D, N, genders, make, table, vectors, words
from pyarrow.feather import write_feather
from safetensors import safe_open

import expunge as ex
from expunge.files import FORMATS, columnar, convert, open_file, rewrite


@pytest.fixture(scope="module")
def erasure():
    return ex.LEACE().fit(vectors() + 5, genders()).erasure_


def content(path, **kwargs):
    file = open_file(path, **kwargs)
    return file.take(np.arange(file.n))


@pytest.mark.parametrize("name", MADE)
def test_erased_in_its_own_format(name, tmp_path, erasure):
    path = make(name, tmp_path)
    before = path.read_bytes()
    source = open_file(path)
    X = content(path)
    made = rewrite(path, erasure, tmp_path / f"clean-{path.name}", memory=4 * 97 * X[0].nbytes)
    clean = open_file(made)
    close = {"rtol": 1e-6} if clean.stored == "float64" else {"rtol": 0}
    np.testing.assert_allclose(content(made), erasure.transform(X), **close)
    assert (clean.stored, clean.columns, clean.vectors) == (
        source.stored,
        source.columns,
        source.vectors,
    )
    for column in source.columns:
        np.testing.assert_array_equal(clean.column(column), source.column(column))
    assert path.read_bytes() == before
    again = rewrite(path, erasure, tmp_path / f"again-{path.name}", memory=4 * 97 * X[0].nbytes)
    assert again.read_bytes() == made.read_bytes()
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("name", MADE)
def test_any_format_to_any_other(name, ending, tmp_path):
    path, target = make(name, tmp_path), tmp_path / f"other{ending}"
    source = open_file(path)
    narrow = {"dtype": "float32"} if ending == ".bin" else {}
    if ending in (".txt", ".vec", ".bin") and "word" not in source.columns:
        with pytest.raises(ex.InputError, match="needs a word for each vector"):
            convert(path, target, drop=True, **narrow)
        assert not target.exists()
        return
    convert(path, target, drop=True, **narrow)
    np.testing.assert_array_equal(content(target).astype(np.float32), vectors())
    for column in open_file(target).columns:
        np.testing.assert_array_equal(open_file(target).column(column), source.column(column))


def test_what_would_be_lost_is_named(tmp_path):
    path = make("parquet", tmp_path)
    for target, lost in (
        ("rows.npy", "'word', 'gender', 'age'"),
        ("rows.txt", "'gender', 'age'"),
        ("rows.safetensors", "'word', 'gender'"),
    ):
        with pytest.raises(ex.InputError, match=f"would be lost.*columns {lost}"):
            convert(path, tmp_path / target)
        assert not (tmp_path / target).exists()
        convert(path, tmp_path / target, drop=True)
    assert open_file(tmp_path / "rows.safetensors").columns == ("age",)


def test_parquet_keeps_schema_groups_and_packing(tmp_path, erasure):
    path = make("parquet", tmp_path)
    made = rewrite(path, erasure, tmp_path / "clean.parquet")
    old, new = pq.ParquetFile(path), pq.ParquetFile(made)
    assert new.schema_arrow.equals(old.schema_arrow, check_metadata=True)
    groups = [[f.metadata.row_group(g) for g in range(f.num_row_groups)] for f in (old, new)]
    assert [g.num_rows for g in groups[0]] == [g.num_rows for g in groups[1]] == [300] * 3 + [100]
    for a, b in zip(*groups, strict=True):
        packings = [[g.column(j).compression for j in range(g.num_columns)] for g in (a, b)]
        assert packings[0] == packings[1]
    kept = ["word", "gender", "age"]
    assert new.read(kept).equals(old.read(kept))


def test_a_row_group_beyond_the_memory_is_split(tmp_path):
    pq.write_table(table(vectors()), tmp_path / "one.parquet")
    convert(tmp_path / "one.parquet", tmp_path / "many.parquet", memory=4 * 400 * D * 4)
    found = pq.ParquetFile(tmp_path / "many.parquet")
    sizes = [found.metadata.row_group(g).num_rows for g in range(found.num_row_groups)]
    assert sizes == [333, 333, 334]
    assert found.read().equals(pq.read_table(tmp_path / "one.parquet"))


def test_a_record_batch_beyond_the_memory_is_split(tmp_path):
    with pa.ipc.new_file(str(tmp_path / "one.arrow"), table(vectors()).schema) as writer:
        writer.write_table(table(vectors()))
    convert(tmp_path / "one.arrow", tmp_path / "many.arrow", memory=4 * 400 * D * 4)
    with pa.ipc.open_file(str(tmp_path / "many.arrow")) as found:
        sizes = [found.get_batch(k).num_rows for k in range(found.num_record_batches)]
        assert sizes == [333, 333, 334]
        assert found.read_all().equals(table(vectors()))


@pytest.mark.parametrize("codec", [None, "lz4", "zstd"])
def test_arrow_keeps_batches_schema_and_packing(codec, tmp_path, erasure, monkeypatch):
    monkeypatch.setattr(columnar, "UNPACKED", 97 * D)  # batches are put together again
    options = pa.ipc.IpcWriteOptions(compression=codec)
    whole = table(vectors())
    with pa.ipc.new_file(str(tmp_path / "a.arrow"), whole.schema, options=options) as writer:
        writer.write_table(whole, max_chunksize=170)
    made = rewrite(tmp_path / "a.arrow", erasure, tmp_path / "b.arrow", memory=4 * 170 * 4 * D)
    with pa.ipc.open_file(str(tmp_path / "a.arrow")) as old, pa.ipc.open_file(str(made)) as new:
        assert new.schema.equals(old.schema, check_metadata=True)
        for k in range(old.num_record_batches):
            assert new.get_batch(k).num_rows == old.get_batch(k).num_rows
    assert open_file(made).codec == codec


def test_npz_and_safetensors_keep_everything_else(tmp_path, erasure):
    path = make("npz", tmp_path)
    made = rewrite(path, erasure, tmp_path / "clean.npz")
    with np.load(path) as old, np.load(made) as new:
        assert old.files == new.files
        for name in set(old.files) - {"X"}:
            np.testing.assert_array_equal(old[name], new[name])
    path = make("safetensors", tmp_path)
    made = rewrite(path, erasure, tmp_path / "clean.safetensors")
    with safe_open(path, "np") as old, safe_open(made, "np") as new:
        assert old.metadata() == new.metadata()
        for name in ("age", "head"):
            np.testing.assert_array_equal(old.get_tensor(name), new.get_tensor(name))


def test_nothing_is_erased_and_bytes_stay(tmp_path):
    """Formats without settings of their own come out as they went in."""
    for name in ("npy", "word2vec binary", "word2vec binary with line ends"):
        path = make(name, tmp_path)
        made = convert(path, tmp_path / f"copy-{path.name}")
        assert made.read_bytes() == path.read_bytes()


def test_other_types(tmp_path, erasure):
    np.save(tmp_path / "half.npy", vectors(dtype=np.float16))
    for kind in ("float32", "float64", np.float16):
        made = rewrite(tmp_path / "half.npy", erasure, tmp_path / "out.npy", dtype=kind)
        assert content(made).dtype == kind
        wide = vectors(dtype=np.float16).astype(np.promote_types(kind, np.float16))
        np.testing.assert_array_equal(content(made), erasure.transform(wide))
    made = convert(tmp_path / "half.npy", tmp_path / "out.safetensors", dtype="bfloat16")
    assert open_file(made).stored == "bfloat16"
    again = convert(made, tmp_path / "again.safetensors")
    assert again.read_bytes() == made.read_bytes()
    assert open_file(convert(made, tmp_path / "wide.npy")).stored == "float32"
    with pytest.raises(ex.InputError, match="cannot hold numbers of the type bfloat16"):
        convert(made, tmp_path / "out.npy", dtype="bfloat16")
    np.save(tmp_path / "double.npy", vectors(dtype=np.float64))
    convert(tmp_path / "double.npy", tmp_path / "double.parquet")
    with pytest.raises(ex.InputError, match="dtype must be a floating type"):
        convert(tmp_path / "half.npy", tmp_path / "out.npy", dtype="int8")


def test_whole_numbers_become_floats_when_erased(tmp_path, erasure):
    X = np.arange(6 * D).reshape(6, D)
    np.save(tmp_path / "whole.npy", X)
    assert content(convert(tmp_path / "whole.npy", tmp_path / "b.npy")).dtype == X.dtype
    made = rewrite(tmp_path / "whole.npy", erasure, tmp_path / "c.npy")
    np.testing.assert_array_equal(content(made), erasure.transform(X))


def test_unit_length(tmp_path, erasure):
    X = vectors()
    X[3] = 0
    np.save(tmp_path / "rows.npy", X)
    made = content(convert(tmp_path / "rows.npy", tmp_path / "unit.npy", normalize=True))
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), np.arange(N) != 3, atol=1e-6)


@pytest.mark.parametrize("told", ["gender", ["gender", "age"]])
def test_an_erasure_that_is_told_the_concept(told, tmp_path):
    path = make("parquet", tmp_path)
    rows = ex.open_rows(path, memory=4 * 97 * 4 * D)
    eraser = ex.OracleLEACE().fit(rows, told)
    clean = eraser.transform(rows, concept=told, out=tmp_path / "clean.parquet")
    values = genders() if told == "gender" else {k: rows.column(k) for k in told}
    expected = eraser.transform(vectors(), concept=values)
    np.testing.assert_array_equal(clean.array(), expected)
    made = rewrite(path, eraser, tmp_path / "again.parquet", concept=told)
    np.testing.assert_array_equal(content(made), expected)
    with pytest.raises(ex.InputError, match="needs the concept of every row"):
        rewrite(path, eraser, tmp_path / "no.parquet")


def test_progress(tmp_path, erasure):
    seen = []
    path = make("npy", tmp_path)
    rewrite(
        path,
        erasure,
        tmp_path / "out.npy",
        memory=4 * 300 * 4 * D,
        progress=lambda done, n: seen.append((done, n)),
    )
    assert seen == [(300, N), (600, N), (900, N), (N, N)]


def test_wrong_widths_and_things(tmp_path, erasure):
    np.save(tmp_path / "narrow.npy", np.ones((4, 2)))
    with pytest.raises(ex.InputError, match="expecting 6 features"):
        rewrite(tmp_path / "narrow.npy", erasure, tmp_path / "out.npy")
    with pytest.raises(ex.InputError, match="not an erasure"):
        rewrite(tmp_path / "narrow.npy", "gender", tmp_path / "out.npy")
    with pytest.raises(ex.InputError, match="nothing to write to"):
        rewrite(tmp_path / "narrow.npy", erasure)


def test_words_that_no_file_of_words_can_hold(tmp_path):
    odd = words()
    odd[17] = "two words"
    frame = table(vectors()).set_column(0, "word", pa.array(odd)).select(["word", "emb"])
    pq.write_table(frame, tmp_path / "odd.parquet")
    with pytest.raises(ex.InputError, match="'two words' in row 17"):
        convert(tmp_path / "odd.parquet", tmp_path / "odd.bin")
    convert(tmp_path / "odd.parquet", tmp_path / "odd.txt")
    assert open_file(tmp_path / "odd.txt").column("word")[17] == "two words"


@pytest.mark.parametrize("ending", ["npy", "parquet"])
def test_vectors_of_no_width(ending, tmp_path):
    np.save(tmp_path / "none.npy", np.zeros((5, 0)))
    with pytest.raises(ex.InputError, match="have no columns"):
        convert(tmp_path / "none.npy", tmp_path / f"copy.{ending}")


def mixed(path):
    """Columns of fractions, of whole numbers and of booleans; the second follows the gender."""
    rng = np.random.default_rng(0)
    y = np.arange(N) % 2
    columns = {
        "a": rng.normal(size=N).astype(np.float32),
        "k": (rng.integers(0, 5, N) + 2 * y).astype(np.int16),
        "b": rng.random(N) < 0.2 + 0.6 * y,
    }
    table = pa.table({**columns, "gender": genders()})
    pq.write_table(table, path) if path.suffix == ".parquet" else write_feather(table, path)
    return np.column_stack(list(columns.values())).astype(np.float64), y


@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
def test_whole_numbers_beside_fractions_are_not_cut_to_whole_ones(ending, tmp_path):
    path = tmp_path / f"mixed{ending}"
    X, y = mixed(path)
    X, names = X[:, :2], ["a", "k"]
    eraser = ex.LEACE().fit(X, y)
    clean = open_file(rewrite(path, eraser, tmp_path / f"clean{ending}", vectors=names), names)
    assert [str(clean.schema.field(name).type) for name in names] == ["float", "float"]
    np.testing.assert_allclose(content(clean.path, vectors=names), eraser.transform(X), atol=1e-5)
    moved = open_file(convert(path, tmp_path / f"moved{ending}", vectors=names), names)
    assert [str(moved.schema.field(name).type) for name in names] == ["float", "int16"]


@pytest.mark.parametrize("name", ["npy", "npz", "parquet of columns", "csv"])
def test_whole_numbers_at_unit_length_are_fractions(name, tmp_path):
    X = np.random.default_rng(0).integers(1, 9, (N, D))
    path = make(name, tmp_path, X)
    vectors = [f"e{j}" for j in range(D)] if path.suffix in (".parquet", ".csv") else None
    made = convert(path, tmp_path / f"unit-{path.name}", vectors=vectors, normalize=True)
    length = np.linalg.norm(content(made, vectors=vectors), axis=1)
    np.testing.assert_allclose(length, 1)
