"""Erasures inside sentence-transformers models, as one of the library's own modules.

The erasure x -> x - L R (x - c) + o is a `Dense` layer with weight I - L R, bias L R c + o and no
activation. A saved model is therefore read by anyone who has sentence-transformers.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Literal

from expunge.erasure import Erasure
from expunge.errors import InputError
from expunge.inputs import check_choice, check_width
from expunge.integrations.dense_map import dense_map
from expunge.maps import as_erasure
from expunge.optional import require

__all__ = ["add_erasure", "unnormalized"]

sentence_transformers = require("sentence_transformers", "sentence-transformers")
torch = require("torch", "sentence-transformers")

EMBEDDING = "sentence_embedding"
Place = Literal["before_normalize", "end"]


def add_erasure(model: Any, erasure: Erasure, *, place: Place = "before_normalize") -> Any:
    """Put an erasure into a sentence-transformers model, for queries and documents alike.

    Parameters
    ----------
    model : SentenceTransformer
        Changed in place.
    erasure : Erasure or fitted eraser
        For "before_normalize" fitted on embeddings that are not normalized; see `unnormalized`.
        For "end" fitted on what ``model.encode`` gives.
    place : {"before_normalize", "end"}
        Before the last normalization, so that embeddings keep unit length; the guarantee is then
        about the embeddings before it. Or after everything, where the guarantee is about the
        output of ``encode``, which is then not of unit length. Where queries and documents take
        different routes, each route gets the erasure, or the common end does.

    Returns
    -------
    SentenceTransformer
        The same model.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from sentence_transformers import SentenceTransformer
    >>> from sentence_transformers.sentence_transformer.modules import BoW, Normalize
    >>> import expunge as ex
    >>> words = BoW(["she", "he", "works"])
    >>> model = SentenceTransformer(modules=[words, Normalize()], device="cpu")
    >>> pronouns = ex.Erasure(np.eye(3)[:, :2], np.eye(3)[:2])
    >>> model = ex.integrations.sentence_transformers.add_erasure(model, pronouns)
    >>> [type(module).__name__ for module in model]
    ['BoW', 'Dense', 'Normalize']
    >>> model.encode(["she works", "he works"])
    array([[0., 0., 1.],
           [0., 0., 1.]], dtype=float32)
    """
    check_choice(place, ("before_normalize", "end"), "place")
    _check_model(model)
    erasure = as_erasure(erasure)
    slots = _ends(model)[0] if place == "before_normalize" else [(model, len(model))]
    width = _width(model)
    if width is not None:
        check_width(
            width,
            erasure.n_features,
            "The model's embeddings have",
            received=repr(erasure),
            remedy="Pass an erasure that was fitted on embeddings of this model",
        )
    dense = _dense(erasure, model)
    for sequence, index in slots:
        _insert(sequence, index, dense)
    return model


@contextmanager
def unnormalized(model: Any) -> Iterator[Any]:
    """Let ``model.encode`` give embeddings before their last normalization, until the block ends.

    Parameters
    ----------
    model : SentenceTransformer

    Yields
    ------
    SentenceTransformer
        The same model.

    Examples
    --------
    >>> from sentence_transformers import SentenceTransformer
    >>> from sentence_transformers.sentence_transformer.modules import BoW, Normalize
    >>> from expunge.integrations.sentence_transformers import unnormalized
    >>> model = SentenceTransformer(modules=[BoW(["she", "works"]), Normalize()], device="cpu")
    >>> with unnormalized(model):
    ...     model.encode(["she works"])
    array([[1., 1.]], dtype=float32)
    """
    _check_model(model)
    kept: dict[Any, Any] = {}

    def before(module: Any, args: tuple[Any, ...]) -> None:
        kept[module] = args[0][EMBEDDING]

    def after(module: Any, args: tuple[Any, ...], output: Any) -> Any:
        return {**output, EMBEDDING: kept.pop(module)}

    with ExitStack() as undo:
        for module in dict.fromkeys(_ends(model)[1]):  # routes may share one
            undo.callback(module.register_forward_pre_hook(before).remove)
            undo.callback(module.register_forward_hook(after).remove)
        yield model


def _modules() -> Any:
    """Where this version of the library keeps its modules."""
    try:
        return importlib.import_module("sentence_transformers.sentence_transformer.modules")
    except ModuleNotFoundError:  # before version 5.4
        return importlib.import_module("sentence_transformers.models")


def _check_model(model: Any) -> None:
    if not isinstance(model, sentence_transformers.SentenceTransformer) or len(model) == 0:
        raise InputError(
            "model is not a SentenceTransformer",
            type(model).__name__,
            "Pass one; for other models there is expunge.integrations.transformers.erasing",
        )


def _width(model: Any) -> int | None:
    """Features of an embedding before any truncation, if the model says so."""
    with model.truncate_embeddings(None):
        if hasattr(model, "get_embedding_dimension"):
            return model.get_embedding_dimension()  # type: ignore[no-any-return]
        return model.get_sentence_embedding_dimension()  # type: ignore[no-any-return]


def _ends(sequence: Any) -> tuple[list[tuple[Any, int]], list[Any]]:
    """Where embeddings are complete but for normalization, and the normalizations that follow.

    That is before the last normalizations of a sequence; inside the routes of a router that comes
    last, if these normalize themselves.
    """
    index, modules = len(sequence), list(sequence)
    while index and _normalizes(modules[index - 1]):
        index -= 1
    routes = _routes(modules[index - 1]) if index else []
    inside = [_ends(route) for route in routes]
    if not any(follow for _, follow in inside):
        return [(sequence, index)], modules[index:]
    slots = [slot for found, _ in inside for slot in found]
    return slots, [module for _, follow in inside for module in follow] + modules[index:]


def _normalizes(module: Any) -> bool:
    is_one = isinstance(module, _modules().Normalize)
    return is_one and getattr(module, "module_input_name", EMBEDDING) == EMBEDDING


def _routes(module: Any) -> list[Any]:
    """The module sequences of a router; none for other modules."""
    modules = _modules()
    router = getattr(modules, "Router", None) or modules.Asym
    return list(module.sub_modules.values()) if isinstance(module, router) else []


def _dense(erasure: Erasure, model: Any) -> Any:
    """The erasure as a layer, in the precision and on the device of the model."""
    first = next(model.parameters(), None)
    place = {} if first is None else {"dtype": first.dtype, "device": first.device}
    weight, bias = dense_map(erasure)
    dense = _modules().Dense(
        erasure.n_features,
        erasure.n_features,
        activation_function=torch.nn.Identity(),
        init_weight=torch.tensor(weight, **{"dtype": torch.float32, **place}),
        init_bias=torch.tensor(bias, **{"dtype": torch.float32, **place}),
    )
    return dense.requires_grad_(False)


def _insert(sequence: Any, index: int, module: Any) -> None:
    """Put a module into a sequence; the others keep their names."""
    taken = dict(sequence.named_children())
    name = next(
        n for n in ("erasure", *(f"erasure_{i}" for i in range(2, 10**6))) if n not in taken
    )
    behind = list(taken.items())[index:]
    for other, _ in behind:
        delattr(sequence, other)
    for each, part in [(name, module), *behind]:
        sequence.add_module(each, part)
