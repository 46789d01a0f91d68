"""Erasures that stay in a model: it can be pickled, copied, sent to other processes, compiled."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from expunge.errors import InputError
from expunge.integrations.calls import Calls
from expunge.integrations.hidden_states import (
    in_arguments,
    in_output,
    swapped,
    swapped_argument,
)
from expunge.integrations.hooks import as_erasures
from expunge.integrations.positions import Tokens, change_at, check_tokens
from expunge.integrations.scrubbing import Scrubbing
from expunge.integrations.taps import Place
from expunge.integrations.torch import ErasureLayer
from expunge.optional import require

__all__ = ["install", "uninstall"]

torch = require("torch", "transformers")


def install(model: Any, scrubbing: Any, *, force: bool = False) -> Any:
    """Let a model erase from now on, without a block around it.

    The model can be pickled and copied, and does the same in other processes. With tokens="all" it
    compiles without graph breaks (``fullgraph=True``) where the model does. Its weights are as they
    were: ``save_pretrained`` saves the model without the erasures; see `bake`.

    Parameters
    ----------
    model : torch.nn.Module
        Changed in place.
    scrubbing : Scrubbing, or mapping of str to Erasure
        A mapping is for all tokens of the outputs of modules.
    force : bool
        Whether to take a scrubbing that was fitted on another model.

    Returns
    -------
    torch.nn.Module
        The same model.

    Examples
    --------
    >>> import torch
    >>> import expunge as ex
    >>> from expunge.integrations.transformers import install, uninstall
    >>> model = torch.nn.Sequential(torch.nn.Identity(), torch.nn.Flatten())
    >>> x, first = torch.tensor([[3.0, 4.0]]), ex.Erasure([[1.0], [0.0]], [[1.0, 0.0]])
    >>> install(model, {"0": first})(x)
    tensor([[0., 4.]])
    >>> uninstall(model)(x)
    tensor([[3., 4.]])
    """
    if not isinstance(scrubbing, Scrubbing):
        scrubbing = Scrubbing(scrubbing)
    scrubbing.check_model(model, force=force)
    tokens = scrubbing.tokens
    check_tokens(tokens)
    erasures = as_erasures(model, scrubbing)
    modules = dict(model.named_modules(remove_duplicate=False))
    every = isinstance(tokens, str) and tokens == "all"
    calls = None if every else Calls(modules, list(erasures))
    stacks = set() if calls is None else calls.stacks()
    names = [*dict.fromkeys((*erasures, *stacks))]
    taken = [name for name in names if "forward" in vars(modules[name])]
    if taken:
        raise InputError(
            "Something has been put around these modules already",
            ", ".join(map(repr, taken[:5])),
            "Call uninstall(model) first, and leave blocks of erasing; take `erasing` where "
            "accelerate has spread the model over devices",
        )
    first = next(model.parameters(), None)
    for name in names:
        module, layer = modules[name], None
        if name in erasures:
            layer = ErasureLayer(erasures[name], device=None if first is None else first.device)
        stack = name if name in stacks else None
        module.forward = _Installed(module, name, layer, tokens, scrubbing.at, calls, stack)
    return model


def uninstall(model: Any) -> Any:
    """Take out of a model what `install` put there.

    Parameters
    ----------
    model : torch.nn.Module
        Changed in place.

    Returns
    -------
    torch.nn.Module
        The same model.
    """
    for module in model.modules():
        if isinstance(vars(module).get("forward"), _Installed):
            del module.forward
    return model


class _Installed:
    """The forward of a module, with an erasure, or with a look at what a stack is called with."""

    def __init__(
        self,
        module: Any,
        name: str,
        layer: ErasureLayer | None,
        tokens: Tokens,
        at: Place,
        calls: Calls | None,
        stack: str | None,
    ) -> None:
        self.module, self.name, self.layer = module, name, layer
        self.tokens, self.at, self.calls, self.stack = tokens, at, calls, stack

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(type(self.module).forward.__get__(self.module))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.calls is None or self.stack is None:
            return self._run(args, kwargs)
        look = self.calls.listener(self.stack)
        look["before"](args, kwargs)
        try:
            return self._run(args, kwargs)
        finally:
            look["finish"]()

    def _run(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        forward = type(self.module).forward
        if self.layer is None:
            return forward(self.module, *args, **kwargs)
        if self.at == "input":
            hidden = in_arguments(self.name, args, kwargs)
            args, kwargs = swapped_argument(args, dict(kwargs), hidden, self._erased(hidden))
            return forward(self.module, *args, **kwargs)
        output = forward(self.module, *args, **kwargs)
        hidden = in_output(self.name, output)
        return swapped(output, hidden, self._erased(hidden))

    def _erased(self, hidden: Any) -> Any:
        assert self.layer is not None
        if self.layer.left.device != hidden.device:
            self.layer.to(hidden.device)
        if self.calls is None:
            return self.layer(hidden)
        return change_at(self.calls, self.name, hidden, self.tokens, self.layer)
