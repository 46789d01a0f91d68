"""What a module is called with and what it gives back: seen and changed from outside."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

__all__ = ["intercepting"]

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
Before = Callable[[tuple[Any, ...], dict[str, Any]], Arguments | None]
After = Callable[[Any], Any]
Finish = Callable[[], None]


@contextmanager
def intercepting(
    module: Any,
    *,
    before: Before | None = None,
    instead: Before | None = None,
    after: After | None = None,
    finish: Finish | None = None,
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
        Called with the arguments, a tuple and a dictionary; gives those to go on with, or None.
    instead : callable, optional
        Called with the arguments in place of the forward; gives the output.
    after : callable, optional
        Called with the output; gives what is to be the output.
    finish : callable, optional
        Called at the very end, also when an exception ends the forward.

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
    asked = _Asked(before, instead, after, finish)
    wrap.active = (*wrap.active, asked)
    try:
        yield
    finally:
        wrap.active = tuple(other for other in wrap.active if other is not asked)
        if not wrap.active:
            wrap.remove(module)


class _Asked(NamedTuple):
    """What one block asks for at one module."""

    before: Before | None
    instead: Callable[..., Any] | None
    after: After | None
    finish: Finish | None


class _Wrap:
    """A wrapped forward, with all that is asked for at this module."""

    def __init__(self, module: Any) -> None:
        self.active: tuple[_Asked, ...] = ()
        self.own = vars(module).get("forward")  # one that another library has put there
        forward = module.forward

        @functools.wraps(forward)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            active, run = self.active, forward
            try:
                for asked in active:
                    if asked.before is not None:
                        args, kwargs = asked.before(args, kwargs) or (args, kwargs)
                    if asked.instead is not None:
                        run = functools.partial(_in_place_of, asked.instead)
                output = run(*args, **kwargs)
                for asked in active:
                    if asked.after is not None:
                        output = asked.after(output)
            finally:
                for asked in active:
                    if asked.finish is not None:
                        asked.finish()
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


def _in_place_of(instead: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return instead(args, kwargs)


_wraps: WeakKeyDictionary[Any, _Wrap] = WeakKeyDictionary()
