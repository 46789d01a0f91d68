"""Every parameter of every eraser is checked before anything is learned, and named if refused."""

import numpy as np
import pytest

import expunge as ex
from planted import plant

NAN, INF = float("nan"), float("inf")
REFUSED = {
    "rank": (0, -1, 8, 99, 2.5, True, "two", None),
    "strength": (-1e-9, 1.0 + 1e-9, NAN, "full", None),
    "alpha": (-1.0, NAN, INF, "much", None),
    "tol": (-1e-9, NAN, "tight", None),
    "loss": ("nonsense", None, 3),
    "solver": ("nonsense", None, 3),
    "shrinkage": (-1e-9, 1.0 + 1e-9, "nonsense", None, NAN),
    "objective": ("nonsense", None, np.eye(7), np.triu(np.ones((8, 8)))),
    "scale": ("nonsense", None, 2.0),
    "max_iter": (0, -3, 2.5, "many"),
    "step_size": (0.0, -1.0, NAN, INF),
    "batch_size": (0, 1.5, None),
    "evaluate_every": (0, 2.5, "often"),
    "restarts": (-1, 0.5, None),
    "validation_fraction": (0.0, -0.1, 0.9 + 1e-9, NAN),
    "random_state": (-1, "seed"),
    "concept_type": ("nonsense", None),
    "callback": (3, "print"),
    "transport": ("nonsense", None, 2),
    "predictor": ("nonsense", None, 2),
    "directions": (-1, 9, 2.5, "many", None),
    "rounds": (-1, 1001, 0.5, "many", None),
    "n_components": (0, 10_001, 2.5, "many", None),
}
TAKEN = {
    "rank": (1, 7, np.int64(2), "auto"),
    "strength": (0, 1, 0.5),
    "tol": (0, 1e-12, INF),
    "max_iter": (1, None),
    "batch_size": (1, 10**6),
    "evaluate_every": (1,),
    "n_components": (1, 10_000),
    "directions": (0, 8),
    "restarts": (0,),
    "validation_fraction": (1e-3, 0.9),
    "random_state": (0, None, np.random.default_rng(0), np.random.RandomState(0)),
    "shrinkage": (0, 1.0, "none"),
}


def cases(table):
    found = []
    for name in ex.ERASERS:
        known = ex.ERASERS[name]().get_params()
        for parameter, values in table.items():
            if parameter in known:
                found += [(name, parameter, value) for value in values]
    return found


def some():
    data = plant("classes", n=80)
    return data.X, data.y


@pytest.mark.parametrize(("name", "parameter", "value"), cases(REFUSED))
def test_what_makes_no_sense_is_refused_by_name(name, parameter, value):
    eraser = ex.ERASERS[name](**{parameter: value})
    with pytest.raises(ex.InputError) as refused:
        eraser.fit(*some())
    assert parameter in str(refused.value)
    assert not [key for key in vars(eraser) if key.endswith("_") and not key.startswith("_")]


@pytest.mark.filterwarnings("ignore")  # what few rows warn of is another matter
@pytest.mark.parametrize(("name", "parameter", "value"), cases(TAKEN))
def test_what_is_just_allowed_is_taken(name, parameter, value):
    X, y = some()
    eraser = ex.ERASERS[name](**{parameter: value}).fit(X, y)
    told = hasattr(eraser, "conditional_erasure_")
    clean = eraser.transform(X, concept=y) if told else eraser.transform(X)
    assert np.isfinite(clean).all()
    assert eraser.get_params()[parameter] is value


SETTINGS = [
    *(("optimizer", ex.DescentAscent(optimizer=value)) for value in ("newton", None)),
    *(("start", ex.DescentAscent(start=value)) for value in ("middle", None)),
    *(("momentum", ex.DescentAscent(momentum=value)) for value in (-0.1, 1.1, NAN)),
    *(("weight_decay", ex.DescentAscent(weight_decay=value)) for value in (-1.0, INF)),
    *(("width", ex.DescentAscent(width=value)) for value in (1, 2.5, "wide")),
    *(("explore", ex.SubspaceAscent(explore=value)) for value in (-1, 1.5)),
    *(("ridges", ex.SubspaceAscent(ridges=value)) for value in ((0.0,), (-1.0,), (1e-2, NAN))),
]


