"""Biographies: reading, splitting, the synthetic corpus, and the experiment on given vectors."""

import csv
import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from expunge.errors import InputError
from expunge.reproduce import reproduce
from expunge.reproduce.bios_corpus import PROFESSIONS, synthetic_biographies
from expunge.reproduce.bios_data import BiosData, load
from expunge.reproduce.bios_files import read_biographies
from expunge.reproduce.bios_parts import women_of
from expunge.reproduce.experiment import Settings


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
    data = load(None, Settings(1)).content
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
    loaded = load(None, Settings(1))
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
        load(None, Settings(1, options=options))


def test_unknown_options_name_the_known_ones(tmp_path):
    with pytest.raises(InputError, match="encoder: "):
        reproduce("bios", tmp_path, options={"model": "x"})


def test_bad_files_are_refused(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "x", "job": "y"}\n')
    with pytest.raises(InputError, match="profession, gender"):
        load(tmp_path / "a.jsonl", Settings(1))
    (tmp_path / "b.txt").write_text("x")
    with pytest.raises(InputError, match="cannot be read"):
        load(tmp_path / "b.txt", Settings(1))
    (tmp_path / "c.jsonl").write_text("{")
    with pytest.raises(InputError, match="cannot be read"):
        load(tmp_path / "c.jsonl", Settings(1))


def test_who_the_women_are():
    assert women_of(np.array(["m", "f"])) == "f"
    assert women_of(np.array(["male", "female"])) == "female"


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
    assert "3 professions the correlation means little" in text
    assert (tmp_path / "out" / "figures" / "bios-accuracy.pdf").exists()
    assert "needs texts" in " ".join(done.findings)
