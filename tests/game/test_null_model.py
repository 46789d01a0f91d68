"""The null model and its balance, against plain sums over the rows."""

import numpy as np
import pytest
import scipy.optimize
from plugged_in import LOSSES, Counts, Length, Pinball

from expunge.concept import Concept
from expunge.errors import InputError
from expunge.game.losses import LOSSES as BUILT_IN
from expunge.game.losses import Huber, Multinomial, Squared, loss_for
from expunge.game.null_model import (
    Constant,
    NullModel,
    Observed,
    balancing_point,
    needs_rows,
    null_model,
)
from expunge.inputs import check_concept, check_rows
from planted import plant

PLUGGED = {**LOSSES, "counts": Counts()}
PAIRS = [(kind, name) for kind in ("binary", "classes", "labels") for name in BUILT_IN]
PAIRS += [("vector", name) for name in (*PLUGGED, "squared") if name not in ("poisson", "counts")]
PAIRS += [("number", name) for name in ("poisson", "counts", "length", "squared")]
FIELDS = ("value", "intercept", "gradient", "residual_mean", "x_units", "residual_units")


def setting(kind, name, *, weighted=False, n=90):
    """Rows with a constant column, their concept, the loss, weights of which some are zero."""
    data = plant(kind, n=n, d=4)
    X = data.X * [1, 3, 0.2, 1]
    X[:, 3] = 2.0
    rows, concept = check_rows(X), check_concept(data.y, n)
    loss = (
        PLUGGED[name]
        if kind in ("number", "vector") and name in PLUGGED
        else loss_for(name, concept.kind, concept.width)
    )
    rng = np.random.default_rng(1)
    w = rng.uniform(0.1, 5, n) * (rng.random(n) < 0.9) if weighted else None
    return X, rows, concept, loss, w


def by_sums(X, concept, loss, w, b):
    """Value, gradient, mean residual and units of given constant scores, row by row."""
    n = len(X)
    w = np.ones(n) if w is None else w
    w = w / w.sum()
    Y = loss.encoder(concept)(0, n)
    S = np.ones((n, 1)) * b
    R = loss.null_residual(Y, w[:, None], b) if b.any() else loss.derivative(Y, S)
    return w @ loss.values(Y, S), R, w


def root(square):
    return np.where(square > 1e-30, np.sqrt(square), 1.0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("kind", "name"), PAIRS)
def test_is_what_sums_over_the_rows_say(kind, name, intercept, weighted):
    X, rows, concept, loss, w = setting(kind, name, weighted=weighted)
    moments = rows.moments(concept, w)
    null = null_model(loss, moments, intercept, Observed(rows, concept, w))
    assert intercept or not null.intercept.any()
    value, R, w = by_sums(X, concept, loss, w, null.intercept)
    C = X - w @ X if intercept else X
    assert null.value == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(null.gradient, (C * w[:, None]).T @ R, atol=1e-12)
    np.testing.assert_allclose(null.x_units, root(w @ C**2), rtol=1e-12)
    np.testing.assert_allclose(null.residual_units, root(w @ R**2), rtol=1e-12)
    if intercept:
        np.testing.assert_array_equal(null.residual_mean, 0 * null.intercept)
        np.testing.assert_allclose(w @ R, 0, atol=1e-9)
    else:
        np.testing.assert_allclose(null.residual_mean, w @ R, atol=1e-12)
    Q = null.directions
    assert null.rank == np.linalg.matrix_rank(null.gradient) == Q.shape[1]
    np.testing.assert_allclose(Q @ (Q.T @ null.gradient), null.gradient, atol=1e-12)
    # of rows in other units
    units = np.array([2.0, 0.5, 7.0, 1.0])
    scaled = check_rows(X / units)
    other = null_model(
        loss,
        scaled.moments(concept, w),
        intercept,
        Observed(scaled, concept, w),
    )
    moved = null.in_units(units)
    for field in FIELDS:
        np.testing.assert_allclose(getattr(moved, field), getattr(other, field), atol=1e-12)
    assert (moved.leaning is None) == (null.leaning is None)
    for mine, theirs in zip(moved.leaning or (), other.leaning or (), strict=True):
        np.testing.assert_allclose(mine.gradient, theirs.gradient, atol=1e-12)
        np.testing.assert_allclose(mine.dual, theirs.dual, atol=1e-12)


def test_rows_are_needed_for_numbers_alone_and_not_by_squares():
    assert needs_rows(Huber(), "continuous")
    assert needs_rows(Length(), "continuous")
    assert not needs_rows(Squared(), "continuous")
    assert not needs_rows(Huber(), "labels")
    assert not needs_rows(Multinomial(), "classes")


