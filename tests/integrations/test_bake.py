"""Baked models: what hooks do, done by the weights, in a process that has no expunge."""

import copy
import json
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import tiny_models as tiny  # noqa: E402

import expunge as ex  # noqa: E402
from expunge.integrations.transformers import Scrubbing, bake, erasing, scrub  # noqa: E402

STREAM = ["Llama", "Mistral", "Mixtral", "Qwen2", "Qwen3", "Phi3", "Gemma", "GptOss"]
STREAM += ["GPT2", "GPTNeoX", "OPT", "Mamba"]
STREAM += ["Phi", "Cohere", "Granite", "Qwen3Moe", "DeepseekV3", "Falcon", "GPTJ", "Mpt", "Jamba"]
NORMS = {  # names of norms whose readers take any affine erasure, and where a bias is new
    "Llama": ["layers.*.input_layernorm", "layers.*.post_attention_layernorm"],
    "GPT2": ["h.*.ln_1", "h.*.ln_2"],
    "GPTNeoX": ["layers.*.input_layernorm", "layers.*.post_attention_layernorm"],
    "OPT": ["layers.*.self_attn_layer_norm", "layers.*.final_layer_norm"],
    "Bloom": ["h.*.input_layernorm", "h.*.post_attention_layernorm"],
    "Granite": ["layers.*.input_layernorm", "layers.*.post_attention_layernorm"],
    "Phi": ["layers.*.input_layernorm"],
    "Falcon": ["h.*.input_layernorm"],
    **dict.fromkeys(["Qwen2", "Qwen3Moe", "DeepseekV3"], ("layers.*.input_layernorm",)),
}
LINEAR = {  # norms whose readers take an erasure without a constant
    **dict.fromkeys(
        ["Mistral", "Mixtral", "Phi3", "Gemma", "GptOss", "Qwen3", "Cohere"],
        ("layers.*.input_layernorm", "layers.*.post_attention_layernorm"),
    ),
    "GPTJ": ["h.*.ln_1"],
    "Mpt": ["blocks.*.norm_1", "blocks.*.norm_2"],
    "Jamba": ["layers.*.input_layernorm", "layers.*.pre_ff_layernorm"],
    "Mamba": ["layers.*.norm"],
}

LOADER = """
import json, sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "expunge":
            raise ModuleNotFoundError("No module named " + repr(name), name=name)
sys.meta_path.insert(0, Absent())
import numpy, torch, transformers
transformers.logging.disable_progress_bar()
torch.set_num_threads(1)
folder, names = sys.argv[1], sys.argv[2:]
batch = {key: torch.tensor(value) for key, value in json.load(open(folder + "/batch.json")).items()}
for name in names:
    model = transformers.AutoModelForCausalLM.from_pretrained(folder + "/" + name).eval()
    with torch.no_grad():
        numpy.save(folder + "/" + name + ".npy", model(**batch).logits.numpy())
assert "expunge" not in sys.modules
"""


def erasure(seed=0, *, constant=True, rank=2):
    """Oblique and idempotent, as LEACE gives them."""
    rng = np.random.default_rng(seed)
    left = rng.normal(size=(16, rank))
    right = np.linalg.pinv(left + rng.normal(size=(16, rank)) / 2)
    left = left @ np.linalg.inv(right @ left)
    return ex.Erasure(left, right, rng.normal(size=16) if constant else None)


def norm_erasures(name):
    """A different erasure at every norm."""
    model = tiny.causal(name)
    patterns = {**NORMS, **LINEAR}[name]
    parts = [(pattern.partition(".")[0], pattern.rpartition(".")[2]) for pattern in patterns]
    names = [k.split(".") for k in dict(model.base_model.named_modules())]
    chosen = [".".join(k) for k in names if len(k) > 2 and (k[-3], k[-1]) in parts]
    assert len(chosen) == 2 * len(patterns) - (name == "Cohere") * 2  # which has but one per layer
    return {k: erasure(i, constant=name not in LINEAR) for i, k in enumerate(chosen)}


@pytest.fixture(scope="module")
def reloaded(tmp_path_factory):
    """Logits with hooks, and of the saved models in another process, by name."""
    folder = tmp_path_factory.mktemp("baked")
    batch = tiny.left_padded()
    hooked, plain = {}, {}
    for name in STREAM:
        model, e = tiny.causal(name), erasure()
        bake(model, e, path=folder / f"stream-{name}")
        reads = stream_readers(model)
        with torch.no_grad(), erasing(model, dict.fromkeys(reads, e), at="input"):
            hooked[f"stream-{name}"] = model(**batch).logits.numpy()
    for name in [*NORMS, *LINEAR]:
        model, erasures = tiny.causal(name), norm_erasures(name)
        bake(model, erasures, path=folder / f"norms-{name}")
        with torch.no_grad(), erasing(model, erasures):
            hooked[f"norms-{name}"] = model(**batch).logits.numpy()
    for key in hooked:
        with torch.no_grad():
            plain[key] = tiny.causal(key.partition("-")[2])(**batch).logits.numpy()
    (folder / "batch.json").write_text(json.dumps({k: v.tolist() for k, v in batch.items()}))
    command = [sys.executable, "-c", LOADER, str(folder), *hooked]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = {key: np.load(folder / f"{key}.npy") for key in hooked}
    return folder, hooked, found, plain


