"""Faults that were found once, by fuzzing or by hand, each in its simplest form.

Below are whole stories first, then plans as `make fuzz` prints them: a plan that shows a fault is
added with a name that says what was wrong.
"""

import warnings

import numpy as np
import pytest
from calling import run
from numpy.random import default_rng
from plans import Plan, Rows, Target, Weights
from sklearn.linear_model import LogisticRegression

import expunge as ex


def accuracy(X, y):
    """Of a classifier on standardised rows: what a reader of the erased rows would find."""
    spread = X.std(axis=0)
    return (
        LogisticRegression(max_iter=2000)
        .fit(X / np.where(spread > 0, spread, 1), y)
        .score(X / np.where(spread > 0, spread, 1), y)
    )


def test_weights_that_differ_by_a_million_do_not_flatter():
    """It said: every linear predictor has loss >= 29.17, ignoring x gives 0.56."""
    r = default_rng(273)
    y = np.arange(60) % 3
    y[3:] %= 2
    X = r.normal(size=(60, 2)) + 30 * r.normal(size=(3, 2))[y]
    w = r.choice([1, 1e6], 60)
    found = ex.RLACE(strength=0.0).fit(X, y, sample_weight=w).certificate_
    assert found.value <= found.primal <= found.bound * (1 + 1e-9)
    assert not found.erased


@pytest.mark.parametrize("seed", [1, 2])
def test_a_column_in_large_units_does_not_hide_the_others(seed):
    """One column times 100,000, one direction for three classes: "erased, optimal", but it was not.

    The classes are read from the other columns by 61 and 76 of 100, by chance 35.
    """
    r = default_rng(seed)
    y = r.integers(0, 3, 600)
    X = r.normal(size=(600, 4)) + 1.5 * r.normal(size=(3, 4))[y]
    X[:, 0] *= 1e5
    with pytest.warns(ex.errors.UnitsMatter):
        eraser = ex.RLACE(1).fit(X, y)
    assert accuracy(eraser.transform(X)[:, 1:], y) > np.bincount(y).max() / 600 + 0.1
    assert not eraser.certificate_.erased
    assert not eraser.certificate_.optimal


@pytest.mark.parametrize("units", [1e3, 1e9, 1e12])
@pytest.mark.parametrize("name", ["SAL", "LEACE", "RLACE"])
def test_a_number_in_large_units_does_not_hide_a_class(name, units):
    """Two concepts by name: "erased", while the classes were read by 97 of 100."""
    r = default_rng(2)
    r.integers(0, 3, 600)
    gender, t = r.integers(0, 2, 600), r.normal(size=600)
    X = r.normal(size=(600, 6)) + 1.5 * np.outer(gender, r.normal(size=6))
    X = X + np.outer(t, r.normal(size=6))
    assert accuracy(X, gender) > 0.9
    loss = {"loss": "squared"} if name == "RLACE" else {}
    both = {"gender": gender, "when": units * t}
    eraser = ex.ERASERS[name](**loss).fit(X, both)
    assert accuracy(eraser.transform(X), gender) < 0.6
    assert eraser.certificate_.erased
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ex.RankTruncated)
        one = ex.SAL(1).fit(X, both)
    assert accuracy(one.transform(X), gender) > 0.8
    assert not one.certificate_.erased


@pytest.mark.parametrize("scale", [1e-200, 1e-170, 1e-155, 1e-100, 1e100, 1e155, 1e200])
@pytest.mark.parametrize("name", ["LEACE", "SAL", "MeanProjection", "RLACE", "RayleighEraser"])
def test_rows_in_extreme_units_are_erased_or_refused(name, scale):
    r = default_rng(0)
    y = r.integers(0, 2, 200)
    X = (r.normal(size=(200, 3)) + np.outer(y, [2, 1, 0])) * scale
    try:
        eraser = ex.ERASERS[name]().fit(X, y)
        clean = eraser.transform(X)
    except ex.InputError:
        return
    assert accuracy(X / scale, y) > 0.8
    assert eraser.certificate_.erased
    assert accuracy(clean / scale, y) < 0.65


@pytest.mark.parametrize("scale", [1e-200, 1e-170])
def test_rows_in_tiny_units_are_not_called_erased(scale):
    """Nothing was erased, and the classes are read by 89 of 100."""
    r = default_rng(0)
    y = r.integers(0, 2, 200)
    X = (r.normal(size=(200, 3)) + np.outer(y, [2, 1, 0])) * scale
    nothing = ex.Erasure(np.zeros((3, 0)), np.zeros((0, 3)))
    try:
        found = ex.certify(nothing, X, y)
    except ex.InputError:
        return
    assert not found.erased


