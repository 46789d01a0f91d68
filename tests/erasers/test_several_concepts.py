"""Several concepts at once, and one after the other: when the two agree and when they do not."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

import expunge as ex

ERASING = ["RLACE", "LEACE", "SAL", "MeanProjection", "SPLINCE", "RayleighEraser"]


def people(n=1500, d=7, seed=0):
    """Rows with a sex, one of three cities and an age in them; sex and city are correlated."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n)
    lean = np.where(sex == "f", 0.5, 0.2)
    city = np.where(rng.random(n) < lean, "Bern", rng.choice(["Oslo", "Rome"], n))
    age = rng.gamma(9.0, 4.0, n)
    mix = rng.normal(size=(d, d)) / np.sqrt(d) + np.eye(d)
    X = rng.normal(size=(n, d)) @ mix + np.outer(sex == "f", rng.normal(size=d))
    X += np.array([rng.normal(size=d) for _ in range(3)])[np.unique(city, return_inverse=True)[1]]
    return X + np.outer((age - 36) / 12, rng.normal(size=d)), sex, city, age


X, SEX, CITY, AGE = people()


def columns(*concepts):
    """Indicators of classes and numbers side by side."""
    parts = [
        (z[:, None] == np.unique(z)).astype(float) if z.dtype.kind == "U" else z[:, None]
        for z in concepts
    ]
    return np.hstack(parts)


def covariance(A, z):
    Z = columns(z)
    return (A - A.mean(0)).T @ (Z - Z.mean(0)) / len(A)


def found_by_regression(A, z):
    """R² of least squares for indicators or numbers: an independent solver."""
    Z = columns(z)
    return LinearRegression().fit(A, Z).score(A, Z)


def at_chance(A, z):
    probe = LogisticRegression(max_iter=2000).fit(A, z)
    share = np.unique(z, return_counts=True)[1].max() / len(z)
    return probe.score(A, z) == pytest.approx(share, abs=0.01)


def make(name, **options):
    if name == "RLACE":
        options = {"loss": "squared", **options}
    return ex.ERASERS[name](**options)


# -- at once ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ERASING)
@pytest.mark.parametrize("form", ["dict", "list", "tuple"])
def test_every_concept_is_gone(name, form):
    given = {"sex": SEX, "city": CITY}
    both = {"dict": given, "list": [SEX, CITY], "tuple": (SEX, CITY)}[form]
    eraser = make(name).fit(X, both)
    clean = eraser.transform(X)
    assert eraser.rank_ == 3  # one of the sexes, two of the cities
    for z in (SEX, CITY):
        assert not at_chance(X, z)
        assert at_chance(clean, z)
        assert found_by_regression(X, z) > 0.05
        assert found_by_regression(clean, z) < 1e-10
    assert eraser.certificate_.erased
    assert not at_chance(make(name).fit(X, SEX).transform(X), CITY)  # one alone is not enough


@pytest.mark.parametrize("name", ["SAL", "MeanProjection"])
def test_orthogonal_erasers_remove_the_span_of_all_directions(name):
    both = make(name).fit(X, {"sex": SEX, "city": CITY}).erasure_
    apart = [make(name).fit(X, z).erasure_.basis for z in (SEX, CITY)]
    Q = np.linalg.qr(np.vstack(apart).T)[0]
    np.testing.assert_allclose(both.matrix(), np.eye(7) - Q @ Q.T, atol=1e-10)


@pytest.mark.parametrize("name", ["LEACE", "SAL", "SPLINCE", "RayleighEraser", "RLACE"])
def test_classes_and_numbers_together(name):
    eraser = make(name).fit(X, {"sex": SEX, "age": AGE})
    clean = eraser.transform(X)
    assert eraser.rank_ == 2
    for z in (SEX, AGE):
        assert found_by_regression(X, z) > 0.05
        assert found_by_regression(clean, z) < 1e-10
    assert eraser.erasure_.meta["concept"] == {
        "kind": "continuous",
        "labels": ["sex=f", "sex=m", "age"],
    }


def test_numbers_beside_classes_are_refused_where_only_classes_will_do():
    for name in ("MeanProjection", "QuadraticLEACE"):
        with pytest.raises(ex.InputError, match="kind"):
            ex.ERASERS[name]().fit(X, {"sex": SEX, "age": AGE})


