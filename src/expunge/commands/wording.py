"""What the library says in the words of Python, in those of the command line."""

from __future__ import annotations

import re

__all__ = ["as_options"]

OPTIONS = {
    "concept": "--concept",
    "concept_type": "--concept-type",
    "drop": "--drop-columns",
    "dtype": "--dtype",
    "fresh": "--fresh",
    "in_place": "--in-place",
    "memory": "--memory",
    "methods": "--method",
    "normalize": "--normalize",
    "rank": "--rank",
    "resume": "--resume",
    "vectors": "--vectors",
}
SETTING = re.compile(rf"\b({'|'.join(OPTIONS)})=(True|False|None|'[^']*'|\"[^\"]*\")?(?![\w(])")
ARRAYS = re.compile(r"\s+as\s+X_test\s+and\s+y_test\b")
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
    text = ARRAYS.sub(" (fit with --holdout, or take another table)", text)
    return UNTYPED.sub(r"Write \1", SETTING.sub(_option, text))


def _option(found: re.Match[str]) -> str:
    name, value = OPTIONS[found[1]], found[2]
    if value in (None, "True"):
        return name
    return f"no {name}" if value in ("False", "None") else f"{name} {value}"
