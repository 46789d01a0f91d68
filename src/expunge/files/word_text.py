"""Word vectors as text: a word and its numbers on each line, with or without a header."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from expunge.errors import InputError
from expunge.files.digits import as_text
from expunge.files.lines import Lines
from expunge.files.table import Order, VectorFile, truncated

__all__ = ["CARRIES", "KINDS", "WordText", "checked_words", "write", "write_text"]

KINDS = ("float16", "float32", "float64")
CARRIES = "words"
PASS = 1 << 13  # lines
BYTES = "surrogateescape"  # what keeps bytes that are no UTF-8


class WordText(VectorFile):
    """Lines of a word and its numbers, as float32.

    Parameters
    ----------
    path : Path
    shape : (int, int) or None
        What the header says, if there is one.
    first : int
        Byte that the first line begins with.
    """

    stored = "float32"
    columns = ("word",)

    def __init__(self, path: Path, shape: tuple[int, int] | None, first: int) -> None:
        self.path, self.header = path, shape is not None
        self.lines = Lines(path, first=first)
        self.n = self.lines.n
        if shape is not None:
            if shape[0] > self.n:
                raise truncated(path, f"line {self.n + 1}, though there should be {shape[0]} words")
            self.n = self.lines.n = shape[0]
            self.d = shape[1]
        else:
            line = next((lines[0] for _, _, lines in self.lines.read(1)), b"")
            self.d = len(line.rstrip().split(b" ")) - 1
        self.kind = f"{'word2vec' if self.header else 'GloVe'}, text"
        if self.n < 1 or self.d < 1:
            raise InputError(
                f"The file holds no word vectors: {path}",
                "no word with numbers in line 1" if self.n else "an empty file",
                "Name a file of GloVe or word2vec vectors",
            )
        self.remember()

    def blocks(self, size: int, start: int = 0) -> Iterator[tuple[int, NDArray[Any]]]:
        """Vectors in order; see `VectorFile`."""
        for lo, line, lines in self.lines.read(size, start):
            yield lo, self._numbers(lines, line)

    def _numbers(self, lines: list[bytes], line: int) -> NDArray[Any]:
        tails = [_tail(text, self.d) for text in lines]
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)
            try:
                found = np.fromstring(b" ".join(tails).decode(), np.float32, sep=" ")
            except (ValueError, DeprecationWarning):
                found = np.empty(0, np.float32)
        if found.size != len(lines) * self.d or any(t.count(b" ") != self.d - 1 for t in tails):
            self._refuse(tails, lines, line)
        return found.reshape(-1, self.d)

    def _refuse(self, tails: list[bytes], lines: list[bytes], line: int) -> None:
        for place, tail in enumerate(tails):
            parts = tail.split(b" ")
            try:
                good = len(parts) == self.d and len([float(part) for part in parts]) == self.d
            except ValueError:
                good = False
            if not good:
                text = lines[place].decode("utf-8", "replace").strip()
                raise InputError(
                    f"A line is not a word and its {self.d} numbers",
                    f"line {line + place + 1 + self.header} of {self.path}: {text[:60]!r}",
                    "Name a file of GloVe or word2vec vectors",
                )

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
        wanted = self.n if count is None else min(count, self.n)
        found: list[str] = []
        for _, _, lines in self.lines.read(PASS):
            some = lines[: wanted - len(found)]
            found += [_word(text, self.d).decode("utf-8", errors) for text in some]
            if len(found) == wanted:
                break
        return found

    def _column(self, name: str) -> NDArray[Any]:
        found = np.empty(self.n, object)
        found[:] = self.words()
        return found


def _word(text: bytes, d: int) -> bytes:
    """The word of a line: what stands before its last d numbers."""
    text = text.rstrip()
    plain = text.count(b" ") == d
    return (text.partition(b" ") if plain else text.rsplit(b" ", d))[0]


def _tail(text: bytes, d: int) -> bytes:
    """The last d numbers of a line: a word may hold spaces."""
    text = text.rstrip()
    if text.count(b" ") == d:
        return text.partition(b" ")[2]
    return b" ".join(text.split(b" ")[-d:]) if text.count(b" ") > d else b""


def write(stream: IO[bytes], source: VectorFile, order: Order, columns: tuple[str, ...]) -> None:
    """Write text with a header, as word2vec and fastText do."""
    write_text(stream, source, order, header=True)


def write_text(stream: IO[bytes], source: VectorFile, order: Order, *, header: bool) -> None:
    """Write words and numbers, each with as many digits as its type needs.

    Parameters
    ----------
    stream : binary stream
    source : VectorFile
        With a column "word".
    order : Order
    header : bool
        Whether the first line says how many words there are, and how wide their vectors.
    """
    words = checked_words(source, "\n\r")
    if header:
        stream.write(f"{source.n} {source.d}\n".encode())
    for start, X in order.blocks(source):
        stream.writelines(
            words[start + k] + f" {' '.join(row)}\n".encode() for k, row in enumerate(as_text(X))
        )


def checked_words(source: VectorFile, signs: str) -> list[bytes]:
    """The words of a file, byte by byte as they are there, none with a sign that would end it.

    Parameters
    ----------
    source : VectorFile
        With a column "word".
    signs : str

    Returns
    -------
    list of bytes
    """
    if hasattr(source, "words"):
        words = source.words(errors=BYTES)
    else:
        words = [str(word) for word in source.column("word").tolist()]
    for row, word in enumerate(words):
        if any(sign in word for sign in signs):
            raise InputError(
                "A word of such a file of word vectors must not hold "
                + ("spaces or line ends" if " " in signs else "line ends"),
                f"{word!r} in row {row}",
                "Mend it, or write .parquet",
            )
    return [word.encode("utf-8", BYTES) for word in words]
