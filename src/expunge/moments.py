"""One-pass, mergeable first and second moments of rows and a concept.

Notation: rows x (n x d), concept columns z (n x m), weights w, W = Σw. Kept are the means and the
*centred* sums  Sxz = Σ w (x - x̄)(z - z̄)ᵀ,  Szz,  diag Sxx  and, if asked for, Sxx itself. Two such
sets merge exactly (Chan, Golub, LeVeque 1983):

    S = S₁ + S₂ + (W₁W₂/W) Δx Δzᵀ,   Δ = mean₂ - mean₁.

All sums are float64. Sxz decides the guarantee of every closed form, so every product in it is
float64 too; Sxx is formed by BLAS in the precision of the input, block by block.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from expunge.batch import check_batch
from expunge.blockmath import NUMPY, BlockMath
from expunge.concept import Concept, Indicator, Kind, Label
from expunge.errors import InputError
from expunge.linalg import Array
from expunge.moments_file import read_moments, write_moments
from expunge.parallel import BLOCK, blocks, imap_spans, n_threads, one_blas_thread, spans

__all__ = ["Moments", "RangeCheck", "span_moments"]

MANY_CLASSES = 32  # above this, class sums go through a sparse product
FEW_PRODUCTS = 1 << 29  # below which threads cost more than they give
LARGEST = 1e100  # size of numbers that can be worked with
SMALLEST = 1e-100  # and by how much they have to vary
PRODUCT = 4 * BLOCK  # rows of one product of second moments: in cache, and worth a call of BLAS


@dataclass(eq=False)
class Moments:
    """Means and centred second moments of rows and a concept.

    Build with `Moments.of`. `update` adds a batch in place, all of it or, on an error, nothing;
    `merge` returns new moments and leaves both operands as they were.

    Parameters
    ----------
    n : int
        Rows seen.
    weight : float
        Sum of their weights (n without weights).
    mean_x, mean_z : arrays of shape (d,) and (m,)
    xz : array of shape (d, m)
        Centred cross sums.
    zz : array of shape (m, m)
    squares : array of shape (d,)
        Diagonal of the centred Sxx in float64, known even when Sxx is not.
    xx : array of shape (d, d) or None
    labels : tuple
        Classes (sorted) or column names; classes may grow from chunk to chunk.
    kind : {"classes", "labels", "continuous"}
    eps : float
        Relative precision of `xx`: that of the input's floating type.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge import Moments
    >>> X, z = np.array([[0.0, 1.0], [2.0, 1.0], [4.0, 4.0]]), np.array([0.0, 1.0, 2.0])
    >>> m = Moments.of(X[:2], z[:2]).update(X[2:], z[2:])
    >>> m.mean_x, m.xz.ravel()
    (array([2., 2.]), array([4., 3.]))
    """

    n: int
    weight: float
    mean_x: Array
    mean_z: Array
    xz: Array
    zz: Array
    squares: Array
    xx: Array | None
    labels: tuple[Label, ...]
    kind: Kind
    eps: float

    @classmethod
    def of(
        cls,
        X: NDArray[Any],
        concept: Concept | NDArray[Any],
        weights: NDArray[Any] | None = None,
        *,
        second: bool = True,
    ) -> Moments:
        """Moments of one batch in one pass.

        Parameters
        ----------
        X : array of shape (n, d), any real type
        concept : Concept, or float array of shape (n,) or (n, m)
        weights : array of shape (n,), optional
        second : bool
            Whether to form the d x d matrix Sxx.

        Returns
        -------
        Moments

        Raises
        ------
        InputError
            When there are no rows, when the rows, the concept or the weights are no numbers or not
            of one length, for weights that are negative, infinite or
            NaN, and for numbers whose squares float64 does not hold.
        """
        X, concept, w = check_batch(X, concept, weights)
        total = reduce(Moments.merge, span_moments(X, concept, w, second=second))
        RangeCheck().see(X, total, w).settle(total)
        return total

    def update(
        self,
        X: NDArray[Any],
        concept: Concept | NDArray[Any],
        weights: NDArray[Any] | None = None,
    ) -> Moments:
        """Add one more batch (parameters as in `of`) and return these moments."""
        merged = self.merge(Moments.of(X, concept, weights, second=self.xx is not None))
        vars(self).update(vars(merged))
        return self

    def merge(self, other: Moments) -> Moments:
        """Moments of the union of two disjoint sets of rows; classes are matched by label."""
        if not isinstance(other, Moments):
            raise InputError(
                "Only moments can be merged with moments",
                type(other).__name__,
                "Pass Moments.of(X, concept)",
            )
        if self.mean_x.shape != other.mean_x.shape or self.kind != other.kind:
            raise InputError(
                "These moments cannot be merged: they differ in width or in the kind of concept",
                f"{self.mean_x.size} features with a {self.kind!r} concept and "
                f"{other.mean_x.size} features with a {other.kind!r} concept",
                "Merge moments of the same columns and the same kind of concept",
            )
        labels = _union(self, other)
        a, b = self._over(labels), other._over(labels)
        W = a.weight + b.weight
        dx, dz = b.mean_x - a.mean_x, b.mean_z - a.mean_z
        share = b.weight / (W or np.inf)
        c = a.weight * share
        xx = None
        if a.xx is not None and b.xx is not None:
            xx = np.outer(c * dx, dx)  # then in place: the matrix may be large
            xx += a.xx
            xx += b.xx
        return replace(
            a,
            n=a.n + b.n,
            weight=W,
            mean_x=a.mean_x + share * dx,
            mean_z=a.mean_z + share * dz,
            xz=a.xz + b.xz + c * np.outer(dx, dz),
            zz=a.zz + b.zz + c * np.outer(dz, dz),
            squares=a.squares + b.squares + c * dx**2,
            xx=xx,
            eps=max(a.eps, b.eps),
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a safetensors file, atomically; equal moments give equal bytes.

        Parameters
        ----------
        path : str or path
        """
        write_moments(path, vars(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Moments:
        """Read from a file; runs no code from it.

        Parameters
        ----------
        path : str or path

        Returns
        -------
        Moments

        Raises
        ------
        BadArtifact
            If the file is damaged, truncated, foreign or of a newer format.
        """
        return cls(**read_moments(path))

    def _over(self, labels: tuple[Label, ...]) -> Moments:
        """Spread the concept columns over more classes; a class not seen has only zeros."""
        if labels == self.labels:
            return self
        at = [labels.index(label) for label in self.labels]
        mean_z = np.zeros(len(labels))
        xz, zz = np.zeros((self.mean_x.size, len(labels))), np.zeros((len(labels),) * 2)
        mean_z[at], xz[:, at], zz[np.ix_(at, at)] = self.mean_z, self.xz, self.zz
        return replace(self, mean_z=mean_z, xz=xz, zz=zz, labels=labels)

    @property
    def n_features(self) -> int:
        """Width of the rows."""
        return int(self.mean_x.size)

    @property
    def trace_xx(self) -> float:
        """Trace of the centred Sxx."""
        return float(self.squares.sum())

    @property
    def mean_variance(self) -> float:
        """Average variance of a column, tr Σxx / d."""
        return self.trace_xx / (self.weight * self.n_features)

    @property
    def spreads(self) -> Array:
        """Standard deviation of each column of x (d,); 1 for a column that does not vary."""
        return _or_one(np.sqrt(self.squares / self.weight))

    @property
    def concept_spreads(self) -> Array:
        """Standard deviation of each column of z (m,); 1 for a column that does not vary."""
        return _or_one(np.sqrt(np.maximum(np.diag(self.zz), 0.0) / self.weight))

    def only(self, columns: Sequence[int]) -> Moments:
        """Moments with some columns of the concept; see `Concept.only`."""
        at = list(columns)
        return replace(
            self,
            mean_z=self.mean_z[at],
            xz=self.xz[:, at],
            zz=self.zz[np.ix_(at, at)],
            labels=tuple(self.labels[j] for j in at),
            kind="labels" if self.kind == "classes" else self.kind,
        )

    def in_units(self, units: Array) -> Moments:
        """Moments of ``x / units``, with one unit (d,) for each column."""
        xx = None if self.xx is None else self.xx / np.outer(units, units)
        return replace(
            self,
            mean_x=self.mean_x / units,
            xz=self.xz / units[:, None],
            squares=self.squares / units**2,
            xx=xx,
        )

    @property
    def cov_xx(self) -> Array:
        """Covariance of x (d x d)."""
        if self.xx is None:
            raise ValueError("these moments were taken without the d x d matrix (second=False)")
        return self.xx / self.weight

    @property
    def cov_xz(self) -> Array:
        """Covariance of x and z (d x m)."""
        return self.xz / self.weight

    @property
    def cov_zz(self) -> Array:
        """Covariance of z (m x m)."""
        return self.zz / self.weight


def _union(a: Moments, b: Moments) -> tuple[Label, ...]:
    if a.labels == b.labels:
        return a.labels
    changed = {*a.labels} ^ {*b.labels}
    if a.kind != "classes" and not all(isinstance(label, Indicator) for label in changed):
        raise InputError(
            "The concept changed its columns between chunks",
            f"{a.labels!r} and then {b.labels!r}",
            "Pass every chunk with the same concept columns",
        )
    try:
        labels = tuple(sorted({*a.labels, *b.labels}))
        types = {(c.concept, c.label_type) for c in labels if isinstance(c, Indicator)}
        if len(types) > len({concept for concept, _ in types}):
            raise TypeError("classes of one concept are text and numbers")
        return labels
    except TypeError as error:
        raise InputError(
            "The classes changed their type between chunks",
            f"{a.labels!r} and then {b.labels!r}",
            "Pass the classes of every chunk as the same type",
        ) from error


def _or_one(units: Array) -> Array:
    return np.where(units > 0, units, 1.0)


class RangeCheck:
    """Refuses numbers so large or so small that their squares are lost in float64.

    A column that seems not to vary is looked into block by block: it may vary by so little that
    its squares vanish.
    """

    def __init__(self) -> None:
        self.seen: Seen | None = None  # a row, and what is as in it

    def see(
        self,
        X: Any,
        moments: Moments,
        weights: Array | None,
        math: BlockMath = NUMPY,
    ) -> RangeCheck:
        """Look at a block (k x d), given its moments.

        Parameters
        ----------
        X : array of shape (k, d)
        moments : Moments
            Of this block alone.
        weights : array of shape (k,), optional
        math : BlockMath

        Returns
        -------
        RangeCheck
            Itself.
        """
        counted = np.arange(X.shape[0]) if weights is None else np.flatnonzero(weights > 0)
        if not counted.size:
            return self
        row = math.arrays(math.rows(X, counted[[0]]))[0].astype(np.float64)
        same = _spread(moments) < SMALLEST
        for j in np.flatnonzero(same):
            column = math.arrays(X[:, j : j + 1])[counted]
            same[j] = bool((column == column[0]).all())
        self.seen = _same_in_both(self.seen, (row, same))
        return self

    def joined(self, other: RangeCheck) -> RangeCheck:
        """A check that has seen the rows of both; both stay as they are.

        Parameters
        ----------
        other : RangeCheck

        Returns
        -------
        RangeCheck
        """
        both = RangeCheck()
        both.seen = _same_in_both(self.seen, other.seen)
        return both

    def settle(self, moments: Moments) -> None:
        """Refuse what is out of range, given the moments of all blocks."""
        spread = _spread(moments)
        with np.errstate(invalid="ignore"):
            fits = (spread <= LARGEST) & (np.abs(moments.mean_x) <= LARGEST)
            if self.seen is not None:
                fits &= (spread >= SMALLEST) | self.seen[1]
        if not fits.all():
            first = int(np.argmin(fits))
            raise InputError(
                f"X has columns out of range: numbers beyond {LARGEST:g}, or that vary by less "
                f"than {SMALLEST:g}, have squares that float64 does not hold",
                f"{int((~fits).sum())} of {fits.size} columns, the first is column {first} with "
                f"mean {moments.mean_x[first]:.3g} and spread {spread[first]:.3g}",
                "Divide such columns by a constant, or drop the outlier, and fit again",
            )
        size = np.sqrt(np.abs(np.diag(moments.zz)) / (moments.weight or np.inf))
        with np.errstate(invalid="ignore"):
            fits = (size <= LARGEST) & (np.abs(moments.mean_z) <= LARGEST)
        if not fits.all() or not np.isfinite(moments.xz).all():
            raise InputError(
                "The concept has numbers or weights whose squares float64 does not hold",
                f"spreads up to {np.nanmax(size, initial=0.0):.3g}",
                "Divide them by a constant and fit again",
            )


Seen = tuple[Array, NDArray[np.bool_]]


def _same_in_both(a: Seen | None, b: Seen | None) -> Seen | None:
    if a is None or b is None:
        return b if a is None else a
    (first, constant), (row, same) = a, b
    return first, constant & same & (row == first)


def _spread(moments: Moments) -> Array:
    return np.asarray(np.sqrt(moments.squares / (moments.weight or np.inf)))


def _shift_for(X: Any, weights: Array | None, math: BlockMath) -> Array | None:
    """A point near the mean, exact in X's type, from which rows have to be measured; or None.

    Sums about zero are as good as sums about the mean until the mean exceeds the spread; then
    rows are shifted first. A shift that X's type holds exactly makes the subtraction exact too.
    """
    if weights is None:
        first = math.arrays(X[:BLOCK])
        share = np.ones(len(first))
    else:  # what counts most decides, and what does not count must not
        heaviest = np.sort(np.argsort(-weights, kind="stable")[:BLOCK])
        heaviest = heaviest[weights[heaviest] > 0]
        first, share = math.arrays(math.rows(X, heaviest)), weights[heaviest]
    head = np.asarray(first, dtype=np.float64)
    share = share / share.sum()
    mean = share @ head
    sd = np.sqrt(share @ (head - mean) ** 2)
    if not np.any(np.abs(mean) > 2 * sd):
        return None
    mean = np.where((head == head[0]).all(axis=0), head[0], mean)  # a constant is its own mean
    kind = first.dtype
    return np.asarray(mean.astype(kind), dtype=np.float64) if kind.kind == "f" else mean


def span_moments(
    X: Any,
    concept: Concept,
    weights: Array | None = None,
    *,
    second: bool = True,
    math: BlockMath = NUMPY,
) -> Iterator[Moments]:
    """Moments of one span of rows after the other, in order; only a few exist at a time.

    Parameters
    ----------
    X : array of shape (n, d), or what `math` reads
        Every row is read once.
    concept : Concept
    weights : array of shape (n,), optional
    second : bool
        Whether to form the d x d matrix Sxx.
    math : BlockMath
        Of the library that holds X.

    Returns
    -------
    iterator of Moments
    """
    n, d = X.shape
    # a few spans cannot occupy the cores: then BLAS may, where its products are worth threads
    wide = second and n * d**2 > FEW_PRODUCTS and len(spans(n)) < n_threads()

    def part(lo: int, hi: int) -> Moments:
        w = None if weights is None else weights[lo:hi]
        return _span_moments(X[lo:hi], concept.take(slice(lo, hi)), w, second, math, wide)

    if wide or math.serial:
        return (part(lo, hi) for lo, hi in spans(n))
    return imap_spans(part, n, d)


@np.errstate(over="ignore", invalid="ignore")  # what overflows is refused with a message later
def _span_moments(
    X: Any, concept: Concept, weights: Array | None, second: bool, math: BlockMath, wide: bool
) -> Moments:
    """Moments of a few thousand rows, each read once; `wide` leaves BLAS its threads for Sxx."""
    n, d = X.shape
    shift = _shift_for(X, weights, math)
    w = np.ones(n) if weights is None else weights
    sums_of, sz, zz, origin = _concept_sums(concept, w)
    one_hot = concept.kind == "classes"
    table, squares = np.zeros((len(sz) + (not one_hot), d)), np.zeros(d)
    xx, room = np.zeros((d, d)) if second else None, math.room(min(BLOCK, n), d)
    for start, stop in blocks(0, n, PRODUCT):
        with one_blas_thread() if wide else nullcontext():
            for lo, hi in blocks(start, stop):
                C = math.double(X[lo:hi], shift, room)
                table += sums_of(lo, hi, C, math)
                squares += math.squares(C, w[lo:hi], room)
        if xx is not None:  # while these rows are in cache
            own = None if weights is None else w[start:stop]
            size = np.sqrt(squares.sum() / (d * w[:stop].sum() or np.inf))
            xx += math.gram(X[start:stop], shift, own, float(size))
    sx = table.sum(axis=0) if one_hot else table[-1]  # one-hot rows of the table add up to Σ w xᵀ
    xz = table.T if one_hot else table[:-1].T
    W = float(w.sum())
    safe = W or np.inf  # a span whose rows all have weight zero adds nothing
    if xx is not None:
        xx -= np.outer(sx, sx / safe)
    return Moments(
        n=n,
        weight=W,
        mean_x=sx / safe if shift is None else shift + sx / safe,
        mean_z=origin + sz / safe,
        xz=xz - np.outer(sx, sz / safe),
        zz=zz - np.outer(sz, sz / safe),
        squares=np.maximum(squares - sx**2 / safe, 0.0),
        xx=xx,
        labels=concept.labels,
        kind=concept.kind,
        eps=math.eps(X),
    )


Sums = Callable[[int, int, Any, BlockMath], Array]


def _concept_sums(concept: Concept, w: Array) -> tuple[Sums, Array, Array, Array]:
    """How to sum a block against the concept; Σwz and Σwzzᵀ; the origin z is measured from."""
    if concept.kind != "classes":
        Z = concept.columns()
        same = np.all(Z[:1] == Z, axis=0)  # a constant is its own mean, to the last digit
        origin = np.where(same, Z[:1].sum(axis=0), w @ Z / (w.sum() or np.inf))
        Z = Z - origin
        D = np.vstack([(w[:, None] * Z).T, w])
        return _products_with(D), D[:-1].sum(axis=1), D[:-1] @ Z, origin
    codes, m = concept.values, concept.width
    z: Array = np.bincount(codes, weights=w, minlength=m).astype(np.float64)
    if m > MANY_CLASSES:

        def sparse_sums(lo: int, hi: int, C: Any, math: BlockMath) -> Array:
            one_per_row = np.arange(hi - lo + 1)
            D = csr_array((w[lo:hi], codes[lo:hi], one_per_row), (hi - lo, m)).T
            return np.asarray(D @ math.back(C))

        return sparse_sums, z, np.diag(z), np.zeros(m)
    D = np.zeros((m, len(codes)))
    D[codes, np.arange(len(codes))] = w
    return _products_with(D), z, np.diag(z), np.zeros(m)


def _products_with(D: Array) -> Sums:
    return lambda lo, hi, C, math: math.sums(D[:, lo:hi], C)
