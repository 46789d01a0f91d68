"""Erasures inside a running model: hooks at named modules, and taps that listen there."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Self

from expunge.erasure import Erasure
from expunge.errors import InputError
from expunge.inputs import check_width
from expunge.integrations.intercept import intercepting
from expunge.integrations.positions import Calls, Tokens, change_at, check_tokens
from expunge.optional import require
from expunge.rows.apply_tensor import apply_to_tensor

__all__ = ["Taps", "erasing", "find_modules"]

torch = require("torch", "transformers")

Change = Callable[[Any], Any]


@contextmanager
def erasing(
    model: Any, erasures: Mapping[str, Erasure], *, tokens: Tokens = "all"
) -> Iterator[Any]:
    """Run a model with erasures at the outputs of some of its modules, until the block is left.

    The model is as before afterwards, also when an exception ends the block. Blocks nest: at one
    module the outer erasure comes first. Gradients pass through.

    Parameters
    ----------
    model : torch.nn.Module
        Any Hugging Face model, or any other module.
    erasures : mapping of str to Erasure
        By the names of modules as in ``model.named_modules()``. Where a module's output is a tuple
        or a ModelOutput, its hidden states (the first tensor) are erased.
    tokens : {"all", "masked", "cls", "last", "mean"} or int
        Where to erase in states of shape (texts, tokens, d): at all positions; at those of the
        attention mask, not at padding; at the first or the last of these; at the mean of these,
        by moving all of them alike; or at the tokens with this number, such as
        ``tokenizer.mask_token_id``. States of shape (texts, d) are erased as they are.

    Yields
    ------
    torch.nn.Module
        The model.

    Raises
    ------
    InputError
        For an unknown name, with names that are close to it.

    Examples
    --------
    >>> import torch
    >>> import expunge as ex
    >>> model = torch.nn.Sequential(torch.nn.Identity(), torch.nn.Flatten())
    >>> x, first = torch.tensor([[3.0, 4.0]]), ex.Erasure([[1.0], [0.0]], [[1.0, 0.0]])
    >>> with ex.integrations.transformers.erasing(model, {"0": first}):
    ...     model(x)
    tensor([[0., 4.]])
    >>> model(x)
    tensor([[3., 4.]])
    """
    check_tokens(tokens)
    modules = find_modules(model, erasures)
    for name, erasure in erasures.items():
        if not isinstance(erasure, Erasure):
            raise InputError(
                f"What is to be done at {name!r} is not an Erasure",
                type(erasure).__name__,
                "Pass the erasure_ of a fitted eraser, or Erasure.load(path)",
            )
    with ExitStack() as undo:
        calls = Calls(modules, () if tokens == "all" else erasures)
        undo.enter_context(calls)
        for name, erasure in erasures.items():
            change = _change(name, erasure, calls, tokens)
            undo.enter_context(intercepting(modules[name], after=change))
        yield model


def find_modules(model: Any, names: Any) -> dict[str, Any]:
    """All modules of a model by name, after a check that these names are among them."""
    if not isinstance(model, torch.nn.Module):
        raise InputError("model is not a torch module", type(model).__name__, "Pass a model")
    modules = dict(model.named_modules(remove_duplicate=False))
    for name in names:
        if name in modules:
            continue
        close = [known for known in modules if known.endswith(f".{name}")]
        close += difflib.get_close_matches(str(name), modules, n=5, cutoff=0.4)
        listed = ", ".join(repr(known) for known in dict.fromkeys(close[:5]))
        raise InputError(
            "The model has no module of this name",
            repr(name),
            f"Close names: {listed}" if close else "See the names in model.named_modules()",
        )
    return modules


class Taps:
    """Listens to the outputs of named modules, while it is entered.

    Parameters
    ----------
    model : torch.nn.Module
    names : sequence of str
    receive : callable
        Called with a module's name, its hidden states and the `Calls` around it.
    expected : int, optional
        Outputs of one pass, if known: a pass ends with the last of them. Else the first pass runs
        through, and tells.
    """

    def __init__(
        self,
        model: Any,
        names: Sequence[str],
        receive: Callable[[str, Any, Calls], None],
        expected: int | None = None,
    ) -> None:
        self.model, self.names, self.receive = model, names, receive
        self.modules = find_modules(model, names)
        self.calls = Calls(self.modules, names)
        self.order: list[str] = []  # the names in the order their modules ran
        self.expected = expected
        self.handles = ExitStack()

    def __enter__(self) -> Self:
        with self.handles:
            self.handles.enter_context(self.calls)
            for name in self.names:
                listen = intercepting(self.modules[name], after=self._listener(name))
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

    def _listener(self, name: str) -> Change:
        def listen(output: Any) -> Any:
            self.receive(name, _hidden(name, output), self.calls)
            self.order.append(name)
            if len(self.order) == self.expected:
                raise _Enough
            return output

        return listen


class _Enough(Exception):
    """Ends a forward pass of which nothing more is wanted."""


def _change(name: str, erasure: Erasure, calls: Calls, tokens: Tokens) -> Change:
    """A module's output -> the same with its hidden states erased; padding may be NaN there."""

    def erase(states: Any) -> Any:
        return apply_to_tensor(erasure, states)

    def change(output: Any) -> Any:
        hidden = _hidden(name, output)
        check_width(
            hidden.shape[-1],
            erasure.n_features,
            f"The states of module {name!r} have",
            received=f"states of shape {tuple(hidden.shape)}",
            remedy="Pass an erasure that was fitted on states of this module",
        )
        return _swap(output, hidden, change_at(calls, name, hidden, tokens, erase))

    return change


def _hidden(name: str, output: Any) -> Any:
    """The hidden states in an output: itself, or the first tensor of a tuple or ModelOutput."""
    found = output
    if isinstance(output, tuple | list) and output:
        found = output[0]
    elif isinstance(output, Mapping) and hasattr(output, "to_tuple"):
        found = output.get("last_hidden_state", next(iter(output.values()), None))
    if not isinstance(found, torch.Tensor) or not found.is_floating_point():
        raise InputError(
            f"The output of module {name!r} does not begin with hidden states",
            type(output).__name__ if found is output else f"{type(output).__name__} of {found!r}",
            "Take a module that gives a tensor, a tuple or a ModelOutput",
        )
    return found


def _swap(output: Any, old: Any, new: Any) -> Any:
    """`output` with `new` wherever `old` was, as in `hidden_states[-1]` of a ModelOutput."""
    if output is old:
        return new
    if isinstance(output, tuple | list):
        parts = [_swap(part, old, new) for part in output]
        return type(output)(*parts) if hasattr(output, "_fields") else type(output)(parts)
    if isinstance(output, Mapping) and hasattr(output, "to_tuple"):
        for key, value in list(output.items()):
            output[key] = _swap(value, old, new)  # type: ignore[index]  # a ModelOutput can
    return output
