"""Which columns are the vectors, and what is said where that is not clear."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made import vectors
from pyarrow.feather import write_feather

import expunge as ex
from expunge.files import convert, open_file


def lists(d=3, n=10):
    rows = [[float(i + j) for j in range(d)] for i in range(n)]
    return pa.array(rows, pa.list_(pa.float32()))


def parquet(folder, **columns):
    pq.write_table(pa.table(columns), folder / "t.parquet")
    return folder / "t.parquet"


def test_the_only_column_of_lists(tmp_path):
    path = parquet(tmp_path, tags=pa.array([["a"]] * 10), emb=lists(), x0=np.ones(10))
    file = open_file(path)
    assert (file.vectors, file.d, file.columns) == ("emb", 3, ("tags", "x0"))


def test_numbered_columns_before_other_floats(tmp_path):
    columns = {f"dim_{j}": np.random.default_rng(j).random(10) for j in range(12)}
    file = open_file(parquet(tmp_path, age=np.ones(10), **columns))
    assert file.vector_columns == tuple(columns)
    assert file.columns == ("age",)


def test_all_floats(tmp_path):
    path = parquet(tmp_path, x=np.ones(10), y=np.zeros(10), label=np.arange(10))
    assert open_file(path).vector_columns == ("x", "y")


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"a": lists(), "b": lists(4)}, "More than one thing.*'a', 'b'"),
        (
            {"a0": [0.5], "a1": [0.5], "b0": [0.5], "b1": [0.5]},
            r"More than one thing.*'a0 \.\.\. a1', 'b0 \.\.\. b1'",
        ),
        ({"label": [1], "text": ["x"]}, "Nothing in t.parquet.*'label', 'text'"),
    ],
)
def test_doubt(columns, said, tmp_path):
    with pytest.raises(ex.InputError, match=said):
        open_file(parquet(tmp_path, **columns))


def test_said_which(tmp_path):
    path = parquet(tmp_path, a=lists(), b=lists(4), n=np.arange(10), m=np.arange(10))
    assert open_file(path, "b").d == 4
    assert open_file(path, ["m", "n"]).vector_columns == ("m", "n")
    with pytest.raises(ex.InputError, match=r"no column 'bb'.*the nearest is 'b'"):
        open_file(path, "bb")
    with pytest.raises(ex.InputError, match="one column of lists"):
        open_file(path, ["a", "b"])


def test_a_pattern(tmp_path):
    path = parquet(tmp_path, e1=[0.5], e2=[1.5], f1=[1.0], f2=[2.0])
    assert open_file(path, "e*").vector_columns == ("e1", "e2")
    with pytest.raises(ex.InputError, match="named twice, or none"):
        open_file(path, "g*")


def test_arrays_and_tensors(tmp_path):
    from safetensors.numpy import save_file

    np.savez(tmp_path / "two.npz", a=vectors(), b=vectors(), y=np.zeros(1000))
    save_file({"a": vectors(), "b": vectors()}, tmp_path / "two.safetensors")
    for name in ("two.npz", "two.safetensors"):
        with pytest.raises(ex.InputError, match=r"could be the vectors.*'a', 'b'"):
            open_file(tmp_path / name)
        assert open_file(tmp_path / name, "b").vectors == "b"
        with pytest.raises(ex.InputError, match="the nearest is 'a'"):
            open_file(tmp_path / name, "aa")
    np.save(tmp_path / "one.npy", vectors())
    with pytest.raises(ex.InputError, match="Leave vectors out"):
        open_file(tmp_path / "one.npy", "a")


def test_whole_numbers_in_csv_are_labels(tmp_path):
    (tmp_path / "t.csv").write_text("label,x,y\n1,0.5,1\n0,2,2.5\n")
    assert open_file(tmp_path / "t.csv").vector_columns == ("x", "y")


def test_unknown_files(tmp_path):
    (tmp_path / "a.parqet").write_text("")
    (tmp_path / "rows.npy").write_text("")
    with pytest.raises(ex.InputError, match=r"the nearest is '\.parquet'"):
        open_file(tmp_path / "a.parqet")
    with pytest.raises(ex.InputError, match=r"no such file; the nearest is 'rows\.npy'"):
        open_file(tmp_path / "row.npy")
    with pytest.raises(ex.InputError, match="A path is needed"):
        open_file(3)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ex.InputError, match="files of one format"):
        open_file(tmp_path / "empty")


def booleans(path, n=400):
    """Floats, a whole number and two booleans, one of which follows the gender."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    columns = {
        "age": rng.normal(size=n) + y,
        "hours": rng.integers(0, 9, n),
        "husband": rng.random(n) < 0.1 + 0.8 * y,
        "cook": rng.random(n) < 0.5,
    }
    table = pa.table({**columns, "sex": np.array(["f", "m"])[y]})
    if path.suffix == ".csv":
        table.to_pandas().to_csv(path, index=False)
    elif path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        write_feather(table, path)
    return np.column_stack(list(columns.values())).astype(float), y


