"""Rows in memory (or memory-mapped): a NumPy array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from expunge.concept import Concept
from expunge.fingerprint import Fingerprint
from expunge.linalg import Array
from expunge.moments import Moments
from expunge.parallel import BLOCK, blocks, map_spans
from expunge.rows.base import GlmPass

if TYPE_CHECKING:
    from expunge.erasure import Erasure
    from expunge.game.losses import Loss

__all__ = ["DenseRows"]


class DenseRows:
    """A checked array of shape (n, d) as rows.

    Parameters
    ----------
    X : array of shape (n, d)
        Real numbers; never copied as a whole.
    """

    def __init__(self, X: NDArray[Any]) -> None:
        self.X = X

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Width of a row."""
        return int(self.X.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers."""
        return self.X.dtype

    def moments(
        self, concept: Concept, weights: Array | None = None, *, second: bool = True
    ) -> Moments:
        """One pass: counts, means and centred second moments."""
        return Moments.of(self.X, concept, weights, second=second)

    def glm_pass(
        self,
        loss: Loss,
        coef: Array,
        intercept: Array,
        concept: Concept,
        weights: Array | None = None,
        *,
        center: Array | None = None,
    ) -> GlmPass:
        """One pass of the model with scores ``(x - center) @ coef + intercept``, in float64.

        Scores and residuals exist for one block of rows at a time.
        """
        encoder = loss.encoder(concept)

        def part(start: int, stop: int) -> tuple[float, float, Array, Array, Array]:
            buffer = np.empty((min(BLOCK, stop - start), self.n_features))
            total, weight = 0.0, 0.0
            G, g, H = np.zeros_like(coef), np.zeros_like(intercept), np.zeros((intercept.size,) * 2)
            for lo, hi in blocks(start, stop):
                C = buffer[: hi - lo]
                if center is None:
                    np.copyto(C, self.X[lo:hi])
                else:
                    np.subtract(self.X[lo:hi], center, out=C)
                Y, S = encoder(lo, hi), C @ coef + intercept
                w = np.ones(hi - lo) if weights is None else weights[lo:hi]
                R = loss.derivative(Y, S) * w[:, None]
                total, weight = total + float(w @ loss.values(Y, S)), weight + float(w.sum())
                G += C.T @ R
                g += R.sum(axis=0)
                H += loss.curvature(Y, S, w)
            return total, weight, G, g, H

        parts = map_spans(part, self.n_samples, self.n_features)
        total, W, G, g, H = (sum(p[1:], start=p[0]) for p in zip(*parts, strict=True))
        return GlmPass(total / W, G / W, g / W, H / W)

    def transform(self, erasure: Erasure, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """One pass: the rows after an erasure."""
        return erasure.transform(self.X, out=out)

    def fingerprint(self) -> Fingerprint:
        """A sketch that recognises these rows again."""
        return Fingerprint.of(self.X)
