"""A folder of shards written at an address, where no folder can be moved to its place at once.

Shards are written where they belong, beside a file that says that they are not all there, which our
readers refuse. When they are, ``_SUCCESS`` is written, as other tools look for, and that file goes.
What went wrong is removed; so is a shard of a writer who learns too late that all was given up.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from expunge.addresses import Address, Where, new_file
from expunge.atomic import writer_name
from expunge.errors import InputError
from expunge.files.folder_job import FolderJob
from expunge.files.formats import format_of
from expunge.files.shards import UNFINISHED
from expunge.files.table import VectorFile

__all__ = ["fill_address", "is_whole", "still_wanted"]

SUCCESS = "_SUCCESS"


def fill_address(job: FolderJob, fill: Callable[[Where], None]) -> None:
    """Let somebody write all shards, then say that they are there.

    Parameters
    ----------
    job : FolderJob
        With an address as target.
    fill : function of the folder
        Writes whole files only, and none that is there already.
    """
    target = job.target
    assert isinstance(target, Address)
    new = _begin(job, target)
    try:
        fill(target)
        job.copy_others(target)
        if job.source is not None:
            job.source.check_unchanged()
        _written(target / SUCCESS, b"")
    except BaseException as error:
        kept = isinstance(error, OSError | KeyboardInterrupt | SystemExit)
        if not (job.resume and kept):
            _removed(job, target, new)
        raise
    (target / UNFINISHED).unlink()


def is_whole(path: Where, shard: VectorFile) -> bool:
    """Whether an earlier run wrote this shard to its end.

    Parameters
    ----------
    path : Path or Address
        On this machine a file that is there is whole.
    shard : VectorFile
        What it was to be made of.

    Returns
    -------
    bool
    """
    if isinstance(path, Path) or not path.exists():
        return path.exists()
    names = list(shard.vector_columns) or shard.vectors
    try:
        return format_of(path).open_path(path, names).n == shard.n
    except InputError:
        return False


@contextmanager
def still_wanted(path: Where) -> Iterator[None]:
    """Write a shard, and take it away again where the run that wants it was given up meanwhile.

    Who gives up removes first the file that says that shards are missing, then all shards that are
    there. So either it finds this one, or here that file is seen to be gone.

    Parameters
    ----------
    path : Path or Address
        On this machine, the folder of shards is gone then, and nothing can be written.

    Raises
    ------
    OSError
    """
    if isinstance(path, Path):
        yield
        return
    _check_wanted(path)
    yield
    try:
        _check_wanted(path)
    except OSError:
        path.unlink()
        raise


def _check_wanted(path: Address) -> None:
    if not (path.parent / UNFINISHED).exists():
        raise OSError(f"The writing of {path.parent} was given up meanwhile")


def _begin(job: FolderJob, target: Address) -> bool:
    """Say that shards are missing, if they may be written there; gives whether nothing was."""
    kind = target._kind()
    if kind == "file":
        raise InputError(
            "A folder of vectors becomes a folder, and this is a file",
            str(target),
            "Name a new folder",
        )
    names = [path.name for path in target.iterdir()] if kind else []
    if names and UNFINISHED not in names:
        raise InputError(
            "There is something at this address already, and nothing is written over",
            f"{target} with {', '.join(sorted(names)[:5])}",
            "Name a new folder, or remove this one first",
        )
    if names and not job.resume:
        raise InputError(
            "An unfinished run left something at this address, or is at it still",
            f"{target} with {UNFINISHED}",
            "Pass resume=True to go on with it, or remove it first",
        )
    if names:
        job.check_found(_found(target / UNFINISHED))
    elif target.parent.is_dir():  # where folders are things, one is needed
        fs, path = target.reach()
        fs.makedirs(path, exist_ok=True)
    text = json.dumps({**job.plain(), "writer": writer_name()}, indent=1)
    _written(target / UNFINISHED, text.encode())
    return not kind


def _found(path: Address) -> dict[str, Any]:
    try:
        with path.open() as stream:
            return dict(json.loads(stream.read()))
    except ValueError:
        return {}


def _written(path: Address, content: bytes) -> None:
    with new_file(path) as stream:
        stream.write(content)


def _removed(job: FolderJob, target: Address, new: bool) -> None:
    """Remove what was written, and a new folder if nothing else is in it."""
    with suppress(OSError):
        (target / UNFINISHED).unlink()  # first: see `still_wanted`
        for path in [*target.iterdir()]:
            if path.name == SUCCESS or job.is_ours(path.name):
                path.unlink()
        if new and not [*target.iterdir()]:
            fs, inner = target.reach()
            fs.rmdir(inner)
