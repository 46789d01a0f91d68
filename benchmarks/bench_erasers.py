"""LEACE against the product it cannot do without and against the authors' package; INLP's rounds.

Every figure is a ratio of two timings of this one run, taken in turns. The package is used where it
can be imported; ``--package-path DIR`` names a folder that holds it.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable

import numpy as np
from common import best_of, both_ratios_of, machine, ratio_of, show
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

import expunge as ex
from expunge.data import load_glove

THREADS = 2
ROUNDS = 20


def rows(n: int, d: int = 768) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    X = rng.standard_normal((n, d), dtype=np.float32)
    X += 0.3 * y[:, None].astype(np.float32)
    return X, y


def leace(X: np.ndarray, y: np.ndarray) -> None:
    fit = ratio_of(lambda: ex.LEACE().fit(X, y), lambda: X.T @ X, 5)
    show(f"LEACE fit with certificate / X.T @ X, {len(X):,} x {X.shape[1]} float32", fit, 2)


def leace_of_the_authors(X: np.ndarray, y: np.ndarray) -> None:
    try:
        package = importlib.import_module("concept_erasure")
        torch = importlib.import_module("torch")
    except ImportError:
        print("concept-erasure or torch cannot be imported: not compared")
        return
    torch.set_num_threads(THREADS)
    x, z = torch.from_numpy(X), torch.nn.functional.one_hot(torch.from_numpy(y)).float()
    erasers: dict[str, Callable[[], object]] = {}

    def theirs() -> None:
        erasers["theirs"] = package.LeaceFitter.fit(x, z).eraser

    def ours() -> None:
        erasers["ours"] = ex.LEACE().fit(X, y).erasure_

    show("concept-erasure's fit / ours", ratio_of(theirs, ours, 3), 2, at_most=False)
    transform = ratio_of(lambda: erasers["theirs"](x), lambda: erasers["ours"](X), 5)
    show("concept-erasure's transform / ours", transform, 5, at_most=False)
    out = np.empty_like(X)
    into = ratio_of(lambda: erasers["theirs"](x), lambda: erasers["ours"].transform(X, out=out), 5)
    show("the same, ours with out=", into, 5, at_most=False)


def plain_rounds(X: np.ndarray, y: np.ndarray, **options: float) -> np.ndarray:
    """INLP as one would write it: a fit of scikit-learn, a projected copy, and again."""
    basis = np.zeros((X.shape[1], 0), dtype=X.dtype)
    for _ in range(ROUNDS):
        model = LogisticRegression(max_iter=10_000, **options).fit(X - (X @ basis) @ basis.T, y)
        direction = model.coef_[0].astype(X.dtype)
        direction -= basis @ (basis.T @ direction)
        basis = np.column_stack([basis, direction / np.linalg.norm(direction)])
    return basis


def inlp() -> None:
    words = load_glove().train
    X, y = words.X, words.y
    wide, ridge = X.astype(np.float64), 1e-4 * float(X.astype(np.float64).var(axis=0).mean())
    equal = {"C": 1 / (len(X) * ridge), "tol": 1e-10}  # our ridge, and as exact

    def ours() -> object:
        return ex.INLP(ROUNDS).fit(X, y)

    what = f"{ROUNDS} fits of LogisticRegression / INLP({ROUNDS}), {len(X):,} x {X.shape[1]}"
    with threadpool_limits(THREADS):
        show(
            f"{what}, as installed", ratio_of(lambda: plain_rounds(X, y), ours, 5), 5, at_most=False
        )
    with threadpool_limits(1):
        loose, processor = both_ratios_of(lambda: plain_rounds(X, y), ours, 10)
        exact = both_ratios_of(
            lambda: plain_rounds(wide, y, **equal), lambda: ex.INLP(ROUNDS, tol=0.0).fit(X, y), 3
        )[1]
    show("the same, one thread each", loose, 1, at_most=False)
    show("the same, one thread each, processor", processor, 1, at_most=False)
    show("the same, both to the end: our ridge, gradients of 1e-10", exact, 1, at_most=False)
    inlp_accuracy()
    print(f"INLP({ROUNDS}): {best_of(ours, 3):.3g} s on this machine, now")


def inlp_accuracy() -> None:
    """Probes after rounds to the default tolerance and after exact ones, on words of the test."""
    words = load_glove()
    A, B = words.train, words.test
    scores = {}
    for tol in (1e-6, 0.0):
        erasure = ex.INLP(ROUNDS, tol=tol).fit(A.X, A.y).erasure_
        probe = LogisticRegression(max_iter=10_000).fit(erasure(A.X), A.y)
        scores[tol] = probe.score(erasure(B.X), B.y)
    noise = float(np.sqrt(0.25 / len(B.y)))
    apart = abs(scores[1e-6] - scores[0.0])
    claim = f"INLP({ROUNDS}): probe {scores[1e-6]:.4f}, after exact rounds {scores[0.0]:.4f}, apart"
    show(claim, apart, noise)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--package-path", help="folder that holds the package concept_erasure")
    arguments.add_argument("--rows", type=int, default=200_000)
    given = arguments.parse_args()
    print(machine())
    if given.package_path:
        sys.path.insert(0, given.package_path)
    with threadpool_limits(THREADS):
        X, y = rows(given.rows)
        leace(X, y)
        leace_of_the_authors(X, y)
    inlp()


if __name__ == "__main__":
    main()
