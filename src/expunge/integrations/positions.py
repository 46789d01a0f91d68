"""Which vectors of a layer are meant: all tokens, some of them, their mean.

Notation: hidden states H of shape (b, t, d) for b texts of t tokens, or (b, d) where a module gives
one vector per text. What counts as a token is known from the call of the stack around the module,
so no model is known by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from expunge.errors import InputError
from expunge.integrations.calls import Call, Calls, n_tokens, unclear
from expunge.optional import require

__all__ = ["CHOICES", "Tokens", "change_at", "check_tokens", "rows_at", "without_special"]

torch = require("torch", "transformers")

CHOICES = ("all", "masked", "cls", "last", "mean", "prompt", "generated")
NOT = "not"
Tokens = str | int | Mapping[str, Iterable[int]] | Callable[..., Any] | Any


def check_tokens(tokens: Any, name: str = "tokens", choices: tuple[str, ...] = CHOICES) -> None:
    """Refuse what is no choice, no token number, no {"not": numbers}, no mask and no callable."""
    if isinstance(tokens, str):
        known = tokens in choices
    elif isinstance(tokens, Mapping):
        known = set(tokens) == {NOT} and all(map(_is_number, tokens[NOT]))
    elif isinstance(tokens, torch.Tensor):
        known = tokens.ndim == 2 and tokens.dtype == torch.bool
    else:
        known = _is_number(tokens) or callable(tokens)
    if not known:
        listed = ", ".join(map(repr, choices))
        raise InputError(
            f"Unknown {name}",
            repr(tokens),
            f"Pass one of {listed}; the number of a token, e.g. tokenizer.mask_token_id; "
            "{'not': tokenizer.all_special_ids}; a bool mask of shape (texts, tokens); or a "
            "function of token numbers and mask",
        )


def without_special(tokens: Any, tokenizer: Any) -> Any:
    """`tokens` with "not special" spelled out as the numbers that this tokenizer says are special.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from expunge.integrations.positions import without_special
    >>> without_special("not special", SimpleNamespace(all_special_ids=[102, 101]))
    {'not': [101, 102]}
    """
    if not (isinstance(tokens, str) and tokens == "not special"):
        return tokens
    if not hasattr(tokenizer, "all_special_ids"):
        raise InputError(
            "Only a tokenizer knows which tokens are special",
            f"tokens='not special' with tokenizer={tokenizer!r}",
            "Pass tokenizer=, or tokens={'not': [their numbers]}",
        )
    return {NOT: sorted(int(number) for number in tokenizer.all_special_ids)}


def change_at(calls: Calls, name: str, hidden: Any, tokens: Tokens, change: Any) -> Any:
    """Hidden states with `change` applied at the chosen tokens, the others as they were.

    For "mean" every attended token of a text is moved by the same vector, the one that takes
    their mean m to change(m).
    """
    if _is(tokens, "all"):
        return change(hidden)
    call = calls.of(name)
    if (flat := calls.tokens_of_flat(name, hidden, call)) is not None:
        tokenwise = hidden.view(*flat, hidden.shape[1])
        return change_at(calls, name, tokenwise, tokens, change).reshape(hidden.shape)
    if _one_per_text(name, hidden, call):
        return change(hidden)
    chosen, every = _remembered(calls, name, hidden, tokens, call)
    if every and not _is(tokens, "mean"):
        return change(hidden)
    if _is(tokens, "mean"):
        mean = _mean(hidden, chosen)
        shift = (change(mean) - mean).to(hidden.dtype)
        with torch.autocast(hidden.device.type, enabled=False):
            return torch.baddbmm(hidden, chosen[..., None].to(hidden.dtype), shift[:, None])
    if isinstance(tokens, str) and tokens not in ("cls", "last"):
        return torch.where(chosen[..., None], change(hidden), hidden)
    out = hidden.clone()
    out[chosen] = change(hidden[chosen])
    return out


def rows_at(calls: Calls, name: str, hidden: Any, tokens: Tokens) -> tuple[Any, Any, Any]:
    """The chosen vectors as rows (k, d), with the text and the position each belongs to.

    Padding is never among them. For "mean", and where a module gives one vector per text, the
    position is 0.
    """
    call = calls.of(name)
    if (flat := calls.tokens_of_flat(name, hidden, call)) is not None:
        hidden = hidden.view(*flat, hidden.shape[1])
    single = _one_per_text(name, hidden, call)
    if single or _is(tokens, "mean"):
        hidden = hidden if single else _mean(hidden, _chosen(calls, name, hidden, tokens, call))
        text = torch.arange(len(hidden), device=hidden.device)
        return hidden, text, torch.zeros_like(text)
    chosen = _chosen(calls, name, hidden, tokens, call)
    text, position = chosen.nonzero(as_tuple=True)
    return hidden[chosen], text, position


def _remembered(
    calls: Calls, name: str, hidden: Any, tokens: Tokens, call: Call | None
) -> tuple[Any, bool]:
    """The chosen positions, and whether these are all; worked out once per call for all layers."""
    if call is None or not isinstance(tokens, str) or calls.inside[name]:
        return _chosen(calls, name, hidden, tokens, call), False
    key = (tokens, hidden.shape[:2], hidden.device)
    if key not in call.memo:
        chosen = _chosen(calls, name, hidden, tokens, call)
        on_cpu = hidden.device.type == "cpu"  # elsewhere the question would wait for the device
        call.memo[key] = chosen, on_cpu and bool(chosen.all())
    found: tuple[Any, bool] = call.memo[key]
    return found


def _chosen(calls: Calls, name: str, hidden: Any, tokens: Tokens, call: Call | None) -> Any:
    """Positions of shape (b, t) that `tokens` names; padding is never among them."""
    attended, cached = calls.attended(name, hidden, call)
    new = slice(cached, cached + hidden.shape[1])  # those before are in a cache
    if isinstance(tokens, torch.Tensor):
        return attended[:, new] & _fitting(name, hidden, tokens, new)
    if isinstance(tokens, str):
        return _BY_WORD[tokens](name, attended, new, call)
    ids = None if call is None else call.given["input_ids"]
    if callable(tokens):
        return attended[:, new] & _fitting(name, hidden, tokens(ids, attended[:, new]), new)
    if ids is None or ids.shape != hidden.shape[:2]:
        raise unclear(name, hidden, ids, "token numbers")
    ids = ids.to(hidden.device)
    if isinstance(tokens, Mapping):
        special = torch.tensor(sorted(tokens[NOT]), device=ids.device, dtype=ids.dtype)
        return attended[:, new] & ~torch.isin(ids, special)
    return attended[:, new] & (ids == tokens)


def _attended(name: str, attended: Any, new: slice, call: Call | None) -> Any:
    return attended[:, new]


def _first(name: str, attended: Any, new: slice, call: Call | None) -> Any:
    _refuse_packed(name, "cls", call)
    return (attended & (attended.cumsum(dim=1) == 1))[:, new]


def _last(name: str, attended: Any, new: slice, call: Call | None) -> Any:
    _refuse_cache(name, "last", new)
    _refuse_packed(name, "last", call)
    attended = attended[:, new]
    count = attended.cumsum(dim=1)
    return attended & (count == count[:, -1:])


def _all_for_mean(name: str, attended: Any, new: slice, call: Call | None) -> Any:
    _refuse_cache(name, "mean", new)
    _refuse_packed(name, "mean", call)
    return attended[:, new]


def _prompt(name: str, attended: Any, new: slice, call: Call | None) -> Any:
    _refuse_unknown_part(new, call)
    return attended[:, new] & (new.start == 0)


def _generated(name: str, attended: Any, new: slice, call: Call | None) -> Any:
    _refuse_unknown_part(new, call)
    return attended[:, new] & (new.start > 0)


_BY_WORD: dict[str, Callable[[str, Any, slice, Call | None], Any]] = {
    "all": _attended,
    "masked": _attended,
    "cls": _first,
    "last": _last,
    "mean": _all_for_mean,
    "prompt": _prompt,
    "generated": _generated,
}


def _refuse_cache(name: str, tokens: str, new: slice) -> None:
    """The last token, and the mean, of a text that grows change with every token."""
    if new.start > 0:
        raise InputError(
            f"tokens={tokens!r} has no meaning for a text that grows: with a cache, earlier tokens "
            "stay as they were changed when they came",
            f"a call of the stack around {name!r} with {new.start} tokens in its cache",
            "Pass tokens='all', 'masked', 'cls', 'prompt' or 'generated'; or use_cache=False",
        )


def _refuse_unknown_part(new: slice, call: Call | None) -> None:
    """Refuse tokens that may be of the prompt or generated: without a cache, or many behind one."""
    if call is not None and call.given["use_cache"] is False:
        raise InputError(
            "Without a cache, prompt and generated tokens cannot be told apart",
            "a call with use_cache=False",
            "Generate with a cache",
        )
    if new.start > 0 and new.stop - new.start > 1:
        raise InputError(
            "Several tokens behind a cache may be more of the prompt, or guesses of what follows",
            f"{new.stop - new.start} tokens behind {new.start}",
            "Generate token by token, without an assistant and prefill_chunk_size, from an empty "
            "cache; or pass a mask or a function as tokens",
        )


def _refuse_packed(name: str, tokens: str, call: Call | None) -> None:
    """Refuse rows of several texts: models tell these by positions that begin anew."""
    places = None if call is None or n_tokens(call.given) is None else call.given["position_ids"]
    if places is None or call is None or call.given["attention_mask"] is not None:
        return
    if places.ndim == 2 and bool((places.diff(dim=1) < 1).any()):
        raise InputError(
            f"tokens={tokens!r} means one place of a text, but there are several texts in a row",
            f"position_ids that begin anew in a call of the stack around {name!r}",
            "Pass one text per row, or tokens='all', 'masked', or a mask of tokens",
        )


def _fitting(name: str, hidden: Any, mask: Any, new: slice) -> Any:
    """A mask of the user's for the new tokens: as it is, or of all tokens so far."""
    mask = torch.as_tensor(mask, device=hidden.device).bool()
    if mask.ndim == 2 and mask.shape[1] >= new.stop > hidden.shape[1]:
        mask = mask[:, new]
    if mask.shape != hidden.shape[:2]:
        raise unclear(name, hidden, mask, "mask of tokens")
    return mask


