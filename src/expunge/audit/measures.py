"""What a probe's scores on held-out rows amount to, each number with its sampling error.

Every measure θ̂ is kept with the influence of each row, ψ_i, so that θ̂ - θ ≈ mean ψ and the standard
error is sd(ψ)/√n. Influences of several probes on the same rows also give the correlation of their
errors, which `simultaneous_quantile` needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
import scipy.special
from numpy.typing import NDArray

from expunge.concept import Concept
from expunge.linalg import Array

__all__ = [
    "Interval",
    "Measure",
    "ProbeScores",
    "exact_binomial",
    "mean_measures",
    "measures_by_column",
    "measures_of",
    "one_class_against_the_rest",
    "simultaneous_quantile",
]

DRAWS = 20_000  # of the largest deviation among several probes
DIGITS = 9  # of scores that are compared
ROUNDING = 1e-12  # relative: a number that varies by less does not vary
PRIOR_ROWS = 2.0  # successes and failures added to a class when its standard error is taken


@dataclass(frozen=True)
class Interval:
    """An estimate with a lower and an upper confidence limit."""

    value: float
    low: float
    high: float

    def to_dict(self) -> dict[str, float]:
        """The three numbers by name."""
        return {"value": self.value, "low": self.low, "high": self.high}


@dataclass(frozen=True, eq=False)
class Measure:
    """An estimate and the influence of each row on it.

    Attributes
    ----------
    value : float
    influence : array of shape (n,), or one number for each group of rows
    error : float
        Standard error.
    least, most : float
        Range of the quantity; intervals are cut to it.
    """

    value: float
    influence: Array
    error: float
    least: float
    most: float

    @classmethod
    def of(
        cls,
        value: float,
        influence: Array,
        *,
        least: float = 0.0,
        most: float = 1.0,
        error: float | None = None,
    ) -> Measure:
        """A measure with the standard error of its influences, unless another is given."""
        n = max(len(influence), 2)
        found = _length(influence) / (n * (n - 1)) ** 0.5 if error is None else error
        return cls(float(value), influence, found, least, most)

    def widened(self, factor: float) -> Measure:
        """The same with a standard error so many times as large."""
        return replace(self, error=factor * self.error)

    def grouped(self, groups: NDArray[np.intp]) -> Measure:
        """The same where rows of one group are no independent evidence.

        Influences are summed over each group, and the standard error is that of the sums, if it is
        larger.
        """
        sums = np.zeros(int(groups.max()) + 1)
        np.add.at(sums, groups, self.influence)
        together = _length(sums) / max(len(groups), 1)
        return replace(self, influence=sums, error=max(self.error, together))

    def interval(self, quantile: float) -> Interval:
        """The value and `quantile` standard errors to either side."""
        low = max(self.value - quantile * self.error, self.least)
        high = min(self.value + quantile * self.error, self.most)
        return Interval(self.value, low, high)


def _length(v: Array) -> float:
    """Euclidean norm, of numbers whose squares may leave the range too."""
    return float(scipy.linalg.norm(v, check_finite=False))


@dataclass(frozen=True, eq=False)
class ProbeScores:
    """What a probe says of held-out rows.

    Attributes
    ----------
    values : array of shape (n, width)
        Classes: larger is likelier. Labels: log-odds or margin of each. Numbers: the prediction.
    in_nats : bool
        Whether the values are logarithms of probabilities (log-odds for labels), up to a constant
        per row, so that a cross-entropy can be taken. Margins of machines that were trained with
        balanced classes are not.
    prior : array of shape (width,) or (n, width)
        Shares of the classes or labels (means of the numbers) in the rows the probe learnt from;
        row by row where different rows were scored by different probes.
    by : str
        The probe that was chosen to give them, where there was a choice.
    """

    values: Array
    in_nats: bool
    prior: Array
    by: str = ""


def exact_binomial(hits: int, n: int, confidence: float) -> Interval:
    """A share with its exact interval (Clopper and Pearson 1934).

    Examples
    --------
    >>> from expunge.audit.measures import exact_binomial
    >>> found = exact_binomial(50, 100, 0.95)
    >>> round(found.low, 4), round(found.high, 4)
    (0.3983, 0.6017)
    """
    tail = (1 - confidence) / 2
    low = scipy.special.betaincinv(hits, n - hits + 1, tail) if hits > 0 else 0.0
    high = scipy.special.betaincinv(hits + 1, n - hits, 1 - tail) if hits < n else 1.0
    return Interval(hits / n, float(low), float(high))


def simultaneous_quantile(measures: list[Measure], confidence: float) -> float:
    """Number of standard errors that holds for all measures at once.

    The quantile of max_j |Z_j| with Z normal and correlated as the influences are; between the
    two-sided normal quantile (all alike) and that of Bonferroni (none alike). Choosing the largest
    of several measures is then no longer a bias: with the probability `confidence` every interval
    holds, that of the largest too.

    Parameters
    ----------
    measures : list of Measure
        Taken on the same rows.
    confidence : float

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.audit.measures import Measure, simultaneous_quantile
    >>> rng = np.random.default_rng(0)
    >>> one = Measure.of(0.5, rng.normal(size=500))
    >>> round(simultaneous_quantile([one], 0.95), 2)
    1.96
    >>> other = Measure.of(0.5, rng.normal(size=500))
    >>> 2.2 < simultaneous_quantile([one, other], 0.95) < 2.26
    True
    """
    single = float(scipy.special.ndtri(0.5 + confidence / 2))
    if len(measures) < 2:
        return single
    most = float(scipy.special.ndtri(1 - (1 - confidence) / (2 * len(measures))))
    influences = np.column_stack([m.influence for m in measures])
    size = np.array([_length(m.influence) for m in measures])
    unit = influences / np.where(size > 0, size, 1)
    values, vectors = np.linalg.eigh(unit.T @ unit)
    root = vectors * np.sqrt(np.maximum(values, 0))
    draws = np.random.default_rng(0).normal(size=(DRAWS, len(measures)))
    return float(np.clip(np.quantile(np.abs(draws @ root.T).max(axis=1), confidence), single, most))


def measures_of(scores: ProbeScores, truth: Concept) -> dict[str, Measure]:
    """Everything that can be said of the scores of held-out rows.

    Parameters
    ----------
    scores : ProbeScores
    truth : Concept
        Of the same rows.

    Returns
    -------
    dict of Measure
        Classes and labels: accuracy, excess (over the commonest class of the probe's rows),
        balanced_accuracy, auc, and where probabilities are known cross_entropy and bits. Of labels
        the mean over labels. Numbers: r2.
    """
    if truth.kind == "classes":
        every = np.broadcast_to(scores.prior, scores.values.shape)
        return _of_classes(scores.values, truth.values, every, scores.in_nats)
    return mean_measures(measures_by_column(scores, truth))


def measures_by_column(scores: ProbeScores, truth: Concept) -> dict[int, dict[str, Measure]]:
    """The same for each label that some rows have and some not, or for each column of numbers.

    A label that the rows of some probe could not teach, as all of them had it or none, is left out
    as long as there are others: of the rows that this probe scored nothing is known.

    Parameters
    ----------
    scores : ProbeScores
    truth : Concept
        Labels or numbers of the same rows.

    Returns
    -------
    dict from the number of a column to a dict of Measure
    """
    if truth.kind == "continuous":
        return {j: {"r2": _r2(scores, truth.values, j)} for j in range(truth.width)}
    every, found = np.broadcast_to(scores.prior, scores.values.shape), {}
    varying = np.flatnonzero(truth.values.std(axis=0) > 0)
    some = np.all((every > 0) & (every < 1), axis=0)  # rows with the label, and rows without
    taught = varying[np.asarray(some)[varying]]
    for j in taught if taught.size else varying:
        s, share = scores.values[:, j], every[:, j]
        if not taught.size:  # nothing is said of any row
            s, share = np.zeros_like(s), np.full_like(s, 0.5)
        two = np.column_stack([np.zeros_like(s), s])
        prior = np.column_stack([1 - share, share])
        codes = truth.values[:, j].astype(np.intp)
        found[int(j)] = _of_classes(two, codes, prior, scores.in_nats)
    return found


def mean_measures(parts: Mapping[int, dict[str, Measure]]) -> dict[str, Measure]:
    """The means over columns of measures taken on the same rows."""
    keys = next(iter(parts.values()))
    return {key: _mean([part[key] for part in parts.values()]) for key in keys}


def one_class_against_the_rest(scores: ProbeScores, truth: Concept) -> dict[int, Measure]:
    """For each class the balanced accuracy of "it is this one", by its answers; chance is 0.5.

    Parameters
    ----------
    scores : ProbeScores
    truth : Concept
        Classes of the same rows.

    Returns
    -------
    dict from the number of a class to a Measure
    """
    answers = _relative(scores.values, scores.prior, scores.in_nats).argmax(axis=1)
    found = {}
    for k in np.unique(truth.values):
        said = np.column_stack([answers != k, answers == k]).astype(float)
        own = (truth.values == k).astype(np.intp)
        found[int(k)] = _balanced_accuracy(said, own, np.ones(2), in_nats=False)
    return found


def _mean(parts: list[Measure]) -> Measure:
    """The mean of measures taken on the same rows.

    Its error is that of the mean influence, and what the errors of the parts have beyond those of
    their own influences: of few rows, all right or all wrong, these show none.
    """
    value = float(np.mean([m.value for m in parts]))
    influence = np.mean([m.influence for m in parts], axis=0)
    shown = np.array([Measure.of(m.value, m.influence).error for m in parts])
    stated = np.array([m.error for m in parts])
    beyond = np.sqrt(np.maximum(stated - shown, 0.0)) * np.sqrt(stated + shown)  # of squares
    error = float(np.hypot(Measure.of(value, influence).error, _length(beyond) / len(parts)))
    return Measure.of(value, influence, least=parts[0].least, most=parts[0].most, error=error)


def _of_classes(S: Array, y: NDArray[Any], prior: Array, in_nats: bool) -> dict[str, Measure]:
    n = len(y)
    right = (S.argmax(axis=1) == y).astype(float)
    common = (y == prior.argmax(axis=1)).astype(float)
    found = {
        "accuracy": Measure.of(right.mean(), right - right.mean()),
        "excess": Measure.of(
            right.mean() - common.mean(),
            right - common - (right.mean() - common.mean()),
            least=-1.0,
        ),
        "balanced_accuracy": _balanced_accuracy(S, y, prior, in_nats),
        "auc": _auc(S, y),
    }
    if in_nats:
        rows = np.arange(n)
        surprise = scipy.special.logsumexp(S, axis=1) - S[rows, y]
        known = surprise.mean()
        gain = (-np.log(np.maximum(prior[rows, y], 1e-12)) - surprise) / np.log(2)
        found["cross_entropy"] = Measure.of(known, surprise - known, most=np.inf)
        found["bits"] = Measure.of(gain.mean(), gain - gain.mean(), least=-np.inf, most=np.inf)
    return found


def _balanced_accuracy(S: Array, y: NDArray[Any], prior: Array, in_nats: bool) -> Measure:
    """Mean recall over the classes there are, with probabilities taken relative to the prior.

    Without that a probe of rare classes always answers the commonest one and seems to know nothing.
    Of equal scores the first class is the answer.
    """
    right = (_relative(S, prior, in_nats).argmax(axis=1) == y).astype(float)
    counts = np.bincount(y, minlength=S.shape[1]).astype(float)
    hits = np.bincount(y, weights=right, minlength=S.shape[1])
    there = counts > 0
    classes = int(there.sum())
    recall = np.divide(hits, counts, out=np.zeros_like(hits), where=there)
    weight = np.divide(len(y), classes * counts, out=np.zeros_like(hits), where=there)
    influence = weight[y] * (right - recall[y])
    # Agresti and Coull: a class of few rows, all right or all wrong, is no certainty
    smooth = (hits + PRIOR_ROWS) / (counts + 2 * PRIOR_ROWS)
    variance = smooth * (1 - smooth) / np.maximum(counts, 1)
    error = float(np.sqrt(variance[there].sum())) / classes
    return Measure.of(float(recall[there].mean()), influence, error=error)


def _relative(S: Array, prior: Array, in_nats: bool) -> Array:
    """Scores relative to the prior; those that differ by rounding are equal."""
    relative = S - np.log(np.maximum(prior, 1e-12)) if in_nats else S
    return np.asarray(np.round(relative, DIGITS))


def _auc(S: Array, y: NDArray[Any]) -> Measure:
    """Area under the curve, for more than two classes the mean of each against the rest."""
    c = S.shape[1]
    if c == 2:
        return _binary_auc(S[:, 1] - S[:, 0], y == 1)
    P = scipy.special.softmax(S, axis=1)
    there = [k for k in range(c) if 0 < np.sum(y == k) < len(y)]
    return _mean([_binary_auc(P[:, k], y == k) for k in there]) if there else _no_auc(len(y))


def _no_auc(n: int) -> Measure:
    return Measure.of(0.5, np.zeros(n), error=0.5)


def _binary_auc(s: Array, positive: NDArray[np.bool_]) -> Measure:
    """Area with ties counted half; influences by the structural components of DeLong et al. (1988).

    A positive row's component is the share of negative rows below it, a negative row's that of
    positive rows above it; the area is the mean of either.
    """
    p, q = int(positive.sum()), int((~positive).sum())
    if p == 0 or q == 0:
        return _no_auc(len(s))
    component = np.empty(len(s))
    component[positive] = _share_below(s[positive], s[~positive])
    component[~positive] = 1 - _share_below(s[~positive], s[positive])
    area = float(component[positive].mean())
    share = np.where(positive, p, q) / len(s)
    influence = (component - area) / share
    plain = Measure.of(area, influence)
    floor = 0.5 / np.sqrt(min(p, q) + 4.0) if plain.error == 0 else plain.error
    return Measure.of(area, influence, error=float(floor))


def _share_below(s: Array, others: Array) -> Array:
    """Share of `others` below each of `s`, equal ones counted half."""
    ordered = np.sort(others)
    places = np.searchsorted(ordered, s, "left") + np.searchsorted(ordered, s, "right")
    return np.asarray(places / (2 * len(others)))


def _r2(scores: ProbeScores, Z: Array, j: int) -> Measure:
    """Share of the variance of a column that is explained; 0 is a constant answer."""
    wrong = (Z[:, j] - scores.values[:, j]) ** 2
    spread = (Z[:, j] - scores.prior[..., j]) ** 2
    if spread.mean() <= (ROUNDING * np.abs(Z[:, j]).max()) ** 2:  # nothing to be explained
        return Measure.of(0.0, np.zeros(len(Z)), least=-np.inf)
    ratio = wrong.mean() / spread.mean()
    return Measure.of(1 - ratio, (ratio * spread - wrong) / spread.mean(), least=-np.inf)
