"""What becomes of a block of vectors on its way from one file to another."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.errors import InputError
from expunge.files.number_types import array_type
from expunge.files.table import VectorFile
from expunge.half import are_finite, copy_numbers
from expunge.parallel import blocks

__all__ = ["Changing", "checksum", "map_of"]

PARTS = (  # of either kind of map
    "left",
    "right",
    "center",
    "offset",
    "shift",
    "mean_z",
    "maps",
    "strength",
    "labels",
    "kind",
)


def map_of(erasure: Any) -> Any:
    """The map of a fitted eraser, or what was passed.

    Parameters
    ----------
    erasure : Erasure, ConditionalErasure, fitted eraser or None

    Returns
    -------
    Erasure, ConditionalErasure or None
    """
    for name in ("erasure_", "conditional_erasure_"):
        found = getattr(erasure, name, None)
        if found is not None:
            return found
    if erasure is not None and not hasattr(erasure, "check_width"):
        raise InputError(
            "This is not an erasure",
            type(erasure).__name__,
            "Pass an Erasure, a ConditionalErasure or a fitted eraser",
        )
    return erasure


def checksum(erasure: Any, concept: Any = None) -> str:
    """What tells one erasure, and the concept it is told, from others.

    Parameters
    ----------
    erasure : Erasure, ConditionalErasure, fitted eraser or None
    concept : anything that was passed as one

    Returns
    -------
    str

    Examples
    --------
    >>> import expunge as ex
    >>> from expunge.files.changing import checksum
    >>> e = ex.Erasure([[1.0], [0.0]], [[1.0, 0.0]])
    >>> checksum(e) == checksum(ex.Erasure([[1.0], [0.0]], [[1.0, 0.0]])), len(checksum(e))
    (True, 64)
    """
    digest, found = hashlib.sha256(), map_of(erasure)
    parts = [] if found is None else [getattr(found, name, None) for name in PARTS]
    own = found.tensors() if hasattr(found, "tensors") else {}
    for part in [*parts, *own.values(), *_told(concept)]:
        if isinstance(part, np.ndarray) and part.dtype.kind != "O":
            digest.update(
                f"{part.dtype}{part.shape}".encode() + np.ascontiguousarray(part).tobytes()
            )
        else:
            digest.update(repr(part.tolist() if isinstance(part, np.ndarray) else part).encode())
    return digest.hexdigest()


def _told(concept: Any) -> list[Any]:
    """The parts of a concept, whatever form it has."""
    if isinstance(concept, Mapping):
        return [part for item in concept.items() for part in item]
    if hasattr(concept, "values") and hasattr(concept, "labels"):
        return [concept.values, concept.labels]
    return [concept if concept is None or isinstance(concept, str) else np.asarray(concept)]


class Changing:
    """The map from old vectors to new ones; it knows how far it has come.

    Parameters
    ----------
    file : VectorFile
    erasure : Erasure, ConditionalErasure, fitted eraser or None
    concept : as in `rewrite`, or a Concept over the labels of the erasure
    kind : str
        Type of the new numbers.
    normalize : bool
    progress : function of (rows done, rows), optional

    Attributes
    ----------
    done : int
        Rows so far.
    """

    def __init__(
        self,
        file: VectorFile,
        erasure: Any,
        concept: Any,
        kind: str,
        normalize: bool,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self.n, self.path, self.kind, self.normalize = file.n, file.path, kind, normalize
        self.map, self.progress, self.done = map_of(erasure), progress, 0
        if self.map is not None:
            self.map.check_width((file.n, file.d))
        self.checks = hasattr(self.map, "left")  # an erasure itself notices NaN on its way
        self.needs_concept = bool(getattr(self.map, "needs_concept", False))
        self.concept: Any = self._named(file, concept) if self.needs_concept else None
        if self.needs_concept and self.concept is None:
            raise InputError(
                "This erasure needs the concept of every row",
                "no concept",
                'Name its column: concept="name"',
            )
        kept = array_type(kind)
        self.work = np.result_type(kept, file.dtype) if kept.kind == "f" else kept

    def _named(self, file: VectorFile, concept: Any) -> Any:
        if isinstance(concept, str):
            return file.column(concept)
        if not isinstance(concept, list | tuple):
            return concept
        names = [name for name in concept if isinstance(name, str)]
        labels = len(concept) == file.n and not {*names} <= {*file.columns}
        if labels or len(names) < len(concept):
            return concept
        return {name: file.column(name) for name in names}

    def __call__(self, start: int, X: NDArray[Any]) -> NDArray[Any]:
        """New vectors for a block whose first row has the number `start`."""
        if self.map is None or not self.checks:
            self._refuse_nan(X, start)
        Y = X if self.map is None else self._erased(start, X)
        if self.normalize:
            Y = _unit(Y)
        kept = array_type(self.kind)
        if Y.dtype != kept:
            with np.errstate(over="ignore"):
                Y = _of_type(Y, kept)
            if kept.kind == "f":
                remedy = "Take a wider type, such as dtype='float32'"
                self._refuse(Y, start, f"A vector exceeds what {self.kind} can hold", remedy)
        self.done = start + len(X)
        if self.progress is not None:
            self.progress(self.done, self.n)
        return Y

    def _erased(self, start: int, X: NDArray[Any]) -> NDArray[Any]:
        here = slice(start, start + len(X))
        X = _of_type(X, self.work)
        try:
            if not self.needs_concept:
                return np.asarray(self.map.transform(X))
            if hasattr(self.concept, "take") and hasattr(self.concept, "labels"):
                return np.asarray(self.map.transform_known(X, self.concept.take(here)))
            return np.asarray(self.map.transform(X, concept=_part(self.concept, here)))
        except InputError as error:
            self._refuse_nan(X, start)  # which knows the place
            raise InputError(
                error.problem,
                f"{error.received}, counted from row {start} of {self.path}",
                error.remedy,
            ) from error

    def _refuse_nan(self, X: NDArray[Any], start: int) -> None:
        if X.dtype.kind == "f":
            self._refuse(X, start, "NaN or infinity in a vector", "Drop or mend this row")

    def _refuse(self, X: NDArray[Any], start: int, problem: str, remedy: str) -> None:
        flat = X.reshape(-1)
        quick = are_finite(X) if X.dtype == np.float16 else np.isfinite(np.vdot(flat, flat))
        if quick:  # and nearly always
            return
        wrong = ~np.isfinite(X)
        if wrong.any():
            row, column = (int(place) for place in np.argwhere(wrong)[0])
            raise InputError(problem, f"row {start + row}, column {column} of {self.path}", remedy)


def _part(concept: Any, here: slice) -> Any:
    if isinstance(concept, Mapping):
        return {name: values[here] for name, values in concept.items()}
    return concept[here]


def _of_type(X: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    if X.dtype == dtype or X.dtype.kind != "f" or dtype.kind != "f":
        return X.astype(dtype, copy=False)
    found = np.empty(X.shape, dtype)
    copy_numbers(found, np.ascontiguousarray(X))
    return found


def _unit(Y: NDArray[Any]) -> NDArray[Any]:
    """Vectors of length 1, but for zeros."""
    out = np.empty(Y.shape, Y.dtype if Y.dtype.kind == "f" else np.float64)
    for lo, hi in blocks(0, len(Y)):
        wide = np.empty((hi - lo, Y.shape[1]))
        copy_numbers(wide, Y[lo:hi])
        size = np.linalg.norm(wide, axis=1, keepdims=True)
        copy_numbers(out[lo:hi], np.divide(wide, size, out=wide, where=size > 0))
    return out
