"""The experiment on faces: splits, the probe, whole runs on planted hats."""

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import expunge as ex
from expunge.audit.linear_probes import logistic_scores
from expunge.audit.probe import Training
from expunge.concept import Concept
from expunge.data import load_orl_faces
from expunge.reproduce.faces import measurements as faces_parts
from expunge.reproduce.faces.labelled_faces import load
from expunge.reproduce.faces.people_split import balanced, dealt, split_faces
from expunge.reproduce.faces.pixel_probe import RIDGE, compact, pixel_probe
from expunge.reproduce.runner.declaration import RunSettings, SkipPart
from expunge.reproduce.runner.reproduction import reproduce
from expunge.reproduce.runner.runs import ExperimentRun

HAT = slice(0, 8)  # lines of the image that a planted hat covers


@pytest.fixture(scope="module")
def orl():
    return load_orl_faces()


@pytest.fixture(scope="module")
def planted(orl):
    """ORL faces, half of each person's with a dark band on top, and three with a mustache."""
    images, hat = orl.images.copy(), np.arange(400) % 2
    images[hat == 1, HAT] //= 3
    mustache = np.zeros(400)
    mustache[[5, 105, 205]] = 1
    return {"images": images, "hat": hat, "mustache": mustache, "person_id": orl.person_id}


@pytest.fixture(scope="module")
def planted_file(planted, tmp_path_factory):
    path = tmp_path_factory.mktemp("planted") / "planted.npz"
    np.savez(path, **planted)
    return path


