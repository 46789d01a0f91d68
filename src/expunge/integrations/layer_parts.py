"""The layers of a model, and in them what mixes tokens (attention) and what does not (the MLP).

What is meant by a part is what it adds to the stream. Where a layer keeps a sum and a norm inside
the part, as BERT does, that is the last linear layer before them.
"""

from __future__ import annotations

import re
from typing import Any

from expunge.errors import InputError
from expunge.optional import require

__all__ = ["KINDS", "blocks_of", "parts_of"]

torch = require("torch", "transformers")

KINDS = ("all", "resid", "attn", "mlp")
MLP = re.compile(r"mlp|feed_?forward|ffn|moe|^ff$|dense\w*dense", re.IGNORECASE)
MIXER = re.compile(r"attn|attention|mixer|mamba|temporal", re.IGNORECASE)
NORM = re.compile(r"norm|(^|_)ln(_|\d|$)", re.IGNORECASE)
INNER_NORM = {"LayerNorm", "layer_norm", "layernorm"}  # as a part that adds and norms calls it
LAST_LINEAR = ("ffn_output", "output.dense", "fc2")  # where the layer itself is the MLP


def blocks_of(model: Any) -> list[str]:
    """Full names of all layers: the members of the outermost lists of like modules.

    Beside others, lists of convolutions do not count, as in front of the layers for sound.

    Examples
    --------
    >>> import torch
    >>> from expunge.integrations.layer_parts import blocks_of
    >>> layers = torch.nn.ModuleList(torch.nn.Linear(2, 2) for _ in range(2))
    >>> blocks_of(torch.nn.ModuleDict({"layers": layers}))
    ['layers.0', 'layers.1']
    """
    lists: list[str] = []
    for name, module in model.named_modules():
        inside = any(name.startswith(f"{outer}.") for outer in lists)
        if isinstance(module, torch.nn.ModuleList) and len(module) and not inside:
            lists.append(name)
    lists = [name for name in lists if not _only_convolves(model.get_submodule(name))] or lists
    most = max((len(model.get_submodule(name)) for name in lists), default=0)
    deep = [name for name in lists if most < 2 or len(model.get_submodule(name)) > 1]
    return [f"{name}.{i}" for name in deep for i in range(len(model.get_submodule(name)))]


def parts_of(model: Any, kind: str) -> list[str]:
    """Full names of all layers ("all", "resid"), or of what attends or the MLP in each.

    Raises
    ------
    InputError
        Where the layers have no such part, with the parts they have.

    Examples
    --------
    >>> import transformers
    >>> from expunge.integrations.layer_parts import parts_of
    >>> config = transformers.BertConfig(
    ...     vocab_size=9, hidden_size=4, num_hidden_layers=1, num_attention_heads=1
    ... )
    >>> model = transformers.BertModel(config)
    >>> parts_of(model, "resid"), parts_of(model, "mlp")
    (['encoder.layer.0'], ['encoder.layer.0.output.dense'])
    """
    blocks = blocks_of(model)
    if kind in ("all", "resid"):
        if blocks and not any(NORM.search(type(model.get_submodule(b)).__name__) for b in blocks):
            return blocks
        raise InputError(
            "The layers of this model are not modules, so that none gives the residual stream",
            f"{type(model).__name__} with {'lists of parts' if blocks else 'no list of layers'}",
            "Name modules; see model.named_modules()",
        )
    found = [
        f"{block}.{part}" if part else block
        for block in blocks
        for part in _parts(model.get_submodule(block), kind, block.split(".")[-2])
    ]
    if not found:
        told = sorted({part for b in blocks for part, _ in model.get_submodule(b).named_children()})
        raise InputError(
            f"The layers of this model have no part that is {kind!r} by itself",
            f"{type(model).__name__}, whose layers have the parts {', '.join(told) or 'none'}",
            "Name modules, as in 'layers.*.mixer'; see model.named_modules()",
        )
    return found


def _parts(block: Any, kind: str, list_name: str) -> list[str]:
    """Names, inside a layer, of its parts of a kind; "" where the layer is one itself."""
    pattern = MLP if kind == "mlp" else MIXER
    if pattern.search(list_name) and not MIXER.search(" ".join(dict(block.named_children()))):
        return [""]
    if kind == "mlp" and "ffn_output" in dict(block.named_children()):
        return ["ffn_output"]
    found: list[str] = []
    for name, module in block.named_children():
        if isinstance(module, torch.nn.ModuleList):
            found += [
                f"{name}.{i}.{part}"
                for i, member in enumerate(module)
                for part in _parts(member, kind, "")
            ]
        elif pattern.search(name) and not NORM.search(name) and _has_weights(module):
            inner = _before_the_sum(module)
            found += [] if inner is None else [f"{name}.{inner}" if inner else name]
    if kind == "mlp" and not any("." not in name for name in found):
        found += [name for name in LAST_LINEAR if _has(block, name)][:1]
    return found


def _before_the_sum(part: Any) -> str | None:
    """Which module inside a part gives what the part adds; "" for itself, None for none."""
    children = dict(part.named_children())
    ending = dict(children["output"].named_children()) if "output" in children else {}
    if INNER_NORM & set(ending) and "dense" in ending:
        return "output.dense"
    if not INNER_NORM & set(children):
        return ""
    if "dense" in children:
        return "dense"
    return next((name for name in children if MIXER.search(name)), None)


def _only_convolves(members: Any) -> bool:
    kinds = (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)
    modules = [m for m in members.modules() if any(True for _ in m.parameters(recurse=False))]
    convolutions = [m for m in modules if isinstance(m, kinds)]
    others = [m for m in modules if m not in convolutions and not NORM.search(type(m).__name__)]
    return bool(convolutions) and not others


def _has_weights(module: Any) -> bool:
    return next(module.parameters(), None) is not None


def _has(module: Any, name: str) -> bool:
    try:
        return _has_weights(module.get_submodule(name))
    except AttributeError:
        return False
