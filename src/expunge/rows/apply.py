"""An erasure applied to an array: one pass, one block at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from expunge.errors import InputError
from expunge.parallel import BLOCK, blocks, map_spans
from expunge.rows.finite import Watch

if TYPE_CHECKING:
    from expunge.erasure import Erasure

__all__ = ["apply_to_array", "block_map", "overlaps_itself"]

WORK = 10_000  # steps spent on telling whether two views overlap; in doubt they do


def apply_to_array(
    erasure: Erasure, X: NDArray[Any], out: NDArray[Any] | None = None, *, check: bool = True
) -> NDArray[Any]:
    """Erased rows of a real array of the erasure's width.

    Parameters
    ----------
    erasure : Erasure
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
    work = np.float32 if dtype.itemsize <= 4 else np.float64
    erase, watch = block_map(erasure, work), Watch(erasure.rank)

    def apply(start: int, stop: int) -> None:
        buffer = np.empty((min(BLOCK, stop - start), d), dtype=work)
        for lo, hi in blocks(start, stop):
            x = rows[lo:hi] if dtype == work else rows[lo:hi].astype(work)
            erase(x, buffer[: hi - lo], target[lo:hi])
            watch.see(target[lo:hi])

    map_spans(watch.over(apply), rows.shape[0], d)
    if check:
        watch.settle(rows, target)
    return out


def block_map(erasure: Erasure, work: type[np.floating[Any]]) -> Callable[..., None]:
    """The map on one block: a function of the block, room of its size, and where to write.

    Parameters
    ----------
    erasure : Erasure
    work : float32 or float64
        The type of blocks and room.

    Returns
    -------
    function (x, room, target) -> None
        `target` may be `x` itself, and of a narrower type.
    """
    left: NDArray[Any] = erasure.left.T.astype(work)
    right: NDArray[Any] = erasure.right.T.astype(work)
    center = None if erasure.center is None else erasure.center.astype(work)
    offset = None if erasure.offset is None else erasure.offset.astype(work)

    def erase(x: NDArray[Any], room: NDArray[Any], target: NDArray[Any]) -> None:
        coordinates = (x if center is None else np.subtract(x, center, out=room)) @ right
        if erasure.rank == 1:
            np.multiply(coordinates, left, out=room)
        else:
            np.matmul(coordinates, left, out=room)
        if offset is not None:
            room -= offset
        np.subtract(x, room, out=target, casting="same_kind")

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
