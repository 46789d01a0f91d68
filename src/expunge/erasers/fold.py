"""The fold: an eraser that hides the classes from predictors that are not linear, too."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from expunge.concept import Concept
from expunge.erasers.base import BaseEraser, Data, Solution, Statistics, register
from expunge.erasure import Erasure
from expunge.errors import NothingToFold
from expunge.fold_erasure import FoldErasure
from expunge.folding.build import FoldPlan, build, fold_of, only_leace
from expunge.folding.choice import Candidates, Choice, choose
from expunge.folding.class_predictor import LinearPredictor, discriminant, logistic
from expunge.game.kept import Kept
from expunge.game.result import Step
from expunge.inputs import ConceptType, check_choice, check_number, check_rng
from expunge.linalg import Array
from expunge.moments import Moments
from expunge.rows.base import Rows

__all__ = ["FoldEraser"]

Groups = NDArray[np.intp] | None
CHANCE = 2.0  # standard errors above chance below which a predictor predicts nothing
SHRUNK, FEW_DIRECTIONS = 0.5, 20  # of the second fold that "auto" tries


@register
class FoldEraser(BaseEraser):
    """Lay the classes upon each other, so that predictors that are not linear find less, too.

    A projection hides a concept from linear predictors; clusters and shapes stay. A fold moves the
    rows of each class, as x itself predicts it, onto the barycentre of all classes: by a shift, by
    a Gaussian map that makes covariances equal, and, with `rounds`, by local moves that mix
    clusters. A last shift of each predicted class, or LEACE, makes the means of the true classes
    equal: the linear guarantee is exact on the rows of the fit. Nothing but x is needed at
    transform time.

    It hides from probes as far as these rows tell how the classes differ: d² numbers of each class
    are estimated. More rows help, and rows without labels do as well: pass the rows that will be
    published as ``fit(X, y, unlabelled=U)``.

    Parameters
    ----------
    transport : {"gaussian", "shift"}
        What is done to a predicted class. "shift" equals only means.
    shrinkage : {"auto", "none"} or float
        Share of the differences between covariances that is taken for noise. "auto" measures every
        direction on rows that did not choose it; tries a share of a half in 20 directions, too; and
        takes of LEACE, this and that the one after which probes of held-out rows read least.
    directions : int or "auto"
        In how many directions covariances are made equal.
    rounds : int
        Of local moves. Each takes four thousand distances for every row, and hides more at a
        larger change.
    predictor : {"logistic", "discriminant"}
        Of the class. "discriminant" needs only moments, so that it can be streamed: moments of the
        classes themselves are then taken for those of the predicted ones.
    random_state : int, Generator or None
    concept_type : {"auto", "classes"}
    strength : float
        From 0, the identity, to 1, the full fold. Below 1 only the mean is still guaranteed.

    Attributes
    ----------
    erasure_ : FoldErasure
    certificate_ : Certificate
        Of linear predictors. None after a stream, which has no rows to look at.
    choice_ : Choice or None
        What the held-out probe read after each candidate, where one was asked.

    Notes
    -----
    A stream (`partial_fit`) needs numbers for `shrinkage` and `directions`, no rounds and
    ``predictor="discriminant"``. It gives the maps of a fit on all rows, but is not closed: class
    means are equal as far as classes are predicted rightly.

    References
    ----------
    Agueh, Carlier (2011), Barycenters in the Wasserstein space, for what classes are moved to.

    Examples
    --------
    >>> import numpy as np
    >>> import expunge as ex
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 600)
    >>> X = rng.normal(size=(600, 3)) * np.where(y, 3.0, 1.0)[:, None] + np.outer(y, [12, 0, 0])
    >>> eraser = ex.FoldEraser().fit(X, y)
    >>> clean = eraser.transform(X)
    >>> [round(float(clean[y == k].std()), 1) for k in (0, 1)], eraser.certificate_.erased
    ([3.8, 3.8], True)
    """

    guarantees = frozenset({"equal_means", "zero_cross_covariance", "mean_preserved"})
    kinds = frozenset({"classes"})

    def __init__(
        self,
        *,
        transport: Literal["gaussian", "shift"] = "gaussian",
        shrinkage: float | Literal["auto", "none"] = "auto",
        directions: int | Literal["auto"] = "auto",
        rounds: int = 0,
        predictor: Literal["logistic", "discriminant"] = "logistic",
        random_state: Any = 0,
        concept_type: ConceptType = "auto",
        strength: float = 1.0,
    ) -> None:
        self.transport = transport
        self.shrinkage = shrinkage
        self.directions = directions
        self.rounds = rounds
        self.predictor = predictor
        self.random_state = random_state
        self.concept_type = concept_type
        self.strength = strength

    @property
    def erasure_(self) -> FoldErasure:  # type: ignore[override]
        """The fitted `FoldErasure`."""
        return cast(FoldErasure, self._settled()[0])

    @property
    def choice_(self) -> Choice | None:
        """What the held-out probe read; None where none was asked."""
        return cast("Choice | None", self._settled()[2].choice)

    # -- what the base asks for ------------------------------------------------------------------

    def _check_parameters(self, n_features: int) -> None:
        check_choice(self.transport, ("gaussian", "shift"), "transport")
        check_choice(self.predictor, ("logistic", "discriminant"), "predictor")
        if self.shrinkage not in ("auto", "none"):
            check_number(self.shrinkage, "shrinkage", most=1.0)
        if self.directions != "auto":
            check_number(self.directions, "directions", whole=True, most=n_features)
        check_number(self.rounds, "rounds", whole=True, most=1000)
        check_rng(self.random_state)

    def _why_not_streaming(self) -> str:
        if self.predictor != "discriminant":
            return "predictor='logistic' needs the rows; take 'discriminant'"
        if self.transport == "gaussian" and "auto" in (self.shrinkage, self.directions):
            return "'auto' is chosen on rows; give numbers for shrinkage and directions"
        if self.rounds:
            return "rounds of local moves need the rows"
        return ""

    def _why_not_pooling(self) -> str:
        return ""

    def _pooled(self, seen: Statistics, data: Data, pool: Rows) -> tuple[Statistics, Data]:
        """Rows without labels are folded by their predicted class; sums of the labelled stay.

        They are rows of the fit: an audit must not take them for new ones.
        """
        known = None if seen.seen is None else seen.seen.merge(pool.fingerprint())
        return replace(seen, seen=known, folded=pool.n_samples), replace(data, pool=pool)

    def _needs_class_moments(self) -> bool:
        return self.predictor == "discriminant"

    def _solve(self, seen: Statistics, data: Data | None) -> Solution:
        if data is None:
            fold, choice, solver = self._from_moments(seen), None, "gaussian"
        else:
            fold, choice, solver = self._from_rows(seen, data)
        nothing = Erasure.identity(seen.moments.n_features)
        center, history = seen.moments.mean_x, (Step(1, 0.0),)
        closed = fold.closing.center is not None  # then class means are equal
        left = np.zeros_like(seen.moments.xz) if closed else seen.moments.xz
        plain = Solution(nothing.left, nothing.right, center, solver, history)
        return replace(plain, nonlinear=fold, covariance_left=left, choice=choice)

    def _plan(self) -> FoldPlan:
        shrinkage = 0.0 if self.shrinkage == "none" else self.shrinkage
        return FoldPlan(self.transport, shrinkage, self.directions, self.rounds)

    def _from_moments(self, seen: Statistics) -> FoldErasure:
        assert seen.by_class is not None
        classes = [seen.by_class[label] for label in seen.moments.labels]
        known = {code: (part, ()) for code, part in enumerate(classes)}
        predictor = discriminant(seen.moments, classes)
        return fold_of(known, seen.moments.mean_x, predictor, self._plan(), seen.moments.labels)

    def _from_rows(self, seen: Statistics, data: Data) -> tuple[FoldErasure, Choice | None, str]:
        rng, choice = check_rng(self.random_state), None
        moments = seen.moments
        known = data.rows, data.concept, data.weights, data.groups
        predictor = self._predictor(*known, moments, seen, rng)
        if predictor.accuracy is not None:
            chance = 1 / data.concept.width
            if predictor.accuracy < chance + CHANCE * predictor.error:
                _warn(f"a linear predictor tells {100 * predictor.accuracy:.1f} % of them")
                return only_leace(moments, predictor), None, "leace"
        if self.shrinkage == "auto":
            choice = choose(*known, self._candidates(rng), rng)
            if choice.name == "leace":
                few = "there are too few rows to tell whether a fold holds on new ones"
                _warn(_readings(choice) if choice.accuracy else few)
                return only_leace(moments, predictor), choice, "leace"
        fold = build(
            data.rows,
            data.concept,
            data.weights,
            predictor,
            self._plan() if choice is None else self._plans()[choice.name],
            rng,
            pool=data.pool,
            groups=data.groups,
            by_label=self.predictor == "discriminant",
        )
        return fold, choice, "fold"

    def _predictor(
        self,
        rows: Rows,
        concept: Concept,
        weights: Array | None,
        groups: Groups,
        moments: Moments,
        seen: Statistics | None,
        rng: np.random.Generator,
    ) -> LinearPredictor:
        if self.predictor == "logistic":
            return logistic(rows, concept, moments, weights, rng, groups)
        known = rows.read(concept, weights, by_class=True) if seen is None else seen
        by_class = known.by_class
        assert by_class is not None
        return discriminant(moments, [by_class[label] for label in moments.labels])

    def _candidates(self, rng: np.random.Generator) -> Candidates:
        """LEACE and the folds, fitted on the same rows."""

        def fitted(rows: Rows, concept: Concept, weights: Array | None, groups: Groups) -> Any:
            moments = rows.moments(concept, weights)
            predictor = self._predictor(rows, concept, weights, groups, moments, None, rng)
            found = {"leace": only_leace(moments, predictor).transform}
            by_label = self.predictor == "discriminant"
            for name, plan in self._plans().items():
                known = rows, concept, weights, predictor, plan, rng
                found[name] = build(*known, by_label=by_label, groups=groups).transform
            return found

        return fitted

    def _plans(self) -> dict[str, FoldPlan]:
        """Folds to choose from: what is given, and one that believes less of the rows."""
        plan, found = self._plan(), {}
        if plan.transport == "gaussian" and plan.directions == "auto":
            found["shrunk fold"] = replace(plan, shrinkage=SHRUNK, directions=FEW_DIRECTIONS)
        return {**found, "fold": plan}

    def _meta(self, seen: Statistics, solution: Solution, kept: Kept | None) -> dict[str, Any]:
        told = None if solution.choice is None else solution.choice.to_meta()
        pool = {"n_labelled": seen.own.n, "n_pool": seen.folded} if seen.folded else None
        return {**super()._meta(seen, solution, kept), "pool": pool, "held_out_probe": told}


def _readings(choice: Choice) -> str:
    leace, *folds = (100 * told for told in choice.accuracy.values())
    least = min(folds)
    return f"a probe tells {least:.1f} % of held-out rows after the fold, {leace:.1f} % after LEACE"


def _warn(why: str) -> None:
    warnings.warn(
        NothingToFold(
            f"FoldEraser does no more than LEACE here: {why}. More labelled rows, or rows without "
            "labels (unlabelled=), may change that"
        ),
        stacklevel=6,
    )
