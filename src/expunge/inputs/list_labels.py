"""Lists where a label is wanted: refused, as a row has one label of each concept."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.errors import InputError

__all__ = ["refuse_lists"]


def refuse_lists(values: NDArray[Any], name: str) -> None:
    """Refuse an array of objects among which there is a list.

    Parameters
    ----------
    values : array
    name : str
        What to call it in messages.

    Raises
    ------
    InputError
        With the first row that has one.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.inputs.list_labels import refuse_lists
    >>> column = np.empty(2, object)
    >>> column[:] = [[0, 1], [1, 1]]
    >>> refuse_lists(column, "y")
    Traceback (most recent call last):
        ...
    expunge.errors.InputError: y holds lists, and a label is one value. Received a list of 2 in row 0. Make a column of each place of the lists, and name these columns.
    """  # noqa: E501
    if values.dtype.kind != "O":
        return
    for at, value in enumerate(values.ravel().tolist()):
        array = isinstance(value, np.ndarray) and value.ndim > 0
        if array or isinstance(value, list | tuple):
            row = at // (values.size // len(values))
            raise InputError(
                f"{name} holds lists, and a label is one value",
                f"a list of {len(value)} in row {row}",
                "Make a column of each place of the lists, and name these columns",
            )
