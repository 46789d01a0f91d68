"""Single cells: a column of `obs` erased from an embedding of the cells.

The shape of the call is that of ``scanpy.external.pp.harmony_integrate``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import clone

from expunge.erasers.base import BaseEraser
from expunge.erasers.leace import LEACE, SPLINCE
from expunge.erasure import Erasure
from expunge.errors import InputError
from expunge.files.naming import listed, nearest
from expunge.inputs import ConceptType, check_rows
from expunge.inputs.homes import home_of
from expunge.maps import as_erasure
from expunge.optional import require
from expunge.rows.base import Rows
from expunge.rows.stored_rows import StoredRows

__all__ = ["erase_obs", "erasure_of"]

anndata = require("anndata", "anndata")

UNS = "expunge"  # where adata.uns keeps what was done


def erase_obs(
    adata: Any,
    key: str | Sequence[str],
    basis: str = "X_pca",
    adjusted_basis: str = "X_pca_erased",
    *,
    keep: str | None = None,
    eraser: BaseEraser | None = None,
    concept_type: ConceptType = "auto",
    missing: str = "error",
) -> BaseEraser:
    """Erase columns of `obs` from an embedding of the cells, and store the result beside it.

    Parameters
    ----------
    adata : AnnData
        Changed in place: ``adata.obsm[adjusted_basis]``, or ``adata.layers[adjusted_basis]`` for a
        basis of one column per gene; and ``adata.uns["expunge"][adjusted_basis]``, which holds the
        certificate and the erasure, and is saved with it.
    key : str or list of str
        Columns of `obs`: the batch, the donor, the sex.
    basis : str
        A key of `obsm`; else "X" or a key of `layers`, if that is dense. Of an `X` that is backed
        by a file opened as "r+", and of Dask arrays, no more than some blocks are in memory; the
        result is then written to the same file, or is a Dask array.
    adjusted_basis : str
        What to call the result.
    keep : str, optional
        A column of `obs`, such as the cell type, whose covariance with the embedding is to stay as
        it is; by `SPLINCE`.
    eraser : eraser, optional
        Its copy is fitted; by default `LEACE`, or `SPLINCE` where something is to be kept.
    concept_type : {"auto", "classes", "labels", "continuous"}, or dict of columns to such
        For counts, say ``{"n_counts": "continuous"}``. Not beside `eraser`, which has its own.
    missing : {"error", "unlabelled"}
        What to do with cells that have no label; see `LEACE.fit`. All cells are erased.

    Returns
    -------
    eraser
        Fitted, with `certificate_` and `erasure_`, for cells that come later.

    Raises
    ------
    InputError

    Examples
    --------
    >>> import anndata
    >>> import numpy as np
    >>> import expunge as ex
    >>> rng = np.random.default_rng(0)
    >>> batch = rng.integers(0, 2, 300)
    >>> adata = anndata.AnnData(obs={"batch": batch.astype(str)}, shape=(300, 0))
    >>> adata.obsm["X_pca"] = rng.normal(size=(300, 4)) + np.outer(batch, [2, 0, 0, 1])
    >>> eraser = ex.integrations.anndata.erase_obs(adata, "batch")
    >>> adata.obsm["X_pca_erased"].shape, bool(adata.uns["expunge"]["X_pca_erased"]["erased"])
    ((300, 4), True)
    """
    _check_adata(adata)
    values, stored = _basis(adata, basis)
    columns = [key] if isinstance(key, str) else list(key)
    concept = {name: _obs(adata, name) for name in columns}
    task = None if keep is None else _obs(adata, keep)
    chosen = _eraser(eraser, task is not None, concept_type)
    if len(columns) == 1 and isinstance(chosen.concept_type, dict):
        chosen.set_params(concept_type=chosen.concept_type.get(columns[0], "auto"))
    told = concept if len(columns) > 1 else concept[columns[0]]
    chosen.fit(values, task, concept=told, missing=missing)
    erasure = as_erasure(chosen)
    if stored == "file":
        _write_backed(adata, values, erasure, adjusted_basis)
    else:
        getattr(adata, stored)[adjusted_basis] = erasure.transform(values)
    record = _record(chosen, erasure, columns, basis, keep)
    adata.uns[UNS] = {**adata.uns.get(UNS, {}), adjusted_basis: record}
    return chosen


def erasure_of(adata: Any, adjusted_basis: str = "X_pca_erased") -> Erasure:
    """The erasure that made an embedding, as the file remembers it: for cells that come later.

    Parameters
    ----------
    adata : AnnData
    adjusted_basis : str

    Returns
    -------
    Erasure

    Examples
    --------
    >>> import anndata
    >>> import numpy as np
    >>> import expunge as ex
    >>> rng = np.random.default_rng(0)
    >>> batch = rng.integers(0, 2, 60)
    >>> adata = anndata.AnnData(obs={"batch": batch.astype(str)}, shape=(60, 0))
    >>> adata.obsm["X_pca"] = rng.normal(size=(60, 3)) + batch[:, None]
    >>> eraser = ex.integrations.anndata.erase_obs(adata, "batch")
    >>> ex.integrations.anndata.erasure_of(adata).n_features
    3
    """
    _check_adata(adata)
    found = adata.uns.get(UNS, {})
    if adjusted_basis not in found:
        raise InputError(
            f"{adjusted_basis!r} was not made by erase_obs",
            f"adata.uns[{UNS!r}] with {listed(found)}",
            "Name an embedding that was, or call erase_obs first",
        )
    kept = found[adjusted_basis]
    meta = json.loads(str(kept["meta"]))
    return Erasure(kept["left"], kept["right"], kept.get("center"), kept.get("offset"), meta=meta)


def _check_adata(adata: Any) -> None:
    if not isinstance(adata, anndata.AnnData):
        raise InputError("adata is no AnnData", type(adata).__name__, "Pass an AnnData")
    if adata.is_view and adata.isbacked:
        raise InputError(
            "A view of a file has no place for another embedding",
            f"a view of {adata.n_obs} cells",
            "Take adata.to_memory() first",
        )


def _basis(adata: Any, basis: str) -> tuple[Any, str]:
    """The matrix of that name, and where its erased twin belongs."""
    if basis in adata.obsm:
        values, stored = adata.obsm[basis], "obsm"
    elif basis == "X" or basis in adata.layers:
        values, stored = adata.X if basis == "X" else adata.layers[basis], "layers"
    else:
        there = [*adata.obsm, *adata.layers, "X"]
        raise InputError(
            f"There is no embedding {basis!r}{nearest(basis, there)}",
            f"an AnnData with {listed(there)}",
            "Name one of these as basis, or compute it first, as by scanpy.pp.pca",
        )
    if values is None or scipy.sparse.issparse(values) or hasattr(values, "format"):
        raise InputError(
            f"{basis!r} is sparse or empty, and an erased row is dense",
            type(values).__name__,
            "Erase an embedding of it: call scanpy.pp.pca, and pass basis='X_pca'",
        )
    if type(values).__module__.partition(".")[0] in ("h5py", "zarr"):
        if not adata.isbacked or adata.file._filemode != "r+":
            raise InputError(
                "The file is open for reading only: there is no place for the result",
                f"{basis!r} backed by a file",
                "Open it with backed='r+', or take adata.to_memory()",
            )
        return StoredRows(values), "file"
    if home_of(values) is None and not hasattr(values, "columns"):
        values = np.asarray(values)  # of a view too
    return values, stored


def _obs(adata: Any, name: str) -> Any:
    columns = [str(column) for column in adata.obs.columns]
    if name not in columns:
        raise InputError(
            f"obs has no column {name!r}{nearest(str(name), columns)}",
            f"an AnnData with the columns {listed(columns)}",
            "Name one of these",
        )
    column = adata.obs[name]
    return column if hasattr(column, "iloc") else np.asarray(column)  # lazy ones are xarray's


def _eraser(eraser: BaseEraser | None, keeps: bool, concept_type: ConceptType) -> BaseEraser:
    if eraser is None:
        kind = SPLINCE if keeps else LEACE
        return kind(concept_type=concept_type)
    if keeps and not eraser._keeps_task():
        raise InputError(
            f"{type(eraser).__name__} keeps nothing",
            "keep= and an eraser",
            "Leave eraser away, or pass SPLINCE()",
        )
    if concept_type != "auto":
        raise InputError(
            "The eraser says itself what kind of concept it erases",
            "concept_type= and an eraser",
            "Set it on the eraser",
        )
    found: BaseEraser = clone(eraser)
    return found


def _write_backed(adata: Any, rows: Rows, erasure: Erasure, name: str) -> None:
    """Erased rows into the file of an AnnData, block by block; the name appears when all are in."""
    group = adata.file._file.require_group("layers")
    dtype = rows.dtype if rows.dtype.kind == "f" else np.dtype(np.float64)
    shape, part = (rows.n_samples, rows.n_features), f"{name}.part"
    if part in group:  # of a run that was interrupted
        del group[part]
    out = group.create_dataset(part, shape, dtype, chunks=True)
    out.attrs["encoding-type"], out.attrs["encoding-version"] = "array", "0.2.0"
    for start, X in check_rows(rows).arrays():
        out[start : start + len(X)] = erasure.transform(X)
    if name in group:
        del group[name]
    group.move(part, name)
    adata.layers[name] = group[name]


def _record(
    eraser: BaseEraser, erasure: Erasure, columns: list[str], basis: str, keep: str | None
) -> dict[str, Any]:
    """What `uns` keeps: values that every file of AnnData holds."""
    certificate = eraser.certificate_
    proven = {} if certificate is None else certificate.to_dict()
    found = {
        "key": columns,
        "basis": basis,
        "keep": keep,
        "method": type(eraser).__name__,
        "certificate": str(certificate),
        **{name: value for name, value in proven.items() if value != ""},
        "left": erasure.left,
        "right": erasure.right,
        "center": erasure.center,
        "offset": erasure.offset,
        "meta": json.dumps(erasure.meta),
    }
    return {name: value for name, value in found.items() if value is not None}
