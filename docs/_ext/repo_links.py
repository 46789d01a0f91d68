"""Links that are right in the repository, made right on the site.

A page says ``[quickstart](../examples/quickstart.py)``, which a reader of the files can follow. On
the site the script has a page of its own. Pages that include a file of the repository's root get
its text with its links turned as well.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

# what a page under docs/ links to -> the page of the site; the first that fits
PAGES = {
    r"gallery": r"generated/gallery/index.rst",
    r"\.\./src/expunge/__init__\.py": r"generated/api/index.rst",
    r"\.\./src/expunge/data/SOURCES\.md": r"sources.md",
    r"\.\./README\.md#what-erasure-does-not-promise": r"index.md#what-it-does-not-promise",
    r"\.\./README\.md": r"index.md",
    r"\.\./((?:examples|benchmarks|scripts|src)/[\w/.-]+)\.py": r"generated/code/\1.md",
    r"\.\./examples": r"generated/code/index.md",
    r"(figures/[\w.-]+)\.py": r"generated/code/\1.md",
}
ROOT_PAGES = ("BENCHMARKS", "CHANGELOG", "CONTRIBUTING", "SECURITY", "RELEASING")
PAGES |= {rf"\.\./{name}\.md": f"{name.lower()}.md" for name in ROOT_PAGES}
INCLUDE = re.compile(r"^:::\{include\} \.\./(\S+)\n:::\n", re.MULTILINE)


def rewrite(text: str) -> str:
    """The text of a page with its links turned to pages of the site.

    Examples
    --------
    >>> rewrite("[a](../examples/a.py), [b](../BENCHMARKS.md)")
    '[a](generated/code/examples/a.md), [b](benchmarks.md)'
    """
    for link, page in PAGES.items():
        text = re.sub(rf"(?<=\]\(){link}(?=[#)])", page, text)
    return text


def seen_from_docs(text: str) -> str:
    """The text of a file of the root with links as they are written under docs/.

    Examples
    --------
    >>> seen_from_docs("[a](docs/a.md), [b](SECURITY.md), [c](#here), [d](https://x.org)")
    '[a](a.md), [b](../SECURITY.md), [c](#here), [d](https://x.org)'
    """
    text = re.sub(r"(?<=\]\()(?![a-z]+://|#|docs/)", "../", text)
    return re.sub(r"(?<=\]\()docs/", "", text)


def embedded(text: str, root: Path) -> str:
    """The text of a page with the files it includes, but for their titles."""

    def content(found: re.Match[str]) -> str:
        _, _, rest = (root / found[1]).read_text(encoding="utf-8").partition("\n")
        return seen_from_docs(rest)

    return INCLUDE.sub(content, text)


def read(app: Sphinx, name: str, source: list[str]) -> None:
    """Sphinx has read a page."""
    if "/" not in name:
        source[0] = rewrite(embedded(source[0], Path(app.srcdir).parent))


def setup(app: Sphinx) -> dict[str, Any]:
    """Look at every page before it is parsed."""
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
