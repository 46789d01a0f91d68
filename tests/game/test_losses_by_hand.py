"""Losses at given points, with numbers by hand, and the laws of their constants."""

import numpy as np
import pytest
import scipy.optimize
from plugged_in import Counts, Length, LogCosh, Poisson

from expunge.concept import Concept
from expunge.errors import InputError
from expunge.game.losses import (
    LOSSES,
    ColumnLoss,
    Hinge,
    Huber,
    Logistic,
    Loss,
    Multinomial,
    SmoothHinge,
    Squared,
    SquaredHinge,
    check_tangents,
    loss_for,
    solves_by_least_squares,
)
from expunge.inputs import check_concept

SIGMA = 1 / (1 + np.exp(-2.0))  # σ(2)
L2 = np.log1p(np.exp(2.0))

# loss, target, score, value, derivative, second derivative; where a second derivative jumps, the
# one of the side where the loss is flatter
BY_HAND = [
    (Logistic(), 1.0, 0.0, np.log(2), -0.5, 0.25),
    (Logistic(), 0.0, 2.0, L2, SIGMA, SIGMA * (1 - SIGMA)),
    (Logistic(), 1.0, 2.0, L2 - 2, SIGMA - 1, SIGMA * (1 - SIGMA)),
    (Logistic(), 0.0, -2.0, L2 - 2, 1 - SIGMA, SIGMA * (1 - SIGMA)),
    (Squared(), 3.0, 1.0, 4.0, -4.0, 2.0),
    (Squared(), -1.0, 0.5, 2.25, 3.0, 2.0),
    (Huber(0.5), 1.0, 1.25, 0.03125, 0.25, 1.0),
    (Huber(0.5), 1.0, 0.75, 0.03125, -0.25, 1.0),
    (Huber(0.5), 1.0, 1.5, 0.125, 0.5, 0.0),
    (Huber(0.5), 1.0, 3.0, 0.875, 0.5, 0.0),
    (Huber(0.5), 1.0, -2.0, 1.375, -0.5, 0.0),
    (Huber(), 0.0, 3.0, 2.5, 1.0, 0.0),
    (SquaredHinge(), 1.0, -1.0, 4.0, -4.0, 2.0),
    (SquaredHinge(), -1.0, 0.5, 2.25, 3.0, 2.0),
    (SquaredHinge(), 1.0, 1.0, 0.0, 0.0, 0.0),
    (SquaredHinge(), -1.0, -3.0, 0.0, 0.0, 0.0),
    (Hinge(), 1.0, -1.0, 2.0, -1.0, 0.0),
    (Hinge(), -1.0, 0.5, 1.5, 1.0, 0.0),
    (Hinge(), 1.0, 1.0, 0.0, 0.0, 0.0),
    (Hinge(), -1.0, -2.0, 0.0, 0.0, 0.0),
    (SmoothHinge(0.5), 1.0, 0.75, 0.0625, -0.5, 2.0),
    (SmoothHinge(0.5), -1.0, -0.75, 0.0625, 0.5, 2.0),
    (SmoothHinge(0.5), 1.0, 0.5, 0.25, -1.0, 0.0),
    (SmoothHinge(0.5), 1.0, -1.0, 1.75, -1.0, 0.0),
    (SmoothHinge(0.5), 1.0, 1.0, 0.0, 0.0, 0.0),
    (SmoothHinge(0.5), -1.0, -2.0, 0.0, 0.0, 0.0),
]


@pytest.mark.parametrize(("loss", "y", "s", "value", "slope", "bend"), BY_HAND)
def test_a_column_loss_at_a_point(loss, y, s, value, slope, bend):
    Y, S = np.array([[y, y]]), np.array([[s, s]])
    np.testing.assert_allclose(loss.elements(Y, S), [[value, value]], rtol=1e-14)
    np.testing.assert_allclose(loss.values(Y, S), [2 * value], rtol=1e-14)
    np.testing.assert_allclose(loss.derivative(Y, S), [[slope, slope]], rtol=1e-14)
    np.testing.assert_allclose(loss.second(Y, S), [[bend, bend]], rtol=1e-14)
    np.testing.assert_allclose(loss.curvature(Y, S, np.array([3.0])), 3 * bend * np.eye(2))
    values, slopes, diagonal, rest = loss.pieces(Y, S)
    assert (values[0], slopes[0, 1]) == (loss.values(Y, S)[0], loss.derivative(Y, S)[0, 1])
    assert rest is None
    np.testing.assert_array_equal(diagonal, loss.second(Y, S))


