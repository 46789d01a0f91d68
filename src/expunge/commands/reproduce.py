"""`expunge reproduce`: the paper's experiments, ours beside the paper's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from expunge.commands.output import (
    JsonFile,
    check_target,
    console,
    printable,
    table,
    write_json,
)
from expunge.errors import InputError
from expunge.reproduce.registry import EXPERIMENTS, find_experiment

if TYPE_CHECKING:
    from rich.console import Console

    from expunge.reproduce import Reproduction

__all__ = ["EXAMPLES", "render", "reproduce"]

EXAMPLES = """\b
Examples:
  expunge reproduce glove --quick
  expunge reproduce glove --data glove.6B.300d.txt --out glove --runs 10
  expunge reproduce bios --out bios --resume
"""

INTERRUPTED = 130

Name = Annotated[
    str, typer.Argument(metavar="NAME", help=f"The experiment: {', '.join(EXPERIMENTS)}.")
]
Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Folder for the results; else reproduce-NAME."),
]
Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="PATH",
        help="Your data, such as glove.6B.300d.txt; else embedded ones.",
    ),
]
Runs = Annotated[
    int | None,
    typer.Option(
        "--runs", metavar="N", help="Repetitions; else 10 of glove, 3 of bios, 5 of faces."
    ),
]
Quick = Annotated[bool, typer.Option("--quick", help="Measure less, in about a minute.")]
Seed = Annotated[int, typer.Option("--seed", metavar="S", help="Seed of the first run.")]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Of bios: encoder, pooling, steps, professions, max_length; of faces: images. May be "
        "repeated.",
    ),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on with the unfinished runs in the folder.")
]


def reproduce(
    name: Name,
    out: Out = None,
    data: Data = None,
    runs: Runs = None,
    quick: Quick = False,
    seed: Seed = 0,
    resume: Resume = False,
    setting: Set = None,
    json_file: JsonFile = None,
) -> None:
    """Repeat an experiment of the paper: tables and figures, ours beside the paper's."""
    from expunge.reproduce import reproduce as repeat

    check_target(json_file, streams=True)
    folder = out if out is not None else Path(f"reproduce-{find_experiment(name).name}")
    shown = console(stderr=True).is_terminal
    try:
        done = repeat(
            name,
            folder,
            data,
            runs,
            quick=quick,
            seed=seed,
            resume=resume,
            verbose=shown,
            options=_options(setting or []),
        )
    except KeyboardInterrupt:
        typer.echo("expunge: interrupted; finished work is kept, go on with --resume", err=True)
        raise typer.Exit(INTERRUPTED) from None
    write_json(json_file, "reproduce", done.to_dict())
    render(done, console())


def render(done: Reproduction, screen: Console) -> None:
    """Print what came out, the tables that have figures of the paper, and where the files are."""

    def say(text: str, style: str = "") -> None:
        screen.print(_plain(text, screen.encoding), style=style or None)

    data = done.results.data
    say(done.experiment.title, "bold")
    count = done.results.settings.runs
    say(f"{data.source}; {count} run{'' if count == 1 else 's'}")
    for sentence in done.findings:
        say(f"- {sentence}")
    for paper_table in done.tables:
        text = paper_table.shown(data.not_comparable)
        if "difference" not in text.columns:  # the paper prints no number
            continue
        say(f"\n{text.caption}", "bold")
        made = table(*text.columns[:-1], right=("difference",))
        for row in text.rows:
            made.add_row(*(_plain(entry, screen.encoding) for entry in row[:-1]))
        screen.print(made)
    if data.not_comparable:
        say(f"\nThe data are not the paper's: {data.not_comparable}.", "yellow")
    say(f"\nResults: {done.out / 'report.html'}, tables.md, results.json and figures beside it.")


def _options(settings: list[str]) -> dict[str, str]:
    """KEY=VALUE pairs as a dictionary."""
    pairs = [setting.partition("=") for setting in settings]
    for key, sign, value in pairs:
        if not (key and sign and value):
            raise InputError("--set takes KEY=VALUE", key + sign + value, "Write e.g. steps=500")
    return {key: value for key, _, value in pairs}


def _plain(text: str, encoding: str) -> str:
    """Text for a terminal of this encoding, with plain signs where it lacks the proper ones."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.replace("±", "+-").replace("–", "-")
    return "\n".join(printable(line, encoding) for line in text.split("\n"))
