"""Run the probes of an audit: both protocols, before and after, linear and not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from expunge.audit.fresh import row_hashes
from expunge.audit.given import STAGES, Part, Stage
from expunge.audit.probe import Family, Probe, Training
from expunge.audit.protocol import FamilyResult, cross_fitted, judged, transferred
from expunge.concept import Concept
from expunge.inputs import check_number

__all__ = [
    "ProtocolResult",
    "Sizes",
    "Terms",
    "fresh_protocol",
    "same_protocol",
    "stratified",
    "too_few",
]

Name = Literal["same_rows", "fresh_rows", "training_rows"]
FEWEST = 10  # rows to cross-fit on
MANY = 10_000  # rows among which so many different ones are looked for


@dataclass(frozen=True)
class Sizes:
    """Most rows that probes look at; beyond them a stratified sample is drawn.

    Attributes
    ----------
    linear_train : int
        Rows of the fit that a linear probe learns from. An exact eraser is at chance by
        construction only if they are all of them.
    linear_before : int
        The same before erasure, where nothing has to be exact.
    linear_test : int
        Rows a linear probe is tested on, and fresh rows there are for it altogether.
    nonlinear_train, nonlinear_test : int
        The same for the others.
    linear_folds, nonlinear_folds : int
        Parts the fresh rows are cut into.

    Examples
    --------
    >>> from expunge.audit import Sizes
    >>> Sizes(linear_folds=10).nonlinear_train
    4000
    """

    linear_train: int = 200_000
    linear_before: int = 20_000
    linear_test: int = 20_000
    nonlinear_train: int = 4_000
    nonlinear_test: int = 5_000
    linear_folds: int = 5
    nonlinear_folds: int = 3

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            check_number(value, name, least=2 if name.endswith("folds") else FEWEST, whole=True)


@dataclass(frozen=True, eq=False)
class ProtocolResult:
    """All probes under one protocol.

    Attributes
    ----------
    name : {"same_rows", "fresh_rows", "training_rows"}
    before, after : dict from family to FamilyResult
    """

    name: Name
    before: dict[Family, FamilyResult]
    after: dict[Family, FamilyResult]

    def at(self, stage: Stage) -> dict[Family, FamilyResult]:
        """The results before or after."""
        return self.before if stage == "before" else self.after

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "name": self.name,
            "before": {family: result.to_dict() for family, result in self.before.items()},
            "after": {family: result.to_dict() for family, result in self.after.items()},
        }


@dataclass(frozen=True)
class Terms:
    """What all probing has in common.

    Attributes
    ----------
    probes : sequence of Probe
    sizes : Sizes
    confidence, leak : float
        As in `audit`.
    seed : int
    tell : callable
        Told which probe is at work, once for each time it learns.
    """

    probes: Sequence[Probe]
    sizes: Sizes
    confidence: float
    leak: float
    seed: int
    tell: Callable[[str], None]


def same_protocol(train: Part, test: Part, terms: Terms) -> ProtocolResult:
    """Probes that learn from the rows of the fit, tested on new rows."""

    def run(stage: Stage, family: Family, probes: Sequence[Probe]) -> FamilyResult:
        sizes = terms.sizes
        limit = {
            ("linear", "before"): sizes.linear_before,
            ("linear", "after"): sizes.linear_train,
        }.get((family, stage), sizes.nonlinear_train)
        most = sizes.linear_test if family == "linear" else sizes.nonlinear_test
        a = stratified(train.concept, limit, terms.seed)
        b = stratified(test.concept, most, terms.seed)
        X, Y = _some(train, stage, a), _some(test, stage, b)
        if family == "nonlinear":
            X, Y = _standardised(X, Y)
        scores = transferred(probes, Training(X, train.concept.take(a)), Y, terms.seed, terms.tell)
        return judged(
            family,
            probes,
            scores,
            test.concept.take(b),
            confidence=terms.confidence,
            leak=terms.leak,
            n_train=len(a),
            n_train_all=len(train),
            n_test_all=len(test),
            folds=1,
        )

    return _both_stages("same_rows", run, terms, train.concept)


def fresh_protocol(part: Part, terms: Terms, name: Name = "fresh_rows") -> ProtocolResult:
    """Probes that learn from some of the rows and are tested on the others, in turns."""

    def run(stage: Stage, family: Family, probes: Sequence[Probe]) -> FamilyResult:
        sizes = terms.sizes
        limit, parts = (
            (sizes.linear_test, sizes.linear_folds)
            if family == "linear"
            else (sizes.nonlinear_test, sizes.nonlinear_folds)
        )
        rows = stratified(part.concept, limit, terms.seed)
        concept = part.concept.take(rows)
        X = _some(part, stage, rows)
        if family == "nonlinear":
            X, _ = _standardised(X, X[:0])
        folds = _folds(part.before[rows], concept, parts, terms.seed)
        scores = cross_fitted(probes, X, concept, folds, terms.seed, terms.tell)
        count = int(folds.max()) + 1
        return judged(
            family,
            probes,
            scores,
            concept,
            confidence=terms.confidence,
            leak=terms.leak,
            n_train=len(rows) - len(rows) // count,
            n_train_all=len(part) - len(part) // count,
            n_test_all=len(part),
            folds=count,
        )

    return _both_stages(name, run, terms, part.concept)


def _both_stages(
    name: Name,
    run: Callable[[Stage, Family, Sequence[Probe]], FamilyResult],
    terms: Terms,
    concept: Concept,
) -> ProtocolResult:
    found: dict[Stage, dict[Family, FamilyResult]] = {"before": {}, "after": {}}
    families: tuple[Family, ...] = ("linear", "nonlinear")
    for stage in STAGES:
        for family in families:
            probes = [p for p in terms.probes if p.family == family and concept.kind in p.kinds]
            if probes:
                found[stage][family] = run(stage, family, probes)
    return ProtocolResult(name, found["before"], found["after"])


def too_few(part: Part) -> bool:
    """Whether there are not enough different rows, or classes, to cross-fit on."""
    concept = part.concept
    if len(part) < FEWEST or len(np.unique(_hashed(part.before[:MANY]))) < FEWEST:
        return True
    if concept.kind == "classes":
        return int(np.sum(np.bincount(concept.values) >= 2)) < 2
    return bool(np.all(concept.values == concept.values[0]))


def stratified(concept: Concept, size: int, seed: int) -> NDArray[np.intp]:
    """Sorted numbers of at most `size` rows with the class shares of all rows.

    Parameters
    ----------
    concept : Concept
    size : int
    seed : int

    Returns
    -------
    int array

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.audit.probing import stratified
    >>> from expunge.concept import Concept
    >>> y = Concept("classes", np.arange(100) % 4 // 3, ("a", "b"))
    >>> np.bincount(y.values[stratified(y, 20, 0)])
    array([15,  5])
    """
    n = concept.n_samples
    if n <= size:
        return np.arange(n)
    order = np.random.default_rng(seed).permutation(n)
    if concept.kind == "classes":  # equal steps through rows sorted by class keep the shares
        order = order[np.argsort(concept.values[order], kind="stable")]
    steps = ((np.arange(size) + 0.5) * n / size).astype(np.intp)
    return np.sort(order[steps])


def _folds(X: NDArray[Any], concept: Concept, count: int, seed: int) -> NDArray[np.intp]:
    """The fold of every row: classes are dealt out evenly, and equal rows stay together."""
    n = concept.n_samples
    order = np.random.default_rng(seed).permutation(n)
    if concept.kind == "classes":
        order = order[np.argsort(concept.values[order], kind="stable")]
    dealt = np.empty(n, dtype=np.intp)
    dealt[order] = np.arange(n) % count
    _, first, which = np.unique(_hashed(X), return_index=True, return_inverse=True)
    together = dealt[first][which.reshape(-1)]
    return np.unique(together, return_inverse=True)[1].reshape(-1)


def _hashed(X: NDArray[Any]) -> NDArray[np.int64]:
    return np.fromiter(row_hashes(X), dtype=np.int64, count=len(X))


def _some(part: Part, stage: Stage, rows: NDArray[np.intp]) -> NDArray[Any]:
    X = part.at(stage)
    return X if len(rows) == len(X) else X[rows]


def _standardised(X: NDArray[Any], Y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Both about the mean of X, in units of its overall spread; directions keep their weights."""
    X, Y = np.asarray(X, dtype=np.float64), np.asarray(Y, dtype=np.float64)
    center = X.mean(axis=0)
    unit = float(np.sqrt(X.var(axis=0).mean())) or 1.0
    return ((X - center) / unit).astype(np.float32), ((Y - center) / unit).astype(np.float32)
