"""The task of an audit: beside chance, by groups, with few rows, without training rows."""

import json
import re

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score

import expunge as ex
from expunge.audit import task_rates

PROBE = ["linear discriminant"]
FIT, NEW = slice(0, 3000), slice(3000, None)


def people(n=6000, seed=0):
    """Rows, a group, and a task that one in four says yes to, told by the group's own direction."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 4))
    X[:, 0] += 3 * group
    task = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 3.5, "yes", "no")
    return X, group, task


def audited(X, group, task, **options):
    e = ex.LEACE().fit(X[FIT], group[FIT])
    pair = task[FIT], task[NEW]
    return ex.audit(e, X[FIT], group[FIT], X[NEW], group[NEW], task=pair, probes=PROBE, **options)


def one_line(text):
    return re.sub(r"\s+", " ", text)


# -- beside chance -------------------------------------------------------------------------------


def test_a_task_that_is_gone_is_seen_to_be_gone(tmp_path):
    """An accuracy of 70 % after is what always saying no has; that has to stand beside it."""
    X, group, task = people()
    a = audited(X, group, task)
    found = json.loads(a.to_json())["fairness"]
    assert found["majority"] == np.mean(task[NEW] == "no")
    assert found["chance"] == 0.5
    before, after = found["before"]["balanced_accuracy"], found["after"]["balanced_accuracy"]
    assert before["low"] > 0.8  # it was there
    assert after["value"] < 0.6
    assert found["after"]["accuracy"]["value"] > 0.65  # which alone would hide it
    text = one_line(str(a))
    assert f"(always the commonest class: {100 * found['majority']:.1f} %)" in text
    values = [f"{100 * part['value']:.1f} %" for part in (before, after)]
    assert f"balanced accuracy {values[0]} -> {values[1]} (chance 50.0 %)" in text
    a.to_html(tmp_path / "a.html")
    page = one_line(re.sub(r"<[^>]+>", " ", (tmp_path / "a.html").read_text(encoding="utf-8")))
    assert f"{before['value']:.1%}" in page
    assert f"commonest class has an accuracy of {found['majority']:.1%}" in page
    assert "of balanced accuracy chance is 50.0%" in page


def test_balanced_accuracy_is_that_of_the_answers():
    X, group, task = people()
    found = audited(X, group, task).to_dict()["fairness"]["before"]["balanced_accuracy"]
    answers = LogisticRegression(C=0.03).fit(X[FIT], task[FIT]).predict(X[NEW])
    expected = balanced_accuracy_score(task[NEW], answers)
    assert found["value"] == pytest.approx(expected, abs=0.01)
    assert found["low"] < found["value"] < found["high"]


# -- too few of something ------------------------------------------------------------------------


def of_groups(names, shares, classes=("no", "yes"), n=6000):
    """Rows of groups with these shares, and a task that has nothing to do with them."""
    rng = np.random.default_rng(1)
    group = rng.choice(names, n, p=shares)
    code = rng.integers(0, len(classes), n)
    X = rng.normal(size=(n, 4))
    X[:, 0] += 3 * (group == names[0])
    X[np.arange(n), 1 + code] += 1.5
    return X, group, np.array(classes)[code]


def test_rates_of_a_few_rows_are_named_and_left_out(tmp_path):
    """Two rows all wrong would be a gap of .8, and count as much as that of thousands."""
    X, group, task = of_groups(["a", "b", "c"], [0.7, 0.298, 0.002])
    rare = np.flatnonzero(group[NEW] == "c") + 3000
    group[rare[4:]] = "b"
    task[rare[:3]], task[rare[3]] = "yes", "no"
    a = audited(X, group, task)
    found = json.loads(a.to_json())["fairness"]
    assert found["least_rows"] == 5
    assert found["left_out"] == [["no", "c", 1], ["yes", "c", 3]]
    before = found["before"]
    kept = [row[:2] for row in before["gaps"]["gaps"]]
    assert [row[2] for row in before["gaps"]["gaps"]] == [None, None]
    assert before["gaps"]["n_gaps"] == 4
    assert before["rms"] == pytest.approx(np.sqrt(np.mean(np.square(kept))))
    assert before["rms"] < 0.06  # nothing differs between these groups
    assert before["gaps"]["counts"][1][2] == 3  # the rows are still counted
    words = "as rates of fewer than 5 rows: no in c (1), yes in c (3)"
    assert words in one_line(str(a))
    a.to_html(tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "“yes” in “c” (3)" in page


def test_where_no_rate_has_enough_rows_there_is_no_gap(tmp_path):
    X, group, task = of_groups(["a", "b"], [0.6, 0.4])
    group[NEW] = "a"
    group[3000:3006] = "b"
    task[3000:3006] = ["yes", "no"] * 3
    a = audited(X, group, task)
    found = json.loads(a.to_json())["fairness"]["after"]
    assert (found["rms"], found["rms_low"], found["rms_high"]) == (None, None, None)
    assert "RMS gap in true positive rate not known -> not known" in one_line(str(a))
    a.to_html(tmp_path / "a.html")


@pytest.mark.parametrize(("classes", "there"), [(("no", "yes"), False), (("x", "y", "z"), True)])
def test_a_correlation_takes_three_classes(classes, there, tmp_path):
    """Of two classes the gap and the share are two points: it is 1 or -1 whatever they are."""
    a = audited(*of_groups(["a", "b"], [0.6, 0.4], classes))
    found = json.loads(a.to_json())["fairness"]
    assert (found["before"]["gaps"]["correlation"] is not None) == there
    a.to_html(tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert ("correlation of gap and share" in page) == there


# -- without training rows, or without anything to test on ---------------------------------------


def notes(a):
    return [note for note in a.to_dict()["data"]["notes"] if "task" in note]


def test_with_fresh_rows_alone_the_task_is_learnt_in_turns(tmp_path):
    X, group, task = people()
    e = ex.LEACE().fit(X[FIT], group[FIT]).erasure_
    a = ex.audit(e, X_test=X[NEW], y_test=group[NEW], task=task[NEW], probes=PROBE)
    found = json.loads(a.to_json())["fairness"]
    assert (found["folds"], found["n_train"], found["n_test"]) == (5, 2400, 3000)
    carried = audited(X, group, task).to_dict()["fairness"]
    assert carried["folds"] == 1
    for stage in ("before", "after"):
        for name in ("accuracy", "balanced_accuracy"):
            value = found[stage][name]["value"]
            assert value == pytest.approx(carried[stage][name]["value"], abs=0.02)
            assert found[stage][name]["low"] < value < found[stage][name]["high"]
        assert found[stage]["rms"] == pytest.approx(carried[stage]["rms"], abs=0.05)
    assert "Task: accuracy" in str(a)
    a.to_html(tmp_path / "a.html")
    assert "in 5 turns" in (tmp_path / "a.html").read_text(encoding="utf-8")
    same = ex.audit(e, X[NEW], group[NEW], task=task[NEW], probes=PROBE)  # passed as training rows
    assert json.loads(same.to_json())["fairness"] == found


def test_rows_of_one_id_are_on_one_side_of_the_task():
    """Copies under one id tell the task of each other, which nothing else does."""
    rng = np.random.default_rng(2)
    X, group = rng.normal(size=(300, 40)), rng.integers(0, 2, 300)
    X[:, 0] += group
    task = rng.integers(0, 2, 300)
    e = ex.LEACE().fit(rng.normal(size=(300, 40)) + group[:, None], group).erasure_
    twice = np.repeat(np.arange(300), 4)
    near = X[twice] + 1e-3 * rng.normal(size=(1200, 40))
    rows = {"X_test": near, "y_test": group[twice], "task": task[twice], "probes": PROBE}
    alone = ex.audit(e, **rows).to_dict()["fairness"]
    grouped = ex.audit(e, **rows, ids=twice).to_dict()["fairness"]
    assert alone["before"]["accuracy"]["value"] > 0.58
    assert grouped["before"]["accuracy"]["value"] < 0.55


@pytest.mark.parametrize("name", ["train", "test"])
def test_with_rows_of_the_fit_alone_a_note_says_what_to_pass(name):
    X, group, task = people()
    e = ex.LEACE().fit(X[FIT], group[FIT]).erasure_
    given = {f"X_{name}": X[FIT], f"y_{name}": group[FIT]}
    a = ex.audit(e, **given, task=task[FIT], probes=PROBE)
    assert a.to_dict()["fairness"] is None
    (note,) = notes(a)
    assert "it takes fresh rows. Pass rows that were not in the fit as X_test and y_test." in note
    assert note in one_line(str(a))


def test_test_rows_of_one_group_are_no_error():
    X, group, task = people()
    e = ex.LEACE().fit(X[FIT], group[FIT]).erasure_
    one = np.flatnonzero(group[NEW] == 0) + 3000
    pair = task[FIT], task[one]
    a = ex.audit(e, X[FIT], group[FIT], X[one], group[one], task=pair, probes=PROBE)
    assert a.to_dict()["fairness"] is None
    assert "one class of the concept." in notes(a)[0]


def test_a_sample_without_the_rare_group_is_no_error(monkeypatch):
    monkeypatch.setattr(task_rates, "TASK_TESTED", 300)
    X, group, task = people()
    group[NEW] = 0
    group[3000:3002] = 1
    a = audited(X, group, task)
    assert a.to_dict()["fairness"] is None
    assert "one class of the concept." in notes(a)[0]


def test_a_concept_of_numbers_has_no_groups_and_a_note():
    X, _, task = people()
    z = X[:, 1] + 0.1
    e = ex.LEACE().fit(X[FIT], z[FIT])
    pair = task[FIT], task[NEW]
    a = ex.audit(e, X[FIT], z[FIT], X[NEW], z[NEW], task=pair, probes="linear")
    assert a.to_dict()["fairness"] is None
    assert "between the classes of a concept" in notes(a)[0]


def test_fresh_rows_with_one_class_of_the_task():
    X, group, task = people()
    e = ex.LEACE().fit(X[:2500], group[:2500]).erasure_
    both = slice(2000, 4000)  # rows of the fit, and fresh ones that all say no
    task[2500:4000] = "no"
    a = ex.audit(e, X_test=X[both], y_test=group[both], task=task[both], probes=PROBE)
    assert a.to_dict()["fairness"] is None
    assert "one class of it only" in notes(a)[0]


def test_no_task_no_note():
    X, group, _ = people()
    e = ex.LEACE().fit(X[FIT], group[FIT]).erasure_
    assert notes(ex.audit(e, X[FIT], group[FIT], probes=PROBE)) == []


@pytest.mark.parametrize("carried", [False, True])
def test_rows_of_one_id_are_one_piece_of_evidence_for_the_task(carried):
    """60 people of 20 rows each, whose task is their own: limits were those of 1,200 rows."""
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(60), 20)
    group, task = rng.integers(0, 2, 60)[who], rng.integers(0, 2, 60)[who]
    X = rng.normal(size=(60, 6))[who] + 0.1 * rng.normal(size=(1200, 6))
    e = ex.LEACE().fit(rng.normal(size=(300, 6)), rng.integers(0, 2, 300)).erasure_
    rows = {"X_test": X, "y_test": group, "task": task, "ids": who, "fresh": True}
    if carried:
        n = 400
        old = {"X_train": rng.normal(size=(n, 6)), "y_train": rng.integers(0, 2, n)}
        both = {"task": (rng.integers(0, 2, n), task), "ids": (1000 + np.arange(n), who)}
        rows = {**rows, **old, **both}
    found = ex.audit(e, **rows, probes=PROBE).to_dict()["fairness"]["before"]
    width = found["accuracy"]["high"] - found["accuracy"]["low"]
    as_people = 2 * 1.96 * np.sqrt(0.25 / 60)
    assert 0.7 * as_people < width < 1.8 * as_people
    assert found["rms_high"] > 0.2
