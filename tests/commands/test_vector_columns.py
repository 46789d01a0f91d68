"""Which columns the commands take for vectors, what they say of them, how they find them again."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

import expunge as ex

N = 600


@pytest.fixture
def census(tmp_path, monkeypatch):
    """A table of columns: floats, whole numbers and booleans, as get_dummies makes them."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, N)
    table = pa.table(
        {
            "age": rng.normal(size=N) + y,
            "hours": rng.normal(size=N) - y,
            "years": rng.integers(0, 9, N) + y,
            "cook": rng.random(N) < 0.5,
            "husband": rng.random(N) < 0.1 + 0.8 * y,
            "income": rng.normal(size=N).round() + y,
            "sex": np.array(["f", "m"])[y],
        }
    )
    pq.write_table(table, "census.parquet")
    table.to_pandas().to_csv("census.csv", index=False)
    (tmp_path / "shards").mkdir()
    for at in range(3):
        pq.write_table(table.slice(200 * at, 200), f"shards/{at}.parquet")
    return table


def read(path):
    return ex.open_rows(path, vectors="*")


ENGINES = pytest.mark.parametrize(
    ("source", "engine"),
    [
        ("census.parquet", ()),
        ("census.csv", ()),
        ("shards", ()),
        ("census.parquet", ("--engine", "dask")),
        ("shards", ("--engine", "dask")),
    ],
)


@ENGINES
def test_nothing_is_found_where_booleans_are_vectors(source, engine, census, run):
    fit = ("fit", source, "-c", "sex", "-m", "leace", "--vectors", "*", "--holdout", "0.2")
    code, out, err = run(*fit, "-o", "s.safetensors", *engine)
    assert (code, err) == (0, "")
    assert "Vectors: 6 columns: age, hours, years, cook, husband, income" in out
    assert run("apply", "s.safetensors", source, "-o", f"clean-{source}", *engine)[0] == 0
    before, after = (read(path) for path in (source, f"clean-{source}"))
    erasure = ex.Erasure.load("s.safetensors")
    np.testing.assert_allclose(after.array(), erasure.transform(before.array()), atol=1e-9)
    sex, model = before.column("sex"), LogisticRegression(max_iter=500)
    found = [cross_val_score(model, rows.array(), sex, cv=3).mean() for rows in (before, after)]
    assert found[0] > 0.85
    assert found[1] < 0.58
    audit = ("audit", "s.safetensors", source, "-c", "sex", "--probes", "linear", *engine)
    assert run(*audit)[0] == 0


@ENGINES
def test_what_is_left_out_is_said(source, engine, census, run):
    fit = ("fit", source, "-c", "sex", "-m", "leace", "-o", "s.safetensors", *engine)
    code, out, err = run(*fit, "--json", "s.json")
    assert code == 0
    assert "Vectors: 3 columns: age, hours, income" in out
    said = "left out of the vectors: the columns 'years', 'cook', 'husband'"
    assert err.startswith(f"expunge: {said}, which --vectors can name too")
    assert len(err.splitlines()) == 1
    written = json.loads(Path("s.json").read_text())
    assert said in written["notes"][0]
    assert written["vectors"] == ["age", "hours", "income"]
    assert "3 columns: age, hours, income" in run("info", "s.safetensors")[1]


def test_labels_are_no_vectors(census, run):
    fit = ("fit", "census.parquet", "-c", "husband", "-m", "leace", "-o", "s.safetensors")
    code, out, err = run(*fit, "--weights", "years")
    assert code == 0
    assert "'cook'," in err
    assert "'husband'" not in err
    assert "'years'" not in err
    code, out, err = run(*fit, "--vectors", "*")
    assert (code, err) == (0, "")
    assert "Vectors: 5 columns: age, hours, years, cook, income" in out
    code, out, err = run(*fit[:3], "income", *fit[4:])
    assert code == 0, err
    assert "Vectors: 2 columns: age, hours\n" in out


def test_a_label_that_is_one_of_the_vectors(census, run, refused):
    fit = ("fit", "census.parquet", "-c", "sex", "-m", "leace", "-o", "s.safetensors")
    assert run(*fit)[0] == 0
    said = refused("audit", "s.safetensors", "census.parquet", "-c", "sex", "--task", "income")
    assert "the column 'income' of census.parquet is one of the vectors" in said
    assert "--vectors" in said
    said = refused("fit", "census.parquet", "-c", "age", "--vectors", "age,hours", "-o", fit[-1])
    assert "the column 'age' of census.parquet is one of the vectors" in said
    assert "holds no numbers: 'sex'" in refused(*fit, "--vectors", "age,sex")


@pytest.mark.parametrize("more", [(), ("--holdout", "0.3")])
@ENGINES
def test_the_columns_of_the_fit_are_found_again(source, engine, more, census, run):
    fit = ("fit", source, "-c", "sex", "-m", "leace", "--vectors", "husband,years,cook", *more)
    code, out, _ = run(*fit, "-o", "s.safetensors", *engine)
    assert code == 0
    clean = f"clean-{source}"
    following = f"apply s.safetensors {source} -o {clean}"
    assert f"Next: expunge {following}" in out
    assert run(*following.split(), *engine)[0] == 0
    names = ["husband", "years", "cook"]
    X = ex.open_rows(source, vectors=names).array().astype(float)
    wanted = ex.Erasure.load("s.safetensors").transform(X)
    np.testing.assert_allclose(ex.open_rows(clean, vectors=names).array(), wanted, atol=1e-9)
    audit = ("audit", "s.safetensors", source, "-c", "sex", "--probes", "linear", *engine)
    code, out, err = run(*audit)
    assert code == 0, err
    turned = run(*audit, "--vectors", "cook,years,husband")
    assert (turned[1], turned[0]) == (out, 0)


