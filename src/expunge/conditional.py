"""A map that is told the concept of each row: what oracle and quadratic erasure apply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, cast, get_args

import numpy as np
from numpy.typing import NDArray

from expunge.concept import Concept, Kind, Label
from expunge.errors import InputError
from expunge.inputs import check_choice, check_known, check_number, check_rows
from expunge.inputs.frames import rows_of_table
from expunge.inputs.matrices import as_matrix
from expunge.linalg import Array
from expunge.meta import plain_meta
from expunge.parallel import BLOCK, blas_for, blocks, map_spans
from expunge.rows.finite import Watch
from expunge.saved_map import SavedMap

__all__ = ["ConditionalErasure"]


class ConditionalErasure(SavedMap):
    """The map ``x -> c + A_z (x - B(z - mean z) - c)``, with one matrix A for each class or none.

    At a strength s below 1 the result is the mixture ``(1 - s) x + s`` times that.

    Parameters
    ----------
    shift : array of shape (d, m)
        B, how the mean of x moves with the concept.
    mean_z : array of shape (m,)
    center : array of shape (d,)
        c, the mean of the fitted rows.
    labels : sequence
        The classes or column names of the concept, in the order of the columns.
    kind : {"classes", "labels", "continuous"}
    maps : array of shape (m, d, d), optional
        A for each class; the identity by default.
    emptied : array of shape (d,), optional
        Not 0 for columns of which the concept is all there is: at full strength they become c
        itself, as the rounding of anything near it would tell the concept.
    strength : float
    meta : mapping, optional
        What made it; JSON values only.

    Examples
    --------
    >>> import numpy as np
    >>> import expunge as ex
    >>> X, z = np.array([[0.0, 1.0], [1.0, 0.0], [4.0, 1.0], [5.0, 0.0]]), ["a", "a", "b", "b"]
    >>> e = ex.OracleLEACE().fit(X, z).conditional_erasure_
    >>> e.transform(X, concept=z)
    array([[2., 1.],
           [3., 0.],
           [2., 1.],
           [3., 0.]])
    """

    file_kind = "conditional_erasure"
    needs_concept = True

    def __init__(
        self,
        shift: Any,
        mean_z: Any,
        center: Any,
        labels: Any,
        kind: Kind,
        *,
        maps: Any = None,
        emptied: Any = None,
        strength: float = 1.0,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        check_choice(kind, get_args(Kind), "kind")
        check_number(strength, "strength", most=1.0)
        self.shift, self.mean_z = _frozen(shift, "shift"), _frozen(mean_z, "mean_z")
        self.center = _frozen(center, "center")
        self.maps = None if maps is None else _frozen(maps, "maps")
        self.emptied = None if emptied is None else _frozen(emptied, "emptied")
        self.labels: tuple[Label, ...] = _labels(labels)
        self.kind: Kind = kind
        self.strength = float(strength)
        self._meta = plain_meta(meta)
        m, d = len(self.labels), self.center.size
        wanted = {"shift": (d, m), "mean_z": (m,), "center": (d,), "maps": (m, d, d)}
        wanted["emptied"] = (d,)
        parts = {name: getattr(self, name) for name in wanted if getattr(self, name) is not None}
        if any(part.shape != wanted[name] for name, part in parts.items()):
            raise InputError(
                f"The parts do not fit {m} labels and {d} features",
                ", ".join(f"{name} {part.shape}" for name, part in parts.items()),
                "See the parameters of ConditionalErasure",
            )
        if not all(np.isfinite(part).all() for part in parts.values()):
            raise InputError("The parts must be finite", "NaN or infinity", "Fit it again")

    @property
    def n_features(self) -> int:
        """Width of the rows it applies to."""
        return int(self.center.size)

    @property
    def rank(self) -> int:
        """Directions in which rows are moved by their concept: the rank of the shift."""
        size = np.linalg.norm(self.shift, axis=1)
        if not size.any():
            return 0
        with blas_for(len(self.labels)):  # each column of x in its own unit
            return int(np.linalg.matrix_rank(self.shift[size > 0] / size[size > 0, None]))

    def transform(self, X: Any, concept: Any = None, *, out: Any = None) -> NDArray[Any]:
        """Erased rows.

        Parameters
        ----------
        X : array or frame of shape (n, d), or Rows
        concept : array of shape (n,) or (n, m)
            The concept of each of these rows, with no class that was not fitted; for frames and
            rows of a file the name of a column, or several.
        out : str or path, optional
            For rows of a file: another file to write, with all columns beside them.

        Returns
        -------
        array of shape (n, d), or rows of the new file
            Floating types are kept; integers and booleans give float64.
        """
        rows = check_rows(rows_of_table(X, concept, known=self.columns), least=1)
        self.check_width((rows.n_samples, rows.n_features))
        known = check_known(concept, rows, kind=self.kind, labels=self.labels)
        return cast(NDArray[Any], rows.transform(self, out, concept=known))

    def transform_known(self, values: NDArray[Any], known: Concept) -> NDArray[Any]:
        """Erased rows of a checked array, with a concept over the labels of this erasure.

        Parameters
        ----------
        values : array of shape (n, d)
        known : Concept

        Returns
        -------
        array of shape (n, d)
        """
        out = np.empty(values.shape, values.dtype if values.dtype.kind == "f" else np.float64)

        identity = np.eye(self.n_features if self.maps is not None else 0)
        constant = self.becoming_constant

        def apply(start: int, stop: int) -> None:
            for lo, hi in blocks(start, stop, BLOCK):
                x = values[lo:hi]
                moved = (known.columns(lo, hi) - self.mean_z) @ self.shift.T
                if self.maps is not None:
                    for code in np.unique(known.values[lo:hi]):
                        own = known.values[lo:hi] == code
                        rest = x[own] - moved[own] - self.center
                        moved[own] += rest @ (identity - self.maps[code]).T
                out[lo:hi] = x - self.strength * moved
                out[lo:hi, constant] = self.center[constant]

        watch = Watch(1)  # the rows are finite, but what they are moved to may not be
        map_spans(watch.over(apply), len(values), self.n_features)
        watch.settle(values, out)
        return out

    @property
    def becoming_constant(self) -> NDArray[np.bool_]:
        """Which columns become their mean exactly, shape (d,)."""
        if self.emptied is None or self.strength < 1:
            return np.zeros(self.n_features, dtype=bool)
        return np.asarray(self.emptied != 0)

    def cross_covariance_left(self, xz: Array, zz: Array) -> Array:
        """What is left of centred cross sums Sxz (d x m), given Szz (m x m)."""
        full = xz - self.shift @ zz
        if self.maps is not None:
            full = np.einsum("kij,jk->ik", self.maps, full)  # Sxz of a class: its mean
        return np.asarray((1 - self.strength) * xz + self.strength * full)

    def __call__(self, X: Any, concept: Any = None) -> NDArray[Any]:
        """Erased rows; the same as `transform`."""
        return self.transform(X, concept)

    def tensors(self) -> dict[str, Array]:
        """All numbers of the map by name, as a file holds them."""
        required, optional = self._names()
        found = {name: getattr(self, name) for name in (*required, *optional)}
        return {name: values for name, values in found.items() if values is not None}

    @classmethod
    def _names(cls) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return ("shift", "mean_z", "center"), ("maps", "emptied")

    def _header(self) -> dict[str, Any]:
        concept = {"kind": self.kind, "labels": list(self.labels)}
        return {"concept": concept, "strength": self.strength}

    @classmethod
    def _from_file(cls, header: Mapping[str, Any], tensors: Mapping[str, Any]) -> Self:
        concept = header["concept"]
        told = {"labels": concept["labels"], "kind": concept["kind"]}
        return cls(**tensors, **told, strength=header["strength"], meta=header["meta"])

    def __repr__(self) -> str:
        method = self._meta.get("method", "ConditionalErasure")
        return (
            f"ConditionalErasure({self.n_features} features, {len(self.labels)} labels, {method})"
        )


def _labels(labels: Any) -> tuple[Label, ...]:
    """Names, each once."""
    found = tuple(labels) if isinstance(labels, list | tuple) else ()
    named = all(isinstance(label, str | int | float) for label in found)
    if not found or not named or len({*found}) < len(found):
        raise InputError(
            "labels must name the classes or columns of the concept, each once",
            repr(labels)[:200],
            "Pass a list of text or numbers",
        )
    return found


def _frozen(values: Any, name: str) -> Array:
    array = np.array(as_matrix(values, name=name), dtype=np.float64)
    array.flags.writeable = False
    return array
