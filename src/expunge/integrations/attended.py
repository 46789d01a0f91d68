"""Which positions a stack attends to, from the masks and caches it is called with.

A stack is called with t new tokens behind p that are in a cache. Its mask may be of two dimensions
(texts, p + t or longer, as for a cache of fixed length), of four (texts, heads, t, p + t or
longer; true or 0 where attended), or a dictionary of such masks by kind of layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from expunge.optional import require

__all__ = ["cached_tokens", "keys_attended", "padding_after_text"]

torch = require("torch", "transformers")

CACHES = ("past_key_values", "cache_params", "past_key_value", "past")
UNCOUNTED = "state"  # of a recurrent network
HIDING = -5000.0  # added to a score, it hides a token; models add from -10,000 to -inf
FULL = "full_attention"  # of masks by kind of layer, the one that shows every position


def cached_tokens(values: Mapping[str, Any]) -> int | None:
    """How many tokens a call finds in its cache; None where the cache does not count them.

    Parameters
    ----------
    values : mapping
        The arguments of the call by name.

    Returns
    -------
    int or None

    Examples
    --------
    >>> import torch
    >>> from expunge.integrations.attended import cached_tokens
    >>> cached_tokens({"cache_position": torch.tensor([7, 8])}), cached_tokens({})
    (7, 0)
    """
    places = values.get("cache_position")
    if isinstance(places, torch.Tensor) and places.numel():
        return int(places.flatten()[0])
    cache = next((values[key] for key in CACHES if values.get(key) is not None), None)
    if cache is None:
        return 0 if values.get(UNCOUNTED) is None else None
    if hasattr(cache, "get_seq_length"):
        try:
            return int(cache.get_seq_length()) or _most_counted(cache)
        except ValueError:  # a cache of states of one size, which count nothing
            return None if cache.has_previous_state() else 0
    try:
        return int(cache[0][0].shape[-2])  # keys by layer, as they were stored once
    except (TypeError, IndexError, AttributeError, KeyError):
        return None


def _most_counted(cache: Any) -> int:
    """Tokens in any layer of a cache: the first may keep its own elsewhere, and count none."""
    counts = (getattr(layer, "get_seq_length", None) for layer in getattr(cache, "layers", ()))
    return max((int(count()) for count in counts if count is not None), default=0)


def keys_attended(mask: Any) -> Any:
    """A mask of any kind as one of shape (texts, tokens), true where a token is attended to.

    Parameters
    ----------
    mask : tensor of two or four dimensions, mapping of such, or None

    Returns
    -------
    bool tensor of shape (texts, tokens), or None
        None for no mask, where every token counts; and for a mask whose kind is not known, or in
        which some tokens see but themselves, beside others that do not: they may be padding, or
        texts of one token.

    Examples
    --------
    >>> import torch
    >>> from expunge.integrations.attended import keys_attended
    >>> keys_attended({"full_attention": torch.tensor([[[[-1e30, 0.0], [-1e30, 0.0]]]])})
    tensor([[False,  True]])
    """
    if isinstance(mask, Mapping):
        mask = mask[FULL] if FULL in mask else next(iter(mask.values()), None)
    if not isinstance(mask, torch.Tensor):
        return None
    if mask.ndim == 2:
        return mask.bool()
    if mask.is_floating_point():
        mask = mask > HIDING
    mask = mask.bool()
    return None if _some_are_alone(mask) else mask.flatten(1, -2).any(dim=1)


def _some_are_alone(mask: Any) -> bool:
    """Whether some tokens, but not all of a text, see themselves only and are seen by no other."""
    t = mask.shape[-1]
    if mask.ndim != 4 or mask.shape[-2] != t:
        return False
    sees = mask.any(dim=1)
    itself = sees.diagonal(dim1=1, dim2=2)
    alone = itself & (sees.sum(dim=1) == 1) & (sees.sum(dim=2) == 1)
    return bool((alone.any(dim=1) & (itself & ~alone).any(dim=1)).any())


def padding_after_text(ids: Any, pad: int | None, end: int | None, *, started: bool = False) -> Any:
    """Which tokens are padding by their numbers: for a decoder without a mask.

    The first token always counts: many models start with the padding token. Where one token both
    ends and pads, only a run of it at the end is padding, but for the first of that run, the end.

    Parameters
    ----------
    ids : integer tensor of shape (texts, tokens)
    pad, end : int or None
    started : bool
        Whether the first token of the texts is in a cache, and not among these.

    Returns
    -------
    bool tensor of shape (texts, tokens)

    Examples
    --------
    >>> import torch
    >>> from expunge.integrations.attended import padding_after_text
    >>> padding_after_text(torch.tensor([[0, 5, 0, 0]]), pad=0, end=None)
    tensor([[False, False,  True,  True]])
    """
    if pad is None or (started and pad == end):
        return torch.zeros_like(ids, dtype=torch.bool)
    padding = ids == pad
    if pad == end:
        padding = (~padding).flip(1).cumsum(dim=1).flip(1) == 0  # nothing else follows
        padding = padding & (padding.cumsum(dim=1) > 1)
    if not started:
        padding[:, :1] = False
    return padding
