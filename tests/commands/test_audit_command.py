"""`expunge audit`, `compare` and `rank-path`: the same numbers as in Python."""

import json

import numpy as np
import pytest

import expunge as ex


@pytest.fixture
def gender(people, run):
    rows = ("--holdout", "0.4", "--seed", "0")
    fit = ("fit", "people.parquet", "-c", "gender", *rows, "-o", "g.safetensors")
    assert run(*fit)[0] == 0
    return ex.Erasure.load("g.safetensors")


def read(people, name):
    return json.loads((people.folder / name).read_text())


def write_halves(people, half):
    for name, part in (("train", half), ("test", ~half)):
        people.write(
            f"{name}.parquet",
            **{key: np.asarray(column)[part] for key, column in people.columns.items()},
            embedding=people.vectors(people.X[part]),
        )


def test_rows_that_the_fit_left_out_are_found_again(people, gender, run):
    code, out, err = run(
        *("audit", "g.safetensors", "people.parquet", "-c", "gender", "--probes", "linear"),
        *("--report", "report.html", "--json", "audit.json"),
    )
    assert code == 0
    assert "the fit left out 240 of 600 such rows" in err
    found = read(people, "audit.json")
    assert (found["data"]["n_train"], found["data"]["n_test"]) == (360, 240)
    assert found["data"]["n_fresh"] == 240
    assert found["command"] == "audit"
    assert "Audit of Erasure by RLACE" in out
    assert "open report.html in a browser" in out
    page = (people.folder / "report.html").read_text()
    assert "<title>Erasure audit: f / m</title>" in page


def test_vectors_in_another_scale_than_those_of_the_fit_are_named(people, gender, run):
    """As `expunge apply` names them."""
    short = people.X / np.linalg.norm(people.X, axis=1, keepdims=True)
    people.write("short.parquet", embedding=people.vectors(0.1 * short))
    code, out, _ = run(
        *("audit", "g.safetensors", "short.parquet", "-c", "gender", "--probes", "linear"),
        *("--json", "audit.json"),
    )
    assert code == 0
    warnings = read(people, "audit.json")["verdict"]["warnings"]
    told = [text for text in warnings if "do not look like" in text]
    assert len(told) == 1
    assert "do not look like" in " ".join(out.split())
    said = run("apply", "g.safetensors", "short.parquet", "-o", "clean.parquet")[2]
    assert "times as far" in told[0]
    assert "do not look like" in said
    code, out, _ = run(
        "audit", "g.safetensors", "people.parquet", "-c", "gender", "--probes", "linear"
    )
    assert "do not look like" not in " ".join(out.split())


def test_another_table_of_as_many_rows_is_fresh(people, gender, run):
    rng = np.random.default_rng(9)
    y = rng.integers(0, 2, 600)
    X = (rng.normal(size=(600, 8)) + np.outer(y, np.arange(8) / 4)).astype(np.float32)
    people.write("other.parquet", gender=np.array(["f", "m"])[y], embedding=people.vectors(X))
    code, _, _ = run(
        *("audit", "g.safetensors", "other.parquet", "-c", "gender", "--probes", "linear"),
        *("--json", "audit.json"),
    )
    assert code == 0
    data = read(people, "audit.json")["data"]
    assert (data["n_train"], data["n_fresh"]) == (0, 600)


def test_the_same_as_in_python(people, run):
    half = np.arange(600) < 300
    write_halves(people, half)
    eraser = ex.RLACE().fit(people.X[half], people.gender[half])
    eraser.erasure_.save("half.safetensors")
    code, _, err = run(
        *("audit", "half.safetensors", "test.parquet", "--train", "train.parquet"),
        *("-c", "gender", "--task", "job", "--probes", "linear", "--json", "audit.json"),
    )
    assert (code, err) == (0, "")
    found = read(people, "audit.json")
    wanted = ex.audit(
        eraser.erasure_,
        people.X[half],
        people.gender[half],
        people.X[~half],
        people.gender[~half],
        task=(people.job[half], people.job[~half]),
        probes="linear",
    )
    plain = json.loads(wanted.to_json())
    assert found["verdict"] == plain["verdict"]
    assert found["fresh_rows"] == plain["fresh_rows"]
    assert found["fairness"] is not None


