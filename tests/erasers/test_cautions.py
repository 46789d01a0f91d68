"""Fits that would surprise: nothing left, numbers taken for classes, units that decide."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import expunge as ex


def table(n=600, d=5, classes=6, seed=0):
    """A table of whole numbers with more classes than it can hold directions for."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    return rng.poisson(4 + rng.uniform(0, 3, size=(classes, d))[y]).astype(float), y


WIPING = ["RLACE", "LEACE", "SAL", "MeanProjection", "SPLINCE", "RayleighEraser"]


@pytest.mark.parametrize("name", WIPING)
def test_a_table_that_is_wiped_out_is_warned_about(name):
    X, y = table()
    with pytest.warns(ex.NothingLeft, match="fewer classes, concept_type='continuous'"):
        eraser = ex.ERASERS[name]().fit(X, y)
    assert np.ptp(eraser.transform(X), axis=0).max() < 1e-9
    assert eraser.certificate_.variance_kept < 1e-12
    assert eraser.certificate_.columns_kept == 0
    assert "0 of 5 columns" in str(eraser.certificate_)
    assert eraser.erasure_.meta["kept"] == {
        "variance": eraser.certificate_.variance_kept,
        "columns": 0,
        "of": 5,
    }


@pytest.mark.parametrize("name", WIPING)
def test_a_stream_that_is_wiped_out_is_warned_about(name):
    X, y = table()
    stream = ex.ERASERS[name]().partial_fit(X[:300], y[:300]).partial_fit(X[300:], y[300:])
    with pytest.warns(ex.NothingLeft):
        _ = stream.erasure_


