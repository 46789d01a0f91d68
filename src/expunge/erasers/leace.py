"""LEACE and its relatives that need only moments: SPLINCE, SAL and mean projection."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from expunge.erasers.base import BaseEraser, Data, Solution, Statistics, register
from expunge.game.closed_form import Rank
from expunge.game.oblique import least_change, least_change_keeping
from expunge.game.result import Step
from expunge.inputs import ConceptType, check_rank
from expunge.linalg import Array, concept_span, fix_signs
from expunge.moments import Moments
from expunge.shrinkage import check_shrinkage, shrink

__all__ = ["LEACE", "SAL", "SPLINCE", "MeanProjection"]

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
        only "least change" is then meant for the shrunk covariance.
    concept_type : {"auto", "classes", "labels", "continuous"}
    strength : float
        From 0, the identity, to 1, full erasure. Below 1 only the mean is still guaranteed.

    Attributes
    ----------
    erasure_ : Erasure
    certificate_ : Certificate
    rank_ : int

    References
    ----------
    Belrose, Schneider-Joseph, Ravfogel, Cotterell, Raff, Biderman (2023), LEACE: Perfect linear
    concept erasure in closed form, NeurIPS.

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
    """

    guarantees = frozenset(
        {"equal_means", "zero_cross_covariance", "mean_preserved", "least_squares_optimal"}
    )

    def __init__(
        self,
        rank: Rank = "auto",
        *,
        shrinkage: str | float = "none",
        concept_type: ConceptType = "auto",
        strength: float = 1.0,
    ) -> None:
        self.rank = rank
        self.shrinkage = shrinkage
        self.concept_type = concept_type
        self.strength = strength

    def _check_parameters(self, n_features: int) -> None:
        check_rank(self.rank, n_features)
        check_shrinkage(self.shrinkage)

    def _why_not_pooling(self) -> str:
        return ""

    def _solve(self, seen: Statistics, data: Data | None) -> Solution:
        moments = seen.moments
        left, right = least_change(
            shrink(moments.cov_xx, moments.weight, self.shrinkage),
            moments.cov_xz,
            moments.cov_zz,
            eps=moments.eps,
            rank=None if self.rank == "auto" else self.rank,
        )
        return Solution(left, right, moments.mean_x, "closed_form", 0.0, HISTORY)


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
        Sxx = shrink(moments.cov_xx, moments.weight, self.shrinkage)
        covariances = Sxx, moments.cov_xz, moments.cov_zz
        if task is None:
            left, right = least_change(*covariances, eps=moments.eps)
        else:
            left, right = least_change_keeping(
                *covariances, task.cov_xz, task.cov_zz, eps=moments.eps
            )
        return Solution(left, right, moments.mean_x, "closed_form", 0.0, HISTORY)


class _LeadingDirections(BaseEraser):
    """Orthogonal projection on the complement of the leading singular vectors of a matrix."""

    rank: Rank

    guarantees = frozenset({"equal_means", "zero_cross_covariance", "mean_preserved", "orthogonal"})

    def __init__(
        self,
        rank: Rank = "auto",
        *,
        concept_type: ConceptType = "auto",
        strength: float = 1.0,
    ) -> None:
        self.rank = rank
        self.concept_type = concept_type
        self.strength = strength

    def _check_parameters(self, n_features: int) -> None:
        check_rank(self.rank, n_features)

    def _needs_second(self) -> bool:
        return False

    def _depends_on_units(self) -> bool:
        return True

    def _columns(self, moments: Moments) -> Array:
        """The matrix (d x m) whose leading directions go; its columns span those of Σxz."""
        raise NotImplementedError

    def _why_not_pooling(self) -> str:
        return ""

    def _solve(self, seen: Statistics, data: Data | None) -> Solution:
        moments = seen.moments
        A = self._columns(moments)
        own = concept_span(moments.cov_xz, moments.spreads, moments.concept_spreads)
        rank = own.shape[1] if self.rank == "auto" else min(self.rank, own.shape[1])
        left, value = own, 0.0
        if rank < own.shape[1]:
            U, s, _ = scipy.linalg.svd(A, full_matrices=False, check_finite=False)
            left, value = fix_signs(U[:, :rank]), float(s[rank])
        return Solution(left, left.T, moments.mean_x, "closed_form", value, (Step(1, value),))


@register
class SAL(_LeadingDirections):
    """Spectral attribute removal: project out the leading left singular vectors of Σxz.

    Removes the directions of largest covariance with the concept. At the rank of Σxz, the default,
    every covariance with the concept is gone.

    Parameters
    ----------
    rank : int or "auto"
        "auto" is the rank of Σxz; more have nothing to remove and are not used.
    concept_type : {"auto", "classes", "labels", "continuous"}
    strength : float
        From 0, the identity, to 1, full erasure. Below 1 only the mean is still guaranteed.

    References
    ----------
    Shao, Ziser, Cohen (2023), Gold Doesn't Always Glitter: Spectral Removal of Linear and Nonlinear
    Guarded Attribute Information, EACL.

    Examples
    --------
    >>> import numpy as np
    >>> import expunge as ex
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(200, 2))
    >>> X = rng.normal(size=(200, 5)) + z @ rng.normal(size=(2, 5))
    >>> ex.SAL().fit(X, z).rank_
    2
    """

    def _columns(self, moments: Moments) -> Array:
        return moments.cov_xz


@register
class MeanProjection(_LeadingDirections):
    """Project out the differences of the class means.

    Equals `RLACE` for cross-entropy at the concept's own rank; with fewer directions the leading
    ones of the class means count every class alike, however rare.

    Parameters
    ----------
    rank : int or "auto"
        "auto" is the rank of the differences, 1 for two classes; more have nothing to remove and
        are not used.
    concept_type : {"auto", "classes", "labels"}
        Of labels, each is a pair of classes: with it and without.
    strength : float
        From 0, the identity, to 1, full erasure. Below 1 only the mean is still guaranteed.

    Examples
    --------
    >>> import numpy as np
    >>> import expunge as ex
    >>> X, y = np.array([[0.0, 1.0], [0.0, 3.0], [2.0, 1.0], [2.0, 3.0]]), ["a", "a", "b", "b"]
    >>> ex.MeanProjection().fit(X, y).transform(X)
    array([[1., 1.],
           [1., 3.],
           [1., 1.],
           [1., 3.]])
    """

    kinds = frozenset({"classes", "labels"})

    def _columns(self, moments: Moments) -> Array:
        share = moments.mean_z  # cov_xz of a class is its share times its mean, measured from x̄
        if moments.kind == "labels":
            share = share * (1 - share)
        weight = np.divide(1.0, share, out=np.zeros_like(share), where=share > 0)
        return moments.cov_xz * weight
