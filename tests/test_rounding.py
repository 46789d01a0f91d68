"""The estimate of what rounding puts back, against a certificate of the rounded rows themselves."""

import warnings

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression

import expunge as ex
from expunge.inputs import check_concept, check_rows
from expunge.rounding import rounding_shows

pytestmark = pytest.mark.filterwarnings(
    "ignore::expunge.errors.UnitsMatter",
    "ignore::expunge.errors.RoundingShows",
    "ignore::expunge.errors.NothingLeft",
)

TYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32}
NOTHING = ex.Erasure(np.zeros((20, 0)), np.zeros((0, 20)))


def rows(kind="classes", *, classes=2, n=5000, d=20, seed=0):
    """Correlated rows of spread about 1 with a concept in them."""
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(d, d)) / np.sqrt(d)
    if kind == "continuous":
        y = rng.normal(size=n)
        return rng.normal(size=(n, d)) @ mix + np.outer(y, rng.normal(size=d) / 3), y
    y = rng.integers(0, classes, n)
    return rng.normal(size=(n, d)) @ mix + rng.normal(size=(classes, d))[y] / 3, y


def both(eraser, x, y):
    """Shares of the bound left in the rows as they come out: proven, and estimated."""
    fitted = eraser.fit(x, y)
    assert ex.certify(NOTHING, x, y).gap > 0.02 * fitted.certificate_.bound
    proven = ex.certify(NOTHING, fitted.transform(x), y)
    found = rounding_shows(fitted.erasure_, check_rows(x), check_concept(y, len(y)))
    return proven.gap / proven.bound, found


@pytest.mark.parametrize("dtype", TYPES.values(), ids=TYPES)
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("eraser", [ex.LEACE(), ex.RLACE()], ids=repr)
def test_the_estimate_is_near_what_a_certificate_proves(eraser, classes, dtype):
    X, y = rows(classes=classes)
    for offset in (0, 3, 10, 100):
        proven, found = both(eraser, torch.from_numpy(X + offset).to(dtype), y)
        share = found.gap / found.bound
        chance = 20 / (2 * len(y)) / found.bound  # what fits the errors of these rows by accident
        assert proven / 4 - chance < share < 1.5 * proven + 1e-4
        assert found.shows or proven < 4e-3 + chance
        assert not found.shows or proven > 5e-4
        assert found.bits == pytest.approx(found.gap / np.log(2))


def test_a_continuous_concept_has_no_bits():
    X, y = rows("continuous")
    for offset, shows in ((0, False), (100, True)):
        _, found = both(ex.LEACE(), torch.from_numpy(X + offset).bfloat16(), y)
        assert found.shows is shows
        assert found.bits is None


def test_several_labels_at_once():
    X, y = rows(classes=4)
    Z = np.column_stack([y > 1, y % 2])
    for offset, shows in ((0, False), (100, True)):
        _, found = both(ex.LEACE(), torch.from_numpy(X + offset).bfloat16(), Z)
        assert found.shows is shows


@pytest.mark.parametrize("eraser", [ex.OracleLEACE(), ex.QuadraticLEACE()], ids=repr)
def test_what_is_told_the_concept(eraser):
    X, y = rows()
    for offset, shows in ((0, False), (100, True)):
        x = torch.from_numpy(X + offset).bfloat16()
        e = eraser.fit(x, y).conditional_erasure_
        found = rounding_shows(e, check_rows(x), check_concept(y, len(y)))
        assert found.shows is shows


def test_one_far_column_is_enough():
    X, y = rows()
    X[:, 0] += 300 + y
    proven, found = both(ex.RLACE(), torch.from_numpy(X).bfloat16(), y)
    assert proven > 2e-3
    assert found.shows


