"""A real cluster of two processes: every eraser, killed workers, a scheduler that is lost."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import dask
import dask.array as da
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client, LocalCluster
from distributed.core import Status
from distributed.scheduler import Scheduler

import expunge as ex
from expunge.addresses import Address
from planted import plant

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:distributed")
N = 600
MANY = 10_000  # rows from which on subspace ascent begins with some of them
SETTINGS = {
    **{name: {} for name in ex.ERASERS},
    "INLP": {"rank": 2, "tol": 0.0},
    "RLACE by subspace ascent": {"rank": 1},
    "RLACE by descent-ascent": {
        "rank": 1,
        "solver": "descent_ascent",
        "max_iter": 30,
        "evaluate_every": 15,
    },
}


@pytest.fixture(scope="module")
def cluster():
    of_dask = {
        "distributed.scheduler.allowed-failures": 50,  # of one partition
        "distributed.deploy.lost-worker-timeout": "1h",  # until it is given up, not replaced
    }
    with (
        dask.config.set(of_dask),
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as made,
        Client(made),
    ):
        yield made


@pytest.fixture
def no_rows_here(monkeypatch):
    """Few rows are brought here for many passes over them; these are to stay there."""
    monkeypatch.setattr("expunge.game.problem.HELD", 0)


def slow(X, seconds):
    time.sleep(seconds)
    return X


def on_cluster(data, chunks=6, seconds=0.0):
    size = -(-len(data.X) // chunks)
    dX = da.from_array(data.X, chunks=(size, 8))
    if seconds:
        dX = dX.map_blocks(slow, seconds, dtype=dX.dtype, meta=data.X[:0])
    return dX, da.from_array(np.asarray(data.y), chunks=size)


@pytest.mark.parametrize("settings", SETTINGS)
def test_every_eraser_gives_what_it_gives_in_memory(settings, cluster, no_rows_here):
    data = plant("classes", n=MANY if "subspace" in settings else N)
    make = lambda: ex.ERASERS[settings.split()[0]](**SETTINGS[settings])  # noqa: E731
    dX, dy = on_cluster(data)
    found, expected = make().fit(dX, dy), make().fit(data.X, data.y)
    a, b = found._settled()[0], expected._settled()[0]
    stops = found.solver_ in ("subspace_ascent", "inlp")  # by a tolerance
    for part in {"left", "right", "shift", "maps", "center"} & {*dir(a)}:
        if getattr(b, part) is not None:
            size = np.abs(getattr(b, part)).max(initial=1e-300)
            close = (1e-6 if stops else 1e-9) * size
            np.testing.assert_allclose(getattr(a, part), getattr(b, part), rtol=0, atol=close)
    assert a.meta["fingerprint"] == b.meta["fingerprint"]


def test_a_client_can_be_passed(cluster):
    data = plant("binary", n=N)
    with Client(cluster.scheduler_address, set_as_default=False) as client:
        rows = ex.cluster_rows(on_cluster(data)[0], client=client)
        found = ex.LEACE().fit(rows, data.y)
    np.testing.assert_allclose(
        found.erasure_.matrix(), ex.LEACE().fit(data.X, data.y).erasure_.matrix(), atol=1e-12
    )


def test_nothing_of_the_size_of_the_rows_passes_the_scheduler(cluster, no_rows_here, monkeypatch):
    """Neither rows nor labels: graphs are what the scheduler is sent, results what it passes on."""
    passed = []
    gather, update = Scheduler.gather, Scheduler.update_graph

    async def watched_gather(self, keys, *args, **kwargs):
        found = await gather(self, keys, *args, **kwargs)
        passed.extend(value.nbytes for value in _data(found) if hasattr(value, "nbytes"))
        return found

    async def watched_update(self, *args, **kwargs):
        frames = kwargs["expr_ser"].frames
        passed.append(sum(len(memoryview(frame).cast("B")) for frame in frames))
        return await update(self, *args, **kwargs)

    def largest(n, here=False):
        passed.clear()
        dX = da.random.default_rng(0).normal(size=(n, 8), chunks=(n // 6, 8))
        dy = (4 * dX[:, 0] + dX[:, 1]).astype(int).clip(-2, 2)
        y = dy.compute() if here else dy
        passed.clear()
        ex.RLACE(rank=1).fit(dX, y)
        return max(passed)

    scheduler = cluster.scheduler
    monkeypatch.setitem(scheduler.handlers, "gather", watched_gather.__get__(scheduler))
    monkeypatch.setitem(
        scheduler.stream_handlers, "update-graph", watched_update.__get__(scheduler)
    )
    few, many = largest(30_000), largest(90_000)
    assert few > 0
    assert many < few + 10_000  # of labels alone there are 60,000 more
    assert few + 10_000 < largest(90_000, here=True) < many + 90_000 + 10_000  # a byte of each


def _data(found):
    return found.get("data", {}).values() if isinstance(found, dict) else ()


# -- faults --------------------------------------------------------------------------------------


@contextmanager
def killing(cluster, times, every=0.5):
    """Kill a worker process from time to time, in the middle of whatever it does."""
    killed, stop = [], threading.Event()

    def pids():
        # a process killed before it runs is not replaced: its nanny gives up
        nannies = [n for n in cluster.workers.values() if n.process.status == Status.running]
        return [pid for nanny in nannies if (pid := nanny.pid) and pid not in killed]

    for _ in range(300):  # until what was killed before is replaced
        if len(pids()) == 2:
            break
        time.sleep(0.1)
    else:
        pytest.fail("a worker was not replaced")

    def kill():
        while len(killed) < times and not stop.wait(every):
            alive = pids()
            if len(alive) == 2:  # the last one was replaced
                os.kill(alive[len(killed) % 2], signal.SIGKILL)
                killed.append(alive[len(killed) % 2])

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        stop.set()
        thread.join()


@pytest.mark.skipif(os.name != "posix", reason="no signals")
def test_killed_workers_change_nothing_in_a_fit(cluster, no_rows_here):
    data = plant("classes", n=MANY)
    dX, dy = on_cluster(data, seconds=0.03)
    expected = ex.RLACE(rank=1, solver="subspace_ascent").fit(*on_cluster(data)).erasure_
    with killing(cluster, 2) as killed:
        found = ex.RLACE(rank=1, solver="subspace_ascent").fit(dX, dy).erasure_
    assert killed
    # but for the last digit: a partition may be summed up by another process the second time
    np.testing.assert_allclose(found.left, expected.left, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.right, expected.right, rtol=0, atol=1e-12)


@pytest.mark.skipif(os.name != "posix", reason="no signals")
def test_killed_workers_change_nothing_in_what_is_written(cluster, tmp_path):
    data = plant("classes", n=N)
    eraser = ex.LEACE().fit(data.X, data.y)
    eraser.transform(on_cluster(data, 12)[0], out=tmp_path / "calm")
    with killing(cluster, 3, 0.3) as killed:
        eraser.transform(on_cluster(data, 12, seconds=0.3)[0], out=tmp_path / "stormy")
    assert killed
    calm, stormy = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("calm", "stormy")
    )
    assert calm == stormy
    assert len(calm) == 12


class Slow(ex.Erasure):
    """One that takes its time."""

    def __init__(self, erasure):
        super().__init__(erasure.left, erasure.right, erasure.center, erasure.offset)

    def transform(self, *args, **kwargs):
        time.sleep(0.2)
        return super().transform(*args, **kwargs)

    def __reduce__(self):
        return Slow, (ex.Erasure(self.left, self.right, self.center, self.offset),)


@pytest.mark.skipif(os.name != "posix", reason="no signals")
def test_killed_workers_change_nothing_at_an_address(cluster, tmp_path):
    """Files of this machine, reached through fsspec as those of any other are."""
    data = plant("binary", n=N)
    erasure = ex.LEACE().fit(data.X, data.y).erasure_
    (tmp_path / "people").mkdir()
    table = pa.table({"x": pa.FixedSizeListArray.from_arrays(pa.array(data.X.ravel()), 8)})
    for at in range(8):
        pq.write_table(table.slice(at * N // 8, N // 8), tmp_path / f"people/{at}.parquet")
    rows = ex.cluster_rows(Address(f"file://{tmp_path}/people"))
    rows.write(erasure, Address(f"file://{tmp_path}/calm"))
    for attempt in range(10):  # it may be over before both workers are there
        with killing(cluster, 1, 0.1) as killed:
            rows.write(Slow(erasure), Address(f"file://{tmp_path}/stormy{attempt}"))
        if killed:
            break
    assert killed
    calm, stormy = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("calm", f"stormy{attempt}")
    )
    assert calm == stormy
    assert sorted(calm) == [*(f"{at}.parquet" for at in range(8)), "_SUCCESS"]


SCHEDULER = """
import asyncio, sys
from distributed import Scheduler, Worker