def test_cross_entropy_of_classes_at_a_point():
    """Shares 1/6, 2/6 and 3/6, also where scores are too large for an exponential."""
    p = np.array([1.0, 2.0, 3.0]) / 6
    for shift in (0.0, 1e4):
        S, Y = np.log([[1.0, 2.0, 3.0]] * 2) + shift, np.eye(3)[[2, 0]]
        loss = Multinomial()
        np.testing.assert_allclose(loss.values(Y, S), -np.log(p[[2, 0]]), rtol=1e-10)
        np.testing.assert_allclose(loss.derivative(Y, S), p - Y, atol=1e-10)
        D, F = loss.hessian(Y, S)
        expected = np.diag(p) - np.outer(p, p)
        np.testing.assert_allclose(np.diag(D[1]) - np.outer(F[1], F[1]), expected, atol=1e-10)
        summed = loss.curvature(Y, S, np.array([0.5, 1.5]))
        np.testing.assert_allclose(summed, 2 * expected, atol=1e-10)


def test_what_a_loss_says_of_itself():
    ours = {**{name: make("classes", 3) for name, make in LOSSES.items()}, "own": LogCosh()}
    ours |= {"binary": Logistic(), "rounded": SmoothHinge(0.1), "any": Length()}

    def those(attribute):
        return {name for name, loss in ours.items() if getattr(loss, attribute)}

    assert those("in_bits") == {"cross_entropy", "binary"}
    assert those("quadratic") == {"squared"}
    assert those("separable") == {*ours} - {"cross_entropy", "any"}
    assert those("smooth") == {*ours} - {"hinge"}
    assert {name: loss.threshold for name, loss in ours.items() if loss.threshold} == {
        "squared": 0.5,
        "huber": 0.5,
    }
    assert [part.width for part in Hinge().surrogates] == [0.3, 0.1, 0.03, 0.01, 0.003, 0.001]
    assert Hinge().smoothed.width == 0.1
    for loss in (Squared(), Multinomial()):
        assert loss.smoothed is loss
        assert loss.surrogates == (loss,)
    assert Huber().delta == 1.0


@pytest.mark.parametrize("loss", [Squared(), Logistic(), Multinomial(), Huber(), Length()])
def test_two_classes_are_one_column_of_zeros_and_ones(loss):
    np.testing.assert_array_equal(loss.encode(np.eye(2), "classes"), [[0], [1]])
    np.testing.assert_array_equal(loss.encode(np.eye(3), "classes"), np.eye(3))
    np.testing.assert_array_equal(loss.encode(np.eye(2), "labels"), np.eye(2))
    np.testing.assert_array_equal(loss.encode(np.eye(2), "continuous"), np.eye(2))


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), SmoothHinge(0.1)])
def test_a_margin_has_a_sign(loss):
    np.testing.assert_array_equal(loss.encode(np.eye(2), "classes"), [[-1], [1]])
    np.testing.assert_array_equal(loss.encode(np.eye(2), "labels"), [[1, -1], [-1, 1]])


def test_targets_of_some_rows():
    y = np.array(["b", "a", "c", "a", "b"])
    encode = Squared().encoder(check_concept(y, 5))
    np.testing.assert_array_equal(encode(1, 4), np.eye(3)[[0, 2, 0]])
    Z = np.arange(10.0).reshape(5, 2)
    numbers = Squared().encoder(Concept.of_numbers(Z))
    np.testing.assert_array_equal(numbers(1, 4), Z[1:4])
    labels = Hinge().encoder(check_concept((Z > 4).astype(int), 5))
    np.testing.assert_array_equal(labels(0, 5), 2 * (Z > 4) - 1)


