"""What a page is made of: sections of text, tables, figures and a few boxes. Values only."""

from __future__ import annotations

import base64
import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from expunge.number_text import count, number
from expunge.report.values import clip

__all__ = [
    "Block",
    "Card",
    "Cards",
    "Cell",
    "Details",
    "Facts",
    "Figure",
    "Items",
    "Picture",
    "Section",
    "Statement",
    "Table",
    "View",
    "cell",
    "label",
]

Tone = Literal["plain", "good", "bad", "unsure"]


@dataclass(frozen=True)
class Cell:
    """One entry of a table.

    Attributes
    ----------
    pieces : tuple of (str, bool)
        Text, and whether it is marked.
    sort : float, str or None
        What a column is sorted by.
    """

    pieces: tuple[tuple[str, bool], ...]
    sort: float | str | None = None


def cell(value: Any, sort: float | str | None = None) -> Cell:
    """An entry from text or a number.

    Parameters
    ----------
    value : str, int, float, None or Cell
    sort : float or str, optional
        By default the number itself, or the text.

    Returns
    -------
    Cell

    Examples
    --------
    >>> from expunge.report.parts import cell
    >>> cell(1234), cell("51.3%", 0.513).sort
    (Cell(pieces=(('1,234', False),), sort=1234), 0.513)
    """
    if isinstance(value, Cell):
        return value
    if value is None:
        return Cell((("–", False),), sort)
    if isinstance(value, bool):
        return Cell((("yes" if value else "no", False),), sort)
    if isinstance(value, int | float):
        text = count(value) if isinstance(value, int) else number(value, 4)
        return Cell(((text, False),), value if sort is None else sort)
    return Cell(((str(value), False),), sort)


