"""What the paper's experiment on biographies costs at its own size, from measured parts.

255,710 training rows of 768 columns, two classes. RLACE is run whole, by the closed form and by the
paper's 50,000 steps. INLP is timed on a quarter of the rows for 2 and 6 rounds, which gives the
cost of one more round, and stretched to all rows and 50 rounds. Training BERT is timed on a model
of its shape with random weights, which costs the same as one with learned weights, and stretched to
70,000 batches of ten.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
from common import best_of

import expunge as ex
from expunge.audit.linear_probes import logistic_scores
from expunge.audit.probe import Training
from expunge.inputs import check_concept

N_TRAIN, N_TEST, N_ALL, WIDTH = 255_710, 98_344, 393_423, 768
STEPS, ROUNDS = 50_000, 50
BATCHES, BATCH, TOKENS = 70_000, 10, 128


def rows(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose variances fall off as those of a language model do; gender in 60 columns."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.4648).astype(int)
    X = rng.standard_normal((n, WIDTH), dtype=np.float32)
    X[:, :60] += np.float32(0.45) * (2 * y[:, None] - 1).astype(np.float32)
    X *= np.linspace(1.0, 0.1, WIDTH, dtype=np.float32)
    return X, y


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ex.NotConverged)  # stopped early on purpose
        work()
    return time.perf_counter() - start


def stretched(work: Callable[[int], object], short: int, long: int, asked: int) -> float:
    """Time of `asked` units from the times of a short and a long run."""
    first, second = seconds(lambda: work(short)), seconds(lambda: work(long))
    return second + (second - first) / (long - short) * (asked - long)


def told(what: str, cost: float, unit: float, how: str) -> None:
    time_text = f"{cost:7.1f} s  " if cost < 120 else f"{cost / 60:7.1f} min"
    print(f"{what:<58} {time_text} {cost / unit:11,.1f} X.T @ X   {how}", flush=True)


def rlace(X: np.ndarray, y: np.ndarray, unit: float) -> None:
    told("RLACE, rank 1, closed form", seconds(lambda: ex.RLACE(1).fit(X, y)), unit, "measured")
    whole = {**ex.paper_settings("deep"), "tol": 0}
    cost = seconds(lambda: ex.RLACE(1, **whole).fit(X, y))
    told(f"RLACE, rank 1, {STEPS:,} steps of descent-ascent", cost, unit, "measured")


def inlp(X: np.ndarray, y: np.ndarray, unit: float) -> None:
    cost = stretched(lambda rank: ex.INLP(rank).fit(X, y), 2, 6, ROUNDS) * N_TRAIN / len(X)
    told(f"INLP, rank {ROUNDS}", cost, unit, f"from 6 rounds on {len(X):,} rows")


def classifiers(X: np.ndarray, y: np.ndarray, unit: float) -> None:
    professions = np.random.default_rng(1).integers(0, 28, len(X))
    X = X + (np.eye(28, WIDTH, k=60, dtype=np.float32) * 1.5)[professions]
    test = X[:1000].astype(np.float64)
    for name, labels, ridge in (("gender", y, 1e-4), ("profession", professions, 1e-3)):
        concept = check_concept(labels, len(labels), concept_type="classes")
        cost = seconds(lambda c=concept, r=ridge: logistic_scores(Training(X, c), test, r))
        cost *= N_TRAIN / len(X)
        told(f"classifier of {name}, each", cost, unit, f"from {len(X):,} rows")


def training(unit: float) -> None:
    import torch
    from transformers import BertConfig, BertModel

    model = BertModel(BertConfig()).train()
    optimiser = torch.optim.SGD(model.parameters(), lr=5e-4, momentum=0.9)
    tokens = torch.randint(1000, 30_000, (BATCH, TOKENS))

    def steps(count: int) -> None:
        for _ in range(count):
            optimiser.zero_grad()
            model(input_ids=tokens).last_hidden_state[:, 0].square().mean().backward()
            optimiser.step()

    steps(1)
    cost = seconds(lambda: steps(4)) / 4 * BATCHES
    told(f"BERT: {BATCHES:,} batches of {BATCH}, {TOKENS} tokens", cost, unit, "from 4 batches")
    with torch.inference_mode():
        once = seconds(lambda: [model.eval()(input_ids=tokens) for _ in range(4)]) / (4 * BATCH)
    told(f"BERT: encode {N_ALL:,} texts of {TOKENS} tokens", once * N_ALL, unit, "from 40 texts")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=N_TRAIN // 4, help="rows to measure on")
    parser.add_argument("--without-bert", action="store_true")
    options = parser.parse_args()
    X, y = rows(N_TRAIN)
    unit = best_of(lambda: X.T @ X, 3)
    print(f"{N_TRAIN:,} x {WIDTH} float32; X.T @ X takes {unit:.2f} s")
    rlace(X, y, unit)
    X, y = X[: options.rows].copy(), y[: options.rows]
    inlp(X, y, unit)
    classifiers(X, y, unit)
    if not options.without_bert:
        training(unit)


if __name__ == "__main__":
    main()
