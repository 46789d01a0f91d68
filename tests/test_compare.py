"""Methods side by side: against measures taken by hand with scikit-learn."""

import io

import numpy as np
import pytest
from rich.console import Console
from sklearn.linear_model import LogisticRegression

import expunge as ex
from planted import plant


@pytest.fixture(scope="module")
def result():
    data = plant("binary", n=900, d=10)
    task = (data.X[:, 3] > data.X[:, 3].mean()).astype(int)
    pairs = data.X[data.y == 1][:4], data.X[data.y == 0][:4]
    return ex.compare(data.X, data.y, ranks=[1, 3], task=task, runs=2, pairs=pairs)


def test_every_method_once_at_each_rank_it_can_use(result):
    shown = [(row.method, row.rank) for row in result.rows]
    assert len(shown) == len(set(shown))
    assert shown[0] == ("nothing", 0)
    assert {method for method, _ in shown} == {"nothing", *ex.ERASERS}
    ranks = {method: [rank for name, rank in shown if name == method] for method, _ in shown}
    assert ranks["RLACE"] == ranks["INLP"] == ranks["PairPCA"] == [1, 3]
    assert ranks["LEACE"] == ranks["SAL"] == ranks["OracleLEACE"] == [1]  # the concept's own


def test_what_erases_is_at_chance_and_what_does_not_is_not(result):
    by = {(row.method, row.rank): row for row in result.rows}
    assert by["nothing", 0].linear.mean > result.chance + 0.15
    assert by["nothing", 0].bits.mean > 0.1
    for method in ("RLACE", "LEACE", "SAL", "MeanProjection", "SPLINCE", "OracleLEACE"):
        assert abs(by[method, 1].linear.mean - result.chance) < 0.03
        assert by[method, 1].bits.mean < 0.01
    assert by["nothing", 0].variance.mean == by["nothing", 0].neighbours.mean == 1.0
    assert by["RLACE", 3].variance.mean < by["RLACE", 1].variance.mean < 1.0
    assert by["RLACE", 1].neighbours.mean < 1.0
    assert by["SPLINCE", 1].task.mean > by["LEACE", 1].task.mean - 0.02


def test_numbers_against_a_plain_twin():
    data = plant("binary", n=600, d=6)
    found = ex.compare(data.X, data.y, methods=["RLACE"], ranks=[1], runs=1, random_state=3)
    from expunge.audit.probing import stratified
    from expunge.inputs import check_concept

    test = stratified(check_concept(data.y, 600), 180, 3)
    train = np.setdiff1d(np.arange(600), test)
    eraser = ex.RLACE(1).fit(data.X[train], data.y[train])
    for row, clean in (
        (found.rows[0], data.X),
        (found.rows[1], eraser.transform(data.X)),
    ):
        probe = LogisticRegression(C=1e3, max_iter=1000).fit(clean[train], data.y[train])
        assert row.linear.mean == pytest.approx(probe.score(clean[test], data.y[test]), abs=0.012)
        assert row.variance.mean == pytest.approx(
            clean[test].var(axis=0).sum() / data.X[test].var(axis=0).sum()
        )
    commonest = np.bincount(data.y[train]).argmax()
    assert found.chance == pytest.approx((data.y[test] == commonest).mean())


def test_a_table_a_frame_and_a_picture(result):
    text = str(result)
    assert "fresh rows" in text
    assert "±" in text
    assert "chance" in text
    screen = io.StringIO()
    Console(file=screen, width=200).print(result)
    assert "QuadraticLEACE" in screen.getvalue()
    frame = result.to_frame()
    assert frame.index.names == ["method", "rank"]
    assert frame.loc[("LEACE", 1), ("linear", "mean")] == pytest.approx(
        next(r.linear.mean for r in result.rows if r.method == "LEACE")
    )
    assert len(result.plot().get_yticks()) == len(result.rows)
    assert result.to_dict()["runs"] == 2


def test_erasers_with_settings_and_several_concepts():
    data = plant("classes", n=600)
    other = (data.X[:, 0] > 0.7).astype(int)
    methods = [ex.LEACE(shrinkage="oas"), ex.LEACE(strength=0.5), "meanprojection"]
    found = ex.compare(
        data.X, {"animal": data.y, "side": other}, methods=methods, ranks=[6], runs=1
    )
    names = [row.method for row in found.rows]
    assert names == ["nothing", "LEACE(shrinkage='oas')", "LEACE(strength=0.5)", "MeanProjection"]
    by = dict(zip(names, found.rows, strict=True))
    assert by["MeanProjection"].rank == 4
    assert by["LEACE(strength=0.5)"].linear.mean > by["LEACE(shrinkage='oas')"].linear.mean + 0.03


def test_numbers_have_shares_of_variance_for_accuracy():
    data = plant("number", n=500)
    found = ex.compare(data.X, data.y, ranks=[1], runs=1)
    by = {row.method: row for row in found.rows}
    assert by["nothing"].linear.mean > 0.3
    assert abs(by["RLACE"].linear.mean) < 0.05
    assert by["RLACE"].bits is None
    assert "bits left" not in str(found)
    assert set(found.left_out) == {"MeanProjection", "QuadraticLEACE", "PairPCA"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"methods": ["magic"]}, "Unknown method"),
        ({"ranks": [0]}, "ranks"),
        ({"ranks": [99]}, "ranks"),
        ({"runs": 0}, "runs"),
        ({"methods": ["PairPCA"]}, "No method applies"),
        ({"task": np.linspace(0, 1, 600)}, "task"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    data = plant("binary")
    with pytest.raises(ex.InputError, match=message):
        ex.compare(data.X, data.y, **arguments)
