"""Probes at work: the two ways of probing, which must never be confused, and the choice of one.

*Same rows*: a probe learns from the rows the eraser was fitted on and is tested on new rows. An
exact eraser is at chance there by construction. *Fresh rows*: the probe learns from rows that the
eraser has never seen as well, and is tested on others of them, in turns (cross-fitting).

The strongest of many probes is chosen inside the rows they learn from, by cross-fitting there. It
alone is then tested, so its limits are those of a single probe, however many there were.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from expunge.audit.families import statistic_of
from expunge.audit.measures import ProbeScores, measures_of
from expunge.audit.probe import Choosing, Probe, Training
from expunge.audit.sampling import fold_numbers
from expunge.concept import Concept
from expunge.linalg import Array
from expunge.parallel import n_threads, one_blas_thread

__all__ = ["cross_fitted", "transferred", "validated"]

Tell = Callable[[str], None]
MANY_CLASSES = "The number of unique classes is greater than 50%"  # as some concepts have
FOLDS = 3  # in which the rows to learn from are cut to choose a probe


def transferred(
    probes: Sequence[Probe],
    training: Training,
    X: NDArray[Any],
    seed: int,
    tell: Tell,
) -> list[ProbeScores]:
    """Scores on the rows X of probes that learnt from other rows.

    Linear probes use all cores by themselves. The others run side by side, each on one thread. A
    `Choosing` probe comes last and chooses inside the rows to learn from.
    """
    plain = [probe for probe in probes if not isinstance(probe, Choosing)]
    run = _side_by_side(plain, training, X, seed, tell)
    known = {probe.name: found for probe, found in zip(plain, run, strict=True)}
    rest = iter(run)
    return [
        _chosen(probe, known, training, X, seed, tell)
        if isinstance(probe, Choosing)
        else next(rest)
        for probe in probes
    ]


def _side_by_side(
    probes: Sequence[Probe], training: Training, X: NDArray[Any], seed: int, tell: Tell
) -> list[ProbeScores]:

    def run(probe: Probe) -> ProbeScores:
        tell(probe.name)
        return probe.scores(training, X, seed)

    def alone(probe: Probe) -> ProbeScores:
        with threadpool_limits(1, user_api="openmp"):  # holds for the thread that says so
            return run(probe)

    if all(probe.family == "linear" for probe in probes):
        return [run(probe) for probe in probes]
    with warnings.catch_warnings(), one_blas_thread(), ThreadPoolExecutor(n_threads()) as pool:
        warnings.simplefilter("ignore", ConvergenceWarning)  # filters are shared by all threads
        warnings.filterwarnings("ignore", MANY_CLASSES)
        return list(pool.map(alone, probes))


def cross_fitted(
    probes: Sequence[Probe],
    X: NDArray[Any],
    concept: Concept,
    folds: NDArray[np.intp],
    seed: int,
    tell: Tell,
    groups: NDArray[np.intp] | None = None,
) -> list[ProbeScores]:
    """Scores on every row of X of probes that learnt from the other folds.

    Parameters
    ----------
    probes : sequence of Probe
    X : array of shape (n, d)
    concept : Concept
    folds : int array of shape (n,)
        The fold of each row.
    seed : int
    tell : callable
        Told which probe is at work.
    groups : int array of shape (n,), optional
        Rows that belong together, for probes that hold some of theirs out.

    Returns
    -------
    list of ProbeScores
    """
    parts: list[list[ProbeScores]] = []
    for fold in range(int(folds.max()) + 1):
        others = folds != fold
        own = None if groups is None else groups[others]
        training = Training(X[others], concept.take(others), own)
        parts.append(transferred(probes, training, X[~others], seed, tell))
    joined = []
    for per_fold in zip(*parts, strict=True):
        values, prior = np.empty((2, len(X), concept.width))
        for fold, scores in enumerate(per_fold):
            values[folds == fold], prior[folds == fold] = scores.values, scores.prior
        names = dict.fromkeys(scores.by for scores in per_fold if scores.by)
        in_nats = all(scores.in_nats for scores in per_fold)
        joined.append(ProbeScores(values, in_nats, prior, " / ".join(names)))
    return joined


def validated(
    probes: Sequence[Probe], training: Training, seed: int, tell: Tell
) -> dict[str, float]:
    """How well each probe reads the rows to learn from, by cross-fitting inside them.

    Parameters
    ----------
    probes : sequence of Probe
    training : Training
        Its groups are never cut.
    seed : int
    tell : callable
        Told which probe is at work.

    Returns
    -------
    dict from name to balanced accuracy, or R² for numbers
    """
    concept = training.concept
    folds = fold_numbers(concept, FOLDS, seed, training.groups)
    if folds.max() == 0:  # one group: nothing can be held out
        return {probe.name: 0.0 for probe in probes}
    scores = cross_fitted(probes, training.X, concept, folds, seed, tell, training.groups)
    statistic = statistic_of(concept)
    return {
        probe.name: measures_of(found, concept)[statistic].value
        for probe, found in zip(probes, scores, strict=True)
    }


def _chosen(
    choosing: Choosing,
    known: Mapping[str, ProbeScores],
    training: Training,
    X: NDArray[Any],
    seed: int,
    tell: Tell,
) -> ProbeScores:
    """Scores of the candidate that reads the rows to learn from best, the first of equals."""
    found = validated(choosing.candidates, training, seed, tell)
    best = max(choosing.candidates, key=lambda probe: found[probe.name])
    scores = known.get(best.name) or best.scores(training, X, seed)
    return _comparable(scores, training.concept, best.name)


def _comparable(scores: ProbeScores, concept: Concept, name: str) -> ProbeScores:
    """The same answers with scores like those of any other probe, relative to the prior.

    Other rows may be scored by another probe, with probabilities where this one has margins.
    """
    if concept.kind == "continuous":
        return ProbeScores(scores.values, False, scores.prior, name)
    S, prior = scores.values, np.clip(scores.prior, 1e-12, 1 - 1e-12)
    if scores.in_nats:
        usual: Array = np.log(prior)
        S = S - (usual - np.log1p(-prior) if concept.kind == "labels" else usual)
    return ProbeScores(S / (S.std() or 1.0), False, scores.prior, name)
