"""Subspace ascent: its value on handwritten digits and against blind search, its cost on more rows.

``python bench_subspace_ascent.py small 0 95`` compares it with blind search on those small games,
``python bench_subspace_ascent.py classes`` is the one on separable classes alone.
"""

from __future__ import annotations

import sys
import time
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.optimize
from common import best_of, machine, show
from dense_twin import DenseTwin
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

import expunge as ex
from expunge.game.climbing import retract
from expunge.game.losses import loss_for
from expunge.game.predictor import Problem, fit_predictor
from expunge.game.result import SolveResult
from expunge.game.solver import Game, SolveOptions
from expunge.game.subspace_ascent import SubspaceAscent
from expunge.game.survey import survey
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


def solved(problem: Problem, rank: int, **options: Any) -> SolveResult:
    """What subspace ascent finds."""
    return SubspaceAscent().solve(Game.on(problem, rank), SolveOptions(**options))


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
        found = solved(problem_of(X, y, 1e-4), K)
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
    start, spent = time.perf_counter(), time.process_time()
    found = solved(problem, 5)
    seconds, spent = time.perf_counter() - start, time.process_time() - spent
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
    with threadpool_limits(1):  # threads that wait for each other spend processor seconds too
        before = time.process_time()
        for _ in range(5):
            dense_step()
        share = spent / (10_000 * (time.process_time() - before))
    show(f"28 classes, gap {gap}: the same in processor seconds", share, 1 / 50)
    if steps:
        sgd = ex.RLACE(5, solver="descent_ascent", batch_size=256, max_iter=steps).fit(X, y)
        theirs = max(record.value for record in sgd.history_)
        claim = f"28 classes, gap {gap}: V above descent-ascent's, {steps:,} steps, by"
        show(claim, found.value - theirs, 0.0, at_most=False)


def small_game(seed: int) -> tuple[Problem, int]:
    """200 rows of 2 to 6 dimensions, at random; a problem and a rank below the concept's own."""
    rng = np.random.default_rng([3, seed])
    n, d, width = 200, int(rng.integers(2, 7)), int(rng.integers(3, 7))
    kind = ("classes", "classes", "apart", "labels", "vector", "hinge")[seed % 6]
    if kind == "labels":
        y = Z = (rng.random((n, width)) < rng.uniform(0.1, 0.6, width)).astype(int)
    elif kind == "vector":
        y = Z = rng.normal(size=(n, width)) * np.exp(rng.normal(size=width))
    else:
        shares = rng.dirichlet(np.full(width, 1.5)) if rng.random() < 0.5 else 1 / width
        y = rng.choice(width, size=n, p=0.8 * shares + 0.2 / width + np.zeros(width))
        Z = np.eye(width)[y]
    mix = rng.normal(size=(d, d)) / np.sqrt(d) + (kind != "apart") * rng.integers(2) * np.eye(d)
    gap = 4.0 if kind == "apart" else np.exp(rng.uniform(-0.7, 1.6))
    X = rng.normal(size=(n, d)) @ mix + gap * Z @ rng.normal(size=(width, d))
    rows, concept = check_rows(X), check_concept(y, n)
    name = {"vector": "squared", "hinge": "squared_hinge"}.get(kind, "cross_entropy")
    loss = loss_for(name, concept.kind, concept.width)
    problem = Problem(rows, concept, loss, rows.moments(concept), alpha=1e-4)
    return problem, int(rng.integers(1, max(2, problem.null.rank)))


def blind_search(problem: Problem, rank: int, rng: np.random.Generator) -> float:
    """The best of 600 random subspaces, polished without any gradient."""
    d = problem.moments.n_features
    pool = np.linalg.qr(rng.standard_normal((600, d, rank)))[0]
    best = pool[survey(problem, pool).argmax()]
    rest = np.linalg.qr(best, mode="complete")[0][:, rank:]

    def loss(angles: np.ndarray) -> float:
        U = retract(best + rest @ angles.reshape(d - rank, rank))
        problem.set_erasure(ex.Erasure(U, U.T))
        return -fit_predictor(problem, tol=1e-8).value

    start = np.zeros((d - rank) * rank)
    options = {"maxfev": 40 * len(start), "xatol": 1e-4, "fatol": 1e-7}
    return -float(scipy.optimize.minimize(loss, start, method="Nelder-Mead", options=options).fun)


def on_small_games(first: int = 0, last: int = 95, restarts: tuple[int, ...] = (5, 20)) -> None:
    """How often blind search wins, by how much at the most, and how often restarts do harm."""
    lost, worst, worse, played = 0, 0.0, 0, 0
    for seed in range(first, last):
        if small_game(seed)[0].null.rank < 2:
            continue
        values = []
        for r in (0, *restarts):
            problem, rank = small_game(seed)
            rng = np.random.default_rng(0)
            values.append(solved(problem, rank, restarts=r, rng=rng).value)
        behind = blind_search(*small_game(seed), np.random.default_rng(seed)) / values[0] - 1
        played, lost, worst = played + 1, lost + (behind > 0.01), max(worst, behind)
        worse += sum(later < earlier for earlier, later in pairwise(values))
    show(f"{played} small games: lost to blind search by more than 1 %", lost, 0)
    show(f"{played} small games: largest share by which blind search was better", worst, 0.01)
    show(f"{played} small games: values that fell with more restarts", worse, 0)


def main() -> None:
    print(machine())
    if sys.argv[1:2] == ["small"]:
        on_small_games(*map(int, sys.argv[2:]))
        return
    if sys.argv[1:2] == ["classes"]:
        on_many_classes(1 / 3, steps=0)
        return
    on_digits()
    on_small_games()
    on_many_classes(0.1)
    on_many_classes(1 / 3, steps=0)
    against_descent_ascent()


if __name__ == "__main__":
    main()
