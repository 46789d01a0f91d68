"""Rows of files: within their memory, by names of columns, and into other files."""

import subprocess
import sys
import textwrap
import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import expunge as ex
from expunge.rows.chunked import open_rows
from planted import plant


@pytest.fixture
def people(tmp_path):
    """Vectors with a gender, a country, an age, weights and a column with gaps."""
    data, rng = plant("binary", n=600), np.random.default_rng(0)
    columns = {
        "gender": np.array(["f", "m"])[data.y],
        "country": pa.array(np.array(["de", "fr", "it"])[rng.integers(0, 3, 600)]),
        "age": rng.uniform(20, 60, 600),
        "w": rng.random(600),
        "gap": pa.array([None if i == 41 else "x" for i in range(600)]),
        "emb": pa.FixedSizeListArray.from_arrays(pa.array(data.X.ravel()), 8),
    }
    pq.write_table(pa.table(columns), tmp_path / "people.parquet", row_group_size=170)
    return open_rows(tmp_path / "people.parquet", memory=4 * 97 * 64), data.X, columns


def same(a, b):
    np.testing.assert_allclose(a.erasure_.matrix(), b.erasure_.matrix(), rtol=0, atol=1e-9)
    assert a.erasure_.meta["concept"] == b.erasure_.meta["concept"]


def alike(a, b):
    """Up to the last digit, which depends on how many rows are multiplied at once."""
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-13)


def test_concepts_tasks_and_weights_by_name(people):
    rows, X, columns = people
    gender, country = np.array(columns["gender"]), np.array(columns["country"])
    same(ex.LEACE().fit(rows, "gender"), ex.LEACE().fit(X, gender))
    same(ex.LEACE().fit(rows, concept="gender"), ex.LEACE().fit(X, gender))
    both = {"gender": gender, "country": country}
    same(ex.LEACE().fit(rows, ["gender", "country"]), ex.LEACE().fit(X, both))
    same(ex.LEACE().fit(rows, concept=["country"]), ex.LEACE().fit(X, country))
    same(ex.LEACE().fit(rows, "age"), ex.LEACE().fit(X, columns["age"]))
    same(
        ex.SPLINCE().fit(rows, "country", concept="gender", sample_weight="w"),
        ex.SPLINCE().fit(X, country, concept=gender, sample_weight=columns["w"]),
    )
    same(ex.LEACE().partial_fit(rows, "gender"), ex.LEACE().fit(X, gender))
    same(ex.LEACE().fit(rows, gender), ex.LEACE().fit(X, gender))  # values as ever
    same(ex.LEACE().fit(rows, list(gender)), ex.LEACE().fit(X, gender))


def test_names_that_are_not_there(people):
    rows, X, _ = people
    for y in ("gendr", ["gendr", "age"]):
        with pytest.raises(ex.InputError, match=r"no column 'gendr'.*the nearest is 'gender'"):
            ex.LEACE().fit(rows, y)
    with pytest.raises(ex.InputError, match=r"missing.*row 41"):
        ex.LEACE().fit(rows, "gap")
    with pytest.raises(ex.InputError, match="no column 'ww'"):
        ex.LEACE().fit(rows, "gender", sample_weight="ww")
    with pytest.raises(ex.InputError, match="these rows have none"):
        ex.LEACE().fit(rows.take(np.arange(100)), "gender")
    with pytest.raises(ex.InputError):
        ex.LEACE().fit(X, "gender")


def test_everything_else_takes_names_too(people):
    rows, X, columns = people
    gender = np.array(columns["gender"])
    eraser = ex.LEACE().fit(rows, "gender")
    assert ex.certify(eraser, rows, "gender", sample_weight=None).erased
    ours = ex.audit(
        eraser,
        X_test=rows,
        y_test="gender",
        task="country",
        ids="age",
        fresh=True,
        probes="linear",
    )
    theirs = ex.audit(
        eraser,
        X_test=X,
        y_test=gender,
        task=np.array(columns["country"]),
        ids=columns["age"],
        fresh=True,
        probes="linear",
    )
    assert ours.verdict == theirs.verdict
    both = ex.audit(eraser, rows, "gender", rows, "gender", task="country", probes="linear")
    assert both.to_dict()["fairness"] is not None
    table = ex.compare(rows, "gender", ["LEACE"], task="country", probes="linear", runs=1)
    assert [row.method for row in table.rows] == ["nothing", "LEACE"]
    path = ex.rank_path(rows, "gender", ranks=[1], X_test=rows, y_test="gender")
    assert len(path.points) == 2


