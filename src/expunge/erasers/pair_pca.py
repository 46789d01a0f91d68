"""PCA of pairs: the principal directions of differences within definitional pairs or sets."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import Any, Self

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from expunge.erasers.base import BaseEraser, Data, Solution, Statistics, register
from expunge.errors import InputError
from expunge.fingerprint import Fingerprint
from expunge.game.closed_form import Rank
from expunge.game.kept import rows_to_look_at
from expunge.game.result import Step
from expunge.inputs import as_matrix, check_rank, check_rows
from expunge.linalg import Array, fix_signs
from expunge.moments import Moments
from expunge.rows.remembered import RememberedRows

__all__ = ["PairPCA"]

EPS = float(np.finfo(np.float64).eps)
AT_ONCE = 1 << 24  # numbers in the means of sets that are held at the same time


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

    def _why_not_moments(self) -> str:
        return "it compares the rows of each set with one another"

    def _check(self, X: Any, y: Any, concept: Any, sample_weight: Any, *, whole: bool) -> Data:
        one_pair = whole and check_rows(X, finite=False).n_samples == 2
        return super()._check(X, y, concept, sample_weight, whole=whole and not one_pair)

    def _statistics(self, data: Data, *, second: bool) -> tuple[Statistics, Data]:
        look = rows_to_look_at(data.rows.n_samples, data.weights)
        moments, rounding, seen, looks = _within_sets(data, look)
        data = replace(data, rows=RememberedRows(data.rows, look, looks))
        return Statistics(moments, seen, rounding=rounding), data

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
        return Solution(U, U.T, None, "closed_form", (Step(1, value),), values)


class _Sets:
    """Some of the sets: the first row of each, and its mean measured from there.

    Rows are measured from the first of their set before any sum: sets may be far apart and narrow,
    and equal rows differ by nothing at all.
    """

    def __init__(self, first: int, count: int, n_features: int) -> None:
        self.first, self.count = first, count
        self.origin = np.zeros((count, n_features))
        self.known = np.zeros(count, dtype=bool)
        self.sums, self.size = np.zeros((count, n_features)), np.zeros(count)

    def of(self, X: NDArray[Any], codes: NDArray[np.intp], w: Array) -> tuple[Array, Any, Array]:
        """The rows of these sets in float64, which set each belongs to, and their weights."""
        own = np.flatnonzero((codes >= self.first) & (codes < self.first + self.count))
        return np.asarray(X[own], dtype=np.float64), codes[own] - self.first, w[own]

    def see(self, X: Array, sets: NDArray[np.intp], w: Array) -> None:
        """Take in some rows."""
        order = np.argsort(sets, kind="stable")
        X, sets, w = X[order], sets[order], w[order]
        there, begin = np.unique(sets, return_index=True)
        new = ~self.known[there]
        self.origin[there[new]], self.known[there] = X[begin[new]], True
        if begin.size:
            C = w[:, None] * (X - self.origin[sets])
            self.sums[there] += np.add.reduceat(C, begin, axis=0)
            self.size += np.bincount(sets, weights=w, minlength=self.count)

    def centred(self, X: Array, sets: NDArray[np.intp]) -> Array:
        """Rows measured from the mean of their set."""
        return np.asarray(X - self.origin[sets] - (self.sums / self.size[:, None])[sets])


@np.errstate(over="ignore", invalid="ignore")  # what is no number is refused below
def _within_sets(
    data: Data, look: NDArray[np.intp]
) -> tuple[Moments, float, Fingerprint, NDArray[Any]]:
    """Moments of rows measured from the mean of their set, what of them is rounding; more.

    That is a sketch of the rows and those of the numbers `look`.

    A number x was rounded by up to half a unit of its last digit, ε|x|: that is a variance of
    ε²x²/12, and no direction in which the rows of sets differ by less can be told from rounding.
    Two passes, or as many more as keep the means of the sets within bounds.
    """
    rows, d, values = data.rows, data.rows.n_features, data.concept.values
    weights = np.ones(rows.n_samples) if data.weights is None else data.weights
    xx, rounding = np.zeros((d, d)), 0.0
    sketches: list[Fingerprint] = []
    looks: list[NDArray[Any]] = []
    together = max(1, AT_ONCE // d)
    for first in range(0, data.concept.width, together):
        sets = _Sets(first, min(together, data.concept.width - first), d)
        for start, X in rows.arrays():
            here = slice(start, start + len(X))
            sets.see(*sets.of(X, values[here], weights[here]))
            if first == 0:
                sketches.append(Fingerprint.of(X))
                lo, hi = np.searchsorted(look, [here.start, here.stop])
                looks.append(X[look[lo:hi] - start])
        for start, X in rows.arrays():
            here = slice(start, start + len(X))
            own, which, w = sets.of(X, values[here], weights[here])
            C = sets.centred(own, which)
            xx += C.T @ (w[:, None] * C)
            rounding += float(w @ np.sum((rows.eps * own) ** 2, axis=1)) / 12
    if not np.isfinite(xx).all():
        rows.check_finite()
    moments = Moments(
        n=rows.n_samples,
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
    return moments, rounding, reduce(Fingerprint.merge, sketches), np.concatenate(looks)
