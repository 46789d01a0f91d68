"""Lines of a text file: counted once, then read from any of them."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from expunge.files.table import unreadable

__all__ = ["PACKED", "Lines", "open_stream"]

EVERY = 1024  # lines between places that are remembered
CHUNK = 1 << 22  # bytes read at once
PACKED = (OSError, EOFError, zlib.error)
GZIP = b"\x1f\x8b"


@contextmanager
def open_stream(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked where it is gzipped, whatever it is called.

    Parameters
    ----------
    path : Path

    Yields
    ------
    binary stream
    """
    with path.open("rb") as raw:
        packed = raw.read(2) == GZIP
    opened: Any = gzip.GzipFile if packed else io.FileIO
    with opened(path, "rb") as raw, io.BufferedReader(raw, 1 << 17) as stream:
        try:
            yield stream
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise unreadable(path, "a gzipped file", error) from error


class Lines:
    """Where the lines of a file begin.

    Parameters
    ----------
    path : Path
    quoted : bool
        Whether line ends between quotation marks belong to the line, as in csv.
    first : int
        Byte that the first line begins with.

    Attributes
    ----------
    n : int
        Lines, but for empty ones at the end.
    """

    def __init__(self, path: Path, *, quoted: bool = False, first: int = 0) -> None:
        self.path, self.quoted = path, quoted
        self.places = [first]  # of every 1024th line
        self.text_lines = [0]  # line ends before it, those between quotation marks too
        self.n = self._count(first)

    def _count(self, at: int) -> int:
        lines, inside, feeds = 0, 0, 0
        last, since = at, at  # ends of the last line that is not empty, and of the last line
        count = 0
        with open_stream(self.path) as stream:
            stream.seek(at)
            while chunk := stream.read(CHUNK):
                data = np.frombuffer(chunk, np.uint8)
                ends = np.flatnonzero(data == 10)
                every = ends
                if self.quoted and (b'"' in chunk or inside):
                    open_ = (np.cumsum(data == 34) + inside) & 1
                    inside, ends = int(open_[-1]), ends[open_[ends] == 0]
                starts = ends + at + 1
                sizes = np.diff(starts, prepend=since)
                full = np.flatnonzero(sizes > 2)  # an empty line is \n or \r\n
                if full.size:
                    count = lines + int(full[-1]) + 1
                for k in range(-(lines + 1) % EVERY, len(starts), EVERY):
                    self.places.append(int(starts[k]))
                    self.text_lines.append(feeds + int(np.searchsorted(every, ends[k])) + 1)
                lines += len(starts)
                feeds += len(every)
                since = int(starts[-1]) if len(starts) else since
                at += len(chunk)
                last = at
        short = last > since  # a last line without an end
        return lines + 1 if short else self._with_short(count, lines)

    def _with_short(self, count: int, lines: int) -> int:
        """Lines up to the last that holds anything, be it a single sign."""
        if count == lines:
            return count
        with open_stream(self.path) as stream:
            place = count // EVERY
            stream.seek(self.places[place])
            at = place * EVERY
            for line in self._of(stream):
                at += 1
                count = at if line.strip() else count
                if at >= lines:
                    break
        return count

    def read(self, size: int, start: int = 0) -> Iterator[tuple[int, int, list[bytes]]]:
        """Lines in order: the number of the first, its line in the text, and at most `size` lines.

        Parameters
        ----------
        size : int
        start : int
            Line to begin with.

        Yields
        ------
        (int, int, list of bytes)
        """
        if start >= self.n:
            return
        with open_stream(self.path) as stream:
            place = start // EVERY
            stream.seek(self.places[place])
            line, at = self.text_lines[place], place * EVERY
            found: list[bytes] = []
            first, first_line = start, line
            for record in self._of(stream):
                if at >= start:
                    if not found:
                        first, first_line = at, line
                    found.append(record)
                at += 1
                line += record.count(b"\n") if self.quoted else 1
                if len(found) == size or at == self.n:
                    if found:
                        yield first, first_line, found
                    found = []
                if at == self.n:
                    return

    def _of(self, stream: IO[bytes]) -> Iterator[bytes]:
        if not self.quoted:
            yield from stream
            return
        record = b""
        for line in stream:
            record = record + line if record else line
            if record.count(b'"') % 2 == 0:
                yield record
                record = b""
        if record:
            yield record
