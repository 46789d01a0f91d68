"""Values of an audit as a page can hold them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from expunge.number_text import score

__all__ = ["between", "cleaned", "clip", "scored"]

# what HTML and JSON cannot carry, and signs that change the direction of the text around them
UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")

Interval = Mapping[str, float]


def between(interval: Interval, statistic: str) -> str:
    """The limits of an interval.

    Examples
    --------
    >>> from expunge.report.values import between
    >>> between({"value": 0.5, "low": 0.4, "high": 0.6}, "accuracy")
    '40.0% to 60.0%'
    """
    return f"{score(interval['low'], statistic)} to {score(interval['high'], statistic)}"


def scored(interval: Interval, statistic: str) -> str:
    r"""A value with its limits, which a line break does not part.

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

    Examples
    --------
    >>> from expunge.report.values import clip
    >>> clip("a very long label", 7)
    'a very…'
    """
    whole = str(text)
    return whole if len(whole) <= length else whole[: length - 1].rstrip() + "…"


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
