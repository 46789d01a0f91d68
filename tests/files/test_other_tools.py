"""Files as other tools write them."""

import json
import struct

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made import D, N, genders, table, vectors, words

import expunge as ex
from expunge.files import convert, open_file, rewrite


def same(file, X):
    np.testing.assert_array_equal(file.take(np.arange(file.n)).astype(X.dtype), X)


def test_gensim_byte_by_byte(tmp_path):
    path = tmp_path / "gensim.bin"
    path.write_bytes(
        b"2 3\n" + b"he " + struct.pack("<3f", 1, 2, 3) + b"she " + struct.pack("<3f", 4, 5, 6)
    )
    file = open_file(path)
    assert file.column("word").tolist() == ["he", "she"]
    same(file, np.float32([[1, 2, 3], [4, 5, 6]]))
    convert(path, tmp_path / "again.bin")
    assert (tmp_path / "again.bin").read_bytes() == path.read_bytes()


def test_word2vec_with_line_ends_and_numbers_that_look_like_spaces(tmp_path):
    """The bytes of a float may be those of a space or a line end."""
    path, number = tmp_path / "original.bin", struct.unpack("<f", b" \n \n")[0]
    rows = [[number, 1.0], [2.0, number], [number, number]]
    content = b"3 2\n"
    for word, row in zip((b"a", b"b", b"c"), rows, strict=True):
        content += word + b" " + struct.pack("<2f", *row) + b"\n"
    path.write_bytes(content)
    file = open_file(path)
    assert file.column("word").tolist() == ["a", "b", "c"]
    same(file, np.float32(rows))
    convert(path, tmp_path / "again.bin")
    assert (tmp_path / "again.bin").read_bytes() == content


def test_words_that_are_no_text_stay_as_they_are(tmp_path):
    """Old files hold words cut in the middle of a letter, and odd blanks."""
    odd = [b"caf\xc3", b"\xff\xfe", b"\xc2\xa0", b""]
    content = b"4 1\n" + b"".join(word + b" " + struct.pack("<f", 1.5) for word in odd)
    (tmp_path / "odd.bin").write_bytes(content)
    convert(tmp_path / "odd.bin", tmp_path / "odd.txt")
    assert (tmp_path / "odd.txt").read_bytes() == b"".join(word + b" 1.5\n" for word in odd)
    convert(tmp_path / "odd.txt", tmp_path / "again.bin")
    assert open_file(tmp_path / "again.bin").column("word")[0] == "caf\ufffd"
    (tmp_path / "odd.bin").write_bytes(content)
    convert(tmp_path / "odd.bin", tmp_path / "same.bin")
    assert (tmp_path / "same.bin").read_bytes() == content


