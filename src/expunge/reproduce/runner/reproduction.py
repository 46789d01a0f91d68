"""`reproduce`: an experiment of the paper from the data to tables, figures and a report."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from expunge._version import __version__
from expunge.artifact import write_atomically
from expunge.errors import InputError
from expunge.inputs import check_number
from expunge.optional import require
from expunge.report.values import cleaned
from expunge.reproduce.registry import find_experiment
from expunge.reproduce.runner.declaration import Experiment, ExperimentFigure, RunSettings
from expunge.reproduce.runner.drawing import look, write_figure
from expunge.reproduce.runner.experiment_results import ExperimentResults
from expunge.reproduce.runner.paper_table import PaperTable, markdown
from expunge.reproduce.runner.report_page import report_page
from expunge.reproduce.runner.runs import run_all

__all__ = ["Reproduction", "reproduce"]

NEEDED = ("matplotlib", "jinja2")
CITATION = (
    "Shauli Ravfogel, Michael Twiton, Yoav Goldberg and Ryan Cotterell. 2022. Linear Adversarial "
    "Concept Erasure. Proceedings of the 39th International Conference on Machine Learning."
)


@dataclass(frozen=True, eq=False)
class Reproduction:
    """A finished experiment.

    Attributes
    ----------
    experiment : Experiment
        What was repeated.
    results : ExperimentResults
        What was measured.
    tables : sequence of PaperTable
        Our figures beside the paper's.
    pictures : sequence of ExperimentFigure
        The figures.
    findings : sequence of str
        Sentences with what came out.
    out : path
        The folder with results.json, tables.md, report.html and figures.
    """

    experiment: Experiment
    results: ExperimentResults
    tables: Sequence[PaperTable]
    pictures: Sequence[ExperimentFigure]
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
            "settings": asdict(settings),
            "seeds": settings.seeds,
            "versions": _versions(self.experiment.packages),
            "data": {
                "source": data.source,
                "fingerprint": data.fingerprint,
                "comparable": not data.not_comparable,
                "not_comparable": data.not_comparable,
                "facts": cleaned(data.facts),
            },
            "findings": list(self.findings),
            "parts": self.results.to_dict(),
            "tables": [table.to_dict(data.not_comparable) for table in self.tables],
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
        Whether to go on from the finished parts of runs in `out`, a folder you trust: they are
        in joblib's cache, which Python's pickle reads.
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
    source, target = None if data is None else Path(data), Path(out)
    if source is not None and not source.exists():
        raise InputError("There is no such data", str(source), "Name a file or folder that exists")
    if target.exists() and not target.is_dir():
        raise InputError("The results need a folder", f"{target}, a file", "Name a folder")
    loaded = experiment.load(source, settings)
    if quick:
        differs = [text for text in (loaded.not_comparable, "less of everything (quick)") if text]
        loaded = replace(loaded, not_comparable=", and ".join(differs))
    open_runs(target, experiment.name, settings, loaded.fingerprint, resume=resume)
    results = run_all(experiment, loaded, settings, target / "runs", verbose=verbose)
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
    experiment: Experiment, runs: int | None, quick: bool, seed: int, options: Mapping[str, str]
) -> RunSettings:
    if unknown := [name for name in options if name not in experiment.options]:
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
    return RunSettings(int(count), bool(quick), int(seed), named)


def open_runs(
    out: Path, experiment: str, settings: RunSettings, fingerprint: str, *, resume: bool
) -> None:
    """Write the plan of the runs in a folder, or check that the plan found there is the same.

    Raises
    ------
    InputError
        When there are runs and they were not expected, or are of another experiment. Only their
        number may differ.
    """
    plan: dict[str, Any] = {"experiment": experiment, **asdict(settings)}
    plan |= {"data": fingerprint, "version": __version__}
    del plan["runs"]
    file, found = out / "runs" / "plan.json", None
    with suppress(FileNotFoundError, ValueError):
        found = json.loads(file.read_text(encoding="utf-8"))
    if found is None:
        file.parent.mkdir(parents=True, exist_ok=True)
        _write_json(file, plan)
    elif not resume:
        raise InputError(
            "The folder holds runs already",
            str(out),
            "Go on with them (--resume, resume=True) or name another folder",
        )
    elif differing := [key for key in plan if plan[key] != found.get(key)]:
        raise InputError(
            "The runs in the folder were made otherwise, so they cannot be resumed",
            ", ".join(f"{key} {found.get(key)!r}, not {plan[key]!r}" for key in differing),
            "Name another folder, or ask for the same as before",
        )


def _write(done: Reproduction) -> None:
    """All files but those of the runs."""
    numbers, results = done.to_dict(), done.results
    _write_json(done.out / "results.json", numbers)
    skipped = results.left_out(done.experiment.parts)
    text = markdown(done.experiment.title, done.tables, results.data.not_comparable, skipped)
    write_atomically(done.out / "tables.md", text.encode())
    folder = done.out / "figures"
    folder.mkdir(exist_ok=True)
    figures = []
    for picture in done.pictures:
        with look():
            figure = picture.draw(results)
        figures.append((picture, write_figure(figure, folder, picture.name)))
    page = report_page(done.experiment, results, done.tables, figures, numbers)
    write_atomically(done.out / "report.html", page.encode())


def _write_json(path: Path, value: Any) -> None:
    text = json.dumps(value, indent=1, allow_nan=False, ensure_ascii=False)
    write_atomically(path, f"{text}\n".encode())


def _versions(packages: Sequence[str]) -> dict[str, str]:
    found = {"expunge": __version__, "python": platform.python_version()}
    found |= {package: version(package) for package in ("numpy", "scipy", "scikit-learn")}
    for package in packages:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found