def test_hits_are_counted():
    """A score at the threshold says no; of equal scores the first class is said."""
    S = np.array([[0.6, 0.2], [0.5, 0.7], [0.4, 0.4]])
    Z = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    np.testing.assert_array_equal(Squared().hits(Z, S, "labels"), [1.0, 0.5, 0.5])
    np.testing.assert_array_equal(Logistic().hits(Z, S - 0.5, "labels"), [1.0, 0.5, 0.5])
    np.testing.assert_array_equal(Hinge().hits(2 * Z - 1, S - 0.5, "labels"), [1.0, 0.5, 0.5])
    one = np.eye(2)[[0, 0, 0]]
    np.testing.assert_array_equal(Squared().hits(one, S, "classes"), [1.0, 0.0, 1.0])
    np.testing.assert_array_equal(Squared().hits(Z[:, :1], S[:, :1], "classes"), [1.0, 0.0, 1.0])
    assert np.isnan(Squared().hits(Z, S, "continuous")).all()
    assert Squared().hits(Z, S, "continuous").shape == (3,)


# -- the best constant -----------------------------------------------------------------------------


class Steep(ColumnLoss):
    """√(r² + width²): almost a kink, so that Newton's steps leave every bracket."""

    name = "steep"
    kinds = frozenset({"continuous"})
    width = 1e-3

    def elements(self, Y, S):
        return np.hypot(Y - S, self.width)

    def derivative(self, Y, S):
        return (S - Y) / np.hypot(Y - S, self.width)

    def second(self, Y, S):
        return self.width**2 / np.hypot(Y - S, self.width) ** 3


OWN = [LogCosh(), Poisson(), Huber(0.3), Huber(1e-3), Steep(), Squared()]


@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("unit", [1.0, 30.0])
@pytest.mark.parametrize("loss", OWN, ids=lambda loss: f"{loss.name}{getattr(loss, 'delta', '')}")
def test_the_best_constant_of_each_column(loss, unit, each):
    """By a minimiser of one number; weights of the rows, or of each entry, some of them none."""
    rng = np.random.default_rng(0)
    Y = unit * rng.gamma(1.0, size=(31, 3)) * [1.0, 0.2, 3.0]
    Y = Y if loss.name == "poisson" else Y * [1, -1, 1] + [0, 0, -70]
    w = rng.uniform(size=(31, 3 if each else 1)) * (rng.random((31, 1)) < 0.8)
    w /= w.sum(axis=0)
    b = ColumnLoss.null_intercept(loss, Y, w)
    for j in range(3):
        y, v = Y[:, j], w[:, j if each else 0]

        def mean(s, y=y, v=v):
            return float(v @ loss.elements(y, np.full_like(y, s)))

        ends = (y.min() - 1, y.max() + 1) if loss.name != "poisson" else (-20, 20)
        best = scipy.optimize.minimize_scalar(mean, bounds=ends, options={"xatol": 1e-9})
        assert mean(b[j]) <= best.fun * (1 + 1e-12)
        assert ends[0] < b[j] < ends[1]
    R = w * loss.derivative(Y, np.ones((31, 1)) * b)
    last_digit = np.spacing(np.abs(b)) * (w * loss.second(Y, np.ones((31, 1)) * b)).sum(axis=0)
    assert np.all(np.abs(R.sum(axis=0)) <= 1e-14 * np.abs(R).sum(axis=0) + last_digit)


@pytest.mark.parametrize("curved", [Poisson, LogCosh])
def test_the_best_constant_takes_few_steps(curved):
    """Newton's, of much or little curvature, which halving would need many more of."""

    class Counted(curved):
        calls = 0

        def derivative(self, Y, S):
            self.calls += 1
            return super().derivative(Y, S)

    loss, Y = Counted(), np.array([[0.0, 90.0], [3.0, 800.0], [5.0, 700.0]])
    Y, w = Y if curved is Poisson else Y / [1, 100], np.full((3, 1), 1 / 3)
    b = loss.null_intercept(Y, w)
    assert loss.calls < 25
    np.testing.assert_allclose(mean_residual(loss, Y, w, b), 0, atol=1e-13 * Y.max())
    if curved is Poisson:
        np.testing.assert_allclose(b, np.log(Y.mean(axis=0)), rtol=1e-14)


