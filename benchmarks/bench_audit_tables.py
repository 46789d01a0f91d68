"""What the audit says of tables: whole numbers, rows that repeat, one class four times the other.

A table is made by code; ``--adult PATH`` adds the Adult census table (a csv file). ``--splits N``
sets how often each is cut in two at random (50), ``--only N`` takes one of the three cases, and
``--quick`` leaves out non-linear probes. Printed is how often the audit says what, for

- labels drawn at random: nothing is there, "found" is a false alarm;
- a leak that was not in the fit: a column of the new rows gives the class away in 55 % of them;
- the same in the exclusive-or of two columns, which no line can read.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

import expunge as ex

Table = tuple[NDArray[np.float64], NDArray[np.intp]]
MOST = 5_000  # rows in each half
FEWER = 2_500  # for random labels, where more rows only take more time
LEAK = 0.05  # over chance, in balanced accuracy


def court_table(n: int, seed: int) -> Table:
    """Age, counts of earlier charges and a few flags; four in five are of class 1."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.8).astype(np.intp)
    age = np.clip(18 + rng.gamma(1.6, 9.0, n), 18, 80).astype(int)
    priors = np.minimum(rng.geometric(0.28 - 0.06 * y, n) - 1, 30)
    young = np.minimum(rng.poisson(0.06, (n, 3)) * rng.integers(1, 4, (n, 3)), 9)
    flags = rng.random((n, 4)) < [0.65, 0.45, 0.5, 0.5]
    return np.column_stack([age, priors, young, flags]).astype(float), y


def adult_table(path: str) -> Table:
    """Numbers and one column for each category, without the sampling weight; sex is the concept."""
    import pandas as pd

    frame = pd.read_csv(path).dropna(axis=1, how="all")
    frame = frame[[c for c in frame.columns if c != "fnlwgt" and not c.startswith("Unnamed")]]
    y = frame.pop("sex").astype(str).str.strip().eq("Male").to_numpy().astype(np.intp)
    frame = frame.drop(columns=["relationship"], errors="ignore")  # husband and wife
    X = pd.get_dummies(frame, dtype=float)
    X = X.loc[:, X.std() > 0].to_numpy(dtype=float)
    rng = np.random.default_rng(0)
    return np.column_stack([X, rng.integers(0, 2, (len(X), 2))]), y  # two coins for the leaks


def halves(
    table: Table, most: int, splits: int
) -> Iterator[tuple[Table, Table, np.random.Generator]]:
    X, y = table
    for split in range(splits):
        rng = np.random.default_rng(split)
        order = rng.permutation(len(X))[: 2 * most]
        a, b = np.array_split(order, 2)
        yield (X[a], y[a]), (X[b], y[b]), rng


def lucky(rng: np.random.Generator, y: NDArray[np.intp]) -> NDArray[np.intp]:
    """A coin that agrees with the class in 55 % of rows."""
    return np.where(rng.random(len(y)) < 0.5 + LEAK, y, 1 - y)


def random_labels(fit: Table, new: Table, rng: np.random.Generator) -> tuple[Table, Table]:
    return (fit[0], rng.permutation(fit[1])), (new[0], rng.permutation(new[1]))


def linear_leak(fit: Table, new: Table, rng: np.random.Generator) -> tuple[Table, Table]:
    X = new[0].copy()
    X[:, -1] = lucky(rng, new[1])
    return fit, (X, new[1])


def hidden_leak(fit: Table, new: Table, rng: np.random.Generator) -> tuple[Table, Table]:
    parts = []
    for X, y in (fit, new):
        X = X.copy()
        X[:, -1] = (X[:, -2] + lucky(rng, y)) % 2
        parts.append((X, y))
    return parts[0], parts[1]


CASES: dict[str, Callable[[Table, Table, np.random.Generator], tuple[Table, Table]]] = {
    "random labels": random_labels,
    "leak of 5 points": linear_leak,
    "hidden leak of 5 points": hidden_leak,
}


def run(name: str, table: Table, asked: argparse.Namespace) -> None:
    """Cut, change, erase and audit, and count the verdicts."""
    splits, probes = asked.splits, "linear" if asked.quick else "default"
    cases = dict([list(CASES.items())[asked.only - 1]]) if asked.only else CASES
    values, counts = np.unique(table[0], axis=0, return_counts=True)
    alone = np.sum(counts == 1) / len(table[0])
    print(f"{name}: {len(table[0]):,} rows, {len(values):,} different, {alone:.0%} occur once")
    for case, change in cases.items():
        linear, nonlinear, kept, start = Counter(), Counter(), [], time.perf_counter()
        for fit, new, rng in halves(table, FEWER if change is random_labels else MOST, splits):
            (X, y), (X_new, y_new) = change(fit, new, rng)
            erasure = ex.LEACE().fit(X, y).erasure_
            a = ex.audit(erasure, X, y, X_new, y_new, probes=probes)
            linear[a.verdict.linear] += 1
            nonlinear[a.verdict.nonlinear] += 1
            kept.append(a.to_dict()["data"]["n_fresh"] / len(X_new))
        each = (time.perf_counter() - start) / splits
        print(f"  {case}, {splits} splits, {each:.1f} s each, {np.mean(kept):.1%} of new rows kept")
        for family, found in (("linear", linear), ("non-linear", nonlinear)):
            said = ", ".join(f"{word} {count}" for word, count in found.most_common())
            print(f"    {family}: {said}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--adult", metavar="PATH")
    parser.add_argument("--splits", type=int, default=50)
    parser.add_argument("--only", type=int, choices=(1, 2, 3))
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args()
    run("made by code", court_table(2 * MOST, 0), asked)
    if asked.adult:
        run("Adult", adult_table(asked.adult), asked)


if __name__ == "__main__":
    main()
