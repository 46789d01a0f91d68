"""The layer and the folded Linear against the erasure they stand for."""

import io

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

import expunge as ex
from expunge.integrations.torch import ErasureLayer, fold_into

DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
every_type = pytest.mark.parametrize("dtype", DTYPES, ids=str)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(before)


def oblique(d=8, r=2, **points):
    rng = np.random.default_rng(0)
    L, R = rng.normal(size=(d, r)), rng.normal(size=(r, d))
    return ex.Erasure(L, np.linalg.solve(R @ L, R), **points)


def points(*names, d=8):
    return {name: np.random.default_rng(len(name)).normal(size=d) for name in names}


KINDS = {
    "linear": oblique(),
    "center": oblique(**points("center")),
    "offset": oblique(**points("offset")),
    "affine": oblique(**points("center", "offset")),
    "rank zero": ex.Erasure(np.zeros((8, 0)), np.zeros((0, 8))),
}
every_kind = pytest.mark.parametrize("erasure", KINDS.values(), ids=KINDS)


def exact(x):
    return x.detach().double().numpy()


def eps(dtype):
    return torch.finfo(dtype).eps


# -- the layer -----------------------------------------------------------------------------------


@every_type
@every_kind
def test_the_layer_is_the_erasure(erasure, dtype):
    layer, x = ErasureLayer(erasure), torch.randn(3, 5, 8).to(dtype)
    found = layer(x)
    assert (found.dtype, found.shape) == (dtype, x.shape)
    expected = erasure(exact(x))
    np.testing.assert_allclose(exact(found), expected, atol=10 * eps(dtype) * abs(expected).max())
    assert torch.equal(found, erasure(x))
    assert not list(layer.parameters())
    assert repr(layer) == f"ErasureLayer(n_features=8, rank={erasure.rank})"
    np.testing.assert_array_equal(layer.erasure.matrix(), erasure.matrix())


@every_kind
def test_the_state_dict_brings_it_back(erasure):
    layer, other = ErasureLayer(erasure), ErasureLayer(erasure)
    for buffer in other.buffers():
        buffer.zero_()
    file = io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    x = torch.randn(4, 8)
    assert torch.equal(other(x), layer(x))
    given = {name for name in ("center", "offset") if getattr(erasure, name) is not None}
    assert set(layer.state_dict()) == {"left", "right", *given}


