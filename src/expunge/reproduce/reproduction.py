"""`reproduce`: an experiment of the paper from the data to tables, figures and a report."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from expunge._version import __version__
from expunge.artifact import write_atomically
from expunge.errors import InputError
from expunge.inputs import check_number
from expunge.optional import require
from expunge.reproduce.experiment import Experiment, Loaded, Picture, Settings, Table
from expunge.reproduce.figures import look, write_figure
from expunge.reproduce.numbers import plain
from expunge.reproduce.paper import CITATION
from expunge.reproduce.registry import find_experiment
from expunge.reproduce.results import Results
from expunge.reproduce.runs import Folder
from expunge.reproduce.tables import markdown, table_to_dict
from expunge.reproduce.work import run_all

__all__ = ["Reproduction", "reproduce"]

NEEDED = ("matplotlib", "jinja2")


@dataclass(frozen=True, eq=False)
class Reproduction:
    """A finished experiment.

    Attributes
    ----------
    experiment : Experiment
    results : Results
    tables : sequence of Table
    pictures : sequence of Picture
    findings : sequence of str
        Sentences with what came out.
    out : path
        The folder with results.json, tables.md, report.html and figures.
    """

    experiment: Experiment
    results: Results
    tables: Sequence[Table]
    pictures: Sequence[Picture]
    findings: Sequence[str]
    out: Path

    def __str__(self) -> str:
        return "\n".join([self.experiment.title, *self.findings, f"Files in {self.out}"])

    def to_dict(self) -> dict[str, Any]:
        """Everything that results.json holds."""
        data, settings = self.results.data, self.results.settings
        return {
            "experiment": self.experiment.name,
            "title": self.experiment.title,
            "paper": CITATION,
            "settings": {
                "runs": settings.runs,
                "quick": settings.quick,
                "seed": settings.seed,
                "options": dict(settings.options),
            },
            "seeds": settings.seeds,
            "versions": _versions(self.experiment.packages),
            "data": {
                "source": data.source,
                "fingerprint": data.fingerprint,
                "comparable": not data.not_comparable,
                "not_comparable": data.not_comparable,
                "facts": plain(data.facts),
            },
            "findings": list(self.findings),
            "parts": self.results.to_dict(),
            "tables": [table_to_dict(table, data.not_comparable) for table in self.tables],
            "figures": [
                {"name": p.name, "title": p.title, "caption": p.caption, "paper": p.where}
                for p in self.pictures
            ],
        }


def reproduce(
    name: str,
    out: str | os.PathLike[str],
    data: str | os.PathLike[str] | None = None,
    runs: int | None = None,
    quick: bool = False,
    seed: int = 0,
    resume: bool = False,
    verbose: bool = False,
    options: Mapping[str, str] | None = None,
) -> Reproduction:
    """Repeat an experiment of the paper and write its tables and figures, ours beside the paper's.

    Parameters
    ----------
    name : {"glove", "bios", "faces"}
        See `expunge.reproduce.EXPERIMENTS`.
    out : str or path
        A folder for results.json, tables.md, report.html, figures/ and the finished runs.
    data : str or path, optional
        The data to use; by default those that come with the package.
    runs : int, optional
        Repetitions with different seeds; by default the experiment's own number: 10 for glove and
        3 for bios, as in the paper, 5 for faces, and fewer when quick.
    quick : bool
        Whether to measure less of everything, in about a minute.
    seed : int
        Of the first run; the next has the next number.
    resume : bool
        Whether to go on from the finished parts of runs in `out`.
    verbose : bool
        Whether to show a progress bar with the time left.
    options : mapping from str to str, optional
        What the experiment alone can be told, such as the encoder of "bios".

    Returns
    -------
    Reproduction

    Raises
    ------
    InputError
        For bad data, and when `out` holds runs of something else.
    ImportError
        Without matplotlib or jinja2; the message names the extra that brings them.

    Examples
    --------
    >>> import expunge as ex
    >>> from expunge.reproduce import EXPERIMENTS
    >>> "glove" in EXPERIMENTS
    True
    >>> print(ex.reproduce("glove", "glove-results", quick=True))  # doctest: +SKIP
    """
    experiment = find_experiment(name)
    for package in NEEDED:  # before the work, not after it
        require(package, "reproduce")
    settings = _settings(experiment, runs, quick, seed, options or {})
    source = None if data is None else Path(data)
    if source is not None and not source.exists():
        raise InputError("There is no such data", str(source), "Name a file or folder that exists")
    target = Path(out)
    if target.exists() and not target.is_dir():
        raise InputError("The results need a folder", f"{target}, a file", "Name a folder")
    loaded = _load(experiment, source, settings)
    folder = Folder(target)
    folder.open(experiment.name, settings, loaded.fingerprint, resume=resume)
    results = run_all(experiment, loaded, settings, folder, source=source, verbose=verbose)
    done = Reproduction(
        experiment=experiment,
        results=results,
        tables=tuple(experiment.tables(results)),
        pictures=tuple(experiment.pictures(results)),
        findings=tuple(experiment.findings(results)),
        out=target,
    )
    _write(done)
    return done


def _settings(
    experiment: Experiment,
    runs: int | None,
    quick: bool,
    seed: int,
    options: Mapping[str, str],
) -> Settings:
    unknown = [name for name in options if name not in experiment.options]
    if unknown:
        known = "; ".join(f"{name}: {about}" for name, about in experiment.options.items())
        raise InputError(
            f"{experiment.name} has no option {', '.join(unknown)}",
            ", ".join(f"{name}={options[name]}" for name in unknown),
            f"It knows {known or 'none'}",
        )
    count = runs if runs is not None else experiment.quick_runs if quick else experiment.runs
    check_number(count, "runs", least=1, whole=True)
    check_number(seed, "seed", least=0, whole=True)
    named = {name: str(value) for name, value in options.items()}
    return Settings(int(count), bool(quick), int(seed), named)


def _load(experiment: Experiment, source: Path | None, settings: Settings) -> Loaded:
    """The data, and how a quick run differs from the paper's."""
    loaded = experiment.load(source, settings)
    if not settings.quick:
        return loaded
    parts = [part for part in (loaded.not_comparable, "less of everything (quick)") if part]
    return replace(loaded, not_comparable=", and ".join(parts))


def _write(done: Reproduction) -> None:
    """All files but those of the runs."""
    from expunge.reproduce.page import report_page

    numbers, not_comparable = done.to_dict(), done.results.data.not_comparable
    text = json.dumps(numbers, indent=1, allow_nan=False, ensure_ascii=False)
    write_atomically(done.out / "results.json", f"{text}\n".encode())
    skipped = done.results.left_out(done.experiment.parts)
    tables = markdown(done.experiment.title, done.tables, not_comparable, skipped)
    write_atomically(done.out / "tables.md", tables.encode())
    folder = done.out / "figures"
    folder.mkdir(exist_ok=True)
    pngs = []
    for picture in done.pictures:
        with look():
            figure = picture.draw(done.results)
        pngs.append((picture, write_figure(figure, folder, picture.name)))
    page = report_page(done.experiment, done.results, done.tables, pngs, numbers)
    write_atomically(done.out / "report.html", page.encode())


def _versions(packages: Sequence[str]) -> dict[str, str]:
    found = {"expunge": __version__, "python": platform.python_version()}
    found |= {package: version(package) for package in ("numpy", "scipy", "scikit-learn")}
    for package in packages:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found
