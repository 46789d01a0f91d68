"""The command line. Every command lives in a module of `expunge.commands` and is added here.

Exit codes: 0 success, 2 bad input (one message on the error stream, no traceback).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from expunge._version import __version__
from expunge.commands.bake_model import bake
from expunge.commands.demo import demo
from expunge.commands.info import info
from expunge.commands.reproduce import reproduce
from expunge.commands.scrub_model import scrub
from expunge.errors import ExpungeError

__all__ = ["app", "main"]

BAD_INPUT = 2

app = typer.Typer(
    name="expunge",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(demo)
app.command()(info)
app.command()(reproduce)
app.command()(scrub)
app.command()(bake)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"expunge {__version__}")
        raise typer.Exit


@app.callback()
def expunge(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Remove a concept from vector representations so that no linear predictor can recover it."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments after the name of the program; those of the process by default.

    Returns
    -------
    int
        0 on success, 2 on bad input.
    """
    try:
        app(args=None if argv is None else list(argv), prog_name="expunge")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except (ExpungeError, OSError) as error:
        message = " ".join(str(error).split())
        sys.stderr.write(f"expunge: {message}\n")
        return BAD_INPUT
    return 0


if __name__ == "__main__":
    sys.exit(main())
