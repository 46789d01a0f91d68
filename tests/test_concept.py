import dataclasses

import numpy as np
import pytest

from expunge.concept import Concept

CLASSES = Concept("classes", np.array([0, 2, 1, 0]), ("a", "b", "c"))


def test_classes_become_one_hot_columns():
    assert (CLASSES.n_samples, CLASSES.width) == (4, 3)
    np.testing.assert_array_equal(CLASSES.columns(), np.eye(3)[[0, 2, 1, 0]])
    np.testing.assert_array_equal(CLASSES.columns(1, 3), np.eye(3)[[2, 1]])
    assert CLASSES.columns().dtype == np.float64


@pytest.mark.parametrize("kind", ["labels", "continuous"])
def test_columns_are_handed_on(kind):
    Z = np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    concept = Concept(kind, Z, ("p", "q"))
    np.testing.assert_array_equal(concept.columns(1), Z[1:])
    assert concept.width == 2


@pytest.mark.parametrize("rows", [slice(1, 3), np.array([3, 1]), np.array([True, 0, 0, 1]) == 1])
def test_take_keeps_all_labels(rows):
    part = CLASSES.take(rows)
    assert part.labels == CLASSES.labels
    np.testing.assert_array_equal(part.columns(), CLASSES.columns()[rows])


def test_numbers_become_columns():
    one, two = Concept.of_numbers(np.arange(3)), Concept.of_numbers(np.ones((3, 2), dtype="f4"))
    assert one.values.shape == (3, 1)
    assert one.values.dtype == two.values.dtype == np.float64
    assert (one.labels, two.labels) == ((0,), (0, 1))
    assert one.kind == "continuous"


def test_classes_of_no_weight_are_dropped_and_their_rows_keep_a_valid_code():
    kept = CLASSES.with_weight(np.array([1.0, 2.0, 0.0, 1.0]))
    assert kept.labels == ("a", "c")
    np.testing.assert_array_equal(kept.values[[0, 1, 3]], [0, 1, 0])
    assert 0 <= kept.values[2] < 2
    first = CLASSES.with_weight(np.array([0.0, 1.0, 1.0, 0.0]))  # also where it is the first class
    assert first.labels == ("b", "c")
    np.testing.assert_array_equal(first.values[1:3], [1, 0])
    assert first.values.min() >= 0
    assert CLASSES.with_weight(None) is CLASSES


def test_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        CLASSES.kind = "labels"