def test_the_columns_of_the_fit_in_another_order(census, run):
    fit = ("fit", "census.parquet", "-c", "sex", "-m", "leace", "--vectors", "hours,age")
    assert run(*fit, "-o", "s.safetensors")[0] == 0
    apply = ("apply", "s.safetensors", "census.parquet")
    assert run(*apply, "-o", "a.parquet")[0] == 0
    assert run(*apply, "--vectors", "age,hours", "-o", "b.parquet")[0] == 0
    assert pq.read_table("a.parquet").equals(pq.read_table("b.parquet"))
    assert ex.certify(ex.Erasure.identity(2), ex.open_rows("b.parquet", vectors="*u*"), "sex")


def test_columns_of_the_fit_that_are_gone(census, run, refused):
    fit = ("fit", "census.parquet", "-c", "sex", "-m", "leace", "--vectors", "husband,years")
    assert run(*fit, "-o", "s.safetensors")[0] == 0
    pq.write_table(census.drop_columns("years"), "other.parquet")
    assert "'years' missing" in refused("apply", "s.safetensors", "other.parquet", "-o", "c.csv")


def test_one_of_two_columns_of_lists_is_found_again(people, run):
    people.write("two.parquet", other=people.vectors(people.X[::-1]))
    fit = ("fit", "two.parquet", "-c", "gender", "-m", "leace", "--vectors", "other")
    assert run(*fit, "--holdout", "0.2", "-o", "g.safetensors")[0] == 0
    assert run("apply", "g.safetensors", "two.parquet", "-o", "c.parquet")[0] == 0
    assert pq.read_table("c.parquet")["embedding"].equals(pq.read_table("two.parquet")["embedding"])


def test_one_of_two_arrays_is_named_in_what_comes_next(people, run):
    np.savez(people.path("two.npz"), a=people.X, b=people.X[::-1], gender=people.gender)
    fit = ("fit", "two.npz", "-c", "gender", "-m", "leace", "--vectors", "a")
    code, out, _ = run(*fit, "-o", "g.safetensors")
    assert code == 0
    following = "apply g.safetensors two.npz --vectors a -o clean-two.npz"
    assert f"Next: expunge {following}\n" in out
    assert run(*following.split())[0] == 0


def test_whole_numbers_beside_a_fraction_are_asked_about(tmp_path, run, refused, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    names = ("age", "education_num", "hours_per_week", "sex")
    columns = {name: rng.integers(0, 2 if name == "sex" else 60, N) for name in names}
    columns["score"] = rng.normal(size=N) + columns["sex"]
    pa.csv.write_csv(pa.table(columns), "ints.csv")
    pq.write_table(pa.table(columns), "ints.parquet")
    for source in ("ints.csv", "ints.parquet"):
        fit = ("fit", source, "-c", "sex", "-m", "leace", "-o", "s.safetensors")
        said = refused(*fit)
        assert "Are 'score' all of the vectors" in said
        assert "'age', 'education_num', 'hours_per_week' beside them" in said
        assert "'sex'" not in said
        assert "--vectors '*' for all columns of numbers" in said
        code, out, _ = run(*fit, "--vectors", "*")
        assert code == 0
        assert "Vectors: 4 columns: age, education_num, hours_per_week, score" in out
        said = refused(*fit, "--groups", "age")
        assert "whole numbers 'education_num', 'hours_per_week' beside them" in said
        code, out, err = run(*fit, "--vectors", "score")
        assert code == 0
        assert "more columns are needed: name them by --vectors" in err
        assert "fewer" not in err
        assert "rank" not in err


def test_an_id_and_a_label_beside_many_fractions_are_no_doubt(people, run):
    columns = dict(zip("pqrstuvw", people.X.T, strict=True))
    people_table = pa.table({"id": np.arange(N), "sex": (people.gender == "m") * 1, **columns})
    pq.write_table(people_table, "flat.parquet")
    code, out, err = run("fit", "flat.parquet", "-c", "sex", "-m", "leace", "-o", "s.safetensors")
    assert code == 0
    assert "Vectors: 8 columns" in out
    assert "the columns 'id', which" in err


def test_decimal_commas_are_named_as_such(tmp_path, refused, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [f"{k},5;{k % 7},25;{'fm'[k % 2]}" for k in range(50)]
    (tmp_path / "t.csv").write_text("alter;stunden;sex\n" + "\n".join(lines))
    fit = ("fit", "t.csv", "-c", "sex", "-o", "s.safetensors")
    for more in ((), ("--vectors", "alter,stunden"), ("--vectors", "*")):
        said = refused(*fit, *more)
        assert "decimal commas in t.csv: 'alter', 'stunden'" in said
        assert "'0,5'" in said
        assert "pandas.read_csv(decimal=',')" in said