@pytest.mark.parametrize("cast", ["half", "bfloat16", "float"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_model_in_lower_precision_keeps_the_factors(cast, dtype):
    layer = ErasureLayer(KINDS["affine"], dtype=dtype)
    before = layer.state_dict()
    model = getattr(nn.Sequential(nn.Linear(8, 8).double(), layer), cast)()
    assert model[0].weight.dtype != torch.float64
    for name in ("left", "right", "center", "offset"):
        assert getattr(layer, name).dtype == dtype
        assert torch.equal(getattr(layer, name), before[name])
    assert model(torch.randn(2, 8).to(model[0].weight.dtype)).dtype == model[0].weight.dtype
    assert model.to("meta")[1].left.is_meta
    assert ErasureLayer(KINDS["affine"], dtype=dtype).double().left.dtype == torch.float64


def test_a_device_without_float64_gets_float32(monkeypatch):
    """As if the CPU were such a device: it refuses float64 and is known to have none."""

    def to_the_device(factor):
        if factor.dtype == torch.float64:
            raise TypeError("no float64 here")
        return factor.clone()

    layer = ErasureLayer(KINDS["affine"])
    monkeypatch.setattr("expunge.integrations.torch.double", lambda device: torch.float32)
    layer._apply(to_the_device)
    assert {buffer.dtype for buffer in layer.buffers()} == {torch.float32}
    assert ErasureLayer(KINDS["affine"]).left.dtype == torch.float32
    assert layer.half().left.dtype == torch.float32


def test_gradients_flow_through_the_layer():
    layer, x = ErasureLayer(KINDS["affine"], dtype=torch.float64), torch.randn(3, 8).double()
    assert torch.autograd.gradcheck(layer, (x.requires_grad_(),))
    half = torch.randn(3, 8, dtype=torch.bfloat16, requires_grad=True)
    layer(half).sum().backward()
    expected = layer.erasure.matrix().sum(axis=0)
    np.testing.assert_allclose(exact(half.grad[0]), expected, atol=0.05)


def test_autocast_does_not_round_the_products():
    layer, x = ErasureLayer(KINDS["affine"]), torch.randn(50, 8)
    expected = layer(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(layer(x), expected)


@pytest.mark.parametrize("width", [1, 7, 9])
def test_a_wrong_width_is_refused(width):
    with pytest.raises(ex.InputError, match="expecting 8 features"):
        ErasureLayer(KINDS["center"])(torch.zeros(3, width))


def test_half_factors_are_refused():
    with pytest.raises(ex.InputError, match="float32 or float64"):
        ErasureLayer(KINDS["center"], dtype=torch.bfloat16)


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # inside torch itself
@pytest.mark.parametrize("kind", ["linear", "affine"])
def test_the_layer_compiles_whole(kind):
    torch.compiler.reset()
    layer = ErasureLayer(KINDS[kind])
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    for x in (torch.randn(5, 8), torch.randn(2, 3, 8).bfloat16()):
        torch.testing.assert_close(compiled(x), layer(x))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(compiled(x.float()), layer(x.float()))


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
@pytest.mark.parametrize("strict", [True, False])
def test_the_layer_exports_with_any_number_of_rows(strict):
    torch.compiler.reset()
    model = nn.Sequential(nn.Linear(6, 8), ErasureLayer(KINDS["affine"])).eval()
    rows = {"input": {0: torch.export.Dim("rows", min=1)}}
    program = torch.export.export(model, (torch.randn(4, 6),), dynamic_shapes=rows, strict=strict)
    x = torch.randn(9, 6)
    torch.testing.assert_close(program.module()(x), model(x))
    assert {"1.left", "1.right", "1.center", "1.offset"} < set(program.state_dict)


# -- folding -------------------------------------------------------------------------------------


def after_and_before(erasure, linear, side, x):
    """What the folded layer has to give, in float64 from the layer's own numbers."""
    W = exact(linear.weight)
    b = 0.0 if linear.bias is None else exact(linear.bias)
    if side == "input":
        return erasure(exact(x)) @ W.T + b
    return erasure(exact(x) @ W.T + b)


@every_type
@every_kind
@pytest.mark.parametrize("side", ["input", "output"])
@pytest.mark.parametrize("bias", [True, False])
def test_the_folded_layer_does_both(erasure, dtype, side, bias):
    shape = (8, 5) if side == "input" else (5, 8)
    linear = nn.Linear(*shape, bias=bias, dtype=dtype)
    before = {name: value.clone() for name, value in linear.state_dict().items()}
    folded = fold_into(erasure, linear, side=side, add_bias=True)
    x = torch.randn(40, shape[0]).to(dtype)
    expected = after_and_before(erasure, linear, side, x)
    # rounding of the weights, summed over the width
    close = 8 * eps(dtype) * max(1.0, np.abs(expected).max(), np.abs(exact(folded.weight)).max())
    np.testing.assert_allclose(exact(folded(x)), expected, atol=close)
    assert type(folded) is nn.Linear
    assert folded.weight.dtype == dtype
    constant = erasure.rank > 0 and (erasure.center is not None or erasure.offset is not None)
    assert (folded.bias is not None) == (bias or constant)
    for name, value in linear.state_dict().items():
        assert torch.equal(value, before[name])


def test_the_method_of_the_layer_is_the_function():
    layer, linear = ErasureLayer(KINDS["affine"], dtype=torch.float64), nn.Linear(8, 8)
    for side in ("input", "output"):
        found, expected = (
            layer.fold_into(linear, side=side),
            fold_into(KINDS["affine"], linear, side=side),
        )
        assert torch.equal(found.weight, expected.weight)
        assert torch.equal(found.bias, expected.bias)


def test_state_of_the_layer_and_of_chance_is_kept():
    linear = nn.Linear(8, 4).requires_grad_(False).eval()
    state = torch.get_rng_state()
    folded = fold_into(KINDS["affine"], linear)
    assert torch.equal(torch.get_rng_state(), state)
    assert not folded.weight.requires_grad
    assert not folded.training
    assert fold_into(KINDS["affine"], nn.Linear(8, 4)).weight.requires_grad
    assert fold_into(KINDS["affine"], nn.Linear(8, 4, device="cpu")).weight.device.type == "cpu"


@pytest.mark.parametrize("side", ["input", "output"])
def test_a_concept_in_hidden_states_is_folded_away(side):
    """A network whose hidden states tell the concept; folded, what follows them does not."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 2000)
    X = torch.from_numpy(rng.normal(size=(2000, 8)) + np.outer(y, rng.normal(size=8))).float()
    first, second = nn.Linear(8, 16), nn.Linear(16, 6)
    with torch.no_grad():
        hidden = first(X)
        eraser = ex.LEACE().fit(hidden, y)
        if side == "output":
            clean = fold_into(eraser.erasure_, first, side="output")(X)
            torch.testing.assert_close(clean, eraser.transform(hidden), atol=1e-4, rtol=1e-4)
            told = hidden
        else:
            told, clean = second(hidden), fold_into(eraser.erasure_, second)(hidden)
    none = ex.Erasure(np.zeros((told.shape[1], 0)), np.zeros((0, told.shape[1])))
    assert ex.certify(none, told, y).bits_left > 0.3
    assert ex.certify(none, clean, y).bits_left < 1e-3
    chance = max(y.mean(), 1 - y.mean())
    probe = LogisticRegression(max_iter=1000)
    assert probe.fit(told, y).score(told, y) > chance + 0.1
    assert probe.fit(clean, y).score(clean, y) < chance + 0.01


@pytest.mark.parametrize(
    ("linear", "side", "match"),
    [
        (nn.Linear(7, 8), "input", "8 features, but the input of this layer has 7"),
        (nn.Linear(8, 7), "output", "8 features, but the output of this layer has 7"),
        (nn.Conv1d(8, 8, 1), "input", "torch.nn.Linear"),
        (nn.Linear(8, 8), "left", "Unknown side"),
    ],
)
def test_what_cannot_be_folded(linear, side, match):
    with pytest.raises(ex.InputError, match=match):
        fold_into(KINDS["affine"], linear, side=side)
