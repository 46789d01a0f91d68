"""From what is typed to an eraser: its name in any case, its parameters as text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from expunge.erasers import ERASERS
from expunge.erasers.base import BaseEraser
from expunge.errors import InputError
from expunge.files.naming import nearest

__all__ = [
    "check_settings",
    "find_method",
    "find_methods",
    "make_eraser",
    "method_names",
    "parse_rank",
    "parse_settings",
]

OBJECTS = ("callback", "classifier")  # parameters that cannot be typed
BORDER = re.compile(r"(?<=[a-z])(?=[A-Z])")  # between the words of a name
WORDS = {"true": True, "false": False, "none": None, "null": None}


def method_names() -> list[str]:
    """How methods are called on the command line.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from expunge.commands.method_settings import method_names
    >>> {"rlace", "oracle-leace", "mean-projection"} <= {*method_names()}
    True
    """
    return [BORDER.sub("-", name).lower() for name in ERASERS]


def find_methods(given: Sequence[str] | None) -> list[str] | None:
    """Names of erasers as an option has them that may be repeated, or hold commas; None of none.

    Parameters
    ----------
    given : sequence of str, optional

    Returns
    -------
    list of str, or None

    Examples
    --------
    >>> from expunge.commands.method_settings import find_methods
    >>> find_methods(["rlace,leace", "fold"])
    ['RLACE', 'LEACE', 'FoldEraser']
    """
    names = [name.strip() for part in given or () for name in part.split(",")]
    return [find_method(name).__name__ for name in names] or None


def find_method(name: str) -> type[BaseEraser]:
    """The eraser of a name, in any case, with or without hyphens and the word "eraser".

    Parameters
    ----------
    name : str

    Returns
    -------
    class

    Raises
    ------
    InputError
        With the nearest name.

    Examples
    --------
    >>> from expunge.commands.method_settings import find_method
    >>> find_method("mean-projection").__name__, find_method("fold").__name__
    ('MeanProjection', 'FoldEraser')
    """
    known = {own.lower().removesuffix("eraser"): eraser for own, eraser in ERASERS.items()}
    asked = re.sub("[-_ ]", "", name.lower()).removesuffix("eraser")
    if asked not in known:
        short = [own.removesuffix("-eraser") for own in method_names()]
        raise InputError(
            f"Unknown method{nearest(name.lower(), [*method_names(), *short])}",
            repr(name),
            f"Take one of {', '.join(method_names())}",
        )
    return known[asked]


def parse_rank(text: str) -> int | str:
    """A rank as it is typed: a whole number, or "auto".

    Parameters
    ----------
    text : str

    Returns
    -------
    int or "auto"

    Examples
    --------
    >>> from expunge.commands.method_settings import parse_rank
    >>> parse_rank("3"), parse_rank("auto")
    (3, 'auto')
    """
    try:
        return "auto" if text.strip().lower() == "auto" else int(text)
    except ValueError:
        raise InputError(
            "A rank is a whole number or auto", repr(text), "Write --rank 1, say"
        ) from None


def parse_settings(settings: Sequence[str]) -> dict[str, Any]:
    """NAME=VALUE pairs: numbers, true, false and none as such, anything else as text.

    Parameters
    ----------
    settings : sequence of str

    Returns
    -------
    dict

    Raises
    ------
    InputError
        For what is no such pair, and for a name that comes twice.

    Examples
    --------
    >>> from expunge.commands.method_settings import parse_settings
    >>> parse_settings(["alpha=1e-3", "fit_intercept=false", "loss=hinge"])
    {'alpha': 0.001, 'fit_intercept': False, 'loss': 'hinge'}
    """
    found: dict[str, Any] = {}
    for setting in settings:
        name, sign, value = setting.partition("=")
        name = name.strip().replace("-", "_")
        if not (name and sign and value.strip()) or name in found:
            problem = "names a parameter twice" if name in found else "takes NAME=VALUE"
            raise InputError(f"--set {problem}", repr(setting), "Write alpha=1e-3, say")
        found[name] = _value(value.strip())
    return found


def check_settings(settings: Mapping[str, Any], known: Sequence[str], owner: str) -> None:
    """Refuse a parameter that there is not, with the nearest that there is.

    Parameters
    ----------
    settings : mapping of str to anything
    known : sequence of str
    owner : str
        Whose parameters they are.
    """
    for name in settings:
        if name not in known:
            raise InputError(
                f"{owner} has no parameter {name!r}{nearest(name, known)}",
                f"{name}={settings[name]!r}",
                f"Its parameters are {', '.join(known) or 'none'}",
            )


def make_eraser(
    method: str,
    settings: Mapping[str, Any],
    *,
    rank: str | None = None,
    strength: float | None = None,
    concept_type: str = "auto",
    seed: int = 0,
) -> BaseEraser:
    """An eraser that is not fitted yet.

    Parameters
    ----------
    method : str
    settings : mapping of str to anything
        Of `parse_settings`.
    rank : str, optional
    strength : float, optional
    concept_type : str
        Passed on unless it is "auto".
    seed : int
        For methods that are random.

    Returns
    -------
    BaseEraser
    """
    eraser = find_method(method)
    known = [name for name in eraser().get_params(deep=False) if name not in OBJECTS]
    asked: dict[str, Any] = {}
    if rank is not None:
        asked["rank"] = parse_rank(rank)
    if strength is not None:
        asked["strength"] = strength
    if concept_type != "auto":
        asked["concept_type"] = concept_type
    if twice := sorted({*asked} & {*settings}):
        raise InputError(
            "A parameter was given twice",
            f"--set {twice[0]} and --{twice[0].replace('_', '-')}",
            "Leave one out",
        )
    asked.update(settings)
    check_settings(asked, known, eraser.__name__)
    if "random_state" in known:
        asked.setdefault("random_state", seed)
    return eraser(**asked)


def _value(text: str) -> Any:
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    for read in (json.loads, float):
        try:
            return read(text)
        except ValueError:
            pass
    return text
