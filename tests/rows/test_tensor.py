"""Rows in tensors: every way to work on them against the array, types, gradients, memory."""

import gc
import pickle
import subprocess
import sys
import weakref

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

import expunge as ex
from expunge.game.losses import loss_for
from expunge.inputs import check_concept, check_rows, check_weights
from expunge.inputs.homes import home_of
from expunge.inputs.matrices import as_numpy
from expunge.rows import apply_tensor, tensor
from expunge.rows.dense import DenseRows
from expunge.rows.tensor import TensorRows
from planted import KINDS, plant

DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
HALF = (torch.float16, torch.bfloat16)
every_type = pytest.mark.parametrize("dtype", DTYPES, ids=str)
every_half = pytest.mark.parametrize("dtype", HALF, ids=str)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # test processes already fill the cores
    yield
    torch.set_num_threads(before)


def identity(d):
    return ex.Erasure(np.zeros((d, 0)), np.zeros((0, d)))


def an_erasure(d=8, r=2, seed=0):
    """Oblique, with center and offset."""
    rng = np.random.default_rng(seed)
    L, R = rng.normal(size=(d, r)), rng.normal(size=(r, d))
    return ex.Erasure(L, np.linalg.solve(R @ L, R), rng.normal(size=d), rng.normal(size=d))


def formula(e, X):
    X = np.asarray(X, dtype=np.float64)
    return X - ((X - e.center) @ e.right.T) @ e.left.T + e.offset


def exact(x):
    return x.detach().double().numpy()


def eps(dtype):
    return torch.finfo(dtype).eps


# -- three ways to work on a tensor, one answer --------------------------------------------------


WAYS = [
    (way, dtype)
    for way in ("shared", "converted", "device")
    for dtype in DTYPES
    if (way, dtype) != ("shared", torch.bfloat16)  # which NumPy does not have
]


@pytest.fixture(params=WAYS, ids=lambda way: f"{way[0]}-{way[1]}")
def way(request, monkeypatch):
    monkeypatch.setattr(tensor, "DEVICE_BLOCK", 4000)  # several blocks, the last one short
    return request.param


def both_homes(kind, home, dtype):
    """(TensorRows, the same numbers as a float64 array, concept, weights) of planted rows."""
    data = plant(kind, n=1500)
    x = torch.from_numpy(data.X + 3).to(dtype)
    weights = np.random.default_rng(1).random(1500)
    weights[:500] = 0  # for blocks that weigh nothing
    return TensorRows(x, home), DenseRows(exact(x)), check_concept(data.y, 1500), weights


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_moments(way, kind, weighted):
    rows, array, concept, weights = both_homes(kind, *way)
    weights = weights if weighted else None
    found, expected = rows.moments(concept, weights), array.moments(concept, weights)
    close = 1e-12 if way[1] == torch.float64 else 1e-6  # NumPy forms Sxx in single precision
    for name in ("mean_x", "mean_z", "xz", "zz", "squares", "weight", "xx"):
        value, size = getattr(expected, name), np.abs(getattr(expected, name)).max()
        tolerance = (close if name == "xx" else 1e-12) * size
        np.testing.assert_allclose(getattr(found, name), value, rtol=0, atol=tolerance)
    assert (found.n, found.labels, found.kind) == (1500, expected.labels, expected.kind)
    assert rows.moments(concept, weights, second=False).xx is None
    X, w = array.X, np.ones(1500) if weights is None else weights
    plain = np.cov(X.T, aweights=w, ddof=0)  # a second road
    np.testing.assert_allclose(found.cov_xx, plain, atol=close * np.abs(plain).max())


