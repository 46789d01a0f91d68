"""Erasures that stay in a model: pickled, copied, in other processes, compiled."""

import copy
import multiprocessing
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import tiny_models as tiny  # noqa: E402

import expunge as ex  # noqa: E402
from expunge.integrations.transformers import Scrubbing, erasing, install, uninstall  # noqa: E402

FIRST = ex.Erasure(np.eye(16)[:, :1], np.eye(16)[:1], offset=np.full(16, 0.5))


def fresh(name):
    """A model that no other test has used: transformers leaves hooks that cannot be pickled."""
    return (tiny.encoder if name in tiny.ENCODERS else tiny.causal).__wrapped__(name)


def logits(model, batch):
    with torch.no_grad():
        return model(**batch)[0]


def run_pickled(content, batch):
    torch.set_num_threads(1)
    return logits(pickle.loads(content), batch).numpy()


@pytest.mark.parametrize("tokens", ["all", "masked", "cls"])
@pytest.mark.parametrize("name", ["Llama", "GPT2", "Bert"])
def test_it_does_what_the_block_does_and_is_copied(name, tokens):
    original = fresh(name)
    model, batch = copy.deepcopy(original), tiny.left_padded()
    layer = {**tiny.CAUSAL, **tiny.ENCODERS}[name][1]
    with erasing(original, {layer: FIRST}, tokens=tokens):
        expected = logits(original, batch)
    assert not torch.allclose(expected, logits(original, batch), atol=1e-3)
    assert install(model, Scrubbing({layer: FIRST}, tokens=tokens)) is model
    for same in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        torch.testing.assert_close(logits(same, batch), expected)
    assert model.state_dict().keys() == original.state_dict().keys()
    other = copy.deepcopy(model)
    uninstall(model)
    torch.testing.assert_close(logits(model, batch), logits(original, batch))
    torch.testing.assert_close(logits(other, batch), expected)  # a copy is a model of its own


def test_generation_and_blocks_around_it():
    model, batch = copy.deepcopy(fresh("Llama")), tiny.left_padded()
    options = {"max_new_tokens": 4, "do_sample": False, "pad_token_id": 0}
    second = ex.Erasure(np.eye(16)[:, 1:2], np.eye(16)[1:2])
    with erasing(model, {"layers.0": FIRST}), erasing(model, {"layers.0": second}):
        expected = model.generate(**batch, **options), logits(model, batch)
    install(model, {"layers.0": FIRST})
    with erasing(model, {"layers.0": second}):
        assert torch.equal(model.generate(**batch, **options), expected[0])
        torch.testing.assert_close(logits(model, batch), expected[1])
    with pytest.raises(ex.InputError, match=r"already.*'model\.layers\.0'.*uninstall"):
        install(model, {"layers.0": second})


def test_other_processes():
    model, batch = copy.deepcopy(fresh("Bert")), tiny.left_padded()
    install(model, Scrubbing({"encoder.layer.0": FIRST}, tokens="masked"))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.apply(run_pickled, (pickle.dumps(model), batch))
    np.testing.assert_allclose(found, logits(model, batch), atol=1e-6)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", ["Llama", "GPT2"])
def test_it_compiles_without_graph_breaks(name):
    model, batch = copy.deepcopy(tiny.causal(name)), tiny.left_padded()
    install(model, {tiny.CAUSAL[name][1]: FIRST})
    expected = logits(model, batch)
    torch.compiler.reset()
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    with torch.no_grad():
        found = compiled(**batch, use_cache=False)[0]
    torch.testing.assert_close(found, expected)
    torch.compiler.reset()
