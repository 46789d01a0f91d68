"""What the strongest probe reads against what erasers cost: splits, points, table, report."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import expunge as ex
from expunge.audit import strongest_probe
from expunge.audit.held_out import held_out
from expunge.errors import InputError
from expunge.inputs import check_concept, check_rows
from expunge.metrics.change import damage, relative_change
from expunge.report import frontier_figure, render
from expunge.tradeoff import Frontier, tracing
from expunge.tradeoff import candidates as candidates_module
from expunge.tradeoff.candidates import candidates

PROBES = ["linear SVM", "Gaussian classes"]


@pytest.fixture(scope="module")
def planted():
    """Two classes apart by their mean and by their spread in half of the columns."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 1200)
    spread = np.where(np.arange(8) < 4, 1 + 2 * y[:, None], 1)
    return rng.normal(size=(1200, 8)) * spread + np.outer(y, [2, 0, 0, 0, 1, 0, 0, 0]), y


@pytest.fixture(scope="module")
def found(planted):
    X, y = planted
    four = ("four directions", ex.QuadraticLEACE(rank=4, label_free=True))
    return ex.frontier(X, y, [ex.LEACE(), "inlp", four], probes=PROBES)


def test_points_are_what_probes_read_and_erasers_cost(found):
    names = [point.name for point in found.points]
    assert names == ["nothing", "LEACE()", "INLP", "four directions"]
    nothing, leace, _, four = found.points
    assert (nothing.change, nothing.neighbours) == (0, 1)
    assert nothing.probe.low > 0.9
    assert leace.probe.name == "Gaussian classes"
    assert leace.probe.low > 0.75
    assert leace.probe.validated["linear SVM"] < 0.6
    assert four.probe.value < leace.probe.value - 0.1
    assert four.change > 3 * leace.change > 0
    assert four.neighbours < leace.neighbours < 1
    assert all(p.probe.low <= p.probe.value <= p.probe.high for p in found.points)
    assert (found.n_fit, found.n_probe, found.n_test) == (600, 300, 300)


def test_concept_and_groups_may_be_named_columns(planted):
    X, y = planted
    who = np.arange(len(y)) // 2
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    apart = ex.frontier(X, y, ["LEACE"], groups=who, probes=PROBES[:1])
    named = ex.frontier(frame.assign(y=y, who=who), "y", ["LEACE"], groups="who", probes=PROBES[:1])
    assert [p.probe.value for p in named.points] == [p.probe.value for p in apart.points]
    assert apart.points[1].probe.value < 0.6 < apart.points[0].probe.low


def test_what_several_fits_warn_of_is_said_once(planted):
    X, y = planted
    X = X * np.where(np.arange(8) == 5, 1e4, 1)
    with pytest.warns(ex.UnitsMatter, match="Likewise: RLACE$") as heard:
        ex.frontier(X, y, ["SAL", "LEACE", "RLACE"], probes=PROBES[:1])
    assert [warning.filename for warning in heard] == [__file__]


def test_eraser_probe_and_test_rows_are_three_different_parts(planted, monkeypatch):
    X, y = planted
    seen = {}

    def watched(train, test, terms):
        seen["probe"], seen["test"] = train.before.array(), test.before.array()
        return judge(train, test, terms)

    judge = tracing.strongest_of
    monkeypatch.setattr(tracing, "strongest_of", watched)
    eraser = ex.LEACE()
    fits = []
    monkeypatch.setattr(
        ex.LEACE,
        "fit",
        lambda self, X, y, fit=ex.LEACE.fit, **more: (fits.append(X), fit(self, X, y, **more))[1],
    )
    ex.frontier(X, y, [eraser], probes=["linear discriminant"])
    parts = [fits[0], seen["probe"], seen["test"]]
    assert sum(map(len, parts)) == len(X)
    assert len(np.unique(np.vstack(parts), axis=0)) == len(X)


