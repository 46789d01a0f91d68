"""Datasets of Hugging Face: as rows of every eraser, and as a function for `map`."""

import numpy as np
import pytest

datasets = pytest.importorskip("datasets")

import expunge as ex  # noqa: E402
from expunge.inputs import check_rows  # noqa: E402
from expunge.integrations.datasets import erase_batch  # noqa: E402

N, D = 400, 5


@pytest.fixture(scope="module", autouse=True)
def quiet():
    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y, job = rng.integers(0, 2, N), rng.integers(0, 3, N)
    X = rng.normal(size=(N, D)) + 2 * np.outer(y, [1, 0, 0, 1, 0]) + np.eye(D)[job + 1]
    return X.astype(np.float32), np.array(["f", "m"])[y], job


def people(X, gender, job, **features):
    columns = {
        "text": [f"text {i}" for i in range(len(X))],
        "embedding": X.tolist(),
        "gender": gender.tolist(),
        "job": job.tolist(),
    }
    kinds = datasets.Features(
        {
            "text": datasets.Value("string"),
            "embedding": datasets.List(datasets.Value("float32"), **features),
            "gender": datasets.Value("string"),
            "job": datasets.ClassLabel(names=["a", "b", "c"]),
        }
    )
    return datasets.Dataset.from_dict(columns, features=kinds)


def gap(X, labels):
    X = np.asarray(X, dtype=float)
    means = [X[labels == label].mean(axis=0) - X.mean(axis=0) for label in np.unique(labels)]
    return np.abs(means / X.std(axis=0)).max()


@pytest.mark.parametrize("length", [{}, {"length": D}])
def test_fit_and_transform(data, length):
    X, gender, _ = data
    table = people(*data, **length)
    assert gap(X, gender) > 0.5
    for eraser in (
        ex.LEACE().fit(table, vectors="embedding", concept="gender"),
        ex.LEACE().fit(table, concept="gender"),
    ):
        clean = eraser.transform(table)
        assert clean.dtype == np.float32
        assert gap(clean, gender) < 1e-5
        np.testing.assert_array_equal(clean, ex.LEACE().fit(X, gender).transform(X))
        np.testing.assert_array_equal(eraser.erasure_(table), clean)
        assert ex.certify(eraser, table, "gender").erased
    both = ex.LEACE().fit(table, concept=["gender", "job"])
    assert both.erasure_.meta["concept"]["labels"][:2] == ["gender=f", "gender=m"]


def test_an_order_of_its_own_and_small_blocks(data, monkeypatch):
    X, gender, _ = data
    table = people(*data).shuffle(seed=0).select(range(300))
    order = [int(text.split()[1]) for text in table["text"]]
    monkeypatch.setattr("expunge.rows.lazy_rows.SPAN", 64)
    eraser, plain = ex.RLACE().fit(table, concept="gender"), ex.RLACE().fit(X[order], gender[order])
    np.testing.assert_allclose(eraser.erasure_.matrix(), plain.erasure_.matrix(), atol=1e-6)
    assert gap(eraser.transform(table), gender[order]) < 1e-4
    some = np.array([7, 3, 250, 3])
    rows = check_rows(table)
    np.testing.assert_array_equal(rows.take(some).array(), X[order][some])
    assert rows.take(some[:0]).array().shape == (0, D)


def test_columns_of_numbers(data):
    X, gender, _ = data
    columns = {f"e{j}": X[:, j].tolist() for j in range(D)}
    table = datasets.Dataset.from_dict({**columns, "gender": gender.tolist()})
    eraser = ex.LEACE().fit(table, concept="gender")
    assert gap(eraser.transform(table), gender) < 1e-5
    assert eraser.erasure_.meta["columns"]["vectors"] == [*columns]
    turned = table.select_columns(["gender", *reversed(columns)])
    np.testing.assert_array_equal(eraser.erasure_(turned), eraser.erasure_(table))
    with pytest.raises(ex.InputError, match="'e4' missing"):
        eraser.erasure_(table.remove_columns("e4"))


def test_map(data):
    X = data[0]
    table = people(*data)
    eraser = ex.LEACE().fit(table, concept="gender")
    clean = table.map(erase_batch(eraser), batched=True, batch_size=64)
    np.testing.assert_allclose(clean["embedding"][:], eraser.transform(X), atol=1e-5)
    assert clean["text"][:] == table["text"][:]
    again = table.map(erase_batch(eraser.erasure_), batched=True, batch_size=64)
    assert again._fingerprint == clean._fingerprint  # found in the cache
    beside = table.with_format("numpy").map(erase_batch(eraser, into="clean"), batched=True)
    np.testing.assert_allclose(beside["embedding"][:], X, atol=1e-6)
    np.testing.assert_allclose(beside["clean"][:], eraser.transform(X), atol=1e-5)


def test_what_is_wrong_is_said(data):
    table = people(*data)
    eraser = ex.LEACE().fit(table, concept="gender")
    fit = ex.LEACE().fit
    two, classes = [1.0, 2.0], {"c": [0, 1, 0]}
    hole = datasets.Dataset.from_dict({"embedding": [two, None, two], **classes})
    ragged = datasets.Dataset.from_dict({"embedding": [two, [1.0], two], **classes})
    for call, match in [
        (lambda: fit(datasets.DatasetDict(train=table), concept="gender"), "several datasets"),
        (lambda: fit(table.to_iterable_dataset(), concept="gender"), "a stream"),
        (lambda: fit(table, concept="gendr"), "the nearest is 'gender'"),
        (lambda: fit(table, concept="gender", vectors="emb"), "no column 'emb'"),
        (lambda: fit(table, concept="gender", vectors="text"), "holds no numbers"),
        (lambda: fit(table.remove_columns("embedding"), concept="gender"), "not numbers"),
        (lambda: fit(hole, concept="c"), "missing .null.. Received row 1"),
        (lambda: fit(ragged, concept="c"), "has 1 numbers, and the first one 2. Received row 1"),
        (lambda: fit(data[0], table), "Name the column"),
        (lambda: table.map(erase_batch(eraser, "emb"), batched=True), "no column 'emb'"),
        (lambda: table.map(erase_batch(eraser)), "batched=True"),
        (lambda: hole.map(erase_batch(ex.Erasure.identity(2)), batched=True), "row 1 of a batch"),
    ]:
        with pytest.raises(ex.InputError, match=match):
            call()
    labels = table.select_columns(["gender"])
    assert fit(data[0], labels).certificate_.erased
