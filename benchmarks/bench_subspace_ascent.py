"""Subspace ascent: the value it reaches on handwritten digits, and its cost on a larger problem."""

from __future__ import annotations

import time

import numpy as np
from common import best_of, show
from dense_twin import DenseTwin
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import expunge as ex
from expunge.game.losses import loss_for
from expunge.game.predictor import Problem, fit_predictor
from expunge.game.subspace_ascent import subspace_ascent
from expunge.inputs import check_concept, check_rows

FLOORS = {1: 0.206, 2: 0.402, 4: 0.867, 6: 1.517, 8: 2.073}


def digits() -> tuple[np.ndarray, np.ndarray]:
    """8 x 8 digits without constant pixels, centred, over the standard deviation of all pixels."""
    raw, y = load_digits(return_X_y=True)
    X = raw[:, raw.std(axis=0) > 0]
    return (X - X.mean(axis=0)) / raw.std(), y


def problem_of(X: np.ndarray, y: np.ndarray, ridge: float) -> Problem:
    """The inner problem with an absolute ridge."""
    rows, concept = check_rows(X), check_concept(y, len(X))
    moments = rows.moments(concept)
    loss = loss_for("cross_entropy", "classes", concept.width)
    return Problem(rows, concept, loss, moments, alpha=ridge / moments.mean_variance)


def pass_seconds(problem: Problem, repeats: int = 100) -> float:
    """Seconds of one `glm_pass`."""
    coef, b = np.zeros_like(problem.null.gradient), problem.null.intercept

    def once() -> None:
        problem.rows.glm_pass(problem.loss, coef, b, problem.concept, center=problem.center)

    return best_of(lambda: [once() for _ in range(repeats)], 3) / repeats


def on_digits() -> None:
    """V at the ridge 1e-4 against the floors, and time in passes."""
    X, y = digits()
    one_pass = pass_seconds(problem_of(X, y, 1e-4))
    for K, floor in FLOORS.items():
        start = time.perf_counter()
        found = subspace_ascent(problem_of(X, y, 1e-4), K, rng=np.random.default_rng(0))
        cost = (time.perf_counter() - start) / one_pass
        show(f"digits, K = {K}: V, to three digits", round(found.value, 3), floor, at_most=False)
        show(f"digits, K = {K}: time / glm_pass ({found.reason.value})", cost, 3000)


def against_descent_ascent(
    ranks: tuple[int, ...] = tuple(range(1, 9)), steps: int = 50_000
) -> None:
    """Loss of a refitted predictor on training and held-out rows, 65/35 split."""
    X, y = digits()
    A, B, a, b = train_test_split(X, y, test_size=0.35, random_state=0)
    for K in ranks:
        losses = {}
        for solver in ("auto", "descent_ascent"):
            eraser = ex.RLACE(
                K, solver=solver, tol=1e-6, max_iter=None if solver == "auto" else steps
            )
            losses[solver] = refit(eraser.fit(A, a), A, a, B, b)
        for part, which in enumerate(("training", "held-out")):
            ours, theirs = losses["auto"][part], losses["descent_ascent"][part]
            claim = f"digits, K = {K}: {which} loss {ours:.3f} against {theirs:.3f}, difference"
            show(claim, ours - theirs, -1e-9 if K == 1 else 0.0, at_most=False)


def refit(eraser, A, a, B, b) -> tuple[float, float]:
    """Cross-entropy on training and test rows of a predictor refitted on erased training rows."""
    problem = problem_of(eraser.transform(A), a, 1e-4)
    found = fit_predictor(problem, tol=1e-8)
    test = check_rows(eraser.transform(B)).glm_pass(
        problem.loss, found.coef, found.intercept, check_concept(b, len(b)), center=problem.center
    )
    return found.loss, test.value


def on_many_classes(gap: float, steps: int = 5000) -> None:
    """50,000 x 768, 28 classes whose means span 10 dimensions, K = 5; `gap` moves them apart."""
    rng = np.random.default_rng(0)
    n, d, c = 50_000, 768, 28
    means = (
        gap * rng.standard_normal((c, 10)) @ rng.standard_normal((10, d)) * np.linspace(1, 0.2, d)
    )
    y = rng.integers(0, c, n)
    X = (rng.standard_normal((n, d)) * np.linspace(2, 0.5, d) + means[y]).astype(np.float32)
    problem = problem_of(X, y, 1e-4 * float(X.var(axis=0, dtype=np.float64).mean()))
    one_pass = pass_seconds(problem, 3)
    before = fit_predictor(problem, tol=1e-4, exact_intercept=False)
    start = time.perf_counter()
    found = subspace_ascent(problem, 5, rng=np.random.default_rng(0))
    seconds = time.perf_counter() - start
    print(
        f"28 classes, gap {gap}: accuracy {before.accuracy:.1%} before; V {before.value:.3f} -> "
        f"{found.value:.3f} of at most {problem.null.value:.3f}; {found.reason.value}; "
        f"{found.n_passes} passes, {seconds / one_pass:.0f} in time"
    )
    twin = DenseTwin(d, 5)

    def dense_step() -> None:
        index = rng.integers(0, n, 256)
        twin.step(X[index].astype(float), (y[index] == 0).astype(float))

    share = seconds / (50_000 * best_of(dense_step, 5))
    show(f"28 classes, gap {gap}: our time / 50,000 steps of the dense twin", share, 1 / 50)
    if steps:
        sgd = ex.RLACE(5, solver="descent_ascent", batch_size=256, max_iter=steps).fit(X, y)
        theirs = max(record.value for record in sgd.history_)
        claim = f"28 classes, gap {gap}: V above descent-ascent's, {steps:,} steps, by"
        show(claim, found.value - theirs, 0.0, at_most=False)


def main() -> None:
    on_digits()
    on_many_classes(0.1)
    on_many_classes(1 / 3, steps=0)
    against_descent_ascent()


if __name__ == "__main__":
    main()