def test_an_outlier_does_not_keep_a_predictor_searching_for_ever():
    run(Plan("INLP", rows=Rows(outlier=1e155), parameters={"rank": 1}))


PLANS = {
    "curvature that underflows": Plan(
        "INLP",
        seed=486407291,
        rows=Rows(n=171, d=12, gap=0.0, scale=1e-8, one_scale=1e100),
        target=Target(text=True),
        parameters={"rank": 3},
    ),
    "an oracle told of a class and of a number far from zero, in a stream": Plan(
        "OracleLEACE",
        seed=1185442764,
        rows=Rows(n=9, d=5, gap=30.0),
        target=Target(kind="several", units=0.001, origin=1e6),
        weights=Weights(ratio=1e4, zeros=0.2),
    ),
    "constant columns that a map without a center takes away, in a stream": Plan(
        "RayleighEraser",
        seed=372351252,
        rows=Rows(n=39, d=6, gap=30.0, dtype="int8"),
        target=Target(kind="classes", count=5),
        parameters={"rank": 4, "center": False, "objective": "cca"},
    ),
    "an oracle told of two classes, one of nearly no weight": Plan(
        "OracleLEACE",
        557208346,
        Rows(n=8, d=12, scale=100000.0, twins=True, dtype="float32"),
        Target(rare=True),
        Weights(ratio=100000000.0, zeros=0.6),
    ),
    "rows that a task next to the concept stretches, in a stream": Plan(
        "SPLINCE", 2005157614, Rows(n=116, d=4, gap=0.0), Target("several"), task=True
    ),
    "a class that hardly varies in one direction keeps a covariance of its own": Plan(
        "QuadraticLEACE", 180088083, Rows(n=31, d=7, gap=0.1), Target("classes", 3)
    ),
    "a stream that writes into a constant column, in small units": Plan(
        "RLACE", rows=Rows(scale=1e-08, constants=1), parameters={"fit_intercept": False}
    ),
    "shrinkage of an outlier": Plan(
        "LEACE", rows=Rows(outlier=1e100), parameters={"shrinkage": "oas"}
    ),
    "a ridge above those of the search": Plan(
        "RLACE", target=Target("several"), parameters={"rank": 1, "alpha": 0.0565}
    ),
    "the unit of a column of which float32 leaves few digits": Plan(
        "INLP", rows=Rows(n=3, d=4, dtype="float16"), weights=Weights(ratio=1e8)
    ),
    "the unit of a column that others were mixed into": Plan(
        "certify",
        rows=Rows(n=4, d=6, gap=30.0, dtype="float32"),
        target=Target("vector"),
        weights=Weights(ratio=100.0),
        erasure="LEACE",
    ),
    "canonical correlation with a constant column": Plan(
        "RayleighEraser", rows=Rows(d=3, constants=1), parameters={"objective": "cca"}
    ),
    "LEACE of columns that never vary": Plan("LEACE", rows=Rows(n=40, d=1, constants=1)),
    "hinge on wide rows in single precision": Plan(
        "RLACE",
        rows=Rows(n=40, d=60, dtype="float32"),
        parameters={"loss": "hinge", "strength": 0.5},
    ),
    "a ridge too small for the rounding of float32": Plan(
        "INLP",
        seed=1962751237,
        rows=Rows(n=12, d=4, mixed=2.0, dtype="float32"),
        target=Target("classes", 3, rare=True),
        weights=Weights(1e8, 0.6),
        parameters={"alpha": 4.19e-10},
    ),
    "whole numbers too large for an integer": Plan(
        "LEACE", target=Target("number", units=1e18, origin=1e3)
    ),
    "whole numbers too large for an integer, by name": Plan(
        "SAL", target=Target("several", units=1e18, origin=10.0)
    ),
    "one of several labels, rare by its weight": Plan(
        "RayleighEraser",
        seed=1349411871,
        rows=Rows(n=4, d=3),
        target=Target("labels", 5),
        weights=Weights(1e8),
        parameters={"rank": 2, "objective": "cca"},
    ),
    "INLP that learns from rows of which none counts": Plan(
        "INLP",
        seed=230669640,
        rows=Rows(n=25, d=3, gap=5.0, mixed=8.0),
        target=Target(kind="several", units=1e8, origin=10.0),
        weights=Weights(ratio=100.0, zeros=0.2, lost_class=True),
        parameters={"loss": "squared", "validation_fraction": 0.8965220213122765},
    ),
    "a predictor that float32 cannot hold": Plan(
        "RLACE",
        seed=1085792112,
        rows=Rows(n=49, d=5, nearly=0.001, dtype="float32"),
        target=Target(kind="several", units=1e8, origin=1e6),
        parameters={
            "rank": 2,
            "loss": "squared",
            "max_iter": 1,
            "alpha": 4.73e-12,
            "fit_intercept": False,
        },
    ),
    "a projector that leaves next to nothing of a column": Plan(
        "RLACE", rows=Rows(gap=0.0, one_scale=1e5)
    ),
    "what is told the class leaves nothing of a column, but for rows of little weight": Plan(
        "OracleLEACE",
        seed=1210981065,
        rows=Rows(n=9, d=9, gap=30.0, home="strided"),
        target=Target(kind="labels", count=5),
        weights=Weights(ratio=1e8, zeros=0.2),
    ),
    "a fold of rows of which none counts in a part": Plan(
        "FoldEraser",
        seed=1633198766,
        rows=Rows(n=10, d=6, gap=30.0, mixed=1.0, dtype="bool"),
        target=Target(kind="classes", count=3, text=True),
        weights=Weights(ratio=2.0, lost_class=True),
        parameters={"shrinkage": 0.1, "transport": "shift", "predictor": "discriminant"},
    ),
    "certify without a tolerance": Plan(
        "certify", erasure="nothing", parameters={"tol": None}, bad="tol"
    ),
    "certify with a ridge that is text": Plan(
        "certify", erasure="nothing", parameters={"alpha": "much"}, bad="alpha"
    ),
    "an audit whose halves have different classes": Plan(
        "audit", target=Target("classes", 4), erasure="MeanProjection"
    ),
    "a class in one half of a comparison only": Plan(
        "compare", seed=1632856761, target=Target("classes", 3)
    ),
    "shrinkage of large numbers": Plan("QuadraticLEACE", rows=Rows(n=3, scale=1e100)),
    "a barycentre of large numbers": Plan("QuadraticLEACE", rows=Rows(one_scale=1e155)),
    "mixed units and few rows": Plan("RLACE", seed=422925204, rows=Rows(n=13, d=7, mixed=10.0)),
    "LEACE of four classes in mixed units": Plan(
        "LEACE",
        seed=1858897670,
        rows=Rows(n=36, d=5, mixed=8.0, one_scale=1e-5),
        target=Target("classes", 4),
    ),
    "mixed units of several concepts": Plan(
        "RayleighEraser",
        seed=1664692571,
        rows=Rows(n=12, mixed=10.0, one_scale=1e8),
        target=Target("several"),
    ),
    "LEACE in mixed units": Plan(
        "LEACE",
        seed=146333452,
        rows=Rows(d=3, mixed=10.0),
        target=Target("several", units=1e8),
    ),
    "a column without any weight": Plan(
        "SPLINCE",
        seed=1860560930,
        rows=Rows(n=32),
        target=Target("labels"),
        weights=Weights(lost_class=True),
    ),
    "a rare label among large weights": Plan(
        "SAL",
        seed=681826244,
        rows=Rows(d=5),
        target=Target("labels", rare=True),
        weights=Weights(1e8, 0.6),
    ),
    "an outlier of no weight": Plan(
        "RayleighEraser",
        rows=Rows(n=17, offset=10.0, outlier=1e20),
        weights=Weights(zeros=0.6),
    ),
    "canonical correlation of equal rows": Plan(
        "RayleighEraser", rows=Rows(copies=1), parameters={"objective": "cca"}
    ),
    "a told eraser that leaves a column only rounding": Plan(
        "certify",
        seed=2011539611,
        rows=Rows(n=38, gap=10.0, dtype="bool"),
        target=Target("several"),
        erasure="OracleLEACE",
    ),
    "certify with a tolerance that is no number": Plan(
        "certify", erasure="LEACE", parameters={"tol": float("nan")}, bad="tol"
    ),
    "a stream that writes into a constant column": Plan(
        "RLACE", rows=Rows(constants=1), parameters={"fit_intercept": False}
    ),
    "a task beside an outlier": Plan(
        "SPLINCE", rows=Rows(outlier=1e20), target=Target("classes", 3)
    ),
    "a comparison whose halves have different classes": Plan(
        "compare", target=Target("classes", 3, rare=True)
    ),
    "rounds of least squares on a stream of float32": Plan(
        "INLP",
        seed=809414280,
        rows=Rows(n=43, d=9, gap=30.0, dtype="float32"),
        target=Target("several"),
        parameters={"rank": 2, "loss": "squared"},
    ),
    "a stream of float32 whose classes are far apart": Plan(
        "LEACE",
        seed=920300890,
        rows=Rows(n=37, d=6, gap=30.0, dtype="float32"),
        target=Target("classes", count=4),
    ),
    "directions asked for where shrinkage made all classes alike": Plan(
        "QuadraticLEACE",
        seed=1422536046,
        rows=Rows(n=31, d=4, gap=0.1),
        parameters={"rank": 3, "label_free": True, "shrinkage": "ledoit_wolf"},
    ),
    "a huge number in a row of no weight": Plan(
        "RLACE",
        seed=2023997958,
        rows=Rows(n=26, d=8, scale=1e-08, outlier=1e155),
        target=Target("number"),
        weights=Weights(1e6, 0.6),
        parameters={"loss": "squared"},
    ),
    "principal components that vary alike": Plan(
        "RayleighEraser",
        seed=1384238110,
        rows=Rows(n=27, d=4, gap=30.0, dtype="bool"),
        target=Target("number"),
        parameters={"center": False, "objective": "pca"},
    ),
    "a nearly constant column that an erasure writes to": Plan(
        "certify",
        seed=590068486,
        rows=Rows(n=12, d=4, integers=True, nearly=1e-09),
        target=Target("classes", count=3),
        weights=Weights(1e4, lost_class=True),
        erasure="random",
    ),
    "numbers beside a row of no weight at 1e155": Plan(
        "LEACE",
        seed=531719974,
        rows=Rows(n=72, outlier=1e155),
        target=Target("vector"),
        weights=Weights(zeros=0.2),
        parameters={"strength": 0.99},
    ),
    "a predictor beside a row of no weight at 1e155": Plan(
        "certify",
        rows=Rows(n=39, d=4, scale=1e-08, outlier=1e155),
        weights=Weights(zeros=0.2),
        erasure="nothing",
        parameters={"loss": "squared"},
    ),
    "a number that never varies, compared": Plan(
        "compare", rows=Rows(n=32), target=Target("vector", units=1e-08, frozen=True)
    ),
    "a label that never varies, along a path": Plan(
        "rank_path", target=Target("labels", frozen=True)
    ),
    "numbers whose mean has lost digits, in a stream": Plan(
        "OracleLEACE", seed=168206908, rows=Rows(n=3), target=Target("vector", origin=1e6)
    ),
    "constant columns beside huge ones, in a stream": Plan(
        "RLACE",
        seed=463345660,
        rows=Rows(n=142, d=5, mixed=8.0, one_scale=1e8, constants=3),
        target=Target("vector"),
        parameters={"fit_intercept": False},
    ),
    "a ridge far below the numbers": Plan(
        "RLACE",
        seed=109467113,
        rows=Rows(offset=1000.0),
        target=Target("several", origin=1e6),
        parameters={"alpha": 6.81e-09, "fit_intercept": False},
    ),
    "a stream that has not seen a class of no weight": Plan(
        "OracleLEACE",
        seed=550589172,
        rows=Rows(n=9, d=4),
        target=Target("several", rare=True, origin=10.0),
        weights=Weights(zeros=0.6),
    ),
    "a narrow column in which a wide one is written": Plan(
        "certify",
        rows=Rows(mixed=2.0, scale=1e-100, one_scale=1e155),
        target=Target("several"),
        erasure="random",
    ),
    "an outlier that is written to tiny columns": Plan(
        "certify", rows=Rows(scale=1e-100, outlier=1e100), erasure="random"
    ),
    "a stream of small numbers that do not vary": Plan(
        "RLACE",
        seed=419694942,
        rows=Rows(n=50, d=7, gap=30.0, dtype="int8"),
        target=Target("several"),
        parameters={"rank": 4},
    ),
    "halves between two numbers of float16": Plan(
        "certify",
        seed=685935984,
        rows=Rows(n=4, d=4, dtype="float16"),
        target=Target("several"),
        erasure="LEACE",
        parameters={"as_transformed": True},
    ),
    "a path beside a row of no weight at 1e155": Plan(
        "rank_path",
        seed=216537053,
        rows=Rows(n=17, outlier=1e155),
        target=Target("number"),
        weights=Weights(zeros=0.2),
    ),
    "directions of classes far apart, in a stream": Plan(
        "QuadraticLEACE",
        seed=987276000,
        rows=Rows(n=40, d=8, gap=30.0),
        parameters={"rank": 4, "label_free": True, "shrinkage": "oas"},
    ),
    "spreads that variances cannot tell": Plan(
        "RLACE",
        seed=433966541,
        rows=Rows(n=9, d=7, mixed=1.0, constants=6, dtype="int8"),
        target=Target("vector", origin=1e6),
        parameters={"fit_intercept": False},
    ),
    "spreads that variances of float32 cannot tell": Plan(
        "certify",
        seed=1262380426,
        rows=Rows(n=12, d=11, integers=True, mixed=8.0, scale=1e-08, copies=5, dtype="float32"),
        target=Target("several"),
        weights=Weights(1e8, zeros=0.6, lost_class=True),
        erasure="SAL",
        parameters={"loss": "squared"},
    ),
    "spreads that variances cannot tell, of columns next to copies": Plan(
        "certify",
        seed=293963675,
        rows=Rows(n=124, d=3, gap=5.0, one_scale=1e-05, nearly=1e-09),
        target=Target("classes", count=5),
        erasure="LEACE",
    ),
    "shrinkage that makes a narrow column wide": Plan(
        "SPLINCE",
        seed=1576206634,
        rows=Rows(n=23, outlier=1e20),
        target=Target("classes", count=3),
        weights=Weights(1e4),
        parameters={"shrinkage": 1.0},
    ),
    "a judge without the digits of a rare label": Plan(
        "LEACE",
        seed=1261289213,
        rows=Rows(n=185, d=7, dtype="float16"),
        target=Target("several", rare=True),
        weights=Weights(1e8, zeros=0.2),
        parameters={"rank": 4},
    ),
    "less written to a constant column than variances of float32 can tell": Plan(
        "RLACE",
        seed=550147119,
        rows=Rows(n=9, d=12, gap=0.0, integers=True, mixed=4.0, constants=5, dtype="float32"),
        target=Target("classes", count=4),
        parameters={"loss": "squared", "fit_intercept": False},
    ),
    "rounding of others written to constant columns": Plan(
        "RayleighEraser",
        seed=1255466706,
        rows=Rows(n=119, d=11, gap=30.0, dtype="int8"),
        parameters={"rank": 3, "objective": "cca"},
    ),
    "a constant column that shrinkage fills, in a stream": Plan(
        "QuadraticLEACE",
        seed=260913650,
        rows=Rows(d=4, gap=30.0, dtype="int8"),
        parameters={"rank": 2, "label_free": True, "shrinkage": 1.0},
    ),
    "classes with equal means of a column, in a stream": Plan(
        "QuadraticLEACE",
        seed=1085825400,
        rows=Rows(n=42, gap=0.1, dtype="bool"),
        target=Target("classes", count=3),
    ),
    "erased rows that float16 does not hold": Plan(
        "SPLINCE",
        seed=1353962137,
        rows=Rows(n=70, d=3, empty=0.98, dtype="float16"),
        weights=Weights(ratio=10000.0),
        task=True,
    ),
    "a column that a projection stretches by decades": Plan(
        "RayleighEraser",
        seed=887222491,
        rows=Rows(n=55, d=5, gap=30.0, tails=1.0, mixed=1.0),
        target=Target("several"),
    ),
    "columns too far apart to be judged": Plan(
        "certify",
        rows=Rows(d=4, gap=30.0, tails=2.0, one_scale=1e-155),
        target=Target("several"),
        erasure="MeanProjection",
    ),
    "squares of what probes miss by": Plan(
        "audit",
        rows=Rows(outlier=1e100),
        target=Target("several", origin=1e6),
        erasure="LEACE",
    ),
    "steps smaller than the last digit, for ever": Plan(
        "INLP",
        seed=1435521042,
        rows=Rows(n=29, d=5, gap=0.0, integers=True, constants=5, twins=True, home="fortran"),
        target=Target("number", units=1e11, origin=1000.0),
        parameters={"loss": "squared", "alpha": 1.39e-06, "tol": 0.00616},
    ),
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_plans_that_showed_a_fault(plan):
    run(plan)
