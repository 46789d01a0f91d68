"""Which vectors of a layer's output are meant: all tokens, one of them, their mean.

Notation: hidden states H of shape (b, t, d) for b texts of t tokens, or (b, d) where a module gives
one vector per text. What counts as a token is read from the attention mask of the nearest enclosing
module that takes token numbers and a mask, so no model is known by name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Literal, Self

from expunge.errors import InputError
from expunge.integrations.intercept import intercepting
from expunge.optional import require

__all__ = ["CHOICES", "Calls", "Tokens", "change_at", "check_tokens", "rows_at"]

torch = require("torch", "transformers")

CHOICES = ("all", "masked", "cls", "last", "mean")
Tokens = Literal["all", "masked", "cls", "last", "mean"] | int


def check_tokens(tokens: Any, name: str = "tokens", choices: tuple[str, ...] = CHOICES) -> None:
    """Refuse what is neither a choice nor a token number."""
    number = isinstance(tokens, int) and not isinstance(tokens, bool) and tokens >= 0
    if not number and tokens not in choices:
        listed = ", ".join(map(repr, choices))
        raise InputError(
            f"Unknown {name}",
            repr(tokens),
            f"Pass one of {listed}, or the number of a token, e.g. tokenizer.mask_token_id",
        )


class Calls:
    """What the modules around some named modules are called with, while it is entered.

    Parameters
    ----------
    modules : dict of name to module
        All modules of a model.
    names : sequence of str
        Those whose hidden states will be asked about.
    """

    def __init__(self, modules: dict[str, Any], names: Any) -> None:
        self.modules = modules
        self.around = {name: _stack_around(modules, name) for name in names}
        self.given: dict[str, dict[str, Any]] = {}
        self.handles = ExitStack()

    def __enter__(self) -> Self:
        for stack in {name for name in self.around.values() if name is not None}:
            listen = intercepting(self.modules[stack], before=self._remember(stack))
            self.handles.enter_context(listen)
        return self

    def __exit__(self, *error: Any) -> None:
        self.handles.close()
        self.given.clear()

    def _remember(self, stack: str) -> Callable[[tuple[Any, ...], dict[str, Any]], None]:
        names = list(inspect.signature(self.modules[stack].forward).parameters)

        def remember(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            values = {**dict(zip(names, args, strict=False)), **kwargs}
            self.given[stack] = {key: values.get(key) for key in ("input_ids", "attention_mask")}

        return remember

    def _given(self, name: str, key: str) -> Any:
        stack = self.around[name]
        if stack is None:
            return None
        if stack not in self.given:
            raise InputError(
                f"Module {name!r} ran before the model around it, which knows what is padding",
                f"no call of {stack or 'the model'!r} yet",
                "Run the model itself",
            )
        return self.given[stack][key]

    def one_per_text(self, name: str, hidden: Any) -> bool:
        """Whether the states are one vector per text, (b, d), and not (b, t, d)."""
        mask = self._given(name, "attention_mask")
        if hidden.ndim not in (2, 3) or (mask is not None and len(mask) != len(hidden)):
            raise _unclear(name, hidden, mask, "attention mask")
        return bool(hidden.ndim == 2)

    def chosen(self, name: str, hidden: Any, tokens: Tokens) -> Any:
        """Positions of shape (b, t) that `tokens` names; padding is never among them."""
        b, t = hidden.shape[:2]
        mask = self._given(name, "attention_mask")
        if mask is None:
            mask = torch.ones((b, t), device=hidden.device)
        if mask.ndim != 2 or mask.shape[1] < t:
            raise _unclear(name, hidden, mask, "attention mask")
        attended = mask.to(hidden.device).bool()
        if tokens in ("cls", "last"):
            count = attended.cumsum(dim=1)
            attended = attended & (count == (1 if tokens == "cls" else count[:, -1:]))
        attended = attended[:, mask.shape[1] - t :]  # the others are in a cache
        if not isinstance(tokens, int):
            return attended
        ids = self._given(name, "input_ids")
        if ids is None or ids.shape != hidden.shape[:2]:
            raise _unclear(name, hidden, ids, "token numbers")
        return attended & (ids.to(hidden.device) == tokens)


def change_at(calls: Calls, name: str, hidden: Any, tokens: Tokens, change: Any) -> Any:
    """Hidden states with `change` applied at the chosen tokens, the others as they were.

    For "mean" every attended token of a text is moved by the same vector, the one that takes
    their mean m to change(m).
    """
    if tokens == "all" or calls.one_per_text(name, hidden):
        return change(hidden)
    chosen = calls.chosen(name, hidden, tokens)
    if tokens == "masked":
        return torch.where(chosen[..., None], change(hidden), hidden)
    if tokens == "mean":
        mean = _mean(hidden, chosen)
        shift = (change(mean) - mean).to(hidden.dtype)
        with torch.autocast(hidden.device.type, enabled=False):
            return torch.baddbmm(hidden, chosen[..., None].to(hidden.dtype), shift[:, None])
    out = hidden.clone()
    out[chosen] = change(hidden[chosen])
    return out


def rows_at(calls: Calls, name: str, hidden: Any, tokens: Tokens) -> tuple[Any, Any, Any]:
    """The chosen vectors as rows (k, d), with the text and the position each belongs to.

    Padding is never among them. For "mean", and where a module gives one vector per text, the
    position is 0.
    """
    single = calls.one_per_text(name, hidden)
    if single or tokens == "mean":
        hidden = hidden if single else _mean(hidden, calls.chosen(name, hidden, tokens))
        text = torch.arange(len(hidden), device=hidden.device)
        return hidden, text, torch.zeros_like(text)
    chosen = calls.chosen(name, hidden, tokens)
    text, position = chosen.nonzero(as_tuple=True)
    return hidden[chosen], text, position


def _mean(hidden: Any, attended: Any) -> Any:
    """Mean of the attended tokens (b, d), half types as float32."""
    wide = hidden.float() if hidden.element_size() < 4 else hidden
    wide = torch.where(attended[..., None], wide, 0)  # padding may hold anything, NaN too
    weight = attended.to(wide.dtype)
    with torch.autocast(hidden.device.type, enabled=False):  # it would round the sums
        total = torch.bmm(weight[:, None], wide)[:, 0]
    return total / weight.sum(dim=1, keepdim=True).clamp(min=1)


def _stack_around(modules: dict[str, Any], name: str) -> str | None:
    """The nearest module at or above `name` that takes token numbers and an attention mask."""
    while True:
        parameters = inspect.signature(modules[name].forward).parameters
        if {"input_ids", "attention_mask"} <= set(parameters):
            return name
        if not name:
            return None
        name = name.rpartition(".")[0]


def _unclear(name: str, hidden: Any, beside: Any, what: str) -> InputError:
    shape = None if beside is None else tuple(beside.shape)
    return InputError(
        f"It is not clear which states of module {name!r} belong to which token",
        f"states of shape {tuple(hidden.shape)}, {what} of shape {shape}",
        "Take a module whose output has the shape (texts, tokens, features)",
    )
