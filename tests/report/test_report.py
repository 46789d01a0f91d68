"""The page of an audit: complete, honest about its rows, one file, always the same."""

import hashlib
import html
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from pages import Page

import expunge as ex
from expunge.report import render, write_report

LIMIT = 6_000_000
SHORT = "\N{NO-BREAK SPACE}to\N{NO-BREAK SPACE}"


def headings(audit):
    return [heading.strip() for heading in Page(render(audit)).headings]


def test_all_sections_of_a_full_audit_in_order(page):
    found = [heading.strip() for heading in page.headings]
    order = [
        "Verdict",
        "Certificate",
        "Before and after",
        "What probes find",
        "Fresh rows",
        "Rows of the fit",
        "Words",
        "Damage",
        "Fairness",
        "Inside the model",
        "Spectrum",
        "Method",
        "Parameters",
        "Data and versions",
        "What was not shown",
    ]
    assert [heading for heading in found if heading in order] == order


@pytest.mark.parametrize(
    ("key", "heading"),
    [
        ("pca", None),
        ("v_measure", "Clusters"),
        ("association", "Words"),
        ("damage", "Damage"),
        ("fairness", "Fairness"),
        ("spectrum", "Spectrum"),
        ("model", "Inside the model"),
    ],
)
def test_what_does_not_apply_is_absent(words, page, key, heading):
    before = page
    words[key] = None
    after = Page(render(words))
    assert len(after.headings) < len(before.headings) or heading is None
    assert heading in [h.strip() for h in before.headings] or heading is None
    assert heading not in [h.strip() for h in after.headings]
    assert after.tags.count("figure") + after.tags.count("table") < before.tags.count(
        "figure"
    ) + before.tags.count("table")


def test_nothing_of_the_picture_section_remains_without_its_parts(words):
    words["pca"] = words["v_measure"] = None
    assert "Before and after" not in headings(words)


def test_the_verdict_and_the_certificate_come_first(words, text):
    first_figure = text.index("<figure")
    for wanted in (words["verdict"]["headline"], words["certificates"]["train"]["text"][1:]):
        assert text.index(html.escape(wanted)) < first_figure


def test_the_two_protocols_are_kept_apart(words, page):
    rows = page.table("probes learn from", "probes")[1:]
    assert [row[0] for row in rows] == ["Fresh rows"] * 2 + ["Rows of the fit"] * 2
    for row, (name, family) in zip(
        rows,
        [(p, f) for p in ("fresh_rows", "same_rows") for f in ("linear", "nonlinear")],
        strict=True,
    ):
        before, after = (words[name][stage][family]["strongest"] for stage in ("before", "after"))
        assert row[1] == f"{family.replace('nonlinear', 'non-linear')} probes"
        assert row[2] == f"{100 * before['value']:.1f}%"
        limits = SHORT.join(f"{100 * after[key]:.1f}%" for key in ("low", "high"))
        assert row[3] == f"{100 * after['value']:.1f}% ({limits})"
        assert row[5] == words[name]["after"][family]["status"]
    # the concept was there, and the two answers differ
    assert float(rows[0][2][:-1]) > 95
    assert rows[0][3] != rows[2][3]
    expected = words["residue"]["balanced_accuracy_here"]
    assert [row[4] for row in rows] == [f"{100 * expected:.1f}%", "–", "–", "–"]
    assert page.words.index("by construction") > page.words.index("never seen")


def test_every_probe_is_in_a_table_with_its_limits(words, page):
    tables = [t for t in page.tables if t[0][:3] == ["probe", "family", "rows"]]
    assert len(tables) == 2
    for table, name in zip(tables, ("fresh_rows", "same_rows"), strict=True):
        shown = {(row[0], row[2]): row[4] for row in table[1:]}
        assert len(shown) == 6  # three probes, before and after
        for stage in ("before", "after"):
            for family in words[name][stage].values():
                for probe in family["probes"]:
                    low, high = (probe["balanced_accuracy"][key] for key in ("low", "high"))
                    assert f"({low:.1%}{SHORT}{high:.1%})" in shown[probe["name"], stage]


def test_training_rows_alone_show_nothing(training_only):
    page = Page(render(training_only))
    assert training_only["training_rows"]["after"]["linear"]["status"] != "found"
    rows = page.table("probes learn from", "probes")[1:]
    assert [(row[0], row[5]) for row in rows] == [("These rows only", "not shown")]
    assert "Nothing may be called erased" in page.words
    assert "Fresh rows" not in [heading.strip() for heading in page.headings]


