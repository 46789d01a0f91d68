"""What a newcomer reads and runs: the README, the pages under docs, the scripts under examples."""

import importlib.util
import os
import re
import shlex
import subprocess
import sys
import textwrap
from itertools import pairwise
from pathlib import Path

import pytest

from expunge.cli import main

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
HOUSE = [ROOT / f"{name}.md" for name in ("CONTRIBUTING", "RELEASING", "SECURITY")]
PAGES = [README, *HOUSE, *sorted((ROOT / "docs").glob("*.md"))]
TASKS = [page for page in PAGES[1:] if "\n```sh\n" in page.read_text(encoding="utf-8")]
SKIP = "<!-- not run"  # on the line before a block
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"[-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")

ENV = {
    **{key: value for key, value in os.environ.items() if key not in ("FORCE_COLOR", "COLUMNS")},
    **{"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONUTF8": "1"},
}

# what each script has to print, as patterns in this order
EXAMPLES = {
    "quickstart": ["before: .* 100.0%", "after: .* 49", "after: .* 5[0-4]", "^erased: "],
    "streaming": ["100,000 rows", "class means: before 7.6.*after .*e-", "^erased: "],
    "sklearn_pipeline": ["rank  1", "rank  8", "rank 32", "probe for parity: 0.50", "^erased: "],
    "below_the_rank": ["descent_ascent", "subspace_ascent", "closed_form", "ignoring x .*2.3025"],
    "custom_loss": ["^erased: .*cross_entropy", "^erased: .*asymmetric", "directions: 1.0"],
    "torch_stream": ["bfloat16", "before: .* 0.9", "after: .* 0.000", "folded against layer: .*e-"],
    "scrub_minilm": ["encoder.layer.5", "last layer: 100%", "all six layers scrubbed: 50%"],
    "dask_cluster": ["DaskRows\\(8 partitions, 16 float32\\)", "7.parquet", "^erased: "],
    "spark_moments": ["on 4000 rows", "^erased: ", "one machine: .*e-"],
    "ray_moments": ["on 4000 rows", "^erased: ", "one machine: .*e-"],
    "sentence_transformers_erasure": ["^erased: ", "Dense, Normalize", "by hand: .*e-"],
    "tables": ["race: .* 54% .* 33%", "sex: .* 77% .* 47%", "in order: True", "0.8", "^erased: "],
    "single_cells": [
        "batch of 83%",
        "batch of 3.%",
        "cell_type of 94%",
        "type of 94%",
        "^erased: ",
    ],
    "retrieval": ["before: 92%", "LangChain: 6.%", "LlamaIndex: 6.%", "Chroma: 6.%", "^erased: "],
    "vector_stores": ["before: 91%", "clean: 70%", "1470 rows", "before: 93%", "clean: 69%"],
    "hub_dataset": ["before: .* 100%", "after: .* 50%", "'embedding'", "^erased: "],
}
# what a user writes to erase, in the examples of other people's worlds
OWN = re.compile(r"^ *# -- erase.*\n((?:.*\n)*?) *# --$", re.MULTILINE)
WORLDS = {"tables": 2, "single_cells": 1, "retrieval": 3, "vector_stores": 3, "hub_dataset": 1}


# engines that are not there for everybody
ENGINES = {
    "spark_moments": ["pyspark"],
    "ray_moments": ["ray"],
    "tables": ["pandas"],
    "single_cells": ["anndata"],
    "retrieval": ["langchain_core", "llama_index", "chromadb"],
    "vector_stores": ["qdrant_client", "lancedb", "faiss"],
    "hub_dataset": ["datasets"],
}
# scripts whose engine warns, or logs what it likes while its processes end
LOUD = {"spark_moments", "ray_moments", "dask_cluster"}


