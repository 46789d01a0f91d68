"""Files that are written whole or not at all, and only where a file may be."""

import os
import stat
import subprocess
import sys
import threading
from errno import EACCES
from pathlib import Path

import pytest

from expunge.atomic import (
    SUFFIX,
    atomic_file,
    check_path,
    check_writable,
    is_stream,
    write_atomically,
)
from expunge.errors import InputError

posix = pytest.mark.skipif(os.name != "posix", reason="links, pipes and permissions of POSIX")


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_content_comes_whole_and_alone(tmp_path):
    write_atomically(tmp_path / "f", b"one ", memoryview(b"two"))
    assert (tmp_path / "f").read_bytes() == b"one two"
    with pytest.raises(TypeError), atomic_file(tmp_path / "f") as stream:
        stream.writelines([b"half", None])
    assert (tmp_path / "f").read_bytes() == b"one two"
    assert os.listdir(tmp_path) == ["f"]


@posix
@pytest.mark.parametrize("kept", [0o600, 0o640, 0o444, 0o666, 0o755])
def test_the_permissions_of_a_file_that_was_there_are_kept(tmp_path, kept):
    (tmp_path / "f").write_bytes(b"old")
    (tmp_path / "f").chmod(kept)
    with atomic_file(tmp_path / "f") as stream:
        stream.write(b"new")
        (temporary,) = (p for p in tmp_path.iterdir() if p.name != "f")
        assert mode(temporary) & ~kept == 0  # never open to more people, not even for a moment
    assert ((tmp_path / "f").read_bytes(), mode(tmp_path / "f")) == (b"new", kept)


@posix
def test_the_umask_of_the_process_is_never_touched(tmp_path, monkeypatch):
    """It belongs to all threads: a file that another one makes meanwhile would get its rights."""

    def refuse(mask):
        raise AssertionError("umask was set")

    before = os.umask(0o027)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(os, "umask", refuse)
            write_atomically(tmp_path / "f", b"")
    finally:
        os.umask(before)
    assert mode(tmp_path / "f") == 0o640


@posix
def test_a_link_stays_a_link_and_its_file_is_replaced(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "f").write_bytes(b"old")
    (tmp_path / "link").symlink_to("there/f")
    (tmp_path / "second").symlink_to(tmp_path / "link")
    for name in ("link", "second"):
        write_atomically(tmp_path / name, name.encode())
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / "there" / "f").read_bytes() == name.encode()
        assert os.listdir(tmp_path / "there") == ["f"]
    (tmp_path / "new").symlink_to("there/g")  # to a file that is not there yet
    write_atomically(tmp_path / "new", b"g")
    assert (tmp_path / "there" / "g").read_bytes() == b"g"


@posix
def test_what_is_no_place_for_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "to null").symlink_to(os.devnull)
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "folder").mkdir()
    (tmp_path / "to folder").symlink_to("folder")
    null = os.stat(os.devnull)
    for name in ("pipe", "to null", "loop", "folder", "to folder"):
        with pytest.raises(InputError) as caught:
            write_atomically(tmp_path / name, b"")
        assert name in str(caught.value)
    for path in (os.devnull, "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/"):
        with pytest.raises(InputError):
            check_writable(path)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    assert os.stat(os.devnull).st_ino == null.st_ino
    left = sorted(os.listdir(tmp_path))
    assert left == ["folder", "loop", "pipe", "to folder", "to null"]


