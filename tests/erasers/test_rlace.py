"""RLACE: which solver plays, what it says about it, and that "auto" is the best of them."""

from functools import cache

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine

import expunge as ex
from expunge.game.losses import Logistic, Multinomial
from planted import plant


def four_classes(n=400, d=6, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n)
    return rng.normal(size=(n, d)) + 1.5 * rng.normal(size=(4, d))[y] + 2.0, y


# -- what plays ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rank", "solver"),
    [("auto", "closed_form"), (1, "subspace_ascent"), (2, "subspace_ascent")]
    + [(K, "closed_form") for K in (3, 4, 5)],
)
def test_auto_takes_the_closed_form_where_it_is_exact(rank, solver):
    X, y = four_classes()
    eraser = ex.RLACE(rank).fit(X, y)
    assert eraser.solver_ == solver
    assert repr(eraser).endswith(f"fitted: rank {eraser.rank_} by {solver}")
    assert eraser.erasure_.meta["solver"] == solver
    assert eraser.erasure_.meta["parameters"]["solver"] == "auto"
    assert eraser.rank_ == (3 if rank == "auto" else rank)
    assert (eraser.n_iter_ == 1) or solver != "closed_form"


@pytest.mark.parametrize(
    ("kind", "own"), [("binary", 1), ("classes", 3), ("labels", 3), ("number", 1), ("vector", 2)]
)
def test_auto_knows_the_rank_of_every_kind_of_concept(kind, own):
    data = plant(kind, n=300)
    loss = "squared" if kind in ("number", "vector") else "cross_entropy"
    eraser = ex.RLACE(loss=loss).fit(data.X, data.y)
    assert (eraser.rank_, eraser.solver_) == (own, "closed_form")
    if own > 1:
        below = ex.RLACE(own - 1, loss=loss).fit(data.X, data.y)
        assert below.solver_ == "subspace_ascent"
        assert not below.certificate_.erased
        assert below.certificate_.optimal is None


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_every_rank_from_one_to_all_but_one(rank):
    X, y = four_classes()
    eraser = ex.RLACE(rank).fit(X, y)
    clean, B = eraser.transform(X), eraser.erasure_.basis
    np.testing.assert_allclose(B @ B.T, np.eye(rank), atol=1e-10)
    np.testing.assert_allclose(clean.mean(axis=0), X.mean(axis=0))
    assert np.linalg.matrix_rank(clean - clean.mean(axis=0)) == 6 - rank
    assert eraser.erasure_.is_orthogonal
    assert eraser.certificate_.erased == (rank >= 3)
    gaps = [np.linalg.norm(clean[y == c].mean(0) - clean.mean(0)) for c in range(4)]
    assert (max(gaps) < 1e-10) == (rank >= 3)


def test_one_direction_more_leaves_less():
    X, y = four_classes()
    left = [ex.RLACE(K).fit(X, y).certificate_ for K in (1, 2, 3, 4)]
    assert left[0].value < left[1].value - 0.05
    assert left[1].value < left[2].value - 0.05
    assert left[3].value == pytest.approx(left[2].value) == pytest.approx(left[2].bound)


GAMES = {
    "iris": (*load_iris(return_X_y=True), 1, {}),
    "wine": (*load_wine(return_X_y=True), 1, {}),
    "classes": (*four_classes(), 2, {}),
    "labels": (plant("labels").X, plant("labels").y, 2, {}),
    "vector": (plant("vector").X, plant("vector").y, 1, {"loss": "squared"}),
    "no intercept": (*four_classes(seed=1), 2, {"fit_intercept": False}),
    "squared hinge": (*four_classes(seed=2), 1, {"loss": "squared_hinge"}),
    "exact": (*four_classes(), 3, {}),
}


@cache
def auto_fit(name):
    X, y, rank, options = GAMES[name]
    return ex.RLACE(rank, **options).fit(X, y)


@pytest.mark.filterwarnings("ignore::expunge.errors.UnitsMatter")
@pytest.mark.parametrize("name", GAMES)
def test_auto_is_never_below_the_other_solvers(name):
    X, y, rank, options = GAMES[name]
    auto, reached = auto_fit(name).certificate_, auto_fit(name).history_[-1].value
    paper = {"solver": "descent_ascent", "max_iter": 600, "evaluate_every": 200}
    others = [
        ex.RLACE(rank, **paper, step_size=0.05, **options).fit(X, y),
        ex.RLACE(rank, solver=ex.SubspaceAscent(explore=0), **options).fit(X, y),
    ]
    for other in others:
        best = max(record.value for record in other.history_)  # in the game's own units
        assert reached >= best - 1e-5 * auto.bound, other.solver_
        assert other.certificate_.value > 0
    assert auto.value <= auto.primal <= auto.bound + 1e-12


@pytest.mark.filterwarnings("ignore::expunge.errors.UnitsMatter")
@pytest.mark.parametrize("name", [name for name in GAMES if name != "exact"])
def test_the_history_never_falls_and_the_certificate_is_tight(name):
    eraser = auto_fit(name)
    found = eraser.certificate_
    assert not found.erased
    assert found.primal - 1e-5 * found.bound <= found.value <= found.primal <= found.bound
    values = [record.value for record in eraser.history_]
    assert values == sorted(values)


