"""Which files can be read and written, by the ending of their name; one line for each."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tokenize import TokenError
from typing import Any

from expunge.addresses import Address, Where, at_places, where_of
from expunge.errors import InputError
from expunge.files.naming import nearest
from expunge.files.shards import ShardedFile, shard_paths
from expunge.files.table import VectorFile, unreadable
from expunge.files.vector_columns import VectorColumns

__all__ = ["FORMATS", "Format", "ending_of", "format_of", "open_file"]

DAMAGED = (UnicodeError, SyntaxError, TokenError, RecursionError, OverflowError)


@dataclass(frozen=True)
class Format:
    """How files with an ending are read and written.

    Attributes
    ----------
    name : str
    reader, writer : str
        Modules of this package, imported when they are needed: one with `open_path`, one with
        `write`, `KINDS` (types it holds, the narrow ones first) and `CARRIES` (which other columns:
        "everything", "numbers", "words" or "nothing").
    gzip : bool
        Whether the ending may be followed by ``.gz``.
    remote : bool
        Whether it is read and written at addresses too.
    table : bool
        Whether the vectors are columns, which a fit remembers by name.
    """

    name: str
    reader: str
    writer: str
    gzip: bool = False
    remote: bool = False
    table: bool = False

    def open_path(self, path: Where, vectors: Any) -> VectorFile:
        """A file of this format; a damaged head may make its parser raise anything."""
        self.check_place(path)
        if isinstance(vectors, VectorColumns) and not self.table:
            vectors = None
        try:
            found: VectorFile = _module(self.reader).open_path(path, vectors)
        except DAMAGED as error:
            raise unreadable(path, f"a file of the format {self.name}", error) from error
        return found

    def check_place(self, path: Where) -> None:
        """Refuse an address, where this format cannot be read or written there."""
        if isinstance(path, Address) and not self.remote:
            raise InputError(
                f"Of files at an address only parquet can be read and written, no {self.name}",
                str(path),
                "Copy it to this machine, or store it as parquet",
            )

    @property
    def out(self) -> Any:
        """The module that writes it."""
        return _module(self.writer)


def _module(name: str) -> Any:
    return import_module(f"expunge.files.{name}")


FORMATS: dict[str, Format] = {
    ".npy": Format("NumPy array", "npy_file", "npy_file"),
    ".npz": Format("NumPy archive", "npz_file", "npz_file"),
    ".parquet": Format("parquet", "parquet_file", "parquet_file", remote=True, table=True),
    ".arrow": Format("Arrow", "ipc_file", "ipc_file", table=True),
    ".feather": Format("Arrow", "ipc_file", "ipc_file", table=True),
    ".safetensors": Format("safetensors", "tensors_file", "tensors_file"),
    ".csv": Format("csv", "csv_file", "csv_file", gzip=True, table=True),
    ".tsv": Format("tsv", "csv_file", "tsv_file", gzip=True, table=True),
    ".txt": Format("GloVe text", "word_file", "word_file", gzip=True),
    ".vec": Format("word2vec text", "word_file", "word_text", gzip=True),
    ".bin": Format("word2vec binary", "word_file", "word_binary", gzip=True),
}


def ending_of(path: Where) -> str:
    """The ending of a name, without ``.gz`` and in lower case.

    Parameters
    ----------
    path : Path

    Returns
    -------
    str

    Examples
    --------
    >>> from pathlib import Path
    >>> from expunge.files.formats import ending_of
    >>> ending_of(Path("GoogleNews.BIN.gz"))
    '.bin'
    """
    return Path(path.name.lower().removesuffix(".gz")).suffix


def format_of(path: Where) -> Format:
    """The format that a name asks for.

    Parameters
    ----------
    path : Path

    Returns
    -------
    Format

    Raises
    ------
    InputError
        For an ending that is not known, with the nearest that is.
    """
    ending = ending_of(path)
    found = FORMATS.get(ending)
    if found is None or (path.name.lower().endswith(".gz") and not found.gzip):
        raise InputError(
            f"The ending of this name says no format that is known{nearest(ending, FORMATS)}",
            repr(path.name),
            f"Take one of {', '.join(FORMATS)}",
        )
    return found


def open_file(path: Any, vectors: Any = None) -> VectorFile:
    """A file of vectors, or a folder of such files, ready to be read by blocks.

    Parameters
    ----------
    path : str, path or Address
        Also an address that fsspec knows, as ``s3://bucket/people``, of parquet files. A folder
        holds files of one format, which are one table in the order of their names; hidden files and
        those whose name begins with ``_`` are not looked at.
    vectors : str, sequence of str or VectorColumns, optional
        Name of the array, tensor or column of lists; names of columns, or a pattern with ``*``.
        Found by itself where there is no doubt. Columns that a fit knows are taken from tables
        that have them.

    Returns
    -------
    VectorFile

    Raises
    ------
    InputError
        For what is no such file, is cut short, or leaves a doubt about where the vectors are.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from expunge.files import open_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/people.npz", X=np.eye(3, dtype=np.float16), age=[31, 24, 57])
    ...     file = open_file(f"{folder}/people.npz")
    ...     file.n, file.d, file.stored, file.columns, file.column("age").tolist()
    (3, 3, 'float16', ('age',), [31, 24, 57])
    """
    file = where_of(path)
    if file.is_dir():
        paths = shard_paths(file, [ending for ending in FORMATS if ending != ".txt"], ending_of)
        shards = at_places(lambda shard: format_of(shard).open_path(shard, vectors), paths)
        return _with_width(ShardedFile(file, shards))
    if not file.exists():
        folder = file.absolute().parent
        names = [p.name for p in folder.iterdir()] if folder.is_dir() else []
        raise InputError(
            f"There is no such file{nearest(file.name, names)}", str(file), "Check its name"
        )
    if not file.is_file():
        raise InputError("This is no file of vectors", f"{file}, a device or a pipe", "Name a file")
    return _with_width(format_of(file).open_path(file, vectors))


def _with_width(file: VectorFile) -> VectorFile:
    if file.d:
        return file
    raise InputError(
        f"The vectors have no columns: {file.path}" if file.n else f"No rows: {file.path}",
        f"{file.n} rows of width {file.d}",
        "Name a file that holds vectors",
    )
