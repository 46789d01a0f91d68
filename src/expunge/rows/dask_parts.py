"""Vectors in partitions: those of a Dask Array, of a Dask DataFrame, or of files.

Each says how wide its vectors are and gives every partition as a lazy array, and likewise the
columns beside the vectors. Nothing is read before it is asked for, and nothing is kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.addresses import Where
from expunge.errors import InputError
from expunge.files.formats import ending_of, format_of, open_file
from expunge.files.naming import check_name, choose_columns, listed
from expunge.files.table import VectorFile
from expunge.files.vector_columns import VectorColumns
from expunge.files.whole_numbers import (
    beside_fractions,
    refuse_few_fractions,
    refuse_unless_labels,
)
from expunge.optional import require
from expunge.parallel import SPAN
from expunge.rows.dask_graph import Recipe, Runner, each

__all__ = [
    "ArrayParts",
    "ChangedParts",
    "FileCut",
    "FileParts",
    "FrameParts",
    "PartedColumn",
    "Parts",
    "frame_matrix",
    "unmasked",
]

NAMED = (".npz", ".parquet", ".arrow", ".feather", ".safetensors", ".csv", ".tsv")
BYTES = 1 << 26  # of vectors in a partition of a file, about: 64 MB


class Parts(ABC):
    """Vectors in partitions.

    Attributes
    ----------
    runner : Runner
    n_features : int
    dtype : dtype
    columns : tuple of str
        What there is beside the vectors, by name.
    known_as : VectorColumns or None
        Which columns of a table the vectors are.
    """

    runner: Runner
    n_features: int
    dtype: np.dtype[Any]
    columns: tuple[str, ...] = ()
    known_as: VectorColumns | None = None

    @cached_property
    @abstractmethod
    def vectors(self) -> list[Any]:
        """Lazy arrays (k, d), or recipes of them, one for each partition."""

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Rows of each partition; where nobody knows, they are counted, once."""
        return tuple(self.runner.compute(each(len, self.vectors)))

    def choosing(self, names: Sequence[Any]) -> Parts:
        """The same partitions with other columns as vectors."""
        return self

    def some(self, index: NDArray[np.intp]) -> Parts:
        """Some of the rows, by their numbers, ascending."""
        raise InputError("Only of files can some rows be taken", type(self).__name__, "Take all")

    def column(self, name: str) -> list[Any]:
        """Lazy arrays (k,) of another column."""
        raise InputError("These rows have no columns", repr(name), "Pass the values themselves")


class ArrayParts(Parts):
    """A Dask Array of shape (n, d): its chunks of rows.

    Parameters
    ----------
    X : dask.array.Array
        Chunks of columns are put together, lazily.
    runner : Runner
    """

    def __init__(self, X: Any, runner: Runner) -> None:
        if X.dtype.kind not in "fiub":
            raise InputError(
                "X is not numeric", f"a Dask Array of type {X.dtype}", "Pass X.astype(float)"
            )
        X = unmasked(X)
        self.X = X.rechunk({1: -1}) if len(X.chunks[1]) > 1 else X
        self.runner, self.n_features, self.dtype = runner, int(X.shape[1]), np.dtype(X.dtype)

    @cached_property
    def vectors(self) -> list[Any]:
        """Lazy arrays (k, d)."""
        return list(self.X.to_delayed().ravel())

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Rows of each chunk; unknown ones are counted."""
        known = self.X.chunks[0]
        if not any(np.isnan(size) for size in known):
            return tuple(int(size) for size in known)
        return tuple(self.runner.compute(each(len, self.vectors)))


def unmasked(X: Any) -> Any:
    """A Dask Array without a mask, which refuses masked entries when it is computed.

    Parameters
    ----------
    X : dask.array.Array

    Returns
    -------
    dask.array.Array
        Any that is not masked is given back as it is.
    """
    if not isinstance(X._meta, np.ma.MaskedArray):
        return X
    return X.map_blocks(_unmasked_chunk, dtype=X.dtype, meta=np.asarray(X._meta))


def _unmasked_chunk(X: NDArray[Any]) -> NDArray[Any]:
    if hidden := int(np.ma.getmaskarray(X).sum()):
        raise InputError(
            "A Dask Array has masked entries",
            f"{hidden} masked of {X.size} in a chunk",
            "Fill them, e.g. by dask.array.ma.filled(X, 0), or drop those rows first",
        )
    return np.asarray(X)


class ChangedParts(Parts):
    """Vectors of other partitions after a change.

    Parameters
    ----------
    parts : Parts
        The others.
    vectors : list of Delayed
        Of arrays (k, d).
    n_features : int
    dtype : dtype
    """

    def __init__(
        self, parts: Parts, vectors: list[Any], n_features: int, dtype: np.dtype[Any]
    ) -> None:
        self.parts, self.runner, self._vectors = parts, parts.runner, vectors
        self.n_features, self.dtype = n_features, dtype

    @cached_property
    def vectors(self) -> list[Any]:
        """Lazy arrays (k, d)."""
        return self._vectors

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Rows of each partition."""
        return self.parts.sizes


