"""How soon solvers are at the end: one whose steps are too short or askew is right, but late."""

import numpy as np
import pytest
import test_predictor
from test_subspace_ascent import play, problem

from expunge.game.predictor import fit_predictor
from planted import plant


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    ("kind", "loss", "passes"),
    [
        ("binary", "cross_entropy", 20),
        ("classes", "cross_entropy", 34),
        ("labels", "cross_entropy", 28),
        ("vector", "squared", 4),
        ("binary", "squared_hinge", 30),
    ],
)
def test_passes_of_the_predictor(kind, loss, passes, intercept):
    p = test_predictor.problem(plant(kind), kind, loss, fit_intercept=intercept)
    found = fit_predictor(p, tol=1e-9)
    assert found.converged
    assert found.n_passes <= passes
    assert 0 <= found.value - found.lower_bound < 1e-8 * p.null.value


@pytest.mark.parametrize(
    ("kind", "rank", "steps"),
    [("classes", 1, 65), ("classes", 2, 38), ("labels", 1, 46), ("labels", 2, 38)],
)
def test_steps_from_random_subspaces(kind, rank, steps):
    p, taken = problem(plant(kind)), 0
    for seed in range(4):
        start = np.linalg.qr(np.random.default_rng(seed).normal(size=(8, rank)))[0]
        found = play(p, rank, start=start)
        values = [step.value for step in found.history]
        assert values == sorted(values)
        assert [step.step for step in found.history] == list(range(len(values)))
        taken += len(values)
    assert taken <= steps
