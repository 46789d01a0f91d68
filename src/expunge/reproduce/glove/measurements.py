"""What is measured on word vectors, part by part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from expunge.audit.probe import Training
from expunge.audit.probes import PROBES
from expunge.data import LabelledWords, load_word_lists
from expunge.erasers import RLACE
from expunge.erasure import Erasure
from expunge.game.descent_ascent import DescentAscent, paper_settings
from expunge.inputs import check_concept
from expunge.linalg import Array
from expunge.metrics import (
    neighbour_changes,
    neighbour_overlap,
    pca_scatter,
    similarity_correlation,
    v_measure,
    weat_tests,
)
from expunge.reproduce.glove.labelled_words import GloveData, projection
from expunge.reproduce.runner.declaration import ExperimentPart, SkipPart
from expunge.reproduce.runner.experiment_results import Arrays
from expunge.reproduce.runner.runs import ExperimentRun

__all__ = ["NONLINEAR_PROBES", "PARTS", "ranks", "spectrum_rank"]

QUICK_RANKS = (1, 2, 4, 6, 10, 20)
QUICK_DESCENT_RANKS = (1, 6)
CLUSTERS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20)
QUICK_CLUSTERS = (2, 4, 8)
STARTS: tuple[Literal["center", "vertex"], ...] = ("center", "vertex")
SPECTRUM_RANK = 6
QUICK_ROWS, QUICK_STEPS, QUICK_SPECTRUM_STEPS = 2000, 10_000, 2000
NONLINEAR_PROBES = ("RBF-SVM", "MLP, 128 ReLU")
ENOUGH = 5e-4  # share of the label entropy a linear predictor may still gain when descent stops
SHOWN_POINTS = 2000
NEIGHBOURS = 3


def ranks(data: GloveData, *, quick: bool, method: str = "INLP") -> tuple[int, ...]:
    """The K that are tried for a method."""
    if method == "RLACE":
        wanted: Sequence[int] = QUICK_DESCENT_RANKS if quick else range(1, data.max_rank + 1)
        return tuple(rank for rank in wanted if rank <= data.max_rank)
    most = data.bases[method].shape[1] if method in data.bases else 0
    return tuple(rank for rank in (QUICK_RANKS if quick else range(1, most + 1)) if rank <= most)


def spectrum_rank(data: GloveData) -> int:
    """The K of the spectrum: 6, or one less than the width."""
    return min(SPECTRUM_RANK, data.max_rank)


def descent(run: ExperimentRun, rank: int) -> Arrays:
    """RLACE by descent-ascent with the paper's settings, stopped early by its certificate."""

    def make() -> dict[str, NDArray[Any]]:
        train, settings = run.data.glove.train, paper_settings("static")
        if run.quick:
            settings["max_iter"] = QUICK_STEPS
        eraser = RLACE(rank, **settings, tol=ENOUGH, random_state=1000 * run.seed + rank)
        eraser.fit(train.X, train.y)
        assert eraser.certificate_ is not None
        return {
            "basis": eraser.erasure_.left,
            "steps": np.array(eraser.history_[-1].step),
            "gap": np.array(eraser.certificate_.gap / eraser.certificate_.bound),
        }

    return run.kept(f"rlace-{rank:02d}", make)


def accuracy(run: ExperimentRun) -> dict[str, Any]:
    """Gender accuracy after RLACE by descent-ascent, for each K."""
    data: GloveData = run.data
    tried = ranks(data, quick=run.quick, method="RLACE")
    found: dict[str, list[float]] = {"fit": [], "fresh": [], "steps": [], "gap": []}
    for done, rank in enumerate(tried):
        run.tell(done / len(tried), f"(K = {rank})")
        kept = descent(run, rank)
        for protocol, value in gender_accuracy(data, projection(kept["basis"])).items():
            found[protocol].append(value)
        found["steps"].append(int(kept["steps"]))
        found["gap"].append(float(kept["gap"]))
    return {"ranks": tried, **found}


