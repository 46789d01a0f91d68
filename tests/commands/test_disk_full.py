"""No room left: one message, exit code 2, the old output whole, and nothing beside it."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import expunge as ex

N, D = 6000, 64  # 1.5 megabytes, beside which none of the two disks has room for another
LIMIT = 400_000


@pytest.fixture
def small_disk(tmp_path):
    """A disk in memory, of half the size of the vectors."""
    if sys.platform != "linux" or os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("mounting a small disk needs Linux and root")
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={2 * LIMIT}", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no disk could be mounted: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def small_files(tmp_path):
    """A folder where files cannot become large."""
    resource = pytest.importorskip("resource")
    folder = tmp_path / "disk"
    folder.mkdir()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, before[1]))
    yield folder
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture(params=["small_disk", "small_files"])
def disk(request, source):
    """A place with too little room; the source is written before there is a limit."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def source(tmp_path):
    """A parquet file, the same as two shards, and an erasure."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)).astype(np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), D)
    table = pa.table({"y": np.arange(N) % 2, "x": vectors})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=500)
    (tmp_path / "shards").mkdir()
    for k in range(2):
        part = table.slice(k * N // 2, N // 2)
        pq.write_table(part, tmp_path / "shards" / f"part-{k}.parquet", row_group_size=500)
    ex.Erasure(np.eye(D)[:, :1], np.eye(D)[:1]).save(tmp_path / "e.safetensors")
    return tmp_path


def everything(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def whole_message(err):
    assert "No space left" in err or "File too large" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("ending", ["parquet", "npy", "csv"])
def test_apply_to_a_file(ending, source, disk, refused):
    old = disk / f"clean.{ending}"
    old.write_bytes(b"old")
    more = ["--drop-columns"] if ending == "npy" else []
    files = [source / "e.safetensors", source / "rows.parquet"]
    err = refused("apply", *files, "-o", old, "--memory", "1MB", *more)
    whole_message(err)
    assert f"of {N}; nothing was replaced" in err
    assert everything(disk) == {old.name: b"old"}


def test_apply_to_a_folder(source, disk, refused):
    old = disk / "clean"
    old.mkdir()
    for k in range(2):
        (old / f"part-{k}.parquet").write_bytes(b"old")
    before = everything(disk)
    files = [source / "e.safetensors", source / "shards"]
    whole_message(refused("apply", *files, "-o", old, "--memory", "1MB"))
    assert everything(disk) == before
    assert sorted(os.listdir(disk)) == ["clean"]


def test_resumed_once_there_is_room(source, tmp_path, run, small_files):
    """What was written before the disk was full is not lost with --resume."""
    files = [source / "e.safetensors", source / "shards", "-o", small_files / "clean", "--resume"]
    code, out, err = run("apply", *files)
    assert (code, out) == (2, "")
    whole_message(err)
    assert not (small_files / "clean").exists()
    _limit(10 * LIMIT)
    assert run("apply", *files)[0] == 0
    assert sorted(os.listdir(small_files)) == ["clean"]
    assert run("apply", *files[:2], "-o", tmp_path / "again")[0] == 0
    assert everything(small_files / "clean") == everything(tmp_path / "again")


@pytest.mark.parametrize("written", ["erasure", "json"])
def test_fit(written, source, disk, refused):
    """The erasure is small, so the disk is filled up first."""
    old = disk / "gender.safetensors"
    old.write_bytes(b"old")
    _fill(disk)
    before = everything(disk)
    out = old if written == "erasure" else source / "new.safetensors"
    more = [] if written == "erasure" else ["--json", disk / "fit.json"]
    files = [source / "rows.parquet", "--concept", "y", "--method", "leace", "-o", out]
    whole_message(refused("fit", *files, *more))
    assert everything(disk) == before


def _limit(size):
    resource = pytest.importorskip("resource")
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def _fill(disk):
    if os.path.ismount(disk):
        with (disk / "filler").open("wb", buffering=0) as stream:
            try:
                while True:
                    stream.write(bytes(4096))
            except OSError:
                return
    _limit(100)