def test_a_task_without_training_rows(people, run):
    """Of fresh rows it is learnt in turns; of rows of the fit a note says what to pass."""
    half = np.arange(600) < 300
    ex.RLACE().fit(people.X[half], people.gender[half]).erasure_.save("half.safetensors")
    write_halves(people, half)
    task = ("-c", "gender", "--task", "job", "--probes", "linear")
    code, out, _ = run("audit", "half.safetensors", "test.parquet", *task, "--json", "audit.json")
    assert code == 0
    assert "Task: accuracy" in out
    assert read(people, "audit.json")["fairness"]["folds"] == 5
    code, out, _ = run("audit", "half.safetensors", "train.parquet", *task)
    assert code == 0
    assert "Task: accuracy" not in out
    assert "The task that was passed was not measured" in out
    assert "X_test" not in out


def test_labels_of_the_two_tables_in_files(people, run, refused):
    half = np.arange(600) < 300
    ex.RLACE().fit(people.X[half], people.gender[half]).erasure_.save("half.safetensors")
    for name, part in (("train", half), ("test", ~half)):
        np.save(f"{name}.npy", people.X[part])
        np.save(f"{name}_labels.npy", people.gender[part])
    command = ("audit", "half.safetensors", "test.npy", "--concept", "test_labels.npy")
    more = ("--probes", "linear", "--train", "train.npy", "--train-concept", "train_labels.npy")
    assert run(*command, *more, "--json", "a.json")[0] == 0
    assert read(people, "a.json")["data"]["n_train"] == 300
    assert "--train FILE" in refused(*command, "--train-concept", "train_labels.npy")


def test_exit_codes(people, gender, run):
    ex.Erasure.identity(8).save("nothing.safetensors")
    command = ("audit", "nothing.safetensors", "people.parquet", "-c", "gender", "--fresh")
    code, out, _ = run(*command, "--probes", "linear")
    assert code == 0
    assert "found" in out
    assert run(*command, "--probes", "linear", "--fail-if-found")[0] == 1
    # here probes find 61 % with limits from 52 %, and sampling error reaches into them: no alarm
    clean = ("audit", "g.safetensors", "people.parquet", "-c", "gender", "--probes", "linear")
    code, out, _ = run(*clean, "--fail-if-found")
    assert "still find it" in out
    assert code == 0
    half = ("fit", "people.parquet", "-c", "gender", "--strength", "0.3", "-o", "half.safetensors")
    assert run(*half, "--holdout", "0.4")[0] == 0
    weak = ("audit", "half.safetensors", "people.parquet", "-c", "gender", "--probes", "linear")
    assert run(*weak)[0] == 0
    assert run(*weak, "--fail-if-found")[0] == 1


def test_rows_of_the_fit_show_nothing_and_the_way_out_is_said(people, run):
    assert run("fit", "people.parquet", "-c", "gender", "-o", "all.safetensors")[0] == 0
    command = ("audit", "all.safetensors", "people.parquet", "-c", "gender", "--probes", "linear")
    code, out, _ = run(*command, "--report", "report.html")
    assert code == 0
    assert "Not shown to be erased" in out
    assert "X_test" not in out


def test_what_an_audit_refuses(people, gender, refused):
    assert "--concept" in refused("audit", "g.safetensors", "people.parquet")
    assert "r.html" in refused(
        *("audit", "g.safetensors", "people.parquet", "-c", "gender", "--report", "r.pdf")
    )
    assert "nearest is 'gender'" in refused(
        "audit", "g.safetensors", "people.parquet", "-c", "gende"
    )
    assert "replace" in refused(
        "audit", "g.safetensors", "people.parquet", "-c", "gender", "--report", "people.parquet"
    )


