"""PCA of pairs: the principal directions of differences within definitional pairs or sets."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Self, cast

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from expunge.erasers.base import BaseEraser, Data, Solution, Statistics, register
from expunge.errors import InputError
from expunge.game.closed_form import Rank
from expunge.game.result import Step
from expunge.inputs import as_matrix, check_rank, check_rows
from expunge.linalg import Array, fix_signs
from expunge.moments import Moments
from expunge.parallel import spans
from expunge.rows.dense import DenseRows

__all__ = ["PairPCA"]

EPS = float(np.finfo(np.float64).eps)
AT_ONCE = 256  # sets whose means are held at the same time


@register
class PairPCA(BaseEraser):
    """Project out the principal components of rows centred within pairs or larger sets.

    For word vectors the sets are definitional: he and she, man and woman. y holds the set of each
    row; what is removed are the leading eigenvectors of the pooled covariance within sets. The
    pairs say what the concept is, so no label is used and nothing is promised about a classifier:
    a baseline.

    The map is x -> x - Q x, through the origin, as for word vectors: the pairs are not a sample of
    the rows it will be applied to, so their mean is not that of those rows. In a stream, a set has
    to come in one chunk.

    Parameters
    ----------
    rank : int or "auto"
        Directions to remove, "auto" is 1; at most those in which the rows of sets differ by more
        than the rounding of their type (with p pairs, p).
    strength : float
        From 0, the identity, to 1, full removal.

    Attributes
    ----------
    erasure_ : Erasure
    certificate_ : None
        Without labels there is nothing to certify; see `expunge.certify`.
    explained_variance_ratio_ : array
        Share of the covariance within sets along each of its principal directions.

    References
    ----------
    Bolukbasi, Chang, Zou, Saligrama, Kalai (2016), Man is to Computer Programmer as Woman is to
    Homemaker?, NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> import expunge as ex
    >>> he_she, man_woman = np.array([[2.0, 0.0], [-2.0, 0.1]]), np.array([[1.0, 1.0], [-1.0, 1.0]])
    >>> eraser = ex.PairPCA(1).fit(np.vstack([he_she, man_woman]), ["he", "he", "man", "man"])
    >>> abs(eraser.erasure_.basis.round(2))
    array([[1.  , 0.02]])
    """

    guarantees = frozenset({"orthogonal"})
    kinds = frozenset({"classes"})
    concept_type = "classes"

    def __init__(self, rank: Rank = "auto", *, strength: float = 1.0) -> None:
        self.rank = rank
        self.strength = strength

    @classmethod
    def from_pairs(cls, A: Any, B: Any, rank: Rank = 1, *, strength: float = 1.0) -> Self:
        """A fitted eraser from pairs, row by row.

        Parameters
        ----------
        A, B : arrays of shape (p, d)
            The two sides: row i of A belongs to row i of B.
        rank : int or "auto"
        strength : float

        Returns
        -------
        PairPCA

        Examples
        --------
        >>> import numpy as np
        >>> import expunge as ex
        >>> ex.PairPCA.from_pairs(np.eye(3)[:2], -np.eye(3)[:2], rank=2).rank_
        2
        """
        A, B = as_matrix(A, name="A"), as_matrix(B, name="B")
        if A.shape != B.shape or A.ndim != 2:
            raise InputError(
                "A and B must be matrices of the same shape: one row per pair",
                f"{A.shape} and {B.shape}",
                "Pass the two sides in the same order",
            )
        ids = np.arange(len(A))
        return cls(rank, strength=strength).fit(np.vstack([A, B]), np.concatenate([ids, ids]))

    @property
    def explained_variance_ratio_(self) -> Array:
        """Share of the covariance within sets along each principal direction, descending."""
        found = self._settled()[2].spectrum
        assert found is not None
        return np.asarray(found / found.sum())

    def _check_parameters(self, n_features: int) -> None:
        check_rank(self.rank, n_features)

    def _certifies(self) -> bool:
        return False

    def _check(self, X: Any, y: Any, concept: Any, sample_weight: Any, *, whole: bool) -> Data:
        one_pair = whole and check_rows(X).n_samples == 2
        return super()._check(X, y, concept, sample_weight, whole=whole and not one_pair)

    def _statistics(self, data: Data, *, second: bool) -> Statistics:
        moments, rounding = _within_sets(data)
        return Statistics(moments, data.rows.fingerprint(), rounding=rounding)

    def _solve(self, seen: Statistics, data: Data | None) -> Solution:
        covariance, d = seen.moments.cov_xx, seen.moments.n_features
        values, V = scipy.linalg.eigh(covariance, check_finite=False)
        values, V = np.maximum(values[::-1], 0.0), V[:, ::-1]
        noise = max(seen.rounding / seen.moments.weight, d * EPS * float(values[0]))
        used = int((values > noise).sum())
        if not used:
            raise InputError(
                "No two different rows belong to the same set: there is nothing to compare",
                f"{seen.moments.n} rows that differ within sets by rounding at the most",
                "Pass y with the same id for the rows of a pair",
            )
        rank = min(1 if self.rank == "auto" else self.rank, used)
        U = fix_signs(V[:, :rank])
        U[np.diag(covariance) == 0] = 0.0  # no rounding in a column that never varies
        value = float(values[rank]) if rank < len(values) else 0.0
        return Solution(U, U.T, None, "closed_form", value, (Step(1, value),), values)


def _within_sets(data: Data) -> tuple[Moments, float]:
    """Moments of the rows measured from the mean of their set, and what of them is rounding.

    A number x was rounded by up to half a unit of its last digit, ε|x|: that is a variance of
    ε²x²/12, and no direction in which the rows of sets differ by less can be told from rounding.
    """
    values, d = data.concept.values, data.rows.n_features
    weights = np.ones(data.rows.n_samples) if data.weights is None else data.weights
    order = np.argsort(values, kind="stable")
    bounds = np.searchsorted(values[order], np.arange(0, data.concept.width + AT_ONCE, AT_ONCE))
    xx, rounding = np.zeros((d, d)), 0.0
    for start, stop in pairwise(bounds):
        if start < stop:
            scatter, squares = _scatter(data, order[start:stop], weights)
            xx += scatter
            rounding += squares / 12
    moments = Moments(
        n=data.rows.n_samples,
        weight=float(weights.sum()),
        mean_x=np.zeros(d),
        mean_z=np.zeros(0),
        xz=np.zeros((d, 0)),
        zz=np.zeros((0, 0)),
        squares=np.diag(xx).copy(),
        xx=xx,
        labels=(),
        kind="continuous",
        eps=EPS,
    )
    return moments, rounding


def _scatter(data: Data, index: NDArray[np.intp], weights: Array) -> tuple[Array, float]:
    """Scatter within the sets of some rows, in order of their sets, and Σ w ‖εx‖².

    Rows are measured from the first of their set before any sum: sets may be far apart and narrow,
    and equal rows differ by nothing at all.
    """
    _, first, sets = np.unique(data.concept.values[index], return_index=True, return_inverse=True)
    origin, _ = _rows(data, index[first])
    w = weights[index]
    size = np.bincount(sets, weights=w)
    mean = np.zeros_like(origin)
    for lo, hi in spans(len(index)):
        X, _ = _rows(data, index[lo:hi])
        begin = np.flatnonzero(np.diff(sets[lo:hi], prepend=-1))
        parts = np.add.reduceat(w[lo:hi, None] * (X - origin[sets[lo:hi]]), begin, axis=0)
        mean[sets[lo:hi][begin]] += parts
    mean /= np.where(size > 0, size, 1.0)[:, None]
    scatter, squares = np.zeros((origin.shape[1],) * 2), 0.0
    for lo, hi in spans(len(index)):
        X, eps = _rows(data, index[lo:hi])
        C = X - origin[sets[lo:hi]] - mean[sets[lo:hi]]
        scatter += C.T @ (w[lo:hi, None] * C)
        squares += float(w[lo:hi] @ np.sum((eps * X) ** 2, axis=1))
    return scatter, squares


def _rows(data: Data, index: NDArray[np.intp]) -> tuple[Array, float]:
    """Some rows in float64, and the relative precision of the type they came in."""
    X = cast(DenseRows, data.rows.take(index)).X
    eps = float(np.finfo(X.dtype).eps) if X.dtype.kind == "f" else EPS
    return np.asarray(X, dtype=np.float64), eps
