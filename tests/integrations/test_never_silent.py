"""Where an erasure inside a model was wrong without a word: now right, or refused."""

import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import tiny_models as tiny  # noqa: E402

import expunge as ex  # noqa: E402
from expunge.integrations.intercept import intercepting  # noqa: E402
from expunge.integrations.transformers import Scrubbing, erasing, scrub  # noqa: E402

FIRST = ex.Erasure(np.eye(16)[:, :1], np.eye(16)[:1], offset=np.full(16, 7.0))


def changed(model, name, run, tokens, erasure=FIRST):
    """At which positions of each call the output of a module is changed by the erasure."""
    found, before = [], []
    module = model.get_submodule(name)

    def note(output):
        states = output[0] if isinstance(output, tuple) else output
        before.append(states.detach().clone())
        return output

    def compare(output):
        states = output[0] if isinstance(output, tuple) else output
        found.append((states != before[-1]).any(dim=-1))
        return output

    with (
        torch.no_grad(),
        intercepting(module, after=note),
        erasing(model, {name: erasure}, tokens=tokens),
        intercepting(module, after=compare),
    ):
        run()
    return found


# -- 1: a mask belongs to the stack that received it ----------------------------------------------


@pytest.mark.parametrize("tokens", ["mean", "masked", "cls", "last"])
def test_images_have_no_mask_of_the_texts_beside_them(tokens):
    model = tiny.clip()
    ids = torch.full((2, 40), 4)
    mask = torch.zeros_like(ids)
    mask[:, :3] = 1  # the texts are short, and longer than the 17 patches when padded
    pixels = torch.randn(2, 3, 16, 16, generator=torch.manual_seed(0))

    def run():
        model(input_ids=ids, attention_mask=mask, pixel_values=pixels)

    (at,) = changed(model, "vision_model.encoder.layers.1", run, tokens)
    expected = {"cls": [0], "last": [16]}.get(tokens, range(17))
    assert at.shape == (2, 17)
    assert all(row.nonzero().flatten().tolist() == list(expected) for row in at)
    (at,) = changed(model, "text_model.encoder.layers.1", run, "masked")
    assert torch.equal(at, mask.bool())


def test_the_parts_of_llava():
    model = tiny.llava()
    ids = torch.randint(6, tiny.VOCAB, (2, 30), generator=torch.manual_seed(0))
    ids[:, 2:18] = 5  # where the 16 patches go
    mask = torch.ones_like(ids)
    mask[1, 25:] = 0
    pixels = torch.randn(2, 3, 16, 16, generator=torch.manual_seed(0))

    def run():
        model(input_ids=ids, attention_mask=mask, pixel_values=pixels)

    (at,) = changed(model, "model.vision_tower.encoder.layers.0", run, "masked")
    assert at.all()
    (at,) = changed(model, "model.language_model.layers.0", run, "masked")
    assert torch.equal(at, mask.bool())
    with pytest.raises(ex.InputError, match="not clear which states"):  # patches beside tokens
        changed(model, "model.multi_modal_projector", run, "masked")


def test_sound_has_the_mask_that_its_encoder_gets():
    """The waves are padded at 40 of 60 samples; the encoder is told of frames."""
    model = tiny.wav2vec2()
    mask = torch.ones(2, 60, dtype=torch.long)
    mask[1, 40:] = 0
    wave = torch.randn(2, 60, generator=torch.manual_seed(0))
    (at,) = changed(model, "encoder.layers.0", lambda: model(wave, attention_mask=mask), "masked")
    assert at[0].all()
    assert 0 < at[1].sum() < at.shape[1]
    assert at[1].sum() == model._get_feat_extract_output_lengths(40)


# -- 2: one model in several threads ---------------------------------------------------------------


