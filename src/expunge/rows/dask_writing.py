"""Erased rows written by a cluster: every partition to a file of its own, then the folder as one.

Workers write whole files into a hidden folder that they share, and writing one again gives the same
bytes. The folder takes its place when all are there, so that nothing that looks complete is left by
a cluster that was lost.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.addresses import Address, Where, new_file, overlap, where_of
from expunge.concept import Concept
from expunge.errors import InputError
from expunge.files.address_folders import is_whole, still_wanted
from expunge.files.changing import checksum
from expunge.files.folder_job import FolderJob
from expunge.files.folders import fill_folder
from expunge.files.formats import FORMATS, ending_of, format_of
from expunge.files.rewriting import check_in_place, refuse_existing, rewrite
from expunge.files.table import VectorFile
from expunge.optional import require
from expunge.parallel import alone
from expunge.rows.dask_erased import erased_collection
from expunge.rows.dask_graph import each
from expunge.rows.dask_parts import FileParts, FrameParts, Parts

__all__ = ["write_parts"]

VECTORS = "vectors"  # what those of an array are called in parquet


def write_parts(
    parts: Parts,
    erasure: Any,
    out: Any,
    concept: Concept | None = None,
    told: list[Any] | None = None,
    *,
    resume: bool = False,
    in_place: bool = False,
    **settings: Any,
) -> tuple[Where, Any]:
    """Write erased rows to a folder, each partition by whoever has it.

    Parameters
    ----------
    parts : Parts
    erasure : Erasure or ConditionalErasure
    out : str or path
        The folder, or the address of one; for rows of one file, a file. Workers reach it by the
        same name.
    concept : Concept, optional
        Of all rows, where the erasure has to be told.
    told : list, optional
        Its values in each partition.
    resume : bool
        For files: whether to go on where an interrupted run left off.
    in_place : bool
        For files: whether to replace them, once all is written.
    **settings
        For files: dtype, normalize, drop and memory of `rewrite`.

    Returns
    -------
    Path or Address
    str, list of str or None
        What the vectors are called there.
    """
    if in_place and out is None and isinstance(parts, FileParts):
        out = parts.file.path
    target = where_of(out)
    if isinstance(target, Path):
        target = Path(os.path.realpath(target))
    known = None if concept is None else (concept.kind, concept.labels)
    if isinstance(parts, FileParts):
        _write_files(parts, erasure, target, known, told, resume, in_place, settings)
        return target, parts.names
    if settings or resume or in_place:
        raise InputError(
            "Settings of files are for rows of files",
            ", ".join([*settings, *["resume"] * resume, *["in_place"] * in_place]),
            "Leave them away",
        )
    lazy = erased_collection(parts, erasure, concept, told)
    framed = isinstance(parts, FrameParts)
    pieces = list(lazy.to_delayed() if framed else lazy.to_delayed().ravel())
    write, ending = (write_frame, "parquet") if framed else (write_array, "npy")
    if isinstance(target, Address):
        ending = "parquet"
    _refuse_one_file(target, f".{ending}")

    def fill(folder: Where) -> None:
        names = [folder / f"part-{number:05d}.{ending}" for number in range(len(pieces))]
        parts.runner.compute(each(write, pieces, names))

    fill_folder(FolderJob(None, target, {"parts": len(pieces)}, False, False), fill)
    if isinstance(parts, FrameParts):
        return target, parts.chosen[0] if parts.listed else list(parts.chosen)
    return target, VECTORS if isinstance(target, Address) else None


def _write_files(
    parts: FileParts,
    erasure: Any,
    target: Where,
    known: Any,
    told: list[Any] | None,
    resume: bool,
    in_place: bool,
    settings: dict[str, Any],
) -> None:
    file = parts.file
    if parts.keep is not None:
        raise InputError("Files are written with all their rows", "some of them", "Take all rows")
    if in_place:
        check_in_place(file.path, target)
    elif overlap(target, file.path):
        raise InputError(
            "The new file would be written over the one that is read, or into its folder",
            f"{target} for {file.path}",
            "Name another file",
        )
    if not file.shards:
        if isinstance(target, Address):
            refuse_existing(target)
        settings = {**settings, "in_place": in_place}
        parts.runner.compute(_rewritten(parts, [file], [target], erasure, known, told, settings))
        return
    if not in_place:
        _refuse_one_file(target, ending_of(file.shards[0].path))

    def fill(folder: Where) -> None:
        missing = [s for s in file.shards if not is_whole(folder / s.path.name, s)]
        paths = [folder / shard.path.name for shard in missing]
        parts.runner.compute(_rewritten(parts, missing, paths, erasure, known, told, settings))

    made = {
        "source": file.identity(),
        "erasure": checksum(erasure),
        "settings": [[name, str(value)] for name, value in sorted(settings.items())],
    }
    fill_folder(FolderJob(file, target, made, resume, replaces=in_place), fill)


def _refuse_one_file(target: Where, ending: str) -> None:
    """Refuse a name that asks for a file of another format: what is written is a folder."""
    if ending_of(target) in {*FORMATS} - {ending}:
        raise InputError(
            f"A cluster writes a folder of {ending} files, one for each that is read or each "
            "partition, and this is the name of a file of another format",
            str(target),
            "Name a folder; `rewrite` and --engine files put all into one file",
        )


def _rewritten(
    parts: FileParts,
    shards: Sequence[VectorFile],
    paths: Sequence[Where],
    erasure: Any,
    known: Any,
    told: list[Any] | None,
    settings: dict[str, Any],
) -> list[Any]:
    """Lazy writes, one for each shard."""
    sent = require("dask", "dask").delayed(erasure, traverse=False)
    sources = [shard.path.absolute() for shard in shards]
    own: list[Any] = [None] * len(shards)
    if told is not None:
        own = [
            [values for cut, values in zip(parts.cuts, told, strict=True) if cut[0] == source]
            for source in sources
        ]
    return each(
        rewrite_shard,
        sources,
        [parts.names] * len(shards),
        [sent] * len(shards),
        paths,
        [known] * len(shards),
        own,
        [settings] * len(shards),
        [parts.file.d] * len(shards),
        [bool(parts.file.shards)] * len(shards),
    )


def rewrite_shard(
    source: Where,
    names: Any,
    erasure: Any,
    target: Where,
    known: Any,
    told: Sequence[NDArray[Any]] | None,
    settings: dict[str, Any],
    n_features: int,
    in_folder: bool,
) -> str:
    """Write one file with its vectors erased; gives its name."""
    file, concept = format_of(source).open_path(source, names), None
    if not file.n:
        file.d = n_features  # one without rows does not know
    if known is not None and told is not None:
        kind, labels = known
        values = np.concatenate(list(told)) if told else np.zeros(0)
        codes = values.astype(np.intp if kind == "classes" else np.float64)
        concept = Concept(kind, codes, labels)
    with alone(), still_wanted(target) if in_folder else nullcontext():
        rewrite(file, erasure, target, concept=concept, replace_remote=True, **settings)
    return target.name


def write_frame(frame: Any, path: Where) -> str:
    """Write a partition of a frame as a parquet file; gives its name."""
    return _write_table(require("pyarrow", "parquet").Table.from_pandas(frame), path)


def write_array(X: NDArray[Any], path: Where) -> str:
    """Write a chunk of an array as an npy file, or at an address as parquet; gives its name."""
    if isinstance(path, Address):
        pa = require("pyarrow", "parquet")
        lists = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1])
        return _write_table(pa.table({VECTORS: lists}), path)
    with new_file(path) as stream:
        np.save(stream, X)
    return path.name


def _write_table(table: Any, path: Where) -> str:
    with still_wanted(path), new_file(path) as stream:
        require("pyarrow.parquet", "parquet").write_table(table, stream)
    return path.name
