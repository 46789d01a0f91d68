"""Bake: a plain Hugging Face model whose weights do the erasing.

With the erasure x -> Px + t there are two exact ways:

    read side    at the output of a norm: every reader x -> Wx + b becomes WPx + (Wt + b)
    write side   one idempotent erasure for the whole stream: every writer x -> Wx + b becomes
                 PWx + Pb, and the embedding of a token E becomes PE + t
"""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from expunge.atomic import write_atomically
from expunge.erasure import Erasure
from expunge.errors import InputError
from expunge.inputs import check_number
from expunge.integrations.bake_card import model_card, provenance
from expunge.integrations.bake_slots import add_biases, untie_head
from expunge.integrations.dense_map import dense_map
from expunge.integrations.hooks import as_erasures, erasing
from expunge.integrations.module_names import resolve
from expunge.integrations.scrubbing import Scrubbing
from expunge.integrations.stream_graph import (
    Product,
    Run,
    Stream,
    check_all_ran,
    readers_of,
    run_with_graph,
    stream_of,
)
from expunge.maps import as_erasure
from expunge.optional import require

__all__ = ["bake", "probe_batch"]

torch = require("torch", "transformers")

IDEMPOTENT = 1e-8  # how far from itself an erasure done twice may be, beside its own size
TOKENS, PADDING = 12, 3  # of the probe batch


def bake(
    model: Any,
    erasures: Any,
    *,
    probe: Mapping[str, Any] | None = None,
    tolerance: float = 1e-4,
    path: str | os.PathLike[str] | None = None,
    force: bool = False,
) -> Any:
    """A copy of a Hugging Face model that does the erasing by its weights, without expunge.

    It is found by running the model which weights read or write the states, so no model is known by
    name. Biases are enabled in the configuration and embeddings are untied where that is needed;
    LoRA adapters are merged. Then the model with hooks and the baked model run on a probe batch,
    and must agree. All of this is done in float32; weights of half precision are rounded once in
    the end, and what was erased comes back at about that precision.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        Left as it is.
    erasures : Erasure, mapping of str to Erasure, or Scrubbing
        One erasure is for the whole residual stream; it must be idempotent, as every fitted one is.
        A mapping is for the outputs of modules: norms, whose readers are all linear, and linear
        layers and embeddings themselves. From ``scrub(..., shared=True)`` it is one for the stream.
    probe : mapping, optional
        What the model is run on, as in ``model(**probe)``; token numbers at random by default.
    tolerance : float
        By how much outputs of the two models may differ, as a share of the largest of them.
    path : str or path, optional
        A folder to save the model to, with a model card.
    force : bool
        Whether to take erasures that were fitted on another model.

    Returns
    -------
    transformers.PreTrainedModel
        Of the same class and precision. What was done is in ``config.expunge``.

    Raises
    ------
    InputError
        With the reason, where it cannot be done exactly.

    Examples
    --------
    >>> import numpy as np
    >>> import transformers
    >>> import expunge as ex
    >>> config = transformers.GPT2Config(vocab_size=9, n_embd=4, n_layer=1, n_head=1)
    >>> model = transformers.GPT2LMHeadModel(config)
    >>> first = ex.Erasure(np.eye(4)[:, :1], np.eye(4)[:1], center=[2.0, 0.0, 0.0, 0.0])
    >>> baked = ex.integrations.transformers.bake(model, first)
    >>> baked.transformer.wte.weight[:, 0].tolist() == [2.0] * 9
    True
    """
    check_number(tolerance, "tolerance", strict=True)
    stream, given, place = _asked(model, erasures, force)
    work = _working_copy(model)
    inputs = _with_mask(work, probe_batch(work) if probe is None else probe)
    types = {name: weight.dtype for name, weight in work.named_parameters()}
    for weight in work.parameters():
        weight.data = weight.data.float()
        weight.requires_grad_(True)
    hooked = copy.deepcopy(work)
    run = run_with_graph(work, inputs)
    check_all_ran(work, run)
    if stream is not None:
        found = stream_of(work, run)
        reference = dict.fromkeys(found.readers, stream)
        _check_places(work, given, found)
        del run
        _bake_stream(work, stream, found)
        at = "input"
    else:
        reference = {name: as_erasure(e) for name, e in as_erasures(work, given).items()}
        at = place
        _bake_modules(work, reference, run)
        del run
    with torch.no_grad():
        with erasing(hooked, reference, at=at):  # type: ignore[arg-type]
            expected = _first_output(hooked(**inputs))
        expected, found_output = _real(inputs, expected, _first_output(work(**inputs)))
        _check_equal(expected, found_output, tolerance)
    for name, weight in work.named_parameters():
        weight.data = weight.data.to(types.get(name, next(iter(types.values()))))
        weight.requires_grad_(False)
    names = {"residual stream": stream} if stream is not None else reference
    work.config.expunge = provenance("stream" if stream is not None else "modules", names)
    if path is not None:
        _save(work, Path(path), model)
    return work


