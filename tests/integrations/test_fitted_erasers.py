"""A fitted eraser is taken wherever an erasure is, by one rule."""

import numpy as np
import pytest

import expunge as ex
from expunge.maps import as_erasure

D = 4
RNG = np.random.default_rng(0)
Y = RNG.integers(0, 2, 200)
X = RNG.normal(size=(200, D)) + np.outer(Y, [2.0, 0, 1, 0])
FITTED = ex.LEACE().fit(X, Y)
TOLD, UNFITTED = ex.OracleLEACE().fit(X, Y), ex.LEACE()


def layer(e):
    torch = pytest.importorskip("torch")
    return ex.integrations.torch.ErasureLayer(e)(torch.tensor(X)).numpy()


def folded(e):
    torch = pytest.importorskip("torch")
    linear = torch.nn.Linear(D, D, dtype=torch.float64)
    with torch.no_grad():
        linear.weight.copy_(torch.eye(D))
        linear.bias.zero_()
        return ex.integrations.torch.fold_into(e, linear)(torch.tensor(X)).numpy()


def hooked(e):
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Identity())
    with ex.integrations.transformers.erasing(model, {"0": e}):
        return model(torch.tensor(X)).numpy()


def indexed(e):
    faiss = pytest.importorskip("faiss")
    index = faiss.IndexFlatL2(D)
    index.add(X.astype(np.float32))
    clean = ex.integrations.faiss.erase_index(index, e)  # which owns what is inside
    return faiss.downcast_index(clean.index).reconstruct_n(0, len(X))


def transformed(e):
    pytest.importorskip("faiss")
    return ex.integrations.faiss.to_faiss(e).apply(X.astype(np.float32))


def run(model):
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return session.run(None, {"vectors": X})[0]


def graph(e):
    pytest.importorskip("onnx")
    return run(ex.integrations.onnx.to_onnx(e, dtype="float64"))


def attached(e):
    pytest.importorskip("onnx")
    nothing = ex.integrations.onnx.to_onnx(ex.Erasure.identity(D), dtype="float64")
    return run(ex.integrations.onnx.attach(nothing, e))


def after_nothing(e):
    return ex.Erasure.identity(D).then(e)(X)


PLACES = [layer, folded, hooked, indexed, transformed, graph, attached, after_nothing]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_an_eraser_does_as_its_erasure(place):
    found = place(FITTED)
    np.testing.assert_array_equal(found, place(FITTED.erasure_))
    np.testing.assert_allclose(found, FITTED.transform(X), atol=1e-5)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_what_is_none_is_refused_everywhere(place):
    for wrong in (TOLD, TOLD.conditional_erasure_, "LEACE", np.eye(D), ex.LEACE):
        with pytest.raises(ex.InputError):
            place(wrong)
    with pytest.raises(ex.InputError, match="Call fit first"):
        place(UNFITTED)


def test_the_rule():
    assert as_erasure(FITTED.erasure_) is FITTED.erasure_
    assert as_erasure(FITTED) is FITTED.erasure_
    assert ex.certify(FITTED, X, Y).erased
    with pytest.raises(ex.InputError, match="concept of each row"):
        as_erasure(TOLD)