def test_the_oracle_takes_several_concepts():
    given = {"sex": SEX, "city": CITY, "age": AGE}
    clean = ex.OracleLEACE().fit(X, given).transform(X, concept=given)
    for z in given.values():
        assert found_by_regression(X, z) > 0.05
        assert found_by_regression(clean, z) < 1e-10
    Z = columns(SEX, CITY, AGE)
    expected = X - LinearRegression().fit(Z, X).predict(Z) + X.mean(0)
    np.testing.assert_allclose(clean, expected, atol=1e-9)


def test_the_oracle_knows_concepts_of_single_rows_also_from_a_file(tmp_path):
    """One row has one class only; numbers beside it make no difference."""
    given = {"sex": SEX, "city": CITY, "age": AGE}
    told = ex.OracleLEACE().fit(X, given).conditional_erasure_
    told.save(tmp_path / "told")
    whole = told.transform(X, given)
    for found in (told, ex.ConditionalErasure.load(tmp_path / "told")):
        for i in range(5):
            one = {name: z[i : i + 1] for name, z in given.items()}
            np.testing.assert_allclose(found.transform(X[i : i + 1], one)[0], whole[i], atol=1e-12)
        refused = [
            {**given, "sex": np.where(SEX == "f", "x", "m")},  # a new class
            {"sex": SEX, "city": CITY},  # no age
            {"city": CITY, "age": AGE},  # no sex
            {**given, "height": AGE},  # one too many
        ]
        for bad in refused:
            with pytest.raises(ex.InputError, match="not the one that was fitted"):
                found.transform(X, bad)
        with pytest.raises(ex.InputError):
            found.transform(X, SEX)


def test_a_single_concept_in_a_dict_is_that_concept():
    for name in ("LEACE", "MeanProjection", "INLP"):
        options = {"rank": 2} if name == "INLP" else {}
        alone = ex.ERASERS[name](**options).fit(X, CITY).erasure_
        named = ex.ERASERS[name](**options).fit(X, {"city": CITY}).erasure_
        np.testing.assert_array_equal(named.matrix(), alone.matrix())
        assert named.meta["concept"]["kind"] == "classes"


def test_inlp_finds_directions_for_all_of_them():
    eraser = ex.INLP(6).fit(X, {"sex": SEX, "city": CITY})
    clean = eraser.transform(X)
    for z in (SEX, CITY):
        assert found_by_regression(clean, z) < 0.3 * found_by_regression(X, z)


def test_a_concept_that_determines_another_adds_no_direction():
    """Each city lies in one country; the indicators of countries are sums of those of cities."""
    country = np.where(CITY == "Rome", "Italy", "elsewhere")
    both = ex.LEACE().fit(X, {"city": CITY, "country": country})
    alone = ex.LEACE().fit(X, CITY)
    assert both.rank_ == alone.rank_ == 2
    np.testing.assert_allclose(both.erasure_.matrix(), alone.erasure_.matrix(), atol=1e-9)


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({}, "no concept"),
        ({"sex": SEX, "city": CITY[:-1]}, "city"),
        ({"sex": SEX, "same": np.full(len(X), "one")}, "one class only"),
        ({"sex": SEX, "age": np.where(AGE > 60, np.nan, AGE)}, "age"),
    ],
)
def test_a_bad_concept_among_good_ones_is_named(bad, says):
    with pytest.raises(ex.InputError, match=says):
        ex.LEACE().fit(X, bad)


# -- in chunks -------------------------------------------------------------------------------------

STREAMS = ["LEACE", "SAL", "RayleighEraser", "RLACE", "MeanProjection"]


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("numbers", [False, True])
def test_a_class_first_seen_late(name, numbers):
    if numbers and name == "MeanProjection":
        return
    given = {"sex": SEX, "city": CITY, **({"age": AGE} if numbers else {})}
    whole = make(name).fit(X, given)
    stream = make(name)
    for part in np.array_split(np.argsort(CITY, kind="stable"), 5):  # Rome comes last
        stream.partial_fit(X[part], {key: z[part] for key, z in given.items()})
    np.testing.assert_allclose(stream.erasure_.matrix(), whole.erasure_.matrix(), atol=1e-9)
    assert stream.rank_ == 3 + numbers
    assert stream.certificate_.erased