def test_a_number_that_never_varies_leans_by_one():
    rows = check_rows(np.random.default_rng(0).normal(size=(30, 2)))
    concept = Concept.of_numbers(np.full((30, 1), 4.0))
    null = null_model(Huber(5.0), rows.moments(concept), True, Observed(rows, concept))
    here, below, above = (part.residual_mean[0] for part in null.leaning)
    assert (null.intercept[0], here, below, above) == pytest.approx((4.0, 0.0, -1.0, 1.0))
    assert null.residual_units == 1.0


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("name", ["huber", "log_cosh", "pinball"])
def test_of_a_sum_over_columns_three_constants_are_known(name, intercept):
    X, rows, concept, loss, w = setting("vector", name, weighted=True)
    null = null_model(loss, rows.moments(concept, w), intercept, Observed(rows, concept, w))
    here, below, above = null.leaning
    w = w / w.sum()
    Y = concept.columns()
    spread = np.sqrt(w @ (Y - w @ Y) ** 2) if intercept else np.zeros(2)
    for part, b in zip(
        (here, below, above), null.intercept + np.outer([0, -1, 1], spread), strict=True
    ):
        S = np.ones((len(Y), 1)) * b
        R = loss.derivative(Y, S)
        if part is here and name == "pinball":
            R = loss.null_residual(Y, w[:, None], b)
        mean = w @ R
        np.testing.assert_allclose(part.residual_mean, mean, atol=1e-12)
        expected = w @ loss.elements(Y, S) - (b - null.intercept) * mean
        np.testing.assert_allclose(part.dual, expected, atol=1e-12)
        C = X - w @ X
        np.testing.assert_allclose(part.gradient, (C * w[:, None]).T @ R, atol=1e-12)
    alone = null.only((1,))
    assert alone.value == pytest.approx(float(here.dual[1]), rel=1e-12)
    assert alone.intercept == null.intercept[1]
    np.testing.assert_array_equal(alone.gradient, null.gradient[:, 1:])
    np.testing.assert_array_equal(alone.residual_units, null.residual_units[1:])
    np.testing.assert_array_equal(alone.x_units, null.x_units)
    for part, whole in zip(alone.leaning, null.leaning, strict=True):
        np.testing.assert_array_equal(part.dual, whole.dual[1:])
        np.testing.assert_array_equal(part.gradient, whole.gradient[:, 1:])
        np.testing.assert_array_equal(part.residual_mean, whole.residual_mean[1:])


def test_the_rows_of_some_columns():
    _, rows, concept, _, w = setting("vector", "huber", weighted=True)
    seen = Observed(rows, concept, w).only((1,))
    np.testing.assert_array_equal(seen.concept.columns(), concept.columns()[:, 1:])
    assert seen.rows is rows
    assert seen.weights is w


# -- the balance -----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1.0, 1e-6])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("kind", "name"), [p for p in PAIRS if p[1] not in ("pinball", "hinge")])
def test_a_balance_is_a_point_of_the_dual_problem(kind, name, weighted, size):
    """Its mean makes up for the slope, and no predictor's loss is below what it proves."""
    X, rows, concept, loss, w = setting(kind, name, weighted=weighted)
    seen, moments = Observed(rows, concept, w), rows.moments(concept, w)
    null = null_model(loss, moments, True, seen)
    m = len(null.intercept)
    slope = size * np.array([0.02, -0.03, 0.04, -0.03])[:m] * null.residual_units
    slope -= slope.mean() if name == "cross_entropy" and kind == "classes" else 0
    dual, gradient, share = balancing_point(loss, moments, null, slope, seen)
    assert 0 < share < 0.6
    assert share < 100 * size
    Y, w = loss.encoder(concept)(0, len(X)), np.ones(len(X)) if w is None else w
    w = w / w.sum()
    # at Θ = 0 and any b the loss is at least dual + (b - b0)·mean, mean = -(1 - t)/t slope
    mean, ones = -(1 - share) / share * slope, np.ones((len(Y), 1))

    def above(b):
        there = w @ loss.values(Y, ones * b) - (b - null.intercept) @ mean
        return there, w @ loss.derivative(Y, ones * b) - mean

    best = scipy.optimize.minimize(above, null.intercept, jac=True, tol=1e-12)
    assert dual <= best.fun + 1e-9
    C = X - w @ X
    if null.leaning is None:
        assert dual == pytest.approx(best.fun, abs=1e-8)
        R = loss.derivative(Y, ones * best.x)
        np.testing.assert_allclose(gradient, (C * w[:, None]).T @ R, atol=1e-4)
    # and with coefficients as well
    for theta in np.random.default_rng(0).normal(size=(10, 4, m)):
        at = w @ loss.values(Y, C @ theta + null.intercept)
        assert at >= dual + np.sum(gradient * theta) - 1e-9


