"""Pages of any content: escaped, closed against foreign scripts, the same look for all."""

import base64
import hashlib
import json
import re

import plotly.graph_objects as go
import pytest
from pages import Page

from expunge.report import (
    Card,
    Cards,
    Details,
    Facts,
    Figure,
    Items,
    Picture,
    Section,
    Statement,
    Table,
    render_page,
)
from expunge.report.parts import cell

HOSTILE = [
    "<script>window.hacked = 1</script>",
    "</script><script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 1'>",
    '"><svg onload="window.hacked = 1">',
    '<a href="javascript:window.hacked = 1">press</a>',
    "<!-- <script>",
    "{{ 7 * 7 }}{% raw %}",
    "]]> & &lt;b&gt;",
]


def everything(text):
    """Every kind of block with `text` in each of its places."""
    figure = Figure([{"x": [1], "y": [2], "name": "n", "customdata": [[text]]}], {}, text, text)
    table = Table([text, "n"], [[text, 1], [text, 2.5]], text, search=text)
    inner = Section(text, [text, Facts([(text, text)])], badge=text)
    return [
        Section(
            text,
            [
                text,
                Statement(text),
                Items([text]),
                Cards([Card(text, text, "good", [(text, text)], text)]),
                table,
                figure,
                Details(text, [text, figure]),
                inner,
            ],
        )
    ]


@pytest.mark.parametrize("text", HOSTILE)
def test_text_stays_text(text):
    plain = Page(render_page("word", everything("word"), subtitle="word", data={"word": "word"}))
    page = Page(render_page(text, everything(text), subtitle=text, data={text: text}))
    assert page.tags == plain.tags
    assert len(page.scripts) == len(plain.scripts)
    seen = page.words.count(" ".join(text.split()))
    assert seen >= plain.words.count("word") > 10


@pytest.mark.parametrize("text", HOSTILE)
def test_data_come_back_as_they_were(text):
    page = Page(render_page("t", everything(text), data={"a": text}))
    blocks = [json.loads(body) for kind, body in page.scripts if "application/json" in kind]
    assert blocks[-1] == {"a": text}
    assert blocks[0]["data"][0]["customdata"] == [[text]]


def test_only_the_scripts_of_the_page_may_run():
    text = render_page("t", everything("word"))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1].replace("&#39;", "'")
    allowed = set(re.findall(r"'sha256-([^']+)'", policy))
    bodies = [body for kind, body in Page(text).scripts if not kind]
    real = {base64.b64encode(hashlib.sha256(body.encode()).digest()).decode() for body in bodies}
    assert len(bodies) == 2
    assert allowed == real
    assert policy.startswith("default-src 'none';")
    assert "script-src 'unsafe-inline'" not in policy


def test_a_page_without_figures_is_small():
    text = render_page("t", [Section("S", ["Only words."])])
    assert len(text) < 60_000
    assert "plotly.js" not in text


def test_a_figure_of_the_plotly_package():
    figure = go.Figure(go.Bar(x=["a", "b"], y=[1.23456789, 2]), {"title": {"text": "T"}})
    page = Page(render_page("t", [Section("S", [Figure.of(figure, "A caption.")])]))
    data = json.loads(next(body for kind, body in page.scripts if "figure-data-0" in kind))
    assert data["data"][0]["type"] == "bar"
    assert data["data"][0]["y"] == [1.235, 2]
    assert data["layout"] == {"title": {"text": "T"}}
    assert "A caption." in page.words


def test_a_picture_is_carried_in_the_page():
    text = render_page("t", [Section("S", [Picture(b"\x89PNG rest", "<b>", '"><b>')])])
    page = Page(text)
    assert ("img", "src", "data:image/png;base64,iVBORyByZXN0") in page.addresses
    assert "b" not in page.tags
    assert "<b>" in page.words


def test_anchors_are_distinct_and_lead_to_sections():
    names = ["Same", "Same", "Same 2", "!?", "Same"]
    text = render_page("t", [Section(name, ["x"]) for name in names])
    anchors = re.findall(r'<section id="([^"]*)"', text)
    assert len(set(anchors)) == len(names)
    targets = [value for tag, _, value in Page(text).addresses if value != "#content"]
    assert targets == [f"#{anchor}" for anchor in anchors]


def test_numbers_are_set_right_and_sorted_as_numbers():
    table = Table(
        ["a", "n", "p"], [["x", 1200, cell("5%", 0.05)], ["y", None, cell("6%", 0.06)]], ""
    )
    assert table.numeric == [False, True, True]
    text = render_page("t", [Section("S", [table])])
    assert '<td class="number" data-sort="1200">1,200</td>' in text
    assert '<td class="number">–</td>' in text


def test_equal_input_gives_equal_pages():
    assert render_page("t", everything("w")) == render_page("t", everything("w"))
