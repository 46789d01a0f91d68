"""Methods side by side: the audit's own numbers, the same rank for all, nothing that misleads."""

import io
import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import expunge as ex
from expunge.audit import Sizes
from expunge.audit.held_out import held_out
from expunge.audit.probe import Probe
from expunge.audit.probes import PROBES
from expunge.errors import InputError
from expunge.inputs import check_concept, check_rows
from planted import plant

LINEAR = "linear discriminant"  # one quick probe
FAST = {"probes": [LINEAR], "runs": 1}


@pytest.fixture(scope="module")
def result():
    data = plant("binary", n=900, d=10)
    task = (data.X[:, 3] > data.X[:, 3].mean()).astype(int)
    pairs = data.X[data.y == 1][:4], data.X[data.y == 0][:4]
    probes = [LINEAR, "linear SVM"]
    return ex.compare(data.X, data.y, ranks=[1, 3], task=task, runs=2, pairs=pairs, probes=probes)


def table_of_integers(n=1500, seed=0):
    """A table like those of courts: small integers, many repeats, four fifths of one class."""
    rng = np.random.default_rng(seed)
    z = (rng.random(n) < 0.8).astype(int)
    X = np.column_stack(
        [
            rng.poisson(2 + 1.5 * z),
            rng.poisson(0.3, n),
            rng.integers(18, 30, n),
            rng.integers(0, 2, n),
            rng.poisson(0.2 + 0.3 * z),
        ]
    )
    return X, np.where(z == 1, "m", "f")


def shown(result):
    return [(row.method, row.rank) for row in result.rows]


def test_every_method_once_at_each_rank_it_can_use(result):
    found = shown(result)
    assert len(found) == len(set(found))
    assert found[0] == ("nothing", 0)
    assert {method for method, _ in found} == {"nothing", *ex.ERASERS}
    ranks = {method: [rank for name, rank in found if name == method] for method, _ in found}
    assert ranks["RLACE"] == ranks["INLP"] == ranks["PairPCA"] == [1, 3]
    assert ranks["LEACE"] == ranks["SAL"] == ranks["OracleLEACE"] == [1]  # the concept's own
    text = str(result)
    assert "LEACE has nothing to remove beyond its rank above: not shown at 3" in text
    assert "SPLINCE, OracleLEACE: no rank to choose" in text


def test_auto_is_the_concepts_own_rank_for_every_method():
    data = plant("classes", n=600)
    found = ex.compare(data.X, data.y, **FAST)
    assert {rank for _, rank in shown(found)[1:]} == {3}
    assert "INLP is shown at the concept's own rank" in str(found)
    assert found.left_out["SPLINCE"] == "without task= it is LEACE"
    two = ex.compare(data.X, data.y, methods=["INLP", "LEACE"], ranks=["auto", 1], **FAST)
    assert shown(two) == [("nothing", 0), ("INLP", 3), ("INLP", 1), ("LEACE", 3), ("LEACE", 1)]


def test_an_eraser_keeps_its_own_rank_and_settings():
    data = plant("classes", n=600)
    other = (data.X[:, 0] > 0.7).astype(int)
    methods = [ex.LEACE(shrinkage="oas"), ex.LEACE(strength=0.5), ex.SAL(2), "meanprojection"]
    found = ex.compare(data.X, {"animal": data.y, "side": other}, methods, ranks=[6], **FAST)
    names = ["nothing", "LEACE(shrinkage='oas')", "LEACE(strength=0.5)", "SAL(rank=2)"]
    assert shown(found) == list(zip([*names, "MeanProjection"], [0, 4, 4, 2, 4], strict=True))
    by = {row.method: row for row in found.rows}
    weak, full = by["LEACE(strength=0.5)"].linear, by["LEACE(shrinkage='oas')"].linear
    assert weak.mean > full.mean + 0.03
    assert (weak.status, full.status) == ("found", "at chance")


def test_what_erases_is_at_chance_and_what_does_not_is_not(result):
    by = {(row.method, row.rank): row for row in result.rows}
    assert by["nothing", 0].linear.status == by["nothing", 0].fresh.status == "found"
    assert by["nothing", 0].bits.mean > 0.1
    assert result.chance == {"linear": 0.5, "fresh": 0.5, "task": 0.5}
    for method in ("RLACE", "LEACE", "SAL", "MeanProjection", "SPLINCE", "OracleLEACE"):
        assert by[method, 1].linear.status == "at chance"
        assert by[method, 1].linear.mean == pytest.approx(0.5, abs=0.005)
        assert by[method, 1].bits.mean < 0.02
    assert by["INLP", 1].linear.status == "found"
    assert by["nothing", 0].variance.mean == by["nothing", 0].neighbours.mean == 1.0
    assert by["RLACE", 3].variance.mean < by["RLACE", 1].variance.mean < 1.0
    assert by["RLACE", 1].neighbours.mean < 1.0
    assert by["SPLINCE", 1].task.mean > by["LEACE", 1].task.mean - 0.02