def everything(kind):
    """Six columns and a concept that has more to say than they hold directions for."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 6))
    if kind == "classes":
        return X, rng.integers(0, 100, 1000)
    Z = X[:, [0, 1, 2, 3, 4, 5, 0, 1]] + rng.normal(size=(1000, 8))
    return X, (Z > 0).astype(int) if kind == "labels" else Z


@pytest.mark.parametrize("scale", ["none", "std"])
@pytest.mark.parametrize("solver", ["auto", *ex.SOLVERS])
@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        ("classes", r"100 classes\) .* fewer classes"),
        ("labels", r"8 labels\) .* fewer labels"),
        ("continuous", r"8 columns\) .* fewer columns of the concept"),
    ],
)
def test_a_concept_that_takes_every_direction_is_warned_about(kind, remedy, solver, scale):
    X, y = everything(kind)
    options = {"solver": solver, "scale": scale, "max_iter": 20, "evaluate_every": 20}
    with pytest.warns(ex.NothingLeft, match=f"{remedy}.*, or a lower rank") as caught:
        eraser = ex.RLACE(**options).fit(X, y)
    assert caught[0].filename == __file__
    assert eraser.rank_ == 6
    assert np.ptp(eraser.transform(X), axis=0).max() < 1e-9


@pytest.mark.parametrize("strength", [1.0, 0.95])
@pytest.mark.parametrize("scale", ["none", "std"])
@pytest.mark.parametrize("kind", ["classes", "labels", "continuous"])
def test_so_is_a_stream_of_one_even_beside_constant_columns(kind, scale, strength):
    X, y = everything(kind)
    X = np.hstack([X, np.full((1000, 2), 3.0)])
    stream = ex.RLACE(scale=scale, strength=strength)
    for part in np.array_split(np.arange(1000), 3):
        stream.partial_fit(X[part], y[part])
    with pytest.warns(ex.NothingLeft, match="or a lower rank"):
        _ = stream.erasure_
    share = (1 - strength) ** 2
    assert stream.certificate_.variance_kept == pytest.approx(share, abs=1e-9)
    with pytest.warns(ex.NothingLeft):
        ex.RLACE(scale=scale, strength=strength).fit(X, y)


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_so_is_a_regression_with_as_many_numbers_as_columns(loss):
    X, Z = everything("continuous")
    with pytest.warns(ex.NothingLeft, match="6 columns"):
        assert ex.RLACE(loss=loss).fit(X, Z[:, :6]).rank_ == 6
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ex.RLACE(loss=loss).fit(X, Z[:, :5]).rank_ == 5
        ex.RLACE(loss=loss, strength=0.5).fit(X, Z[:, :6])  # a quarter of the variance is left


@pytest.mark.parametrize("name", list(ex.ERASERS))
def test_an_ordinary_fit_says_what_was_kept_and_does_not_warn(name):
    X, y = table(classes=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ex.NothingToFold)
        eraser = ex.ERASERS[name]().fit(X, y)
    kept = eraser._settled()[0].meta["kept"]
    assert 0.2 < kept["variance"] <= 1 + 1e-9
    assert kept["of"] == 5


def test_what_is_kept_is_what_was_measured():
    X, y = table(classes=2)
    eraser = ex.LEACE().fit(X, y)
    share = eraser.transform(X).var(axis=0).sum() / X.var(axis=0).sum()
    assert eraser.certificate_.variance_kept == pytest.approx(share, rel=1e-12)
    stream = ex.LEACE().partial_fit(X, y)
    assert stream.certificate_.variance_kept == pytest.approx(share, rel=1e-10)


HEAVY = {
    "lognormal": lambda rng: np.exp(3 * rng.normal(size=(20_000, 30))),
    "cauchy": lambda rng: rng.standard_cauchy((20_000, 30)),
    "flags": lambda rng: np.hstack([rng.normal(size=(20_000, 3)), rng.random((20_000, 30)) < 1e-4]),
    "normal": lambda rng: rng.normal(size=(40_000, 30)),
}


@pytest.mark.filterwarnings("ignore::expunge.errors.UnitsMatter")
@pytest.mark.parametrize("name", ["RLACE", "LEACE", "OracleLEACE"])
@pytest.mark.parametrize("columns", HEAVY)
def test_what_is_kept_is_not_that_of_a_sample_that_misses_the_far_rows(columns, name):
    """It said 476 % where 99.6 % were left, and counted flags never set in the sample as kept."""
    rng = np.random.default_rng(1)
    X = HEAVY[columns](rng).astype(float)
    y = rng.integers(0, 2, len(X))
    X[:, 0] += y
    eraser = ex.ERASERS[name]().fit(X, y)
    clean = eraser.transform(X, concept=y) if name == "OracleLEACE" else eraser.transform(X)
    share = clean.var(axis=0).sum() / X.var(axis=0).sum()
    columns_kept = int((clean.var(axis=0) >= 0.01 * X.var(axis=0)).sum())
    found = eraser.certificate_
    if columns == "normal" and name != "LEACE":  # a sample is as good as all
        assert found.kept_sampled
        assert "kept: about" in str(found)
        assert found.variance_kept == pytest.approx(share, abs=0.01)
    else:
        assert not found.kept_sampled
        assert found.variance_kept == pytest.approx(share, rel=1e-6)
    assert found.columns_kept == columns_kept


def test_whole_numbers_that_look_like_amounts_are_asked_about():
    X, _ = table()
    age = np.random.default_rng(1).integers(20, 70, len(X)).astype(float)
    for amounts in (age, age.astype(int), 10 * (age - 20).astype(np.int16), age - 20):
        with pytest.warns(ex.NumbersAsClasses, match=r"50 different values.*continuous"):
            ex.inputs.check_concept(amounts, len(X))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ex.inputs.check_concept(age.astype(int) - 20, len(X))  # 0, 1, 2, ... count classes
        ex.inputs.check_concept(age.astype(int) - 19, len(X))
        ex.inputs.check_concept(age.astype(int).astype(str), len(X))
        ex.inputs.check_concept(age.astype(int) % 3 + 7, len(X))
        ex.inputs.check_concept(age % 3, len(X))  # as 0.0, 1.0, 2.0 are
        ex.inputs.check_concept(age, len(X), concept_type="classes")
        ex.inputs.check_concept(age, len(X), concept_type="continuous")


def money(n=2000):
    """Five columns of which one is in dollars."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 5)) + np.outer(y, [1, 1, 1, 0, 0])
    return X * [1, 1, 2e4, 1, 1], y


def held_out(X, y):
    return cross_val_score(make_pipeline(StandardScaler(), LogisticRegression()), X, y).mean()


@pytest.mark.parametrize("name", ["RLACE", "SAL", "MeanProjection", "INLP"])
def test_units_that_decide_are_warned_about(name):
    X, y = money()
    with pytest.warns(ex.UnitsMatter, match="factor of 2"):
        ex.ERASERS[name](1).fit(X, y)


def test_scale_std_does_not_depend_on_units():
    X, y = money()
    assert held_out(X, y) > 0.75
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        eraser = ex.RLACE(scale="std").fit(X, y)
    clean = eraser.transform(X)
    assert eraser.certificate_.erased
    assert held_out(clean, y) < 0.53
    other = ex.RLACE(scale="std").fit(X * [1, 1e3, 1e-4, 7, 1], y)
    np.testing.assert_allclose(
        other.transform(X * [1, 1e3, 1e-4, 7, 1]) / [1, 1e3, 1e-4, 7, 1], clean, rtol=1e-9
    )
    # the plain projection loses the wide column, this one a part of three
    with pytest.warns(ex.UnitsMatter):
        plain = ex.RLACE().fit(X, y).transform(X)
    share, plain_share = clean.var(0) / X.var(0), plain.var(0) / X.var(0)
    assert plain_share[2] < 1e-6
    assert share.min() > 0.5


