"""Runs that can be killed and resumed, their tables, figures and report."""

import json
import math
import os
import signal
import statistics
import subprocess
import sys
import time
from importlib import import_module
from inspect import signature
from pathlib import Path

import numpy as np
import pytest
import toy_experiment

import expunge as ex
from expunge.cli import main
from expunge.errors import InputError
from expunge.parallel import n_threads
from expunge.reproduce import registry, reproduce
from expunge.reproduce.runner import runs as runs_module
from expunge.reproduce.runner.declaration import ExperimentPart, LoadedData, RunSettings
from expunge.reproduce.runner.experiment_results import ExperimentResults, Number, summarise
from expunge.reproduce.runner.paper_table import PaperLine, PaperTable, markdown


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setitem(registry.EXPERIMENTS, "toy", "toy_experiment")
    toy_experiment.calls.clear()
    toy_experiment.trouble.clear()
    return toy_experiment


def crash():
    raise RuntimeError("power cut")


def interrupt_that_a_solver_swallows():
    try:
        os.kill(os.getpid(), signal.SIGINT)
        math.factorial(1000)  # let the signal arrive
    except KeyboardInterrupt:
        return


def test_a_number_is_the_mean_and_the_standard_deviation_of_the_runs():
    values = [0.3, 0.9, 0.5, 0.4]
    found = Number.of(values)
    assert found.mean == pytest.approx(statistics.mean(values))
    assert found.sd == pytest.approx(statistics.stdev(values))
    assert found.times(100).text(1) == "52.5 ± 26.3"
    assert Number.of([0.3]).sd is None
    assert Number.of([None, 0.5]).runs == 1
    assert math.isnan(Number.of([None]).mean)
    assert Number.of([None]).to_dict()["mean"] is None


def test_trees_are_summarised_leaf_by_leaf():
    trees = [
        {"a": {"d": [1, 2.0]}, "word": "x", "other": "y", "some": [1]},
        {"a": {"d": [3, None]}, "word": "x", "other": "z", "some": [1, 2]},
    ]
    found = summarise(trees)
    assert found["a"]["d"][0] == {"mean": 2.0, "sd": pytest.approx(math.sqrt(2)), "runs": 2}
    assert found["a"]["d"][1] == {"mean": 2.0, "sd": None, "runs": 1}
    assert (found["word"], found["other"], found["some"]) == ("x", ["y", "z"], [[1], [1, 2]])


def test_a_part_skipped_in_some_runs_is_measured_in_the_others():
    trees = {"a": [{"skipped": "few"}, {"x": 1.0}, {"x": 3.0}], "b": [{"skipped": "no"}] * 3}

    def kept(key, run):
        if run == 0:
            raise KeyError(key)
        return {"of": np.array(run)}

    results = ExperimentResults(RunSettings(3), LoadedData(None, "toy", "0"), trees, kept)
    assert results.has("a")
    assert results.number("a", "x") == Number.of([1.0, 3.0])
    assert results.first("a", "x") == 1.0
    assert results.arrays("picture")["of"] == 1
    assert results.skipped("a") == ""
    assert (results.has("b"), results.skipped("b")) == (False, "no")
    assert results.to_dict()["a"]["summary"]["x"]["runs"] == 2
    parts = [ExperimentPart("a", "first", dict), ExperimentPart("b", "second", dict)]
    assert results.left_out(parts) == [
        "first (in runs 1; the figures are of the others): few",
        "second: no",
    ]


def test_tables_show_differences_and_flag_other_data():
    lines = [PaperLine(("a",), Number(0.5, 0.1, 3), Number(0.75)), PaperLine(("b",), None)]
    table = PaperTable("t", "A table", ("what",), lines, "Table 1", digits=2)
    shown = table.shown("other words")
    assert shown.columns == ["what", "paper", "ours", "difference", "data"]
    assert shown.rows == [
        ("a", "0.75", "0.50 ± 0.10", "-0.25", "not comparable"),
        ("b", "–", "–", "–", "–"),
    ]
    assert table.shown("").rows[0][-1] == "the paper's"
    text = markdown("Title", [table], "other words")
    assert "not the paper's: other words." in text
    words_only = PaperTable("t", "A table", ("what",), [PaperLine(("a",), Number(0.5), "high")])
    assert words_only.shown("").columns == ["what", "paper", "ours", "data"]
    ours_only = PaperTable("t", "A table", ("what",), [PaperLine(("a",), Number(0.5))])
    assert ours_only.shown("other words").rows == [("a", "0.500")]
    labels_only = PaperTable("t", "A table", ("what", "d"), [PaperLine(("a", "0.5"), None)])
    assert labels_only.shown("other words").columns == ["what", "d"]


