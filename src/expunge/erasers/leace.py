"""LEACE, linear or free of form, and SPLINCE."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Literal, cast

import numpy as np

from expunge.erasers.base import BaseEraser, Data, Solution, Statistics, register
from expunge.errors import OnlyLinear
from expunge.free_form.fitting import fit_free_form
from expunge.free_form.ridge_choice import RidgeChoice
from expunge.game.closed_form import Rank
from expunge.game.kept import Kept
from expunge.game.oblique import least_change, least_change_keeping
from expunge.game.result import Step
from expunge.inputs import ConceptType, check_choice, check_number, check_rank, check_rng
from expunge.linalg import Array, units_if_far_apart
from expunge.moments import Moments
from expunge.shrinkage import check_shrinkage, shrink

__all__ = ["LEACE", "SPLINCE"]

MOST_FEATURES = 10_000
HISTORY = (Step(1, 0.0),)  # closed forms reach their optimum in one step


@register
class LEACE(BaseEraser):
    """The affine map that changes the rows least among all that erase the concept linearly.

    Minimises E‖Px + b - x‖² subject to PΣxz = 0: with W = Σxx^(-1/2) and U an orthonormal basis of
    col(WΣxz) the answer is x -> x - W⁻¹UUᵀW(x - mean), an oblique projection. No linear predictor,
    with whatever convex loss, is then better than a constant one.

    Parameters
    ----------
    rank : int or "auto"
        "auto" is the rank of Σxz, which erases fully. Fewer directions are those of the largest
        canonical correlations; more than the rank of Σxz have nothing to remove and are not used.
    shrinkage : {"none", "ledoit_wolf", "oas"} or float
        Of Σxx towards a multiple of the identity, for few rows; "ledoit_wolf" in its
        Rao-Blackwellised form, which needs only moments. Erasure stays exact under any shrinkage;
        only "least change" is then meant for the shrunk covariance. Columns whose spreads are more
        than 10,000 times apart are shrunk in units of these.
    predictor : {"linear", "random_features"}
        What reads from x how much is to be taken from it. For any predictor p of z,
        x - ΣxzΣpz⁺(p(x) - mean p) erases z linearly; the better p, the smaller the change. LEACE
        has the linear one. "random_features" is a ridge regression of z on x and cosines of random
        directions: the same directions are taken away, less of them where x tells more of z than
        lines do. Its ridge is chosen on rows held out. On the rows of the fit it never changes
        more than LEACE (without shrinkage), and where new rows would show more after it, LEACE it
        is, with a warning `OnlyLinear`. The result is a `FreeFormErasure`, which is no matrix.
    n_components : int
        How many cosines.
    random_state : int, Generator or None
        For cosines, and for rows that are held out.
    concept_type : {"auto", "classes", "labels", "continuous"}
    strength : float
        From 0, the identity, to 1, full erasure. Below 1 only the mean is still guaranteed.

    Attributes
    ----------
    erasure_ : Erasure or FreeFormErasure
    certificate_ : Certificate
    rank_ : int
    choice_ : RidgeChoice or None
        What held-out rows said of random features, where they were asked for.

    References
    ----------
    Belrose, Schneider-Joseph, Ravfogel, Cotterell, Raff, Biderman (2023), LEACE: Perfect linear
    concept erasure in closed form, NeurIPS. Rahimi, Recht (2007), Random features for large-scale
    kernel machines, NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> import expunge as ex
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 300)
    >>> X = rng.normal(size=(300, 5)) + np.eye(5)[y]
    >>> eraser = ex.LEACE().fit(X, y)
    >>> eraser.rank_, eraser.certificate_.erased
    (2, True)

    A concept that x tells by a curve, not by a line, is taken out at a smaller change:

    >>> X = rng.normal(size=(4000, 3))
    >>> y = np.abs(X[:, 0] + 1) < 1
    >>> for predictor in ("linear", "random_features"):
    ...     eraser = ex.LEACE(predictor=predictor, n_components=200).fit(X, y)
    ...     change = np.mean((eraser.transform(X) - X) ** 2)
    ...     print(f"{predictor}: {change:.2f}, erased: {eraser.certificate_.erased}")
    linear: 0.34, erased: True
    random_features: 0.19, erased: True
    """

    guarantees = frozenset(
        {"equal_means", "zero_cross_covariance", "mean_preserved", "least_squares_optimal"}
    )

    def __init__(
        self,
        rank: Rank = "auto",
        *,
        shrinkage: str | float = "none",
        predictor: Literal["linear", "random_features"] = "linear",
        n_components: int = 1000,
        random_state: Any = 0,
        concept_type: ConceptType = "auto",
        strength: float = 1.0,
    ) -> None:
        self.rank = rank
        self.shrinkage = shrinkage
        self.predictor = predictor
        self.n_components = n_components
        self.random_state = random_state
        self.concept_type = concept_type
        self.strength = strength

    def _check_parameters(self, n_features: int) -> None:
        check_rank(self.rank, n_features)
        check_shrinkage(self.shrinkage)
        check_choice(self.predictor, ("linear", "random_features"), "predictor")
        check_number(self.n_components, "n_components", whole=True, least=1, most=MOST_FEATURES)
        check_rng(self.random_state)

    @property
    def choice_(self) -> RidgeChoice | None:
        """What held-out rows said of random features; None without any."""
        return cast("RidgeChoice | None", self._settled()[2].choice)

    def _why_not_streaming(self) -> str:
        if self.predictor == "linear":
            return ""
        return "predictor='random_features' needs the rows; take 'linear'"

    def _why_not_pooling(self) -> str:
        if self.predictor == "linear":
            return ""
        return "predictor='random_features' needs the concept of every row; take 'linear'"

    def _solve(self, seen: Statistics, data: Data | None) -> Solution:
        moments = seen.moments
        shrunk = _shrunk(moments, self.shrinkage)
        left, right = least_change(
            shrunk,
            moments.cov_xz,
            moments.cov_zz,
            eps=moments.eps,
            rank=None if self.rank == "auto" else self.rank,
        )
        plain = Solution(left, right, moments.mean_x, "closed_form", HISTORY)
        if self.predictor == "linear":
            return plain
        assert data is not None  # nothing is streamed
        found = fit_free_form(
            data.rows,
            data.concept,
            data.weights,
            data.groups,
            moments,
            (left, right),
            None if self.shrinkage == "none" else shrunk,
            n_components=self.n_components,
            effective_n=seen.effective_n,
            rng=check_rng(self.random_state),
        )
        if found.why_linear:
            _warn_of_lines(found.why_linear)
        solver = "linear" if found.why_linear else "random_features"
        return replace(plain, solver=solver, nonlinear=found.erasure, choice=found.choice)

    def _meta(self, seen: Statistics, solution: Solution, kept: Kept | None) -> dict[str, Any]:
        told = {} if solution.choice is None else {"held_out_rows": solution.choice.to_meta()}
        return {**super()._meta(seen, solution, kept), **told}


def _shrunk(moments: Moments, shrinkage: str | float) -> Array:
    """Σxx (d x d) after shrinkage, in units that leave a narrow column beside wide ones narrow."""
    S = moments.cov_xx
    if shrinkage in ("none", 0):
        return S
    units = units_if_far_apart(np.diag(S))
    both = np.outer(units, units)
    return both * shrink(S / both, moments.weight, shrinkage)


def _warn_of_lines(why: str) -> None:
    warnings.warn(
        OnlyLinear(
            f"LEACE with random features does no more than LEACE here: {why}. More rows may change "
            "that"
        ),
        stacklevel=6,
    )


@register
class SPLINCE(BaseEraser):
    """LEACE that also keeps the covariance of the rows with a task.

    Minimises E‖Px + b - x‖² subject to PΣxz = 0 (the concept z is gone) and PΣxt = Σxt (what a
    least-squares predictor of the task t could use is untouched). Fit with the task as y and the
    concept beside it: ``fit(X, task, concept=z)``. Without a task it is LEACE.

    Parameters
    ----------
    shrinkage : {"none", "ledoit_wolf", "oas"} or float
        Of Σxx towards a multiple of the identity; see `LEACE`.
    concept_type : {"auto", "classes", "labels", "continuous"}
    strength : float
        From 0, the identity, to 1, full erasure. Below 1 the mean and the task's covariance are
        still guaranteed.

    Attributes
    ----------
    erasure_ : Erasure
    certificate_ : Certificate
    rank_ : int

    References
    ----------
    Holstege, Ravfogel, Wouters (2025), Preserving Task-Relevant Information Under Linear Concept
    Removal.

    Examples
    --------
    >>> import numpy as np
    >>> import expunge as ex
    >>> rng = np.random.default_rng(0)
    >>> z, task = rng.integers(0, 2, 300), rng.integers(0, 2, 300)
    >>> X = rng.normal(size=(300, 4)) + np.outer(z, [2, 1, 0, 0]) + np.outer(task, [0, 1, 2, 0])
    >>> clean = ex.SPLINCE().fit(X, task, concept=z).transform(X)
    >>> gap = lambda A, y: A[y == 1].mean(0) - A[y == 0].mean(0)
    >>> bool(np.allclose(gap(clean, z), 0)), bool(np.allclose(gap(clean, task), gap(X, task)))
    (True, True)
    """

    guarantees = frozenset(
        {"equal_means", "zero_cross_covariance", "mean_preserved", "task_covariance_kept"}
    )

    def __init__(
        self,
        *,
        shrinkage: str | float = "none",
        concept_type: ConceptType = "auto",
        strength: float = 1.0,
    ) -> None:
        self.shrinkage = shrinkage
        self.concept_type = concept_type
        self.strength = strength

    def _check_parameters(self, n_features: int) -> None:
        check_shrinkage(self.shrinkage)

    def _keeps_task(self) -> bool:
        return True

    def _why_not_pooling(self) -> str:
        return ""

    def _solve(self, seen: Statistics, data: Data | None) -> Solution:
        moments, task = seen.moments, seen.task
        covariances = _shrunk(moments, self.shrinkage), moments.cov_xz, moments.cov_zz
        if task is None:
            left, right = least_change(*covariances, eps=moments.eps)
        else:
            left, right = least_change_keeping(
                *covariances, task.cov_xz, task.cov_zz, eps=moments.eps
            )
        return Solution(left, right, moments.mean_x, "closed_form", HISTORY)
