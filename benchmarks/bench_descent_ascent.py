"""The paper's solver: what it finds on GloVe, and what a step costs against the dense algorithm."""

from __future__ import annotations

import numpy as np
from common import best_of, show
from dense_twin import DenseTwin
from sklearn.linear_model import LogisticRegression

import expunge as ex
from expunge.data import load_glove
from expunge.game.descent_ascent import DescentAscent, _Run
from expunge.game.losses import loss_for
from expunge.game.predictor import Problem
from expunge.game.solver import SolveOptions
from expunge.inputs import check_concept, check_rows
from expunge.parallel import one_blas_thread


def on_glove() -> None:
    """Rank 1, binary, the paper's settings, against the closed form."""
    glove = load_glove()
    train, test = glove.train, glove.test
    auto = ex.RLACE(1).fit(train.X, train.y)
    sgd = ex.RLACE(1, **ex.paper_settings("static")).fit(train.X, train.y)
    cosine = abs(float((auto.erasure_.basis @ sgd.erasure_.basis.T).item()))
    print(f"auto chose {auto.solver_}; descent-ascent took {sgd.n_iter_:,} steps")
    show("GloVe: |cos| of descent-ascent with the closed form", cosine, 0.9999, at_most=False)
    majority = max(test.y.mean(), 1 - test.y.mean())
    for name, eraser in (("auto", auto), ("descent_ascent", sgd)):
        probe = LogisticRegression(max_iter=1000).fit(eraser.transform(train.X), train.y)
        accuracy = probe.score(eraser.transform(test.X), test.y)
        claim = f"GloVe, {name}: |held-out accuracy {accuracy:.4f} - majority {majority:.4f}|"
        show(claim, abs(accuracy - majority), 0.01)


def step_cost(d: int, K: int = 1, batch: int = 256, n: int = 4000) -> tuple[float, float]:
    """Seconds of one step, ours and the dense twin's, on the same data."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n, d), dtype=np.float32), rng.integers(0, 2, n)
    rows, concept = check_rows(X), check_concept(y, n)
    problem = Problem(
        rows, concept, loss_for("cross_entropy", "classes", 2), rows.moments(concept, second=False)
    )
    run = _Run(problem, K, DescentAscent(), SolveOptions(rng, batch_size=batch))
    with one_blas_thread():
        for _ in range(50):
            run.iterate()
        ours = best_of(lambda: [run.iterate() for _ in range(40)], 10) / 40
    twin = DenseTwin(d, K)

    def dense_step() -> None:
        index = rng.integers(0, n, batch)
        twin.step(X[index].astype(float), y[index])

    return ours, best_of(dense_step, 5)


def main() -> None:
    on_glove()
    costs = {}
    for d in (128, 256, 512, 768, 1024, 2048, 4096):
        ours, dense = step_cost(d) if d < 4096 else (step_cost_ours(d), float("nan"))
        costs[d] = ours
        ratio = dense / ours
        if d in (768, 2048):
            show(
                f"dense step / our step at d = {d}", ratio, 100 if d == 768 else 1000, at_most=False
            )
        print(
            f"d = {d:5d}: {1e3 * ours:7.3f} ms a step, {1e6 * ours / d:6.2f} µs per dimension, "
            f"dense twin {ratio:8.1f} times as long"
        )
    show("time at d = 4,096 / time at d = 1,024 (4 is linear)", costs[4096] / costs[1024], 4.8)


def step_cost_ours(d: int) -> float:
    """Our step alone, where the dense twin would take too long."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((4000, d), dtype=np.float32), rng.integers(0, 2, 4000)
    rows, concept = check_rows(X), check_concept(y, 4000)
    problem = Problem(
        rows, concept, loss_for("cross_entropy", "classes", 2), rows.moments(concept, second=False)
    )
    run = _Run(problem, 1, DescentAscent(), SolveOptions(rng, batch_size=256))
    with one_blas_thread():
        for _ in range(50):
            run.iterate()
        return best_of(lambda: [run.iterate() for _ in range(40)], 10) / 40


if __name__ == "__main__":
    main()
