"""Folders of shards: written shard by shard, resumed, put in place at once."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made import D, N, genders, table, vectors

import expunge as ex
from expunge.files import convert, folders, open_file, rewrite

SHARDS = 8


@pytest.fixture
def shards(tmp_path):
    folder = tmp_path / "source"
    folder.mkdir()
    whole = table(vectors())
    for k in range(SHARDS):
        part = whole.slice(k * N // SHARDS, N // SHARDS)
        pq.write_table(part, folder / f"part-{k:03}.parquet", row_group_size=50)
    (folder / "README.md").write_text("about")
    (folder / "_SUCCESS").touch()
    return folder


@pytest.fixture(scope="module")
def erasure():
    return ex.LEACE().fit(vectors(), genders()).erasure_


def bytes_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


class Stop(KeyboardInterrupt):
    """Somebody pressed the keys."""


def stopping_at(row):
    def progress(done, n):
        if done > row:
            raise Stop

    return progress


def test_a_folder_becomes_a_folder(shards, erasure, tmp_path):
    before = bytes_of(shards)
    made = rewrite(shards, erasure, tmp_path / "clean")
    names = {f"part-{k:03}.parquet" for k in range(SHARDS)} | {"README.md"}
    assert {path.name for path in made.iterdir()} == names
    file = open_file(made)
    np.testing.assert_array_equal(file.take(np.arange(N)), erasure.transform(vectors()))
    assert bytes_of(shards) == before
    assert {path.name for path in tmp_path.iterdir()} == {"source", "clean"}


@pytest.mark.parametrize("row", [0, 130, 400, N - 30])
def test_resumed_it_gives_the_same_bytes(row, shards, erasure, tmp_path):
    expected = bytes_of(rewrite(shards, erasure, tmp_path / "whole"))
    with pytest.raises(Stop):
        rewrite(shards, erasure, tmp_path / "clean", progress=stopping_at(row))
    assert not (tmp_path / "clean").exists()
    kept = {p: p.stat().st_mtime_ns for p in (tmp_path / ".clean.part" / "shards").iterdir()}
    assert len(kept) == row // (N // SHARDS)
    seen = []
    rewrite(shards, erasure, tmp_path / "clean", resume=True, progress=lambda d, n: seen.append(d))
    assert bytes_of(tmp_path / "clean") == expected
    assert len(seen) == 3 * (SHARDS - len(kept))  # shards that were there are not made again
    assert {path.name for path in tmp_path.iterdir()} == {"source", "whole", "clean"}


def test_other_work_is_not_resumed(shards, erasure, tmp_path):
    def interrupted():
        with pytest.raises(Stop):
            rewrite(shards, erasure, tmp_path / "clean", progress=stopping_at(400))

    interrupted()
    other = ex.LEACE().fit(vectors(), np.arange(N) % 3).erasure_
    with pytest.raises(ex.InputError, match=r"cannot be resumed.*another erasure"):
        rewrite(shards, other, tmp_path / "clean", resume=True)
    with pytest.raises(ex.InputError, match=r"cannot be resumed.*another settings"):
        rewrite(shards, erasure, tmp_path / "clean", resume=True, dtype="float64")
    os.utime(shards / "part-000.parquet", ns=(1, 1))
    with pytest.raises(ex.InputError, match=r"cannot be resumed.*another source"):
        rewrite(shards, erasure, tmp_path / "clean", resume=True)
    rewrite(shards, erasure, tmp_path / "clean")  # anew
    assert {path.name for path in tmp_path.iterdir()} == {"source", "clean"}


def test_a_writer_that_is_alive_is_left_alone(shards, erasure, tmp_path):
    with pytest.raises(Stop):
        rewrite(shards, erasure, tmp_path / "clean", progress=stopping_at(400))
    manifest = tmp_path / ".clean.part" / "manifest.json"
    found = json.loads(manifest.read_text())
    found["writer"] = found["writer"].partition("-")[0] + f"-{os.getppid()}"
    manifest.write_text(json.dumps(found))
    with pytest.raises(ex.InputError, match="Another process is writing"):
        rewrite(shards, erasure, tmp_path / "clean")


@pytest.mark.parametrize("exchange", [True, False])
def test_an_old_folder_is_replaced(exchange, shards, erasure, tmp_path, monkeypatch):
    if not exchange:
        monkeypatch.setattr(folders, "_exchange", lambda a, b: False)
    convert(shards, tmp_path / "clean")
    rewrite(shards, erasure, tmp_path / "clean")
    found = open_file(tmp_path / "clean").take(np.arange(N))
    np.testing.assert_array_equal(found, erasure.transform(vectors()))
    (tmp_path / "clean" / "thesis.doc").write_text("dear to somebody")
    with pytest.raises(ex.InputError, match=r"other things.*thesis\.doc"):
        rewrite(shards, erasure, tmp_path / "clean")
    rewrite(shards, erasure, in_place=True)
    found = open_file(shards).take(np.arange(N))
    np.testing.assert_array_equal(found, erasure.transform(vectors()))
    assert {path.name for path in tmp_path.iterdir()} == {"source", "clean"}


def test_a_run_that_ended_between_taking_away_and_putting_in_place(shards, erasure, tmp_path):
    convert(shards, tmp_path / "clean")
    before = bytes_of(tmp_path / "clean")
    work = tmp_path / ".clean.part"
    work.mkdir()
    os.rename(tmp_path / "clean", work / "old")
    with pytest.raises(Stop):
        rewrite(shards, erasure, tmp_path / "clean", progress=stopping_at(400))
    assert bytes_of(tmp_path / "clean") == before


def test_a_fault_leaves_nothing(shards, erasure, tmp_path):
    X = vectors()
    X[-20, 3] = np.nan
    pq.write_table(table(X).slice(7 * N // SHARDS), shards / "part-007.parquet")
    with pytest.raises(ex.InputError, match=rf"row {N - 20}, column 3"):
        rewrite(shards, erasure, tmp_path / "clean")
    assert {path.name for path in tmp_path.iterdir()} == {"source"}


def test_places_that_are_none(shards, erasure, tmp_path):
    (tmp_path / "file").write_text("")
    for target in (shards / "clean", shards, tmp_path, tmp_path / "file"):
        with pytest.raises(ex.InputError):
            rewrite(shards, erasure, target)


def test_shards_of_several_tables(tmp_path):
    folder = tmp_path / "odd"
    folder.mkdir()
    pq.write_table(table(vectors()), folder / "a.parquet")
    pq.write_table(table(vectors(d=D + 1)), folder / "b.parquet")
    with pytest.raises(ex.InputError, match=r"parts of one table.*b\.parquet with 7 float32"):
        open_file(folder)
    np.save(folder / "c.npy", vectors())
    with pytest.raises(ex.InputError, match=r"one format.*\.npy, \.parquet"):
        open_file(folder)


def two_shards(folder, first, second):
    folder.mkdir(exist_ok=True)
    for name, values in (("a", first), ("b", second)):
        X = vectors(n=len(values))
        lists = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), D)
        pq.write_table(pa.table({"label": values, "emb": lists}), folder / f"{name}.parquet")
    return open_file(folder)


@pytest.mark.parametrize(
    "second",
    [pa.array([0, 1]), pa.array([True, False]), pa.array([None, 1]), pa.array([1.0, 2.0])],
    ids=["whole", "boolean", "with a gap", "real"],
)
def test_a_column_of_text_in_one_shard_and_of_numbers_in_another(second, tmp_path):
    """Put together they would be text, and 0 and "f" two classes of four."""
    for pair in ((pa.array(["f", "m"]), second), (second, pa.array(["f", "m"]))):
        file = two_shards(tmp_path / "odd", *pair)
        with pytest.raises(ex.InputError, match=r"'label'.*a\.parquet.*b\.parquet"):
            file.column("label")
        with pytest.raises(ex.InputError, match=r"'label'.*a\.parquet.*b\.parquet"):
            convert(file, tmp_path / "one.arrow")
        assert not (tmp_path / "one.arrow").exists()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pa.array([0, 1], pa.int32()), pa.array([1, 1 << 40])),
        (pa.array([0, 1]), pa.array([0.5, None])),
        (pa.nulls(2), pa.array(["f", "m"])),
        (pa.array(["f", "m"]).dictionary_encode(), pa.array(["f", None], pa.large_string())),
    ],
    ids=["wider", "real", "empty", "text"],
)
def test_a_column_of_nearly_one_type_in_all_shards(first, second, tmp_path):
    """In one file it has a type that holds all values."""
    file = two_shards(tmp_path / "near", first, second)
    expected = [*first.to_pylist(), *second.to_pylist()]
    found = file.column("label")
    assert [None if v is None or v != v else v for v in found.tolist()] == expected
    one = convert(file, tmp_path / "one.arrow")
    with pa.ipc.open_file(str(one)) as made:
        assert made.read_all()["label"].to_pylist() == expected


@pytest.mark.parametrize("ending", ["arrow", "parquet"])
def test_dictionaries_that_differ_between_row_groups(ending, tmp_path):
    """An Arrow file has one dictionary for a column: there, values are written without it."""
    labels = ["f"] * (N // 2) + ["m"] * (N // 2)
    halves = [
        table(vectors())
        .slice(lo, N // 2)
        .set_column(1, "gender", pa.array(labels[lo : lo + N // 2]).dictionary_encode())
        for lo in (0, N // 2)
    ]
    whole = pa.concat_tables(halves).unify_dictionaries()
    pq.write_table(whole, tmp_path / "one.parquet", row_group_size=N // 2)
    with pq.ParquetWriter(tmp_path / "own.parquet", whole.schema) as writer:
        for half in halves:
            writer.write_table(half)
    for name in ("one", "own"):
        made = open_file(convert(tmp_path / f"{name}.parquet", tmp_path / f"{name}-b.{ending}"))
        assert made.column("gender").tolist() == labels
        kept = pa.types.is_dictionary(made.schema.field("gender").type)
        assert kept == ((name, ending) != ("own", "arrow"))


def test_shards_that_would_be_left_out(shards, tmp_path):
    """A folder in the folder, a link to nothing: nobody would notice that they were not read."""
    deep = tmp_path / "deep" / "more" / "still"
    deep.mkdir(parents=True)
    for folder in (tmp_path / "deep", deep):
        pq.write_table(table(vectors()), folder / "a.parquet")
    with pytest.raises(ex.InputError, match=r"folders in the folder.*'more'"):
        open_file(tmp_path / "deep")
    shutil.rmtree(tmp_path / "deep" / "more")
    assert open_file(tmp_path / "deep").n == N
    (tmp_path / "deep" / "notes").mkdir()
    (tmp_path / "deep" / "notes" / "read.me").write_text("")
    assert open_file(tmp_path / "deep").n == N
    (tmp_path / "deep" / "b.parquet").symlink_to("nowhere.parquet")
    with pytest.raises(ex.InputError, match=r"link to nothing.*b\.parquet"):
        open_file(tmp_path / "deep")
    for value in ("f", "m"):
        (tmp_path / "hive" / f"g={value}").mkdir(parents=True)
        pq.write_table(table(vectors()), tmp_path / "hive" / f"g={value}" / "a.parquet")
    with pytest.raises(ex.InputError, match=r"names of folders.*'g=f'"):
        open_file(tmp_path / "hive")


def test_killed_at_any_moment_it_can_be_resumed(shards, erasure, tmp_path):
    expected = bytes_of(rewrite(shards, erasure, tmp_path / "whole"))
    erasure.save(tmp_path / "erasure.safetensors")
    code = f"""
        import time
        import expunge as ex
        from expunge.files import rewrite
        e = ex.Erasure.load({str(tmp_path / "erasure.safetensors")!r})
        print("ready", flush=True)
        rewrite({str(shards)!r}, e, {str(tmp_path / "clean")!r}, resume=True,
                progress=lambda done, n: time.sleep(0.01))
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    rng, killed = random.Random(0), 0
    for _ in range(4):
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            time.sleep(rng.uniform(0.0, 0.15))
            killed += process.poll() is None
            process.send_signal(signal.SIGKILL)
    assert killed
    rewrite(shards, erasure, tmp_path / "clean", resume=True)
    assert bytes_of(tmp_path / "clean") == expected
    assert not (tmp_path / ".clean.part").exists()