def test_everything_is_written(tmp_path):
    done = reproduce("toy", tmp_path / "new" / "out", runs=2, seed=5)
    found = json.loads((done.out / "results.json").read_text())
    draws = [np.random.default_rng([seed, 5]).normal(0, size=20).mean() for seed in (5, 6)]
    assert found["seeds"] == [5, 6]
    summary = found["parts"]["first"]["summary"]["mean"]
    assert summary["mean"] == pytest.approx(np.mean(draws))
    assert summary["sd"] == pytest.approx(np.std(draws, ddof=1))
    assert len(found["parts"]["once"]["runs"]) == 1
    assert found["parts"]["never"]["runs"] == [{"skipped": "toys do not have it"}]
    assert found["data"] == {
        "source": "level 0.0",
        "fingerprint": "digest of 0.0",
        "comparable": False,
        "not_comparable": "a toy",
        "facts": {"level": 0.0},
    }
    assert {"expunge", "numpy", "scipy", "scikit-learn", "python"} <= found["versions"].keys()
    line = found["tables"][0]["lines"][0]
    assert line["difference"] == pytest.approx(np.mean(draws) - 0.25)
    assert not line["comparable"]
    assert r"a\|b" in (done.out / "tables.md").read_text()
    assert (done.out / "figures" / "draws.png").read_bytes().startswith(b"\x89PNG")
    assert (done.out / "figures" / "draws.pdf").read_bytes().startswith(b"%PDF")
    page = (done.out / "report.html").read_text()
    for text in ("A toy", "Figure 9", "data:image/png;base64,", "toys do not have it", "a word"):
        assert text in page
    assert str(done).splitlines()[1] == f"The mean is {Number.of(draws).text(2)}."


@pytest.mark.parametrize("place", [("first", 0), ("second", 1), ("once", 0)])
def test_a_resumed_experiment_equals_an_uninterrupted_one(tmp_path, toy, place):
    reproduce("toy", tmp_path / "whole")
    everything = list(toy.calls)
    toy.calls.clear()
    toy.trouble[place] = crash
    with pytest.raises(RuntimeError):
        reproduce("toy", tmp_path / "killed")
    assert not (tmp_path / "killed" / "results.json").exists()
    done = reproduce("toy", tmp_path / "killed", resume=True)
    assert sorted(toy.calls, key=str) == sorted([*everything, place], key=str)  # nothing but it
    for name in ("results.json", "tables.md", "report.html", "figures/draws.png"):
        assert (done.out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_an_interruption_that_a_solver_swallows_is_not_a_result(tmp_path, toy):
    toy.trouble["second", 1] = interrupt_that_a_solver_swallows
    with pytest.raises(KeyboardInterrupt):
        reproduce("toy", tmp_path)
    interrupted = list(toy.calls)
    reproduce("toy", tmp_path, resume=True)
    assert ("second", 1) in toy.calls[len(interrupted) :]
    assert ("draw", "second", 1) in toy.calls[len(interrupted) :]  # made anew, not as left behind
    assert ("first", 1) not in toy.calls[len(interrupted) :]


@pytest.mark.skipif(n_threads() < 2, reason="there is no second core")
def test_processes_side_by_side_change_nothing_but_the_time(tmp_path, monkeypatch):
    """Each run has a process of its own, of which one dies; both come out right."""
    alone = reproduce("toy", tmp_path / "alone", runs=2)
    monkeypatch.setitem(registry.EXPERIMENTS, "toy", "toy_parallel")
    runs = tmp_path / "beside" / "runs"
    runs.mkdir(parents=True)
    (runs / "parent").write_text(str(os.getpid()))
    beside = reproduce("toy", tmp_path / "beside", runs=2)
    makers = [int(beside.results.arrays("process", n)["pid"]) for n in range(2)]
    assert len({*makers, os.getpid()}) == 3
    assert beside.to_dict() == alone.to_dict()
    assert not list(runs.rglob("progress.txt"))


@pytest.mark.skipif(n_threads() < 2 or os.name != "posix", reason="one core, or no signals")
@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGINT])
def test_no_process_outlives_the_one_that_started_it(tmp_path, way):
    code = (
        "import sys; from expunge.cli import main; from expunge.reproduce import registry\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "registry.EXPERIMENTS['toy'] = 'toy_sleeping'\n"
        f"sys.exit(main(['reproduce', 'toy', '--runs', '2', '--out', {str(tmp_path)!r}]))"
    )
    command = [sys.executable, "-c", code]
    kinds = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, start_new_session=True, **kinds) as process:
        asked = wait_for(
            lambda: [f.read_text() for f in tmp_path.rglob("pid") if f.stat().st_size], 2
        )
        (os.killpg if way == signal.SIGINT else os.kill)(process.pid, way)
        out, err = process.communicate(timeout=60)
    if way == signal.SIGINT:
        said = "expunge: interrupted; finished work is kept, go on with --resume\n"
        assert (process.returncode, out, err) == (130, "", said)
    gone = wait_for(lambda: [pid for pid in asked if not is_running(pid)], 2)
    assert sorted(gone) == sorted(asked)


