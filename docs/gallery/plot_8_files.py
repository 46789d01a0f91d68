"""
Files larger than memory
========================

Vectors in a parquet file, fitted and written anew block by block. Memory does not grow with the
file.
"""

# %%
# Files of growing size. In earnest they would be larger than memory.
import tempfile
import tracemalloc
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import expunge as ex

folder = Path(tempfile.mkdtemp())


def write(n):
    """A table with a column of vectors and a label."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 64)).astype(np.float32) + np.float32(0.4) * y[:, None]
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel().astype(np.float32)), 64)
    table = pa.table({"gender": np.array(["f", "m"])[y], "embedding": vectors})
    pq.write_table(table, folder / f"{n}.parquet", row_group_size=10_000)
    return folder / f"{n}.parquet"


# %%
# ``open_rows`` reads names and sizes only. The concept is the name of a column.
sizes, files, peaks = [20_000, 60_000, 120_000, 240_000], [], []
for n in sizes:
    path = write(n)
    tracemalloc.start()
    rows = ex.open_rows(path)
    eraser = ex.LEACE().fit(rows, concept="gender")
    eraser.transform(rows, out=folder / f"clean-{n}.parquet")
    peaks.append(tracemalloc.get_traced_memory()[1] / 1e6)
    tracemalloc.stop()
    files.append(path.stat().st_size / 1e6)
print(f"{rows.n_samples:,} rows: {eraser.certificate_}")

figure, ax = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
ax.plot(sizes, files, "o--", color="0.5", label="the file")
ax.plot(sizes, peaks, "o-", color="#0072b2", label="NumPy's memory: fit, certificate, writing")
ax.set(xlabel="rows of 64 numbers", ylabel="megabytes", ylim=0)
ax.legend(frameon=False)

# %%
# What was written has all other columns, and no line finds the concept in it.
clean = ex.open_rows(folder / f"clean-{n}.parquet")
print(ex.certify(ex.Erasure.identity(64), clean, "gender", tol=1e-4))