@pytest.mark.parametrize("kind", KINDS)
def test_passes_of_a_linear_model(way, kind):
    rows, array, concept, weights = both_homes(kind, *way)
    name = "squared" if concept.kind == "continuous" else "cross_entropy"
    loss, rng = loss_for(name, concept.kind, concept.width), np.random.default_rng(2)
    m = loss.encoder(concept)(0, 1).shape[1]
    model = (loss, rng.normal(size=(8, m)), rng.normal(size=m), concept, weights)
    center = array.X.mean(axis=0)
    expected = array.glm_pass(*model, center=center)
    for single, close in ((False, 1e-11), (True, 1e-11 if way[1] == torch.float64 else 1e-5)):
        found = rows.glm_pass(*model, center=center, single=single)
        for part in ("value", "coef", "intercept", "curvature"):
            value = getattr(expected, part)
            atol = close * max(1.0, np.abs(value).max())
            np.testing.assert_allclose(getattr(found, part), value, rtol=0, atol=atol)
    assert found.accuracy == pytest.approx(expected.accuracy, abs=1e-3, nan_ok=True)
    for at in (center, None):
        hessian = array.glm_hessian(*model, center=at)
        found = rows.glm_hessian(*model, center=at)
        np.testing.assert_allclose(found, hessian, rtol=0, atol=1e-11 * np.abs(hessian).max())


def test_rows_are_recognised_whatever_their_home(way):
    rows, array, _, _ = both_homes("binary", *way)
    assert rows.fingerprint().to_meta() == array.fingerprint().to_meta()


def test_samples_and_subsets(way):
    home, dtype = way
    rows, array, _, _ = both_homes("binary", home, dtype)
    batch, index = next(rows.batches(40, np.random.default_rng(0)))
    assert type(batch) is np.ndarray
    assert batch.dtype == (np.float64 if dtype == torch.float64 else np.float32)
    np.testing.assert_array_equal(batch, array.X[index])
    part, index = rows.subset(30, np.random.default_rng(0))
    assert len(set(index)) == 30
    assert part.way == home
    assert part.tensor.dtype == dtype
    np.testing.assert_array_equal(part.array(), array.X[index])
    assert (part.n_samples, part.n_features) == (30, 8)


def test_the_way_is_found_from_type_and_device():
    ways = [TensorRows(torch.ones(2, 2, dtype=dtype)).way for dtype in DTYPES]
    assert ways == ["shared", "shared", "converted", "converted"]
    assert TensorRows(torch.ones(2, 2, dtype=torch.int32)).way == "shared"
    x = torch.ones(2, 2, requires_grad=True)
    assert np.shares_memory(TensorRows(x).array(), x.detach().numpy())


def test_of_wide_rows_a_few_columns_are_converted_for_the_fingerprint(monkeypatch):
    seen, convert = [], tensor.TensorView.__array__

    def counted(self, *args, **options):
        seen.append(self.tensor.numel())
        return convert(self, *args, **options)

    monkeypatch.setattr(tensor.TensorView, "__array__", counted)
    TensorRows(torch.randn(20_000, 256), "device").fingerprint()
    assert sum(seen) < 20_000 * 256 / 4


# -- through the gate ----------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:torch.quantize:UserWarning")
def test_what_is_refused():
    x = torch.randn(4, 3)
    quantized = torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)
    for X, match in (
        (x.to_sparse(), "Sparse"),
        (x.to(torch.complex64), "Complex"),
        (x.to(torch.float8_e4m3fn), "not supported"),
        (quantized, "not supported"),
        (x[0], "got 1D"),
        (x[None], "got 3D"),
        (x[:0], "0 sample"),
        (x[:, :0], "0 feature"),
        (x[:1], "minimum of 2"),
    ):
        with pytest.raises(ex.InputError, match=match):
            check_rows(X)
    for X in (x.to_sparse(), x.to(torch.complex64), quantized):
        with pytest.raises(ex.InputError):
            identity(3).transform(X)
        with pytest.raises(ex.InputError):
            as_numpy(X)


@every_type
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_nan_and_infinity_are_counted_and_located(dtype, bad):
    x = torch.ones(700, 3, dtype=dtype)
    x[600, 1] = x[650, 0] = bad
    with pytest.raises(ex.InputError, match="2 such values, the first in row 600, column 1"):
        check_rows(x)
    big = torch.full((4, 3), torch.finfo(dtype).max, dtype=dtype)
    assert check_rows(big).n_samples == 4  # though its squares are not finite