def test_change_is_that_of_the_metrics(planted):
    X, y = planted
    halves = X[:600], X[600:]
    clean = ex.LEACE().fit(halves[0], y[:600]).transform(halves[1])
    wanted = damage(halves[1], clean).relative_change
    assert relative_change(check_rows(halves[1]), check_rows(clean)) == pytest.approx(wanted)


def test_equal_states_give_equal_numbers(planted, found):
    X, y = planted
    again = ex.frontier(X, y, [ex.LEACE()], probes=PROBES)
    assert replace(again["LEACE()"], seconds=0) == replace(found["LEACE()"], seconds=0)
    other = ex.frontier(X, y, [ex.LEACE()], probes=PROBES, random_state=1)
    assert other["LEACE()"].change != found["LEACE()"].change


def test_groups_stay_in_one_part(planted):
    X, y = planted
    groups = np.arange(1200) // 4
    result = ex.frontier(X, y, [ex.LEACE()], probes=["linear SVM"], groups=groups)
    assert result.n_fit % 4 == result.n_probe % 4 == 0
    wide, narrow = result.points[1].probe, ex.frontier(X, y, [ex.LEACE()], probes=["linear SVM"])
    assert wide.error >= narrow.points[1].probe.error * 0.9


def test_efficient_are_those_that_no_other_beats(found):
    point = found.points[1]

    def at(name, value, change):
        return replace(point, name=name, probe=replace(point.probe, value=value), change=change)

    some = (at("a", 1.0, 0.0), at("b", 0.9, 0.1), at("c", 0.95, 0.2), at("d", 0.6, 0.5))
    assert replace(found, points=some).efficient == ("a", "b", "d")
    assert replace(found, points=(at("a", 0.9, 0.1), at("b", 0.9, 0.1))).efficient == ("a", "b")


def test_table_frame_json_and_picture(found, tmp_path):
    text = str(found)
    assert text.splitlines()[0].split("  ")[0] == "eraser"
    assert "four directions" in text
    assert "Gaussian classes" in text
    frame = found.to_frame()
    assert list(frame.index) == [point.name for point in found.points]
    assert frame.loc["LEACE()", "probe_low"] == found["LEACE()"].probe.low
    plain = json.loads(found.to_json(tmp_path / "f.json"))
    assert plain == json.loads((tmp_path / "f.json").read_text())
    assert plain["points"][1]["probe"]["value"] == found["LEACE()"].probe.value
    for against in ("change", "neighbours"):
        axes = found.plot(against=against)
        assert axes.get_xlabel().split(":")[0].split()[0] in ("change", "share")
    with pytest.raises(KeyError):
        found["nobody"]


def test_candidates_by_default_cover_every_kind_and_take_the_fold_when_it_is_there(monkeypatch):
    names = [method.name for method in candidates(None, "classes", 100)]
    assert {name.split(",")[0].split("(")[0] for name in names} >= {
        "LEACE",
        "RLACE",
        "INLP",
        "QuadraticLEACE",
    }
    assert not any("Quadratic" in m.name for m in candidates(None, "continuous", 100))

    class FoldEraser(ex.LEACE):
        def __init__(self, rank="auto", *, transport="gaussian", rounds=0):
            super().__init__(rank)
            self.transport, self.rounds = transport, rounds

    monkeypatch.setitem(candidates_module.ERASERS, "FoldEraser", FoldEraser)
    folds = [m for m in candidates(None, "classes", 100) if m.name.startswith("Fold")]
    assert [m.name for m in folds] == [
        "FoldEraser(transport='shift')",
        "FoldEraser()",
        "FoldEraser(rounds=1)",
        "FoldEraser(rounds=2)",
        "FoldEraser(rounds=5)",
    ]
    assert [m.eraser.rounds for m in folds] == [0, 0, 1, 2, 5]


