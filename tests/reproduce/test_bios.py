"""Biographies: reading, splitting, the synthetic corpus, and the experiment on given vectors."""

import csv
import gzip
import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from expunge.errors import InputError
from expunge.reproduce import reproduce
from expunge.reproduce.bios.biographies import BiosData, load, women_of
from expunge.reproduce.bios.biography_files import read_biographies
from expunge.reproduce.bios.synthetic import PROFESSIONS, synthetic_biographies
from expunge.reproduce.runner.declaration import RunSettings


def records(n=60):
    texts, professions, genders = synthetic_biographies(n)
    return [
        {"text": t, "profession": p, "gender": g}
        for t, p, g in zip(texts, professions, genders, strict=True)
    ]


def write(path, rows):
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".csv":
        with path.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, ["text", "profession", "gender"])
            writer.writeheader()
            writer.writerows(rows)
    else:
        text = "\n".join(json.dumps(row) for row in rows).encode()
        path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def vectors(path, n=600, d=12):
    """Vectors in which gender and profession are planted, and women are rarer in the third."""
    rng = np.random.default_rng(0)
    profession = rng.integers(0, 3, n)
    gender = (rng.random(n) < np.array([0.6, 0.5, 0.3])[profession]).astype(int)
    X = rng.normal(size=(n, d)) + 3 * np.eye(d)[profession] + 2.5 * np.outer(gender, np.eye(d)[5])
    labels = {"profession": np.array(["cook", "judge", "pilot"])[profession]}
    np.savez(path, vectors=X, gender=np.array(["m", "f"])[gender], **labels)
    return path


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.csv", "a.parquet"])
def test_every_format_gives_the_same(tmp_path, name):
    rows = records()
    table = read_biographies(write(tmp_path / name, rows), "cls")
    assert list(table["text"]) == [row["text"] for row in rows]
    assert list(table["gender"]) == [row["gender"] for row in rows]


def test_a_folder_of_files_is_a_split(tmp_path):
    rows = records(90)
    for name, part in (("train", rows[:60]), ("dev", rows[60:70]), ("test", rows[70:])):
        write(tmp_path / f"{name}.jsonl", part)
    table = read_biographies(tmp_path, "cls")
    assert dict(zip(*np.unique(table["split"], return_counts=True), strict=True)) == {
        "train": 60,
        "dev": 10,
        "test": 20,
    }
    (tmp_path / "test.jsonl").unlink()
    with pytest.raises(InputError, match="training, development and testing"):
        read_biographies(tmp_path, "cls")


def test_the_split_is_65_10_25_within_every_profession():
    data = load(None, RunSettings(1)).content
    split = data.split(0)
    whole = np.concatenate([split.train, split.dev, split.test])
    assert sorted(whole) == list(range(1200))
    for profession in np.unique(data.profession):
        own = data.profession == profession
        shares = [own[part].sum() / own.sum() for part in (split.train, split.dev, split.test)]
        np.testing.assert_allclose(shares, [0.65, 0.10, 0.25], atol=1.01 / own.sum())
    assert [len(split.train), len(split.dev), len(split.test)] == [780, 120, 300]
    assert not np.array_equal(split.train, data.split(1).train)


def test_the_papers_sizes_on_as_many_rows_as_the_paper_has():
    n = 393_423
    shares = np.random.default_rng(0).dirichlet(np.ones(28))
    profession = np.random.default_rng(1).choice([f"p{k:02d}" for k in range(28)], n, p=shares)
    gender = np.full(n, "f")
    data = BiosData(None, np.zeros((n, 1)), profession, gender, None, "", "cls", 1, 128)
    split = data.split(0)
    sizes = [len(split.train), len(split.dev), len(split.test)]
    assert sizes == [255_710, 39_369, 98_344]


def test_the_corpus_is_called_synthetic_and_women_differ_by_profession():
    loaded = load(None, RunSettings(1))
    assert "SYNTHETIC" in loaded.source
    assert "synthetic" in loaded.not_comparable
    texts, professions, genders = map(np.array, synthetic_biographies(3000))
    assert set(professions) == set(PROFESSIONS)
    women = {p: np.mean(genders[professions == p] == "f") for p in PROFESSIONS}
    assert women["nurse"] > 0.75 > 0.25 > women["plumber"]
    for text, gender in zip(texts[:50], genders[:50], strict=True):
        assert ("She" in text) == (gender == "f")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pooling": "max"}, "pooling"),
        ({"steps": "many"}, "steps"),
        ({"professions": "wizard"}, "no such profession"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        load(None, RunSettings(1, options=options))


def test_unknown_options_name_the_known_ones(tmp_path):
    with pytest.raises(InputError, match="encoder: "):
        reproduce("bios", tmp_path, options={"model": "x"})


def test_bad_files_are_refused(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "x", "job": "y"}\n')
    with pytest.raises(InputError, match="profession, gender"):
        load(tmp_path / "a.jsonl", RunSettings(1))
    (tmp_path / "b.txt").write_text("x")
    with pytest.raises(InputError, match="cannot be read"):
        load(tmp_path / "b.txt", RunSettings(1))
    (tmp_path / "c.jsonl").write_text("{")
    with pytest.raises(InputError, match="cannot be read"):
        load(tmp_path / "c.jsonl", RunSettings(1))


def test_who_the_women_are():
    assert women_of(np.array(["m", "f"])) == "f"
    assert women_of(np.array(["male", "female"])) == "female"
    assert women_of(np.array(["0", "1"])) == "1"
    for labels in (["a", "b"], ["f", "female"], ["f"], ["f", "m", "x"]):
        with pytest.raises(InputError, match="one label for women"):
            women_of(np.array(labels))


def save(path, **arrays):
    labels = {"gender": np.array(["f", "m"] * 20), "profession": np.array(["a"] * 20 + ["b"] * 20)}
    np.savez(path, **{**labels, "vectors": np.zeros((40, 3)), **arrays})
    return path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", b"[1, 2]\n"),
        ("a.jsonl", b"\xff\xfe"),
        ("a.jsonl", b""),
        ("a.jsonl.gz", gzip.compress(b"{}" * 5000, mtime=0)[:-30]),  # else its name has the time
        ("a.jsonl.gz", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03 broken"),
        ("a.parquet", b"PAR1 but nothing else"),
        ("a.npz", b"PK nothing"),
        ("a.npz", b"\x93NUMPY\x01\x00nothing"),
    ],
)
def test_damaged_files_give_one_message(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=name):
        load(tmp_path / name, RunSettings(1))