@pytest.mark.parametrize("ending", [".parquet", ".npz", ".csv", ".arrow", ".feather"])
def test_transform_into_a_file(people, ending, tmp_path):
    rows, X, _ = people
    eraser = ex.LEACE().fit(rows, "gender")
    if ending == ".npz":
        with pytest.raises(ex.InputError, match=r"cannot hold the column 'gap'.*row 41"):
            eraser.transform(rows, out=tmp_path / "clean.npz")
        return
    clean = eraser.transform(rows, out=tmp_path / f"clean{ending}")
    assert clean.columns == rows.columns
    alike(clean.array(), eraser.transform(X))
    again = eraser.erasure_.transform(rows, out=tmp_path / f"again{ending}")
    np.testing.assert_array_equal(again.array(), clean.array())
    assert ex.certify(ex.Erasure.identity(8), clean, "gender").erased


def test_transform_into_an_array(people):
    rows, X, _ = people
    eraser = ex.LEACE().fit(rows, "gender")
    out = np.empty_like(X)
    assert eraser.transform(rows, out=out) is out
    alike(out, eraser.transform(X))
    np.testing.assert_array_equal(eraser.transform(rows), out)
    for bad in (X, rows.take(np.arange(100))):
        with pytest.raises(ex.InputError):
            eraser.transform(bad, out="clean.npy")


def test_an_eraser_that_is_told(people, tmp_path):
    rows, X, columns = people
    gender = np.array(columns["gender"])
    eraser = ex.QuadraticLEACE().fit(rows, "gender")
    clean = eraser.transform(rows, concept="gender", out=tmp_path / "clean.parquet")
    alike(clean.array(), eraser.transform(X, concept=gender))
    told = eraser.conditional_erasure_
    alike(told.transform(rows, "gender"), clean.array())


def test_blocks_end_early_and_no_thread_stays(people):
    rows, _, _ = people
    blocks = rows.blocks()
    next(blocks)
    blocks.close()
    assert not [t for t in threading.enumerate() if t.name == "expunge-read-ahead"]
    assert max(len(X) for _, X in rows.blocks()) <= 97


def test_half_of_torch_is_rounded_as_such(tmp_path):
    import torch
    from safetensors.torch import save_file

    data = plant("binary", n=600)
    save_file({"x": torch.tensor(data.X).bfloat16()}, tmp_path / "x.safetensors")
    rows = open_rows(tmp_path / "x.safetensors")
    assert rows.eps == torch.finfo(torch.bfloat16).eps
    eraser = ex.LEACE().fit(rows, data.y)
    clean = eraser.transform(rows, out=tmp_path / "clean.safetensors")
    assert clean.file.stored == "bfloat16"
    expected = eraser.transform(torch.tensor(data.X).bfloat16()).float().numpy()
    np.testing.assert_array_equal(clean.array(), expected)


MEASURE = """
    import resource, sys
    import numpy as np
    import expunge as ex
    from expunge.rows.chunked import open_rows
    peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    y = np.arange({n}) % 2
    ex.LEACE().fit(np.random.default_rng(0).normal(size=(200, {d})), y[:200])
    {more}
    before = peak()
    rows = open_rows({path!r}, memory="8MB")
    eraser = ex.LEACE().fit(rows, y)
    {then}
    print(peak() - before)
"""


@pytest.mark.parametrize("ending", ["npy", "parquet"])
def test_memory_stays_within_bounds(ending, tmp_path):
    """Rows of 102 MB, of which no more than a few blocks are there at a time."""
    n, d = 400_000, 128
    X = np.random.default_rng(0).integers(-999, 999, size=(n, d), dtype=np.int16)
    X = X.astype(np.float16) / np.float16(512)
    path = tmp_path / f"rows.{ending}"
    if ending == "npy":
        np.save(path, X)
    else:
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), d)
        pq.write_table(pa.table({"x": vectors}), path, row_group_size=n)
    more = "import pyarrow.parquet" if ending == "parquet" else ""
    then = f"eraser.transform(rows, out={str(tmp_path / f'clean.{ending}')!r})"
    code = MEASURE.format(n=n, d=d, path=str(path), more=more, then=then)
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 60e6