@pytest.mark.parametrize("rank", ["auto", 1, 3])
@pytest.mark.parametrize("solver", ["auto", "descent_ascent"])
def test_scale_std_is_the_game_on_standardised_rows(rank, solver):
    X, y = table(classes=4)
    X = X * [1, 10, 0.1, 3, 1]
    options = {"solver": solver, "max_iter": 300, "evaluate_every": 100}
    eraser = ex.RLACE(rank, scale="std", **options).fit(X, y)
    by_hand = ex.RLACE(rank, **options).fit(X / X.std(0), y)
    np.testing.assert_allclose(
        eraser.transform(X) / X.std(0), by_hand.transform(X / X.std(0)), atol=1e-6
    )


@pytest.mark.parametrize(("offset", "shows"), [(0.0, False), (1000.0, True)])
def test_rounding_that_puts_the_concept_back_is_warned_about(offset, shows):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 4000)
    X = (rng.normal(size=(4000, 6)) * 0.05 + 0.3 * y[:, None] + offset).astype(np.float16)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        eraser = ex.LEACE().fit(X, y)
    assert eraser.certificate_.erased
    assert [w.category for w in caught] == [ex.RoundingShows] * shows
    assert ex.certify(eraser, X, y, as_transformed=True).erased != shows


def test_dead_columns_of_a_network_are_no_units():
    """The last layer of MiniLM has columns of spreads 1e-8 and 1e-32 among 384 of 0.3."""
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    X = rng.normal(size=(400, 60)) + np.outer(y, rng.normal(size=60))
    X[:, [7, 9]] *= [1e-32, 1e-8]
    X = X.astype(np.float32)
    for eraser in (ex.RLACE(), ex.RayleighEraser(1, objective="cca")):
        found = eraser.fit(X, y)  # no warning
        assert found.certificate_.erased
        moved = found.transform(X.astype(np.float64)) - X
        assert np.abs(found.erasure_.right).max() < 1e8
        assert np.abs(moved[:, 7]).max() < 1e-30
    wide = np.array(X, dtype=np.float64)
    wide[:, 3] = 1.7e18 + 3e16 * rng.random(400)  # times in nanoseconds
    with pytest.warns(ex.UnitsMatter):
        ex.RLACE().fit(wide, y)


def test_columns_far_apart_are_mapped_in_units_of_their_own():
    """Maps to the barycentre of covariances over 18 orders of magnitude hung on rounding."""
    rng, n = np.random.default_rng(0), 900
    y = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    X = rng.normal(size=(n, 6)) * np.where(y == 1, 2.0, 1.0)[:, None] + np.eye(3, 6)[y]
    units = 10.0 ** np.array([-5, -3, 0, 1, 4, 5])
    order = rng.permutation(n)
    first = ex.QuadraticLEACE().fit(X * units, y).transform(X * units, concept=y)
    other = ex.QuadraticLEACE().fit((X * units)[order], y[order])
    other = other.transform(X * units, concept=y)
    np.testing.assert_allclose(first / units, other / units, atol=1e-6)
    covariances = [np.cov((first / units)[y == k].T, ddof=0) for k in range(3)]
    assert np.abs(covariances[1] - covariances[0]).max() < 1e-9
    raw = [np.cov(X[y == k].T, ddof=0) for k in range(3)]
    assert np.abs(raw[1] - raw[0]).max() > 1


@pytest.mark.parametrize("name", [n for n in ex.ERASERS if n not in ("OracleLEACE", "PairPCA")])
def test_a_constant_column_stays_so_to_the_last_digit(name):
    """Scaled by its spread of 1e-17 it gave the classes of new rows away: digits by 98 of 100."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    X = rng.normal(size=(300, 12)) + np.eye(12)[y] * 3
    X[:, [2, 7, 11]] = [0.0, 5.0, -1e6]
    eraser = ex.ERASERS[name]().fit(X, y)
    new = X[:100] + 0.1 * (np.ptp(X, axis=0) > 0) * rng.normal(size=(100, 12))
    known = {"concept": y[:100]} if name == "QuadraticLEACE" else {}
    clean = eraser.transform(new, **known)
    np.testing.assert_array_equal(clean[:, [2, 7, 11]], new[:, [2, 7, 11]])
    assert np.abs(clean - new).max() > 0.1


@pytest.mark.parametrize(
    "eraser",
    [
        ex.RLACE(3),
        ex.RayleighEraser(3, objective="pls"),
        ex.RayleighEraser(3, objective="cca"),
    ],
    ids=str,
)
def test_more_directions_than_the_concept_has_leave_constant_columns_alone(eraser):
    """Rounding of a wide column was written to them, and with it the concept."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    X = rng.normal(size=(200, 6)) + y[:, None]
    X[:, 1] *= 1e6
    X[:, 5] = X[:, 1]  # so that the covariance is singular
    X[:, [2, 4]] = 3.0, 1e-9
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ex.errors.UnitsMatter)
        clean = eraser.fit(X, y).transform(X)
    assert eraser.rank_ == 3
    assert np.ptp(clean[:, [2, 4]], axis=0).tolist() == [0, 0]


