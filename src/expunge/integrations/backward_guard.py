"""Refuses a backward pass that would run layers once more without the erasures they ran with.

Gradient checkpointing runs a layer a second time during the backward pass. If the block of
`erasing` has ended by then, that run is without the erasures, and the gradients are wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from expunge.errors import InputError
from expunge.optional import require

__all__ = ["BackwardGuard"]

torch = require("torch", "transformers")
checkpointing = require("torch.utils.checkpoint", "transformers")


class BackwardGuard:
    """Watches what comes out of modules that run inside gradient checkpointing.

    Parameters
    ----------
    resumption : callable, optional
        Called when a model has run; gives what to call when backward comes to what it gave.

    Examples
    --------
    >>> import torch
    >>> from expunge.integrations.backward_guard import BackwardGuard
    >>> guard, x = BackwardGuard(), torch.ones(2, requires_grad=True)
    >>> guard.watch(y := 2 * x)
    >>> guard.close()
    >>> try:
    ...     y.sum().backward()
    ... except ValueError as error:
    ...     print(str(error).partition(".")[0])
    The backward pass runs layers again, but the block of their erasures has ended
    """

    def __init__(self, resumption: Callable[[], Callable[[], None]] | None = None) -> None:
        self.open, self.seen, self.resumption = True, False, resumption

    def notice(self, *states: Any) -> None:
        """Look whether we are inside gradient checkpointing, and watch these tensors if so."""
        if not torch.compiler.is_compiling() and _inside_checkpoint():
            self.seen = True
            self.watch(states)

    def after_model(self, output: Any) -> Any:
        """The model's output, watched if a part of it ran inside gradient checkpointing."""
        if self.seen:
            self.watch(output)
        return output

    def watch(self, output: Any) -> None:
        """Let the backward pass through these tensors ask whether the block has ended."""
        resume = None if self.resumption is None else self.resumption()

        def ask(gradient: Any) -> None:
            if resume is not None and self.open:
                resume()
            self._ask()

        for tensor in _tensors(output):
            if tensor.requires_grad:
                tensor.register_hook(ask)

    def close(self) -> None:
        """The block ends."""
        self.open = False

    def _ask(self) -> None:
        if not self.open:
            raise InputError(
                "The backward pass runs layers again, but the block of their erasures has ended",
                "gradient checkpointing, and backward() after the block",
                "Call backward() inside the block",
            )


def _inside_checkpoint() -> bool:
    frame, globals_ = sys._getframe(1), vars(checkpointing)
    while frame is not None:
        if frame.f_globals is globals_:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def _tensors(output: Any) -> Iterator[Any]:
    if isinstance(output, torch.Tensor):
        yield output
    elif isinstance(output, Mapping):
        yield from _tensors(tuple(output.values()))
    elif isinstance(output, tuple | list):
        for part in output:
            yield from _tensors(part)
