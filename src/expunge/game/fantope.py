"""Points of the Fantope, the convex hull of the rank-K projectors, without d x d matrices.

F_K = {Q symmetric : 0 <= Q <= I, tr Q = K}. A point is kept as

    Q = τ(I - UUᵀ) + U diag(λ) Uᵀ,

few orthonormal columns U with their eigenvalues and one eigenvalue τ for everything orthogonal to
them. This form is closed under a projected gradient step, because the gradient of the game has rank
at most 2m: U grows by those directions, a small eigenproblem is solved, and the projection clips
the eigenvalues, τ counted d - r times.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.linalg

from expunge.linalg import Array, fix_signs

__all__ = ["Fantope", "capped_shift"]

SAME = 1e-14  # eigenvalues this close to τ are τ
SAFE = 1e-3  # above this share, what is left is orthogonal to U to rounding
NEW = 1e-12  # a direction whose part outside U is below this share of its length adds nothing

_qr = partial(scipy.linalg.qr, mode="economic", check_finite=False)


def capped_shift(values: Array, counts: Array, K: float) -> float:
    """The γ with Σ counts * clip(values - γ, 0, 1) = K, exactly.

    The sum is piecewise linear and falling in γ with breaks at `values` and ``values - 1``: sort
    the breaks, find the piece that crosses K, and solve on the entries strictly between 0 and 1
    there.

    Parameters
    ----------
    values : array of shape (k,)
    counts : array of shape (k,)
        How often each value occurs.
    K : float
        Between 0 and the sum of counts.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.game.fantope import capped_shift
    >>> g = capped_shift(np.array([2.0, 0.5, 0.0]), np.ones(3), 1)
    >>> g, np.clip(np.array([2.0, 0.5, 0.0]) - g, 0, 1)
    (0.5, array([1., 0., 0.]))
    """
    breaks = np.concatenate([values - 1, values])
    order = np.argsort(breaks, kind="stable")
    breaks = breaks[order]
    slopes = np.cumsum(np.concatenate([counts, -counts])[order])  # how fast the sum falls
    sums = counts.sum() - np.concatenate([[0.0], np.cumsum(slopes[:-1] * np.diff(breaks))])
    piece = int(np.searchsorted(-sums, -K, side="left"))  # the first break at or below K
    low = breaks[max(piece - 1, 0)]
    middle = (low + breaks[min(piece, len(breaks) - 1)]) / 2
    at_one = values - middle >= 1
    inside = ~at_one & (values > middle)
    weight = float(counts[inside].sum())
    if weight == 0:
        return float(middle)
    return float((counts[inside] @ values[inside] + counts[at_one].sum() - K) / weight)


@dataclass(frozen=True)
class Fantope:
    """A point of the Fantope.

    Attributes
    ----------
    U : array of shape (d, r)
        Orthonormal columns.
    eigenvalues : array of shape (r,)
        λ, in [0, 1].
    tail : float
        τ, the eigenvalue of everything orthogonal to U.
    K : int
        The trace.
    lost : float
        Frobenius norm of what capping the width has dropped so far.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.game.fantope import Fantope
    >>> Q = Fantope.center(4, 1).step(np.eye(4)[:, :1], -np.eye(4)[:, :1], 0.75)
    >>> Q.spectrum()
    array([0.8125, 0.0625, 0.0625, 0.0625])
    """

    U: Array
    eigenvalues: Array
    tail: float
    K: int
    lost: float = 0.0

    @classmethod
    def center(cls, d: int, K: int) -> Fantope:
        """The centre, (K/d) I."""
        return cls(np.zeros((d, 0)), np.zeros(0), K / d, K)

    @classmethod
    def vertex(cls, U: Array) -> Fantope:
        """The projector on orthonormal columns U (d x K)."""
        return cls(U, np.ones(U.shape[1]), 0.0, U.shape[1])

    @classmethod
    def random_vertex(cls, d: int, K: int, rng: np.random.Generator) -> Fantope:
        """The projector on a subspace drawn uniformly."""
        return cls.vertex(np.linalg.qr(rng.standard_normal((d, K)))[0])

    @property
    def width(self) -> int:
        """Columns kept."""
        return int(self.U.shape[1])

    def apply(self, A: Array) -> Array:
        """Q A for A of shape (d, m)."""
        return self.tail * A + self.U @ ((self.eigenvalues - self.tail)[:, None] * (self.U.T @ A))

    def step(self, theta: Array, G: Array, size: float, width: int | None = None) -> Fantope:
        """The projection on the Fantope of ``Q - size * (Θ Gᵀ + G Θᵀ)/2``.

        Parameters
        ----------
        theta, G : arrays of shape (d, m)
            Coefficients of the predictor and XᵀR, so that the step follows the gradient of the
            loss.
        size : float
        width : int, optional
            Columns to keep at the most; None keeps all and is exact.

        Returns
        -------
        Fantope
        """
        B = self._extended(np.hstack([theta, G]))
        T, H = B.T @ theta, B.T @ G
        M = -size / 2 * (T @ H.T + H @ T.T)
        old = np.full(B.shape[1], self.tail)
        old[: self.width] = self.eigenvalues
        M[np.diag_indices_from(M)] += old
        mu, V = np.linalg.eigh(M)
        rest = B.shape[0] - B.shape[1]
        values, counts = np.full(len(mu) + 1, self.tail), np.ones(len(mu) + 1)
        values[:-1], counts[-1] = mu, rest
        gamma = capped_shift(values, counts, self.K)
        eigenvalues = np.clip(mu - gamma, 0.0, 1.0)
        tail = float(np.clip(self.tail - gamma, 0.0, 1.0)) if rest else 0.0
        kept = np.abs(eigenvalues - tail) > SAME if rest else np.ones(len(mu), dtype=bool)
        point = Fantope(B @ V[:, kept], eigenvalues[kept], tail, self.K, self.lost)
        return point if width is None or point.width <= width else point._capped(width)

    def _extended(self, N: Array) -> Array:
        """Orthonormal columns spanning U and N, U first."""
        size = np.sqrt(np.einsum("ij,ij->j", N, N))
        W = N[:, size > 0] / size[size > 0]
        for _ in range(2):  # twice is enough
            W = W - self.U @ (self.U.T @ W)
        q, r = np.linalg.qr(W)
        if np.abs(np.diag(r)).min(initial=1.0) < SAFE:
            # pivoted, so that a column with nothing new in it takes nothing away from later ones
            q, r, _ = _qr(W, pivoting=True)
            q = q[:, np.abs(np.diag(r)) > NEW]
            q, *_ = _qr(q - self.U @ (self.U.T @ q))
        return np.hstack([self.U, q])

    def _capped(self, width: int) -> Fantope:
        """The same with the eigenvalues nearest τ averaged into it; the trace stays."""
        order = np.argsort(-np.abs(self.eigenvalues - self.tail), kind="stable")
        keep, drop = np.sort(order[:width]), order[width:]
        rest = self.U.shape[0] - self.width
        tail = float((rest * self.tail + self.eigenvalues[drop].sum()) / (rest + len(drop)))
        lost = rest * (self.tail - tail) ** 2 + float(((self.eigenvalues[drop] - tail) ** 2).sum())
        return Fantope(
            self.U[:, keep], self.eigenvalues[keep], tail, self.K, self.lost + float(np.sqrt(lost))
        )

    def spectrum(self) -> Array:
        """All d eigenvalues, descending."""
        tail = np.full(self.U.shape[0] - self.width, self.tail)
        return np.sort(np.concatenate([self.eigenvalues, tail]))[::-1]

    def nearest_vertex(self) -> Array:
        """Orthonormal columns (d x K) of the K leading eigenvectors: the nearest projector's range.

        Where the tail's eigenvalue is among the K largest, its directions are interchangeable and
        the first coordinate axes are used.
        """
        order = np.argsort(-self.eigenvalues, kind="stable")
        leading = order[self.eigenvalues[order] > self.tail][: self.K]
        U = self.U[:, leading]
        missing = self.K - U.shape[1]
        if missing:
            taken = np.hstack([U, self.U[:, np.setdiff1d(order, leading)]])
            axes = np.eye(len(U))[:, : taken.shape[1] + missing]
            U = np.hstack(
                [U, Fantope(taken, np.ones(taken.shape[1]), 0.0, 0)._outside(axes, missing)]
            )
        return fix_signs(U)

    def _outside(self, A: Array, count: int) -> Array:
        """`count` orthonormal directions orthogonal to U, from the columns of A."""
        q, *_ = _qr(A - self.U @ (self.U.T @ A), pivoting=True)
        return np.asarray(q[:, :count])
