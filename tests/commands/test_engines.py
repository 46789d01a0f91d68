"""`--engine dask`: the same files from threads, a local cluster and a scheduler at an address."""

import numpy as np
import pyarrow.parquet as pq
import pytest
from distributed import LocalCluster

import expunge as ex

DASK = ("--engine", "dask")


@pytest.fixture
def shards(people):
    (people.folder / "shards").mkdir()
    table = people.table()
    for at in range(3):
        pq.write_table(table.slice(200 * at, 200), people.path(f"shards/{at}.parquet"))
    return people


@pytest.fixture(scope="module")
def scheduler():
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        yield cluster.scheduler_address


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def whole_circle(shards, run, *engine):
    fit = ("fit", "shards", "-c", "gender", "-m", "leace")
    assert run(*fit, "-o", "files.safetensors")[0] == 0
    code, _, err = run(*fit, "-o", "dask.safetensors", *engine)
    assert (code, err) == (0, "")
    a, b = (ex.Erasure.load(f"{name}.safetensors") for name in ("files", "dask"))
    np.testing.assert_allclose(a.matrix(), b.matrix(), rtol=0, atol=1e-9)
    assert run("apply", "files.safetensors", "shards", "-o", "alone")[0] == 0
    code, out, _ = run("apply", "files.safetensors", "shards", "-o", "together", *engine)
    assert code == 0
    assert "600 vectors cleaned" in out
    assert content(shards.folder / "alone") == content(shards.folder / "together")


def test_threads(shards, run):
    whole_circle(shards, run, *DASK)
    code, out, _ = run(
        *("audit", "files.safetensors", "shards", "-c", "gender", "--task", "job"),
        *("--probes", "linear", *DASK),
    )
    assert code == 0
    alone = run(
        *("audit", "files.safetensors", "shards", "-c", "gender", "--task", "job"),
        *("--probes", "linear"),
    )
    assert out.splitlines()[:8] == alone[1].splitlines()[:8]


def test_a_scheduler_at_an_address(shards, run, scheduler):
    whole_circle(shards, run, *DASK, "--scheduler", scheduler)


def test_a_local_cluster_and_an_erasure_that_is_told(shards, run):
    fit = ("fit", "shards", "-c", "gender", "-m", "oracle-leace", "-o", "o.safetensors")
    assert run(*fit, *DASK, "--scheduler", "local")[0] == 0
    apply = ("apply", "o.safetensors", "shards", "-c", "gender", "--dtype", "float64")
    assert run(*apply, "-o", "alone")[0] == 0
    assert run(*apply, "-o", "together", *DASK)[0] == 0
    assert content(shards.folder / "alone") == content(shards.folder / "together")


def test_what_is_refused(shards, run, refused):
    fit = ("fit", "shards", "-c", "gender", "-o", "g.safetensors")
    assert "no such engine" in refused(*fit, "--engine", "spark")
    assert "--engine dask" in refused(*fit, "--scheduler", "local")
    assert "--holdout" in refused(*fit, *DASK, "--holdout", "0.2")
    assert "--missing drop" in refused(*fit, *DASK, "--missing", "drop")
    said = refused(*fit, *DASK, "--scheduler", "tcp://127.0.0.1:9")
    assert "No scheduler answers there" in said
    assert run(*fit)[0] == 0
    assert "--in-place" in refused("apply", "g.safetensors", "shards", "--in-place", *DASK)
