"""Numbers and words as a reader wants to see them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = [
    "between",
    "cleaned",
    "clip",
    "count",
    "number",
    "percent",
    "rounded",
    "score",
    "scored",
    "signed",
]

# what HTML and JSON cannot carry, and signs that change the direction of the text around them
UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")

Interval = Mapping[str, float]


def percent(share: float | None, digits: int = 1) -> str:
    """A share as percent.

    Parameters
    ----------
    share : float or None
    digits : int
        After the point.

    Returns
    -------
    str

    Examples
    --------
    >>> from expunge.report.values import percent
    >>> percent(0.5132), percent(None)
    ('51.3%', 'not known')
    """
    return "not known" if share is None else f"{share:.{digits}%}"


def count(n: int | None) -> str:
    """A number of things, with thousands apart.

    Parameters
    ----------
    n : int or None

    Returns
    -------
    str

    Examples
    --------
    >>> from expunge.report.values import count
    >>> count(12345)
    '12,345'
    """
    return "not known" if n is None else f"{n:,}"


def number(value: float | None, digits: int = 3) -> str:
    """A number to so many significant digits, without an exponent where that is readable.

    Parameters
    ----------
    value : float or None
    digits : int

    Returns
    -------
    str

    Examples
    --------
    >>> from expunge.report.values import number
    >>> number(0.0123456), number(12345.6), number(1.5e-9), number(None)
    ('0.0123', '12,346', '1.5e-09', 'not known')
    """
    if value is None:
        return "not known"
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if -5 < size < 7:
        return f"{value:,.{max(digits - 1 - size, 0)}f}"
    return f"{value:.{digits}g}"


def signed(value: float | None, digits: int = 3) -> str:
    """A difference, with its sign.

    Parameters
    ----------
    value : float or None
    digits : int
        After the point.

    Returns
    -------
    str

    Examples
    --------
    >>> from expunge.report.values import signed
    >>> signed(0.25), signed(-0.1), signed(None)
    ('+0.250', '−0.100', 'not defined')
    """
    return "not defined" if value is None else _minus(f"{value:+.{digits}f}")


def _minus(text: str) -> str:
    """With a proper minus sign, and without one before zero."""
    zero = not any(digit in text for digit in "123456789")
    return text.replace("-", "" if zero else "−")


def score(value: float | None, statistic: str) -> str:
    """A value of a statistic: shares in percent, R², AUC and bits as plain numbers.

    Parameters
    ----------
    value : float or None
    statistic : str

    Returns
    -------
    str

    Examples
    --------
    >>> from expunge.report.values import score
    >>> score(0.5, "balanced_accuracy"), score(0.5, "r2")
    ('50.0%', '0.500')
    """
    if value is None:
        return "not known"
    plain = statistic in ("r2", "auc", "bits", "cross_entropy")
    return _minus(f"{value:.3f}" if plain else percent(value))


def between(interval: Interval, statistic: str) -> str:
    """The limits of an interval.

    Parameters
    ----------
    interval : mapping with low and high
    statistic : str

    Returns
    -------
    str

    Examples
    --------
    >>> from expunge.report.values import between
    >>> between({"value": 0.5, "low": 0.4, "high": 0.6}, "accuracy")
    '40.0% to 60.0%'
    """
    return f"{score(interval['low'], statistic)} to {score(interval['high'], statistic)}"


def scored(interval: Interval, statistic: str) -> str:
    r"""A value with its limits, which a line break does not part.

    Parameters
    ----------
    interval : mapping with value, low and high
    statistic : str

    Returns
    -------
    str

    Examples
    --------
    >>> from expunge.report.values import scored
    >>> scored({"value": 0.5, "low": 0.4, "high": 0.6}, "auc").split(" ")
    ['0.500', '(0.400\xa0to\xa00.600)']
    """
    limits = between(interval, statistic).replace(" ", "\N{NO-BREAK SPACE}")
    return f"{score(interval['value'], statistic)} ({limits})"


def clip(text: Any, length: int = 40) -> str:
    """Text cut to a length that fits a table or a label.

    Parameters
    ----------
    text : object
    length : int

    Returns
    -------
    str

    Examples
    --------
    >>> from expunge.report.values import clip
    >>> clip("a very long label", 7)
    'a very…'
    """
    whole = str(text)
    return whole if len(whole) <= length else whole[: length - 1].rstrip() + "…"


def rounded(value: Any, digits: int = 4) -> Any:
    """Floats in nested lists and dictionaries cut to so many significant digits.

    Parameters
    ----------
    value : nested lists, dicts, numbers and text
    digits : int

    Returns
    -------
    the same nesting

    Examples
    --------
    >>> from expunge.report.values import rounded
    >>> rounded({"x": [1.23456, 2, "a"]})
    {'x': [1.235, 2, 'a']}
    """
    if isinstance(value, dict):
        return {key: rounded(part, digits) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(part, digits) for part in value]
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value


def cleaned(value: Any) -> Any:
    r"""Plain JSON values: no NaN, no NumPy types, no text that a page cannot hold.

    Parameters
    ----------
    value : nested lists, dicts, arrays, numbers and text

    Returns
    -------
    nested lists, dicts, numbers, text and None

    Examples
    --------
    >>> from expunge.report.values import cleaned
    >>> cleaned({"a": (1, float("nan")), 2: "x\x00y"})
    {'a': [1, None], '2': 'x\ufffdy'}
    """
    if isinstance(value, Mapping):
        return {cleaned(str(key)): cleaned(part) for key, part in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return cleaned(value.tolist())
    if isinstance(value, list | tuple):
        return [cleaned(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int):
        return value
    return UNPRINTABLE.sub("\ufffd", str(value))
