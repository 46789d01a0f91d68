"""Rows that are not independent: the audit says so in its text, its numbers and its report."""

import numpy as np
import pytest

import expunge as ex
from expunge.audit.dependence import groups_telling
from expunge.audit.near_copies import share_in_bunches
from expunge.audit.repeats import beyond_chance, by_chance, row_hashes
from expunge.inputs import check_concept, check_rows
from expunge.report import render

LINEAR = ["linear discriminant"]


def planted(rng, n, d=6):
    y = rng.integers(0, 2, n)
    return rng.normal(size=(n, d)) + 2 * np.outer(y, np.eye(d)[0]), y


def counts(rng, n):
    """A table in which most rows have a twin by chance."""
    y = rng.integers(0, 2, n)
    X = np.column_stack([rng.poisson(1 + y), rng.integers(0, 6, n), rng.poisson(0.3, (n, 2)).T[0]])
    return np.column_stack([X, rng.random((n, 3)) < 0.5]).astype(float), y


def audited(X, y, **given):
    """Half of the rows to fit, half fresh."""
    half = len(X) // 2
    eraser = ex.LEACE().fit(X[:half], y[:half])
    return ex.audit(eraser, X[:half], y[:half], X[half:], y[half:], probes=LINEAR, **given)


def said_everywhere(a, *words):
    """The one warning with these words, which text, JSON and report have too."""
    (found,) = [text for text in a.verdict.warnings if all(word in text for word in words)]
    assert found in a.to_dict()["verdict"]["warnings"]
    assert f"Warning: {found}" in " ".join(str(a).split())
    assert f"Warning: {found}" in render(a.to_dict())
    return found


def test_rows_that_are_there_three_times_are_noticed():
    rng = np.random.default_rng(0)
    X, y = planted(rng, 800)
    X, y = np.repeat(X, 3, axis=0), np.repeat(y, 3)
    a = audited(X, y)
    said_everywhere(a, "800 of 1,200 fresh rows", "400 rows differ", "groups=")
    said_everywhere(a, "800 of 1,200 rows of the fit", "groups=")
    found = a.to_dict()["data"]["dependence"]["copies"]["fresh rows"]
    assert (found["n"], found["n_different"], found["treated"]) == (1200, 400, "once")


def test_independent_rows_are_not_accused():
    rng = np.random.default_rng(1)
    X, y = planted(rng, 800)
    a = audited(X, y)
    assert a.verdict.warnings == ()
    assert "Warning" not in str(a)
    assert audited(X, y, groups=(np.arange(400), np.arange(400, 800))).verdict.warnings == ()


def test_a_table_that_repeats_by_chance_is_not_accused_but_a_copied_one_is():
    rng = np.random.default_rng(2)
    X, y = counts(rng, 3000)
    assert len(np.unique(X, axis=0)) < 600  # it does repeat
    said = audited(X, y).verdict.warnings  # of counts, which any oblique erasure writes to
    assert [text for text in said if not text.startswith("Columns tell the concept")] == []
    copied = np.repeat(X[:800], 3, axis=0)
    assert by_chance(check_rows(copied))  # columns repeat as often as rows do
    a = audited(copied, np.repeat(y[:800], 3))
    said_everywhere(a, "1,200 fresh rows", "exactly 3 times", "groups=")


