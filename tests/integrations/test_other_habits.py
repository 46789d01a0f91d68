"""Models that are built, wrapped or called in other ways than most."""

import copy
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import tiny_models as tiny  # noqa: E402

import expunge as ex  # noqa: E402
from expunge.integrations.language_loss import Language  # noqa: E402
from expunge.integrations.module_names import resolve  # noqa: E402
from expunge.integrations.transformers import (  # noqa: E402
    Scrubbing,
    bake,
    collect,
    erasing,
    install,
    scrub,
)


def erasure(seed=0, d=16):
    rng = np.random.default_rng(seed)
    left = np.linalg.qr(rng.normal(size=(d, 2)))[0]
    return ex.Erasure(left, left.T, rng.normal(size=d))


def concept(n=40):
    """Batches of texts of which some tokens tell the concept."""
    ids = torch.randint(20, tiny.VOCAB, (n, 6), generator=torch.manual_seed(0))
    y = np.arange(n) % 2
    ids[:, 1:5] = torch.from_numpy(10 + y)[:, None] + torch.arange(0, 8, 2)
    return [({"input_ids": ids, "attention_mask": torch.ones_like(ids)}, y)]


def by_hand(module, chosen, e):
    """A hook of torch that erases in float64 where `chosen` says, of tokens so far and new."""
    P, t = torch.tensor(e.matrix()), torch.tensor(e.left @ (e.right @ e.center))
    seen = [0]

    def hook(_, args, output):
        hidden = output[0] if isinstance(output, tuple) else output
        where = chosen(seen[0], hidden.shape[1])
        seen[0] += hidden.shape[1]
        new = torch.where(where[..., None], (hidden.double() @ P.T + t).to(hidden.dtype), hidden)
        return (new, *output[1:]) if isinstance(output, tuple) else new

    return module.register_forward_hook(hook)


# -- caches whose first layer counts nothing -------------------------------------------------------


@pytest.mark.parametrize("tokens", ["masked", "cls", "prompt", "generated"])
def test_a_cache_whose_first_layer_counts_nothing(tokens):
    """The first layer of MiniMax keeps a state of one size, beside the layers of its cache."""
    torch.manual_seed(0)
    settings = {**tiny.MOE, "layer_types": ["linear_attention", "full_attention"]}
    model = transformers.MiniMaxForCausalLM(tiny.config("MiniMax", settings)).eval()
    with torch.no_grad():  # fresh weights are so small that layers add next to nothing
        for weight in model.parameters():
            weight.mul_(4 if weight.ndim > 1 else 1)
    batch, e = tiny.left_padded(), erasure()
    mask = batch["attention_mask"].bool()
    first = mask.long().argmax(dim=1)[:, None]

    def chosen(start, length):
        places = start + torch.arange(length)
        there = mask if start == 0 else torch.ones(len(mask), length, dtype=torch.bool)
        return {
            "masked": there,
            "cls": places == first,
            "prompt": there & (start == 0),
            "generated": there & (start > 0),
        }[tokens]

    def scores():
        options = {"max_new_tokens": 3, "min_new_tokens": 3, "do_sample": False}
        options |= {"output_scores": True, "return_dict_in_generate": True}
        return torch.stack(model.generate(**batch, **options).scores)

    handle = by_hand(model.model.layers[0], chosen, e)
    expected = scores()
    handle.remove()
    assert not torch.allclose(scores(), expected, atol=1e-3)
    with erasing(model, {"layers.0": e}, tokens=tokens):
        torch.testing.assert_close(scores(), expected)


