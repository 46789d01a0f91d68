"""Flags that next to no rows have: an erasure writes to them, and the audit names them."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import expunge as ex

LINEAR = ["linear discriminant"]


def with_flags(n=8000, seed=0, share=1e-3, kind="classes"):
    """Columns that tell the concept, and flags that few rows have."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2 if kind == "classes" else 3, n)
    plain = rng.normal(size=(n, 3)) + np.outer(y == 1, [1.5, 1.0, 0.0])
    flags = (rng.random((n, 10)) < share).astype(float)
    return np.hstack([plain, flags]), y


@pytest.mark.parametrize("kind", ["classes", "three"])
def test_a_nearly_empty_column_that_tells_the_concept_is_named(kind):
    pd = pytest.importorskip("pandas")
    X, y = with_flags(kind=kind)
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(13)])
    eraser = ex.LEACE().fit(frame[:4000], y[:4000])
    a = ex.audit(eraser, frame[:4000], y[:4000], frame[4000:], y[4000:], probes=LINEAR)
    found = a.to_dict()["written_columns"]
    clean = eraser.transform(frame)[4000:]
    clean = np.asarray(clean)
    areas = [roc_auc_score(y[4000:] == 1, clean[:, j]) for j in range(13)]
    areas = np.maximum(areas, 1 - np.array(areas))
    assert found
    assert {column["column"] for column in found} <= {*range(3, 13)}
    for column in found:
        j = column["column"]
        assert column["name"] == f"c{j}"
        assert column["before"] < 0.52
        assert column["after"] > 0.55
        if kind == "classes":
            assert column["after"] == pytest.approx(areas[j], abs=1e-9)
    (said,) = [text for text in a.verdict.warnings if "Nearly empty columns" in text]
    assert repr(found[0]["name"]) in said
    assert "Warning: Nearly empty columns" in str(a)
    name, area = found[0]["name"], found[0]["after"]
    assert a.verdict.headline.endswith(f"column {name!r} alone finds it (AUC {area:.2f}).")


def test_full_columns_and_projections_are_not_named():
    X, y = with_flags(share=0.3)
    full = ex.LEACE().fit(X[:4000], y[:4000])
    X_few, y_few = with_flags()
    few = ex.Erasure.identity(13)
    for eraser, rows, z in ((full, X, y), (few, X_few, y_few)):
        a = ex.audit(eraser, X_test=rows[4000:], y_test=z[4000:], probes=LINEAR)
        assert a.to_dict()["written_columns"] == []
        assert not any("Nearly empty" in text for text in a.verdict.warnings)
        assert "threshold" not in a.verdict.headline


def test_numbers_and_few_rows_say_nothing():
    X, y = with_flags()
    eraser = ex.LEACE().fit(X[:4000], y[:4000])
    few = ex.audit(eraser, X_test=X[4000:4060], y_test=y[4000:4060], probes=LINEAR)
    assert few.to_dict()["written_columns"] == []
    z = X[:, 0]
    numbers = ex.LEACE().fit(X[:4000], z[:4000])
    a = ex.audit(numbers, X_test=X[4000:], y_test=z[4000:], probes="linear")
    assert a.to_dict()["written_columns"] == []


class Rotated:
    """A transform whose columns are others."""

    def __init__(self, width):
        self.width = width

    def transform(self, X):
        return X[:, ::-1][:, : self.width]


@pytest.mark.parametrize("width", [3, 13])
def test_a_transform_to_other_columns_is_not_compared_with_these(width):
    X, y = with_flags()
    a = ex.audit(Rotated(width), X_test=X[4000:], y_test=y[4000:], probes=LINEAR)
    assert a.to_dict()["written_columns"] == []
