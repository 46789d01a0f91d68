"""Models that do things their own way: time before texts, masks not passed on, flat states."""

import numpy as np
import pytest
import tiny_models as tiny
import torch
import transformers
from test_never_silent import FIRST, changed

import expunge as ex
from expunge.integrations.transformers import bake, collect, erasing, scrub


def made(name, **settings):
    torch.manual_seed(0)
    config = tiny.config(name, settings)
    model = transformers.AutoModel.from_config(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(4 if weight.ndim > 1 and weight.std() < 0.05 else 1)
    return model


def xlnet():
    return made("XLNet", d_model=16, n_layer=2, n_head=2, d_inner=24), "layer.0"


def fsmt():
    torch.manual_seed(0)
    config = transformers.FSMTConfig(
        langs=["a", "b"], src_vocab_size=60, tgt_vocab_size=60, **tiny.BART
    )
    return transformers.FSMTModel(config).eval(), "encoder.layers.0"


@pytest.mark.parametrize("kind", [xlnet, fsmt])
@pytest.mark.parametrize("length", [9, 3])
def test_states_with_tokens_before_texts_are_refused(kind, length):
    """Also where there are as many texts as tokens, so that the shape does not show it."""
    model, layer = kind()
    batch = {key: value[:, -length:] for key, value in tiny.left_padded(3, 9).items()}
    batch["attention_mask"] = torch.tensor([[1] * length, [1] * (length - 1) + [0], [1] * length])
    inputs = dict(batch)
    if kind is fsmt:
        inputs["decoder_input_ids"] = batch["input_ids"]
    with torch.no_grad():
        for tokens in ("masked", "cls", "mean"):
            with (
                pytest.raises(ex.InputError, match="belong to which token"),
                erasing(model, {layer: FIRST}, tokens=tokens),
            ):
                model(**inputs)
        with erasing(model, {layer: FIRST}):  # all of them are all of them
            model(**inputs)
    with pytest.raises(ex.InputError, match="belong to which token"):
        scrub(model, [(inputs, [0, 1, 1])], None, layer, sample=0)
    with pytest.raises(ex.InputError, match="belong to which token"):
        collect(model, None, [inputs], layer, "tokens")


class QueriesFirst(torch.nn.Module):
    """Gives states of shape (queries, images, d)."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Identity()

    def forward(self, pixel_values):
        return self.layer(pixel_values.flatten(1)[None, :, :16].expand(5, -1, -1))


def test_queries_before_images_are_refused():
    with pytest.raises(ex.InputError, match="belong to which token"):
        collect(QueriesFirst(), None, [{"pixel_values": torch.ones(3, 1, 4, 4)}], "layer", "cls")


def rwkv():
    torch.manual_seed(0)
    settings = {"hidden_size": 16, "num_hidden_layers": 2, "attention_hidden_size": 16}
    config = tiny.config("Rwkv", settings)
    return transformers.RwkvForCausalLM(config).eval()


def test_a_mask_that_the_outer_model_does_not_pass_on():
    model, batch = rwkv(), tiny.left_padded()
    (at,) = changed(model, "rwkv.blocks.0", lambda: model(**batch), "masked")
    assert torch.equal(at, batch["attention_mask"].bool())
    states = collect(model, None, [batch], "blocks.0", "tokens")
    assert np.bincount(states.text).tolist() == [9, 8, 7]


def test_a_state_that_counts_no_tokens():
    model, ids = rwkv(), torch.tensor([[7, 8, 9]])

    def run():
        state = model(ids, use_cache=True).state
        model(ids[:, :1], state=state, use_cache=True)

    first, later = changed(model, "rwkv.blocks.0", run, "cls")
    assert first.tolist() == [[True, False, False]]
    assert later.tolist() == [[False]]


@pytest.mark.parametrize("use_cache", [True, False])
def test_padding_tokens_that_a_decoder_is_given(use_cache):
    """By their numbers, the same with and without a cache; the first token starts the text."""
    model, batch = tiny.encoder_decoder("T5"), tiny.left_padded()
    ids = torch.tensor([[0, 5, 0, 6, 0]]).expand(3, -1)

    def run():
        if not use_cache:
            model(**batch, decoder_input_ids=ids)
            return
        cache = None
        for i in range(5):
            out = model(**batch, decoder_input_ids=ids[:, i : i + 1], past_key_values=cache)
            cache = out.past_key_values

    at = torch.cat(changed(model, "decoder.block.0", run, "masked"), dim=1)
    assert at.tolist() == [[True, True, False, True, False]] * 3


@pytest.mark.parametrize("tokens", ["masked", "cls", "mean"])
def test_states_that_are_flat_inside_a_layer(tokens):
    """OPT runs its second norm on states of shape (texts * tokens, d)."""
    model, batch = tiny.causal("OPT"), tiny.left_padded()
    name = "model.decoder.layers.0.final_layer_norm"
    (at,) = changed(model, name, lambda: model(**batch), tokens)
    expected = batch["attention_mask"].bool()
    if tokens == "cls":
        expected = expected & (expected.cumsum(dim=1) == 1)
    assert torch.equal(at.view(3, 9), expected)
    states = collect(model, None, [batch], name, "tokens")
    assert np.bincount(states.text).tolist() == [9, 8, 7]


def test_patches_are_no_tokens_of_the_text_beside_them():
    """As many patches, in one flat tensor, as there are tokens in all texts."""
    torch.manual_seed(0)
    rope = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 1e4}
    vision = {"depth": 2, "embed_dim": 16, "hidden_size": 16, "num_heads": 2, "mlp_ratio": 1}
    vision |= {"patch_size": 4, "spatial_merge_size": 2, "temporal_patch_size": 1}
    config = transformers.Qwen2VLConfig(
        text_config={**tiny.LLAMA, "vocab_size": 60, "rope_parameters": rope},
        vision_config=vision,
        image_token_id=5,
        video_token_id=6,
        vision_start_token_id=7,
        vision_end_token_id=8,
    )
    model = transformers.Qwen2VLForConditionalGeneration(config).eval()
    ids = torch.randint(9, tiny.VOCAB, (3, 16), generator=torch.manual_seed(0))
    ids[:, 2:8] = torch.tensor([7, 5, 5, 5, 5, 8])
    mask = torch.ones_like(ids)
    mask[1, 0] = 0
    inputs = {
        "input_ids": ids,
        "attention_mask": mask,
        "pixel_values": torch.randn(48, 48, generator=torch.manual_seed(0)),
        "image_grid_thw": torch.tensor([[1, 4, 4]] * 3),
        "mm_token_type_ids": (ids == 5).long(),
    }
    for part in ("visual.blocks.0", "visual.blocks.0.norm1"):
        with (
            pytest.raises(ex.InputError, match="belong to which token"),
            erasing(model, {part: FIRST}, tokens="masked"),
            torch.no_grad(),
        ):
            model(**inputs)
    name = "model.language_model.layers.0"
    (at,) = changed(model, name, lambda: model(**inputs), "masked")
    assert torch.equal(at, mask.bool())


@pytest.mark.parametrize("part", ["", ".fc2"])
def test_a_mask_that_is_made_shorter_inside(part):
    """Of 40 frames of sound a quarter is left; so is of the mask, inside the encoder."""
    torch.manual_seed(0)
    settings = {k: v for k, v in tiny.BART.items() if k != "max_position_embeddings"}
    config = transformers.Speech2TextConfig(
        **settings | tiny.SPECIAL,
        vocab_size=tiny.VOCAB,
        input_feat_per_channel=8,
        conv_channels=8,
        max_source_positions=64,
        max_target_positions=64,
        decoder_start_token_id=1,
    )
    model = transformers.Speech2TextModel(config).eval()
    lengths = torch.tensor([40, 28, 20])
    inputs = {
        "input_features": torch.randn(3, 40, 8, generator=torch.manual_seed(0)),
        "attention_mask": (torch.arange(40) < lengths[:, None]).long(),
        "decoder_input_ids": tiny.left_padded()["input_ids"],
    }
    name = f"encoder.layers.0{part}"
    (at,) = changed(model, name, lambda: model(**inputs), "masked")
    assert at.sum(dim=1).tolist() == [10, 7, 5]
    assert np.bincount(collect(model, None, [inputs], name, "tokens").text).tolist() == [10, 7, 5]
    with (
        pytest.raises(ex.InputError, match="belong to which token"),
        erasing(model, {"encoder.layer_norm": FIRST}, tokens="masked"),
        torch.no_grad(),
    ):
        model(**inputs)
    inputs["attention_mask"] = torch.ones(3, 40).long()
    (at,) = changed(model, "encoder.layer_norm", lambda: model(**inputs), "masked")
    assert at.all()


def test_an_erasure_that_a_compiled_model_meets_first():
    """It is copied to the device while torch traces: without a warning, and right the next time."""
    compiled = torch.compile(torch.nn.Sequential(torch.nn.Linear(16, 16)), backend="eager")
    x, e = torch.randn(3, 16), ex.Erasure(np.eye(16)[:, :1], np.eye(16)[:1])
    with torch.no_grad():
        plain = compiled(x)
        for _ in range(2):
            with erasing(compiled, {"0": e}):
                found = compiled(x)
            assert (found[:, 0] == 0).all()
            torch.testing.assert_close(found[:, 1:], plain[:, 1:])
    torch.compiler.reset()


def test_layers_without_hidden_states_cannot_be_baked():
    settings = dict.fromkeys(
        ("q_groups", "k_groups", "v_groups", "post_attention_groups", "intermediate_groups"), 1
    )
    model = made("SqueezeBert", **tiny.BERT, **settings, output_groups=1, embedding_size=16)
    with pytest.raises(ex.InputError, match="last layer gives no hidden states"):
        bake(model, ex.Erasure(np.eye(16)[:, :1], np.eye(16)[:1]))