def test_arrays_and_weights():
    X, y = rows()
    X = (X + 300).astype(np.float16)
    kept = np.arange(len(y)) % 3 > 0
    weights = np.where(kept, 1.0, 0.0)
    e = ex.LEACE().fit(X, y, sample_weight=weights).erasure_
    concept = check_concept(y, len(y))
    weighted = rounding_shows(e, check_rows(X), concept, weights)
    alone = rounding_shows(e, check_rows(X[kept]), check_concept(y[kept], kept.sum()))
    assert weighted.shows
    assert alone.shows
    assert weighted.gap == pytest.approx(alone.gap, rel=0.3)


def test_no_alarm_without_cause():
    """Rows about zero, real or chance labels, every type and many draws."""
    for seed in range(8):
        X, y = rows(seed=seed, n=2000)
        other = np.random.default_rng(seed).integers(0, 3, len(y))
        for dtype in TYPES.values():
            for concept in (y, other):
                x = torch.from_numpy(X).to(dtype)
                e = ex.SAL().fit(x, concept).erasure_
                assert not rounding_shows(e, check_rows(x), check_concept(concept, len(y))).shows


def test_where_there_is_nothing_to_say():
    X, y = rows(n=200)
    e, concept = ex.LEACE().fit(X, y).erasure_, check_concept(y, 200)
    assert rounding_shows(e, check_rows(X), concept) is None  # float64
    assert rounding_shows(e, check_rows(np.rint(X).astype(int)), concept) is None
    single = X.astype(np.float32)
    assert rounding_shows(e, check_rows(single[:40]), concept.take(slice(40))) is None
    assert rounding_shows(e, check_rows(single), concept, np.zeros(200)) is None
    assert rounding_shows(e, check_rows(np.ones_like(single)), concept).gap == 0
    of_one_class = concept.take(np.flatnonzero(y == 1))
    assert rounding_shows(e, check_rows(single[y == 1]), of_one_class) is None
    assert rounding_shows(e, check_rows(single), type(concept).none(200)) is None


def test_few_rows_are_looked_at_and_none_where_sums_tell_enough(monkeypatch):
    X, y = rows()
    concept, seen = check_concept(y, len(y)), []
    apply = ex.Erasure.transform
    monkeypatch.setattr(
        ex.Erasure, "transform", lambda self, X: seen.append(len(X)) or apply(self, X)
    )
    for dtype, offset, looks in (
        (torch.float32, 0, set()),
        (torch.float32, 10, set()),
        (torch.float16, 0, {512}),
        (torch.bfloat16, 0, {512}),
        (torch.bfloat16, 100, {512, 4096}),
    ):
        x = check_rows(torch.from_numpy(X + offset).to(dtype))
        e, moments = ex.LEACE().fit(x.tensor, y).erasure_, x.moments(concept)
        seen.clear()
        found = rounding_shows(e, x, concept, moments=moments)
        assert set(seen) == looks
        assert (found is not None and found.shows) is (len(looks) == 2)
        assert found == rounding_shows(e, x, concept, moments=moments)


def test_classes_that_alternate_are_seen_in_both_halves():
    rng = np.random.default_rng(0)
    y = np.arange(3000) % 2
    X = rng.normal(size=(3000, 4))
    X[:, 0] += 0.8 * y + 2000
    with pytest.warns(ex.RoundingShows):
        ex.OracleLEACE().fit(X.astype(np.float16), y)


@pytest.mark.parametrize("name", ["RLACE", "LEACE"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_rounding_of_fewer_rows_than_columns_is_said(name, dtype):
    """A line meets all rows: rounding to float16 is enough for it to tell them perfectly."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    X = (100 + 40 * rng.random((200, 1000)) + np.outer(y, rng.random(1000))).astype(dtype)
    eraser = ex.ERASERS[name]()
    if dtype == np.float16:
        with pytest.warns(ex.RoundingShows):
            eraser.fit(X, y)
        Z = eraser.transform(X).astype(float)
        assert LinearRegression().fit(Z, y).score(Z, y) > 0.99
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("error", ex.RoundingShows)
            eraser.fit(X, y)
