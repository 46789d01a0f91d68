"""Corpora as libraries give them: columns, streams, series, loaders of texts; all one result."""

import datasets
import numpy as np
import pandas as pd
import pytest
import torch
from sentences import GENDER, TEXTS

import expunge as ex
from expunge.integrations.text_batches import WINDOW
from expunge.integrations.transformers import collect, scrub

N = 40
LAYERS = ["encoder.layer.0", "encoder.layer.1"]
TABLE = {"text": TEXTS[:N], "gender": GENDER[:N].tolist()}


def dataset():
    return datasets.Dataset.from_dict(TABLE)


def stream():
    return dataset().to_iterable_dataset(num_shards=3)


class Lines(torch.utils.data.IterableDataset):
    """Texts as torch streams them."""

    def __init__(self, values):
        self.values = values

    def __iter__(self):
        return iter(self.values)


def loader():
    """Batches of texts and labels."""
    rows = list(zip(TABLE["text"], TABLE["gender"], strict=True))
    return torch.utils.data.DataLoader(rows, batch_size=16)


CORPORA = {
    "column": lambda: (dataset()["text"], dataset()["gender"]),
    "stream": lambda: (stream()["text"], stream()["gender"]),
    "torch stream": lambda: (Lines(TABLE["text"]), TABLE["gender"]),
    "series": lambda: (pd.Series(TABLE["text"], index=range(7, 7 + N)), pd.Series(TABLE["gender"])),
    "arrow": lambda: (pd.Series(TABLE["text"], dtype="string[pyarrow]"), GENDER[:N]),
    "loader": lambda: (loader(), None),
    "batches": lambda: (
        [{"text": TEXTS[i : i + 8], "labels": GENDER[i : i + 8]} for i in range(0, N, 8)],
        None,
    ),
    "loader of a dataset": lambda: (
        torch.utils.data.DataLoader(dataset().remove_columns("gender"), batch_size=8),
        GENDER[:N],
    ),
}


@pytest.fixture(scope="module")
def expected(minilm):
    model, tokenizer = minilm
    options = {"tokenizer": tokenizer, "tokens": "mean", "sample": 0, "batch_size": 8}
    scrubbing = scrub(model, TABLE["text"], GENDER[:N], LAYERS, **options)
    return scrubbing, {
        pooling: collect(model, tokenizer, TABLE["text"], LAYERS, pooling, batch_size=8)
        for pooling in ("mean", "tokens")
    }


@pytest.mark.parametrize("kind", CORPORA)
def test_one_result(minilm, expected, kind, monkeypatch):
    monkeypatch.setattr("expunge.integrations.text_batches.WINDOW", 2)  # several windows
    model, tokenizer = minilm
    data, labels = CORPORA[kind]()
    for pooling, states in expected[1].items():
        found = collect(model, tokenizer, data, LAYERS, pooling, batch_size=8)
        np.testing.assert_array_equal(found.text, states.text)
        for layer in LAYERS:
            np.testing.assert_allclose(found[layer], states[layer], atol=2e-5)
    scrubbing = scrub(
        model, data, labels, LAYERS, tokenizer=tokenizer, tokens="mean", sample=0, batch_size=8
    )
    for layer in LAYERS:
        X = expected[1]["mean"][layer]
        assert scrubbing[layer].rank == 1
        np.testing.assert_allclose(
            scrubbing[layer].transform(X), expected[0][layer].transform(X), atol=1e-3
        )


def test_a_stream_is_held_in_windows_and_never_whole(minilm):
    model, tokenizer = minilm
    ahead = []

    class Counted(Lines):
        def __iter__(self):
            for i, value in enumerate(self.values):
                ahead.append(i)
                yield value

    texts = ["a nurse"] * (3 * WINDOW)
    seen = []

    def tokenize(batch, **options):
        seen.append(len(ahead))
        return tokenizer(batch, **options)

    found = collect(model, tokenize, Counted(texts), LAYERS[:1], batch_size=1, max_length=8)
    assert found[LAYERS[0]].shape == (3 * WINDOW, 384)
    assert seen[0] == 1 + WINDOW  # one was looked at to see what comes


@pytest.mark.parametrize("change", [-1, 1])
def test_a_stream_with_another_number_of_labels(minilm, change):
    model, tokenizer = minilm
    labels = (GENDER[:N].tolist() * 2)[: N + change]
    with pytest.raises(ex.InputError, match="one label per text"):
        scrub(model, stream()["text"], labels, LAYERS[0], tokenizer=tokenizer, sample=0)


def test_what_is_unclear_is_refused(minilm):
    model, tokenizer = minilm
    with pytest.raises(ex.InputError, match=r"which texts of a batch.*columns text, gender"):
        collect(model, tokenizer, stream().batch(4), LAYERS[0])
    with pytest.raises(ex.InputError, match="more than once"):
        scrub(model, iter(TEXTS), GENDER, LAYERS[0], tokenizer=tokenizer)
    with pytest.raises(ex.InputError, match=r"which texts of a batch.*a single text"):
        collect(model, tokenizer, iter(TEXTS), LAYERS[0])
    with pytest.raises(ex.InputError, match="one label per text"):
        scrub(model, stream()["text"], None, LAYERS[0], tokenizer=tokenizer)
