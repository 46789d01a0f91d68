"""Orthogonal projections that need only first moments: SAL and mean projection."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import scipy.linalg

from expunge.erasers.base import BaseEraser, Data, Solution, Statistics, register
from expunge.game.closed_form import Rank
from expunge.game.result import Step
from expunge.inputs import ConceptType, check_rank
from expunge.linalg import Array, concept_span, fix_signs
from expunge.moments import Moments

__all__ = ["SAL", "MeanProjection"]


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

    @abstractmethod
    def _columns(self, moments: Moments) -> Array:
        """The matrix (d x m) whose leading directions go; its columns span those of Σxz."""

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
        return Solution(left, left.T, moments.mean_x, "closed_form", (Step(1, value),))


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
