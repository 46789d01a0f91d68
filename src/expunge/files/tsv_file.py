"""Tables as text with tabs; all else is as with commas."""

from __future__ import annotations

from typing import IO

from expunge.files.csv_file import CARRIES, KINDS, write_table
from expunge.files.table import Order, VectorFile

__all__ = ["CARRIES", "KINDS", "write"]


def write(stream: IO[bytes], source: VectorFile, order: Order, columns: tuple[str, ...]) -> None:
    """Write a table with tabs; see `write_table`."""
    write_table(stream, source, order, columns, "\t")
