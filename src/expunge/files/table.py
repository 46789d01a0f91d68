"""What every file of vectors offers: n rows of width d, and other columns beside them."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.addresses import Address, Where
from expunge.errors import InputError
from expunge.files.naming import check_name
from expunge.files.number_types import array_type
from expunge.files.read_ahead import read_ahead
from expunge.files.vector_columns import VectorColumns

__all__ = ["Change", "Order", "VectorFile", "truncated", "unreadable"]

PASS = 1 << 14  # rows read at once on the way to rows by number
Change = Callable[[int, NDArray[Any]], NDArray[Any]]  # (first row, block) -> new block


@dataclass(frozen=True)
class Order:
    """What a writer is asked for.

    Attributes
    ----------
    change : function of the number of the first row and a block (k, d)
        Gives the new block.
    kind : str
        Type of the new numbers.
    rows : int
        To handle at once.
    most : int
        Rows that may be held together where a format wants to write so many at once.
    moved : bool
        Whether the numbers stay what they are, or become another type at most.
    """

    change: Change
    kind: str
    rows: int
    most: int
    moved: bool = False

    def blocks(self, source: VectorFile) -> Iterator[tuple[int, NDArray[Any]]]:
        """New vectors of a file in order; while some are written, the next are made and read."""
        old = read_ahead(source.blocks(self.rows))
        return read_ahead((start, self.change(start, X)) for start, X in old)


class VectorFile(ABC):
    """A file of vectors and of other columns.

    Attributes
    ----------
    path : Path or Address
    n, d : int
        Rows, and the width of a vector.
    stored : str
        Type of the numbers in the file: a name of NumPy's, or "bfloat16".
    vectors : str
        What the file calls the vectors.
    vector_columns : tuple of str
        Where each entry of a vector has a column of its own, these; else empty.
    columns : tuple of str
        The other columns.
    shards : tuple of VectorFile
        The files of a folder; empty for a file.
    lists : bool
        Whether the vectors are a column of lists of a table.
    left_out : tuple of str
        Other columns of numbers, where nobody said which columns the vectors are.
    wholes : tuple of str
        Those of them that hold whole numbers, where the names of the vectors do not tell either.
    """

    path: Where
    n: int
    d: int
    stored: str
    vectors: str = "vectors"
    vector_columns: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    shards: tuple[VectorFile, ...] = ()
    lists: bool = False
    left_out: tuple[str, ...] = ()
    wholes: tuple[str, ...] = ()

    # -- what a format supplies ------------------------------------------------------------------

    @abstractmethod
    def blocks(self, size: int, start: int = 0) -> Iterator[tuple[int, NDArray[Any]]]:
        """Vectors in order from row `start`, at most `size` at a time, each with its first row."""

    @abstractmethod
    def _column(self, name: str) -> NDArray[Any]:
        """Values of a column that there is."""

    def fields(self, name: str) -> list[str] | None:
        """The text of a column; None in a format that has types."""
        return None

    # -- what follows from it --------------------------------------------------------------------

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the arrays that come out."""
        return array_type(self.stored)

    @property
    def chosen(self) -> VectorColumns | None:
        """Which columns of a table the vectors are; None where they are none."""
        if self.vector_columns:
            return VectorColumns(self.vector_columns)
        return VectorColumns((self.vectors,), lists=True) if self.lists else None

    def take(self, index: NDArray[np.intp]) -> NDArray[Any]:
        """The vectors with these numbers, in this order; one pass over those in between.

        Parameters
        ----------
        index : int array of shape (k,)

        Returns
        -------
        array of shape (k, d)
        """
        index = np.asarray(index, dtype=np.intp)
        found = np.empty((len(index), self.d), self.dtype)
        order = np.argsort(index, kind="stable")
        wanted, done = index[order], 0
        if not len(index):
            return found
        for start, X in self.blocks(PASS, start=int(wanted[0])):
            upto = int(np.searchsorted(wanted, start + len(X)))
            found[order[done:upto]] = X[wanted[done:upto] - start]
            done = upto
            if done == len(wanted):
                break
        return found

    def column(self, name: str) -> NDArray[Any]:
        """All values of another column.

        Parameters
        ----------
        name : str

        Returns
        -------
        array of shape (n,)
            Numbers, text or objects; a missing value is None or NaN.

        Raises
        ------
        InputError
            For a name that is not there, with the nearest that is.
        """
        return self._column(check_name(name, self.columns, "column", self.path.name))

    def others(self, names: tuple[str, ...]) -> Mapping[str, NDArray[Any]]:
        """Several columns by name.

        Parameters
        ----------
        names : tuple of str

        Returns
        -------
        mapping of str to array of shape (n,)
        """
        return {name: self.column(name) for name in names}

    def identity(self) -> dict[str, list[Any]]:
        """By what a file is known to be the same still: size and time of the last change.

        Returns
        -------
        dict of file name to [bytes, nanoseconds]
            At an address, what its server says in place of the time.
        """
        if isinstance(self.path, Address):
            return {self.path.name: self.path.identity()}
        found = os.stat(self.path)
        return {self.path.name: [found.st_size, found.st_mtime_ns]}

    def remember(self) -> None:
        """Note what the file is now, for `check_unchanged`."""
        self._known = self.identity()

    def check_unchanged(self) -> None:
        """Refuse to go on with a file that has changed since it was opened."""
        try:
            now = self.identity()
        except FileNotFoundError:
            now = {}
        if now != self._known:
            changed = next(
                (k for k in {**self._known, **now} if now.get(k) != self._known.get(k)), ""
            )
            raise InputError(
                f"The file changed while it was read: {self.path}",
                f"{changed} with other bytes than when it was opened",
                "Open it again when nobody is writing to it",
            )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r}, {self.n} x {self.d} {self.stored})"


def truncated(path: Where, at: str) -> InputError:
    """The error for a file that ends too early.

    Parameters
    ----------
    path : Path or Address
    at : str
        Where: a row, a line, a byte.

    Returns
    -------
    InputError
    """
    return InputError(
        f"The file is truncated: {path}", f"an end at {at}", "Copy or download it once more"
    )


def unreadable(path: Where, kind: str, error: object) -> InputError:
    """The error for a file that is not what its name says.

    Parameters
    ----------
    path : Path or Address
    kind : str
        What it should be.
    error : object
        What was found instead.

    Returns
    -------
    InputError
    """
    return InputError(
        f"This is not {kind} that can be read: {path}",
        " ".join(str(error).split())[:300],
        "Copy it once more, or name it after what it is",
    )