def test_concepts_may_not_change_between_chunks():
    first, rest = slice(0, 700), slice(700, None)
    stream = ex.LEACE().partial_fit(X[first], {"sex": SEX[first], "age": AGE[first]})
    for bad in (
        {"sex": SEX[rest]},
        {"sex": SEX[rest], "height": AGE[rest]},
        {"sex": SEX[rest], "age": CITY[rest]},
    ):
        with pytest.raises(ex.InputError):
            stream.partial_fit(X[rest], bad)
    stream.partial_fit(X[rest], {"sex": SEX[rest], "age": AGE[rest]})  # and nothing was spoilt
    whole = ex.LEACE().fit(X, {"sex": SEX, "age": AGE})
    np.testing.assert_allclose(stream.erasure_.matrix(), whole.erasure_.matrix(), atol=1e-9)


# -- one after the other ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["MeanProjection", "SAL", "LEACE"])
def test_erasers_fitted_apart_do_not_add_up(name):
    """b does not know what a does to its direction: of the second concept something is left.

    P_b P_a Σ_b = P_b (P_a Σ_b), and P_a Σ_b is no longer along the direction that P_b removes. The
    first concept stays gone, for P_a Σ_a = 0. Orthogonal projections that are no longer one
    together are not orthogonal either.
    """
    a, b = (make(name).fit(X, z).erasure_ for z in (SEX, CITY))
    both = make(name).fit(X, {"sex": SEX, "city": CITY}).erasure_
    chain = a.then(b)
    clean = chain.transform(X)
    assert found_by_regression(b.transform(X), CITY) < 1e-10  # b alone does erase its concept
    assert found_by_regression(clean, CITY) > 1e-3
    assert np.abs(covariance(clean, CITY)).max() > 1e-2
    assert found_by_regression(clean, SEX) < 1e-10
    assert np.abs(chain.matrix() - both.matrix()).max() > 1e-2
    assert not chain.is_orthogonal
    other = b.then(a).transform(X)  # the other way round it is the other concept
    assert found_by_regression(other, SEX) > 1e-3
    assert found_by_regression(other, CITY) < 1e-10


@pytest.mark.parametrize("name", ["MeanProjection", "SAL", "LEACE"])
def test_the_second_fitted_on_what_the_first_leaves_is_the_joint_map(name):
    a = make(name).fit(X, SEX).erasure_
    b = make(name).fit(a.transform(X), CITY).erasure_
    both = make(name).fit(X, {"sex": SEX, "city": CITY}).erasure_
    chain = a.then(b)
    assert chain.rank == both.rank == 3
    np.testing.assert_allclose(chain.matrix(), both.matrix(), atol=1e-8)
    np.testing.assert_allclose(chain.transform(X), both.transform(X), atol=1e-8)


@pytest.mark.parametrize("name", ["MeanProjection", "SAL"])
def test_orthogonal_directions_may_be_fitted_apart(name):
    """Every combination of the concepts on the same rows, each along its own axis."""
    sex, city = (part.ravel() for part in np.meshgrid([0, 1], [0, 1]))
    sex, city = np.repeat(sex, 50), np.repeat(city, 50)
    rows = np.tile(np.random.default_rng(0).normal(size=(50, 4)), (4, 1))
    rows += 2 * np.outer(sex, np.eye(4)[0]) + 3 * np.outer(city, np.eye(4)[2])
    a, b = (make(name).fit(rows, z).erasure_ for z in (sex, city))
    both = make(name).fit(rows, [sex, city]).erasure_
    np.testing.assert_allclose(a.then(b).matrix(), both.matrix(), atol=1e-10)
    np.testing.assert_allclose(both.matrix(), np.diag([0, 1.0, 0, 1.0]), atol=1e-10)


def test_a_wrong_order_of_fits_is_seen_by_the_certificate():
    a, b = (ex.MeanProjection().fit(X, z).erasure_ for z in (SEX, CITY))
    assert ex.certify(b, X, CITY).erased
    assert not ex.certify(a.then(b), X, CITY).erased
    assert ex.certify(a.then(b), X, SEX).erased


# -- names that could be taken for one another -----------------------------------------------------


def halves():
    """Two concepts of two classes each, in two chunks."""
    a, b = np.where(SEX == "f", 0, 1), np.where(CITY == "Bern", 0, 1)
    return a, b, slice(0, 750), slice(750, None)