@pytest.mark.parametrize(
    "arrays",
    [
        {"vectors": np.array(["x"] * 40)},
        {"vectors": np.zeros(40)},
        {"vectors": np.full((40, 3), np.nan)},
        {"vectors": np.zeros((30, 3))},
        {"vectors": np.zeros((50, 3))},
        {"vectors": np.zeros((0, 3)), "gender": np.array([]), "profession": np.array([])},
    ],
)
def test_vectors_that_do_not_fit_their_labels_are_refused(tmp_path, arrays):
    load(save(tmp_path / "good.npz"), RunSettings(1))
    with pytest.raises(InputError):
        load(save(tmp_path / "bad.npz", **arrays), RunSettings(1))


def test_line_separators_inside_a_text_do_not_end_a_line(tmp_path):
    rows = [{**row, "text": "one\u2028two\u0085three"} for row in records()]
    text = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    (tmp_path / "a.jsonl").write_text(text, encoding="utf-8")
    assert list(read_biographies(tmp_path / "a.jsonl", "cls")["text"]) == [
        row["text"] for row in rows
    ]


def test_given_splits_are_checked_before_the_work(tmp_path):
    rows = records(400)
    parts = {"train": rows[:200], "dev": rows[200:300], "test": rows[300:]}
    for name, part in parts.items():
        write(tmp_path / f"{name}.jsonl", part)
    assert set(load(tmp_path, RunSettings(1)).content.given) == set(parts)
    write(tmp_path / "test.jsonl", [row for row in parts["test"] if row["gender"] == "f"])
    with pytest.raises(InputError, match="test rows need both genders"):
        load(tmp_path, RunSettings(1))
    write(tmp_path / "test.jsonl", parts["test"])
    write(tmp_path / "train.jsonl", [r for r in parts["train"] if r["profession"] != "nurse"])
    with pytest.raises(InputError, match="no training row has"):
        load(tmp_path, RunSettings(1))
    (tmp_path / "train.jsonl").unlink()
    write(tmp_path / "train.csv", parts["train"])
    load(tmp_path, RunSettings(1))
    (tmp_path / "train.csv").unlink()
    save(tmp_path / "train.npz")
    with pytest.raises(InputError, match="of one kind"):
        load(tmp_path, RunSettings(1))


def test_quick_takes_some_of_the_rows_of_every_profession(tmp_path):
    file = write(tmp_path / "a.jsonl", records(3000))
    whole, some = (load(file, RunSettings(1, quick=quick)).content for quick in (False, True))
    assert len(whole.gender) == 3000
    assert 380 <= len(some.gender) <= 420
    assert set(some.profession) == set(whole.profession)
    given = dict(zip(whole.texts, whole.profession, strict=True))
    assert all(given[t] == p for t, p in zip(some.texts, some.profession, strict=True))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"encoder": "distilbert-base-uncased"}, "instead of BERT"),
        ({"encoder": "google-bert/bert-base-uncased", "pooling": "mean"}, r"instead of \[CLS\]"),
        (
            {"encoder": "bert-base-uncased", "steps": "70000"},
            r"^\d+ biographies instead of 393,423$",
        ),
        ({"encoder": "bert-base-uncased", "steps": "9"}, "9 batches .* instead of 70,000"),
    ],
)
def test_what_differs_from_the_paper_is_said(tmp_path, options, reason):
    file = write(tmp_path / "a.jsonl", records())
    found = load(file, RunSettings(1, options={**options, "professions": "nurse,dancer,painter"}))
    assert re.search(reason, found.not_comparable)


def test_the_experiment_on_given_vectors(tmp_path):
    data = vectors(tmp_path / "v.npz")
    done = reproduce("bios", tmp_path / "out", data, runs=1, quick=True)
    number = done.results.number
    most = number("majority", "gender").mean
    assert number("frozen", "lines", "nothing", "gender").mean > most + 0.2
    assert abs(number("frozen", "lines", "RLACE exact one", "gender").mean - most) < 0.05
    few_steps = number("frozen", "lines", "RLACE one", "gender").mean
    assert few_steps < number("frozen", "lines", "nothing", "gender").mean - 0.15
    assert number("frozen", "lines", "RLACE exact one", "profession").mean > 0.85
    assert abs(number("extras", "LEACE", "gender").mean - most) < 0.05
    assert done.results.skipped("finetuned")
    text = (tmp_path / "out" / "tables.md").read_text()
    assert "frozen + INLP (rank 1)" in text
    assert "Over 3 professions a correlation means little" in text
    assert "less of everything (quick)" in text
    assert "made elsewhere" in text
    assert "## Left out" in text
    assert (tmp_path / "out" / "figures" / "bios-accuracy.pdf").exists()
    assert "needs texts" in " ".join(done.findings)
