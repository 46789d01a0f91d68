"""Hidden states as rows: the right numbers in the right order, in memory and in files."""

import numpy as np
import pytest
from sentences import TEXTS

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import expunge as ex  # noqa: E402
from expunge.integrations.text_batches import TextBatches  # noqa: E402
from expunge.integrations.transformers import collect  # noqa: E402

LAYERS = ["encoder.layer.5", "encoder.layer.1"]  # not in the order they run in
SOME = [*TEXTS[:9], "no", "a longer sentence about nothing in particular, which goes on and on"]


@pytest.fixture(scope="module")
def alone(minilm):
    """Slow twin: every text alone, so without padding; its tokens (t x d) at both layers."""
    model, tokenizer = minilm
    found = {name: [] for name in LAYERS}
    for text in SOME:
        with torch.no_grad():
            out = model(**tokenizer(text, return_tensors="pt"), output_hidden_states=True)
        for name in LAYERS:
            found[name].append(out.hidden_states[int(name[-1]) + 1][0].numpy())
    return found


POOL = {"mean": lambda h: h.mean(0), "cls": lambda h: h[0], "last": lambda h: h[-1]}


@pytest.mark.parametrize("pooling", POOL)
@pytest.mark.parametrize("batch_size", [1, 4, 100])
def test_rows_are_in_the_order_of_the_texts(minilm, alone, pooling, batch_size):
    states = collect(*minilm, SOME, LAYERS, pooling, batch_size=batch_size)
    assert list(states) == LAYERS
    assert len(states) == 2
    np.testing.assert_array_equal(states.text, np.arange(len(SOME)))
    for name in LAYERS:
        assert states[name].dtype == np.float32
        expected = np.array([POOL[pooling](h) for h in alone[name]])
        np.testing.assert_allclose(states[name], expected, atol=2e-5)


def test_one_row_per_token(minilm, alone):
    states = collect(*minilm, SOME, LAYERS[0], "tokens", batch_size=4)
    np.testing.assert_allclose(states[LAYERS[0]], np.vstack(alone[LAYERS[0]]), atol=2e-5)
    lengths = [len(h) for h in alone[LAYERS[0]]]
    np.testing.assert_array_equal(states.text, np.repeat(np.arange(len(SOME)), lengths))
    assert repr(states) == f"States('encoder.layer.5': ({sum(lengths)}, 384))"


@pytest.mark.parametrize("pooling", ["mean", "tokens"])
def test_files_hold_the_same_rows(minilm, tmp_path, pooling):
    inside = collect(*minilm, SOME, LAYERS, pooling, batch_size=4)
    folder = tmp_path / "a" / "states"
    states = collect(*minilm, SOME, LAYERS, pooling, batch_size=4, path=folder)
    for name in LAYERS:
        assert isinstance(states[name], np.memmap)
        assert not states[name].flags.writeable
        np.testing.assert_array_equal(states[name], inside[name])
        np.testing.assert_array_equal(np.load(folder / f"{name}.npy"), inside[name])
    files = {f"{name}.npy" for name in LAYERS}
    if pooling == "tokens":
        np.testing.assert_array_equal(np.load(folder / "row-texts.npy"), inside.text)
        files.add("row-texts.npy")
    assert {path.name for path in folder.iterdir()} == files


def test_a_failure_leaves_the_old_files_and_no_others(minilm, tmp_path):
    model, tokenizer = minilm
    np.save(tmp_path / f"{LAYERS[0]}.npy", np.arange(3))
    calls = []

    def fail(module, args, output):
        calls.append(1)
        if len(calls) == 2:
            raise RuntimeError("out of memory")

    with (
        model.encoder.layer[3].register_forward_hook(fail),
        pytest.raises(RuntimeError, match="mem"),
    ):
        collect(model, tokenizer, SOME, LAYERS, batch_size=4, path=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [f"{LAYERS[0]}.npy"]
    np.testing.assert_array_equal(np.load(tmp_path / f"{LAYERS[0]}.npy"), np.arange(3))


def test_a_type_can_be_chosen_and_bfloat16_becomes_float32(minilm):
    full = collect(*minilm, SOME, LAYERS[0])[LAYERS[0]]
    half = collect(*minilm, SOME, LAYERS[0], dtype="float16")[LAYERS[0]]
    np.testing.assert_array_equal(half, full.astype(np.float16))
    torch.manual_seed(0)
    config = transformers.GPT2Config(vocab_size=31_000, n_embd=16, n_layer=1, n_head=2)
    model = transformers.GPT2Model(config).bfloat16()
    assert collect(model, minilm[1], SOME, "h.0", "last")["h.0"].dtype == np.float32


def test_the_pass_ends_with_the_last_layer_asked_for(minilm):
    model, tokenizer = minilm
    runs = []
    with model.encoder.layer[2].register_forward_hook(lambda *_: runs.append(1)):
        collect(model, tokenizer, SOME, "encoder.layer.1", batch_size=4)
    assert len(runs) == 1  # the first batch runs through, to see how often the module runs


def test_texts_of_equal_length_share_a_batch(minilm):
    batches = TextBatches(SOME, minilm[1], batch_size=4)
    shapes = [inputs["input_ids"].shape[1] for _, inputs in batches]
    assert shapes == sorted(shapes, reverse=True)
    assert sorted(np.concatenate([rows for rows, _ in batches])) == list(range(len(SOME)))
    assert len(batches) == len(shapes) == 3


def test_long_texts_are_cut(minilm):
    model, tokenizer = minilm
    long = "word " * 2000
    whole = collect(model, tokenizer, [long], LAYERS[0], "tokens")[LAYERS[0]]
    assert len(whole) == 512  # what the model takes
    assert len(collect(model, tokenizer, [long], LAYERS[0], "tokens", max_length=7)[LAYERS[0]]) == 7


def test_the_model_keeps_its_mode(minilm):
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=31_000,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
    )
    model = transformers.BertModel(config).train()
    model.encoder.layer[0].eval()
    modes = [module.training for module in model.modules()]
    a, b = (collect(model, minilm[1], SOME, "encoder.layer.1")["encoder.layer.1"] for _ in "ab")
    np.testing.assert_array_equal(a, b)  # dropout would make them differ
    assert [module.training for module in model.modules()] == modes