def test_labels_weights_and_factors_may_be_tensors():
    data = plant("binary")
    w = torch.rand(600, requires_grad=True)
    np.testing.assert_array_equal(check_weights(w, 600), exact(w))
    found = ex.RLACE().fit(torch.from_numpy(data.X), torch.from_numpy(data.y), sample_weight=w)
    expected = ex.RLACE().fit(data.X, data.y, sample_weight=exact(w))
    np.testing.assert_array_equal(found.erasure_.left, expected.erasure_.left)
    assert found.erasure_.meta["concept"] == expected.erasure_.meta["concept"]
    e = ex.Erasure(torch.eye(3)[:, :1].requires_grad_(), torch.eye(3)[:1], torch.ones(3))
    np.testing.assert_array_equal(e.left, np.eye(3)[:, :1])
    assert as_numpy([1, 2]) == [1, 2]
    assert home_of(data.X) is None
    assert home_of(torch.nn.Parameter(torch.ones(2))) is home_of(w)


def test_arrays_need_no_torch():
    code = """
import sys, numpy as np, expunge as ex
X = np.random.default_rng(0).normal(size=(50, 3)); y = np.arange(50) % 2
ex.RLACE().fit(X, y).transform(X)
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


# -- applying the map ----------------------------------------------------------------------------


@pytest.fixture(params=["one expression", "blocks"])
def both_paths(request, monkeypatch):
    if request.param == "blocks":
        monkeypatch.setattr(apply_tensor, "SMALL", -1)
        monkeypatch.setattr(apply_tensor, "SERIAL", 100)  # several pieces in a block


@every_type
@pytest.mark.parametrize("shape", [(8,), (0, 8), (50, 8), (2, 3, 8), (2, 0, 8), (2, 2, 2, 8)])
@pytest.mark.usefixtures("both_paths")
def test_the_formula_in_every_type_and_shape(dtype, shape):
    e, x = an_erasure(), torch.randn(shape, generator=torch.manual_seed(0)).to(dtype)
    found = e(x)
    assert (found.dtype, found.shape, found.device) == (dtype, x.shape, x.device)
    expected = formula(e, exact(x))
    atol = 4 * eps(dtype) * max(1.0, np.abs(expected).max(initial=0))
    np.testing.assert_allclose(exact(found), expected, atol=max(atol, 1e-14))
    if dtype != torch.bfloat16:
        np.testing.assert_allclose(exact(found), np.float64(e(x.numpy())), atol=max(atol, 1e-14))


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int64, torch.bool], ids=str)
def test_integers_and_booleans_give_float64(dtype):
    x = torch.randint(0, 2, (30, 8)).to(dtype)
    assert an_erasure()(x).dtype == torch.float64
    np.testing.assert_allclose(exact(an_erasure()(x)), formula(an_erasure(), x), atol=1e-13)
    assert check_rows(x).transform(an_erasure()).dtype == torch.float64


@every_type
@pytest.mark.usefixtures("both_paths")
def test_views_of_any_layout(dtype):
    e, x = an_erasure(), torch.randn(40, 16).to(dtype)
    negative = torch.complex(x.float(), x.float()).conj().imag[:, :8]  # negated when it is read
    for view in (x[:, ::2], x[::2, :8], x[:, :8].T.contiguous().T, x.reshape(5, 8, 16)[..., 3:11]):
        expected = formula(e, exact(view))
        atol = 20 * eps(dtype) * np.abs(expected).max()
        np.testing.assert_allclose(exact(e(view)), expected, atol=atol)
    np.testing.assert_allclose(exact(e(negative)), formula(e, exact(negative)), atol=1e-4)


@every_type
def test_out_and_in_place(dtype):
    e, x = an_erasure(), torch.randn(1300, 8).to(dtype)
    before, out = x.clone(), torch.empty_like(x)
    assert e.transform(x, out=out) is out
    assert torch.equal(x, before)
    size = np.abs(exact(out)).max()
    np.testing.assert_allclose(exact(out), exact(e(x)), atol=4 * eps(dtype) * size)
    assert e.transform(x, out=x) is x
    assert torch.equal(x, out)
    stacked = before.reshape(13, 100, 8)
    assert torch.equal(e.transform(stacked, out=torch.empty_like(stacked)).reshape(-1, 8), out)


@every_type
def test_a_wrong_out_is_refused(dtype):
    e, x = an_erasure(), torch.randn(50, 8).to(dtype)
    other = torch.float16 if dtype != torch.float16 else torch.float32
    wrong = [x.to(other), x[:, :7], x.reshape(-1), [[0.0] * 8] * 50, np.empty((50, 8))]
    for out in (*wrong, torch.empty(50, 8, dtype=dtype, device="meta")):
        with pytest.raises(ex.InputError, match="out must be a tensor of shape"):
            e.transform(x, out=out)
    with pytest.raises(ex.InputError, match="out must be an array"):
        e.transform(exact(x), out=x.double())
    with pytest.raises(ex.InputError, match="overlaps"):
        e.transform(x[1:], out=x[:-1])
    with pytest.raises(ex.InputError, match="contiguous"):
        e.transform(x.reshape(5, 10, 8), out=torch.empty(5, 10, 16, dtype=dtype)[..., ::2])
    leaf = torch.empty_like(x, requires_grad=True)
    for arguments in ((x, leaf), (leaf, x.clone())):
        with pytest.raises(ex.InputError, match="gradient"):
            e.transform(*arguments)
        with torch.no_grad():
            e.transform(*arguments)


@pytest.mark.parametrize("shape", [(5, 7), (9,), (), (8, 1)])
def test_a_wrong_width_is_refused(shape):
    with pytest.raises(ex.InputError, match="expecting 8 features"):
        an_erasure()(torch.zeros(shape))


@every_half
@pytest.mark.usefixtures("both_paths")
def test_large_activations_stay_finite(dtype):
    """Rows of norm 1e4 and more, whose squares and sums float16 cannot hold."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 2000)
    X = rng.normal(size=(2000, 64)) + np.outer(y, rng.normal(size=64))
    x = torch.from_numpy(X / np.linalg.norm(X, axis=1, keepdims=True) * 1e4).to(dtype)
    x[:, 0] = 60_000 * torch.sign(x[:, 0])  # beside the largest number there is
    eraser = ex.RLACE().fit(x, y)
    clean = eraser.transform(x)
    assert torch.isfinite(clean).all()
    np.testing.assert_allclose(
        exact(clean), eraser.transform(exact(x)), rtol=2 * eps(dtype), atol=1
    )
    assert eraser.certificate_.bits_left < 1e-9


