"""The strongest probe: chosen inside the rows to learn from, then it alone is tested on others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.audit.families import chance_of, statistic_of
from expunge.audit.given import AuditedRows, gather
from expunge.audit.measures import measures_of, simultaneous_quantile
from expunge.audit.probe import Choosing, Probe, Training
from expunge.audit.probes import choose_probes
from expunge.audit.protocols import Sizes, Terms, check_sizes, scaled_pair
from expunge.audit.running import transferred, validated
from expunge.audit.sampling import groups_of, stratified
from expunge.erasure import Erasure
from expunge.errors import InputError
from expunge.inputs import ConceptType, check_number, check_rng, check_rows

__all__ = ["StrongestProbe", "strongest_of", "strongest_probe"]


@dataclass(frozen=True)
class StrongestProbe:
    """The probe that was chosen, and what it reads from rows that it has not seen.

    Attributes
    ----------
    name : str
    value, low, high : float
        Balanced accuracy (R² for numbers) on the test rows, with limits of this one probe: the
        choice was made before.
    chance : float
        Its value without information.
    statistic : {"balanced_accuracy", "r2"}
    error : float
        Standard error of the value.
    n_train, n_test : int
        Rows learnt from and tested on.
    validated : dict from str to float
        The statistic of every candidate, cross-fitted inside the rows to learn from: what the
        choice went by.
    """

    name: str
    value: float
    low: float
    high: float
    chance: float
    statistic: str
    error: float
    n_train: int
    n_test: int
    validated: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.statistic.replace('_', ' ')} {self.value:.3f} "
            f"[{self.low:.3f}, {self.high:.3f}], chance {self.chance:.3g}, "
            f"{self.n_test:,} rows"
        )


def strongest_probe(
    X_train: Any,
    y_train: Any,
    X_test: Any,
    y_test: Any,
    *,
    probes: Any = "thorough",
    groups: tuple[Any, Any] | None = None,
    concept_type: ConceptType = "auto",
    confidence: float = 0.95,
    sizes: Sizes | None = None,
    random_state: Any = 0,
) -> StrongestProbe:
    """The best that probes read from rows as they are, linear and not, with an honest interval.

    All probes are cross-fitted inside the training rows; the best of them learns from all training
    rows and is tested on the test rows, once. To judge an eraser, pass erased rows of which it has
    seen neither the training nor the test ones.

    Parameters
    ----------
    X_train, X_test : arrays, frames or tensors of shape (n, d) and (m, d)
    y_train, y_test : arrays of shape (n,) or (n, k), and (m,) or (m, k)
        The concept.
    probes : {"thorough", "default", "linear", "nonlinear"} or list of str and Probe
        The candidates, as in `audit`.
    groups : pair of arrays of shape (n,) and (m,), optional
        Who or what each row belongs to; no group may be on both sides.
    concept_type : {"auto", "classes", "labels", "continuous"}
    confidence : float
        Of the limits.
    sizes : Sizes, optional
        Most rows to learn from and to test on: `nonlinear_train` and `nonlinear_test`.
    random_state : int, Generator or None

    Returns
    -------
    StrongestProbe

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.audit import strongest_probe
    >>> X = np.random.default_rng(0).normal(size=(900, 2))
    >>> y = (X[:, 0] * X[:, 1] > 0).astype(int)  # opposite corners: nothing for a line
    >>> found = strongest_probe(X[:500], y[:500], X[500:], y[500:], probes="default")
    >>> found.low > 0.9, found.validated["linear SVM"] < 0.6
    (True, True)
    """
    check_number(confidence, "confidence", least=0.5, most=0.9999)
    seed = int(check_rng(random_state).integers(2**31))
    d = check_rows(X_train, name="X_train").n_features
    nothing = Erasure(np.zeros((d, 0)), np.zeros((0, d)))
    given = gather(
        nothing,
        X_train,
        y_train,
        X_test,
        y_test,
        task=None,
        names=None,
        concept_type=concept_type,
        ids=groups,
    )
    train, test = given.train, given.test
    if train is None or test is None:
        raise InputError(
            "A probe needs rows to learn from and others to be tested on",
            "one of them",
            "Pass X_train, y_train, X_test and y_test",
        )
    _check_apart(train, test)
    chosen = choose_probes(probes, train.concept.kind)
    limits = check_sizes(sizes, Sizes())
    return strongest_of(train, test, Terms(chosen, limits, confidence, 0.02, seed))


def _check_apart(train: AuditedRows, test: AuditedRows) -> None:
    if train.ids is None or test.ids is None:
        return
    both = np.intersect1d(train.ids, test.ids)
    if len(both):
        raise InputError(
            "A group may not have rows to learn from and rows to be tested on",
            f"{len(both)} groups that have both, such as {both[0]!r}",
            "Split the rows by group",
        )


def strongest_of(train: AuditedRows, test: AuditedRows, terms: Terms) -> StrongestProbe:
    """The same of rows that were checked, as they are after erasure.

    Parameters
    ----------
    train, test : AuditedRows
        Rows to learn from and rows to be tested on.
    terms : Terms
        The candidates, sizes, confidence and seed.

    Returns
    -------
    StrongestProbe
    """
    a = stratified(train.concept, terms.sizes.nonlinear_train, terms.seed)
    b = stratified(test.concept, terms.sizes.nonlinear_test, terms.seed)
    learn, tested = train.take(a), test.take(b)
    X, Y = scaled_pair(learn.after.array(), tested.after.array())
    training = Training(X, learn.concept, _groups(learn))
    candidates = _plain(terms.probes)
    found = validated(candidates, training, terms.seed, terms.tell)
    best = max(candidates, key=lambda probe: found[probe.name])
    scores = transferred([best], training, Y, terms.seed, terms.tell)[0]
    statistic = statistic_of(tested.concept)
    measure = measures_of(scores, tested.concept)[statistic]
    if (groups := _groups(tested)) is not None:
        measure = measure.grouped(groups)
    limits = measure.interval(simultaneous_quantile([], terms.confidence))
    return StrongestProbe(
        best.name,
        limits.value,
        limits.low,
        limits.high,
        chance_of(tested.concept),
        statistic,
        measure.error,
        len(a),
        len(b),
        found,
    )


def _plain(probes: Sequence[Probe]) -> list[Probe]:
    return [probe for probe in probes if not isinstance(probe, Choosing)]


def _groups(part: AuditedRows) -> NDArray[np.intp] | None:
    return groups_of(part.before, part.ids)