def stream_readers(model):
    """Norms outside attention: by name, not as `bake` finds them."""
    inner = {"self_attn", "mamba"}
    return [
        name
        for name, module in model.named_modules()
        if "norm" in type(module).__name__.lower() and not inner & set(name.split("."))
    ]


KEYS = [f"stream-{n}" for n in STREAM]
KEYS += [f"norms-{n}" for n in [*NORMS, *LINEAR]]


@pytest.mark.parametrize("key", KEYS)
def test_baked_equals_hooked_after_reload_without_expunge(reloaded, key):
    _, hooked, found, plain = reloaded
    real = tiny.left_padded()["attention_mask"].numpy().astype(bool)
    np.testing.assert_allclose(found[key][real], hooked[key][real], atol=1e-5)
    assert np.abs(hooked[key][real] - plain[key][real]).max() > 1e-2


def test_what_was_done_is_in_the_configuration_and_on_the_card(reloaded):
    folder = reloaded[0]
    told = json.loads((folder / "stream-Llama" / "config.json").read_text())["expunge"]
    assert (told["way"], told["erasures"][0]["rank"]) == ("stream", 2)
    told = json.loads((folder / "norms-Llama" / "config.json").read_text())
    assert told["attention_bias"]
    assert told["mlp_bias"]
    assert told["expunge"]["erasures"][0]["module"] == "model.layers.0.input_layernorm"
    card = (folder / "stream-GPT2" / "README.md").read_text()
    assert "residual stream" in card
    assert "| residual stream | 2 | not recorded |" in card


def test_the_model_is_left_as_it_was_and_its_precision_kept():
    model = tiny.causal("GPT2")
    before = {key: value.clone() for key, value in model.state_dict().items()}
    baked = bake(model, erasure())
    assert model.config.tie_word_embeddings
    assert not baked.config.tie_word_embeddings
    assert torch.equal(baked.lm_head.weight, model.lm_head.weight)  # what reads is as it was
    assert not torch.equal(baked.transformer.wte.weight, model.transformer.wte.weight)
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    half = bake(copy.deepcopy(model).bfloat16(), erasure())
    assert {weight.dtype for weight in half.parameters()} == {torch.bfloat16}


def test_linear_layers_and_embeddings_by_themselves():
    model, batch = tiny.causal("GPT2"), tiny.left_padded()
    erasures = {"wte": erasure(1), "h.0.mlp.c_proj": erasure(2), "h.1.attn.c_proj": erasure(3)}
    baked = bake(model, erasures)
    with torch.no_grad():
        with erasing(model, erasures):
            expected = model(**batch).logits
        torch.testing.assert_close(baked(**batch).logits, expected, atol=1e-5, rtol=0)


def test_adapters_are_merged():
    class Adapted(transformers.GPT2LMHeadModel):
        def merge_and_unload(self):
            with torch.no_grad():
                self.transformer.h[0].mlp.c_proj.weight += 0.1
            return self

    model = Adapted(tiny.causal("GPT2").config)
    model.load_state_dict(tiny.causal("GPT2").state_dict())
    baked, e = bake(model, erasure()), erasure()
    with torch.no_grad():
        model.transformer.h[0].mlp.c_proj.weight += 0.1
    torch.testing.assert_close(
        baked.transformer.h[0].mlp.c_proj.weight.detach().double(),
        model.transformer.h[0].mlp.c_proj.weight.detach().double() @ torch.tensor(e.matrix()).T,
        atol=1e-6,
        rtol=0,
    )


@pytest.mark.parametrize("probe", [None, {"input_ids": torch.arange(3, 27).view(2, 12)}])
def test_a_mask_between_norm_and_readers(probe):
    """Mamba sets padding to zero behind its norm, so that a constant would come too late."""
    model, batch = tiny.causal("Mamba"), tiny.left_padded()
    with pytest.raises(ex.InputError, match=r"such as by the mask.*layers.0.norm.*without center"):
        bake(model, {"layers.0.norm": erasure()}, probe=probe)
    erasures = {f"layers.{i}.norm": erasure(i, constant=False) for i in range(2)}
    baked, real = bake(model, erasures, probe=probe), batch["attention_mask"].bool()
    with torch.no_grad():
        before = model(**batch).logits
        with erasing(model, erasures):
            expected = model(**batch).logits
        found = baked(**batch).logits
    torch.testing.assert_close(found[real], expected[real], atol=1e-5, rtol=0)
    assert (expected - before)[real].abs().max() > 0.01


@pytest.mark.parametrize("name", ["Gemma2", "Olmo2", "Bloom", "Gemma3Text", "Olmo3"])
def test_norms_behind_writers_are_refused(name):
    with pytest.raises(ex.InputError, match=r"between what writes.*a norm"):
        bake(tiny.causal(name), erasure())


