"""Rows whose label is missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.inputs.columns import by_name
from expunge.inputs.list_labels import refuse_lists
from expunge.inputs.matrices import as_numpy
from expunge.rows.base import Rows

__all__ = ["has_label"]


def has_label(y: Any, rows: Rows) -> NDArray[np.bool_]:
    """Which rows have a label: neither None, nor NaN, nor empty text; of several, all of them.

    Parameters
    ----------
    y : as in `check_concept`
    rows : Rows
        What it belongs to.

    Returns
    -------
    bool array of shape (n,)

    Examples
    --------
    >>> from expunge.inputs import check_rows
    >>> from expunge.inputs.missing import has_label
    >>> has_label(["f", None, "m", ""], check_rows([[0.0], [1.0], [2.0], [3.0]]))
    array([ True, False,  True, False])
    """
    y = by_name(y, rows)
    if isinstance(y, Mapping):
        parts = [has_label(part, rows) for part in y.values()]
        return np.asarray(np.all(parts, axis=0))
    values = np.asarray(as_numpy(y))
    refuse_lists(values, "y")
    return np.asarray(_there(values).reshape(len(values), -1).all(axis=1))


def _there(values: NDArray[Any]) -> NDArray[np.bool_]:
    """The same of every entry; only objects and text are looked at one by one."""
    if values.dtype.kind in "biu":
        return np.ones(values.shape, dtype=bool)
    if values.dtype.kind in "fcmM":
        return np.asarray(values == values)  # NaN and NaT differ from themselves
    return np.array([not _is_missing(value) for value in values.ravel()], dtype=bool)


def _is_missing(value: Any) -> bool:
    if value is None or (isinstance(value, str) and not value.strip()):
        return True
    try:
        return not bool(value == value)  # NaN differs from itself
    except TypeError:  # pandas.NA answers neither yes nor no
        return True
