"""Models whose weights accelerate keeps on disk or aside: erased, collected and scrubbed alike."""

import copy

import accelerate
import numpy as np
import pytest
import tiny_models as tiny
import torch
import transformers

import expunge as ex
from expunge.integrations.transformers import bake, collect, scrub


def concept():
    ids = torch.randint(20, tiny.VOCAB, (60, 6), generator=torch.manual_seed(0))
    y = np.arange(60) % 2
    ids[:, 1:5] = torch.from_numpy(10 + y)[:, None] + torch.arange(0, 8, 2)
    return [({"input_ids": ids, "attention_mask": torch.ones_like(ids)}, y)]


@pytest.fixture(scope="module")
def scrubbed():
    return scrub(tiny.causal("Llama"), concept(), None, "all", sample=0)


def saved(tmp_path, model=None):
    path = tmp_path / ("model" if model is None else "changed")
    (tiny.causal("Llama") if model is None else model).save_pretrained(path)
    return path


def on_disk(tmp_path, model=None):
    """Loaded with a layer in memory and another on disk."""
    parts = ("model.embed_tokens", "model.layers.0", "model.norm", "model.rotary_emb", "lm_head")
    return transformers.AutoModelForCausalLM.from_pretrained(
        saved(tmp_path, model),
        device_map={**dict.fromkeys(parts, "cpu"), "model.layers.1": "disk"},
        offload_folder=tmp_path / "aside",
    ).eval()


def aside(tmp_path):
    """All weights in a dictionary of accelerate, none in the model."""
    model = transformers.AutoModelForCausalLM.from_pretrained(saved(tmp_path)).eval()
    return accelerate.cpu_offload(model, execution_device=torch.device("cpu"))


def all_on_disk(tmp_path):
    model = transformers.AutoModelForCausalLM.from_pretrained(saved(tmp_path)).eval()
    return accelerate.disk_offload(model, tmp_path / "all", torch.device("cpu"))


def logits(model):
    with torch.no_grad():
        return model(**tiny.left_padded()).logits


@pytest.mark.parametrize("made", [on_disk, aside, all_on_disk])
def test_an_offloaded_model(made, scrubbed, tmp_path):
    plain, model = tiny.causal("Llama"), made(tmp_path)
    assert any(weight.is_meta for weight in model.parameters())
    with scrubbed.erasing(plain):
        expected = logits(plain)
    assert not torch.allclose(logits(plain), expected, atol=1e-3)
    with scrubbed.erasing(model):
        torch.testing.assert_close(logits(model), expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(logits(model), logits(plain), atol=1e-6, rtol=0)
    for layer, rows in collect(plain, None, concept(), "all", "tokens").items():
        found = collect(model, None, concept(), layer, "tokens")
        np.testing.assert_allclose(found[layer], rows, atol=1e-5)
    for cache in (None, "memory", tmp_path / "states"):
        again = scrub(model, concept(), None, "all", sample=0, cache=cache)
        assert again.model == scrubbed.model
        with again.erasing(plain):
            torch.testing.assert_close(logits(plain), expected, atol=1e-4, rtol=0)
    assert any(weight.is_meta for weight in model.parameters())  # still aside


def test_another_model_is_noticed_by_weights_on_disk(scrubbed, tmp_path):
    """The embeddings and the first layer are the same; the layer on disk is not."""
    scrubbed.check_model(on_disk(tmp_path))
    other = copy.deepcopy(tiny.causal("Llama"))
    with torch.no_grad():
        other.model.layers[1].mlp.up_proj.weight.add_(1.0)
    with pytest.raises(ex.InputError, match="other weights"):
        scrubbed.check_model(on_disk(tmp_path, other))


def test_baking_is_for_weights_in_memory(tmp_path):
    """The fit may be of the offloaded model; the weights that are changed must be at hand."""
    model, plain = on_disk(tmp_path), tiny.causal("Llama")
    shared = scrub(model, concept(), None, "all", shared=True)
    with pytest.raises(ex.InputError, match="not in memory"):
        bake(model, shared)
    with shared.erasing(model):
        expected = logits(model)
    torch.testing.assert_close(logits(bake(plain, shared)), expected, atol=1e-5, rtol=0)
    assert not torch.allclose(logits(plain), expected, atol=1e-2)
