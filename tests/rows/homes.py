"""Every home of rows, and one made for tests: lazy, with nothing but what the base asks for."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from expunge.rows.base import Rows
from expunge.rows.chunked import open_rows
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


# name -> how rows of an array get there; clusters add a line each
HOMES = {
    "array": lambda X, folder: DenseRows(X),
    "memory map": on_disk,
    "tensor that shares its memory": lambda X, folder: TensorRows(torch.tensor(X), "shared"),
    "tensor converted by blocks": lambda X, folder: TensorRows(torch.tensor(X), "converted"),
    "tensor on a device": lambda X, folder: TensorRows(torch.tensor(X), "device"),
    "rows seen through a map": lambda X, folder: MappedRows(DenseRows(2 * X), lambda A, _: A / 2),
    "file": in_npy,
    "folder of parquet files": in_parquet,
    "lazy": lambda X, folder: LazyRows(X),
}
