"""The report of an experiment: one HTML page with the tables and the figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from expunge.report import Facts, Items, Section, render_page
from expunge.report import Picture as PagePicture
from expunge.report import Table as PageTable
from expunge.report.parts import Block
from expunge.reproduce.experiment import Experiment, Picture, Table
from expunge.reproduce.results import Results
from expunge.reproduce.tables import cells, heads

__all__ = ["report_page"]


def report_page(
    experiment: Experiment,
    results: Results,
    tables: Sequence[Table],
    pictures: Sequence[tuple[Picture, bytes]],
    numbers: Mapping[str, Any],
) -> str:
    """The page of a finished experiment.

    Parameters
    ----------
    experiment : Experiment
    results : Results
    tables : sequence of Table
    pictures : sequence of (Picture, bytes of its PNG file)
    numbers : mapping
        What results.json holds; a button offers it.

    Returns
    -------
    str
        HTML.
    """
    names = dict.fromkeys([item.section for item in tables])
    names |= dict.fromkeys([picture.section for picture, _ in pictures])
    sections = [_overview(experiment, results, numbers)]
    for name in names:
        content: list[Block] = [_picture(p, png) for p, png in pictures if p.section == name]
        for table in tables:
            if table.section == name:
                content += _table(table, results.data.not_comparable)
        sections.append(Section(name, content))
    if skipped := results.left_out(experiment.parts):
        sections.append(Section("Left out", [Items(skipped)]))
    subtitle = f"{results.data.source}; {_runs(results)}"
    return render_page(experiment.title, sections, subtitle=subtitle, data=numbers)


def _runs(results: Results) -> str:
    settings = results.settings
    quick = ", quick" if settings.quick else ""
    return f"{settings.runs} run{'s' if settings.runs > 1 else ''}{quick}, seed {settings.seed}"


def _overview(experiment: Experiment, results: Results, numbers: Mapping[str, Any]) -> Section:
    content: list[Block] = [experiment.about]
    if results.data.not_comparable:
        content.append(
            f"The data are not the paper's: {results.data.not_comparable}. Figures of the paper "
            'stand beside ours for orientation and are marked "not comparable".'
        )
    content.append(Items(list(experiment.findings(results))))
    facts = {"Data": results.data.source, **results.data.facts}
    facts |= {"Fingerprint": results.data.fingerprint, "Runs": _runs(results)}
    facts |= {"Versions": ", ".join(f"{k} {v}" for k, v in numbers["versions"].items())}
    content.append(Facts([(name, _fact(value)) for name, value in facts.items()]))
    return Section("What came out", content)


def _fact(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _table(table: Table, not_comparable: str) -> list[Block]:
    where = f" (paper: {table.where})" if table.where else ""
    shown: list[Block] = [
        PageTable(heads(table), cells(table, not_comparable), f"{table.title}{where}")
    ]
    return [*shown, table.note] if table.note else shown


def _picture(picture: Picture, png: bytes) -> PagePicture:
    where = f" Paper: {picture.where}." if picture.where else ""
    return PagePicture(png, f"{picture.title}. {picture.caption}{where}", alt=picture.title)
