"""RLACE: the linear maximin game of Ravfogel, Twiton, Goldberg and Cotterell (ICML 2022)."""

from __future__ import annotations

from typing import Any

from expunge.erasers.base import BaseEraser, Data, Solution, Step, register
from expunge.game.closed_form import Rank, closed_form
from expunge.game.losses import Loss
from expunge.game.null_model import null_model
from expunge.inputs import ConceptType, check_choice, check_rank
from expunge.moments import Moments

__all__ = ["RLACE"]


@register
class RLACE(BaseEraser):
    """Erase a concept by the orthogonal projection that leaves linear predictors the least.

    Solves  max over Q  min over Θ, b  of  mean ℓ(y, Θᵀ(I - Q)x + b)  for projectors Q of rank K.
    At the concept's own rank (`rank="auto"`; 1 for two classes) the game has a closed form for
    every convex loss: Q projects on the span of XᵀR0, the covariance of x with the residual of
    the predictor that ignores x. For classes and cross-entropy these are the differences of the
    class means.

    With an intercept the map is x -> mean + (I - Q)(x - mean). Without, it is x -> (I - Q)x,
    which does not protect against predictors that have an intercept.

    Parameters
    ----------
    rank : int or "auto"
        Directions to erase. More than the concept needs are filled up with those of least variance.
    loss : {"cross_entropy", "squared", "hinge", "squared_hinge"} or Loss
    solver : {"auto", "closed_form"}
    fit_intercept : bool
        Whether the predictor has an intercept.
    alpha : float
        Ridge of the predictor in the certificate, relative to the mean variance of a column.
    concept_type : {"auto", "classes", "labels", "continuous"}
        What y is; "auto" follows scikit-learn's `type_of_target`.
    tol : float
        Gap, relative to the bound, up to which the certificate says "erased".

    Attributes
    ----------
    erasure_ : Erasure
    certificate_ : Certificate
    rank_, n_iter_ : int
    history_ : tuple of Step
    solver_ : str

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
    >>> eraser.certificate_.erased
    True
    """

    guarantees = frozenset({"equal_means", "zero_cross_covariance", "mean_preserved", "orthogonal"})

    def __init__(
        self,
        rank: Rank = "auto",
        *,
        loss: str | Loss = "cross_entropy",
        solver: str = "auto",
        fit_intercept: bool = True,
        alpha: float = 1e-4,
        concept_type: ConceptType = "auto",
        tol: float = 1e-6,
    ) -> None:
        self.rank = rank
        self.loss = loss
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.alpha = alpha
        self.concept_type = concept_type
        self.tol = tol

    def _check_parameters(self, n_features: int) -> None:
        check_rank(self.rank, n_features)
        check_choice(self.solver, ("auto", "closed_form"), "solver")

    def _needs_second(self) -> bool:
        return self.rank != "auto"

    def _second_for_fit(self) -> bool:
        return False  # a second pass is made in the rare case that directions are filled up

    def _certificate_terms(self) -> dict[str, Any]:
        return {"fit_intercept": self.fit_intercept, "alpha": self.alpha, "tol": self.tol}

    def _solve(self, moments: Moments, data: Data | None) -> Solution:
        null = null_model(self._loss(moments), moments, self.fit_intercept)
        if data is not None and self.rank != "auto" and self.rank > null.rank:
            moments = data.moments(second=True)
        U = closed_form(null, moments, self.rank)
        center = moments.mean_x if self.fit_intercept else None
        return Solution(U, U.T, center, "closed_form", null.value, (Step(1, null.value),))
