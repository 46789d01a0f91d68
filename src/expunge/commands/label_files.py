"""Labels, weights and ids by name: a column of the table, or a file with one line per row."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.commands.wording import to_type
from expunge.errors import InputError
from expunge.files.csv_file import separator_of
from expunge.files.field_types import typed
from expunge.files.formats import ending_of
from expunge.files.naming import check_name, listed, nearest
from expunge.rows.base import Rows

__all__ = ["LABEL_ENDINGS", "read_labels", "text_lines"]

LABEL_ENDINGS = (".npy", ".csv", ".tsv", ".txt")


def read_labels(what: str, rows: Rows, where: str, option: str) -> tuple[str, NDArray[Any]]:
    """A name for the values that an option asks for, and the values.

    Parameters
    ----------
    what : str
        A column of the rows, a file, or ``file.csv:column``.
    rows : Rows
    where : str
        What to call the table in messages.
    option : str
        What to call the option.

    Returns
    -------
    str
    array of shape (n,) or (n, m)

    Raises
    ------
    InputError
        For what is neither, with the nearest column; for a file with another number of lines.
    """
    if what in rows.columns:
        return what, rows.column(what)
    if rows.chosen is not None and what in rows.chosen.names:
        raise InputError(
            f"{option}: the column {what!r} of {where} is one of the vectors",
            f"vectors of the columns {listed(rows.chosen.names)}",
            "Fit with --vectors, naming the columns of the vectors without this one",
        )
    path, column = _as_file(what)
    if path is None:
        vectors = () if rows.chosen is None else rows.chosen.names
        beside = f", and the vectors {listed(vectors)}" if vectors else ""
        raise InputError(
            f"{option}: there is no column {what!r} in {where}"
            f"{nearest(what, [*rows.columns, *vectors])}",
            f"a table with the columns {listed(rows.columns)}{beside}",
            f"Name one of these, or a file of labels ({', '.join(LABEL_ENDINGS)})",
        )
    if not path.is_file():
        folder = path.absolute().parent
        names = [p.name for p in folder.iterdir()] if folder.is_dir() else []
        raise InputError(
            f"{option}: there is no such file{nearest(path.name, names)}",
            f"{path}, which is no column of {where} either ({listed(rows.columns)})",
            "Check its name",
        )
    values = _read(path, column, rows.n_samples, option)
    if len(values) != rows.n_samples:
        raise InputError(
            f"{option}: a file of labels holds one for each row of {where}",
            f"{len(values):,} in {path} for {rows.n_samples:,} rows",
            "Pass the labels of these rows, in their order",
        )
    return column or path.name.split(".")[0], values


def text_lines(path: Path) -> list[str]:
    """The lines of a text in UTF-8, without their ends; a ``.gz`` is unpacked.

    Parameters
    ----------
    path : Path

    Returns
    -------
    list of str
    """
    opened = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", newline="") as stream:
            return str(stream.read()).replace("\r\n", "\n").removesuffix("\n").split("\n")
    except (UnicodeDecodeError, gzip.BadGzipFile) as error:
        raise InputError(
            f"This is no text in UTF-8: {path}", str(error), "Save it as such, or as .npy"
        ) from error


def _as_file(what: str) -> tuple[Path | None, str | None]:
    """The file, and the column in it, that are meant; None if it does not look like a file."""
    path = Path(what)
    if path.is_file() or ending_of(path) in LABEL_ENDINGS:
        return path, None
    before, _, column = what.rpartition(":")
    if before and column and ending_of(Path(before)) in (".csv", ".tsv"):
        return Path(before), column
    return None, None


def _read(path: Path, column: str | None, n: int, option: str) -> NDArray[Any]:
    ending = ending_of(path)
    if ending == ".npy":
        return _read_array(path, option)
    if ending == ".txt":
        return typed(text_lines(path))
    if ending in (".csv", ".tsv"):
        return _read_table(path, "\t" if ending == ".tsv" else ",", column, n, option)
    raise InputError(
        f"{option}: labels cannot be read from such a file{nearest(ending, LABEL_ENDINGS)}",
        repr(path.name),
        f"Take one of {', '.join(LABEL_ENDINGS)}, or put them into a column of the table",
    )


def _read_array(path: Path, option: str) -> NDArray[Any]:
    try:
        values = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise InputError(
            f"{option}: this is not an array of numbers or text that can be read: {path}",
            " ".join(str(error).split())[:200],
            "Save it by numpy.save, without objects",
        ) from error
    if values.ndim not in (1, 2):
        raise InputError(
            f"{option}: a file of labels holds one for each row",
            f"an array of shape {values.shape} in {path}",
            "Save an array of one dimension",
        )
    return np.asarray(values)


def _read_table(path: Path, comma: str, column: str | None, n: int, option: str) -> NDArray[Any]:
    """A column; the first line of a single one is its name, unless that is one line too many."""
    lines = text_lines(path)
    if column is not None and comma == ",":
        comma = separator_of(lines[0])
    try:
        table = list(csv.reader((f"{line}\n" for line in lines), delimiter=comma))
    except csv.Error as error:
        raise InputError(
            f"{option}: this is no table that can be read: {path}", str(error), "Mend it"
        ) from error
    table = [row or [""] for row in table]  # an empty line of a single column
    head = table[0] if table else []
    if column is None and len(head) != 1:
        first_of_them = to_type(f"{path}:{head[0] if head else 'name'}")
        raise InputError(
            f"{option}: which column of {path.name} is meant?",
            f"a file with the columns {listed(head)}",
            f"Write {first_of_them}, say",
        )
    place, first = 0, int(len(table) != n)
    if column is not None:
        place, first = head.index(check_name(column, head, "column", path.name)), 1
    for number, row in enumerate(table, 1):
        if len(row) != len(head):
            raise InputError(
                f"{option}: a line of {path.name} has not {len(head)} fields",
                f"{len(row)} in line {number}",
                "Mend or remove it",
            )
    return typed([row[place] for row in table[first:]])
