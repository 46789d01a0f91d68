"""Our figures beside the paper's: for the page, the terminal, Markdown and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from expunge.report import Table as PageTable
from expunge.reproduce.runner.experiment_results import NOTHING, Number

__all__ = ["PaperLine", "PaperTable", "markdown"]

NOT_COMPARABLE = "not comparable"


@dataclass(frozen=True)
class PaperLine:
    """One line of a table: a label for each of its heads, our figure, the paper's.

    The paper's is a word, such as "above 90", where it prints no number; None where it prints
    nothing.
    """

    labels: tuple[str, ...]
    ours: Number | str | None
    paper: Number | str | None = None

    @property
    def difference(self) -> float | None:
        """Ours less the paper's, where both are numbers."""
        if not isinstance(self.ours, Number) or not isinstance(self.paper, Number):
            return None
        found = self.ours.mean - self.paper.mean
        return found if found == found else None


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper with our figures, or one of ours that it does not have.

    Examples
    --------
    >>> from expunge.reproduce.runner.experiment_results import Number
    >>> from expunge.reproduce.runner.paper_table import PaperLine, PaperTable
    >>> line = PaperLine(("math",), Number(0.9), Number(0.8, 0.01))
    >>> PaperTable("t", "WEAT d", ("test",), [line]).shown("other vectors").rows
    [('math', '0.800 ± 0.010', '0.900', '+0.100', 'not comparable')]
    """

    name: str
    title: str  # with the unit of its numbers
    heads: tuple[str, ...]  # of the labels
    lines: Sequence[PaperLine]
    where: str = ""  # in the paper; empty when it has nothing like it
    digits: int = 3  # after the decimal point
    note: str = ""  # shown below it
    section: str = "Results"  # the heading of the report under which it stands

    def shown(self, not_comparable: str) -> PageTable:
        """As text; `not_comparable` says how the data differ from the paper's, if they do."""
        lines = self.lines
        columns = {head: [line.labels[k] for line in lines] for k, head in enumerate(self.heads)}
        printed = any(line.paper is not None for line in lines)
        if printed:
            columns["paper"] = [self._text(line.paper) for line in lines]
        if printed or any(line.ours is not None for line in lines):
            columns["ours"] = [self._text(line.ours) for line in lines]
        if any(line.difference is not None for line in lines):
            columns["difference"] = [self._signed(line.difference) for line in lines]
        if printed:
            data = NOT_COMPARABLE if not_comparable else "the paper's"
            columns["data"] = [NOTHING if line.paper is None else data for line in lines]
        where = f" (paper: {self.where})" if self.where else ""
        rows = list(zip(*columns.values(), strict=True))
        return PageTable(list(columns), rows, f"{self.title}{where}")

    def to_dict(self, not_comparable: str) -> dict[str, Any]:
        """Plain values."""
        return {
            "name": self.name,
            "title": self.title,
            "paper": self.where,
            "note": self.note,
            "lines": [
                {
                    **dict(zip(self.heads, line.labels, strict=True)),
                    "paper": _value(line.paper),
                    "ours": _value(line.ours),
                    "difference": line.difference,
                    "comparable": None if line.paper is None else not not_comparable,
                }
                for line in self.lines
            ],
        }

    def _text(self, value: Number | str | None) -> str:
        return value.text(self.digits) if isinstance(value, Number) else value or NOTHING

    def _signed(self, value: float | None) -> str:
        return NOTHING if value is None else f"{value:+.{self.digits}f}"


def _value(value: Number | str | None) -> Any:
    return value.to_dict() if isinstance(value, Number) else value


def markdown(
    title: str, tables: Sequence[PaperTable], not_comparable: str, left_out: Sequence[str] = ()
) -> str:
    """All tables as one Markdown text, and at its end what was left out and why."""
    blocks = [f"# {title}"]
    if not_comparable:
        blocks.append(
            f"The data are not the paper's: {not_comparable}. Differences are shown and marked "
            f'"{NOT_COMPARABLE}".'
        )
    for table in tables:
        shown = table.shown(not_comparable)
        rows = [[entry.replace("|", r"\|") for entry in row] for row in shown.rows]
        body = [f"| {' | '.join(row)} |" for row in (shown.columns, *rows)]
        body.insert(1, f"|{'---|' * len(shown.columns)}")
        blocks += [f"## {shown.caption}", "\n".join(body), *filter(None, [table.note])]
    if left_out:
        blocks += ["## Left out", "\n".join(f"- {reason}" for reason in left_out)]
    return "\n\n".join(blocks) + "\n"
