"""Sections -> one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from expunge._version import __version__
from expunge.number_text import rounded
from expunge.optional import require
from expunge.report.parts import Details, Figure, Section
from expunge.report.values import cleaned

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["render_page"]

MOST_NUMBERS = 300_000  # characters of JSON that a page carries along
# < > & and the two line separators would end a script element or a line of JavaScript
SPECIAL = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


def render_page(
    title: str,
    sections: Sequence[Section],
    *,
    subtitle: str = "",
    data: Mapping[str, Any] | None = None,
) -> str:
    """One self-contained page: style, script, figures and the library that draws them.

    Equal input gives equal text. All text is escaped, and the page forbids itself by a content
    security policy to run any other script and to load anything.

    Parameters
    ----------
    title : str
    sections : sequence of Section
    subtitle : str
        A line below the title.
    data : mapping, optional
        Numbers behind the page; a button offers them as a JSON file, unless they are many.

    Returns
    -------
    str
        HTML.

    Raises
    ------
    ImportError
        Without jinja2 or plotly; the message names the extra that brings them.

    Examples
    --------
    >>> from expunge.report import Figure, Section, Table, render_page
    >>> figure = Figure([{"x": [1, 2], "y": [3, 1]}], {}, "Two points.")
    >>> table = Table(["word", "n"], [["<b>", 1]], "One row.")
    >>> page = render_page("A page", [Section("First", ["Text.", table, figure])])
    >>> page.startswith("<!doctype html>"), "&lt;b&gt;" in page, "<b>" in page.split("<script")[0]
    (True, True, False)
    """
    figures = list(_figures(sections))
    script = _asset("page.js")
    library = _plotly() if figures else ""
    text: str = (
        _environment()
        .get_template("page.html")
        .render(
            title=title,
            subtitle=subtitle,
            sections=sections,
            anchors=_anchors(sections),
            numbers={id(figure): place for place, figure in enumerate(figures)},
            figures=[_json(_drawn(figure)) for figure in figures],
            style=_asset("style.css"),
            dark=_asset("dark.css"),
            scripts=[text for text in (library, script) if text],
            policy=_policy([text for text in (library, script) if text]),
            data=_offered(data),
            version=__version__,
        )
    )
    return text


def _figures(content: Sequence[Any]) -> Iterator[Figure]:
    """All figures in order of appearance."""
    for block in content:
        if isinstance(block, Figure):
            yield block
        elif isinstance(block, Section | Details):
            yield from _figures(block.content)


def _anchors(sections: Sequence[Section]) -> list[str]:
    """A distinct name for the place of each section."""
    names: list[str] = []
    for section in sections:
        name = re.sub(r"[^a-z0-9]+", "-", section.heading.lower()).strip("-") or "section"
        same = sum(re.fullmatch(rf"{name}(-\d+)?", other) is not None for other in names)
        names.append(f"{name}-{same + 1}" if same else name)
    return names


def _drawn(figure: Figure) -> dict[str, Any]:
    """What the script of the page needs of a figure."""
    views = [dict(vars(view)) for view in figure.views]
    plain = {"data": figure.data, "layout": figure.layout, "views": views}
    return dict(rounded(cleaned(plain)))


def _json(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.translate(SPECIAL)


def _offered(data: Mapping[str, Any] | None) -> str | None:
    """The numbers as JSON, where they do not make the page too large."""
    text = None if data is None else _json(cleaned(data))
    return None if text is None or len(text) > MOST_NUMBERS else text


def _policy(scripts: Sequence[str]) -> str:
    """A content security policy: these scripts, inline styles, pictures made here; nothing else."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
        for text in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


@cache
def _asset(name: str) -> str:
    return (files("expunge.report") / "templates" / name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    jinja2 = require("jinja2", "report")
    environment: Environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["identity"] = id
    return environment


@cache
def _plotly() -> str:
    """The drawing library as the plotly package carries it, fit for a script element."""
    text: str = require("plotly.offline", "report").get_plotlyjs()
    text = text.replace("\r\n", "\n").replace("\r", "\n")  # as a browser reads it, for the hash
    return re.sub("<(/script|!--)", r"<\\\1", text, flags=re.IGNORECASE)
