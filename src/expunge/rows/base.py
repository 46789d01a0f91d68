"""What every home of rows offers; all that any method asks of n-sized data.

A home supplies what only it knows: how many rows there are and how wide, their type, blocks of them
in order, and some of them by their numbers. Everything else is written here, once and by blocks, so
that memory beside the rows does not grow with their number. A home overrides what it does better.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from expunge.blockmath import NUMPY, BlockMath
from expunge.concept import Concept
from expunge.errors import InputError
from expunge.files.vector_columns import VectorColumns
from expunge.fingerprint import Fingerprint
from expunge.linalg import Array
from expunge.moments import Moments
from expunge.parallel import SPAN
from expunge.rows.apply import apply_to_array
from expunge.rows.batches import Batch, batches
from expunge.rows.finite import refuse_nan
from expunge.rows.linear_model import GlmPass, glm_sums, hessian_sums
from expunge.rows.reading import Reader, Reading

if TYPE_CHECKING:
    from expunge.game.losses import Loss
    from expunge.maps import Map

__all__ = ["GlmPass", "Reading", "Rows"]

T = TypeVar("T")


class Rows(ABC):
    """n vectors of width d, wherever they live."""

    math: BlockMath = NUMPY  # of the library that holds the blocks
    in_memory = False  # whether `take` costs no more than the rows it gives
    local = False  # whether they lie on this machine, so that a pass over few costs little
    far = False  # whether `each_block` works elsewhere, and rows would have to travel
    lazy = False  # whether nothing is read, or even counted, before it has to be
    columns: tuple[str, ...] = ()  # what there is beside the vectors, by name
    chosen: VectorColumns | None = None  # which columns of a table the vectors are

    # -- what a home supplies --------------------------------------------------------------------

    @property
    @abstractmethod
    def n_samples(self) -> int:
        """Number of rows."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Width of a row."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers as an array holds them."""

    @abstractmethod
    def blocks(self) -> Iterator[tuple[int, Any]]:
        """All rows in order, block by block, each with the number of its first row: one pass.

        A block has a shape (k, d), can be sliced, and is what `math` reads: here an array.
        """

    @abstractmethod
    def take(self, index: NDArray[np.intp]) -> Rows:
        """The rows with these numbers, in this order, as rows in memory."""

    # -- what follows from it --------------------------------------------------------------------

    def column(self, name: str) -> NDArray[Any]:
        """Values (n,) of a column beside the vectors, for homes that have such."""
        raise InputError("These rows have no columns", repr(name), "Pass the values themselves")

    def in_order_of(self, known: VectorColumns | None) -> Rows:
        """These rows with the columns of a fit as their vectors, in its order.

        Parameters
        ----------
        known : VectorColumns or None
            Rows of no table, or with a column of lists, are left as they are.

        Returns
        -------
        Rows

        Raises
        ------
        InputError
            When one of the columns is missing.
        """
        ours = self.chosen
        if known is None or ours is None or known.lists or ours.lists or ours.names == known.names:
            return self
        return self._choosing(known.among(ours.names, self.columns))

    def _choosing(self, names: tuple[Any, ...]) -> Rows:
        """Rows of the same table, with these columns as vectors: for homes that read them."""
        return self

    def aligned(self, values: Any) -> Any:
        """Values, one per row, as these rows want them: for homes that have them in partitions."""
        return values

    def lies_at(self, values: NDArray[Any], column: Any, labels: Any = None) -> None:  # noqa: B027
        """Learn where else these values are: for homes that need not be sent them then."""

    @property
    def eps(self) -> float:
        """Distance from 1 to the next number of the type that erased rows have."""
        return float(np.finfo(self.dtype if self.dtype.kind == "f" else np.float64).eps)

    def rounded(self, A: Array) -> Array:
        """Numbers as the type of erased rows holds them, or its largest, in float64."""
        kind = self.dtype if self.dtype.kind == "f" else np.dtype(np.float64)
        most = float(np.finfo(kind).max)
        return np.asarray(A.clip(-most, most).astype(kind), dtype=np.float64)

    def read(
        self,
        concept: Concept,
        weights: Array | None = None,
        *,
        second: bool = True,
        task: Concept | None = None,
        by_class: bool = False,
        look: NDArray[np.intp] | None = None,
    ) -> Reading:
        """One pass: everything a fit in closed form and its certificate want to know.

        Parameters
        ----------
        concept : Concept
        weights : array of shape (n,), optional
        second : bool
            Whether to form the d x d matrix Sxx.
        task : Concept, optional
            Another one, of which moments are wanted too.
        by_class : bool
            Whether moments of each class by itself are wanted.
        look : array of row numbers, ascending, optional
            Rows that are to be kept for a closer look.

        Returns
        -------
        Reading

        Raises
        ------
        InputError
            For NaN, infinity and numbers whose squares float64 does not hold.
        """
        reader = Reader(self.math, concept, weights, second, task, by_class, look)
        for start, X in self.blocks():
            reader.see(start, X)
        return reader.finish()

    def check_finite(self, name: str = "X") -> None:
        """One pass: refuse NaN and infinity, with their number and the first place."""
        if self.dtype.kind == "f":
            for start, X in self.blocks():
                refuse_nan(self.math.glance(X), name, start)

    def moments(
        self, concept: Concept, weights: Array | None = None, *, second: bool = True
    ) -> Moments:
        """One pass: counts, means and centred second moments."""
        reader = Reader(self.math, concept, weights, second, recognise=False)
        for start, X in self.blocks():
            reader.see(start, X)
        return reader.moments()

    def glm_pass(
        self,
        loss: Loss,
        coef: Array,
        intercept: Array,
        concept: Concept,
        weights: Array | None = None,
        *,
        center: Array | None = None,
        single: bool = False,
    ) -> GlmPass:
        """One pass of the model with scores ``(x - center) @ coef + intercept``.

        Scores and residuals exist for one block of rows at a time. Products are float64, or with
        `single` and rows of float32 those of the rows as they lie in memory, centred through the
        coefficients; totals are float64.
        """
        parts = (
            glm_sums(
                X,
                loss,
                coef,
                intercept,
                concept.take(slice(start, start + len(X))),
                None if weights is None else weights[start : start + len(X)],
                center=center,
                single=single,
                math=self.math,
            )
            for start, X in self.blocks()
        )
        return GlmPass.of_sums(*(reduce(np.add, sums) for sums in zip(*parts, strict=True)))

    def glm_hessian(
        self,
        loss: Loss,
        coef: Array,
        intercept: Array,
        concept: Concept,
        weights: Array | None = None,
        *,
        center: Array | None = None,
    ) -> Array:
        """One pass: the second derivative in (coef, intercept), class by class.

        Of shape (m, d + 1, m, d + 1), or (m, d + 1, d + 1) where the scores do not interact.
        """
        total, weight = None, 0.0
        for start, X in self.blocks():
            here = slice(start, start + len(X))
            w = np.ones(len(X)) if weights is None else weights[here]
            part = hessian_sums(
                X, loss, coef, intercept, concept.take(here), w, center=center, math=self.math
            )
            total = part if total is None else total + part
            weight += float(w.sum())
        assert total is not None  # there is a row
        return np.asarray(total / weight)

    def batches(self, size: int, rng: np.random.Generator) -> Iterator[Batch]:
        """Random batches without end, as float32 or float64 arrays with the numbers of their rows.

        Up to 65,536 rows each batch is drawn from all of them, with replacement. Of more rows,
        random runs of 1,024 neighbours are gathered to a pool of that size, and as many batches
        drawn from it as make up its size before the next: rows are read in long runs.
        """
        return batches(self, size, rng)

    def subset(self, size: int, rng: np.random.Generator) -> tuple[Rows, NDArray[np.intp]]:
        """`size` different rows as rows in memory, and their numbers."""
        index = np.sort(rng.choice(self.n_samples, size, replace=False))
        return self.take(index), index

    def arrays(self) -> Iterator[tuple[int, NDArray[Any]]]:
        """All rows in order as arrays of at most 16,384 rows, with the number of the first."""
        for start, X in self.blocks():
            for lo in range(0, len(X), SPAN):
                yield start + lo, self.math.arrays(X[lo : lo + SPAN])

    def each_block(self, work: Callable[[int, NDArray[Any]], T]) -> Iterator[tuple[int, T]]:
        """What a function gives of all rows, block by block in order, made where the rows are.

        Parameters
        ----------
        work : function of the number of the first row and an array of at most 16,384 rows
            That can be sent elsewhere with all it refers to, and gives something small.

        Yields
        ------
        int
            The number of the first row.
        object
        """
        for start, X in self.arrays():
            yield start, work(start, X)

    def seen_through(
        self, made: Callable[[int, NDArray[Any]], NDArray[Any]], n_features: int, dtype: Any
    ) -> Rows:
        """These rows after a change that is made where they are: for homes that are far away."""
        raise NotImplementedError

    def array(self) -> NDArray[Any]:
        """All rows as one array; for few rows only, unless they are one already."""
        return np.concatenate([X for _, X in self.arrays()])

    def transform(self, erasure: Map, out: Any = None, *, concept: Concept | None = None) -> Any:
        """One pass: the rows after an erasure.

        Parameters
        ----------
        erasure : Erasure or ConditionalErasure
        out : array of the shape and type of the result, optional
            Where to write.
        concept : Concept, optional
            Of each row, over the labels of the erasure, where it has to be told.

        Returns
        -------
        array of shape (n, d)
            Floating types are kept; others give float64.
        """
        dtype = self.dtype if self.dtype.kind == "f" else np.dtype(np.float64)
        if isinstance(out, str | os.PathLike):
            raise InputError(
                "Only rows of a file can be written to a file",
                f"{type(self).__name__} and out={out!r}",
                "Pass an array as out, or take the rows from expunge.open_rows",
            )
        if out is None:
            out = np.empty((self.n_samples, self.n_features), dtype)
        for start, X in self.arrays():
            here = slice(start, start + len(X))
            if concept is None:
                apply_to_array(erasure, X, out[here])  # type: ignore[arg-type]
            else:
                out[here] = erasure.transform_known(X, concept.take(here))  # type: ignore[union-attr]
        return out

    def fingerprint(self) -> Fingerprint:
        """One pass: a sketch that recognises these rows again."""
        parts = (Fingerprint.of(self.math.glance(X)) for _, X in self.blocks())
        return reduce(Fingerprint.merge, parts)
