"""`expunge fit`: the same erasure as Python gives, from every kind of file and label."""

import json
import shlex

import numpy as np
import pyarrow as pa
import pytest

import expunge as ex
from expunge.commands.method_settings import method_names


def same(path, eraser):
    """Whether a saved erasure is the one of an eraser fitted in memory."""
    found, wanted = ex.Erasure.load(path), eraser.erasure_
    X = np.random.default_rng(1).normal(size=(20, found.n_features))
    np.testing.assert_allclose(found(X), wanted(X), rtol=1e-9, atol=1e-9)
    return True


def test_a_column_of_parquet(people, run):
    code, out, err = run("fit", "people.parquet", "--concept", "gender", "-o", "g.safetensors")
    assert (code, err) == (0, "")
    assert same("g.safetensors", ex.RLACE().fit(people.X, people.gender))
    assert "RLACE erases 1 of 8 dimensions, found on 600 rows of people.parquet" in out
    assert "erased: every linear predictor" in out
    assert "kept: " in out
    assert "Next: expunge apply g.safetensors people.parquet -o clean-people.parquet" in out


@pytest.mark.parametrize("method", ["rlace", "LEACE", "mean-projection", "Mean_Projection", "sal"])
def test_methods_by_name_in_any_case(method, people, run):
    code, _, err = run("fit", "people.parquet", "-c", "gender", "-m", method, "-o", "g.safetensors")
    assert (code, err) == (0, "")
    name = method.lower().replace("-", "").replace("_", "")
    eraser = {"rlace": ex.RLACE, "leace": ex.LEACE, "sal": ex.SAL}.get(name, ex.MeanProjection)
    assert same("g.safetensors", eraser().fit(people.X, people.gender))


def test_every_method_of_the_library_can_be_typed():
    names = {name.replace("-", "") for name in method_names()}
    assert names == {name.lower() for name in ex.ERASERS}


def test_several_concepts(people, run):
    code, _, _ = run(
        *("fit", "people.parquet", "-c", "gender", "-c", "job", "-m", "leace"),
        *("-o", "both.safetensors", "--json", "both.json"),
    )
    assert code == 0
    together = {"gender": people.gender, "job": people.job}
    assert same("both.safetensors", ex.LEACE().fit(people.X, together))
    found = json.loads((people.folder / "both.json").read_text())
    assert found["certificate"]["erased"]
    assert found["concept"]["labels"] == [
        *("gender=f", "gender=m", "job=cook", "job=nurse", "job=smith")
    ]


def test_rank_strength_and_any_parameter(people, run):
    code, _, _ = run(
        *("fit", "people.parquet", "-c", "job", "--rank", "1", "--strength", "0.5"),
        *("--set", "alpha=1e-3", "--set", "fit_intercept=true", "--set", "scale=std"),
        *("--seed", "3", "-o", "j.safetensors"),
    )
    assert code == 0
    wanted = ex.RLACE(1, strength=0.5, alpha=1e-3, scale="std", random_state=3)
    assert same("j.safetensors", wanted.fit(people.X, people.job))
    meta = ex.Erasure.load("j.safetensors").meta["parameters"]
    assert (meta["alpha"], meta["scale"], meta["strength"]) == (0.001, "std", 0.5)


def test_a_continuous_concept_and_weights(people, run):
    code, _, _ = run(
        *("fit", "people.parquet", "-c", "age", "--concept-type", "continuous"),
        *("--weights", "w", "-o", "age.safetensors"),
    )
    assert code == 0
    wanted = ex.RLACE(concept_type="continuous")
    wanted.fit(people.X, people.age, sample_weight=people.weight)
    assert same("age.safetensors", wanted)


def test_a_task_for_the_method_that_keeps_one(people, run, refused):
    code, _, _ = run(
        *("fit", "people.parquet", "-c", "gender", "--task", "job", "-m", "splince"),
        *("-o", "s.safetensors"),
    )
    assert code == 0
    assert same("s.safetensors", ex.SPLINCE().fit(people.X, people.job, concept=people.gender))
    said = refused("fit", "people.parquet", "-c", "gender", "--task", "job", "-o", "x.safetensors")
    assert "splince" in said


def test_methods_without_a_concept(people, run, refused):
    code, out, _ = run(
        *("fit", "people.parquet", "-m", "rayleigh-eraser", "--set", "objective=pca"),
        *("--rank", "2", "-o", "p.safetensors"),
    )
    assert code == 0
    assert same("p.safetensors", ex.RayleighEraser(2, objective="pca").fit(people.X))
    assert "Certificate" not in out
    assert "--concept" in refused("fit", "people.parquet", "-o", "x.safetensors")
    for folder in (".", "..", "/"):
        said = refused("fit", "people.parquet", "-c", "gender", "-o", folder)
        assert "erasure.safetensors" in said


