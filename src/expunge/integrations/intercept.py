"""What a module is called with and what it gives back: seen and changed from outside."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

__all__ = ["intercepting"]

Before = Callable[[tuple[Any, ...], dict[str, Any]], None]
After = Callable[[Any], Any]


@contextmanager
def intercepting(
    module: Any, *, before: Before | None = None, after: After | None = None
) -> Iterator[None]:
    """Call functions around every forward of a module, until the block is left.

    The `forward` of the module is wrapped. Hooks of torch would be passed over in silence where a
    library calls ``module.forward(...)`` by itself, as sentence-transformers does; and hooks which
    gather states, as transformers has them, would not all see the change. What several blocks ask
    for is done in the order in which they were entered.

    Parameters
    ----------
    module : torch.nn.Module
    before : callable, optional
        Called with the arguments, a tuple and a dictionary.
    after : callable, optional
        Called with the output; gives what is to be the output.

    Examples
    --------
    >>> import torch
    >>> from expunge.integrations.intercept import intercepting
    >>> relu = torch.nn.ReLU()
    >>> with intercepting(relu, after=lambda output: output + 1):
    ...     relu(torch.tensor([-1.0, 2.0]))
    tensor([1., 3.])
    >>> relu(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    wrap = _wraps.get(module) or _Wrap(module)
    asked = (before, after)
    wrap.active.append(asked)
    try:
        yield
    finally:
        wrap.active.remove(asked)
        if not wrap.active:
            wrap.remove(module)


class _Wrap:
    """A wrapped forward, with all that is asked for at this module."""

    def __init__(self, module: Any) -> None:
        self.active: list[tuple[Before | None, After | None]] = []
        self.own = vars(module).get("forward")  # one that another library has put there
        forward = module.forward

        @functools.wraps(forward)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            active = tuple(self.active)
            for before, _ in active:
                if before is not None:
                    before(args, kwargs)
            output = forward(*args, **kwargs)
            for _, after in active:
                if after is not None:
                    output = after(output)
            return output

        self.wrapped = module.forward = wrapped
        _wraps[module] = self

    def remove(self, module: Any) -> None:
        """Put back what was there; a wrap that another library has wrapped since does nothing."""
        _wraps.pop(module, None)
        if vars(module).get("forward") is not self.wrapped:
            return
        if self.own is None:
            del module.forward
        else:
            module.forward = self.own


_wraps: WeakKeyDictionary[Any, _Wrap] = WeakKeyDictionary()
