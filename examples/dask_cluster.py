"""A folder of parquet files on a cluster: fitted, cleaned and checked where the rows are."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from distributed import Client, LocalCluster

import expunge as ex


def write(folder):
    for number in range(8):
        rng = np.random.default_rng(number)
        y = rng.integers(0, 2, 5000)
        X = rng.normal(size=(5000, 16)).astype(np.float32) + np.outer(y, np.arange(16) / 8)
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel().astype(np.float32)), 16)
        table = pa.table({"gender": np.array(["f", "m"])[y], "embedding": vectors})
        pq.write_table(table, folder / f"{number}.parquet")


def main():
    with (
        tempfile.TemporaryDirectory() as name,
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        folder = Path(name) / "people"
        folder.mkdir()
        write(folder)
        rows = ex.cluster_rows(folder)
        eraser = ex.LEACE().fit(rows, concept="gender")
        print(rows, eraser)
        clean = eraser.transform(rows, out=Path(name) / "clean")
        print(sorted(path.name for path in (Path(name) / "clean").iterdir()))
        print(ex.certify(ex.Erasure.identity(16), clean, "gender", tol=1e-4))


if __name__ == "__main__":  # the workers import this file
    main()
