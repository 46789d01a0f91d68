"""Columns by name, for rows that have columns beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from expunge.errors import InputError
from expunge.inputs.homes import home_of
from expunge.rows.base import Rows

__all__ = ["by_name", "count_of", "names_in"]


def by_name(values: Any, rows: Any, name: str = "y") -> Any:
    """What a name stands for: the column of the rows that is called so; anything else as it is.

    Parameters
    ----------
    values : str, list of str, mapping of such, or anything
        Several names are several columns; a list of as many labels as there are rows is labels,
        unless all of them are names.
    rows : Rows or int
        A number has no columns.
    name : str
        What to call the values in messages.

    Returns
    -------
    array of shape (n,), mapping of str to array, or `values`

    Raises
    ------
    InputError
        For a name that is not there, with the nearest that is.

    Examples
    --------
    >>> from expunge.inputs import check_rows
    >>> from expunge.inputs.columns import by_name
    >>> by_name([0, 1], check_rows([[1.0], [2.0]]))
    [0, 1]
    >>> by_name("gender", check_rows([[1.0], [2.0]]))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    expunge.errors.InputError: y names a column, but these rows have none. Received 'gender'. ...
    """
    home = home_of(values)
    if hasattr(home, "labels_of"):
        values = home.labels_of(values)
    if not isinstance(rows, Rows):
        return values
    if isinstance(values, str):
        if rows.chosen is not None and values in rows.chosen.names:
            raise InputError(
                f"{name} names a column that is one of the vectors",
                repr(values),
                "Say which columns are the vectors: vectors=[...], where the rows are opened",
            )
        if not rows.columns:
            raise InputError(
                f"{name} names a column, but these rows have none",
                repr(values),
                "Pass the values themselves, one per row",
            )
        return rows.column(values)
    if home_of(values) is not None:
        return rows.aligned(values)
    if isinstance(values, Mapping):
        return {key: by_name(part, rows, name) for key, part in values.items()}
    names = names_in(values, rows.columns, rows.n_samples)
    if not names:
        return values
    found = {part: rows.column(part) for part in names}
    return found if len(found) > 1 else found[names[0]]


def names_in(values: Any, columns: Sequence[Any], n_samples: int) -> list[str]:
    """The names of columns that `values` consists of; none if it is values.

    Parameters
    ----------
    values : str, list of str, mapping of such, or anything
        An array or an index of text is names if all of it is.
    columns : sequence
        That rows have; without any, nothing is a name.
    n_samples : int

    Returns
    -------
    list of str

    Examples
    --------
    >>> from expunge.inputs.columns import names_in
    >>> names_in(["sex", "age"], ["sex", "age", "x"], 5), names_in(["f", "m"], ["sex"], 2)
    (['sex', 'age'], [])
    """
    if isinstance(values, str) and columns:
        return [values]
    if isinstance(values, Mapping):
        return [name for part in values.values() for name in names_in(part, columns, n_samples)]
    if type(values).__name__ in ("ndarray", "Index") and np.ndim(values) == 1:
        if not 0 < len(values) <= len(columns):
            return []
        given = values.tolist()
        return given if all(isinstance(n, str) and n in columns for n in given) else []
    if not columns or not isinstance(values, list | tuple):
        return []
    names = [part for part in values if isinstance(part, str)]
    labels = len(values) == n_samples and not {*names} <= {*columns}
    return [] if labels or len(names) < len(values) else names


def count_of(rows: Rows | int) -> int:
    """Number of rows, of rows or of their number.

    Parameters
    ----------
    rows : Rows or int

    Returns
    -------
    int
    """
    return rows.n_samples if isinstance(rows, Rows) else int(rows)