def test_a_number_is_measured_in_r2(number):
    page = Page(render(number))
    rows = page.table("probes learn from", "probes")[1:]
    assert float(rows[0][2]) > 0.5  # it was there
    value = number["fresh_rows"]["after"]["linear"]["strongest"]["value"]
    assert abs(float(rows[0][3].split(" ")[0].replace("−", "-")) - value) < 6e-4
    assert "balanced accuracy" not in page.words


def test_fairness_and_words_are_the_numbers_of_the_audit(words, page):
    table = page.table("class", "group", "rows")
    gaps = words["fairness"]["before"]["gaps"]
    for i, name in enumerate(gaps["classes"]):
        for j, group in enumerate(gaps["groups"]):
            row = next(r for r in table if r[:2] == [name, group])
            assert row[2] == f"{gaps['counts'][i][j]:,}"
            assert row[3] == f"{gaps['tpr'][i][j]:.1%}"
    table = page.table("word", "nearest before")
    for found, row in zip(words["association"]["neighbours"], table[1:], strict=True):
        shown = [found["word"], ", ".join(found["before"]), ", ".join(found["after"])]
        assert row[:3] == shown


def test_limits_parameters_fingerprint_and_versions_are_all_there(words, page):
    for limit in words["limits"]:
        assert limit in page.words
    for wanted in ("Linear predictors only", "These data only", "simplification", "not binary"):
        assert wanted in page.words
    parameters = {row[0]: row[1] for row in page.table("parameter", "value")[1:]}
    assert parameters.keys() == words["erasure"]["parameters"].keys()
    assert words["erasure"]["fingerprint"]["digest"] in page.words
    versions = {row[0]: row[1] for row in page.table("software")[1:]}
    assert versions["numpy"] == words["versions"]["numpy"]


def test_notes_on_the_rows_stand_beside_the_probes(words):
    words["data"]["notes"] = ["12 test rows were left out."]
    page = Page(render(words))
    assert page.words.index("12 test rows were left out.") < page.words.index("Each probe learns")