# -- which model it was ----------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [False, True])
def test_other_weights_below_what_is_erased_are_another_model(shared, tmp_path):
    model = copy.deepcopy(tiny.causal("Llama"))
    layers = "all" if shared else ["layers.1.mlp"]
    scrub(model, concept(), None, layers, shared=shared).save(tmp_path / "a.safetensors")
    scrubbing = Scrubbing.load(tmp_path / "a.safetensors")
    scrubbing.check_model(model)
    scrubbing.check_model(model.model)
    scrubbing.check_model(copy.deepcopy(model).to(torch.bfloat16))
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.model.layers[0].self_attn.v_proj.weight.mul_(2)
    with pytest.raises(ex.InputError, match="other weights"):
        scrubbing.check_model(other)
    with pytest.raises(ex.InputError, match="other weights"):
        scrubbing.check_model(other.to(torch.bfloat16))
    del scrubbing.model["parts"]  # as in files of before
    scrubbing.check_model(model)


def test_what_stands_behind_the_layers_may_be_new():
    """A pooler is left out of, or drawn anew for, the same model with another head."""
    model = copy.deepcopy(tiny.encoder("Bert"))
    scrubbing = scrub(model, concept(), None, "all", sample=0)
    torch.nn.init.normal_(model.pooler.dense.weight)
    scrubbing.check_model(model)
    model.pooler = None
    scrubbing.check_model(model)


def test_a_base_model_that_is_compiled_by_itself():
    plain = tiny.causal("Llama")
    model = copy.deepcopy(plain)
    model.model = torch.compile(model.model, backend="eager")
    scrubbing = scrub(plain, concept(), None, "all", sample=0)
    assert list(resolve(model, "all")) == list(scrubbing)
    scrubbing.check_model(model)


# -- one module at several places ------------------------------------------------------------------


