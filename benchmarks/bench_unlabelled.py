"""What is left on new rows after few labels, alone and with rows that have none.

AUC of a ridge probe trained and tested on rows that the eraser has not seen, after RLACE: half is
nothing. Its ridge is chosen by cross-validation on its training rows. ``--draws`` sets how often
the labelled rows are drawn anew (20). First it times fits in which every row has a label, with the
feature asked for (``missing="unlabelled"``) and without.

Word vectors come with the package. ``--bios FILE.npz --bios-labels FILE.jsonl.gz``, ``--adult
FILE.csv`` and ``--faces FILE.npz`` add vectors of biographies, a census table and images.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator

import numpy as np
from common import both_ratios_of, machine, show
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

import expunge as ex
from expunge.data import load_glove

Array = NDArray[np.float64]
Split = tuple[Array, Array, Array, Array, Array, Array]  # to fit, to train a probe, to test it
RIDGES = 10.0 ** np.arange(-4.0, 3.1, 0.5)
LABELS = (300, 1000)


class RidgeProbe:
    """Ridge regression on rows without some directions, for every ridge and any directions.

    One decomposition of the rows serves all erasers: with H = (AᵀA + λ)⁻¹ and orthonormal columns
    U, the coefficients of least squares on A(1 - UUᵀ) are w - HU (UᵀHU)⁻¹ Uᵀw with w = HAᵀt.
    """

    def __init__(self, X: Array, y: Array, new: Array) -> None:
        self.mean = X.mean(axis=0)
        A = X - self.mean
        self.new, self.target = new - self.mean, A.T @ (y - y.mean())
        if len(A) < A.shape[1]:
            values, V = np.linalg.eigh(A @ A.T)
            there = values > 1e-12 * values[-1]
            self.values, self.V = values[there], A.T @ (V[:, there] / np.sqrt(values[there]))
        else:
            self.values, self.V = np.linalg.eigh(A.T @ A)
        self.values = np.maximum(self.values, 0.0)

    def scores(self, U: Array) -> list[Array]:
        """Of the new rows, for every ridge; U (d x k) are the directions erased."""
        R = np.column_stack([self.target, U])
        inside = self.V.T @ R
        outside = R - self.V @ inside
        spread = self.values.sum() - float(np.sum(self.values[:, None] * inside[:, 1:] ** 2))
        found = []
        for ridge in RIDGES:
            level = ridge * spread / min(len(R), len(self.values)) + 1e-12 * self.values[-1]
            H = self.V @ (inside / (self.values + level)[:, None]) + outside / level
            w, HU = H[:, 0], H[:, 1:]
            found.append(self.new @ (w - HU @ np.linalg.solve(U.T @ HU, U.T @ w)))
        return found


class Judge:
    """AUC on test rows of a ridge probe of other new rows, its ridge chosen by cross-validation."""

    def __init__(self, X: Array, y: Array, test: Array, test_y: Array) -> None:
        cuts = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
        self.held = [y[b] for _, b in cuts]
        self.folds = [RidgeProbe(X[a], y[a], X[b]) for a, b in cuts]
        self.last, self.test_y = RidgeProbe(X, y, test), test_y

    def auc(self, U: Array) -> float:
        """After the directions U (d x k) were erased."""
        total = np.zeros(len(RIDGES))
        for fold, truth in zip(self.folds, self.held, strict=True):
            total += [roc_auc_score(truth, s) for s in fold.scores(U)]
        return float(roc_auc_score(self.test_y, self.last.scores(U)[int(np.argmax(total))]))

    def after(self, eraser: ex.RLACE) -> float:
        """After a projection."""
        assert eraser.erasure_.is_orthogonal
        return self.auc(np.asarray(eraser.erasure_.basis).T)


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


def overhead() -> None:
    """What looking for rows without labels costs where there are none."""
    rng = np.random.default_rng(0)
    for n, d in ((5_000, 100), (50_000, 300)):
        y = rng.integers(0, 2, n)
        X = rng.normal(size=(n, d)) + np.outer(y, np.eye(d)[0])
        for method in (ex.RLACE, ex.LEACE, ex.MeanProjection):
            wall, processor = both_ratios_of(
                lambda m=method, X=X, y=y: m().fit(X, y, missing="unlabelled"),  # type: ignore[misc]
                lambda m=method, X=X, y=y: m().fit(X, y),  # type: ignore[misc]
                15,
            )
            claim = f"{method.__name__}, {n:,} x {d}: all rows labelled, over a plain fit"
            show(f"{claim}, processor ({wall:.2f} on the wall)", processor, 1.1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=20)
    for name in ("bios", "bios-labels", "adult", "faces"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--only-overhead", action="store_true", help="stop after the timings")
    parser.add_argument("--no-words", action="store_true", help="leave the word vectors out")
    given = parser.parse_args()
    print(machine())
    overhead()
    if given.only_overhead:
        return
    print(f"{'':24}{'labels':>8}{'alone':>16}{'with the rest':>16}{'3 x labels':>12}{'worth':>8}")
    warnings.simplefilter("ignore", ex.PoolDiffers)
    for number, (name, split) in enumerate(data_sets(given)):
        if given.no_words and number == 0:
            continue
        X, y = split[:2]
        judge = Judge(*split[2:])
        before = judge.auc(np.zeros((X.shape[1], 0)))
        whole = judge.after(ex.RLACE().fit(X, y.astype(int)))
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
                found.append([*(judge.after(e) for e in (alone, helped, more)), worth])
            mean, error = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(len(found))
            shown = "".join(f"{mean[k]:10.3f} ±{error[k]:.3f}" for k in (0, 1))
            print(f"{'':24}{n:8}{shown}{mean[2]:12.3f}{mean[3]:8,.0f}", flush=True)


if __name__ == "__main__":
    main()
