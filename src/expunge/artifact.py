"""Files of arrays with a JSON header: written atomically, read without running code.

The container is safetensors. Its metadata holds one entry, ``expunge``: a JSON object with a
checksum, the format number, the kind of thing stored and its meta data. The header and the checksum
are checked before any array is read.

Format 2 is format 1 with the checksum: the SHA-256 of the file with zeros in the checksum's place.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from expunge._version import __version__
from expunge.atomic import atomic_file, check_path, write_atomically
from expunge.errors import BadArtifact, InputError

__all__ = [
    "FORMAT",
    "BadArtifact",
    "atomic_file",
    "is_deep",
    "metadata_of",
    "read",
    "reading",
    "sealed",
    "write",
    "write_atomically",
]

FORMAT = 2  # raise it when the layout changes, and keep reading every number below
FORMATS = (1, 2)
KEY = "expunge"
CHECKSUM = "checksum"  # the first of all keys in order, so the first such digits in the file are it
OPEN = "0" * 64
DEPTH = 100  # levels of meta data; what walks through them would run out of stack
PLAIN = (str, int, float)  # most of meta data, and quick to tell from what may hold more
CHUNK = 1 << 20  # bytes hashed at once

Header = dict[str, Any]
Path_ = str | os.PathLike[str]
Names = tuple[Iterable[str], Iterable[str]]  # arrays there must be, and arrays there may be


def write(path: Path_, tensors: Mapping[str, NDArray[Any]], header: Mapping[str, Any]) -> None:
    """Write arrays and a header to `path`, all of it or nothing.

    Parameters
    ----------
    path : str or path
    tensors : mapping of str to array
    header : mapping
        With the entries "kind" and "meta".

    Raises
    ------
    InputError
        When the header holds what JSON does not, such as NaN.
    """
    metadata = metadata_of(header)
    arrays = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    write_atomically(path, *sealed(to_bytes(arrays, metadata)))


def metadata_of(header: Mapping[str, Any]) -> dict[str, str]:
    """The metadata of a safetensors file for this header, with the checksum left open.

    Parameters
    ----------
    header : mapping
        With the entries "kind" and "meta".

    Returns
    -------
    dict of str to str
    """
    full = {CHECKSUM: OPEN, "format": FORMAT, "writer": __version__, **header}
    # one metadata entry only: safetensors orders several of them at random
    try:
        return {KEY: json.dumps(full, sort_keys=True, ensure_ascii=False, allow_nan=False)}
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            "The meta data cannot be written as JSON",
            f"a value that JSON does not have ({error})",
            "Pass finite numbers, text, lists and dictionaries of them",
        ) from error


def sealed(content: bytes) -> tuple[bytes, memoryview]:
    """The bytes of a safetensors file in two parts, with the checksum filled in.

    Parameters
    ----------
    content : bytes
        With metadata from `metadata_of`.

    Returns
    -------
    bytes
        Up to the end of the header.
    memoryview
        The rest.
    """
    end = 8 + int.from_bytes(content[:8], "little")
    head, rest = content[:end], memoryview(content)[end:]
    digest = hashlib.sha256(head)
    digest.update(rest)
    return head.replace(OPEN.encode(), digest.hexdigest().encode(), 1), rest


def read(
    path: Path_, *, kind: str, names: Callable[[Header], Names]
) -> tuple[Header, dict[str, NDArray[Any]]]:
    """Header and float64 arrays of a file of this `kind`.

    Parameters
    ----------
    path : str or path
    kind : str
        What the file is to hold.
    names : callable
        Of the header: the arrays there must be, and those there may be. Others are refused before
        anything is read.

    Returns
    -------
    dict
        The header.
    dict of arrays

    Raises
    ------
    BadArtifact
        With the path and the reason.
    FileNotFoundError
        If there is no such file.
    """
    with reading(path, kind=kind) as (header, file):
        _check_arrays(os.fspath(path), file, *map(set, names(header)))
        return header, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


@contextmanager
def reading(path: Path_, *, kind: str, framework: str = "numpy") -> Iterator[tuple[Header, Any]]:
    """An open file of this `kind`, whose header and checksum have been checked.

    Parameters
    ----------
    path : str or path
    kind : str
        What the file is to hold.
    framework : {"numpy", "pt"}
        Of the arrays.

    Yields
    ------
    dict
        The header.
    safetensors.safe_open

    Raises
    ------
    BadArtifact
        With the path and the reason.
    FileNotFoundError
        If there is no such file.
    """
    place = check_path(path)
    name = str(place)
    if not place.exists():
        raise FileNotFoundError(f"{name}: no such file")
    if not place.is_file():  # a pipe would be waited for, a device read for ever
        what = "a folder" if place.is_dir() else "a device, a pipe or a socket"
        raise BadArtifact(f"{name}: not a readable safetensors file (it is {what})")
    try:
        with safe_open(name, framework=framework) as file:
            header = _check_header(name, file.metadata(), kind)
            if header["format"] > 1 or CHECKSUM in header:
                _check_seal(place, header.get(CHECKSUM))
            yield header, file
    except (SafetensorError, OSError) as error:
        raise BadArtifact(f"{name}: not a readable safetensors file ({error})") from error


def is_deep(value: Any) -> bool:
    """Whether lists and dictionaries are nested deeper than meta data may be.

    Parameters
    ----------
    value : JSON value

    Returns
    -------
    bool
    """
    level = [value]
    for _ in range(DEPTH):
        level = [
            part
            for item in level
            if not isinstance(item, PLAIN) and isinstance(item, Mapping | list | tuple)
            for part in (item.values() if isinstance(item, Mapping) else item)
        ]
        if not level:
            return False
    return True


def _check_header(name: str, metadata: Mapping[str, str] | None, kind: str) -> Header:
    """The header among the metadata of a safetensors file."""
    if not metadata or KEY not in metadata:
        raise BadArtifact(f"{name}: a safetensors file, but not one written by expunge")
    try:
        header: Header = json.loads(metadata[KEY])
        number, found = header["format"], header["kind"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise BadArtifact(f"{name}: its header is damaged ({error!r})") from error
    if type(number) is not int or number not in FORMATS:
        raise BadArtifact(
            f"{name}: format {number}, written by version {header.get('writer')}; this version "
            f"({__version__}) reads {list(FORMATS)}. Upgrade expunge to read it"
        )
    if found != kind:
        raise BadArtifact(f"{name}: it holds a {found!r}, not a {kind!r}")
    if not isinstance(header.get("meta"), dict):
        raise BadArtifact(f"{name}: its header has no meta data")
    if is_deep(header):
        raise BadArtifact(f"{name}: its header is damaged (nested deeper than {DEPTH} levels)")
    return header


def _check_seal(path: Path, checksum: Any) -> None:
    """Hash the file as it was before the checksum was filled in."""
    with path.open("rb") as stream:
        length = stream.read(8)
        head = stream.read(int.from_bytes(length, "little"))
        known = str(checksum).encode("utf-8", "replace")
        digest = hashlib.sha256(length + head.replace(known, OPEN.encode(), 1))
        while chunk := stream.read(CHUNK):
            digest.update(chunk)
    if digest.hexdigest() != checksum:
        raise BadArtifact(f"{path}: damaged: its checksum is not that of its content")


def _check_arrays(name: str, file: Any, required: set[str], optional: set[str]) -> None:
    found = set(file.keys())
    if missing := sorted(required - found):
        raise BadArtifact(f"{name}: the arrays {missing} are missing")
    if strange := sorted(found - required - optional):
        raise BadArtifact(f"{name}: it holds arrays that do not belong there: {strange[:5]}")
    for key in sorted(found):
        if (dtype := file.get_slice(key).get_dtype()) != "F64":
            raise BadArtifact(f"{name}: the array {key!r} has type {dtype}, not F64")