def test_numbers_are_those_of_an_audit():
    data = plant("binary", n=600, d=6)
    found = ex.compare(
        data.X, data.y, "RLACE", runs=1, random_state=3, probes="linear", sizes=Sizes()
    )
    seed = int(np.random.default_rng(3).integers(2**31, size=1)[0])
    test = held_out(check_rows(data.X), [check_concept(data.y, 600)], 0.3, seed)
    train = np.setdiff1d(np.arange(600), test)
    assert len(test) == found.n_test == 180
    assert np.mean(data.y[test]) == pytest.approx(np.mean(data.y), abs=0.01)
    eraser = ex.RLACE().fit(data.X[train], data.y[train])
    seen = ex.audit(
        eraser,
        data.X[train],
        data.y[train],
        data.X[test],
        data.y[test],
        probes="linear",
        random_state=0,
    )
    for row, stage in zip(found.rows, ("before", "after"), strict=True):
        same = getattr(seen.same_rows, stage)["linear"].strongest.value
        assert row.linear.mean == pytest.approx(same, abs=1e-9)  # no folds, so no seed
        fresh = getattr(seen.fresh_rows, stage)["linear"].strongest
        assert row.fresh.mean == pytest.approx(fresh.value, abs=0.08)  # other folds
    assert found.residue["unlimited"] == pytest.approx(seen.residue.balanced_accuracy)
    clean = eraser.transform(data.X[test])
    share = clean.var(axis=0).sum() / data.X[test].var(axis=0).sum()
    assert found.rows[1].variance.mean == pytest.approx(share)


@pytest.mark.parametrize("share", [0.8, 0.95])
def test_rare_classes_are_measured_against_the_right_chance(share):
    rng = np.random.default_rng(0)
    y = (rng.random(2000) < share).astype(int)
    X = rng.normal(size=(2000, 6)) + np.outer(y, [1.5, 0, 0, 1, 0, 0])
    found = ex.compare(X, y, ["LEACE", "INLP"], runs=2, probes="linear")
    nothing, leace, _ = found.rows
    assert nothing.linear.mean > 0.75
    assert found.chance["linear"] == leace.linear.chance == 0.5
    assert leace.linear.mean == pytest.approx(0.5, abs=0.02)
    noise = ex.compare(X, rng.permutation(y), ["LEACE"], runs=2, probes="linear")
    for row in noise.rows:
        assert row.linear.status != "found"
        assert row.fresh.status != "found"
        assert row.fresh.low < 0.5 < row.fresh.high


def test_a_class_stamped_into_integers_is_seen_and_said():
    X, z = table_of_integers()
    found = ex.compare(X, z, ["OracleLEACE", "LEACE"], runs=1, probes=[LINEAR, "boosted trees"])
    nothing, oracle, leace = found.rows
    assert nothing.nonlinear.status == "found"
    assert nothing.nonlinear.mean < 0.85
    assert oracle.linear.status == "at chance"
    assert oracle.nonlinear.mean > 0.99
    assert leace.nonlinear.mean < nothing.nonlinear.mean + 0.02
    assert oracle.linear.sd is None  # of one run
    assert "±" not in str(found)
    text = str(found).replace("\n  ", " ")
    assert "OracleLEACE: needs the concept of every row" in text
    assert "into columns of few different values, as in 5 of the 5 here" in text
    assert "rows repeat others. They look like rows that agree by chance" in text


def test_sampling_error_excuses_exact_erasers_only():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 3000)
    X = rng.normal(size=(3000, 40)) + np.outer(y, np.eye(40)[0])
    settings = {"test_size": 0.9, "runs": 1, "probes": [LINEAR]}
    found = ex.compare(X, y, ["LEACE", ex.LEACE(strength=0.8)], **settings)
    exact, part = (row.fresh for row in found.rows[1:])
    assert exact.status == part.status == "found"
    assert max(exact.mean, part.mean) < found.residue["high"]
    assert exact.explained
    assert not part.explained
    assert str(found).splitlines()[4].count("~") == 1
    assert "~" not in str(found).splitlines()[5]


