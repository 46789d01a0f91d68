"""Files of arrays with a JSON header: written atomically, read without running code.

The container is safetensors. Its metadata holds one entry, ``expunge``: a JSON object with the
format number, the kind of thing stored and its meta data. The header is checked before any array
is read.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from expunge._version import __version__
from expunge.errors import BadArtifact, InputError

__all__ = [
    "FORMAT",
    "BadArtifact",
    "atomic_file",
    "check_header",
    "read",
    "write",
    "write_atomically",
]

FORMAT = 1  # raise it when the layout changes, and keep a reader for every number below
KEY = "expunge"

Header = dict[str, Any]
Path_ = str | os.PathLike[str]


def write(path: Path_, tensors: Mapping[str, NDArray[Any]], header: Mapping[str, Any]) -> None:
    """Write arrays and a header to `path`, all of it or nothing.

    Raises
    ------
    InputError
        When the header holds what JSON does not, such as NaN.
    """
    full = {"format": FORMAT, "writer": __version__, **header}
    # one metadata entry only: safetensors orders several of them at random
    try:
        metadata = {KEY: json.dumps(full, sort_keys=True, ensure_ascii=False, allow_nan=False)}
    except (TypeError, ValueError) as error:
        raise InputError(
            "The meta data cannot be written as JSON",
            f"a value that JSON does not have ({error})",
            "Pass finite numbers, text, lists and dictionaries of them",
        ) from error
    arrays = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    write_atomically(path, to_bytes(arrays, metadata))


def write_atomically(path: Path_, content: bytes) -> None:
    """Replace `path` by `content`; a crash leaves the old file or the new one, never half of it."""
    with atomic_file(path) as stream:
        stream.write(content)


@contextmanager
def atomic_file(path: Path_) -> Iterator[IO[bytes]]:
    """A file to write to, which takes the place of `path` when all went well.

    Parameters
    ----------
    path : path

    Yields
    ------
    binary stream
    """
    path = Path(path)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read(
    path: Path_, *, kind: str, required: tuple[str, ...]
) -> tuple[Header, dict[str, NDArray[Any]]]:
    """Header and arrays of a file of this `kind`.

    Raises
    ------
    BadArtifact
        With the path and the reason.
    FileNotFoundError
        If there is no such file.
    """
    name = os.fspath(path)
    if not Path(path).exists():
        raise FileNotFoundError(f"{name}: no such file")
    try:
        with safe_open(name, framework="numpy") as file:
            header = check_header(name, file.metadata(), kind)
            tensors = READERS[header["format"]](file)
    except (SafetensorError, OSError) as error:
        raise BadArtifact(f"{name}: not a readable safetensors file ({error})") from error
    except _WrongType as error:
        raise BadArtifact(f"{name}: {error}") from error
    missing = [key for key in required if key not in tensors]
    if missing:
        raise BadArtifact(f"{name}: the arrays {missing} are missing")
    return header, tensors


def check_header(name: str, metadata: Mapping[str, str] | None, kind: str) -> Header:
    """The header among the metadata of a safetensors file.

    Parameters
    ----------
    name : str
        Of the file, for messages.
    metadata : mapping from str to str, optional
    kind : str
        What the file is to hold.

    Returns
    -------
    dict

    Raises
    ------
    BadArtifact
        When it is damaged, too new, or of another kind.
    """
    if not metadata or KEY not in metadata:
        raise BadArtifact(f"{name}: a safetensors file, but not one written by expunge")
    try:
        header: Header = json.loads(metadata[KEY])
        number, found = header["format"], header["kind"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise BadArtifact(f"{name}: its header is damaged ({error!r})") from error
    if type(number) is not int or number not in READERS:
        raise BadArtifact(
            f"{name}: format {number}, written by version {header.get('writer')}; this version "
            f"({__version__}) reads {sorted(READERS)}. Upgrade expunge to read it"
        )
    if found != kind:
        raise BadArtifact(f"{name}: it holds a {found!r}, not a {kind!r}")
    if not isinstance(header.get("meta"), dict):
        raise BadArtifact(f"{name}: its header has no meta data")
    return header


class _WrongType(Exception):
    """An array of a type the format does not have."""


def _read_format_1(file: Any) -> dict[str, NDArray[Any]]:
    names = list(file.keys())
    for name in names:
        if (found := file.get_slice(name).get_dtype()) != "F64":
            raise _WrongType(f"the array {name!r} has type {found}, not F64")
    return {name: file.get_tensor(name) for name in names}


READERS: dict[int, Callable[[Any], dict[str, NDArray[Any]]]] = {1: _read_format_1}


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
