"""How often the interval of a plan holds on real data: word vectors, and biographies if given.

From pilots drawn at random `expunge.plan_labels` says at how many labels a linear probe on new rows
is at a target, and between which numbers nineteen of twenty fits pass it. Here fits with so many
labels are made, and what a probe finds on new rows is measured: the balanced accuracy Φ(½√q), q the
squared distance of the class means of erased new rows in units of the spread within classes, with
what sampling error of the new rows adds taken off.

``--pilots`` sets how many pilots are drawn (20), ``--fits`` how many fits are made at each number
(20). ``--bios FILE.npz --bios-labels FILE.jsonl.gz`` add vectors of biographies, in their 50
leading principal directions: a pilot must have more rows than columns.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
import scipy.stats
from common import machine
from numpy.typing import NDArray

import expunge as ex
from expunge.audit.separation import separations
from expunge.data import load_glove
from expunge.inputs import check_concept, check_rows

Array = NDArray[np.float64]
DIRECTIONS = 50


def measured(eraser: ex.RLACE, new: Array, new_y: Array) -> float:
    """Balanced accuracy of the best linear probe with unlimited rows, from Δ² of new rows."""
    clean = check_rows(eraser.transform(new))
    (part,) = separations(clean.moments(check_concept(new_y, len(new_y)))).values()
    assert part.squared is not None
    return float(scipy.stats.norm.cdf(0.5 * np.sqrt(part.squared)))


def data_sets(given: argparse.Namespace) -> Iterator[tuple[str, Array, Array, tuple[float, ...]]]:
    glove = load_glove()
    X = np.vstack([glove.train.X, glove.dev.X, glove.test.X]).astype(float)
    yield "word vectors", X, np.concatenate([glove.train.y, glove.dev.y, glove.test.y]), (0.6, 0.65)
    if given.bios:
        import pandas as pd

        table = pd.read_json(given.bios_labels, lines=True)
        X = np.load(given.bios)["mean"].astype(float)
        X -= X.mean(axis=0)
        X = X @ np.linalg.svd(X, full_matrices=False)[2][:DIRECTIONS].T
        yield "biographies", X, (table.gender.str[0] == "f").to_numpy(int), (0.6, 0.65)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pilots", type=int, default=20)
    parser.add_argument("--fits", type=int, default=20)
    parser.add_argument("--rows", type=int, default=500, help="of a pilot")
    for name in ("bios", "bios-labels"):
        parser.add_argument(f"--{name}", default="")
    given = parser.parse_args()
    print(machine())
    print(
        "share of fits that stay at the target or below, at the numbers of labels that a plan says"
    )
    for name, X, y, targets in data_sets(given):
        for target in targets:
            found = []
            for pilot in range(given.pilots):
                rng = np.random.default_rng(pilot)
                order = rng.permutation(len(X))
                half, new = order[: len(X) // 2], order[len(X) // 2 :]
                few = half[: given.rows]
                plan = ex.plan_labels(X[few], y[few], target)
                ends = plan.labels_low, plan.labels, plan.labels_high
                if None in ends or max(map(int, filter(None, ends))) > len(half):
                    continue
                below, values = [], []
                for n in map(int, filter(None, ends)):
                    left = []
                    for _ in range(given.fits):
                        some = rng.permutation(half)[:n]
                        left.append(measured(ex.RLACE().fit(X[some], y[some]), X[new], y[new]))
                    below.append(np.mean(np.array(left) <= target))
                    values.append(np.mean(left))
                found.append([*map(float, filter(None, ends)), *below, *values])
            if not found:
                print(f"{name}, target {target:.0%}: the plans ask for more labels than there are")
                continue
            low, middle, high, *rest = np.mean(found, axis=0)
            print(
                f"{name}, target {target:.0%}, {len(found)} pilots of {given.rows}: "
                f"{rest[0]:.0%} at {low:,.0f} (5 % meant), {rest[1]:.0%} at {middle:,.0f} (half), "
                f"{rest[2]:.0%} at {high:,.0f} (95 %), so {rest[2] - rest[0]:.0%} between (90 %); "
                f"measured there {rest[3]:.3f}, {rest[4]:.3f}, {rest[5]:.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
