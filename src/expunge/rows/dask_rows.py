"""Rows on a cluster: partitions of a Dask collection, or of files, worked on where they are.

Sums of partitions are merged as a tree. What comes here is as small as they are; what goes there is
a model, and the labels where they are not there already. Rows come here only when they are asked
for: some by number, or all of them as a stream.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from expunge.addresses import Address, Where
from expunge.concept import Concept
from expunge.errors import InputError
from expunge.files.formats import open_file
from expunge.files.whole_numbers import refuse_unless_labels
from expunge.fingerprint import Fingerprint
from expunge.linalg import Array
from expunge.moments import Moments
from expunge.optional import require
from expunge.parallel import alone
from expunge.rows.base import GlmPass, Reading, Rows
from expunge.rows.dask_erased import erased_collection
from expunge.rows.dask_graph import Runner, each, tree
from expunge.rows.dask_parts import (
    ArrayParts,
    ChangedParts,
    FileParts,
    FrameParts,
    PartedColumn,
    Parts,
    collection,
    series_values,
    unmasked,
)
from expunge.rows.dask_writing import write_parts
from expunge.rows.dense import DenseRows
from expunge.rows.part_sums import (
    Model,
    Place,
    ReadingJob,
    add_up,
    codes_of,
    glm_part,
    hessian_part,
    join_readers,
    read_part,
    take_part,
    work_part,
)
from expunge.rows.reading import Reader

if TYPE_CHECKING:
    from expunge.game.losses import Loss
    from expunge.maps import Map

__all__ = ["DaskRows", "cluster_rows"]

T = TypeVar("T")
AHEAD = 8  # partitions whose results are made while one is used


def cluster_rows(X: Any, *, vectors: Any = None, client: Any = None) -> DaskRows:
    """Vectors of a Dask collection, or of files that all workers can read, as rows.

    Erasers take Dask collections as they are; this is for those who want to say which column holds
    the vectors, or which cluster is to work, or to begin with files.

    Parameters
    ----------
    X : dask.array.Array of shape (n, d), dask.dataframe.DataFrame, str or path
        A path is that of a file or a folder of files, as `open_rows` reads them, or the address of
        parquet files, as ``s3://bucket/people``.
    vectors : str or sequence of str, optional
        Of a frame or a file: the column of lists, or the columns of numbers; a pattern with ``*``
        stands for several. Found by itself where there is no doubt.
    client : distributed.Client, optional
        Whoever is to work. Without it the current client does; without any, threads here.

    Returns
    -------
    DaskRows

    Raises
    ------
    InputError

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> import expunge as ex
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 1000)
    >>> X = da.from_array(rng.normal(size=(1000, 4)) + np.outer(y, [2, 0, 0, 1]), chunks=(300, 4))
    >>> rows = ex.cluster_rows(X)
    >>> eraser = ex.LEACE().fit(rows, y)
    >>> clean = eraser.transform(rows)
    >>> eraser.certificate_.erased, clean.chunks
    (True, ((300, 300, 300, 100), (4,)))
    """
    runner = Runner(client)
    if isinstance(X, str | os.PathLike | Address):
        require("dask", "dask")
        file = open_file(X, vectors)
        refuse_unless_labels(file.vector_columns, file.wholes, file.path.name)
        return DaskRows(FileParts(file, runner))
    kind = collection(X)
    if kind == "DataFrame":
        return DaskRows(FrameParts(X, runner, vectors))
    if kind == "Array" and X.ndim == 2 and vectors is None:
        return DaskRows(ArrayParts(X, runner))
    raise InputError(
        "Rows on a cluster are a Dask Array of two dimensions, a Dask DataFrame or a path",
        f"a Dask {kind} of {X.ndim} dimension{'s' * (X.ndim > 1)}, vectors={vectors!r}",
        "Pass one row per vector",
    )


class DaskRows(Rows):
    """Rows in partitions that Dask works on.

    Parameters
    ----------
    parts : Parts
    """

    lazy = far = True

    def __init__(self, parts: Parts) -> None:
        self.parts, self.runner, self.columns = parts, parts.runner, parts.columns
        self.chosen = parts.known_as
        self._known: dict[int, tuple[Any, list[Any]]] = {}

    @property
    def n_samples(self) -> int:
        """Number of rows; of partitions of unknown length they are counted once."""
        return int(self.starts[-1])

    @property
    def n_features(self) -> int:
        """Width of a row."""
        return self.parts.n_features

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers."""
        return self.parts.dtype

    @cached_property
    def starts(self) -> NDArray[np.intp]:
        """The number of the first row of each partition, and at the end that of all rows."""
        return np.cumsum([0, *self.parts.sizes], dtype=np.intp)

    @cached_property
    def _filled(self) -> list[int]:
        """Numbers of the partitions that hold rows."""
        return [number for number, size in enumerate(self.parts.sizes) if size]

    def _vectors(self) -> list[Any]:
        return [self.parts.vectors[number] for number in self._filled]

    def _places(self) -> list[Place]:
        return [Place(number, int(self.starts[number])) for number in self._filled]

    def _choosing(self, names: tuple[Any, ...]) -> DaskRows:
        return DaskRows(self.parts.choosing(names))

    # -- values of each row ----------------------------------------------------------------------

    def column(self, name: str) -> Any:
        """Another column, which stays where it is until it is needed."""
        return PartedColumn(self.parts.column(name), self.parts.sizes, self.runner)

    def aligned(self, values: Any) -> Any:
        """A Dask Series or Array of one value per row, in the partitions of these rows.

        Parameters
        ----------
        values : dask.array.Array, dask.dataframe.Series, or anything
            What is not of Dask, or has several columns, is left as it is. Values in other
            partitions are cut anew, lazily.

        Returns
        -------
        PartedColumn

        Raises
        ------
        InputError
            Where there are more or fewer values than rows.
        """
        if not hasattr(values, "__dask_graph__") or _is_wide(values):
            return values
        if collection(values) == "Series":
            lazy = each(series_values, values.to_delayed())
            sizes = tuple(self.runner.compute(each(len, lazy)))
        else:
            values = unmasked(values[:, 0] if values.ndim == 2 else values)
            lazy = list(values.to_delayed().ravel())
            sizes = values.chunks[0]
            if any(np.isnan(size) for size in sizes):
                sizes = tuple(self.runner.compute(each(len, lazy)))
        if sum(sizes) != self.n_samples:
            raise InputError(
                "Found input variables with inconsistent numbers of samples: X has "
                f"{self.n_samples} rows, and this has {sum(sizes)}",
                f"a Dask {collection(values)} of {sum(sizes)} values",
                "Pass one value per row of X",
            )
        if sizes != self.parts.sizes:
            array = require("dask.array", "dask")
            plain = isinstance(values.dtype, np.dtype) and values.dtype.kind in "fiub"
            kind = values.dtype if plain else np.dtype(object)
            chunks = [
                array.from_delayed(part, (size,), kind)
                for part, size in zip(lazy, sizes, strict=True)
            ]
            whole = array.concatenate(chunks).rechunk((self.parts.sizes,))
            lazy = list(whole.to_delayed().ravel())
        return PartedColumn(lazy, self.parts.sizes, self.runner)

    def lies_at(self, values: NDArray[Any], column: Any, labels: Any = None) -> None:
        """Learn that these values, one per row, are on the cluster too: they are not sent there.

        Parameters
        ----------
        values : array of shape (n,) or (n, 1)
            Forgotten here when nobody else holds it.
        column : PartedColumn or anything
            Where they are; only that of these rows is of use.
        labels : tuple, optional
            By which they become codes.
        """
        if not isinstance(column, PartedColumn) or column.sizes != self.parts.sizes:
            return
        lazy = column.parts
        if labels is not None:
            lazy = each(codes_of, lazy, [labels] * len(lazy))
        elif values.ndim == 2:
            lazy = each(_as_column, lazy)
        number = id(values)
        gone = weakref.ref(values, lambda _: self._known.pop(number, None))
        self._known[number] = (gone, lazy)

    def _slices(self, values: NDArray[Any] | None) -> list[Any]:
        """The values of each partition: where they are, or as few bytes of each as hold them."""
        if values is None:
            return [None] * len(self._filled)
        known = self._known.get(id(values))
        if known is not None and known[0]() is values:
            return [known[1][number] for number in self._filled]
        small = _small(values)
        return [small[self.starts[at] : self.starts[at + 1]] for at in self._filled]

    # -- one pass --------------------------------------------------------------------------------

    def read(
        self,
        concept: Concept,
        weights: Array | None = None,
        *,
        second: bool = True,
        task: Concept | None = None,
        by_class: bool = False,
        look: NDArray[np.intp] | None = None,
    ) -> Reading:
        """One pass: everything a fit in closed form wants to know; see `Rows`."""
        job = ReadingJob(concept.kind, concept.labels, second, by_class)
        return self._read(job, concept, weights, task, look).finish()

    def moments(
        self, concept: Concept, weights: Array | None = None, *, second: bool = True
    ) -> Moments:
        """One pass: counts, means and centred second moments."""
        job = ReadingJob(concept.kind, concept.labels, second, recognise=False)
        return self._read(job, concept, weights).moments()

    def check_finite(self, name: str = "X") -> None:
        """Refuse NaN and infinity: one pass."""
        if self.dtype.kind == "f":
            self.moments(Concept.none(self.n_samples), second=False)

    def _read(
        self,
        job: ReadingJob,
        concept: Concept,
        weights: Array | None,
        task: Concept | None = None,
        look: NDArray[np.intp] | None = None,
    ) -> Reader:
        if task is not None:
            job = ReadingJob(
                job.kind,
                job.labels,
                job.second,
                job.by_class,
                job.recognise,
                task.kind,
                task.labels,
            )
        index = np.zeros(0, np.intp) if look is None else look
        cuts = np.searchsorted(index, self.starts)
        looks = [index[cuts[at] : cuts[at + 1]] - self.starts[at] for at in self._filled]
        readers = each(
            read_part,
            self._vectors(),
            self._slices(concept.values if concept.width else None),
            self._slices(weights),
            self._slices(None if task is None else task.values),
            looks,
            [job] * len(self._filled),
            self._places(),
        )
        found: Reader = self.runner.compute([tree(readers, join_readers)])[0]
        return found

    def glm_pass(
        self,
        loss: Loss,
        coef: Array,
        intercept: Array,
        concept: Concept,
        weights: Array | None = None,
        *,
        center: Array | None = None,
        single: bool = False,
    ) -> GlmPass:
        """One pass of a linear model, which is sent to the partitions; see `Rows`."""
        model = Model(loss, coef, intercept, center, concept.kind, concept.labels, single)
        return GlmPass.of_sums(*self._sums(glm_part, model, concept, weights))

    def glm_hessian(
        self,
        loss: Loss,
        coef: Array,
        intercept: Array,
        concept: Concept,
        weights: Array | None = None,
        *,
        center: Array | None = None,
    ) -> Array:
        """One pass: the second derivative in (coef, intercept); see `Rows`."""
        model = Model(loss, coef, intercept, center, concept.kind, concept.labels)
        total, weight = self._sums(hessian_part, model, concept, weights)
        return np.asarray(total / weight)

    def _sums(self, work: Any, model: Model, concept: Concept, weights: Array | None) -> Any:
        sent = require("dask", "dask").delayed(model, traverse=False)  # once to each worker
        sums = each(
            work,
            self._vectors(),
            [sent] * len(self._filled),
            self._slices(concept.values),
            self._slices(weights),
        )
        return self.runner.compute([tree(sums, add_up)])[0]

    # -- rows themselves -------------------------------------------------------------------------

    def blocks(self) -> Iterator[tuple[int, NDArray[Any]]]:
        """All rows in order, partition by partition, few of them at a time."""
        stream = self.runner.stream(self._vectors())
        for place, X in zip(self._places(), stream, strict=True):
            yield place.start, X

    def each_block(self, work: Callable[[int, NDArray[Any]], T]) -> Iterator[tuple[int, T]]:
        """What a function gives of each block, made by the workers; see `Rows`."""
        sent = require("dask", "dask").delayed(partial(_called, work), traverse=False)
        filled = self._filled
        lazy = each(work_part, self._vectors(), [sent] * len(filled), self._places())
        for found in self.runner.stream(lazy, ahead=AHEAD):
            yield from found

    def seen_through(
        self, made: Callable[[int, NDArray[Any]], NDArray[Any]], n_features: int, dtype: Any
    ) -> DaskRows:
        """These rows after a change that the workers make; labels stay where they are.

        Parameters
        ----------
        made : function of the number of the first row and a block
            Gives the new block.
        n_features : int
        dtype : dtype
            Of what it gives.

        Returns
        -------
        DaskRows
        """
        sent = require("dask", "dask").delayed(partial(_called, made), traverse=False)
        count = len(self.parts.vectors)
        lazy = each(_made_part, self.parts.vectors, [sent] * count, self.starts[:-1].tolist())
        there = DaskRows(ChangedParts(self.parts, lazy, n_features, np.dtype(dtype)))
        there._known = self._known
        return there

    def take(self, index: NDArray[np.intp]) -> DenseRows:
        """The rows with these numbers, in memory; only partitions that hold some are read."""
        index = np.asarray(index, dtype=np.intp)
        home = np.searchsorted(self.starts, index, side="right") - 1
        found = np.empty((len(index), self.n_features), self.dtype)
        places = np.unique(home)
        own = [np.flatnonzero(home == place) for place in places]
        lazy = each(
            take_part,
            [self.parts.vectors[place] for place in places],
            [index[at] - self.starts[place] for place, at in zip(places, own, strict=True)],
        )
        for at, rows in zip(own, self.runner.compute(lazy), strict=True):
            found[at] = rows
        return DenseRows(found)

    def some(self, index: NDArray[np.intp]) -> DaskRows:
        """The rows of files with these numbers, ascending, as rows that stay there.

        Parameters
        ----------
        index : int array of shape (k,)

        Returns
        -------
        DaskRows
        """
        return DaskRows(self.parts.some(index))

    def fingerprint(self) -> Fingerprint:
        """One pass: a sketch that recognises these rows again."""
        return self.read(Concept.none(self.n_samples), second=False).fingerprint

    def transform(self, erasure: Map, out: Any = None, *, concept: Concept | None = None) -> Any:
        """The rows after an erasure: a lazy collection like the one that was given.

        Parameters
        ----------
        erasure : Erasure or ConditionalErasure
        out : str or path, optional
            A folder to write, which workers must reach too: of parquet files with all columns
            beside the vectors, or for an array of npy files, at an address of parquet files.
        concept : Concept, optional
            Of each row, where the erasure has to be told.

        Returns
        -------
        dask.array.Array, dask.dataframe.DataFrame, or DaskRows of the new folder
            Partitions, index and columns are those of the input.
        """
        told = None if concept is None else self._slices_of_all(concept.values)
        if out is None:
            return erased_collection(self.parts, erasure, concept, told)
        path, names = write_parts(self.parts, erasure, out, concept, told)
        return cluster_rows(path, vectors=names, client=self.runner.client)

    def write(
        self, erasure: Map, out: Any, concept: Concept | None = None, **settings: Any
    ) -> Where:
        """Write the rows after an erasure to a folder; see `transform`.

        Parameters
        ----------
        erasure, out, concept
            As of `transform`.
        **settings
            For rows of files: dtype, normalize, drop, resume, in_place and memory of `rewrite`.

        Returns
        -------
        Path or Address
        """
        told = None if concept is None else self._slices_of_all(concept.values)
        return write_parts(self.parts, erasure, out, concept, told, **settings)[0]

    def _slices_of_all(self, values: NDArray[Any]) -> list[Any]:
        """As `_slices`, with nothing for partitions without rows."""
        found = dict(zip(self._filled, self._slices(values), strict=True))
        return [found.get(number, values[:0]) for number in range(len(self.parts.sizes))]

    def __repr__(self) -> str:
        return f"DaskRows({len(self.parts.vectors)} partitions, {self.n_features} {self.dtype})"


def _made_part(X: NDArray[Any], made: Any, start: int) -> NDArray[Any]:
    with alone():
        found: NDArray[Any] = made(start, X)
        return found


def _called(work: Any, start: int, X: NDArray[Any]) -> Any:
    return work(start, X)


def _is_wide(values: Any) -> bool:
    return bool(values.ndim > 1 and values.shape[1] != 1)


def _as_column(values: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(values, dtype=np.float64)[:, None]


def _small(values: NDArray[Any]) -> NDArray[Any]:
    """Codes, indicators and weights of 0 and 1 in as few bytes as hold them."""
    if values.dtype.kind in "iu" and values.size:
        return values.astype(np.min_scalar_type(int(values.max())))
    if values.dtype.kind == "f" and np.isin(values, (0.0, 1.0)).all():
        return values.astype(np.uint8)
    return values
