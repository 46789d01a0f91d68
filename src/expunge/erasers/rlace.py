"""RLACE: the linear maximin game of Ravfogel, Twiton, Goldberg and Cotterell (ICML 2022)."""

from __future__ import annotations

import warnings
from typing import Any

from expunge.concept import Concept
from expunge.erasers.base import BaseEraser, Data, Solution, Statistics, register
from expunge.errors import InputError, NotConverged
from expunge.game.closed_form import Rank
from expunge.game.losses import Loss, loss_for
from expunge.game.null_model import Observed, needs_rows, null_model
from expunge.game.result import Callback
from expunge.game.solver import Game, SolveOptions, Solver
from expunge.game.solvers import check_solver, solver_for
from expunge.inputs import ConceptType, check_choice, check_number, check_rank, check_rng
from expunge.linalg import Array
from expunge.moments import Moments

__all__ = ["RLACE"]


@register
class RLACE(BaseEraser):
    """Erase a concept by the orthogonal projection that leaves linear predictors the least.

    Solves  max over Q  min over Θ, b  of  mean ℓ(y, Θᵀ(I - Q)x + b)  for projectors Q of rank K. At
    the concept's own rank (`rank="auto"`; 1 for two classes) the game has a closed form for every
    convex loss: Q projects on the span of XᵀR0, the covariance of x with the residual of the
    predictor that ignores x. For classes and cross-entropy these are the differences of the class
    means. Below that rank the game is hard, and `solver` says how it is played.

    With an intercept the map is x -> mean + (I - Q)(x - mean). Without, it is x -> (I - Q)x, which
    does not protect against predictors that have an intercept.

    An orthogonal projection depends on the units of the columns: one in dollars beside others in
    years takes the whole direction, and is lost with it. Erasure is exact in any units, but what
    else is lost is not. Where the columns are not of one kind (a table), take ``scale="std"``, or
    `LEACE`; a warning (`UnitsMatter`) says when spreads differ by more than a factor of 1,000.

    Parameters
    ----------
    rank : int or "auto"
        Directions to erase. More than the concept needs are filled up with those of least variance.
    loss : {"auto", "cross_entropy", "squared", "huber", "hinge", "squared_hinge"} or Loss
        "auto" is squared for a continuous concept, cross-entropy otherwise. Below the concept's
        rank the hinge is played with a rounded kink, and so is its history; the certificate is of
        the hinge itself.
    solver : {"auto", "closed_form", "descent_ascent", "subspace_ascent"} or Solver
        "auto" takes the closed form where it is exact and subspace ascent below; "descent_ascent"
        is the paper's relaxation. Settings beyond the parameters here: `DescentAscent(...)`,
        `SubspaceAscent(...)`; the paper's: ``RLACE(1, **paper_settings("static"))``.
    fit_intercept : bool
        Whether the predictor has an intercept.
    alpha : float
        Ridge of the predictor, relative to the mean variance of a column.
    concept_type : {"auto", "classes", "labels", "continuous"}
        What y is; "auto" follows scikit-learn's `type_of_target`.
    max_iter : int, optional
        50,000 batches of descent-ascent, or 100 steps of subspace ascent at the final ridge.
    tol : float
        Gap, relative to the bound, up to which the certificate says "erased" and descent-ascent
        stops early; subspace ascent stops at a gradient of ``0.1 √tol`` of the bound. 0 switches
        early stopping off.
    step_size, batch_size, evaluate_every
        Of descent-ascent; the paper's 0.005, 128 and 1000.
    restarts : int
        Additional random starts of subspace ascent.
    random_state : int, Generator or None
        Fixes every random choice; None is the same as 0, so that equal fits are equal.
    callback : callable, optional
        Called with every record of the history; a true answer stops the solver.
    verbose : bool
        Whether to show a progress bar.
    scale : {"none", "std"}
        Units in which the game is played: "none" those of X, "std" each column's own standard
        deviation. The map is affine in the units of X either way; with "std" it is orthogonal
        between standardised columns only.
    strength : float
        From 0, the identity, to 1, full erasure. Below 1 only the mean is still guaranteed: the map
        x -> x - strength · Q(x - mean) can be undone, so a predictor finds the concept again.

    Attributes
    ----------
    erasure_ : Erasure
    certificate_ : Certificate
    rank_, n_iter_ : int
    history_ : tuple of Step
    solver_ : str
        What was run.
    spectrum_ : array of shape (d,)
        Eigenvalues of the relaxed eraser before rounding (descent-ascent only).

    References
    ----------
    Ravfogel, Twiton, Goldberg, Cotterell (2022), Linear Adversarial Concept Erasure, ICML; Sec. 3.

    Examples
    --------
    >>> import numpy as np
    >>> import expunge as ex
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> X = rng.normal(size=(200, 5)) + 2 * np.outer(y, [1, 0, 0, 1, 0])
    >>> eraser = ex.RLACE().fit(X, y)
    >>> clean = eraser.transform(X)
    >>> bool(np.allclose(clean[y == 0].mean(0), clean[y == 1].mean(0)))
    True
    >>> eraser
    RLACE(), fitted: rank 1 by closed_form
    >>> eraser.certificate_.erased
    True
    """

    guarantees = frozenset({"equal_means", "zero_cross_covariance", "mean_preserved", "orthogonal"})

    def __init__(
        self,
        rank: Rank = "auto",
        *,
        loss: str | Loss = "auto",
        solver: str | Solver = "auto",
        fit_intercept: bool = True,
        alpha: float = 1e-4,
        concept_type: ConceptType = "auto",
        max_iter: int | None = None,
        tol: float = 1e-6,
        step_size: float = 0.005,
        batch_size: int = 128,
        evaluate_every: int = 1000,
        restarts: int = 0,
        random_state: Any = None,
        callback: Callback | None = None,
        verbose: bool = False,
        scale: str = "none",
        strength: float = 1.0,
    ) -> None:
        self.rank = rank
        self.loss = loss
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.alpha = alpha
        self.concept_type = concept_type
        self.max_iter = max_iter
        self.tol = tol
        self.step_size = step_size
        self.batch_size = batch_size
        self.evaluate_every = evaluate_every
        self.restarts = restarts
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose
        self.scale = scale
        self.strength = strength

    @property
    def spectrum_(self) -> Array:
        """Eigenvalues of the relaxed eraser before rounding, descending (descent-ascent only)."""
        found = self._settled()[2].spectrum
        if found is None:
            raise AttributeError(f"solver {self.solver_!r} relaxes nothing, so it has no spectrum_")
        return found

    def _check_parameters(self, n_features: int) -> None:
        check_rank(self.rank, n_features)
        check_solver(self.solver)
        check_choice(self.scale, ("none", "std"), "scale")
        check_number(self.alpha, "alpha", strict=True)
        check_number(self.tol, "tol", most=float("inf"))
        check_number(self.step_size, "step_size", strict=True)
        check_number(self.batch_size, "batch_size", least=1, whole=True)
        check_number(self.evaluate_every, "evaluate_every", least=1, whole=True)
        check_number(self.restarts, "restarts", whole=True)
        if self.max_iter is not None:
            check_number(self.max_iter, "max_iter", least=1, whole=True)
        check_rng(self.random_state)
        if self.callback is not None and not callable(self.callback):
            raise InputError(
                "callback cannot be called",
                f"callback={self.callback!r}",
                "Pass a function that takes one Step",
            )

    def _needs_second(self) -> bool:
        return self.rank != "auto"

    def _second_for_fit(self, data: Data) -> bool:
        """Except where the rank asked for is most likely the concept's own."""
        alone = data.concept.kind == "classes" and (self.fit_intercept or data.concept.width == 2)
        return self.rank != "auto" and self.rank != data.concept.width - alone

    def _depends_on_units(self) -> bool:
        return self.scale == "none"

    def _certificate_terms(self) -> dict[str, Any]:
        return {"fit_intercept": self.fit_intercept, "alpha": self.alpha, "tol": self.tol}

    def _check_stream(self, concept: Concept) -> None:
        loss = loss_for(self.loss, concept.kind, concept.width)
        if needs_rows(loss, concept.kind):
            raise InputError(
                f"RLACE(loss={loss.name!r}) cannot stream a continuous concept: the residuals of "
                "this loss depend on a constant that only all rows together tell",
                "a chunk of rows",
                "Call fit on all rows, or take loss='squared', which streams",
            )

    def _loss(self, moments: Moments) -> Loss:
        return loss_for(self.loss, moments.kind, len(moments.labels))

    def _why_not_pooling(self) -> str:
        return ""

    def _solve(self, seen: Statistics, data: Data | None) -> Solution:
        game = self._game(seen, data)
        solver = solver_for(self.solver, game)
        found = solver.run(game, self._options())
        if note := solver.caution(found.reason):
            warnings.warn(NotConverged(f"{solver.name} {note}"), stacklevel=4)
        center = seen.moments.mean_x if self.fit_intercept else None
        left, right = found.basis, found.basis.T
        if game.units is not None:
            left, right = left * game.units[:, None], right / game.units
        return Solution(left, right, center, solver.name, found.history, found.spectrum)

    def _game(self, seen: Statistics, data: Data | None) -> Game:
        moments, units = seen.moments, None
        observed = None if data is None else Observed(data.rows, data.concept, data.weights)
        loss = self._loss(moments)
        null = null_model(loss, moments, self.fit_intercept, observed)
        if self.scale == "std":
            units = moments.spreads
            moments, null = moments.in_units(units), null.in_units(units)
        rank = null.rank if self.rank == "auto" else self.rank
        return Game(rank, loss, moments, null, self.fit_intercept, self.alpha, observed, units)

    def _options(self) -> SolveOptions:
        """The parameters that any solver may use."""
        return SolveOptions(
            rng=check_rng(self.random_state),
            max_iter=self.max_iter,
            tol=self.tol,
            step_size=self.step_size,
            batch_size=self.batch_size,
            evaluate_every=self.evaluate_every,
            restarts=self.restarts,
            callback=self.callback,
            verbose=self.verbose,
        )