def test_an_eraser_that_is_told_the_concept(people, run):
    code, out, _ = run(
        "fit", "people.parquet", "-c", "gender", "-m", "oracle-leace", "-o", "o.safetensors"
    )
    assert code == 0
    assert "--concept COLUMN" in out
    wanted = ex.OracleLEACE().fit(people.X, people.gender)
    found = ex.ConditionalErasure.load("o.safetensors")
    np.testing.assert_allclose(found.shift, wanted.conditional_erasure_.shift, atol=1e-9)


def label_files(people):
    names = people.gender.tolist()
    (people.folder / "labels.txt").write_text("\n".join(names) + "\n")
    (people.folder / "bare.csv").write_text("\n".join(names) + "\n")
    (people.folder / "headed.csv").write_text("gender\n" + "\r\n".join(names))
    (people.folder / "wide.csv").write_text(
        "id,gender\n" + "\n".join(f'"{i},x",{name}' for i, name in enumerate(names))
    )
    (people.folder / "semicolons.csv").write_text(
        "id;gender\n" + "\n".join(f"{i},x;{name}" for i, name in enumerate(names))
    )
    (people.folder / "tabs.tsv").write_text(
        "id\tgender\n" + "\n".join(f"{i}\t{name}" for i, name in enumerate(names))
    )
    np.save(people.path("labels.npy"), people.gender)


@pytest.mark.parametrize(
    "what",
    [
        *("labels.txt", "bare.csv", "headed.csv", "wide.csv:gender", "semicolons.csv:gender"),
        *("tabs.tsv:gender", "labels.npy"),
    ],
)
def test_labels_in_a_file_beside_an_array(what, people, run):
    label_files(people)
    np.save(people.path("rows.npy"), people.X)
    code, _, err = run("fit", "rows.npy", "--concept", what, "-o", "g.safetensors")
    assert (code, err) == (0, "")
    assert same("g.safetensors", ex.RLACE().fit(people.X, people.gender))


def test_numbers_in_label_files_are_numbers(people, run):
    (people.folder / "age.txt").write_text("\n".join(map(repr, people.age.tolist())))
    np.save(people.path("w.npy"), people.weight)
    np.save(people.path("rows.npy"), people.X)
    code, _, _ = run(
        "fit", "rows.npy", "-c", "age.txt", "--weights", "w.npy", "-o", "a.safetensors"
    )
    assert code == 0
    wanted = ex.RLACE().fit(people.X, people.age, sample_weight=people.weight)
    assert same("a.safetensors", wanted)


def text_of(X, values):
    lines = zip(X.tolist(), values, strict=True)
    return "".join(f"{','.join(map(repr, x))},{value}\n" for x, value in lines)


@pytest.mark.parametrize("cuts", [[], [200]])
def test_numbers_of_a_csv_with_gaps_are_numbers(cuts, people, run):
    some = np.arange(len(people.X)) % 7 > 0
    ages = [
        repr(age) if known else "" for age, known in zip(people.age.tolist(), some, strict=True)
    ]
    ages[: sum(cuts)] = map(str, range(sum(cuts)))  # whole numbers in the first of several files
    shards = people.folder / "shards"
    shards.mkdir()
    names = ",".join(f"x{j}" for j in range(people.X.shape[1]))
    parts = zip(np.split(people.X, cuts), np.split(np.array(ages), cuts), strict=True)
    for number, (X, age) in enumerate(parts):
        (shards / f"{number}.csv").write_text(f"{names},age\n" + text_of(X, age))
    told = ["--vectors", "x*", "-c", "age", "--missing", "drop", "-o", "a.safetensors"]
    code, _, err = run("fit", "shards" if cuts else "shards/0.csv", *told)
    assert code == 0, err
    there = [age != "" for age in ages]
    wanted = ex.RLACE().fit(people.X[there], np.array([float(age) for age in ages if age]))
    assert same("a.safetensors", wanted)


def test_codes_that_differ_by_a_zero_are_different_classes(people, run):
    codes = np.array(["01", "1", "02"])[np.arange(len(people.X)) % 3]
    (people.folder / "codes.csv").write_text(
        ",".join(f"x{j}" for j in range(people.X.shape[1])) + ",code\n" + text_of(people.X, codes)
    )
    assert run("fit", "codes.csv", "-c", "code", "-o", "c.safetensors")[0] == 0
    assert same("c.safetensors", ex.RLACE().fit(people.X, codes))