def run(*arguments, cwd=ROOT, strict=True):
    """What a Python process prints; warnings are errors, unless they are those of an engine."""
    command = [sys.executable, *(["-W", "error"] if strict else []), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", cwd=cwd, env=ENV)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "" or not strict
    return done.stdout


def commands(block):
    """The arguments of every `expunge` line of a shell block."""
    for line in block.replace("\\\n", " ").splitlines():
        program, *arguments = shlex.split(line, comments=True) or [""]
        assert program == "expunge", f"{line!r} is not run"
        yield arguments


@pytest.fixture
def typed(capsys, monkeypatch):
    """What the commands of a shell block print: in this process, which has loaded all already."""

    def printed(block, cwd):
        monkeypatch.chdir(cwd)
        capsys.readouterr()
        for arguments in commands(block):
            assert main(arguments) == 0, f"{arguments}: {capsys.readouterr().err}"
        return capsys.readouterr().out

    return printed


def blocks(page):
    """(language, code, line before it, whether indented) of every fenced block."""
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        before = text[: found.start()].splitlines()
        yield found[2], textwrap.dedent(found[3]), before[-1] if before else "", bool(found[1])


def assert_same_output(shown, real):
    """Equal words; equal numbers up to their last digits, tiny ones up to being tiny."""
    assert NUMBER.sub("#", shown).split() == NUMBER.sub("#", real).split()
    for a, b in zip(NUMBER.findall(shown), NUMBER.findall(real), strict=True):
        a, b = float(a.replace(",", "")), float(b.replace(",", ""))
        assert b == pytest.approx(a, rel=0.02, abs=1e-5), f"{shown}\nis now\n{real}"


def test_every_example_is_tested():
    assert {path.stem for path in (ROOT / "examples").glob("*.py")} == set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_prints_what_it_should(name):
    for engine in ENGINES.get(name, []):
        if not importlib.util.find_spec(engine):
            pytest.skip(f"{engine} is not installed")
    printed = run(ROOT / "examples" / f"{name}.py", strict=name not in LOUD)
    assert len(printed.splitlines()) <= 12
    at = 0
    for pattern in EXAMPLES[name]:
        found = re.compile(pattern, re.MULTILINE).search(printed, at)
        assert found, f"{pattern!r} is missing after character {at} of\n{printed}"
        at = found.end()
    if name == "below_the_rank":
        values = [float(line.split()[-1]) for line in printed.splitlines()[1:]]
        assert values == sorted(values)


@pytest.mark.parametrize("name", WORLDS)
def test_a_world_is_a_few_lines_away(name):
    """At most five lines of the user's own for each."""
    parts = OWN.findall((ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8"))
    assert len(parts) == WORLDS[name]
    assert all(1 <= len(part.splitlines()) <= 5 for part in parts)


def test_readme_script_and_output_are_the_real_ones():
    (_, script, _, _), (_, shown, _, _) = next(
        pair for pair in pairwise(blocks(README)) if pair[0][0] == "python"
    )
    assert script == (ROOT / "examples" / "quickstart.py").read_text(encoding="utf-8")
    assert_same_output(shown, run(ROOT / "examples" / "quickstart.py"))


def test_readme_blocks_run_one_after_another(tmp_path, typed):
    script = tmp_path / "readme.py"
    wanted = [
        code
        for kind, code, before, _ in blocks(README)
        if kind == "python" and not before.startswith(SKIP)
    ]
    script.write_text("\n".join(wanted), encoding="utf-8")
    run(script, cwd=tmp_path)
    assert (tmp_path / "gender.safetensors").exists()
    shell = [code for kind, code, _, _ in blocks(README) if kind == "sh"]
    assert sum(len(list(commands(code))) for code in shell) == 4
    printed = "".join(typed(code, tmp_path) for code in shell)
    assert "erased: every linear predictor" in printed
    assert {"clean.parquet", "report.html"} <= {path.name for path in tmp_path.iterdir()}


def test_pages_of_tasks_are_there():
    assert {page.stem for page in TASKS} == {
        *("clean-a-parquet-file", "debias-word-vectors", "check-an-eraser", "ten-million-rows")
    }


@pytest.mark.parametrize("page", TASKS, ids=lambda page: page.stem)
def test_commands_of_a_page_run_and_print_what_follows_them(page, tmp_path, typed):
    """Python and shell in turn, as a reader would type them."""
    found = list(blocks(page))
    for i, (kind, code, before, _) in enumerate(found):
        if before.startswith(SKIP) or kind not in ("python", "sh"):
            continue
        if kind == "python":
            (tmp_path / "block.py").write_text(code, encoding="utf-8")
            printed = run(tmp_path / "block.py", cwd=tmp_path)
        else:
            printed = typed(code, tmp_path)
        if i + 1 < len(found) and found[i + 1][0] == "text":
            assert_same_output(found[i + 1][1], printed)


# pages with little code share a process, each with names of its own
LIGHT = {
    *("CONTRIBUTING", "RELEASING", "SECURITY", "benchmarks", "changelog", "compare", "guide"),
    *("mathematics", "project", "sources", "testing"),
}
ALONE = [page for page in PAGES[1:] if page not in TASKS and page.stem not in LIGHT]
TOGETHER = [page for page in PAGES if page.stem in LIGHT]
MARK = "=== next block ===\n"


def to_run(page):
    """Whether each block of a page is run."""
    return [kind == "python" and not before.startswith(SKIP) for kind, _, before, _ in blocks(page)]


def script_of(page):
    """The blocks of a page as one program that marks the end of each."""
    found = zip(to_run(page), blocks(page), strict=True)
    return "".join(
        f"{code}\nprint({MARK!r}, end='')\n" for wanted, (_, code, *_) in found if wanted
    )


def assert_prints_what_it_shows(page, printed):
    found = list(blocks(page))
    for i, wanted in enumerate(to_run(page)):
        if not wanted:
            continue
        real = next(printed)
        if i + 1 < len(found) and found[i + 1][0] == "text":
            assert_same_output(found[i + 1][1], real)


@pytest.mark.parametrize("page", ALONE, ids=lambda p: p.stem)
def test_blocks_of_a_page_run_and_print_what_follows_them(page, tmp_path):
    if not any(to_run(page)):
        pytest.skip("no Python on this page")
    (tmp_path / "page.py").write_text(script_of(page), encoding="utf-8")
    printed = iter(run(tmp_path / "page.py", cwd=tmp_path).split(MARK))
    assert_prints_what_it_shows(page, printed)


def test_blocks_of_light_pages_run_and_print_what_follows_them(tmp_path):
    assert all(any(to_run(page)) for page in TOGETHER)
    assert {page.stem for page in TOGETHER} == LIGHT
    for page in TOGETHER:
        (tmp_path / f"{page.stem}.py").write_text(script_of(page), encoding="utf-8")
    names = [f"{page.stem}.py" for page in TOGETHER]
    code = f"import runpy; [runpy.run_path(name, run_name='__main__') for name in {names!r}]"
    printed = iter(run("-c", code, cwd=tmp_path).split(MARK))
    for page in TOGETHER:
        assert_prints_what_it_shows(page, printed)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    headings = {slug(line) for line in text.splitlines() if line.startswith("#")}
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", text)):
        path, _, anchor = target.partition("#")
        if "://" in path:
            continue
        assert not path or (page.parent / path).exists(), f"{page.name} links to {target}"
        assert path or anchor in headings, f"{page.name} has no heading {anchor}"


def slug(heading):
    words = re.sub(r"[^\w\s-]", "", heading.lstrip("#").strip().lower())
    return words.replace(" ", "-")


def test_pictures_are_small_and_used():
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    figures = ROOT / "docs" / "figures"
    for picture in (*figures.glob("*.png"), *figures.glob("*.svg")):
        assert picture.stat().st_size < 150_000
        assert f"figures/{picture.name}" in pages


@pytest.mark.skipif(not importlib.util.find_spec("matplotlib"), reason="needs matplotlib")
def test_script_of_the_pictures_can_be_imported():
    code = "import runpy; runpy.run_path('docs/figures/make_figures.py', run_name='figures')"
    assert run("-c", code) == ""


def test_nothing_but_the_project_is_spoken_of():
    texts = [*PAGES, *(ROOT / "examples").glob("*.py"), *(ROOT / "docs").rglob("*.py")]
    for path in texts:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"/home/|/work/|/tmp/|/root/|TODO|FIXME", text), path


def test_the_picture_of_the_terminal_shows_the_commands_of_the_readme():
    picture = (ROOT / "docs" / "figures" / "terminal.svg").read_text(encoding="utf-8")
    shown = re.sub(r"<[^>]*>", "", picture).replace("&#160;", " ")
    for kind, code, _, _ in blocks(README):
        if kind == "sh":
            assert all(f"$ {line}" in shown for line in code.splitlines())
    assert "://" not in picture.replace("http://www.w3.org/", "").replace("https://www.textual", "")
