"""A folder of shards written anew: shard by shard in a hidden folder, which then takes its place.

The hidden folder holds a manifest that says of what and by what the shards are made. A shard that
is there is whole. So a run that was interrupted can be resumed, and gives the same bytes.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from expunge.atomic import is_running, sync_folder, write_atomically, writer_name
from expunge.errors import InputError
from expunge.files.table import VectorFile

__all__ = ["FolderJob", "fill_folder", "write_folder"]

VERSION = 1
PART = re.compile(r"part-\d{5,}\.\w+")
EXCHANGE = 2  # a flag of renameat2
HERE = -100  # relative to the working directory
TRIES, PAUSE = 20, 0.05  # seconds between looks whether a folder is gone


@dataclass(frozen=True)
class FolderJob:
    """What is to be written.

    Attributes
    ----------
    source : VectorFile or None
        With shards; None for parts that come from elsewhere, ``part-00000`` and so on.
    target : Path
    settings : dict
        What decides about the bytes, as JSON holds it.
    resume : bool
    replaces : bool
        Whether the target is the source.
    """

    source: VectorFile | None
    target: Path
    settings: dict[str, Any]
    resume: bool
    replaces: bool

    @property
    def work(self) -> Path:
        """The hidden folder beside the target."""
        return self.target.with_name(f".{self.target.name}.part")

    @property
    def shards(self) -> Path:
        """Where the new shards are until all are there."""
        return self.work / "shards"

    @property
    def old(self) -> Path:
        """Where the old folder is while the new one takes its place."""
        return self.work / "old"

    @property
    def manifest(self) -> Path:
        """What the new shards are made of."""
        return self.work / "manifest.json"


def write_folder(job: FolderJob, write: Callable[[VectorFile, int, Path], None]) -> None:
    """Write all shards, then put the folder in place.

    Parameters
    ----------
    job : FolderJob
        With a source.
    write : function of a shard, the number of its first row, and where to write it
        Writes a whole file or none.
    """

    def fill(folder: Path) -> None:
        assert job.source is not None
        at = 0
        for shard in job.source.shards:
            path = folder / shard.path.name
            if not path.exists():
                write(shard, at, path)
            at += shard.n

    fill_folder(job, fill)


def fill_folder(job: FolderJob, fill: Callable[[Path], None]) -> None:
    """Let somebody write all shards, then put the folder in place.

    Parameters
    ----------
    job : FolderJob
    fill : function of the hidden folder
        Writes whole files only, and none that is there already.
    """
    _check_target(job)
    _begin(job)
    try:
        fill(job.shards)
        for left in job.shards.glob(".*"):  # by a writer that was killed
            left.unlink(missing_ok=True)
        if job.source is not None:
            _copy_others(job)
            job.source.check_unchanged()
    except BaseException as error:
        stopped = isinstance(error, KeyboardInterrupt | SystemExit)
        if not stopped and not (job.resume and isinstance(error, OSError)):
            _removed(job.work)
        raise
    _publish(job)


def _check_target(job: FolderJob) -> None:
    if job.target.exists() and not job.target.is_dir():
        raise InputError(
            "A folder of vectors becomes a folder, and this is a file",
            str(job.target),
            "Name a new folder, or a file with the ending of another format",
        )
    found = [p.name for p in job.target.iterdir()] if job.target.is_dir() else []
    foreign = [] if job.replaces else sorted(name for name in found if not _is_ours(job, name))
    if foreign:
        raise InputError(
            "The folder to be replaced holds other things than the shards",
            f"{job.target} with {', '.join(foreign[:5])}",
            "Name a new folder",
        )


def _is_ours(job: FolderJob, name: str) -> bool:
    """Whether a file of the folder to be replaced is one that will be written."""
    if job.source is None:
        return PART.fullmatch(name) is not None
    return not name.startswith(".") and (job.source.path / name).exists()


def _begin(job: FolderJob) -> None:
    """The hidden folder, new or as an interrupted run of the same work left it."""
    if job.old.exists() and not job.target.exists():
        os.replace(job.old, job.target)  # a run ended between taking away and putting in place
    found = _found(job)
    if found is not None:
        if is_running(str(found.get("writer"))):
            raise InputError(
                "Another process is writing to this folder", str(job.target), "Wait for its end"
            )
        same = {k: v for k, v in found.items() if k != "writer"} == _plain(job)
        if job.resume and not same:
            changed = [k for k, v in _plain(job).items() if found.get(k) != v]
            raise InputError(
                "An interrupted run cannot be resumed: it was not of the same work",
                f"another {', '.join(changed)} than then, for {job.target}",
                "Pass resume=False to begin again",
            )
    if found is None or not job.resume:
        shutil.rmtree(job.work, ignore_errors=True)
    job.shards.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**_plain(job), "writer": writer_name()}, indent=1)
    write_atomically(job.manifest, text.encode())


def _plain(job: FolderJob) -> dict[str, Any]:
    settings: dict[str, Any] = json.loads(json.dumps({"version": VERSION, **job.settings}))
    return settings


def _found(job: FolderJob) -> dict[str, Any] | None:
    try:
        return dict(json.loads(job.manifest.read_text()))
    except (OSError, ValueError):
        return None


def _copy_others(job: FolderJob) -> None:
    """Files beside the shards that say what they are: as they were."""
    assert job.source is not None
    known = {shard.path.name for shard in job.source.shards}
    for path in sorted(job.source.path.iterdir()):
        if path.is_file() and path.name not in known and not path.name.startswith((".", "_")):
            shutil.copyfile(path, job.shards / path.name)


def _publish(job: FolderJob) -> None:
    """Put the new folder in the place of the old one."""
    sync_folder(job.shards)
    if not job.target.exists():
        os.rename(job.shards, job.target)
    elif not _exchange(job.shards, job.target):
        os.rename(job.target, job.old)
        os.rename(job.shards, job.target)
    sync_folder(job.target.parent)
    shutil.rmtree(job.work, ignore_errors=True)


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
