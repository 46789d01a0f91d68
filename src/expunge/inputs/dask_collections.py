"""Dask collections as a home of rows; imported only when one was passed, so Dask is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from expunge.errors import InputError
from expunge.inputs.columns import names_in
from expunge.rows.dask_graph import Runner
from expunge.rows.dask_parts import FrameParts, PartedColumn, collection, unmasked
from expunge.rows.dask_rows import DaskRows, cluster_rows

if TYPE_CHECKING:
    from expunge.erasure import Erasure

__all__ = ["apply", "array_of", "check", "labels_of", "rows_of", "table"]


def check(X: Any, name: str) -> None:
    """Refuse a collection that holds no real numbers in rows.

    Parameters
    ----------
    X : dask.array.Array, dask.dataframe.DataFrame, dask.dataframe.Series or PartedColumn
    name : str
        What to call it in messages.
    """
    if isinstance(X, PartedColumn) or collection(X) != "Array":
        return
    if X.dtype.kind == "c":
        raise InputError(
            f"Complex data not supported in {name}",
            f"type {X.dtype}",
            f"Pass {name}.real or its modulus",
        )
    if X.dtype.kind not in "fiubOU":
        raise InputError(
            f"{name} is not numeric", f"a Dask Array of type {X.dtype}", "Pass numbers"
        )


def rows_of(X: Any) -> DaskRows:
    """A checked collection as rows, where it is."""
    return _frame_rows(X, []) if collection(X) == "DataFrame" else cluster_rows(X)


def _frame_rows(X: Any, named: list[str]) -> DaskRows:
    return DaskRows(FrameParts(X, Runner(None), named=named))


def table(X: Any, named: tuple[Any, ...], vectors: Any, known: Any) -> Any:
    """A frame with its vectors chosen, or put in order; other collections as they are."""
    if vectors is None and (isinstance(X, PartedColumn) or collection(X) != "DataFrame"):
        return X
    columns = [str(name) for name in X.columns]
    beside = [name for values in named for name in _names_in(values, columns)]
    if vectors is None and known is not None:
        met = [name for name in X.columns if name not in {*beside} - {*known.names}]
        names = list(known.names) if known.lists else list(known.ordered(met))
        if {*names} <= {*X.columns}:
            vectors = names[0] if known.lists else [str(name) for name in names]
    if vectors is None:
        return _frame_rows(X, beside)
    return cluster_rows(X, vectors=vectors)


def _names_in(values: Any, columns: list[str]) -> list[str]:
    """Names of columns; a list is names if all of it is: the number of rows is not known here."""
    return names_in(values, columns, len(values) if isinstance(values, list | tuple) else 0)


def labels_of(y: Any) -> Any:
    """A frame of labels as a frame here: its columns may be several concepts; others stay."""
    frame = not isinstance(y, PartedColumn) and collection(y) == "DataFrame"
    return y.compute() if frame else y


def array_of(X: Any) -> NDArray[Any]:
    """A collection as an array here: for labels and weights, which are small."""
    if isinstance(X, PartedColumn):
        return X.gather()
    found = (unmasked(X) if collection(X) == "Array" else X).compute()
    return np.asarray(found.to_numpy() if hasattr(found, "to_numpy") else found)


def apply(erasure: Erasure, X: Any, out: Any) -> Any:
    """Erased vectors of a checked collection, lazily; or rows of the folder `out`."""
    rows = cluster_rows(X)
    erasure.check_width((0, rows.n_features))
    return rows.transform(erasure, out)