def accuracy_exact(run: ExperimentRun) -> dict[str, Any]:
    """The same for the methods that do not depend on a seed, and before any erasure."""
    data: GloveData = run.data
    share = float(data.glove.test.y.mean())
    found: dict[str, Any] = {
        "majority": max(share, 1 - share),
        "original": gender_accuracy(data, None),
    }
    work = [(name, k) for name in data.bases for k in ranks(data, quick=run.quick, method=name)]
    for name in data.bases:
        found[name] = {"ranks": [], "fit": [], "fresh": []}
    for done, (name, rank) in enumerate(work):
        run.tell(done / len(work), f"({name}, K = {rank})")
        values = gender_accuracy(data, projection(data.bases[name][:, :rank]))
        for key, value in {"ranks": rank, **values}.items():
            found[name][key].append(value)
    return found


def gender_accuracy(data: GloveData, erasure: Erasure | None) -> dict[str, float]:
    """Accuracy on test words of a logistic regression after an erasure.

    Returns
    -------
    dict
        "fit": trained on the words of the fit, as in the paper; "fresh": trained on development
        words, which the erasure has not seen.
    """
    from sklearn.linear_model import LogisticRegression

    glove = data.glove
    X_test = _erased(erasure, glove.test.X)
    found = {}
    for protocol, words in (("fit", glove.train), ("fresh", glove.dev)):
        probe = LogisticRegression(max_iter=2000).fit(_erased(erasure, words.X), words.y)
        found[protocol] = float(probe.score(X_test, glove.test.y))
    return found


def words(run: ExperimentRun) -> dict[str, Any]:
    """Association tests and SimLex-999 after rank-1 RLACE by descent-ascent."""
    return {"RLACE": word_measures(run.data, projection(descent(run, 1)["basis"]))}


def words_exact(run: ExperimentRun) -> dict[str, Any]:
    """The same before any erasure and after the methods that do not depend on a seed."""
    data: GloveData = run.data
    return {
        name: word_measures(data, None if basis is None else projection(basis[:, :1]))
        for name, basis in {"original": None, **data.bases}.items()
    }


def word_measures(data: GloveData, erasure: Erasure | None) -> dict[str, Any]:
    """WEAT d and p of three tests, and the correlations with SimLex-999."""
    glove = data.glove
    vectors = _erased(erasure, glove.vectors)
    try:
        tests = weat_tests(vectors, glove.words)
        similarity = similarity_correlation(vectors, glove.words)
    except ValueError as error:
        raise SkipPart(str(error)) from error
    return {
        "weat": {
            test.name: {
                "d": test.weat.effect_size,
                "p": test.weat.p_value,
                "missing": list(test.missing),
            }
            for test in tests
        },
        "simlex": {
            "pearson": similarity.pearson,
            "spearman": similarity.spearman,
            "pairs": similarity.n_used,
        },
    }


def clusters(run: ExperimentRun) -> dict[str, Any]:
    """V-measure of k-means clusters of the test words against gender, after rank-1 erasures."""
    data: GloveData = run.data
    test = data.glove.test
    counts = [k for k in (QUICK_CLUSTERS if run.quick else CLUSTERS) if k <= len(test)]
    bases = {"original": None, "RLACE": descent(run, 1)["basis"], **data.bases}
    found: dict[str, Any] = {"clusters": counts}
    for name, basis in bases.items():
        X = _erased(None if basis is None else projection(basis[:, :1]), test.X)
        measured = v_measure(
            X, test.y, counts, runs=1, max_rows=max(len(test), 2), random_state=run.seed
        )
        found[name] = list(measured.mean)
    return found


def scatter(run: ExperimentRun) -> dict[str, Any]:
    """Test words on their two leading principal axes, before and after rank-1 RLACE."""
    test: LabelledWords = run.data.glove.test
    after = projection(descent(run, 1)["basis"]).transform(test.X)
    found = pca_scatter(test.X, after, max_rows=SHOWN_POINTS, random_state=run.seed)
    run.kept(
        "scatter",
        lambda: {"before": found.before, "after": found.after, "y": test.y[found.rows]},
    )
    return {
        "explained_before": list(found.explained_before),
        "explained_after": list(found.explained_after),
        "points": len(found.rows),
    }


