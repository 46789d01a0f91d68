"""Places in a table of contents for pages that may come: ``name?`` counts once it is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx


def keep(text: str, folder: Path) -> str:
    r"""The text with ``name?`` lines turned into ``name``, or taken out.

    Examples
    --------
    >>> keep("a\nno-such-page?\nb\n", Path("."))
    'a\nb\n'
    """

    def line(found: re.Match[str]) -> str:
        return f"{found[1]}\n" if (folder / f"{found[1]}.md").exists() else ""

    return re.sub(r"^([\w-]+)\?\n", line, text, flags=re.MULTILINE)


def read(app: Sphinx, name: str, source: list[str]) -> None:
    """Sphinx has read a page."""
    source[0] = keep(source[0], Path(app.env.doc2path(name)).parent)


def setup(app: Sphinx) -> dict[str, Any]:
    """Look at every page before it is parsed."""
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
