"""Files that are not on this machine: addresses such as ``s3://bucket/people``, by fsspec.

An address is a name and no more until it is read or written, so that it can be sent to whoever is
to do that. It offers what is asked of a `Path` here. Those that begin with ``file://`` are paths.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import IO, Any, TypeVar

from expunge.atomic import atomic_file, check_path
from expunge.errors import InputError, MissingPackage
from expunge.optional import require

__all__ = ["Address", "Where", "at_places", "new_file", "overlap", "where_of"]

WORD = r"[A-Za-z][A-Za-z0-9+.-]+"  # a letter alone is a drive
ADDRESS = re.compile(rf"((?:{WORD}::)*)({WORD}://)([^:]*(?::(?!:)[^:]*)*)(::.*)?", re.DOTALL)
LOCAL = ("file://", "local://")
PASSWORD = re.compile(r"(://[^/@:?]*):[^/@?]*@")
ASKED = re.compile(r"(https?://[^?\s]*)\?(?:(?!::)\S)*")  # of a server: may be a signature
AT_ONCE = 32  # questions to a server

S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True, order=True)
class Address:
    """Where a file or a folder is, in words of fsspec.

    Parameters
    ----------
    url : str
        As ``s3://bucket/people``; may be a chain, as ``simplecache::s3://bucket/people``.
    kind : str
        What a listing said that it is, "file" or "directory"; empty if nobody looked.

    Examples
    --------
    >>> from expunge.addresses import Address
    >>> folder = Address("s3://bucket/people/")
    >>> folder.name, str(folder / "0.parquet"), str(folder.with_name("clean"))
    ('people', 's3://bucket/people/0.parquet', 's3://bucket/clean')
    """

    url: str
    kind: str = field(default="", compare=False, repr=False)

    def __str__(self) -> str:
        """As it may be shown: without a password, and without what signs a link."""
        return _without_secrets(self.whole)

    @property
    def whole(self) -> str:
        """All of it, as a driver wants it."""
        before, protocol, path, after = self._parts()
        return f"{before}{protocol}{path}{after}"

    def _parts(self) -> tuple[str, str, str, str]:
        found = ADDRESS.fullmatch(self.url)
        if found is None:
            shown = repr(_without_secrets(self.url))
            raise InputError("This is no address", shown, "Write it as s3://bucket/folder")
        before, protocol, path, after = found.groups(default="")
        return before, protocol, path.rstrip("/"), after

    @property
    def name(self) -> str:
        """The last part of the path; of a link without what is asked of its server."""
        _, protocol, path, _ = self._parts()
        last = path.rsplit("/", 1)[-1]
        return last.partition("?")[0] if protocol.startswith("http") else last

    @property
    def parent(self) -> Address:
        """The folder that it is in."""
        before, protocol, path, after = self._parts()
        return Address(f"{before}{protocol}{path.rpartition('/')[0]}{after}")

    def __truediv__(self, name: str) -> Address:
        before, protocol, path, after = self._parts()
        return Address(f"{before}{protocol}{path}{'/' * bool(path)}{name}{after}")

    def with_name(self, name: str) -> Address:
        """The neighbour that is called so."""
        return self.parent / name

    def absolute(self) -> Address:
        """Itself: it is the same from everywhere."""
        return self

    # -- what is there ---------------------------------------------------------------------------

    def reach(self) -> tuple[Any, str]:
        """The filesystem, and the path in it.

        Returns
        -------
        fsspec.AbstractFileSystem
        str

        Raises
        ------
        MissingPackage
            When the driver of such addresses is not installed.
        InputError
            When there are no such addresses.
        """
        core = require("fsspec.core", "dask")
        try:
            with self._reached():
                fs, path = core.url_to_fs(self.whole)
        except ImportError as error:
            cause = error.__cause__ if isinstance(error.__cause__, ImportError) else error
            package = (cause.name or str(error)).partition(".")[0]
            raise MissingPackage(package, "") from error
        except ValueError as error:
            raise InputError(
                "There are no such addresses", f"{self} ({error})", "Check how it begins"
            ) from error
        return fs, str(path)

    @property
    def shared(self) -> bool:
        """Whether other processes find the same there: not in the memory of this one."""
        return not self._parts()[1].startswith("memory:")

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """Say in one way that somebody did not answer, whatever a driver raises then."""
        try:
            yield
        except OSError as error:
            if str(self) in str(error):
                raise
            kind = next(k for k in type(error).__mro__ if k.__module__ == "builtins")
            why = _without_secrets(" ".join(str(error).split()))
            if kind is FileNotFoundError and self.name in why:  # its path and no more
                why = "there is no such file, seen from where it is wanted"
            raise kind(f"{self}: {why}") from error
        except (ImportError, ValueError):
            raise
        except Exception as error:
            why = _without_secrets(" ".join(str(error).split()))[:300]
            raise OSError(f"{self} cannot be reached ({type(error).__name__}: {why})") from error

    def exists(self) -> bool:
        """Whether there is a file, or anything in a folder."""
        fs, path = self.reach()
        with self._reached():
            fs.invalidate_cache()
            return bool(fs.exists(path))

    def is_dir(self) -> bool:
        """Whether it is a folder."""
        return self._kind() == "directory"

    def is_file(self) -> bool:
        """Whether it is a file."""
        return self._kind() == "file"

    def _kind(self) -> str:
        if self.kind:
            return self.kind
        fs, path = self.reach()
        with self._reached():
            fs.invalidate_cache()  # others write too
            try:
                return str(fs.info(path)["type"])
            except FileNotFoundError:
                return ""

    def iterdir(self) -> Iterator[Address]:
        """What is in the folder."""
        fs, path = self.reach()
        with self._reached():
            fs.invalidate_cache()
            found = fs.ls(path, detail=True)
        for entry in found:
            inner = entry["name"].rstrip("/")
            if inner != path.rstrip("/"):  # stores may list a folder in itself
                yield Address((self / inner.rsplit("/", 1)[-1]).whole, entry["type"])

    def rglob(self, pattern: str) -> Iterator[Address]:
        """All files below with such a name."""
        fs, path = self.reach()
        with self._reached():
            found = fs.find(path)
        for inner in found:
            if fnmatch(inner.rsplit("/", 1)[-1], pattern):
                yield Address((self / inner[len(path.rstrip("/")) + 1 :]).whole, "file")

    def identity(self) -> list[Any]:
        """By what a file is known to be the same still: its size, and what its server says."""
        fs, path = self.reach()
        with self._reached():
            fs.invalidate_cache()
            found = fs.info(path)
        told = sorted(f"{name}={value}" for name, value in found.items())
        return [found.get("size"), hashlib.sha256("\n".join(told).encode()).hexdigest()]

    # -- bytes -----------------------------------------------------------------------------------

    def open(self, mode: str = "rb") -> Ranges:
        """The bytes of the file, fetched where they are asked for."""
        assert mode == "rb"  # writing is for `new_file`
        return Ranges(self)

    def unlink(self) -> None:
        """Remove the file, if it is there."""
        fs, path = self.reach()
        with self._reached(), suppress(FileNotFoundError):
            fs.rm_file(path)

    def __repr__(self) -> str:
        return f"Address({str(self)!r})"


Where = Path | Address


def _without_secrets(text: str) -> str:
    return ASKED.sub(r"\1?...", PASSWORD.sub(r"\1:***@", text))


class Ranges(io.RawIOBase):
    """A file at an address to be read in pieces: nothing is fetched twice, and nothing kept.

    Several can read the same file at once, which those that fsspec opens cannot everywhere.

    Parameters
    ----------
    address : Address
    """

    def __init__(self, address: Address) -> None:
        self.address, self.at = address, 0
        self.fs, self.path = address.reach()
        with address._reached():
            found = self.fs.info(self.path)
        size = found.get("size")
        self.bytes = None if size is not None else self._fetched(None, None)  # nobody knows
        self.size = int(size) if size is not None else len(self.bytes or b"")

    def _fetched(self, first: int | None, last: int | None) -> bytes:
        with self.address._reached():
            return bytes(self.fs.cat_file(self.path, start=first, end=last))

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True

    def tell(self) -> int:
        """The next byte that is read."""
        return self.at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a byte."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self.at, os.SEEK_END: self.size}[whence]
        self.at = max(0, start + offset)
        return self.at

    def read(self, size: int | None = -1) -> bytes:
        """Bytes from here on, all of them or `size`."""
        last = self.size if size is None or size < 0 else min(self.size, self.at + size)
        if last <= self.at:
            return b""
        whole = self.bytes
        found = self._fetched(self.at, last) if whole is None else whole
        if len(found) == self.size:  # also where a server knows whole files only
            found = found[self.at : last]
        if len(found) != last - self.at:
            raise OSError(
                f"{self.address} gave {len(found)} bytes instead of {last - self.at}: it changed"
            )
        self.at = last
        return found

    def readinto(self, buffer: Any) -> int:
        """Bytes from here on, into memory that is there."""
        found = self.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)


def where_of(path: Any) -> Where:
    """A path, or an address.

    Parameters
    ----------
    path : str, path or Address

    Returns
    -------
    Path or Address

    Examples
    --------
    >>> from expunge.addresses import where_of
    >>> where_of("gs://bucket/x.parquet"), where_of("file:///data/x.parquet").as_posix()
    (Address('gs://bucket/x.parquet'), '/data/x.parquet')
    """
    if isinstance(path, Address):
        return path
    if not isinstance(path, str) or ADDRESS.fullmatch(path) is None:
        return check_path(path)
    for start in LOCAL:
        if path.startswith(start) and "::" not in path:
            rest = path.removeprefix(start)
            return check_path(rest.lstrip("/") if os.name == "nt" else rest).expanduser()
    return Address(path)


def at_places(work: Callable[[S], T], what: Sequence[S]) -> list[T]:
    """What a function gives for each; of addresses, and what lies there, for several at once.

    Parameters
    ----------
    work : function
    what : sequence of Path, Address, or objects with such a path

    Returns
    -------
    list
    """
    if not what or not isinstance(getattr(what[0], "path", what[0]), Address):
        return [work(one) for one in what]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(work, what))


def overlap(a: Where, b: Where) -> bool:
    """Whether two places are the same, or one is in the other.

    Parameters
    ----------
    a, b : Path or Address

    Returns
    -------
    bool

    Examples
    --------
    >>> from expunge.addresses import overlap, where_of
    >>> overlap(where_of("memory://people"), where_of("memory://people/clean"))
    True
    """
    if isinstance(a, Path) and isinstance(b, Path):
        a, b = (Path(os.path.realpath(path)) for path in (a, b))
        same = a.exists() and b.exists() and a.samefile(b)
        return a == b or same or a in b.parents or b in a.parents
    if isinstance(a, Path) or isinstance(b, Path):
        return False
    (one, first), (other, second) = a.reach(), b.reach()
    first, second = f"{first.rstrip('/')}/", f"{second.rstrip('/')}/"
    return bool(one == other and (first.startswith(second) or second.startswith(first)))


@contextmanager
def new_file(place: Where) -> Iterator[IO[bytes]]:
    """A file to write to, which is there when all went well; see `atomic_file`.

    Parameters
    ----------
    place : Path or Address

    Yields
    ------
    binary stream
    """
    if isinstance(place, Path):
        with atomic_file(place) as stream:
            yield stream
        return
    if "::" in str(place):
        raise InputError(
            "Only a plain address can be written to", str(place), "Write the last part alone"
        )
    fs, path = place.reach()
    try:
        with place._reached():
            stream = fs.open(path, "wb", autocommit=False)
    except OSError as error:
        if isinstance(error.__cause__, NotImplementedError):
            raise InputError(
                "Such addresses can be read, not written to", str(place), "Name another place"
            ) from error
        raise
    try:
        yield stream
        with place._reached():
            stream.close()
            stream.commit()
    except BaseException:
        with suppress(Exception):
            stream.close()
        with suppress(Exception):
            stream.discard()
        with suppress(Exception):
            place.unlink()
        raise