@pytest.mark.parametrize("times", [2, 3, 10])
def test_how_often_values_occur_tells_copies_from_chance(times):
    rng = np.random.default_rng(times)
    for X in (counts(rng, 2000)[0], rng.integers(0, 9, (2000, 3)), rng.integers(0, 40, (2000, 1))):
        few = X[: 2000 // times]
        assert beyond_chance(row_hashes(check_rows(X))) is None
        if len(np.unique(few, axis=0)) > 50:
            found = beyond_chance(row_hashes(check_rows(np.repeat(few, times, axis=0))))
            assert found.times % times == 0
            assert found.values > 2 * found.chance


def test_copies_under_different_ids_are_on_both_sides():
    rng = np.random.default_rng(3)
    X, y = planted(rng, 400)
    X, y = np.repeat(X, 2, axis=0), np.repeat(y, 2)
    who = np.arange(800)
    a = audited(X, y, groups=(who[:400], who[400:]))
    said_everywhere(a, "200 of 400 fresh rows", "another group")
    same = who // 2
    a = audited(X, y, groups=(same[:400], same[400:]))
    assert not any("another group" in text for text in a.verdict.warnings)


def people(rng, count, each, d=8):
    who = np.repeat(np.arange(count), each)
    y = (np.arange(count) % 2)[who]
    own = rng.normal(size=(count, d))[who] + 0.3 * rng.normal(size=(len(who), d))
    return own + np.outer(y, np.eye(d)[0]), y, who


def test_groups_that_tell_the_concept_are_noticed():
    rng = np.random.default_rng(4)
    X, y, who = people(rng, 80, 20)
    a = audited(X, y, groups=(who[:800], who[800:]))
    text = said_everywhere(a, "fresh rows", "all 40 groups", "20 of the rarest class", "800 rows")
    assert "split by group here" in text
    found = a.to_dict()["data"]["dependence"]["groups"]["fresh rows"]
    assert (found["n"], found["n_groups"], found["fewest"]) == (800, 40, 20)
    assert found["explained"] == pytest.approx(1.0)


def test_probes_that_meet_groups_of_the_fit_are_named():
    rng = np.random.default_rng(5)
    X, y, who = people(rng, 60, 20)
    order = rng.permutation(1200)
    X, y, who = X[order], y[order], who[order]
    a = audited(X, y, groups=(who[:600], who[600:]), fresh=True)
    said_everywhere(a, "fresh rows", "all 60 groups", "600 of the fresh rows", "rows of the fit")


def test_groups_with_both_classes_or_many_of_them_are_not_accused():
    rng = np.random.default_rng(6)
    X, y, who = people(rng, 40, 30)
    y = rng.integers(0, 2, 1200)
    X = X + 2 * np.outer(y, np.eye(8)[1])
    assert audited(X, y, groups=(who[:600], who[600:])).verdict.warnings == ()
    X, y, who = people(rng, 1000, 2)
    assert audited(X, y, groups=(who[:1000], who[1000:])).verdict.warnings == ()


def test_rare_classes_make_pure_groups_by_chance():
    rng = np.random.default_rng(7)
    who = np.repeat(np.arange(200), 3)
    rare = check_concept((rng.random(600) < 0.05).astype(int), 600)
    assert groups_telling(rare, who).n_pure > 160
    assert groups_telling(rare, who).explained < 0.1
    own = check_concept(rng.normal(size=200)[who] + 0.1 * rng.normal(size=600), 600)
    assert groups_telling(own, who).explained > 0.9


def test_copies_in_a_fit_make_its_sampling_error_larger():
    rng = np.random.default_rng(8)
    X, y = planted(rng, 1400, d=30)
    once, new = (X[:400], y[:400]), (X[400:], y[400:])
    four = tuple(np.repeat(part, 4, axis=0) for part in once)
    q = [
        ex.audit(ex.LEACE().fit(*fit), *fit, *new, probes=LINEAR).residue.q for fit in (once, four)
    ]
    assert q[1] == pytest.approx(q[0], rel=0.1)
    told = ex.LEACE().fit(*four, groups=np.repeat(np.arange(400), 4))
    a = ex.audit(told, *four, *new, probes=LINEAR)
    assert a.residue.q == pytest.approx(q[0], rel=0.1)
    assert not any("rows of the fit" in text for text in a.verdict.warnings)


def takes(rng, n, *, things=400, d=60, noise=1e-3):
    """Many takes of few things, whose label is that of the thing."""
    label = rng.integers(0, 2, things)
    Z = rng.normal(size=(things, d)) + np.outer(label, 0.5 * (np.arange(d) < 10))
    which = rng.integers(0, things, n)
    return Z[which] + noise * rng.normal(size=(n, d)), label[which], which


@pytest.mark.parametrize("things", [400, 4000])
def test_takes_of_one_thing_are_named(things):
    """It said "at chance" and nothing else, where new things were read by 62 of 100."""
    X, y, which = takes(np.random.default_rng(0), 8000, things=things)
    a = audited(X, y)
    said_everywhere(a, "small bunches", "not independent", "groups=")
    assert a.to_dict()["data"]["dependence"]["bunches"]["fresh rows"] > 0.5
    told = audited(X, y, ids=(which[:4000], which[4000:]))
    assert not any("bunches" in text for text in told.verdict.warnings)


LOOSE = {
    "one column": lambda rng: rng.normal(size=(3000, 1)),
    "two": lambda rng: rng.normal(size=(3000, 2)),
    "many": lambda rng: rng.normal(size=(3000, 60)),
    "far": lambda rng: rng.standard_cauchy((3000, 10)),
    "skewed": lambda rng: np.exp(3 * rng.normal(size=(3000, 10))),
    "sparse": lambda rng: rng.exponential(size=(3000, 30)) * (rng.random((3000, 30)) < 0.1),
    "classes apart": lambda rng: (100 * np.eye(20))[np.arange(3000) % 20] + rng.random((3000, 20)),
    "whole": lambda rng: rng.poisson(3, size=(3000, 5)).astype(float),
}


@pytest.mark.parametrize("rows", LOOSE)
def test_independent_rows_lie_in_no_bunches(rows):
    X = LOOSE[rows](np.random.default_rng(0))
    assert share_in_bunches(check_rows(X)) < 0.25