class FrameParts(Parts):
    """A Dask DataFrame: columns of numbers or one column of lists, and what is beside them.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
    runner : Runner
    vectors : str or sequence of str, optional
        Which columns, as in `open_rows`.
    named : sequence of str, optional
        Columns that are something else, as the concept. Where all others are numbers, these are the
        vectors, as of a frame in memory; else those of them that `open_rows` would take, which is
        also what None, that nobody knows yet, gives.
    """

    def __init__(
        self, frame: Any, runner: Runner, vectors: Any = None, named: Sequence[str] | None = None
    ) -> None:
        self.frame, self.runner = frame, runner
        names = [str(name) for name in frame.columns]
        _refuse_twice(names)
        meta = frame._meta
        self.keys = dict(zip(names, frame.columns, strict=True))
        kinds = {name: meta.dtypes.iloc[at] for at, name in enumerate(names)}
        maybe = [name for name, kind in kinds.items() if _may_hold_lists(kind)]
        first = self._first_row(
            [vectors] if isinstance(vectors, str) and vectors in maybe else maybe
        )
        free = [name for name in names if name not in (named or ())]
        lists = [name for name in maybe if _is_list(first.get(name))]
        floats = [name for name in free if getattr(kinds[name], "kind", "") == "f"]
        numbers = {
            name: name in lists or (getattr(kind, "kind", "") in "fiub" and name not in maybe)
            for name, kind in kinds.items()
        }
        plain = [name for name in free if numbers[name] and name not in lists]
        own = [name for name in lists if name in free]
        if vectors is None and named is not None and plain and plain == free:
            vectors = plain  # nothing but numbers beside the concept
        elif not own and not floats:
            floats = plain  # nothing but whole numbers
        try:
            chosen = choose_columns(own, floats, numbers, vectors, "the frame")
        except InputError:
            self._refuse_lists_as_text([name for name in free if not numbers[name]])
            raise
        self.listed = chosen[0] in lists
        if not self.listed:
            whole = [name for name in plain if getattr(kinds[name], "kind", "") in "iu"]
            refuse = refuse_unless_labels if named is None else refuse_few_fractions
            refuse(chosen, beside_fractions(whole, chosen, vectors), "the frame")
        self.chosen = tuple(chosen)
        self.known_as = VectorColumns(tuple(self.keys[name] for name in chosen), lists=self.listed)
        self.columns = tuple(name for name in names if name not in {*chosen})
        if self.listed:
            sample = np.asarray(first[chosen[0]])
            inner = getattr(kinds[chosen[0]], "pyarrow_dtype", None)  # of a list of Arrow
            if inner is not None:
                kind = np.dtype(inner.value_type.to_pandas_dtype())
            else:  # after a list of whole numbers, others may have fractions
                kind = sample.dtype if sample.dtype.kind == "f" else np.dtype(np.float64)
            self.n_features, self.dtype = int(sample.size), kind
        else:
            self.n_features = len(chosen)
            types = [getattr(kinds[name], "numpy_dtype", kinds[name]) for name in chosen]
            self.dtype = np.dtype(np.result_type(*types))

    def choosing(self, names: Sequence[Any]) -> FrameParts:
        """The same partitions with other columns as vectors."""
        return FrameParts(self.frame, self.runner, [str(name) for name in names])

    def _refuse_lists_as_text(self, names: Sequence[str]) -> None:
        """Refuse lists that Dask has made text of, which it does when it takes over a frame."""
        for name, value in self._first_row(names).items():
            if isinstance(value, str) and value.startswith("["):
                raise InputError(
                    f"The column {name!r} holds lists as text: Dask makes text of columns of "
                    "objects",
                    f"{value[:40]!r} in the first row",
                    'Call dask.config.set({"dataframe.convert-string": False}) before the frame '
                    "is made, or give the column a type of Arrow, or pass a Dask Array",
                )

    def _first_row(self, names: Sequence[str]) -> dict[str, Any]:
        """The first row of some columns, from the first partition that has one."""
        if not names:
            return {}
        part = self.frame[[self.keys[name] for name in names]]
        for lazy in part.to_delayed():
            (head,) = self.runner.compute(each(_head, [lazy]))
            if len(head):
                return {name: head.iloc[0, at] for at, name in enumerate(names)}
        return {}

    @cached_property
    def vectors(self) -> list[Any]:
        """Lazy arrays (k, d)."""
        part = self.frame[[self.keys[name] for name in self.chosen]].to_delayed()
        count = len(part)
        shape = (self.listed, self.n_features, self.dtype)
        return each(frame_matrix, part, range(count), *([value] * count for value in shape))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Rows of each partition, counted by its index alone."""
        return tuple(self.runner.compute(each(len, self.frame[[]].to_delayed())))

    def column(self, name: str) -> list[Any]:
        """Lazy arrays (k,) of another column."""
        key = self.keys[check_name(name, self.columns, "column", "the frame")]
        return each(series_values, self.frame[key].to_delayed())


def _refuse_twice(names: Sequence[str]) -> None:
    """Refuse columns that cannot be told apart by name."""
    if twice := sorted(name for name, times in Counter(names).items() if times > 1):
        raise InputError(
            "The frame has several columns of the same name",
            listed(twice),
            "Give every column a name of its own, as text too",
        )


def _head(frame: Any) -> Any:
    return frame.iloc[:1]


def _may_hold_lists(kind: Any) -> bool:
    """Whether a column of this type may hold lists: objects, or lists of Arrow."""
    return kind == np.dtype(object) or "list" in str(kind)


def _is_list(value: Any) -> bool:
    if value is None or isinstance(value, str | bytes | dict):
        return False
    found = np.asarray(value)
    return found.ndim == 1 and found.size > 0 and found.dtype.kind in "fiu"


def frame_matrix(
    frame: Any, number: int, listed: bool, n_features: int, dtype: np.dtype[Any]
) -> NDArray[Any]:
    """The vectors of a partition of a frame.

    Parameters
    ----------
    frame : pandas.DataFrame
        Of the columns of the vectors alone.
    number : int
        Of the partition, for messages.
    listed : bool
        Whether they are lists in one column.
    n_features : int
    dtype : dtype

    Returns
    -------
    array of shape (k, d)

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from expunge.rows.dask_parts import frame_matrix
    >>> frame_matrix(pd.DataFrame({"v": [[1.0, 2.0], [3.0, 4.0]]}), 0, True, 2, np.dtype(float))
    array([[1., 2.],
           [3., 4.]])
    """
    if not listed:
        if dtype.kind != "f" and _has_gaps(frame):
            dtype = np.dtype(np.float64)  # NaN, which is refused by whoever reads it
        return np.ascontiguousarray(frame.to_numpy(dtype=dtype, na_value=np.nan))
    values = _listed(frame.iloc[:, 0])
    if not values:
        return np.empty((0, n_features), dtype)
    try:
        found = np.array(values, dtype=dtype)
        if found.shape == (len(values), n_features):
            return found
    except (TypeError, ValueError):
        pass  # said below, with the row
    fits = [_is_list(value) and len(value) == n_features for value in values]
    odd = fits.index(False) if False in fits else 0
    raise InputError(
        f"Every vector must be a list of {n_features} numbers, as the first one is",
        f"row {odd} of partition {number}: {str(values[odd])[:60]}",
        "Drop this row, or mend it",
    )


def _has_gaps(frame: Any) -> bool:
    """Whether columns that are said to be whole numbers or booleans hold something else."""
    kinds = list(frame.dtypes)
    if any(kind.kind == "f" for kind in kinds):
        return True
    nullable = [at for at, kind in enumerate(kinds) if not isinstance(kind, np.dtype)]
    return bool(frame.iloc[:, nullable].isna().to_numpy().any())


def _listed(column: Any) -> list[Any]:
    """The lists of a column; those of Arrow as the arrays behind them."""
    if getattr(column.dtype, "pyarrow_dtype", None) is None:
        return list(column)
    pieces = column.array.__arrow_array__()
    pieces = getattr(pieces, "chunks", [pieces])
    lists = [piece for piece in pieces if len(piece)]
    if any(piece.null_count for piece in lists):
        return list(column)
    return [
        row
        for piece in lists
        for row in np.split(
            piece.flatten().to_numpy(zero_copy_only=False),
            np.cumsum(piece.value_lengths().to_numpy(zero_copy_only=False))[:-1],
        )
    ]


def series_values(series: Any) -> NDArray[Any]:
    """A column of a partition as an array: numbers as they are, anything else as objects."""
    found = series.to_numpy()
    return np.asarray(found if found.dtype.kind in "fiub" else series.astype(object).to_numpy())


class FileParts(Parts):
    """Files of vectors that every worker can read: runs of rows of each file.

    Parameters
    ----------
    file : VectorFile
        A file, or a folder of files.
    runner : Runner
    size : int
        About how many bytes of vectors to read at once.
    keep : bool array of shape (n,), optional
        Which rows these are; all by default.
    """

    def __init__(
        self,
        file: VectorFile,
        runner: Runner,
        size: int = BYTES,
        keep: NDArray[np.bool_] | None = None,
    ) -> None:
        self.file, self.runner, self.columns, self.size = file, runner, file.columns, size
        self.n_features, self.dtype, self.known_as = file.d, file.dtype, file.chosen
        named = ending_of((file.shards or (file,))[0].path) in NAMED
        self.names = (list(file.vector_columns) or file.vectors) if named else None
        rows = max(1, size // (file.d * file.dtype.itemsize))
        self.cuts = [
            (shard.path.absolute(), lo, hi)  # workers may be elsewhere
            for shard in file.shards or (file,)
            for lo, hi in _cuts(shard, rows)
        ]
        ends = np.cumsum([hi - lo for _, lo, hi in self.cuts])
        self.keep = keep
        self.kept: list[KeptRows | None] = [None] * len(self.cuts)
        if keep is not None:
            self.kept = [KeptRows.of(part) for part in np.split(keep, ends[:-1])]

    def some(self, index: NDArray[np.intp]) -> FileParts:
        """Some of the rows, by their numbers, ascending."""
        every = np.arange(self.file.n) if self.keep is None else np.flatnonzero(self.keep)
        keep = np.zeros(self.file.n, bool)
        keep[every[index]] = True
        return FileParts(self.file, self.runner, self.size, keep)

    def choosing(self, names: Sequence[Any]) -> FileParts:
        """The same files with other columns as vectors."""
        file = open_file(self.file.path, list(names))
        return FileParts(file, self.runner, self.size, self.keep)

    @cached_property
    def vectors(self) -> list[Any]:
        """Lazy arrays (k, d)."""
        return self._pieces(None)

    def _pieces(self, column: str | None) -> list[Any]:
        return [
            FileCut(path, self.names, lo, hi, column, kept)
            for (path, lo, hi), kept in zip(self.cuts, self.kept, strict=True)
        ]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Rows of each partition, known from the files."""
        return tuple(map(len, self.vectors))

    def column(self, name: str) -> list[Any]:
        """Lazy arrays (k,) of another column."""
        name = check_name(name, self.columns, "column", self.file.path.name)
        return self._pieces(name)


