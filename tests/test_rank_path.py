"""The path over ranks: consistent with single fits and the audit, monotone, plotted."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, log_loss
from sklearn.model_selection import train_test_split

import expunge as ex
from expunge.audit import Sizes
from planted import plant

FAST = {"probes": ["linear discriminant"]}
FAST2 = {"probes": "linear", "sizes": Sizes(linear_folds=2)}


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return train_test_split(X / X.std(), y.astype(str), test_size=0.35, random_state=0)


@pytest.fixture(scope="module")
def path(digits):
    A, B, a, b = digits
    few = {"leak": 0.035, **FAST}  # what 629 rows of ten classes can exclude
    return ex.rank_path(A, a, ranks=[2, 4, 9, 12], X_test=B, y_test=b, **few)


def test_loss_rises_to_the_bound_and_the_best_predictor_falls_to_chance(path):
    assert [p.rank for p in path.points] == [0, 2, 4, 9, 12]
    losses = [p.loss for p in path.points]
    assert losses == sorted(losses)
    assert path.points[0].score > 0.99
    assert path.points[0].linear.strongest.value > 0.9
    assert path.chance == path.points[0].fresh.chance == 0.1
    for exact in path.points[3:]:
        assert exact.solver == "closed_form"
        assert exact.loss == pytest.approx(path.bound)
        assert exact.score == pytest.approx(path.chance)
        assert exact.linear.status == "at chance"
        assert exact.fresh.status == "found"  # sampling error of 1,168 rows
    kept = [p.variance_kept for p in path.points]
    assert kept == sorted(kept, reverse=True)
    assert kept[0] == 1


def charged(X, y, unit):
    """A predictor of rows in given units, its coefficients charged 1e-4; and its mean loss."""
    model = LogisticRegression(C=1e4 / len(y), solver="newton-cg", tol=1e-7).fit(X / unit, y)
    return model, log_loss(y, model.predict_proba(X / unit))


def test_each_rank_is_as_good_as_a_fit_of_its_own(path, digits):
    """By what the search raises: the loss where all columns have one unit."""
    A, _, a, _ = digits
    unit = np.sqrt(np.var(A, axis=0).mean())
    alone = ex.RLACE(4).fit(A, a)
    assert path.erasures[2].rank == 4
    least = charged(alone.transform(A), a, unit)[1]
    assert charged(path.erasures[2](A), a, unit)[1] > 0.95 * least > 0.5


def test_loss_and_score_are_those_of_an_independent_predictor(path, digits):
    """Of columns in units of their own, so that what a narrow one tells is not missed."""
    A, _, a, _ = digits
    erasure = path.erasures[1]
    spread = np.std(erasure(A), axis=0)
    probe, loss = charged(erasure(A), a, np.where(spread > 0, spread, 1.0))
    expected = balanced_accuracy_score(
        a, probe.predict(erasure(A) / np.where(spread > 0, spread, 1))
    )
    assert path.points[1].loss == pytest.approx(loss, rel=1e-3)
    assert path.points[1].score == pytest.approx(expected, abs=0.003)
    assert np.var(erasure(A), axis=0).sum() / np.var(A, axis=0).sum() == pytest.approx(
        path.points[1].variance_kept
    )


def test_probes_are_those_of_an_audit(path, digits):
    A, B, a, b = digits
    seen = ex.audit(path.erasures[2], A, a, B, b, **FAST)
    same = seen.same_rows.after["linear"].strongest.value
    assert path.points[2].linear.strongest.value == pytest.approx(same)
    fresh = seen.fresh_rows.after["linear"].strongest.value
    assert path.points[2].fresh.strongest.value == pytest.approx(fresh, abs=0.05)  # other folds
    assert seen.residue is None  # below the concept's rank nothing excuses what is found
    assert path.residue.balanced_accuracy > 0.1
    assert not any("fingerprint" in note for note in seen.sections["data"]["notes"])


def test_table_frame_dictionary_and_picture(path, tmp_path):
    pytest.importorskip("matplotlib")
    lines = str(path).splitlines()
    assert lines[1].split() == ["chance", f"{path.bound:.4f}", "10.0", "10.0", "10.0"]
    assert lines[2].split()[:2] == ["sampling", "error"]
    frame = path.to_frame()
    marks = {"found": "*", "cannot tell": "?", "at chance": ""}
    for line, p, (rank, row) in zip(lines[3:], path.points, frame.iterrows(), strict=False):
        assert line.split()[:3] == [str(rank), f"{p.loss:.4f}", f"{100 * p.score:.1f}"]
        assert f"{100 * row['linear']:.1f} {marks[row['linear_status']]}" in line
        assert line.endswith(f"{100 * row['variance_kept']:.1f}")
    assert path.to_dict()["points"][1]["rank"] == 2
    assert path.to_dict()["points"][1]["fresh"]["statistic"] == "balanced_accuracy"
    axes = path.plot()
    assert axes.get_xlabel() == "erased directions K"
    np.testing.assert_allclose(axes.lines[2].get_ydata(), frame["fresh"])
    axes.figure.savefig(tmp_path / "path.png")
    assert (tmp_path / "path.png").stat().st_size > 5000


@pytest.mark.parametrize("share", [0.8, 0.95])
def test_a_rare_class_is_not_hidden_by_the_common_one(share):
    rng = np.random.default_rng(0)
    y = (rng.random(1000) < share).astype(int)
    X = rng.normal(size=(1000, 5)) + np.outer(y, [1.5, 0, 0, 1, 0])
    path = ex.rank_path(X[:600], y[:600], ranks=[1], X_test=X[600:], y_test=y[600:], **FAST)
    before, after = path.points
    expected = balanced_accuracy_score(
        y[:600],
        LogisticRegression(C=1e4, class_weight="balanced").fit(X[:600], y[:600]).predict(X[:600]),
    )
    assert before.score == pytest.approx(expected, abs=0.05)
    assert before.score > 0.75
    assert after.score == path.chance == 0.5
    assert after.linear.strongest.value == 0.5
    text = str(path).splitlines()
    assert "best in the fit" in text[0]
    assert text[1].split()[2] == "50.0"


@pytest.mark.parametrize("kind", ["classes", "labels", "number", "vector"])
def test_every_kind_of_concept_without_saying_which_loss(kind):
    data = plant(kind, n=900)
    X, y = data.X, data.y
    path = ex.rank_path(X[:600], y[:600], ranks=["auto"], X_test=X[600:], y_test=y[600:], **FAST2)
    before, after = path.points
    chance = {"classes": 0.25, "labels": 0.5, "number": 0.0, "vector": 0.0}[kind]
    assert path.chance == before.fresh.chance == chance
    assert before.score > chance + 0.3
    assert after.rank == {"classes": 3, "labels": 3, "number": 1, "vector": 2}[kind]
    assert after.loss == pytest.approx(path.bound)
    assert after.score == pytest.approx(chance, abs=1e-6)
    assert after.linear.strongest.value == pytest.approx(chance, abs=1e-3)
    assert "-0.000" not in str(path)


@pytest.mark.parametrize("kind", ["binary", "classes", "labels", "number"])
def test_weights_count_like_repeated_rows(kind):
    data = plant(kind, n=200)
    times = np.random.default_rng(1).integers(0, 4, 200)
    weighted = ex.rank_path(data.X, data.y, ranks=[1], sample_weight=times)
    repeated = ex.rank_path(np.repeat(data.X, times, 0), np.repeat(data.y, times, 0), ranks=[1])
    for a, b in zip(weighted.points, repeated.points, strict=True):
        assert a.loss == pytest.approx(b.loss, rel=1e-5)
        near = 0.02 if kind == "classes" else 1e-3  # below its rank the search is local
        assert a.score == pytest.approx(b.score, abs=near)
        assert a.variance_kept == pytest.approx(b.variance_kept, abs=near)


def test_test_rows_of_the_fit_are_left_out_and_too_few_are_not_probed():
    data = plant("binary", n=400)
    X, y = data.X, data.y
    path = ex.rank_path(X[:300], y[:300], ranks=[1], X_test=X[200:], y_test=y[200:], **FAST)
    assert path.points[1].fresh.n_test == 100
    assert "100 of the 200 test rows are rows of the fit, and left out" in str(path)
    none = ex.rank_path(X[:300], y[:300], ranks=[1], X_test=X[:300], y_test=y[:300], **FAST)
    assert none.points[1].fresh is None
    assert "too few to probe" in str(none)
    (note,) = ex.rank_path(X, y, ranks=[1]).notes
    assert "shows nothing about new rows" in note


def test_where_everything_is_erased_nothing_is_found_in_the_rounding():
    data = plant("classes", n=400, d=2)
    X, y = data.X, data.y
    path = ex.rank_path(X[:300], y[:300], ranks="auto", X_test=X[300:], y_test=y[300:], **FAST)
    before, after = path.points
    assert before.linear.status == "found"
    assert (after.rank, after.score, after.linear.strongest.value) == (2, 0.25, 0.25)
    assert after.fresh.status != "found"
    assert after.variance_kept == pytest.approx(0.0, abs=1e-12)


def test_noise_is_not_found_on_new_rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 40)), rng.integers(0, 2, 600)
    path = ex.rank_path(X[:300], y[:300], ranks=[1], X_test=X[300:], y_test=y[300:])
    assert path.points[0].score > 0.65  # learnt by heart, which the fit's own rows cannot tell
    for point in path.points:
        assert point.linear.status != "found"
        assert point.fresh.status != "found"


def test_frames_tensors_and_equal_states():
    data = plant("classes", n=300)
    plain, again = (ex.rank_path(data.X, data.y, ranks=[1, 2], random_state=4) for _ in range(2))
    assert plain.to_dict() == again.to_dict()
    frame = ex.rank_path(pd.DataFrame(data.X), pd.Series(data.y), ranks=[1, 2], random_state=4)
    assert [p.score for p in frame.points] == pytest.approx([p.score for p in plain.points])
    torch = pytest.importorskip("torch")
    tensor = ex.rank_path(torch.tensor(data.X), data.y, ranks=[1, 2], random_state=4)
    assert [p.score for p in tensor.points] == pytest.approx([p.score for p in plain.points])


def test_progress_is_shown_on_request(capsys):
    data = plant("binary")
    ex.rank_path(data.X, data.y, ranks=range(1, 3), verbose=True)
    assert "3/3" in capsys.readouterr().err


BAD = {
    "ranks": [
        *(0, 3, None, 2.0, "two", [], [0], [-1], [8], [1.0], [True], ["1"], [None], [[1]]),
        *(np.array(3), [np.nan]),
    ],
    "random_state": ["x", -1, 1.5, object()],
    "sizes": [5, "large", 0.5],
    "probes": ["nonlinear", "magic", 5, []],
    "alpha": [0, -1, "small", None],
    "tol": [-1, "small", None],
    "leak": [0, 2, None],
    "loss": ["magic", None, 5],
    "sample_weight": [np.ones(3), "ones", -np.ones(600)],
    "concept_type": ["magic", None],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in BAD.items() for value in values]
)
def test_bad_input_is_refused_in_three_parts(name, value):
    data = plant("binary")
    with pytest.raises(ex.InputError) as caught:
        ex.rank_path(data.X, data.y, **{"ranks": [1], name: value})
    assert caught.value.problem
    assert caught.value.received
    assert caught.value.remedy


def test_test_rows_must_fit():
    data = plant("vector")
    with pytest.raises(ex.InputError, match="belong together"):
        ex.rank_path(data.X, data.y, ranks=[1], X_test=data.X)
    with pytest.raises(ex.InputError, match="3 features"):
        ex.rank_path(data.X, data.y, ranks=[1], X_test=data.X[:, :3], y_test=data.y)
    binary = plant("binary")
    with pytest.raises(ex.InputError, match="no new classes"):
        ex.rank_path(binary.X, binary.y, ranks=[1], X_test=binary.X, y_test=binary.y + 5)


def test_test_rows_that_are_the_fit_in_another_type_are_not_probed():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    X = (rng.normal(size=(600, 6)) + np.outer(y, np.eye(6)[0])).astype(np.float32)
    half = X[:300].astype(np.float16)
    path = ex.rank_path(X[:300], y[:300], ranks=[1], X_test=half, y_test=y[:300], **FAST)
    assert path.points[1].fresh is None
    assert "in another form" in str(path).replace("\n ", "")
    path = ex.rank_path(X[:300], y[:300], ranks=[1], X_test=X[300:], y_test=y[300:], **FAST)
    assert path.points[1].fresh is not None


@pytest.mark.parametrize(
    "values",
    [[0, 1, 1, 0], [1.0, 2.5, 3.25, 4.0], [[1, 0], [0, 1], [1, 1], [0, 0]]],
    ids=["classes", "numbers", "labels"],
)
def test_a_concept_that_does_not_vary_where_rows_count_is_refused(values):
    X = np.random.default_rng(0).normal(size=(4, 5))
    with pytest.raises(ex.InputError, match="nothing to erase"):
        ex.rank_path(X, np.array(values), ranks=[1], sample_weight=np.array([1.0, 0, 0, 0]))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_column_in_large_units_does_not_hide_what_the_others_tell(fit_intercept):
    """It said 53.7 where a probe of the same rows has 75: a charge in the unit of the widest."""
    rng = np.random.default_rng(0)
    y = (rng.random(2000) < 0.3).astype(int)
    X = rng.normal(size=(2000, 4)) + np.outer(y, [0, 1.0, 0.7, 0.0])
    if not fit_intercept:
        X -= X.mean(axis=0)
    wide = X * [1e4, 1, 1, 1]
    probe = LogisticRegression(C=1e4, class_weight="balanced").fit(X, y)
    expected = balanced_accuracy_score(y, probe.predict(X))
    with pytest.warns(ex.UnitsMatter, match="Standardise the columns"):
        path = ex.rank_path(wide, y, ranks=[1], fit_intercept=fit_intercept)
    plain = ex.rank_path(X, y, ranks=[1], fit_intercept=fit_intercept)
    before, after = path.points
    assert expected > 0.7
    assert before.score == pytest.approx(expected, abs=0.02)
    assert before.loss == pytest.approx(plain.points[0].loss, rel=1e-6)
    assert after.loss == pytest.approx(path.bound)
    assert after.score == path.chance


def test_erasures_of_a_path_write_no_rounding_to_constant_columns(path, digits):
    """Scaled by its spread of 1e-17, such a column told all that was taken from the others."""
    X = digits[0]
    constant = np.ptp(X, axis=0) == 0
    assert constant.any()
    for erasure in path.erasures:
        assert np.ptp(erasure.transform(X)[:, constant], axis=0).max() == 0
