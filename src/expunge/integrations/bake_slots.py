"""Places for new weights in a Hugging Face model: biases that its configuration allows, a head."""

from __future__ import annotations

import copy
from collections.abc import Collection
from typing import Any

from expunge.errors import InputError
from expunge.optional import require

__all__ = ["add_biases", "untie_head"]

torch = require("torch", "transformers")


def add_biases(model: Any, needed: Collection[str]) -> None:
    """Give linear layers a bias of zeros, by settings of the configuration that a file keeps.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        Changed in place.
    needed : collection of str
        Names of the linear layers.

    Raises
    ------
    InputError
        Where no setting of the configuration gives such a layer a bias.
    """
    if not needed:
        return
    missing, chosen = set(needed), dict[str, bool]()
    for flag in _flags(model.config):
        having = _with_bias(model, {**chosen, flag: True})
        if missing & having:
            chosen[flag] = True
            missing -= having
    if missing:
        raise InputError(
            "A layer needs a bias that the configuration of this model has no place for: it would "
            "be lost when the model is loaded again",
            ", ".join(sorted(missing)[:3]),
            "Bake an erasure without center and offset there, or one shared erasure for the stream",
        )
    for flag in chosen:
        setattr(model.config, flag, True)
    for name in _with_bias(model, chosen):
        linear = model.get_submodule(name)
        if linear.bias is None:
            weight = linear.weight
            zeros = torch.zeros(weight.shape[0], dtype=weight.dtype, device=weight.device)
            linear.bias = torch.nn.Parameter(zeros)


def untie_head(model: Any) -> None:
    """Let the head of a model have its own copy of the embeddings, also after loading."""
    head, table = model.get_output_embeddings(), model.get_input_embeddings()
    if head is None or head.weight is not table.weight:
        return
    head.weight = torch.nn.Parameter(table.weight.detach().clone())
    model.config.tie_word_embeddings = False


def _flags(config: Any) -> list[str]:
    return [key for key, value in config.to_dict().items() if value is False and "bias" in key]


def _with_bias(model: Any, settings: dict[str, bool]) -> set[str]:
    """Names of linear layers with a bias in a model of this configuration; nothing is allocated."""
    config = copy.deepcopy(model.config)
    for key, value in settings.items():
        setattr(config, key, value)
    with torch.device("meta"):
        empty = type(model)(config)
    return {
        name
        for name, module in empty.named_modules()
        if isinstance(module, torch.nn.Linear) and module.bias is not None
    }
