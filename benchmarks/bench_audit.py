"""The audit: what it finds on the word vectors, what it says of a planted leak, what it costs.

Run with ``--quick`` to leave out the 200,000 x 768 rows.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from common import show

import expunge as ex
from expunge.data import load_glove


def word_vectors() -> None:
    """Rank-1 RLACE on the split of the demonstration, everything the audit has."""
    glove = load_glove()
    train, test = glove.train, glove.test
    eraser = ex.RLACE(1).fit(train.X, train.y)
    start, spent = time.perf_counter(), time.process_time()
    a = ex.audit(
        eraser,
        train.X,
        train.y,
        test.X,
        test.y,
        words=test.words,
        vocabulary=(glove.words, glove.vectors),
    )
    seconds, cpu = time.perf_counter() - start, time.process_time() - spent
    print(a, end="\n\n")
    content = a.to_dict()
    same, fresh = a.same_rows, a.fresh_rows
    assert same is not None
    assert fresh is not None
    assert a.residue is not None
    linear = same.after["linear"]
    show("GloVe, linear probes, same rows: excess over chance", linear.strongest.value - 0.5, 0.02)
    show("  upper limit of that", linear.strongest.high - 0.5, 0.02)
    found = fresh.after["linear"].strongest
    print(
        f"  fresh rows: {found.value:.4f} [{found.low:.4f}, {found.high:.4f}], expected "
        f"{a.residue.balanced_accuracy_here:.4f} (unlimited rows "
        f"{a.residue.balanced_accuracy:.4f})"
    )
    for protocol in (same, fresh):
        for probe in protocol.after["nonlinear"].probes[:2]:
            accuracy = probe.measures["accuracy"].value
            show(f"  {protocol.name}, {probe.name}: accuracy", accuracy, 0.85, at_most=False)
    clusters = content["v_measure"]
    for k, x, y in zip(
        clusters["before"]["clusters"],
        clusters["before"]["mean"],
        clusters["after"]["mean"],
        strict=True,
    ):
        show(f"  V-measure after / before, {k} clusters ({x:.3f} -> {y:.3f})", y / x, 1)
    for weat in content["association"]["weat"]:
        x, y = (weat[stage]["effect_size"] for stage in ("before", "after"))
        show(f"  WEAT {weat['name']}, |d| after / before ({x:.3f} -> {y:.3f})", abs(y / x), 1)
    similarity = content["association"]["similarity"]
    change = similarity["after"]["spearman"] - similarity["before"]["spearman"]
    show("  SimLex-999, change of the Spearman correlation", abs(change), 0.02)
    print(f"  7,350 + 4,500 words: {seconds:.1f} seconds, of the processors {cpu:.1f}")


def all_words() -> None:
    """The 15,000 labelled words, 10,500 of them in the fit."""
    glove = load_glove()
    X = np.vstack([glove.train.X, glove.dev.X])
    y = np.concatenate([glove.train.y, glove.dev.y])
    erasure = ex.RLACE(1).fit(X, y).erasure_
    start, spent = time.perf_counter(), time.process_time()
    a = ex.audit(erasure, X, y, glove.test.X, glove.test.y)
    seconds, cpu = time.perf_counter() - start, time.process_time() - spent
    print(a.verdict.headline)
    show("full audit of 15,000 x 100, seconds", seconds, 60)
    print(f"  processor seconds: {cpu:.1f}")


def planted_leak() -> None:
    """An eraser fitted on one half; the other half has 3 % more in another direction."""
    rng = np.random.default_rng(1)

    def draw(n: int, extra: float) -> tuple[np.ndarray, np.ndarray]:
        y = rng.integers(0, 2, n)
        X = rng.normal(size=(n, 10))
        X[:, 0] += 3 * y
        X[:, 1] += extra * y
        return X, y

    X, y = draw(30_000, 0.0)
    erasure = ex.RLACE().fit(X, y).erasure_
    for n_test in (20_000, 2_000, 200):
        a = ex.audit(erasure, X, y, *draw(n_test, 0.1505), probes="linear")
        print(f"planted leak of 3 %, {n_test:>6,} test rows: {a.verdict.headline}")


def large() -> None:
    """200,000 x 768 float32, of which 60,000 are for the test."""
    rng = np.random.default_rng(0)
    n, d = 200_000, 768
    y = rng.integers(0, 2, n)
    X = rng.standard_normal((n, d), dtype=np.float32) * np.linspace(2, 0.2, d, dtype=np.float32)
    X[:, :20] += 0.3 * y[:, None].astype(np.float32)
    X[:, 700] *= 1 + y
    cut = int(0.7 * n)
    erasure = ex.RLACE().fit(X[:cut], y[:cut]).erasure_
    start, spent = time.perf_counter(), time.process_time()
    a = ex.audit(erasure, X[:cut], y[:cut], X[cut:], y[cut:])
    seconds, cpu = time.perf_counter() - start, time.process_time() - spent
    print(a.verdict.headline)
    show("full audit of 200,000 x 768, seconds", seconds, 240)
    print(f"  processor seconds: {cpu:.1f}")


def main() -> None:
    word_vectors()
    all_words()
    planted_leak()
    if "--quick" not in sys.argv:
        large()


if __name__ == "__main__":
    main()
