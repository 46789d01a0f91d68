"""Rows whose label is missing: refused, or left out and counted."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.errors import InputError
from expunge.inputs.list_labels import refuse_lists

__all__ = ["labelled_rows", "tidied"]

DONE = {"error": "", "drop": "left out", "unlabelled": "taken as rows without labels"}


def labelled_rows(
    values: Mapping[str, Any], n: int, how: str
) -> tuple[NDArray[np.intp] | None, str]:
    """The numbers of the rows that have all labels, None for all rows; and what to say of it.

    Parameters
    ----------
    values : mapping of option and name to array of shape (n,) or (n, m), or PartedColumn
    n : int
        Rows.
    how : {"error", "drop", "unlabelled"}

    Returns
    -------
    int array of shape (k,) or None
    str
        Empty where nothing was left out.

    Raises
    ------
    InputError
        With the number of rows without a label and the first of them, unless they may be dropped.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.commands.missing_labels import labelled_rows
    >>> labelled_rows({"gender": np.array(["f", "", "m"])}, 3, "drop")[0]
    array([0, 2])
    """
    if how not in DONE:
        raise InputError(
            "--missing takes error, drop or unlabelled", repr(how), "Write --missing drop, say"
        )
    gone = np.zeros(n, bool)
    for name, column in values.items():
        tell = partial(_missing, name=name)
        own = tell(column) if isinstance(column, np.ndarray) else column.each(tell).gather()
        if own.any() and how == "error":
            raise InputError(
                f"{name}: some rows have no label",
                f"{int(own.sum()):,} of {n:,} rows without one, the first is row "
                f"{int(np.argmax(own))} (counted from 0)",
                "Fill them in, or leave these rows out by --missing drop",
            )
        gone |= own
    if not gone.any():
        return None, ""
    if gone.all():
        raise InputError(
            "No row has a label", f"{n:,} rows, all without one", "Name another column"
        )
    said = f"{int(gone.sum()):,} of {n:,} rows have no label: {DONE[how]}"
    return np.flatnonzero(~gone), said


def tidied(values: Any, index: NDArray[np.intp] | None) -> Any:
    """The values of some rows, as numbers or text where all of them are of one type.

    Parameters
    ----------
    values : array of shape (n,) or (n, m), or PartedColumn
    index : int array of shape (k,), optional

    Returns
    -------
    array of shape (k,) or (k, m), or PartedColumn

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.commands.missing_labels import tidied
    >>> tidied(np.array([1, None, 0], dtype=object), np.array([0, 2]))
    array([1, 0])
    """
    chosen = values if index is None else values[index]
    if not isinstance(chosen, np.ndarray):
        return chosen if index is None else chosen.each(_plain)
    return _plain(chosen)


def _plain(chosen: NDArray[Any]) -> NDArray[Any]:
    kinds = {type(value) for value in chosen.ravel()} if chosen.dtype.kind == "O" else set()
    if len(kinds) == 1 or kinds == {int, float}:
        plain = np.array(chosen.tolist())
        return plain if plain.shape == chosen.shape else chosen
    return chosen


def _missing(values: NDArray[Any], name: str) -> NDArray[np.bool_]:
    refuse_lists(values, name)
    kind, gone = values.dtype.kind, np.zeros(values.shape, bool)
    if kind == "f":
        gone = np.isnan(values)
    elif kind == "U":
        gone = np.strings.str_len(values) == 0 if hasattr(np, "strings") else values == ""
    elif kind == "O":
        flat = [_is_missing(value) for value in values.ravel().tolist()]
        gone = np.array(flat, bool).reshape(values.shape)
    return np.asarray(gone if gone.ndim == 1 else gone.any(axis=1))


def _is_missing(value: Any) -> bool:
    if value is None or (isinstance(value, str) and not value):
        return True
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA has no truth value
        return True
