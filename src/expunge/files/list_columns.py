"""Columns of lists in Arrow as a matrix: the numbers that lie behind them, never row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.errors import InputError
from expunge.optional import require

__all__ = [
    "first_length",
    "is_fixed",
    "is_list",
    "is_number_list",
    "matrix_of",
    "pyarrow",
    "refuse_null",
]


def pyarrow() -> Any:
    """The package, or what to install."""
    return require("pyarrow", "parquet")


def is_fixed(kind: Any) -> bool:
    """Whether a type of Arrow is that of lists of one length."""
    return bool(pyarrow().types.is_fixed_size_list(kind))


def is_list(kind: Any) -> bool:
    """Whether a type of Arrow is that of lists."""
    types = pyarrow().types
    return bool(types.is_list(kind) or types.is_large_list(kind) or is_fixed(kind))


def is_number_list(kind: Any) -> bool:
    """Whether a type of Arrow is that of lists of numbers."""
    types = pyarrow().types
    return is_list(kind) and bool(
        types.is_floating(kind.value_type) or types.is_integer(kind.value_type)
    )


def first_length(column: Any, where: str, start: int = 0) -> int:
    """Numbers in the first list of a column that has rows.

    Parameters
    ----------
    column : Array or ChunkedArray of lists
    where : str
        What to call the table in messages.
    start : int
        Number of the first row.

    Returns
    -------
    int
    """
    if is_fixed(column.type):
        return int(column.type.list_size)
    refuse_null(column, where, start)
    return len(column[0])


def matrix_of(column: Any, width: int, where: str, start: int = 0) -> NDArray[Any]:
    """A column of lists of numbers as an array, without a copy where it is in one piece.

    Parameters
    ----------
    column : Array or ChunkedArray of lists
    width : int
        Numbers that each list must have.
    where : str
        What to call the table in messages.
    start : int
        Number of the first row, for messages.

    Returns
    -------
    array of shape (n, width)

    Raises
    ------
    InputError
        For a row without a list, a list of another length and an entry without a number.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from expunge.files.list_columns import matrix_of
    >>> matrix_of(pa.array([[1.0, 2.0], [3.0, 4.0]]), 2, "people")
    array([[1., 2.],
           [3., 4.]])
    >>> matrix_of(pa.array([[1.0, 2.0], [3.0]]), 2, "people")
    Traceback (most recent call last):
        ...
    expunge.errors.InputError: A vector has 1 numbers, and the first one 2. Received row 1 of people. Drop this row, or mend it.
    """  # noqa: E501
    if hasattr(column, "chunks"):
        parts, at = [], start
        for chunk in column.chunks:
            parts.append(matrix_of(chunk, width, where, at))
            at += len(chunk)
        if len(parts) == 1:
            return parts[0]
        dtype = column.type.value_type.to_pandas_dtype()
        return np.concatenate(parts) if parts else np.empty((0, width), dtype)
    refuse_null(column, where, start)
    values = column.flatten()
    if is_fixed(column.type):
        lengths = np.full(len(column), column.type.list_size)
    else:
        lengths = np.diff(column.offsets.to_numpy(zero_copy_only=False))
    odd = np.flatnonzero(lengths != width)
    if odd.size:
        problem = f"A vector has {lengths[odd[0]]} numbers, and the first one {width}"
        raise _bad_row(problem, start + int(odd[0]), where)
    if values.null_count:
        row = int(np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))[0]) // width
        raise _bad_row("A vector has an entry that is missing", start + row, where)
    found: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return found.reshape(len(column), width)


def refuse_null(column: Any, where: str, start: int = 0) -> None:
    """Refuse a column with a row that has no value.

    Parameters
    ----------
    column : Array or ChunkedArray
    where : str
        What to call the table in messages.
    start : int
        Number of the first row.
    """
    if column.null_count:
        missing = np.flatnonzero(np.asarray(column.is_null()))
        raise _bad_row("A vector is missing (null)", start + int(missing[0]), where)


def _bad_row(problem: str, row: int, where: str) -> InputError:
    return InputError(problem, f"row {row} of {where}", "Drop this row, or mend it")
