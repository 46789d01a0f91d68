"""What the stacks of a model are called with: masks, token numbers, caches; per call and thread.

A stack is the nearest module at or above another that takes token numbers and an attention mask, or
that takes images or sound: a mask belongs to the stack that received it.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Self

from expunge.errors import InputError
from expunge.integrations.attended import cached_tokens, keys_attended, padding_after_text
from expunge.integrations.hidden_states import first_states
from expunge.integrations.intercept import intercepting
from expunge.optional import require

__all__ = ["Call", "Calls", "n_tokens", "unclear"]

torch = require("torch", "transformers")

TEXT = {"input_ids", "attention_mask"}
# kinds of models whose layers run on states of shape (tokens, texts, d): with as many tokens as
# texts the shape does not show it
TOKENS_FIRST = {"xlnet", "fsmt", "mask2former", "oneformer", "bridgetower"}
OTHER = {"pixel_values", "input_features", "input_values", "pixel_values_videos"}
KEEP = ("modules", "around", "outside", "inside", "layer", "decodes")
KEPT = ("input_ids", "inputs_embeds", "attention_mask", "use_cache", "position_ids")


@dataclass
class Call:
    """One call of a stack.

    Attributes
    ----------
    given : dict
        Its arguments, as far as they tell of tokens.
    cached : int or None
        Tokens that were in the cache before; None if that is not known, but some were.
    rows : int or None
        How many images or sounds it was given, where it was given these.
    shape : tuple of int, or None
        Texts and tokens of the hidden states it was given.
    memo : dict
        What was worked out for one layer and holds for the others.
    """

    given: dict[str, Any]
    cached: int | None = 0
    rows: int | None = None
    shape: tuple[int, ...] | None = None
    memo: dict[Any, Any] = field(default_factory=dict)


class Calls:
    """The calls of the stacks around some named modules, while it is entered.

    Parameters
    ----------
    modules : dict of str to module
        All modules of a model by name.
    names : sequence of str
        Those whose hidden states will be asked about.
    """

    def __init__(self, modules: dict[str, Any], names: Any) -> None:
        self.modules = modules
        self.around = {name: _stack_around(modules, name) for name in names}
        self.outside = {name: _text_stacks_around(modules, self.around[name]) for name in names}
        self.inside = {name: self._mask_takers(name) for name in names}
        self.decodes = {name: _is_decoder(modules, self.around[name]) for name in names}
        self.layer = {name: _layer_around(modules, name, self.around[name]) for name in names}
        self.local = threading.local()  # .open: the calls going on in a thread, by stack
        self.again: dict[int, dict[str, Call]] = {}  # by thread: calls that backward goes through
        self.handles = ExitStack()

    def __enter__(self) -> Self:
        for stack in sorted(self.stacks()):
            listen = self.listener(stack)
            self.handles.enter_context(intercepting(self.modules[stack], **listen))
        return self

    def __exit__(self, *error: Any) -> None:
        self.handles.close()
        self.again.clear()

    def __getstate__(self) -> dict[str, Any]:
        return {key: vars(self)[key] for key in KEEP}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.local, self.again, self.handles = threading.local(), {}, ExitStack()

    def stacks(self) -> set[str]:
        """Names of the modules whose calls tell of tokens."""
        both = (*self.around.values(), *self.layer.values())
        around = {name for name in both if name is not None}
        return around.union(*self.inside.values(), *self.outside.values())

    def of(self, name: str) -> Call | None:
        """The call of the stack around a module; None where nothing around it takes tokens."""
        stack = self.around[name]
        if stack is None:
            return None
        going_on = self._open().get(stack)
        if going_on:
            return going_on[-1]
        again = self.again.get(threading.get_ident(), {})
        if stack in again:
            return again[stack]
        raise InputError(
            f"Module {name!r} ran before the model around it, which knows what is padding",
            f"no call of {stack or 'the model'!r} that it belongs to",
            "Run the model itself",
        )

    def tokens_of_flat(self, name: str, hidden: Any, call: Call | None) -> tuple[int, int] | None:
        """Texts b and tokens t, where states of shape (b t, d) are text after text; else None.

        Some layers run a part on such states. The layer around it must be called with (b, t, d).
        """
        tokens = None if call is None else n_tokens(call.given)
        if hidden.ndim != 2 or tokens is None or tokens[1] < 2:
            return None
        found = self._open().get(self.layer[name] or "", [])
        fits = bool(found) and found[-1].shape == tokens and len(hidden) == tokens[0] * tokens[1]
        return tokens if fits else None

    def resumption(self) -> Any:
        """What to call when a backward pass is about to run the layers of the last calls again."""
        latest = dict(getattr(self.local, "latest", {}))

        def resume() -> None:
            self.again[threading.get_ident()] = latest

        return resume

    def attended(self, name: str, hidden: Any, call: Call | None) -> tuple[Any, int]:
        """Which of all tokens so far are attended to, and where among them the new ones begin.

        Parameters
        ----------
        name : str
        hidden : tensor of shape (b, t, d)
        call : Call or None

        Returns
        -------
        bool tensor of shape (b, p + t or longer)
        int
            p, the tokens in the cache.
        """
        b, t = hidden.shape[:2]
        if call is None:
            return torch.ones((b, t), dtype=torch.bool, device=hidden.device), 0
        mask = call.given["attention_mask"]
        if mask is None:
            mask = self._mask_outside(name, call)
        tokens = n_tokens(call.given)
        keys = keys_attended(mask)
        if call.rows is not None:  # images or sound: there are not as many states as mask entries
            keys = self._keys_inside(name, (b, t), keys)
            mask = keys if keys is not None else mask
        cached = call.cached
        if cached is None:  # not counted: all but the new ones, if there is a mask, else some
            cached = 1 if keys is None else keys.shape[1] - t
        if isinstance(mask, Mapping) and keys is not None and keys.shape[1] < cached + t:
            # only layers that see a window, the newest tokens last; those before it were there
            keys = torch.nn.functional.pad(keys, (cached + t - keys.shape[1], 0), value=True)
        if keys is None and mask is None:
            keys = torch.ones((b, cached + t), dtype=torch.bool, device=hidden.device)
            keys[:, cached:] &= ~self._padding(name, call, (b, t)).to(hidden.device)
        fits = keys is not None and keys.shape[0] in (1, b) and keys.shape[1] >= cached + t
        if not fits or tokens not in (None, (b, t)) or self._tokens_first(name, hidden, call):
            raise unclear(name, hidden, mask, "attention mask")
        return keys.to(hidden.device).expand(b, -1), cached

    def _keys_inside(self, name: str, shape: tuple[int, int], keys: Any) -> Any:
        """The mask for the states themselves, which a module inside the stack was given."""
        for inner in self.inside[name]:
            found = self._open().get(inner, [])
            own = keys_attended(found[-1].given["attention_mask"]) if found else None
            if own is not None and own.shape[0] in (1, shape[0]) and own.shape[1] == shape[1]:
                return own
        if keys is not None and bool(keys.all()):
            return torch.ones(shape, dtype=torch.bool, device=keys.device)
        return keys if keys is None or keys.shape[1] == shape[1] else keys[:, :0]

    def _mask_outside(self, name: str, call: Call) -> Any:
        """The mask that a stack around this one got for the same tokens and did not pass on."""
        for stack in self.outside[name]:
            for other in self._open().get(stack, [])[-1:]:
                same = any(
                    call.given[key] is not None and call.given[key] is other.given[key]
                    for key in ("input_ids", "inputs_embeds")
                )
                if same and other.given["attention_mask"] is not None:
                    return other.given["attention_mask"]
        return None

    def _tokens_first(self, name: str, hidden: Any, call: Call) -> bool:
        """Whether the states are of shape (tokens, texts, d), or may be."""
        b, t = hidden.shape[:2]
        if b == t:
            return b > 1 and bool(self._kinds(name) & TOKENS_FIRST)
        return call.rows is not None and t == call.rows != b

    def _kinds(self, name: str) -> set[Any]:
        """Kinds of the models that a module is in, as their configurations say."""
        parts = name.split(".")
        above = [".".join(parts[:i]) for i in range(len(parts) + 1)]
        configs = (getattr(self.modules[outer], "config", None) for outer in above)
        return {getattr(config, "model_type", None) for config in configs}

    def _padding(self, name: str, call: Call, shape: tuple[int, int]) -> Any:
        """Padding of a decoder that was given no mask, behind an encoder that has one."""
        ids, stack = call.given["input_ids"], self.around[name]
        config = getattr(self.modules[stack or ""], "config", None)
        if ids is None or ids.shape != shape or not self.decodes[name]:
            return torch.zeros(shape, dtype=torch.bool)
        pad, end = (getattr(config, f"{key}_token_id", None) for key in ("pad", "eos"))
        return padding_after_text(ids, pad, end, started=call.cached != 0)

    def _open(self) -> dict[str, list[Call]]:
        if not hasattr(self.local, "open"):
            self.local.open, self.local.latest = {}, {}
        return self.local.open  # type: ignore[no-any-return]

    def listener(self, stack: str) -> dict[str, Any]:
        """What to do before and at the end of a call of a stack."""
        names = list(inspect.signature(self.modules[stack].forward).parameters)
        others = [] if set(names) >= TEXT else [key for key in names if key in OTHER]
        is_layer = stack in self.layer.values()

        def remember(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            values = {**dict(zip(names, args, strict=False)), **kwargs}
            call = Call({key: values.get(key) for key in KEPT}, cached_tokens(values))
            given: list[Any] = [values.get(key) for key in others]
            call.rows = next((len(value) for value in given if hasattr(value, "shape")), None)
            if is_layer and (states := first_states(args, kwargs)) is not None:
                call.shape = tuple(states.shape[:2]) if states.ndim == 3 else None
            self._open().setdefault(stack, []).append(call)
            self.local.latest[stack] = call

        def forget() -> None:
            going_on = self._open().get(stack)
            if going_on:  # else the model has been called before this block was entered
                going_on.pop()

        return {"before": remember, "finish": forget}

    def _mask_takers(self, name: str) -> list[str]:
        """Modules between one and its stack of images or sound that may get a mask of their own."""
        stack = self.around[name]
        if stack is None or _parameters(self.modules[stack]) >= TEXT:
            return []
        found = []
        while name != stack:
            if "attention_mask" in _parameters(self.modules[name]):
                found.append(name)
            name = name.rpartition(".")[0]
        return found


def unclear(name: str, hidden: Any, beside: Any, what: str) -> InputError:
    """The error for states that cannot be laid beside a mask or token numbers."""
    shape = tuple(beside.shape) if hasattr(beside, "shape") else None
    kind = f"shape {shape}" if beside is None or shape is not None else type(beside).__name__
    return InputError(
        f"It is not clear which states of module {name!r} belong to which token",
        f"states of shape {tuple(hidden.shape)}, {what} of {kind}",
        "Take a module whose states have the shape (texts, tokens, features), or tokens='all'",
    )


def n_tokens(given: Mapping[str, Any]) -> tuple[int, int] | None:
    """Texts and new tokens of a call, where it is given tokens."""
    for key in ("input_ids", "inputs_embeds"):
        if isinstance(given[key], torch.Tensor):
            b, t = given[key].shape[:2]
            return int(b), int(t)
    return None


def _stack_around(modules: dict[str, Any], name: str) -> str | None:
    while True:
        parameters = _parameters(modules[name])
        if parameters >= TEXT or (parameters & OTHER and "input_ids" not in parameters):
            return name
        if not name:
            return None
        name = name.rpartition(".")[0]


def _layer_around(modules: dict[str, Any], name: str, stack: str | None) -> str | None:
    """The layer that a module is a part of: the nearest member of a list, below the stack."""
    while stack is not None and name != stack:
        outer = name.rpartition(".")[0]
        above = outer.rpartition(".")[0]
        if outer != stack and isinstance(modules[above], torch.nn.ModuleList):
            return outer
        name = outer
    return None


def _text_stacks_around(modules: dict[str, Any], stack: str | None) -> list[str]:
    """Stacks of the same texts around a stack of texts, from the inside out."""
    found: list[str] = []
    if stack is None or not _parameters(modules[stack]) >= TEXT:
        return found
    while stack:
        stack = stack.rpartition(".")[0]
        parameters = _parameters(modules[stack])
        if parameters >= TEXT and "decoder_input_ids" not in parameters:
            found.append(stack)
    return found


def _is_decoder(modules: dict[str, Any], stack: str | None) -> bool:
    """Whether a stack of texts is a decoder behind an encoder, in whatever wrapper."""
    while stack:
        stack = stack.rpartition(".")[0]
        if "decoder_input_ids" in _parameters(modules[stack]):
            return True
    return False


def _parameters(module: Any) -> set[str]:
    return set(inspect.signature(module.forward).parameters)
