"""Every home of rows, and one made for tests: lazy, with nothing but what the base asks for."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from expunge.rows.base import Rows
from expunge.rows.chunked import open_rows
from expunge.rows.dask_graph import Runner
from expunge.rows.dask_parts import FileParts
from expunge.rows.dask_rows import DaskRows, cluster_rows
from expunge.rows.dense import DenseRows
from expunge.rows.mapped import MappedRows
from expunge.rows.tensor import TensorRows


class LazyRows(Rows):
    """Rows that are made when they are asked for, a block at a time.

    Counts the passes begun, the rows taken by number, and remembers the largest block.
    """

    def __init__(self, X, size=97):
        self._X, self.size = X, size
        self.passes = self.taken = self.largest = 0

    n_samples = property(lambda self: len(self._X))
    n_features = property(lambda self: self._X.shape[1])
    dtype = property(lambda self: self._X.dtype)

    def blocks(self):
        self.passes += 1
        for lo in range(0, self.n_samples, self.size):
            block = np.array(self._X[lo : lo + self.size])
            self.largest = max(self.largest, len(block))
            yield lo, block

    def take(self, index):
        self.taken += len(index)
        return DenseRows(np.array(self._X[index]))


def on_disk(X, folder):
    path = folder / "rows.npy"
    np.save(path, X)
    return DenseRows(np.load(path, mmap_mode="r"))


def in_npy(X, folder):
    path = folder / "chunked.npy"
    np.save(path, X)
    return open_rows(path, memory=4 * 97 * X[0].nbytes)


def in_parquet(X, folder):
    """Two shards, with row groups that no block fits."""
    shards = folder / "shards"
    shards.mkdir(exist_ok=True)
    for name, part in zip("ab", np.array_split(X, 2), strict=True):
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(part.ravel()), X.shape[1])
        pq.write_table(pa.table({"x": vectors}), shards / f"{name}.parquet", row_group_size=120)
    return open_rows(shards, memory=4 * 97 * X[0].nbytes)


def in_dask_array(X, folder):
    """Chunks of rows and of columns, one of them empty."""
    whole = da.concatenate([da.from_array(X[:0], chunks=-1), da.from_array(X, chunks=(97, 5))])
    return cluster_rows(whole)


def in_dask_frame(X, folder):
    frame = pd.DataFrame(X, columns=[f"e{j}" for j in range(X.shape[1])])
    return cluster_rows(dd.from_pandas(frame, npartitions=4))


LISTS = pd.ArrowDtype(pa.list_(pa.float64()))


def in_dask_lists(X, folder):
    """A column of lists, in partitions of unknown lengths."""
    parts = np.array_split(X, 3)
    frames = [dask_part(part) for part in parts]
    meta = pd.DataFrame({"x": pd.Series([], dtype=LISTS)})
    return cluster_rows(dd.from_delayed(frames, meta=meta, verify_meta=False))


def dask_part(X):
    return dask.delayed(pd.DataFrame)({"x": pd.Series(list(X), dtype=LISTS)})


def in_files_for_a_cluster(X, folder):
    return DaskRows(FileParts(in_parquet(X, folder).file, Runner(), size=97 * X[0].nbytes))


def computed(erased):
    """Erased rows of any home as an array."""
    if not hasattr(erased, "compute"):
        return erased
    found = erased.compute()
    if isinstance(found, pd.DataFrame):
        found = np.stack(found["x"]) if "x" in found else found.to_numpy()
    return found


# name -> how rows of an array get there
HOMES = {
    "array": lambda X, folder: DenseRows(X),
    "memory map": on_disk,
    "tensor that shares its memory": lambda X, folder: TensorRows(torch.tensor(X), "shared"),
    "tensor converted by blocks": lambda X, folder: TensorRows(torch.tensor(X), "converted"),
    "tensor on a device": lambda X, folder: TensorRows(torch.tensor(X), "device"),
    "rows seen through a map": lambda X, folder: MappedRows(DenseRows(2 * X), lambda A, _: A / 2),
    "file": in_npy,
    "folder of parquet files": in_parquet,
    "Dask array": in_dask_array,
    "Dask frame": in_dask_frame,
    "Dask frame with lists": in_dask_lists,
    "files read by Dask": in_files_for_a_cluster,
    "lazy": lambda X, folder: LazyRows(X),
}
