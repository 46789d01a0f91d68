"""Marks behind a number in a table of many erasures, in place of the words of an audit."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from expunge.audit.families import Status
from expunge.number_text import in_words

__all__ = ["aligned", "legend", "mark", "sampling_error", "wrapped"]

MARKS: dict[Status, str] = {"found": "*", "cannot tell": "?", "at chance": " "}
EXPLAINED = "~"
NARROWEST = 92  # characters of the lines below a table


def mark(status: Status, explained: bool = False) -> str:
    """One character for what probes say.

    Parameters
    ----------
    status : {"at chance", "found", "cannot tell"}
    explained : bool
        Whether it is no more than sampling error of the fit explains.

    Returns
    -------
    str

    Examples
    --------
    >>> from expunge.audit.marks import mark
    >>> mark("found"), mark("found", True), mark("cannot tell"), mark("at chance")
    ('*', '~', '?', ' ')
    """
    return EXPLAINED if explained and status == "found" else MARKS[status]


def legend(statistic: str, least: float) -> str:
    """What the marks mean.

    Parameters
    ----------
    statistic : {"balanced_accuracy", "r2"}
    least : float
        The least excess over chance that matters.

    Returns
    -------
    str
    """
    excess = f"{least:g}" if statistic == "r2" else in_words(statistic, least)
    return (
        f"* found. {EXPLAINED} found, but no more than sampling error of the fit explains. "
        f"? cannot tell: too few rows to exclude an excess of {excess}, or scores below chance. "
        "No mark: at chance."
    )


def sampling_error(ceiling: str, high: str) -> str:
    """What the line of that name in a table means.

    Parameters
    ----------
    ceiling, high : str
        What a probe with unlimited rows is expected to reach, and what it exceeds in one fit of
        twenty.

    Returns
    -------
    str
    """
    return (
        "sampling error: what an exact eraser is expected to leave to these linear probes on fresh "
        f"rows; {ceiling} to one with unlimited rows, more than {high} once in twenty fits. More "
        "rows in the fit make it smaller, another method does not."
    )


def aligned(lines: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Lines of cells under each other, the first columns flush left, the others right.

    Parameters
    ----------
    lines : sequence of sequences of str
        As many cells in each.
    left : int
        Columns that are flush left.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from expunge.audit.marks import aligned
    >>> aligned([["a", "10"], ["bc", "2"]])
    ['a   10', 'bc   2']
    """
    widths = [max(len(line[j]) for line in lines) for j in range(len(lines[0]))]
    return [
        "  ".join(
            cell.ljust(width) if j < left else cell.rjust(width)
            for j, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def wrapped(caption: Sequence[str], table: Sequence[str]) -> list[str]:
    """Lines as wide as the table above them.

    Examples
    --------
    >>> from expunge.audit.marks import wrapped
    >>> wrapped(["one two"], ["a table"])
    ['one two']
    """
    width = max(NARROWEST, *map(len, table))
    return [
        line
        for text in caption
        for line in textwrap.wrap(text, width, subsequent_indent="  ", break_on_hyphens=False)
    ]
