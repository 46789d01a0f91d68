"""The command line: what it prints, what it writes, how it fails."""

import json
import os
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest
import safetensors.numpy

import expunge as ex
from expunge.cli import app, main

COMMANDS = [command.name or command.callback.__name__ for command in app.registered_commands]
PLAIN = {
    key: value
    for key, value in os.environ.items()
    if key not in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS")
}


def run(*arguments, cwd=None):
    command = [sys.executable, "-W", "error", "-m", "expunge.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=PLAIN, cwd=cwd, check=False)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    done = run("demo", "--json", "demo.json", "--save", "gender.safetensors", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder, done


@pytest.fixture
def saved(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    X = rng.normal(size=(60, 4)) + np.outer(y, [2, 0, 0, 1])
    path = tmp_path / "small.safetensors"
    ex.RLACE().fit(X, np.array(["no", "yes"])[y]).erasure_.save(path, date="2022-07-17")
    return path


def test_piped_demo_is_plain_text(demo):
    _, done = demo
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert done.stdout.isascii()
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_demo_says_what_it_must(demo):
    _, done = demo
    said = ("fresh words", "Certificate", "does not promise", "Only linear", "Next: expunge")
    assert all(words in done.stdout for words in said)


def test_demo_json(demo):
    folder, done = demo
    found = json.loads((folder / "demo.json").read_text())
    assert found["command"] == "demo"
    assert found["version"] == ex.__version__
    assert found["linear_probe"]["before"] > 0.99
    assert abs(found["linear_probe"]["after"] - found["majority"]) < 0.01
    assert found["majority"] - 0.03 < found["fresh_probe"]["after"] < 0.6
    assert found["nonlinear_probe"]["after"] > 0.8
    assert found["bits_left"]["before"] > 0.9
    assert found["bits_left"]["after"] < 1e-5
    assert found["certificate"]["erased"]
    assert 0.8 < found["variance_kept"] < 1
    changed = [n["word"] for n in found["neighbours"] if n["before"] != n["after"]]
    assert len(found["neighbours"]) == 5
    assert 0 < len(changed) < 5
    assert f"{found['nonlinear_probe']['after']:.1%}" in done.stdout


def test_demo_leaves_only_what_was_asked_for(demo):
    folder, _ = demo
    assert sorted(p.name for p in folder.iterdir()) == ["demo.json", "gender.safetensors"]
    erasure = ex.Erasure.load(folder / "gender.safetensors")
    assert (erasure.rank, erasure.n_features) == (1, 100)


def test_info_on_the_saved_demo(demo, capsys):
    folder, _ = demo
    assert main(["info", str(folder / "gender.safetensors")]) == 0
    shown = capsys.readouterr().out
    for words in ("RLACE", "1 of 100", "orthogonal", "female-biased, male-biased", "7,350"):
        assert words in shown


def test_info(saved, tmp_path, capsys):
    report = tmp_path / "info.json"
    assert main(["info", str(saved), "--json", str(report)]) == 0
    shown = capsys.readouterr().out
    found = json.loads(report.read_text())
    meta = ex.Erasure.load(saved).meta
    assert found["method"] == "RLACE"
    assert found["concept"] == {"kind": "classes", "labels": ["no", "yes"]}
    assert found["fingerprint"] == meta["fingerprint"]["digest"]
    assert found["date"] == "2022-07-17"
    for words in ("closed_form", "no, yes", "60", found["fingerprint"], "tol=", "2022-07-17"):
        assert words in shown
    assert all(len(line) <= 100 for line in shown.splitlines())


def test_info_on_an_erasure_made_by_hand(tmp_path, capsys):
    path = tmp_path / "hand.safetensors"
    ex.Erasure([[1.0], [0.0]], [[1.0, 1.0]]).save(path)
    assert main(["info", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "oblique" in shown
    assert "not recorded" in shown


def test_info_on_two_erasures_in_a_row(saved, tmp_path, capsys):
    erasure = ex.Erasure.load(saved)
    erasure.then(ex.Erasure([[0.0], [1.0], [0.0], [0.0]], [[0.0, 1.0, 0.0, 0.0]])).save(
        tmp_path / "two.safetensors"
    )
    assert main(["info", str(tmp_path / "two.safetensors")]) == 0
    assert "RLACE then not recorded" in capsys.readouterr().out


def test_labels_cannot_send_escape_codes_to_the_terminal(tmp_path, capsys):
    meta = {"method": "\x1b[31m[bold]red", "concept": {"kind": "classes", "labels": ["a\nb", 1990]}}
    path = tmp_path / "sly.safetensors"
    ex.Erasure([[1.0], [0.0]], [[1.0, 0.0]], meta=meta).save(path)
    assert main(["info", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "[bold]red" in shown
    assert "a\\nb, 1990" in shown


def damaged(saved, tmp_path):
    path = tmp_path / "damaged.safetensors"
    path.write_bytes(saved.read_bytes()[:200])
    return path


def missing(saved, tmp_path):
    return tmp_path / "missing.safetensors"


def folder(saved, tmp_path):
    return tmp_path


@pytest.mark.parametrize("make", [damaged, missing, folder])
def test_bad_files_give_one_line_and_exit_code_2(make, saved, tmp_path, capsys):
    path = make(saved, tmp_path)
    assert main(["info", str(path)]) == 2
    seen = capsys.readouterr()
    assert seen.out == ""
    assert len(seen.err.splitlines()) == 1
    assert str(path) in seen.err


def test_no_traceback_from_the_installed_program(saved, tmp_path):
    done = run("info", str(damaged(saved, tmp_path)))
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("target", ["nowhere/out.json", "."])
def test_targets_are_checked_before_the_work(command, target, saved, tmp_path, capsys):
    rows = str(tmp_path / "rows.npy")
    np.save(rows, np.eye(4))
    needed = {
        "fit": [rows, "-o", str(tmp_path / "e.safetensors")],
        "apply": [str(saved), rows, "-o", str(tmp_path / "clean.npy")],
        "audit": [str(saved), rows, "--concept", "x"],
        "compare": [rows, "--concept", "x"],
        "frontier": [rows, "--concept", "x"],
        "rank-path": [rows, "--concept", "x"],
        "convert": [rows, str(tmp_path / "rows.csv")],
        "plan": [rows, "--concept", "x"],
        "info": [str(saved)],
        "reproduce": ["glove"],
        "scrub": ["model", "--data", "texts.parquet", "--concept", "gender", "-o", "a.safetensors"],
        "bake": ["model", str(saved), "-o", str(tmp_path / "baked")],
    }.get(command, [])
    assert main([command, *needed, "--json", str(tmp_path / target)]) == 2
    seen = capsys.readouterr()
    assert seen.out == ""
    assert len(seen.err.splitlines()) == 1


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command(command, capsys):
    assert main([command, "--help"]) == 0
    shown = capsys.readouterr().out
    assert f"expunge {command}" in shown
    assert "--json" in shown


def test_help_lists_every_command(capsys):
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    wanted = (
        "fit apply audit info compare frontier rank-path plan convert demo reproduce scrub bake"
    )
    assert wanted.split() == COMMANDS
    assert all(command in shown for command in COMMANDS)


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"expunge {ex.__version__}\n"


@pytest.mark.parametrize("arguments", [["info"], ["no-such-command"], ["demo", "--no-such-option"]])
def test_wrong_usage_exits_2(arguments, capsys):
    assert main(arguments) == 2
    assert "Error" in capsys.readouterr().err


posix = pytest.mark.skipif(os.name != "posix", reason="devices and pipes of POSIX")


@posix
def test_json_goes_through_devices_and_pipes_and_replaces_none(saved, tmp_path, capsys):
    assert main(["info", str(saved), "--json", os.devnull]) == 0
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    capsys.readouterr()
    assert main(["info", str(saved), "--json", "/dev/stdout"]) == 0
    shown = capsys.readouterr().out
    assert json.JSONDecoder().raw_decode(shown)[0]["command"] == "info"
    os.mkfifo(tmp_path / "pipe")
    received = []
    reader = threading.Thread(target=lambda: received.append((tmp_path / "pipe").read_text()))
    reader.start()
    assert main(["info", str(saved), "--json", str(tmp_path / "pipe")]) == 0
    reader.join()
    assert json.loads(received[0])["command"] == "info"
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@posix
@pytest.mark.parametrize("option", ["--save", "--report"])
def test_files_are_not_written_onto_devices(option, capsys):
    assert main(["demo", option, os.devnull]) == 2
    assert "device" in capsys.readouterr().err
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


@pytest.mark.parametrize(
    "meta",
    [
        '{"fingerprint": {"n": 3, "digest": "", "sketch": "?"}}',
        '{"concept": "sex"}',
        '{"steps": [3]}',
        '{"a": ' * 400 + "1" + "}" * 400,
    ],
    ids=["fingerprint", "concept", "steps", "deep"],
)
def test_info_on_damaged_meta_data(meta, tmp_path, capsys):
    tensors = {"left": np.ones((2, 1)), "right": np.ones((1, 2))}
    text = f'{{"format": 1, "kind": "erasure", "meta": {meta}}}'
    safetensors.numpy.save_file(tensors, tmp_path / "e", {"expunge": text})
    assert main(["info", str(tmp_path / "e")]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "damaged" in shown.err
    assert shown.err.count("\n") == 1
