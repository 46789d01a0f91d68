"""A page for every script of examples/, and for every other Python file that a page links to.

The first line of a file is its title, then comes the file itself. The tests run the examples and
check what they print, so the site shows them as they are.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

LINK = re.compile(r"\]\((?:\.\./)?((?:src|benchmarks|figures|scripts)/[\w/.-]+\.py)\)")
PAGE = """---
orphan: true
---

# {title}

`{name}`

:::{{literalinclude}} {path}
:language: python
:::
"""
INDEX = """# Scripts

Short programs without pictures, to be copied and run as they are. The tests run each of them and
check what it prints.

:::{{toctree}}
:maxdepth: 1

{names}
:::

The first of them to read:

:::{{literalinclude}} ../../../examples/quickstart.py
:language: python
:::
"""


def page(file: Path, name: str, path: str) -> str:
    """The page of a file, in Markdown; `path` is the file as seen from the page."""
    said = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or name
    return PAGE.format(title=said.partition("\n")[0].rstrip("."), name=name, path=path)


def pages(docs: Path) -> dict[str, str]:
    """Text of every page by its place under docs/generated/code.

    Examples
    --------
    >>> docs = Path(__file__).parents[1]
    >>> "# Erase gender" in pages(docs)["examples/quickstart.md"]
    True
    """
    root = docs.parent
    linked = {
        found
        for text in docs.glob("*.md")
        for found in LINK.findall(text.read_text(encoding="utf-8"))
    }
    files = {name: (docs if name.startswith("figures/") else root) / name for name in linked}
    examples = sorted((root / "examples").glob("*.py"))
    files |= {f"examples/{script.name}": script for script in examples}
    made = {}
    for name, file in files.items():
        up = "../" * (name.count("/") + 2)  # to docs/
        seen = up + (name if name.startswith("figures/") else f"../{name}")
        made[f"{name.removesuffix('.py')}.md"] = page(file, name, seen)
    made["index.md"] = INDEX.format(names="\n".join(f"examples/{s.stem}" for s in examples))
    return made


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages before Sphinx looks for them; those that have not changed keep their date."""
    folder = Path(app.srcdir) / "generated" / "code"
    made = pages(Path(app.srcdir))
    for old in folder.rglob("*.md"):
        if old.relative_to(folder).as_posix() not in made:
            old.unlink()
    for name, text in made.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
