"""The erasure: a frozen low-rank affine map, the only thing that is saved, shipped and applied."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Self, cast

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from expunge.emptied import emptied_columns
from expunge.errors import InputError
from expunge.files.naming import listed
from expunge.inputs.frames import rows_of_table
from expunge.inputs.matrices import apply_map, as_matrix
from expunge.linalg import Array, fix_signs, range_basis
from expunge.meta import plain_meta
from expunge.parallel import blas_for
from expunge.saved_map import SavedMap

__all__ = ["Erasure"]

ORTHOGONAL = 1e-10  # how far from symmetric and idempotent a projector may be


class Erasure(SavedMap):
    """The affine map ``x -> x - left @ right @ (x - center) + offset``.

    Parameters
    ----------
    left : array of shape (d, r)
        The directions that are taken away.
    right : array of shape (r, d)
        The directions that are read; for an orthogonal erasure ``right = left.T``.
    center : array of shape (d,), optional
        The point left where it is (up to `offset`); usually the mean of the fitted rows.
    offset : array of shape (d,), optional
        Added at the end.
    meta : mapping, optional
        What made it: method, parameters, labels, n, fingerprint, versions. JSON values only.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge import Erasure
    >>> e = Erasure([[1.0], [0.0]], [[1.0, 0.0]])
    >>> e(np.array([[3.0, 4.0]]))
    array([[0., 4.]])
    >>> e
    Erasure(rank 1 of 2 features, orthogonal)
    """

    file_kind = "erasure"

    _left: Array
    _right: Array
    _center: Array | None
    _offset: Array | None

    def __init__(
        self,
        left: Any,
        right: Any,
        center: Any = None,
        offset: Any = None,
        *,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        left, right = _frozen(left, "left", 2), _frozen(right, "right", 2)
        if left.shape != right.shape[::-1]:
            raise InputError(
                "left must have shape (d, r) and right shape (r, d)",
                f"left {left.shape} and right {right.shape}",
                "Pass two matrices whose product left @ right is d x d",
            )
        vars(self).update(
            _left=left,
            _right=right,
            _center=_point(center, "center", left.shape[0]),
            _offset=_point(offset, "offset", left.shape[0]),
            _meta=plain_meta(meta),
        )

    @classmethod
    def identity(cls, n_features: int) -> Erasure:
        """The erasure that leaves every row as it is.

        Parameters
        ----------
        n_features : int

        Returns
        -------
        Erasure
        """
        return cls(np.zeros((n_features, 0)), np.zeros((0, n_features)))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"an Erasure is frozen: {name!r} cannot be set")

    @property
    def left(self) -> Array:
        """Directions taken away (d x r), read-only."""
        return self._left

    @property
    def right(self) -> Array:
        """Directions read (r x d), read-only."""
        return self._right

    @property
    def center(self) -> Array | None:
        """The fixed point (d,), or None for the origin."""
        return self._center

    @property
    def offset(self) -> Array | None:
        """The vector added at the end (d,), or None."""
        return self._offset

    @property
    def rank(self) -> int:
        """Number of directions taken away."""
        return int(self._left.shape[1])

    @property
    def n_features(self) -> int:
        """Width of the rows it applies to."""
        return int(self._left.shape[0])

    @cached_property
    def basis(self) -> Array:
        """Orthonormal rows (r x d) spanning what is read; if orthogonal, the erased subspace."""
        if np.allclose(self._right @ self._right.T, np.eye(self.rank), rtol=0, atol=1e-12):
            return self._right
        return _frozen(range_basis(self._right.T, rcond=1e-15).T, "basis", 2)

    @cached_property
    def is_orthogonal(self) -> bool:
        """Whether the linear part is an orthogonal projector: symmetric and idempotent."""
        if self.rank == 0:
            return True
        with blas_for(self.rank):
            B, _ = scipy.linalg.qr(np.hstack([self._left, self._right.T]), mode="economic")
        A = (B.T @ self._left) @ (self._right @ B)  # left @ right, seen inside their joint span
        return bool(max(np.abs(A - A.T).max(), np.abs(A @ A - A).max()) <= ORTHOGONAL)

    @cached_property
    def emptied(self) -> NDArray[np.intp]:
        """Columns of which nothing is left, which become `constant`, without rounding."""
        return emptied_columns(self._left, self._right)

    @cached_property
    def constant(self) -> Array:
        """What the columns `emptied` become."""
        points = [p[self.emptied] for p in (self._center, self._offset) if p is not None]
        return np.asarray(sum(points, np.zeros(self.emptied.size)))

    def matrix(self) -> Array:
        """The linear part as a dense d x d matrix: ``I - left @ right``."""
        return np.eye(self.n_features) - self._left @ self._right

    def transform(self, X: Any, out: Any = None) -> NDArray[Any]:
        """Erased rows, in one pass and one block at a time.

        Parameters
        ----------
        X : array, frame or Rows of shape (n, d); arrays and torch tensors of shape (..., d) too
            Floating types are kept; integers and booleans give float64. Of a frame, the columns of
            the fit are taken in the order of the fit, if it was one of a frame.
        out : array or tensor of the shape and type of the result, str or path, optional
            Where to write; may be `X` itself. Rows of a file (see `open_rows`) can be written to
            another file, with all columns beside them.

        Returns
        -------
        array of the shape of X, or rows of the new file
            For a tensor a tensor on the same device, through which gradients flow.

        Raises
        ------
        InputError
            For a frame without the columns of the fit, or with others; for NaN or infinity in X,
            and where the result exceeds what its type can hold. With `out`, all rows are written by
            then. Tensors with gradients, in a trace or inside a model (see
            `expunge.integrations`) are not checked.
        """
        return cast(NDArray[Any], apply_map(self, rows_of_table(X, known=self.columns), out))

    def __call__(self, X: Any) -> NDArray[Any]:
        """Erased rows; the same as `transform`."""
        return self.transform(X)

    def then(self, other: Any) -> Erasure:
        """One erasure that does this one first and then `other`, of the least rank.

        With M = I - LR for each, M₂M₁ = I - [L₁ L₂][R₁; R₂M₁]; the factors are then compressed.

        Parameters
        ----------
        other : Erasure or fitted eraser
            Of the same width.

        Returns
        -------
        Erasure
        """
        from expunge.maps import as_erasure  # which knows erasures

        other = as_erasure(other)
        if other.n_features != self.n_features:
            raise InputError(
                "Only erasures of the same width can follow one another",
                f"{self.n_features} and {other.n_features} features",
                "Fit both on the same columns",
            )
        if self.columns and other.columns and self.columns.names != other.columns.names:
            raise InputError(
                "Only erasures of the same columns in the same order can follow one another",
                f"columns {listed(self.columns.names)} and {listed(other.columns.names)}",
                "Fit both on the same columns",
            )
        L1, R1, L2, R2 = self._left, self._right, other._left, other._right
        left, right = _compress(np.hstack([L1, L2]), np.vstack([R1, R2 - (R2 @ L1) @ R1]))
        zero = np.zeros(self.n_features)
        center = next((c for c in (self._center, other._center) if c is not None), None)
        at = zero if center is None else center
        c1 = zero if self._center is None else self._center
        c2 = zero if other._center is None else other._center
        o1 = zero if self._offset is None else self._offset
        o2 = zero if other._offset is None else other._offset
        # where the center goes, minus the center: every term is a difference of near things
        moved = o1 - L1 @ (R1 @ (at - c1))
        offset = moved + o2 - L2 @ (R2 @ (at + moved - c2))
        size = max(float(np.abs(v).max(initial=0.0)) for v in (c1, o1, c2, o2))
        keeps = float(np.abs(offset).max(initial=0.0)) <= 1e-15 * size  # rounding, at any scale
        meta = {"method": "then", "steps": [*self._steps(), *other._steps()]}
        if columns := self._meta.get("columns", other._meta.get("columns")):
            meta["columns"] = columns
        return Erasure(left, right, center, None if keeps else offset, meta=meta)

    def _steps(self) -> list[dict[str, Any]]:
        """Meta data of what it was put together from."""
        steps = self._meta.get("steps")
        return steps if isinstance(steps, list) else [self._meta]

    def tensors(self) -> dict[str, Array]:
        """All numbers of the map by name, as a file holds them."""
        parts = {
            "left": self._left,
            "right": self._right,
            "center": self._center,
            "offset": self._offset,
        }
        return {name: part for name, part in parts.items() if part is not None}

    @classmethod
    def _names(cls) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return ("left", "right"), ("center", "offset")

    @classmethod
    def _from_file(cls, header: Mapping[str, Any], tensors: Mapping[str, Any]) -> Self:
        return cls(**tensors, meta=header["meta"])

    def __repr__(self) -> str:
        method = self._meta.get("method")
        shape = "orthogonal" if self.is_orthogonal else "oblique"
        origin = f", by {method}" if method else ""
        return f"Erasure(rank {self.rank} of {self.n_features} features, {shape}{origin})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._left, self._right, self._center, self._offset, self._meta)


def _rebuild(left: Any, right: Any, center: Any, offset: Any, meta: Any) -> Erasure:
    return Erasure(left, right, center, offset, meta=meta)


def _frozen(values: Any, name: str, ndim: int) -> Array:
    array = np.array(as_matrix(values, name=name), dtype=np.float64, order="C")
    if array.ndim != ndim or not np.isfinite(array).all():
        raise InputError(
            f"{name} must be a finite array with {ndim} dimension{'s' if ndim > 1 else ''}",
            f"shape {array.shape}",
            "See the parameters of Erasure",
        )
    array.flags.writeable = False
    return array


def _point(values: Any, name: str, d: int) -> Array | None:
    if values is None:
        return None
    array = _frozen(values, name, 1)
    if array.shape != (d,):
        raise InputError(
            f"{name} must have one number per feature, {d}",
            f"shape {array.shape}",
            "Mend its length",
        )
    return array


def _compress(L: Array, R: Array) -> tuple[Array, Array]:
    """Factors of the same product with the least inner size: QR of both sides, SVD in between."""
    if L.shape[1] == 0:
        return L, R
    a, b = np.linalg.norm(L, axis=0), np.linalg.norm(R, axis=1)
    balance = np.sqrt(np.divide(b, a, out=np.ones_like(a), where=(a > 0) & (b > 0)))
    L, R = L * balance, R / balance[:, None]  # so that no term's scale hides another's
    with blas_for(L.shape[1]):
        _, Tl = scipy.linalg.qr(L, mode="economic", check_finite=False)
        Qr, Tr = scipy.linalg.qr(R.T, mode="economic", check_finite=False)
        _, s, Vt = scipy.linalg.svd(Tl @ Tr.T, check_finite=False)
        scale = float(np.linalg.norm(Tl, 2) * np.linalg.norm(Tr, 2))
    right = fix_signs((Qr @ Vt.T)[:, s > 1e-13 * scale]).T
    return L @ (R @ right.T), right
