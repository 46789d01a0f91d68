"""How every command ends: warnings in one line, interrupted in one line, a closed pipe in none."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import typer

from expunge import errors
from expunge.commands.wording import as_options

__all__ = ["CLOSED_PIPE", "INTERRUPTED", "guarded", "one_line", "say"]

INTERRUPTED = 130  # as shells count an end by Ctrl-C
CLOSED_PIPE = 141  # and by a reader that has gone
OURS = tuple(
    found for name in errors.__all__ if issubclass(found := getattr(errors, name), Warning)
)


def one_line(message: object) -> str:
    """A message without line ends, in the words of the command line.

    Parameters
    ----------
    message : object

    Returns
    -------
    str
    """
    text = as_options(" ".join(str(message).split()))
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def say(message: str) -> None:
    """Write one line to the error stream.

    Parameters
    ----------
    message : str
    """
    typer.echo(f"expunge: {one_line(message)}", err=True)


def guarded(command: Callable[..., None], interrupted: str = "nothing was written") -> Any:
    """The command, ended properly whatever happens.

    Parameters
    ----------
    command : function
    interrupted : str
        What to say when the user stops it.

    Returns
    -------
    function
        With the same signature.
    """

    @wraps(command)
    def run(*args: Any, **options: Any) -> None:
        try:
            with _plain_warnings():
                command(*args, **options)
            sys.stdout.flush()
        except KeyboardInterrupt:
            say(f"interrupted; {interrupted}")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())  # or what is left would be written at the end
            raise typer.Exit(CLOSED_PIPE) from None

    return run


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Say every warning once, in one line; those of this library whatever the filters are."""
    said = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = f"warning: {message}"
        if text not in said:
            said.add(text)
            say(text)

    with warnings.catch_warnings():
        for kind in OURS:
            warnings.filterwarnings("always", category=kind)
        warnings.showwarning = show
        yield
