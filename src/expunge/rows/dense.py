"""Rows in memory (or memory-mapped): a NumPy array."""

from __future__ import annotations

from collections.abc import Iterator
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

CACHED = 1 << 18  # numbers of a block that stay in cache: narrow rows come in larger blocks


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
        single: bool = False,
    ) -> GlmPass:
        """One pass of the model with scores ``(x - center) @ coef + intercept``.

        Scores and residuals exist for one block of rows at a time. Products are float64, or with
        `single` and rows of float32 those of the rows as they lie in memory, centred through the
        coefficients; totals are float64.
        """
        encode = loss.encoder(concept)
        direct = single and self.X.dtype == np.float32
        work = np.float32 if direct else np.float64
        b = intercept - center @ coef if direct and center is not None else intercept
        slopes: NDArray[Any] = coef.astype(work)

        def part(start: int, stop: int) -> tuple[Any, ...]:
            total, weight, right = 0.0, 0.0, 0.0
            G, g, H = np.zeros_like(coef), np.zeros_like(intercept), np.zeros((intercept.size,) * 2)
            pieces = self._views(start, stop) if direct else self._blocks(start, stop, center)
            for lo, hi, C in pieces:
                Y, S = encode(lo, hi), C @ slopes + b
                w = np.ones(hi - lo) if weights is None else weights[lo:hi]
                values, R, D, F = loss.pieces(Y, S)
                R = R * w[:, None]
                total, weight = total + float(w @ values), weight + float(w.sum())
                right += float(w @ loss.hits(Y, S, concept.kind))
                G += C.T @ R.astype(work, copy=False)
                g += R.sum(axis=0)
                H += np.diag(w @ D) if F is None else np.diag(w @ D) - (F * w[:, None]).T @ F
            return total, weight, G, g, H, right

        parts = map_spans(part, self.n_samples, self.n_features)
        total, W, G, g, H, right = (sum(p[1:], start=p[0]) for p in zip(*parts, strict=True))
        if direct and center is not None:
            G -= np.outer(center, g)
        return GlmPass(total / W, G / W, g / W, H / W, right / W)

    def glm_hessian(
        self,
        loss: Loss,
        coef: Array,
        intercept: Array,
        concept: Concept,
        weights: Array | None = None,
        *,
        center: Array | None = None,
    ) -> Array:
        """One pass: the second derivative in (coef, intercept), class by class.

        Of shape (m, d + 1, m, d + 1), or (m, d + 1, d + 1) where the scores do not interact.
        """
        encode = loss.encoder(concept)
        m, size = intercept.size, self.n_features + 1
        own, cross = np.zeros((m, size, size)), np.zeros((m * size, m * size))
        coupled, W = False, 0.0
        for lo, hi, C in self._blocks(0, self.n_samples, center):
            D, F = loss.hessian(encode(lo, hi), C @ coef + intercept)
            C1 = np.hstack([C, np.ones((hi - lo, 1))])
            w = np.ones(hi - lo) if weights is None else weights[lo:hi]
            W += float(w.sum())
            for k in range(m):
                own[k] += (C1 * (w * D[:, k])[:, None]).T @ C1
            if F is not None:
                Z = ((np.sqrt(w)[:, None] * F)[:, :, None] * C1[:, None, :]).reshape(hi - lo, -1)
                cross += Z.T @ Z
                coupled = True
        if not coupled:
            return own / W
        full = -cross.reshape(m, size, m, size)
        for k in range(m):
            full[k, :, k, :] += own[k]
        return full / W

    def _blocks(
        self, start: int, stop: int, center: Array | None
    ) -> Iterator[tuple[int, int, Array]]:
        """Blocks of rows as float64, measured from the center; not to be written to."""
        size = max(BLOCK, CACHED // self.n_features)
        if center is None and self.X.dtype == np.float64:
            yield from ((lo, hi, self.X[lo:hi]) for lo, hi in blocks(start, stop, size))
            return
        buffer = np.empty((min(size, stop - start), self.n_features))
        for lo, hi in blocks(start, stop, size):
            C = buffer[: hi - lo]
            if center is None:
                np.copyto(C, self.X[lo:hi])
            else:
                np.subtract(self.X[lo:hi], center, out=C)
            yield lo, hi, C

    def _views(self, start: int, stop: int) -> Iterator[tuple[int, int, NDArray[Any]]]:
        """Blocks of rows as they are."""
        for lo, hi in blocks(start, stop):
            yield lo, hi, self.X[lo:hi]

    def sample(self, size: int, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[np.intp]]:
        """`size` rows drawn with replacement, as float32 or float64, and their numbers."""
        index = rng.integers(0, self.n_samples, size)
        single = self.X.dtype in (np.float16, np.float32)
        return self.X[index].astype(np.float32 if single else np.float64, copy=False), index

    def subset(self, size: int, rng: np.random.Generator) -> tuple[DenseRows, NDArray[np.intp]]:
        """`size` different rows as rows in memory, and their numbers."""
        index = np.sort(rng.choice(self.n_samples, size, replace=False))
        return self.take(index), index

    def take(self, index: NDArray[np.intp]) -> DenseRows:
        """The rows with these numbers as rows in memory."""
        return DenseRows(np.asarray(self.X[index]))

    def transform(self, erasure: Erasure, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """One pass: the rows after an erasure."""
        return erasure.transform(self.X, out=out)

    def fingerprint(self) -> Fingerprint:
        """A sketch that recognises these rows again."""
        return Fingerprint.of(self.X)
