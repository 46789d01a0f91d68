"""The fold: each predicted class is laid upon the others. The frozen map that is saved and applied.

    k  = argmax (x - c) C + b                                   the class that x itself predicts
    x₁ = x + s_k + L M_k R (x + s_k - c)                        shift and Gaussian map of that class
    x₂ = x₁ + Σ_j p_j(x₁) t_kj,   p = softmax (h_k - ‖x₁ - m‖²) / w        a round of local moves
    x' = x₂ + l_k, or x₂ after LEACE                            the linear guarantee

Only x is needed. What is left of the class is what of it x does not determine, or the maps miss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from expunge.blas import subtract_product
from expunge.concept import Label
from expunge.erasure import Erasure
from expunge.errors import InputError
from expunge.inputs import check_number
from expunge.linalg import Array
from expunge.meta import plain_meta
from expunge.nonlinear_erasure import NonlinearErasure, frozen
from expunge.rows.apply import block_map

__all__ = ["Cells", "FoldErasure", "moved", "soft_cells"]

FEW = 1 << 20  # distances held at once
PARTS = ("coef", "intercept", "center", "shifts", "left", "right", "maps", "last")
CLOSING = ("closing_left", "closing_right", "closing_center", "closing_offset")
ROUNDS = ("cell_centers", "cell_units", "cell_potentials", "cell_shifts", "cell_widths")


@dataclass(frozen=True, eq=False)
class Cells:
    """One layout of local moves: cells that hold the same share of every class, and their shifts.

    Attributes
    ----------
    centers : array of shape (J, d)
        In `units`.
    units : array of shape (d,)
    potentials : array of shape (c, J)
        What makes cells wider or narrower for a class, so that it fills them as the others do.
    shifts : array of shape (c, J, d)
    width : float
        How soft the borders are, a squared distance.
    """

    centers: Array
    units: Array
    potentials: Array
    shifts: Array
    width: float

    def shares(self, X: Array, code: int) -> Array:
        """How much (n x J) each row of a class belongs to each cell."""
        return soft_cells(X / self.units, self.centers, self.potentials[code], self.width)


def moved(X: Array, codes: NDArray[np.intp], layouts: Sequence[Cells]) -> Array:
    """Rows (n x d) of classes (n,) after one round: each by the mean of what layouts shift it."""
    found = X.copy()
    few = max(1, FEW // max(len(cells.centers) for cells in layouts))
    for code in np.unique(codes):
        own = np.flatnonzero(codes == code)
        for lo in range(0, len(own), few):
            at = own[lo : lo + few]
            for cells in layouts:
                found[at] += cells.shares(X[at], code) @ (cells.shifts[code] / len(layouts))
    return found


def soft_cells(Z: Array, centers: Array, potentials: Array, width: float) -> Array:
    """Softmax of (potential - squared distance) / width over the cells (n x J)."""
    scores = 2 * (Z @ centers.T)
    scores += potentials - np.einsum("ij,ij->i", centers, centers)
    scores -= scores.max(axis=1, keepdims=True)
    scores /= width
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    return np.asarray(scores)


class FoldErasure(NonlinearErasure):
    """The map that sends each predicted class onto the barycentre of all, then erases linearly.

    Made by `FoldEraser`. It takes rows wherever an `Erasure` does, but is not linear: it cannot be
    folded into weights, nor be one matrix of an index, and it jumps where the predicted class does.

    Parameters
    ----------
    coef : array of shape (d, c)
    intercept : array of shape (c,)
        Scores of the classes are ``(x - center) @ coef + intercept``; the largest is predicted.
    center : array of shape (d,)
    shifts : array of shape (c, d)
        Added to rows of a class first.
    left : array of shape (d, r)
    right : array of shape (r, d)
    maps : array of shape (c, r, r)
        What is added to the identity, class by class, in the coordinates that `right` reads.
    last : array of shape (c, d)
        Added to rows of a class after all moves: what makes class means equal.
    labels : sequence
        The classes.
    closing : Erasure
        Applied at the end.
    cells : sequence of sequences of Cells
        Rounds of local moves before that, each the mean of what its layouts move.
    strength : float
        From 0, the identity, to 1.
    meta : mapping, optional
        What made it; JSON values only.

    Examples
    --------
    >>> import numpy as np
    >>> import expunge as ex
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 600)
    >>> X = rng.normal(size=(600, 3)) * np.where(y, 3.0, 1.0)[:, None] + np.outer(y, [12, 0, 0])
    >>> fold = ex.FoldEraser().fit(X, y).erasure_
    >>> fold
    FoldErasure(2 classes of 3 features, by FoldEraser)
    >>> clean = fold.transform(X)
    >>> bool(abs(clean[y == 0].std() / clean[y == 1].std() - 1) < 0.1)
    True
    """

    file_kind = "fold_erasure"
    noun = "a fold"
    projection = "none: each predicted class is moved onto the others, then LEACE"

    def __init__(
        self,
        coef: Any,
        intercept: Any,
        center: Any,
        shifts: Any,
        left: Any,
        right: Any,
        maps: Any,
        last: Any,
        labels: Any,
        *,
        closing: Erasure,
        cells: Sequence[Sequence[Cells]] = (),
        strength: float = 1.0,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        check_number(strength, "strength", most=1.0)
        values = (coef, intercept, center, shifts, left, right, maps, last)
        given = dict(zip(PARTS, values, strict=True))
        parts = {name: frozen(part, name) for name, part in given.items()}
        self.coef, self.intercept, self.center = (parts[name] for name in PARTS[:3])
        self.shifts, self.left, self.right, self.maps = (parts[name] for name in PARTS[3:7])
        self.last = parts["last"]
        self.labels: tuple[Label, ...] = tuple(labels)
        self.cells = tuple(tuple(layouts) for layouts in cells)
        self.closing, self.strength = closing, float(strength)
        self._meta = plain_meta(meta)
        c, d, r = len(self.labels), self.center.size, self.left.shape[-1]
        wanted = dict(zip(PARTS, _shapes(c, d, r), strict=True))
        odd = [name for name, shape in wanted.items() if parts[name].shape != shape]
        if odd or c < 2 or closing.n_features != d or not _fit(self.cells, c, d):
            raise InputError(
                f"The parts do not fit {c} classes and {d} features",
                ", ".join(f"{name} {parts[name].shape}" for name in odd) or "cells or closing",
                "See the parameters of FoldErasure",
            )

    @property
    def n_features(self) -> int:
        """Width of the rows it applies to."""
        return int(self.center.size)

    @property
    def rank(self) -> int:
        """Directions in which covariances are made equal, and those that are closed linearly."""
        return int(self.left.shape[1]) + self.closing.rank

    @property
    def reads(self) -> Array:
        """Directions (d x r) in which rounding may show what was erased."""
        return self.closing.right.T

    def predict(self, X: NDArray[Any]) -> NDArray[np.intp]:
        """The number of the class that each row (n x d) predicts."""
        scores = (np.asarray(X, dtype=np.float64) - self.center) @ self.coef + self.intercept
        return np.asarray(scores.argmax(axis=1))

    def _move(self, block: Array) -> Array:
        scores = (block - self.center) @ self.coef + self.intercept
        codes = scores.argmax(axis=1)
        block += self.shifts[codes]
        coordinates = (block - self.center) @ self.right.T
        for code in range(len(self.labels)):
            own = np.flatnonzero(codes == code)
            coordinates[own] = coordinates[own] @ self.maps[code].T
        if self.left.shape[1]:
            subtract_product(block, -coordinates, np.ascontiguousarray(self.left.T))
        for layouts in self.cells:
            block[:] = moved(block, codes, layouts)
        if self.last.any():
            block += self.last[codes]
        block_map(self.closing, narrow=False)(block)
        return np.asarray(scores)

    def _parts(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in (*PARTS, "labels", "closing", "cells")}
        return {**own, "strength": self.strength, "meta": self._meta}

    def tensors(self) -> dict[str, Array]:
        """All numbers of the map by name, as a file holds them."""
        found = {name: getattr(self, name) for name in PARTS}
        zero = np.zeros(self.n_features)
        points = (self.closing.center, self.closing.offset)
        center, offset = (zero if point is None else point for point in points)
        closing = (self.closing.left, self.closing.right, center, offset)
        found.update(zip(CLOSING, closing, strict=True))
        if self.cells:
            for name, part in zip(ROUNDS, fields(Cells), strict=True):
                found[name] = np.array(
                    [[getattr(one, part.name) for one in layouts] for layouts in self.cells]
                )
        return found

    @classmethod
    def _names(cls) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return (*PARTS, *CLOSING), ROUNDS

    def _header(self) -> dict[str, Any]:
        return {"labels": list(self.labels), "strength": self.strength}

    @classmethod
    def _from_file(cls, header: Mapping[str, Any], tensors: Mapping[str, Any]) -> Self:
        rounds = zip(*(tensors[name] for name in ROUNDS if name in tensors), strict=True)
        return cls(
            **{name: tensors[name] for name in PARTS},
            labels=header["labels"],
            closing=Erasure(*(tensors[name] for name in CLOSING)),
            cells=[
                [Cells(a, b, c, d, float(e)) for a, b, c, d, e in zip(*layouts, strict=True)]
                for layouts in rounds
            ],
            strength=header["strength"],
            meta=header["meta"],
        )

    def __repr__(self) -> str:
        method = self._meta.get("method")
        origin = f", by {method}" if method else ""
        rounds = f", {len(self.cells)} rounds" if self.cells else ""
        return (
            f"FoldErasure({len(self.labels)} classes of {self.n_features} features{rounds}{origin})"
        )


def _shapes(c: int, d: int, r: int) -> tuple[tuple[int, ...], ...]:
    return (d, c), (c,), (d,), (c, d), (d, r), (r, d), (c, r, r), (c, d)


def _fit(rounds: Sequence[Sequence[Cells]], c: int, d: int) -> bool:
    """Whether cells are those of c classes and d features, as many in each layout, and numbers."""
    if not all(rounds) or len({len(layouts) for layouts in rounds}) > 1:
        return False
    every = [cells for layouts in rounds for cells in layouts]
    J = len(every[0].centers) if every else 0
    for cells in every:
        shapes = (J, d), (d,), (c, J), (c, J, d)
        parts = cells.centers, cells.units, cells.potentials, cells.shifts
        if any(part.shape != shape for part, shape in zip(parts, shapes, strict=True)):
            return False
        if not all(np.isfinite(part).all() for part in parts) or not 0 < cells.width < np.inf:
            return False
    return True
