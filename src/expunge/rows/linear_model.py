"""Sums over a block of rows that a generalised linear model needs, each block read once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from expunge.blockmath import NUMPY, BlockMath
from expunge.concept import Concept
from expunge.linalg import Array
from expunge.parallel import BLOCK, blocks, map_spans, spans

if TYPE_CHECKING:
    from expunge.game.losses import Loss

__all__ = ["GlmPass", "glm_sums", "hessian_sums"]

CACHED = 1 << 18  # numbers of a block that stay in cache: narrow rows come in larger blocks
LARGEST = 1e18  # entries of a predictor whose scores float32 can hold

Sums = tuple[Any, ...]  # loss, weight, XᵀR, ΣR, curvature and hits


@dataclass(frozen=True)
class GlmPass:
    """What one pass of a generalised linear model over the rows gives, all as weighted means.

    Attributes
    ----------
    value : float
        Mean loss.
    coef : array of shape (d, m)
        Derivative in the coefficients, XᵀR with R the derivative of the loss in the scores.
    intercept : array of shape (m,)
        Derivative in the intercept, the column sums of R.
    curvature : array of shape (m, m)
        Mean second derivative of the loss in the scores.
    accuracy : float
        Share of rows whose class the scores get right; nan for a continuous concept.
    """

    value: float
    coef: Array
    intercept: Array
    curvature: Array
    accuracy: float

    @classmethod
    def of_sums(cls, value: float, W: float, G: Array, g: Array, H: Array, hits: float) -> GlmPass:
        """From sums over all rows and the sum of their weights."""
        return cls(float(value / W), G / W, g / W, H / W, float(hits / W))


def glm_sums(
    X: Any,
    loss: Loss,
    coef: Array,
    intercept: Array,
    concept: Concept,
    weights: Array | None,
    *,
    center: Array | None = None,
    single: bool = False,
    math: BlockMath = NUMPY,
) -> Sums:
    """Sums of a model with scores ``(x - center) @ coef + intercept`` over the rows of X.

    Parameters
    ----------
    X : array of shape (n, d), or what `math` reads
    loss : Loss
    coef : array of shape (d, m)
    intercept : array of shape (m,)
    concept : Concept
        Of these rows.
    weights : array of shape (n,), optional
    center : array of shape (d,), optional
    single : bool
        Whether products may be formed in float32 where X is; totals never are.
    math : BlockMath

    Returns
    -------
    tuple
        Sums of the loss and of the weights; XᵀR, the sums of R and of the second derivatives, and
        the weight of rows whose class the scores get right.
    """
    encode = loss.encoder(concept)
    direct = single and math is NUMPY and X.dtype == np.float32 and _fits(coef)
    work = np.float32 if direct else np.float64
    b = intercept - center @ coef if direct and center is not None else intercept
    slopes = math.here(coef.astype(work))

    def part(start: int, stop: int) -> Sums:
        total, weight, right = 0.0, 0.0, 0.0
        G, g, H = np.zeros_like(coef), np.zeros_like(intercept), np.zeros((intercept.size,) * 2)
        for lo, hi, C in _centred(X, start, stop, center, direct, math):
            Y, C, w = _counted(encode(lo, hi), C, weights, lo, hi, math)
            S = math.back(C @ slopes) + b
            values, R, D, F = loss.pieces(Y, S)
            R = R * w[:, None]
            total, weight = total + float(w @ values), weight + float(w.sum())
            right += float(w @ loss.hits(Y, S, concept.kind))
            G += math.back(C.T @ math.here(R.astype(work, copy=False)))
            g += R.sum(axis=0)
            H += np.diag(w @ D) if F is None else np.diag(w @ D) - (F * w[:, None]).T @ F
        return total, weight, G, g, H, right

    if math.serial:
        parts = [part(lo, hi) for lo, hi in spans(X.shape[0])]
    else:
        parts = map_spans(part, X.shape[0], X.shape[1])
    total, W, G, g, H, right = (reduce(np.add, sums) for sums in zip(*parts, strict=True))
    if direct and center is not None:
        G = G - np.outer(center, g)
    return total, W, G, g, H, right


def hessian_sums(
    X: Any,
    loss: Loss,
    coef: Array,
    intercept: Array,
    concept: Concept,
    weights: Array,
    *,
    center: Array | None = None,
    math: BlockMath = NUMPY,
) -> Array:
    """Second derivative in (coef, intercept), summed over the rows of X.

    Σ w (diag(D) - F Fᵀ) ⊗ (x, 1)(x, 1)ᵀ, with D and F the parts of the second derivative of the
    loss in the scores.

    Parameters
    ----------
    X, loss, coef, intercept, concept, center, math
        As of `glm_sums`.
    weights : array of shape (n,)

    Returns
    -------
    array of shape (m, d + 1, m, d + 1), or (m, d + 1, d + 1) where the scores do not interact
    """
    encode, slopes = loss.encoder(concept), math.here(coef)
    m, size = intercept.size, X.shape[1] + 1
    own: list[Any] = [0.0] * m
    cross: Any = None
    for lo, hi, C in _centred(X, 0, X.shape[0], center, False, math):
        Y, C, w = _counted(encode(lo, hi), C, weights, lo, hi, math)
        D, F = loss.hessian(Y, math.back(C @ slopes) + intercept)
        C1 = math.with_ones(C)
        for k in range(m):
            own[k] = own[k] + (C1 * math.here(w * D[:, k])[:, None]).T @ C1
        if F is not None:
            scaled = math.here(np.sqrt(w)[:, None] * F)
            Z = (scaled[:, :, None] * C1[:, None, :]).reshape(len(w), F.shape[1] * size)
            cross = Z.T @ Z if cross is None else cross + Z.T @ Z
    blocks_of_one = np.stack([math.back(block) for block in own])
    if cross is None:
        return blocks_of_one
    full = -math.back(cross).reshape(m, size, m, size)
    for k in range(m):
        full[k, :, k, :] += blocks_of_one[k]
    return np.asarray(full)


def _counted(
    Y: Array, C: Any, weights: Array | None, lo: int, hi: int, math: BlockMath
) -> tuple[Array, Any, Array]:
    """Targets, rows and weights of a block without rows of no weight, whatever these hold."""
    if weights is None:
        return Y, C, np.ones(hi - lo)
    w = weights[lo:hi]
    if w.all():
        return Y, C, w
    counted = np.flatnonzero(w)
    return Y[counted], math.rows(C, counted), w[counted]


def _centred(
    X: Any, start: int, stop: int, center: Array | None, direct: bool, math: BlockMath
) -> Iterator[tuple[int, int, Any]]:
    """Blocks of rows as float64, measured from the center, in memory that is used again.

    With `direct` they are as they lie in memory.
    """
    d = X.shape[1]
    size = math.at_once(d) or max(BLOCK, CACHED // d)
    if direct:
        for lo, hi in blocks(start, stop):
            yield lo, hi, np.asarray(X[lo:hi])
        return
    room = math.room(min(size, stop - start), d)
    for lo, hi in blocks(start, stop, size):
        yield lo, hi, math.double(X[lo:hi], center, room)


def _fits(coef: Array) -> bool:
    """Whether float32 can hold a predictor, and scores by it."""
    return bool(np.abs(coef).max(initial=0.0) < LARGEST)