@pytest.mark.parametrize("tokens", ["masked", "cls"])
def test_threads_do_not_share_what_is_known_of_a_call(tokens):
    model = tiny.encoder("Bert")
    batches = [tiny.left_padded(2, 4 + i) for i in range(6)]
    wrong = []
    with torch.no_grad(), erasing(model, {"encoder.layer.0": FIRST}, tokens=tokens):
        expected = [model(**batch).last_hidden_state for batch in batches]

        def work(first):
            for turn in range(25):
                i = (first + turn) % len(batches)
                with torch.no_grad():
                    try:
                        found = model(**batches[i]).last_hidden_state
                        if not torch.equal(found, expected[i]):
                            wrong.append(i)
                    except ex.InputError as error:
                        wrong.append(error)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


# -- 3 and 4: caches -------------------------------------------------------------------------------

FLEXIBLE = [name for name in tiny.CAUSAL if name != "Mamba"]


def generated(model, batch, **options):
    return model.generate(
        **batch, max_new_tokens=4, min_new_tokens=4, do_sample=False, pad_token_id=0, **options
    )


@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("name", FLEXIBLE)
def test_the_right_columns_of_the_mask_with_any_cache(name, cache):
    model, layer = tiny.causal(name), tiny.CAUSAL[name][1]
    if cache == "static" and not model._can_compile_fullgraph:
        pytest.skip("the model takes no static cache")
    batch, full = tiny.left_padded(), f"{model.base_model_prefix}.{layer}"
    options = {"cache_implementation": "static", "disable_compile": True}
    options = options if cache == "static" else {}
    at = changed(model, full, lambda: generated(model, batch, **options), "masked")
    assert torch.equal(at[0], batch["attention_mask"].bool())
    assert len(at) == 4
    assert all(step.all() and step.shape == (3, 1) for step in at[1:])
    at = changed(model, full, lambda: generated(model, batch, **options), "cls")
    assert at[0].int().argmax(dim=1).tolist() == [0, 1, 2]
    assert at[0].sum() == 3
    assert not any(step.any() for step in at[1:])  # the first token is in the cache


def test_a_mask_as_long_as_a_static_cache():
    model = tiny.causal("Llama").model
    cache = transformers.StaticCache(config=model.config, max_cache_len=20)
    batch = tiny.left_padded()
    mask = torch.zeros(3, 20, dtype=torch.long)
    mask[:, :9] = batch["attention_mask"]

    def run():
        model(batch["input_ids"], attention_mask=mask, past_key_values=cache)
        mask[:, 9] = 1
        model(batch["input_ids"][:, :1], attention_mask=mask, past_key_values=cache)

    at = changed(model, "layers.0", run, "masked")
    assert torch.equal(at[0], batch["attention_mask"].bool())
    assert at[1].all()


@pytest.mark.parametrize("name", ["Llama", "GPT2", "Mamba"])
def test_without_a_mask_the_first_token_is_in_the_cache(name):
    model, layer = tiny.causal(name), tiny.CAUSAL[name][1]
    ids = tiny.left_padded()["input_ids"][:1]
    at = changed(
        model,
        f"{model.base_model_prefix}.{layer}",
        lambda: generated(model, {"input_ids": ids}),
        "cls",
    )
    assert at[0].nonzero().tolist() == [[0, 0]]
    assert len(at) == 4
    assert not any(step.any() for step in at[1:])


@pytest.mark.parametrize("name", [*tiny.BOTH, "Whisper"])
def test_the_first_token_of_a_decoder(name):
    if name == "Whisper":
        model, layer = tiny.whisper(), "model.decoder.layers.0"
        batch = {"input_features": torch.randn(1, 4, 40)}
    else:
        model, batch = tiny.encoder_decoder(name), tiny.left_padded(1)
        layer = ("model." if name == "Bart" else "") + tiny.BOTH[name][2]
    at = changed(model, layer, lambda: generated(model, batch), "cls")
    assert [int(step.sum()) for step in at] == [1] + [0] * (len(at) - 1)
    assert len(at) > 2