@dataclass(frozen=True)
class Table:
    """A table; a click on the head of a column sorts it.

    Attributes
    ----------
    columns : sequence of str
        The heads.
    rows : sequence of sequences
        Text, numbers or `Cell`, one for each column.
    caption : str
        What is in it: what was measured, on which rows, in which unit.
    search : str
        The label of a search box above it; none if empty.

    Examples
    --------
    >>> from expunge.report import Table
    >>> Table(["word", "n"], [["a", 1], ["b", 2]], "Two words and their counts.").numeric
    [False, True]
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    caption: str
    search: str = ""
    kind: ClassVar[str] = "table"

    @property
    def cells(self) -> list[list[Cell]]:
        """The rows, every entry a `Cell`."""
        return [[cell(value) for value in row] for row in self.rows]

    @property
    def numeric(self) -> list[bool]:
        """Which columns hold numbers, to be set flush right."""
        body = self.cells
        return [
            bool(body)
            and all(isinstance(row[j].sort, int | float) or _absent(row[j]) for row in body)
            for j in range(len(self.columns))
        ]


def _absent(entry: Cell) -> bool:
    return entry.pieces == (("–", False),)


@dataclass(frozen=True)
class View:
    """Another state of a figure, chosen by a toggle.

    Attributes
    ----------
    name : str
    data : list of dict
        For each trace of the figure, what replaces its entries.
    layout : dict
        Entries of the layout, by dotted name.
    paper : bool
        Whether it is printed.
    """

    name: str
    data: list[dict[str, Any]]
    layout: dict[str, Any] = field(default_factory=dict)
    paper: bool = True


@dataclass(frozen=True)
class Figure:
    """An interactive figure.

    Colours may be names of the page's palette, such as ``var(--after)``: they follow the theme.

    Attributes
    ----------
    data : list of dict
        Plotly traces.
    layout : dict
        Plotly layout; the page adds fonts, margins and colours. With an `aspect` in its `meta`, the
        height follows the width.
    caption : str
        What was measured, on which rows, in which unit.
    alt : str
        The same in one sentence for those who do not see it.
    views : sequence of View
        States to choose from; the first is shown first and equals `data`.
    find : str
        The label of a box that finds points by the first entry of their `customdata`.

    Examples
    --------
    >>> from expunge.report import Figure
    >>> Figure([{"x": [1, 2], "y": [3, 4]}], {"height": 300}, "Two points.").height
    300
    """

    data: list[dict[str, Any]]
    layout: dict[str, Any]
    caption: str
    alt: str = ""
    views: Sequence[View] = ()
    find: str = ""
    kind: ClassVar[str] = "figure"

    @classmethod
    def of(cls, figure: Any, caption: str, alt: str = "") -> Figure:
        """From a figure of the plotly package, or a dictionary with data and layout."""
        plain = figure if isinstance(figure, Mapping) else figure.to_plotly_json()
        layout = {key: value for key, value in plain.get("layout", {}).items() if key != "template"}
        return cls(list(plain["data"]), layout, caption, alt)

    @property
    def height(self) -> int:
        """Pixels to keep free for it."""
        return int(self.layout.get("height", 380))


@dataclass(frozen=True)
class Picture:
    """A picture that does not move.

    Attributes
    ----------
    png : bytes
        The content of a PNG file.
    caption : str
    alt : str
        What it shows, for those who do not see it.
    """

    png: bytes
    caption: str
    alt: str = ""
    kind: ClassVar[str] = "picture"

    @property
    def source(self) -> str:
        """The picture as an address that holds it."""
        return f"data:image/png;base64,{base64.b64encode(self.png).decode()}"


@dataclass(frozen=True)
class Facts:
    """Names with their values.

    Attributes
    ----------
    pairs : sequence of (str, str)
    """

    pairs: Sequence[tuple[str, str]]
    kind: ClassVar[str] = "facts"


@dataclass(frozen=True)
class Items:
    """A list of sentences.

    Attributes
    ----------
    texts : sequence of str
    """

    texts: Sequence[str]
    kind: ClassVar[str] = "items"


@dataclass(frozen=True)
class Statement:
    """One sentence in large type.

    Attributes
    ----------
    text : str
    """

    text: str
    kind: ClassVar[str] = "statement"


@dataclass(frozen=True)
class Card:
    """A finding in a box.

    Attributes
    ----------
    title, value : str
        What it is about, and the finding in a word or two.
    tone : {"plain", "good", "bad", "unsure"}
    facts : sequence of (str, str)
    note : str
    """

    title: str
    value: str
    tone: Tone = "plain"
    facts: Sequence[tuple[str, str]] = ()
    note: str = ""


@dataclass(frozen=True)
class Cards:
    """Boxes side by side.

    Attributes
    ----------
    cards : sequence of Card
    """

    cards: Sequence[Card]
    kind: ClassVar[str] = "cards"


@dataclass(frozen=True)
class Details:
    """What is folded away until asked for; paper shows it.

    Attributes
    ----------
    summary : str
    content : sequence of blocks
    """

    summary: str
    content: Sequence[Block]
    kind: ClassVar[str] = "details"


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it.

    Attributes
    ----------
    heading : str
    content : sequence
        Paragraphs (text), tables, figures, other blocks, and sections below this one.
    badge : str
        A few words beside the heading, such as the rows it speaks of.
    tone : {"plain", "good", "bad", "unsure"}
        Of the badge; "good" stands out.
    """

    heading: str
    content: Sequence[Block]
    badge: str = ""
    tone: Tone = "plain"
    kind: ClassVar[str] = "section"


Block = str | Table | Figure | Picture | Facts | Items | Statement | Cards | Details | Section


def label(text: Any, length: int = 40) -> str:
    """Text of the user for a Plotly figure, which reads a little HTML in every label.

    Parameters
    ----------
    text : object
    length : int
        Longer text is cut.

    Returns
    -------
    str

    Examples
    --------
    >>> from expunge.report.parts import label
    >>> label("<b>bold</b>")
    '&lt;b&gt;bold&lt;/b&gt;'
    """
    return html.escape(clip(text, length), quote=False)
