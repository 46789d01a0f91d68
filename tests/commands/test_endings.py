"""How the program ends: interrupted, with a closed pipe, on a full disk, on a mistyped name."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

import expunge as ex
from expunge.commands.wording import as_options

posix = pytest.mark.skipif(os.name != "posix", reason="signals and pipes of POSIX")


def started(*arguments, **options):
    command = [sys.executable, "-W", "error", "-m", "expunge.cli", *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


@posix
def test_interrupted_while_writing(tmp_path):
    """One line, exit code 130, nothing but what was there."""
    X = np.random.default_rng(0).normal(size=(300_000, 20))
    np.save(tmp_path / "rows.npy", X)
    (tmp_path / "clean.csv").write_text("old")
    ex.Erasure(np.eye(20)[:, :1], np.eye(20)[:1]).save(tmp_path / "e.safetensors")
    names = sorted(os.listdir(tmp_path))
    process = started("apply", "e.safetensors", "rows.npy", "-o", "clean.csv", cwd=tmp_path)
    until = time.monotonic() + 60
    while sorted(os.listdir(tmp_path)) == names and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert out == ""
    assert len(err.splitlines()) == 1
    assert err.startswith("expunge: interrupted")
    assert sorted(os.listdir(tmp_path)) == names
    assert (tmp_path / "clean.csv").read_text() == "old"


@posix
def test_a_closed_pipe_is_nothing_to_speak_of(tmp_path):
    ex.Erasure([[1.0], [0.0]], [[1.0, 0.0]]).save(tmp_path / "e.safetensors")
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "expunge.cli", "info", "e.safetensors"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    os.close(writer)
    assert done.stderr == ""
    assert done.returncode == 141


@posix
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
def test_a_full_device_is_one_message(tmp_path):
    ex.Erasure([[1.0], [0.0]], [[1.0, 0.0]]).save(tmp_path / "e.safetensors")
    process = started("info", "e.safetensors", "--json", "/dev/full", cwd=tmp_path)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert len(err.splitlines()) == 1
    assert "No space left" in err


def test_exit_codes_and_streams_of_the_program(tmp_path):
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(size=(50, 3)))
    np.save(tmp_path / "y.npy", np.arange(50) % 2)
    fit = ("fit", "rows.npy", "--concept", "y.npy", "-o", "e.safetensors")
    good = started(*fit, cwd=tmp_path)
    out, err = good.communicate(timeout=60)
    assert (good.returncode, err) == (0, "")
    assert "\x1b" not in out
    bad = started("apply", "e.safetensors", "rows.npz", "-o", "c.npy", cwd=tmp_path)
    out, err = bad.communicate(timeout=60)
    assert (bad.returncode, out) == (2, "")
    assert err == (
        "expunge: There is no such file; the nearest is 'rows.npy'. Received rows.npz. "
        "Check its name.\n"
    )


@pytest.mark.parametrize(("typed", "meant"), [("fti", "fit"), ("rank_path", "rank-path")])
def test_a_mistyped_command(typed, meant, run):
    code, _, err = run(typed)
    assert code == 2
    assert meant in err


def test_a_mistyped_option(run):
    code, _, err = run("fit", "rows.npy", "--concpt", "x", "-o", "e.safetensors")
    assert code == 2
    assert "--concept" in err


def test_help_has_examples(run):
    for command in (
        "fit",
        "apply",
        "audit",
        "compare",
        "frontier",
        "rank-path",
        "convert",
        "info",
        "demo",
    ):
        code, out, _ = run(command, "--help")
        assert code == 0
        assert "Examples:" in out
        assert f"  expunge {command} " in out or f"  expunge {command}\n" in out
    assert "exit code is 0 when the audit ran" in run("audit", "--help")[1]


def test_completion_of_the_shell(run):
    assert "--install-completion" in run("--help")[1]
    env = {**os.environ, "_EXPUNGE_COMPLETE": "complete_bash"}
    env.update(COMP_WORDS="expunge fit --method ora", COMP_CWORD="3")
    code = "import sys; from expunge.cli import main; sys.exit(main([]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert done.stdout.split() == ["oracle-leace"]


def test_a_bar_on_a_terminal(tmp_path):
    """With a rate and the time left, on the error stream alone."""
    pty = pytest.importorskip("pty")
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(size=(60_000, 20)))
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "expunge.cli", "convert", "rows.npy", "rows.csv"]
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=theirs, text=True, cwd=tmp_path, env=env
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:
            break
        if not part:
            break
        seen += part
    out, _ = process.communicate(timeout=60)
    os.close(ours)
    assert process.returncode == 0
    assert out == "60,000 vectors of width 20: rows.csv\n"
    assert b"converting" in seen
    assert b"/60,000 rows" in seen
    assert b"rows/s" in seen


def test_the_words_of_the_command_line():
    said = "Pass drop=True if they may be, or dtype='float32'; see concept_type='classes'"
    assert as_options(said) == (
        "Write --drop-columns if they may be, or --dtype 'float32'; see --concept-type 'classes'"
    )
    assert (
        as_options("alpha=1 and transform(X, concept=z)") == "alpha=1 and transform(X, concept=z)"
    )


@pytest.fixture
def closed(people, monkeypatch):
    """A folder that cannot be written to, whoever asks."""
    folder = people.folder / "closed"
    folder.mkdir()
    opened, made = os.open, Path.mkdir

    def open_elsewhere(name, *args, **kwargs):
        refuse(name)
        return opened(name, *args, **kwargs)

    def make_elsewhere(path, *args, **kwargs):
        refuse(path)
        made(path, *args, **kwargs)

    def refuse(name):
        if Path(name).is_relative_to(folder):
            raise PermissionError(errno.EACCES, "Permission denied", str(name))

    monkeypatch.setattr(os, "open", open_elsewhere)
    monkeypatch.setattr(Path, "mkdir", make_elsewhere)
    return folder


def test_what_cannot_be_written_is_named(people, closed, run, refused):
    fit = ("fit", "people.parquet", "-c", "gender", "-m", "leace", "-o")
    assert run(*fit, "g.safetensors")[0] == 0
    (people.folder / "shards").mkdir()
    people.write("shards/0.parquet")
    said = f"Cannot be written (Permission denied); name another place than this: {closed}"
    for command in (
        (*fit, closed / "x.safetensors"),
        ("apply", "g.safetensors", "people.parquet", "-o", closed / "x.npz"),
        ("apply", "g.safetensors", "shards", "-o", closed / "x"),
        ("info", "g.safetensors", "--json", closed / "x.json"),
    ):
        assert f"{said}/{Path(str(command[-1])).name}\n" in refused(*command)


def test_a_folder_without_the_right_to_write_is_refused_before_the_work(people, refused):
    closed = people.folder / "closed"
    closed.mkdir()
    with patch("os.access", lambda path, mode: Path(path) != closed):
        said = refused("fit", "nothing.parquet", "-c", "gender", "-o", closed / "g.safetensors")
    assert f"cannot be written to. Received {closed}/g.safetensors" in said
