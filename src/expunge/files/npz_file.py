"""NumPy's archives, ``.npz``: several arrays by name, packed or not."""

from __future__ import annotations

import shutil
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from expunge.errors import InputError
from expunge.files.naming import check_name, listed
from expunge.files.npy_file import KINDS, Header, read_header, write_matrix
from expunge.files.raw_matrix import RawMatrix
from expunge.files.table import Order, VectorFile, truncated, unreadable

__all__ = ["CARRIES", "KINDS", "NpzFile", "open_path", "write"]

CARRIES = "everything"
BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, struct.error, NotImplementedError)
LOCAL = 30  # bytes before the name of a member
OLDEST = (1980, 1, 1, 0, 0, 0)  # the time of every member, so that equal content is equal bytes


class NpzFile(VectorFile):
    """Arrays by name: one of shape (n, d), and columns of shape (n,).

    Parameters
    ----------
    path : Path
    vectors : str, optional
        The name of the matrix; needed where there are several.
    """

    path: Path

    def __init__(self, path: Path, vectors: Any = None) -> None:
        self.path = path
        try:
            with zipfile.ZipFile(path) as archive:
                self.members = [m for m in archive.infolist() if not m.is_dir()]
                heads = {_name(m): self._head(archive, m) for m in self.members}
        except BROKEN as error:
            raise unreadable(path, "an .npz file", error) from error
        self.vectors = _chosen(heads, vectors, path)
        head = heads[self.vectors][0]
        self.n, self.d = head.shape
        self.stored, self.head = head.dtype.name, head
        self.columns = tuple(
            name
            for name, (own, _) in heads.items()
            if own.shape == (self.n,) and own.dtype.kind in "biufSUO" and name != self.vectors
        )
        self.member = next(m for m in self.members if _name(m) == self.vectors)
        self.matrix = None
        if self.member.compress_type == zipfile.ZIP_STORED:
            offset = self._place(self.member) + heads[self.vectors][1]
            self.matrix = RawMatrix(
                path, offset, self.n, self.d, head.dtype, self.stored, head.by_columns
            )
            self.matrix.check_size()
        elif head.by_columns:
            raise InputError(
                f"The matrix is packed column by column, and cannot be read by rows: {path}",
                f"{self.vectors!r} in Fortran order",
                "Save it with numpy.ascontiguousarray, or with numpy.savez",
            )
        self.remember()

    @staticmethod
    def _head(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> tuple[Header, int]:
        """What an array is, and how long its head is; of what is none, no shape."""
        with archive.open(member) as stream:
            try:
                return read_header(stream), stream.tell()
            except ValueError:
                return Header((-1,), False, np.dtype("V1")), 0

    def _place(self, member: zipfile.ZipInfo) -> int:
        """Where the bytes of a member that is not packed begin."""
        with self.path.open("rb") as stream:
            stream.seek(member.header_offset)
            name, extra = struct.unpack("<26x2H", stream.read(LOCAL))
        return int(member.header_offset + LOCAL + name + extra)

    def blocks(self, size: int, start: int = 0) -> Iterator[tuple[int, NDArray[Any]]]:
        """Vectors in order; see `VectorFile`."""
        return (
            self._unpacked(size, start) if self.matrix is None else self.matrix.blocks(size, start)
        )

    def _unpacked(self, size: int, start: int) -> Iterator[tuple[int, NDArray[Any]]]:
        row = self.d * self.head.dtype.itemsize
        with zipfile.ZipFile(self.path) as archive, archive.open(self.member) as stream:
            read_header(stream)
            skip = start * row
            while skip > 0:
                skip -= len(self._bytes(stream, min(skip, 1 << 20), start))
            for lo in range(start, self.n, size):
                count = min(size, self.n - lo)
                found = np.frombuffer(self._bytes(stream, count * row, lo), self.head.dtype)
                yield lo, found.reshape(count, self.d).astype(self.dtype, copy=False)

    def _bytes(self, stream: IO[bytes], count: int, row: int) -> bytes:
        try:
            found = stream.read(count)
        except BROKEN as error:
            raise unreadable(self.path, f"an .npz file (row {row} or later)", error) from error
        if len(found) < count:
            raise truncated(self.path, f"row {row} of {self.n} or later")
        return found

    def take(self, index: NDArray[np.intp]) -> NDArray[Any]:
        """Vectors by number; see `VectorFile`."""
        return super().take(index) if self.matrix is None else self.matrix.take(index)

    def _column(self, name: str) -> NDArray[Any]:
        try:
            with self.path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
                found: NDArray[Any] = stored[name]
        except BROKEN as error:
            raise unreadable(self.path, f"an .npz file (array {name!r})", error) from error
        return found.astype(str) if found.dtype.kind == "S" else found


def _name(member: zipfile.ZipInfo) -> str:
    return member.filename.removesuffix(".npy")


def _chosen(heads: dict[str, tuple[Header, int]], vectors: Any, path: Path) -> str:
    found = [
        name
        for name, (head, _) in heads.items()
        if len(head.shape) == 2 and head.dtype.kind in "fiub"
    ]
    if vectors is not None:
        name = check_name(str(vectors), list(heads), "array", path.name)
        if name not in found:
            raise InputError(
                f"The array {name!r} is no matrix of real numbers: {path}",
                f"{heads[name][0].dtype} of shape {heads[name][0].shape}",
                f"Name one of {listed(found)}",
            )
        return name
    floats = [name for name in found if heads[name][0].dtype.kind == "f"]
    if len(floats) == 1 or len(found) == 1:
        return (floats if len(floats) == 1 else found)[0]
    raise InputError(
        f"{'More than one array' if found else 'No array'} in {path.name} could be the vectors",
        listed(found or heads),
        'Say which: vectors="name"',
    )


def open_path(path: Path, vectors: Any) -> VectorFile:
    """The file as a `VectorFile`."""
    return NpzFile(path, vectors)


def write(stream: IO[bytes], source: VectorFile, order: Order, columns: tuple[str, ...]) -> None:
    """Write an archive; of one that was read, every array in its place, packed as it was.

    Parameters
    ----------
    stream : binary stream
    source : VectorFile
    order : Order
    columns : tuple of str
        Other columns to carry.
    """
    with zipfile.ZipFile(stream, "w", allowZip64=True) as archive:
        if isinstance(source, NpzFile):
            dropped = {*source.columns} - {*columns}
            with zipfile.ZipFile(source.path) as old:
                for member in source.members:
                    if _name(member) not in dropped:
                        _copy(archive, old, member, source, order)
            return
        with archive.open(_member(f"{source.vectors}.npy"), "w", force_zip64=True) as part:
            write_matrix(part, source, order)
        for name, values in source.others(columns).items():
            with archive.open(_member(f"{name}.npy"), "w", force_zip64=True) as part:
                np.lib.format.write_array(part, _plain(values, name), allow_pickle=False)


def _copy(
    archive: zipfile.ZipFile,
    old: zipfile.ZipFile,
    member: zipfile.ZipInfo,
    source: NpzFile,
    order: Order,
) -> None:
    with archive.open(_member(member.filename, member.compress_type), "w", force_zip64=True) as new:
        if member.filename == source.member.filename:
            write_matrix(new, source, order)
        else:
            with old.open(member) as part:
                shutil.copyfileobj(part, new, 1 << 20)


def _member(name: str, packing: int = zipfile.ZIP_STORED) -> zipfile.ZipInfo:
    found = zipfile.ZipInfo(name, OLDEST)
    found.compress_type = packing
    found.external_attr = 0o600 << 16
    return found


def _plain(values: NDArray[Any], name: str) -> NDArray[Any]:
    """Text as NumPy stores it without pickling; anything else but numbers is refused."""
    if values.dtype.kind != "O":
        return values
    odd = [row for row, value in enumerate(values) if not isinstance(value, str)]
    if odd:
        raise InputError(
            f"An .npz file cannot hold the column {name!r}: it is neither numbers nor text",
            f"{type(values[odd[0]]).__name__} in row {odd[0]}",
            "Drop this column, or write .parquet",
        )
    return values.astype(str)
