"""Columns that a threshold reads after erasure where lines do not: the audit names them."""

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_score

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
    (said,) = [text for text in a.verdict.warnings if "did not before" in text]
    assert repr(found[0]["name"]) in said
    assert "Warning: Columns tell the concept by themselves" in str(a)
    name, area = found[0]["name"], found[0]["after"]
    assert a.verdict.headline.endswith(f"column {name!r} alone finds it (AUC {area:.2f}).")


@pytest.mark.parametrize("share", [0.005, 0.011, 0.05, 0.3])
def test_so_is_one_that_is_not_quite_so_empty(share):
    """From 1 % on nothing was said, where a threshold at the median reads 90 %."""
    X, y = with_flags(20_000, share=share)
    eraser = ex.LEACE().fit(X[:8000], y[:8000])
    a = ex.audit(eraser, X[:8000], y[:8000], X[8000:], y[8000:], probes=LINEAR)
    first = a.to_dict()["written_columns"][0]
    before, after = X[8000:, first["column"]], eraser.transform(X[8000:])[:, first["column"]]
    assert abs(roc_auc_score(y[8000:], before) - 0.5) < 0.02
    right = np.mean((after < np.median(after)) == y[8000:])
    assert max(right, 1 - right) > 0.6
    assert first["written"]
    assert "A threshold on column" in a.verdict.headline


def test_full_columns_and_the_identity_are_not_named():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 8000)
    X = rng.normal(size=(8000, 6)) + np.outer(y, [1.5, 1.0, 0, 0, 0, 0])
    X_few, y_few = with_flags()
    for eraser, rows, z in (
        (ex.LEACE().fit(X[:4000], y[:4000]), X, y),
        (ex.Erasure.identity(13), X_few, y_few),
    ):
        a = ex.audit(eraser, X_test=rows[4000:], y_test=z[4000:], probes=LINEAR)
        assert a.to_dict()["written_columns"] == []
        assert not any("Columns tell" in text for text in a.verdict.warnings)
        assert "column" not in a.verdict.headline


@pytest.mark.parametrize("seed", [4, 7])
def test_a_skewed_column_is_named_where_lines_are_at_chance(seed):
    """Means are equal and a threshold reads 66 % of other rows; nothing was said."""

    def draw(n, seed):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 2, n)
        sign = 2 * y - 1
        X = rng.normal(size=(n, 4))
        X[:, 0], X[:, 1] = sign * rng.lognormal(0, 1.2, n), sign + 0.5 * X[:, 1]
        return X, y

    X, y = draw(4000, seed)
    eraser = ex.LEACE().fit(X, y)
    a = ex.audit(eraser, X, y, *draw(4000, 100 + seed), probes="linear")
    new, labels = draw(50_000, 77)
    assert abs(roc_auc_score(labels, eraser.transform(new)[:, 0]) - 0.5) > 0.08
    assert a.verdict.linear == "cannot tell"
    assert "Turned round" in a.verdict.headline
    assert "A threshold on column '0' alone finds it" in a.verdict.headline
    first = a.to_dict()["written_columns"][0]
    assert (first["written"], first["before"]) == (False, 1.0)
    assert any("logarithms or ranks" in text for text in a.verdict.warnings)


def test_a_skewed_number_is_followed_by_the_order_of_a_column():
    """R² is that of a few far incomes: at chance, where the median is told from x for 90 %."""
    rng = np.random.default_rng(0)
    z = rng.lognormal(0, 2, 8000)
    X = rng.normal(size=(8000, 10))
    X[:, 0] += 2 * np.log(z)
    X[:, 1] += 4 * z / z.std()
    eraser = ex.LEACE().fit(X[:4000], z[:4000])
    a = ex.audit(eraser, X[:4000], z[:4000], X[4000:], z[4000:], probes="linear")
    clean, over = eraser.transform(X[4000:]), z[4000:] > np.median(z)
    assert cross_val_score(LogisticRegression(), clean, over).mean() > 0.8
    first = a.to_dict()["written_columns"][0]
    wanted = abs(spearmanr(clean[:, first["column"]], z[4000:]).statistic)
    assert first["after"] == pytest.approx(wanted, abs=1e-9)
    assert wanted > 0.5
    assert a.verdict.headline.endswith(f"alone finds it (rank correlation {wanted:.2f}).")


def test_a_flag_follows_a_number_too():
    X, y = with_flags()
    few = ex.LEACE().fit(X[:4000], y[:4000])
    a = ex.audit(few, X_test=X[4000:4060], y_test=y[4000:4060], probes=LINEAR)
    assert a.to_dict()["written_columns"] == []  # 60 rows tell nothing
    z = X[:, 0]
    numbers = ex.LEACE().fit(X[:4000], z[:4000])
    a = ex.audit(numbers, X_test=X[4000:], y_test=z[4000:], probes="linear")
    found = a.to_dict()["written_columns"]
    assert all(column["column"] >= 3 for column in found)
    assert found[0]["before"] < 0.1 < 0.9 < found[0]["after"]


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_columns_of_noise_are_not_named(kind):
    rng = np.random.default_rng(3)
    for _ in range(6):
        y = rng.integers(0, 2, 1000) if kind == "classes" else rng.standard_cauchy(1000)
        X = rng.lognormal(0, 2, size=(1000, 40))
        a = ex.audit(ex.Erasure.identity(40), X_test=X, y_test=y, fresh=True, probes="linear")
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
