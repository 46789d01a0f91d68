"""Modules by name: exact, relative to the base model, by pattern, or by what they do."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any

from expunge.errors import InputError
from expunge.optional import require

__all__ = ["base_model", "blocks_of", "relative_name", "resolve", "resolve_each", "unwrapped"]

torch = require("torch", "transformers")

KINDS = ("all", "resid", "attn", "mlp")
MLP = re.compile(r"mlp|feed_?forward|ffn|moe|fc$", re.IGNORECASE)
ATTENTION = re.compile(r"attn|attention|mixer", re.IGNORECASE)


def resolve(model: Any, names: str | Iterable[str]) -> dict[str, str]:
    """Full names of modules, by the names they are to be shown under.

    Parameters
    ----------
    model : torch.nn.Module
    names : str or sequence of str
        Names as in ``model.named_modules()``, or relative to the base model, as ``"layers.0"`` for
        ``"model.layers.0"``. In a pattern, ``*`` stands for one part of a name: ``"layers.*"``.
        "all" and "resid" are all layers, "attn" and "mlp" the parts of this kind of all layers.

    Returns
    -------
    dict of str to str
        In the order of the names; what a pattern finds is shown relative to the base model.

    Raises
    ------
    InputError
        For an unknown name, with names that are close to it.

    Examples
    --------
    >>> import torch
    >>> from expunge.integrations.module_names import resolve
    >>> layers = torch.nn.ModuleList(torch.nn.ReLU() for _ in range(2))
    >>> resolve(torch.nn.ModuleDict({"layers": layers}), "layers.*")
    {'layers.0': 'layers.0', 'layers.1': 'layers.1'}
    """
    if not isinstance(model, torch.nn.Module):
        raise InputError("model is not a torch module", type(model).__name__, "Pass a model")
    found: dict[str, str] = {}
    for one in resolve_each(model, [names] if isinstance(names, str) else names):
        found.update(one)
    return found


def resolve_each(model: Any, names: Iterable[str]) -> list[dict[str, str]]:
    """What `resolve` finds for every name by itself, after one look at the model."""
    modules = dict(model.named_modules(remove_duplicate=False))
    base = _base_prefix(model, modules)
    each: list[dict[str, str]] = []
    for name in names:
        if name in modules:
            each.append({name: name})
        elif f"{base}{name}" in modules:
            each.append({name: f"{base}{name}"})
        else:
            chosen = _by_pattern(model, modules, base, str(name))
            if not chosen:
                raise _unknown(modules, name)
            each.append({full.removeprefix(base): full for full in chosen})
    return each


def unwrapped(model: Any) -> Any:
    """The model inside what `torch.compile`, PEFT and data parallelism put around it."""
    while True:
        if "_orig_mod" in getattr(model, "_modules", {}):
            model = model._orig_mod
        elif hasattr(model, "get_base_model"):
            model = model.get_base_model()
        elif isinstance(model, torch.nn.DataParallel | torch.nn.parallel.DistributedDataParallel):
            model = model.module
        else:
            return model


def base_model(model: Any) -> Any:
    """The model without a head and without wrappers; any other module as it is."""
    inner = unwrapped(model)
    base = getattr(inner, "base_model", inner)
    return base if isinstance(base, torch.nn.Module) else inner


def relative_name(model: Any, full: str) -> str:
    """A full name as it is in the base model; a module outside it, as a head, keeps its own."""
    modules = dict(model.named_modules(remove_duplicate=False))
    return full.removeprefix(_base_prefix(model, modules))


def blocks_of(model: Any) -> list[str]:
    """Full names of all layers: the members of the outermost lists of like modules."""
    lists: list[str] = []
    for name, module in model.named_modules():
        inside = any(name.startswith(f"{outer}.") for outer in lists)
        if isinstance(module, torch.nn.ModuleList) and len(module) and not inside:
            lists.append(name)
    most = max((len(model.get_submodule(name)) for name in lists), default=0)
    deep = [name for name in lists if most < 2 or len(model.get_submodule(name)) > 1]
    return [f"{name}.{i}" for name in deep for i in range(len(model.get_submodule(name)))]


def _by_pattern(model: Any, modules: dict[str, Any], base: str, name: str) -> list[str]:
    if name in KINDS:
        blocks = blocks_of(model)
        if name in ("all", "resid"):
            return blocks
        kind = MLP if name == "mlp" else ATTENTION
        return [
            f"{block}.{part}"
            for block in blocks
            for part, module in modules[block].named_children()
            if kind.search(part) and "norm" not in part.lower() and not _is_empty(module)
        ]
    if "*" not in name:
        return []
    pattern = re.compile(re.escape(name).replace(r"\*", r"[^.]+"))
    for prefix in dict.fromkeys(("", base)):
        chosen = [full for full in modules if pattern.fullmatch(full.removeprefix(prefix))]
        if chosen:
            return chosen
    return []


def _is_empty(module: Any) -> bool:
    return next(module.parameters(), None) is None


def _base_prefix(model: Any, modules: dict[str, Any]) -> str:
    base = base_model(model)
    full = next((name for name, module in modules.items() if module is base), "")
    return f"{full}." if full else ""


def _unknown(modules: dict[str, Any], name: Any) -> InputError:
    close = [known for known in modules if known.endswith(f".{name}")]
    close += difflib.get_close_matches(str(name), modules, n=5, cutoff=0.4)
    listed = ", ".join(repr(known) for known in dict.fromkeys(close[:5]))
    return InputError(
        "The model has no module of this name",
        repr(name),
        f"Close names: {listed}" if close else "See the names in model.named_modules()",
    )
