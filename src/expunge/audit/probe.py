"""What a probe is, and the rows it learns from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from expunge.audit.measures import ProbeScores
from expunge.audit.units import own_units
from expunge.concept import Concept, Kind
from expunge.game.losses import loss_for
from expunge.game.problem import Problem
from expunge.linalg import Array
from expunge.moments import Moments
from expunge.rows.dense import DenseRows

__all__ = ["Choosing", "Family", "Probe", "Training"]

Family = Literal["linear", "nonlinear"]
UNHEARD_OF = 30.0  # how far below all others the score of a class without training rows is


@dataclass(frozen=True, eq=False)
class Training:
    """Rows a probe learns from, with what several probes need of them computed once.

    Parameters
    ----------
    X : array of shape (n, d)
    concept : Concept
    groups : int array of shape (n,), optional
        Rows that belong together, for those who hold some of them out.
    """

    X: NDArray[Any]
    concept: Concept
    groups: NDArray[np.intp] | None = None
    _problems: dict[str, Problem] = field(default_factory=dict)
    _nearest: list[Any] = field(default_factory=list)

    @cached_property
    def learnable(self) -> NDArray[np.intp]:
        """Numbers of the classes that some rows have, or of the labels that differ between rows."""
        values = self.concept.values
        if self.concept.kind == "classes":
            return np.unique(values)
        if self.concept.kind == "labels":
            return np.flatnonzero(np.any(values != values[0], axis=0))
        return np.arange(self.concept.width)

    @property
    def compact(self) -> Training:
        """The same rows with what is learnable only."""
        # one that remembered itself would keep its rows until Python looks for cycles
        return self if len(self.learnable) == self.concept.width else self._learnable_only

    @cached_property
    def _learnable_only(self) -> Training:
        kept, concept = self.learnable, self.concept
        labels = tuple(concept.labels[i] for i in kept)
        if concept.kind == "classes":
            codes = np.searchsorted(kept, concept.values)
            return Training(self.X, Concept("classes", codes, labels), self.groups)
        some = Concept(concept.kind, concept.values[:, kept], labels)
        return Training(self.X, some, self.groups)

    @cached_property
    def units(self) -> Array | None:
        """The spread of each column where columns have units of their own; None where not."""
        return own_units(self.X)

    @property
    def even(self) -> Training:
        """The same rows with columns scaled one by one, where they have units of their own."""
        return self if self.units is None else self._scaled_rows

    @cached_property
    def _scaled_rows(self) -> Training:
        return Training(self.scaled(self.X), self.concept, self.groups)

    def scaled(self, X: NDArray[Any]) -> NDArray[Any]:
        """Other rows, scaled as `even` is."""
        if self.units is None:
            return X
        return np.asarray((X - self.X.mean(axis=0, dtype=np.float64)) / self.units)

    @property
    def double(self) -> Training:
        """The same rows in float64, for second moments with all digits."""
        return self if self.X.dtype == np.float64 else self._double_rows

    @cached_property
    def _double_rows(self) -> Training:
        return Training(self.X.astype(np.float64), self.concept, self.groups)

    @cached_property
    def rows(self) -> DenseRows:
        """The rows as the predictor of the game takes them."""
        return DenseRows(self.X)

    @cached_property
    def moments(self) -> Moments:
        """Means and second moments."""
        return self.rows.moments(self.concept)

    @cached_property
    def prior(self) -> Array:
        """Shares of the classes or labels; means of numbers."""
        return np.asarray(self.moments.mean_z)

    def problem(self, loss: str) -> Problem:
        """The training of a linear predictor, set up once for each loss."""
        if loss not in self._problems:
            chosen = loss_for(loss, self.concept.kind, self.concept.width)
            self._problems[loss] = Problem(self.rows, self.concept, chosen, self.moments)
        return self._problems[loss]

    def balanced_problem(self, loss: str) -> Problem:
        """The same with weights under which every class is as common as any other.

        The second moments, which only guide the solver, are those without weights.
        """
        concept = self.concept
        if concept.kind != "classes":
            return self.problem(loss)
        weights = 1 / np.maximum(self.prior * concept.width, 1e-12)[concept.values]
        moments = self.rows.moments(concept, weights, second=False)
        assert self.moments.xx is not None
        moments = replace(moments, xx=self.moments.xx * (moments.weight / self.moments.weight))
        chosen = loss_for(loss, concept.kind, concept.width)
        return Problem(self.rows, concept, chosen, moments, weights=weights)

    def nearest(self, X: NDArray[Any], count: int) -> NDArray[np.intp]:
        """Numbers of the training rows nearest to each row of X, remembered for the last X."""
        if not self._nearest or self._nearest[0] is not X:
            from sklearn.neighbors import NearestNeighbors

            found = NearestNeighbors(n_neighbors=min(count, len(self.X)), algorithm="brute")
            self._nearest[:] = [X, found.fit(self.X).kneighbors(X, return_distance=False)]
        return np.asarray(self._nearest[1])


@dataclass(frozen=True)
class Probe:
    """An attacker: it learns the concept from some rows and scores others.

    Parameters
    ----------
    name : str
    family : {"linear", "nonlinear"}
    kinds : tuple of str
        Kinds of concept it can learn.
    score : callable
        ``(training, X, seed) -> ProbeScores`` of the rows X. Every class has a training row, every
        label one with and one without it.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.audit.measures import ProbeScores
    >>> from expunge.audit.probe import Probe
    >>> def first_column(training, X, seed):
    ...     return ProbeScores(np.column_stack([-X[:, 0], X[:, 0]]), False, training.prior)
    >>> Probe("first column", "linear", ("classes",), first_column).name
    'first column'
    """

    name: str
    family: Family
    kinds: tuple[Kind, ...]
    score: Callable[[Training, Array, int], ProbeScores]

    def scores(self, training: Training, X: Array, seed: int) -> ProbeScores:
        """Scores over all classes or labels, also those that the training rows cannot teach.

        A class that none of them has is never answered; of a label that they all share nothing is
        said.
        """
        kept, width = training.learnable, training.concept.width
        if len(kept) < (2 if training.concept.kind == "classes" else 1):
            return ProbeScores(np.tile(training.prior, (len(X), 1)), False, training.prior)
        found = self.score(training.compact, X, seed)
        if len(kept) == width:
            return found
        values = np.zeros((len(X), width))
        if training.concept.kind == "classes":
            values += found.values.max(axis=1, keepdims=True) - UNHEARD_OF
        values[:, kept] = found.values
        return ProbeScores(values, found.in_nats, training.prior)


@dataclass(frozen=True)
class Choosing(Probe):
    """The candidate that reads the rows to learn from best, chosen before any other row is seen.

    `expunge.audit.running` makes the choice, by cross-fitting inside those rows.

    Parameters
    ----------
    name, family, kinds, score
        As of a probe; the score is never asked for.
    candidates : tuple of Probe
    """

    candidates: tuple[Probe, ...] = ()

    @classmethod
    def among(cls, candidates: tuple[Probe, ...], family: Family, kind: Kind) -> Choosing:
        """The strongest of these probes.

        Examples
        --------
        >>> from expunge.audit.probe import Choosing
        >>> from expunge.audit.probes import choose_probes
        >>> Choosing.among(choose_probes("linear", "classes"), "linear", "classes").name
        'the strongest, chosen beforehand'
        """
        return cls("the strongest, chosen beforehand", family, (kind,), _never, candidates)


def _never(training: Training, X: Array, seed: int) -> ProbeScores:
    raise AssertionError("the candidates are run, not the choice")
