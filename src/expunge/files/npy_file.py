"""NumPy's own files, ``.npy``: a header and the numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from expunge.errors import InputError
from expunge.files.number_types import encoded, stored_type
from expunge.files.raw_matrix import RawMatrix
from expunge.files.table import Order, VectorFile, unreadable

__all__ = [
    "CARRIES",
    "KINDS",
    "Header",
    "NpyFile",
    "open_path",
    "read_header",
    "write",
    "write_matrix",
]

KINDS = ("float16", "float32", "float64")
CARRIES = "nothing"


class Header(NamedTuple):
    """What the head of an array says."""

    shape: tuple[int, ...]
    by_columns: bool
    dtype: np.dtype[Any]


def read_header(stream: IO[bytes]) -> Header:
    """The head of an array; the stream is left where its numbers begin.

    Parameters
    ----------
    stream : binary stream

    Returns
    -------
    Header

    Raises
    ------
    ValueError
        When there is none.
    """
    version = np.lib.format.read_magic(stream)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in read:
        raise ValueError(f"version {version} of the format holds no plain numbers")
    return Header(*read[version](stream))


class NpyFile(VectorFile):
    """An array of shape (n, d).

    Parameters
    ----------
    path : Path
    vectors : None
        There is nothing to choose.
    """

    def __init__(self, path: Path, vectors: Any = None) -> None:
        self.path = path
        if vectors is not None:
            raise InputError(
                "An .npy file holds one array, which has no name",
                f"vectors={vectors!r}",
                "Leave vectors out",
            )
        try:
            with path.open("rb") as stream:
                head = read_header(stream)
                offset = stream.tell()
        except ValueError as error:
            raise unreadable(path, "an .npy file", error) from error
        if len(head.shape) != 2 or head.dtype.kind not in "fiub":
            raise InputError(
                f"The file holds no matrix of real numbers: {path}",
                f"{head.dtype} of shape {head.shape}",
                "Save an array of shape (n, d)",
            )
        self.n, self.d = head.shape
        self.stored = head.dtype.name
        self.matrix = RawMatrix(
            path, offset, self.n, self.d, head.dtype, self.stored, head.by_columns
        )
        self.matrix.check_size()
        self.remember()

    def blocks(self, size: int, start: int = 0) -> Iterator[tuple[int, NDArray[Any]]]:
        """Vectors in order; see `VectorFile`."""
        return self.matrix.blocks(size, start)

    def take(self, index: NDArray[np.intp]) -> NDArray[Any]:
        """Vectors by number; see `VectorFile`."""
        return self.matrix.take(index)

    def _column(self, name: str) -> NDArray[Any]:
        raise AssertionError("there are no columns")


def open_path(path: Path, vectors: Any) -> VectorFile:
    """The file as a `VectorFile`."""
    return NpyFile(path, vectors)


def write(stream: IO[bytes], source: VectorFile, order: Order, columns: tuple[str, ...]) -> None:
    """Write the vectors of `source` as an array in C order.

    Parameters
    ----------
    stream : binary stream
    source : VectorFile
    order : Order
    columns : tuple of str
        Other columns to carry; here none.
    """
    write_matrix(stream, source, order)


def write_matrix(stream: IO[bytes], source: VectorFile, order: Order) -> None:
    """Write the vectors with a header before them.

    Parameters
    ----------
    stream : binary stream
    source : VectorFile
    order : Order
    """
    descr = np.lib.format.dtype_to_descr(stored_type(order.kind))
    head = {"descr": descr, "fortran_order": False, "shape": (source.n, source.d)}
    np.lib.format.write_array_header_1_0(stream, head)
    for _, X in order.blocks(source):
        stream.write(encoded(X, order.kind).data)
