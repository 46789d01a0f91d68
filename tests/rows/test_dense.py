"""Rows in memory: products in single precision, samples and subsets."""

import numpy as np
import pytest

from expunge.game.losses import loss_for
from expunge.inputs import check_concept, check_rows
from planted import plant


@pytest.mark.parametrize("centred", [True, False])
def test_single_precision_agrees_with_double_to_its_precision(centred):
    data, rng = plant("classes", n=3000), np.random.default_rng(0)
    rows = check_rows(data.X.astype(np.float32))
    concept = check_concept(data.y, 3000)
    loss, coef, b = loss_for("cross_entropy", "classes", 4), rng.normal(size=(8, 4)), np.zeros(4)
    center = data.X.mean(axis=0) if centred else None
    double = rows.glm_pass(loss, coef, b, concept, center=center)
    single = rows.glm_pass(loss, coef, b, concept, center=center, single=True)
    assert single.value == pytest.approx(double.value, rel=1e-6)
    assert single.value != double.value  # it did take the other road
    np.testing.assert_allclose(single.coef, double.coef, atol=1e-5)
    np.testing.assert_allclose(single.curvature, double.curvature, atol=1e-6)
    assert single.accuracy == pytest.approx(double.accuracy, abs=1e-3)


def test_float64_rows_are_never_rounded():
    data = plant("binary")
    rows, concept = check_rows(data.X), check_concept(data.y, 600)
    loss, coef = loss_for("cross_entropy", "classes", 2), np.ones((8, 1))
    exact = rows.glm_pass(loss, coef, np.zeros(1), concept)
    assert rows.glm_pass(loss, coef, np.zeros(1), concept, single=True).value == exact.value


def test_samples_and_subsets_are_rows_of_the_array():
    X = np.arange(40.0, dtype=np.float32).reshape(20, 2)
    rows, rng = check_rows(X), np.random.default_rng(0)
    batch, index = next(rows.batches(50, rng))
    assert batch.dtype == np.float32
    assert next(check_rows(X.astype(int)).batches(3, rng))[0].dtype == np.float64
    np.testing.assert_array_equal(batch, X[index])
    assert len(set(index)) < 21
    part, index = rows.subset(8, rng)
    assert part.dtype == np.float32
    assert len(set(index)) == 8
    np.testing.assert_array_equal(part.X, X[index])
