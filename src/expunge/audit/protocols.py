"""Run the probes of an audit: both protocols, before and after, linear and not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from expunge.audit.families import FamilyResult, judged
from expunge.audit.given import STAGES, AuditedRows, Stage
from expunge.audit.probe import Choosing, Family, Probe, Training
from expunge.audit.running import cross_fitted, transferred
from expunge.audit.sampling import FEWEST, fold_numbers, groups_of, stratified, untaught
from expunge.audit.units import own_units
from expunge.concept import Concept
from expunge.errors import InputError
from expunge.inputs import check_number
from expunge.rows.base import Rows

__all__ = [
    "ProtocolResult",
    "Sizes",
    "Terms",
    "check_sizes",
    "fresh_protocol",
    "probe_rows",
    "same_protocol",
    "scaled_pair",
]

Name = Literal["same_rows", "fresh_rows", "training_rows"]


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


def check_sizes(sizes: Any, default: Sizes) -> Sizes:
    """The sizes a user passed, or the default.

    Raises
    ------
    InputError
        For anything else.
    """
    if sizes is None or isinstance(sizes, Sizes):
        return sizes or default
    raise InputError(
        "sizes must say how many rows probes look at",
        f"sizes={sizes!r}",
        "Pass e.g. expunge.audit.Sizes(linear_test=5000)",
    )


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
    tell: Callable[[str], None] = field(default_factory=lambda: _silently)


def _silently(note: str) -> None:
    """Tell nobody."""


def same_protocol(train: AuditedRows, test: AuditedRows, terms: Terms) -> ProtocolResult:
    """Probes that learn from the rows of the fit, tested on new rows."""
    groups = groups_of(test.before, test.ids)
    choice = any(isinstance(probe, Choosing) for probe in terms.probes)
    learnt = groups_of(train.before, train.ids) if choice else None

    def run(stage: Stage, family: Family, probes: Sequence[Probe]) -> FamilyResult:
        sizes = terms.sizes
        limit = {
            ("linear", "before"): sizes.linear_before,
            ("linear", "after"): sizes.linear_train,
        }.get((family, stage), sizes.nonlinear_train)
        most = sizes.linear_test if family == "linear" else sizes.nonlinear_test
        a = stratified(train.concept, limit, terms.seed)
        b = stratified(test.concept, most, terms.seed)
        X, Y = train.at(stage).take(a).array(), test.at(stage).take(b).array()
        if family == "nonlinear":
            X, Y = scaled_pair(X, Y)
        training = Training(X, train.concept.take(a), None if learnt is None else learnt[a])
        scores = transferred(probes, training, Y, terms.seed, terms.tell)
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
            groups=None if groups is None else groups[b],
        )

    return _both_stages("same_rows", run, terms, train.concept)


def fresh_protocol(part: AuditedRows, terms: Terms, name: Name = "fresh_rows") -> ProtocolResult:
    """Probes that learn from some of the rows and are tested on the others, in turns."""
    groups = groups_of(part.before, part.ids)

    def run(stage: Stage, family: Family, probes: Sequence[Probe]) -> FamilyResult:
        return probe_rows(part.at(stage), part.concept, probes, terms, groups)

    return _both_stages(name, run, terms, part.concept)


def probe_rows(
    rows: Rows,
    concept: Concept,
    probes: Sequence[Probe],
    terms: Terms,
    groups: NDArray[np.intp] | None = None,
) -> FamilyResult:
    """How well probes of one family read a concept from rows, by cross-fitting.

    Parameters
    ----------
    rows : rows of shape (n, d)
        Of which a sample is read, where `terms.sizes` says so.
    concept : Concept
    probes : sequence of Probe
        Of one family.
    terms : Terms
        Sizes, confidence and seed; its probes are not looked at.
    groups : int array of shape (n,), optional
        Rows of one group are never on both sides; see `groups_of`.

    Returns
    -------
    FamilyResult
        `strongest`, with its limits, against `chance`.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.audit.probes import choose_probes
    >>> from expunge.audit.protocols import Sizes, Terms, probe_rows
    >>> from expunge.inputs import check_concept, check_rows
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 500)
    >>> X = rng.normal(size=(500, 3)) + np.outer(y, [3, 0, 0])
    >>> probes = choose_probes("linear", "classes")
    >>> terms = Terms(probes, Sizes(), 0.95, 0.02, 0)
    >>> found = probe_rows(check_rows(X), check_concept(y, 500), probes, terms)
    >>> found.chance, found.strongest.low > 0.85, found.status
    (0.5, True, 'found')
    """
    sizes, family = terms.sizes, probes[0].family
    limit, parts = (
        (sizes.linear_test, sizes.linear_folds)
        if family == "linear"
        else (sizes.nonlinear_test, sizes.nonlinear_folds)
    )
    sample = stratified(concept, limit, terms.seed)
    some, own = concept.take(sample), None if groups is None else groups[sample]
    X = rows.take(sample).array()
    if family == "nonlinear":
        X, _ = scaled_pair(X, X[:0])
    folds = fold_numbers(some, parts, terms.seed, own)
    scores = cross_fitted(probes, X, some, folds, terms.seed, terms.tell, own)
    count, n = int(folds.max()) + 1, rows.n_samples
    return judged(
        family,
        probes,
        scores,
        some,
        confidence=terms.confidence,
        leak=terms.leak,
        n_train=len(sample) - len(sample) // count,
        n_train_all=n - n // count,
        n_test_all=n,
        folds=count,
        groups=own,
        untaught=[] if own is None else untaught(some, folds),
    )


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


def scaled_pair(X: NDArray[Any], Y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Both about the mean of X, in units of its overall spread; directions keep their weights.

    Columns in units of their own are each scaled by themselves.
    """
    units = own_units(X)
    unit = float(np.sqrt(X.var(axis=0, dtype=np.float64).mean())) or 1.0 if units is None else units
    center = X.mean(axis=0, dtype=np.float64)
    return ((X - center) / unit).astype(np.float32), ((Y - center) / unit).astype(np.float32)
