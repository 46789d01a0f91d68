"""LEACE with random features: what it hands on, says and records; the fit itself is elsewhere."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import expunge as ex
from expunge.erasers import leace
from expunge.linalg import units_if_far_apart
from expunge.shrinkage import shrink
from planted import plant


def curved(n=600, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return X, np.abs(X[:, 0] + 1) < 1


SETTINGS = {"predictor": "random_features", "n_components": 30}


@pytest.mark.parametrize("shrinkage", ["none", 0.2])
@pytest.mark.parametrize("why", ["", "for a reason"])
def test_what_is_handed_on_and_said(monkeypatch, shrinkage, why):
    X, y = curved()
    w, groups = np.random.default_rng(0).random(600), np.arange(600) // 2
    fit, given = leace.fit_free_form, []

    def watched(*args, **options):
        given.append((args, options))
        return replace(fit(*args, **options), why_linear=why)

    monkeypatch.setattr(leace, "fit_free_form", watched)
    eraser = ex.LEACE(shrinkage=shrinkage, random_state=3, **SETTINGS)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ex.errors.OnlyLinear)
        eraser.fit(X, y, sample_weight=w, groups=groups)
    (args, options) = given[0]
    np.testing.assert_array_equal(args[2], w)
    np.testing.assert_array_equal(args[3], groups)
    linear = ex.LEACE(shrinkage=shrinkage).fit(X, y, sample_weight=w, groups=groups)
    left, right = args[5]
    np.testing.assert_allclose(left @ right, np.eye(3) - linear.erasure_.matrix(), atol=1e-9)
    assert (args[6] is None) is (shrinkage == "none")
    if shrinkage != "none":
        S = args[4].cov_xx
        np.testing.assert_allclose(args[6], shrink(S, args[4].weight, shrinkage), rtol=1e-9)
    assert options["n_components"] == 30
    assert options["effective_n"] == pytest.approx(eraser._seen.effective_n)
    assert eraser.solver_ == ("linear" if why else "random_features")
    messages = [str(w.message) for w in said]
    assert bool(messages) is bool(why)
    if why:
        assert "no more than LEACE here: for a reason" in messages[0]
    assert eraser.choice_ is not None
    assert eraser._settled()[0].meta["held_out_rows"] == eraser.choice_.to_meta()
    assert eraser.certificate_.erased


def test_lines_alone_choose_nothing():
    X, y = curved(200)
    eraser = ex.LEACE().fit(X, y)
    assert eraser.choice_ is None
    assert "held_out_rows" not in eraser.erasure_.meta
    assert (eraser._why_not_streaming(), eraser._why_not_pooling()) == ("", "")
    features = ex.LEACE(**SETTINGS)
    assert "random_features" in features._why_not_streaming()
    assert "random_features" in features._why_not_pooling()
    assert not hasattr(features, "partial_fit")


@pytest.mark.parametrize("shrinkage", ["none", 0, 0.3, "oas", "ledoit_wolf"])
@pytest.mark.parametrize("units", [1.0, 1e6])
def test_covariances_are_shrunk_in_units_that_are_alike(shrinkage, units):
    data = plant("classes", n=100)
    moments = ex.Moments.of(data.X * [1, 1, 1, 1, 1, 1, 1, units], data.Z)
    S = moments.cov_xx
    found = leace._shrunk(moments, shrinkage)
    if shrinkage in ("none", 0):
        np.testing.assert_array_equal(found, S)
        return
    u = units_if_far_apart(np.diag(S))
    assert bool(u.max() > 1e3 * u.min()) is (units > 1)
    expected = np.outer(u, u) * shrink(S / np.outer(u, u), moments.weight, shrinkage)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert np.abs(found - S).max() > 0


def test_fewer_directions_and_a_task():
    data = plant("classes", n=300)
    assert [ex.LEACE(rank).fit(data.X, data.y).rank_ for rank in (1, 2, 3, 5)] == [1, 2, 3, 3]
    task = np.random.default_rng(0).normal(size=300)
    alone, beside = ex.SPLINCE().fit(data.X, data.y), ex.SPLINCE().fit(data.X, task, concept=data.y)
    np.testing.assert_allclose(
        alone.erasure_.matrix(), ex.LEACE().fit(data.X, data.y).erasure_.matrix(), atol=1e-9
    )
    t = task - task.mean()
    before, after = ((A - A.mean(0)).T @ t for A in (data.X, beside.transform(data.X)))
    np.testing.assert_allclose(after, before, atol=1e-6)
    assert np.abs(alone.transform(data.X).T @ t - before).max() > 1e-3
