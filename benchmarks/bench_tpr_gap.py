"""How often the interval of the RMS gap in true positive rate holds, for gaps that are known.

Rows of each class and group are drawn as often as the table says, and classified rightly at the
given rates. Printed are the true RMS gap, the mean of the estimates, the share of 95 % intervals
that hold, that are too high and too low, and the medians of the limits. ``--repeats`` draws (1000).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from expunge.metrics.fairness import TprGaps, tpr_gaps

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

TWO, SMALL = [[880, 1410], [110, 600]], [[40, 60], [12, 30]]  # the first as in the Adult census
FIVE = [[1000, 300, 100, 20, 8], [400, 150, 40, 12, 6]]
TEN = np.outer([300, 100, 200], [1, 1, 1, 1, 1, 1, 0.3, 0.2, 0.1, 0.08]).astype(int)


def tables() -> Iterator[tuple[str, Counts, Array]]:
    """Names, rows of each class in each group, and true positive rates."""
    rng = np.random.default_rng(7)
    for name, counts, rates in (
        ("2 classes, 2 groups, large", TWO, [[0.97, 0.89], [0.42, 0.60]]),
        ("the same, small", TWO, [[0.93, 0.92], [0.46, 0.56]]),
        ("the same, none", TWO, [[0.93, 0.93], [0.50, 0.50]]),
        ("the same, few rows, large", SMALL, [[0.9, 0.6], [0.5, 0.8]]),
        ("the same, few rows, none", SMALL, [[0.9, 0.9], [0.5, 0.5]]),
        (
            "5 groups, 2 rare, large",
            FIVE,
            [[0.9, 0.6, 0.95, 0.5, 0.9], [0.6, 0.3, 0.6, 0.8, 0.2]],
        ),
        ("the same, small", FIVE, [[0.9, 0.85, 0.92, 0.8, 0.9], [0.6, 0.5, 0.65, 0.7, 0.5]]),
        ("the same, none", FIVE, [[0.9] * 5, [0.6] * 5]),
    ):
        yield name, np.array(counts), np.array(rates)
    level = np.array([[0.7], [0.6], [0.6]])
    yield "3 classes, 10 groups, large", TEN, level + rng.normal(0, 0.15, (3, 10)).clip(-0.3, 0.3)
    yield "the same, small", TEN, level + rng.normal(0, 0.05, (3, 10))
    yield "the same, none", TEN, np.tile(level, 10)
    many = np.stack([rng.integers(6, 60, 28), rng.integers(10, 400, 28)], axis=1)
    level, gap = rng.uniform(0.5, 0.85, (28, 1)), rng.normal(0, 0.07, (28, 1))
    yield "28 classes, 2 groups, large", many, np.hstack([level + gap, level - gap])
    yield "the same, small", many, np.hstack([level + gap / 4, level - gap / 4])
    yield "the same, none", many, np.hstack([level, level])


def gaps_of(counts: Counts, hits: Counts) -> TprGaps:
    cells = np.repeat(np.arange(counts.size), counts.ravel())
    true, group = np.divmod(cells, counts.shape[1])
    place = np.arange(len(cells)) - np.repeat(np.cumsum(counts) - counts.ravel(), counts.ravel())
    wrong = (true + 1) % len(counts)
    return tpr_gaps(true, np.where(place < hits.ravel()[cells], true, wrong), group)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=1000)
    repeats = parser.parse_args().repeats
    print("| | true RMS | mean estimate | holds | too high | too low | lower | upper |")
    print("|---|---|---|---|---|---|---|---|")
    for name, counts, rates in tables():
        true = gaps_of(counts * 1000, np.rint(counts * 1000 * rates).astype(int)).rms
        rng = np.random.default_rng(0)
        drawn = [gaps_of(counts, rng.binomial(counts, rates)) for _ in range(repeats)]
        low, high = np.array([found.rms_interval() for found in drawn]).T
        above, under = np.mean(low > true), np.mean(high < true)
        cells = [true, np.mean([found.rms for found in drawn]), 1 - above - under, above, under]
        cells += [np.median(low), np.median(high)]
        print(f"| {name} |", " | ".join(f"{cell:.3f}" for cell in cells), "|", flush=True)


if __name__ == "__main__":
    main()