def test_label_files_that_do_not_fit(people, refused):
    label_files(people)
    np.save(people.path("rows.npy"), people.X)
    np.save(people.path("objects.npy"), np.array([{}], dtype=object), allow_pickle=True)
    (people.folder / "short.txt").write_text("f\nm\n")
    (people.folder / "labels.json").write_text("[]")

    def said(what):
        return refused("fit", "rows.npy", "-c", what, "-o", "x.safetensors")

    assert "2 in short.txt for 600 rows" in said("short.txt")
    assert "'id', 'gender'" in said("wide.csv")
    assert "the nearest is 'gender'" in said("wide.csv:gendr")
    assert "the nearest is 'labels.txt'" in said("label.txt")
    assert "without objects" in said("objects.npy")
    assert ".npy, .csv" in said("labels.json")
    assert not (people.folder / "x.safetensors").exists()


@pytest.mark.parametrize("empty", [None, ""])
def test_rows_without_a_label(empty, people, run, refused):
    labels = people.gender.tolist()
    for row in (7, 9, 500):
        labels[row] = empty
    people.write("gaps.parquet", gender=labels)
    said = refused("fit", "gaps.parquet", "-c", "gender", "-o", "x.safetensors")
    assert "3 of 600 rows" in said
    assert "row 7 " in said
    assert "--missing drop" in said
    code, out, err = run(
        "fit", "gaps.parquet", "-c", "gender", "--missing", "drop", "-o", "g.safetensors"
    )
    assert code == 0
    assert err == "expunge: 3 of 600 rows have no label: left out\n"
    assert "found on 597 rows" in out
    there = np.setdiff1d(np.arange(600), [7, 9, 500])
    assert same("g.safetensors", ex.RLACE().fit(people.X[there], people.gender[there]))


def test_whole_numbers_with_gaps_stay_whole_numbers(people, run):
    numbers = (people.gender == "m").astype(int).tolist()
    numbers[0] = None
    people.write("gaps.parquet", gender=pa.array(numbers))
    code, _, _ = run(
        "fit", "gaps.parquet", "-c", "gender", "--missing", "drop", "-o", "g.safetensors"
    )
    assert code == 0
    assert ex.Erasure.load("g.safetensors").meta["concept"]["labels"] == [0, 1]


def test_rows_left_out_for_an_audit(people, run):
    code, out, _ = run(
        "fit", "people.parquet", "-c", "gender", "--holdout", "0.25", "-o", "g.safetensors"
    )
    assert code == 0
    assert "found on 450 rows of people.parquet (150 others left out)" in out
    meta = ex.Erasure.load("g.safetensors").meta
    assert meta["n"] == 450
    assert meta["held_out"] == {"share": 0.25, "seed": 0, "rows": 150, "of": 600}


def test_columns_that_hold_one_entry_each(people, run):
    names = [f"e{j}" for j in range(8)]
    lines = [",".join(["gender", *names])]
    lines += [
        ",".join([g, *map(repr, x)])
        for g, x in zip(people.gender.tolist(), people.X.astype(float).tolist(), strict=True)
    ]
    (people.folder / "people.csv").write_text("\n".join(lines))
    for number, columns in enumerate(("e*", ",".join(names))):
        out = f"g{number}.safetensors"
        code, _, _ = run("fit", "people.csv", "--vectors", columns, "-c", "gender", "-o", out)
        assert code == 0
        assert same(out, ex.RLACE().fit(people.X.astype(float), people.gender))


def test_warnings_of_the_library_take_one_line(people, run):
    X = people.X.astype(np.float64) * np.geomspace(1, 1e5, 8)
    np.savez(people.path("units.npz"), X=X, gender=people.gender)
    code, _, err = run("fit", "units.npz", "-c", "gender", "-o", "g.safetensors")
    assert code == 0
    assert len(err.splitlines()) == 1
    assert err.startswith("expunge: warning: RLACE depends on the units")


def test_a_small_memory_gives_the_same(people, run):
    code, _, _ = run(
        "fit", "people.parquet", "-c", "job", "--memory", "50KB", "-o", "j.safetensors"
    )
    assert code == 0
    assert same("j.safetensors", ex.RLACE().fit(people.X, people.job))


def test_nearest_names(people, refused):
    def said(*more):
        return refused("fit", *more, "-o", "x.safetensors")

    assert "nearest is 'gender'" in said("people.parquet", "-c", "gendr")
    assert "nearest is 'people.parquet'" in said("people.parqet", "-c", "gender")
    assert "nearest is 'rlace'" in said("people.parquet", "-c", "gender", "-m", "rlcae")
    assert "nearest is 'oracle-leace'" in said("people.parquet", "-c", "gender", "-m", "oracleace")
    assert "nearest is 'embedding'" in said("people.parquet", "-c", "gender", "--vectors", "embed")
    assert "nearest is 'alpha'" in said("people.parquet", "-c", "gender", "--set", "alfa=1")
    assert "Its parameters are" in said("people.parquet", "-c", "gender", "--set", "zzz=1")


