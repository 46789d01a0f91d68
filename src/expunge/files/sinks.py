"""A stream for writers that write once more while they are closed, also after a failure.

When a write fails, on a full disk say, closing such a writer would fail too and hide why. From the
first failure on, this stream takes everything and keeps nothing, and the first error is what is
raised.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

__all__ = ["Sink"]


class Sink:
    """A binary stream that goes dead with the first error.

    Parameters
    ----------
    stream : binary stream
        Not closed by this one.

    Examples
    --------
    >>> import io
    >>> from expunge.files.sinks import Sink
    >>> stream = io.BytesIO()
    >>> Sink(stream).write(b"abc"), stream.getvalue()
    (3, b'abc')
    """

    closed = False

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream, self.dead, self.at = stream, False, 0
        self.writer: Any = None

    def write(self, data: Any) -> int:
        """Write bytes; nothing after a failure."""
        size = len(memoryview(data).cast("B"))
        if not self.dead:
            try:
                self.stream.write(data)
            except BaseException:
                self.dead = True
                raise
        self.at += size
        return size

    def tell(self) -> int:
        """Bytes written."""
        return self.at

    def flush(self) -> None:
        """Nothing: the stream below is flushed by who opened it."""

    def close(self) -> None:
        """Nothing: the stream below is closed by who opened it."""

    def readable(self) -> bool:
        """No."""
        return False

    def writable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """No."""
        return False

    def close_with(self, writer: Any) -> None:
        """Remember what has to be closed at the end.

        Parameters
        ----------
        writer : object with close()
        """
        self.writer = writer

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Close the writer at the end, quietly if something went wrong before."""
        try:
            yield
            if self.writer is not None:
                self.writer.close()
        except BaseException:
            self.dead = True
            with suppress(Exception):
                if self.writer is not None:
                    self.writer.close()
            raise