def classes_of(sizes, d=4, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)
    mixes = rng.normal(size=(len(sizes), d, d))
    return np.einsum("nij,nj->ni", mixes[y], rng.normal(size=(len(y), d))), y


def covariances_apart(X, y):
    """Largest difference of class covariances, in units of the spreads of the columns."""
    found = [np.cov((X[y == k] / X.std(axis=0)).T, ddof=0) for k in np.unique(y)]
    return max(np.abs(S - found[0]).max() for S in found)


def test_a_class_that_stays_narrower_is_named():
    """Three classes of about ten rows, one of which hardly varies in a direction: nothing said."""
    X, y = classes_of([60, 60, 60])
    X[y == 1] = X[y == 1] @ (np.eye(4) - 0.9999 * np.full((4, 4), 0.25))
    eraser = ex.QuadraticLEACE()
    with pytest.warns(ex.CovariancesDiffer, match=r"class 1 \(1 of 4 directions\)"):
        eraser.fit(X, y)
    assert covariances_apart(eraser.transform(X, concept=y), y) > 0.1
    with pytest.warns(ex.CovariancesDiffer):
        _ = ex.QuadraticLEACE().partial_fit(X, y).conditional_erasure_


def test_a_class_of_few_rows_is_named():
    X, y = classes_of([60, 60, 4], d=6)
    names = np.array(["ant", "bee", "cat"])[y]
    eraser = ex.QuadraticLEACE()
    with pytest.warns(ex.CovariancesDiffer, match=r"class 'cat' \(\d of 6 directions\)"):
        eraser.fit(X, names)
    assert covariances_apart(eraser.transform(X, concept=names), y) > 0.1


@pytest.mark.parametrize("settings", [{}, {"strength": 0.5}, {"shrinkage": 0.5}, {"rank": 2}])
def test_covariances_that_differ_as_asked_are_not_warned_about(settings):
    sizes = [60, 60, 4] if settings else [60, 60, 20]
    X, y = classes_of(sizes, d=6)
    X = np.hstack([X, X[:, :1], np.ones((len(X), 1))])  # what no class varies in
    if "rank" in settings:
        settings = {"label_free": True, **settings}
    eraser = ex.QuadraticLEACE(**settings).fit(X, y)  # warnings are errors
    if not settings:
        assert covariances_apart(eraser.transform(X, concept=y)[:, :6], y) < 1e-6


def test_seconds_told_in_nanoseconds_since_1970_are_a_wide_column():
    """Beside its mean the spread is 1e-9, beside the other columns 1e9: it took all of itself."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    X = rng.normal(size=(300, 5)) + 2 * np.outer(y, np.eye(5)[0])
    X[:, 1] = 1.7e18 + 1e9 * (y + rng.normal(size=300))
    with pytest.warns(ex.UnitsMatter):
        eraser = ex.RLACE().fit(X, y)
    assert eraser.certificate_.columns_kept == 4
    X[:, 1] = 1.7e18 + 256 * rng.integers(0, 2, 300)  # the last digit that float64 has there
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ex.RLACE().fit(X, y)


@pytest.mark.parametrize("kind", ["classes", "labels", "continuous", "many classes"])
def test_a_single_column_is_not_told_to_take_fewer_classes(kind):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5 if kind == "many classes" else 2, 300)
    told = kind if kind in ("labels", "continuous") else "classes"
    X = rng.normal(size=(300, 1)) + y[:, None]
    with pytest.warns(ex.NothingLeft, match=r"more columns are needed: name them by vectors=") as c:
        ex.LEACE(concept_type=told).fit(X, y)
    said = str(c[0].message)
    assert "the only column holds" in said
    assert "fewer" not in said.lower()
    assert "rank" not in said


def test_two_classes_that_span_all_columns_are_not_told_to_be_fewer():
    rng, y = np.random.default_rng(0), np.arange(300) % 2
    X = np.repeat(rng.normal(size=(300, 1)) + y[:, None], 2, axis=1)
    X += 1e-3 * rng.normal(size=X.shape)
    with pytest.warns(ex.NothingLeft, match="more columns that do not follow .* above 1") as c:
        ex.RLACE().fit(X, y)
    assert "fewer" not in str(c[0].message)
