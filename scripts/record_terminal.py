"""Record the commands of the README as a picture of a terminal: docs/figures/terminal.svg.

Run it from the root of a clone: ``python scripts/record_terminal.py``. The commands are read from
the README and really run, in a temporary folder; long output is cut.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs" / "figures" / "terminal.svg"
WIDTH, SHOWN = 100, 13  # columns of the terminal, lines of each output
FONT = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks() -> tuple[str, list[str]]:
    """The Python that makes the table, and the commands after it."""
    section = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Command line")[2]
    found = BLOCK.findall(section)
    python = next(code for kind, code in found if kind == "python")
    shell = next(code for kind, code in found if kind == "sh")
    return python, shell.splitlines()


def record(python: str, commands: list[str], folder: str) -> Console:
    """A console that has seen the commands and what they print."""
    begin = "from expunge.data import load_glove\nglove = load_glove()\n"
    subprocess.run([sys.executable, "-c", begin + python], cwd=folder, check=True)
    screen = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    env = {**os.environ, "FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": str(WIDTH)}
    for command in commands:
        screen.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
        run = [sys.executable, "-m", "expunge.cli", *shlex.split(command)[1:]]
        done = subprocess.run(
            run, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
        )
        lines = done.stdout.decode().rstrip().split("\n")
        for line in lines[:SHOWN]:
            screen.print(Text.from_ansi(line.rstrip()))
        if len(lines) > SHOWN:
            screen.print(f"... {len(lines) - SHOWN} more lines", style="dim")
        screen.print()
    return screen


def main() -> None:
    """Record, and write the picture."""
    with tempfile.TemporaryDirectory() as folder:
        screen = record(*blocks(), folder)
    svg = screen.export_svg(title="expunge", unique_id="terminal")
    svg = FONT.sub("", svg)  # those of the reader's machine will do
    TARGET.write_text(svg, encoding="utf-8")
    print(f"{TARGET.relative_to(ROOT)}: {len(svg):,} bytes")


if __name__ == "__main__":
    main()