@pytest.mark.parametrize("tokens", ["mean", "last"])
def test_what_has_no_meaning_for_a_text_that_grows_is_refused(tokens):
    model = tiny.causal("Llama")
    batch = tiny.left_padded()
    with (
        pytest.raises(ex.InputError, match=r"text that grows.*9 tokens in its cache"),
        erasing(model, {"layers.0": FIRST}, tokens=tokens),
    ):
        generated(model, batch)
    with erasing(model, {"layers.0": FIRST}, tokens=tokens):
        assert generated(model, batch, use_cache=False).shape == (3, 13)


# -- 5: another model ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scrubbed():
    """A concept in the token numbers, scrubbed from two layers of a LLaMA."""
    model = tiny.causal("Llama")
    ids = torch.randint(3, tiny.VOCAB, (40, 6), generator=torch.manual_seed(0))
    y = np.arange(40) % 2
    ids[:, 2] = torch.from_numpy(10 + y)
    batches = [({"input_ids": ids, "attention_mask": torch.ones_like(ids)}, y)]
    return scrub(model, batches, None, ["model.layers.0", "layers.1"], sample=0)


def test_the_file_says_which_model_it_was(scrubbed, tmp_path):
    assert list(scrubbed) == ["layers.0", "layers.1"]
    scrubbed.save(tmp_path / "a.safetensors")
    again = Scrubbing.load(tmp_path / "a.safetensors")
    assert again.model == scrubbed.model
    assert again.model["class"] == "LlamaModel"
    assert len(again.model["config"]) == len(again.model["weights"]["float32"]) == 32
    assert (again.at, again.tokens) == ("output", "all")


def test_another_model_is_refused(scrubbed):
    other = tiny.causal("Mistral")
    with pytest.raises(ex.InputError, match=r"another model.*configuration.*MistralModel here"):
        scrubbed.erasing(other)
    torch.manual_seed(1)
    trained = transformers.LlamaForCausalLM(tiny.causal("Llama").config).eval()
    with pytest.raises(ex.InputError, match=r"other weights.*force=True"):
        scrubbed.erasing(trained)
    with scrubbed.erasing(trained, force=True):
        trained(**tiny.left_padded())


class Peft(torch.nn.Module):
    """Named as PEFT names what is inside it."""

    def __init__(self, model):
        super().__init__()
        self.base_model = torch.nn.Module()
        self.base_model.model = model

    def get_base_model(self):
        return self.base_model.model

    def forward(self, **inputs):
        return self.base_model.model(**inputs)


def test_the_same_model_is_found_inside_others(scrubbed):
    model, batch = tiny.causal("Llama"), tiny.left_padded()
    with torch.no_grad():
        with scrubbed.erasing(model):
            expected = model(**batch).logits
        assert not torch.allclose(expected, model(**batch).logits, atol=1e-4)
        for around in (Peft(model), torch.compile(model, backend="eager")):
            with scrubbed.erasing(around):
                torch.testing.assert_close(around(**batch).logits, expected)
        with scrubbed.erasing(model.model):
            states = model.model(**batch).last_hidden_state
        torch.testing.assert_close(model.lm_head(states), expected)
    torch.compiler.reset()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_the_same_model_in_another_precision(scrubbed, dtype):
    import copy

    model = copy.deepcopy(tiny.causal("Llama")).to(dtype)
    with scrubbed.erasing(model), torch.no_grad():
        model(**tiny.left_padded())


# -- 6: modules that do not run, and backward passes after the block -------------------------------


def test_a_module_that_does_not_run_is_an_error():
    model = tiny.encoder("Bert")
    with (
        pytest.raises(ex.InputError, match=r"nothing was erased there.*'encoder\.layer'"),
        erasing(model, {"encoder.layer": FIRST, "encoder.layer.0": FIRST}),
        torch.no_grad(),
    ):
        model(**tiny.left_padded())
    with pytest.raises(KeyError, match="mine"), erasing(model, {"encoder.layer": FIRST}):
        raise KeyError("mine")
    with erasing(model, {"encoder.layer": FIRST}):
        pass  # nothing ran at all


