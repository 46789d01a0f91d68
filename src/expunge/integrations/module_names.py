"""Modules by name: exact, relative to the base model, by pattern, or by what they do."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any

from expunge.errors import InputError
from expunge.integrations.layer_parts import KINDS, parts_of
from expunge.optional import require

__all__ = ["base_model", "check_distinct", "relative_name", "resolve", "resolve_each", "unwrapped"]

torch = require("torch", "transformers")


def resolve(model: Any, names: str | Iterable[str]) -> dict[str, str]:
    """Full names of modules, by the names they are to be shown under.

    Parameters
    ----------
    model : torch.nn.Module
    names : str or sequence of str
        Names as in ``model.named_modules()``, or relative to the base model, as ``"layers.0"`` for
        ``"model.layers.0"``. In a pattern, ``*`` stands for one part of a name: ``"layers.*"``.
        "all" and "resid" are all layers; "attn" and "mlp" what attends (or else mixes tokens) and
        the feed-forward part of every layer, before it is added to the stream.

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
                raise _unknown(modules, base, name)
            each.append({full.removeprefix(base): full for full in chosen})
    return each


def check_distinct(model: Any, names: Iterable[str]) -> None:
    """Refuse full names of one and the same module: what it does, it does for all of them.

    Examples
    --------
    >>> import torch
    >>> from expunge.integrations.module_names import check_distinct
    >>> relu = torch.nn.ReLU()
    >>> try:
    ...     check_distinct(torch.nn.Sequential(relu, relu), ["0", "1"])
    ... except ValueError as error:
    ...     print(str(error).partition(". ")[0])
    Two names are of one module, which the model runs at several places
    """
    modules, known = dict(model.named_modules(remove_duplicate=False)), dict[int, str]()
    for name in dict.fromkeys(names):
        other = known.setdefault(id(modules[name]), name)
        if other != name:
            raise InputError(
                "Two names are of one module, which the model runs at several places",
                f"{other!r} and {name!r}",
                "Name it once: it is then meant at all of its places",
            )


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
    return unwrapped(base) if isinstance(base, torch.nn.Module) else inner


def relative_name(model: Any, full: str) -> str:
    """A full name as it is in the base model; a module outside it, as a head, keeps its own."""
    modules = dict(model.named_modules(remove_duplicate=False))
    return full.removeprefix(_base_prefix(model, modules))


def _by_pattern(model: Any, modules: dict[str, Any], base: str, name: str) -> list[str]:
    if name in KINDS:
        return parts_of(model, name)
    if "*" not in name:
        return []
    pattern = re.compile(re.escape(name).replace(r"\*", r"[^.]+"))
    for prefix in dict.fromkeys(("", base)):
        chosen = [full for full in modules if pattern.fullmatch(full.removeprefix(prefix))]
        if chosen:
            return chosen
    return []


def _base_prefix(model: Any, modules: dict[str, Any]) -> str:
    base = base_model(model)
    full = next((name for name, module in modules.items() if module is base), "")
    return f"{full}." if full else ""


def _unknown(modules: dict[str, Any], base: str, name: Any) -> InputError:
    """The error for a name that is none, with the nearest: of modules, of patterns, of kinds."""
    asked = str(name)
    known = [full if asked.startswith(base) else full.removeprefix(base) for full in modules]
    if "*" in asked:
        known = [re.sub(r"\.\d+(?=\.|$)", ".*", full) for full in known]
        known = [full for full in known if "*" in full]
    known = [*dict.fromkeys((*KINDS, *filter(None, known)))]
    close = [full for full in known if full.endswith(f".{asked}")]
    close += difflib.get_close_matches(asked, known, n=5, cutoff=0.4)
    listed = ", ".join(repr(full) for full in dict.fromkeys(close[:5]))
    return InputError(
        "The model has no module of this name",
        repr(name),
        f"Close names: {listed}" if close else "See the names in model.named_modules()",
    )
