"""Which model it was: its class, and hashes of its configuration and of some of its weights.

The hashes are those of the base model, so a model is the same with another head and inside a
wrapper; and the same after rounding to half precision, since that hash is recorded too. What counts
are the weights it computes with: an adapter that has learnt something makes another model.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from expunge.errors import InputError
from expunge.integrations.module_names import base_model
from expunge.integrations.true_weights import true_weights
from expunge.optional import require

__all__ = ["check_identity", "identity_of"]

torch = require("torch", "transformers")

NUMBERS = 64  # of every weight, evenly spaced
# what a configuration says besides what the model computes
ASIDE = re.compile(
    "name_or_path|version|dtype|architectures|implementation|use_cache|output_|return_dict|is_decoder"
    "|tie_word|auto_map|_token_id|id2label|label2id|problem_type|num_labels|classifier|expunge"
    "|chunk_size_feed"
)
TYPES = ("float64", "float32", "bfloat16", "float16")


def identity_of(model: Any, layers: Iterable[str]) -> dict[str, Any]:
    """The class of a model, and hashes of its configuration and of the weights that count.

    Parameters
    ----------
    model : torch.nn.Module
    layers : iterable of str
        Modules of the base model; their weights count, and those of the input embeddings.

    Returns
    -------
    dict
        "class", "config", "type" and "weights", which has one hash per floating type.

    Examples
    --------
    >>> import torch
    >>> from expunge.integrations.model_identity import identity_of
    >>> found = identity_of(torch.nn.Linear(2, 2), [""])
    >>> found["class"], found["config"], found["type"]
    ('Linear', None, 'float32')
    """
    base = base_model(model)
    samples = _samples(base, layers)
    kind = next((str(value.dtype).rpartition(".")[2] for value in samples.values()), None)
    kinds = [] if kind is None else TYPES[TYPES.index(kind) :]
    return {
        "class": type(base).__name__,
        "config": _config_hash(base),
        "type": kind,
        "weights": {each: _hash(samples, each) for each in kinds},
    }


def check_identity(model: Any, layers: Iterable[str], known: Mapping[str, Any] | None) -> None:
    """Refuse a model that is not the one of which `identity_of` gave `known`.

    Parameters
    ----------
    model : torch.nn.Module
    layers : iterable of str
    known : mapping or None
        None, from files that do not say, fits any model.

    Raises
    ------
    InputError
    """
    if not known:
        return
    here = identity_of(model, layers)
    differs = []
    if here["config"] != known.get("config"):
        differs.append("another configuration")
    elif not _same_weights(here, model, layers, known):
        differs.append("other weights")
    if here["config"] is None and here["class"] != known.get("class"):
        differs.append("another class")
    if differs:
        raise InputError(
            "These erasures were fitted on another model",
            f"{' and '.join(differs)}: {here['class']} here, {known.get('class')} there",
            "Fit on this model; or pass force=True if you know that its states are alike",
        )


def _same_weights(
    here: Mapping[str, Any], model: Any, layers: Iterable[str], known: Mapping[str, Any]
) -> bool:
    there = known.get("weights") or {}
    if not there or here["type"] is None:
        return True  # weights that are elsewhere, as those of an offloaded model
    if here["type"] in there:
        return bool(here["weights"][here["type"]] == there[here["type"]])
    rounded = _hash(_samples(base_model(model), layers), known["type"])
    return bool(rounded == there[known["type"]])


def _samples(base: Any, layers: Iterable[str]) -> dict[str, Any]:
    """Some numbers of every weight that counts, by name."""
    parts = [*layers]
    embeddings = getattr(base, "get_input_embeddings", None)
    found: dict[str, Any] = {}
    try:
        first = None if embeddings is None else embeddings()
    except NotImplementedError:
        first = None
    modules = [(name, base.get_submodule(name)) for name in parts if _has(base, name)]
    if isinstance(first, torch.nn.Module):
        modules.append(("input", first))
    for prefix, module in modules:
        for name, weight in true_weights(module):
            if weight.is_floating_point() and not weight.is_meta:
                step = max(1, weight.numel() // NUMBERS)
                found[f"{prefix}.{name}"] = weight.detach().reshape(-1)[::step][:NUMBERS].cpu()
    return found


def _has(base: Any, name: str) -> bool:
    try:
        base.get_submodule(name)
    except AttributeError:
        return False
    return True


def _hash(samples: Mapping[str, Any], kind: str) -> str:
    digest = hashlib.sha256()
    for name in sorted(samples):
        numbers = samples[name].to(getattr(torch, kind)).double().numpy()
        digest.update(name.encode() + numbers.tobytes())
    return digest.hexdigest()[:32]


def _config_hash(base: Any) -> str | None:
    config: Any = getattr(base, "config", None)
    if not hasattr(config, "to_dict"):
        return None
    text = json.dumps(_what_computes(config.to_dict()), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _what_computes(values: Any) -> Any:
    if isinstance(values, Mapping):
        return {
            str(key): _what_computes(value)
            for key, value in values.items()
            if not ASIDE.search(str(key))
        }
    return values