def three(below, above):
    """A null model of two columns, with residual means below and above; all else is told apart."""
    zero, m = np.zeros(2), len(below)
    here = Constant(np.array([1.0, 2.0]), np.ones((3, m)), zero)
    low = Constant(np.array([0.6, 1.4]), 2 * np.ones((3, m)), np.array(below))
    high = Constant(np.array([0.8, 1.0]), 3 * np.ones((3, m)), np.array(above))
    return NullModel(3.0, zero, here.gradient, zero, np.ones(3), np.ones(m), (here, low, high))


def mixed(null, slope):
    _, rows, concept, loss, _ = setting("vector", "huber")
    return balancing_point(loss, rows.moments(concept), null, np.array(slope))


def test_three_constants_are_mixed_column_by_column():
    null = three([-0.5, -0.4], [0.25, 0.8])
    # 0.1 fits five times into 0.5 below, and 0.2 four times into 0.8 above: four times it is
    dual, gradient, share = mixed(null, [0.1, -0.2])
    assert share == pytest.approx(1 / 5)
    assert dual == pytest.approx(0.2 * 1.0 + 0.8 * 0.6 + 1.0)
    np.testing.assert_allclose(gradient, [[0.2 * 1 + 0.8 * 2, 3.0]] * 3)
    dual, gradient, share = mixed(null, [0.0, 0.1])  # a column without a slope stays
    assert share == pytest.approx(1 / 5)
    assert dual == pytest.approx(1.0 + 1.4)
    np.testing.assert_allclose(gradient, [[1.0, 2.0]] * 3)


@pytest.mark.parametrize("slope", [[0.0, 0.0], [1e-250, 0.0], [0.0, -1e-300]])
def test_no_slope_needs_no_balance(slope):
    dual, gradient, share = mixed(three([-0.5, -0.4], [0.25, 0.8]), slope)
    assert share <= 1e-150
    assert dual == pytest.approx(3.0)
    np.testing.assert_allclose(gradient, np.ones((3, 2)))


@pytest.mark.parametrize(("below", "above"), [([0.0, -0.4], [1, 1]), ([0.1, -0.4], [1, 1])])
def test_what_cannot_be_reached_is_not_balanced(below, above):
    dual, gradient, share = mixed(three(below, above), [0.1, 0.1])
    assert (dual, share) == (3.0, 1.0)
    np.testing.assert_array_equal(gradient, np.ones((3, 2)))
    share = mixed(three(below, above), [-0.1, 0.1])[2]
    assert share == pytest.approx(1 / 5)
    flat = mixed(three([-0.4, -0.4], [max(below[0], 0.0), 1.0]), [0.0, 0.1])
    assert flat[0] == pytest.approx(1.0 + 1.4)
    assert flat[2] == pytest.approx(1 / 5)


@pytest.mark.parametrize("kind", ["classes", "vector"])
@pytest.mark.parametrize("off", [0.0, 1e-9, 1e-4, 0.1])
def test_a_balance_that_is_off_is_not_believed(kind, off):
    class Off(Multinomial if kind == "classes" else Length):
        def balance(self, Y, w, intercept, slope):
            b, share = super().balance(Y, w, intercept, slope)
            return b, share * (1 + off)

    _, rows, concept, _, _ = setting(kind, "length" if kind == "vector" else "cross_entropy")
    seen, moments = Observed(rows, concept), rows.moments(concept)
    loss = Off()
    null = null_model(loss, moments, True, seen)
    slope = np.array([0.01, -0.02, 0.03, -0.02])[: len(null.intercept)]
    dual, gradient, share = balancing_point(loss, moments, null, slope, seen)
    if off < 1e-6:
        assert share < 1
        assert dual < null.value
    else:
        assert (dual, share) == (null.value, 1.0)
        np.testing.assert_array_equal(gradient, null.gradient)


@pytest.mark.parametrize("kind", ["classes", "vector"])
def test_a_loss_that_knows_no_balance_has_the_null_models(kind):
    class Without(Multinomial if kind == "classes" else Length):
        def balance(self, Y, w, intercept, slope):
            return intercept + 1, 1.0

    _, rows, concept, _, _ = setting(kind, "length" if kind == "vector" else "cross_entropy")
    seen, moments = Observed(rows, concept), rows.moments(concept)
    null = null_model(Without(), moments, True, seen)
    slope = np.array([0.01, -0.02, 0.03, -0.02])[: len(null.intercept)]
    dual, gradient, share = balancing_point(Without(), moments, null, slope, seen)
    assert (dual, share) == (null.value, 1.0)
    np.testing.assert_array_equal(gradient, null.gradient)


# -- what is refused -------------------------------------------------------------------------------


