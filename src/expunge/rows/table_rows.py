"""Rows of a table in memory: an array, and columns beside it by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.rows.dense import DenseRows

__all__ = ["TableRows"]


class TableRows(DenseRows):
    """A checked array of shape (n, d), and what is beside it.

    Parameters
    ----------
    X : array of shape (n, d)
    columns : tuple of str
        Names of what is beside the vectors.
    column : function of a name
        Their values.
    chosen : VectorColumns
        Which columns of the table the vectors are.
    frame : frame, optional
        The vectors as the frame that they were.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.rows.table_rows import TableRows
    >>> rows = TableRows(np.eye(2), ("age",), lambda name: np.array([31, 24]), None)
    >>> rows.column("age")
    array([31, 24])
    """

    def __init__(
        self,
        X: NDArray[Any],
        columns: tuple[str, ...],
        column: Callable[[str], NDArray[Any]],
        chosen: Any,
        frame: Any = None,
    ) -> None:
        super().__init__(X)
        self.columns, self.chosen, self.frame = columns, chosen, frame
        self._column = column

    def column(self, name: str) -> NDArray[Any]:
        """Values (n,) of a column beside the vectors."""
        return np.asarray(self._column(name))
