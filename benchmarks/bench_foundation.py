"""Closed-form fit, moments and transform against the passes over memory they cannot do without.

200,000 x 768 float32. Every figure is a ratio of two timings of this one run.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from common import best_of, ratio_of, show

import expunge as ex
from expunge.inputs import check_concept


def main() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200_000, 768), dtype=np.float32)
    y = rng.integers(0, 2, len(X))
    X += 0.3 * y[:, None].astype(np.float32)
    concept = check_concept(y, len(X))

    fit = ratio_of(lambda: ex.RLACE(rank=1).fit(X, y), lambda: X.sum(axis=0), 10)
    show("binary closed-form fit with certificate / X.sum(axis=0)", fit, 6)

    moments = ratio_of(lambda: ex.Moments.of(X, concept), lambda: X.T @ X)
    show("moments with the d x d matrix / X.T @ X", moments, 1.3)

    out = np.zeros_like(X)
    for rank in (1, 9):
        Q = np.linalg.qr(rng.normal(size=(X.shape[1], rank)))[0]
        erasure = ex.Erasure(Q, Q.T, center=X[:1000].mean(axis=0))
        into = ratio_of(lambda e=erasure: e.transform(X, out=out), lambda: np.copyto(out, X), 10)
        show(f"transform at rank {rank} with out= / np.copyto", into, 2.5 if rank == 1 else 5)
        new = ratio_of(lambda e=erasure: e.transform(X), lambda: X.copy(), 10)
        show(f"transform at rank {rank} into a new array / X.copy()", new, 2.5 if rank == 1 else 5)

    ours, theirs = (import_time(name) for name in ("expunge", "sklearn.linear_model"))
    show("import expunge / import sklearn.linear_model", ours / theirs, 1.5)


def import_time(module: str) -> float:
    command = [sys.executable, "-c", f"import {module}"]
    plain = best_of(lambda: subprocess.run([sys.executable, "-c", ""], check=True), 5)
    return best_of(lambda: subprocess.run(command, check=True), 7) - plain


if __name__ == "__main__":
    main()
