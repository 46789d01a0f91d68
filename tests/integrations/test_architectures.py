"""The same erasures in many architectures: the right place, padding, caches, beams, precision."""

import copy
import threading
from functools import cache

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import tiny_models as tiny  # noqa: E402

import expunge as ex  # noqa: E402
from expunge.integrations.intercept import intercepting  # noqa: E402
from expunge.integrations.transformers import Scrubbing, erasing, scrub  # noqa: E402


@cache
def some_erasure():
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(16, 2)) / 4, rng.normal(size=(2, 16))
    return ex.Erasure(left, right, rng.normal(size=16), rng.normal(size=16) / 4)


def pixels(texts=3):
    return torch.randn(texts, 3, 16, 16, generator=torch.manual_seed(0))


@cache
def case(name):
    """A model, what it is run on, the name of a layer, and which positions are no padding."""
    batch = tiny.left_padded()
    real = batch["attention_mask"].bool()
    if name in tiny.CAUSAL:
        return tiny.causal(name), batch, tiny.CAUSAL[name][1], real
    if name in tiny.ENCODERS:
        return tiny.encoder(name), batch, tiny.ENCODERS[name][1], real
    if name.partition(" ")[0] in tiny.BOTH:
        base, _, part = name.partition(" ")
        inputs = {
            **batch,
            "decoder_input_ids": batch["input_ids"],
            "decoder_attention_mask": batch["attention_mask"],
        }
        layer = tiny.BOTH[base][1 if part == "encoder" else 2]
        return tiny.encoder_decoder(base), inputs, layer, real
    images = torch.ones(3, 17, dtype=torch.bool)
    if name == "CLIP vision":
        inputs = {**batch, "pixel_values": pixels()}
        return tiny.clip(), inputs, "vision_model.encoder.layers.0", images
    if name == "Wav2Vec2":  # 400 samples become 98 states
        sound = torch.randn(3, 400, generator=torch.manual_seed(0))
        inputs = {
            "input_values": sound,
            "attention_mask": (torch.arange(400) < torch.tensor([400, 300, 200])[:, None]).long(),
        }
        real = torch.arange(98) < torch.tensor([98, 73, 48])[:, None]
        return tiny.wav2vec2(), inputs, "encoder.layers.0", real
    if name == "ViT":
        return tiny.vit(), {"pixel_values": pixels()}, "layers.0", images
    if name == "Whisper encoder":
        sound = torch.randn(3, 4, 40, generator=torch.manual_seed(0))
        inputs = {"input_features": sound, "decoder_input_ids": batch["input_ids"]}
        return tiny.whisper(), inputs, "encoder.layers.0", torch.ones(3, 20, dtype=torch.bool)
    if name == "LLaVA":
        ids = torch.randint(6, tiny.VOCAB, (3, 24), generator=torch.manual_seed(0))
        ids[:, 4:20] = 5
        mask = (torch.arange(24) >= torch.arange(3)[:, None]).long()
        inputs = {"input_ids": ids, "attention_mask": mask, "pixel_values": pixels()}
        return tiny.llava(), inputs, "language_model.layers.0", mask.bool()
    assert name == "CLIP text"
    inputs = {**batch, "pixel_values": pixels()}
    return tiny.clip(), inputs, "text_model.encoder.layers.0", real


NAMES = [*tiny.CAUSAL, *tiny.ENCODERS, "T5 encoder", "T5 decoder", "Bart encoder", "Bart decoder"]
NAMES += ["CLIP vision", "CLIP text", "ViT", "Wav2Vec2", "Whisper encoder", "LLaVA"]


def full_name(model, layer):
    from expunge.integrations.module_names import resolve

    return resolve(model, layer)[layer]


def first_of(output):
    return output[0] if isinstance(output, tuple) else output


def states(model, layer, inputs, erasures=None, **options):
    """What a layer gives, at its first run."""
    found = []
    module = model.get_submodule(full_name(model, layer))
    inner = erasing(model, erasures or {}, **options)
    with torch.no_grad(), inner, intercepting(module, after=lambda o: found.append(o) or o):
        model(**inputs)
    return first_of(found[0]).double().numpy()


def test_there_are_enough_architectures():
    assert len({name.partition(" ")[0] for name in NAMES}) >= 24


