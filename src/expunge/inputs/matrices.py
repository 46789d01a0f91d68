"""Matrices: anything with rows of numbers becomes `Rows`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from expunge.errors import InputError, NotNumeric
from expunge.inputs.homes import home_of
from expunge.rows.apply import apply_to_array
from expunge.rows.base import Rows
from expunge.rows.dense import DenseRows
from expunge.rows.finite import refuse_nan

__all__ = [
    "apply_map",
    "as_matrix",
    "as_numpy",
    "as_plain_array",
    "check_finite",
    "check_rows",
    "frame_or_series",
    "read_array",
]


LOOKED_AT = 100_000  # entries, for the one that a message shows
SHOWN = 80  # characters of a value in a message


def check_rows(X: Any, *, name: str = "X", least: int = 2, finite: bool = True) -> Rows:
    """A matrix of finite real numbers as rows.

    Parameters
    ----------
    X : array, memmap, frame, torch tensor or nested list of shape (n, d), or Rows
    name : str
        What to call it in messages.
    least : int
        Fewest rows accepted.
    finite : bool
        Whether to look for NaN and infinity now; rows that are read for their moments are looked
        at then. `Rows` that are passed are always left for then.

    Returns
    -------
    Rows
        `DenseRows`, or for a tensor `TensorRows`, which leave it on its device.

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
    if isinstance(X, Rows):
        _check_shape((X.n_samples, X.n_features), name, least)
        return X
    home = home_of(X)
    if home is None:
        A = as_matrix(X, name=name)
        _check_shape(A.shape, name, least)
        rows: Rows = DenseRows(A)
    else:
        home.check(X, name)
        if getattr(X, "ndim", 2) != 2:
            _check_shape(tuple(X.shape), name, least)
        rows = home.rows_of(X)
        if not rows.lazy or least > 1:  # else nobody has to count them
            _check_shape((rows.n_samples, rows.n_features), name, least)
    if finite and not rows.lazy:
        rows.check_finite(name)
    return rows


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


def as_numpy(X: Any, *, name: str = "X") -> Any:
    """What has a home of its own (a torch tensor) as a NumPy array; anything else as it is.

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
    >>> from expunge.inputs.matrices import as_numpy
    >>> as_numpy(torch.ones(2, dtype=torch.bfloat16, requires_grad=True))
    array([1., 1.], dtype=float32)
    >>> as_numpy("a")
    'a'
    """
    if isinstance(X, Rows):
        return X.array()
    home = home_of(X)
    if home is None:
        return X
    home.check(X, name)
    return home.array_of(X)


def apply_map(erasure: Any, X: Any, out: Any = None) -> Any:
    """Vectors after an erasure, where they live: an array, a frame, a tensor or rows.

    Parameters
    ----------
    erasure : Erasure
    X : array, frame or tensor of shape (..., d), or Rows
    out : array or tensor, optional
        Where to write.

    Returns
    -------
    array or tensor of the shape of X
    """
    if isinstance(X, Rows):
        erasure.check_width((X.n_samples, X.n_features))
        return X.transform(erasure, out)
    home = home_of(X)
    if home is None:
        A = as_matrix(X)
        erasure.check_width(A.shape)
        return apply_to_array(erasure, A, out)
    home.check(X, "X")
    erasure.check_width(tuple(X.shape))
    return home.apply(erasure, X, out)


def as_matrix(X: Any, *, name: str = "X") -> NDArray[Any]:
    """`X` as a real NumPy array, without a copy where it already is one."""
    if scipy.sparse.issparse(X):
        raise InputError(
            f"Sparse input {name} is not supported: an erased row is dense",
            f"{type(X).__name__} of shape {X.shape}",
            f"Pass {name}.toarray(), or reduce it first with TruncatedSVD",
        )
    X = as_numpy(X, name=name)
    A = as_plain_array(X, name) if isinstance(X, np.ndarray) else _from_frame(X, name)
    if A.dtype.kind == "c":
        raise InputError(
            f"Complex data not supported in {name}",
            f"type {A.dtype}",
            f"Pass {name}.real or its modulus",
        )
    if A.dtype.kind not in "fiub":
        A = _objects_to_float(A, name, X)
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


def _objects_to_float(A: NDArray[Any], name: str, X: Any) -> NDArray[Any]:
    """Numeric object arrays as float64; `X` is what they came from, whose columns have names."""
    try:
        if A.dtype.kind != "O":
            raise ValueError("its entries are text")
        return A.astype(np.float64)
    except Exception as error:  # objects may raise what they like
        looked_at = islice(np.ndindex(A.shape), LOOKED_AT)
        place = next((at for at in looked_at if not _is_number(A[at])), None)
        if place is None:  # numbers as text, or none at all
            place = (0,) * A.ndim if A.size else None
        entry = None if place is None else A[place]
        columns = getattr(frame_or_series(X, name), "columns", None)
        where = "" if place is None else f" in {_where(place, columns)}"
        if type(entry).__name__ in ("NAType", "NaTType"):
            raise InputError(
                f"Input {name} contains missing values",
                f"{entry}{where}",
                "Drop or impute those rows first",
            ) from error
        raise NotNumeric(
            f"could not convert string to float: {name} is not numeric; every argument must be a "
            "string of digits or a number",
            f"type {A.dtype} with {_short(entry)}{where} ({_short(error, str)})",
            "Pass numbers; encode text first",
        ) from error


def _is_number(entry: Any) -> bool:
    try:
        float(np.nan if entry is None else entry)  # as NumPy has it
    except Exception:  # objects may raise what they like
        return False
    return True


def _where(place: tuple[int, ...], columns: Sequence[Any] | None) -> str:
    if len(place) != 2:
        return f"position {', '.join(map(str, place))}"
    return f"row {place[0]}, column {place[1] if columns is None else repr(columns[place[1]])}"


def _short(value: Any, show: Callable[[Any], str] = repr) -> str:
    """A value on one line of a message, however much it holds."""
    text = " ".join(show(value).split())
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def check_finite(A: NDArray[Any], name: str) -> None:
    """Refuse NaN and infinity in an array of any shape, with their number and the first place."""
    if A.dtype.kind == "f":
        refuse_nan(A, name)
