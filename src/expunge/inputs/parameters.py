"""Parameters: ranks, numbers, choices and seeds."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np

from expunge.errors import InputError

__all__ = ["check_choice", "check_list", "check_number", "check_rank", "check_rng"]


def check_rank(rank: Any, n_features: int, name: str = "rank") -> int | Literal["auto"]:
    """`rank` as a whole number from 1 to d - 1, or "auto".

    Parameters
    ----------
    rank : int or "auto"
    n_features : int
    name : str
        Of the argument.

    Returns
    -------
    int or "auto"
    """
    if isinstance(rank, str) and rank == "auto":
        return "auto"
    whole = isinstance(rank, int | np.integer) and not isinstance(rank, bool | np.bool_)
    if not whole or not 1 <= rank < n_features:
        limit = f"from 1 to {n_features - 1}" if n_features > 1 else "(none fits a single feature)"
        raise InputError(
            f"rank must be a whole number {limit}, below the number of features, {n_features}",
            f"rank={rank!r}",
            f"Pass such a rank, or {name}='auto' for the concept's own",
        )
    return int(rank)


def check_choice(value: Any, choices: tuple[str, ...], name: str) -> None:
    """Refuse a parameter that is not one of its choices."""
    if not isinstance(value, str) or value not in choices:
        raise InputError(
            f"Unknown {name}", repr(value), f"Pass one of {', '.join(map(repr, choices))}"
        )


def check_number(
    value: Any,
    name: str,
    *,
    least: float = 0.0,
    most: float = sys.float_info.max,
    whole: bool = False,
    strict: bool = False,
) -> None:
    """Refuse a parameter that is not a number within its limits.

    Parameters
    ----------
    value : object
    name : str
    least, most : float
        Limits, themselves allowed; the default for `most` allows all but infinity.
    whole : bool
        Whether only whole numbers will do.
    strict : bool
        Whether `least` itself is refused.

    Examples
    --------
    >>> from expunge.inputs import check_number
    >>> check_number(0, "max_iter", least=1, whole=True)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    expunge.errors.InputError: max_iter must be a whole number of at least 1. Received max_iter=0...
    """
    number = value.item() if isinstance(value, np.generic) else value
    fits = isinstance(number, Integral if whole else Real) and not isinstance(number, bool)
    if fits and least <= number <= most and not (strict and number == least):
        return
    kind = "whole number" if whole else "number"
    limits = f"above {least:g}" if strict else f"of at least {least:g}"
    if most < sys.float_info.max:
        limits += f" and at most {most:g}"
    raise InputError(f"{name} must be a {kind} {limits}", f"{name}={value!r}", "Pass such a number")


def check_list(values: Any, name: str) -> list[Any]:
    """Several things as a list.

    Parameters
    ----------
    values : list, tuple, range, array, series or another iterable
        Not text, bytes or a mapping, which hold something else than their entries.
    name : str

    Returns
    -------
    list

    Examples
    --------
    >>> from expunge.inputs import check_list
    >>> check_list(range(2), "ranks")
    [0, 1]
    """
    try:
        if isinstance(values, str | bytes | Mapping | type) or hasattr(values, "columns"):
            raise TypeError("its entries are not meant")
        return list(values)
    except Exception as error:  # whatever the object's own methods raise
        raise InputError(
            f"{name} must be a list", f"{type(values).__name__} ({error})", "Pass a list"
        ) from error


def check_rng(random_state: Any) -> np.random.Generator:
    """The generator of a seed; None is the seed 0, so that equal fits are equal.

    Parameters
    ----------
    random_state : int, Generator, RandomState or None

    Returns
    -------
    numpy.random.Generator
    """
    seed = 0 if random_state is None else random_state
    made = isinstance(seed, np.random.Generator | np.random.RandomState)
    if not made and (not isinstance(seed, Integral) or isinstance(seed, bool) or seed < 0):
        raise InputError(
            "random_state does not fix a random generator",
            f"random_state={random_state!r}",
            "Pass a whole number that is not negative, a numpy.random.Generator or None",
        )
    if isinstance(seed, np.random.RandomState):
        return np.random.Generator(seed._bit_generator)
    return np.random.default_rng(seed)
