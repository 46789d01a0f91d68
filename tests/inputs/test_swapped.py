"""Arguments in the wrong order are said to be such."""

import numpy as np
import pandas as pd
import pytest
from refused import assert_refused

import expunge as ex

rng = np.random.default_rng(0)
X, y = rng.normal(size=(200, 5)), rng.integers(0, 2, 200)
WORDS = np.array(["f", "m"])[y]


@pytest.mark.parametrize("labels", [y, y.tolist(), pd.Series(y), WORDS, WORDS.tolist()])
@pytest.mark.parametrize("rows", [X, pd.DataFrame(X)])
@pytest.mark.parametrize(
    "call",
    [
        lambda a, b: ex.LEACE().fit(a, b),
        lambda a, b: ex.LEACE().fit(a, concept=b),
        lambda a, b: ex.LEACE().partial_fit(a, b),
        lambda a, b: ex.LEACE().fit_transform(a, b),
        lambda a, b: ex.certify(ex.Erasure.identity(5), a, b),
        lambda a, b: ex.audit(ex.Erasure.identity(5), a, b),
        ex.plan_labels,
        ex.compare,
        ex.frontier,
        lambda a, b: ex.rank_path(a, b, ranks=[1]),
    ],
)
def test_labels_before_rows(call, rows, labels):
    error = assert_refused("arguments look swapped", call, labels, rows)
    assert "rows first" in error.remedy


@pytest.mark.parametrize("call", [ex.audit, ex.certify])
def test_rows_before_the_eraser(call):
    eraser = ex.LEACE().fit(X, y)
    for given in ((X, y, eraser), (X, eraser, y), (y, X, eraser.erasure_)):
        error = assert_refused("arguments look swapped", call, *given)
        assert "eraser first" in error.remedy
    with pytest.raises(ex.InputError) as caught:
        call(X, X, y)
    assert "swapped" not in str(caught.value)


def test_a_single_column_is_not_said_to_be_swapped():
    error = assert_refused("Expected 2D array", ex.LEACE().fit, X[:, 0], y)
    assert "swapped" not in str(error)
