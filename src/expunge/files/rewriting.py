"""A file of vectors written anew: erased, in another type or format, whole or not at all."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from expunge.addresses import Address, Where, new_file, overlap, where_of
from expunge.errors import InputError
from expunge.files.budget import check_memory, rows_within
from expunge.files.changing import Changing, checksum, map_of
from expunge.files.folder_job import FolderJob
from expunge.files.folders import write_folder
from expunge.files.formats import Format, ending_of, format_of, open_file
from expunge.files.naming import listed
from expunge.files.number_types import array_type, check_type, widened
from expunge.files.table import Order, VectorFile

__all__ = ["check_in_place", "convert", "refuse_existing", "rewrite"]

Progress = Callable[[int, int], None]
LEVEL = 6  # of gzip
BLOCK = 1 << 24  # bytes at once: memory for more is given back to the system after every block


def convert(
    source: Any,
    target: Any,
    *,
    vectors: Any = None,
    dtype: Any = None,
    normalize: bool = False,
    drop: bool = False,
    resume: bool = False,
    in_place: bool = False,
    memory: int | str = "1GB",
    progress: Progress | None = None,
) -> Where:
    """The same vectors in another format or type.

    Parameters
    ----------
    source, target, vectors, dtype, normalize, drop, resume, in_place, memory, progress
        As in `rewrite`.

    Returns
    -------
    Path or Address
        The target.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from expunge.files import convert
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/rows.npy", np.eye(2, dtype=np.float32))
    ...     path = convert(f"{folder}/rows.npy", f"{folder}/rows.csv")
    ...     print(path.read_text())
    vectors_0,vectors_1
    1.0,0.0
    0.0,1.0
    <BLANKLINE>
    """
    return rewrite(
        source,
        None,
        target,
        vectors=vectors,
        dtype=dtype,
        normalize=normalize,
        drop=drop,
        resume=resume,
        in_place=in_place,
        memory=memory,
        progress=progress,
    )


def rewrite(
    source: Any,
    erasure: Any,
    target: Any = None,
    *,
    concept: Any = None,
    vectors: Any = None,
    dtype: Any = None,
    normalize: bool = False,
    drop: bool = False,
    resume: bool = False,
    in_place: bool = False,
    memory: int | str = "1GB",
    progress: Progress | None = None,
    replace_remote: bool = False,
) -> Where:
    """Write a file anew with its vectors erased; everything else stays as it is.

    Rows are read, erased and written block by block. The new file is written beside its target and
    takes its place when it is whole, so that whatever goes wrong leaves what was there before. A
    folder of shards becomes a folder of shards with the same names, unless the target has the
    ending of another format. At an address nothing that is there is replaced.

    Parameters
    ----------
    source : str, path, VectorFile or rows of a file
        Never changed, unless `in_place`. Parquet files may be at an address, ``s3://bucket/x``.
    erasure : Erasure, ConditionalErasure, fitted eraser or None
        None leaves the vectors as they are.
    target : str or path
        Its ending says the format. It may be left out with `in_place`. Also an address.
    concept : str, list of str, array of shape (n,) or (n, m), or mapping of such, optional
        The concept of each row, for an erasure that has to be told; text names columns.
    vectors : str or sequence of str, optional
        Which vectors, as in `open_file`; by default the columns of the fit.
    dtype : str or dtype, optional
        "float16", "bfloat16", "float32" or "float64"; by default the type stays, and whole numbers
        that are erased or scaled become float64.
    normalize : bool
        Whether to scale every new vector to length 1; vectors of zeros stay.
    drop : bool
        Whether columns that the target's format cannot hold may be lost.
    resume : bool
        Whether to go on where an interrupted run on a folder left off; refused if the source, the
        erasure or the settings are not the same.
    in_place : bool
        Whether to replace the source, once all is written.
    memory : int or str
        About how much of it to use, as "512MB".
    progress : function of (rows done, rows), optional
    replace_remote : bool
        Whether a file at an address may be replaced: for a worker that writes it once more.

    Returns
    -------
    Path or Address
        The target.

    Raises
    ------
    InputError
        For NaN or infinity, a file that is cut short or changed meanwhile, columns that would be
        lost, or a target that is the source; with the place. The target is untouched then.
    OSError
        When the disk is full, say.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import expunge as ex
    >>> from expunge.files import rewrite
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/rows.npy", np.array([[3.0, 4.0], [1.0, 2.0]], np.float16))
    ...     erasure = ex.Erasure([[1.0], [0.0]], [[1.0, 0.0]])
    ...     np.load(rewrite(f"{folder}/rows.npy", erasure, f"{folder}/clean.npy"))
    array([[0., 4.],
           [0., 2.]], dtype=float16)
    """
    source = getattr(source, "file", source)
    asked = getattr(map_of(erasure), "columns", None) if vectors is None else vectors
    file = source if isinstance(source, VectorFile) else open_file(source, asked)
    to = _target(file, target, in_place)
    folder = bool(file.shards) and ending_of(to) in ("", ending_of(file.shards[0].path))
    made = format_of(file.shards[0].path) if folder else format_of(to)
    made.check_place(to)
    if isinstance(to, Address) and not (folder or replace_remote):
        refuse_existing(to)
    moved = erasure is None and not normalize
    kind = _kind(file, made, dtype, moved=moved)
    columns = _carried(file, made, drop)
    budget = check_memory(memory)
    changing = Changing(file, erasure, concept, kind, normalize, progress)
    size = max(array_type(kind).itemsize, file.dtype.itemsize)
    most = rows_within(budget, file.d, size, most=None)
    rows = min(most, max(1, BLOCK // (file.d * size)))
    order = Order(changing, kind, rows, most, moved)
    with _placed(changing, to):
        if folder:
            settings = {
                "source": file.identity(),
                "erasure": checksum(erasure, concept),
                "settings": [kind, normalize, list(columns), budget],
            }
            job = FolderJob(file, to, settings, resume, replaces=in_place)
            write_folder(job, lambda shard, at, path: _write(made, shard, order, columns, at, path))
        else:
            _write(made, file, order, columns, 0, to)
    return where_of(target) if target is not None else to


def _write(
    made: Format,
    file: VectorFile,
    order: Order,
    columns: tuple[str, ...],
    at: int,
    target: Where,
) -> None:
    """Write one file, whose first row has the number `at`."""
    file.check_unchanged()
    own = replace(order, change=lambda start, X: order.change(at + start, X))
    with new_file(target) as stream, _packed(stream, target) as out:
        made.out.write(out, file, own if at else order, columns)
        file.check_unchanged()


@contextmanager
def _packed(stream: IO[bytes], target: Where) -> Iterator[IO[bytes]]:
    if not target.name.lower().endswith(".gz"):
        yield stream
        return
    with gzip.GzipFile("", "wb", LEVEL, stream, mtime=0) as out:
        yield out  # type: ignore[misc]


@contextmanager
def _placed(changing: Changing, target: Where) -> Iterator[None]:
    """Say of an error of the system how far things had come."""
    try:
        yield
    except InputError:
        raise
    except OSError as error:
        if error.filename == str(target):  # nothing was begun
            raise
        why = error.strerror or str(error)
        where = f"row {changing.done} of {changing.n}"
        raise OSError(
            error.errno, f"{why}, at {where}; nothing was replaced", str(target)
        ) from error


def refuse_existing(target: Address) -> None:
    """Refuse to write a file where there is something already.

    Parameters
    ----------
    target : Address
    """
    if target.exists():
        raise InputError(
            "There is something at this address already, and nothing is written over",
            str(target),
            "Name a new file, or remove this one first",
        )


def check_in_place(source: Where, target: Where) -> None:
    """Refuse to replace what is at an address, or another file than the one that is read.

    Parameters
    ----------
    source, target : Path or Address
    """
    if isinstance(source, Address):
        raise InputError(
            "What is at an address is not replaced", str(source), "Name a new place to write to"
        )
    if _real(target) != _real(source):
        raise InputError(
            "in_place=True replaces the source, and this is another file",
            str(target),
            "Leave out one of the two",
        )


def _real(place: Where) -> Where:
    return Path(os.path.realpath(place)) if isinstance(place, Path) else place


def _target(file: VectorFile, target: Any, in_place: bool) -> Where:
    source = _real(file.path)
    if target is None and not in_place:
        raise InputError("There is nothing to write to", "no target", "Pass the name of a new file")
    to = source if target is None else _real(where_of(target))
    if in_place:
        check_in_place(source, to)
        return to
    if overlap(to, source):
        raise InputError(
            "The new file would be written over the one that is read, or into its folder",
            f"{target} for {file.path}",
            "Name another file, or pass in_place=True to replace it once all is written",
        )
    if isinstance(to, Path) and any(overlap(to, shard.path) for shard in file.shards):
        raise InputError(
            "The new file would be written over one that is read",
            f"{target} for {file.path}",
            "Name another file",
        )
    return to


def _kind(file: VectorFile, made: Format, dtype: Any, *, moved: bool) -> str:
    floating = file.stored == "bfloat16" or file.dtype.kind == "f"
    kind = file.stored if floating or moved else "float64"
    if dtype is not None:
        kind = check_type(dtype)
    held = made.out.KINDS
    if not floating and moved and dtype is None and made.out.CARRIES != "words":
        return kind  # whole numbers that are only moved
    found = kind if kind in held else (widened(kind, held) if dtype is None else None)
    if found is None:
        raise InputError(
            f"A file of the format {made.name} cannot hold numbers of the type {kind}",
            f"vectors of type {file.stored}",
            f"Pass dtype={held[-1]!r}",
        )
    return str(found)


def _carried(file: VectorFile, made: Format, drop: bool) -> tuple[str, ...]:
    carries = made.out.CARRIES
    kept = file.columns
    if carries == "nothing":
        kept = ()
    elif carries == "words":
        kept = tuple(name for name in kept if name == "word")
        if not kept:
            raise InputError(
                f"A file of the format {made.name} needs a word for each vector",
                f"the columns {listed(file.columns)}",
                "Call the column of the words 'word', or take another format",
            )
    elif carries == "numbers" and type(file).__module__ != made.out.__name__:
        kept = tuple(name for name in kept if file.column(name).dtype.kind in "fiub")
    lost = [name for name in file.columns if name not in kept]
    if lost and not drop:
        raise InputError(
            f"A file of the format {made.name} cannot hold all columns: some would be lost",
            f"the columns {listed(lost)}",
            "Pass drop=True if they may be, or take another format",
        )
    return kept
