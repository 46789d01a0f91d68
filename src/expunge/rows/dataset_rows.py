"""Rows of a dataset of Hugging Face: Arrow files that are read by slices, never all at once."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.files.columnar import values_of
from expunge.files.list_columns import first_length, matrix_of, refuse_null
from expunge.files.vector_columns import VectorColumns
from expunge.rows.lazy_rows import Index, LazyRows

__all__ = ["DatasetRows"]


class DatasetRows(LazyRows):
    """Vectors of a dataset, and what is beside them.

    Parameters
    ----------
    dataset : datasets.Dataset
    chosen : VectorColumns
        Which of its columns the vectors are.
    columns : tuple of str
        Those beside them.
    """

    chosen: VectorColumns

    def __init__(self, dataset: Any, chosen: Any, columns: tuple[str, ...]) -> None:
        self.dataset, self.chosen, self.columns = dataset, chosen, columns
        first = dataset.select_columns(list(chosen.names)).with_format("arrow")[:1]
        self.width = len(chosen.names)
        if chosen.lists:
            lists = first[chosen.names[0]]
            self.width = first_length(lists, self._where) if len(lists) else 0
        types = [field.type.value_type if chosen.lists else field.type for field in first.schema]
        dtype = np.result_type(*(np.dtype(kind.to_pandas_dtype()) for kind in types))
        super().__init__(len(dataset), self.width, dtype)

    @property
    def _where(self) -> str:
        return f"the column {self.chosen.names[0]!r}"

    @cached_property
    def _vectors(self) -> Any:
        """The dataset without the other columns, which need not be read for the vectors."""
        return self.dataset.select_columns(list(self.chosen.names)).with_format("arrow")

    def column(self, name: str) -> NDArray[Any]:
        """Values (n,) of a column beside the vectors."""
        return self.values_of(self.dataset.select_columns([name]).with_format("arrow")[:][name])

    @staticmethod
    def values_of(column: Any) -> NDArray[Any]:
        """A column of Arrow as an array; None for what is missing."""
        return values_of(column.chunks, column.type)

    def _made(self, index: Index) -> NDArray[Any]:
        if not len(index):
            return np.empty((0, self.n_features), self.dtype)
        start = int(index[0])
        run = bool((np.diff(index) == 1).all())
        part = self._vectors[start : start + len(index)] if run else self._vectors[index]
        if self.chosen.lists:
            return matrix_of(part[self.chosen.names[0]], self.width, self._where, start)
        for name in self.chosen.names:
            refuse_null(part[name], f"the column {name!r}", start)
        columns = [part[name].to_numpy() for name in self.chosen.names]
        return np.column_stack(columns).astype(self.dtype, copy=False)
