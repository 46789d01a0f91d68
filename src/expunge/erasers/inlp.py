"""INLP: iterative nullspace projection, with any loss or any linear classifier."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.base import clone

from expunge.concept import Concept
from expunge.erasers.base import BaseEraser, Data, Solution, Statistics, register
from expunge.erasure import Erasure
from expunge.errors import InputError, SampleTaken
from expunge.game.closed_form import Rank
from expunge.game.inlp import Finder, Found, Judge, glm_finder, least_squares_finder, nullspace
from expunge.game.losses import Loss, loss_for, solves_by_least_squares
from expunge.game.predictor import Predictor, Problem
from expunge.inputs import ConceptType, check_number, check_rank, check_rng
from expunge.linalg import Array
from expunge.moments import Moments
from expunge.rows.base import GlmPass

__all__ = ["INLP"]

MOST = 1 << 27  # numbers that a scikit-learn classifier is given at once, of rows not in memory
LEVEL = 0.05  # share of probes without any signal that are believed nevertheless


@register
class INLP(BaseEraser):
    """Fit a linear predictor, remove its direction, and again: iterative nullspace projection.

    A baseline: each round removes the direction that is best for the predictor, not the one whose
    loss hurts it most. With the squared loss and one round that is (XᵀX)⁻¹Xᵀy, while the optimal
    direction is Xᵀy; so the concept survives, and many rounds are needed.

    Parameters
    ----------
    rank : int or "auto"
        Exactly this many orthonormal directions; a round of c classes gives up to c - 1 of them.
        "auto" goes on until a probe on held-out rows is at chance, then does as many rounds on all
        rows.
    loss : {"auto", "cross_entropy", "squared", "huber", "hinge", "squared_hinge"} or Loss
        "auto" is squared for a continuous concept, cross-entropy otherwise. The squared loss needs
        only moments; with a given rank it streams.
    classifier : scikit-learn estimator, optional
        What finds the directions instead of `loss`: anything with `coef_` after `fit`. It sees a
        copy of the erased rows.
    fit_intercept : bool
        Whether the predictor has an intercept. Of a classifier, set its own.
    alpha : float
        Ridge of the predictor, relative to the mean variance of a column; 0 is allowed for the
        squared loss.
    validation_fraction : float
        Share of the rows held out by ``rank="auto"``.
    concept_type : {"auto", "classes", "labels", "continuous"}
    tol : float
        Gap, relative to the bound, up to which the certificate says "erased". The predictor of each
        round is fitted to a hundredth of it: its objective is so near to the lowest one, relative
        to the loss of a predictor that ignores x.
    random_state : int, Generator or None
        Fixes the held-out rows.
    verbose : bool
        Whether to show a progress bar.
    strength : float
        From 0, the identity, to 1, full removal of the directions.

    Attributes
    ----------
    erasure_ : Erasure
    certificate_ : Certificate
    rank_ : int
    history_ : tuple of Step
        Directions removed so far and the loss of the predictor just before.

    References
    ----------
    Ravfogel, Elazar, Gonen, Twiton, Goldberg (2020), Null It Out, ACL.

    Examples
    --------
    >>> import numpy as np
    >>> import expunge as ex
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 400)
    >>> X = rng.normal(size=(400, 5)) * [1, 3, 1, 1, 1] + np.outer(y, [2, 3, 0, 0, 0])
    >>> eraser = ex.INLP(1).fit(X, y)
    >>> eraser.certificate_.erased
    False
    >>> ex.INLP(3).fit(X, y).erasure_.basis.shape
    (3, 5)
    """

    guarantees = frozenset({"mean_preserved", "orthogonal"})

    def __init__(
        self,
        rank: Rank = "auto",
        *,
        loss: str | Loss = "auto",
        classifier: Any = None,
        fit_intercept: bool = True,
        alpha: float = 1e-4,
        validation_fraction: float = 0.2,
        concept_type: ConceptType = "auto",
        tol: float = 1e-6,
        random_state: Any = None,
        verbose: bool = False,
        strength: float = 1.0,
    ) -> None:
        self.rank = rank
        self.loss = loss
        self.classifier = classifier
        self.fit_intercept = fit_intercept
        self.alpha = alpha
        self.validation_fraction = validation_fraction
        self.concept_type = concept_type
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
        self.strength = strength

    def _check_parameters(self, n_features: int) -> None:
        check_rank(self.rank, n_features)
        check_number(self.alpha, "alpha", strict=not solves_by_least_squares(self.loss))
        check_number(self.tol, "tol", most=float("inf"))
        check_number(self.validation_fraction, "validation_fraction", strict=True, most=0.9)
        check_rng(self.random_state)

    def _depends_on_units(self) -> bool:
        return True

    def _why_not_streaming(self) -> str:
        quadratic = solves_by_least_squares(self.loss)
        if quadratic and self.rank != "auto" and self.classifier is None:
            return ""
        return "every round fits a predictor on all rows; loss='squared' with a given rank streams"

    def _certificate_terms(self) -> dict[str, Any]:
        return {
            "fit_intercept": self.fit_intercept,
            "alpha": self.alpha if self.alpha > 0 else 1e-4,
            "tol": self.tol,
        }

    def _loss(self, moments: Moments) -> Loss:
        return loss_for(self.loss, moments.kind, len(moments.labels))

    def _solve(self, seen: Statistics, data: Data | None) -> Solution:
        moments, rank = seen.moments, self.rank
        if rank == "auto":
            assert data is not None
            rank = self._rounds_needed(data, moments)
        basis, history = nullspace(self._finder(moments, data), moments, rank, verbose=self.verbose)
        center = moments.mean_x if self.fit_intercept else None
        return Solution(basis, basis.T, center, "inlp", history)

    @property
    def _inner_tol(self) -> float:
        """Tolerance of the predictor of a round."""
        return self.tol / 100

    def _finder(self, moments: Moments, data: Data | None) -> Finder:
        if data is not None and self.classifier is not None:
            return self._classifier_finder(data, moments, np.ones(data.rows.n_samples, bool))
        if self._loss(moments).quadratic:
            return least_squares_finder(moments, alpha=self.alpha, center=self.fit_intercept)
        assert data is not None
        return glm_finder(self._problem(data, moments, data.weights), tol=self._inner_tol)

    def _problem(self, data: Data, moments: Moments, weights: Array | None) -> Problem:
        return Problem(
            data.rows,
            data.concept,
            self._loss(moments).smoothed,
            moments,
            weights=weights,
            alpha=self.alpha if self.alpha > 0 else 1e-12,
            fit_intercept=self.fit_intercept,
        )

    def _rounds_needed(self, data: Data, moments: Moments) -> int:
        """Directions until the predictor of the training rows is at chance on the held-out ones."""
        n = data.rows.n_samples
        weights = np.ones(n) if data.weights is None else data.weights
        groups = np.arange(n) if data.groups is None else data.groups
        count = int(groups.max()) + 1
        place = check_rng(self.random_state).permutation(count)[groups]
        held = place < min(self.validation_fraction * count, count - 1)
        needed = _of_every_class(data.concept, weights * (place + 1))
        held &= ~np.isin(groups, groups[needed])
        if not (weights * held).any() or not (weights * ~held).any():  # too few rows to judge by
            return 1
        if self.classifier is not None:
            find = self._classifier_finder(data, moments, ~held)
        else:
            train = data.rows.moments(data.concept, weights * ~held)
            problem = self._problem(data, train, weights * ~held)
            judge = self._judge(problem, data, weights * (held & _one_each(data)))
            find = glm_finder(problem, judge, tol=self._inner_tol)
        basis, _ = nullspace(find, moments, None, verbose=self.verbose)
        return max(int(basis.shape[1]), 1)

    def _judge(self, problem: Problem, data: Data, weights: Array) -> Judge:
        """Whether a predictor is at chance on the rows that `weights` holds out.

        It is believed when it lowers the loss there, or raises the accuracy, by more than luck
        would. A gain g on the rows of the fit, all of it by luck, comes with a standard error of
        2√(V0 g / n) on n new rows. Accuracy alone is blind to a rare class.
        """

        def score(coef: Array, intercept: Array) -> GlmPass:
            return data.rows.glm_pass(
                problem.loss, coef, intercept, data.concept, weights, center=problem.center
            )

        null = score(np.zeros_like(problem.null.gradient), problem.null.intercept)
        count = float(weights.sum()) ** 2 / float(weights @ weights)
        sure = ndtri(1 - LEVEL) / np.sqrt(count)

        def at_chance(found: Predictor) -> bool:
            got = score(problem.erase_transposed(found.coef), found.intercept)
            luck = 2 * np.sqrt(null.value * max(problem.null.value - found.loss, 0.0))
            if null.value - got.value > sure * luck:
                return False
            luck = np.sqrt(abs(null.accuracy * (1 - null.accuracy)))
            return not got.accuracy - null.accuracy > sure * luck  # nan for numbers

        return at_chance

    def _classifier_finder(self, data: Data, moments: Moments, train: NDArray[np.bool_]) -> Finder:
        """Rounds of a scikit-learn estimator on a copy of the erased rows."""
        if not data.rows.in_memory and data.rows.n_samples > MOST // data.rows.n_features:
            data, train = self._some_of(data, train)
        y, given = _as_given(data.concept), data.rows.array()
        center = moments.mean_x if self.fit_intercept else None

        def find(basis: Array) -> Found:
            X = Erasure(basis, basis.T, center).transform(np.asarray(given, dtype=np.float64))
            model = clone(self.classifier)
            extra = {} if data.weights is None else {"sample_weight": data.weights[train]}
            model.fit(X[train], y[train], **extra)
            if not hasattr(model, "coef_"):
                raise InputError(
                    "classifier has no coef_ after fit: it is not a linear predictor",
                    repr(model),
                    "Pass e.g. LinearSVC(), LogisticRegression() or Ridge()",
                )
            coef = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64)).T
            score = float(model.score(X, y, sample_weight=data.weights))
            if train.all():
                return Found(coef, score)
            held = ~train & _one_each(data)
            if data.weights is not None:
                held &= data.weights > 0
            if data.concept.kind == "continuous":
                return Found(coef, score, float(model.score(X[held], y[held])) <= 0)
            Z = data.concept.take(held).columns()
            if hasattr(model, "classes_") and data.concept.kind == "classes":
                Z = Z[:, np.isin(data.concept.labels, model.classes_)]
            scores = getattr(model, "decision_function", lambda A: A @ coef)(X[held])
            scores = np.reshape(scores, (len(Z), -1))
            return Found(coef, score, not _separates(scores, Z[:, -scores.shape[1] :]))

        return find

    def _some_of(self, data: Data, train: NDArray[np.bool_]) -> tuple[Data, NDArray[np.bool_]]:
        """As many random rows as fit in memory, said so: scikit-learn wants them all at once."""
        n = data.rows.n_samples
        size = MOST // data.rows.n_features
        rows, index = data.rows.subset(size, check_rng(self.random_state))
        warnings.warn(
            SampleTaken(
                f"The classifier is trained on {size:,} random rows of {n:,}: scikit-learn wants "
                "all rows in memory. Take a loss, such as loss='cross_entropy', for all rows"
            ),
            stacklevel=6,
        )
        weights = None if data.weights is None else data.weights[index]
        groups = None if data.groups is None else data.groups[index]
        return Data(rows, data.concept.take(index), weights, groups=groups), train[index]


def _one_each(data: Data) -> NDArray[np.bool_]:
    """One row of each group, the heaviest: others are no further evidence."""
    if data.groups is None:
        return np.ones(data.rows.n_samples, dtype=bool)
    weights = np.ones(len(data.groups)) if data.weights is None else data.weights
    order = np.lexsort((-weights, data.groups))
    first = np.zeros(len(order), dtype=bool)
    first[order[_begins(data.groups[order])]] = True
    return first


def _of_every_class(concept: Concept, size: Array) -> NDArray[np.intp]:
    """The largest row of each class, or with and without each label: to be in every fit."""
    if concept.kind == "classes":
        order = np.lexsort((-size, concept.values))
        return order[_begins(concept.values[order])]
    columns = concept.values.T if concept.kind == "labels" else ()
    found = [np.argmax(np.where(z == value, size, -np.inf)) for z in columns for value in (0, 1)]
    return np.array(found, dtype=np.intp)


def _begins(ordered: NDArray[np.intp]) -> NDArray[np.intp]:
    """Where each number stands first."""
    return np.unique(ordered, return_index=True)[1]


def _separates(scores: Array, Z: Array) -> bool:
    """Whether a column of scores (n x m) puts the ones of its column of Z above the zeros.

    The test of Mann and Whitney on ranks: it sees a rare class, and needs no threshold.
    """
    n, m = Z.shape
    for s, z in zip(scores.T, Z.T, strict=True):
        _, at, counts = np.unique(s, return_inverse=True, return_counts=True)
        ranks = (np.cumsum(counts) - (counts - 1) / 2)[at]
        ones = float(z.sum())
        excess = float(z @ ranks) - ones * (n + 1) / 2
        if excess > ndtri(1 - LEVEL / m) * np.sqrt(ones * (n - ones) * (n + 1) / 12):
            return True
    return False


def _as_given(concept: Concept) -> NDArray[Any]:
    """The concept as scikit-learn takes it."""
    if concept.kind == "classes":
        return np.asarray(np.asarray(concept.labels)[concept.values])
    return np.asarray(concept.values[:, 0] if concept.width == 1 else concept.values)
