"""Texts: token batches, encodings against one text at a time, and fine-tuning a small BERT."""

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from transformers import (
    BertConfig,
    BertModel,
    GPT2Config,
    GPT2Model,
    PreTrainedTokenizerFast,
)

from expunge.errors import InputError
from expunge.integrations.adversarial import GradientReversal, encode, fresh_probe_accuracy
from expunge.reproduce.bios.adversarial.model_inputs import buckets, model_inputs

CPU = torch.device("cpu")
WORDS = ["she", "he", "plays", "paints", "rules", "a", "game", "the", "city", "old", "in", "young"]


@pytest.fixture(scope="module")
def tokenizer():
    vocabulary = {
        word: i for i, word in enumerate(["[UNK]", "[CLS]", "[SEP]", "[MASK]", "[PAD]", *WORDS])
    }
    plain = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    plain.pre_tokenizer = Whitespace()
    plain.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=plain, pad_token="[PAD]", cls_token="[CLS]", unk_token="[UNK]"
    )


@pytest.fixture(scope="module")
def bert():
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=5 + len(WORDS),
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=20,
    )
    return BertModel(config)


def bios(n, seed):
    """A verb tells the profession, a pronoun the gender, other words nothing."""
    rng = np.random.default_rng(seed)
    task, concept = rng.integers(0, 3, n), rng.integers(0, 2, n)
    fill = [rng.choice(WORDS[5:], rng.integers(1, 9)) for _ in range(n)]
    texts = [
        " ".join([WORDS[1 - c], WORDS[2 + t], *words])
        for t, c, words in zip(task, concept, fill, strict=True)
    ]
    return texts, task, np.array(["m", "f"])[concept]


def test_batches_of_texts_are_those_of_the_tokenizer(tokenizer):
    texts = bios(30, 0)[0]
    found = model_inputs(texts, tokenizer, max_length=8)
    rows = np.array([4, 29, 0])
    batch = found.batch(rows, CPU)
    expected = tokenizer(
        [texts[i] for i in rows], padding=True, truncation=True, max_length=8, return_tensors="pt"
    )
    assert tokenizer.pad_token_id != 0
    assert torch.equal(batch["input_ids"], expected["input_ids"])
    assert torch.equal(batch["attention_mask"], expected["attention_mask"])
    assert found.lengths.max() == 8


def test_buckets_hold_every_row_once_and_lengths_that_are_near():
    lengths = np.array([5, 1, 9, 1, 5, 2, 8])
    found = list(buckets(lengths, 3))
    assert sorted(np.concatenate(found)) == list(range(7))
    assert [lengths[rows].tolist() for rows in found] == [[1, 1, 2], [5, 5, 8], [9]]


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_encodings_against_one_text_at_a_time(bert, tokenizer, pooling):
    texts = bios(40, 1)[0]
    found = encode(bert.train(), texts, tokenizer=tokenizer, pooling=pooling, batch_size=7)
    assert bert.training  # as it was
    bert.eval()
    with torch.no_grad():
        states = [
            bert(**tokenizer(t, return_tensors="pt", return_token_type_ids=False)).last_hidden_state
            for t in texts
        ]
    expected = [s[0, 0] if pooling == "cls" else s[0].mean(dim=0) for s in states]
    np.testing.assert_allclose(found, torch.stack(expected), atol=2e-6)
    assert found.dtype == np.float32
    assert np.ptp(found, axis=0).max() > 5e-3  # texts do differ


@pytest.fixture(scope="module")
def gpt2():
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=5 + len(WORDS), n_embd=24, n_layer=2, n_head=2, n_positions=20)
    return GPT2Model(config)


def test_a_causal_model_is_read_at_its_last_token(gpt2, tokenizer):
    texts, task, concept = bios(40, 1)
    found = encode(gpt2, texts, tokenizer=tokenizer, pooling="last", batch_size=7)
    gpt2.eval()
    with torch.no_grad():
        states = [gpt2(tokenizer(t, return_tensors="pt")["input_ids"])[0][0, -1] for t in texts]
    np.testing.assert_allclose(found, torch.stack(states), atol=2e-6)
    for work in (
        lambda: encode(gpt2, texts, tokenizer=tokenizer),
        lambda: GradientReversal(gpt2, tokenizer=tokenizer, steps=1).fit(
            texts, task, concept, validation=(texts, task, concept)
        ),
    ):
        with pytest.raises(InputError, match=r"first token.*does not see.*GPT2Model.*'last'"):
            work()


def test_long_texts_are_cut_to_what_the_model_takes(bert, tokenizer):
    text = " ".join(["game"] * 500)
    assert model_inputs([text], tokenizer, encoder=bert).lengths.tolist() == [20]
    assert np.isfinite(encode(bert, [text, "he plays"], tokenizer=tokenizer)).all()


def test_fine_tuning_on_texts(bert, tokenizer):
    train, dev, test = bios(400, 2), bios(100, 3), bios(300, 4)
    settings = {"steps": 200, "evaluate_every": 50, "learning_rate": 0.02, "pooling": "mean"}
    model = GradientReversal(bert, tokenizer=tokenizer, weight=0.1, **settings)
    model.fit(*train, validation=dev)
    assert np.mean(model.predict_task(test[0]) == test[1]) > 0.9
    codes = [model.encode(part[0]) for part in (train, test)]
    assert fresh_probe_accuracy(codes[0], train[2], codes[1], test[2]) > 0.7
    assert model.concept_labels_ == ("f", "m")


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("one text", "sequence of texts. Received the single text 'one text'"),
        ([], "sequence of texts. Received no texts"),
        (["he plays", 3], "not a text. Received int at position 1"),
    ],
)
def test_what_is_not_texts(tokenizer, texts, message):
    with pytest.raises(InputError, match=message):
        model_inputs(texts, tokenizer)


def test_texts_without_tokens_are_named(tokenizer):
    with pytest.raises(InputError, match=r"without a single token. Received text 1 of 2"):
        model_inputs(
            ["he plays", ""], lambda texts, **_: {"input_ids": [[7] * len(t) for t in texts]}
        )
