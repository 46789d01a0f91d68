"""
A cluster, with Dask
====================

Rows in partitions, each summed up where it lies. The fit is that of one machine, and what comes out
is as lazy as what went in.
"""

# %%
# Without a client the threads of this process do the work; with one, its cluster.
import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

import expunge as ex

rng = np.random.default_rng(0)
y = rng.integers(0, 2, 80_000)
X = rng.normal(size=(80_000, 32)).astype(np.float32) + np.outer(
    y, np.linspace(0, 1, 32, dtype="f4")
)
dX, dy = da.from_array(X, chunks=(5_000, 32)), da.from_array(y, chunks=5_000)

eraser = ex.LEACE().fit(dX, dy)
clean = eraser.transform(dX)
print(eraser.certificate_)
print(type(clean).__name__, clean.numblocks, "not computed yet")
here = ex.LEACE().fit(X, y)
print(
    "apart from a fit on one machine:",
    f"{np.abs(eraser.erasure_.matrix() - here.erasure_.matrix()).max():.0e}",
)


# %%
# Each partition by itself: how far apart its class means are, before and after. All rows together
# are exactly equal in the mean; sixteen parts of them differ by sampling error.
def gap(rows, labels):
    """Distance of the class means."""
    return np.linalg.norm(rows[labels == 1].mean(axis=0) - rows[labels == 0].mean(axis=0))


parts = [slice(5_000 * i, 5_000 * (i + 1)) for i in range(16)]
after = clean.compute()
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
ax.bar(
    np.arange(16) - 0.2,
    [gap(X[part], y[part]) for part in parts],
    0.4,
    color="#d55e00",
    label="before",
)
ax.bar(
    np.arange(16) + 0.2,
    [gap(after[part], y[part]) for part in parts],
    0.4,
    color="#0072b2",
    label="after",
)
ax.set(xlabel="partition", ylabel="distance of the class means", ylim=(0, 4.2))
ax.legend(frameon=False, ncols=2)
print(f"all rows: {gap(X, y):.2f} before, {gap(after, y):.0e} after")
