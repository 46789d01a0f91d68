"""Numbers whose decimals follow a comma, as 8,5: no numbers here, and what to do about them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from expunge.errors import InputError

__all__ = ["MEND", "has_decimal_comma", "have_decimal_commas", "with_decimal_commas"]

DECIMAL = re.compile(r"\s*[+-]?(\d{1,3}(\.\d{3})+|\d*),\d+([eE][+-]?\d+)?\s*")
THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2}(,\d{3})+\s*")  # 1,234 may be either
MEND = "Write points for commas, as pandas.read_csv(decimal=',') and to_csv do"


def has_decimal_comma(value: str) -> bool:
    """Whether text looks like a number with a decimal comma.

    Parameters
    ----------
    value : str

    Returns
    -------
    bool

    Examples
    --------
    >>> from expunge.files.decimal_commas import has_decimal_comma
    >>> has_decimal_comma("8,5"), has_decimal_comma("1.234,5"), has_decimal_comma("a,b")
    (True, True, False)
    """
    return DECIMAL.fullmatch(value) is not None


def have_decimal_commas(values: Sequence[str], *, thousands: bool = True) -> bool:
    """Whether most values are numbers, some of them with commas that do not part thousands.

    Parameters
    ----------
    values : sequence of str
    thousands : bool
        Whether 1,234 may be a thousand and more.

    Returns
    -------
    bool

    Examples
    --------
    >>> from expunge.files.decimal_commas import have_decimal_commas
    >>> have_decimal_commas(["8,5", "8", "7,25"]), have_decimal_commas(["1,234", "2,500"])
    (True, False)
    """
    commas = [value for value in values if has_decimal_comma(value)]
    plain = sum(value.strip().lstrip("+-").isdecimal() for value in values)
    sure = any(not (thousands and THOUSANDS.fullmatch(value)) for value in commas)
    return sure and 2 * (len(commas) + plain) > len(values)


def with_decimal_commas(names: str, where: str, example: str) -> InputError:
    """What to say of columns of such numbers.

    Parameters
    ----------
    names : str
        The columns, as a message shows them.
    where : str
        The name of the file.
    example : str
        One of the values.

    Returns
    -------
    InputError
    """
    return InputError(
        f"Numbers are written with decimal commas in {where}: {names}", repr(example), MEND
    )
