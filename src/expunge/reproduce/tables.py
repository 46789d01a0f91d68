"""Tables of our figures beside the paper's, as Markdown and as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from expunge.reproduce.experiment import Line, Table
from expunge.reproduce.numbers import Number

__all__ = ["cells", "heads", "markdown", "table_to_dict"]

NOT_COMPARABLE = "not comparable"
NOTHING = "–"


def heads(table: Table) -> list[str]:
    """Heads of the columns of a table.

    Parameters
    ----------
    table : Table

    Returns
    -------
    list of str
    """
    if not _has_paper(table):
        return [*table.heads, "ours"] if _has_ours(table) else [*table.heads]
    middle = ["difference"] if _has_differences(table) else []
    return [*table.heads, "paper", "ours", *middle, "data"]


def cells(table: Table, not_comparable: str) -> list[list[str]]:
    """The lines of a table as text.

    Parameters
    ----------
    table : Table
    not_comparable : str
        How the data differ from the paper's; empty when they do not.

    Returns
    -------
    list of lists of str
        One for each line, as long as `heads`.

    Examples
    --------
    >>> from expunge.reproduce.experiment import Line, Table
    >>> from expunge.reproduce.numbers import Number
    >>> from expunge.reproduce.tables import cells
    >>> table = Table("t", "d", ("test",), [Line(("math",), Number(0.9), Number(0.8, 0.01))])
    >>> cells(table, "other vectors")
    [['math', '0.800 ± 0.010', '0.900', '+0.100', 'not comparable']]
    """
    shown = []
    for line in table.lines:
        ours = _text(line.ours, table.digits)
        if not _has_paper(table):
            shown.append([*line.labels, ours] if _has_ours(table) else [*line.labels])
            continue
        found = _difference(line)
        difference = NOTHING if found is None else f"{found:+.{table.digits}f}"
        middle = [difference] if _has_differences(table) else []
        printed = _text(line.paper, table.digits)
        shown.append([*line.labels, printed, ours, *middle, _data(line, not_comparable)])
    return shown


def markdown(
    title: str, tables: Sequence[Table], not_comparable: str, left_out: Sequence[str] = ()
) -> str:
    """All tables as one Markdown text.

    Parameters
    ----------
    title : str
    tables : sequence of Table
    not_comparable : str
        How the data differ from the paper's; empty when they do not.
    left_out : sequence of str
        What was not measured, and why.

    Returns
    -------
    str

    Examples
    --------
    >>> from expunge.reproduce.experiment import Line, Table
    >>> from expunge.reproduce.numbers import Number
    >>> from expunge.reproduce.tables import markdown
    >>> table = Table("t", "Accuracy", ("method",), [Line(("RLACE",), Number(0.5))])
    >>> print(markdown("An experiment", [table], ""))
    # An experiment
    <BLANKLINE>
    ## Accuracy
    <BLANKLINE>
    | method | ours |
    |---|---|
    | RLACE | 0.500 |
    <BLANKLINE>
    """
    blocks = [f"# {title}"]
    if not_comparable:
        blocks.append(
            f"The data are not the paper's: {not_comparable}. Differences are shown and marked "
            f'"{NOT_COMPARABLE}".'
        )
    for table in tables:
        where = f" (paper: {table.where})" if table.where else ""
        blocks.append(f"## {table.title}{where}")
        names = heads(table)
        body = [names, ["---"] * len(names), *cells(table, not_comparable)]
        blocks.append("\n".join(_markdown_row(row) for row in body))
        if table.note:
            blocks.append(table.note)
    if left_out:
        blocks += ["## Left out", "\n".join(f"- {reason}" for reason in left_out)]
    return "\n\n".join(blocks) + "\n"


def table_to_dict(table: Table, not_comparable: str) -> dict[str, Any]:
    """A table as plain values.

    Parameters
    ----------
    table : Table
    not_comparable : str

    Returns
    -------
    dict
    """
    return {
        "name": table.name,
        "title": table.title,
        "paper": table.where,
        "note": table.note,
        "lines": [
            {
                **dict(zip(table.heads, line.labels, strict=True)),
                "paper": _value(line.paper),
                "ours": _value(line.ours),
                "difference": _difference(line),
                "comparable": None if line.paper is None else not not_comparable,
            }
            for line in table.lines
        ],
    }


def _has_ours(table: Table) -> bool:
    """False for a table of labels alone, such as a summary of others."""
    return any(line.ours is not None for line in table.lines)


def _has_paper(table: Table) -> bool:
    return any(line.paper is not None for line in table.lines)


def _has_differences(table: Table) -> bool:
    return any(_difference(line) is not None for line in table.lines)


def _difference(line: Line) -> float | None:
    if not isinstance(line.ours, Number) or not isinstance(line.paper, Number):
        return None
    found = line.ours.mean - line.paper.mean
    return found if found == found else None


def _data(line: Line, not_comparable: str) -> str:
    if line.paper is None:
        return NOTHING
    return NOT_COMPARABLE if not_comparable else "the paper's"


def _text(value: Number | str | None, digits: int) -> str:
    if value is None:
        return NOTHING
    return value.text(digits) if isinstance(value, Number) else value


def _value(value: Number | str | None) -> Any:
    return value.to_dict() if isinstance(value, Number) else value


def _markdown_row(row: Sequence[str]) -> str:
    if all(entry == "---" for entry in row):
        return f"|{'|'.join(row)}|"
    escaped = (entry.replace("|", r"\|") for entry in row)
    return f"| {' | '.join(escaped)} |"
