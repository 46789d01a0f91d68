"""Erasures as ONNX graphs: on their own, or inside the graph of an embedding model.

The graph is low rank, like the erasure: with X of shape (..., d)

    X - ((X - c) Rᵀ) Lᵀ + o        Sub, MatMul, MatMul, Sub, Add.

It is computed in float32 for float16 and bfloat16 and in the type of the input else.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from expunge.erasure import Erasure
from expunge.errors import InputError
from expunge.fold_erasure import FoldErasure
from expunge.free_form_erasure import FreeFormErasure
from expunge.inputs import check_choice
from expunge.maps import RowMap, as_row_map
from expunge.nonlinear_erasure import NonlinearErasure
from expunge.optional import require

__all__ = ["attach", "to_onnx"]

onnx = require("onnx", "onnx")

OPSET, IR = 17, 8  # old enough for every runtime of the last years
FIRST_OPSET = 9  # Sub and Add broadcast by themselves, and there is Where
FIRST_IR = 4  # from here on constants need not be inputs too
DTYPES = ("float16", "float32", "float64")


def to_onnx(
    erasure: Any,
    *,
    dtype: Literal["float16", "float32", "float64"] = "float32",
    input: str = "vectors",
    output: str = "erased",
) -> Any:
    """The erasure as an ONNX model that takes and gives rows of shape (n, d), for any n.

    Parameters
    ----------
    erasure : Erasure, NonlinearErasure or fitted eraser
    dtype : {"float16", "float32", "float64"}
        Type of the rows.
    input, output : str
        Names of the two tensors.

    Returns
    -------
    onnx.ModelProto
        To be saved by ``onnx.save``.

    Examples
    --------
    >>> import numpy as np
    >>> import onnxruntime
    >>> import expunge as ex
    >>> e = ex.Erasure([[1.0], [0.0]], [[1.0, 0.0]], center=[2.0, 2.0])
    >>> model = ex.integrations.onnx.to_onnx(e)
    >>> session = onnxruntime.InferenceSession(model.SerializeToString())
    >>> session.run(None, {"vectors": np.array([[3, 4]], dtype=np.float32)})[0]
    array([[2., 4.]], dtype=float32)
    """
    check_choice(dtype, DTYPES, "dtype")
    erasure = as_row_map(erasure)
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes, weights = _nodes(erasure, input, output, kind, "")
    graph = onnx.helper.make_graph(
        nodes,
        "erasure",
        [onnx.helper.make_tensor_value_info(input, kind, ["n", erasure.n_features])],
        [onnx.helper.make_tensor_value_info(output, kind, ["n", erasure.n_features])],
        weights,
    )
    opset = [onnx.helper.make_opsetid("", OPSET)]
    model = onnx.helper.make_model(
        graph, opset_imports=opset, ir_version=IR, producer_name="expunge"
    )
    onnx.checker.check_model(model)
    return model


def attach(model: Any, erasure: Any, *, output: str | None = None) -> Any:
    """An ONNX model with an erasure at one of its tensors; whatever follows sees erased vectors.

    Parameters
    ----------
    model : onnx.ModelProto
        Left as it is.
    erasure : Erasure, NonlinearErasure or fitted eraser
    output : str, optional
        An output of the graph, by default its only one; or a tensor inside, such as the embedding
        before its normalization. Its last axis must have d entries. It keeps its name.

    Returns
    -------
    onnx.ModelProto

    Examples
    --------
    >>> import numpy as np
    >>> import onnxruntime
    >>> import expunge as ex
    >>> e = ex.Erasure([[1.0], [0.0]], [[1.0, 0.0]])
    >>> twice = ex.integrations.onnx.attach(ex.integrations.onnx.to_onnx(e), e)
    >>> session = onnxruntime.InferenceSession(twice.SerializeToString())
    >>> session.run(None, {"vectors": np.array([[3, 4]], dtype=np.float32)})[0]
    array([[0., 4.]], dtype=float32)
    """
    erasure = as_row_map(erasure)
    kind, name = _check_tensor(model, output, erasure)
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    changed.ir_version = max(changed.ir_version, FIRST_IR)
    graph = changed.graph
    at = next((i for i, node in enumerate(graph.node) if name in node.output), None)
    if at is None:
        raise InputError(
            "No node of the graph computes this tensor",
            repr(name),
            "Name an output of the graph, or a tensor computed inside it",
        )
    prefix = _free_prefix(graph)
    outputs = graph.node[at].output
    outputs[list(outputs).index(name)] = f"{prefix}before"  # what follows reads the erased tensor
    nodes, weights = _nodes(erasure, f"{prefix}before", name, kind, prefix)
    for place, node in enumerate(nodes, start=at + 1):
        graph.node.insert(place, node)
    graph.initializer.extend(weights)
    onnx.checker.check_model(changed)
    return changed


def _nodes(
    erasure: RowMap, source: str, target: str, kind: int, prefix: str
) -> tuple[list[Any], list[Any]]:
    """The nodes from `source` to `target`, and their constants."""
    half = kind in (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)
    work = np.float64 if kind == onnx.TensorProto.DOUBLE else np.float32
    nodes: list[Any] = []
    weights: list[Any] = []

    def constant(name: str, values: NDArray[Any], dtype: Any = work) -> str:
        if not any(known.name == f"{prefix}{name}" for known in weights):
            array = np.ascontiguousarray(values, dtype=dtype).reshape(values.shape)
            weights.append(onnx.numpy_helper.from_array(array, f"{prefix}{name}"))
        return f"{prefix}{name}"

    def step(operator: str, *inputs: str, **settings: Any) -> str:
        name = f"{prefix}{operator.lower()}_{len(nodes)}"
        nodes.append(onnx.helper.make_node(operator, inputs, [name], name, **settings))
        return name

    x = step("Cast", source, to=onnx.TensorProto.FLOAT) if half else source
    if isinstance(erasure, Erasure):
        erased = _affine(erasure, x, constant, step)
    else:
        erased = _nonlinear(erasure, x, constant, step)
    if half:
        step("Cast", erased, to=kind)
    elif not nodes:
        step("Identity", source)
    nodes[-1].output[0] = target
    return nodes, weights


def _affine(erasure: Erasure, x: str, constant: Any, step: Any, prefix: str = "") -> str:
    erased = x
    if erasure.rank:
        c = erasure.center
        centred = x if c is None else step("Sub", x, constant(f"{prefix}center", c))
        read = step("MatMul", centred, constant(f"{prefix}right", erasure.right.T))
        erased = step("Sub", x, step("MatMul", read, constant(f"{prefix}left", erasure.left.T)))
    if erasure.offset is not None:
        erased = step("Add", erased, constant(f"{prefix}offset", erasure.offset))
    return _emptied(erased, erasure, erasure.constant, constant, step, prefix)


def _emptied(
    erased: str,
    erasure: Erasure | FreeFormErasure,
    values: Any,
    constant: Any,
    step: Any,
    prefix: str = "",
) -> str:
    """Erased rows with a constant in the columns of which nothing is left."""
    if not erasure.emptied.size:
        return erased
    kept, there = np.ones(erasure.n_features), np.zeros(erasure.n_features)
    kept[erasure.emptied], there[erasure.emptied] = 0.0, values
    erased = step("Mul", erased, constant(f"{prefix}kept", kept))
    return str(step("Add", erased, constant(f"{prefix}constant", there)))


def _nonlinear(erasure: NonlinearErasure, x: str, constant: Any, step: Any) -> str:
    """A map that no matrix does, at its strength."""
    if isinstance(erasure, FoldErasure):
        z = _folded(erasure, x, constant, step)
    elif isinstance(erasure, FreeFormErasure):
        z = _free_form(erasure, x, constant, step)
    else:
        raise TypeError(type(erasure).__name__)
    if erasure.strength < 1:
        part = step("Mul", step("Sub", z, x), constant("strength", np.array(erasure.strength)))
        z = step("Add", x, part)
    return z


def _free_form(erasure: FreeFormErasure, x: str, constant: Any, step: Any) -> str:
    """cos(a) is sin(a + π/2), which runtimes have in float64 too."""
    centred = step("Sub", x, constant("center", erasure.center))
    taken = step("MatMul", centred, constant("right", erasure.right.T))
    if erasure.phases.size:
        angles = step("MatMul", centred, constant("frequencies", erasure.frequencies))
        angles = step("Add", angles, constant("phases", erasure.phases + np.pi / 2))
        features = step("Sub", step("Sin", angles), constant("means", erasure.means))
        read = step("MatMul", features, constant("coef", erasure.coef.T))
        taken = step("Add", taken, read)
    erased = step("Sub", x, step("MatMul", taken, constant("left", erasure.left.T)))
    return _emptied(erased, erasure, erasure.center[erasure.emptied], constant, step)


def _folded(fold: FoldErasure, x: str, constant: Any, step: Any) -> str:
    """What is done to each class is done to all rows, and theirs is chosen."""
    center = constant("center", fold.center)
    scores = step("MatMul", step("Sub", x, center), constant("coef", fold.coef))
    scores = step("Add", scores, constant("intercept", fold.intercept))
    code = step("Cast", step("ArgMax", scores, axis=-1, keepdims=1), to=onnx.TensorProto.FLOAT)
    at = [
        step("Less", step("Abs", step("Sub", code, _single(constant, k))), _single(constant, 0.5))
        for k in range(len(fold.labels))
    ]

    def chosen(found: list[str]) -> str:
        best = found[0]
        for own, value in zip(at[1:], found[1:], strict=True):
            best = step("Where", own, value, best)
        return best

    every = range(len(fold.labels))
    z = step("Add", x, chosen([constant(f"shift{k}", fold.shifts[k]) for k in every]))
    if fold.left.shape[1]:
        read = step("MatMul", step("Sub", z, center), constant("right", fold.right.T))
        maps = [step("MatMul", read, constant(f"map{k}", fold.maps[k].T)) for k in every]
        z = step("Add", z, step("MatMul", chosen(maps), constant("left", fold.left.T)))
    for number, layouts in enumerate(fold.cells):
        start = z
        for place, cells in enumerate(layouts):
            name = f"{number}_{place}"
            read = 2 * cells.centers.T / cells.units[:, None] / cells.width
            near, moves = step("MatMul", start, constant(f"cells{name}", read)), []
            for k in every:
                own = (cells.potentials[k] - (cells.centers**2).sum(axis=1)) / cells.width
                shares = step("Add", near, constant(f"cells{name}_{k}", own))
                shares = step("Softmax", shares, axis=-1)
                by = constant(f"moves{name}_{k}", cells.shifts[k] / len(layouts))
                moves.append(step("MatMul", shares, by))
            z = step("Add", z, chosen(moves))
    z = step("Add", z, chosen([constant(f"last{k}", fold.last[k]) for k in every]))
    return _affine(fold.closing, z, constant, step, "closing_")


def _single(constant: Any, value: float) -> str:
    """A number that is compared with the number of a class, always float32."""
    return str(constant(f"number{value:g}", np.array(value), np.float32))


def _check_tensor(model: Any, output: str | None, erasure: RowMap) -> tuple[int, str]:
    """The element type and the name of the tensor to erase, if it can be erased."""
    version = max((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=1)
    if version < FIRST_OPSET:
        raise InputError(
            f"The model's operators are older than version {FIRST_OPSET}",
            f"version {version}",
            "Convert it by onnx.version_converter.convert_version",
        )
    names = [tensor.name for tensor in model.graph.output]
    if output is None and len(names) != 1:
        raise InputError("The model has several outputs", repr(names), "Name one as output=")
    name = names[0] if output is None else output
    tensor = _tensor(model, name)
    kind = tensor.elem_type
    shape = [dim.dim_value for dim in tensor.shape.dim]
    known = (getattr(onnx.TensorProto, each) for each in ("FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16"))
    if kind not in known or (shape and shape[-1] not in (0, erasure.n_features)):
        raise InputError(
            f"The tensor {name!r} does not hold vectors of {erasure.n_features} floating numbers",
            f"{onnx.TensorProto.DataType.Name(kind)} of shape {shape}",
            "Pass an erasure that was fitted on this tensor",
        )
    return kind, name


def _tensor(model: Any, name: str) -> Any:
    """Type and shape of a tensor, by looking or by inference."""
    for inferred in (False, True):
        graph = onnx.shape_inference.infer_shapes(model).graph if inferred else model.graph
        for tensor in (*graph.output, *graph.value_info):
            if tensor.name == name and tensor.type.tensor_type.elem_type:
                return tensor.type.tensor_type
    raise InputError(
        "The type of this tensor is not known, or there is no such tensor",
        repr(name),
        f"Outputs of the graph: {', '.join(repr(tensor.name) for tensor in model.graph.output)}",
    )


def _free_prefix(graph: Any) -> str:
    """A beginning that no name in the graph has."""
    taken = {name for node in graph.node for name in (node.name, *node.input, *node.output)}
    taken |= {weight.name for weight in graph.initializer}
    number = 0
    while any(name.startswith(f"erasure_{number}/") for name in taken):
        number += 1
    return f"erasure_{number}/"