def test_compare(people, run, refused):
    command = ("compare", "people.parquet", "-c", "gender", "--runs", "1", "--probes", "linear")
    code, out, _ = run(*command, "-m", "rlace,inlp", "--rank", "1", "--json", "c.json")
    assert code == 0
    wanted = ex.compare(
        people.X, people.gender, ["RLACE", "INLP"], [1], runs=1, probes="linear", random_state=0
    )
    found = read(people, "c.json")
    assert [row["method"] for row in found["rows"]] == ["nothing", "RLACE", "INLP"]
    for row, own in zip(found["rows"], wanted.rows, strict=True):
        assert row["fresh"]["mean"] == pytest.approx(own.fresh.mean, abs=1e-9)
        assert row["variance"]["mean"] == pytest.approx(own.variance.mean, abs=1e-9)
    assert "linear, fresh rows" in out
    assert "nearest is 'rlace'" in refused(*command, "-m", "rlac")
    assert "nearest is 'fold'" in refused(*command, "-m", "fodl")
    assert "nearest is 'test_size'" in refused(*command, "--set", "testsize=0.5")


def test_rank_path(people, run, refused):
    command = ("rank-path", "people.parquet", "-c", "job")
    code, out, _ = run(*command, "--ranks", "1-2", "--set", "alpha=1e-3", "--json", "r.json")
    assert code == 0
    wanted = ex.rank_path(people.X, people.job, ranks=[1, 2], alpha=1e-3, random_state=0)
    found = read(people, "r.json")
    losses = [point["loss"] for point in found["points"]]
    assert losses == pytest.approx([point.loss for point in wanted.points], abs=1e-9)
    assert "rank" in out
    assert "1-10" in refused(*command, "--ranks", "3-1")
    code, out, _ = run(*command, "--ranks", "1", "--holdout", "0.3")
    assert code == 0
    assert "fresh rows" in out


def test_frontier(people, run, refused):
    command = ("frontier", "people.parquet", "-c", "gender", "--probes", "linear")
    code, out, _ = run(*command, "-m", "leace", "--json", "f.json")
    assert code == 0
    wanted = ex.frontier(people.X, people.gender, ["LEACE"], probes="linear", random_state=0)
    found = read(people, "f.json")
    assert [point["name"] for point in found["points"]] == ["nothing", "LEACE"]
    for point, own in zip(found["points"], wanted.points, strict=True):
        assert point["probe"]["value"] == pytest.approx(own.probe.value, abs=1e-9)
        assert point["change"] == pytest.approx(own.change, abs=1e-9)
    assert "strongest probe" in out
    assert "nearest is 'fit_size'" in refused(*command, "--set", "fitsize=0.4")
    assert "no --concept" in refused("frontier", "people.parquet")


def test_a_frontier_is_drawn_in_the_report(people, run, refused):
    code, _, _ = run(
        "frontier", "people.parquet", "-c", "gender", "--probes", "linear", "-m", "leace",
        "--json", "f.json",
    )  # fmt: skip
    assert code == 0
    assert (
        run("fit", "people.parquet", "-c", "gender", "-m", "leace", "-o", "f.safetensors")[0] == 0
    )
    command = ("audit", "f.safetensors", "people.parquet", "-c", "gender", "--probes", "linear")
    code, _, _ = run(*command, "--frontier", "f.json", "--report", "f.html")
    assert code == 0
    assert "What erasing more would cost" in (people.folder / "f.html").read_text("utf-8")
    assert "file of numbers" in refused(*command, "--frontier", "people.parquet")


def test_ranks_in_the_words_of_each_command(people, run, refused):
    path = ("rank-path", "people.parquet", "-c", "gender", "--ranks")
    assert "or --ranks 'auto' for the concept's own" in refused(*path, "1-10")
    compare = ("compare", "people.parquet", "-c", "gender", "--rank", "10")
    assert "or --rank 'auto' for the concept's own" in refused(*compare)
    code, out, _ = run(*path, "1,2")
    assert code == 0
    assert "rows. Write --holdout 0.3, say." in " ".join(out.split())
    assert "X_test" not in out
