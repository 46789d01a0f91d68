"""Few labels and many rows on the command line: fit --unlabelled, --missing unlabelled, plan."""

import json

import numpy as np
import pandas as pd
import pytest

import expunge as ex
from expunge.cli import main


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """A table of 1,200 rows of which 150 have a label."""
    folder = tmp_path_factory.mktemp("people")
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 1200)
    X = (rng.normal(size=(1200, 8)) + 3 * np.outer(y, np.eye(8)[0])).astype(np.float32)
    gender = np.array(["f", "m"], dtype=object)[y]
    gender[150:] = None
    table = pd.DataFrame({"embedding": list(X), "gender": gender, "person": np.arange(1200) // 2})
    table.to_parquet(folder / "all.parquet")
    table[:150].to_parquet(folder / "few.parquet")
    np.save(folder / "rest.npy", X[150:])
    return folder, X, y


def test_rows_of_another_file_help(people, capsys):
    folder, X, y = people
    out, told = folder / "g.safetensors", folder / "g.json"
    few = [str(folder / "few.parquet"), "--concept", "gender"]
    more = ["--unlabelled", str(folder / "rest.npy"), "--method", "leace"]
    assert main(["fit", *few, *more, "-o", str(out), "--json", str(told)]) == 0
    assert "rows without labels make 150 labels worth" in capsys.readouterr().out
    wanted = ex.LEACE().fit(X[:150], y[:150], unlabelled=X[150:]).erasure_
    np.testing.assert_allclose(ex.Erasure.load(out).matrix(), wanted.matrix(), atol=1e-9)
    assert json.loads(told.read_text())["pool"]["n_pool"] == 1050


def test_a_file_that_holds_the_labelled_rows_too_gives_the_same(people, capsys):
    folder, X, y = people
    out = folder / "whole.safetensors"
    given = ["fit", str(folder / "few.parquet"), "-c", "gender", "-m", "leace", "-o", str(out)]
    assert main([*given, "--unlabelled", str(folder / "all.parquet")]) == 0
    shown = capsys.readouterr()
    assert "1,050 are different and not among the labelled ones" in shown.out
    assert shown.err.count("150 are labelled rows as well") == 1
    wanted = ex.LEACE().fit(X[:150], y[:150], unlabelled=X[150:]).erasure_
    np.testing.assert_allclose(ex.Erasure.load(out).matrix(), wanted.matrix(), atol=1e-9)


def test_rows_without_a_label_of_the_same_table_help(people, capsys):
    folder, X, y = people
    out = folder / "same.safetensors"
    given = ["fit", str(folder / "all.parquet"), "-c", "gender", "-o", str(out)]
    assert main(given) == 2
    assert "1,050 of 1,200 rows" in capsys.readouterr().err
    more = ["--missing", "unlabelled", "--groups", "person", "--method", "sal"]
    assert main([*given, *more]) == 0
    groups = np.arange(150) // 2
    wanted = ex.SAL().fit(X[:150], y[:150], unlabelled=X[150:], groups=groups).erasure_
    np.testing.assert_allclose(ex.Erasure.load(out).matrix(), wanted.matrix(), atol=1e-9)


def test_commands_that_cannot_use_them_refuse(people, capsys):
    folder, _, _ = people
    given = ["compare", str(folder / "all.parquet"), "-c", "gender", "--missing", "unlabelled"]
    assert main(given) == 2
    assert "Only fit and plan" in capsys.readouterr().err


@pytest.mark.parametrize("more", [["--unlabelled", "1050"], ["--missing", "unlabelled"]])
def test_a_plan(people, capsys, more):
    folder, X, y = people
    which = "few" if "1050" in more else "all"
    told = folder / "plan.json"
    given = [str(folder / f"{which}.parquet"), "-c", "gender", "--json", str(told)]
    assert main(["plan", *given, *more]) == 0
    found = json.loads(told.read_text())
    wanted = ex.plan_labels(X[:150], y[:150], unlabelled=1050, random_state=0)
    assert found["labels"] == wanted.labels
    assert found["with_pool"] == wanted.with_pool < wanted.labels
    assert f"{wanted.labels:,} labels" in capsys.readouterr().out


def test_a_plan_needs_labels(people, capsys):
    folder, _, _ = people
    assert main(["plan", str(folder / "few.parquet")]) == 2
    assert "--concept" in capsys.readouterr().err
