"""The hidden states among what a module is called with or gives back: found, and replaced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from expunge.errors import InputError
from expunge.optional import require

__all__ = ["first_states", "in_arguments", "in_output", "swapped", "swapped_argument"]

torch = require("torch", "transformers")


def in_output(name: str, output: Any) -> Any:
    """The hidden states in an output: itself, or the first tensor of a tuple or ModelOutput."""
    found = output
    if isinstance(output, tuple | list) and output:
        found = output[0]
    elif isinstance(output, Mapping) and hasattr(output, "to_tuple"):
        found = output.get("last_hidden_state", next(iter(output.values()), None))
    if not _are_states(found):
        raise InputError(
            f"The output of module {name!r} does not begin with hidden states",
            type(output).__name__ if found is output else f"{type(output).__name__} of {found!r}",
            "Take a module that gives a tensor, a tuple or a ModelOutput",
        )
    return found


def in_arguments(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """The hidden states among arguments: the first of them that are states."""
    found = first_states(args, kwargs)
    if found is None:
        raise InputError(
            f"Module {name!r} is not called with hidden states",
            ", ".join([*(type(a).__name__ for a in args), *kwargs]) or "no arguments",
            "Take a module that is called with a tensor of floating numbers, or at='output'",
        )
    return found


def first_states(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """The first argument that is a tensor of floating numbers, or None."""
    values = (*args, kwargs.get("hidden_states"), *kwargs.values())
    return next((value for value in values if _are_states(value)), None)


def swapped_argument(
    args: tuple[Any, ...], kwargs: dict[str, Any], old: Any, new: Any
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments with `new` wherever `old` was."""
    return (
        tuple(new if value is old else value for value in args),
        {key: new if value is old else value for key, value in kwargs.items()},
    )


def swapped(output: Any, old: Any, new: Any) -> Any:
    """`output` with `new` wherever `old` was, as in `hidden_states[-1]` of a ModelOutput."""
    if output is old:
        return new
    if isinstance(output, tuple | list):
        parts = [swapped(part, old, new) for part in output]
        return type(output)(*parts) if hasattr(output, "_fields") else type(output)(parts)
    if isinstance(output, Mapping) and hasattr(output, "to_tuple"):
        for key, value in list(output.items()):
            output[key] = swapped(value, old, new)  # type: ignore[index]  # a ModelOutput can
    return output


def _are_states(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point() and value.ndim > 1
