"""Rows on a cluster: two workers against one, against one machine, within memory, and killed.

Usage: python benchmarks/bench_dask.py [ROWS]   (2,000,000 x 256 by default)
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from common import best_of, machine, show
from distributed import Client, LocalCluster

import expunge as ex

D = 256
SHARD = 62_500  # rows of a file: 64 MB of float32
KILLS = 5


def write(folder: Path, n: int, classes: int = 4) -> None:
    """Parquet files with a column of lists and a column of classes."""
    folder.mkdir()
    centers = np.random.default_rng(0).standard_normal((classes, D)).astype(np.float32) * 0.3
    for number, start in enumerate(range(0, n, SHARD)):
        rng = np.random.default_rng(number + 1)
        k = min(SHARD, n - start)
        y = rng.integers(0, classes, k)
        X = rng.standard_normal((k, D), dtype=np.float32) + centers[y]
        table = pa.table(
            {
                "job": np.array(["ant", "bee", "cat", "dog"])[y],
                "embedding": pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), D),
            }
        )
        pq.write_table(
            table, folder / f"{number:05d}.parquet", compression="none", use_dictionary=["job"]
        )


@contextmanager
def workers(count: int, memory: str | int = "auto") -> Iterator[LocalCluster]:
    """A cluster of processes with one thread each."""
    with (
        LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            memory_limit=memory,
            dashboard_address=":0",
        ) as cluster,
        Client(cluster) as client,
    ):
        client.run(lambda: __import__("expunge").LEACE)  # what is loaded once
        yield cluster


def fit(folder: Path, method: str = "LEACE", **settings: object) -> object:
    rows = ex.cluster_rows(folder)
    return ex.ERASERS[method](**settings).fit(rows, concept="job")


def pids(cluster: LocalCluster) -> list[int]:
    return [nanny.pid for nanny in cluster.workers.values() if nanny.pid]


class Peak:
    """The largest memory of any worker, looked at all the time."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.cluster, self.most, self.stop = cluster, 0, threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def watch(self) -> None:
        """Look until told to stop."""
        while not self.stop.wait(0.02):
            for pid in pids(self.cluster):
                try:
                    self.most = max(self.most, psutil.Process(pid).memory_info().rss)
                except psutil.Error:
                    continue

    def __enter__(self) -> Peak:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self.thread.join()


@contextmanager
def killing(cluster: LocalCluster, every: float) -> Iterator[list[int]]:
    """Kill a worker from time to time, until so many are killed or the work is done."""
    killed: list[int] = []
    stop = threading.Event()

    def kill() -> None:
        while len(killed) < KILLS and not stop.wait(every):
            alive = [pid for pid in pids(cluster) if pid not in killed]
            if len(alive) > 1:
                os.kill(alive[len(killed) % len(alive)], signal.SIGKILL)
                killed.append(alive[len(killed) % len(alive)])

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        stop.set()
        thread.join()


def speed(folder: Path) -> None:
    with workers(1):
        one = best_of(lambda: fit(folder), 3)
    with workers(2):
        two = best_of(lambda: fit(folder), 3)
    chunked = best_of(lambda: ex.LEACE().fit(ex.open_rows(folder), concept="job"), 3)
    print(f"LEACE fit: 1 worker {one:.2f} s, 2 workers {two:.2f} s, files {chunked:.2f} s")
    show("one worker / two workers, LEACE fit from parquet", one / two, 1.6, at_most=False)
    show("two workers / the home of files on two cores", two / chunked, 1.5)


def memory(folder: Path, n: int) -> None:
    size = n * D * 4
    limit = size // 4
    with workers(2, limit) as cluster, Peak(cluster) as peak:
        fit(folder)
    print(f"data {size / 1e6:.0f} MB, limit of a worker {limit / 1e6:.0f} MB")
    show("largest memory of a worker / its limit", peak.most / limit, 1.0)


def kills(folder: Path, small: Path, out: Path) -> None:
    with workers(2) as cluster:
        calm = fit(small, "RLACE", rank=1, solver="subspace_ascent").erasure_
        start = time.perf_counter()
        with killing(cluster, 1.0) as killed:
            stormy = fit(small, "RLACE", rank=1, solver="subspace_ascent").erasure_
        seconds = time.perf_counter() - start
        same = np.array_equal(calm.left, stormy.left) and np.array_equal(calm.right, stormy.right)
        print(f"subspace_ascent fit with {len(killed)} kills, {seconds:.0f} s: same bytes: {same}")
        eraser = fit(folder)
        eraser.transform(ex.cluster_rows(folder), out=out / "calm")
        start = time.perf_counter()
        with killing(cluster, 1.0) as killed:
            eraser.transform(ex.cluster_rows(folder), out=out / "stormy")
        seconds = time.perf_counter() - start
    names = sorted(path.name for path in (out / "calm").iterdir())
    same = names == sorted(path.name for path in (out / "stormy").iterdir()) and all(
        (out / "calm" / name).read_bytes() == (out / "stormy" / name).read_bytes() for name in names
    )
    print(
        f"apply with {len(killed)} kills, {seconds:.0f} s, {len(names)} files: same bytes: {same}"
    )


def main(n: int) -> None:
    warnings.simplefilter("ignore")
    print(machine())
    with tempfile.TemporaryDirectory() as name:
        folder, small = Path(name) / "vectors", Path(name) / "some"
        write(folder, n)
        write(small, max(20_000, n // 10))
        speed(folder)
        if n * D * 4 >= 2e9:  # with less, a worker that has loaded its packages is over it
            memory(folder, n)
        kills(folder, small, Path(name))


if __name__ == "__main__":
    main(int(sys.argv[1].replace(",", "")) if len(sys.argv) > 1 else 2_000_000)
