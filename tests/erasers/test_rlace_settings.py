"""What RLACE hands to its solvers and takes back: units, options, warnings, quickly."""

import warnings

import numpy as np
import pytest

import expunge as ex
from planted import plant

STEPS = {"max_iter": 20, "evaluate_every": 10}


@pytest.mark.parametrize("rank", ["auto", 5])
@pytest.mark.parametrize("intercept", [True, False])
def test_in_units_of_spreads_it_is_the_game_of_standardised_rows(rank, intercept):
    data = plant("classes", n=200)
    X = data.X * [1, 20, 1, 0.1, 1, 1, 3, 1]
    sd = X.std(axis=0)
    scaled = ex.RLACE(rank, scale="std", fit_intercept=intercept).fit(X, data.y)
    plain = ex.RLACE(rank, fit_intercept=intercept).fit(X / sd, data.y)
    expected = plain.erasure_.matrix() * sd[:, None] / sd
    np.testing.assert_allclose(scaled.erasure_.matrix(), expected, atol=1e-6)
    assert (scaled.erasure_.center is None) is not intercept
    assert not scaled._depends_on_units()
    assert plain._depends_on_units()


def test_a_solver_that_is_not_done_says_so():
    data = plant("classes", n=200)
    quick = ex.SubspaceAscent(explore=0, ridges=())
    with pytest.warns(ex.NotConverged, match="^subspace_ascent reached max_iter"):
        ex.RLACE(1, solver=quick, max_iter=1, tol=1e-14).fit(data.X[:60], data.y[:60])
    eraser = ex.RLACE(1, solver="descent_ascent", **STEPS).fit(data.X, data.y)
    assert eraser.solver_ == "descent_ascent"
    assert eraser.spectrum_.shape == (8,)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        closed = ex.RLACE().fit(data.X, data.y)
    with pytest.raises(AttributeError, match="relaxes nothing"):
        _ = closed.spectrum_


def test_every_option_arrives():
    def stop(step):
        return False

    options = {
        "max_iter": 7,
        "tol": 0.5,
        "step_size": 0.25,
        "batch_size": 3,
        "evaluate_every": 11,
        "restarts": 2,
        "callback": stop,
        "verbose": True,
    }
    found = ex.RLACE(random_state=4, **options)._options()
    assert {name: getattr(found, name) for name in options} == options
    assert found.rng.random() == np.random.default_rng(4).random()


@pytest.mark.parametrize("rank", ["auto", 1, 2])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_game_is_that_of_the_parameters(rank, intercept):
    data = plant("classes", n=200)
    w = np.random.default_rng(0).random(200)
    eraser = ex.RLACE(rank, fit_intercept=intercept, alpha=0.25, loss="squared_hinge")
    checked = eraser._check(data.X, data.y, None, w, whole=True)
    seen, _ = eraser._statistics(checked, second=True)
    game = eraser._game(seen, checked)
    assert (game.fit_intercept, game.alpha, game.units) == (intercept, 0.25, None)
    assert game.loss.name == "squared_hinge"
    assert game.rank == (game.null.rank if rank == "auto" else rank)
    assert game.moments is seen.moments
    np.testing.assert_array_equal(game.observed.weights, w)
    assert eraser._game(seen, None).observed is None


def test_a_seed_that_is_none_is_refused_with_the_first_chunk():
    data = plant("classes", n=50)
    inlp = ex.INLP(1, loss="squared", random_state="seed")
    for eraser in (ex.RLACE(random_state="seed"), ex.LEACE(random_state="seed"), inlp):
        with pytest.raises(ex.InputError, match="random_state"):
            eraser.partial_fit(data.X, data.y)


def test_callbacks_are_none_or_functions():
    data = plant("classes", n=50)
    seen = []
    ex.RLACE(callback=seen.append).fit(data.X, data.y)
    ex.RLACE(callback=None).fit(data.X, data.y)
    with pytest.raises(ex.InputError, match="callback cannot be called"):
        ex.RLACE(callback="print").fit(data.X, data.y)
