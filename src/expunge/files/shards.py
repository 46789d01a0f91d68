"""A folder of files that are one table: its shards, in the order of their names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.addresses import Where, at_places
from expunge.errors import InputError
from expunge.files.common_types import other_values
from expunge.files.field_types import typed
from expunge.files.naming import listed
from expunge.files.table import VectorFile

__all__ = ["UNFINISHED", "ShardedFile", "shard_paths"]

UNFINISHED = "_unfinished.json"  # in a folder at an address until all of it is there

NATURES = {
    "U": "text",
    "S": "text",
    "b": "booleans",
    "i": "numbers",
    "u": "numbers",
    "f": "numbers",
}


def shard_paths(
    folder: Where, endings: Sequence[str], ending_of: Callable[[Where], str]
) -> list[Where]:
    """The files of a folder that hold vectors, by name.

    Parameters
    ----------
    folder : Path or Address
    endings : sequence of str
        Those that shards may have.
    ending_of : function of a path

    Returns
    -------
    list of Path or Address

    Raises
    ------
    InputError
        When there are none, or some of several formats; and for a folder that is being written.
    """
    every: list[Where] = [*folder.iterdir()]
    if any(path.name == UNFINISHED for path in every):
        raise InputError(
            "This folder is not whole: somebody is writing it, or was interrupted",
            f"{folder} with {UNFINISHED}",
            "Wait for the end, or go on with resume=True",
        )
    visible = sorted((p for p in every if not p.name.startswith((".", "_"))), key=str)
    found = [path for path in visible if path.is_file() and ending_of(path) in endings]
    kinds = sorted({ending_of(path) for path in found})
    if len(kinds) == 1:
        _refuse_to_leave_out(folder, visible, kinds[0], ending_of)
        return found
    if any("=" in path.name for path in visible if path.is_dir()):
        raise InputError(
            f"Values stand in the names of folders here, and are not read: {folder}",
            listed(path.name for path in visible),
            "Write them as a column of files in one folder",
        )
    raise InputError(
        f"A folder of vectors holds files of one format: {folder}",
        f"files that end in {', '.join(kinds)}" if kinds else listed(p.name for p in visible),
        "Name a file in it, or a folder with files of one format",
    )


def _refuse_to_leave_out(
    folder: Where, visible: list[Where], ending: str, ending_of: Callable[[Where], str]
) -> None:
    """Refuse a folder with parts of the table that would not be read."""
    lost = [p.name for p in visible if ending_of(p) == ending and not p.exists()]
    if lost:
        raise InputError(
            f"A file of the folder is a link to nothing: {folder}",
            listed(lost),
            "Mend the link, or remove it",
        )
    deep = [
        p.name
        for p in visible
        if p.is_dir() and any(ending_of(file) == ending for file in p.rglob(f"*{ending}"))
    ]
    if deep:
        raise InputError(
            f"There are files of vectors in folders in the folder too: {folder}",
            listed(deep),
            "Name one folder that holds all files, or move the others away",
        )


class ShardedFile(VectorFile):
    """Several files as one.

    Parameters
    ----------
    folder : Path or Address
    shards : sequence of VectorFile
        Of one width, one type and the same columns.
    """

    def __init__(self, folder: Where, shards: Sequence[VectorFile]) -> None:
        self.path, self.shards = folder, tuple(shards)
        first = next((shard for shard in shards if shard.n), shards[0])
        self.d, self.stored, self.columns = first.d, first.stored, first.columns
        self.vectors, self.vector_columns = first.vectors, first.vector_columns
        self.lists, self.left_out, self.wholes = first.lists, first.left_out, first.wholes
        self.n = sum(shard.n for shard in shards)
        for shard in shards:
            if not shard.n:
                shard.d = self.d  # one without rows does not know
            ours, theirs = (
                (f.d, f.stored, f.vectors, f.vector_columns, sorted(f.columns))
                for f in (first, shard)
            )
            if ours != theirs:
                raise InputError(
                    f"The files of a folder must be parts of one table: {folder}",
                    f"{shard.path.name} with {_described(shard)}, and {first.path.name} with "
                    f"{_described(first)}",
                    "Give them the same columns",
                )
        self.starts = np.cumsum([0, *(shard.n for shard in shards)])
        self.remember()

    def blocks(self, size: int, start: int = 0) -> Iterator[tuple[int, NDArray[Any]]]:
        """Vectors in order; no block reaches into two shards; see `VectorFile`."""
        for first, shard in zip(self.starts.tolist(), self.shards, strict=False):
            if first + shard.n > start:
                for lo, X in shard.blocks(size, max(0, start - first)):
                    yield first + lo, X

    def take(self, index: NDArray[np.intp]) -> NDArray[Any]:
        """Vectors by number; only shards that hold some of them are read."""
        index = np.asarray(index, dtype=np.intp)
        found = np.empty((len(index), self.d), self.dtype)
        home = np.searchsorted(self.starts, index, side="right") - 1
        for place in np.unique(home):
            own = np.flatnonzero(home == place)
            found[own] = self.shards[place].take(index[own] - self.starts[place])
        return found

    def _column(self, name: str) -> NDArray[Any]:
        filled = [shard for shard in self.shards if shard.n] or self.shards[:1]
        text = self.fields(name)
        if text is not None:
            return typed(text)  # all together: some would be numbers in one file and codes in all
        parts = [(shard, shard.column(name)) for shard in filled]
        known = [(shard, kind) for shard, part in parts if (kind := _nature(part))]
        for shard, kind in known:
            if kind != known[0][1]:  # put together, numbers would become text: other labels
                raise other_values(name, *known[0], shard, kind)
        return np.concatenate([part for _, part in parts])

    def fields(self, name: str) -> list[str] | None:
        """The text of a column; None in a format that has types."""
        every = [shard.fields(name) for shard in self.shards]
        known = [text for text in every if text is not None]
        return None if len(known) < len(every) else [field for text in known for field in text]

    def identity(self) -> dict[str, list[Any]]:
        """Sizes and times of all shards."""
        seen = at_places(lambda shard: shard.identity(), self.shards)
        return {name: found for one in seen for name, found in one.items()}


def _nature(values: NDArray[Any]) -> str:
    """What values are; nothing where all are missing."""
    if values.dtype != object:
        return NATURES.get(values.dtype.kind, str(values.dtype))
    kinds = {_nature(np.asarray(v)) for v in values if v is not None}
    return " and ".join(sorted(kinds))


def _described(shard: VectorFile) -> str:
    return f"{shard.d} {shard.stored} in {shard.vectors!r} beside {listed(shard.columns)}"