@posix
def test_streams_are_told_from_files(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_bytes(b"")
    found = {name: is_stream(tmp_path / name) for name in ("pipe", "file", "none", ".")}
    assert found == {"pipe": True, "file": False, "none": False, ".": False}
    assert is_stream(Path("/dev/null"))
    with open(tmp_path / "file", "wb") as stream:  # open descriptors, whatever they lead to
        assert is_stream(Path(f"/dev/fd/{stream.fileno()}"))


@pytest.mark.parametrize(
    "bad",
    [None, 3, 1.5, "", b"", "a\0b", [], object()],
    ids=lambda bad: type(bad).__name__ + repr(bad)[:4],
)
def test_what_is_no_path(bad):
    with pytest.raises(InputError):
        check_path(bad)


def test_bytes_and_paths_are_paths(tmp_path):
    assert check_path(b"a") == check_path("a") == check_path(Path("a"))


@pytest.mark.parametrize("name", ["n" * 200, "é" * 100, "[a-z]*", "-", "a b"])
def test_odd_names(tmp_path, name):
    write_atomically(tmp_path / name, b"1")
    write_atomically(tmp_path / name, b"2")
    assert os.listdir(tmp_path) == [name]


# -- what killed writers leave ---------------------------------------------------------------------

KILLED = """
import os, signal, sys
from expunge.atomic import atomic_file
with atomic_file(sys.argv[1]) as stream:
    stream.write(b"half")
    stream.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@posix
def test_the_next_write_removes_what_a_killed_writer_left(tmp_path):
    done = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "f"], check=False)
    assert done.returncode < 0
    (left,) = os.listdir(tmp_path)
    assert left.startswith(".f.")
    write_atomically(tmp_path / "g", b"")  # that of another file is none of its business
    assert sorted(os.listdir(tmp_path)) == [left, "g"]
    write_atomically(tmp_path / "f", b"whole")
    assert sorted(os.listdir(tmp_path)) == ["f", "g"]


@posix
def test_nothing_else_is_removed(tmp_path):
    with atomic_file(tmp_path / "f"):
        (own,) = os.listdir(tmp_path)
        place, process, token = own.removeprefix(".f.").removesuffix(SUFFIX).split("-")
        gone = subprocess.run(
            [sys.executable, "-c", "import os; print(os.getpid())"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        kept = {
            ".f.txt",
            f".f.notes{SUFFIX}",
            f".f.{place}-{gone}-{token}",  # not our ending
            f"f.{place}-{gone}-{token}{SUFFIX}",  # not hidden
            f".f.elsewhere-{gone}-{token}{SUFFIX}",  # of another machine
            f".f.{place}-{process}-other{SUFFIX}",  # of a process that lives
            f".f.{place}-x-{token}{SUFFIX}",
        }
        for name in kept:
            (tmp_path / name).write_bytes(b"")
        (tmp_path / f".f.{place}-{gone}-folder{SUFFIX}").mkdir()
        old = tmp_path / f".f.elsewhere-1-{token}{SUFFIX}"
        old.write_bytes(b"")
        os.utime(old, (0, 0))  # nobody writes for that long
        (tmp_path / f".f.{place}-{gone}-{token}{SUFFIX}").write_bytes(b"")
        write_atomically(tmp_path / "f", b"inner")
        now = {*os.listdir(tmp_path)}
        assert now == {*kept, own, "f", f".f.{place}-{gone}-folder{SUFFIX}"}


def test_threads_that_write_the_same_file_leave_one_of_theirs(tmp_path):
    def write(number):
        for _ in range(20):
            write_atomically(tmp_path / "f", str(number).encode() * 1000)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    content = (tmp_path / "f").read_bytes()
    assert len(content) == 1000
    assert len({*content}) == 1
    assert os.listdir(tmp_path) == ["f"]


def test_a_missing_folder_is_named_and_not_the_hidden_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist") as caught:
        write_atomically(tmp_path / "nowhere" / "numbers", b"1")
    assert str(tmp_path / "nowhere") in str(caught.value)
    assert ".part" not in str(caught.value)


def test_what_cannot_be_written_is_named_and_not_the_hidden_file(tmp_path, monkeypatch):
    def refuse(name, *_, **__):
        raise PermissionError(EACCES, "Permission denied", os.fspath(name))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(PermissionError, match=r"Cannot be written \(Permission denied\)") as caught:
        write_atomically(tmp_path / "numbers", b"1")
    assert caught.value.filename == str(tmp_path / "numbers")
    assert ".part" not in str(caught.value)
