"""Which model it was: its class, and hashes of its configuration and of some of its weights.

The hashes are those of the base model, so a model is the same with another head and inside a
wrapper; and the same after rounding to half precision, since that hash is recorded too. What counts
are the weights it computes with: an adapter that has learnt something makes another model. It need
not be at a module that is erased: what lies below changes the states, too.
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
        Modules of the base model; their weights count, those of the input embeddings, and those of
        all parts of the model up to the last that has one of these modules.

    Returns
    -------
    dict
        "class", "config" and "type"; "weights" and "parts", which have one hash per floating type:
        of these modules with the embeddings, and of the parts.

    Examples
    --------
    >>> import torch
    >>> from expunge.integrations.model_identity import identity_of
    >>> found = identity_of(torch.nn.Linear(2, 2), [""])
    >>> found["class"], found["config"], found["type"]
    ('Linear', None, 'float32')
    """
    base, names = base_model(model), [*layers]
    samples, parts = _samples(base, names), _samples_of_parts(base, names)
    types = [str(value.dtype).rpartition(".")[2] for value in (*samples.values(), *parts.values())]
    kind = next((each for each in types if each in TYPES), None)
    kinds = [] if kind is None else TYPES[TYPES.index(kind) :]
    return {
        "class": type(base).__name__,
        "config": _config_hash(base),
        "type": kind,
        "weights": {each: _hash(samples, each) for each in kinds},
        "parts": {each: _hash(parts, each) for each in kinds},
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
    names = [*layers]
    here = identity_of(model, names)
    differs = []
    if here["config"] != known.get("config"):
        differs.append("another configuration")
    elif not _same_weights(here, model, names, known):
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
    here: Mapping[str, Any], model: Any, layers: list[str], known: Mapping[str, Any]
) -> bool:
    if not known.get("weights") or here["type"] is None:
        return True  # weights that are elsewhere, as those of an offloaded model
    for key, samples_of in (("weights", _samples), ("parts", _samples_of_parts)):
        there = known.get(key) or {}
        if not there:
            continue  # files of before say nothing of the parts
        if here["type"] in there:
            same = here[key][here["type"]] == there[here["type"]]
        else:
            rounded = _hash(samples_of(base_model(model), layers), known["type"])
            same = rounded == there[known["type"]]
        if not same:
            return False
    return True


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
        found.update(_some_numbers(prefix, true_weights(module)))
    return found


def _samples_of_parts(base: Any, layers: Iterable[str]) -> dict[str, Any]:
    """Some numbers of every weight of the parts of a model, up to the last that is asked about.

    What stands behind that, such as a pooler, does not change the states, and may be new.
    """
    parts = dict(base.named_children())
    asked = {name.partition(".")[0] for name in layers}
    behind = [*parts]
    while behind and behind[-1] not in asked and asked & set(parts):
        del parts[behind.pop()]
    found = _some_numbers("", base.named_parameters(recurse=False))
    for name, part in parts.items():
        found.update(_some_numbers(name, true_weights(part)))
    return found


def _some_numbers(prefix: str, weights: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, weight in weights:
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
