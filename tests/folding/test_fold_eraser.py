"""FoldEraser: what it plans, what it refuses, what it remembers; the fold itself is elsewhere."""

import numpy as np
import pytest

import expunge as ex
from expunge.erasers import fold
from expunge.folding.build import FoldPlan
from expunge.folding.choice import Choice
from expunge.folding.class_predictor import LinearPredictor
from expunge.game.result import Step


def shaped(n=240, d=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, d)) * np.where(y, 3.0, 1.0)[:, None] + np.outer(
        y, [9.0, *[0] * (d - 1)]
    )
    return X, y


NUMBERS = {"shrinkage": 0.1, "directions": 2}


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"predictor": "discriminant", **NUMBERS}, ""),
        ({"predictor": "discriminant", "transport": "shift"}, ""),
        ({"predictor": "discriminant", "shrinkage": "none", "directions": 1}, ""),
        (NUMBERS, "needs the rows; take 'discriminant'"),
        ({"predictor": "discriminant", "shrinkage": 0.1}, "'auto' is chosen on rows"),
        ({"predictor": "discriminant", "directions": 2}, "'auto' is chosen on rows"),
        ({"predictor": "discriminant", "rounds": 1, **NUMBERS}, "rounds of local moves"),
    ],
)
def test_what_can_be_streamed(settings, reason):
    eraser = ex.FoldEraser(**settings)
    assert reason in eraser._why_not_streaming()
    assert bool(eraser._why_not_streaming()) is bool(reason)
    assert hasattr(eraser, "partial_fit") is not bool(reason)
    assert eraser._needs_class_moments() is (settings.get("predictor") == "discriminant")
    assert eraser._why_not_pooling() == ""


@pytest.mark.parametrize("transport", ["gaussian", "shift"])
def test_plans(transport):
    auto = ex.FoldEraser(transport=transport, rounds=2)
    plain = FoldPlan(transport, "auto", "auto", 2)
    shrunk = FoldPlan("gaussian", 0.5, 20, 2)
    expected = (
        {"shrunk fold": shrunk, "fold": plain} if transport == "gaussian" else {"fold": plain}
    )
    assert auto._plans() == expected
    assert list(auto._plans()) == list(expected)
    given = ex.FoldEraser(transport=transport, directions=1)._plans()
    assert given == {"fold": FoldPlan(transport, "auto", 1, 0)}
    none = ex.FoldEraser(transport=transport, shrinkage="none", directions=3)
    assert none._plan() == FoldPlan(transport, 0.0, 3, 0)


@pytest.mark.parametrize("name", ["fold", "shrunk fold", "leace"])
def test_what_was_chosen_is_built_and_said(monkeypatch, name):
    X, y = shaped()
    read = {"leace": 0.75, "shrunk fold": 0.625, "fold": 0.875}
    choice = Choice(name=name, accuracy=read, error=0.02)
    monkeypatch.setattr(fold, "choose", lambda *given: choice)
    built = []
    build = fold.build
    monkeypatch.setattr(fold, "build", lambda *a, **k: built.append((a[4], k)) or build(*a, **k))
    if name == "leace":
        with pytest.warns(ex.NothingToFold, match=r"tells 62.5 % .* fold, 75.0 % after LEACE"):
            eraser = ex.FoldEraser().fit(X, y)
        assert not built
    else:
        eraser = ex.FoldEraser().fit(X, y)
        assert built[0][0] == ex.FoldEraser()._plans()[name]
        assert built[0][1]["by_label"] is False
    assert eraser.choice_ is choice
    assert eraser.solver_ == ("leace" if name == "leace" else "fold")
    assert eraser.erasure_.meta["held_out_probe"] == choice.to_meta()
    assert eraser.certificate_.erased


def test_too_few_rows_to_tell_are_said_to_be_so(monkeypatch):
    X, y = shaped()
    monkeypatch.setattr(fold, "choose", lambda *given: Choice(name="leace", accuracy={}, error=0.0))
    with pytest.warns(ex.NothingToFold, match="too few rows to tell"):
        ex.FoldEraser().fit(X, y)


