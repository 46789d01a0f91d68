"""Tables as text: ``.csv`` with commas, ``.tsv`` with tabs; the first line names the columns.

A ``.csv`` whose first line has no comma may have semicolons, tabs or bars in their place.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from expunge.errors import InputError
from expunge.files.decimal_commas import MEND, has_decimal_comma, have_decimal_commas
from expunge.files.digits import as_text
from expunge.files.field_types import typed
from expunge.files.lines import Lines, open_stream
from expunge.files.naming import choose_columns, left_out
from expunge.files.table import Order, VectorFile, unreadable
from expunge.files.vector_columns import VectorColumns
from expunge.files.whole_numbers import beside_fractions

__all__ = ["CARRIES", "KINDS", "CsvFile", "open_path", "separator_of", "write", "write_table"]

KINDS = ("float16", "float32", "float64")
CARRIES = "everything"
PEEK = 100  # rows looked at to tell numbers from text
PASS = 1 << 12
SEPARATORS = (",", ";", "\t", "|")
BOOLEANS = {"True": 1.0, "true": 1.0, "TRUE": 1.0, "False": 0.0, "false": 0.0, "FALSE": 0.0}
TEXT = 8  # times the room of a number that its text takes


class CsvFile(VectorFile):
    """A table as text, its numbers as float64.

    Parameters
    ----------
    path : Path
    vectors : str or sequence of str, optional
        The columns of the vectors, or a pattern with ``*``.
    """

    stored = "float64"

    path: Path

    def __init__(self, path: Path, vectors: Any = None) -> None:
        self.path = path
        with open_stream(path) as stream:
            mark = 3 if stream.read(3) == b"\xef\xbb\xbf" else 0
        self.lines = Lines(path, quoted=True, first=mark)
        self.comma = "\t" if ".tsv" in path.suffixes else self._separator()
        records = self._records(PEEK + 1)
        peek = next((rows for _, _, rows in records), [])
        if len(peek) < 2:
            raise InputError(
                f"The table has no rows: {path}",
                f"{len(peek)} lines",
                "The first line names the columns, each other line is a row",
            )
        self.names, sample = peek[0], peek[1:]
        if len({*self.names}) < len(self.names):
            raise InputError(
                f"Several columns have the same name: {path}",
                ", ".join(map(repr, sorted({c for c in self.names if self.names.count(c) > 1}))),
                "Give every column a name of its own; the first line names them",
            )
        self.n = self.lines.n - 1
        width = len(self.names)
        values = [[r[j] for r in sample if len(r) == width] for j in range(width)]
        looks = [_looks(column, thousands=self.comma == SEPARATORS[0]) for column in values]
        kinds = dict(zip(self.names, looks, strict=True))
        floats = [name for name, look in kinds.items() if look == "float"]
        wholes = [name for name, look in kinds.items() if look == "whole"]
        commas = {
            name: next(filter(has_decimal_comma, column))
            for name, column in zip(self.names, values, strict=True)
            if kinds[name] == "commas"
        }
        numbers = {name: look not in ("text", "commas") for name, look in kinds.items()}
        if isinstance(vectors, VectorColumns):
            vectors = vectors.asked_of([], self.names)
        chosen = choose_columns([], floats, numbers, vectors, path.name, commas)
        self.wholes = beside_fractions(wholes, chosen, vectors)
        self.vector_columns, self.left_out = tuple(chosen), left_out(numbers, chosen, vectors)
        self.columns = tuple(name for name in self.names if name not in {*chosen})
        self.d = len(chosen)
        self.places = [self.names.index(name) for name in chosen]
        self.readers: dict[int | str, Callable[[str], float]] = {
            place: BOOLEANS.__getitem__ for place in self.places if looks[place] == "boolean"
        }
        self.remember()

    def _separator(self) -> str:
        for _, line, lines in self.lines.read(1):
            return separator_of(_text(lines, self.path, line))
        return ","

    def _records(self, size: int, start: int = 0) -> Iterator[tuple[int, int, list[list[str]]]]:
        """Number of the first record, its line in the text, and records as lists of text."""
        for lo, line, lines in self.lines.read(size, start):
            yield lo, line, self._parsed(lines, line)

    def _parsed(self, lines: list[bytes], line: int) -> list[list[str]]:
        text = _text(lines, self.path, line)
        try:
            found = list(csv.reader(io.StringIO(text, newline=""), delimiter=self.comma))
        except csv.Error as error:
            raise unreadable(self.path, f"a table (line {line + 1} or later)", error) from error
        if len(found) != len(lines):
            raise InputError(
                f"A quotation mark stands inside a field, or is never closed: {self.path}",
                f"it in line {line + 1} or later",
                "Put fields that hold quotation marks between such, and double those inside",
            )
        return found

    def blocks(self, size: int, start: int = 0) -> Iterator[tuple[int, NDArray[Any]]]:
        """Vectors in order; see `VectorFile`."""
        for lo, line, lines in self.lines.read(size, start + 1):
            yield lo - 1, self._numbers(lines, line)

    def _numbers(self, lines: list[bytes], line: int) -> NDArray[Any]:
        commas = len(self.names) - 1
        comma = self.comma.encode()
        plain = all(b'"' not in text and text.count(comma) == commas for text in lines)
        if plain:
            try:
                return np.loadtxt(
                    io.StringIO(_text(lines, self.path, line)),
                    delimiter=self.comma,
                    usecols=self.places,
                    converters=self.readers or None,
                    encoding=None,
                    comments=None,
                    ndmin=2,
                )
            except (ValueError, KeyError):
                pass  # say where
        return self.numbers_of(self._parsed(lines, line), lines, line)

    def numbers_of(self, rows: list[list[str]], lines: list[bytes], line: int) -> NDArray[Any]:
        """Vectors of records; refuse what is no number, with its line.

        Parameters
        ----------
        rows : list of lists of str
        lines : list of bytes
            Their lines.
        line : int
            Lines of the text before them.

        Returns
        -------
        array of shape (k, d)
        """
        found = np.empty((len(lines), self.d))
        for k, text in enumerate(lines):
            row = rows[k] if k < len(rows) else []
            if len(row) != len(self.names):
                raise InputError(
                    f"A line of the table has not {len(self.names)} fields",
                    f"{len(row)} in line {line + 1} of {self.path}",
                    "Mend or remove it",
                )
            for j, place in enumerate(self.places):
                try:
                    found[k, j] = self.readers.get(place, float)(row[place])
                except (ValueError, KeyError):
                    kind = "True or False" if place in self.readers else "a number"
                    remedy = "Mend or remove it, or say which columns are the vectors"
                    raise InputError(
                        f"Not {kind} in the column {self.names[place]!r}",
                        f"{row[place]!r} in line {line + 1} of {self.path}",
                        MEND if has_decimal_comma(row[place]) else remedy,
                    ) from None
            line += text.count(b"\n")
        return found

    def fields(self, name: str) -> list[str]:
        """The text of a column."""
        place, found = self.names.index(name), []
        for lo, line, rows in self._records(PASS):
            for k, row in enumerate(rows):
                if len(row) <= place:
                    raise InputError(
                        f"A line of the table has not {len(self.names)} fields",
                        f"{len(row)} in line {line + k + 1} of {self.path}",
                        "Mend or remove it",
                    )
                if lo + k:
                    found.append(row[place])
        return found

    def _column(self, name: str) -> NDArray[Any]:
        return typed(self.fields(name))


def separator_of(head: str) -> str:
    """What stands between the names of columns: a comma, unless there is none.

    Parameters
    ----------
    head : str
        The first line.

    Returns
    -------
    str

    Examples
    --------
    >>> from expunge.files.csv_file import separator_of
    >>> separator_of("age;hours;sex"), separator_of("age,hours;sex"), separator_of("age")
    (';', ',', ',')
    """
    return next((sign for sign in SEPARATORS if _fields(head, sign) > 1), SEPARATORS[0])


def _fields(head: str, sign: str) -> int:
    try:
        return len(next(csv.reader(io.StringIO(head, newline=""), delimiter=sign), []))
    except csv.Error:  # what is wrong is said where the line is read
        return 0


def _text(lines: list[bytes], path: Path, line: int) -> str:
    try:
        return b"".join(lines).decode("utf-8")
    except UnicodeDecodeError as error:
        raise unreadable(path, f"text in UTF-8 (line {line + 1} or later)", error) from error


def _looks(values: list[str], *, thousands: bool) -> str:
    """What most look like: "float", "whole", "boolean", "commas" or "text"; others are refused."""
    if have_decimal_commas(values, thousands=thousands):
        return "commas"
    if 2 * sum(value in BOOLEANS for value in values) > len(values):
        return "boolean"
    numbers = [value for value in values if _is_number(value)]
    if 2 * len(numbers) <= len(values):
        return "text"
    whole = all(value.strip().lstrip("+-").isdigit() for value in numbers)
    return "whole" if whole else "float"


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def open_path(path: Path, vectors: Any) -> VectorFile:
    """The file as a `VectorFile`."""
    return CsvFile(path, vectors)


def write(stream: IO[bytes], source: VectorFile, order: Order, columns: tuple[str, ...]) -> None:
    """Write a table with commas, or with what another .csv has in their place."""
    comma = SEPARATORS[0]
    if isinstance(source, CsvFile) and ".csv" in source.path.suffixes:
        comma = source.comma
    write_table(stream, source, order, columns, comma)


def write_table(
    stream: IO[bytes], source: VectorFile, order: Order, columns: tuple[str, ...], comma: str
) -> None:
    """Write a table; of one that was read, every column in its place.

    Parameters
    ----------
    stream : binary stream
    source : VectorFile
    order : Order
    columns : tuple of str
        Other columns to carry.
    comma : str
        What stands between fields.
    """
    text = io.TextIOWrapper(stream, "utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n", delimiter=comma)
    try:
        if isinstance(source, CsvFile):
            _rewrite(writer, source, order, columns)
        else:
            _write_new(writer, source, order, columns)
        text.flush()
    finally:
        text.detach()


def _rewrite(writer: Any, source: CsvFile, order: Order, columns: tuple[str, ...]) -> None:
    kept = {*columns, *source.vector_columns}
    places = [j for j, name in enumerate(source.names) if name in kept]
    writer.writerow([source.names[j] for j in places])
    size = max(1, order.rows // TEXT)
    for lo, line, lines in source.lines.read(size, 1):
        rows = source._parsed(lines, line)
        numbers = source.numbers_of(rows, lines, line)
        new = order.change(lo - 1, numbers)
        for row, values in zip(rows, as_text(new), strict=True):
            for j, value in zip(source.places, values, strict=True):
                row[j] = value
            writer.writerow([row[j] for j in places])


def _write_new(writer: Any, source: VectorFile, order: Order, columns: tuple[str, ...]) -> None:
    names = source.vector_columns or tuple(f"{source.vectors}_{j}" for j in range(source.d))
    others = source.others(columns)
    writer.writerow([*others, *names])
    for start, X in order.blocks(source):
        beside = [column[start : start + len(X)].tolist() for column in others.values()]
        for k, row in enumerate(as_text(X)):
            writer.writerow([*(column[k] for column in beside), *row])
