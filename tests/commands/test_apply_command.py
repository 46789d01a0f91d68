"""`expunge apply` and `expunge convert`: clean files, whole or not at all."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

import expunge as ex


@pytest.fixture
def gender(people, run):
    assert run("fit", "people.parquet", "-c", "gender", "-o", "g.safetensors")[0] == 0
    return ex.Erasure.load("g.safetensors")


def vectors(path, column="embedding"):
    return np.array(pq.read_table(path)[column].to_pylist(), dtype=np.float32)


def test_the_same_as_in_memory_and_other_columns_as_they_were(people, gender, run):
    before = (people.folder / "people.parquet").read_bytes()
    code, out, err = run("apply", "g.safetensors", "people.parquet", "-o", "clean.parquet")
    assert (code, err) == (0, "")
    assert "600 vectors cleaned (1 of 8 dimensions): clean.parquet" in out
    assert "queries by the same erasure as documents" in out
    np.testing.assert_array_equal(vectors("clean.parquet"), gender(people.X))
    old, new = (pq.read_table(name) for name in ("people.parquet", "clean.parquet"))
    assert old.schema.equals(new.schema)
    assert old.drop_columns("embedding").equals(new.drop_columns("embedding"))
    assert (people.folder / "people.parquet").read_bytes() == before


def test_another_format_type_and_length(people, gender, run, refused):
    said = refused("apply", "g.safetensors", "people.parquet", "-o", "clean.npy")
    assert "--drop-columns" in said
    code, _, _ = run(
        *("apply", "g.safetensors", "people.parquet", "-o", "clean.npy", "--drop-columns"),
        *("--normalize", "--dtype", "float64", "--json", "apply.json"),
    )
    assert code == 0
    wanted = gender(people.X.astype(np.float64))
    wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    found = np.load("clean.npy")
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)
    told = json.loads((people.folder / "apply.json").read_text())
    assert (told["n_rows"], told["rank"], told["looks_different"]) == (600, 1, None)


def test_in_place_or_elsewhere(people, gender, run, refused):
    said = refused("apply", "g.safetensors", "people.parquet", "-o", "people.parquet")
    assert "--in-place" in said
    assert "-o" in refused("apply", "g.safetensors", "people.parquet")
    assert run("apply", "g.safetensors", "people.parquet", "--in-place")[0] == 0
    np.testing.assert_array_equal(vectors("people.parquet"), gender(people.X))
    assert sorted(p.name for p in people.folder.iterdir()) == ["g.safetensors", "people.parquet"]


def test_a_folder_of_shards(people, gender, run):
    (people.folder / "shards").mkdir()
    for number, part in enumerate(np.split(people.X, 4)):
        np.save(people.folder / "shards" / f"part-{number}.npy", part)
    assert run("apply", "g.safetensors", "shards", "-o", "clean", "--resume")[0] == 0
    found = [np.load(path) for path in sorted((people.folder / "clean").iterdir())]
    assert len(found) == 4
    np.testing.assert_array_equal(np.concatenate(found), gender(people.X))


def test_widths_are_checked(people, gender, refused):
    np.save("wide.npy", np.ones((3, 9)))
    said = refused("apply", "g.safetensors", "wide.npy", "-o", "clean.npy")
    assert "width 8" in said
    assert "width 9" in said


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda X: X, ""),
        (lambda X: X[:3], ""),
        (lambda X: X[::-1], ""),
        (lambda X: 5 * (X - X.mean(0)) + X.mean(0), "they spread 5 times as far"),
        (lambda X: 0.1 * X, "they spread 0.1 times as far"),
        (lambda X: X + 3 * X.std(0), "their mean lies 3 spreads from that of the fit"),
    ],
    ids=["same", "few", "turned", "wider", "narrower", "moved"],
)
def test_vectors_that_do_not_look_like_those_of_the_fit(change, told, people, gender, run):
    np.save("others.npy", change(people.X))
    code, _, err = run("apply", "g.safetensors", "others.npy", "-o", "clean.npy")
    assert code == 0
    assert told in err
    assert bool(err) == bool(told)
    assert len(err.splitlines()) == bool(told)


def test_an_erasure_without_a_record_is_content_with_everything(people, run):
    ex.Erasure(np.eye(8)[:, :1], np.eye(8)[:1]).save("hand.safetensors")
    assert run("apply", "hand.safetensors", "people.parquet", "-o", "clean.parquet")[2] == ""


def test_two_erasures_in_a_row_remember_the_first_fit(people, gender, run):
    second = ex.LEACE().fit(gender(people.X), people.job).erasure_
    gender.then(second).save("both.safetensors")
    np.save("moved.npy", people.X + 100)
    assert run("apply", "both.safetensors", "people.parquet", "-o", "a.parquet")[2] == ""
    assert "do not look like" in run("apply", "both.safetensors", "moved.npy", "-o", "b.npy")[2]


def test_an_erasure_that_is_told_the_concept(people, run, refused, gender):
    fit = ("fit", "people.parquet", "-c", "gender", "-m", "oracle-leace", "-o", "o.safetensors")
    assert run(*fit)[0] == 0
    assert "--concept" in refused("apply", "o.safetensors", "people.parquet", "-o", "c.parquet")
    said = refused("apply", "g.safetensors", "people.parquet", "-c", "gender", "-o", "c.parquet")
    assert "does not have to be told" in said
    code, _, _ = run("apply", "o.safetensors", "people.parquet", "-c", "gender", "-o", "c.parquet")
    assert code == 0
    wanted = (
        ex.OracleLEACE().fit(people.X, people.gender).transform(people.X, concept=people.gender)
    )
    np.testing.assert_allclose(vectors("c.parquet"), wanted, rtol=1e-6, atol=1e-6)


def test_nan_leaves_the_old_output_whole(people, gender, refused):
    X = people.X.copy()
    X[417, 3] = np.nan
    np.save("rows.npy", X)
    (people.folder / "clean.npy").write_bytes(b"old")
    assert "row 417" in refused("apply", "g.safetensors", "rows.npy", "-o", "clean.npy")
    assert (people.folder / "clean.npy").read_bytes() == b"old"
    names = sorted(p.name for p in people.folder.iterdir())
    assert names == ["clean.npy", "g.safetensors", "people.parquet", "rows.npy"]


def test_names_that_are_not_there(people, gender, refused):
    assert "nearest is '.parquet'" in refused(
        "apply", "g.safetensors", "people.parquet", "-o", "c.parqet"
    )
    assert "nearest is 'g.safetensors'" in refused(
        "apply", "g.safetensor", "people.parquet", "-o", "c.parquet"
    )
    assert "the order is ERASURE first, then VECTORS" in refused(
        "apply", "people.parquet", "g.safetensors", "-o", "c.parquet"
    )
    assert "folder" in refused("apply", "g.safetensors", "people.parquet", "-o", "no/c.parquet")


def test_convert(people, run, refused):
    assert "--drop-columns" in refused("convert", "people.parquet", "rows.npy")
    code, out, _ = run("convert", "people.parquet", "people.csv", "--json", "c.json")
    assert code == 0
    assert "600 vectors of width 8: people.csv" in out
    assert run("convert", "people.csv", "back.parquet", "--vectors", "embedding_*")[0] == 0
    table = pq.read_table("back.parquet")
    assert table["gender"].to_pylist() == people.gender.tolist()
    assert (
        run("convert", "people.parquet", "half.npy", "--drop-columns", "--dtype", "float16")[0] == 0
    )
    np.testing.assert_array_equal(np.load("half.npy"), people.X.astype(np.float16))


@pytest.mark.parametrize("command", ["apply", "audit"])
def test_arguments_in_the_wrong_order(command, people, run, refused):
    assert run("fit", "people.parquet", "-c", "gender", "-o", "g.safetensors")[0] == 0
    (people.folder / "shards").mkdir()
    people.write("shards/0.parquet")
    (people.folder / "t.csv").write_text("x,y\n0.5,a\n")
    more = ("-o", "c.parquet") if command == "apply" else ("-c", "gender")
    for first in ("people.parquet", "shards", "t.csv"):
        said = refused(command, first, "g.safetensors", *more)
        assert f"no erasure: {first}; the order is ERASURE first, then VECTORS" in said
        assert "Swap the two" in said
        said = refused(command, first, "people.parquet", *more)
        assert "Write the saved erasure (.safetensors) first" in said
    said = refused(command, "g.safetensors", "g.safetensors", *more)
    assert "This is an erasure, not a file of vectors: g.safetensors" in said
