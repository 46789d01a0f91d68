"""One of many labels or numbers that was left in is found, whatever the mean over all is."""

import html

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import expunge as ex

MANY = 20
N = 4000
FEW = ["logistic regression, ridge 0.01", "linear discriminant", "ridge regression, ridge 0.01"]


def one_left_in(kind, *, erased=MANY - 1, seed=0):
    """Rows with many concepts, of which an eraser was told all but the last."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(N, MANY))
    Z = (Z > 0).astype(int) if kind == "labels" else Z
    X = rng.normal(size=(N, MANY + 5))
    X[:, :MANY] += 0.7 * Z
    half = N // 2
    erasure = ex.LEACE().fit(X[:half], Z[:half, :erased]).erasure_
    return erasure, X[:half], Z[:half], X[half:], Z[half:]


@pytest.mark.parametrize("kind", ["labels", "numbers"])
def test_the_mean_over_columns_hides_none(kind, tmp_path):
    erasure, X, Z, X_new, Z_new = one_left_in(kind)
    clean = erasure(X_new)
    assert LinearRegression().fit(clean, Z_new[:, -1]).score(clean, Z_new[:, -1]) > 0.1
    found = ex.audit(erasure, X, Z, X_new, Z_new, probes=FEW)
    same, fresh = found.same_rows.after["linear"], found.fresh_rows.after["linear"]
    assert same.strongest.high < same.chance + 0.02  # the mean alone says nothing
    assert same.status == fresh.status == found.verdict.linear == "found"
    assert fresh.part.label == str(MANY - 1)
    assert fresh.part.limits.low > fresh.chance
    assert found.verdict.explained is False
    assert repr(fresh.part.label) in found.verdict.headline
    page = tmp_path / "report.html"
    found.to_html(page)
    assert found.verdict.headline in html.unescape(page.read_text())
    assert found.to_dict()["fresh_rows"]["after"]["linear"]["part"]["label"] == fresh.part.label
    assert f"most of all {fresh.part.label!r}" in str(found)


@pytest.mark.parametrize("kind", ["labels", "numbers"])
def test_what_sampling_error_leaves_of_each_is_explained(kind):
    said = []
    for seed in range(2):
        found = ex.audit(*one_left_in(kind, erased=MANY, seed=seed), probes=FEW)
        assert found.same_rows.after["linear"].part is None
        said.append((found.verdict.linear, found.verdict.explained))
    assert ("found", False) not in said


def test_one_of_many_classes_is_found():
    """Of sixty classes one lies apart: the mean recall is two points above chance at most."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 60, N)
    X = rng.normal(size=(N, 3)) + 9 * np.outer(y == 7, [1, 0, 0])
    found = ex.audit(ex.Erasure.identity(3), X, y, probes=FEW, fresh=True)
    fresh = found.fresh_rows.after["linear"]
    assert fresh.strongest.low < fresh.chance + 0.02
    assert fresh.status == "found"
    assert fresh.part.label == "7"
    assert fresh.part.limits.value > 0.9


def test_what_sampling_error_leaves_of_a_class_is_explained():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 6, N)
    X = rng.normal(size=(N, 40)) + 3 * rng.normal(size=(6, 40))[y]
    eraser = ex.LEACE().fit(X[:800], y[:800])
    found = ex.audit(eraser, X_test=X[800:], y_test=y[800:], probes=FEW)
    assert found.fresh_rows.after["linear"].part is not None
    assert found.verdict.explained


def test_nothing_is_found_among_labels_drawn_at_random():
    rng = np.random.default_rng(0)
    for _ in range(2):
        X, Z = rng.normal(size=(N, 6)), rng.integers(0, 2, (N, MANY))
        found = ex.audit(ex.Erasure.identity(6), X, Z, probes=FEW, fresh=True)
        assert found.fresh_rows.after["linear"].part is None
        y = rng.integers(0, MANY, N)
        found = ex.audit(ex.Erasure.identity(6), X, y, probes=FEW, fresh=True)
        assert found.fresh_rows.after["linear"].part is None


def test_compare_marks_it_too():
    _, X, Z, X_new, Z_new = one_left_in("numbers")
    rows, concepts = np.vstack([X, X_new]), np.vstack([Z, Z_new])

    class AllButOne(ex.LEACE):
        def fit(self, X, y, **given):
            return super().fit(X, y[:, :-1], **given)

    table = ex.compare(rows, concepts, [ex.LEACE(), AllButOne()], runs=1, probes="linear")
    marks = {row.method: (row.fresh.status, row.fresh.explained) for row in table.rows}
    assert marks["AllButOne()"] == ("found", False)
    assert marks["LEACE()"] != ("found", False)


def rare_labels(n=4000, seed=0):
    """Labels of which two have two rows each, and rows that know nothing of any."""
    rng = np.random.default_rng(seed)
    Z = np.zeros((n, 4), dtype=int)
    Z[:, 0], Z[:, 3] = rng.integers(0, 2, n), rng.integers(0, 2, n)
    Z[[5, n // 2 + 500], 1] = 1
    Z[[7, n // 2 + 1000], 2] = 1
    return rng.normal(size=(n, 3)), Z


def test_a_label_of_one_row_is_not_read_from_rows_that_are_all_the_same():
    """In the fold with its only row the probe had never met it; that counted as an answer."""
    X, Z = rare_labels()
    nothing = ex.Erasure(np.eye(3), np.eye(3), np.zeros(3))
    a = ex.audit(nothing, X_test=X[2000:], y_test=Z[2000:], probes="linear")
    assert a.verdict.linear == "at chance"
    assert a.fresh_rows.after["linear"].strongest.value == pytest.approx(0.5, abs=1e-9)
    assert any("a single row has, or lacks: '1', '2'." in n for n in a.sections["data"]["notes"])


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_rare_values_in_noise_are_not_found(rows):
    """Of two rows, both right by luck, an interval may not be narrow."""
    found = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, sex, race = rng.normal(size=(1000, 5)), rng.integers(0, 2, 1000), np.zeros(1000, int)
        for value in (1, 2, 3):
            race[rng.choice(1000, rows, replace=False)] = value
        a = ex.audit(
            ex.Erasure.identity(5), X_test=X, y_test={"sex": sex, "race": race}, probes=FEW
        )
        found += a.verdict.linear == "found"
    assert found <= 1


def test_labels_too_rare_to_hold_out_are_refused():
    X, Z = rare_labels()
    with pytest.raises(ex.InputError, match="no label has two rows with it and two without"):
        ex.audit(ex.Erasure.identity(3), X_test=X[2000:], y_test=Z[2000:, 1:3], probes=FEW)


def test_one_class_is_told_beside_the_chance_of_two():
    """It said "54.5 % of 'a', 21 % on average; chance 16.7 %" of a measure whose chance is 50."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 6, 6000)
    X = rng.normal(size=(6000, 4)) + np.outer(y == 2, [0.6, 0, 0, 0])
    names = np.array(list("abcdef"))[y]
    a = ex.audit(ex.Erasure.identity(4), X_test=X, y_test=names, probes=FEW)
    part = a.fresh_rows.after["linear"].part
    assert (part.label, part.chance, part.against_rest) == ("c", 0.5, True)
    assert "for 'c' against the rest (chance 50.0 %)" in a.verdict.headline
    assert "for all classes (chance 16.7 %)" in a.verdict.headline
    assert "'c' against the rest: " in str(a)