def test_it_loads_nothing(text, page):
    assert page.addresses
    assert all(value.startswith("#") for _, _, value in page.addresses)
    assert not {"link", "img", "iframe", "object", "embed", "base"} & set(page.tags)
    style = text.split("<style>")[1].split("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style


def test_the_numbers_are_in_the_page(words, page):
    data = next(text for attributes, text in page.scripts if 'id="numbers"' in attributes)
    picture = words.pop("pca")
    assert json.loads(data) == words
    assert picture is not None


def test_the_same_audit_gives_the_same_bytes(words, text, tmp_path):
    source = tmp_path / "audit.json"
    source.write_text(json.dumps(words))
    code = (
        "import hashlib, json, sys; from expunge.report import render;"
        "print(hashlib.sha256(render(json.load(open(sys.argv[1]))).encode()).hexdigest())"
    )
    command = [sys.executable, "-c", code, str(source)]
    env = {**os.environ, "PYTHONHASHSEED": "7"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == hashlib.sha256(text.encode()).hexdigest()


def test_audits_of_any_size_stay_below_the_limit(words, text):
    assert len(text.encode()) < LIMIT
    rng = np.random.default_rng(0)
    n, long = 5000, "x" * 500
    words["pca"] |= {
        key: rng.normal(size=(n, 2)).tolist()
        for key in ("before", "after", "after_shared", "along")
    }
    words["pca"] |= {
        "rows": list(range(n)),
        "names": [f"{i}{long}" for i in range(n)],
        "labels": [f"{i % 500}{long}" for i in range(n)],
        "n_rows": 10**9,
    }
    neighbours = {"word": long, "before": [long] * 5, "after": [long] * 5, "kept": 1.0}
    words["association"]["neighbours"] = [neighbours] * 1000
    words["concept"] |= {
        "labels": [f"{i}{long}" for i in range(500)],
        "train_means": [0.002] * 500,
        "test_means": [0.002] * 500,
    }
    assert len(render(words).encode()) < LIMIT


def test_values_that_json_does_not_have(words):
    words["damage"]["rank_correlation"] = float("nan")
    words["fairness"]["before"]["gaps"]["correlation"] = np.float64("nan")
    words["verdict"]["headline"] = "a\x00b\ud800c\u202ed"
    text = render(words)
    assert "a\ufffdb\ufffdc\ufffdd" in text
    assert "NaN" not in Page(text).words


def test_what_is_unknown_is_skipped(words):
    words["damage"] = {"new_measure": {"nested": 1}}
    words["surprise"] = [1, 2]
    assert "Damage" not in headings(words)


def test_writing_is_all_or_nothing(words, tmp_path):
    path = tmp_path / "report.html"
    write_report(words, path)
    written = path.read_bytes()
    assert written.startswith(b"<!doctype html>")
    del words["verdict"]
    with pytest.raises(KeyError):
        write_report(words, path)
    assert path.read_bytes() == written
    assert os.listdir(tmp_path) == ["report.html"]


def test_an_audit_itself_can_be_written(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    X = rng.normal(size=(200, 4)) + 3 * np.outer(y, [1, 0, 0, 0])
    eraser = ex.RLACE().fit(X[:100], y[:100])
    audit = ex.audit(eraser, X[:100], y[:100], X[100:], y[100:], probes=["linear SVM"])
    write_report(audit, tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == render(audit.to_dict())


def test_without_a_package_the_extra_is_named():
    code = """
import sys
from expunge.report import Figure, Section, render_page
for package in ("plotly", "jinja2"):
    sys.modules[package] = None
    try:
        render_page("t", [Section("s", [Figure([], {}, "c")])])
    except ImportError as error:
        print(error)
    del sys.modules[package]
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        f"{package} is not installed; get it with: pip install 'expunge[report]'"
        for package in ("plotly", "jinja2")
    ]


def test_an_eraser_that_is_not_exact_gets_no_excuse_and_no_band():
    """Somebody audits a half-done erasure on rows of their own: no rows of the fit are there."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 900)
    X = rng.normal(size=(900, 5)) + 3 * np.outer(y, [1, 0, 1, 0, 0])
    erasure = ex.RLACE(strength=0.5).fit(X[:500], y[:500]).erasure_
    audit = ex.audit(erasure, X[500:], y[500:], probes=["linear discriminant"]).to_dict()
    page = Page(render(audit))
    assert "Sampling error of the fit is no excuse" in page.words
    assert "Expected from sampling error alone" not in page.words
    assert "No rows of the fit, 400 test rows of which 400 are fresh" in page.words
    assert "Rows of the fit" not in [heading.strip() for heading in page.headings]
    assert page.table("label")[0] == ["label", "test rows"]


def test_word_tests_that_were_not_run_are_named(words):
    words["association"]["skipped"] = [
        {
            "name": "math-art",
            "reason": "no word of the set 'x' has a vector here",
            "missing": ["amy"],
        }
    ]
    page = Page(render(words))
    assert "math-art: no word of the set 'x' has a vector here (amy)." in page.words


def test_what_scrubbing_did_to_the_model(page, words):
    """All numbers of the evaluation, and only those rows that were measured."""
    (whole,) = (table for table in page.tables if table[0][1:] == ["before", "after", "control"])
    assert [row[1:] for row in whole[1:]] == [
        ["5.510", "5.640", "5.520"],
        ["45.57", "49.87", "45.89"],
        ["–", "0.2100", "0.02000"],
        ["86.3%", "84.5%", "85.7%"],
    ]
    (layers,) = (table for table in page.tables if table[0][0] == "layer")
    assert layers[3] == ["encoder.layer.2", "2", "94.8%", "60.0%", "95.2%"]
    assert "93.0% to 96.8% of texts before, on 54.8% to 61.0% after" in "".join(page.text)
    for key in ("loss", "perplexity", "kl", "task", "ranks"):
        words["model"][key] = {}
    without = Page(render(words))
    assert not any(table[0][1:] == ["before", "after", "control"] for table in without.tables)


def test_an_evaluation_goes_into_the_report_of_an_audit(words, tmp_path):
    evaluation = words.pop("model")
    write_report(words, tmp_path / "without.html")
    assert "Inside the model" not in (tmp_path / "without.html").read_text()
    write_report(words, tmp_path / "with.html", model=evaluation)
    assert (tmp_path / "with.html").read_text() == render({**words, "model": evaluation})