@pytest.mark.parametrize("loss", [Multinomial(), Length()], ids=lambda loss: loss.name)
def test_the_best_constant_of_any_loss_has_all_digits(loss):
    rng = np.random.default_rng(1)
    Y = np.eye(4)[[0, 1, 2, 3, 3, 1, 3]] if loss.name != "length" else 3 + rng.normal(size=(7, 2))
    w = rng.uniform(0.2, 2, size=(7, 1))
    w /= w.sum()
    b = Loss.null_intercept(loss, Y, w)
    assert np.abs(w[:, 0] @ loss.derivative(Y, np.ones((7, 1)) * b)).max() < 2e-16
    if loss.name == "cross_entropy":
        p = np.exp(b) / np.exp(b).sum()
        np.testing.assert_allclose(p, w[:, 0] @ Y, rtol=1e-14)
        np.testing.assert_allclose(Multinomial().null_intercept(Y, w), np.log(w[:, 0] @ Y))


@pytest.mark.parametrize("size", [1.0, 1e4, 1e8])
def test_the_best_constant_of_any_loss_has_the_digits_of_its_derivatives(size):
    """Values of many counts tell half of them."""
    Y, w = size * np.array([[1.0, 3.0], [2.0, 1.0], [4.0, 0.5]]), np.full((3, 1), 1 / 3)
    b = Loss.null_intercept(Counts(), Y, w)
    np.testing.assert_allclose(b, np.log(Y.mean(axis=0)), rtol=1e-14)


@pytest.mark.parametrize("loss", [Squared(), SquaredHinge(), Hinge(), Logistic()])
def test_the_best_constant_from_means(loss):
    """Weights of each entry need not add up to 1."""
    Y = loss.encode(np.array([[0.0] * 3, [1.0] * 3]), "labels")
    w = np.array([[3.0, 1.0, 2.0], [1.0, 3.0, 2.0]])
    p = np.array([0.25, 0.75, 0.5])
    expected = {
        "squared": p,
        "squared_hinge": 2 * p - 1,
        "hinge": np.sign(2 * p - 1),
        "cross_entropy": np.log(p / (1 - p)),
    }[loss.name]
    np.testing.assert_allclose(loss.null_intercept(Y, w), expected, atol=1e-15)
    R = loss.null_residual(Y, w, expected)
    np.testing.assert_allclose((w * R).sum(axis=0), 0, atol=1e-12)
    if loss.name == "hinge":
        np.testing.assert_allclose(R, [[1 / 3, 1, 1], [-1, -1 / 3, -1]])


def test_residuals_of_the_hinge_where_all_rows_are_of_one_class():
    Y, w = np.array([[-1.0], [1.0]]), np.array([[0.0], [1.0]])
    R = Hinge().null_residual(Y, w, Hinge().null_intercept(Y, w))
    np.testing.assert_array_equal(R, [[1.0], [0.0]])


# -- constants that make up for a slope ------------------------------------------------------------


def mean_residual(loss, Y, w, b):
    return (w * loss.derivative(Y, np.ones((len(Y), 1)) * b)).sum(axis=0)


def balanced(loss, Y, w, slope):
    """The scores and the share, after the check that mixed with the slope nothing is left."""
    b, share = loss.balance(Y, w, loss.null_intercept(Y, w), slope)
    assert 0 < share < 1
    left = (1 - share) * slope + share * mean_residual(loss, Y, w, b)
    np.testing.assert_allclose(left, 0, atol=1e-11 * np.abs(slope).max())
    return b, share / (1 - share)


SLOPES = [[0.2, -0.1, 0.05], [-0.3, 0.0, 0.0], [0.001, 0.002, -0.01], [0.0, 0.0, 0.4]]


@pytest.mark.parametrize("slope", SLOPES)
def test_shares_of_labels_move_until_one_is_halved(slope):
    loss, slope = Logistic(), np.array(slope)
    Y, p = np.array([[0.0] * 3, [1.0] * 3]), np.array([0.3, 0.8, 0.5])
    b, inverse = balanced(loss, Y, np.vstack([1 - p, p]), slope)
    moved = 1 / (1 + np.exp(-b))
    kept = np.minimum(moved / p, (1 - moved) / (1 - p))
    assert kept.min() == pytest.approx(0.5)
    assert 1 / inverse == pytest.approx((np.abs(moved - p)).max() / np.abs(slope).max())


def test_shares_of_rows_are_those_of_their_support():
    rng = np.random.default_rng(0)
    slope, w = np.array([0.1, -0.2, 0.05]), rng.uniform(size=(30, 1))
    for loss in (Logistic(), Multinomial()):
        Y = np.eye(3)[rng.integers(0, 3, 30)]
        balanced(loss, Y, w / w.sum(), slope - slope.mean())