class Recurrent(torch.nn.Module):
    """One layer, run three times, under three names."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 4)] * 3)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def test_one_module_under_several_names_is_refused():
    model, x = Recurrent(), torch.randn(8, 4)
    e = {f"layers.{i}": erasure(i, 4) for i in range(2)}
    asked = [
        lambda: erasing(model, e).__enter__(),
        lambda: install(model, e),
        lambda: collect(model, None, [x], "layers.*"),
        lambda: scrub(model, [(x, np.arange(8) % 2)], None, "layers.*"),
    ]
    for ask in asked:
        with pytest.raises(ex.InputError, match="of one module"):
            ask()
    with torch.no_grad(), erasing(model, {"layers.0": e["layers.0"]}):  # at all of its places
        expected = x
        for _ in range(3):
            linear = torch.nn.functional.linear(expected, *model.layers[0].parameters())
            expected = torch.from_numpy(e["layers.0"].transform(linear.numpy()))
        torch.testing.assert_close(model(x), expected)


# -- decoders inside wrappers ----------------------------------------------------------------------


def test_padding_of_a_decoder_inside_a_wrapper():
    inner = tiny.encoder_decoder("Bart")
    model = torch.nn.DataParallel(inner)
    batch = tiny.left_padded()
    ids = torch.tensor([[2, 5, 6, 0, 0], [2, 7, 8, 9, 0], [2, 5, 5, 5, 5]])
    e = {"decoder.layers.0": erasure()}
    with torch.no_grad():
        with erasing(inner, e, tokens="masked"):
            expected = inner(**batch, decoder_input_ids=ids).logits
        with erasing(inner, e):
            assert not torch.allclose(inner(**batch, decoder_input_ids=ids).logits, expected)
        with erasing(model, e, tokens="masked"):
            found = model(**batch, decoder_input_ids=ids).logits
    torch.testing.assert_close(found, expected)


# -- rows of several texts, masks of four dimensions, prompts in pieces ----------------------------


@pytest.mark.parametrize("tokens", ["cls", "mean", "last"])
def test_several_texts_in_a_row_have_no_single_first_token(tokens):
    model, e = tiny.causal("Llama"), {"layers.0": erasure()}
    ids = torch.randint(3, tiny.VOCAB, (1, 7), generator=torch.manual_seed(0))
    places = torch.tensor([[0, 1, 2, 0, 1, 2, 3]])
    packed = {"input_ids": ids, "position_ids": places, "use_cache": False}
    with torch.no_grad():
        alone = torch.cat([model(ids[:, :3]).logits, model(ids[:, 3:]).logits], dim=1)
        torch.testing.assert_close(model(**packed).logits, alone)  # it keeps them apart
        with erasing(model, e, tokens="masked"):
            alone = torch.cat([model(ids[:, :3]).logits, model(ids[:, 3:]).logits], dim=1)
            torch.testing.assert_close(model(**packed).logits, alone)
        with erasing(model, e, tokens=tokens):
            with pytest.raises(ex.InputError, match="several texts in a row"):
                model(**packed)
            model(**{**packed, "position_ids": torch.arange(7)[None]})
    with pytest.raises(ex.InputError, match="several texts in a row"):
        collect(model, None, [packed], "layers.0", tokens)


def test_padding_that_sees_itself_in_a_mask_of_four_dimensions():
    model, e, batch = tiny.causal("Llama"), {"layers.0": erasure()}, tiny.left_padded()
    ids, there = batch["input_ids"], batch["attention_mask"].bool()
    square = torch.ones(9, 9, dtype=torch.bool).tril() & there[:, None]
    loose = square | torch.eye(9, dtype=torch.bool)  # so that no row is empty
    with torch.no_grad(), erasing(model, e, tokens="cls"):
        expected = model(**batch).logits[there]
        found = model(ids, attention_mask=square[:, None]).logits[there]
        torch.testing.assert_close(found, expected)
        with pytest.raises(ex.InputError, match="belong to which token"):
            model(ids, attention_mask=loose[:, None])


@pytest.mark.parametrize("tokens", ["prompt", "generated"])
def test_a_prompt_in_pieces_is_not_taken_for_what_follows(tokens):
    model, batch = tiny.causal("Llama"), tiny.left_padded()
    options = {"max_new_tokens": 3, "do_sample": False, "pad_token_id": 0}
    with erasing(model, {"layers.0": erasure()}, tokens=tokens):
        model.generate(**batch, **options)
        with pytest.raises(ex.InputError, match="more of the prompt"):
            model.generate(**batch, **options, prefill_chunk_size=4)


# -- experts that are modules, and sent to by the numbers of tokens --------------------------------


class RoutedLayer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.RMSNorm(16)
        experts = (torch.nn.Linear(16, 16) for _ in range(30))
        self.experts = torch.nn.ModuleList(experts)

    def forward(self, x, ids):
        h, out = self.norm(x), torch.zeros_like(x)
        for k in (ids // 2).unique().tolist():
            at = (ids // 2 == k).nonzero(as_tuple=True)
            out = out.index_put(at, self.experts[k](h[at]))
        return x + out


class Routed(transformers.PreTrainedModel):
    config_class = transformers.GPT2Config

    def __init__(self, config):
        super().__init__(config)
        self.embed = torch.nn.Embedding(config.vocab_size, 16)
        self.layers = torch.nn.ModuleList([RoutedLayer(), RoutedLayer()])
        self.norm = torch.nn.RMSNorm(16)
        self.head = torch.nn.Linear(16, config.vocab_size, bias=False)
        self.post_init()

    def get_input_embeddings(self):
        return self.embed

    def get_output_embeddings(self):
        return self.head

    def forward(self, input_ids, attention_mask=None):
        x = self.embed(input_ids)
        for layer in self.layers:
            x = layer(x, input_ids)
        return (self.head(self.norm(x)),)


@pytest.mark.parametrize("way", ["stream", "modules"])
def test_experts_that_the_probe_does_not_reach(way):
    torch.manual_seed(0)
    model = Routed(transformers.GPT2Config(vocab_size=tiny.VOCAB)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(std=0.3)
    e, norms = erasure(), ["layers.0.norm", "layers.1.norm"]
    asked = e if way == "stream" else dict.fromkeys(norms, e)
    with pytest.raises(ex.InputError, match="did not run"):
        bake(model, asked)
    every = {"input_ids": torch.arange(tiny.VOCAB).view(2, -1)}
    baked, ids = bake(model, asked, probe=every), torch.randint(0, tiny.VOCAB, (4, 20))
    reads = [*norms, "norm"] if way == "stream" else norms
    with torch.no_grad():
        with erasing(model, dict.fromkeys(reads, e), at="input" if way == "stream" else "output"):
            expected = model(ids)[0]
        torch.testing.assert_close(baked(ids)[0], expected, atol=1e-4, rtol=0)
        assert not torch.allclose(model(ids)[0], expected, atol=0.1)


# -- evaluation on batches of other kinds ----------------------------------------------------------


def test_the_loss_of_masked_tokens_without_a_mask_and_of_tensors():
    torch.manual_seed(0)
    model = transformers.BertForMaskedLM(tiny.config("Bert", tiny.BERT)).eval()
    ((batch, y),) = concept()
    scrubbing = scrub(model, concept(), None, "all", sample=0)
    tokenizer = SimpleNamespace(mask_token_id=5, all_special_ids=[5])
    told = scrubbing.evaluate(model, concept(), None, tokenizer=tokenizer)
    bare = scrubbing.evaluate(
        model, [({"input_ids": batch["input_ids"]}, y)], None, tokenizer=tokenizer
    )
    assert told.loss["before"] > 0
    assert bare.loss == told.loss
    plain = scrubbing.evaluate(model, [(batch["input_ids"], y)], None, tokenizer=tokenizer)
    assert plain.probes == told.probes
    assert plain.loss == {}


def test_special_tokens_are_not_guessed():
    model = transformers.BertForMaskedLM(tiny.config("Bert", tiny.BERT))
    tokenizer = SimpleNamespace(mask_token_id=5, all_special_ids=[1, 2, 5])
    language = Language(model, tokenizer, np.random.default_rng(0))
    ids = torch.tensor([[0, 0, 1, *range(10, 40), 2, 2, 2, 2]]).expand(200, -1)
    language.masked({"input_ids": ids, "attention_mask": (ids > 0).long()})
    share = language.guessed.double().mean(dim=0)
    assert share[[0, 1, 2, 33, 34, 35, 36]].tolist() == [0] * 7
    assert share[3:33].min() > 0.05


# -- files of fitted erasers and of maps that are not linear ---------------------------------------


def test_a_file_of_a_fitted_eraser_and_of_a_fold(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 16)), np.arange(3000) % 2
    X[:, 0] += 3 * y
    fitted = ex.LEACE().fit(X, y)
    Scrubbing({"layers.0": fitted}).save(tmp_path / "a.safetensors")
    loaded = Scrubbing.load(tmp_path / "a.safetensors")["layers.0"]
    np.testing.assert_allclose(loaded.transform(X), fitted.transform(X))
    fold = ex.FoldEraser().fit(X, y).erasure_
    assert isinstance(fold, ex.FoldErasure)
    with pytest.raises(ex.InputError, match="FoldErasure at 'layers"):
        Scrubbing({"layers.0": fold}).save(tmp_path / "b.safetensors")
    assert not (tmp_path / "b.safetensors").exists()


# -- a layer that runs several times ---------------------------------------------------------------


def test_what_is_left_at_a_layer_that_runs_several_times_is_measured():
    """Its erasure is fitted on all runs as they are, but at one run it changes the next."""
    torch.manual_seed(0)
    model = transformers.AlbertModel(tiny.config("Albert", tiny.ENCODERS["Albert"][0])).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(8 if weight.ndim > 1 else 1)
    layer, data = tiny.ENCODERS["Albert"][1], concept(60)
    scrubbing = scrub(model, data, None, layer, random_state=0)
    with scrubbing.erasing(model):
        rows = collect(model, None, data, layer, "tokens")
    y = data[0][1][rows.text]
    means = [rows[layer][y == c].mean(axis=0) for c in (0, 1)]
    assert np.abs(means[0] - means[1]).max() > 0.01  # something is left
    (row,) = scrubbing.report
    assert row.bits_before > 0.5
    assert row.bits_after > 0.001
