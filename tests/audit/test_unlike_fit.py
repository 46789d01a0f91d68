"""Rows in another scale than those of the fit are named, and leave sampling error no excuse."""

import numpy as np
import pytest

import expunge as ex
from expunge.audit.given import gather
from expunge.audit.unlike_fit import warning_of_unlike
from expunge.likeness import unlikeness_of_rows

PROBE = ["linear discriminant"]
SAID = "do not look like those that the erasure was fitted on"


def draw(seed, n, d=30):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    u = np.linalg.qr(np.random.default_rng(99).normal(size=(d, 2)))[0].T
    return 4 * (rng.normal(size=(n, d)) + 2 * u[y]) + 1, y


X, Y = draw(0, 200)
NEW, LABELS = draw(1, 3000)
ERASURE = ex.LEACE().fit(X, Y).erasure_


def normalised(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def standardised(rows):
    return (rows - rows.mean(axis=0)) / rows.std(axis=0)


def named(*args, **more):
    a = ex.audit(*args, **more, probes=PROBE)
    return a, [text for text in a.verdict.warnings if SAID in text]


@pytest.mark.parametrize("change", [normalised, standardised])
def test_rows_in_another_scale_are_named_and_nothing_is_excused(change, tmp_path):
    a, said = named(ERASURE, X_test=change(NEW), y_test=LABELS)
    assert len(said) == 1
    assert said[0].startswith("These rows")
    assert "times as far" in said[0]
    assert a.verdict.linear == "found"  # else there would be nothing to excuse
    assert a.verdict.explained is None
    assert a.residue is None
    assert "sampling error of the fit explains" not in a.verdict.headline
    assert "in another scale than those of the fit" in " ".join(a.verdict.lines)
    a.to_html(tmp_path / "report.html")
    for shown in (str(a), (tmp_path / "report.html").read_text()):
        assert "do not look like" in " ".join(shown.split())
    assert said[0] in a.to_dict()["verdict"]["warnings"]


def test_rows_as_the_fit_had_them_are_not():
    a, said = named(ERASURE, X_test=NEW, y_test=LABELS)
    assert not said
    assert a.verdict.linear == "found"
    assert a.verdict.explained


def test_it_is_said_which_rows():
    _, said = named(ERASURE, X, Y, normalised(NEW), LABELS)
    assert said[0].startswith("The test rows")
    _, said = named(ERASURE, normalised(X), Y, NEW, LABELS)
    assert said[0].startswith("The training rows")


def test_rows_that_lie_elsewhere_are_named():
    assert "their mean lies" in named(ERASURE, X_test=NEW + 30, y_test=LABELS)[1][0]


@pytest.mark.parametrize("n", [20, 50, 400])
def test_few_rows_of_the_same_population_are_not_taken_for_others(n):
    wrong = 0
    for seed in range(100):
        rows, labels = draw(100 + seed, n)
        given = gather(
            ERASURE, None, None, rows, labels, task=None, names=None, concept_type="auto"
        )
        wrong += bool(warning_of_unlike(given))
    assert wrong == 0


def test_a_true_accusation_stays():
    """What the fit itself left is told by its own record, whatever rows are audited."""
    half = ex.LEACE(strength=0.5).fit(X, Y).erasure_
    a, said = named(half, X_test=normalised(NEW), y_test=LABELS)
    assert said
    assert a.verdict.explained is False
    assert "on the rows of its own fit" in a.verdict.headline


@pytest.mark.parametrize(
    "subject",
    [ex.Erasure(np.eye(30)[:, :1], np.eye(30)[:1]), ex.LEACE().fit(X, Y).transform],
    ids=["without a record", "a function"],
)
def test_what_says_nothing_of_its_fit_is_content_with_everything(subject):
    if not hasattr(subject, "transform"):
        subject = type("Transform", (), {"transform": staticmethod(subject)})()
    assert not named(subject, X_test=normalised(NEW), y_test=LABELS)[1]


def test_an_eraser_that_is_told_the_concept():
    eraser = ex.OracleLEACE().fit(X, Y)
    assert named(eraser, X_test=0.1 * NEW, y_test=LABELS)[1]
    assert not named(eraser, X_test=NEW, y_test=LABELS)[1]


@pytest.mark.parametrize("n", [20, 50, 200])
@pytest.mark.parametrize("seed", range(10))
def test_few_rows_without_the_far_values_of_a_table_are_like_those_of_the_fit(n, seed):
    """Capital gains: most have none, and the spread of all columns together is that of a few."""
    rng = np.random.default_rng(seed)

    def table(size):
        gains = np.where(rng.random(size) < 0.05, rng.lognormal(9, 1.5, size), 0.0)
        return np.column_stack([rng.normal(40, 12, size), rng.normal(10, 3, size), gains])

    X, y = table(3000), np.arange(3000) % 2
    e = ex.LEACE().fit(X, y).erasure_
    assert unlikeness_of_rows(e, table(n)) == ""
    assert "spread" in unlikeness_of_rows(e, 5 * table(4000))
