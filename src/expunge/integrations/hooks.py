"""Erasures inside a running model, at named modules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from expunge.erasure import Erasure
from expunge.errors import InputError
from expunge.inputs import check_choice, check_width
from expunge.integrations.backward_guard import BackwardGuard
from expunge.integrations.calls import Calls
from expunge.integrations.hidden_states import (
    in_arguments,
    in_output,
    swapped,
    swapped_argument,
)
from expunge.integrations.intercept import intercepting
from expunge.integrations.module_names import check_distinct, resolve_each
from expunge.integrations.positions import Tokens, change_at, check_tokens, without_special
from expunge.integrations.taps import Place
from expunge.maps import RowMap, as_row_map
from expunge.optional import require
from expunge.rows.apply_tensor import apply_to_tensor

__all__ = ["PLACES", "as_erasures", "erasing"]

torch = require("torch", "transformers")

PLACES = ("output", "input")


@contextmanager
def erasing(
    model: Any,
    erasures: Mapping[str, Erasure],
    *,
    tokens: Tokens = "all",
    at: Place = "output",
    tokenizer: Any = None,
) -> Iterator[Any]:
    """Run a model with erasures at some of its modules, until the block is left.

    The model is as before afterwards, also when an exception ends the block. Blocks nest: at one
    module the outer erasure comes first. Gradients pass through. Several threads may run the model.

    Parameters
    ----------
    model : torch.nn.Module
        Any Hugging Face model, or any other module.
    erasures : mapping of str to Erasure or fitted eraser
        By the names of modules as in ``model.named_modules()``, or relative to the base model, or
        by patterns such as ``"layers.*"``, or "resid", "attn", "mlp": all layers, or what attends
        and the MLP in each, before they are added to the stream. Where a module's output is a tuple
        or a ModelOutput, its hidden states (the first tensor) are erased.
    tokens : str, int, mapping, mask or callable
        Where to erase in states of shape (texts, tokens, d): "all" positions; "masked", those of
        the attention mask, not padding; "cls" or "last", the first or the last of these; "mean",
        at the mean of these, by moving all of them alike; "prompt" or "generated", those of the
        first call with a cache or of the later ones; the tokens with a number, such as
        ``tokenizer.mask_token_id``; "not special" or ``{"not": numbers}``, all tokens but these;
        those of a bool mask of shape (texts, tokens); or those that a function of the token
        numbers and the attention mask says, as such a mask. States of shape (texts, d) are erased
        as they are.
    at : {"output", "input"}
        Whether to erase what a module gives or what it is called with.
    tokenizer : Hugging Face tokenizer, optional
        For "not special".

    Yields
    ------
    torch.nn.Module
        The model.

    Raises
    ------
    InputError
        For an unknown name, with names that are close to it. At the end of the block for a module
        that did not run when the model did. During a later backward pass that runs layers again
        (gradient checkpointing).

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
    tokens = without_special(tokens, tokenizer)
    check_tokens(tokens)
    check_choice(at, PLACES, "at")
    found = as_erasures(model, erasures)
    modules = dict(model.named_modules(remove_duplicate=False))
    ran, whole = dict.fromkeys(found, False), {"model": False}
    calls = Calls(modules, () if isinstance(tokens, str) and tokens == "all" else found)
    guard = BackwardGuard(calls.resumption)
    with ExitStack() as undo:
        undo.callback(guard.close)
        undo.enter_context(calls)

        def model_ran(output: Any) -> Any:
            whole["model"] = True
            return guard.after_model(output)

        for name, erasure in found.items():
            eraser = _EraserAt(name, erasure, calls, tokens, guard, ran)
            undo.enter_context(intercepting(modules[name], **eraser.asked(at)))
        undo.enter_context(intercepting(model, after=model_ran))
        yield model
    silent = [name for name, did in ran.items() if not did]
    if silent and whole["model"]:
        raise InputError(
            "The model ran, but some modules with an erasure did not: nothing was erased there",
            ", ".join(map(repr, silent[:5])),
            "Take modules with a forward of their own, such as one of the layers",
        )


def as_erasures(model: Any, erasures: Mapping[str, Any]) -> dict[str, RowMap]:
    """Erasures by the full names of modules, after a check of both."""
    if not isinstance(model, torch.nn.Module):
        raise InputError("model is not a torch module", type(model).__name__, "Pass a model")
    found: dict[str, RowMap] = {}
    places = resolve_each(model, erasures)
    for (name, given), full in zip(erasures.items(), places, strict=True):
        try:
            erasure = as_row_map(given)
        except InputError as error:
            problem = f"What is to be done at {name!r} is not an Erasure"
            raise InputError(problem, error.received, error.remedy) from error
        twice = sorted(found.keys() & set(full.values()))
        if twice:
            raise InputError(
                "There is more than one erasure for a module",
                f"{', '.join(map(repr, twice[:3]))}, which {name!r} names too",
                "Name every module once; one `erasing` inside another does both, in that order",
            )
        found.update(dict.fromkeys(full.values(), erasure))
    check_distinct(model, found)
    return found


class _EraserAt:
    """What is done at one module."""

    def __init__(
        self,
        name: str,
        erasure: RowMap,
        calls: Calls,
        tokens: Tokens,
        guard: BackwardGuard,
        ran: dict[str, bool],
    ) -> None:
        self.name, self.erasure, self.calls, self.tokens = name, erasure, calls, tokens
        self.guard, self.ran = guard, ran

    def asked(self, at: Place) -> dict[str, Callable[..., Any]]:
        """What to ask `intercepting` for."""
        return {"before": self.before} if at == "input" else {"after": self.after}

    def before(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Arguments with their hidden states erased."""
        hidden = in_arguments(self.name, args, kwargs)
        return swapped_argument(args, kwargs, hidden, self.erased(hidden))

    def after(self, output: Any) -> Any:
        """An output with its hidden states erased; padding may be NaN there."""
        hidden = in_output(self.name, output)
        return swapped(output, hidden, self.erased(hidden))

    def erased(self, hidden: Any) -> Any:
        """Hidden states, erased at the chosen tokens."""
        check_width(
            hidden.shape[-1],
            self.erasure.n_features,
            f"The states of module {self.name!r} have",
            received=f"states of shape {tuple(hidden.shape)}",
            remedy="Pass an erasure that was fitted on states of this module",
        )
        new = change_at(self.calls, self.name, hidden, self.tokens, self._erase)
        self.ran[self.name] = True
        if torch.is_grad_enabled() or self.calls.modules[self.name].training:
            self.guard.notice(hidden, new)
        return new

    def _erase(self, states: Any) -> Any:
        return apply_to_tensor(self.erasure, states)
