"""One erasure for the stream with many directions: five classes, two concepts; fitted and baked."""

import json
import subprocess
import sys

import numpy as np
import pytest
import tiny_models as tiny
import torch
import transformers
from sklearn.linear_model import LogisticRegression
from test_bake import LOADER

import expunge as ex
from expunge.integrations.dense_map import dense_map
from expunge.integrations.transformers import bake, collect, scrub

WIDTH, TEXTS = 32, 200
SETTINGS = {
    "Llama": {**tiny.LLAMA, "hidden_size": WIDTH, "head_dim": WIDTH // 2},
    "GPT2": {**tiny.GPT2, "n_embd": WIDTH},
}
CASES = [("Llama", "five"), ("GPT2", "two")]


def wide(name):
    torch.manual_seed(0)
    config = tiny.config(name, SETTINGS[name])
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(4 if weight.ndim > 1 and weight.std() < 0.05 else 1)
    return model


@pytest.fixture(scope="module")
def corpus():
    """Texts of which three tokens tell one of five classes, and two one of three others."""
    rng = np.random.default_rng(0)
    ids = torch.randint(30, tiny.VOCAB, (TEXTS, 7), generator=torch.manual_seed(0))
    y, z = rng.integers(0, 5, TEXTS), rng.integers(0, 3, TEXTS)
    ids[:, 1:4] = torch.from_numpy(5 + y)[:, None]
    ids[:, 4:6] = torch.from_numpy(20 + z)[:, None]
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}, y, z


@pytest.fixture(scope="module")
def baked(corpus, tmp_path_factory):
    """By case: the model, its scrubbing, and logits of the baked model in another process."""
    folder = tmp_path_factory.mktemp("shared")
    batch, y, z = corpus
    found = {}
    for name, concept in CASES:
        model = wide(name)
        labels = y if concept == "five" else np.column_stack([np.eye(5)[y], np.eye(3)[z]])
        scrubbing = scrub(
            model, [(batch, labels)], None, "all", eraser=ex.LEACE(), shared=True, sample=500
        )
        bake(model, scrubbing, path=folder / f"{name}-{concept}")
        found[name, concept] = model, scrubbing
    plain = {key: value.tolist() for key, value in batch.items()}
    (folder / "batch.json").write_text(json.dumps(plain))
    names = ["-".join(case) for case in CASES]
    command = [sys.executable, "-c", LOADER, str(folder), *names]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {
        case: (*parts, np.load(folder / f"{'-'.join(case)}.npy"), folder / "-".join(case))
        for case, parts in found.items()
    }


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_baked_equals_hooked_in_a_process_without_expunge(corpus, baked, case):
    model, scrubbing, logits, _ = baked[case]
    with torch.no_grad():
        before = model(**corpus[0]).logits.numpy()
        with scrubbing.erasing(model):
            hooked = model(**corpus[0]).logits.numpy()
    np.testing.assert_allclose(logits, hooked, atol=1e-5)
    assert np.abs(hooked - before).max() > 0.1


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_one_idempotent_erasure_of_as_many_directions_as_it_takes(baked, case):
    _, scrubbing, _, path = baked[case]
    (erasure,) = {id(e): e for e in scrubbing.values()}.values()
    least = 4 if case[1] == "five" else 4 + 2
    assert least < erasure.rank < WIDTH
    P, t = dense_map(erasure)
    np.testing.assert_allclose(P @ P, P, atol=1e-10)
    np.testing.assert_allclose(P @ t, 0, atol=1e-10)
    assert min(row.share_before for row in scrubbing.report) > 0.2
    assert max(row.share_after for row in scrubbing.report) < 0.01
    told = json.loads((path / "config.json").read_text())["expunge"]["erasures"]
    assert [row["rank"] for row in told] == [erasure.rank]


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_no_layer_of_the_baked_model_tells_the_classes(corpus, baked, case):
    """Probes learn from the tokens of every other text, and are asked about the other texts."""
    model, _, _, path = baked[case]
    batch, y, z = corpus
    plain = transformers.AutoModelForCausalLM.from_pretrained(path).eval()
    states = [collect(m, None, [batch], "all", "tokens") for m in (model, plain)]
    text = states[0].text
    late = np.tile(np.arange(7) > 3, TEXTS)  # tokens that have seen both concepts
    known, asked = late & (text % 2 == 0), late & (text % 2 == 1)
    for labels in [y] if case[1] == "five" else [y, z]:
        of = labels[text]
        for layer in states[0]:
            before, after = (
                LogisticRegression(C=0.1, max_iter=500)
                .fit(X[layer][known], of[known])
                .score(X[layer][asked], of[asked])
                for X in states
            )
            most = np.bincount(of[asked]).max() / asked.sum()
            assert before > most + 0.2
            assert after < most + 0.08


def test_more_directions_than_there_are_is_refused(corpus):
    batch, y, _ = corpus
    with pytest.raises(ex.InputError, match=r"would erase all of it.*of 16 features"):
        scrub(tiny.causal("Llama"), [(batch, y)], None, "all", shared=True, sample=0)