@pytest.mark.parametrize("only", [0, 1])
@pytest.mark.parametrize("size", [0.3, -0.3])
def test_a_share_of_nothing_moves_but_in_one_direction(only, size):
    """There is room for all rows but in the direction of what they are already."""
    Y, w = np.array([[0.0], [1.0]]), np.array([[1.0 - only], [float(only)]])
    start = Logistic().null_intercept(Y, w)
    b, share = Logistic().balance(Y, w, start, np.array([size]))
    assert np.isfinite(b).all()
    if (size > 0) == bool(only):
        assert share == pytest.approx(1 / (1 + 0.5 / 0.3))
        assert b == pytest.approx(0.0, abs=1e-9)
    else:
        assert 0 < 1 - share < 1e-14
        assert b == pytest.approx(start, abs=1)


@pytest.mark.parametrize("slope", [[0.2, -0.1, -0.1], [-0.3, 0.1, 0.2], [-1e-3, 2e-3, -1e-3]])
def test_shares_of_classes_move_until_one_is_halved(slope):
    loss, slope, p = Multinomial(), np.array(slope), np.array([0.5, 0.3, 0.2])
    b, _ = balanced(loss, np.eye(3), p[:, None], slope)
    moved = np.exp(b)
    assert moved.sum() == pytest.approx(1)
    assert (moved / p).min() == pytest.approx(0.5)


@pytest.mark.parametrize("loss", [Logistic(), Multinomial(), Squared(), Huber(), SmoothHinge(0.5)])
def test_no_slope_needs_no_share(loss):
    Y = loss.encode(np.eye(3), "classes")
    w = np.array([[0.5], [0.3], [0.2]])
    start = loss.null_intercept(Y, w)
    b, share = loss.balance(Y, w, start, np.zeros(3))
    assert share == 0
    np.testing.assert_array_equal(b, start)


@pytest.mark.parametrize("slope", SLOPES)
@pytest.mark.parametrize("loss", [Squared(), SquaredHinge(), LogCosh(), Huber(2.0)])
def test_scores_of_columns_move_by_one_at_most(loss, slope):
    rng = np.random.default_rng(0)
    Y = loss.encode(1.0 * (rng.random((40, 3)) < [0.3, 0.5, 0.8]), "labels")
    w = rng.uniform(size=(40, 1)) / 20
    slope = np.array(slope)
    b, _ = balanced(loss, Y, w, slope)
    moved = b - loss.null_intercept(Y, w)
    np.testing.assert_array_equal(np.sign(moved), -np.sign(slope))
    assert np.abs(moved).max() == pytest.approx(1)
    one, _ = balanced(loss, Y[:, :1], w, np.array([0.3]))
    np.testing.assert_array_equal(one, loss.null_intercept(Y[:, :1], w) - 1)


@pytest.mark.parametrize("turned", [1.0, -1.0])
def test_a_column_that_cannot_be_moved_has_no_balance(turned):
    """Beyond all of its targets Huber's loss has the same slope everywhere."""
    loss, Y, w = Huber(0.1), np.array([[0.0, 0.0]]), np.ones((1, 1))
    b = np.array([0.0, 5.0])
    slope = turned * np.array([0.05, 0.1])
    moved, share = loss.balance(Y, w, b, slope)
    if turned > 0:
        assert share == 1
        np.testing.assert_array_equal(moved, b)
    else:
        assert 0 < share < 1


def generic(loss, Y, w, slope):
    """The balance of a loss that gives derivatives alone, and the same by a linear system."""
    start = loss.null_intercept(Y, w)
    b, share = Loss.balance(loss, Y, w, start, slope)
    w1 = w[:, 0]
    H = loss.curvature(Y, np.ones((len(Y), 1)) * start, w1)
    spread = np.sqrt(w1 @ (Y - w1 @ Y) ** 2).max()
    return b, share, spread / np.abs(np.linalg.pinv(H, hermitian=True) @ slope).max()


