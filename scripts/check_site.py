"""Check a built site: every link inside it leads somewhere, nothing is fetched, no page is bare.

Run as ``python scripts/check_site.py build/site``. Prints what is wrong and ends with 1.

A page has to show something: a picture, or code that was run (the tests run the blocks of the
pages and the examples of docstrings, the build runs the gallery). Links to other sites are counted
and not followed.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

BARE = {"genindex.html", "search.html", "py-modindex.html"}
FETCHED = {"link": "href", "script": "src", "img": "src", "iframe": "src"}


class Page(HTMLParser):
    """Anchors, links, what is fetched, and whether the article shows anything."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = {""}
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.shows = False
        self.in_article = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Look at one tag."""
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[key] for key in ("id", "name") if key in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        wanted = FETCHED.get(tag)
        if wanted in found and found.get("rel") not in ("canonical", "search", "next", "prev"):
            self.fetched.append(found[wanted])
        self.in_article |= tag == "article"
        code = "highlight" in found.get("class", "").split()
        self.shows |= self.in_article and (tag in ("img", "svg", "object") or code)

    def handle_endtag(self, tag: str) -> None:
        """Leave the article."""
        self.in_article &= tag != "article"


def faults(site: Path) -> list[str]:
    """What is wrong with a site, in words.

    Parameters
    ----------
    site : Path
        The folder with its ``index.html``.
    """
    found = [
        path for path in sorted(site.rglob("*.html")) if path.parts[len(site.parts)] != "_static"
    ]
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in found}
    said = []
    for path, page in pages.items():
        name = path.relative_to(site)
        if not page.shows and name.name not in BARE:
            said.append(f"{name}: no picture and no code")
        said += [f"{name}: fetches {url}" for url in page.fetched if is_foreign(url)]
        for url in {*page.links, *page.fetched}:
            if not is_foreign(url) and (why := leads_nowhere(path, url, pages)):
                said.append(f"{name}: {url} {why}")
    return said


def is_foreign(url: str) -> bool:
    """Whether an address is on another site."""
    return bool(urlsplit(url).scheme or url.startswith("//")) and not url.startswith("data:")


def leads_nowhere(path: Path, url: str, pages: dict[Path, Page]) -> str:
    """Why a link from a page fails; empty if it does not."""
    if url.startswith("data:"):
        return ""
    place, anchor = urldefrag(url)
    target = path if not place else (path.parent / unquote(urlsplit(place).path)).resolve()
    if not target.exists():
        return "is not there"
    if anchor and target in pages and unquote(anchor) not in pages[target].anchors:
        return "has no such place"
    return ""


def main() -> int:
    """Check the site that was named."""
    site = Path(sys.argv[1]).resolve()
    said = faults(site)
    print(
        "\n".join(said)
        or f"{len(list(site.rglob('*.html')))} pages: links, assets and content are well."
    )
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
