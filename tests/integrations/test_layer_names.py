"""Layers by pattern and by kind: the right modules, which give what their kind says they do."""

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import tiny_models as tiny  # noqa: E402

import expunge as ex  # noqa: E402
from expunge.integrations.intercept import intercepting  # noqa: E402
from expunge.integrations.module_names import resolve  # noqa: E402
from expunge.integrations.transformers import collect, erasing, scrub  # noqa: E402

# architecture -> the list of layers in the base model, what attends, the MLP
PARTS = {
    "GPT2": ("h", ["attn"], ["mlp"]),
    "Llama": ("layers", ["self_attn"], ["mlp"]),
    "GPTNeoX": ("layers", ["attention"], ["mlp"]),
    "Mixtral": ("layers", ["self_attn"], ["mlp"]),
    "Mamba": ("layers", ["mixer"], []),
    "OPT": ("decoder.layers", ["self_attn"], ["fc2"]),
    "Bloom": ("h", ["self_attention"], ["mlp"]),
    "Bert": ("encoder.layer", ["attention.output.dense"], ["output.dense"]),
    "DistilBert": ("transformer.layer", ["attention"], ["ffn"]),
    "ModernBert": ("layers", ["attn"], ["mlp"]),
    "T5 encoder": ("encoder.block", ["layer.0.SelfAttention"], ["layer.1.DenseReluDense"]),
    "T5 decoder": (
        "decoder.block",
        ["layer.0.SelfAttention", "layer.1.EncDecAttention"],
        ["layer.2.DenseReluDense"],
    ),
    "Bart decoder": ("decoder.layers", ["self_attn", "encoder_attn"], ["fc2"]),
}


def model_of(name):
    base = name.partition(" ")[0]
    if base in tiny.CAUSAL:
        return tiny.causal(base)
    return tiny.encoder(base) if base in tiny.ENCODERS else tiny.encoder_decoder(base)


def inputs_of(model):
    batch = tiny.left_padded()
    decoder = {"decoder_input_ids": batch["input_ids"]} if model.config.is_encoder_decoder else {}
    return {**batch, **decoder}


@pytest.mark.parametrize("name", PARTS)
def test_kinds_and_patterns(name):
    model, (layers, attends, feeds) = model_of(name), PARTS[name]
    blocks = [f"{layers}.{i}" for i in range(2)]
    side = f"{layers}."  # an encoder and a decoder have a list each
    found = {k: [n for n in _found(model, k) if n.startswith(side)] for k in ("all", "resid")}
    assert found == {"all": blocks, "resid": blocks}
    assert list(resolve(model, f"{layers}.*")) == blocks
    prefix = "" if "T5" in name or name in tiny.ENCODERS else f"{model.base_model_prefix}."
    assert list(resolve(model, f"{layers}.*").values()) == [f"{prefix}{b}" for b in blocks]
    expected = [f"{block}.{part}" for block in blocks for part in attends]
    assert [n for n in _found(model, "attn") if n.startswith(side)] == expected
    if feeds:
        expected = [f"{block}.{part}" for block in blocks for part in feeds]
        assert [n for n in _found(model, "mlp") if n.startswith(side)] == expected
    else:
        with pytest.raises(ex.InputError, match=r"no part that is 'mlp'.*mixer, norm"):
            resolve(model, "mlp")


def _found(model, kind):
    return list(resolve(model, kind))


@pytest.mark.parametrize("name", ["Llama", "GPTNeoX", "OPT", "Bert", "T5 encoder", "Mixtral"])
def test_parts_are_what_is_added_to_the_stream(name):
    """Without its attention and MLP a layer gives what it is called with (in BERT, norms of it)."""
    model, inputs = model_of(name), inputs_of(model_of(name))
    block = f"{PARTS[name][0]}.0"
    nothing = ex.Erasure(torch.eye(16), torch.eye(16))
    parts = [n for kind in ("attn", "mlp") for n in _found(model, kind) if n.startswith(block)]
    module, called, gave = model.get_submodule(resolve(model, block)[block]), [], []

    def before(args, kwargs):
        called.append((*args, *kwargs.values())[0])

    with (
        torch.no_grad(),
        erasing(model, dict.fromkeys(parts, nothing)),
        intercepting(module, before=before, after=lambda output: gave.append(output) or output),
    ):
        model(**inputs)
    out = gave[0][0] if isinstance(gave[0], tuple) else gave[0]
    expected = called[0]
    if name == "Bert":
        expected = module.output.LayerNorm(module.attention.output.LayerNorm(expected))
    torch.testing.assert_close(out, expected, atol=1e-6, rtol=0)


def test_lists_that_are_no_layers():
    """Convolutions of the sound are not layers; lists of norms mean that layers are no modules."""
    assert _found(tiny.wav2vec2(), "all") == ["encoder.layers.0", "encoder.layers.1"]
    config = transformers.XLMConfig(vocab_size=60, emb_dim=16, n_layers=2, n_heads=2)
    xlm = transformers.XLMModel(config)
    with pytest.raises(ex.InputError, match="layers of this model are not modules"):
        resolve(xlm, "resid")
    assert _found(xlm, "attn") == ["attentions.0", "attentions.1"]
    with pytest.raises(ex.InputError, match="layers of this model are not modules"):
        resolve(torch.nn.Linear(2, 2), "all")
    albert = tiny.encoder("Albert")
    group = "encoder.albert_layer_groups.0.albert_layers.0"
    assert _found(albert, "attn") == [f"{group}.attention.dense"]
    assert _found(albert, "mlp") == [f"{group}.ffn_output"]


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("layer.0", "'layers.0'"),
        ("layers.2", "'layers.1'"),
        ("model.layer.1", "'model.layers.1'"),
        ("layer.*", r"'layers.\*'"),
        ("layers.*.mpl", r"'layers.\*.mlp'"),
        ("self_attn", "'layers.0.self_attn'"),
        ("atn", "'attn'"),
        ("residual", "'resid'"),
    ],
)
def test_mistyped_names_answer_with_the_nearest(name, near):
    with pytest.raises(ex.InputError, match=rf"no module of this name.*Close names:.*{near}"):
        resolve(tiny.causal("Llama"), name)


def test_two_erasures_for_one_module_are_refused():
    model, e = tiny.causal("Llama"), ex.Erasure(torch.eye(16)[:, :1], torch.eye(16)[:1])
    for twice in ({"layers.*": e, "layers.1": e}, {"layers.0": e, "model.layers.0": e}):
        with pytest.raises(ex.InputError, match=r"more than one erasure.*layers"):
            erasing(model, twice).__enter__()


def test_kinds_in_collect_scrub_and_erasing():
    model, inputs = tiny.causal("Llama"), tiny.left_padded()
    states = collect(model, None, [inputs], "mlp")
    assert list(states) == ["layers.0.mlp", "layers.1.mlp"]
    y = [0, 1, 1]
    for kind in ("attn", "mlp", "resid", "layers.*.mlp"):
        scrubbing = scrub(model, [(inputs, y)], None, kind, sample=0)
        assert len(scrubbing) == 2
        with torch.no_grad():
            plain = model(**inputs).logits
            with scrubbing.erasing(model):
                assert not torch.allclose(model(**inputs).logits, plain, atol=1e-4)