@pytest.mark.parametrize("size", [1e-8, 0.01, 1.0, 50.0])
@pytest.mark.parametrize("loss", [Multinomial(), Length(), Squared()], ids=lambda loss: loss.name)
def test_any_loss_moves_by_about_a_spread(loss, size):
    rng = np.random.default_rng(0)
    Y = np.eye(3)[[0, 1, 2, 0, 0]] if loss.name == "cross_entropy" else rng.normal(size=(5, 3)) + 2
    w = np.array([[0.1], [0.2], [0.3], [0.15], [0.25]])
    slope = size * np.array([1.0, -0.8, -0.2])
    b, share, times = generic(loss, Y, w, slope)
    assert share == pytest.approx(1 / (1 + times), rel=1e-9)
    if loss.name == "cross_entropy":  # equal shifts of all scores change nothing but rounding
        rounded = generic(loss, Y, w, slope + 1e-9 * size)
        assert rounded[1] == pytest.approx(share, rel=1e-6)
    left = (1 - share) * slope + share * mean_residual(loss, Y, w, b)
    np.testing.assert_allclose(left, 0, atol=1e-11 * (1 - share) * size)


def test_any_loss_moves_less_where_a_spread_is_too_far():
    """One target far away: the loss is flat long before the scores get there."""
    loss, Y = Length(), np.vstack([np.random.default_rng(0).normal(size=(20, 2)), [[300.0, 0.0]]])
    w, slope = np.full((21, 1), 1 / 21), np.array([0.3, 0.1])
    b, share, times = generic(loss, Y, w, slope)
    steps = np.log((1 / share - 1) / times) / np.log(4)
    assert steps <= -1
    assert steps == pytest.approx(round(steps), abs=1e-9)
    left = (1 - share) * slope + share * mean_residual(loss, Y, w, b)
    np.testing.assert_allclose(left, 0, atol=1e-11)


def test_any_loss_says_what_cannot_be_balanced():
    loss, Y, w = Length(), np.array([[1.0, 2.0], [2.0, 1.0]]), np.full((2, 1), 0.5)
    start = loss.null_intercept(Y, w)
    for slope in (np.zeros(2), np.full(2, np.nan)):
        b, share = Loss.balance(loss, Y, w, start, slope)
        assert share == 1
        np.testing.assert_array_equal(b, start)


# -- which loss, and whether it is one -------------------------------------------------------------


def test_names_and_kinds():
    assert isinstance(loss_for("cross_entropy", "classes", 2), Logistic)
    assert isinstance(loss_for("cross_entropy", "classes", 3), Multinomial)
    assert isinstance(loss_for("cross_entropy", "labels", 3), Logistic)
    for kind, name in (("classes", "cross_entropy"), ("continuous", "squared")):
        assert loss_for("auto", kind, 3).name == name
    for kind, names in (("labels", [*LOSSES]), ("continuous", ["squared", "huber"])):
        for name in LOSSES:
            if name in names:
                assert loss_for(name, kind, 3).name == name
            else:
                with pytest.raises(InputError, match=f"cannot score a concept of kind '{kind}'"):
                    loss_for(name, kind, 3)


def test_least_squares_solves_what_is_quadratic():
    assert solves_by_least_squares("squared")
    assert solves_by_least_squares(Squared())
    for other in ("huber", "cross_entropy", "auto", "none", Huber(), object()):
        assert not solves_by_least_squares(other)


@pytest.mark.parametrize("delta", [0.0, -1.0, np.inf, np.nan])
def test_hubers_width_is_a_positive_number(delta):
    with pytest.raises(InputError, match="delta must be"):
        Huber(delta)
    assert Huber(1e-300).delta == 1e-300


@pytest.mark.parametrize("kind", ["classes", "labels", "continuous"])
def test_those_built_in_pass_the_trial(kind):
    for width in (2, 3):
        for make in LOSSES.values():
            loss = make(kind, width)
            if kind in loss.kinds:
                assert loss_for(loss, kind, width) is loss


@pytest.mark.parametrize(("kind", "width"), [("classes", 3), ("classes", 100), ("labels", 3)])
def test_a_loss_is_tried_on_targets_that_there_are(kind, width):
    class Watched(Squared):
        def encode(self, Z, kind):
            self.seen = Z
            return super().encode(Z, kind)

    loss = loss_for(Watched(), kind, width)
    few = np.eye(min(width, 64)) if kind == "classes" else np.outer([0, 1], np.ones(width))
    np.testing.assert_array_equal(loss.seen, few)


