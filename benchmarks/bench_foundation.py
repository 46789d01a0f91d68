"""Closed-form fit, moments and transform against the passes over memory they cannot do without.

200,000 x 768 float32. Every figure is a ratio of two timings of this one run.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from common import best_of, both_ratios_of, machine, ratio_of, show

import expunge as ex
from expunge.inputs import check_concept


def main() -> None:
    print(machine())
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200_000, 768), dtype=np.float32)
    y = rng.integers(0, 2, len(X))
    X += 0.3 * y[:, None].astype(np.float32)
    concept = check_concept(y, len(X))

    fit = ratio_of(lambda: ex.RLACE(rank=1).fit(X, y), lambda: X.sum(axis=0), 10)
    show("binary closed-form fit with certificate / X.sum(axis=0)", fit, 6)

    moments = ratio_of(lambda: ex.Moments.of(X, concept), lambda: X.T @ X)
    show("moments with the d x d matrix / X.T @ X", moments, 1.3)

    for rank in (1, 9):
        transform(X, rank, 2 if rank == 1 else 5)
    transform_half(X[:40_000].astype(np.float16))

    ours, theirs = (import_time(name) for name in ("expunge", "sklearn.linear_model"))
    show("import expunge / import sklearn.linear_model", ours / theirs, 1.5)


def an_erasure(X: np.ndarray, rank: int) -> ex.Erasure:
    Q = np.linalg.qr(np.random.default_rng(1).normal(size=(X.shape[1], rank)))[0]
    return ex.Erasure(Q, Q.T, center=X[:1000].mean(axis=0, dtype=np.float64))


def transform(X: np.ndarray, rank: int, target: float) -> None:
    """Into `out` and into a new array, against a copy; many short repeats of a part of X, too."""
    erasure = an_erasure(X, rank)
    for rows, repeats in ((X, 10), (X[:30_000], 60)):
        out = np.zeros_like(rows)
        what = f"{len(rows):,} rows: transform at rank {rank}"
        wall, processor = both_ratios_of(
            lambda e=erasure, A=rows, to=out: e.transform(A, out=to),
            lambda A=rows, to=out: np.copyto(to, A),
            repeats,
        )
        show(f"{what}, out= / np.copyto, wall", wall, target)
        show(f"{what}, out= / np.copyto, processor", processor, 2 * target)
        wall, processor = both_ratios_of(
            lambda e=erasure, A=rows: e.transform(A), lambda A=rows: A.copy(), repeats
        )
        show(f"{what}, new / X.copy(), wall", wall, target)
        show(f"{what}, new / X.copy(), processor", processor, 2 * target)


def transform_half(X: np.ndarray) -> None:
    """float16 against the conversion to float64 and back that NumPy offers, in one thread."""
    erasure, out = an_erasure(X, 1), np.zeros_like(X)
    room = np.empty((128, X.shape[1]))

    def convert() -> None:
        for lo in range(0, len(X), len(room)):
            part = room[: len(X[lo : lo + len(room)])]
            np.copyto(part, X[lo : lo + len(room)])
            np.copyto(out[lo : lo + len(room)], part, casting="same_kind")

    wall, processor = both_ratios_of(lambda: erasure.transform(X, out=out), convert, 10)
    show("float16: transform at rank 1, out= / conversion there and back, wall", wall, 2)
    show("float16: the same, processor", processor, 4)


def import_time(module: str) -> float:
    command = [sys.executable, "-c", f"import {module}"]
    plain = best_of(lambda: subprocess.run([sys.executable, "-c", ""], check=True), 5)
    return best_of(lambda: subprocess.run(command, check=True), 7) - plain


if __name__ == "__main__":
    main()