TABLES = pytest.mark.parametrize("ending", [".parquet", ".feather", ".csv"])


@TABLES
def test_booleans_that_are_named_are_numbers(ending, tmp_path):
    path = tmp_path / f"t{ending}"
    X, y = booleans(path)
    file = open_file(path, "*")
    assert file.vector_columns == ("age", "hours", "husband", "cook")
    np.testing.assert_array_equal(file.take(np.arange(400)), X)
    two = open_file(path, ["cook", "husband"])
    np.testing.assert_array_equal(two.take(np.arange(400)), X[:, [3, 2]])
    with pytest.raises(ex.InputError, match="holds no numbers: 'sex'"):
        open_file(path, ["age", "sex"])
    eraser = ex.LEACE().fit(ex.open_rows(path, vectors="*"), "sex")
    clean = eraser.transform(ex.open_rows(path, vectors="*"), out=tmp_path / f"clean{ending}")
    np.testing.assert_allclose(clean.array(), ex.LEACE().fit(X, y).transform(X), atol=1e-9)
    assert ex.certify(ex.Erasure.identity(4), clean, y).erased


@TABLES
def test_what_was_left_out_is_known(ending, tmp_path):
    booleans(tmp_path / f"t{ending}")
    file = open_file(tmp_path / f"t{ending}")
    assert file.vector_columns == ("age",)
    assert file.left_out == ("hours", "husband", "cook")
    assert open_file(tmp_path / f"t{ending}", "age").left_out == ()


def test_only_booleans(tmp_path):
    path = tmp_path / "t.parquet"
    X, y = booleans(path)
    names = ["husband", "cook"]
    rows = ex.open_rows(path, vectors=names)
    eraser = ex.LEACE().fit(rows, "sex")
    wanted = ex.LEACE().fit(X[:, 2:], y).transform(X[:, 2:])
    np.testing.assert_allclose(eraser.transform(rows, out=tmp_path / "c.parquet").array(), wanted)
    convert(path, tmp_path / "moved.parquet", vectors=names)
    assert pq.read_schema(tmp_path / "moved.parquet").equals(pq.read_schema(path))


