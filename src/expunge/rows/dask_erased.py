"""Erased rows of a cluster as a lazy collection: with the same partitions, index and meta.

Every partition is erased by itself when somebody asks for it. What is wrong with a row is said
then, with its partition.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.concept import Concept
from expunge.errors import InputError
from expunge.optional import require
from expunge.parallel import alone
from expunge.rows.apply import apply_to_array
from expunge.rows.dask_graph import each
from expunge.rows.dask_parts import ArrayParts, FrameParts, Parts, frame_matrix

__all__ = ["erase_chunk", "erase_frame", "erased_collection", "kept_type"]


def kept_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type of erased numbers: floating types stay, others become float64.

    Parameters
    ----------
    dtype : dtype

    Returns
    -------
    dtype

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.rows.dask_erased import kept_type
    >>> kept_type(np.dtype("float16")), kept_type(np.dtype("int8"))
    (dtype('float16'), dtype('float64'))
    """
    return dtype if dtype.kind == "f" else np.dtype(np.float64)


def erased_collection(parts: Parts, erasure: Any, concept: Concept | None, told: Any) -> Any:
    """The rows after an erasure, as a collection of the kind that was given; lazy.

    Parameters
    ----------
    parts : Parts
    erasure : Erasure or ConditionalErasure
    concept : Concept, optional
        Of all rows, where the erasure has to be told.
    told : list of arrays or Delayed, optional
        Its values in each partition.

    Returns
    -------
    dask.array.Array or dask.dataframe.DataFrame
        Vectors of files give an array.
    """
    array = require("dask.array", "dask")
    dtype = kept_type(parts.dtype)
    meta = np.empty((0, parts.n_features), dtype)
    terms = {"erasure": erasure}
    if isinstance(parts, ArrayParts) and concept is None:
        return parts.X.map_blocks(erase_chunk, **terms, dtype=dtype, meta=meta)
    if isinstance(parts, FrameParts):
        return _erased_frame(parts, erasure, concept, told)
    count = len(parts.vectors)
    sent = require("dask", "dask").delayed(erasure, traverse=False)
    lazy = each(
        erase_part,
        parts.vectors,
        [sent] * count,
        range(count),
        told or [None] * count,
        [None if concept is None else (concept.kind, concept.labels)] * count,
    )
    chunks = [
        array.from_delayed(part, (size, parts.n_features), meta=meta)
        for part, size in zip(lazy, parts.sizes, strict=True)
    ]
    return array.concatenate(chunks)


def _erased_frame(parts: FrameParts, erasure: Any, concept: Concept | None, told: Any) -> Any:
    frame, columns = parts.frame, [parts.keys[name] for name in parts.chosen]
    shape = (columns, parts.listed, parts.n_features, parts.dtype)
    meta = frame._meta
    if not parts.listed:
        kept = {key: _kept_column(meta.dtypes[key], parts.dtype) for key in columns}
        meta = meta.astype(kept)
    if concept is None:
        return frame.map_partitions(erase_frame, erasure, *shape, meta=meta, enforce_metadata=False)
    lazy = frame.to_delayed()
    count = len(lazy)
    sent = require("dask", "dask").delayed(erasure, traverse=False)
    known = (concept.kind, concept.labels)
    erased = each(
        _erase_told,
        lazy,
        [sent] * count,
        [shape] * count,
        range(count),
        told,
        [known] * count,
    )
    return require("dask.dataframe", "dask").from_delayed(
        erased, meta=meta, divisions=frame.divisions, verify_meta=False
    )


def _kept_column(kind: Any, together: np.dtype[Any]) -> Any:
    """The type of an erased column; one that is not floating takes that of all together."""
    return kind if getattr(kind, "kind", "") == "f" else kept_type(together)


def erase_chunk(
    X: NDArray[Any], *, erasure: Any, block_id: tuple[int, ...] | None = None
) -> NDArray[Any]:
    """Erased rows of a chunk of an array.

    Parameters
    ----------
    X : array of shape (k, d)
    erasure : Erasure
    block_id : tuple of int, optional
        Which chunk it is; Dask tells.

    Returns
    -------
    array of shape (k, d)
    """
    return erase_part(X, erasure, block_id[0] if block_id else 0)


def erase_part(
    X: NDArray[Any], erasure: Any, number: int, values: Any = None, known: Any = None
) -> NDArray[Any]:
    """Erased rows of a partition; an erasure that has to be told the concept is told it."""
    if not len(X):
        return np.empty(X.shape, kept_type(X.dtype))
    try:
        with alone():
            if known is None:
                return apply_to_array(erasure, X)
            kind, labels = known
            codes = np.asarray(values, np.intp if kind == "classes" else np.float64)
            found: NDArray[Any] = erasure.transform_known(X, Concept(kind, codes, labels))
            return found
    except InputError as error:
        where = f"{error.received}, counted within partition {number}"
        raise InputError(error.problem, where, error.remedy) from None


def erase_frame(
    frame: Any,
    erasure: Any,
    columns: list[Any],
    listed: bool,
    n_features: int,
    dtype: np.dtype[Any],
    partition_info: dict[str, Any] | None = None,
) -> Any:
    """A partition of a frame with its vectors erased; index and other columns stay.

    Parameters
    ----------
    frame : pandas.DataFrame
    erasure : Erasure
    columns : list
        Those of the vectors.
    listed : bool
        Whether they are lists in one column.
    n_features : int
    dtype : dtype
    partition_info : dict, optional
        Which partition it is; Dask tells.

    Returns
    -------
    pandas.DataFrame
    """
    number = (partition_info or {}).get("number", 0)
    return _erase_told(frame, erasure, (columns, listed, n_features, dtype), number)


def _erase_told(
    frame: Any, erasure: Any, shape: Any, number: int, values: Any = None, known: Any = None
) -> Any:
    columns, listed, n_features, dtype = shape
    X = frame_matrix(frame[columns], number, listed, n_features, dtype)
    clean = erase_part(X, erasure, number, values, known)
    out = frame.copy(deep=False)
    if listed:
        kind = frame.dtypes[columns[0]]
        series = type(frame[columns[0]])
        found = series(list(clean), index=frame.index, dtype=object)
        out[columns[0]] = found.astype(kind) if kind != np.dtype(object) else found
        return out
    for at, column in enumerate(columns):
        kind = _kept_column(frame.dtypes[column], dtype)
        if isinstance(kind, np.dtype):
            out[column] = clean[:, at].astype(kind, copy=False)
        else:  # of pandas or Arrow, with room for missing values
            out[column] = type(frame[column])(clean[:, at], index=frame.index).astype(kind)
    return out
