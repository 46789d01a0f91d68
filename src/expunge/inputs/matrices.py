"""Matrices: anything with rows of numbers becomes `DenseRows`."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from expunge.errors import InputError, NotNumeric
from expunge.parallel import BLOCK, blocks, map_spans
from expunge.rows.dense import DenseRows

__all__ = [
    "as_matrix",
    "as_numpy_if_tensor",
    "as_plain_array",
    "check_finite",
    "check_rows",
    "check_tensor",
    "frame_or_series",
    "is_tensor",
    "read_array",
]


def check_rows(X: Any, *, name: str = "X", least: int = 2) -> DenseRows:
    """A matrix of finite real numbers as rows.

    Parameters
    ----------
    X : array, memmap, frame, torch tensor or nested list of shape (n, d)
    name : str
        What to call it in messages.
    least : int
        Fewest rows accepted.

    Returns
    -------
    DenseRows
        For a tensor `TensorRows`, which leave it on its device.

    Raises
    ------
    InputError

    Examples
    --------
    >>> from expunge.inputs import check_rows
    >>> check_rows([[1, 2], [3, 4]]).n_features
    2
    >>> check_rows([[1.0, float("nan")], [3.0, 4.0]])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    expunge.errors.InputError: Input X contains NaN or infinity. Received 1 such value, ...
    """
    if is_tensor(X):
        from expunge.rows.tensor import TensorRows

        _refuse_meta(check_tensor(X, name=name), name)
        _check_shape(tuple(X.shape), name, least)
        rows = TensorRows(X)
        if rows.shares_memory or not rows.is_finite:
            check_finite(rows.X, name)
        return rows
    A = as_matrix(X, name=name)
    _check_shape(A.shape, name, least)
    check_finite(A, name)
    return DenseRows(A)


def _check_shape(shape: tuple[int, ...], name: str, least: int) -> None:
    if len(shape) != 2:
        raise InputError(
            f"Expected 2D array, got {len(shape)}D array instead: {name} needs one row per vector",
            f"shape {shape}",
            "Reshape your data: array.reshape(-1, 1) for a single feature, "
            "array.reshape(1, -1) for a single sample",
        )
    n, d = shape
    if d == 0:
        raise InputError(
            f"Found array with 0 feature(s) (shape=({n}, 0)) while a minimum of 1 is required",
            f"{name} of shape {shape}",
            "Pass at least one column",
        )
    if n < least:
        raise InputError(
            f"Found array with {n} sample(s) (shape=({n}, {d})) while a minimum of {least} "
            "is required",
            f"{name} of shape {shape} (n_samples={n})",
            "Pass more rows",
        )


def is_tensor(X: Any) -> bool:
    """Whether `X` is a torch tensor; torch is not imported for the question."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(X, torch.Tensor)


def check_tensor(X: Any, *, name: str = "X") -> Any:
    """A torch tensor as it is, if it is strided and holds real numbers.

    Parameters
    ----------
    X : tensor
    name : str
        What to call it in messages.

    Returns
    -------
    tensor
    """
    torch = sys.modules["torch"]
    if X.layout != torch.strided or X.is_nested:
        raise InputError(
            f"Sparse input {name} is not supported: an erased row is dense",
            f"tensor of layout {X.layout}",
            f"Pass {name}.to_dense(), or cut it into rows",
        )
    if X.is_complex():
        raise InputError(
            f"Complex data not supported in {name}",
            f"type {X.dtype}",
            f"Pass {name}.real or its modulus",
        )
    wide = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
    if X.is_quantized or (X.is_floating_point() and X.dtype not in wide):
        raise InputError(
            f"Numbers of this type are not supported in {name}",
            f"type {X.dtype}",
            f"Pass {name}.dequantize() or {name}.float()",
        )
    return X


def _refuse_meta(X: Any, name: str) -> None:
    if X.is_meta:
        raise InputError(
            f"{name} is a tensor without numbers",
            f"a tensor of shape {tuple(X.shape)} on the device 'meta'",
            "Pass a tensor that has been filled",
        )


def as_numpy_if_tensor(X: Any, *, name: str = "X") -> Any:
    """A torch tensor as a NumPy array, without its gradient; anything else as it is.

    Parameters
    ----------
    X : anything
    name : str
        What to call it in messages.

    Returns
    -------
    array for a tensor; bfloat16 becomes float32

    Examples
    --------
    >>> import torch
    >>> from expunge.inputs.matrices import as_numpy_if_tensor
    >>> as_numpy_if_tensor(torch.ones(2, dtype=torch.bfloat16, requires_grad=True))
    array([1., 1.], dtype=float32)
    >>> as_numpy_if_tensor("a")
    'a'
    """
    if not is_tensor(X):
        return X
    _refuse_meta(check_tensor(X, name=name), name)
    values = X.detach().cpu().resolve_neg()
    return (values.float() if values.dtype == sys.modules["torch"].bfloat16 else values).numpy()


def as_matrix(X: Any, *, name: str = "X") -> NDArray[Any]:
    """`X` as a real NumPy array, without a copy where it already is one."""
    if scipy.sparse.issparse(X):
        raise InputError(
            f"Sparse input {name} is not supported: an erased row is dense",
            f"{type(X).__name__} of shape {X.shape}",
            f"Pass {name}.toarray(), or reduce it first with TruncatedSVD",
        )
    X = as_numpy_if_tensor(X, name=name)
    A = as_plain_array(X, name) if isinstance(X, np.ndarray) else _from_frame(X, name)
    if A.dtype.kind == "c":
        raise InputError(
            f"Complex data not supported in {name}",
            f"type {A.dtype}",
            f"Pass {name}.real or its modulus",
        )
    if A.dtype.kind not in "fiub":
        A = _objects_to_float(A, name)
    return A