def squared_but(**changes):
    """The squared loss with other pieces."""

    def elements(self, Y, S):
        return (Y - S) ** 2

    def derivative(self, Y, S):
        return 2 * (S - Y)

    def second(self, Y, S):
        return np.full_like(S, 2.0)

    kinds = frozenset({"classes", "labels", "continuous"})
    pieces = {"elements": elements, "derivative": derivative, "second": second, "kinds": kinds}
    return type("Changed", (ColumnLoss,), pieces | changes)()


def raised(self, Y, S):
    return (Y - S) ** 2 + 1e-6


FAULTS = {
    "below its tangents": {"derivative": lambda self, Y, S: 2.1 * (S - Y)},  # too steep
    "lies below its tangents": {"derivative": lambda self, Y, S: 1.9 * (S - Y)},  # too flat
    "is negative": {"elements": lambda self, Y, S: (Y - S) ** 2 - 0.5},
    "has `surrogates` above it": {
        "surrogates": property(lambda self: (Squared(), squared_but(elements=raised)))
    },
    "not the sum of `elements`": {
        "values": lambda self, Y, S: (Y - S) ** 2 @ np.ones(Y.shape[1]) + 1e-6
    },
    "not a finite number": {"elements": lambda self, Y, S: np.where(S > -3, (Y - S) ** 2, np.nan)},
}


@pytest.mark.parametrize("kind", ["classes", "labels"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_small_fault_of_a_loss_is_found(fault, kind):
    changed = squared_but(**FAULTS[fault])
    with pytest.raises(InputError, match=fault):
        loss_for(changed, kind, 3)
    assert loss_for(squared_but(), kind, 3).name == "custom"
    assert loss_for(changed, "continuous", 3) is changed  # tried on the numbers, later


def test_a_loss_is_tried_near_the_middle_and_far_from_it():
    """In the units of the targets; what lies 20 spreads away is none of its business."""
    Y = np.random.default_rng(0).normal(size=(100, 2)) * [1.0, 50.0] + [7.0, 300.0]
    middle, spread = np.array([7.0, 300.0]), np.array([1.0, 50.0])
    seen = []

    class Watched(Squared):
        def derivative(self, Y, S):
            seen.append((S - middle) / spread)
            return super().derivative(Y, S)

    check_tangents(Watched(), Y, middle, spread)
    (S,) = seen
    assert S.shape == (4 * 16 * 64, 2)
    np.testing.assert_allclose(S.mean(axis=0), 0, atol=0.2)
    near, far, *again = np.split(S, 4)
    np.testing.assert_array_equal(again, [far, far])
    np.testing.assert_allclose(near.std(axis=0), 0.5, rtol=0.1)
    np.testing.assert_allclose(far.std(axis=0), 3.0, rtol=0.1)


def test_a_large_loss_is_not_refused_for_its_rounding():
    def expanded(self, Y, S):
        return 1e15 * np.maximum(Y**2 - 2 * Y * S + S**2, 0.0)

    loss = squared_but(elements=expanded, derivative=lambda self, Y, S: 2e15 * (S - Y))
    assert loss_for(loss, "classes", 3) is loss


def weighted(self, Y, S):
    return np.array([1.0, 5.0]) * (Y - S) ** 2


def by_target(self, Y, S):
    return (1 + Y**2) * (Y - S) ** 2


@pytest.mark.parametrize("allowed", [True, False])
def test_a_quadratic_loss_is_the_same_for_all_targets(allowed):
    """A weight of each column is fine; one that depends on the target is not."""
    elements = weighted if allowed else by_target
    weight = {True: lambda Y: np.array([1.0, 5.0]), False: lambda Y: 1 + Y**2}[allowed]
    loss = squared_but(
        elements=elements,
        derivative=lambda self, Y, S: 2 * weight(Y) * (S - Y),
        second=lambda self, Y, S: 2 * weight(Y) * np.ones_like(S),
        quadratic=True,
    )
    if allowed:
        assert loss_for(loss, "continuous", 2) is loss
    else:
        with pytest.raises(InputError, match="says it is `quadratic`"):
            loss_for(loss, "continuous", 2)
        assert loss_for(loss, "classes", 3) is loss  # which need not be
