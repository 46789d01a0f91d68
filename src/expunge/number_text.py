"""Numbers as a reader wants to see them: in sentences, in tables, on pages."""

from __future__ import annotations

import math
from typing import Any

__all__ = [
    "count",
    "in_words",
    "number",
    "percent",
    "rounded",
    "score",
    "short",
    "signed",
    "table_number",
]


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
    >>> from expunge.number_text import percent
    >>> percent(0.5132), percent(None)
    ('51.3%', 'not known')
    """
    return "not known" if share is None else f"{share:.{digits}%}"


def count(n: int | None) -> str:
    """A number of things, with thousands apart.

    Examples
    --------
    >>> from expunge.number_text import count
    >>> count(12345)
    '12,345'
    """
    return "not known" if n is None else f"{n:,}"


def number(value: float | None, digits: int = 3) -> str:
    """A number to so many significant digits, without an exponent where that is readable.

    Examples
    --------
    >>> from expunge.number_text import number
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


def short(value: float, digits: int = 2) -> str:
    """A percentage, or a factor, to so many digits, without an exponent where that is readable.

    Examples
    --------
    >>> from expunge.number_text import short
    >>> short(99.7), short(1234.5), short(0.5), short(1.5e-9)
    ('100', '1,200', '0.5', '1.5e-09')
    """
    cut = f"{value:.{digits}g}"
    return f"{float(cut):,.0f}" if 10**digits <= abs(float(cut)) < 1e7 else cut


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
    >>> from expunge.number_text import signed
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

    Examples
    --------
    >>> from expunge.number_text import score
    >>> score(0.5, "balanced_accuracy"), score(0.5, "r2")
    ('50.0%', '0.500')
    """
    if value is None:
        return "not known"
    plain = statistic in ("r2", "auc", "bits", "cross_entropy")
    return _minus(f"{value:.3f}" if plain else percent(value))


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
    >>> from expunge.number_text import rounded
    >>> rounded({"x": [1.23456, 2, "a"]})
    {'x': [1.235, 2, 'a']}
    """
    if isinstance(value, dict):
        return {key: rounded(part, digits) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(part, digits) for part in value]
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value


def in_words(statistic: str, value: float) -> str:
    """A value of a statistic in a sentence: a balanced accuracy in percent, an R² as it is.

    Examples
    --------
    >>> from expunge.number_text import in_words
    >>> in_words("balanced_accuracy", 0.5), in_words("r2", 0.5)
    ('50.0 %', 'R² 0.500')
    """
    return f"R² {value:.3f}" if statistic == "r2" else f"{100 * value:.1f} %"


def table_number(value: float, *, share: bool) -> str:
    """A number in a column of a table: a share in percent, without the sign; never a minus zero.

    Parameters
    ----------
    value : float
    share : bool
        Whether to show percent with one digit, else the number with three, or four in all.

    Returns
    -------
    str

    Examples
    --------
    >>> from expunge.number_text import table_number
    >>> table_number(0.51234, share=True), table_number(-0.0001, share=False)
    ('51.2', '0.000')
    >>> table_number(-2283699.78, share=False)
    '-2.284e+06'
    """
    factor, digits = (100, 1) if share else (1, 3)
    if abs(value) >= 1000 and not share:
        return f"{value:.4g}"
    return f"{round(factor * value, digits) + 0.0:.{digits}f}"
