"""The inner problem of the game, without a solver: value, gradient and guesses of the Hessian.

    f(Θ, b) = mean ℓ(y, Θᵀ(x' - μ) + b) + ρ/2 ‖Θ‖²,     x' = Mx + t the erased row, M = I - LR.

Rows are never erased for it: with an intercept Θᵀ M (x - x̄) + b gives the same scores, so the
predictor sees x through the coefficients MᵀΘ and its gradient is M XᵀR. Lengths are measured in
units u, which makes the ridge relative: ρ = α u², and α alone appears in the scaled problem. The
unit is the average standard deviation of a column of X, or each column has one of its own; then the
problem is that of the rows x/u, erased by I - (L/u)(Ru).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg

from expunge.concept import Concept
from expunge.erasure import Erasure
from expunge.game.kronecker import kronecker_inverse
from expunge.game.losses import Loss
from expunge.game.null_model import Observed, null_model
from expunge.game.two_level import Sample, coarse_hessian, two_level_inverse
from expunge.linalg import Array, positive_cholesky
from expunge.moments import Moments
from expunge.rows.base import GlmPass, Rows
from expunge.rows.dense import DenseRows

__all__ = ["Problem"]

SINGLE_TOL = 1e-5  # tolerances that float32 products can serve
SINGLE_OFFSET = 30  # largest mean, in units of spread, that they can serve
COARSE = 512  # most variables of a coarse Hessian
COARSE_LEAST = 0.05  # strength of a direction, relative to the strongest, that it takes in
COARSE_ROWS = 2048  # rows it is formed on
HELD = 4_000_000  # most numbers that are kept as float64: 32 megabytes
SMALL = 1500  # most variables of one Hessian block for it to be formed at all


class Problem:
    """The scaled inner problem: value, gradient and guesses of the Hessian; a value is one pass.

    Parameters
    ----------
    rows : Rows
    concept : Concept
    loss : Loss
        Smooth.
    moments : Moments
        Of the same rows, with Sxx if the first guess of the Hessian is to use it.
    weights : array of shape (n,), optional
    alpha : float
        Relative ridge.
    fit_intercept : bool
    erasure : Erasure, optional
        What has been done to the rows; nothing by default.
    units : array of shape (d,), optional
        A unit for each column, instead of one for all.
    """

    def __init__(
        self,
        rows: Rows,
        concept: Concept,
        loss: Loss,
        moments: Moments,
        *,
        weights: Array | None = None,
        alpha: float = 1e-4,
        fit_intercept: bool = True,
        erasure: Erasure | None = None,
        units: Array | None = None,
    ) -> None:
        self.rows, self.concept, self.loss, self.weights = rows, concept, loss, weights
        self.moments, self._alpha, self.fit_intercept = moments, alpha, fit_intercept
        self.unit: Any = float(np.sqrt(moments.mean_variance)) or 1.0
        if units is not None:
            self.unit = units[:, None]
        self.center = moments.mean_x if fit_intercept else None
        self.null = null_model(loss, moments, fit_intercept, Observed(rows, concept, weights))
        self.hessian: Array | None = None
        self._inverted: tuple[float, Array] | None = None
        self.curvature_pairs: list[tuple[Array, Array]] = []
        self.single = False
        self.n_passes = 0
        self._null_pass: GlmPass | None = None
        self._held: tuple[Rows, None] | None = None
        if erasure is not None and units is not None:
            erasure = _in_units(erasure, units)
        self.set_erasure(erasure)

    def hold_rows(self) -> None:
        """Keep few rows as float64, measured from their mean: for those who make many passes."""
        n, d = self.rows.n_samples, self.moments.n_features
        if self._held is None and n * d <= HELD:
            X = self.rows.array()
            X = X.astype(np.float64) if self.center is None else X - self.center
            self._held = DenseRows(X), None

    @property
    def alpha(self) -> float:
        """The relative ridge; what was seen of the Hessian at another one is forgotten."""
        return self._alpha

    @alpha.setter
    def alpha(self, alpha: float) -> None:
        if alpha != self._alpha:
            self._alpha = alpha
            self.curvature_pairs.clear()

    @property
    def ridge(self) -> float:
        """The absolute ridge; the average over columns where each has its own."""
        return float(self.alpha * np.mean(self.unit**2))

    def set_erasure(self, erasure: Erasure | None) -> None:
        """Change what has been done to the rows; what is known of the Hessian stays.

        Where every column has its own unit, the erasure is one of rows in these units.
        """
        d = self.moments.n_features
        self.left, self.right = np.zeros((d, 0)), np.zeros((0, d))
        self.shift: Array | None = None
        self.is_projector = True
        if erasure is None:
            return
        self.left, self.right = erasure.left, erasure.right
        if not self.fit_intercept and (erasure.center is not None or erasure.offset is not None):
            # the constant t in x' = Mx + t, which an intercept would absorb
            origin = erasure.transform(np.zeros(erasure.n_features))
            self.shift = np.asarray(origin / (self.unit if np.isscalar(self.unit) else 1.0))
        gram = self.right @ self.right.T  # close to orthonormal is enough for a guess
        self.is_projector = (
            self.shift is None
            and np.array_equal(self.left, self.right.T)
            and np.allclose(gram, np.eye(len(gram)), rtol=0, atol=1e-6)
        )

    def erase(self, A: Array) -> Array:
        """M A for a matrix A (d x m)."""
        return A - self.left @ (self.right @ A)

    def erase_transposed(self, A: Array) -> Array:
        """Mᵀ A for a matrix A (d x m)."""
        return A - self.right.T @ (self.left.T @ A)

    def evaluate(self, theta: Array, b: Array) -> tuple[float, Array, Array, GlmPass]:
        """Objective, gradients in Θ and b, and the pass itself, at scaled coefficients."""
        got = self._pass(theta, b)
        value = got.value + self.alpha / 2 * float(np.sum(theta**2))
        gradient = self.erase(got.coef / self.unit) + self.alpha * theta
        if self.shift is not None:
            gradient += np.outer(self.shift, got.intercept)
        return value, gradient, got.intercept, got

    def _pass(self, theta: Array, b: Array) -> GlmPass:
        """One pass; that of the null model, which sees nothing of x, serves every erasure."""
        null = not theta.any() and np.array_equal(b, self.null.intercept)
        if null and self._null_pass is not None:
            return self._null_pass
        rows, center = self._held or (self.rows, self.center)
        got = rows.glm_pass(
            self.loss,
            *self._seen(theta, b),
            self.concept,
            self.weights,
            center=center,
            single=self.single and not null,
        )
        self.n_passes += 1
        if null:
            self._null_pass = got
        return got

    def _seen(self, theta: Array, b: Array) -> tuple[Array, Array]:
        """Coefficients and intercept on the rows as they are."""
        coef = self.erase_transposed(theta) / self.unit
        return coef, b if self.shift is None else b + self.shift @ theta

    def allow_single(self, tol: float) -> None:
        """Let passes form products in float32 where `tol` and the offset of the rows permit it."""
        self.single = tol >= SINGLE_TOL and self.offset <= SINGLE_OFFSET

    @property
    def offset(self) -> float:
        """Largest mean of a column, in units of spread."""
        return float((np.abs(self.moments.mean_x)[:, None] / self.unit).max())

    @property
    def may_form_hessian(self) -> bool:
        """Whether the Hessian is small enough to be formed."""
        m = self.null.gradient.shape[1]
        zero = np.zeros_like(self.null.intercept)[np.newaxis]
        coupled = self.loss.hessian(zero, zero)[1] is not None
        size = self.moments.n_features + 1
        few = coupled or m * size**2 <= 16 * SMALL**2  # blocks of separate columns add up too
        return few and size * (m if coupled else 1) <= SMALL

    def form_hessian(self, theta: Array, b: Array) -> None:
        """Form the Hessian of the loss at a point, in the coefficients before erasure."""
        rows, center = self._held or (self.rows, self.center)
        self.hessian = rows.glm_hessian(
            self.loss, *self._seen(theta, b), self.concept, self.weights, center=center
        )
        self._inverted = None

    def inverse(
        self, C: Array, theta: Array | None = None, b: Array | None = None
    ) -> Callable[[Array], Array]:
        """A preconditioner: a guess of the inverse Hessian, for gradients in Θ, b as the last row.

        The Hessian itself if it was formed, else one from the mean curvature C (m x m) and Σxx;
        given the point (Θ, b), one of two levels where there are many classes.
        """
        if self.hessian is not None:
            return self._hessian_inverse()
        least = 1e-3 * self.alpha
        C = C + max(least, 1e-3 * float(np.trace(C)) / len(C)) * np.eye(len(C))
        if theta is not None and b is not None and self.two_level:
            assert self._coarse is not None
            sample, B = self._coarse
            at = self.erase_transposed(theta), b

            def hessian(D: Array) -> Array:
                return coarse_hessian(sample, self.loss, *at, D)

            return two_level_inverse(*self._spread_axes, C, self.alpha, self.right.T, B, hessian)
        if self.is_projector and self.moments.xx is not None:
            base = kronecker_inverse(*self._spread_axes, C, self.alpha, self.right.T)
        else:
            base = self._rough_inverse(float(np.trace(C)) / len(C))
        of_b = np.linalg.inv(C)
        return lambda G: np.vstack([base(G[:-1]), of_b @ G[-1]])

    @property
    def two_level(self) -> bool:
        """Whether the preconditioner is that of two levels."""
        return self.hessian is None and self.is_projector and self._coarse is not None

    @cached_property
    def _coarse(self) -> tuple[Sample, Array] | None:
        """Some rows and what tells their classes apart, where a preconditioner is to use them."""
        m = self.null.gradient.shape[1]
        if m < 3 or self.may_form_hessian or self.moments.xx is None or not self.fit_intercept:
            return None
        U, s, _ = np.linalg.svd(self.null.gradient / self.unit, full_matrices=False)
        B = U[:, s > COARSE_LEAST * s[0]][:, : COARSE // m]
        size = min(COARSE_ROWS, self.rows.n_samples)
        rows, index = self.rows.subset(size, np.random.default_rng(0))
        centred = rows.array() - self.moments.mean_x
        X = (centred / np.ravel(self.unit)).astype(np.float32)
        weights = np.ones(size) if self.weights is None else self.weights[index]
        Y = self.loss.encoder(self.concept.take(index))(0, size)
        return Sample(X, Y, weights), B

    @cached_property
    def _spread_axes(self) -> tuple[Array, Array]:
        """Eigenvalues and eigenvectors of the second moments of x in scaled coefficients."""
        variances, axes = scipy.linalg.eigh(self._second_moment(), check_finite=False)
        return np.maximum(variances, 0.0), axes  # products in float32 may leave some below zero

    def _second_moment(self) -> Array:
        S = self.moments.cov_xx
        if not self.fit_intercept:
            S = S + np.outer(self.moments.mean_x, self.moments.mean_x)
        return np.asarray(S / (self.unit * np.transpose(self.unit)))

    def _hessian_inverse(self) -> Callable[[Array], Array]:
        """Inverse of the kept Hessian plus ridge on the coefficients that the erasure leaves.

        For an orthogonal projector these are the Θ with UᵀΘ = 0, and the inverse there is
        A - AU(UᵀAU)⁻¹UᵀA with A the inverse on all coefficients, formed once per Hessian and ridge.
        For any other erasure A is formed anew, on the coefficients as it leaves them.
        """
        A = self._full_inverse()
        if len(self.right) == 0 or not self.is_projector:
            return lambda G: _by_blocks(A, G)
        U = np.vstack([self.right.T, np.zeros((1, len(self.right)))])
        AU = np.einsum("...ij,jk->...ik", A, U, optimize=True)
        (m, size), K = A.shape[:2], U.shape[1]
        if A.ndim == 3:
            small = [positive_cholesky(U.T @ block) for block in AU]

            def separate(G: Array) -> Array:
                columns = zip(small, AU, G.T, strict=True)
                shares = [B @ scipy.linalg.cho_solve(f, B.T @ g) for f, B, g in columns]
                return np.asarray(_by_blocks(A, G) - np.column_stack(shares))

            return separate
        T = AU.reshape(m * size, m * K)
        coupled = positive_cholesky(np.einsum("ji,kjlc->kilc", U, AU).reshape(m * K, m * K))

        def joint(G: Array) -> Array:
            share = scipy.linalg.cho_solve(coupled, T.T @ G.T.ravel(), check_finite=False)
            return np.asarray(_by_blocks(A, G) - (T @ share).reshape(m, size).T)

        return joint

    def _full_inverse(self) -> Array:
        """Inverse of the kept Hessian plus ridge, in scaled coefficients; cached for projectors."""
        assert self.hessian is not None
        if self.is_projector and self._inverted is not None and self._inverted[0] == self.alpha:
            return self._inverted[1]
        m, size = self.hessian.shape[:2]
        ridge = np.append(np.full(size - 1, self.alpha), 1e-8)  # b stays safely positive
        J = self._seen_by()
        if self.hessian.ndim == 3:
            H = np.stack([J @ block @ J.T for block in self.hessian])
            found = np.stack([_spd_inverse(block + np.diag(ridge)) for block in H])
        else:
            H = np.einsum("ia,kalb,jb->kilj", J, self.hessian, J, optimize=True)
            flat = np.ascontiguousarray(H).reshape(m * size, m * size)
            flat[np.diag_indices_from(flat)] += np.tile(ridge, m)
            found = _spd_inverse(flat).reshape(H.shape)
        if self.is_projector:
            self._inverted = self.alpha, found
        return found

    def _seen_by(self) -> Array:
        """J, with which (Θ, b) reads the rows through Jᵀ(Θ, b); of a projector only the scale."""
        d = self.moments.n_features
        J = np.zeros((d + 1, d + 1))
        J[:d, :d] = np.diag(np.broadcast_to(1 / np.ravel(self.unit), d))
        if not self.is_projector:
            J[:d, :d] = self.erase(J[:d, :d])
        if self.shift is not None:
            J[:d, d] = self.shift
        J[d, d] = float(self.fit_intercept)  # without an intercept it must not enter the inverse
        return J

    def _rough_inverse(self, curvature: float) -> Callable[[Array], Array]:
        """(κ M Σ Mᵀ + α)⁻¹ for an erasure that is no projector, with one curvature κ for all."""
        if self.moments.xx is None:
            return lambda G: G / (curvature + self.alpha)
        H = self.erase(self.erase(self._second_moment()).T) * curvature
        H[np.diag_indices_from(H)] += self.alpha
        factor = positive_cholesky(H)
        return lambda G: np.asarray(scipy.linalg.cho_solve(factor, G, check_finite=False))


def _in_units(erasure: Erasure, units: Array) -> Erasure:
    """The erasure of rows x/u that does to them what the given one does to x."""
    center, offset = (None if v is None else v / units for v in (erasure.center, erasure.offset))
    return Erasure(erasure.left / units[:, None], erasure.right * units, center, offset)


def _spd_inverse(H: Array) -> Array:
    factor, _ = positive_cholesky(H)
    lower, _ = scipy.linalg.lapack.dpotri(factor, lower=True)
    lower = np.tril(lower)
    return np.asarray(lower + np.tril(lower, -1).T)


def _by_blocks(A: Array, G: Array) -> Array:
    """A G for G of shape (d + 1, m), with A by class or over all classes at once."""
    if A.ndim == 3:
        return np.asarray((A @ G.T[..., np.newaxis])[..., 0].T)
    return np.tensordot(A, G.T, axes=2).T
