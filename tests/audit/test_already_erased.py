"""Rows that were erased before are audited: nothing changes in them, and the audit says so."""

import numpy as np
import pytest

import expunge as ex

PROBE = ["linear discriminant"]
SAID = "The erasure changes nothing in"


def draw(seed=0, n=800):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 6)) * [1, 1, 1, 50, 1, 1] + np.outer(y, [1.0, 0, 2, 0, 0, 1]) + 3
    return np.column_stack([X, np.ones(n), y]), y  # one column is constant, one is emptied


def table(seed, n):
    """Whole numbers that many rows have, and some that few have."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = np.column_stack([rng.poisson(1 + y), rng.integers(0, 3, n), rng.geometric(1e-4, n)])
    X[: n // 2, 2] = 1
    return X.astype(float), y


def said(*args, **more):
    a = ex.audit(*args, **more, probes=PROBE)
    return [text for text in a.verdict.warnings if SAID in text]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("eraser", [ex.LEACE(), ex.RLACE(scale="std")], ids=["LEACE", "RLACE"])
def test_rows_that_were_erased_before_are_named(eraser, dtype):
    X, y = draw()
    F, g = draw(1)
    erasure = eraser.fit(X, y).erasure_
    A, B = (erasure(rows).astype(dtype) for rows in (X, F))
    assert np.abs(erasure(B) - B).max() < 1e-3 < np.abs(erasure(F) - F).max()
    assert len(said(erasure, A, y, B, g)) == len(said(erasure, B, g)) == 1
    assert "in these rows" in said(erasure, B, g)[0]
    assert "in the test rows" in said(erasure, X, y, B, g)[0]
    assert "in the training rows" in said(erasure, A, y, F, g)[0]


def test_rows_as_they_were_are_not():
    X, y = draw()
    F, g = draw(1)
    noise = np.random.default_rng(2).integers(0, 2, len(X))
    for erasure in (ex.LEACE().fit(X, y), ex.LEACE().fit(X, noise), ex.Erasure.identity(8)):
        assert not said(erasure, X, y, F, g)
    same = np.ones((8, 0))
    assert not said(ex.Erasure(same, same.T), X_test=F, y_test=g)


def test_training_and_test_rows_the_wrong_way_round_are_named():
    """In a table that repeats values, of more rows than the sketch of a fit keeps."""
    (X, y), (F, g) = table(0, 4000), table(1, 2500)
    erasure = ex.LEACE().fit(X, y).erasure_
    swapped = ex.audit(erasure, F, g, X, y, probes=PROBE)
    assert swapped.verdict.linear == "not shown"
    assert "if the two were swapped" in swapped.verdict.headline
    assert "rows of the fit" not in str(swapped).split("Certificate")[0].split("Rows:")[1]
    assert ex.audit(erasure, X, y, F, g, probes=PROBE).verdict.linear != "not shown"


def test_rows_that_may_be_of_the_fit_are_not_called_fresh():
    X, y = draw()
    erasure = ex.LEACE().fit(X, y).erasure_
    a = ex.audit(erasure, X_test=X + 1e-6 * np.sin(np.arange(8)), y_test=y, probes=PROBE)
    assert a.verdict.linear == "not shown"
    assert "they are rows of the fit in another form" in " ".join(a.verdict.headline.split())
    assert a.to_dict()["data"]["n_fresh"] == 0
    assert "none of them surely fresh" in str(a)
