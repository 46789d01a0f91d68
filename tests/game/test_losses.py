"""Losses: derivatives by finite differences, null models by general-purpose minimisation."""

import numpy as np
import pytest
import scipy.optimize

from expunge.errors import InputError
from expunge.game.losses import (
    LOSSES,
    ColumnLoss,
    Hinge,
    Logistic,
    Loss,
    Multinomial,
    SmoothHinge,
    Squared,
    SquaredHinge,
    loss_for,
)

SMOOTH = [Logistic(), Multinomial(), Squared(), SquaredHinge(), SmoothHinge(0.5)]


def targets_and_scores(loss, n=7, m=3, seed=0):
    rng = np.random.default_rng(seed)
    Y = loss.encode(np.eye(m)[rng.integers(0, m, n)], "classes")
    return Y, rng.normal(size=Y.shape)


@pytest.mark.parametrize("loss", SMOOTH, ids=lambda loss: loss.name)
def test_derivatives_match_finite_differences(loss):
    Y, S = targets_and_scores(loss)
    w, h = np.random.default_rng(1).uniform(size=len(Y)), 1e-6
    H = np.zeros((S.shape[1],) * 2)
    for j in range(S.shape[1]):
        step = np.zeros_like(S)
        step[:, j] = h
        slope = (loss.values(Y, S + step) - loss.values(Y, S - step)) / (2 * h)
        np.testing.assert_allclose(loss.derivative(Y, S)[:, j], slope, atol=1e-7)
        change = (loss.derivative(Y, S + step) - loss.derivative(Y, S - step)) / (2 * h)
        H[:, j] = w @ change
    np.testing.assert_allclose(loss.curvature(Y, S, w), H, atol=1e-6)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.2, 0.8), (0.7, 0.3), (0.5, 0.3, 0.2)])
def test_null_intercept_is_the_best_constant(name, shares):
    loss, w = loss_for(name, "classes", len(shares)), np.array(shares)[:, None]
    Y = loss.encode(np.eye(len(shares)), "classes")

    def mean_loss(b):
        return float(w[:, 0] @ loss.values(Y, np.ones((len(Y), 1)) * b))

    b = loss.null_intercept(Y, w)
    found = scipy.optimize.minimize(mean_loss, np.zeros(Y.shape[1]), method="Nelder-Mead")
    assert mean_loss(b) <= found.fun + 1e-9
    residual = loss.null_residual(Y, w, b)
    np.testing.assert_allclose(w[:, 0] @ residual, 0, atol=1e-12)


@pytest.mark.parametrize("share", [0.5, 0.3, 0.9])
def test_null_residual_of_the_hinge_is_a_subderivative(share):
    loss, w = Hinge(), np.array([[1 - share], [share]])
    Y = np.array([[-1.0], [1.0]])
    b = loss.null_intercept(Y, w)
    R, at = loss.null_residual(Y, w, b), loss.elements(Y, np.ones((2, 1)) * b)
    for s in np.linspace(-3, 3, 61):  # the loss lies above every tangent
        assert (loss.elements(Y, np.full((2, 1), s)) >= at + R * (s - b) - 1e-12).all()


def test_smooth_hinge_lies_just_below_the_hinge():
    Y, S = np.ones((1001, 1)), np.linspace(-2, 3, 1001)[:, None]
    below = Hinge().elements(Y, S) - SmoothHinge(0.1).elements(Y, S)
    assert below.min() >= 0
    assert below.max() == pytest.approx(0.05)


class Huber(ColumnLoss):
    """A loss of one's own, with the generic null model."""

    name = "huber"

    def elements(self, Y, S):
        r = np.abs(Y - S)
        return np.where(r < 0.3, r**2 / 2, 0.3 * (r - 0.15))

    def derivative(self, Y, S):
        return np.clip(S - Y, -0.3, 0.3)

    def second(self, Y, S):
        return (np.abs(Y - S) < 0.3).astype(float)


def test_generic_null_intercept_of_a_column_loss():
    Y, w = np.array([[0.0], [1.0]]), np.array([[0.45], [0.55]])
    loss = Huber()
    grid = np.linspace(-1, 2, 30001)
    values = [float((w * loss.elements(Y, np.full((2, 1), b))).sum()) for b in grid]
    assert loss.null_intercept(Y, w)[0] == pytest.approx(grid[np.argmin(values)], abs=1e-3)


def test_generic_null_intercept_of_any_loss():
    Y, w = np.eye(3), np.array([[0.2], [0.3], [0.5]])
    b = Loss.null_intercept(Multinomial(), Y, w)
    np.testing.assert_allclose(np.exp(b) / np.exp(b).sum(), w[:, 0], atol=1e-9)


def test_wrong_pairings_name_a_loss_that_fits():
    with pytest.raises(InputError, match="Pass one of cross_entropy"):
        loss_for("log", "classes", 2)
    with pytest.raises(InputError, match="Pass loss='squared'"):
        loss_for("cross_entropy", "continuous", 1)
    with pytest.raises(InputError, match="kind 'labels'"):
        loss_for(Multinomial(), "labels", 3)


def test_a_loss_of_labels_has_to_tell_what_each_adds():
    class Both(Multinomial):
        kinds = frozenset({"classes", "labels"})

    loss = Both()
    assert not hasattr(loss, "elements")
    assert loss_for(loss, "classes", 3) is loss
    with pytest.raises(InputError, match="no elements"):
        loss_for(loss, "labels", 3)


def test_what_cannot_be_balanced_is_said():
    """Beyond 1 of the optimum a step of 1 does not turn the slope round; at it there is none."""
    loss, Y, w = Huber(), np.zeros((1, 1)), np.ones((1, 1))
    for at, lacking in ((5.0, 1.0), (0.0, 0.0)):
        b = np.array([at])
        slope = (w * loss.derivative(Y, b[None])).sum(axis=0)
        moved, share = loss.balance(Y, w, b, slope)
        assert share == lacking
        np.testing.assert_array_equal(moved, b)


def test_the_hinge_is_rounded_ever_less():
    widths = [part.width for part in Hinge().surrogates]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] == 1e-3


@pytest.mark.parametrize("only", [0, 1])
def test_a_class_with_all_of_the_weight_is_all_but_certain(only):
    Y = Logistic().encode(np.array([[0.0], [1.0]]), "labels")
    w = np.array([[1.0 - only], [float(only)]])
    (b,) = Logistic().null_intercept(Y, w)
    assert 30 < b * (2 * only - 1) < 40