# -- gradients -----------------------------------------------------------------------------------


@every_type
@pytest.mark.usefixtures("both_paths")
@pytest.mark.filterwarnings("ignore::expunge.errors.RoundingShows")  # six rows of eight columns
def test_gradients_are_those_of_the_matrix(dtype):
    e, x = an_erasure(), torch.randn(5, 4, 8).to(dtype).requires_grad_()
    direction = torch.randn(5, 4, 8).to(dtype)
    (e(x) * direction).sum().backward()
    assert x.grad.dtype == dtype
    expected = exact(direction) @ e.matrix()
    np.testing.assert_allclose(exact(x.grad), expected, atol=20 * eps(dtype) * abs(expected).max())
    y = torch.randn(6, 8).to(dtype).requires_grad_()
    clean = ex.RLACE().fit(y, [0, 1, 0, 1, 0, 1]).transform(y)
    assert clean.requires_grad
    with torch.no_grad():
        assert not e(x).requires_grad


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # inside torch itself
@pytest.mark.usefixtures("both_paths")
def test_transformations_of_torch_go_through():
    e, x = an_erasure(), torch.randn(6, 8, dtype=torch.float64)
    M, expected = torch.from_numpy(e.matrix()), formula(e, x)
    assert torch.autograd.gradcheck(e, (x.clone().requires_grad_(),))
    np.testing.assert_allclose(torch.func.vmap(e)(x), expected, atol=1e-13)
    _, tangent = torch.func.jvp(e.transform, (x,), (torch.ones_like(x),))
    np.testing.assert_allclose(tangent, torch.ones_like(x) @ M.T, atol=1e-13)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
        tangent = torch.autograd.forward_ad.unpack_dual(e(dual)).tangent
    np.testing.assert_allclose(tangent, torch.ones_like(x) @ M.T, atol=1e-13)
    assert e(torch.empty(3, 8, device="meta")).shape == (3, 8)
    with torch._subclasses.fake_tensor.FakeTensorMode():
        assert e(torch.empty(3, 8, dtype=torch.float64)).shape == (3, 8)
    np.testing.assert_allclose(e(x), expected, atol=1e-13)  # no shadow was kept