def named(first, second, rows):
    """{name: classes} of some rows from (name, classes by code)."""
    a, b, *_ = halves()
    return {
        first[0]: np.array(first[1], dtype=object)[a[rows]],
        second[0]: np.array(second[1], dtype=object)[b[rows]],
    }


@pytest.mark.filterwarnings("ignore::expunge.errors.MissingAsClass")  # of an empty name
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", ["b=c", "x"]), ("a=b", ["c", "x"])),
        (("a", ["b\\=c", "x"]), ("a\\", ["b=c", "x"])),
        (("a\\", ["=b", "x"]), ("a\\=", ["b", "x"])),
        (("a", ["=", "x"]), ("a=", ["", "x"])),
    ],
)
def test_classes_of_different_concepts_are_never_one_column(one, other):
    _, _, first, rest = halves()
    whole = ex.LEACE().fit(X, named(one, other, slice(None)))
    assert len({*whole.erasure_.meta["concept"]["labels"]}) == 4
    stream = ex.LEACE()
    for part in (first, rest):
        stream.partial_fit(X[part], named(one, other, part))
    np.testing.assert_allclose(stream.erasure_.matrix(), whole.erasure_.matrix(), atol=1e-9)
    assert whole.rank_ == 2
    for z in named(one, other, slice(None)).values():
        assert found_by_regression(X, z.astype(str)) > 0.05
        assert found_by_regression(whole.transform(X), z.astype(str)) < 1e-10


def test_columns_of_different_concepts_are_never_one_column():
    pd = pytest.importorskip("pandas")
    two = pd.DataFrame({"b:c": AGE, "x": AGE**2})
    other = pd.DataFrame({"c": np.sqrt(AGE), "x": np.log(AGE)})
    given = {"a": two, "a:b": other, "a=b": AGE**3, "s": SEX}
    told = ex.OracleLEACE().fit(X, given).conditional_erasure_
    assert len({*told.labels}) == len(told.labels) == 7
    assert told.transform(X, given).shape == X.shape
    assert told.labels[:2] == ("a:b:c", "a:x")
    assert told.labels[2] == "a\\:b:c"


@pytest.mark.parametrize(("before", "after"), [([0, 1], ["0", "1"]), ([0, 1], [False, True])])
def test_classes_that_change_their_type_between_chunks_are_refused(before, after):
    _, _, first, rest = halves()
    for one, other in ((before, after), (after, before)):
        stream = ex.LEACE().partial_fit(X[first], named(("a", one), ("b", ["x", "y"]), first))
        with pytest.raises(ex.InputError, match="changed their type"):
            stream.partial_fit(X[rest], named(("a", other), ("b", ["x", "y"]), rest))
    a, *_ = halves()
    stream = ex.LEACE().partial_fit(X[first], a[first])
    with pytest.raises(ex.InputError, match="changed their type"):
        stream.partial_fit(X[rest], a[rest].astype(str))


def test_whole_numbers_and_floats_are_the_same_classes():
    a, b, first, rest = halves()
    whole = ex.LEACE().fit(X, {"a": a, "b": b})
    stream = ex.LEACE().partial_fit(X[first], {"a": a[first], "b": b[first]})
    stream.partial_fit(X[rest], {"a": a[rest].astype(float), "b": b[rest]})
    assert stream.erasure_.meta["concept"]["labels"] == ["a=0", "a=1", "b=0", "b=1"]
    np.testing.assert_allclose(stream.erasure_.matrix(), whole.erasure_.matrix(), atol=1e-9)


@pytest.mark.parametrize("given", [{1: SEX, "1": CITY}, {None: SEX, "None": CITY}])
def test_concepts_with_the_same_name_as_text_are_refused(given):
    with pytest.raises(ex.InputError, match="same name"):
        ex.LEACE().fit(X, given)


def test_a_class_told_as_another_type_is_refused():
    a, b, *_ = halves()
    told = ex.OracleLEACE().fit(X, {"a": a, "b": b}).conditional_erasure_
    assert told.labels == ("a=0", "a=1", "b=0", "b=1")
    with pytest.raises(ex.InputError, match="not the one that was fitted"):
        told.transform(X, {"a": a.astype(str), "b": b})
