"""`--engine dask`: the same files from threads, a local cluster and a scheduler at an address."""

import fsspec
import numpy as np
import pyarrow as pa
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


def same(a, b):
    """Whether two saved erasures are the same map, found in the same way."""
    one, other = (ex.Erasure.load(f"{name}.safetensors") for name in (a, b))
    np.testing.assert_allclose(one.matrix(), other.matrix(), rtol=0, atol=1e-9)
    origin = np.zeros((1, one.n_features))
    np.testing.assert_allclose(one(origin), other(origin), rtol=0, atol=1e-9)
    assert one.meta.get("held_out") == other.meta.get("held_out")
    assert one.meta["n"] == other.meta["n"]


@pytest.fixture
def gaps(shards):
    """The same people, some of them without a gender, an age or a weight."""
    rng = np.random.default_rng(1)
    for at in range(3):
        table = pq.read_table(shards.path(f"shards/{at}.parquet"))
        for name in ("gender", "w"):
            known = table[name].to_pylist()
            gone = rng.random(200) < 0.2
            some = [None if lost else value for value, lost in zip(known, gone, strict=True)]
            place = table.schema.get_field_index(name)
            table = table.set_column(place, name, pa.array(some, table.schema.field(name).type))
        pq.write_table(table, shards.path(f"shards/{at}.parquet"))
    return shards


@pytest.mark.parametrize(
    "options",
    [
        ("--missing", "drop"),
        ("--missing", "drop", "--weights", "w", "--holdout", "0.3"),
        ("--missing", "drop", "-c", "job", "-c", "age"),
        ("--missing", "unlabelled"),
        ("--missing", "unlabelled", "--unlabelled", "people.parquet"),
    ],
    ids=" ".join,
)
def test_rows_without_labels(gaps, run, options):
    fit = ("fit", "shards", "-c", "gender", "-m", "leace", *options)
    code, _, said = run(*fit, "-o", "files.safetensors")
    assert code == 0, said
    assert run(*fit, "-o", "dask.safetensors", *DASK)[::2] == (0, said)
    same("files", "dask")


def test_rows_left_out_are_found_again(shards, run):
    fit = ("fit", "shards", "-c", "gender", "-m", "leace", "--holdout", "0.3")
    assert run(*fit, "-o", "files.safetensors")[0] == 0
    assert run(*fit, "-o", "dask.safetensors", *DASK)[0] == 0
    same("files", "dask")
    audit = ("audit", "files.safetensors", "shards", "-c", "gender", "--probes", "linear")
    alone, there = run(*audit), run(*audit, *DASK)
    assert "180 of 600 such rows" in there[2]
    assert alone[2] == there[2]
    assert alone[1].splitlines()[:8] == there[1].splitlines()[:8]


@pytest.mark.parametrize("source", ["shards", "people.parquet"])
def test_in_place(source, shards, run):
    assert run("fit", "people.parquet", "-c", "gender", "-o", "g.safetensors")[0] == 0
    assert run("apply", "g.safetensors", source, "-o", f"clean-{source}")[0] == 0
    assert run("apply", "g.safetensors", source, "--in-place", *DASK)[0] == 0
    paths = [shards.folder / name for name in (source, f"clean-{source}")]
    found, expected = (content(p) if p.is_dir() else p.read_bytes() for p in paths)
    assert found == expected


@pytest.fixture
def store(shards):
    """The shards in a store that is no disk."""
    fs = fsspec.filesystem("memory")
    fs.store.clear()
    for at in range(3):
        fs.put(shards.path(f"shards/{at}.parquet"), f"/shards/{at}.parquet")
    yield fs
    fs.store.clear()


@pytest.mark.parametrize("engine", [(), DASK], ids=["files", "dask"])
def test_addresses(engine, store, shards, run, refused, scheduler):
    fit = ("fit", "-c", "gender", "-m", "leace", "--holdout", "0.2")
    assert run(*fit, "shards", "-o", "files.safetensors")[0] == 0
    assert run(*fit, "memory://shards", "-o", "there.safetensors", *engine)[0] == 0
    same("files", "there")
    assert run("apply", "files.safetensors", "shards", "-o", "clean")[0] == 0
    apply = ("apply", "files.safetensors", "memory://shards", "-o", "memory://clean", *engine)
    code, out, _ = run(*apply)
    assert code == 0
    assert "600 vectors cleaned (1 of 8 dimensions): memory://clean" in out
    for name, expected in content(shards.folder / "clean").items():
        assert store.cat(f"/clean/{name}") == expected
    assert store.exists("/clean/_SUCCESS")
    assert "nothing is written over" in refused(*apply)
    audit = ("audit", "files.safetensors", "-c", "gender", "--probes", "linear")
    there, here = (run(*audit, *where)[1] for where in (("memory://shards", *engine), ("shards",)))
    assert there.splitlines()[:8] == here.splitlines()[:8]
    assert "no such file" in refused(*fit, "memory://sharks", "-o", "x.safetensors", *engine)
    assert "no such addresses" in refused(*fit, "s4://shards", "-o", "x.safetensors", *engine)
    replace = ("apply", "files.safetensors", "memory://shards", "--in-place", *engine)
    assert "not replaced" in refused(*replace)
    web = ("apply", "files.safetensors", "shards", "-o", "http://127.0.0.1:9/x", *engine)
    assert "not written to" in refused(*web)
    if engine:
        alone = (*fit, "memory://shards", "-o", "x.safetensors", *engine)
        assert "Leave out --scheduler" in refused(*alone, "--scheduler", scheduler)


def test_files_by_their_address_on_a_cluster(shards, run, scheduler):
    here = f"file://{shards.folder}"
    assert run("fit", "shards", "-c", "gender", "-m", "leace", "-o", "g.safetensors")[0] == 0
    cluster = (*DASK, "--scheduler", scheduler)
    fit = ("fit", f"{here}/shards", "-c", "gender", "-m", "leace", "-o", "h.safetensors")
    assert run(*fit, *cluster)[0] == 0
    same("g", "h")
    assert run("apply", "g.safetensors", "shards", "-o", "alone")[0] == 0
    apply = ("apply", "g.safetensors", f"{here}/shards", "-o", f"{here}/together", *cluster)
    assert run(*apply)[0] == 0
    assert content(shards.folder / "alone") == content(shards.folder / "together")


def test_what_is_refused(shards, run, refused):
    fit = ("fit", "shards", "-c", "gender", "-o", "g.safetensors")
    assert "no such engine" in refused(*fit, "--engine", "spark")
    assert "--engine dask" in refused(*fit, "--scheduler", "local")
    assert "--missing takes" in refused(*fit, *DASK, "--missing", "maybe")
    words = ("fit", "shards", "--pair", "he,she", "-o", "g.safetensors")
    assert "place among all words" in refused(*words, *DASK)
    said = refused(*fit, *DASK, "--scheduler", "tcp://127.0.0.1:9")
    assert "No scheduler answers there" in said