def as_plain_array(A: NDArray[Any], name: str) -> NDArray[Any]:
    """An array without a mask and without operators of its own, as numpy.matrix has them.

    Parameters
    ----------
    A : array
        Masked arrays are taken if nothing in them is masked.
    name : str
        What to call it in messages.

    Returns
    -------
    array or memory map
        Without a copy.
    """
    if not isinstance(A, np.ma.MaskedArray):
        return A if isinstance(A, np.memmap) else np.asarray(A)
    if hidden := int(np.ma.count_masked(A)):  # type: ignore[no-untyped-call]
        raise InputError(
            f"{name} is a masked array with masked entries",
            f"{hidden} masked of {A.size}",
            "Fill them, e.g. by .filled(0), or drop those rows first",
        )
    return np.asarray(A.data)


def frame_or_series(X: Any, name: str) -> Any:
    """`X` as a narwhals frame or series, or None if it is neither.

    Parameters
    ----------
    X : anything
    name : str
        What to call it in messages.

    Returns
    -------
    narwhals.DataFrame, narwhals.Series or None

    Raises
    ------
    InputError
        For a frame that has not been computed, or with two columns of one name.
    """
    import narwhals as nw

    try:
        native = nw.from_native(X, pass_through=True, allow_series=True)
    except (nw.exceptions.NarwhalsError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{name} cannot be read as a frame", f"{type(X).__name__} ({error})", "Pass an array"
        ) from error
    if isinstance(native, nw.LazyFrame):
        raise InputError(
            f"{name} is a lazy frame, which has no rows yet",
            type(native.to_native()).__name__,
            f"Collect it first, e.g. {name}.collect()",
        )
    if isinstance(native, nw.DataFrame):
        names = [str(column) for column in native.columns]
        if twice := sorted({column for column in names if names.count(column) > 1}):
            raise InputError(
                f"{name} has several columns of the same name",
                ", ".join(map(repr, twice[:5])),
                "Give every column a name of its own, as text too",
            )
        return native
    return native if isinstance(native, nw.Series) else None


def read_array(X: Any, name: str, kind: str, remedy: str, dtype: Any = None) -> NDArray[Any]:
    """What NumPy makes of `X`; refuse what it makes nothing of.

    Parameters
    ----------
    X : anything
    name, kind, remedy : str
        For messages: what to call it, what it is to be, what to do.
    dtype : dtype, optional

    Returns
    -------
    array
    """
    try:
        return np.asarray(X, dtype=dtype)
    except Exception as error:  # whatever the object's own methods raise
        raise InputError(
            f"{name} cannot be read as {kind}", f"{type(X).__name__} ({error})", remedy
        ) from error


def _from_frame(X: Any, name: str) -> NDArray[Any]:
    """Frames through narwhals, anything else through NumPy."""
    import narwhals as nw

    native = frame_or_series(X, name)
    if isinstance(native, nw.DataFrame):
        odd = [c for c, t in native.schema.items() if not (t.is_numeric() or t == nw.Boolean)]
        odd = [c for c in odd if native.schema[c] != nw.Object]
        if odd:
            raise InputError(
                f"could not convert string to float: {name} has columns that are not numbers",
                f"{', '.join(f'{c!r} ({native.schema[c]})' for c in odd[:5])}",
                "Drop these columns or encode them as numbers",
            )
        return np.asarray(native.to_numpy())
    return read_array(X, name, "a matrix", "Pass rows of equal length")


def _objects_to_float(A: NDArray[Any], name: str) -> NDArray[Any]:
    """Numeric object arrays as float64."""
    try:
        if A.dtype.kind != "O":
            raise ValueError("its entries are text")
        return A.astype(np.float64)
    except Exception as error:  # objects may raise what they like
        first = A.ravel()[0] if A.size else None
        raise NotNumeric(
            f"could not convert string to float: {name} is not numeric; every argument must be a "
            "string of digits or a number",
            f"type {A.dtype}, first entry {first!r} ({error})",
            "Pass numbers; encode text first",
        ) from error


def _sum_of_squares(A: NDArray[Any]) -> float:
    def part(start: int, stop: int) -> float:
        flat = A[start:stop].ravel()
        with np.errstate(over="ignore", invalid="ignore"):
            return float(np.vdot(flat, flat))

    return sum(map_spans(part, A.shape[0], A.size // max(A.shape[0], 1)))


def check_finite(A: NDArray[Any], name: str) -> None:
    """Refuse NaN and infinity, with their number and the first place."""
    if A.dtype.kind != "f":
        return
    if A.dtype != np.float16 and A.flags.c_contiguous and np.isfinite(_sum_of_squares(A)):
        return  # one BLAS pass; squares of finite data may overflow, so a "no" is looked into
    bad, first = 0, None
    for lo, hi in blocks(0, A.shape[0], 8 * BLOCK):
        wrong = ~np.isfinite(A[lo:hi])
        count = int(wrong.sum())
        if count and first is None:
            row, column = np.argwhere(wrong.reshape(hi - lo, -1))[0]
            first = (lo + int(row), int(column))
        bad += count
    if first is None:
        return
    where = f"row {first[0]}, column {first[1]}" if A.ndim > 1 else f"position {first[0]}"
    raise InputError(
        f"Input {name} contains NaN or infinity",
        f"{bad} such value{'s' if bad > 1 else ''}, the first in {where}",
        "Drop or impute those rows first",
    )