@pytest.mark.parametrize(("parameter", "solver"), SETTINGS)
def test_settings_of_a_solver_are_checked(parameter, solver):
    data = plant("classes", n=80)
    with pytest.raises(ex.InputError, match=parameter):
        ex.RLACE(2, solver=solver, max_iter=3).fit(data.X, data.y)


# -- what a closed form says of itself -------------------------------------------------------------

CLOSED = [name for name in ex.ERASERS if name != "INLP"]


@pytest.mark.parametrize("name", CLOSED)
def test_a_closed_form_takes_one_step(name):
    data = plant("classes")
    eraser = ex.ERASERS[name]().fit(data.X, data.y)
    assert eraser.n_iter_ == 1
    assert [step.step for step in eraser.history_] == [1]


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_leading_directions_and_the_value_of_what_they_leave(rank):
    data = plant("classes")
    C, D = data.X - data.X.mean(axis=0), data.Z - data.Z.mean(axis=0)
    U, s, _ = np.linalg.svd(C.T @ D / len(C))
    eraser = ex.SAL(rank).fit(data.X, data.y)
    P = np.eye(8) - U[:, :rank] @ U[:, :rank].T
    np.testing.assert_allclose(eraser.erasure_.matrix(), P, atol=1e-9)
    assert eraser.history_[0].value == pytest.approx(s[rank] if rank < 3 else 0.0, abs=1e-12)
    means = ex.MeanProjection(rank).fit(data.X, data.y)
    assert (means.history_[0].value > 1e-3) == (rank < 3)
    assert eraser.rank_ == means.rank_ == rank


# -- the defaults that other people's scripts rely on ----------------------------------------------

DEFAULTS = {
    "RLACE": {
        "rank": "auto",
        "solver": "auto",
        "fit_intercept": True,
        "alpha": 1e-4,
        "concept_type": "auto",
        "max_iter": None,
        "tol": 1e-6,
        "step_size": 0.005,
        "batch_size": 128,
        "evaluate_every": 1000,
        "restarts": 0,
        "random_state": None,
        "callback": None,
        "verbose": False,
        "scale": "none",
    },
    "INLP": {
        "rank": "auto",
        "fit_intercept": True,
        "alpha": 1e-4,
        "validation_fraction": 0.2,
        "tol": 1e-6,
        "verbose": False,
    },
    "LEACE": {
        "shrinkage": "none",
        "predictor": "linear",
        "n_components": 1000,
        "random_state": 0,
    },
    "SPLINCE": {"shrinkage": "none"},
    "QuadraticLEACE": {"label_free": False, "shrinkage": "auto"},
    "RayleighEraser": {"objective": "pls", "center": True},
    "FoldEraser": {
        "transport": "gaussian",
        "shrinkage": "auto",
        "directions": "auto",
        "rounds": 0,
        "predictor": "logistic",
        "random_state": 0,
    },
}


@pytest.mark.parametrize("name", ex.ERASERS)
def test_defaults(name):
    found = ex.ERASERS[name]().get_params()
    common = {"strength": 1.0, "concept_type": "auto", "rank": "auto"}
    expected = {key: value for key, value in common.items() if key in found}
    expected |= DEFAULTS.get(name, {})
    assert {key: found[key] for key in expected} == expected
    assert found["strength"] == 1.0
    data = plant("classes", n=80)
    certificate = ex.ERASERS[name]().fit(data.X, data.y).certificate_
    if certificate is not None:
        assert (certificate.alpha, certificate.tol) == (1e-4, 1e-6)


def test_defaults_of_the_solvers():
    assert vars(ex.SubspaceAscent()) == {"explore": 4, "rows": 8, "ridges": (3e-2, 3e-3)}
    plain = {"optimizer": "sgd", "momentum": 0.0, "start": "vertex", "width": "auto"}
    assert vars(ex.DescentAscent()) == {**plain, "weight_decay": 0.0}
    steps = {"step_size": 0.005, "max_iter": 50_000, "evaluate_every": 1000}
    for experiment, decay, batch in (("static", 0.0, 128), ("deep", 1e-4, 256)):
        expected = {"solver": ex.DescentAscent(weight_decay=decay), "batch_size": batch, **steps}
        assert ex.paper_settings(experiment) == expected
    with pytest.raises(ex.InputError, match="experiment"):
        ex.paper_settings("shallow")
