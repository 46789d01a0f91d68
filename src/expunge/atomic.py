"""Files that are written whole or not at all, and only where a file may be.

A writer fills a temporary file beside its target, which then takes the target's place. The name of
the temporary file says who writes it, so that what a killed writer left behind is known as such and
removed by the next write to the same target.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import ENOENT
from functools import cache
from pathlib import Path
from typing import IO, Any

from expunge.errors import InputError

__all__ = [
    "atomic_file",
    "cannot_write",
    "check_path",
    "check_writable",
    "is_running",
    "is_stream",
    "sync_folder",
    "write_atomically",
    "writer_name",
]

SUFFIX = ".part"
DAY = 86400.0  # seconds after which a temporary file of an unknown writer is given up
LONGEST = 150  # bytes of a name that fit into that of its temporary file

Path_ = str | os.PathLike[str]


def write_atomically(path: Path_, *content: bytes | memoryview) -> None:
    """Replace `path` by `content`; a crash leaves the old file or the new one, never half of it.

    Parameters
    ----------
    path : path
        As in `atomic_file`.
    *content : bytes
        Written one after the other.
    """
    with atomic_file(path) as stream:
        for part in content:
            stream.write(part)


@contextmanager
def atomic_file(path: Path_) -> Iterator[IO[bytes]]:
    """A file to write to, which takes the place of `path` when all went well.

    A symbolic link stays one: the file it points to is replaced. A file that was there hands its
    permissions on; a new one has those that the umask leaves it.

    Parameters
    ----------
    path : path
        Of a regular file or of none. Folders, devices and pipes are refused.

    Yields
    ------
    binary stream

    Raises
    ------
    InputError
        When `path` is no path or no place for a file.
    FileNotFoundError
        When its folder does not exist.
    OSError
        When it cannot be written, as for a PermissionError, with the name of `path`.

    Examples
    --------
    >>> import os, tempfile
    >>> from expunge.atomic import atomic_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_file(f"{folder}/numbers") as stream:
    ...         n = stream.write(b"1 2 3")
    ...     os.listdir(folder)
    ['numbers']
    """
    target = check_writable(path)
    if not target.parent.is_dir():
        problem = "The folder does not exist; make it first, or name another"
        raise FileNotFoundError(ENOENT, problem, str(target.parent))
    mode = _mode(target)
    _sweep(target)
    temporary = target.with_name(f"{_prefix(target)}{writer_name()}-{secrets.token_hex(4)}{SUFFIX}")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    rights = 0o666 if mode is None else mode  # less what the umask takes
    try:  # an interrupt may come at any moment, also just after the file is there
        with os.fdopen(os.open(temporary, flags, rights), "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if mode is not None:
            os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and error.filename == os.fspath(temporary):
            raise cannot_write(target, error) from error
        raise


def cannot_write(target: Path, error: OSError) -> OSError:
    """An error about a hidden name, as one about the name that was asked for.

    Parameters
    ----------
    target : Path
    error : OSError

    Returns
    -------
    OSError
        Of the same kind.

    Examples
    --------
    >>> from pathlib import Path
    >>> from expunge.atomic import cannot_write
    >>> cannot_write(Path("/sys/x"), PermissionError(13, "Permission denied", "/sys/.x.part"))
    PermissionError(13, 'Cannot be written (Permission denied); name another place than this')
    """
    problem = f"Cannot be written ({error.strerror}); name another place than this"
    return OSError(error.errno, problem, str(target))


def check_path(path: Any) -> Path:
    """`path` as a Path; refuse what is none.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    Path
    """
    try:
        text = os.fsdecode(path)
    except (TypeError, ValueError) as error:
        raise InputError(
            "A path is needed", f"{type(path).__name__} ({error})", "Pass the name of a file"
        ) from error
    if not text or "\0" in text:
        raise InputError("No file has such a name", repr(text), "Pass the name of a file")
    return Path(text)


def check_writable(path: Any) -> Path:
    """Where a file written to `path` will be, links followed; refuse what is no place for a file.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    Path
    """
    given = check_path(path)
    if is_stream(given):
        raise InputError(
            "Only files can be written, and this is a device, a pipe or a socket",
            str(given),
            "Name a file",
        )
    target = Path(os.path.realpath(given))
    if target.is_symlink():
        raise InputError("This link leads back to itself", str(given), "Name a file")
    if target.is_dir():
        raise InputError("Cannot write to a folder", str(given), "Name a file in it")
    return target


def is_stream(path: Path) -> bool:
    """Whether bytes can be sent to `path` although it is no file: a device, a pipe, a socket.

    Open descriptors such as /dev/stdout count as such whatever they lead to: a file that somebody
    is writing to must not be replaced under their hands.

    Parameters
    ----------
    path : Path

    Returns
    -------
    bool
    """
    if not path.exists() or path.is_dir():
        return False
    folder = path.absolute().parent.as_posix()
    return folder in ("/dev", "/dev/fd") or folder.startswith("/proc/") or not path.is_file()


def _mode(target: Path) -> int | None:
    """Permissions of the file that is there, or None."""
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except FileNotFoundError:
        return None


def _prefix(target: Path) -> str:
    """How the names of all temporary files for this target begin."""
    name = target.name
    if len(os.fsencode(name)) > LONGEST:
        name = hashlib.sha256(os.fsencode(name)).hexdigest()
    return f".{name}."


@cache
def _place() -> str:
    """Where process numbers mean what they mean here: this machine, this container."""
    names = [os.uname().nodename] if hasattr(os, "uname") else []
    with suppress(OSError):
        names.append(os.readlink("/proc/self/ns/pid"))
    return hashlib.sha256(" ".join(names).encode()).hexdigest()[:8]


def writer_name() -> str:
    """By what this process is known to have written a file.

    Returns
    -------
    str

    Examples
    --------
    >>> from expunge.atomic import is_running, writer_name
    >>> is_running(writer_name())  # another process, that is
    False
    """
    return f"{_place()}-{os.getpid()}"


def is_running(writer: str) -> bool:
    """Whether a writer is another process of this machine that has not ended.

    Parameters
    ----------
    writer : str
        From `writer_name`.

    Returns
    -------
    bool
    """
    place, _, process = writer.partition("-")
    return place == _place() and process != str(os.getpid()) and _is_alive(process)


def sync_folder(folder: Path) -> None:
    """Make sure that the names in a folder are on the disk, where the system offers that.

    Parameters
    ----------
    folder : Path
    """
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sweep(target: Path) -> None:
    """Remove what killed writers of this target left: of a process that is gone, or a day old."""
    prefix, names = _prefix(target), []
    with suppress(OSError):  # what is wrong with the folder is said when the file is opened
        names = os.listdir(target.parent)
    for name in names:
        if name.startswith(prefix) and name.endswith(SUFFIX):
            writer = name.removeprefix(prefix).removesuffix(SUFFIX).split("-")
            with suppress(OSError):  # another sweep may have been faster
                if len(writer) == 3 and _is_stale(target.with_name(name), *writer[:2]):
                    target.with_name(name).unlink()


def _is_stale(temporary: Path, place: str, process: str) -> bool:
    found = temporary.lstat()
    if not stat.S_ISREG(found.st_mode):
        return False
    return time.time() - found.st_mtime > DAY or (place == _place() and not _is_alive(process))


def _is_alive(process: str) -> bool:
    if os.name != "posix" or not process.isdecimal():  # elsewhere, asking would end the process
        return True
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
