"""`expunge demo`: the embedded example, end to end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from expunge.commands.output import (
    JsonFile,
    check_page_name,
    check_target,
    console,
    printable,
    spinner,
    table,
    write_json,
)
from expunge.commands.wording import to_type
from expunge.number_text import percent

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from expunge.demo import Change, DemoResult
    from expunge.metrics import NeighbourChange

__all__ = ["EXAMPLES", "demo", "render"]

EXAMPLES = """\b
Examples:
  expunge demo
  expunge demo --save gender.safetensors --report demo.html
"""

Save = Annotated[
    Path | None,
    typer.Option("--save", metavar="FILE", help="Save the erasure, e.g. to gender.safetensors."),
]


Report = Annotated[
    Path | None,
    typer.Option("--report", metavar="FILE", help="Write a full audit to this page, e.g. a.html."),
]


def demo(json_file: JsonFile = None, save: Save = None, report: Report = None) -> None:
    """Erase gender from word vectors, and show what is left and what was lost."""
    from expunge.commands.erasure_files import check_erasure_name
    from expunge.demo import run_demo

    check_target(json_file, streams=True)
    for target in (save, report):
        check_target(target)
    check_page_name(report)
    if save is not None:
        check_erasure_name(save, "--save")
    with spinner("starting") as progress:
        result = run_demo(progress, full=report is not None)
        if report is not None:
            progress("writing the page")
            result.audit.to_html(report)
    if save is not None:
        result.erasure.save(save)
    write_json(json_file, "demo", result.to_dict())
    render(result, console(), save, report)


def render(
    result: DemoResult, screen: Console, saved: Path | None = None, report: Path | None = None
) -> None:
    """Print a result.

    Parameters
    ----------
    result : DemoResult
    screen : rich.console.Console
    saved : path, optional
        Where the erasure was saved.
    report : path, optional
        Where the page was written.
    """
    screen.print("Erasing gender from word vectors (GloVe)", style="bold")
    screen.print(
        f"RLACE removes {result.erasure.rank} of {result.n_features} dimensions, found on "
        f"{result.n_train:,} words. Measured on {result.n_test:,} others.\n"
        "The label of a word: which end of the line from he to she it lies nearest to (cosine).\n"
    )
    _measures(result, screen)
    _paragraph(
        screen,
        "Of several probes the strongest is shown. Fresh words: probes are trained and tested on "
        "words the erasure has not seen. What they may still find is the sampling error of the "
        "class means, which shrinks with more words in the fit.",
    )
    _neighbours(result.neighbours, screen)
    screen.print("Certificate (words of the fit)", style="bold")
    _paragraph(
        screen, str(result.certificate), style="green" if result.certificate.erased else "red"
    )
    screen.print("What this does not promise", style="bold")
    _paragraph(
        screen,
        f"Non-linear probes still find gender: the strongest ({result.nonlinear_name}, trained on "
        f"{result.nonlinear_rows:,} erased words) is right on "
        f"{percent(result.nonlinear_probe.after)} of the test words "
        f"({percent(result.nonlinear_probe.before)} before). Only linear predictors are kept out.",
        style="yellow",
    )
    if report is not None:
        name = printable(str(report), screen.encoding)
        screen.print(f"Full audit with pictures: open {name} in a browser", soft_wrap=True)
    _next_step(screen, saved)


def _measures(result: DemoResult, screen: Console) -> None:
    measures = table("", "before", "after", right=("before", "after"))

    def add(name: str, before: str, after: str) -> None:
        measures.add_row(name, before, after)

    def accuracy(name: str, change: Change) -> None:
        add(name, percent(change.before), percent(change.after))

    accuracy("Accuracy of linear probes trained on the words of the fit", result.linear_probe)
    accuracy("Accuracy of linear probes trained and tested on fresh words", result.fresh_probe)
    add("Accuracy of always answering the commoner class", *[percent(result.majority)] * 2)
    bits = result.bits_left
    add(
        "Bits per word that linear probes trained on the words of the fit gain",
        f"{bits.before:.3f}",
        f"{bits.after:.3f}",
    )
    add("Share of the variance kept", percent(1.0), percent(result.variance_kept))
    screen.print(measures)
    screen.print()


def _neighbours(neighbours: tuple[NeighbourChange, ...], screen: Console) -> None:
    from rich.text import Text

    listing = table("Nearest words", "before", "after")
    for n in neighbours:
        after = Text(", ").join(_marked(word, n.before) for word in n.after)
        listing.add_row(n.word, ", ".join(n.before), after)
    screen.print(listing)
    screen.print()


def _marked(word: str, before: tuple[str, ...]) -> Text:
    from rich.text import Text

    return Text(word, style="" if word in before else "cyan")


def _next_step(screen: Console, saved: Path | None) -> None:
    if saved is None:
        screen.print("Next: expunge demo --save gender.safetensors", style="bold")
        return
    name = printable(str(saved), screen.encoding)
    screen.print(f"Saved to {name}", soft_wrap=True)
    typed = printable(to_type(saved), screen.encoding)
    screen.print(f"Next: expunge info {typed}", style="bold", soft_wrap=True)


def _paragraph(screen: Console, text: str, style: str = "") -> None:
    screen.print(text, style=style)
    screen.print()