class Checkpointed(torch.nn.Module):
    """Two layers that are run again in the backward pass; the inner ones are erased."""

    def __init__(self, reentrant):
        super().__init__()
        torch.manual_seed(0)
        self.inner = torch.nn.ModuleList(torch.nn.Linear(16, 16) for _ in range(2))
        self.reentrant = reentrant

    def forward(self, input_ids, attention_mask=None):
        x = input_ids.float().unsqueeze(-1).expand(-1, -1, 16).clone().requires_grad_() / 30
        for layer in self.inner:
            run = layer if self.reentrant is None else self.again(layer)
            x = torch.tanh(run(x))
        return x

    def again(self, layer):
        def run(x):
            return torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=self.reentrant)

        return run


@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("tokens", ["all", "masked"])
def test_gradients_with_checkpointing(reentrant, tokens):
    batch, e = tiny.left_padded(), ex.Erasure(np.eye(16)[:, :3], np.eye(16)[:3])

    def gradient(kind, *, inside):
        model = Checkpointed(kind).train()
        with erasing(model, {"inner.0": e, "inner.1": e}, tokens=tokens):
            loss = (model(**batch) ** 2).sum()
            if inside:
                loss.backward()
        if not inside:
            loss.backward()
        return model.inner[0].weight.grad

    torch.testing.assert_close(gradient(reentrant, inside=True), gradient(None, inside=True))
    with pytest.raises(ex.InputError, match=r"block of their erasures has ended.*inside the block"):
        gradient(reentrant, inside=False)
    torch.testing.assert_close(gradient(None, inside=False), gradient(None, inside=True))


@pytest.mark.parametrize("reentrant", [True, False])
def test_backward_after_the_block_in_a_model_that_checkpoints(reentrant):
    import copy

    model = copy.deepcopy(tiny.causal("Llama")).train()
    current = getattr(model, "activation_checkpointing_enable", None)
    (current or model.gradient_checkpointing_enable)({"use_reentrant": reentrant})
    batch = tiny.left_padded()
    for name, inside in [("layers.0.mlp", True), ("layers.0.mlp", False)]:
        with erasing(model, {name: FIRST}, tokens="masked"):
            loss = model(**batch, labels=batch["input_ids"]).loss
            if inside:
                loss.backward()
        if not inside:
            with pytest.raises(ex.InputError, match="block of their erasures has ended"):
                loss.backward()


# -- 7: padding of decoders, and causal encoders ---------------------------------------------------


@pytest.mark.parametrize("name", tiny.BOTH)
def test_padding_of_a_decoder_without_a_mask_is_never_fitted_on(name):
    model, layer = tiny.encoder_decoder(name), tiny.BOTH[name][2]
    ids = torch.randint(3, tiny.VOCAB, (30, 7), generator=torch.manual_seed(0))
    ids[:, 0] = 0  # the start token of T5 is its padding token
    y = np.arange(30) % 2
    kept = torch.ones_like(ids, dtype=torch.bool)
    kept[torch.from_numpy(y) == 1, 4:] = False  # the padding tells the concept
    ids = ids.masked_fill(~kept, 0)
    source = {"input_ids": ids, "attention_mask": kept.long()}
    batches = [({**source, "decoder_input_ids": ids}, y)]
    found = scrub(model, batches, None, layer, sample=0)
    assert found.report[0].n == kept.sum()
    told = [({**source, "decoder_input_ids": ids, "decoder_attention_mask": kept.long()}, y)]
    assert scrub(model, told, None, layer, sample=0).report[0].n == kept.sum()


# -- 9: biases that are lost -----------------------------------------------------------------------


def test_a_bias_that_a_file_would_lose_is_refused():
    from expunge.integrations.torch import fold_into

    model = tiny.causal("Llama")
    linear = model.model.layers[0].self_attn.q_proj
    assert linear.bias is None
    with pytest.raises(ex.InputError, match=r"needs a bias.*add_bias=True"):
        fold_into(FIRST, linear)
    assert fold_into(FIRST, linear, add_bias=True).bias is not None
    assert fold_into(ex.Erasure(FIRST.left, FIRST.right), linear).bias is None
