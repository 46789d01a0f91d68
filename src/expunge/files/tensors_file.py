"""Files of tensors, ``.safetensors``: a header in JSON, then the numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from expunge.errors import InputError
from expunge.files.naming import check_name, listed
from expunge.files.number_types import encoded, stored_type
from expunge.files.raw_matrix import RawMatrix
from expunge.files.table import Order, VectorFile, truncated, unreadable

__all__ = ["CARRIES", "KINDS", "TensorsFile", "open_path", "write"]

KINDS = ("float16", "bfloat16", "float32", "float64")
CARRIES = "numbers"
NAMES = {
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
    "I8": "int8",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
    "U8": "uint8",
    "U16": "uint16",
    "U32": "uint32",
    "U64": "uint64",
    "BOOL": "bool",
}
CODES = {kind: code for code, kind in NAMES.items()}
LONGEST = 100_000_000  # bytes of a header, as the format has it
CHUNK = 1 << 22


class TensorsFile(VectorFile):
    """Tensors by name: one of shape (n, d), and columns of shape (n,).

    Parameters
    ----------
    path : Path
    vectors : str, optional
        The name of the matrix; needed where there are several.
    """

    path: Path

    def __init__(self, path: Path, vectors: Any = None) -> None:
        self.path = path
        with path.open("rb") as stream:
            size = int.from_bytes(stream.read(8), "little")
            if size > min(LONGEST, path.stat().st_size):
                raise truncated(path, f"byte {path.stat().st_size}, inside the header")
            text = stream.read(size)
        self.head, self.begin = _header(path, text), 8 + size
        tensors = {name: part for name, part in self.head.items() if name != "__metadata__"}
        self.vectors = _chosen(tensors, vectors, path)
        self.n, self.d = tensors[self.vectors]["shape"]
        self.stored = NAMES[tensors[self.vectors]["dtype"]]
        self.columns = tuple(
            name
            for name, part in tensors.items()
            if part["shape"] == [self.n] and part["dtype"] in NAMES
        )
        self.matrix = self._matrix(self.vectors, self.d)
        end = self.begin + max(part["data_offsets"][1] for part in tensors.values())
        if path.stat().st_size < end:
            self.matrix.check_size()
            raise truncated(path, f"byte {path.stat().st_size} of {end}")
        self.remember()

    def _matrix(self, name: str, d: int) -> RawMatrix:
        part = self.head[name]
        kind, offset = NAMES[part["dtype"]], self.begin + part["data_offsets"][0]
        return RawMatrix(self.path, offset, self.n, d, stored_type(kind), kind)

    def blocks(self, size: int, start: int = 0) -> Iterator[tuple[int, NDArray[Any]]]:
        """Vectors in order; see `VectorFile`."""
        return self.matrix.blocks(size, start)

    def take(self, index: NDArray[np.intp]) -> NDArray[Any]:
        """Vectors by number; see `VectorFile`."""
        return self.matrix.take(index)

    def _column(self, name: str) -> NDArray[Any]:
        blocks = [X[:, 0] for _, X in self._matrix(name, 1).blocks(CHUNK)]
        return np.concatenate(blocks) if blocks else np.empty(0)


def _header(path: Path, text: bytes) -> dict[str, Any]:
    try:
        head = json.loads(text)
        for name, part in head.items():
            if name != "__metadata__":
                lo, hi = part["data_offsets"]
                shape, known = part["shape"], part["dtype"] in NAMES
                whole = all(isinstance(k, int) and k >= 0 for k in (lo, hi, *shape))
                size = stored_type(NAMES[part["dtype"]]).itemsize if known else 0
                if not whole or lo > hi or (known and int(np.prod(shape)) * size != hi - lo):
                    raise ValueError(f"the bytes of {name!r} do not fit its shape")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise unreadable(path, "a .safetensors file", error) from error
    return dict(head)


def _chosen(tensors: dict[str, Any], vectors: Any, path: Path) -> str:
    found = [k for k, part in tensors.items() if len(part["shape"]) == 2 and part["dtype"] in NAMES]
    if vectors is not None:
        name = check_name(str(vectors), list(tensors), "tensor", path.name)
        if name in found:
            return name
        found = []
    floats = [name for name in found if NAMES[tensors[name]["dtype"]] in KINDS]
    if len(floats) == 1 or len(found) == 1:
        return (floats if len(floats) == 1 else found)[0]
    raise InputError(
        f"{'More than one tensor' if found else 'No such tensor'} in {path.name} could be the "
        "vectors",
        listed(found or [f"{k} of shape {part['shape']}" for k, part in tensors.items()]),
        'Name one of shape (n, d): vectors="name"',
    )


def open_path(path: Path, vectors: Any) -> VectorFile:
    """The file as a `VectorFile`."""
    return TensorsFile(path, vectors)


def write(stream: IO[bytes], source: VectorFile, order: Order, columns: tuple[str, ...]) -> None:
    """Write tensors; of a file that was read, every one in its place, and the meta data.

    Parameters
    ----------
    stream : binary stream
    source : VectorFile
    order : Order
    columns : tuple of str
        Other columns to carry; numbers only.
    """
    head: dict[str, Any] = {}
    own = source if isinstance(source, TensorsFile) else None
    values = {} if own else {k: _numbers(v, k) for k, v in source.others(columns).items()}
    if own:
        dropped = {*own.columns} - {*columns}
        head = {k: dict(part) for k, part in own.head.items() if k not in dropped}
    else:
        for name, column in values.items():
            head[name] = {"dtype": CODES[column.dtype.name], "shape": [source.n]}
        head[source.vectors] = {"shape": [source.n, source.d]}
    head[source.vectors]["dtype"] = CODES[order.kind]
    names = [name for name in head if name != "__metadata__"]
    if own:
        names.sort(key=lambda name: own.head[name]["data_offsets"])
    at = 0
    for name in names:
        size = _size(source, order, name, values, own)
        head[name]["data_offsets"] = [at, at + size]
        at += size
    text = json.dumps(head, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    stream.write(len(text).to_bytes(8, "little") + text)
    for name in names:
        if name == source.vectors:
            for _, X in order.blocks(source):
                stream.write(encoded(X, order.kind).data)
        elif own:
            _copy(stream, own, name)
        else:
            stream.write(encoded(values[name], values[name].dtype.name).data)


def _size(
    source: VectorFile,
    order: Order,
    name: str,
    values: dict[str, NDArray[Any]],
    own: TensorsFile | None,
) -> int:
    if name == source.vectors:
        return source.n * source.d * stored_type(order.kind).itemsize
    if own is None:
        return values[name].nbytes
    lo, hi = own.head[name]["data_offsets"]
    return int(hi - lo)


def _copy(stream: IO[bytes], source: TensorsFile, name: str) -> None:
    lo, hi = source.head[name]["data_offsets"]
    with source.path.open("rb") as old:
        old.seek(source.begin + lo)
        while lo < hi:
            part = old.read(min(CHUNK, hi - lo))
            if not part:
                raise truncated(source.path, f"byte {source.begin + lo}")
            stream.write(part)
            lo += len(part)


def _numbers(values: NDArray[Any], name: str) -> NDArray[Any]:
    if values.dtype.name not in CODES:
        raise InputError(
            f"A .safetensors file holds numbers only, and the column {name!r} is none",
            f"type {values.dtype}",
            "Drop this column, or write .parquet or .npz",
        )
    return values
