"""Arrow's own files: ``.arrow`` and ``.feather``, as files and as streams.

Hugging Face's `datasets` keeps streams under the ending ``.arrow``. A record batch is read as a
whole, but of its columns only those that are wanted.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from expunge.files.arrow_messages import MAGIC, record_batches
from expunge.files.columnar import ArrowTable, new_batches, pyarrow
from expunge.files.sinks import Sink
from expunge.files.table import Order, VectorFile, unreadable
from expunge.optional import require

__all__ = ["CARRIES", "KINDS", "IpcTable", "open_path", "write"]

KINDS = ("float16", "float32", "float64")
CARRIES = "everything"


class IpcTable(ArrowTable):
    """A file or a stream of record batches.

    Parameters
    ----------
    path : Path
    vectors : str or sequence of str, optional
        The column of lists, or the columns of numbers; found by itself where there is no doubt.
    """

    def __init__(self, path: Path, vectors: Any = None) -> None:
        self.path, self.ipc = path, require("pyarrow.ipc", "parquet")
        with path.open("rb") as stream:
            self.is_stream = stream.read(len(MAGIC)) != MAGIC
        found = record_batches(path)
        self.rows = tuple(batch.rows for batch in found)
        self.codec = found[0].codec if found else None
        self.groups = tuple(rows for rows in self.rows if rows)
        self.n = sum(self.rows)
        with pyarrow().OSFile(str(path)) as stream:
            self.schema = self._reader(stream, None).schema
        self.choose(vectors)
        self.remember()

    def _reader(self, stream: Any, columns: tuple[str, ...] | None) -> Any:
        opened = self.ipc.open_stream if self.is_stream else self.ipc.open_file
        try:
            if columns is None:
                return opened(stream)
            places = sorted(self.schema.get_field_index(name) for name in columns)
            return opened(stream, options=self.ipc.IpcReadOptions(included_fields=places))
        except (pyarrow().ArrowException, OSError) as error:
            raise unreadable(self.path, "an Arrow file", error) from error

    def batches(
        self, size: int, start: int = 0, columns: tuple[str, ...] | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Record batches in order; see `ArrowTable`."""
        with pyarrow().OSFile(str(self.path)) as stream:
            reader, at = self._reader(stream, columns), 0
            for number, rows in enumerate(self.rows):
                if at + rows > start or self.is_stream:
                    batch = self._batch(reader, number, at)
                    for lo in range(max(0, start - at), rows, size):
                        yield at + lo, batch.slice(lo, size)
                at += rows

    def _batch(self, reader: Any, number: int, row: int) -> Any:
        try:
            batch = reader.read_next_batch() if self.is_stream else reader.get_batch(number)
            batch.validate(full=True)  # a damaged one could lead anywhere in memory
            return batch
        except (pyarrow().ArrowException, OSError, StopIteration) as error:
            raise unreadable(self.path, f"an Arrow file (row {row} or later)", error) from error


def open_path(path: Path, vectors: Any) -> VectorFile:
    """The file as a `VectorFile`."""
    return IpcTable(path, vectors)


def write(stream: IO[bytes], source: VectorFile, order: Order, columns: tuple[str, ...]) -> None:
    """Write a file, or a stream where a stream was read, with the record batches of the source.

    A batch is written as a whole; one that does not fit into the memory that was allowed is split.

    Parameters
    ----------
    stream : binary stream
    source : VectorFile
    order : Order
    columns : tuple of str
        Other columns to carry.
    """
    pa, ipc = pyarrow(), require("pyarrow.ipc", "parquet")
    first = (source.shards or (source,))[0]
    own = first if isinstance(first, IpcTable) else None
    one = own is not None and (own.is_stream or not source.shards)  # a file has one dictionary only
    schema, batches = new_batches(source, order, columns, spell_out=not one)
    options = ipc.IpcWriteOptions(compression=own.codec if own else None)
    made = ipc.new_stream if own is not None and own.is_stream else ipc.new_file
    sink = Sink(stream)
    with sink.watching():
        writer = made(sink, schema, options=options)
        sink.close_with(writer)
        held: list[Any] = []
        for batch, ends in batches:
            held.append(batch)
            if ends:
                table = pa.Table.from_batches(held, schema).combine_chunks()
                for whole in table.to_batches():
                    writer.write_batch(whole)
                held = []