@pytest.mark.parametrize(
    ("classes", "accuracy", "folds"),
    [(2, 0.71, True), (2, 0.69, False), (4, 0.46, True), (4, 0.44, False), (2, None, True)],
)
def test_a_predictor_at_chance_predicts_nothing(monkeypatch, classes, accuracy, folds):
    """Within two standard errors of one in so many classes there is nothing to fold."""
    X, _ = shaped(d=6)
    y = np.arange(240) % classes
    logistic = fold.logistic

    def told(*given):
        found = logistic(*given)
        return LinearPredictor(**{**vars(found), "accuracy": accuracy, "error": 0.1})

    monkeypatch.setattr(fold, "logistic", told)
    settings = {"shrinkage": 0.1, "directions": 1}
    if folds:
        assert ex.FoldEraser(**settings).fit(X, y).solver_ == "fold"
        return
    with pytest.warns(ex.NothingToFold, match=f"tells {100 * accuracy:.1f} % of them"):
        eraser = ex.FoldEraser(**settings).fit(X, y)
    assert (eraser.solver_, eraser.choice_) == ("leace", None)


@pytest.mark.parametrize("predictor", ["logistic", "discriminant"])
def test_what_a_fold_says_of_itself(predictor):
    X, y = shaped()
    eraser = ex.FoldEraser(predictor=predictor, **NUMBERS).fit(X, y)
    assert eraser.history_ == (Step(1, 0.0),)
    assert (eraser.solver_, eraser.choice_) == ("fold", None)
    meta = eraser.erasure_.meta
    assert (meta["pool"], meta["held_out_probe"], meta["n"]) == (None, None, 240)
    assert meta["fit"]["left"] == 0.0
    clean = eraser.transform(X)
    np.testing.assert_allclose(clean[y == 0].mean(0), clean[y == 1].mean(0), atol=1e-9)


def test_a_stream_is_not_closed_and_says_so():
    X, y = shaped()
    stream = ex.FoldEraser(predictor="discriminant", **NUMBERS)
    for part in np.array_split(np.arange(240), 3):
        stream.partial_fit(X[part], y[part])
    assert stream.solver_ == "gaussian"
    assert stream.certificate_ is None
    assert stream.erasure_.meta["fit"]["left"] == pytest.approx(1.0)
    assert stream.history_ == (Step(1, 0.0),)
    np.testing.assert_allclose(stream.erasure_.transform(X).mean(0), X.mean(0), atol=1.0)


def test_rows_without_labels_are_counted():
    X, y = shaped()
    eraser = ex.FoldEraser(**NUMBERS).fit(X[:200], y[:200], unlabelled=X[200:])
    assert eraser.erasure_.meta["pool"] == {"n_labelled": 200, "n_pool": 40}
    assert eraser._seen.folded == 40
    seen = ex.fingerprint.Fingerprint.of(X).to_meta()
    assert eraser.erasure_.meta["fingerprint"] == seen


@pytest.mark.parametrize("predictor", ["logistic", "discriminant"])
def test_candidates_are_fitted_on_the_rows_they_are_given(monkeypatch, predictor):
    """LEACE first, then each plan; all of them move the means of the classes together."""
    X, y = shaped()
    build, by_label = fold.build, []
    monkeypatch.setattr(
        fold, "build", lambda *a, **k: by_label.append(k["by_label"]) or build(*a, **k)
    )
    eraser = ex.FoldEraser(predictor=predictor)
    data = eraser._check(X, y, None, None, whole=True)
    rng = np.random.default_rng(0)
    found = eraser._candidates(rng)(data.rows, data.concept, None, None)
    assert list(found) == ["leace", "shrunk fold", "fold"]
    leace = ex.LEACE().fit(X, y).transform(X)
    np.testing.assert_allclose(found["leace"](X), leace, atol=1e-9)
    for name in ("shrunk fold", "fold"):
        clean = found[name](X)
        np.testing.assert_allclose(clean[y == 0].mean(0), clean[y == 1].mean(0), atol=1e-9)
        assert np.abs(clean - leace).max() > 0.1
    assert by_label == [predictor == "discriminant"] * 2
