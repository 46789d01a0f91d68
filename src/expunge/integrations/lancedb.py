"""LanceDB: the vectors of a table erased into a new column, batch by batch."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from expunge.errors import InputError
from expunge.files.list_columns import matrix_of, pyarrow
from expunge.files.naming import check_name
from expunge.inputs import check_number, check_width
from expunge.integrations.embedded import SOME, EmbeddingEraser
from expunge.optional import require

__all__ = ["erase_table"]

lancedb = require("lancedb", "lancedb")


def erase_table(
    table: Any,
    erasure: Any,
    *,
    key: str,
    vector: str = "vector",
    into: str = "erased",
    normalize: bool = False,
    batch_size: int = 10_000,
) -> int:
    """Erase the vectors of a table into another column of the same rows.

    Rows that have the new vector already are passed over, so that an interrupted call, or one after
    more rows have come, goes on where the other ended. Rows without a vector are left as they are.
    Search with ``vector_column_name=into`` and erased queries: ``erasure(query[None])[0]``.

    Parameters
    ----------
    table : lancedb.table.Table
    erasure : Erasure or fitted eraser
    key : str
        A column with a different value in every row, by which rows are found again.
    vector : str
        The column of vectors: a list of fixed size, as LanceDB searches it.
    into : str
        The new column, which is added if it is not there.
    normalize : bool
        Whether erased vectors get length one; nothing is promised then, nor for a search by
        cosines.
    batch_size : int
        Every batch is one version of the table, written whole or not at all.

    Returns
    -------
    int
        Number of rows that were erased by this call.

    Raises
    ------
    InputError
        For names that are not there, vectors of another width, keys that repeat, and a column
        `into` that holds what another erasure made.

    Examples
    --------
    >>> import tempfile
    >>> import lancedb
    >>> import expunge as ex
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     db = lancedb.connect(folder)
    ...     table = db.create_table("people", [{"id": 1, "vector": [3.0, 4.0]}])
    ...     first = ex.Erasure([[1.0], [0.0]], [[1.0, 0.0]])
    ...     ex.integrations.lancedb.erase_table(table, first, key="id")
    ...     table.to_arrow()["erased"].to_pylist()
    1
    [[0.0, 4.0]]
    """
    check_number(batch_size, "batch_size", least=1, whole=True)
    eraser = EmbeddingEraser(erasure, normalize)
    kind = _check_columns(table, eraser, key, vector, into)
    _check_keys(table, key)
    if into not in table.schema.names:
        table.add_columns(pyarrow().field(into, kind))
    _check_same(table, eraser, vector, into)
    wanted = f"`{vector}` IS NOT NULL AND `{into}` IS NULL"
    rows = table.search().where(wanted).select([key, vector]).limit(table.count_rows() or 1)
    done = 0
    for batch in rows.to_batches(int(batch_size)):  # of the table as it is now
        clean = eraser.array(_matrix(batch.column(vector), eraser))
        flat = pyarrow().array(clean.astype(_dtype(kind)).ravel())
        lists = pyarrow().FixedSizeListArray.from_arrays(flat, type=kind)
        new = pyarrow().table({key: batch.column(key), into: lists})
        table.merge_insert(key).when_matched_update_all().execute(new)
        done += len(batch)
    return done


def _check_columns(table: Any, eraser: EmbeddingEraser, key: str, vector: str, into: str) -> Any:
    """The type of the vectors, after a check of all names."""
    names, where = table.schema.names, f"the table {table.name!r}"
    for name in (key, vector):
        check_name(name, names, "column", where)
    if any("`" in name for name in (vector, into)):
        raise InputError(
            "A filter of LanceDB cannot name a column with a backtick",
            f"vector={vector!r} and into={into!r}",
            "Give the column another name",
        )
    if into in (key, vector):
        raise InputError(
            "The erased vectors need a column of their own", f"into={into!r}", "Pass another name"
        )
    for name in (vector, into):
        if name not in names:
            continue
        kind = table.schema.field(name).type
        if not pyarrow().types.is_fixed_size_list(kind):
            raise InputError(
                "A column of vectors must hold lists of one size",
                f"{name!r} of type {kind} in {where}",
                "Name another column",
            )
        check_width(
            kind.list_size,
            eraser.erasure.n_features,
            f"Vectors {name!r} of the table have",
            received=f"{where} with vectors of size {kind.list_size}",
        )
    return table.schema.field(vector).type


def _check_keys(table: Any, key: str) -> None:
    """Refuse keys that repeat: a vector would be written to the row of another."""
    rows = table.count_rows()
    keys = table.search().select([key]).limit(rows or 1).to_arrow()[key]
    different = len(keys.drop_null().unique())
    if different < rows:
        raise InputError(
            "The key must have a different value in every row",
            f"{different} different values of {key!r} in {rows} rows",
            "Name another column as key=",
        )


def _check_same(table: Any, eraser: EmbeddingEraser, vector: str, into: str) -> None:
    """Refuse to go on with what another erasure began."""
    both = f"`{vector}` IS NOT NULL AND `{into}` IS NOT NULL"
    found = table.search().where(both).select([vector, into]).limit(SOME).to_arrow()
    eraser.check_continues(
        _matrix(found[vector], eraser),
        _matrix(found[into], eraser),
        f"The column {into!r} of the table {table.name!r}",
        "Pass another name as into=, or remove it first by drop_columns",
    )


def _matrix(column: Any, eraser: EmbeddingEraser) -> NDArray[Any]:
    return matrix_of(column, eraser.erasure.n_features, "the table")


def _dtype(kind: Any) -> Any:
    return kind.value_type.to_pandas_dtype()