def test_without_the_rows_numbers_are_refused():
    _, rows, concept, _, _ = setting("vector", "huber")
    with pytest.raises(InputError, match="needs the rows themselves"):
        null_model(Huber(), rows.moments(concept), True)
    assert null_model(Squared(), rows.moments(concept), True).value > 0


class Lowered(Squared):
    """Less than the square by a share of its best mean."""

    quadratic = False

    def __init__(self, by):
        self.by = by

    def elements(self, Y, S):
        return (Y - S) ** 2 - self.by

    def derivative(self, Y, S):
        return 2 * (S - Y)


def in_units(rows, concept, unit):
    """The same numbers in another unit."""
    return (
        Observed(rows, Concept.of_numbers(unit * concept.columns()))
        if unit != 1
        else Observed(rows, concept)
    )


@pytest.mark.parametrize(
    ("kind", "unit"), [("binary", 1), ("labels", 1), ("vector", 1), ("vector", 1e-6)]
)
@pytest.mark.parametrize("intercept", [False, True])
def test_a_mean_below_zero_is_refused(kind, unit, intercept, monkeypatch):
    """Also where the loss looked fine on the targets it was tried on."""
    monkeypatch.setattr("expunge.game.null_model.check_tangents", lambda *_: None)
    _, rows, concept, _, _ = setting(kind, "squared")
    seen = in_units(rows, concept, unit)
    moments = rows.moments(seen.concept)
    m = 1 if kind == "binary" else concept.width
    value = null_model(Lowered(0.0), moments, intercept, seen).value / m
    assert null_model(Lowered(value * (1 - 1e-6)), moments, intercept, seen).value > 0
    assert abs(null_model(Lowered(value), moments, intercept, seen).value) < 1e-12 * value
    with pytest.raises(InputError, match="is negative, or no number"):
        null_model(Lowered(value * (1.5 if unit < 1 else 1 + 1e-6)), moments, intercept, seen)
    with pytest.raises(InputError, match="is negative, or no number"):
        null_model(Lowered(np.nan), moments, intercept, seen)


class Shifted(Squared):
    """Its best constant is off."""

    quadratic = False

    def __init__(self, by):
        self.by = by

    def null_intercept(self, Y, w):
        return super().null_intercept(Y, w) + self.by


@pytest.mark.parametrize(
    ("kind", "unit"), [("binary", 1), ("labels", 1), ("vector", 1), ("vector", 1e-6)]
)
def test_residuals_that_do_not_add_up_are_refused(kind, unit):
    _, rows, concept, _, _ = setting(kind, "squared")
    seen = in_units(rows, concept, unit)
    moments = rows.moments(seen.concept)
    found = null_model(Shifted(unit * 1e-11), moments, True, seen)
    assert not found.residual_mean.any()
    with pytest.raises(InputError, match="do not add up to zero"):
        null_model(Shifted(unit * 1e-7), moments, True, seen)
    assert null_model(Shifted(1.0), moments, False, seen).value > 0


class Spoilt(Pinball):
    """Residuals that are wrong in one row, where they may be."""

    def __init__(self, row, by):
        self.row, self.by = row, by

    def null_residual(self, Y, w, intercept):
        R = super().null_residual(Y, w, intercept)
        R[self.row] += self.by
        return R


@pytest.mark.parametrize("row", [0, -1])
def test_residuals_that_are_no_subderivatives_are_found_at_both_ends(row):
    _, rows, concept, _, _ = setting("vector", "pinball")
    moments, seen = rows.moments(concept), Observed(rows, concept)
    for by in (0.5, -0.5):
        with pytest.raises(InputError, match="holds no subderivatives"):
            null_model(Spoilt(row, by), moments, True, seen)
    assert null_model(Spoilt(row, 0.0), moments, True, seen).value > 0


class Jump(Squared):
    """The squared loss, with a slope that is none at a target of 1,000."""

    quadratic = False

    def derivative(self, Y, S):
        return np.where(Y == 1000, 2 * (Y - S), 2 * (S - Y))


@pytest.mark.parametrize("row", [0, -1])
def test_the_loss_is_tried_on_the_first_and_the_last_number_that_count(row):
    X, y = np.random.default_rng(0).normal(size=(200, 2)), np.linspace(0, 1, 200)
    y[row] = 1000
    rows, concept = check_rows(X), check_concept(y, 200, concept_type="continuous")
    w = np.ones(200)
    with pytest.raises(InputError, match="below its tangents"):
        null_model(Jump(), rows.moments(concept, w), True, Observed(rows, concept, w))
    w[row] = 0
    found = null_model(Jump(), rows.moments(concept, w), True, Observed(rows, concept, w))
    assert found.intercept == pytest.approx(np.average(y, weights=w))