def neighbours(run: ExperimentRun) -> dict[str, Any]:
    """The nearest words of some words before and after rank-1 RLACE; how many neighbours stay."""
    glove = run.data.glove
    queries = [word for word in load_word_lists().neighbour_words if word in glove]
    if not queries:
        raise SkipPart("none of the fifteen words is in the vocabulary")
    after = projection(descent(run, 1)["basis"]).transform(glove.vectors)
    k = min(NEIGHBOURS, len(glove) - 1)
    changes = neighbour_changes(glove.vectors, after, glove.words, queries, k=k)
    return {
        "words": {change.word: change.to_dict() for change in changes},
        "overlap_10": neighbour_overlap(
            glove.vectors, after, min(10, len(glove) - 1), random_state=0
        ),
    }


def nonlinear(run: ExperimentRun) -> dict[str, Any]:
    """Gender accuracy of non-linear probes after rank-1 RLACE."""
    return nonlinear_accuracy(run, projection(descent(run, 1)["basis"]))


def nonlinear_before(run: ExperimentRun) -> dict[str, Any]:
    """The same before."""
    return nonlinear_accuracy(run, None)


def nonlinear_accuracy(run: ExperimentRun, erasure: Erasure | None) -> dict[str, float]:
    """Accuracy on test words of a kernel machine and a small network trained on words of the fit.

    Rows are centred, and divided by their overall spread, for both.
    """
    train, test = run.data.glove.train, run.data.glove.test
    used = slice(QUICK_ROWS if run.quick else None)
    X, y = _erased(erasure, train.X[used]).astype(np.float64), train.y[used]
    center, unit = X.mean(axis=0), float(np.sqrt(X.var(axis=0).mean()))
    X_test = (_erased(erasure, test.X) - center) / unit
    training = Training((X - center) / unit, check_concept(y, len(y), owner="a probe"))
    return {
        name: float(
            np.mean(PROBES[name].score(training, X_test, run.seed).values.argmax(axis=1) == test.y)
        )
        for name in NONLINEAR_PROBES
    }


def spectrum(run: ExperimentRun) -> dict[str, Any]:
    """Eigenvalues of the relaxed eraser before rounding, from two starts."""
    train, rank = run.data.glove.train, spectrum_rank(run.data)
    settings = paper_settings("static")
    if run.quick:
        settings["max_iter"] = QUICK_SPECTRUM_STEPS
    found: dict[str, Any] = {"rank": rank}
    for done, start in enumerate(STARTS):
        run.tell(done / len(STARTS), f"(start: {start})")
        settings["solver"] = DescentAscent(start=start)
        eraser = RLACE(rank, **settings, tol=0, random_state=run.seed).fit(train.X, train.y)
        found[start] = eraser.spectrum_
    return found


def angles(run: ExperimentRun) -> dict[str, Any]:
    """Principal angles, in degrees, between the subspaces that RLACE and INLP remove."""
    data: GloveData = run.data
    tried = ranks(data, quick=run.quick, method="RLACE")
    inlp, exact = data.bases["INLP"], data.bases["RLACE exact"]
    return {
        "ranks": tried,
        "RLACE": [degrees(descent(run, k)["basis"], inlp[:, :k]) for k in tried],
        "RLACE exact": [degrees(exact[:, :k], inlp[:, :k]) for k in tried],
    }


def degrees(A: Array, B: Array) -> list[float]:
    """Principal angles between the spans of the columns of A and B, ascending."""
    found: list[float] = np.sort(np.degrees(scipy.linalg.subspace_angles(A, B))).tolist()
    return found


def _erased(erasure: Erasure | None, X: NDArray[Any]) -> NDArray[Any]:
    return X if erasure is None else erasure.transform(X)


PARTS = (
    ExperimentPart("accuracy", "gender accuracy after RLACE", accuracy, weight=110),
    ExperimentPart("accuracy_exact", "gender accuracy after other methods", accuracy_exact, 1, 3),
    ExperimentPart("words", "associations and SimLex", words),
    ExperimentPart("words_exact", "associations and SimLex, other methods", words_exact, 1),
    ExperimentPart("clusters", "clusters by gender", clusters, weight=2),
    ExperimentPart("scatter", "picture of the words", scatter, 1),
    ExperimentPart("neighbours", "neighbours", neighbours, 1),
    ExperimentPart("nonlinear", "non-linear probes", nonlinear, weight=4),
    ExperimentPart("nonlinear_before", "non-linear probes before", nonlinear_before, 1, 4),
    ExperimentPart("spectrum", "spectrum before rounding", spectrum, 3, 50),
    ExperimentPart("angles", "angles between RLACE and INLP", angles),
)
