"""Erasures in sentence-transformers: saved with the model, for queries and documents alike."""

import json
import subprocess
import sys

import numpy as np
import pytest
from sentences import GENDER, HELD_OUT, TEXTS
from sklearn.linear_model import LogisticRegression

torch = pytest.importorskip("torch")
st = pytest.importorskip("sentence_transformers")

from sentence_transformers.sentence_transformer import modules  # noqa: E402

import expunge as ex  # noqa: E402
from expunge.integrations.sentence_transformers import add_erasure, unnormalized  # noqa: E402
from expunge.integrations.transformers import collect, erasing  # noqa: E402


def kinds(sequence):
    return [type(module).__name__ for module in sequence]


def unit(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.fixture
def model(minilm_path):
    import transformers

    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    return st.SentenceTransformer(minilm_path, device="cpu")


def test_saved_model_loads_without_this_package_and_encodes_the_same(minilm, model, tmp_path):
    some, gender = TEXTS[:60], GENDER[:60]
    with unnormalized(model):
        pooled = model.encode(some)
    assert np.ptp(np.linalg.norm(pooled, axis=1)) > 0.01
    layer = "encoder.layer.5"
    by_tokens = collect(*minilm, some, layer, "mean")[layer]
    np.testing.assert_allclose(pooled, by_tokens, atol=1e-5)

    plain = model.encode(some)
    np.testing.assert_allclose(plain, unit(pooled), atol=1e-6)
    erasure = ex.RLACE().fit(pooled, gender).erasure_
    assert add_erasure(model, erasure) is model
    assert kinds(model) == ["Transformer", "Pooling", "Dense", "Normalize"]
    expected = unit(erasure.transform(pooled))
    np.testing.assert_allclose(model.encode(some), expected, atol=1e-5)
    assert np.abs(expected - plain).max() > 0.01
    with unnormalized(model):
        np.testing.assert_allclose(model.encode(some), erasure.transform(pooled), atol=1e-5)

    model.save(str(tmp_path / "model"), create_model_card=False)
    listed = json.loads((tmp_path / "model" / "modules.json").read_text())
    assert all(module["type"].startswith("sentence_transformers.") for module in listed)
    (tmp_path / "texts.json").write_text(json.dumps(some))
    np.testing.assert_allclose(encode_elsewhere(tmp_path), expected, atol=1e-5)


ELSEWHERE = """
import json, os, sys
os.environ["HF_HUB_OFFLINE"] = "1"

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "expunge":
            raise ModuleNotFoundError("not here", name=name)

sys.meta_path.insert(0, Absent())
try:
    import expunge
except ModuleNotFoundError:
    print("absent")
import numpy as np, torch
torch.set_num_threads(1)
from sentence_transformers import SentenceTransformer
model = SentenceTransformer("model", device="cpu")
np.save("vectors.npy", model.encode(json.load(open("texts.json"))))
assert not any(name.partition(".")[0] == "expunge" for name in sys.modules)
"""


def encode_elsewhere(folder):
    """Vectors from a process in which expunge cannot be imported."""
    command = [sys.executable, "-I", "-c", ELSEWHERE]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["absent"]
    return np.load(folder / "vectors.npy")


def test_guarantee_before_normalization_and_at_the_end(model):
    """Before it, the raw vectors are at chance; at the end, the output of encode is."""
    train, gender = np.array(TEXTS)[~HELD_OUT].tolist(), GENDER[~HELD_OUT]
    plain = model.encode(train)
    with unnormalized(model):
        pooled = model.encode(train)

    def accuracy(X):
        return LogisticRegression(max_iter=5000, C=1000).fit(X, gender).score(X, gender)

    assert accuracy(plain) > 0.95
    at_end = ex.RLACE().fit(plain, gender).erasure_
    add_erasure(model, at_end, place="end")
    assert kinds(model) == ["Transformer", "Pooling", "Normalize", "Dense"]
    after = model.encode(train)
    np.testing.assert_allclose(after, at_end.transform(plain), atol=1e-6)
    means = [after[gender == g].astype(float).mean(axis=0) for g in "fm"]
    np.testing.assert_allclose(*means, atol=1e-6)
    assert np.linalg.norm(plain[gender == "f"].mean(0) - plain[gender == "m"].mean(0)) > 0.05
    assert ex.certify(at_end, pooled, gender).erased is False  # it is for the other vectors


def test_hooks_reach_the_transformer_inside(model):
    """Erasing the mean of the last layer's tokens is erasing the pooled vector."""
    name = next(n for n, _ in model.named_modules() if n.endswith("encoder.layer.5"))
    rng = np.random.default_rng(0)
    e = ex.Erasure(rng.normal(size=(384, 1)) / 384, rng.normal(size=(1, 384)), rng.normal(size=384))
    with unnormalized(model):
        before = model.encode(TEXTS[:8])
        with erasing(model, {name: e}, tokens="mean"):
            after = model.encode(TEXTS[:8])
    np.testing.assert_allclose(after, e.transform(before), atol=1e-5)
    assert np.abs(after - before).max() > 0.01


def bags():
    """Two word-counting encoders with other words in them, and no weights."""
    return [modules.BoW(words) for words in (["she", "he", "works"], ["her", "his", "works"])]


PRONOUNS = ex.Erasure(np.eye(3)[:, :2], np.eye(3)[:2], center=[0.2, 0.1, 5.0])
QUERIES, DOCUMENTS = ["she works", "he he works"], ["her works works", "his works"]


@pytest.mark.parametrize("inside", [True, False])
def test_queries_and_documents_take_routes_of_their_own(tmp_path, inside):
    """Routes that normalize get the erasure each; else it stands behind the router."""
    query, document = bags()
    own, common = ([modules.Normalize()], []) if inside else ([], [modules.Normalize()])
    router = modules.Router.for_query_document([query, *own], [document, *own])
    model = st.SentenceTransformer(modules=[router, *common], device="cpu")
    with unnormalized(model):
        raw = model.encode_query(QUERIES), model.encode_document(DOCUMENTS)
    np.testing.assert_array_equal(raw[0], [[1, 0, 1], [0, 2, 1]])
    add_erasure(model, PRONOUNS)
    if inside:
        assert [kinds(route) for route in router.sub_modules.values()] == [
            ["BoW", "Dense", "Normalize"]
        ] * 2
    else:
        assert kinds(model) == ["Router", "Dense", "Normalize"]
    model.save(str(tmp_path), create_model_card=False)
    for each in (model, st.SentenceTransformer(str(tmp_path), device="cpu")):
        found = each.encode_query(QUERIES), each.encode_document(DOCUMENTS)
        for vectors, before in zip(found, raw, strict=True):
            np.testing.assert_allclose(vectors, unit(PRONOUNS.transform(before)), atol=1e-6)


def test_a_model_without_normalization_and_two_erasures_in_turn():
    model = st.SentenceTransformer(modules=[bags()[0]], device="cpu")
    raw = model.encode(QUERIES)
    with unnormalized(model):
        np.testing.assert_array_equal(model.encode(QUERIES), raw)
    last = ex.Erasure(np.eye(3)[:, 2:], np.eye(3)[2:], offset=[1.0, 2.0, 3.0])
    add_erasure(add_erasure(model, PRONOUNS), last)
    assert [name for name, _ in model.named_children()] == ["0", "erasure", "erasure_2"]
    np.testing.assert_allclose(model.encode(QUERIES), PRONOUNS.then(last).transform(raw), atol=1e-6)


def test_the_layer_follows_the_model_and_is_not_trained(model):
    add_erasure(model.half(), ex.Erasure(np.eye(384)[:, :1], np.eye(384)[:1]))
    weights = list(model[2].parameters())
    assert {weight.dtype for weight in weights} == {torch.float16}
    assert not any(weight.requires_grad for weight in weights)


def test_truncation_comes_after(model):
    e = ex.Erasure(np.eye(384)[:, :1], np.eye(384)[:1])
    model.truncate_dim = 8
    before = model.encode(TEXTS[:2])
    after = add_erasure(model, e).encode(TEXTS[:2])
    assert after.shape == (2, 8)
    assert (after[:, 0] == 0).all()
    assert np.abs(before[:, 0]).min() > 0


def test_bad_arguments(model):
    with pytest.raises(
        ex.InputError, match="384 features, but this erasure is expecting 3 features"
    ):
        add_erasure(model, PRONOUNS)
    with pytest.raises(ex.InputError, match="Unknown place"):
        add_erasure(model, PRONOUNS, place="start")
    for odd in ("minilm", torch.nn.Sequential(torch.nn.ReLU())):
        with pytest.raises(ex.InputError, match=r"not a SentenceTransformer.*erasing"):
            add_erasure(odd, PRONOUNS)
        with pytest.raises(ex.InputError, match="not a SentenceTransformer"):
            unnormalized(odd).__enter__()
    assert kinds(model) == ["Transformer", "Pooling", "Normalize"]
