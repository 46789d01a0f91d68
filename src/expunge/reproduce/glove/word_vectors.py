"""Word vectors from the files that GloVe and word2vec write: text or binary, packed or not."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from expunge.errors import InputError

__all__ = ["WordVectors", "read_word_vectors"]

PEEK = 1 << 16  # bytes looked at to tell text from binary
GZIP = b"\x1f\x8b"


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Words with their vectors.

    Attributes
    ----------
    words : tuple of str
        In lower case, each once, in the order of the file.
    vectors : float32 array of shape (n, d)
    kind : str
        What the file is.
    """

    words: tuple[str, ...]
    vectors: NDArray[np.float32]
    kind: str


def read_word_vectors(path: str | os.PathLike[str], *, most: int = 400_000) -> WordVectors:
    r"""Read a file of GloVe or word2vec, text or binary, plain or gzipped.

    Parameters
    ----------
    path : str or path
    most : int
        Lines to read at the most: such files begin with the frequent words.

    Returns
    -------
    WordVectors
        In lower case; of words that differ in case only the first stays. Vectors of zeros are left
        out.

    Raises
    ------
    InputError
        With the line that cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from expunge.reproduce.glove.word_vectors import read_word_vectors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "glove.txt"
    ...     _ = path.write_text("the 0.5 1\nThe 9 9\nhe 2 -1\n")
    ...     found = read_word_vectors(path)
    >>> found.words, found.vectors.tolist()
    (('the', 'he'), [[0.5, 1.0], [2.0, -1.0]])
    """
    file = Path(path)
    if file.is_dir():
        raise InputError("Word vectors are one file", f"the folder {file}", "Name a file in it")
    try:
        with file.open("rb") as raw:
            packed = raw.read(2) == GZIP
        opened: Any = gzip.GzipFile if packed else io.FileIO
        with opened(file, "rb") as raw, io.BufferedReader(raw) as stream:
            return _read(stream, file, most)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            "The file of word vectors cannot be read", f"{file} ({error})", "Name another file"
        ) from error


def _read(stream: IO[bytes], file: Path, most: int) -> WordVectors:
    start = stream.read(PEEK)
    head = start.partition(b"\n")[0].split()
    header = len(head) == 2 and all(part.isdigit() for part in head)
    binary = header and not _is_text(start)
    stream.seek(0)
    if header:
        stream.readline()
    if binary:
        entries, kind = _binary(stream, int(head[1]), file), "word2vec, binary"
    else:
        kind = "word2vec, text" if header else "GloVe, text"
        entries = _text(stream, int(head[1]) if header else None, file, 1 + header)
    return _collected(entries, file, most, kind)


def _is_text(start: bytes) -> bool:
    """Whether the line after the header holds a word and numbers."""
    second = start.partition(b"\n")[2].partition(b"\n")[0].split(b" ")[1:]
    try:
        numbers = [float(part) for part in second[:-1]]
    except ValueError:
        return False
    return bool(numbers)


def _text(
    stream: IO[bytes], width: int | None, file: Path, number: int
) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Words and vectors of lines; a word may hold spaces, so the numbers are counted from the end.

    The width of a file without a header is that of its first line.
    """
    for line in stream:
        parts = line.decode("utf-8", "replace").rstrip().split(" ")
        width = len(parts) - 1 if width is None else width
        try:
            row = np.array(parts[len(parts) - width :], dtype=np.float32)
        except ValueError:
            row = np.zeros(0, dtype=np.float32)
        if width < 1 or len(parts) <= width or row.shape != (width,):
            raise InputError(
                "A line is not a word and its numbers",
                f"line {number} of {file}: {' '.join(parts)[:60]!r}",
                "Name a file of GloVe or word2vec vectors",
            )
        yield " ".join(parts[:-width]), row
        number += 1


def _binary(stream: IO[bytes], width: int, file: Path) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Words and vectors of word2vec: the word, a space, float32 numbers, perhaps a line end."""
    size = 4 * width
    while True:
        word = bytearray()
        while (sign := stream.read(1)) not in (b" ", b""):
            word += sign
        if not sign:
            return
        content = stream.read(size)
        if len(content) < size:
            raise InputError(
                "The file ends inside a vector", str(file), "Copy or download it once more"
            )
        yield word.decode("utf-8", "replace").strip("\n"), np.frombuffer(content, dtype="<f4")


def _collected(
    entries: Iterator[tuple[str, NDArray[np.float32]]], file: Path, most: int, kind: str
) -> WordVectors:
    found: dict[str, Any] = {}
    for number, (word, row) in enumerate(entries):
        if number >= most:
            break
        if not np.isfinite(row).all():
            raise InputError(
                "A vector has entries that are not finite numbers",
                f"the vector of {word!r} in {file}",
                "Mend or remove it",
            )
        folded = word.lower()
        if folded not in found and row.any():
            found[folded] = row
    if len(found) < 2:
        raise InputError(
            "The file holds no word vectors", str(file), "Name a file of GloVe or word2vec vectors"
        )
    return WordVectors(tuple(found), np.stack(list(found.values())), kind)
