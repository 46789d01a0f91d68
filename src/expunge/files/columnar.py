"""Tables of Arrow: which columns hold the vectors, and these as a matrix and back.

A column of lists is read as the numbers that lie behind it, never row by row.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.errors import InputError
from expunge.files.common_types import with_common_type
from expunge.files.dictionary_columns import has_one_dictionary, is_view, spelt, spelt_out
from expunge.files.list_columns import (
    first_length,
    is_fixed,
    is_list,
    is_number_list,
    matrix_of,
    pyarrow,
    refuse_null,
)
from expunge.files.naming import choose_columns, left_out
from expunge.files.number_types import array_type
from expunge.files.table import Order, VectorFile, unreadable
from expunge.files.vector_columns import VectorColumns
from expunge.files.whole_numbers import beside_fractions

__all__ = ["ArrowTable", "new_batches", "pyarrow", "values_of"]

UNPACKED = 1 << 21  # numbers unpacked at once: those of lists take several times their size then
CACHED = 1 << 11  # rows of which columns are put side by side at once
FEW = 1 << 16  # different values up to which a column is kept as an array of text


class ArrowTable(VectorFile):
    """A file whose rows come as record batches.

    `groups` are the numbers of rows that the file keeps together; no batch reaches into two.
    """

    schema: Any
    groups: tuple[int, ...]

    @abstractmethod
    def batches(
        self, size: int, start: int = 0, columns: tuple[str, ...] | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Record batches in order from row `start`, with the number of the first row of each.

        Parameters
        ----------
        size : int
            Most rows of a batch.
        start : int
        columns : tuple of str, optional
            Those wanted; all by default.
        """

    def choose(self, vectors: Any) -> None:
        """Find the columns of the vectors, and what is beside them."""
        pa, names = pyarrow(), list(self.schema.names)
        if len({*names}) < len(names):
            raise InputError(
                f"Several columns have the same name: {self.path}",
                ", ".join(map(repr, sorted({c for c in names if names.count(c) > 1}))),
                "Give every column a name of its own",
            )
        kinds = {name: self.schema.field(name).type for name in names}
        lists = [name for name, kind in kinds.items() if is_list(kind)]
        if isinstance(vectors, VectorColumns):
            vectors = vectors.asked_of(lists, names)
        numbers = {
            name: is_number_list(kind) or any(is_kind(kind) for is_kind in _number_types())
            for name, kind in kinds.items()
        }
        chosen = choose_columns(
            [name for name in lists if pa.types.is_floating(kinds[name].value_type)],
            [name for name, kind in kinds.items() if pa.types.is_floating(kind)],
            numbers,
            vectors,
            self.path.name,
        )
        if len(chosen) > 1 and {*chosen} & {*lists}:
            raise InputError(
                "Vectors are one column of lists, or columns of numbers",
                f"vectors={vectors!r} for {self.path.name}",
                "Name one column of lists",
            )
        self.names = tuple(chosen)
        self.columns = tuple(name for name in names if name not in {*chosen})
        if chosen[0] in lists:
            self.vectors, self.lists, kind = chosen[0], True, kinds[chosen[0]]
            self.stored = kind.value_type.to_pandas_dtype()().dtype.name
            self.d = kind.list_size if is_fixed(kind) else self._first_length()
        else:
            self.vector_columns, self.d = self.names, len(chosen)
            self.left_out = left_out(numbers, chosen, vectors)
            wholes = [name for name, kind in kinds.items() if pa.types.is_integer(kind)]
            self.wholes = beside_fractions(wholes, chosen, vectors)
            types = [np.dtype(kinds[name].to_pandas_dtype()) for name in chosen]
            self.stored = np.result_type(*types).name
        if self.d < 1 and self.n:
            raise InputError(
                f"The vectors of the first row are empty: {self.path}",
                f"the column {self.vectors!r}",
                "Name another column",
            )

    def _first_length(self) -> int:
        for start, batch in self.batches(1, columns=self.names):
            column = batch.column(0)
            return first_length(column, str(self.path), start)
        return 0  # nobody knows

    def blocks(self, size: int, start: int = 0) -> Iterator[tuple[int, NDArray[Any]]]:
        """Vectors in order, gathered from smaller batches; see `VectorFile`."""
        first, filled, out = start, 0, np.empty((0, self.d), self.dtype)
        for at, batch in self.batches(self.at_once(size), start, self.names):
            X, taken = self.matrix(batch, at), 0
            while taken < len(X):
                if filled == len(out):
                    first, filled = at + taken, 0
                    out = np.empty((min(size, self.n - first), self.d), self.dtype)
                part = X[taken : taken + len(out) - filled]
                out[filled : filled + len(part)] = part
                taken, filled = taken + len(part), filled + len(part)
                if filled == len(out):
                    yield first, out

    def at_once(self, size: int) -> int:
        """Rows of a batch, where blocks of `size` rows are wanted: so few that memory is kept."""
        return min(size, max(1, UNPACKED // self.d))

    def matrix(self, batch: Any, start: int) -> NDArray[Any]:
        """The vectors of a batch whose first row has the number `start`.

        Parameters
        ----------
        batch : RecordBatch
        start : int

        Returns
        -------
        array of shape (k, d)
        """
        columns = [batch.column(batch.schema.get_field_index(name)) for name in self.names]
        if not self.vector_columns:
            return matrix_of(columns[0], self.d, str(self.path), start)
        for name, column in zip(self.names, columns, strict=True):
            refuse_null(column, f"the column {name!r} of {self.path}", start)
        out = np.empty((len(batch), self.d), self.dtype)
        arrays = [column.to_numpy(zero_copy_only=False) for column in columns]
        for lo in range(0, len(batch), CACHED):  # so that what is written stays in cache
            for j, values in enumerate(arrays):
                out[lo : lo + CACHED, j] = values[lo : lo + CACHED]
        return out

    def _column(self, name: str) -> NDArray[Any]:
        parts = [batch.column(0) for _, batch in self.batches(1 << 16, columns=(name,))]
        try:
            return values_of(parts, self.schema.field(name).type)
        except (UnicodeError, pyarrow().ArrowException) as error:
            raise unreadable(self.path, f"a column of Arrow ({name!r})", error) from error

    def new_schema(self, kind: str, columns: tuple[str, ...], *, moved: bool = False) -> Any:
        """The schema with vectors of another type, and the columns that are carried.

        Parameters
        ----------
        kind : str
        columns : tuple of str
        moved : bool
            Whether all numbers stay what they are: then columns of whole numbers stay such.

        Returns
        -------
        Schema
        """
        fields = []
        for field in self.schema:
            if field.name in self.names:
                stays = kind == self.stored and (moved or _has_fractions(field.type))
                fields.append(field if stays else field.with_type(_retyped(field.type, kind)))
            elif field.name in columns:
                fields.append(field)
        return pyarrow().schema(fields, metadata=self.schema.metadata)


def _number_types() -> tuple[Callable[[Any], bool], ...]:
    types = pyarrow().types
    return types.is_floating, types.is_integer, types.is_boolean


def _has_fractions(kind: Any) -> bool:
    return bool(pyarrow().types.is_floating(kind.value_type if is_list(kind) else kind))


def _retyped(kind: Any, numbers: str) -> Any:
    """The type of a column of vectors with other numbers."""
    pa = pyarrow()
    inner = pa.from_numpy_dtype(array_type(numbers))
    if not is_list(kind):
        return inner
    field = kind.value_field.with_type(inner)
    if is_fixed(kind):
        return pa.list_(field, kind.list_size)
    return pa.large_list(field) if pa.types.is_large_list(kind) else pa.list_(field)


def values_of(parts: list[Any], kind: Any) -> NDArray[Any]:
    """A column as an array: numbers as they are, text as text, None for what is missing.

    Parameters
    ----------
    parts : list of arrays of Arrow
    kind : type of Arrow
        That of the column.

    Returns
    -------
    array of shape (n,)
    """
    pa = pyarrow()
    column = pa.chunked_array(parts, type=kind)
    if pa.types.is_dictionary(kind):
        kind = spelt_out(kind)
        column = pa.chunked_array([spelt(part, kind) for part in column.chunks], type=kind)
    kind = column.type
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or is_view(kind)
    if text and not column.null_count:
        coded = column.dictionary_encode().unify_dictionaries().chunks
        labels = np.array(coded[0].dictionary.to_pylist() if coded else [], dtype=object)
        if len(labels) <= FEW:
            labels = labels.astype(str)
        places = [part.indices.to_numpy(zero_copy_only=False) for part in coded]
        return np.asarray(labels[np.concatenate(places)] if places else labels)
    if column.null_count:
        found = np.empty(len(column), object)
        found[:] = column.to_pylist()
        return found
    return np.asarray(column.to_numpy())


def new_batches(
    source: VectorFile, order: Order, columns: tuple[str, ...], *, spell_out: bool = False
) -> tuple[Any, Iterator[tuple[Any, bool]]]:
    """The schema of a new table, and its batches, each with whether a group ends with it.

    Parameters
    ----------
    source : VectorFile
    order : Order
    columns : tuple of str
        Other columns to carry.
    spell_out : bool
        Whether to write the values of columns whose dictionary differs between batches without it.

    Returns
    -------
    schema : Schema
    batches : iterator of (RecordBatch, bool)
    """
    tables = source.shards or (source,)
    if all(isinstance(table, ArrowTable) for table in tables):
        schema = tables[0].new_schema(order.kind, columns, moved=order.moved)  # type: ignore[attr-defined]
        for name in columns:
            schema = with_common_type(schema, name, tables)
            place, kind = schema.get_field_index(name), schema.field(name).type
            differs = pyarrow().types.is_dictionary(kind) and spell_out
            if differs and not has_one_dictionary(tables, name):
                schema = schema.set(place, schema.field(name).with_type(spelt_out(kind)))
        return schema, _changed(tables, order, schema)
    pa = pyarrow()
    others = source.others(columns)
    fields = {name: pa.array(values).type for name, values in others.items()}
    inner = pa.from_numpy_dtype(array_type(order.kind))
    vectors = dict.fromkeys(source.vector_columns, inner)
    if not vectors:
        vectors = {source.vectors: pa.list_(inner, source.d)}
    schema = pa.schema({**fields, **vectors})
    return schema, _made(source, order, others, schema)


def _changed(tables: Any, order: Order, schema: Any) -> Iterator[tuple[Any, bool]]:
    from expunge.files.read_ahead import read_ahead

    before, kept = 0, tuple(schema.names)
    for table in tables:
        ends = iter(_group_ends(table.groups, max(order.most, 1)))
        end = next(ends, 0)
        for start, batch in read_ahead(table.batches(table.at_once(order.rows), columns=kept)):
            X = order.change(before + start, table.matrix(batch, start))
            arrays = [
                _vector_array(X, table, field)
                if field.name in table.names
                else spelt(batch.column(batch.schema.get_field_index(field.name)), field.type)
                for field in schema
            ]
            try:
                made, at = pyarrow().RecordBatch.from_arrays(arrays, schema=schema), 0
            except pyarrow().ArrowException as error:
                raise unreadable(
                    table.path, f"a part of the table (row {start} or later)", error
                ) from error
            while start + len(made) >= end > start + at:
                yield made.slice(at, end - start - at), True
                at, end = end - start, next(ends, table.n + 1)
            if at < len(made):
                yield made.slice(at), False
        before += table.n


def _group_ends(groups: tuple[int, ...], most: int) -> list[int]:
    """Where groups of rows end, those of more than `most` cut into parts of nearly one size."""
    ends, first = [], 0
    for rows in groups:
        parts = -(-rows // most)
        ends += [first + rows * (k + 1) // parts for k in range(parts)]
        first += rows
    return ends


def _vector_array(X: NDArray[Any], table: ArrowTable, field: Any) -> Any:
    pa = pyarrow()
    if table.vector_columns:
        values = np.ascontiguousarray(X[:, table.names.index(field.name)])
        return pa.array(values.astype(field.type.to_pandas_dtype(), copy=False), type=field.type)
    return _list_array(X, field.type)


def _list_array(X: NDArray[Any], kind: Any) -> Any:
    pa = pyarrow()
    values = pa.array(np.ascontiguousarray(X).reshape(-1), type=kind.value_type)
    if is_fixed(kind):
        return pa.FixedSizeListArray.from_arrays(values, type=kind)
    large = pa.types.is_large_list(kind)
    offsets = np.arange(len(X) + 1, dtype=np.int64) * X.shape[1]
    made = pa.LargeListArray if large else pa.ListArray
    offsets = pa.array(offsets, type=pa.int64() if large else pa.int32())
    return made.from_arrays(offsets, values, type=kind)


def _made(source: VectorFile, order: Order, others: Any, schema: Any) -> Iterator[tuple[Any, bool]]:
    pa = pyarrow()
    for start, X in order.blocks(source):
        arrays = [
            pa.array(values[start : start + len(X)], type=schema.field(name).type)
            for name, values in others.items()
        ]
        if source.vector_columns:
            arrays += [pa.array(np.ascontiguousarray(column)) for column in X.T]
        else:
            arrays.append(_list_array(X, schema.field(source.vectors).type))
        yield pa.RecordBatch.from_arrays(arrays, schema=schema), True