@pytest.mark.parametrize("name", tiny.ENCODERS)
def test_post_norm_models_are_refused(name):
    with pytest.raises(ex.InputError, match=r"between what writes.*post-norm"):
        bake(tiny.encoder(name), erasure())
    if name == "Bert":
        with pytest.raises(ex.InputError, match="stays on the stream"):
            bake(tiny.encoder(name), {"encoder.layer.0.output.LayerNorm": erasure()})


def test_what_cannot_be_baked_is_refused_with_the_reason():
    model = tiny.causal("Llama")
    e, other = erasure(), erasure(1)
    for erasures, words in [
        ({"layers.0": e, "layers.1": other}, "stays on the stream"),
        (Scrubbing({"layers.0.input_layernorm": e}, tokens="masked"), "all tokens alike"),
        (
            Scrubbing({"layers.0.input_layernorm": e, "norm": other}, at="input"),
            "different erasure per layer on the stream",
        ),
        (Scrubbing({"layers.0.input_layernorm": e}, at="input"), "leave out some of its readers"),
        ({"norm": e}, "has no place for.*lm_head"),
        (ex.Erasure(e.left, 2 * e.right), "done twice is not the erasure"),
        (ex.Erasure(e.left, e.right, offset=np.ones(16)), "done twice is not the erasure"),
        ({"layers.0.self_attn": e}, "stays on the stream"),
    ]:
        with pytest.raises(ex.InputError, match=words):
            bake(model, erasures)
    with pytest.raises(ex.InputError, match="no place for"):
        bake(tiny.causal("Mixtral"), {"layers.0.post_attention_layernorm": e})
    with pytest.raises(ex.InputError, match="no single list of layers"):
        bake(tiny.encoder_decoder("T5"), e, probe=seq2seq_probe())
    with pytest.raises(ex.InputError, match="Only a Hugging Face model"):
        bake(torch.nn.Linear(16, 16), e)
    quantised = copy.deepcopy(model)
    quantised.model.layers[0].mlp.up_proj.weight = torch.nn.Parameter(
        torch.zeros(24, 16, dtype=torch.int8), requires_grad=False
    )
    with pytest.raises(ex.InputError, match="quantised"):
        bake(quantised, e)


def seq2seq_probe():
    ids = tiny.left_padded()["input_ids"]
    return {"input_ids": ids, "decoder_input_ids": ids}


def test_a_model_that_weights_cannot_follow_is_noticed():
    """The stream is used once more in a way that no layer shows."""

    class Odd(transformers.LlamaForCausalLM):
        def forward(self, *args, **kwargs):
            output = super().forward(*args, **kwargs)
            states = self.model.embed_tokens(kwargs["input_ids"])
            output.logits = output.logits + states.sum(dim=-1, keepdim=True)
            return output

    torch.manual_seed(0)
    with pytest.raises(ex.InputError, match="does not do what the model with hooks does"):
        bake(Odd(tiny.causal("Llama").config), erasure())


# -- one erasure for the stream, fitted ------------------------------------------------------------


@pytest.fixture(scope="module")
def concept():
    """Texts of which four tokens of six tell the concept."""
    ids = torch.randint(20, tiny.VOCAB, (120, 6), generator=torch.manual_seed(0))
    y = np.arange(120) % 2
    ids[:, 1:5] = torch.from_numpy(10 + y)[:, None] + torch.arange(0, 8, 2)
    batches = [
        ({"input_ids": ids[i : i + 40], "attention_mask": torch.ones(40, 6)}, y[i : i + 40])
        for i in range(0, 120, 40)
    ]
    return ids, y, batches


@pytest.mark.parametrize("name", ["Llama", "GPT2"])
def test_a_shared_erasure_is_baked(concept, name):
    ids, y, batches = concept
    model = tiny.causal(name)
    shared = scrub(model, batches, None, "all", shared=True)
    assert shared.at == "input"
    assert len({id(e) for e in shared.values()}) == 1
    assert len(shared) == 5  # two norms per layer, and the last
    assert shared.report[-1].bits_before > 0.1
    assert all(row.bits_after < 0.02 for row in shared.report)
    baked = bake(model, shared)
    with torch.no_grad():
        with shared.erasing(model):
            expected = model(ids).logits
        torch.testing.assert_close(baked(ids).logits, expected, atol=1e-5, rtol=0)
    states = stream_states(baked, ids)
    for layer, before in stream_states(model, ids).items():
        gaps = [
            np.abs(H[y == 1].mean(axis=(0, 1)) - H[y == 0].mean(axis=(0, 1))).max()
            for H in (before, states[layer])
        ]
        assert gaps[1] < gaps[0] / 5


def stream_states(model, ids):
    with torch.no_grad():
        found = model(ids, output_hidden_states=True).hidden_states[:-1]
    return {i: states.double().numpy() for i, states in enumerate(found)}
