"""What fields of text are: numbers where all of them are, else text."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["typed"]


def typed(fields: list[str]) -> NDArray[Any]:
    """Numbers where all fields that are not empty are numbers, else text; None for empty ones.

    Codes of digits that would become the same number, as ``01`` and ``1``, stay text.

    Parameters
    ----------
    fields : list of str

    Returns
    -------
    array of shape (n,)
        Of objects if some are empty.

    Examples
    --------
    >>> from expunge.files.field_types import typed
    >>> typed(["1", "2.5"]), typed(["7", "", "9"]), typed(["01", "1"])
    (array([1. , 2.5]), array([7, None, 9], dtype=object), array(['01', '1'], dtype='<U2'))
    """
    there = [field for field in fields if field != ""]
    if not there:
        return np.full(len(fields), None)
    found = _numbers(there)
    if len(there) == len(fields):
        return found
    filled = np.empty(len(fields), object)
    filled[[field != "" for field in fields]] = found.tolist()
    return filled


def _numbers(fields: list[str]) -> NDArray[Any]:
    for kind in (np.int64, np.float64):
        try:
            found = np.array(fields, dtype=kind)
        except (ValueError, OverflowError):
            continue
        codes = {field.strip().removeprefix("+") for field in fields}
        whole = [code for code in codes if code.removeprefix("-").isdigit()]
        return found if len({kind(code) for code in whole}) == len(whole) else np.array(fields)
    return np.array(fields)
