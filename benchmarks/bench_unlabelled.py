"""What is left on new rows after few labels, alone and with rows that have none.

AUC of a ridge probe trained and tested on rows that the eraser has not seen, after RLACE: half is
nothing. Its ridge is chosen by cross-validation on its training rows. ``--draws`` sets how often
the labelled rows are drawn anew (20).

Word vectors come with the package. ``--bios FILE.npz --bios-labels FILE.jsonl.gz``, ``--adult
FILE.csv`` and ``--faces FILE.npz`` add vectors of biographies, a census table and images.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator

import numpy as np
from common import machine
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

import expunge as ex
from expunge.data import load_glove

Array = NDArray[np.float64]
Split = tuple[Array, Array, Array, Array, Array, Array]  # to fit, to train a probe, to test it
RIDGES = 10.0 ** np.arange(-4.0, 3.1, 0.5)
LABELS = (300, 1000)


def scores(X: Array, y: Array, new: Array) -> list[Array]:
    """Ridge regression for every ridge, by one decomposition."""
    mean = X.mean(axis=0)
    A, t, B = X - mean, y - y.mean(), new - mean
    if len(A) < A.shape[1]:
        values, V = np.linalg.eigh(A @ A.T)
        left, right = (B @ A.T) @ V, V.T @ t
    else:
        values, V = np.linalg.eigh(A.T @ A)
        left, right = B @ V, V.T @ (A.T @ t)
    values = np.maximum(values, 0.0)
    floor = 1e-12 * values[-1]
    return [left @ (right / (values + ridge * values.mean() + floor)) for ridge in RIDGES]


def probe(X: Array, y: Array, new: Array, new_y: Array) -> float:
    """AUC on the new rows of the ridge that cross-validation chooses."""
    total = np.zeros(len(RIDGES))
    for a, b in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        total += [roc_auc_score(y[b], s) for s in scores(X[a], y[a], X[b])]
    return float(roc_auc_score(new_y, scores(X, y, new)[int(np.argmax(total))]))


def cut(X: Array, y: Array, groups: NDArray[np.generic] | None = None) -> Split:
    """Half to fit, a quarter each to train and to test a probe; no group in two of them."""
    ids = np.arange(len(X)) if groups is None else np.unique(groups, return_inverse=True)[1]
    place = np.random.default_rng(0).random(ids.max() + 1)[ids]
    a, c = place < 0.5, place > 0.75
    b = ~a & ~c
    return X[a], y[a], X[b], y[b], X[c], y[c]


def data_sets(given: argparse.Namespace) -> Iterator[tuple[str, Split]]:
    glove = load_glove()
    parts = (glove.train, glove.dev, glove.test)
    yield (
        "word vectors, gender",
        tuple(  # type: ignore[misc]
            np.asarray(values, float) for part in parts for values in (part.X, part.y)
        ),
    )
    if given.bios:
        import pandas as pd

        table = pd.read_json(given.bios_labels, lines=True)
        some = table.profession.isin(["athlete", "politician", "artist"]).to_numpy()
        X = np.load(given.bios)["mean"][some].astype(float)
        yield "biographies, gender", cut(X, (table.gender[some].str[0] == "f").to_numpy(float))
    if given.adult:
        from bench_audit_tables import adult_table

        X, y = adult_table(given.adult)
        X = X[:, (np.median(X, axis=0) != X).mean(axis=0) > 0.01]  # without rare categories
        some = np.random.default_rng(1).permutation(len(X))[:16_000]
        yield "census, sex", cut((X[some] / X.std(axis=0)), y[some].astype(float))
    if given.faces:
        images = np.load(given.faces)
        j = list(images["attr_names"].astype(str)).index("Smiling")
        share = images["attr_prob"][:, j].astype(float)
        sure = (share > 0.8) | (share < 0.2)
        X = images["images"][sure].reshape(int(sure.sum()), -1) / 255.0
        yield "faces, smile", cut(X, (share[sure] > 0.5).astype(float), images["person_id"][sure])


def left(eraser: ex.RLACE, split: Split) -> float:
    _, _, new, new_y, test, test_y = split
    return probe(eraser.transform(new), new_y, eraser.transform(test), test_y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=20)
    for name in ("bios", "bios-labels", "adult", "faces"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--no-words", action="store_true", help="leave the word vectors out")
    given = parser.parse_args()
    print(machine())
    print(f"{'':24}{'labels':>8}{'alone':>16}{'with the rest':>16}{'3 x labels':>12}{'worth':>8}")
    warnings.simplefilter("ignore", ex.PoolDiffers)
    for number, (name, split) in enumerate(data_sets(given)):
        if given.no_words and number == 0:
            continue
        X, y = split[:2]
        before = probe(split[2], split[3], split[4], split[5])
        whole = left(ex.RLACE().fit(X, y.astype(int)), split)
        print(f"{name} (before {before:.3f}, all {len(X):,} labels {whole:.3f})")
        for n in LABELS:
            found = []
            for draw in range(given.draws):
                order = np.random.default_rng(draw).permutation(len(X))
                few, rest, thrice = order[:n], order[n:], order[: 3 * n]
                alone = ex.RLACE().fit(X[few], y[few].astype(int))
                helped = ex.RLACE().fit(X[few], y[few].astype(int), unlabelled=X[rest])
                more = ex.RLACE().fit(X[thrice], y[thrice].astype(int))
                worth = n / helped.pool_.variance
                found.append([*(left(e, split) for e in (alone, helped, more)), worth])
            mean, error = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(len(found))
            shown = "".join(f"{mean[k]:10.3f} ±{error[k]:.3f}" for k in (0, 1))
            print(f"{'':24}{n:8}{shown}{mean[2]:12.3f}{mean[3]:8,.0f}", flush=True)


if __name__ == "__main__":
    main()
