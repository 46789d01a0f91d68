"""Erasures inside running models: the right places, any output, and nothing left behind."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import expunge as ex  # noqa: E402
from expunge.integrations.transformers import erasing  # noqa: E402

LAYER = "encoder.layer.4"
TEXTS = ["she is a doctor", "he went home early, and then he slept", "they sing"]


def some_erasure(d=384, rank=2, seed=0):
    """An oblique erasure with a center and an offset: nothing about it is special."""
    rng = np.random.default_rng(seed)
    left, right = rng.normal(size=(d, rank)) / d, rng.normal(size=(rank, d))
    return ex.Erasure(left, right, rng.normal(size=d), rng.normal(size=d) / 10)


def n_wrapped(model):
    """Modules whose forward is not that of their class."""
    return sum("forward" in vars(module) for module in model.modules())


@pytest.fixture
def batch(minilm):
    return minilm[1](TEXTS, padding=True, return_tensors="pt")


@torch.no_grad()
def states(model, batch, **options):
    out = model(**batch, output_hidden_states=True, **options)
    return [h.numpy() for h in out.hidden_states]


def test_the_layer_is_erased_and_the_next_one_sees_it(minilm, batch):
    model, e = minilm[0], some_erasure()
    before = states(model, batch)
    with erasing(model, {LAYER: e}) as same:
        assert same is model
        after = states(model, batch)
    for i in range(5):
        np.testing.assert_array_equal(after[i], before[i])
    np.testing.assert_allclose(after[5], e.transform(before[5]), atol=1e-5)
    assert np.abs(after[5] - before[5]).max() > 0.1
    mask = (1 - batch["attention_mask"][:, None, None].float()) * torch.finfo(torch.float32).min
    with torch.no_grad():
        by_hand = model.encoder.layer[5](torch.from_numpy(e.transform(before[5])), mask)
    np.testing.assert_allclose(after[6], by_hand.numpy(), atol=1e-4)


def test_the_model_is_as_before_afterwards_and_after_an_exception(minilm, batch):
    model = minilm[0]
    before = states(model, batch)[-1]
    assert n_wrapped(model) == 0
    with erasing(model, {LAYER: some_erasure(), "pooler": some_erasure()}, tokens="cls"):
        assert n_wrapped(model) == 3  # two modules, and the model that is called with a mask
    assert n_wrapped(model) == 0
    with pytest.raises(KeyError, match="mine"), erasing(model, {LAYER: some_erasure()}):
        raise KeyError("mine")
    with pytest.raises(ex.InputError, match="features"), erasing(model, {LAYER: some_erasure(5)}):
        states(model, batch)
    assert n_wrapped(model) == 0
    np.testing.assert_array_equal(states(model, batch)[-1], before)


@pytest.mark.parametrize("name", ["encoder.layer.4.attention", "encoder", ""])
@pytest.mark.parametrize("return_dict", [True, False])
def test_tuples_and_model_outputs(minilm, batch, name, return_dict):
    """An attention block gives a tuple, the encoder and the model itself a ModelOutput."""
    model, e, seen = minilm[0], some_erasure(), {}

    def look(module, args, output):
        seen["hidden"] = output[0] if isinstance(output, tuple) else output.last_hidden_state
        seen["type"] = type(output)

    module = dict(model.named_modules())[name]
    with module.register_forward_hook(look), torch.no_grad():
        model(**batch, return_dict=return_dict)
        before = seen.copy()
        with erasing(model, {name: e}):
            model(**batch, return_dict=return_dict)
    assert seen["type"] is before["type"]
    np.testing.assert_allclose(seen["hidden"], e.transform(before["hidden"].numpy()), atol=1e-5)


@pytest.mark.parametrize("return_dict", [True, False])
def test_no_copy_of_the_unerased_states_stays_in_the_output(minilm, batch, return_dict):
    model, e = minilm[0], some_erasure()
    with erasing(model, {"": e}), torch.no_grad():
        out = model(**batch, output_hidden_states=True, return_dict=return_dict)
    last = out.last_hidden_state if return_dict else out[0]
    all_states = out.hidden_states if return_dict else out[-1]
    assert all_states[-1] is last


def where(tokens, mask, ids):
    """Plain twin: the positions that `tokens` names."""
    found = np.zeros(mask.shape, dtype=bool)
    for i, row in enumerate(mask):
        real = np.flatnonzero(row)
        if tokens in ("masked", "mean"):
            found[i, real] = True
        elif tokens == "cls":
            found[i, real[0]] = True
        elif tokens == "last":
            found[i, real[-1]] = True
        else:
            found[i] = ids[i] == tokens
    return found


@pytest.mark.parametrize("tokens", ["masked", "cls", "last", "mean", 2016])  # 2016 is "he"
@pytest.mark.parametrize("side", ["right", "left"])
def test_chosen_tokens(minilm, tokens, side):
    model, tokenizer = minilm
    tokenizer.padding_side = side
    try:
        batch = tokenizer(TEXTS, padding=True, return_tensors="pt")
    finally:
        tokenizer.padding_side = "right"
    e = some_erasure()
    before = states(model, batch)[5]
    with erasing(model, {LAYER: e}, tokens=tokens):
        after = states(model, batch)[5]
    at = where(tokens, batch["attention_mask"].numpy(), batch["input_ids"].numpy())
    assert at.any()
    assert not at.all()
    np.testing.assert_array_equal(after[~at], before[~at])
    if tokens == "mean":
        for b, a, m in zip(before, after, at, strict=True):
            np.testing.assert_allclose(a[m].mean(0), e.transform(b[m].mean(0)), atol=1e-5)
            moved = (a - b)[m]
            np.testing.assert_allclose(moved, np.tile(moved[0], (m.sum(), 1)), atol=1e-5)
    else:
        np.testing.assert_allclose(after[at], e.transform(before[at]), atol=1e-5)


def test_one_vector_per_text_is_erased_whatever_the_tokens(minilm, batch):
    model, e = minilm[0], some_erasure()
    with torch.no_grad():
        before = model(**batch).pooler_output.numpy()
        for tokens in ("all", "cls", "mean"):
            with erasing(model, {"pooler": e}, tokens=tokens):
                after = model(**batch).pooler_output.numpy()
            np.testing.assert_allclose(after, e.transform(before), atol=1e-5)


def test_a_mask_given_by_position_counts_and_without_one_all_tokens_do(minilm, batch):
    model, e = minilm[0], some_erasure()
    ids, mask = batch["input_ids"], batch["attention_mask"]
    with erasing(model, {LAYER: e}, tokens="last"), torch.no_grad():
        named = model(input_ids=ids, attention_mask=mask).last_hidden_state
        placed = model(ids, mask).last_hidden_state
        without = model(ids).last_hidden_state
        full = model(ids, torch.ones_like(mask)).last_hidden_state
    assert torch.equal(named, placed)
    assert torch.allclose(without, full, atol=1e-5)


def test_blocks_nest_and_the_outer_erasure_comes_first(minilm, batch):
    model, first, second = minilm[0], some_erasure(seed=1), some_erasure(seed=2)
    before = states(model, batch)[5]
    with erasing(model, {LAYER: first}), erasing(model, {LAYER: second}):
        after = states(model, batch)[5]
    np.testing.assert_allclose(after, first.then(second).transform(before), atol=1e-5)
    with erasing(model, {LAYER: first}):
        with erasing(model, {LAYER: second}):
            pass
        np.testing.assert_allclose(states(model, batch)[5], first.transform(before), atol=1e-5)


def test_a_library_that_calls_forward_by_itself_is_not_passed_over(minilm, batch):
    """Hooks of torch would be: the erasure must not be lost in silence."""
    model, e = minilm[0], some_erasure()
    with torch.no_grad():
        before = model(**batch).last_hidden_state.numpy()
        for tokens in ("all", "masked"):
            with erasing(model, {"": e}, tokens=tokens):
                after = model.forward(**batch).last_hidden_state.numpy()
            at = batch["attention_mask"].numpy().astype(bool)
            np.testing.assert_allclose(after[at], e.transform(before[at]), atol=1e-5)
            assert (after[~at] == before[~at]).all() == (tokens == "masked")


def test_what_others_have_put_around_a_forward_stays():
    layer, e = torch.nn.Identity(), ex.Erasure(np.eye(2)[:, :1], np.eye(2)[:1])
    x = torch.tensor([[3.0, 4.0]])
    inner = layer.forward
    layer.forward = theirs = lambda x: inner(x) * 2
    with erasing(layer, {"": e}):
        assert layer(x).tolist() == [[0.0, 8.0]]
        ours = layer.forward
        layer.forward = lambda x: ours(x) + 1
        assert layer(x).tolist() == [[1.0, 9.0]]
    assert layer(x).tolist() == [[7.0, 9.0]]  # theirs remains, ours does nothing any more
    layer.forward = theirs
    with erasing(layer, {"": e}):
        pass
    assert layer.forward is theirs


def test_blocks_may_end_in_any_order():
    layer, (first, second) = (
        torch.nn.Identity(),
        (ex.Erasure(np.eye(2)[:, i : i + 1], np.eye(2)[i : i + 1]) for i in range(2)),
    )
    x = torch.tensor([[3.0, 4.0]])
    blocks = [erasing(layer, {"": e}) for e in (first, second)]
    for block in blocks:
        block.__enter__()
    assert layer(x).tolist() == [[0.0, 0.0]]
    blocks[0].__exit__(None, None, None)
    assert layer(x).tolist() == [[3.0, 0.0]]
    blocks[1].__exit__(None, None, None)
    assert layer(x).tolist() == [[3.0, 4.0]]


def test_a_layer_run_without_its_model_has_no_known_padding(minilm):
    model = minilm[0]
    with (
        pytest.raises(ex.InputError, match="ran before the model around it"),
        erasing(model, {LAYER: some_erasure()}, tokens="cls"),
    ):
        model.encoder.layer[4](torch.zeros(2, 3, 384))


def test_gradients_pass_through():
    layers = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)).double()
    e = some_erasure(3, 1)
    x = torch.randn(4, 3, dtype=torch.float64)
    with erasing(layers, {"0": e}):
        layers(x).sum().backward()
    got = layers[0].weight.grad.clone()
    layers.zero_grad()
    W = torch.from_numpy(e.matrix())
    b = torch.from_numpy(e.transform(np.zeros((1, 3)))[0])
    layers[1](layers[0](x) @ W.T + b).sum().backward()
    torch.testing.assert_close(got, layers[0].weight.grad)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_types_are_kept(dtype):
    kind = getattr(torch, dtype)
    layer, e = torch.nn.Identity(), some_erasure(6)
    x = torch.randn(5, 6).to(kind)
    with erasing(torch.nn.Sequential(layer), {"0": e}):
        out = layer(x)
    assert out.dtype == kind
    exact = e.transform(x.double().numpy())
    np.testing.assert_allclose(out.double(), exact, atol=100 * torch.finfo(kind).eps)


def test_padding_may_hold_anything_and_autocast_rounds_nothing():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Identity()

        def forward(self, input_ids, attention_mask=None):
            return self.layer(states)

    states = torch.randn(2, 3, 6)
    states[0, 2] = torch.nan
    mask, e, model = torch.tensor([[1, 1, 0], [1, 1, 1]]), some_erasure(6), Model()
    at = mask.bool().numpy()
    for tokens in ("masked", "mean"):
        with erasing(model, {"layer": e}, tokens=tokens), torch.autocast("cpu", torch.bfloat16):
            out = model(mask, mask)
        assert out.dtype == torch.float32
        assert out[0, 2].isnan().all()
        for before, after, m in zip(states.numpy(), out.numpy(), at, strict=True):
            b, a = (x[m] if tokens == "masked" else x[m].mean(0) for x in (before, after))
            np.testing.assert_allclose(a, e.transform(b), atol=1e-5)


def tiny(name, **options):
    """A small random model of another architecture."""
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(vocab_size=50, **options)
    return getattr(transformers, f"{name}Model")(config).eval()


def test_a_decoder_with_a_cache(minilm):
    """The first token is in the cache when the second pass runs, so nothing is erased there."""
    model = tiny("GPT2", n_embd=16, n_layer=2, n_head=2, n_positions=20)
    ids, e = torch.arange(6).view(2, 3), some_erasure(16)
    mask = torch.tensor([[0, 1, 1, 1], [1, 1, 1, 1]])
    with torch.no_grad():
        plain = model(ids, attention_mask=mask[:, :3], use_cache=True)
        with erasing(model, {"h.0": e}, tokens="cls"):
            first = model(ids, attention_mask=mask[:, :3], use_cache=True).last_hidden_state
            cache = model(ids, attention_mask=mask[:, :3], use_cache=True).past_key_values
            with erasing(model, {"h.1": some_erasure(16)}, tokens="cls"):
                one = model(ids[:, :1], attention_mask=mask, past_key_values=cache)
        with erasing(model, {"h.0": e}, tokens="cls"):
            cache = model(ids, attention_mask=mask[:, :3], use_cache=True).past_key_values
            two = model(ids[:, :1], attention_mask=mask, past_key_values=cache)
    assert not torch.allclose(first, plain.last_hidden_state)
    assert torch.equal(one.last_hidden_state, two.last_hidden_state)


def test_encoder_and_decoder_have_masks_of_their_own():
    model = tiny(
        "T5",
        d_model=16,
        d_kv=8,
        d_ff=16,
        num_layers=1,
        num_heads=2,
        decoder_start_token_id=0,
    )
    ids, mask = torch.arange(6).view(2, 3), torch.tensor([[1, 0, 0], [1, 1, 0]])
    seen = {}
    for name in ("encoder", "decoder"):
        with torch.no_grad():
            before = model(input_ids=ids, decoder_input_ids=ids, attention_mask=mask)
            with erasing(model, {name: some_erasure(16)}, tokens="masked"):
                after = model(input_ids=ids, decoder_input_ids=ids, attention_mask=mask)
        key = "encoder_last_hidden_state" if name == "encoder" else "last_hidden_state"
        seen[name] = (before[key] != after[key]).any(dim=-1)
    assert torch.equal(seen["encoder"], mask.bool())
    assert seen[
        "decoder"
    ].all()  # it was given no mask: the encoder's, of equal shape, is not its own


def test_a_layer_that_runs_several_times_is_erased_each_time():
    model = tiny(
        "Albert",
        embedding_size=8,
        hidden_size=8,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=16,
    )
    name = "encoder.albert_layer_groups.0.albert_layers.0"
    outputs = []
    e = ex.Erasure(np.eye(8)[:, :1], np.eye(8)[:1])
    with erasing(model, {name: e}):
        module = dict(model.named_modules())[name]
        with (
            module.register_forward_hook(
                lambda m, a, o: outputs.append(o[0] if isinstance(o, tuple) else o)
            ),
            torch.no_grad(),
        ):
            model(torch.arange(4)[None])
    assert len(outputs) == 3
    assert all((out[..., 0] == 0).all() and (out[..., 1] != 0).any() for out in outputs)


def test_bad_names_are_answered_with_close_ones(minilm):
    model = minilm[0]
    with pytest.raises(ex.InputError, match=r"'encoder\.layer\.9'.*Close names: 'encoder\.layer\."):
        erasing(model, {"encoder.layer.9": some_erasure()}).__enter__()
    with pytest.raises(ex.InputError, match=r"Close names: 'encoder\.layer\.4\.attention\.self'"):
        erasing(model, {"layer.4.attention.self": some_erasure()}).__enter__()
    with pytest.raises(ex.InputError, match="named_modules"):
        erasing(torch.nn.Sequential(torch.nn.ReLU()), {"quite another": some_erasure()}).__enter__()


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (({LAYER: "gender"},), {}, "not an Erasure"),
        (({LAYER: some_erasure()},), {"tokens": "first"}, "Unknown tokens.*'cls'.*mask_token_id"),
        (({LAYER: some_erasure()},), {"tokens": -3}, "Unknown tokens"),
        (({LAYER: some_erasure()},), {"tokens": True}, "Unknown tokens"),
    ],
)
def test_bad_arguments(minilm, arguments, options, words):
    with pytest.raises(ex.InputError, match=words):
        erasing(minilm[0], *arguments, **options).__enter__()
    with pytest.raises(ex.InputError, match="not a torch module"):
        erasing("minilm", *arguments).__enter__()


def test_states_without_clear_tokens_are_refused(minilm, batch):
    model = minilm[0]
    positions = "embeddings.position_embeddings"  # gives (1, tokens, d) for all texts at once
    with erasing(model, {positions: some_erasure()}, tokens="all"), torch.no_grad():
        model(**batch)
    with (
        pytest.raises(
            ex.InputError, match=r"(?s)not clear.*position_embeddings.*mask of shape \(3"
        ),
        erasing(model, {positions: some_erasure()}, tokens="cls"),
        torch.no_grad(),
    ):
        model(**batch)
    with (
        pytest.raises(ex.InputError, match="token numbers of shape None"),
        erasing(model, {LAYER: some_erasure()}, tokens=103),
        torch.no_grad(),
    ):
        model(inputs_embeds=torch.zeros(2, 3, 384))


def test_an_output_without_states_is_refused():
    class Odd(torch.nn.Module):
        def forward(self, x):
            return {"token_embeddings": x}

    model = Odd()
    with (
        pytest.raises(ex.InputError, match=r"does not begin with hidden states.*dict"),
        erasing(model, {"": some_erasure(3)}),
    ):
        model(torch.zeros(2, 3))