def _one_per_text(name: str, hidden: Any, call: Call | None) -> bool:
    """Whether the states are one vector per text, (b, d), and not (b, t, d)."""
    texts = None if call is None else _texts(call.given)
    if hidden.ndim not in (2, 3) or (hidden.ndim == 2 and texts not in (None, len(hidden))):
        raise unclear(name, hidden, None if call is None else call.given["attention_mask"], "mask")
    return bool(hidden.ndim == 2)


def _texts(given: Mapping[str, Any]) -> int | None:
    known = (given[key] for key in ("input_ids", "inputs_embeds", "attention_mask"))
    return next((len(value) for value in known if isinstance(value, torch.Tensor)), None)


def _mean(hidden: Any, attended: Any) -> Any:
    """Mean of the attended tokens (b, d), half types as float32."""
    wide = hidden.float() if hidden.element_size() < 4 else hidden
    wide = torch.where(attended[..., None], wide, 0)  # padding may hold anything, NaN too
    weight = attended.to(wide.dtype)
    with torch.autocast(hidden.device.type, enabled=False):  # it would round the sums
        total = torch.bmm(weight[:, None], wide)[:, 0]
    return total / weight.sum(dim=1, keepdim=True).clamp(min=1)


def _is(tokens: Any, word: str) -> bool:
    return isinstance(tokens, str) and tokens == word


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
