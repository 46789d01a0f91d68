"""Rayleigh quotients: partial least squares, principal and canonical components, any matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from expunge.erasers.base import BaseEraser, Data, Solution, Statistics, register
from expunge.errors import InputError
from expunge.game.closed_form import Rank
from expunge.game.least_squares import cross_moment, second_moment, spreads
from expunge.game.losses import Loss, loss_for
from expunge.game.oblique import oblique, whitener
from expunge.game.result import Step
from expunge.inputs import ConceptType, as_matrix, check_choice, check_rank
from expunge.linalg import (
    Array,
    concept_span,
    fix_signs,
    in_own_units,
    inverse_root,
    least_variance_directions,
    range_basis,
)
from expunge.moments import Moments

__all__ = ["RayleighEraser"]


@register
class RayleighEraser(BaseEraser):
    """Erase the directions that win a Rayleigh quotient.

    For symmetric A with eigenvalues λ₁ <= λ₂ <= ... the game

        max over P of rank d - K   min over θ   of   θᵀPᵀAPθ / ‖Pθ‖²

    is solved by removing the eigenvectors of the K *smallest* eigenvalues, with value λ_{K+1}: the
    predictor minimises over the range of P, a space of dimension d - K, and by Courant and
    Fischer the largest minimum over such spaces is λ_{K+1}. A carries the sign of a loss, so what
    a predictor wants large enters with a minus:

    - "pls", partial least squares: A = -Σxz Σzx, removes the leading left singular vectors of Σxz;
    - "pca": A = -Σxx, removes the leading principal components (no concept);
    - "cca", canonical correlation: A = -W Σxz Σzz⁺ Σzx W with W = Σxx^(-1/2), in whitened
      coordinates; in the original ones the map is x -> x - W⁻¹UUᵀW(x - mean), oblique, and its
      value is -ρ² of the next canonical correlation;
    - a symmetric d x d array: A itself.

    Parameters
    ----------
    rank : int or "auto"
        "auto": the rank of Σxz for "pls" and "cca", 1 otherwise.
    objective : {"pls", "pca", "cca"} or array of shape (d, d)
    center : bool
        Whether to centre x and the concept.
    concept_type : {"auto", "classes", "labels", "continuous"}
    strength : float
        From 0, the identity, to 1, full erasure; below 1 only the mean is still guaranteed.

    Attributes
    ----------
    erasure_ : Erasure
    value_ : float
        λ_{K+1}; 0 when every direction is gone.
    certificate_ : Certificate or None
        Of the cross-entropy (classes, labels) or squared loss (numbers); None without a concept.

    References
    ----------
    Ravfogel et al. (2022), Lemma on Rayleigh quotients; proven here by Courant-Fischer.

    Examples
    --------
    >>> import numpy as np
    >>> import expunge as ex
    >>> X = np.array([[0.0, 2.0], [1.0, -2.0], [2.0, -2.0], [3.0, 2.0]])
    >>> eraser = ex.RayleighEraser(1, objective="pca").fit(X)
    >>> abs(eraser.erasure_.basis)
    array([[0., 1.]])
    >>> eraser.value_
    -1.25
    """

    guarantees = frozenset({"equal_means", "zero_cross_covariance", "mean_preserved"})

    def __init__(
        self,
        rank: Rank = "auto",
        *,
        objective: str | NDArray[Any] = "pls",
        center: bool = True,
        concept_type: ConceptType = "auto",
        strength: float = 1.0,
    ) -> None:
        self.rank = rank
        self.objective = objective
        self.center = center
        self.concept_type = concept_type
        self.strength = strength

    @property
    def value_(self) -> float:
        """Value of the game, λ_{K+1}."""
        return self.history_[-1].value

    def _needs_concept(self) -> bool:
        return isinstance(self.objective, str) and self.objective in ("pls", "cca")

    def _depends_on_units(self) -> bool:
        return isinstance(self.objective, str) and self.objective in ("pls", "pca")

    def _check_parameters(self, n_features: int) -> None:
        check_rank(self.rank, n_features)
        if isinstance(self.objective, str):
            check_choice(self.objective, ("pls", "pca", "cca"), "objective")
            return
        A = as_matrix(self.objective, name="objective")
        square = A.shape == (n_features, n_features)
        if not square or not np.allclose(A, A.T, rtol=1e-10, atol=1e-12 * np.abs(A).max()):
            raise InputError(
                f"objective must be a symmetric matrix of shape ({n_features}, {n_features})",
                f"shape {A.shape}" + ("" if not square else ", not symmetric"),
                "Pass (A + A.T) / 2",
            )

    def _certificate_terms(self) -> dict[str, Any]:
        return {"fit_intercept": self.center}

    def _loss(self, moments: Moments) -> Loss:
        """The certificate's loss; without centring the directions are those of the squared loss."""
        name = "auto" if self.center else "squared"
        return loss_for(name, moments.kind, len(moments.labels))

    def _why_not_pooling(self) -> str:
        return "" if self._needs_concept() else "there is no concept to be learnt about"

    def _solve(self, seen: Statistics, data: Data | None) -> Solution:
        moments = seen.moments
        center = moments.mean_x if self.center else None
        Sxx = second_moment(moments, self.center)
        if isinstance(self.objective, str) and self.objective in ("pls", "cca"):
            left, right, value = self._by_covariance(moments, Sxx)
        else:
            A = -Sxx if isinstance(self.objective, str) else np.asarray(self.objective, float)
            left, value = _smallest(A, 1 if self.rank == "auto" else self.rank)
            right = left.T
        return Solution(left, right, center, "closed_form", (Step(1, value),))

    def _by_covariance(self, moments: Moments, Sxx: Array) -> tuple[Array, Array, float]:
        """Factors and value for the objectives that are a product of covariances."""
        C, Szz = cross_moment(moments, self.center)
        if self.objective == "cca":
            return self._by_correlation(moments, Sxx, C, Szz)
        span = concept_span(C, *(_roots(np.diag(S)) for S in (Sxx, Szz)))
        U, s, _ = scipy.linalg.svd(C, full_matrices=False, check_finite=False)
        own = span.shape[1]
        rank = own if self.rank == "auto" else self.rank
        basis, value = _leading(fix_signs(U) if rank < own else span, s, own, Sxx, rank)
        return basis, basis.T, value

    def _by_correlation(
        self, moments: Moments, Sxx: Array, C: Array, Szz: Array
    ) -> tuple[Array, Array, float]:
        """The same for correlations: nothing of it depends on the units of the columns."""
        variance = moments.squares / moments.weight  # of narrow columns Sxx may not hold it
        if not self.center:
            variance = variance + moments.mean_x**2
        sd, varies = spreads(variance, moments.mean_x, moments.eps)
        varies |= not varies.any()  # equal rows
        sd, at = sd[varies], np.flatnonzero(varies)
        R = Sxx[np.ix_(at, at)] / sd / sd[:, None]
        np.fill_diagonal(R, 1.0)
        W = whitener(R, rcond=len(Sxx) * moments.eps)
        Rzz, units = in_own_units(Szz)
        raw, C = C[at], C[at] / sd[:, None] * units
        span = range_basis(C, scale=float(np.sqrt(C.size)))
        U, s, _ = scipy.linalg.svd(W @ span @ (span.T @ C) @ inverse_root(Rzz), full_matrices=False)
        root: Array = np.asarray(np.linalg.inv(W), dtype=np.float64)
        # erasing a whitened direction u changes x by W⁻¹u
        cost = np.asarray(root.T @ (np.diag(Sxx)[at][:, None] * root), dtype=np.float64)
        rank = span.shape[1] if self.rank == "auto" else self.rank
        still = np.flatnonzero(~varies)[: max(rank - span.shape[1], 0)]  # nothing changes there
        basis, value = _leading(fix_signs(U), s, span.shape[1], cost, rank - len(still))
        left, right = oblique(basis, W, span)
        left, right = sd[:, None] * left, right / sd
        narrow = variance[at] < 0.99 * sd**2  # here left is beyond the digits of its unit
        left[narrow] = raw[narrow] @ np.linalg.pinv(right @ raw)
        alone = np.eye(len(varies))[still]
        return _placed(left.T, alone, at).T, _placed(right, alone, at), value


def _leading(U: Array, s: Array, own: int, cost: Array, rank: int) -> tuple[Array, float]:
    """As many directions as asked for, filled up with those of least cost; the value left."""
    basis = U[:, : min(rank, own)]
    if rank > own:
        basis = np.hstack([basis, least_variance_directions(basis, cost, rank - own)])
    return basis, -(float(s[rank]) ** 2) if rank < own else 0.0


def _placed(rows: Array, others: Array, at: NDArray[np.intp]) -> Array:
    """Rows (r x k) in the columns `at` of those of `others` (m x d), above these."""
    found = np.zeros((len(rows), others.shape[1]))
    found[:, at] = rows
    return np.vstack([found, others])


def _roots(squares: Array) -> Array:
    """Square roots, and 1 where there is none to take."""
    return np.sqrt(np.where(squares > 0, squares, 1.0))


def _smallest(A: Array, rank: int) -> tuple[Array, float]:
    """Eigenvectors of the `rank` smallest eigenvalues and the next eigenvalue."""
    eigenvalues, V = scipy.linalg.eigh(A, check_finite=False)
    value = float(eigenvalues[rank]) if rank < len(eigenvalues) else 0.0
    return fix_signs(V[:, :rank]), value
