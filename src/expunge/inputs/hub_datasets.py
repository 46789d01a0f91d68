"""Datasets of Hugging Face as a home of rows; imported only when one was passed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from expunge.errors import InputError
from expunge.files.list_columns import is_number_list, pyarrow
from expunge.files.naming import listed
from expunge.inputs.frames import check_names, choose, one_column_of_lists
from expunge.rows.dataset_rows import DatasetRows

if TYPE_CHECKING:
    from expunge.erasure import Erasure
    from expunge.files.vector_columns import VectorColumns

__all__ = ["apply", "array_of", "check", "rows_of", "table"]


def check(X: Any, name: str) -> None:
    """Refuse what has no rows that can be counted.

    Parameters
    ----------
    X : datasets.Dataset, IterableDataset or DatasetDict
    name : str
        What to call it in messages.
    """
    if type(X).__name__ in ("DatasetDict", "IterableDatasetDict"):
        raise InputError(
            f"{name} holds several datasets", listed(map(str, X)), "Pass one of them, as X['train']"
        )
    if type(X).__name__ == "IterableDataset":
        raise InputError(
            f"{name} is a stream, which is read once",
            type(X).__name__,
            "Load it without streaming=True, or call partial_fit on its batches",
        )


def table(X: Any, named: tuple[Any, ...], vectors: Any, known: VectorColumns | None) -> DatasetRows:
    """A checked dataset as rows, with the columns beside them; parameters as of `rows_of_table`."""
    pa = pyarrow()
    columns, fields = list(X.column_names), X.features.arrow_schema
    names = check_names(named, columns, len(X))
    kinds = {name: fields.field(name).type for name in columns}
    lists = [name for name, kind in kinds.items() if is_number_list(kind)]
    numbers = {
        name: name in lists or pa.types.is_floating(kind) or pa.types.is_integer(kind)
        for name, kind in kinds.items()
    }
    chosen = choose(columns, lists, numbers, names, vectors, known)
    odd = [name for name in chosen.names if not numbers[name]]
    if odd:
        raise InputError(
            "could not convert string to float: X has columns that are not numbers",
            ", ".join(f"{name!r} ({kinds[name]})" for name in odd[:5]),
            'Say which column holds the vectors: vectors="name"',
        )
    return DatasetRows(X, chosen, tuple(name for name in columns if name not in chosen.names))


def rows_of(X: Any) -> DatasetRows:
    """A checked dataset as rows."""
    return table(X, (), None, None)


def array_of(X: Any) -> NDArray[Any]:
    """A dataset of one column as an array: labels, say."""
    if len(X.column_names) != 1:
        raise InputError(
            "Labels are one column",
            f"a dataset with the columns {listed(X.column_names)}",
            "Name the column, as concept='gender'",
        )
    (name,) = X.column_names
    column = X.with_format("arrow")[:][name]
    if is_number_list(column.type):
        return one_column_of_lists(column, f"the column {name!r}")
    return DatasetRows.values_of(column)


def apply(erasure: Erasure, X: Any, out: Any) -> NDArray[Any]:
    """Erased vectors of a checked dataset, as an array."""
    rows = table(X, (), None, erasure.columns)
    erasure.check_width((rows.n_samples, rows.n_features))
    found: NDArray[Any] = rows.transform(erasure, out)
    return found
