"""Word vectors of GloVe, word2vec and fastText: told apart by what is in the file."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

from expunge.errors import InputError
from expunge.files import word_text
from expunge.files.lines import open_stream
from expunge.files.table import Order, VectorFile
from expunge.files.word_binary import WordBinary
from expunge.files.word_text import WordText

__all__ = ["CARRIES", "KINDS", "open_path", "write"]

PEEK = 1 << 16  # bytes looked at to tell text from binary
KINDS = word_text.KINDS
CARRIES = "words"


def open_path(path: Path, vectors: Any = None) -> WordText | WordBinary:
    """The file as a `VectorFile`, with the words as the column "word".

    Parameters
    ----------
    path : Path
    vectors : None
        There is nothing to choose.

    Returns
    -------
    WordText or WordBinary
    """
    if vectors is not None:
        raise InputError(
            "A file of word vectors holds one vector for each word, which has no name",
            f"vectors={vectors!r}",
            "Leave vectors out",
        )
    with open_stream(path) as stream:
        start = stream.read(PEEK)
    first, _, rest = start.partition(b"\n")
    head = first.split()
    header = len(head) == 2 and all(part.isdigit() for part in head)
    if header and not _is_text(rest):
        return WordBinary(path, int(head[0]), int(head[1]), len(first) + 1)
    shape = (int(head[0]), int(head[1])) if header else None
    return WordText(path, shape, len(first) + 1 if header else 0)


def _is_text(rest: bytes) -> bool:
    """Whether the line after the header holds a word and numbers."""
    second = rest.partition(b"\n")[0].split(b" ")[1:]
    try:
        numbers = [float(part) for part in second[:-1]]
    except ValueError:
        return False
    return bool(numbers) or not rest


def write(stream: IO[bytes], source: VectorFile, order: Order, columns: tuple[str, ...]) -> None:
    """Write text, with a header if the text that was read has one.

    Parameters
    ----------
    stream : binary stream
    source : VectorFile
    order : Order
    columns : tuple of str
        Other columns to carry: the words.
    """
    header = isinstance(source, WordText) and source.header
    word_text.write_text(stream, source, order, header=header)
