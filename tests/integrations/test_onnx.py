"""Erasures as ONNX graphs: onnxruntime gives what NumPy gives."""

import warnings

import numpy as np
import pytest
from sentences import TEXTS

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import expunge as ex  # noqa: E402
from expunge.integrations.onnx import attach, to_onnx  # noqa: E402

D = 24


def some_erasure(rank=3, *, center=True, offset=True, d=D):
    rng = np.random.default_rng(rank)
    left, right = rng.normal(size=(d, rank)) / d, rng.normal(size=(rank, d))
    return ex.Erasure(
        left,
        right,
        rng.normal(size=d) if center else None,
        rng.normal(size=d) if offset else None,
    )


def run(model, **inputs):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, inputs), strict=True))


def rows(n=50, dtype="float32", d=D):
    return np.random.default_rng(9).normal(size=(n, d)).astype(dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(
    "erasure",
    [
        some_erasure(),
        some_erasure(1, offset=False),
        some_erasure(2, center=False),
        some_erasure(2, center=False, offset=False),
        some_erasure(0),
        some_erasure(0, center=False, offset=False),
    ],
    ids=["full", "centred", "offset", "linear", "moved", "nothing"],
)
def test_equals_numpy(erasure, dtype):
    model = to_onnx(erasure, dtype=dtype)
    for n in (1, 50):
        X = rows(n, dtype)
        found = run(model, vectors=X)["erased"]
        assert found.dtype == dtype
        atol = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-12}[dtype]
        np.testing.assert_allclose(found, erasure.transform(X), atol=atol)


def test_the_graph_is_of_low_rank_and_says_what_it_takes(tmp_path):
    model = to_onnx(some_erasure(), input="x", output="clean")
    assert [node.op_type for node in model.graph.node] == ["Sub", "MatMul", "MatMul", "Sub", "Add"]
    shapes = {weight.name: tuple(weight.dims) for weight in model.graph.initializer}
    assert shapes == {"center": (D,), "right": (D, 3), "left": (3, D), "offset": (D,)}
    (taken,), (given,) = model.graph.input, model.graph.output
    assert (taken.name, given.name) == ("x", "clean")
    assert [dim.dim_param or dim.dim_value for dim in taken.type.tensor_type.shape.dim] == ["n", D]
    onnx.save(model, tmp_path / "erasure.onnx")
    again = onnx.load(tmp_path / "erasure.onnx")
    np.testing.assert_array_equal(run(again, x=rows())["clean"], run(model, x=rows())["clean"])


def embedder(kind=TensorProto.FLOAT, opset=17, ir=8):
    """Token numbers -> token states (b, t, d) -> their mean (b, d) -> the same of unit length."""
    table = np.random.default_rng(3).normal(size=(10, D))
    table = numpy_helper.from_array(table.astype(helper.tensor_dtype_to_np_dtype(kind)), "table")
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["tokens"]),
        helper.make_node("ReduceMean", ["tokens"], ["pooled"], axes=[1], keepdims=0),
        helper.make_node("LpNormalization", ["pooled"], ["embedding"], axis=-1, p=2),
    ]
    graph = helper.make_graph(
        nodes,
        "embedder",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["b", "t"])],
        [
            helper.make_tensor_value_info("tokens", kind, ["b", "t", D]),
            helper.make_tensor_value_info("embedding", kind, ["b", D]),
        ],
        [table],
    )
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=ir)


def unit(X):
    return X / np.linalg.norm(X, axis=-1, keepdims=True)


IDS = np.array([[1, 2, 3], [4, 5, 6]])


def test_attached_to_an_output_to_the_middle_and_to_the_tokens():
    model, e = embedder(), some_erasure()
    before = run(model, ids=IDS)
    pooled = before["tokens"].mean(axis=1)
    np.testing.assert_allclose(before["embedding"], unit(pooled), atol=1e-6)

    at_end = run(attach(model, e, output="embedding"), ids=IDS)
    np.testing.assert_allclose(at_end["embedding"], e.transform(before["embedding"]), atol=1e-5)
    np.testing.assert_array_equal(at_end["tokens"], before["tokens"])

    inside = run(attach(model, e, output="pooled"), ids=IDS)
    np.testing.assert_allclose(inside["embedding"], unit(e.transform(pooled)), atol=1e-5)

    tokens = run(attach(model, e, output="tokens"), ids=IDS)
    erased = e.transform(before["tokens"])
    np.testing.assert_allclose(tokens["tokens"], erased, atol=1e-5)
    np.testing.assert_allclose(tokens["embedding"], unit(erased.mean(axis=1)), atol=1e-5)

    np.testing.assert_array_equal(run(model, ids=IDS)["embedding"], before["embedding"])


