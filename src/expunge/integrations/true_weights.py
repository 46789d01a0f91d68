"""The weights a module computes with: adapters of PEFT merged, what is offloaded fetched."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from expunge.optional import require

__all__ = ["true_weights"]

torch = require("torch", "transformers")


def true_weights(module: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name and the value of every weight that a module computes with.

    A linear layer W with an active adapter BA computes with W + BA; one whose adapter does nothing
    yet, or is disabled, is as it was. Names are without what wrappers put into them. The weights
    come one after the other, so that those of an offloaded model need not fit into memory together.

    Parameters
    ----------
    module : torch.nn.Module

    Yields
    ------
    str
    torch.Tensor

    Examples
    --------
    >>> import torch
    >>> from expunge.integrations.true_weights import true_weights
    >>> [name for name, weight in true_weights(torch.nn.Linear(2, 2))]
    ['weight', 'bias']
    """
    inside: list[str] = []
    for name, part in module.named_modules():
        if name.startswith(tuple(inside)):
            continue
        plain = _without_adapters(part)
        if plain is not part:
            inside.append(f"{name}." if name else "")
            for inner, weight in plain.named_parameters():
                yield _joined(name, inner), weight
            continue
        for own, weight in part.named_parameters(recurse=False):
            yield _joined(name, own), _fetched(part, own) if weight.is_meta else weight


def _without_adapters(part: Any) -> Any:
    """A plain module that computes the same as one that PEFT put around another."""
    chosen = getattr(part, "modules_to_save", None)
    if isinstance(chosen, torch.nn.ModuleDict):  # a trained copy of the whole module
        active = [name for name in part.active_adapters if name in chosen]
        unused = part.disable_adapters or not active
        return part.original_module if unused else chosen[active[0]]
    if not (hasattr(part, "get_base_layer") and hasattr(part, "merge")):
        return part
    if part.disable_adapters or part.merged:
        return part.get_base_layer()
    merged = copy.deepcopy(part)
    with torch.no_grad():
        merged.merge()
    return merged.get_base_layer()


def _fetched(part: Any, name: str) -> Any:
    """A weight that accelerate keeps elsewhere until the module runs; as it is if nobody knows."""
    hook = getattr(part, "_hf_hook", None)
    for one in getattr(hook, "hooks", (hook,)):
        kept = getattr(one, "weights_map", None)
        if kept is not None:
            return kept[name]
    return getattr(part, name)


def _joined(outer: str, inner: str) -> str:
    parts = [part for part in f"{outer}.{inner}".split(".") if part]
    return ".".join(part for part in parts if part not in ("base_layer", "_orig_mod"))
