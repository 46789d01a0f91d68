"""What is to be written when a folder of shards is written anew, wherever that is."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from expunge.addresses import Where, new_file
from expunge.atomic import is_running
from expunge.errors import InputError
from expunge.files.table import VectorFile

__all__ = ["FolderJob"]

VERSION = 1
PART = re.compile(r"part-\d{5,}\.\w+")


@dataclass(frozen=True)
class FolderJob:
    """What is to be written.

    Attributes
    ----------
    source : VectorFile or None
        With shards; None for parts that come from elsewhere, ``part-00000`` and so on.
    target : Path or Address
    settings : dict
        What decides about the bytes, as JSON holds it.
    resume : bool
    replaces : bool
        Whether the target is the source.
    """

    source: VectorFile | None
    target: Where
    settings: dict[str, Any]
    resume: bool
    replaces: bool

    def plain(self) -> dict[str, Any]:
        """What an interrupted run must have been of, to be gone on with."""
        settings: dict[str, Any] = json.loads(json.dumps({"version": VERSION, **self.settings}))
        return settings

    def is_ours(self, name: str) -> bool:
        """Whether a file of this name is one that will be written."""
        if self.source is None:
            return PART.fullmatch(name) is not None
        return not name.startswith(".") and (self.source.path / name).exists()

    def check_found(self, found: Mapping[str, Any]) -> None:
        """Refuse to go on with what an earlier run left, or another one is at.

        Parameters
        ----------
        found : mapping
            What it wrote down.
        """
        if is_running(str(found.get("writer"))):
            raise InputError(
                "Another process is writing to this folder", str(self.target), "Wait for its end"
            )
        ours = self.plain()
        changed = [k for k, v in ours.items() if found.get(k) != v]
        if self.resume and (changed or {*found} - {"writer"} != {*ours}):
            raise InputError(
                "An interrupted run cannot be resumed: it was not of the same work",
                f"another {', '.join(changed)} than then, for {self.target}",
                "Pass resume=False to begin again",
            )

    def copy_others(self, folder: Where) -> None:
        """Files beside the shards that say what they are: as they were."""
        if self.source is None:
            return
        known = {shard.path.name for shard in self.source.shards}
        beside: list[Where] = [*self.source.path.iterdir()]
        for path in sorted(beside, key=lambda found: found.name):
            if path.is_file() and path.name not in known and not path.name.startswith((".", "_")):
                with path.open("rb") as old, new_file(folder / path.name) as new:
                    shutil.copyfileobj(old, new)
