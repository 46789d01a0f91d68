"""The namespace of metrics: complete, and each usable alone on plain lists and arrays."""

import inspect

import numpy as np
import pytest

import expunge as ex

PROMISED = (
    "weat",
    "tpr_gaps",
    "tpr_gap_rms",
    "gap_correlation",
    "v_measure",
    "similarity_correlation",
    "neighbour_overlap",
    "bits_left",
)


@pytest.mark.parametrize("name", PROMISED)
def test_every_promised_name_is_there(name):
    assert name in ex.metrics.__all__
    assert callable(getattr(ex.metrics, name))


def test_all_names_exist_once_and_are_documented():
    assert len(set(ex.metrics.__all__)) == len(ex.metrics.__all__)
    for name in ex.metrics.__all__:
        assert inspect.getdoc(getattr(ex.metrics, name)), name


def test_positional_arguments_as_promised():
    for name in ("tpr_gaps", "tpr_gap_rms", "gap_correlation"):
        parameters = list(inspect.signature(getattr(ex.metrics, name)).parameters)
        assert parameters[:3] == ["y_true", "y_pred", "group"]


def test_plain_lists_will_do():
    X = [[1.0, 0.0], [0.9, 0.3], [0.0, 1.0], [0.2, 0.8], [-1.0, 0.1], [-0.9, 0.0]]
    after = [[0.0, b] for _, b in X]
    y = [0, 0, 1, 1, 0, 0]
    metrics = ex.metrics
    assert metrics.weat(X[:2], X[2:4], X[:1], X[2:3]).effect_size > 1
    assert metrics.tpr_gap_rms(y, [0, 1, 1, 1, 0, 1], list("fmfmfm")) > 0
    assert metrics.v_measure(X, y, 3).mean[0] > 0.5
    assert 0 <= metrics.neighbour_overlap(X, after, 1) < 1
    assert metrics.damage(X, after, concept=y, neighbours=[1]).variance_kept < 1
    assert metrics.bits_left([0.1] * 6, y).bits > 0.5
    assert metrics.pca_scatter(X, after).rows.tolist() == [0, 1, 2, 3, 4, 5]
    pairs = [("a", "b", 3), ("a", "c", 1), ("b", "d", 2)]
    assert metrics.similarity_correlation(X, list("abcdef"), pairs).n_used == 3


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32])
def test_every_type_of_number_gives_about_the_same(dtype):
    rng = np.random.default_rng(0)
    X = rng.integers(-20, 20, size=(120, 5))
    after = X.copy()
    after[:, 0] = 0
    y = X[:, 0] > 0
    reference = ex.metrics.damage(X, after, concept=y)
    found = ex.metrics.damage(X.astype(dtype), after.astype(dtype), concept=y)
    assert found.mean_squared_change == pytest.approx(reference.mean_squared_change)
    assert found.variance_kept == pytest.approx(reference.variance_kept)
    assert found.least_change == pytest.approx(reference.least_change, rel=1e-4)
    assert found.rank_correlation == pytest.approx(reference.rank_correlation)
    clusters = ex.metrics.v_measure(X.astype(dtype), y, 4).mean
    assert clusters == pytest.approx(ex.metrics.v_measure(X, y, 4).mean, abs=0.05)
