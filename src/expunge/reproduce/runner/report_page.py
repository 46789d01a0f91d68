"""The report of an experiment: one HTML page with the tables and the figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from expunge.report import Facts, Items, Picture, Section, render_page
from expunge.report.parts import Block
from expunge.reproduce.runner.declaration import Experiment, ExperimentFigure
from expunge.reproduce.runner.experiment_results import ExperimentResults
from expunge.reproduce.runner.paper_table import PaperTable

__all__ = ["report_page"]


def report_page(
    experiment: Experiment,
    results: ExperimentResults,
    tables: Sequence[PaperTable],
    figures: Sequence[tuple[ExperimentFigure, bytes]],
    numbers: Mapping[str, Any],
) -> str:
    """The page of a finished experiment, HTML; figures come with the bytes of their PNG files."""
    blocks: dict[str, list[Block]] = {table.section: [] for table in tables}
    for figure, png in figures:
        where = f" Paper: {figure.where}." if figure.where else ""
        text = f"{figure.title}. {figure.caption}{where}"
        blocks.setdefault(figure.section, []).append(Picture(png, text, alt=figure.title))
    for table in tables:
        blocks[table.section].append(table.shown(results.data.not_comparable))
        blocks[table.section] += [table.note] if table.note else []
    settings = results.settings
    runs = f"{settings.runs} run{'s' if settings.runs > 1 else ''}"
    runs += f"{', quick' if settings.quick else ''}, seed {settings.seed}"
    sections = [_overview(experiment, results, numbers, runs)]
    sections += [Section(name, content) for name, content in blocks.items()]
    if skipped := results.left_out(experiment.parts):
        sections.append(Section("Left out", [Items(skipped)]))
    subtitle = f"{results.data.source}; {runs}"
    return render_page(experiment.title, sections, subtitle=subtitle, data=numbers)


def _overview(
    experiment: Experiment, results: ExperimentResults, numbers: Mapping[str, Any], runs: str
) -> Section:
    data = results.data
    content: list[Block] = [experiment.about]
    if data.not_comparable:
        content.append(
            f"The data are not the paper's: {data.not_comparable}. Figures of the paper stand "
            'beside ours for orientation and are marked "not comparable".'
        )
    facts = {"Data": data.source, **data.facts, "Fingerprint": data.fingerprint, "Runs": runs}
    facts["Versions"] = ", ".join(f"{k} {v}" for k, v in numbers["versions"].items())
    shown = [(k, f"{v:,}" if isinstance(v, int) else str(v)) for k, v in facts.items()]
    content += [Items(list(experiment.findings(results))), Facts(shown)]
    return Section("What came out", content)
