"""Parquet files: columns packed in row groups, read a few thousand rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from expunge.addresses import Address, Where
from expunge.files.columnar import ArrowTable, new_batches, pyarrow
from expunge.files.sinks import Sink
from expunge.files.table import Order, VectorFile, unreadable
from expunge.optional import require

__all__ = ["CARRIES", "KINDS", "ParquetTable", "open_path", "write"]

KINDS = ("float16", "float32", "float64")
CARRIES = "everything"
BUFFER = 1 << 20  # bytes of a column read at once
PACKED = 1 << 20  # numbers of lists packed at once: each takes twelve bytes beside its own
CODECS = {"UNCOMPRESSED": "NONE", "LZ4_RAW": "LZ4"}


class ParquetTable(ArrowTable):
    """A parquet file.

    Parameters
    ----------
    path : Path or Address
    vectors : str or sequence of str, optional
        The column of lists, or the columns of numbers; found by itself where there is no doubt.
    """

    footer: Any = None  # not to be fetched again

    def __init__(self, path: Where, vectors: Any = None) -> None:
        self.path = path
        with self._open() as file:
            self.schema, found = file.schema_arrow, file.metadata
            self.footer = found
            self.n = found.num_rows
            self.groups = tuple(
                rows for g in range(found.num_row_groups) if (rows := found.row_group(g).num_rows)
            )
            self.numbers = [g for g in range(found.num_row_groups) if found.row_group(g).num_rows]
        self.choose(vectors)
        self.remember()

    @contextmanager
    def _open(self, ahead: bool = False) -> Iterator[Any]:
        """The file; at an address a group of rows may be fetched in a few long pieces `ahead`."""
        parquet = require("pyarrow.parquet", "parquet")
        source: Any = self.path
        how: dict[str, Any] = {"buffer_size": BUFFER, "pre_buffer": False}
        if isinstance(self.path, Address):
            source = self.path.open()
            how = {"pre_buffer": ahead, "metadata": self.footer}
        try:
            file = parquet.ParquetFile(source, **how)
        except pyarrow().ArrowException as error:
            raise unreadable(self.path, "a parquet file", error) from error
        with file:
            yield file

    def batches(
        self, size: int, start: int = 0, columns: tuple[str, ...] | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Record batches in order; see `ArrowTable`."""
        first = 0
        with self._open(ahead=size > 1) as file:
            for number, rows in zip(self.numbers, self.groups, strict=True):
                if first + rows > start:
                    yield from self._group(file, number, first, size, start, columns)
                first += rows

    def _group(
        self,
        file: Any,
        number: int,
        first: int,
        size: int,
        start: int,
        columns: tuple[str, ...] | None,
    ) -> Iterator[tuple[int, Any]]:
        wanted = None if columns is None else list(columns)
        at = first
        try:
            for batch in file.iter_batches(size, row_groups=[number], columns=wanted):
                skip = max(0, start - at)
                if skip < len(batch):
                    yield at + skip, batch.slice(skip)
                at += len(batch)
        except (pyarrow().ArrowException, OSError) as error:
            raise unreadable(self.path, f"a parquet file (row {at} or later)", error) from error

    def packing(self) -> dict[str, Any]:
        """How the columns are packed, as the writer wants to be told."""
        with self._open() as file:
            found = file.metadata
            if not found.num_row_groups:
                return {}
            group = found.row_group(0)
            parts = [group.column(j) for j in range(group.num_columns)]
        try:
            paths = [part.path_in_schema for part in parts]
        except UnicodeDecodeError as error:
            raise unreadable(self.path, "a parquet file", error) from error
        return {
            "compression": {
                path: CODECS.get(part.compression, part.compression)
                for path, part in zip(paths, parts, strict=True)
            },
            "use_dictionary": [
                path
                for path, part in zip(paths, parts, strict=True)
                if any("DICTIONARY" in kind for kind in part.encodings)
                and path.split(".")[0] not in self.names
                and path not in self.names
            ],
        }


def open_path(path: Where, vectors: Any) -> VectorFile:
    """The file as a `VectorFile`."""
    return ParquetTable(path, vectors)


def write(stream: IO[bytes], source: VectorFile, order: Order, columns: tuple[str, ...]) -> None:
    """Write a parquet file; of one that was read, with its row groups and its packing.

    A row group is written as a whole, so that it has to fit into the memory that was allowed; one
    that does not is split.

    Parameters
    ----------
    stream : binary stream
    source : VectorFile
    order : Order
    columns : tuple of str
        Other columns to carry.
    """
    pa, parquet = pyarrow(), require("pyarrow.parquet", "parquet")
    schema, batches = new_batches(source, order, columns)
    first = (source.shards or (source,))[0]
    names = {name: schema.field(name).type for name in schema.names}
    plain = [name for name, kind in names.items() if _repeats(kind)]
    packing: dict[str, Any] = {"compression": "snappy", "use_dictionary": plain}
    if isinstance(first, ParquetTable):
        packing.update(first.packing())
    sink = Sink(stream)
    with sink.watching():
        writer = parquet.ParquetWriter(
            sink, schema, version="2.6", data_page_version="1.0", store_schema=True, **packing
        )
        sink.close_with(writer)
        held: list[Any] = []
        rows = max(1, PACKED // source.d)
        for batch, ends in batches:
            held += [batch.slice(lo, rows) for lo in range(0, len(batch), rows)]
            if ends:
                table = pa.Table.from_batches(held, schema)
                writer.write_table(table, row_group_size=max(1, len(table)))
                held = []


def _repeats(kind: Any) -> bool:
    """Whether values of this type are likely to repeat, so that a dictionary saves room."""
    types = pyarrow().types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_dictionary(kind))
