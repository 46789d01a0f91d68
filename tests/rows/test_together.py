"""Two homes of the same rows side by side, whatever their blocks are."""

import numpy as np
import pytest
from homes import HOMES, LazyRows

from expunge.rows.dense import DenseRows
from expunge.rows.together import together
from planted import plant


@pytest.mark.parametrize("home", HOMES)
def test_blocks_of_any_size(home, tmp_path):
    X = plant("binary", n=700).X
    for other in (LazyRows(2 * X, 64), DenseRows(2 * X)):
        at = 0
        for start, A, B in together(HOMES[home](X, tmp_path), other):
            assert start == at
            np.testing.assert_array_equal(2 * A, B)
            at += len(A)
        assert at == 700