@pytest.fixture(scope="module")
def done(planted_file, tmp_path_factory):
    """A whole experiment on planted hats, with a short descent."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(faces_parts, "QUICK_STEPS", 1000)
        patch.setattr(faces_parts, "QUICK_MOST", 80)
        out = tmp_path_factory.mktemp("out") / "faces"
        return reproduce("faces", out, data=planted_file, runs=2, quick=True)


@pytest.mark.parametrize("seed", range(5))
def test_parts_share_no_person_and_have_equal_classes(orl, seed):
    faces = load(None, RunSettings(1)).content
    rng = np.random.default_rng(seed)
    split = split_faces(faces, "glasses", rng)
    people = [set(orl.person_id[part.index]) for part in (split.fit, split.held_out)]
    assert not people[0] & people[1]
    assert len(people[0] | people[1]) == 40
    assert 0.55 < split.fit.y.sum() / orl.glasses.sum() < 0.85
    for part in (split.fit, split.held_out):
        assert np.array_equal(part.y, orl.glasses[part.index])
        even = balanced(part, rng)
        assert even.y.mean() == 0.5
        assert len(even) == 2 * min(part.y.sum(), (1 - part.y).sum())
        assert set(even.index) <= set(part.index)
        assert len(balanced(part, rng, most=5)) == 10


def test_people_are_dealt_out_evenly():
    rng = np.random.default_rng(0)
    person = rng.integers(0, 200, 3000)
    y = (rng.random(3000) < 0.2).astype(int)
    part = dealt(y, person, 5, rng)
    assert all(len(np.unique(part[person == one])) == 1 for one in range(200))
    for label in (0, 1):
        counts = np.bincount(part[y == label], minlength=5)
        assert counts.max() - counts.min() <= 0.1 * counts.mean() + 2


def test_concepts_without_enough_faces_say_why(planted_file):
    faces = load(planted_file, RunSettings(1)).content
    rng = np.random.default_rng(0)
    with pytest.raises(SkipPart, match="no labels"):
        split_faces(faces, "smile", rng)
    with pytest.raises(SkipPart, match="3 faces of 3 people with it and 397 of 40 without"):
        split_faces(faces, "mustache", rng)


def test_few_coordinates_give_the_same_predictor(orl):
    X = orl.images[:, ::2, ::2].reshape(400, -1).astype(np.float32) / 255
    train, test = np.arange(0, 400, 4), np.arange(1, 400, 4)
    training = Training(X[train], Concept("classes", orl.glasses[train], (0, 1)))
    small, others, share = compact(training, X[test])
    assert small.X.shape == (100, 100)
    assert others.shape == (100, 100)
    assert share == 100 / 625
    found = pixel_probe().score(training, X[test], 0).values
    slow = logistic_scores(training, X[test], RIDGE)
    np.testing.assert_allclose(found[:, 1] - found[:, 0], slow[:, 1] - slow[:, 0], atol=2e-2)
    ridge = RIDGE * X[train].var(axis=0, dtype=np.float64).mean()
    twin = LogisticRegression(C=1 / (100 * ridge), max_iter=5000, tol=1e-8)
    twin.fit(X[train].astype(np.float64), orl.glasses[train])
    expected = twin.decision_function(X[test].astype(np.float64))
    np.testing.assert_allclose(found[:, 1] - found[:, 0], expected, atol=2e-2)
    assert twin.score(X[test], orl.glasses[test]) > 0.8


def test_an_erasure_at_half_strength_is_that_of_a_fit_at_half_strength(orl):
    X = orl.images[:, ::5, ::5].reshape(400, -1).astype(np.float64)
    full = ex.RLACE(1).fit(X, orl.glasses).erasure_
    for strength in (0.0, 0.5, 1.0):
        fitted = ex.RLACE(1, strength=strength).fit(X, orl.glasses)
        found = faces_parts.at_strength(full, strength).transform(X)
        np.testing.assert_allclose(found, fitted.transform(X), atol=1e-9)


def test_glasses_are_found_in_the_embedded_faces_and_gone_after(tmp_path):
    settings = RunSettings(1, quick=True)
    run = ExperimentRun(tmp_path, load(None, settings), settings, 0)
    found = faces_parts.measure("glasses", run)
    assert found["by_image"]["original"]["accuracy"]["value"] > 0.8
    for split in ("by_image", "same", "natural"):
        after = found[split]["RLACE"]
        assert abs(after["accuracy"]["value"] - after["majority"]) < 0.01, split
    assert found["natural"]["RLACE"]["majority"] > 0.6
    assert found["rows"]["people_shared"] == 0
    assert found["rows"]["people_fit"] + found["rows"]["people_held_out"] == 40
    kept = run.kept("pictures-glasses", dict)
    assert kept["faces"].shape == (5, 8, 2500)
    with pytest.raises(SkipPart):
        faces_parts.measure("hat", run)


def test_a_planted_hat_is_found_before_and_not_after(done):
    results = done.results
    assert results.number("hat", "same", "original", "accuracy", "value").mean > 0.97
    assert results.number("hat", "same", "RLACE, strength 0.5", "accuracy", "value").mean > 0.9
    for name in ("RLACE", "LEACE"):
        assert results.number("hat", "same", name, "accuracy", "value").mean == 0.5
    fresh = results.number("hat", "fresh", "RLACE", "accuracy", "value").mean
    assert fresh < results.number("hat", "fresh", "original", "accuracy", "value").mean - 0.1
    change = results.first("hat", "change")
    assert change["original"] == 0
    assert change["RLACE, strength 0.5"] == pytest.approx(change["RLACE"] / 2, rel=1e-3)


def test_the_erased_direction_is_the_hat(done):
    kept = done.results.arrays("pictures-hat")
    direction = kept["removed"].reshape(50, 50)
    assert np.linalg.norm(direction) == pytest.approx(1)
    assert np.sum(direction[HAT] ** 2) > 0.8
    assert direction[HAT].mean() < 0  # darker with it
    original, _, erased, oblique, uncentred = kept["faces"]
    top = original.reshape(8, 50, 50)[:, HAT].mean(axis=(1, 2))
    after = erased.reshape(8, 50, 50)[:, HAT].mean(axis=(1, 2))
    assert top[4:].mean() - top[:4].mean() > 0.1
    assert abs(after[4:].mean() - after[:4].mean()) < 0.4 * (top[4:].mean() - top[:4].mean())
    # without the mean every face gets a hat
    covered = uncentred.reshape(8, 50, 50)[:, HAT].mean(axis=(1, 2))
    assert covered.max() < after.min()
    assert not np.array_equal(oblique, erased)


def test_descent_finds_the_direction_of_the_closed_form(done):
    assert done.results.first("descent", "concept") == "hat"
    assert done.results.first("descent", "cosine") > 0.95


def test_the_report_shows_what_there_is_and_says_what_is_left_out(done):
    files = {path.name for path in (done.out / "figures").iterdir()}
    assert {"accuracy.png", "directions.pdf", "faces-hat.png"} <= files
    assert not any("mustache" in name for name in files)
    said = " ".join(done.findings)
    assert "Left out: mustache: 3 faces of 3 people" in said
    assert "Left out: glasses, smile, beard, bald: the data have no labels" in said
    page = (done.out / "report.html").read_text()
    assert "other faces than those of CelebA" in page
    stored = json.loads((done.out / "results.json").read_text())
    assert stored["data"]["facts"]["People"] == 40
    assert [table["name"] for table in stored["tables"]] == [
        *("accuracy", "accuracy_fresh", "natural_shares", "shared_people", "change", "faces"),
        "descent",
    ]
    (line,) = [line for line in stored["tables"][0]["lines"] if line["faces"] == "RLACE"]
    assert line["ours"]["mean"] == 50
    assert line["paper"] == "less than 1 above the majority"


def test_equal_seeds_give_equal_numbers(planted_file, tmp_path, done):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(faces_parts, "QUICK_MOST", 80)
        settings = RunSettings(2, quick=True)
        run = ExperimentRun(tmp_path, load(planted_file, settings), settings, 1)
        again = faces_parts.measure("hat", run)
    assert again["same"] == done.results.runs("hat")[1]["same"]
    assert again["fresh"] == done.results.runs("hat")[1]["fresh"]
