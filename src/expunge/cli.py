"""The command line. Every command lives in a module of `expunge.commands` and is added here.

Exit codes: 0 success, 2 bad input (one message on the error stream, no traceback), 130 interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from expunge._version import __version__
from expunge.commands import (
    apply,
    audit,
    bake_model,
    compare,
    convert,
    demo,
    fit,
    frontier,
    info,
    plan,
    rank_path,
    reproduce,
    scrub_model,
)
from expunge.commands.guard import INTERRUPTED, guarded, say
from expunge.errors import ExpungeError

__all__ = ["app", "main"]

BAD_INPUT = 2
KEPT = "nothing was replaced; finished files of a folder are kept, go on with --resume"

EXAMPLES = """\b
A table with a column of vectors, cleaned, with a certificate and a report:
  expunge fit people.parquet --concept gender --holdout 0.2 -o gender.safetensors
  expunge apply gender.safetensors people.parquet -o clean.parquet
  expunge audit gender.safetensors people.parquet --concept gender --report report.html
  expunge info gender.safetensors

\b
expunge COMMAND --help says more, with examples.
"""

app = typer.Typer(
    name="expunge",
    add_completion=True,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXAMPLES,
)
app.command(epilog=fit.EXAMPLES)(guarded(fit.fit))
app.command(epilog=apply.EXAMPLES)(guarded(apply.apply, KEPT))
app.command(epilog=audit.EXAMPLES)(guarded(audit.audit))
app.command(epilog=info.EXAMPLES)(guarded(info.info))
app.command(epilog=compare.EXAMPLES)(guarded(compare.compare))
app.command(epilog=frontier.EXAMPLES)(guarded(frontier.frontier))
app.command("rank-path", epilog=rank_path.EXAMPLES)(guarded(rank_path.rank_path))
app.command(epilog=plan.EXAMPLES)(guarded(plan.plan))
app.command(epilog=convert.EXAMPLES)(guarded(convert.convert, KEPT))
app.command(epilog=demo.EXAMPLES)(guarded(demo.demo))
app.command(epilog=reproduce.EXAMPLES)(guarded(reproduce.reproduce))
app.command(epilog=scrub_model.EXAMPLES)(guarded(scrub_model.scrub))
app.command(epilog=bake_model.EXAMPLES)(guarded(bake_model.bake))


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
        0 on success, 2 on bad input, 130 when interrupted.
    """
    try:
        app(args=None if argv is None else list(argv), prog_name="expunge")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    except (ExpungeError, OSError, MemoryError) as error:
        say(_said(error))
        return BAD_INPUT
    return 0


def _said(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.strerror}: {error.filename}"
    return str(error) or "there is not enough memory"


if __name__ == "__main__":
    sys.exit(main())