@pytest.mark.parametrize("name", NAMES)
def test_place_and_padding(name):
    model, inputs, layer, real = case(name)
    e = some_erasure()
    before = states(model, layer, inputs)
    everywhere = states(model, layer, inputs, {layer: e})
    np.testing.assert_allclose(everywhere, e.transform(before), atol=1e-5)
    assert np.abs(everywhere - before).max() > 0.05
    masked = states(model, layer, inputs, {layer: e}, tokens="masked")
    real = real.numpy()
    np.testing.assert_allclose(masked[real], e.transform(before[real]), atol=1e-5)
    np.testing.assert_array_equal(masked[~real], before[~real])
    above = layer[:-1] + "1"
    if "albert" not in layer:  # whose one layer runs several times
        plain = states(model, above, inputs)
        moved = states(model, above, inputs, {layer: e})
        assert np.abs(moved - plain).max() > 1e-3
        called_with = states(model, above, inputs, {above: e}, at="input")
        np.testing.assert_allclose(called_with, moved, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_half_precision(name, dtype):
    model, inputs, layer, _ = case(name)
    half = copy.deepcopy(model).to(dtype)
    inputs = {k: v.to(dtype) if v.is_floating_point() else v for k, v in inputs.items()}
    e, before = some_erasure(), states(half, layer, inputs)
    after = states(half, layer, inputs, {layer: e})
    close = 2.0 ** (-7 if dtype is torch.bfloat16 else -10) * max(1, np.abs(after).max())
    np.testing.assert_allclose(after, e.transform(before), atol=close)


def tokens_of(model, batch, **options):
    return model.generate(
        **batch, max_new_tokens=4, min_new_tokens=4, do_sample=False, pad_token_id=0, **options
    )


@pytest.mark.parametrize("name", tiny.CAUSAL)
def test_generation_is_the_same_with_every_cache(name):
    model, batch, layer, _ = case(name)
    e = some_erasure()
    static = {"cache_implementation": "static", "disable_compile": True}
    with erasing(model, {layer: e}, tokens="masked"):
        without = tokens_of(model, batch, use_cache=False)
        assert torch.equal(tokens_of(model, batch), without)
        if name not in ("Mamba",):
            assert torch.equal(tokens_of(model, batch, **static), without)
        beams = {"num_beams": 2}
        expected = tokens_of(model, batch, use_cache=False, **beams)
        if name != "Mamba":
            assert torch.equal(tokens_of(model, batch, **beams), expected)
    with erasing(model, {layer: e}, tokens="prompt"):
        prompt = tokens_of(model, batch)
    with erasing(model, {layer: e}, tokens="generated"):
        later = tokens_of(model, batch)
    assert torch.equal(later[:, 9], tokens_of(model, batch)[:, 9])  # the prompt as it was
    assert torch.equal(prompt[:, 9], without[:, 9])


@pytest.mark.parametrize("name", ["Llama", "GPT2", "Bert", "T5 decoder", "CLIP vision"])
def test_threads(name):
    model, inputs, layer, _ = case(name)
    batches = [{k: v[:n] for k, v in inputs.items()} for n in (1, 2, 3)]
    wrong = []
    with erasing(model, {layer: some_erasure()}, tokens="masked"):
        with torch.no_grad():
            expected = [first_of(model(**batch).to_tuple()) for batch in batches]

        def work(i):
            for _ in range(8):
                with torch.no_grad():
                    found = first_of(model(**batches[i]).to_tuple())
                if not torch.allclose(found, expected[i], atol=1e-5):
                    wrong.append(i)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


@pytest.mark.parametrize("name", NAMES)
def test_scrub_save_and_load(name, tmp_path):
    """The concept is one class of every three inputs, told apart by their numbers."""
    model, inputs, layer, real = case(name)
    if "albert" in layer:
        pytest.skip("one layer that runs several times is fitted on all of its runs")
    y = np.array([0, 1, 1])
    scrubbing = scrub(model, [(inputs, y)], None, layer, tokens="masked", sample=0)
    scrubbing.save(tmp_path / "a.safetensors")
    again = Scrubbing.load(tmp_path / "a.safetensors")
    before = states(model, layer, inputs)
    with again.erasing(model):
        after = states(model, layer, inputs)
    real, of = real.numpy(), np.broadcast_to(y[:, None], real.shape)
    gaps = [
        np.abs(H[real & (of == 1)].mean(axis=0) - H[real & (of == 0)].mean(axis=0)).max()
        for H in (before, after)
    ]
    assert gaps[0] > 1e-3
    assert gaps[1] < 1e-5 * max(1, np.abs(before).max())
