"""Columns in units of their own: no unit of one column hides what another one says."""

from functools import cache

import numpy as np
import pytest

import expunge as ex
from expunge.audit.probes import choose_probes
from expunge.audit.protocols import Sizes, Terms, probe_rows
from expunge.audit.units import flattened, own_units
from expunge.inputs import check_concept, check_rows

NEAR = "nearest neighbours"
LINEAR = ["logistic regression, ridge 0.01", "linear discriminant"]


def told(rng, n=900, d=8, gap=1.5):
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, d))
    X[:, 0] += gap * y
    return X, y


def wide(X, rng):
    X[:, 3:] *= 1e5
    return X


def narrow(X, rng):
    X[:, 0] *= 1e-4
    return X


def nanoseconds(X, rng):
    X[:, 7] = 1.7e18 + 3e16 * rng.random(len(X))
    return X


def single_seconds(X, rng):
    X[:, 7] = 1.7e9 + 3e7 * rng.random(len(X))
    return X.astype(np.float32)


def constant(X, rng):
    X[:, 7] = 1.7e18
    return X


def single_constant(X, rng):
    X[:, 7] = 20240101
    return X.astype(np.float32)


def digits(X, rng):
    """A column that varies in its last digits only."""
    X[:, 7] = 1.7e18 + 256 * rng.integers(0, 2, len(X))
    return X


@pytest.mark.filterwarnings("ignore::expunge.errors.UnitsMatter")  # of the path
@pytest.mark.parametrize(
    "units", [wide, narrow, nanoseconds, single_seconds, constant, single_constant, digits]
)
def test_what_nobody_erased_is_found_in_any_units(units):
    rng = np.random.default_rng(2)
    X, y = told(rng)
    X = units(X, rng)
    a = ex.audit(ex.Erasure.identity(8), X_test=X, y_test=y, probes=[*LINEAR, NEAR])
    for family, least in (("linear", 0.72), ("nonlinear", 0.65)):
        before, after = a.fresh_rows.before[family], a.fresh_rows.after[family]
        assert after.status == "found"
        assert after.strongest.value == pytest.approx(before.strongest.value, abs=1e-9)
        assert after.strongest.value > least  # Φ(0.75) = 0.77
    path = ex.rank_path(
        X[:500], y[:500], ranks=[1], X_test=X[500:], y_test=y[500:], probes=LINEAR[1:]
    )
    assert path.points[0].fresh.strongest.value > 0.72
    assert path.points[0].linear.strongest.value > 0.72


@pytest.mark.parametrize("units", [nanoseconds, single_constant])
def test_a_comparison_sees_rows_as_they_are(units):
    rng = np.random.default_rng(3)
    X, y = told(rng, gap=2.0)
    found = ex.compare(units(X, rng), y, ["LEACE"], runs=1, probes=LINEAR[1:])
    nothing = found.rows[0]
    assert nothing.linear.mean > 0.77
    assert nothing.fresh.mean > 0.77
    assert nothing.variance.mean == pytest.approx(1.0)


def test_a_class_in_the_last_digits_of_a_column_is_found():
    """Single precision has steps of 2 at 2 ** 24: what looks like rounding is the class."""
    y = np.random.default_rng(4).integers(0, 2, 600)
    X = np.column_stack([2.0**24 + 2 * y, np.random.default_rng(5).normal(size=600)])
    a = ex.audit(ex.Erasure.identity(2), X_test=X.astype(np.float32), y_test=y, probes=LINEAR[1:])
    assert a.verdict.linear == "found"


def test_a_column_of_which_rounding_is_left_says_nothing():
    rng = np.random.default_rng(6)
    before = rng.normal(size=(200, 3)) * [1, 1e6, 1] + [0, 0, 1e3]
    after = before.copy()
    after[:, 2] = 1e3 + 1e-13 * rng.normal(size=200)
    found = flattened(check_rows(after), check_rows(before)).array()
    assert np.ptp(found[:, 2]) == 0
    np.testing.assert_array_equal(found[:, :2], before[:, :2])
    after[:, 2] = 1e-13 * rng.normal(size=200) + 1e-3 * before[:, 0]  # small, but not rounding
    found = flattened(check_rows(after), check_rows(before)).array()
    np.testing.assert_array_equal(found, after)
    rows = check_rows(before)
    assert flattened(rows, rows) is rows
    before[:, 2] = 0
    after = before - np.outer(before[:, 0], [1, 0, 1e-17])  # the last digits of a direction
    assert np.ptp(flattened(check_rows(after), rows).array()[:, 2]) == 0
    after = before - np.outer(before[:, 0], [1, 0, 1e-9])
    np.testing.assert_array_equal(flattened(check_rows(after), rows).array(), after)


def test_units_are_those_of_each_column_and_constants_have_none():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(500, 4)) * [1, 30, 1e-9, 1] + [0, 0, 0, 1e18]
    X[:, 0] = 5
    units = own_units(X)
    assert units[0] == np.inf
    np.testing.assert_allclose(units[1:3], [30, 1e-9], rtol=0.1)
    assert own_units(rng.normal(size=(500, 4)) + 1e3) is None
    assert own_units(np.ones((5, 2))) is None
    np.testing.assert_array_equal(np.isinf(own_units(np.eye(5)[:, :2] * [1, 0])), [False, True])
    assert own_units(rng.random((50, 2)) < 0.5) is None


def test_random_labels_in_a_table_with_units_are_rarely_found():
    """Limits hold at 95 %: of nothing, 3 % at most is found."""
    rng = np.random.default_rng(9)
    terms = Terms(choose_probes(LINEAR[1:], "classes"), Sizes(linear_folds=3), 0.95, 0.02, 0)
    said = []
    for _ in range(150):
        X = rng.normal(size=(300, 6)) * 10.0 ** rng.integers(-3, 4, 6)
        X[:, 5] = rng.random(300) < 0.05
        concept = check_concept(rng.integers(0, 2, 300), 300)
        said.append(probe_rows(check_rows(X), concept, terms.probes, terms).status)
    assert said.count("found") <= 0.03 * 150


def every_number(found, at=""):
    """All numbers and texts of an audit, but for those that have the unit of the rows."""
    if isinstance(found, dict):
        free = {key: part for key, part in found.items() if key not in IN_UNITS}
        return [one for key in free for one in every_number(free[key], f"{at}.{key}")]
    if isinstance(found, list | tuple):
        return [
            one for place, part in enumerate(found) for one in every_number(part, f"{at}.{place}")
        ]
    return [(at, found)]


IN_UNITS = {"fingerprint", "pca", "ridge", "mean_squared_change", "least_change"}


@cache
def audit_in_units(unit):
    rng = np.random.default_rng(0)
    X, y = told(rng, n=300, d=5)
    fresh, labels = told(rng, n=200, d=5)
    erasure = ex.LEACE().fit(X * unit, y)
    return ex.audit(erasure, X * unit, y, X_test=fresh * unit, y_test=labels)


@pytest.mark.parametrize("unit", [2.0**-300, 2.0**-60, 2.0**60, 2.0**300])
def test_an_audit_does_not_depend_on_the_range_of_the_rows(unit):
    """Numbers that float32 does not hold, or whose squares are rounding of one, among them."""
    plain, scaled = (audit_in_units(each).to_dict() for each in (1.0, unit))
    assert 0 < plain["damage"]["neighbour_overlap"]["10"] < 1
    both = zip(every_number(plain), every_number(scaled), strict=True)
    assert [pair for pair in both if repr(pair[0]) != repr(pair[1])] == []
