"""Predictions by models that have not seen the row, of however few rows."""

import numpy as np
import pytest

from expunge.inputs import check_concept, check_rows
from expunge.pooling.cross_fitting import cross_fit


@pytest.mark.parametrize("rows", [np.eye(3), np.zeros((3, 5)), np.ones((4, 6))])
def test_a_handful_of_rows_is_predicted_somehow(rows):
    y = np.arange(len(rows)) // 2  # fewer of a class than folds
    concept = check_concept(y, len(rows))
    home = check_rows(rows)
    found = cross_fit(home, concept, home.moments(concept), None, None, np.random.default_rng(0))
    assert np.isfinite(found.own).all()