def test_attached_twice_in_an_old_model_and_in_other_types():
    first, second = some_erasure(1), some_erasure(2)
    both = attach(attach(embedder(ir=3, opset=13), first, output="tokens"), second, output="tokens")
    expected = first.then(second).transform(run(embedder(), ids=IDS)["tokens"])
    np.testing.assert_allclose(run(both, ids=IDS)["tokens"], expected, atol=1e-5)
    for kind, atol in [(TensorProto.DOUBLE, 1e-12), (TensorProto.FLOAT16, 5e-3)]:
        model = embedder(kind)
        model.graph.node.pop()  # not every type can be normalized by the runtime
        model.graph.output.pop()
        before = run(model, ids=IDS)["tokens"]
        found = run(attach(model, first), ids=IDS)["tokens"]
        assert found.dtype == before.dtype
        np.testing.assert_allclose(found, first.transform(before), atol=atol)


def test_a_real_model_exported_by_torch(minilm):
    """At the output, and at the vectors before they are normalized."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxscript")
    encoder, tokenizer = minilm

    class Embedder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = encoder

        def pooled(self, ids, mask):
            weight = mask[..., None].float()
            hidden = self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
            return (hidden * weight).sum(1) / weight.sum(1)

        def forward(self, ids, mask):
            return torch.nn.functional.normalize(self.pooled(ids, mask), dim=-1)

    model = Embedder().eval()
    batch = tokenizer(TEXTS[:6], padding=True, return_tensors="pt")
    tensors = batch["input_ids"], batch["attention_mask"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's own
        exported = torch.onnx.export(
            model,
            tensors,
            input_names=["ids", "mask"],
            output_names=["sentence"],
            dynamic_shapes=({0: "b", 1: "t"}, {0: "b", 1: "t"}),
            verbose=False,
        ).model_proto
    e = some_erasure(d=384)
    ids, mask = (tensor[:4].numpy() for tensor in tensors)
    with torch.no_grad():
        pooled = model.pooled(*(tensor[:4] for tensor in tensors)).numpy()
    at_end = run(attach(exported, e), ids=ids, mask=mask)["sentence"]
    np.testing.assert_allclose(at_end, e.transform(unit(pooled)), atol=1e-5)
    division = exported.graph.node[-1]
    assert division.op_type == "Div"
    inside = run(attach(exported, e, output=division.input[0]), ids=ids, mask=mask)["sentence"]
    np.testing.assert_allclose(inside, unit(e.transform(pooled)), atol=1e-5)
    assert np.abs(inside - unit(pooled)).max() > 0.01


def test_bad_arguments():
    model, e = embedder(), some_erasure()
    with pytest.raises(ex.InputError, match=r"several outputs.*'tokens', 'embedding'"):
        attach(model, e)
    with pytest.raises(ex.InputError, match=r"no such tensor.*'odd'.*Outputs.*'embedding'"):
        attach(model, e, output="odd")
    with pytest.raises(ex.InputError, match=r"vectors of 5 floating.*FLOAT of shape \[0, 24\]"):
        attach(model, some_erasure(d=5), output="embedding")
    with pytest.raises(ex.InputError, match=r"older than version 9.*version 5"):
        attach(embedder(opset=5), e, output="embedding")
    with pytest.raises(ex.InputError, match="Unknown dtype"):
        to_onnx(e, dtype="int8")
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, ["b", "t"])
    model.graph.output.append(ids)
    with pytest.raises(ex.InputError, match="INT64"):
        attach(model, e, output="ids")
    passed = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["b", D])
    graph = helper.make_graph([], "nothing", [passed], [passed])
    with pytest.raises(ex.InputError, match="No node of the graph computes"):
        attach(helper.make_model(graph), e)
