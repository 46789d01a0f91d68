"""Rows in a file: read block by block, within a budget of memory, the next block ahead of time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from expunge.addresses import Address, where_of
from expunge.concept import Concept
from expunge.files.budget import check_memory, rows_within
from expunge.files.formats import open_file
from expunge.files.number_types import decoded, encoded
from expunge.files.read_ahead import read_ahead
from expunge.files.rewriting import rewrite
from expunge.files.table import VectorFile
from expunge.files.whole_numbers import refuse_unless_labels
from expunge.linalg import Array
from expunge.rows.base import Rows
from expunge.rows.dense import DenseRows

if TYPE_CHECKING:
    from expunge.maps import Map

__all__ = ["ChunkedRows", "open_rows"]

BFLOAT = "bfloat16"


def open_rows(path: Any, *, vectors: Any = None, memory: int | str = "1GB") -> ChunkedRows:
    """The vectors of a file, or of a folder of files, as rows that every eraser takes.

    Nothing but the head of the file is read now (of text, once all of it, to count its lines).
    Its other columns go by name wherever labels or weights are asked for.

    Parameters
    ----------
    path : str or path
        A file that ends in .npy, .npz, .parquet, .arrow, .feather, .safetensors, .csv, .tsv, .txt,
        .vec or .bin, or a folder of such files. Of parquet files also an address that fsspec
        knows, as ``s3://bucket/people``.
    vectors : str or sequence of str, optional
        Which array, tensor or column holds the vectors; several names, or a pattern with ``*``, for
        a column per entry. Found by itself where there is no doubt.
    memory : int or str
        About how much to use for blocks of rows, as "512MB".

    Returns
    -------
    ChunkedRows

    Raises
    ------
    InputError

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import expunge as ex
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 500)
    >>> X = rng.normal(size=(500, 4)) + np.outer(y, [2, 0, 0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/people.npz", vectors=X, gender=y)
    ...     rows = ex.open_rows(f"{folder}/people.npz")
    ...     eraser = ex.LEACE().fit(rows, concept="gender")
    ...     clean = eraser.transform(rows, out=f"{folder}/clean.npz")
    ...     eraser.certificate_.erased, clean.columns
    (True, ('gender',))
    """
    file = open_file(path, vectors)
    refuse_unless_labels(file.vector_columns, file.wholes, file.path.name)
    return ChunkedRows(file, memory)


class ChunkedRows(Rows):
    """Rows of a file.

    Parameters
    ----------
    file : VectorFile
    memory : int or str
        About how much to use for blocks of rows.
    """

    local = True

    def __init__(self, file: VectorFile, memory: int | str = "1GB") -> None:
        self.file, self.memory = file, check_memory(memory)
        self.columns, self.chosen = file.columns, file.chosen
        self.block_rows = rows_within(self.memory, file.d, file.dtype.itemsize)

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self.file.n

    @property
    def n_features(self) -> int:
        """Width of a row."""
        return self.file.d

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers as an array holds them."""
        return self.file.dtype

    @property
    def eps(self) -> float:
        """Distance from 1 to the next number of the type that erased rows have."""
        return 2.0**-7 if self.file.stored == BFLOAT else super().eps

    def rounded(self, A: Array) -> Array:
        """Numbers as the type of erased rows holds them, in float64."""
        if self.file.stored != BFLOAT:
            return super().rounded(A)
        return np.asarray(decoded(encoded(A, BFLOAT), BFLOAT), dtype=np.float64)

    def blocks(self) -> Iterator[tuple[int, NDArray[Any]]]:
        """All rows in order, the next block being read while this one is worked on."""
        self.file.check_unchanged()
        yield from read_ahead(self.file.blocks(self.block_rows))
        self.file.check_unchanged()

    def take(self, index: NDArray[np.intp]) -> DenseRows:
        """The rows with these numbers, in memory."""
        self.file.check_unchanged()
        return DenseRows(self.file.take(index))

    def _choosing(self, names: tuple[Any, ...]) -> ChunkedRows:
        return ChunkedRows(open_file(self.file.path, list(names)), self.memory)

    def column(self, name: str) -> NDArray[Any]:
        """Another column of the file (n,)."""
        return self.file.column(name)

    def transform(self, erasure: Map, out: Any = None, *, concept: Concept | None = None) -> Any:
        """One pass: the rows after an erasure, as an array, or as rows of a new file.

        Parameters
        ----------
        erasure : Erasure or ConditionalErasure
        out : array, str or path, optional
            Where to write: an array, or a file with all other columns, whose ending says its
            format.
        concept : Concept, optional
            Of each row, where the erasure has to be told.

        Returns
        -------
        array of shape (n, d), or ChunkedRows of the new file
        """
        if not isinstance(out, str | os.PathLike | Address):
            return super().transform(erasure, out, concept=concept)
        path = rewrite(self.file, erasure, out, concept=concept, memory=self.memory)
        names = self.file.vector_columns or self.file.vectors
        return open_rows(path, vectors=_still_named(path, names), memory=self.memory)

    def __repr__(self) -> str:
        return f"ChunkedRows({self.file!r})"


def _still_named(path: Any, names: Any) -> Any:
    """What the vectors are called in a new file, where it has names for them."""
    named = (".npz", ".parquet", ".arrow", ".feather", ".safetensors", ".csv", ".tsv")
    if isinstance(names, str) and str(path).endswith((".csv", ".tsv", ".csv.gz", ".tsv.gz")):
        return f"{names}_*"
    return names if str(path).endswith(named) or where_of(path).is_dir() else None
