"""Fit on a file chunk by chunk, then write the erased rows to another file chunk by chunk."""

import tempfile
from pathlib import Path

import numpy as np

import expunge as ex

N, D, CHUNK = 100_000, 64, 8_192


def chunks():
    return (slice(start, start + CHUNK) for start in range(0, N, CHUNK))


def write_example(path):
    """A file of vectors with two classes planted in it; returns the labels."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, N)
    gap = rng.normal(size=D)
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(N, D))
    for rows in chunks():
        X[rows] = rng.normal(size=X[rows].shape) + np.outer(y[rows], gap)
    X.flush()
    return y


def mean_gap(X, y):
    """Distance of the two class means, in float64 and one chunk at a time."""
    sums = np.zeros((2, D))
    for rows in chunks():
        for c in (0, 1):
            sums[c] += X[rows][y[rows] == c].sum(axis=0, dtype=np.float64)
    means = sums / np.bincount(y)[:, None]
    return float(np.linalg.norm(means[1] - means[0]))


with tempfile.TemporaryDirectory() as folder:
    source, target = Path(folder) / "vectors.npy", Path(folder) / "clean.npy"
    y = write_example(source)

    X = np.load(source, mmap_mode="r")
    eraser = ex.RLACE()
    for rows in chunks():
        eraser.partial_fit(X[rows], y[rows])  # keeps sums only, never the rows

    erasure = eraser.erasure_
    clean = np.lib.format.open_memmap(target, mode="w+", dtype=X.dtype, shape=X.shape)
    for rows in chunks():
        erasure.transform(X[rows], out=clean[rows])
    clean.flush()

    print(f"{N:,} rows in chunks of {CHUNK:,}: {erasure}")
    before, after = mean_gap(X, y), mean_gap(clean, y)
    print(f"distance of the class means: before {before:.3f}, after {after:.1e}")
    print(eraser.certificate_)
    del X, clean  # close the files before their folder goes