def test_factors_made_in_inference_mode_serve_gradients_later():
    e, x = an_erasure(), torch.randn(6, 8)
    with torch.inference_mode():
        first = e(x)
    leaf = x.clone().requires_grad_()
    second = e(leaf)
    second.sum().backward()
    assert torch.equal(first, second)
    assert leaf.grad is not None


def test_autocast_does_not_round_the_products():
    e, x = an_erasure(), torch.randn(60, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (x @ x.T).dtype == torch.bfloat16  # it is on
        found = e(x)
    assert found.dtype == torch.float32
    np.testing.assert_allclose(exact(found), formula(e, exact(x)), atol=1e-5)


def test_copies_of_the_factors_are_no_part_of_an_erasure():
    e = an_erasure()
    before, attributes = pickle.dumps(e), {*vars(e), "emptied"}
    e(torch.randn(3, 8))
    assert e in apply_tensor._copies
    assert pickle.dumps(e) == before
    assert set(vars(e)) == attributes
    known = len(apply_tensor._copies)
    del e
    gc.collect()
    assert len(apply_tensor._copies) < known


# -- erasers -------------------------------------------------------------------------------------


@every_type
@pytest.mark.parametrize("name", ex.ERASERS)
def test_every_eraser_takes_tensors(name, dtype):
    data = plant("binary", n=400)
    x, y = torch.from_numpy(data.X).to(dtype), torch.from_numpy(data.y)
    array = x.float().numpy() if dtype != torch.float64 else data.X
    found, expected = ex.ERASERS[name]().fit(x, y), ex.ERASERS[name]().fit(array, data.y)
    a, b = found._settled()[0], expected._settled()[0]
    for part in {"left", "right", "shift", "maps"} & {*dir(a)}:
        if getattr(b, part) is not None:
            np.testing.assert_allclose(getattr(a, part), getattr(b, part), atol=1e-6)
    if isinstance(a, ex.ConditionalErasure):
        concept = check_concept(data.y, 400)
        clean = apply_tensor.apply_conditional_to_tensor(a, x, concept)
        plain = b.transform(array, concept=data.y)
    else:
        clean, plain = found.fit_transform(x.requires_grad_(), y), expected.transform(array)
        assert clean.requires_grad
    assert (clean.dtype, clean.device) == (dtype, x.device)
    atol = 50 * eps(torch.float64) + eps(dtype)
    np.testing.assert_allclose(exact(clean), plain, rtol=eps(dtype), atol=atol)


@every_half
def test_what_is_told_the_concept_has_gradients_too(dtype):
    data = plant("classes", n=400)
    x = torch.from_numpy(data.X).to(dtype).requires_grad_()
    for eraser in (ex.OracleLEACE(), ex.QuadraticLEACE()):
        e = eraser.fit(x, data.y).conditional_erasure_
        concept = check_concept(data.y, 400)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            clean = apply_tensor.apply_conditional_to_tensor(e, x, concept)
        plain = e.transform(exact(x), concept=data.y)
        np.testing.assert_allclose(exact(clean), plain, rtol=2 * eps(dtype), atol=eps(dtype))
        (gradient,) = torch.autograd.grad(clean[0].sum(), x)
        own = np.eye(8) if e.maps is None else e.maps[concept.values[0]]
        np.testing.assert_allclose(exact(gradient[0]), own.sum(axis=0), atol=8 * eps(dtype))
        assert not gradient[1:].any()


@every_type
@pytest.mark.parametrize("kind", ["binary", "classes", "labels"])
def test_nothing_is_left_in_rounded_rows_either(kind, dtype):
    data = plant(kind, n=2000)
    x = torch.from_numpy(data.X).to(dtype)
    assert ex.certify(identity(8), x, data.y).bits_left > 0.05  # the concept was there
    eraser = ex.RLACE().fit(x, data.y)
    assert eraser.certificate_.bits_left < 1e-9
    assert ex.certify(eraser.erasure_, x, data.y).bits_left < 1e-9
    clean = eraser.transform(x)
    assert clean.dtype == dtype
    assert ex.certify(identity(8), clean, data.y).bits_left < 1e-3
    if kind == "binary":
        chance = max(np.mean(data.y), 1 - np.mean(data.y))
        for rows, found in ((x, False), (clean, True)):
            score = LogisticRegression(max_iter=1000).fit(exact(rows), data.y).score
            assert bool(score(exact(rows), data.y) < chance + 0.01) is found


@pytest.mark.filterwarnings("ignore::expunge.errors.RoundingShows")
def test_rounding_brings_back_what_a_large_mean_hides():
    """The known limit: a column whose spread is below the steps of its type keeps its values."""
    data = plant("binary", n=2000, gap=0.3)
    x = torch.from_numpy(data.X + 1000).to(torch.bfloat16)
    eraser = ex.RLACE().fit(x, data.y)
    assert eraser.certificate_.bits_left < 1e-3
    left = [ex.certify(identity(8), rows, data.y).bits_left for rows in (x, eraser.transform(x))]
    assert left[1] > 0.5 * left[0] > 0
    remedy = ex.certify(identity(8), eraser.transform(x.float()), data.y)
    assert remedy.bits_left < 1e-3


@pytest.mark.parametrize("solver", ["closed_form", "descent_ascent", "subspace_ascent"])
@every_half
def test_every_solver_runs_on_half_types(solver, dtype):
    data = plant("classes", n=500)
    x = torch.from_numpy(data.X).to(dtype)
    rank = 3 if solver == "closed_form" else 1
    settings = {"solver": solver, "random_state": 0, "alpha": 1e-2}
    if solver == "descent_ascent":
        settings |= {"max_iter": 60, "evaluate_every": 30, "tol": 0}
    found, expected = (
        ex.RLACE(rank, **settings).fit(rows, data.y) for rows in (x, x.float().numpy())
    )
    np.testing.assert_allclose(found.erasure_.matrix(), expected.erasure_.matrix(), atol=1e-4)


# -- streaming -----------------------------------------------------------------------------------


@every_type
def test_a_stream_of_hidden_states_keeps_sums_only(dtype):
    """Chunks that hang on a graph are let go; the result is that of one fit on all."""
    data, encoder = plant("classes", n=1200), torch.nn.Linear(8, 8)
    torch.nn.init.orthogonal_(encoder.weight, generator=torch.manual_seed(0))
    codes = torch.from_numpy(np.unique(data.y, return_inverse=True)[1])
    inputs = torch.from_numpy(data.X).float()
    eraser, seen, alive, sizes = ex.LEACE(), [], [], []
    for start in range(0, 1200, 100):
        hidden = encoder(inputs[start : start + 100]).to(dtype)
        assert hidden.requires_grad
        eraser.partial_fit(hidden, codes[start : start + 100])
        seen.append(hidden.detach().clone())
        alive.append(weakref.ref(hidden))
        sizes.append(len(pickle.dumps(eraser)))
        del hidden
    gc.collect()
    assert not any(ref() is not None for ref in alive)
    assert sizes[-1] < sizes[0] + 24 * 1200  # the fingerprint grows to its limit, sums do not
    whole = ex.LEACE().fit(torch.cat(seen), codes)
    atol = 1e-9 if dtype == torch.float64 else 1e-4
    np.testing.assert_allclose(eraser.erasure_.matrix(), whole.erasure_.matrix(), atol=atol)
    assert eraser.certificate_.bits_left < 1e-3
    assert eraser.erasure_.meta["n"] == 1200
