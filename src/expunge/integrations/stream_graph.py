"""Who writes to the residual stream and who reads a module's output: found by running the model.

A forward pass with gradients leaves a graph of operations. The stream is what the last layer gives;
going back from it through sums leads to every product and embedding that was added to it. Going
forward from a module's output leads to every product that reads it. Notation: a product is
y = x W with a weight stored as (in, out), or as (out, in) where a transpose stands in between.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from expunge.errors import InputError
from expunge.integrations.hidden_states import first_states, in_output
from expunge.integrations.layer_parts import blocks_of
from expunge.integrations.module_names import base_model
from expunge.optional import require

__all__ = [
    "Product",
    "Run",
    "Stream",
    "check_all_ran",
    "readers_of",
    "run_with_graph",
    "stream_of",
]

torch = require("torch", "transformers")

# operations by which rows stay rows: moved, copied, chosen, or cast
SAME_ROWS = {"View", "UnsafeView", "Reshape", "ReshapeAlias", "Clone", "ToCopy", "Alias", "Index"}
SAME_ROWS |= {"Slice", "Expand", "Unsqueeze", "Squeeze", "Select", "IndexSelect", "Contiguous"}
SAME_ROWS |= {"AsStrided", "Gather", "Repeat"}
SUMS = {"Add", "Sum", "IndexAdd", "IndexPut", "Cat", "Stack", "ScatterAdd"}
PRODUCTS = {"Mm": (0, 1), "Addmm": (1, 2), "Bmm": (0, 1), "GroupedMm": (0, 1)}
TURNS = {"T", "Transpose", "Permute", "Mt"}


@dataclass(frozen=True)
class Product:
    """A weight in a product, and its bias if it has one.

    Attributes
    ----------
    weight : torch.nn.Parameter
        Of two dimensions, or of three for one weight per expert.
    turned : bool
        Whether it is stored as (out, in).
    bias : torch.nn.Parameter or None
    """

    weight: Any
    turned: bool
    bias: Any = None


@dataclass
class Run:
    """What a forward pass left: the ends of the graph, and where each module's states are in it.

    Attributes
    ----------
    ends : list of graph nodes
    given : dict of str to graph node
        By module, of the hidden states it gives.
    taken : dict of str to graph node
        By module, of the hidden states it is called with.
    ran : set of str
        All modules that ran.
    keep : list
        Tensors, so that the graph lives on.
    """

    ends: list[Any] = field(default_factory=list)
    given: dict[str, Any] = field(default_factory=dict)
    taken: dict[str, Any] = field(default_factory=dict)
    ran: set[str] = field(default_factory=set)
    keep: list[Any] = field(default_factory=list)


@dataclass
class Stream:
    """All that writes to the residual stream, and all that reads it.

    Attributes
    ----------
    products : list of Product
    tables : dict of parameter to float
        Embeddings and other constants, rows of the stream's width, with the number they are
        multiplied by on the way.
    readers : list of str
        Modules called with the stream, such as the norms of all layers.
    """

    products: list[Product] = field(default_factory=list)
    tables: dict[Any, float] = field(default_factory=dict)
    readers: list[str] = field(default_factory=list)


def run_with_graph(model: Any, inputs: Any) -> Run:
    """Run a model whose weights want gradients, and keep the graph."""
    run = Run()
    handles = []

    def watch(name: str, module: Any) -> None:
        def before(_: Any, args: Any, kwargs: Any) -> None:
            states = first_states(args, kwargs)
            if states is not None and states.grad_fn is not None:
                run.taken.setdefault(name, states.grad_fn)

        def after(_: Any, args: Any, output: Any) -> None:
            run.ran.add(name)
            try:
                states = in_output(name, output)
            except InputError:
                return
            run.keep.append(states)
            if states.grad_fn is not None:
                run.given[name] = states.grad_fn

        handles.append(module.register_forward_pre_hook(before, with_kwargs=True))
        handles.append(module.register_forward_hook(after))

    for name, module in model.named_modules():
        watch(name, module)
    try:
        with torch.enable_grad():
            output = model(**inputs)
    finally:
        for handle in handles:
            handle.remove()
    run.keep.append(output)
    run.ends = [run.given[""]] if "" in run.given else list(run.given.values())
    return run


def check_all_ran(model: Any, run: Run) -> None:
    """Refuse a run in which some layers had no part, as experts that no token was sent to.

    They may read or write the states, too, which is seen only when they do.
    """
    reached = {
        id(node.variable) for node in _all_nodes(run.ends) if _kind(node) == "AccumulateGrad"
    }
    blocks = tuple(f"{name}." for name in blocks_of(model))
    silent = [
        name
        for name, module in model.named_modules()
        if name.startswith(blocks) and name not in run.ran
        if any(w.ndim > 1 and id(w) not in reached for w in module.parameters(recurse=False))
    ]
    if silent:
        raise InputError(
            "Some parts of the layers did not run, so that it is not known what they do",
            f"{', '.join(map(repr, silent[:3]))}{' and others' if len(silent) > 3 else ''}",
            "Pass a batch as probe= that all of them have a part in",
        )


def stream_of(model: Any, run: Run) -> Stream:
    """The writers and readers of the residual stream.

    Raises
    ------
    InputError
        Where something other than a sum stands on the stream, or there are several streams.
    """
    blocks = blocks_of(base_model(model))
    if len({name.rpartition(".")[0] for name in blocks}) != 1:
        raise InputError(
            "There is no single list of layers whose states are one stream",
            f"{type(model).__name__} with layers {blocks[:1]} to {blocks[-1:]}",
            "Bake erasures at the outputs of norms, linear layers or embeddings",
        )
    prefix = next(n for n, m in model.named_modules() if m is base_model(model))
    last = f"{prefix}.{blocks[-1]}" if prefix else blocks[-1]
    if last not in run.given:
        raise InputError(
            "The last layer gives no hidden states, or does not run",
            f"{type(model).__name__} with the layer {last!r}",
            "Bake erasures at the outputs of norms, linear layers or embeddings",
        )
    stream, nodes = Stream(), set[Any]()
    for node, scale in _summands(run.given[last], nodes):
        _add_writer(stream, node, scale)
    inner = {id(node) for node in nodes}
    leaves = {name for name, module in model.named_modules() if not any(module.children())}
    stream.readers = [
        name
        for name, node in run.taken.items()
        if name in leaves and id(node) in inner and _uses(run, name, inner)
    ]
    return stream


def _uses(run: Run, name: str, stream: set[int]) -> bool:
    """Whether what a module gives depends on the stream and is not the stream itself."""
    return name in run.given and id(run.given[name]) not in stream


def readers_of(run: Run, name: str, *, constant: bool = True) -> list[Product]:
    """All products that read what a module gives.

    Parameters
    ----------
    run : Run
    name : str
    constant : bool
        Whether a constant will be added to what it gives: then nothing may be multiplied in
        between, not even whole rows, as by a mask.

    Raises
    ------
    InputError
        Where something reads it that is no product with a weight.
    """
    consumers: dict[int, list[tuple[Any, int]]] = defaultdict(list)
    for node in _all_nodes(run.ends):
        for place, (below, _) in enumerate(node.next_functions):
            if below is not None:
                consumers[id(below)].append((node, place))
    found: dict[int, Product] = {}
    waiting, seen = [run.given[name]], set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        for reader, place in consumers[id(node)]:
            kind = _kind(reader)
            multiplied = kind == "Mul" and (_row_factor(reader) or (None,))[0] == place
            if (kind in SAME_ROWS and place == 0) or (multiplied and not constant):
                waiting.append(reader)
            elif multiplied:
                raise InputError(
                    "Rows are multiplied, such as by the mask, before linear layers read them: a "
                    "constant that these add would come too late",
                    f"what {name!r} gives",
                    "Bake an erasure without center and offset there",
                )
            elif kind in PRODUCTS and place == PRODUCTS[kind][0]:
                product = _product(reader)
                found[id(product.weight)] = product
            else:
                raise InputError(
                    f"What module {name!r} gives is read by more than linear layers: it stays on "
                    "the stream of the model, where what comes later is added to it",
                    f"the operation {kind}",
                    "Bake one shared erasure for the whole stream, or erasures at norms whose "
                    "outputs only linear layers read",
                )
    if not found:
        raise InputError(
            f"No linear layer reads what module {name!r} gives",
            "a module without readers",
            "Name a norm before linear layers",
        )
    return list(found.values())


def _summands(node: Any, stream: set[Any], scale: float = 1.0) -> Iterator[tuple[Any, float]]:
    """What is added up to a node, each with the number it is multiplied by."""
    waiting = [(node, scale, True)]
    done: set[tuple[int, float]] = set()
    while waiting:
        node, scale, trunk = waiting.pop()
        if node is None or (id(node), scale) in done:
            continue
        done.add((id(node), scale))
        kind = _kind(node)
        if trunk:
            stream.add(node)
        if kind == "Mul" and (factor := _row_factor(node)) is not None:
            place, number = factor
            waiting.append((node.next_functions[place][0], scale * number, trunk))
        elif kind in SUMS or kind in SAME_ROWS:
            for below, _ in node.next_functions:
                waiting.append((below, scale, trunk))
        else:
            yield node, scale


def _row_factor(node: Any) -> tuple[int, float] | None:
    """Which factor of an elementwise product is rows, and the number they are multiplied by.

    The other factor is one number, or one per row (then it is given as NaN: it is not one number).
    """
    for place, other in ((0, node._saved_other), (1, node._saved_self)):
        if node.next_functions[place][0] is None:
            continue
        if other is None or other.numel() == 1:
            return place, 1.0 if other is None else float(other)
        if other.shape[-1] == 1:
            return place, float("nan")
    return None


def _add_writer(stream: Stream, node: Any, scale: float) -> None:
    kind = _kind(node)
    if kind in PRODUCTS:
        stream.products.append(_product(node))
        return
    table = _parameter(node.next_functions[0][0])[0] if kind == "Embedding" else None
    if kind == "AccumulateGrad":
        table = node.variable
    if table is None:
        raise InputError(
            "Something stands between what writes to the stream and the stream: a norm, as in "
            "post-norm models (BERT) and models with norms behind attention (Gemma 2, OLMo 2), or "
            "a product that is not linear",
            f"the operation {kind}",
            "Bake erasures at norms whose outputs only linear layers read",
        )
    stream.tables[table] = scale


def _product(node: Any) -> Product:
    kind = _kind(node)
    weight, turned = _parameter(node.next_functions[PRODUCTS[kind][1]][0])
    if weight is None:
        raise InputError(
            "A product of two computed tensors, not of states and a weight, reads or writes there",
            f"the operation {kind}",
            "Name another module",
        )
    bias = _parameter(node.next_functions[0][0])[0] if kind == "Addmm" else None
    return Product(weight, turned, bias)


def _parameter(node: Any) -> tuple[Any, bool]:
    """The parameter behind a node, and whether it was transposed on the way."""
    turned = False
    while node is not None:
        kind = _kind(node)
        if kind == "AccumulateGrad":
            return node.variable, turned
        turned ^= kind in TURNS
        if kind not in TURNS | SAME_ROWS | {"Unbind"}:
            return None, turned
        node = node.next_functions[0][0]
    return None, turned


def _all_nodes(ends: list[Any]) -> Iterator[Any]:
    waiting, seen = list(ends), {id(end) for end in ends}
    while waiting:
        node = waiting.pop()
        yield node
        for below, _ in node.next_functions:
            if below is not None and id(below) not in seen:
                seen.add(id(below))
                waiting.append(below)


def _kind(node: Any) -> str:
    return str(node.name().rpartition("::")[2].partition("Backward")[0])
