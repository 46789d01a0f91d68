"""Taps: they listen to the hidden states of named modules while a model runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any, Literal, Self

from expunge.errors import InputError
from expunge.integrations.calls import Calls
from expunge.integrations.hidden_states import in_arguments, in_output
from expunge.integrations.intercept import intercepting
from expunge.optional import require

__all__ = ["Place", "Taps"]

torch = require("torch", "transformers")

Place = Literal["input", "output"]


class Taps:
    """Listens to the inputs or outputs of named modules, while it is entered.

    Parameters
    ----------
    model : torch.nn.Module
    names : sequence of str
        Full names of modules.
    receive : callable
        Called with a module's name, its hidden states and the `Calls` around it.
    expected : int, optional
        How often the modules run in one pass, if known: a pass ends with the last of them. Else
        the first pass runs through, and tells.
    at : {"output", "input"}
        Which states of the modules.
    """

    def __init__(
        self,
        model: Any,
        names: Sequence[str],
        receive: Callable[[str, Any, Calls], None],
        expected: int | None = None,
        at: Place = "output",
    ) -> None:
        self.model, self.names, self.receive, self.at = model, names, receive, at
        self.modules = dict(model.named_modules(remove_duplicate=False))
        self.calls = Calls(self.modules, names)
        self.order: list[str] = []  # the names in the order their modules ran
        self.expected = expected
        self.handles = ExitStack()

    def __enter__(self) -> Self:
        with self.handles:
            self.handles.enter_context(self.calls)
            for name in self.names:
                listen = intercepting(self.modules[name], **self._listener(name))
                self.handles.enter_context(listen)
            self.handles = self.handles.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self.handles.close()

    def run(self, inputs: Any) -> None:
        """One pass without gradients; it ends with the last module listened to."""
        self.order.clear()
        with torch.no_grad(), suppress(_Enough):
            self.model(**inputs) if isinstance(inputs, Mapping) else self.model(inputs)
        silent = [name for name in self.names if name not in self.order]
        if silent:
            raise InputError(
                "Some modules do not run when the model does",
                ", ".join(map(repr, silent[:5])),
                "Take modules with a forward of their own, such as one of the layers",
            )
        self.expected = len(self.order)

    def run_through(self, inputs: Any) -> Any:
        """One whole pass without gradients, with what the model gives."""
        self.expected = None
        self.order.clear()
        with torch.no_grad():
            return self.model(**inputs) if isinstance(inputs, Mapping) else self.model(inputs)

    def _listener(self, name: str) -> dict[str, Any]:
        def heard(states: Any) -> None:
            self.receive(name, states, self.calls)
            self.order.append(name)
            if len(self.order) == self.expected:
                raise _Enough

        def before(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            heard(in_arguments(name, args, kwargs))

        def after(output: Any) -> Any:
            heard(in_output(name, output))
            return output

        return {"before": before} if self.at == "input" else {"after": after}


class _Enough(Exception):
    """Ends a forward pass of which nothing more is wanted."""