def wait_for(found, count):
    end = time.monotonic() + 120
    while len(now := found()) < count:
        assert time.monotonic() < end, f"{now} after two minutes"
        time.sleep(0.05)
    return now


def is_running(pid):
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")  # where there is no such file, one that is dead is gone soon
    return not (state.exists() and ") Z " in state.read_text())


def test_more_runs_can_be_added(tmp_path, toy):
    reproduce("toy", tmp_path, runs=1)
    before = list(toy.calls)
    done = reproduce("toy", tmp_path, runs=2, resume=True)
    assert {call[-1] for call in toy.calls[len(before) :]} == {1}
    assert done.results.number("first", "mean").runs == 2


def test_a_damaged_result_is_done_again(tmp_path, toy):
    done = reproduce("toy", tmp_path, runs=1)
    for file in (tmp_path / "runs").rglob("output.pkl"):
        file.write_bytes(file.read_bytes()[:-3])
    again = reproduce("toy", tmp_path, runs=1, resume=True)
    assert again.to_dict() == done.to_dict()


def test_runs_are_never_mixed(tmp_path):
    reproduce("toy", tmp_path, runs=1)
    with pytest.raises(InputError, match="holds runs already"):
        reproduce("toy", tmp_path, runs=1)
    with pytest.raises(InputError, match="seed 0, not 1"):
        reproduce("toy", tmp_path, runs=1, seed=1, resume=True)
    level = tmp_path / "level.txt"
    level.write_text("2.5")
    with pytest.raises(InputError, match=r"data 'digest of 0\.0'"):
        reproduce("toy", tmp_path, data=level, runs=1, resume=True)


def test_bad_requests(tmp_path):
    for options in ({"runs": 0}, {"seed": -1}, {"data": tmp_path / "none"}):
        with pytest.raises(InputError):
            reproduce("toy", tmp_path / "out", **options)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="need a folder"):
        reproduce("toy", tmp_path / "file")
    assert not (tmp_path / "out").exists()


def test_the_function_and_the_package_have_one_name(tmp_path):
    package = import_module("expunge.reproduce")
    assert ex.reproduce is package
    assert package.EXPERIMENTS is registry.EXPERIMENTS
    assert signature(ex.reproduce) == signature(reproduce)
    assert isinstance(ex.reproduce("toy", tmp_path, runs=1), ex.Reproduction)


def test_importing_the_library_loads_no_experiment():
    code = "import sys, expunge; print([m for m in sys.modules if 'reproduce' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_progress_counts_what_is_missing_and_says_what_is_done(tmp_path, toy, monkeypatch):
    told = []

    class Bar:
        def __init__(self, title, total, shown):
            told.append((title, total, shown))

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def update(self, done, note):
            told.append((done, note))

    monkeypatch.setattr(runs_module, "Progress", Bar)
    toy.trouble["second", 0] = lambda: time.sleep(0.7)
    reproduce("toy", tmp_path, runs=1, verbose=True)
    assert told[0] == ("toy", 5, True)  # seconds, as the parts declare them
    assert (1, "run 1/2, second means") not in told
    assert (1, "run 1/1, second means") in told
    told.clear()
    toy.trouble["second", 1] = lambda: time.sleep(0.7)
    reproduce("toy", tmp_path, runs=2, resume=True)
    assert told[0] == ("toy", 3, False)  # what the second run has to do
    assert (1, "run 2/2, second means") in told


def test_command(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "TOY", "--quick", "--json", "toy.json"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert "The mean is" in shown.out
    assert "0.250" in shown.out
    assert "not the paper's: a toy" in shown.out
    found = json.loads((tmp_path / "toy.json").read_text())
    written = json.loads((tmp_path / "reproduce-toy" / "results.json").read_text())
    assert found["command"] == "reproduce"
    assert found["settings"] == {"runs": 1, "quick": True, "seed": 0, "options": {}}
    assert {**found, **written} == found


def test_command_says_how_to_go_on_after_an_interruption(tmp_path, toy, capsys):
    toy.trouble["second", 0] = interrupt_that_a_solver_swallows
    assert main(["reproduce", "toy", "--out", str(tmp_path)]) == 130
    assert "--resume" in capsys.readouterr().err
    assert main(["reproduce", "toy", "--out", str(tmp_path), "--resume"]) == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["nothing"],
        ["toy", "--out", "used"],
        ["toy", "--out", "used", "--resume", "--seed", "3"],
        ["toy", "--data", "missing.txt"],
        ["toy", "--runs", "0"],
        ["toy", "--json", "no/such/folder.json"],
    ],
)
def test_bad_commands_give_one_message(tmp_path, capsys, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    reproduce("toy", "used", runs=1)
    capsys.readouterr()
    assert main(["reproduce", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert len(shown.err.strip().splitlines()) == 1
    assert "Traceback" not in shown.err
