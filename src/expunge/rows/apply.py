"""An erasure applied to an array: one pass, one block at a time, rounded once.

Every product is float64, whatever the type of the rows, and only the result is rounded to that
type. With products in float32 the concept would come back: where one column is much wider than the
others, what is left of it is no larger than their errors, and these follow what was taken away.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import local
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from expunge.blas import subtract_outer, subtract_product
from expunge.errors import InputError
from expunge.half import copy_numbers
from expunge.linalg import Array
from expunge.parallel import blocks, map_spans
from expunge.rows.finite import Watch

if TYPE_CHECKING:
    from expunge.erasure import Erasure
    from expunge.nonlinear_erasure import NonlinearErasure

__all__ = ["apply_to_array", "block_map", "overlaps_itself", "rows_of_a_block"]

WORK = 10_000  # steps spent on telling whether two views overlap; in doubt they do
CACHED = 3 << 17  # numbers of a block: 3 megabytes as float64; smaller ones made threads wait
CENTRED = 1 << 16  # numbers that are measured from the center at once
_own = local()
SPAN_BLOCKS = 4  # blocks a thread does before it looks for more


def apply_to_array(
    erasure: Erasure | NonlinearErasure,
    X: NDArray[Any],
    out: NDArray[Any] | None = None,
    *,
    check: bool = True,
) -> NDArray[Any]:
    """Erased rows of a real array of the erasure's width.

    Parameters
    ----------
    erasure : Erasure or NonlinearErasure
    X : array of shape (..., d)
    out : array of the shape and type of the result, optional
        Where to write; may be `X` itself.
    check : bool
        Whether to refuse NaN and infinity. All rows have been written by then.

    Returns
    -------
    array of the shape of X
        Of its type if that is floating, else float64.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge import Erasure
    >>> from expunge.rows.apply import apply_to_array
    >>> apply_to_array(Erasure([[1.0], [0.0]], [[1.0, 0.0]]), np.array([3, 4]))
    array([0., 4.])
    """
    d = erasure.n_features
    dtype = X.dtype if X.dtype.kind == "f" else np.dtype(np.float64)
    if out is None:
        out = np.empty(X.shape, dtype=dtype)
    _check_out(out, X, dtype)
    rows, target = X.reshape(-1, d), out.reshape(-1, d)
    size, erase = rows_of_a_block(d), block_map(erasure, narrow=dtype.itemsize < 8)
    direct = dtype == np.float64 and target.flags.c_contiguous  # no room for a block is needed
    watch = Watch(erasure.rank)

    def apply(start: int, stop: int) -> None:
        room = None if direct else _room(min(size, stop - start), d)
        for lo, hi in blocks(start, stop, size):
            block = target[lo:hi] if room is None else room[: hi - lo]
            copy_numbers(block, rows[lo:hi])
            watch.see(erase(block))
            if room is not None:
                copy_numbers(target[lo:hi], block)

    map_spans(watch.over(apply), rows.shape[0], d, span=SPAN_BLOCKS * size)
    if check:
        watch.settle(rows, target)
    return out


def _room(n_rows: int, n_features: int) -> Array:
    """Memory for a block, which a thread uses again: a fresh one takes longer than the work."""
    size = n_rows * n_features
    if getattr(_own, "room", np.empty(0)).size < size:
        _own.room = np.empty(size)
    found: Array = _own.room[:size]
    return found.reshape(n_rows, n_features)


def rows_of_a_block(n_features: int) -> int:
    """Rows that are handled at once."""
    return max(1, CACHED // n_features)


def block_map(erasure: Erasure | NonlinearErasure, *, narrow: bool) -> Callable[[Array], Array]:
    """The map on one block of float64, in place.

    The coordinates that are taken away are those of x - c. For rows of float64 it is x - c that is
    multiplied. Rows of a narrower type have none but zeros in the last 29 bits, so that (x R - c R)
    is as good for them, and takes a pass less: its error is that of float64 beside c, while c is at
    most 2^24 times the spread of a column that float32 can tell from a constant.

    Parameters
    ----------
    erasure : Erasure or NonlinearErasure
    narrow : bool
        Whether the rows were, and the result will be, float32 or less.

    Returns
    -------
    function block -> coordinates
        Of an array of shape (k, d) in C order; gives the coordinates that were taken away, of
        shape (k, r) or, at rank 1, (k,).
    """
    if not hasattr(erasure, "offset"):  # a map that is not affine does blocks by itself
        return erasure.erase_block
    erasure = cast("Erasure", erasure)
    left, right = np.ascontiguousarray(erasure.left.T), erasure.right.T
    center, offset = erasure.center, erasure.offset
    few = max(1, CENTRED // erasure.n_features)
    emptied, constant = erasure.emptied, erasure.constant
    origin = np.zeros(erasure.rank) if center is None else center @ right
    subtract: Callable[[Array, Array, Array], None] = subtract_product
    if erasure.rank == 1:
        left, right, origin, subtract = left[0], right[:, 0], origin[0], subtract_outer

    def erase(block: Array) -> Array:
        if center is None or narrow:
            coordinates = block @ right
            coordinates -= origin
        else:
            coordinates = np.concatenate(
                [(block[lo:hi] - center) @ right for lo, hi in blocks(0, len(block), few)]
            )
        subtract(block, coordinates, left)
        if offset is not None:
            block += offset
        if emptied.size:
            block[:, emptied] = constant
        return coordinates

    return erase


def _check_out(out: Any, X: NDArray[Any], dtype: np.dtype[Any]) -> None:
    plain = type(out) in (np.ndarray, np.memmap)
    if not plain or out.shape != X.shape or out.dtype != dtype:
        found = f" of shape {out.shape} and type {out.dtype}" if plain else ""
        raise InputError(
            f"out must be an array of shape {X.shape} and type {dtype}",
            f"{type(out).__name__}{found}",
            "Allocate it with numpy.empty(X.shape, dtype)",
        )
    if X.ndim != 2 and not out.flags.c_contiguous:
        raise InputError(
            "out must be contiguous when X is not a matrix", "a strided array", "Pass a fresh array"
        )
    if not out.flags.writeable:
        raise InputError("out cannot be written to", "a read-only array", "Pass a fresh array")
    if overlaps_itself(out.shape, out.strides, out.itemsize):
        raise InputError(
            "Entries of out share their memory: rows would overwrite one another",
            f"shape {out.shape} with strides {out.strides}",
            "Pass a fresh array",
        )
    same = (
        out.__array_interface__["data"][0] == X.__array_interface__["data"][0]
        and out.strides == X.strides
    )
    if not same and np.may_share_memory(out, X, max_work=WORK):  # type: ignore[arg-type]
        raise InputError(
            "out overlaps X without being X",
            "two views of one array",
            "Pass out=X or a fresh array",
        )


def overlaps_itself(shape: tuple[int, ...], strides: tuple[int, ...], size: int = 1) -> bool:
    """Whether entries of a view may lie in the same place: sure for "no", not for "yes".

    In order of their strides, every axis has to step over all that the axes before it cover.

    Parameters
    ----------
    shape, strides : tuple of int
    size : int
        Of an entry, in the unit of the strides.

    Returns
    -------
    bool

    Examples
    --------
    >>> from expunge.rows.apply import overlaps_itself
    >>> overlaps_itself((3, 2), (16, 8), 8), overlaps_itself((3, 2), (0, 8), 8)
    (False, True)
    """
    covered = size
    for stride, count in sorted((abs(step), n) for step, n in zip(strides, shape, strict=True)):
        if count > 1:
            if stride < covered:
                return 0 not in shape
            covered += stride * (count - 1)
    return False
