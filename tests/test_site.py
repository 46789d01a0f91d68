"""The site, without building it: no public name and no page is left out; its checks can fail."""

import ast
import doctest
import importlib
import re
import runpy
from pathlib import Path

import pytest

import expunge as ex

pytest.importorskip("sphinx")

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
GALLERY = sorted((DOCS / "gallery").glob("*.py"))
PAGES = sorted(DOCS.glob("*.md"))
INCLUDED = re.compile(r":::\{include\} \.\./(\S+)")


@pytest.fixture(autouse=True)
def _extensions(monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "_ext")


def script(name):
    return runpy.run_path(str(ROOT / "scripts" / f"{name}.py"), run_name=name)


# -- pages ---------------------------------------------------------------------------------------


def test_every_page_is_in_one_table_of_contents():
    entries = []
    for page in PAGES:
        for body in re.findall(r":::\{toctree\}\n(.*?):::", page.read_text("utf-8"), re.DOTALL):
            lines = [line.strip() for line in body.splitlines() if line and line[0] != ":"]
            entries += [re.sub(r".*<(.*)>", r"\1", line).rstrip("?") for line in lines]
    pages = {page.stem for page in PAGES} - {"index"}
    assert pages <= set(entries)
    assert len(entries) == len(set(entries))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_page_shows_a_picture_or_code_that_runs(page):
    text = page.read_text("utf-8")
    if included := INCLUDED.search(text):
        text += (ROOT / included[1]).read_text("utf-8")
    blocks = re.findall(r"^(.*)\n```(?:python|sh)\n", text, re.MULTILINE)
    runs = [before for before in blocks if not before.startswith("<!-- not run")]
    assert runs or re.search(r"!\[.*\]\(", text)


def test_files_of_the_root_have_pages():
    included = {INCLUDED.search(page.read_text("utf-8")) for page in PAGES} - {None}
    from_root = {found[1] for found in included}
    assert {"CONTRIBUTING.md", "SECURITY.md", "RELEASING.md", "CHANGELOG.md"} <= from_root


# -- gallery -------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_a_gallery_script_has_a_title_and_a_picture_and_uses_the_library(path):
    code = path.read_text("utf-8")
    title, line, empty, sentence, *_ = ast.get_docstring(ast.parse(code)).splitlines()
    assert line == "=" * len(title)
    assert empty == ""
    assert sentence
    assert path.name.startswith("plot_")
    assert "plt.subplots" in code
    assert "expunge" in code


def test_the_gallery_has_what_was_promised():
    subjects = " ".join(path.stem for path in GALLERY)
    for subject in (
        *("word_vectors", "biographies", "faces", "tables", "cells", "retrieval"),
        *("scrubbed_model", "files", "dask", "labels"),
    ):
        assert subject in subjects


# -- reference -----------------------------------------------------------------------------------


def test_every_public_name_has_a_page_with_an_example():
    pytest.importorskip("torch")
    pages = importlib.import_module("api_pages")
    examples = importlib.import_module("api_examples").EXAMPLES
    sections = pages.sections()
    listed = [name for names in sections.values() for name in names]
    assert len(listed) == len(set(listed))
    assert {f"expunge.{name}" for name in ex.__all__} - set(listed) == {
        *("expunge.__version__", "expunge.integrations", "expunge.metrics")
    }
    for full in set(listed) - set(sections[pages.ERRORS]):
        module, _, name = full.rpartition(".")
        thing = getattr(importlib.import_module(module), name)
        shown = ">>>" in (thing.__doc__ or "") or full in examples
        assert shown or callable(getattr(thing, name, None)), f"{full} needs an example"


def test_examples_of_the_reference_run():
    pytest.importorskip("torch")
    pages = importlib.import_module("api_pages")
    examples = importlib.import_module("api_examples").EXAMPLES
    runner, parser = doctest.DocTestRunner(), doctest.DocTestParser()
    for name, text in {**examples, "index": pages.START, "errors": pages.ERRORS_START}.items():
        test = parser.get_doctest(text, {}, name, None, 0)
        assert test.examples
        runner.run(test)
    assert runner.summarize().failed == 0


def test_examples_are_of_names_that_exist():
    for full in importlib.import_module("api_examples").EXAMPLES:
        module, _, name = full.rpartition(".")
        assert hasattr(importlib.import_module(module), name)


# -- extensions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["api_pages", "code_pages", "optional_pages", "repo_links"])
def test_examples_of_the_extensions(name):
    failures, tried = doctest.testmod(importlib.import_module(name))
    assert tried
    assert failures == 0


def test_the_chart_names_methods_and_pages_that_exist():
    chart = importlib.import_module("method_chart")
    svg = chart.page()
    assert svg.count("<svg") == 2
    for step in chart.steps():
        assert step.answer.partition("(")[0] in ex.__all__
        assert svg.count(f">{step.answer}<") == 2
    for link in set(re.findall(r'href="([^"]+)"', svg)):
        if link.startswith("generated/api/"):
            assert link.removeprefix("generated/api/expunge.").removesuffix(".html") in ex.__all__
        else:
            assert (DOCS / link).with_suffix(".md").exists(), link


def test_steps_of_the_chart_wait_for_their_method(monkeypatch):
    chart = importlib.import_module("method_chart")
    waiting = chart.Step("Really?", "NoSuchEraser", "why", "none.html", "NoSuchEraser")
    monkeypatch.setattr(chart, "STEPS", [waiting, chart.STEPS[0]])
    assert chart.steps() == [chart.STEPS[1]]


# -- checks that have to be able to fail -----------------------------------------------------------

GOOD = '<html><body><article><img src="a.png"><a href="b.html#here">b</a></article></body></html>'
OTHER = '<html><body><article id="here"><div class="highlight">x</div></article></body></html>'


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ((None, None), ""),
        (("b.html#here", "c.html"), "c.html is not there"),
        (("#here", "#there"), "#there has no such place"),
        (("a.png", "https://x.org/a.png"), "fetches https://x.org/a.png"),
        (('<img src="a.png">', ""), "no picture and no code"),
        (("a.png", "lost.png"), "lost.png is not there"),
        (('"b.html#here"', '"https://elsewhere.org"'), ""),
    ],
)
def test_a_site_is_checked(tmp_path, change, said):
    (tmp_path / "a.png").touch()
    (tmp_path / "b.html").write_text(OTHER, "utf-8")
    (tmp_path / "index.html").write_text(GOOD.replace(*change) if change[0] else GOOD, "utf-8")
    found = script("check_site")["faults"](tmp_path.resolve())
    assert len(found) == bool(said)
    assert all(said in fault for fault in found)


def test_a_wheel_is_checked():
    check = script("check_wheel")
    held = [*check["NEEDED"], "expunge/game/losses.py", "expunge-1.0.dist-info/RECORD"]
    assert check["faults"](held) == []
    assert check["faults"](held[1:]) == [f"{held[0]} is missing"]
    for strange in ("tests/test_a.py", "expunge/data/big.npz", "docs/index.md"):
        assert check["faults"]([*held, strange]) == [f"{strange} does not belong there"]


def test_the_package_holds_what_a_wheel_needs_and_nothing_more():
    check, package = script("check_wheel"), ROOT / "src" / "expunge"
    files = [
        path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ]
    assert check["faults"](path.relative_to(package.parent).as_posix() for path in files) == []


def test_the_citation_is_of_this_version():
    text = (ROOT / "CITATION.cff").read_text("utf-8")
    assert re.search(r"^version: (.*)$", text, re.MULTILINE)[1] == ex.__version__
