"""PCA of pairs: the principal directions of differences within definitional pairs or sets."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from itertools import pairwise
from typing import Any, Self, cast

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from expunge.concept import Concept
from expunge.erasers.base import BaseEraser, Data, Solution, Statistics, register
from expunge.errors import InputError
from expunge.game.closed_form import Rank
from expunge.game.result import Step
from expunge.inputs import as_matrix, check_rank, check_rows
from expunge.linalg import ROUNDING, Array, fix_signs
from expunge.moments import Moments
from expunge.parallel import spans
from expunge.rows.dense import DenseRows

__all__ = ["PairPCA"]

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
        Directions to remove, "auto" is 1; at most those in which the sets differ at all (with p
        pairs, p).
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
        return Statistics(_within_sets(data), data.rows.fingerprint())

    def _solve(self, seen: Statistics, data: Data | None) -> Solution:
        values, V = scipy.linalg.eigh(seen.moments.cov_xx, check_finite=False)
        values, V = np.maximum(values[::-1], 0.0), V[:, ::-1]
        if not values[0] > 0:
            raise InputError(
                "No two different rows belong to the same set: there is nothing to compare",
                f"{seen.moments.n} rows",
                "Pass y with the same id for the rows of a pair",
            )
        noise = max(1e-10, seen.moments.n_features * seen.moments.eps)
        used = int((values > noise * values[0]).sum())
        rank = min(1 if self.rank == "auto" else self.rank, used)
        U = fix_signs(V[:, :rank])
        value = float(values[rank]) if rank < len(values) else 0.0
        return Solution(U, U.T, None, "closed_form", value, (Step(1, value),), values)


def _within_sets(data: Data) -> Moments:
    """Moments of the rows measured from the mean of their set, a few hundred sets at a time.

    The scatter within sets is Sxx - SxzSzz⁺Szx with z the indicators of the sets.
    """
    concept, d = data.concept, data.rows.n_features
    order = np.argsort(concept.values, kind="stable")
    bounds = np.searchsorted(concept.values[order], np.arange(0, concept.width + AT_ONCE, AT_ONCE))
    total: Moments | None = None
    for start, stop in pairwise(bounds):
        if start == stop:
            continue
        index = order[start:stop]
        _, codes = np.unique(concept.values[index], return_inverse=True)
        sets = Concept("classes", codes, tuple(range(int(codes.max()) + 1)))
        part = _exact_moments(data, index, sets)
        size = part.mean_z * part.weight
        # Sxz of set k is size_k (m_k - mean), so the scatter between sets is Σ Sxz Sxzᵀ / size
        between = part.xz / np.sqrt(np.where(size > 0, size, 1.0))
        assert part.xx is not None
        xx = part.xx - between @ between.T
        if np.trace(xx) <= ROUNDING * np.trace(part.xx):  # equal rows
            xx[:] = 0.0
        own = replace(
            part,
            mean_x=np.zeros(d),
            mean_z=np.zeros(0),
            xz=np.zeros((d, 0)),
            zz=np.zeros((0, 0)),
            squares=np.diag(xx).copy(),
            xx=xx,
            labels=(),
            kind="continuous",
        )
        total = own if total is None else total.merge(own)
    assert total is not None
    return total


def _exact_moments(data: Data, index: NDArray[np.intp], sets: Concept) -> Moments:
    """Moments of some rows with products in float64: sets may be far apart and narrow."""

    def part(lo: int, hi: int) -> Moments:
        at = index[lo:hi]
        X = np.asarray(cast(DenseRows, data.rows.take(at)).X, dtype=np.float64)
        weights = None if data.weights is None else data.weights[at]
        return Moments.of(X, sets.take(slice(lo, hi)), weights)

    return reduce(Moments.merge, (part(lo, hi) for lo, hi in spans(len(index))))