async def main():
    async with Scheduler(port=0, dashboard_address=':0') as scheduler:
        async with Worker(scheduler.address, nthreads=1, dashboard_address=":0"):
            print(scheduler.address, flush=True)
            await asyncio.sleep(100)

asyncio.run(main())
"""


@pytest.mark.skipif(os.name != "posix", reason="no signals")
@pytest.mark.filterwarnings("ignore")
def test_a_lost_scheduler_is_said_and_leaves_nothing(tmp_path):
    import dask

    data = plant("binary", n=N)
    eraser = ex.LEACE().fit(data.X, data.y)
    process = subprocess.Popen(
        [sys.executable, "-c", SCHEDULER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        address = process.stdout.readline().decode().strip()
        with dask.config.set({"distributed.comm.timeouts.connect": "2s"}):
            client = Client(address, set_as_default=False, timeout=5)
            dX, _ = on_cluster(data, 6)
            # nothing of this module is known to that worker
            sleepy = dX.map_blocks(_sleeping(), dtype=float, meta=data.X[:0])
            rows = ex.cluster_rows(sleepy, client=client)
            threading.Timer(1.0, process.kill).start()
            with pytest.raises(ex.LostCluster, match=rf"scheduler at {address} was lost"):
                eraser.transform(rows, out=tmp_path / "out")
            client.close(timeout=1)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert not list(tmp_path.iterdir())


def _sleeping():
    def sleep(X):
        import time

        time.sleep(1)
        return X

    sleep.__module__ = "__main__"  # so that it is sent whole
    return sleep
