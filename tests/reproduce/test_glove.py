"""The experiment on word vectors: its claims on the embedded slice, whole runs on a small file."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import expunge as ex
from expunge.data import load_glove, load_word_lists
from expunge.errors import InputError
from expunge.reproduce.glove import measurements as glove_parts
from expunge.reproduce.glove import paper
from expunge.reproduce.glove.labelled_words import label_words, load, projection
from expunge.reproduce.glove.word_vectors import WordVectors
from expunge.reproduce.runner.declaration import RunSettings
from expunge.reproduce.runner.reproduction import reproduce
from expunge.reproduce.runner.runs import ExperimentRun

WIDTH = 12  # of the vectors in the small file
SHORT = {"QUICK_STEPS": 500, "QUICK_SPECTRUM_STEPS": 200, "QUICK_DESCENT_RANKS": (1, 3)}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A quick run on the embedded slice, with descent-ascent at rank 1 only."""
    settings = RunSettings(1, quick=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(glove_parts, "QUICK_DESCENT_RANKS", (1,))
        patch.setattr(glove_parts, "QUICK_SPECTRUM_STEPS", 1000)
        yield ExperimentRun(tmp_path_factory.mktemp("embedded"), load(None, settings), settings, 0)


@pytest.fixture(scope="module")
def exact(run):
    return glove_parts.accuracy_exact(run)


def test_a_linear_probe_finds_nothing_after_rlace(run, exact):
    assert exact["original"]["fit"] > 0.99
    majority = exact["majority"]
    assert np.abs(np.array(exact["RLACE exact"]["fit"]) - majority).max() < 0.01
    found = glove_parts.accuracy(run)
    assert found["ranks"] == (1,)
    assert abs(found["fit"][0] - majority) < 0.025  # of one run; 0.0075 is one standard error
    assert found["gap"][0] < 2 * glove_parts.ENOUGH


def test_the_other_methods_leave_gender_in(exact):
    assert exact["INLP"]["ranks"][0] == 1
    assert exact["INLP"]["fit"][0] > exact["majority"] + 0.1
    assert exact["PairPCA"]["ranks"] == [1, 2, 4, 6, 10]
    assert min(exact["PairPCA"]["fit"]) > exact["majority"] + 0.1


def test_accuracy_is_that_of_logistic_regression_on_projected_rows(run):
    glove, basis = run.data.glove, run.data.bases["INLP"][:, :2]
    P = np.eye(len(basis)) - basis @ basis.T
    probe = LogisticRegression(max_iter=2000).fit(glove.dev.X @ P, glove.dev.y)
    found = glove_parts.gender_accuracy(run.data, projection(basis))["fresh"]
    assert found == pytest.approx(probe.score(glove.test.X @ P, glove.test.y), abs=1e-3)


def test_the_first_directions_are_the_answer_at_lower_rank(run):
    train = run.data.glove.train
    pairs = load_word_lists().definitional_pairs
    female, male = ([run.data.glove.vector(w) for w in side] for side in zip(*pairs, strict=True))
    fits = {
        "RLACE exact": ex.RLACE(4).fit(train.X, train.y),
        "INLP": ex.INLP(3).fit(train.X, train.y),
        "PairPCA": ex.PairPCA.from_pairs(female, male, 3),
    }
    for name, eraser in fits.items():
        K = eraser.rank_
        assert glove_parts.degrees(run.data.bases[name][:, :K], eraser.erasure_.left)[-1] < 1e-4


def test_words_lose_associations_and_keep_their_meaning(run):
    after = glove_parts.words(run)["RLACE"]
    others = glove_parts.words_exact(run)
    assert list(others) == ["original", "RLACE exact", "INLP", "PairPCA"]
    for solver in (after, others["RLACE exact"]):
        for test, before in others["original"]["weat"].items():
            assert abs(solver["weat"][test]["d"]) < abs(before["d"])
            assert solver["weat"][test]["p"] > before["p"]
    simlex = {name: found["simlex"]["pearson"] for name, found in others.items()}
    assert simlex["original"] > 0.3
    for value in (after["simlex"]["pearson"], *simlex.values()):
        assert abs(value - simlex["original"]) < 0.02
    assert others["original"]["simlex"]["pairs"] == 999


def test_clusters_no_longer_follow_gender(run):
    found = glove_parts.clusters(run)
    assert found["clusters"][0] == 2
    assert found["original"][0] > 0.9
    assert found["RLACE"][0] < found["INLP"][0] < 0.2
    assert found["RLACE"][0] < found["PairPCA"][0]


def test_nonlinear_probes_still_find_gender(run):
    assert min(glove_parts.nonlinear(run).values()) > 0.85
    assert min(glove_parts.nonlinear_before(run).values()) > 0.95


def test_neighbours_and_picture(run):
    found = glove_parts.neighbours(run)
    assert list(found["words"]) == list(load_word_lists().neighbour_words) == list(paper.NEIGHBOURS)
    assert found["words"]["ocean"]["before"] == list(run.data.glove.neighbours("ocean"))
    assert 0.8 < found["overlap_10"] < 1
    assert glove_parts.scatter(run)["points"] == 2000
    drawn = run.kept("scatter", dict)
    before, after = (
        np.abs(np.subtract(*(drawn[stage][drawn["y"] == label].mean(axis=0) for label in (0, 1))))
        for stage in ("before", "after")
    )
    assert before.max() > 1 > 10 * after.max()


def test_angles_between_lines(run):
    a, b = run.data.bases["RLACE exact"][:, 0], run.data.bases["INLP"][:, 0]
    found = glove_parts.angles(run)
    assert found["RLACE exact"][0][0] == pytest.approx(np.degrees(np.arccos(abs(a @ b))))
    assert found["RLACE"][0][0] == pytest.approx(found["RLACE exact"][0][0], abs=2)


def test_one_eigenvalue_goes_to_one_and_the_others_depend_on_the_start(run):
    found = glove_parts.spectrum(run)
    rank, d = found["rank"], run.data.glove.vectors.shape[1]
    assert rank == 6
    for start in glove_parts.STARTS:
        assert np.sum(found[start]) == pytest.approx(rank)
        assert found[start][0] == pytest.approx(1, abs=0.05)
    assert np.allclose(found["center"][1:50], (rank - 1) / (d - 1), atol=0.01)
    assert found["vertex"][rank - 1] > 0.5


def test_the_ends_of_he_she_are_labelled():
    rng = np.random.default_rng(0)
    words = ("he", "she", *(f"w{i}" for i in range(298)))
    vectors = rng.normal(size=(300, 4)).astype(np.float32)
    vectors[:2] = [[3, 0, 0, 1], [-3, 0, 0, 1]]
    glove = label_words(WordVectors(words, vectors, "text"), seed=3)
    ranked = sorted(words, key=lambda w: float(vectors[words.index(w), 0]))  # he - she is 6 e_1
    parts = [glove.train, glove.dev, glove.test]
    assert [len(part) for part in parts] == [98, 42, 60]
    labels = {w: y for part in parts for w, y in zip(part.words, part.y.tolist(), strict=True)}
    assert labels == {**dict.fromkeys(ranked[:100], 1), **dict.fromkeys(ranked[-100:], 0)}
    again = label_words(WordVectors(words, vectors, "text"), seed=4)
    assert again.train.words != glove.train.words
    with pytest.raises(InputError, match="she"):
        label_words(WordVectors(("he", *words[2:]), vectors[1:], "text"))


def test_the_embedded_split_has_the_paper_s_sizes():
    loaded = load(None, RunSettings(1))
    facts = loaded.facts
    sizes = [facts[f"{name} words"] for name in ("Training", "Development", "Test")]
    assert sizes == [7350, 3150, 4500]
    assert "300-dimensional" in loaded.not_comparable


@pytest.fixture(scope="module")
def small_file(tmp_path_factory):
    """Some words of the slice, with the first columns of their vectors, as GloVe writes them."""
    glove, lists = load_glove(), load_word_lists()
    wanted = {"he", "she", *lists.neighbour_words, *glove.words[:1500]}
    wanted |= {word for pair in lists.definitional_pairs for word in pair}
    for test in lists.weat[5:8]:
        for part in (test.first_target, test.second_target, test.first_attribute):
            wanted |= set(part.words)
        wanted |= set(test.second_attribute.words)
    path = tmp_path_factory.mktemp("data") / "small.txt"
    rows = (
        f"{w} {' '.join(map(str, glove.vector(w)[:WIDTH]))}" for w in glove.words if w in wanted
    )
    path.write_text("\n".join(rows) + "\n")
    return path


def kept(out):
    """What the runs have kept, and when it was written."""
    return {file: file.stat().st_mtime_ns for file in (out / "runs").rglob("output.pkl")}


def test_a_killed_run_goes_on_and_ends_the_same(small_file, tmp_path, monkeypatch):
    for name, value in SHORT.items():
        monkeypatch.setattr(glove_parts, name, value)
    whole = reproduce("glove", tmp_path / "whole", data=small_file, runs=1, quick=True)
    arguments = ["reproduce", "glove", "--quick", "--runs", "1", "--data", str(small_file)]
    arguments += ["--out", str(tmp_path / "killed")]
    code = (
        "from expunge.cli import main; from expunge.reproduce.glove import measurements\n"
        f"vars(measurements).update({SHORT!r})\n"
        f"main({arguments!r})"
    )
    command = [sys.executable, "-c", code]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with subprocess.Popen(command, env=environment) as process:
        while process.poll() is None and not kept(tmp_path / "killed"):
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    made = kept(tmp_path / "killed")
    assert 0 < len(made) < len(kept(tmp_path / "whole"))
    assert not (tmp_path / "killed" / "results.json").exists()
    resumed = reproduce(
        "glove", tmp_path / "killed", data=small_file, runs=1, quick=True, resume=True
    )
    assert made.items() <= kept(tmp_path / "killed").items()
    texts = [(done.out / "results.json").read_bytes() for done in (whole, resumed)]
    assert texts[0] == texts[1]
    found = json.loads(texts[0])
    differs = found["data"]["not_comparable"]
    assert differs.startswith(f"{WIDTH} dimensions instead of 300, and 1,564 words instead of")
    assert differs.endswith("less of everything (quick)")
    assert [table["name"] for table in found["tables"]][:2] == ["accuracy", "accuracy_fresh"]
    weat = next(table for table in found["tables"] if table["name"] == "weat_d")
    line = next(line for line in weat["lines"] if line["method"] == "INLP")
    assert line["paper"]["mean"] == 1.11
    assert line["difference"] == pytest.approx(line["ours"]["mean"] - 1.11)
    figures = {file.name for file in (whole.out / "figures").iterdir()}
    names = ("accuracy", "angles", "clusters", "scatter", "spectrum", "weat")
    assert figures == {f"{name}.{kind}" for name in names for kind in ("png", "pdf")}


def test_words_without_lists_skip_what_needs_them(tmp_path, monkeypatch):
    for name, value in SHORT.items():
        monkeypatch.setattr(glove_parts, name, value)
    rng = np.random.default_rng(0)
    words = ["he", "she", *(f"w{i}" for i in range(200))]
    path = tmp_path / "other.txt"
    vectors = rng.normal(size=(202, 5))
    rows = zip(words, vectors.tolist(), strict=True)
    path.write_text("\n".join(f"{word} {' '.join(map(str, row))}" for word, row in rows))
    done = reproduce("glove", tmp_path / "out", data=path, runs=1, quick=True)
    for part in ("words", "words_exact", "neighbours"):
        assert done.results.skipped(part)
    assert {"accuracy", "clusters", "spectrum"} <= {table.name for table in done.tables}
    assert "Left out" in (done.out / "report.html").read_text()