def _cuts(shard: VectorFile, rows: int) -> list[tuple[int, int]]:
    """Runs of about so many rows; of parquet and Arrow, whole groups of them where these fit."""
    ends, cuts, lo, at = [], [], 0, 0
    for group in getattr(shard, "groups", None) or (shard.n,):
        steps = max(1, round(group / rows))
        ends += [at + group * (step + 1) // steps for step in range(steps)]
        at += group
    for end, after in zip(ends, [*ends[1:], None], strict=True):
        if end > lo and (after is None or after - lo > rows):
            cuts.append((lo, end))
            lo = end
    return cuts


@dataclass(frozen=True)
class KeptRows:
    """Which rows of a run are kept, in a bit for each.

    Attributes
    ----------
    bits : bytes
    n, count : int
        Rows of the run, and those kept.
    """

    bits: bytes
    n: int
    count: int

    @classmethod
    def of(cls, keep: NDArray[np.bool_]) -> KeptRows:
        """From a mask of shape (n,)."""
        return cls(np.packbits(keep).tobytes(), len(keep), int(keep.sum()))

    def mask(self) -> NDArray[np.bool_]:
        """A mask of shape (n,)."""
        return np.unpackbits(np.frombuffer(self.bits, np.uint8), count=self.n).astype(bool)


@dataclass(frozen=True)
class FileCut(Recipe):
    """A run of rows of a file, or some of these: their vectors, or another column.

    Attributes
    ----------
    path : Path or Address
    names : str, list of str or None
        Where the vectors are.
    first, last : int
        Rows.
    column : str or None
    kept : KeptRows or None
        Which of the rows; all by default.
    """

    path: Where
    names: Any
    first: int
    last: int
    column: str | None = None
    kept: KeptRows | None = None

    def make(self) -> NDArray[Any]:
        """An array of shape (k, d), or (k,) for a column."""
        file = format_of(self.path).open_path(self.path, self.names)
        if self.column is not None:
            values = file.column(self.column)[self.first : self.last]
            return values if self.kept is None else values[self.kept.mask()]
        found = np.empty((len(self), file.d), file.dtype)
        for start, X in self.blocks():
            found[start : start + len(X)] = X
        return found

    def __len__(self) -> int:
        return self.last - self.first if self.kept is None else self.kept.count

    def blocks(self) -> Iterator[tuple[int, NDArray[Any]]]:
        """The vectors some thousand at a time, with the number of the first among these."""
        if self.kept is None:
            yield from self._all()
            return
        mask, at = self.kept.mask(), 0
        for start, X in self._all():
            some = X[mask[start : start + len(X)]]
            if len(some):
                yield at, some
            at += len(some)

    def _all(self) -> Iterator[tuple[int, NDArray[Any]]]:
        file = format_of(self.path).open_path(self.path, self.names)
        for start, X in file.blocks(SPAN, self.first):
            yield start - self.first, X[: self.last - start]
            if start + len(X) >= self.last:
                return


@dataclass(frozen=True, eq=False)
class PartedColumn:
    """Values of all rows, an array for each partition, which stay where they are.

    Attributes
    ----------
    parts : list of Delayed
        Of arrays of shape (k,).
    sizes : tuple of int
        Their lengths.
    runner : Runner
    """

    parts: list[Any]
    sizes: tuple[int, ...]
    runner: Runner

    def __len__(self) -> int:
        return sum(self.sizes)

    @property
    def shape(self) -> tuple[int]:
        """As of an array."""
        return (len(self),)

    @property
    def ndim(self) -> int:
        """As of an array."""
        return 1

    def __getitem__(self, index: NDArray[np.intp]) -> PartedColumn:
        """Values of some rows, by their numbers, ascending; they stay there too."""
        starts = np.cumsum([0, *self.sizes])
        cuts = np.searchsorted(index, starts)
        own = [index[lo:hi] - start for lo, hi, start in zip(cuts, cuts[1:], starts, strict=False)]
        sizes = tuple(map(len, own))
        return PartedColumn(each(_some, self.parts, own), sizes, self.runner)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """All values, here: for whoever asks NumPy for them."""
        return np.asarray(self.gather(), dtype)

    def each(self, work: Callable[[NDArray[Any]], NDArray[Any]]) -> PartedColumn:
        """What a function gives of the values of each partition, one for each; lazily."""
        return PartedColumn(each(work, self.parts), self.sizes, self.runner)

    def gather(self) -> NDArray[Any]:
        """All values as one array, here."""
        found = list(self.runner.stream(self.parts, ahead=8))
        return np.concatenate([part for part in found if len(part)] or found)


def _some(values: NDArray[Any], index: NDArray[np.intp]) -> NDArray[Any]:
    return values[index]


def collection(X: Any) -> str:
    """What a Dask collection is: "Array", "DataFrame" or "Series".

    Parameters
    ----------
    X : Dask collection

    Returns
    -------
    str
    """
    array = require("dask.array", "dask").Array
    return "Array" if isinstance(X, array) else "DataFrame" if X.ndim == 2 else "Series"
