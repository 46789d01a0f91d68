"""Free-form LEACE: what is taken away is read from x by cosines too. The frozen map.

    x' = x - L (R (x - c) + K (cos((x - c) F + f) - m))

L spans what LEACE takes away. LEACE reads how much of it from x alone, linearly; here cosines of
random directions have a part in that, chosen so that the covariance with the concept is the same,
none, at a smaller change.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from expunge.blas import subtract_product
from expunge.emptied import emptied_columns
from expunge.errors import InputError
from expunge.inputs import check_number
from expunge.linalg import Array
from expunge.meta import plain_meta
from expunge.nonlinear_erasure import NonlinearErasure, frozen

__all__ = ["FreeFormErasure", "cosines"]

FEW = 1 << 20  # cosines held at once
PARTS = ("left", "right", "center", "frequencies", "phases", "coef", "means")


def cosines(X: Array, frequencies: Array, phases: Array) -> Array:
    """Features cos(x F + f) (n x D) of rows (n x d) that are measured from their center."""
    found = X @ frequencies
    found += phases
    return np.cos(found, out=found)


class FreeFormErasure(NonlinearErasure):
    """The map ``x - left @ (right @ (x - center) + coef @ (cosines - means))``.

    Made by ``LEACE(predictor="random_features")``. It takes rows wherever an `Erasure` does, but is
    not linear: it cannot be folded into weights, nor be one matrix of an index. It is smooth.

    Parameters
    ----------
    left : array of shape (d, r)
        The directions that are taken away: those of LEACE.
    right : array of shape (r, d)
        What is read of them from x itself.
    center : array of shape (d,)
    frequencies : array of shape (d, D)
    phases : array of shape (D,)
        Features are ``cos((x - center) @ frequencies + phases)``.
    coef : array of shape (r, D)
        What is read of them from the features.
    means : array of shape (D,)
        Of the features, over the rows of the fit.
    strength : float
        From 0, the identity, to 1.
    meta : mapping, optional
        What made it; JSON values only.

    Examples
    --------
    >>> import numpy as np
    >>> import expunge as ex
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3))
    >>> y = np.abs(X[:, 0] + 1) < 1
    >>> e = ex.LEACE(predictor="random_features", n_components=100).fit(X, y).erasure_
    >>> e
    FreeFormErasure(rank 1 of 3 features, 100 cosines, by LEACE)
    >>> clean = e(X)
    >>> bool(np.allclose(clean[y].mean(axis=0), clean[~y].mean(axis=0)))
    True
    """

    file_kind = "free_form_erasure"
    noun = "free-form LEACE"
    projection = "none: what LEACE takes away, as far as cosines of x tell it"

    def __init__(
        self,
        left: Any,
        right: Any,
        center: Any,
        frequencies: Any,
        phases: Any,
        coef: Any,
        means: Any,
        *,
        strength: float = 1.0,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        check_number(strength, "strength", most=1.0)
        values = (left, right, center, frequencies, phases, coef, means)
        parts = {name: frozen(part, name) for name, part in zip(PARTS, values, strict=True)}
        self.left, self.right, self.center = (parts[name] for name in PARTS[:3])
        self.frequencies, self.phases, self.coef, self.means = (parts[name] for name in PARTS[3:])
        self.strength, self._meta = float(strength), plain_meta(meta)
        d, r, D = self.center.size, self.left.shape[-1], self.phases.size
        shapes = (d, r), (r, d), (d,), (d, D), (D,), (r, D), (D,)
        odd = [n for n, shape in zip(PARTS, shapes, strict=True) if parts[n].shape != shape]
        if odd:
            raise InputError(
                f"The parts do not fit {d} features, {D} cosines and rank {r}",
                ", ".join(f"{name} {parts[name].shape}" for name in odd),
                "See the parameters of FreeFormErasure",
            )

    @property
    def n_features(self) -> int:
        """Width of the rows it applies to."""
        return int(self.center.size)

    @property
    def rank(self) -> int:
        """Number of directions taken away."""
        return int(self.left.shape[1])

    @property
    def reads(self) -> Array:
        """Directions (d x r) in which rounding may show what was erased."""
        return self.right.T

    @cached_property
    def emptied(self) -> NDArray[np.intp]:
        """Columns of which nothing is left, which become their `center`, without rounding."""
        linear = ~self.coef.any(axis=1, keepdims=True)
        return emptied_columns(self.left, self.right * linear)

    def tensors(self) -> dict[str, Array]:
        """All numbers of the map by name, as a file holds them."""
        return {name: getattr(self, name) for name in PARTS}

    def _move(self, block: Array) -> Array:
        if not self.rank:
            return block[:, :0]
        few = max(1, FEW // max(1, self.phases.size))
        taken = np.concatenate(
            [self._coordinates(block[lo : lo + few]) for lo in range(0, len(block), few)]
        )
        subtract_product(block, taken, np.ascontiguousarray(self.left.T))
        if self.emptied.size:
            block[:, self.emptied] = self.center[self.emptied]
        return taken

    def _coordinates(self, X: Array) -> Array:
        """How much (k x r) of each direction is taken from rows (k x d)."""
        C = X - self.center
        found = C @ self.right.T
        if self.phases.size:
            features = cosines(C, self.frequencies, self.phases)
            features -= self.means
            found += features @ self.coef.T
        return np.asarray(found)

    def _parts(self) -> dict[str, Any]:
        return {**self.tensors(), "strength": self.strength, "meta": self._meta}

    @classmethod
    def _names(cls) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return PARTS, ()

    def _header(self) -> dict[str, Any]:
        return {"strength": self.strength}

    @classmethod
    def _from_file(cls, header: Mapping[str, Any], tensors: Mapping[str, Any]) -> Self:
        return cls(**tensors, strength=header["strength"], meta=header["meta"])

    def __repr__(self) -> str:
        method = self._meta.get("method")
        origin = f", by {method}" if method else ""
        shape = f"rank {self.rank} of {self.n_features} features, {self.phases.size} cosines"
        return f"FreeFormErasure({shape}{origin})"