def test_pandas(tmp_path):
    X = vectors(dtype=np.float64)
    frame = pd.DataFrame({"word": words(), "emb": list(X), "gender": pd.Categorical(genders())})
    frame.index = np.arange(N) * 2
    frame.to_parquet(tmp_path / "pandas.parquet")
    frame.reset_index(drop=True).to_feather(tmp_path / "pandas.feather")
    for name in ("pandas.parquet", "pandas.feather"):
        file = open_file(tmp_path / name)
        same(file, X)
        np.testing.assert_array_equal(file.column("gender"), genders())
        made = convert(file, tmp_path / f"again-{name}")
        reader = pd.read_parquet if name.endswith("parquet") else pd.read_feather
        pd.testing.assert_frame_equal(reader(made), reader(tmp_path / name))
    wide = pd.DataFrame(X, columns=[str(j) for j in range(D)]).assign(gender=genders())
    wide.to_csv(tmp_path / "wide.csv")
    file = open_file(tmp_path / "wide.csv")
    assert (file.d, file.columns) == (D, ("", "gender"))
    same(file, X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_polars(dtype, tmp_path):
    X = vectors(dtype=dtype)
    inner = pl.Float32 if dtype == np.float32 else pl.Float64
    for kind in (pl.Array(inner, D), pl.List(inner)):
        frame = pl.DataFrame(
            {"word": words(), "emb": pl.Series(X.tolist(), dtype=kind), "gender": genders()}
        )
        frame.write_parquet(tmp_path / "polars.parquet", row_group_size=300)
        frame.write_ipc(tmp_path / "polars.arrow", compression="zstd")
        for name in ("polars.parquet", "polars.arrow"):
            file = open_file(tmp_path / name)
            assert file.stored == np.dtype(dtype).name
            same(file, X)
            assert file.column("word").tolist() == words()
            made = convert(file, tmp_path / f"again-{name}")
            reader = pl.read_parquet if name.endswith("parquet") else pl.read_ipc
            assert reader(made).equals(frame)


def datasets_folder(folder, X):
    """As `Dataset.save_to_disk` leaves it: streams of a thousand rows to a batch, and two notes."""
    folder.mkdir()
    features = {"features": {"emb": {"dtype": "float32", "length": D}}}
    whole = table(X).replace_schema_metadata({"huggingface": json.dumps({"info": features})})
    for k in range(3):
        part = whole.slice(k * 400, 400)
        name = folder / f"data-{k:05}-of-00003.arrow"
        with pa.ipc.new_stream(str(name), whole.schema) as writer:
            writer.write_table(part, max_chunksize=150)
    (folder / "dataset_info.json").write_text(json.dumps(features))
    (folder / "state.json").write_text(json.dumps({"_fingerprint": "0123"}))
    return folder


def test_a_folder_of_datasets(tmp_path):
    X = vectors()
    folder = datasets_folder(tmp_path / "train", X)
    file = open_file(folder)
    assert [shard.n for shard in file.shards] == [400, 400, 200]
    same(file, X)
    np.testing.assert_array_equal(file.column("gender"), genders())
    erasure = ex.LEACE().fit(X, genders()).erasure_
    rewrite(folder, erasure, tmp_path / "clean")
    same(open_file(tmp_path / "clean"), erasure.transform(X))
    assert sorted(p.name for p in (tmp_path / "clean").iterdir()) == sorted(
        p.name for p in folder.iterdir()
    )
    for shard in sorted(folder.glob("*.arrow")):
        with (
            pa.ipc.open_stream(str(shard)) as old,
            pa.ipc.open_stream(str(tmp_path / "clean" / shard.name)) as new,
        ):
            assert new.schema.equals(old.schema, check_metadata=True)
            old, new = list(old), list(new)
        assert [b.num_rows for b in old] == [b.num_rows for b in new]
        for a, b in zip(old, new, strict=True):
            assert a.drop_columns(["emb"]).equals(b.drop_columns(["emb"]))


def test_a_folder_of_spark(tmp_path):
    folder = tmp_path / "emb.parquet"
    folder.mkdir()
    whole = table(vectors())
    whole = whole.set_column(2, "emb", whole["emb"].cast(pa.list_(pa.float32())))
    for k in range(2):
        pq.write_table(whole.slice(k * 500, 500), folder / f"part-{k}-c000.snappy.parquet")
    pq.write_table(whole.slice(0, 0), folder / "part-2-c000.snappy.parquet")  # one without rows
    (folder / "_SUCCESS").touch()
    (folder / ".part-0.crc").write_bytes(b"crc")
    file = open_file(folder)
    assert (file.n, file.d, len(file.shards)) == (N, D, 3)
    same(file, vectors())
    same(open_file(convert(folder, tmp_path / "copy.parquet")), vectors())
    assert (tmp_path / "copy.parquet").is_dir()
    same(open_file(convert(folder, tmp_path / "one.npz")), vectors())


def test_datasets_of_several_splits_are_pointed_at(tmp_path):
    for split in ("test", "train"):
        datasets_folder(tmp_path / split, vectors())
    with pytest.raises(ex.InputError, match=r"files of one format.*'test', 'train'"):
        open_file(tmp_path)


@pytest.mark.parametrize("ending", ["arrow", "parquet"])
def test_categories_of_polars(ending, tmp_path):
    """Arrow holds them as a dictionary of views on text, which pyarrow cannot cast."""
    frame = pl.DataFrame(
        {"emb": pl.Series(vectors().tolist(), dtype=pl.Array(pl.Float32, D)), "g": genders()},
        schema_overrides={"g": pl.Categorical},
    )
    with_gap = frame.with_columns(pl.when(pl.int_range(N) > 3).then("g").alias("g"))
    for made, expected in ((frame, genders().tolist()), (with_gap, [None] * 4 + [*genders()[4:]])):
        write = made.write_ipc if ending == "arrow" else made.write_parquet
        write(tmp_path / f"rows.{ending}")
        file = open_file(tmp_path / f"rows.{ending}")
        assert file.column("g").tolist() == expected
        again = open_file(convert(file, tmp_path / f"again.{ending}"))
        assert again.column("g").tolist() == expected