def test_a_bar_is_shown_on_request(minilm, capsys):
    collect(*minilm, SOME, LAYERS[0])
    assert capsys.readouterr().err == ""
    collect(*minilm, SOME, LAYERS[0], progress=True)
    assert "collect" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"texts": "one text"}, "sequence of at least one text.*single text 'one text'"),
        ({"texts": []}, "at least one text"),
        ({"texts": ["a", 3]}, "int at position 1"),
        ({"layers": []}, "no layers"),
        ({"layers": "encoder.layer.6"}, "Close names: 'encoder.layer.5'"),
        ({"layers": "encoder.layer"}, "do not run.*'encoder.layer'"),
        ({"layers": "pooler", "pooling": "tokens"}, "one vector per token.*2 vectors for 6 tokens"),
        ({"pooling": "max"}, "Unknown pooling.*'tokens'"),
        ({"tokenizer": None}, "Texts need a tokenizer"),
        ({"batch_size": 0}, "batch_size"),
        ({"max_length": 0}, "max_length"),
        ({"dtype": "int8"}, "floating type"),
    ],
)
def test_bad_arguments(minilm, changes, words):
    good = {
        "model": minilm[0],
        "tokenizer": minilm[1],
        "texts": ["a", "b"],
        "layers": LAYERS,
    }
    with pytest.raises(ex.InputError, match=words):
        collect(**{**good, **changes})


def test_a_tokenizer_must_pad_and_give_tokens():
    tokenizers = pytest.importorskip("tokenizers")
    words = tokenizers.models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]")
    plain = tokenizers.Tokenizer(words)
    plain.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=plain)
    with pytest.raises(ex.InputError, match=r"no token to pad with.*eos_token"):
        TextBatches(["a"], fast)
    fast.pad_token = "[UNK]"
    with pytest.raises(ex.InputError, match=r"no tokens.*text 1: ''"):
        TextBatches(["a", ""], fast)


def test_batches_of_any_kind():
    """Images, and tokens of an encoder and a decoder, against the model's own hidden states."""
    import tiny_models as tiny

    pixels = torch.randn(5, 3, 16, 16, generator=torch.manual_seed(0))
    vit = tiny.vit()
    with torch.no_grad():
        expected = vit(pixels, output_hidden_states=True).hidden_states[1].numpy()
    batches = [{"pixel_values": pixels[:3], "labels": torch.zeros(3)}, {"pixel_values": pixels[3:]}]
    for pooling, rows in [("mean", expected.mean(axis=1)), ("cls", expected[:, 0])]:
        found = collect(vit, None, batches, "layers.0", pooling)
        np.testing.assert_allclose(found["layers.0"], rows, atol=1e-5)
    found = collect(vit, None, batches, "layers.*", "tokens")
    assert found.text.tolist() == np.repeat(np.arange(5), 17).tolist()
    np.testing.assert_allclose(found["layers.0"], expected.reshape(-1, 16), atol=1e-5)

    model, batch = tiny.encoder_decoder("Bart"), tiny.left_padded()
    inputs = {**batch, "decoder_input_ids": batch["input_ids"][:, :5]}
    found = collect(model, None, [inputs], "decoder.layers.1", "last")
    with torch.no_grad():
        output = model(**inputs, output_hidden_states=True)
    np.testing.assert_allclose(
        found["decoder.layers.1"], output.decoder_hidden_states[2][:, -1], atol=1e-5
    )
    with pytest.raises(ex.InputError, match="different numbers of tokens"):
        collect(model, None, [inputs], ["encoder.layers.1", "decoder.layers.1"], "tokens")
