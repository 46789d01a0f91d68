"""Models behind PEFT: found, told apart by what their adapters do, and baked with them merged."""

import copy
import warnings
from functools import cache

import numpy as np
import peft
import pytest
import tiny_models as tiny
import torch
import transformers

import expunge as ex
from expunge.integrations.module_names import resolve
from expunge.integrations.transformers import Scrubbing, bake, collect, erasing, install, scrub

TARGETS = {
    "Llama": ["q_proj", "v_proj", "down_proj"],
    "GPT2": ["c_attn", "c_proj"],
    "OPT": ["q_proj", "fc2"],
    "Mixtral": ["q_proj", "o_proj"],
}


def adapted(name, *, trained=True, targets=None, **options):
    """A small model with LoRA, whose adapters change it if they are trained."""
    settings = peft.LoraConfig(
        r=2, target_modules=targets or TARGETS[name], task_type="CAUSAL_LM", **options
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of PEFT, on names that transformers has changed
        model = peft.get_peft_model(copy.deepcopy(tiny.causal(name)), settings).eval()
    with torch.no_grad():
        for key, weight in model.named_parameters():
            if trained and ("lora_B" in key or "lora_embedding_A" in key):
                weight.normal_(std=0.3, generator=torch.manual_seed(1))
    return model


@cache
def concept():
    """Batches of texts of which some tokens tell the concept."""
    ids = torch.randint(20, tiny.VOCAB, (60, 6), generator=torch.manual_seed(0))
    y = np.arange(60) % 2
    ids[:, 1:5] = torch.from_numpy(10 + y)[:, None] + torch.arange(0, 8, 2)
    return [({"input_ids": ids, "attention_mask": torch.ones_like(ids)}, y)]


@cache
def scrubbed(name):
    return scrub(tiny.causal(name), concept(), None, "all", sample=0)


def logits(model, erasures=None, **options):
    with torch.no_grad(), erasing(model, erasures or {}, **options):
        return model(**tiny.left_padded()).logits


@pytest.mark.parametrize("name", TARGETS)
def test_the_same_model_is_found_behind_peft(name, tmp_path):
    scrubbed(name).save(tmp_path / "a.safetensors")
    scrubbing = Scrubbing.load(tmp_path / "a.safetensors")
    plain, around = tiny.causal(name), adapted(name, trained=False)
    with scrubbing.erasing(plain):
        expected = logits(plain)
    with scrubbing.erasing(around):
        torch.testing.assert_close(logits(around), expected, atol=1e-5, rtol=0)
    assert not torch.allclose(logits(plain), expected, atol=1e-3)
    for kind in ("all", "attn", "mlp"):
        assert list(resolve(around, kind)) == list(resolve(plain, kind))
    again = scrub(around, concept(), None, "all", sample=0)
    assert list(again) == list(scrubbing)
    assert again.model == scrubbing.model
    inside = collect(around, None, concept(), "all")
    for layer, rows in collect(plain, None, concept(), "all").items():
        np.testing.assert_allclose(inside[layer], rows, atol=1e-5)


def test_what_a_trained_adapter_does_is_another_model():
    plain, around = tiny.causal("Llama"), adapted("Llama")
    assert (logits(plain) - logits(around)).abs().max() > 0.1
    with pytest.raises(ex.InputError, match="other weights"):
        scrubbed("Llama").check_model(around)
    with around.disable_adapter():
        scrubbed("Llama").check_model(around)
    scrubbing = scrub(around, concept(), None, "all", sample=0)
    with pytest.raises(ex.InputError, match="other weights"):
        scrubbing.check_model(plain)
    scrubbing.check_model(around)
    merged = copy.deepcopy(around).merge_and_unload()
    assert type(merged) is type(plain)
    with scrubbing.erasing(around), scrubbing.erasing(merged):
        torch.testing.assert_close(logits(merged), logits(around), atol=1e-5, rtol=0)
    inside = copy.deepcopy(around)
    inside.merge_adapter()
    scrubbing.check_model(inside)
    around.add_adapter("second", peft.LoraConfig(r=2, target_modules=["q_proj"]))
    scrubbing.check_model(around)  # the first is the active one
    around.set_adapter("second")  # which does nothing yet
    scrubbed("Llama").check_model(around)


@pytest.mark.parametrize(
    "options",
    [
        {"use_dora": True},
        {"use_rslora": True},
        {"targets": ["q_proj", "embed_tokens"]},
        {"modules_to_save": ["embed_tokens"]},
    ],
    ids=str,
)
def test_other_kinds_of_adapters(options):
    fresh = adapted("Llama", trained=False, **options)
    scrubbed("Llama").check_model(fresh)
    trained = adapted("Llama", **options)
    scrubbing = scrub(trained, concept(), None, "all", sample=0)
    with pytest.raises(ex.InputError, match="other weights"):
        scrubbing.check_model(tiny.causal("Llama"))
    scrubbing.check_model(copy.deepcopy(trained).merge_and_unload())


def test_a_trained_copy_of_the_embeddings_counts():
    model = adapted("Llama", trained=False, modules_to_save=["embed_tokens"])
    with torch.no_grad():
        model.get_input_embeddings().modules_to_save["default"].weight.add_(0.1)
    with pytest.raises(ex.InputError, match="other weights"):
        scrubbed("Llama").check_model(model)


def test_evaluation_of_a_model_inside_others():
    """The language it models is evaluated behind PEFT and behind a compiled wrapper alike."""
    plain, scrubbing = tiny.causal("Llama"), scrubbed("Llama")
    expected = scrubbing.evaluate(plain, concept(), None)
    assert expected.loss["after"] != expected.loss["before"]
    for around in (adapted("Llama", trained=False), torch.compile(plain, backend="eager")):
        with torch.compiler.set_stance("force_eager"):  # tracing would take most of the time
            found = scrubbing.evaluate(around, concept(), None)
        assert found.loss == pytest.approx(expected.loss, abs=1e-4)
        assert found.kl == pytest.approx(expected.kl, abs=1e-4)
        assert found.probes["before"] == expected.probes["before"]


def test_installed_erasures():
    model = adapted("Llama", trained=False)
    scrubbing = scrubbed("Llama")
    with scrubbing.erasing(model):
        expected = logits(model)
    install(model, scrubbing)
    torch.testing.assert_close(logits(model), expected, atol=1e-6, rtol=0)


def oblique(constant=True):
    rng = np.random.default_rng(0)
    left = rng.normal(size=(16, 2))
    right = np.linalg.pinv(left + rng.normal(size=(16, 2)) / 2)
    left = left @ np.linalg.inv(right @ left)
    return ex.Erasure(left, right, rng.normal(size=16) if constant else None)


@pytest.mark.parametrize("name", [*TARGETS, "embeddings"])
def test_bake_merges_adapters(name, tmp_path):
    targets = ["q_proj", "embed_tokens", "lm_head"] if name == "embeddings" else None
    base = "Llama" if name == "embeddings" else name
    model, e = adapted(base, targets=targets), oblique()
    before = logits(model)
    baked = bake(model, e, path=tmp_path / "baked")
    assert torch.equal(logits(model), before)  # as it was
    assert type(baked) is type(tiny.causal(base))
    assert not any("lora" in key for key in baked.state_dict())
    norms = [
        key for key, module in model.named_modules() if "norm" in type(module).__name__.lower()
    ]
    expected = logits(model, dict.fromkeys(norms, e), at="input")
    loaded = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "baked").eval()
    real = tiny.left_padded()["attention_mask"].bool()
    torch.testing.assert_close(logits(loaded)[real], expected[real], atol=1e-5, rtol=0)
    assert (expected - before)[real].abs().max() > 0.01


@pytest.mark.parametrize("name", ["Llama", "OPT"])
def test_a_shared_erasure_is_fitted_and_baked_behind_peft(name):
    model = adapted(name)
    shared = scrub(model, concept(), None, "all", shared=True)
    assert max(row.bits_before for row in shared.report) > 0.1
    baked = bake(model, shared)
    with shared.erasing(model):
        expected = logits(model)
    assert (logits(model) - expected).abs().max() > 0.01
    torch.testing.assert_close(logits(baked), expected, atol=1e-5, rtol=0)
