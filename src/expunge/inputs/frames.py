"""Tables: frames become rows with columns beside them, which go by name wherever values do."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.errors import InputError
from expunge.files.list_columns import first_length, is_number_list, matrix_of, pyarrow
from expunge.files.naming import choose_columns, listed
from expunge.files.vector_columns import VectorColumns, no_such_column
from expunge.inputs.columns import names_in
from expunge.inputs.homes import home_of
from expunge.inputs.matrices import as_matrix, frame_or_series
from expunge.rows.base import Rows
from expunge.rows.table_rows import TableRows

__all__ = [
    "check_names",
    "choose",
    "columns_of",
    "frame_of",
    "one_column_of_lists",
    "rows_of_table",
]

PLAIN = (np.ndarray, list, tuple, int, float, str, type(None))


def rows_of_table(
    X: Any,
    *named: Any,
    vectors: Any = None,
    known: VectorColumns | None = None,
    in_order: bool = True,
    name: str = "X",
) -> Any:
    """A table as rows with what is beside the vectors; anything else as it is.

    The vectors are the columns that `vectors` names, one of lists or several of numbers; else those
    that are known from a fit; else the only column of lists; else all that nothing else names.

    Parameters
    ----------
    X : frame of pandas, polars or pyarrow, Dask or Hugging Face dataset, or anything
    *named : str, list of str, mapping of such, or anything
        What may name columns: the concept, weights, groups.
    vectors : str or sequence of str, optional
        A pattern with ``*`` stands for several.
    known : VectorColumns, optional
    in_order : bool
        Whether columns that are known are put in their order.
    name : str
        What to call it in messages.

    Returns
    -------
    Rows, or `X`

    Raises
    ------
    InputError
        For a name that is not there, with the nearest that is.

    Examples
    --------
    >>> import pandas as pd
    >>> from expunge.inputs.frames import rows_of_table
    >>> people = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0], "sex": ["f", "m"]})
    >>> rows = rows_of_table(people, "sex")
    >>> rows.n_features, rows.columns, rows.column("sex").tolist()
    (2, ('sex',), ['f', 'm'])
    """
    if isinstance(X, Rows):
        if vectors is not None:
            raise _no_table(vectors, f"{type(X).__name__}, whose vectors are chosen", name)
        return X.in_order_of(known)
    home = None if isinstance(X, PLAIN) else home_of(X)
    if home is not None and hasattr(home, "table"):
        home.check(X, name)
        return home.table(X, named, vectors, known)
    frame = None if home is not None or isinstance(X, PLAIN) else frame_or_series(X, name)
    if frame is None or not hasattr(frame, "columns"):
        if vectors is not None:
            raise _no_table(vectors, type(X).__name__, name)
        return X
    names = check_names(named, frame.columns, len(frame))
    lists, numbers = _kinds(frame)
    chosen = choose(frame.columns, lists, numbers, names, vectors, known, in_order=in_order)
    beside = tuple(column for column in frame.columns if column not in {*chosen.names})

    def column(asked: str) -> NDArray[Any]:
        if asked not in frame.columns:
            raise no_such_column(asked, frame.columns, "A name")
        return np.asarray(frame.get_column(asked).to_numpy())

    if chosen.lists:
        values = _matrix_of_lists(frame.get_column(chosen.names[0]), name)
        return TableRows(values, beside, column, chosen)
    place = {name: at for at, name in enumerate(frame.columns)}  # names need not be text
    part = frame[:, [place[name] for name in chosen.names]].to_native()
    return TableRows(as_matrix(part, name=name), beside, column, chosen, part)


def columns_of(X: Any) -> VectorColumns | None:
    """Which columns of a table these rows are, if they are of one.

    Parameters
    ----------
    X : Rows or anything

    Returns
    -------
    VectorColumns or None
    """
    return X.chosen if isinstance(X, Rows) else None


def frame_of(X: Any) -> Any:
    """The vectors of table rows as the frame, or else the array, that they are; others as they are.

    Parameters
    ----------
    X : Rows or anything

    Returns
    -------
    frame, array or `X`
    """
    if not isinstance(X, TableRows):
        return X
    return X.X if X.frame is None else X.frame


def check_names(named: tuple[Any, ...], columns: Any, n_samples: int) -> list[str]:
    """All names of columns among what was passed, each once.

    Parameters
    ----------
    named : tuple
        As for `rows_of_table`.
    columns : sequence
        That there are.
    n_samples : int

    Returns
    -------
    list of str

    Raises
    ------
    InputError
        For one that is not there.
    """
    names = [name for values in named for name in names_in(values, columns, n_samples)]
    for name in names:
        if name not in columns:
            raise no_such_column(name, columns, "The concept, or what belongs to it,")
    return list(dict.fromkeys(names))


def choose(
    columns: Any,
    lists: list[str],
    numbers: dict[str, bool],
    names: list[str],
    vectors: Any = None,
    known: VectorColumns | None = None,
    *,
    in_order: bool = True,
) -> VectorColumns:
    """Which columns of a table the vectors are; see `rows_of_table`.

    Parameters
    ----------
    columns : sequence
        All of them.
    lists : list
        Those of lists of numbers.
    numbers : mapping of str to bool
        Whether each holds numbers, or lists of them.
    names : list of str
        Those that something else names.
    vectors, known, in_order
        As for `rows_of_table`.

    Returns
    -------
    VectorColumns
    """
    if vectors is not None:
        found = choose_columns([], [], numbers, vectors, "the table")
        if len(found) > 1 and {*found} & {*lists}:
            raise InputError(
                "Vectors are one column of lists, or columns of numbers",
                f"vectors={vectors!r}",
                "Name one column of lists",
            )
        return VectorColumns(tuple(found), lists=found[0] in lists)
    if known is not None and (not known.lists or known.names[0] in columns):
        order = known.ordered if in_order else known.as_given
        beside = {*names} - {*known.names}  # what is named here the fit need not have met
        return VectorColumns(
            order([c for c in columns if c not in beside]), known.lists, known.beside
        )
    free = [column for column in lists if column not in names]
    if len(free) > 1:
        raise InputError(
            "Several columns of lists could be the vectors",
            listed(free),
            'Say which: vectors="name"',
        )
    if free:
        return VectorColumns((free[0],), lists=True)
    rest = tuple(column for column in columns if column not in names)
    if not rest:
        raise InputError(
            "No column is left for the vectors: all of them are named for something else",
            f"the columns {listed(columns)}",
            "Pass a table with columns of numbers, or one of lists",
        )
    return VectorColumns(rest, beside=tuple(names))


def _kinds(frame: Any) -> tuple[list[Any], dict[str, bool]]:
    """Columns of lists, and whether each column with a name of text holds numbers."""
    import narwhals as nw

    lists, numbers = [], {}
    for column, kind in frame.schema.items():
        nested = isinstance(kind, nw.List | nw.Array)
        if kind == nw.Object:
            nested = _holds_lists(frame.get_column(column))
        if nested:
            lists.append(column)
        if isinstance(column, str):
            numbers[column] = nested or kind.is_numeric() or kind in (nw.Boolean, nw.Object)
    return lists, numbers


def _holds_lists(series: Any) -> bool:
    """Whether the first thing in a column of objects is a list of numbers."""
    first = next((value for value in series if value is not None and value is not np.nan), None)
    if isinstance(first, np.ndarray):
        return first.ndim == 1 and first.dtype.kind in "fiub"
    return isinstance(first, list | tuple) and all(
        isinstance(value, int | float | np.number | type(None)) for value in first
    )


def _matrix_of_lists(series: Any, name: str) -> NDArray[Any]:
    where = f"the column {series.name!r}"
    pa, native = pyarrow(), series.to_native()
    try:
        column = native if isinstance(native, pa.ChunkedArray) else series.to_arrow()
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InputError(
            f"{name} has a column of vectors that cannot be read",
            f"{where} ({error})"[:200],
            "Let every entry be a list or an array of numbers, all of one length",
        ) from error
    return one_column_of_lists(column, where)


def one_column_of_lists(column: Any, where: str, width: int | None = None) -> NDArray[Any]:
    """A column of Arrow as an array of shape (n, d); refuse one that holds no lists of numbers.

    Parameters
    ----------
    column : Array or ChunkedArray
    where : str
        What to call it in messages.
    width : int, optional
        Numbers of each list; that of the first one by default.

    Returns
    -------
    array of shape (n, d)
    """
    if not is_number_list(column.type):
        raise InputError(
            "A column of vectors must hold lists of numbers",
            f"{where} of type {column.type}",
            "Name another column, or columns of numbers",
        )
    if width is None:
        width = first_length(column, where) if len(column) else 0
    return matrix_of(column, width, where)


def _no_table(vectors: Any, received: str, name: str) -> InputError:
    return InputError(
        f"vectors={vectors!r} names columns, but {name} is no table",
        received,
        "Pass a frame, or leave vectors away",
    )
