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
