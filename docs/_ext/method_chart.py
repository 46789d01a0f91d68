"""The chart "which method": questions from top to bottom, answers to click on beside them.

Drawn twice as SVG, wide and narrow; a style sheet shows the one that fits the window and colours it
for light and dark. Answers whose page does not exist are left out.
"""

from __future__ import annotations

import html
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

import expunge as ex

API = "generated/api/expunge.{}.html"


@dataclass(frozen=True)
class Step:
    """A question, and what to take when the answer is yes."""

    question: str
    answer: str
    why: str
    link: str
    needs: str = ""  # a public name without which the step is left out


STEPS = [
    Step(
        "No labels, only pairs of rows?",
        "PairPCA",
        "a baseline: principal directions of the pairs",
        API.format("PairPCA"),
    ),
    Step(
        "Must curved predictors fail too, at the price of larger changes?",
        "FoldEraser",
        "classes laid upon each other",
        "fold.html",
        "FoldEraser",
    ),
    Step(
        "Must quadratic predictors fail too?",
        "QuadraticLEACE",
        "class covariances made equal as well",
        API.format("QuadraticLEACE"),
    ),
    Step(
        "Is the concept of every later row known, and are no columns whole numbers?",
        "OracleLEACE",
        "the least change of all",
        API.format("OracleLEACE"),
    ),
    Step(
        "Does one task have to stay readable?",
        "SPLINCE",
        "keeps the covariance with the task",
        API.format("SPLINCE"),
    ),
    Step(
        "Columns in different units, or rows that others go on to use?",
        "LEACE",
        "least change; units do not matter",
        API.format("LEACE"),
    ),
    Step(
        "Exactly K directions, perhaps fewer than the concept has?",
        "RLACE(K)",
        "the game; see what each K leaves",
        "the-game.html",
    ),
    Step(
        "None of these: embeddings, states, pixels",
        "RLACE()",
        "fewest directions gone, the rest untouched",
        API.format("RLACE"),
    ),
]
ALSO = [
    ("few labels, many rows", "few-labels.html"),
    ("files larger than memory", "files.html"),
    ("a cluster", "cluster.html"),
    ("inside a model", "models.html"),
    ("a table", "fairness.html"),
    ("a baseline: INLP", API.format("INLP")),
]


def steps() -> list[Step]:
    """The steps whose answer exists."""
    return [step for step in STEPS if not step.needs or step.needs in ex.__all__]


def box(x: float, y: float, width: float, height: float, kind: str) -> str:
    """A rounded rectangle."""
    return f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="8"/>'


def words(x: float, y: float, lines: list[str], kind: str, step: float = 19) -> str:
    """Lines of text, the first one at y."""
    return "".join(
        f'<text class="{kind}" x="{x}" y="{y + i * step}">{html.escape(line)}</text>'
        for i, line in enumerate(lines)
    )


def arrow(x1: float, y1: float, x2: float, y2: float) -> str:
    """A line with a head."""
    return f'<path class="arrow" d="M{x1} {y1} L{x2} {y2}" marker-end="url(#HEAD)"/>'


def answer(step: Step, x: float, y: float, width: float) -> str:
    """An answer that is a link."""
    inside = box(x, y, width, 54, "answer")
    inside += words(x + 14, y + 23, [step.answer], "name") + words(
        x + 14, y + 43, [step.why], "why"
    )
    return f'<a href="{step.link}" aria-label="{html.escape(step.answer)}">{inside}</a>'


def chart(width: int, question: int, beside: bool) -> str:
    """The chart for windows of one kind; `question` is how many letters fit into a line."""
    parts, y = [], 6.0
    left = 350 if beside else width - 8
    for i, step in enumerate(steps()):
        lines = textwrap.wrap(step.question, question)
        last = i + 1 == len(steps())
        height = max(54.0, 22 + 19 * len(lines)) if beside else 22.0 + 19 * len(lines)
        parts.append(box(4, y, left, height, "question"))
        parts.append(words(18, y + height / 2 + 6 - 9.5 * (len(lines) - 1), lines, "ask"))
        if beside:
            middle = y + height / 2
            parts.append(arrow(4 + left, middle, 424, middle))
            parts.append("" if last else words(374, middle - 7, ["yes"], "hint"))
            parts.append(answer(step, 430, middle - 27, width - 434))
            end = y + height
        else:
            parts.append(arrow(60, y + height, 60, y + height + 20))
            parts.append("" if last else words(70, y + height + 16, ["yes"], "hint"))
            parts.append(answer(step, 34, y + height + 26, width - 38))
            end = y + height + 80
        if not last:
            parts.append(arrow(18, y + height, 18, end + 20))
            parts.append(words(28, end + 16, ["no"], "hint"))
        y = end + 26
    kind = "wide" if beside else "narrow"
    drawn = (
        f'<svg class="method-chart {kind}" viewBox="0 0 {width} {y:.0f}" role="img" '
        f'aria-label="Which method to take"><defs><marker id="HEAD" markerWidth="8" '
        f'markerHeight="8" refX="6" refY="4" orient="auto">'
        f'<path class="head" d="M0 0 L8 4 L0 8 z"/>'
        f"</marker></defs>{''.join(parts)}</svg>"
    )
    return drawn.replace("HEAD", f"head-{kind}")  # one name on a page for one mark


def page() -> str:
    """Both charts, and links to what is beside the choice of a method."""
    also = " · ".join(f'<a href="{link}">{html.escape(text)}</a>' for text, link in ALSO)
    return f"{chart(760, 42, True)}\n{chart(380, 40, False)}\n<p>Also: {also}.</p>\n"


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the chart where the pages include it."""
    path = Path(app.srcdir) / "generated" / "method_chart.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(), encoding="utf-8")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
