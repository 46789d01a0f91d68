"""What is read of the concept from x and from features, exactly as much as there is, least in size.

Let u be the row (in units), v what features r(x) add to it (their residual of a regression on u)
and z the concept. Among all readings g = A u + B v with cov(g, z) = T,

    E‖g‖² + ridge E‖B‖²    is least for    g = T G⁺ [W u; V v],   G = [W Σuz; V Σvz],

W and V being whiteners of Σuu and Σvv + ridge. This is T Σpz⁺ p for the ridge predictor
p = Gᵀ [W u; V v] of z. Only what features add is penalised, so LEACE, which is B = 0, always is
among the readings, and is the answer for an infinite ridge: no ridge changes the rows of the fit
more than LEACE does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from expunge.game.oblique import whitener
from expunge.linalg import RCOND, Array, positive_cholesky
from expunge.moments import Moments

__all__ = ["Blocks", "Readout"]

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Blocks:
    """Covariances of rows u (d columns), features r (D) and a concept z (m), all in units.

    Attributes
    ----------
    S : array of shape (d + D + m, d + D + m)
    d, m : int
    """

    S: Array
    d: int
    m: int

    @classmethod
    def of(cls, moments: Moments, d: int, m: int) -> Blocks:
        """The blocks of moments over all these columns."""
        return cls(moments.cov_xx, d, m)

    @property
    def uu(self) -> Array:
        """Of rows (d x d)."""
        return self.S[: self.d, : self.d]

    @property
    def ur(self) -> Array:
        """Of rows with features (d x D)."""
        return self.S[: self.d, self.d : -self.m]

    @property
    def rr(self) -> Array:
        """Of features (D x D)."""
        return self.S[self.d : -self.m, self.d : -self.m]

    @property
    def uz(self) -> Array:
        """Of rows with the concept (d x m)."""
        return self.S[: self.d, -self.m :]

    @property
    def fz(self) -> Array:
        """Of rows and features with the concept ((d + D) x m)."""
        return self.S[: -self.m, -self.m :]

    @property
    def ff(self) -> Array:
        """Of rows and features (d + D, d + D)."""
        return self.S[: -self.m, : -self.m]

    @property
    def zz(self) -> Array:
        """Of the concept (m x m)."""
        return self.S[-self.m :, -self.m :]


class Readout:
    """Readings of these rows at any ridge.

    Parameters
    ----------
    blocks : Blocks
    uu : array of shape (d, d), optional
        A covariance of the rows that is shrunk, in place of their own.
    """

    def __init__(self, blocks: Blocks, uu: Array | None = None) -> None:
        self.blocks, d = blocks, blocks.d
        W = whitener(blocks.uu, rcond=d * EPS)
        self.explained = W.T @ (W @ blocks.ur)  # of features by rows (d x D)
        both = blocks.ur.T @ self.explained
        self.vv = blocks.rr - both - both.T + self.explained.T @ blocks.uu @ self.explained
        self.vz = blocks.fz[d:] - self.explained.T @ blocks.uz
        self.unit = max(float(np.trace(self.vv)) / max(1, len(self.vv)), EPS)
        self.W = W if uu is None else whitener(uu, rcond=d * EPS)
        self.Gu = self.W @ blocks.uz

    def predictor(self, ridge: float) -> tuple[Array, Array]:
        """Coefficients of p in rows and features ((d + D) x m), and Σpz (m x m).

        Parameters
        ----------
        ridge : float
            In units of the mean variance of what features add; infinite for none of them.

        Returns
        -------
        (array, array)
        """
        of_rows, of_features = self.W.T @ self.Gu, np.zeros_like(self.vz)
        if np.isfinite(ridge):
            of_features = scipy.linalg.cho_solve((self._factor(ridge), True), self.vz)
        pz = self.Gu.T @ self.Gu + self.vz.T @ of_features
        return self._on_features(of_rows, of_features), pz

    def reading(self, T: Array, ridge: float) -> Array:
        """Coefficients ((d + D) x k) of the least reading g with cov(g, z) = T (k x m)."""
        L, G = None, self.Gu
        if np.isfinite(ridge):
            L = self._factor(ridge)
            G = np.vstack([G, scipy.linalg.solve_triangular(L, self.vz, lower=True)])
        inverse = np.linalg.pinv(G, rcond=RCOND)
        read = T @ inverse
        read += (T - read @ G) @ inverse  # what rounding left
        of_rows, of_features = self.W.T @ read.T[: self.blocks.d], np.zeros((len(self.vv), len(T)))
        if L is not None:
            of_features = scipy.linalg.solve_triangular(
                L, read.T[self.blocks.d :], lower=True, trans="T"
            )
        return self._on_features(of_rows, of_features)

    def _factor(self, ridge: float) -> Array:
        """The Cholesky factor of Σvv + ridge."""
        H = self.vv + ridge * self.unit * np.eye(len(self.vv))
        return np.tril(positive_cholesky(H)[0])

    def _on_features(self, of_rows: Array, of_rest: Array) -> Array:
        """Coefficients in u and v as those in u and r."""
        return np.vstack([of_rows - self.explained @ of_rest, of_rest])