def probe_batch(model: Any) -> dict[str, Any]:
    """Token numbers at random for a model of texts: of twelve tokens, and of nine behind padding.

    Examples
    --------
    >>> import transformers
    >>> from expunge.integrations.bake import probe_batch
    >>> config = transformers.GPT2Config(vocab_size=9, n_embd=4, n_layer=1, n_head=1)
    >>> probe_batch(transformers.GPT2Model(config))["input_ids"].shape
    torch.Size([2, 12])
    """
    texts = model.config.get_text_config() if hasattr(model.config, "get_text_config") else None
    size = getattr(texts, "vocab_size", None)
    if size is None:
        raise InputError(
            "It is not known what this model is run on",
            f"{type(model).__name__}, whose configuration has no vocab_size",
            "Pass a batch as probe=",
        )
    ids = np.random.default_rng(0).integers(0, size, (2, TOKENS))
    first = next(model.parameters())
    there = np.arange(TOKENS) >= np.array([0, PADDING])[:, None]
    made = {"input_ids": ids, "attention_mask": there.astype(np.int64)}
    return {key: torch.tensor(made[key], device=first.device) for key in _taken(model, made)}


def _taken(model: Any, names: Iterable[str]) -> list[str]:
    parameters = inspect.signature(model.forward).parameters
    anything = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    named = "input_ids" in parameters  # else the forward hands on whatever comes
    return [name for name in names if name in parameters or (anything and not named)]


def _with_mask(model: Any, probe: Mapping[str, Any]) -> dict[str, Any]:
    """A probe with a mask, so that what a model does with masks is seen too."""
    ids = probe.get("input_ids")
    if ids is None or not _taken(model, ["attention_mask"]):
        return dict(probe)
    return {"attention_mask": torch.ones_like(ids), **probe}


def _real(inputs: Mapping[str, Any], *outputs: Any) -> list[Any]:
    """Outputs without those of padding, where they are one per token."""
    mask = inputs.get("attention_mask")
    if mask is None or outputs[0].shape[:2] != mask.shape:
        return list(outputs)
    return [output[mask.bool()] for output in outputs]


def _asked(
    model: Any, erasures: Any, force: bool
) -> tuple[Erasure | None, Mapping[str, Erasure], str]:
    """One erasure for the stream or None; the erasures by module; and at which side of these."""
    if isinstance(erasures, Scrubbing):
        erasures.check_model(model, force=force)
        if not (isinstance(erasures.tokens, str) and erasures.tokens == "all"):
            raise InputError(
                "Weights treat all tokens alike",
                f"a Scrubbing with tokens={erasures.tokens!r}",
                "Scrub with tokens='all'",
            )
        if erasures.at == "output":
            return None, erasures, "output"
        shared = next(iter(erasures.values()))
        if not all(_equal(shared, other) for other in erasures.values()):
            raise InputError(
                "There is a different erasure per layer on the stream",
                f"{len(erasures)} erasures at the inputs of modules",
                "Scrub with shared=True",
            )
        return shared, erasures, "input"
    if isinstance(erasures, Mapping):
        return None, erasures, "output"
    return as_erasure(erasures), {}, "input"


def _equal(a: Erasure, b: Erasure) -> bool:
    return a is b or all(
        np.array_equal(x, y) for x, y in zip(dense_map(a), dense_map(b), strict=True)
    )


def _working_copy(model: Any) -> Any:
    """A copy in evaluation mode with LoRA merged, if its weights are plain numbers."""
    if not hasattr(model, "config") or not hasattr(model, "save_pretrained"):
        raise InputError(
            "Only a Hugging Face model can be baked",
            type(model).__name__,
            "Pass one; for other modules there is expunge.integrations.torch.fold_into",
        )
    quantised = getattr(model.config, "quantization_config", None) is not None
    if quantised or not all(w.is_floating_point() and not w.is_meta for w in model.parameters()):
        raise InputError(
            "The weights are quantised, or not in memory: they cannot be changed exactly",
            type(model).__name__,
            "Load the model with plain weights, bake, and quantise afterwards",
        )
    work = copy.deepcopy(model)
    if hasattr(work, "merge_and_unload"):
        work = work.merge_and_unload()
    return work.eval()


def _bake_stream(model: Any, erasure: Erasure, stream: Stream) -> None:
    P, t = dense_map(erasure)
    size = max(1.0, float(np.abs(P).max()), float(np.abs(t).max()))
    if max(np.abs(P @ P - P).max(), np.abs(P @ t).max()) > IDEMPOTENT * size:
        raise InputError(
            "The erasure done twice is not the erasure, but the stream passes every layer",
            repr(erasure),
            "Pass an idempotent one: left and right with right @ left = 1, and no offset",
        )
    untie_head(model)
    table = model.get_input_embeddings().weight
    if t.any() and not np.isfinite(stream.tables.get(table, np.nan)):
        raise InputError(
            "The embeddings of tokens are not on the stream, so that nothing can take the constant",
            type(model).__name__,
            "Pass an erasure without center and offset",
        )
    for product in {id(p.weight): p for p in stream.products}.values():
        _write(product, P)
    for weight, scale in stream.tables.items():
        constant = t / scale if weight is table and t.any() else 0.0
        _set(weight, _numbers(weight) @ P.T + constant)


