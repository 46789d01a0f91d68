"""What the commands share: the console, tables, the JSON file, the spinner."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from expunge._version import __version__
from expunge.addresses import Where
from expunge.atomic import check_writable, is_stream, write_atomically
from expunge.commands.wording import to_type
from expunge.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = [
    "JsonFile",
    "check_folder",
    "check_page_name",
    "check_target",
    "check_targets",
    "console",
    "printable",
    "show_text",
    "spinner",
    "table",
    "write_json",
]

WIDTH = 100
OWN_STREAMS = {"/dev/stdout": "stdout", "/dev/stderr": "stderr"}

JsonFile = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="Also write the result to this file, as JSON."),
]


def console(*, stderr: bool = False) -> Console:
    """A console of at most 100 columns; colours on a terminal, plain text elsewhere."""
    from rich.console import Console

    class Screen(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # as of any other output

    found = Screen(stderr=stderr, highlight=False, markup=False, emoji=False)
    found.width = min(found.width, WIDTH) if found.is_terminal else WIDTH
    return found


def table(*headers: str, right: tuple[str, ...] = ()) -> Table:
    """An empty table with a line of hyphens under its head: the same characters everywhere."""
    from rich.box import Box
    from rich.table import Table

    blank = "    \n"
    ruled = Box(blank * 2 + " -  \n" + blank * 5, ascii=True)
    made = Table(box=ruled, show_edge=False, header_style="bold", pad_edge=False)
    for header in headers:
        made.add_column(header, justify="right" if header in right else "left")
    return made


@contextmanager
def spinner(message: str) -> Iterator[Callable[[str], None]]:
    """Show on the error stream what is being done, if that is a terminal; yields how to say it."""
    screen = console(stderr=True)
    if not screen.is_terminal:
        yield lambda text: None
        return
    with screen.status(message) as status:
        yield status.update


def check_target(path: Path | None, *, streams: bool = False) -> None:
    """Refuse an output file that cannot be written, before any work is done.

    Parameters
    ----------
    path : path, optional
    streams : bool
        Whether a device or a pipe will do as well, such as /dev/stdout.
    """
    if path is None or (streams and is_stream(path)):
        return
    _check_place(check_writable(path).parent, path)


def check_targets(*targets: Path | None, inputs: Sequence[Where | None] = ()) -> None:
    """Refuse output files that cannot be written, are the same, or would replace what is read.

    Parameters
    ----------
    *targets : path, optional
    inputs : sequence of paths and addresses
        What is read.
    """
    taken = [path.resolve() for path in inputs if isinstance(path, Path)]
    for target in targets:
        check_target(target)
        if target is None:
            continue
        if target.resolve() in taken:
            raise InputError(
                "An output file would replace another file of this command",
                str(target),
                "Name another file",
            )
        taken.append(target.resolve())


def check_page_name(path: Path | None) -> None:
    """Refuse a name for a page that says it is something else.

    Parameters
    ----------
    path : path, optional
    """
    if path is not None and path.suffix.lower() not in (".html", ".htm"):
        better = path.with_suffix(".html") if path.name else path / "report.html"
        raise InputError(
            "The report is a page of HTML: its name ends in .html",
            repr(str(path)),
            f"Write --report {to_type(better)}",
        )


def check_folder(path: Where | None) -> None:
    """Refuse a target whose folder is not there, or cannot be written to.

    Parameters
    ----------
    path : path or address, optional
        Of a file or a folder; stores at addresses may have none before there are files in them.
    """
    if isinstance(path, Path):
        _check_place(path.absolute().parent, path)


def _check_place(folder: Path, path: Path) -> None:
    if not folder.is_dir():
        raise InputError(
            "The folder of the output does not exist", str(path), "Make the folder first"
        )
    if not os.access(folder, os.W_OK):
        raise InputError(
            "The folder of the output cannot be written to", str(path), "Name a file in another"
        )


def show_text(text: str) -> None:
    """Print lines as they are, whatever their width, in signs that the terminal has.

    Parameters
    ----------
    text : str
    """
    screen = console()
    for line in text.split("\n"):
        plain = line.replace("±", "+-").replace("²", "2") if _lacks(line, screen.encoding) else line
        screen.print(printable(plain, screen.encoding), soft_wrap=True)


def _lacks(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return True
    return False


def write_json(path: Path | None, command: str, result: Mapping[str, Any]) -> None:
    """Write a result with the command and the version that made it, all of it or nothing.

    A device or a pipe is written to as it is.

    Parameters
    ----------
    path : path, optional
    command : str
    result : mapping
        JSON values.
    """
    if path is None:
        return
    full = {"command": command, "version": __version__, **result}
    text = f"{json.dumps(_finite(full), indent=2, allow_nan=False)}\n"
    if str(path) in OWN_STREAMS:
        stream = getattr(sys, OWN_STREAMS[str(path)])
        stream.write(text)
        stream.flush()
    elif is_stream(path):
        with path.open("wb") as sink:
            sink.write(text.encode())
    else:
        write_atomically(path, text.encode())


def _finite(value: Any) -> Any:
    """JSON values: numbers of NumPy as Python's, NaN and infinity as null."""
    value = value.item() if hasattr(value, "dtype") and hasattr(value, "item") else value
    if isinstance(value, Mapping):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def printable(text: str, encoding: str) -> str:
    """`text` without control characters and without what the encoding lacks."""
    plain = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return plain.encode(encoding, "backslashreplace").decode(encoding)
