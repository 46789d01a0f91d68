"""A folder of shards written anew: shard by shard in a hidden folder, which then takes its place.

The hidden folder holds a manifest that says of what and by what the shards are made. A shard that
is there is whole. So a run that was interrupted can be resumed, and gives the same bytes.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from expunge.addresses import Address, Where
from expunge.atomic import cannot_write, sync_folder, write_atomically, writer_name
from expunge.errors import InputError
from expunge.files.address_folders import fill_address, is_whole
from expunge.files.folder_job import FolderJob
from expunge.files.table import VectorFile

__all__ = ["fill_folder", "write_folder"]

EXCHANGE = 2  # a flag of renameat2
HERE = -100  # relative to the working directory
TRIES, PAUSE = 20, 0.05  # seconds between looks whether a folder is gone


@dataclass(frozen=True)
class _Work:
    """The hidden folder beside the target, and what is in it.

    Attributes
    ----------
    target : Path
    """

    target: Path

    @property
    def folder(self) -> Path:
        """The hidden folder itself."""
        return self.target.with_name(f".{self.target.name}.part")

    @property
    def shards(self) -> Path:
        """Where the new shards are until all are there."""
        return self.folder / "shards"

    @property
    def old(self) -> Path:
        """Where the old folder is while the new one takes its place."""
        return self.folder / "old"

    @property
    def manifest(self) -> Path:
        """What the new shards are made of."""
        return self.folder / "manifest.json"


def write_folder(job: FolderJob, write: Callable[[VectorFile, int, Where], None]) -> None:
    """Write all shards, then put the folder in place.

    Parameters
    ----------
    job : FolderJob
        With a source.
    write : function of a shard, the number of its first row, and where to write it
        Writes a whole file or none.
    """

    def fill(folder: Where) -> None:
        assert job.source is not None
        at = 0
        for shard in job.source.shards:
            path = folder / shard.path.name
            if not is_whole(path, shard):
                write(shard, at, path)
            at += shard.n

    fill_folder(job, fill)


def fill_folder(job: FolderJob, fill: Callable[[Where], None]) -> None:
    """Let somebody write all shards, then put the folder in place.

    Parameters
    ----------
    job : FolderJob
    fill : function of the hidden folder; at an address of the target
        Writes whole files only, and none that is there already.
    """
    if isinstance(job.target, Address):
        fill_address(job, fill)
        return
    work = _Work(job.target)
    _check_target(job, job.target)
    try:
        _begin(job, work)
    except OSError as error:
        raise cannot_write(work.target, error) from error
    try:
        fill(work.shards)
        for left in work.shards.glob(".*"):  # by a writer that was killed
            left.unlink(missing_ok=True)
        job.copy_others(work.shards)
        if job.source is not None:
            job.source.check_unchanged()
    except BaseException as error:
        stopped = isinstance(error, KeyboardInterrupt | SystemExit)
        if not stopped and not (job.resume and isinstance(error, OSError)):
            _removed(work.folder)
        raise
    _publish(work)


def _check_target(job: FolderJob, target: Path) -> None:
    if target.exists() and not target.is_dir():
        raise InputError(
            "A folder of vectors becomes a folder, and this is a file",
            str(target),
            "Name a new folder, or a file with the ending of another format",
        )
    found = [p.name for p in target.iterdir()] if target.is_dir() else []
    foreign = [] if job.replaces else sorted(name for name in found if not job.is_ours(name))
    if foreign:
        raise InputError(
            "The folder to be replaced holds other things than the shards",
            f"{target} with {', '.join(foreign[:5])}",
            "Name a new folder",
        )


def _begin(job: FolderJob, work: _Work) -> None:
    """The hidden folder, new or as an interrupted run of the same work left it."""
    if work.old.exists() and not work.target.exists():
        os.replace(work.old, work.target)  # a run ended between taking away and putting in place
    found = _found(work)
    if found is not None:
        job.check_found(found)
    if found is None or not job.resume:
        shutil.rmtree(work.folder, ignore_errors=True)
    work.shards.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**job.plain(), "writer": writer_name()}, indent=1)
    write_atomically(work.manifest, text.encode())


def _found(work: _Work) -> dict[str, Any] | None:
    try:
        return dict(json.loads(work.manifest.read_text()))
    except (OSError, ValueError):
        return None


def _publish(work: _Work) -> None:
    """Put the new folder in the place of the old one."""
    sync_folder(work.shards)
    if not work.target.exists():
        os.rename(work.shards, work.target)
    elif not _exchange(work.shards, work.target):
        os.rename(work.target, work.old)
        os.rename(work.shards, work.target)
    sync_folder(work.target.parent)
    shutil.rmtree(work.folder, ignore_errors=True)


def _removed(folder: Path) -> None:
    """Remove a folder into which others, who do not know yet that all is lost, may still write."""
    for _ in range(TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(PAUSE)


def _exchange(a: Path, b: Path) -> bool:
    """Let two folders change places at once, where the system can do that."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        rename = ctypes.CDLL(None).renameat2
    except (OSError, AttributeError):
        return False
    return bool(rename(HERE, os.fsencode(a), HERE, os.fsencode(b), EXCHANGE) == 0)