def _bake_modules(model: Any, erasures: Mapping[str, Erasure], run: Run) -> None:
    todo: list[tuple[Product, Erasure]] = []
    for name, erasure in erasures.items():
        module = model.get_submodule(name)
        if isinstance(module, torch.nn.Embedding):
            if module.weight is getattr(model.get_output_embeddings(), "weight", None):
                untie_head(model)
            P, t = dense_map(erasure)
            _set(module.weight, _numbers(module.weight) @ P.T + t)
        elif (own := _as_product(module)) is not None:
            _fill_bias(model, [(own, erasure)])
            P, t = dense_map(erasure)
            own = _as_product(module) or own
            _write(own, P, t)
        else:
            constant = bool(dense_map(erasure)[1].any())
            todo += [(reader, erasure) for reader in readers_of(run, name, constant=constant)]
    head = model.get_output_embeddings()
    if head is not None and any(reader.weight is head.weight for reader, _ in todo):
        untie_head(model)
        old = model.get_input_embeddings().weight
        todo = [
            (Product(head.weight, r.turned, head.bias) if r.weight is old else r, e)
            for r, e in todo
        ]
    _fill_bias(model, todo)
    for reader, erasure in todo:
        _read(model, reader, erasure)


def _fill_bias(model: Any, todo: list[tuple[Product, Erasure]]) -> None:
    """Make sure that all products have a bias that will need one."""
    owners = {id(w): n.rpartition(".")[0] for n, w in model.named_parameters()}
    needed = set()
    for product, erasure in todo:
        if product.bias is None and dense_map(erasure)[1].any():
            if product.weight.ndim != 2 or _bias_of(model, product) is False:
                raise InputError(
                    "A layer needs a bias, but its kind has no place for one",
                    owners.get(id(product.weight), "unknown"),
                    "Bake an erasure without center and offset there",
                )
            if _bias_of(model, product) is None:
                needed.add(owners[id(product.weight)])
    add_biases(model, needed)


def _bias_of(model: Any, product: Product) -> Any:
    """The bias beside a weight, None where it is empty, False where there can be none."""
    for module in model.modules():
        if getattr(module, "weight", None) is product.weight:
            return module.bias if isinstance(module, torch.nn.Linear) else False
    return False


def _read(model: Any, product: Product, erasure: Erasure) -> None:
    """W' = WP on the side of the input, b' = b + Wt."""
    P, t = dense_map(erasure)
    W = _numbers(product.weight)
    if t.any():
        bias = product.bias if product.bias is not None else _bias_of(model, product)
        _set(bias, _numbers(bias) + (W @ t if product.turned else t @ W))
    _set(product.weight, W @ P if product.turned else P.T @ W)


def _write(product: Product, P: Any, t: Any = 0.0) -> None:
    """W' = PW on the side of the output, b' = Pb + t."""
    W = _numbers(product.weight)
    _set(product.weight, P @ W if product.turned else W @ P.T)
    if product.bias is not None:
        _set(product.bias, _numbers(product.bias) @ P.T + t)


def _as_product(module: Any) -> Product | None:
    """A linear layer, stored either way round."""
    if isinstance(module, torch.nn.Linear):
        return Product(module.weight, True, module.bias)
    if hasattr(module, "nf") and getattr(getattr(module, "weight", None), "ndim", 0) == 2:
        return Product(module.weight, False, module.bias)
    return None


def _check_places(model: Any, given: Mapping[str, Erasure], stream: Stream) -> None:
    """A scrubbing of the stream must be of all that reads it."""
    missing = sorted(set(stream.readers) - set(resolve(model, given).values())) if given else []
    if missing:
        raise InputError(
            "Baking erases the whole stream, but these erasures leave out some of its readers",
            ", ".join(missing[:5]),
            "Scrub with shared=True and layers='all'",
        )


def _numbers(weight: Any) -> Any:
    return weight.detach().cpu().double().numpy()


def _set(weight: Any, values: Any) -> None:
    with torch.no_grad():
        weight.copy_(torch.tensor(values))


def _first_output(output: Any) -> Any:
    return output[0] if not isinstance(output, torch.Tensor) else output


def _check_equal(expected: Any, found: Any, tolerance: float) -> None:
    apart = float((expected - found).abs().max())
    size = max(1.0, float(expected.abs().max()))
    if not apart <= tolerance * size:
        raise InputError(
            "The baked model does not do what the model with hooks does",
            f"outputs that differ by {apart:.2g} on the probe batch, with numbers up to {size:.2g}",
            "Something in this model uses the states in a way that weights cannot follow",
        )


def _save(model: Any, path: Path, origin: Any) -> None:
    model.save_pretrained(path)
    name = getattr(origin.config, "_name_or_path", "") or type(origin).__name__
    card = model_card(model.config.expunge, Path(name).name)
    write_atomically(path / "README.md", card.encode())
