"""What the library says in the words of Python, in those of the command line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager

from expunge.errors import InputError

__all__ = ["as_options", "renamed", "to_type"]

OPTIONS = {
    "concept": "--concept",
    "concept_type": "--concept-type",
    "drop": "--drop-columns",
    "dtype": "--dtype",
    "fresh": "--fresh",
    "in_place": "--in-place",
    "memory": "--memory",
    "methods": "--method",
    "missing": "--missing",
    "normalize": "--normalize",
    "rank": "--rank",
    "ranks": "--ranks",
    "resume": "--resume",
    "vectors": "--vectors",
}
SETTING = re.compile(rf"\b({'|'.join(OPTIONS)})=(True|False|None|'[^']*'|\"[^\"]*\")?(?![\w(])")
ARRAYS = re.compile(r"\s+as\s+X_test\s+and\s+y_test\b")
NO_TEST = re.compile(r"\bPass\s+X_test\s+and\s+y_test\b")
UNTYPED = re.compile(r"\bPass (--)")


def as_options(text: str) -> str:
    """A message with options in the place of keyword arguments.

    Parameters
    ----------
    text : str

    Returns
    -------
    str

    Examples
    --------
    >>> from expunge.commands.wording import as_options
    >>> as_options("Pass in_place=True to replace it, or say vectors='e*'.")
    "Write --in-place to replace it, or say --vectors 'e*'."
    """
    text = NO_TEST.sub("Write --holdout 0.3, say", text)
    text = ARRAYS.sub(" (fit with --holdout, or take another table)", text)
    return UNTYPED.sub(r"Write \1", SETTING.sub(_option, text))


@contextmanager
def renamed(name: str, option: str) -> Iterator[None]:
    """Say of an argument in a message that it is another, for a command that calls it so.

    Parameters
    ----------
    name, option : str
        As arguments of Python.

    Examples
    --------
    >>> from expunge.commands.wording import renamed
    >>> from expunge.errors import InputError
    >>> with renamed("ranks", "rank"):
    ...     raise InputError("Too many", "ranks=[9]", "Pass ranks='auto'")
    Traceback (most recent call last):
        ...
    expunge.errors.InputError: Too many. Received rank=[9]. Pass rank='auto'.
    """
    try:
        yield
    except InputError as error:
        parts = (error.problem, error.received, error.remedy)
        said = [re.sub(rf"\b{name}=", f"{option}=", part) for part in parts]
        raise type(error)(*said) from error


def to_type(argument: object) -> str:
    """A name as it can be typed after a command: in quotes where it has spaces or stars.

    Parameters
    ----------
    argument : str or path

    Returns
    -------
    str

    Examples
    --------
    >>> from expunge.commands.wording import to_type
    >>> to_type("people.csv"), to_type("my people.csv")
    ('people.csv', "'my people.csv'")
    """
    return shlex.quote(str(argument))


def _option(found: re.Match[str]) -> str:
    name, value = OPTIONS[found[1]], found[2]
    if value in (None, "True"):
        return name
    return f"no {name}" if value in ("False", "None") else f"{name} {value}"
