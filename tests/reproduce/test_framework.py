"""Runs that can be killed and resumed, their tables, figures and report."""

import json
import math
import os
import signal
import statistics
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import toy_experiment

import expunge
from expunge.cli import main
from expunge.errors import InputError
from expunge.parallel import n_threads
from expunge.reproduce import registry
from expunge.reproduce.experiment import Line, Loaded, Part, Settings, Table
from expunge.reproduce.numbers import Number, plain, summarise
from expunge.reproduce.reproduction import reproduce
from expunge.reproduce.results import Results
from expunge.reproduce.runs import Folder
from expunge.reproduce.tables import cells, heads, markdown


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
            raise FileNotFoundError
        return {"of": np.array(run)}

    results = Results(Settings(3), Loaded(None, "toy", "0"), trees, kept)
    assert results.has("a")
    assert results.number("a", "x") == Number.of([1.0, 3.0])
    assert results.first("a", "x") == 1.0
    assert results.arrays("picture")["of"] == 1
    assert results.skipped("a") == ""
    assert (results.has("b"), results.skipped("b")) == (False, "no")
    assert results.to_dict()["a"]["summary"]["x"]["runs"] == 2
    parts = [Part("a", "first", dict), Part("b", "second", dict)]
    assert results.left_out(parts) == [
        "first (in runs 1; the figures are of the others): few",
        "second: no",
    ]


def test_only_what_json_has_is_kept():
    assert plain({1: (np.float32(0.5), np.nan, np.int64(3), None, True)}) == {
        "1": [0.5, None, 3, None, True]
    }
    with pytest.raises(InputError, match="JSON does not have"):
        plain({"x": object()})


def test_tables_show_differences_and_flag_other_data():
    lines = [Line(("a",), Number(0.5, 0.1, 3), Number(0.75)), Line(("b",), None)]
    table = Table("t", "A table", ("what",), lines, "Table 1", digits=2)
    assert heads(table) == ["what", "paper", "ours", "difference", "data"]
    assert cells(table, "other words") == [
        ["a", "0.75", "0.50 ± 0.10", "-0.25", "not comparable"],
        ["b", "–", "–", "–", "–"],
    ]
    assert cells(table, "")[0][-1] == "the paper's"
    text = markdown("Title", [table], "other words")
    assert "not the paper's: other words." in text
    words_only = Table("t", "A table", ("what",), [Line(("a",), Number(0.5), "high")])
    assert heads(words_only) == ["what", "paper", "ours", "data"]
    ours_only = Table("t", "A table", ("what",), [Line(("a",), Number(0.5))])
    assert cells(ours_only, "other words") == [["a", "0.500"]]


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
    runs = tmp_path / "runs"
    assert (runs / "run-02" / "first.json").exists()
    assert not (runs / "run-02" / "second.json").exists()
    assert not (runs / "run-02" / "draws-second.npz").exists()
    reproduce("toy", tmp_path, resume=True)
    assert (runs / "run-02" / "second.json").exists()


@pytest.mark.skipif(n_threads() < 2, reason="helpers need a second core")
def test_helpers_change_nothing_but_the_time(tmp_path, monkeypatch):
    """The helper takes the last run, then dies in the one before; both come out right."""
    alone = reproduce("toy", tmp_path / "alone", runs=3)
    monkeypatch.setitem(registry.EXPERIMENTS, "toy", "toy_parallel")
    monkeypatch.setenv("TOY_PARENT", str(os.getpid()))
    monkeypatch.setenv("TOY_FOLDER", str(tmp_path / "helped" / "runs"))
    helped = reproduce("toy", tmp_path / "helped", runs=3)
    makers = [int(helped.results.arrays("process", n)["pid"]) for n in range(3)]
    assert makers[0] == os.getpid()
    assert makers[1] != os.getpid()  # it began, and died before the second part
    assert makers[2] == makers[1]
    assert helped.to_dict() == alone.to_dict()
    assert not list((tmp_path / "helped").rglob("taken"))


def test_more_runs_can_be_added(tmp_path, toy):
    reproduce("toy", tmp_path, runs=1)
    before = list(toy.calls)
    done = reproduce("toy", tmp_path, runs=2, resume=True)
    assert {call[-1] for call in toy.calls[len(before) :]} == {1}
    assert done.results.number("first", "mean").runs == 2


def test_a_half_written_result_is_done_again(tmp_path, toy):
    done = reproduce("toy", tmp_path, runs=1)
    (tmp_path / "runs" / "run-01" / "first.json").write_text('{"seconds": 1, "resu')
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


def test_the_function_and_the_package_have_one_name():
    assert expunge.reproduce is reproduce
    assert import_module("expunge.reproduce").reproduce is reproduce


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
    Folder(Path("used")).open("toy", Settings(3), "digest of 0.0", resume=False)
    assert main(["reproduce", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert len(shown.err.strip().splitlines()) == 1
    assert "Traceback" not in shown.err