@pytest.mark.parametrize(
    ("erasers", "message"),
    [([3], "made of erasers"), ("leece", "Unknown method"), ([], "some erasers")],
)
def test_what_is_no_eraser_is_refused(planted, erasers, message):
    with pytest.raises(InputError, match=message):
        ex.frontier(*planted, erasers)


def test_too_few_rows_are_refused():
    X = np.random.default_rng(0).normal(size=(30, 3))
    with pytest.raises(InputError, match="too few"):
        ex.frontier(X, np.arange(30) % 2, [ex.LEACE()], probes=["linear SVM"])


def test_an_eraser_that_refuses_the_rows_is_left_out_with_the_reason(planted):
    X, _ = planted
    z = X[:, 0] + np.random.default_rng(0).normal(size=len(X))
    both = ["LEACE", "QuadraticLEACE"]
    result = ex.frontier(X, z, both, probes=["ridge regression, ridge 0.01"])
    assert [point.name for point in result.points] == ["nothing", "LEACE"]
    assert "QuadraticLEACE" in result.left_out
    assert "QuadraticLEACE left out" in str(result)
    assert result.statistic == "r2"


def audited(planted, frontier=None):
    X, y = planted
    e = ex.LEACE().fit(X[:600], y[:600]).erasure_
    return ex.audit(e, X_test=X[600:], y_test=y[600:], probes=PROBES, frontier=frontier)


def with_fold(found: Frontier) -> Frontier:
    leace = found.points[1]
    fold = replace(
        leace,
        name="FoldEraser()",
        probe=replace(leace.probe, value=0.6543, low=0.61, high=0.69),
        change=0.0812,
        fold=True,
    )
    return replace(found, points=(*found.points[:1], replace(leace, name="LEACE"), fold))


def test_the_report_draws_a_frontier_and_says_what_the_fold_would_do(planted, found):
    drawn = with_fold(found)
    audit = audited(planted, drawn)
    assert audit.verdict.nonlinear == "found"
    for given in (drawn, json.loads(drawn.to_json())):
        page = render(audited(planted, given).to_dict())
        assert "What erasing more would cost" in page
        assert "Against neighbours" in page
        assert "A fold, FoldEraser(), leaves 65.4%" in page
        assert "at a change of 8.1% of the variance" in page
    plain = render(audited(planted).to_dict())
    assert "What erasing more would cost" not in plain
    assert "A fold, " not in plain


def test_without_a_frontier_the_report_points_to_the_fold_where_there_is_one(planted, monkeypatch):
    content = audited(planted).to_dict()
    monkeypatch.setitem(frontier_figure.ERASERS, "FoldEraser", ex.LEACE)
    assert "see FoldEraser, and ex.frontier" in render(content)
    content["erasure"]["method"] = "FoldEraser"  # it is one already
    assert "see FoldEraser" not in render(content)


def test_an_audit_refuses_what_is_no_frontier(planted):
    with pytest.raises(InputError, match="must be what expunge"):
        audited(planted, {"points": []})
    with pytest.raises(InputError, match="must be what expunge"):
        audited(planted, 3)


def test_the_judge_of_a_frontier_is_the_one_that_is_exposed(planted):
    """By hand on the same three parts: the same probe, value and limits."""
    X, y = planted
    result = ex.frontier(X, y, [ex.LEACE()], probes=PROBES)["LEACE()"].probe
    seed = int(np.random.default_rng(0).integers(2**31))
    new = held_out(check_rows(X), [check_concept(y, 1200)], 0.5, seed)
    tested = held_out(check_rows(X[new]), [check_concept(y[new], 600)], 0.5, seed + 1)
    learn = np.setdiff1d(np.arange(600), tested)
    fit = np.setdiff1d(np.arange(1200), new)
    clean = ex.LEACE().fit(X[fit], y[fit]).transform(X[new])
    wanted = strongest_probe(
        clean[learn], y[new][learn], clean[tested], y[new][tested], probes=PROBES
    )
    assert (result.name, result.value) == (wanted.name, pytest.approx(wanted.value))