def test_no_boolean_in_a_column_of_them(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1.5,True\n2.5,False\n0.5,False\n1.5,maybe\n")
    with pytest.raises(
        ex.InputError, match=r"Not True or False in the column 'y'.*'maybe'.*line 5"
    ):
        open_file(tmp_path / "t.csv", "*").take(np.arange(4))


@pytest.mark.parametrize("sign", [";", "\t", "|"])
def test_csv_with_another_separator(sign, tmp_path):
    booleans(tmp_path / "commas.csv")
    text = (tmp_path / "commas.csv").read_text().replace(",", sign)
    (tmp_path / "t.csv").write_text(text)
    commas, file = open_file(tmp_path / "commas.csv", "*"), open_file(tmp_path / "t.csv", "*")
    assert file.vector_columns == commas.vector_columns
    np.testing.assert_array_equal(file.take(np.arange(400)), commas.take(np.arange(400)))
    assert file.column("sex").tolist() == commas.column("sex").tolist()
    for source in ("commas.csv", "t.csv"):
        convert(tmp_path / source, tmp_path / f"new-{source}", vectors="*")
    moved = (tmp_path / "new-t.csv").read_text()
    assert moved == (tmp_path / "new-commas.csv").read_text().replace(",", sign)
    convert(tmp_path / "t.csv", tmp_path / "t.tsv", vectors="*")
    assert (tmp_path / "t.tsv").read_text() == moved.replace(sign, "\t")
    convert(tmp_path / "t.tsv", tmp_path / "back.csv", vectors="*")
    assert (tmp_path / "back.csv").read_text() == moved.replace(sign, ",")


def test_one_column_of_csv_may_have_semicolons_in_its_name(tmp_path):
    (tmp_path / "t.csv").write_text('"a;b"\n0.5\n1.5\n')
    assert open_file(tmp_path / "t.csv").vector_columns == ("a;b",)


def test_a_missing_entry_is_named_with_its_column(tmp_path):
    path = parquet(tmp_path, x=[0.5, 1.5, 2.5], y=pa.array([True, None, False]))
    with pytest.raises(ex.InputError, match=r"missing .*row 1 of the column 'y' of .*t.par"):
        open_file(path, ["x", "y"]).take(np.arange(3))


GERMAN = "alter;stunden;name\n8,5;-1,25;a\n9;0,5;b\n7,25;1.234,5;c\n"


@pytest.mark.parametrize(
    ("text", "vectors", "column"),
    [
        (GERMAN, ["alter", "stunden"], "'alter', 'stunden'"),
        (GERMAN, "stunden", "'stunden'"),
        (GERMAN, None, "'alter', 'stunden'"),
        (GERMAN, "*", "'alter', 'stunden'"),
        ('a,b\n"8,5",1\n"9,5",2\n', None, "'a'"),
        ("a;b\n1,234;0\n2,345;1\n", None, "'a'"),  # thousands would stand between semicolons too
        ("n;b\n1;0\n2;1\n8,5;0\n", "n", "'n'"),
    ],
)
def test_decimal_commas_are_named(text, vectors, column, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(ex.InputError, match="decimal commas") as caught:
        open_file(tmp_path / "t.csv", vectors).take(np.arange(2))
    assert column in caught.value.problem
    assert "," in caught.value.received
    assert "decimal=','" in caught.value.remedy


def test_a_decimal_comma_further_down_is_named_with_its_line(tmp_path):
    (tmp_path / "t.csv").write_text("a;b\n" + "8.5;1.5\n" * 200 + "8,5;1.5\n")
    file, said = open_file(tmp_path / "t.csv"), r"Not a number in the column 'a'.*'8,5' in line 202"
    with pytest.raises(ex.InputError, match=said) as caught:
        file.take(np.arange(201))
    assert "decimal=','" in caught.value.remedy


def test_text_and_thousands_are_not_taken_for_decimal_commas(tmp_path):
    (tmp_path / "t.csv").write_text('a,b\n"1,234",x\n"2,500",y\n')
    with pytest.raises(ex.InputError, match="holds no numbers: 'a'"):
        open_file(tmp_path / "t.csv", "a")


def census(path, *, floats=("score",), wholes=("age", "education_num", "hours_per_week", "sex")):
    """A table of whole numbers with few columns of fractions."""
    rng = np.random.default_rng(0)
    sex = rng.integers(0, 2, 300)
    columns = {name: rng.integers(0, 60, 300) for name in wholes}
    columns |= {name: rng.normal(size=300) + sex for name in floats}
    table = pa.table({**columns, **({"sex": sex} if "sex" in wholes else {})})
    if path.suffix == ".csv":
        table.to_pandas().to_csv(path, index=False)
    elif path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        write_feather(table, path)
    return path


@TABLES
@pytest.mark.parametrize("opened", [ex.open_rows, ex.cluster_rows])
def test_a_few_fractions_among_whole_numbers_are_not_all_the_vectors(opened, ending, tmp_path):
    if opened is ex.cluster_rows and ending == ".feather":
        pytest.skip("one format less")
    path = census(tmp_path / f"t{ending}")
    with pytest.raises(ex.InputError, match="Are 'score' all of the vectors") as caught:
        opened(path)
    assert "'age', 'education_num', 'hours_per_week'" in caught.value.received
    assert "vectors='*'" in caught.value.remedy
    assert opened(path, vectors="*").n_features == 5
    assert opened(path, vectors="score").n_features == 1


@TABLES
@pytest.mark.parametrize(
    ("floats", "wholes"),
    [
        (("x",), ("sex",)),  # a label, which only the fit will name
        (("x", "y", "z"), ("id", "sex")),
        (("e0", "e1"), ("id", "age", "sex")),  # a numbered family is known by its names
    ],
)
def test_labels_and_ids_beside_vectors_are_no_doubt(floats, wholes, ending, tmp_path):
    path = census(tmp_path / f"t{ending}", floats=floats, wholes=wholes)
    assert ex.open_rows(path).chosen.names == floats


def test_folders_are_asked_about_too(tmp_path):
    (tmp_path / "shards").mkdir()
    census(tmp_path / "shards" / "0.parquet")
    with pytest.raises(ex.InputError, match="'score'"):
        ex.open_rows(tmp_path / "shards")
