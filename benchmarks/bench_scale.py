"""`auto` against the dense algorithm at n = 100,000, and the peak memory of every solver."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from common import best_of, show
from dense_twin import DenseTwin

import expunge as ex
from expunge.erasure import Erasure
from expunge.game.certificate import certify
from expunge.game.losses import loss_for
from expunge.inputs import check_concept, check_rows


def data(n: int, d: int, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, n)
    X = rng.standard_normal((n, d), dtype=np.float32)
    X += rng.standard_normal((classes, d)).astype(np.float32)[y] * 0.3
    return X, y


def against_the_dense_twin() -> None:
    """Time and certificate of `auto`, with the twin's time extrapolated from 50 steps."""
    X, y = data(100_000, 768)
    eraser = ex.RLACE(1)
    ours = best_of(lambda: eraser.fit(X, y), 3)
    twin, rng = DenseTwin(768, 1), np.random.default_rng(0)

    def steps() -> None:
        for _ in range(50):
            index = rng.integers(0, len(X), 128)
            twin.step(X[index].astype(float), y[index].astype(float))

    dense = best_of(steps, 1) * 1000
    show(
        "dense twin's 50,000 steps / auto, n = 100,000, d = 768",
        dense / ours,
        20_000,
        at_most=False,
    )
    U = np.linalg.eigh(twin.Q)[1][:, -1:]
    rows, concept = check_rows(X), check_concept(y, len(X))
    theirs = certify(rows, concept, Erasure(U, U.T), loss_for("cross_entropy", "classes", 2))
    print(
        f"certificate of auto {eraser.certificate_.value:.9f} = bound "
        f"{eraser.certificate_.bound:.9f}; of the twin after 50 steps {theirs.value:.6f}"
    )
    share = eraser.certificate_.value / eraser.certificate_.bound
    show("certified value of auto / bound (no eraser can exceed 1)", share, 1 - 1e-8, at_most=False)


SOLVERS = {
    "closed_form": "ex.RLACE(1).fit(X, y)",
    "descent_ascent": "ex.RLACE(1, solver='descent_ascent', max_iter=300, evaluate_every=150)"
    ".fit(X, y)",
    "subspace_ascent": "ex.RLACE(2, max_iter=3, solver=ex.SubspaceAscent(explore=1)).fit(X, y)",
}


def peak_memory() -> None:
    """Most memory allocated beside X at any time, in shares of X, at n = 200,000, d = 768."""
    for name, code in SOLVERS.items():
        script = (
            "import tracemalloc, warnings; warnings.simplefilter('ignore'); import expunge as ex; "
            "from bench_scale import data; "
            f"X, y = data(200_000, 768, {4 if name == 'subspace_ascent' else 2}); "
            f"tracemalloc.start(); {code}; "
            "print(tracemalloc.get_traced_memory()[1] / X.nbytes)"
        )
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=True,
            cwd=sys.path[0],
        )
        show(f"{name}: peak memory beyond X / X", float(done.stdout.split()[-1]), 0.2)


def main() -> None:
    against_the_dense_twin()
    peak_memory()


if __name__ == "__main__":
    main()
