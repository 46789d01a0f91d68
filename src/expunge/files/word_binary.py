"""Word vectors as word2vec's binary files: a word, a space, float32 numbers, perhaps a line end."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from expunge.errors import InputError
from expunge.files.lines import open_stream
from expunge.files.table import Order, VectorFile, truncated
from expunge.files.word_text import checked_words

__all__ = ["CARRIES", "KINDS", "WordBinary", "write"]

KINDS = ("float32",)
CARRIES = "words"
EVERY = 1024  # words between places that are remembered
LONGEST = 1 << 16  # bytes of a word
CHUNK = 1 << 22


class WordBinary(VectorFile):
    """Words and float32 vectors.

    Parameters
    ----------
    path : Path
    n, d : int
        What the header says.
    first : int
        Byte that the first word begins with.
    """

    stored = "float32"
    columns = ("word",)
    kind = "word2vec, binary"

    path: Path

    def __init__(self, path: Path, n: int, d: int, first: int) -> None:
        self.path, self.n, self.d = path, n, d
        if n < 1 or d < 1:
            raise InputError(
                f"The file holds no word vectors: {path}",
                f"a header with {n} words of width {d}",
                "Name a file of word2vec vectors",
            )
        self.places = [first]
        self.line_ends = False
        for row, (place, word, _) in enumerate(self._entries(0)):
            if row and row % EVERY == 0:
                self.places.append(place)
            self.line_ends |= row == 1 and word.startswith(b"\n")
        self.remember()

    def _entries(self, start: int) -> Iterator[tuple[int, bytes, bytes]]:
        """Where, word and the bytes of its vector, from a row whose place is remembered."""
        size, row = 4 * self.d, start
        with open_stream(self.path) as stream:
            at = self.places[start // EVERY]
            stream.seek(at)
            buffer, pos = b"", 0
            while row < self.n:
                space = buffer.find(b" ", pos, pos + LONGEST)
                if space < 0 or space + 1 + size > len(buffer):
                    more = stream.read(max(CHUNK, size + 1))
                    if not more:
                        raise truncated(
                            self.path, f"byte {at + len(buffer)}, row {row} of {self.n}"
                        )
                    at, buffer, pos = at + pos, buffer[pos:] + more, 0
                    if b" " not in buffer[:LONGEST] and len(buffer) >= LONGEST:
                        raise InputError(
                            f"No word ends where one should: {self.path}",
                            f"no space after byte {at}, row {row}",
                            "Name a file of word2vec vectors",
                        )
                    continue
                end = space + 1 + size
                yield at + pos, buffer[pos:space], buffer[space + 1 : end]
                pos, row = end, row + 1

    def blocks(self, size: int, start: int = 0) -> Iterator[tuple[int, NDArray[Any]]]:
        """Vectors in order; see `VectorFile`."""
        if start >= self.n:
            return
        entries = self._entries(start // EVERY * EVERY)
        for _ in range(start % EVERY):
            next(entries)
        for lo in range(start, self.n, size):
            count = min(size, self.n - lo)
            parts = b"".join(next(entries)[2] for _ in range(count))
            found = np.frombuffer(parts, "<f4").reshape(count, self.d)
            yield lo, found.astype(np.float32, copy=False)

    def words(self, count: int | None = None, errors: str = "replace") -> list[str]:
        """The words, or the first so many of them.

        Parameters
        ----------
        count : int, optional
        errors : str
            What becomes of bytes that are no UTF-8, as in `bytes.decode`.

        Returns
        -------
        list of str
        """
        found = (word.strip(b"\n").decode("utf-8", errors) for _, word, _ in self._entries(0))
        return list(islice(found, count))

    def _column(self, name: str) -> NDArray[Any]:
        found = np.empty(self.n, object)
        found[:] = self.words()
        return found


def write(stream: IO[bytes], source: VectorFile, order: Order, columns: tuple[str, ...]) -> None:
    """Write words and numbers, with line ends unless the file that was read has none.

    Parameters
    ----------
    stream : binary stream
    source : VectorFile
        With a column "word".
    order : Order
    columns : tuple of str
        Other columns to carry: the words.
    """
    words = checked_words(source, " \n")
    end = b"" if isinstance(source, WordBinary) and not source.line_ends else b"\n"
    stream.write(f"{source.n} {source.d}\n".encode())
    for start, X in order.blocks(source):
        rows = np.ascontiguousarray(X, "<f4")
        stream.writelines(
            words[start + k] + b" " + row.tobytes() + end for k, row in enumerate(rows)
        )