@pytest.mark.parametrize("how", ["copies", "groups"])
def test_sampling_error_counts_rows_that_differ(how):
    """A fit of ten copies of 280 rows errs as one of 280 rows does."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 400)
    X = rng.normal(size=(400, 60)) + 0.4 * y[:, None]
    settings = {"runs": 2, "probes": [LINEAR]}
    once = ex.compare(X, y, ["LEACE"], **settings)
    many, z, groups = np.repeat(X, 10, axis=0), np.repeat(y, 10), None
    if how == "groups":
        many, groups = many + 1e-6 * rng.normal(size=many.shape), np.repeat(np.arange(400), 10)
    found = ex.compare(many, z, ["LEACE"], groups=groups, **settings)
    for key in ("unlimited", "high"):
        assert found.residue[key] == pytest.approx(once.residue[key], abs=0.01)


def test_warnings_are_said_even_if_what_comes_after_them_fails():
    data = plant("binary")
    X = data.X * np.where(np.arange(8) == 2, 1e4, 1.0)

    def fails_once_erased(training, rows, seed):
        if np.ptp(rows, axis=0).max() < 1e3:
            raise RuntimeError("of a probe of somebody's own")
        return PROBES[LINEAR].score(training, rows, seed)

    probe = Probe("own", "linear", ("classes",), fails_once_erased)
    with pytest.warns(ex.UnitsMatter), pytest.raises(RuntimeError, match="somebody's own"):
        ex.compare(X, data.y, ["SAL"], runs=1, probes=[probe])


def test_copies_of_a_row_are_never_on_both_sides():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(100, 5)), 6, axis=0)
    y = np.repeat(rng.integers(0, 2, 100), 6)  # says nothing about x
    found = ex.compare(X, y, ["LEACE"], runs=2, probes=[LINEAR, "nearest neighbours"])
    assert found.rows[0].nonlinear.mean < 0.7  # 1.0 if a neighbour is a copy
    assert "look like copies and are held out together" in str(found)


@pytest.mark.filterwarnings("ignore::expunge.errors.UnitsMatter")
def test_one_column_with_all_the_variance_is_told():
    data = plant("binary")
    X = data.X * np.where(np.arange(8) == 2, 1e4, 1.0)
    found = ex.compare(X, data.y, ["LEACE"], **FAST)
    assert "column 2, counted from 0, alone has 100.0% of the variance" in str(found)
    assert not any("variance" in note for note in ex.compare(data.X, data.y, "SAL", **FAST).notes)


def test_a_column_of_a_frame_is_told_by_its_name():
    data = plant("binary")
    frame = pd.DataFrame(data.X * np.where(np.arange(8) == 2, 100.0, 1.0), columns=list("abcdefgh"))
    found = ex.compare(frame, data.y, ["LEACE"], **FAST)
    assert "column 'c' alone has" in str(found)


def test_what_every_fit_warns_of_is_said_once():
    data = plant("binary")
    X = data.X * np.where(np.arange(8) == 2, 1e4, 1.0)
    with pytest.warns(ex.UnitsMatter) as heard:
        ex.compare(X, data.y, ["SAL", "LEACE", "RLACE"], runs=2, probes=[LINEAR])
    (warning,) = heard
    assert str(warning.message).startswith("SAL depends on the units")
    assert str(warning.message).endswith("Likewise: RLACE")
    assert warning.filename == __file__
    with warnings.catch_warnings(record=True) as silent:
        warnings.simplefilter("ignore")
        ex.compare(X, data.y, ["SAL"], runs=2, probes=[LINEAR])
    assert not silent


def test_a_rank_that_differs_between_runs_is_one_row():
    data = plant("binary", n=400, d=20, gap=1.0)
    found = ex.compare(data.X, data.y, [ex.INLP()], runs=3, probes=[LINEAR])
    assert len(found.rows) == 2
    row = found.rows[1]
    assert len(row.ranks) == 3
    assert len(set(row.ranks)) > 1
    assert row.rank == f"{min(row.ranks)}-{max(row.ranks)}"
    assert found.to_frame().index[1] == ("INLP()", row.rank)
    assert f"rank {row.rank}" in found.plot().get_yticklabels()[1].get_text()


@pytest.mark.parametrize("kind", ["classes", "labels", "number", "vector"])
def test_every_kind_of_concept(kind):
    data = plant(kind, n=800)
    found = ex.compare(data.X, data.y, runs=1, probes="linear")
    by = {row.method: row for row in found.rows}
    numbers = kind in ("number", "vector")
    chance = {"classes": 0.25, "labels": 0.5, "number": 0.0, "vector": 0.0}[kind]
    assert found.statistic == ("r2" if numbers else "balanced_accuracy")
    assert found.chance["linear"] == by["LEACE"].fresh.chance == chance
    assert by["nothing"].linear.mean > chance + 0.3
    for method in ("RLACE", "LEACE", "SAL", "OracleLEACE"):
        assert by[method].linear.mean == pytest.approx(chance, abs=0.02)
    assert (by["RLACE"].bits is None) == numbers
    assert ("bits" in str(found).splitlines()[0]) != numbers
    lacking = {"SPLINCE", "PairPCA"}
    lacking |= {"QuadraticLEACE", "FoldEraser"} if kind != "classes" else set()
    lacking |= {"MeanProjection"} if numbers else set()
    assert set(found.left_out) == lacking


def test_a_method_that_cannot_be_fitted_is_left_out_with_its_reason():
    data = plant("binary")
    found = ex.compare(data.X, data.y, ["SPLINCE", "LEACE"], task=data.y, **FAST)
    assert shown(found) == [("nothing", 0), ("LEACE", 1)]
    assert "SPLINCE" in found.left_out
    with pytest.raises(ex.InputError, match="No method applies"):
        ex.compare(data.X, data.y, ["SPLINCE"], task=data.y, **FAST)


def test_frames_tensors_and_half_precision_give_the_same():
    data = plant("binary", n=400)
    settings = {"methods": ["LEACE", "OracleLEACE"], **FAST}
    plain = ex.compare(data.X, data.y, **settings)
    frame = pd.DataFrame(data.X, columns=list("abcdefgh"))
    again = ex.compare(frame, pd.Series(data.y).map({0: "a", 1: "b"}), **settings)
    assert numbers_of(again) == numbers_of(plain)
    torch = pytest.importorskip("torch")
    tensor = ex.compare(torch.tensor(data.X), torch.tensor(data.y), **settings)
    assert numbers_of(tensor) == numbers_of(plain)
    half = ex.compare(torch.tensor(data.X).to(torch.bfloat16), data.y, **settings)
    assert half.rows[1].variance.mean == pytest.approx(plain.rows[1].variance.mean, abs=0.02)


def numbers_of(result):
    """Everything but the seconds."""
    plain = result.to_dict()
    for row in plain["rows"]:
        del row["seconds"]
    return plain


def test_equal_states_give_equal_numbers():
    data = plant("binary", n=300)
    settings = {"methods": ["LEACE", "INLP"], "runs": 2, "probes": [LINEAR]}
    first, same, other = (
        ex.compare(data.X, data.y, random_state=state, **settings)
        for state in (5, np.random.default_rng(5), np.int64(6))
    )
    assert numbers_of(first) == numbers_of(same)
    assert numbers_of(first) != numbers_of(other)


def test_a_table_a_frame_and_a_picture_agree(result):
    text = str(result)
    frame = result.to_frame()
    assert frame.index.names == ["method", "rank"]
    assert list(frame.columns.levels[0]) == sorted(result.columns())
    lines = text.splitlines()
    assert lines[1].split() == ["chance", "50.0", "50.0", "50.0"]
    assert lines[2].split() == ["sampling", "error", f"{100 * result.residue['here']:.1f}"]
    marks = {"found": "*", "cannot tell": "?", "at chance": ""}
    for line, row, (_, values) in zip(lines[3:], result.rows, frame.iterrows(), strict=False):
        assert line.startswith(row.method)
        for found in (row.linear, row.fresh):
            assert (found.status == "found") == (found.low > found.chance)
        for name in ("linear", "fresh"):
            cell = "{:.1f} [{:.1f}, {:.1f}]".format(
                *(100 * values[name, part] for part in ("mean", "low", "high"))
            )
            mark = "~" if values[name, "explained"] else marks[values[name, "status"]]
            assert f"{cell} {mark}".rstrip() in line
    axes = result.plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        f"{row.method}, rank {row.rank}" for row in result.rows
    ]
    assert f"{100 * result.rows[1].variance.mean:.1f} ± " in lines[4]
    points = axes.containers[0].lines[0].get_xdata().astype(float)
    np.testing.assert_allclose(points, frame["linear", "mean"])
    assert result.to_dict()["runs"] == 2
    assert result.to_dict()["rows"][1]["rank"] == result.rows[1].rank
    screen = io.StringIO()
    Console(file=screen, width=250).print(result)
    assert "QuadraticLEACE" in screen.getvalue()


def test_progress_is_shown_on_request(capsys):
    data = plant("binary", n=200)
    ex.compare(data.X, data.y, "LEACE", **FAST)
    assert capsys.readouterr().err == ""
    ex.compare(data.X, data.y, "LEACE", verbose=True, **FAST)
    assert "2/2" in capsys.readouterr().err


BAD = {
    "ranks": [
        *(0, 5, None, 2.0, "two", b"1", [], (), [0], [-1], [99], [1.0], [True], ["1"], [None]),
        *([[1]], np.array(3), [np.nan], itertools.count(1), {"a": 1}, [1, "x"]),
    ],
    "methods": [
        *("magic", "", [], ["magic"], [None], [5], 5, [ex.LEACE], ["PairPCA"], [b"LEACE"]),
        *(["LEACE", "rlac"], {}, ["SPLINCE"]),
    ],
    "runs": [0, -1, 1.5, "3", None, True, np.nan, [1]],
    "random_state": ["x", -1, 1.5, [None], object()],
    "sizes": [5, "large", {"linear_test": 10}, 0.5],
    "test_size": [0, 1, -0.1, "half", None, np.nan, 0.001, True],
    "task": [np.linspace(0, 1, 600), np.zeros(600), [1, 2], "task"],
    "pairs": [5, "ab", (np.eye(8),), (np.eye(8), np.eye(7)), (np.eye(3), np.eye(3)), ([], [])],
    "probes": ["magic", 5, [None], []],
    "confidence": [0, 1, "sure", None],
    "leak": [0, -1, 2, "all"],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in BAD.items() for value in values]
)
def test_bad_input_is_refused_in_three_parts(name, value):
    data = plant("binary")
    with pytest.raises(ex.InputError) as caught:
        ex.compare(data.X, data.y, **{"methods": ["LEACE"], "runs": 1, name: value})
    assert caught.value.problem
    assert caught.value.received
    assert caught.value.remedy


@pytest.mark.parametrize("ranks", [range(1, 4), np.array([3, 1, 1]), {1, 3}, (np.int64(1), 3)])
def test_collections_of_ranks(ranks):
    data = plant("binary", n=200)
    found = ex.compare(data.X, data.y, ["RLACE"], ranks, **FAST)
    assert [rank for _, rank in shown(found)[1:]] == sorted({int(rank) for rank in ranks})


@pytest.mark.filterwarnings("ignore::expunge.errors.NothingLeft")
@pytest.mark.parametrize("d", [1, 2])
def test_where_everything_is_erased_nothing_is_found_in_the_rounding(d):
    data = plant("classes", n=300, d=d)
    found = ex.compare(data.X, data.y, ["LEACE", "SAL", "RLACE", "QuadraticLEACE"], **FAST)
    assert found.rows[0].linear.status == "found"
    for row in found.rows[1:4]:
        assert (row.rank, row.linear.mean) == (d, 0.25)
        assert row.fresh.status != "found"
        assert row.variance.mean == pytest.approx(0.0, abs=1e-12)


def test_too_few_different_rows_are_refused():
    X, y = np.arange(24.0).reshape(12, 2), np.arange(12) % 2
    with pytest.raises(ex.InputError, match="too few different rows"):
        ex.compare(X, y, ["LEACE"], **FAST)


def test_probe_names_used_here_exist():
    assert {LINEAR, "boosted trees", "nearest neighbours"} <= set(PROBES)


def test_a_task_that_held_out_rows_cannot_show_is_refused():
    rng = np.random.default_rng(0)
    X, y, task = rng.normal(size=(300, 4)), np.arange(300) % 2, np.zeros(300, dtype=int)
    task[0] = 1
    with pytest.raises(InputError, match="one class of the task only"):
        ex.compare(X, y, ["LEACE"], task=task, runs=1, probes="linear")


def test_a_method_that_was_not_asked_for_is_silent():
    """Warnings are errors here: the concept's own rank is found by another method."""
    rng = np.random.default_rng(1)
    y = np.arange(300) % 3
    X = np.column_stack([np.eye(3)[y], rng.normal(size=(300, 3)) * 1e-3])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        ex.compare(X, y, ["LEACE"], runs=1, probes=["linear discriminant"])
    assert not [str(w.message) for w in said if "SAL" in str(w.message)]