# -- rows, streams, weights ------------------------------------------------------------------------


def test_a_stream_below_the_rank_says_what_to_do():
    X, y = four_classes()
    stream = ex.RLACE(2)
    for part in np.array_split(np.arange(len(X)), 3):
        stream.partial_fit(X[part], y[part])
    with pytest.raises(ex.InputError, match="needs the rows themselves") as caught:
        _ = stream.erasure_
    assert "rank=2" in caught.value.received
    assert "Call fit on all rows, or take rank=3 or more" in caught.value.remedy
    assert stream.set_params(rank=3).partial_fit(X, y).certificate_.erased
    forced = ex.RLACE(solver="descent_ascent").partial_fit(X, y)
    with pytest.raises(ex.InputError, match="solver='descent_ascent' needs the rows"):
        _ = forced.erasure_


@pytest.mark.parametrize("rank", [3, 5])
def test_a_stream_at_the_rank_and_above_equals_the_whole(rank):
    X, y = four_classes()
    stream = ex.RLACE(rank).partial_fit(X[:150], y[:150]).partial_fit(X[150:], y[150:])
    whole = ex.RLACE(rank).fit(X, y)
    np.testing.assert_allclose(stream.erasure_.matrix(), whole.erasure_.matrix(), atol=1e-9)


def test_class_weights_through_sample_weight():
    """Weights that balance the classes equal the game on balanced rows."""
    X, y = four_classes(n=600)
    keep = (y != 3) | (np.cumsum(y == 3) <= 30)  # a rare class
    X, y = X[keep], y[keep]
    w = (len(y) / 4 / np.bincount(y))[y]
    balanced = ex.RLACE(2).fit(X, y, sample_weight=w)
    plain = ex.RLACE(2).fit(X, y)
    assert balanced.certificate_.bound == pytest.approx(np.log(4))
    assert plain.certificate_.bound < np.log(4) - 0.05
    angles = np.linalg.svd(balanced.erasure_.basis @ plain.erasure_.basis.T)[1]
    assert angles.min() < 0.999  # the rare class counts as much as the others now
    assert ex.RLACE().fit(X, y, sample_weight=w).certificate_.erased
    weighted_mean = w @ X / w.sum()
    np.testing.assert_allclose(balanced.erasure_.center, weighted_mean)


def test_without_intercept_nothing_is_centred_below_the_rank():
    X, y = four_classes()
    eraser = ex.RLACE(2, fit_intercept=False).fit(X, y)
    assert eraser.erasure_.center is None
    assert eraser.certificate_.bound == pytest.approx(np.log(4))
    one_against_the_rest = ex.RLACE(fit_intercept=False, loss="squared_hinge").fit(X, y)
    assert one_against_the_rest.rank_ == 4  # the mean counts too


# -- what it records -------------------------------------------------------------------------------


def test_a_spectrum_only_where_something_was_relaxed():
    X, y = four_classes()
    for eraser in (ex.RLACE(), ex.RLACE(2)):
        eraser.fit(X, y)
        with pytest.raises(AttributeError, match=eraser.solver_):
            _ = eraser.spectrum_
        assert not hasattr(eraser, "spectrum_")
    relaxed = ex.RLACE(2, solver="descent_ascent", max_iter=20).fit(X, y)
    assert relaxed.spectrum_.sum() == pytest.approx(2)


def test_settings_are_in_the_record(tmp_path):
    X, y = four_classes()
    solver = ex.SubspaceAscent(explore=1, ridges=(0.05, 0.002))
    eraser = ex.RLACE(2, solver=solver, random_state=7).fit(X, y)
    eraser.erasure_.save(tmp_path / "e")
    parameters = ex.Erasure.load(tmp_path / "e").meta["parameters"]
    assert parameters["solver"] == repr(solver)
    assert "explore=1" in parameters["solver"]
    assert (parameters["random_state"], parameters["loss"]) == (7, "auto")


def test_a_loss_object_plays_below_the_rank():
    X, y = four_classes()
    named, given = (ex.RLACE(2, loss=loss).fit(X, y) for loss in ("cross_entropy", Multinomial()))
    np.testing.assert_array_equal(named.erasure_.left, given.erasure_.left)
    rest = ex.RLACE(2, loss=Logistic()).fit(X, y)  # one against the rest
    assert rest.certificate_.bound > named.certificate_.bound + 0.5


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("alpha", 0.0),
        ("alpha", -1.0),
        ("alpha", float("inf")),
        ("alpha", "small"),
        ("tol", -1e-3),
        ("tol", None),
        ("restarts", -1),
        ("restarts", 1.5),
        ("max_iter", 0),
        ("max_iter", True),
        ("rank", 6),
        ("rank", 0),
        ("loss", 3),
        ("loss", "logistic"),
        ("solver", "newton"),
        ("random_state", "seed"),
        ("callback", "print"),
    ],
)
def test_bad_parameters_are_refused_whatever_plays(name, value):
    X, y = four_classes()
    for rank in ("auto", 2):
        with pytest.raises(ex.InputError, match=name) as caught:
            ex.RLACE(rank).set_params(**{name: value}).fit(X, y)
        assert repr(value) in caught.value.received
