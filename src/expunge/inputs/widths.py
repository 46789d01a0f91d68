"""The width of rows: one rule and one message, wherever rows meet something made for others."""

from __future__ import annotations

from typing import Any

from expunge.errors import InputError

__all__ = ["check_width"]


def check_width(
    found: int,
    expected: int,
    what: str = "X has",
    by: str = "this erasure",
    *,
    received: Any = None,
    remedy: str = "Pass rows of the width it was fitted on",
) -> None:
    """Refuse rows of another width than the one expected.

    Parameters
    ----------
    found, expected : int
        Features.
    what : str
        What has so many features, with the verb.
    by : str
        What is expecting others.
    received : str, optional
        What to say was received; by default the number of columns.
    remedy : str
        What to do.

    Raises
    ------
    InputError

    Examples
    --------
    >>> from expunge.inputs import check_width
    >>> check_width(3, 3)
    >>> check_width(2, 3)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    expunge.errors.InputError: X has 2 features, but this erasure is expecting 3 features ...
    """
    if found != expected:
        raise InputError(
            f"{what} {found} features, but {by} is expecting {expected} features as input",
            f"{found} columns" if received is None else str(received),
            remedy,
        )