def test_bad_values(people, refused):
    def said(*more):
        return refused("fit", "people.parquet", "-c", "gender", *more)

    assert "-o g.safetensors" in said("-o", "g.npy")
    assert "--set takes NAME=VALUE" in said("--set", "alpha", "-o", "g.safetensors")
    assert "twice" in said("--set", "rank=1", "--rank", "2", "-o", "g.safetensors")
    assert "whole number or auto" in said("--rank", "many", "-o", "g.safetensors")
    assert "--missing" in said("--missing", "guess", "-o", "g.safetensors")
    assert "--memory" in said("--memory", "much", "-o", "g.safetensors")
    assert "folder" in said("-o", "nowhere/g.safetensors")
    assert "same thing twice" in said("-c", "gender", "-o", "g.safetensors")
    assert [p.name for p in people.folder.iterdir()] == ["people.parquet"]


def test_the_vectors_are_not_written_over(people, refused):
    ex.files.convert(people.path("people.parquet"), people.path("v.safetensors"), drop=True)
    np.save(people.path("y.npy"), people.gender)
    before = (people.folder / "v.safetensors").read_bytes()
    assert "replace" in refused("fit", "v.safetensors", "-c", "y.npy", "-o", "v.safetensors")
    assert (people.folder / "v.safetensors").read_bytes() == before


def test_names_with_spaces_can_be_typed_as_they_are_suggested(people, run):
    source = people.write("bios train.parquet")
    code, out, _ = run("fit", "bios train.parquet", "-c", "gender", "-o", "my g.safetensors")
    assert code == 0, source
    following = shlex.split(out.split("Next: expunge ")[1].splitlines()[0])
    assert following == [
        *("apply", "my g.safetensors", "bios train.parquet", "-o", "clean-bios train.parquet")
    ]
    assert run(*following)[0] == 0
    assert "Saved to my g.safetensors\n" in out


def test_patterns_are_suggested_in_quotes(people, run):
    np.savez(people.path("two.npz"), **{"a b": people.X, "c": people.X, "gender": people.gender})
    fit = ("fit", "two.npz", "-c", "gender", "-m", "leace", "--vectors", "a b")
    assert "two.npz --vectors 'a b' -o clean-two.npz" in run(*fit, "-o", "g.safetensors")[1]


def test_other_suggestions_quote_names_too(people, run, refused):
    fit = ("fit", "people.parquet", "-c", "gender", "-o")
    assert "Write -o 'my g.safetensors'" in refused(*fit, "my g.npy")
    audit = ("audit", "g.safetensors", "people.parquet", "-c", "gender", "--report", "my r.pdf")
    assert "Write --report 'my r.html'" in refused(*audit)
    (people.folder / "my labels.csv").write_text("a,b\n" + "x,y\n" * len(people.X))
    assert "Write 'my labels.csv:a', say" in refused(
        *fit[:3], "my labels.csv", "-o", "g.safetensors"
    )


@pytest.mark.parametrize("more", [(), ("--missing", "drop"), ("--engine", "dask")])
def test_a_column_of_lists_is_no_label(more, people, run, refused):
    people.write("t.parquet", several=pa.array([[k % 2, 1] for k in range(len(people.X))]))
    fit = ("fit", "t.parquet", "--vectors", "embedding", "-m", "leace", "-o", "g.safetensors")
    said = refused(*fit, "-c", "several", *more)
    assert "holds lists, and a label is one value" in said
    assert "Make a column of each place of the lists" in said
    if not more:
        assert "--concept several holds lists" in said
        assert "--groups holds lists" in refused(*fit, "-c", "gender", "--groups", "several")


@pytest.mark.parametrize("word", ["nan", "NA", "None", "null"])
@pytest.mark.parametrize("home", ["column", "csv", "txt"])
def test_words_for_missing_labels_are_said(home, word, people, run):
    labels = people.gender.astype(object)
    labels[:30] = word
    if home == "column":
        people.write("t.parquet", told=labels.tolist())
    else:
        (people.folder / f"told.{home}").write_text("\n".join(labels) + "\n")
    source, told = ("t.parquet", "told") if home == "column" else ("people.parquet", f"told.{home}")
    fit = (
        "fit",
        source,
        "--vectors",
        "embedding",
        "-c",
        told,
        "-m",
        "leace",
        "-o",
        "g.safetensors",
    )
    for more in ((), ("--missing", "drop")):
        code, _, err = run(*fit, *more)
        assert code == 0
        assert f"{word!r} in 30 of 600 rows" in err
        assert "--missing" in err
        assert len(err.splitlines()) == 1
