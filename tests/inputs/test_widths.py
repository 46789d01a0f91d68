"""The width of rows: one message wherever they meet something made for others."""

import numpy as np
import pytest

import expunge as ex
from expunge import InputError
from expunge.concept import Concept
from expunge.inputs import check_width, label_codes, match_labels


@pytest.fixture
def fitted():
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    return ex.LEACE().fit(X, y), X, y


def test_every_door_says_the_same(fitted):
    eraser, X, y = fitted
    wide = np.ones((40, 4))
    doors = {
        "this erasure": [
            lambda: eraser.erasure_.transform(wide),
            lambda: ex.certify(eraser, wide, y),
            lambda: ex.OracleLEACE().fit(X, y).conditional_erasure_.transform(wide, y),
        ],
        "LEACE": [lambda: eraser.transform(wide), lambda: eraser.partial_fit(wide, y)],
        "an audit with this X_train": [lambda: ex.audit(eraser, X, y, wide, y)],
    }
    for by, calls in doors.items():
        for call in calls:
            with pytest.raises(
                InputError, match=f"has 4 features, but {by} is expecting 3 features as input"
            ) as caught:
                call()
            assert caught.value.received
            assert caught.value.remedy


def test_equal_widths_pass_and_the_message_can_be_worded():
    check_width(3, 3)
    with pytest.raises(InputError, match=r"The index holds 2 features.*Received a flat one. Mend"):
        check_width(2, 3, "The index holds", "it", received="a flat one", remedy="Mend it")


def test_labels_in_known_codes():
    np.testing.assert_array_equal(label_codes(("b", "x", "a"), ("a", "b", "c")), [1, -1, 0])
    test = Concept("classes", np.array([0, 1, 1]), ("b", "c"))
    np.testing.assert_array_equal(match_labels(test, "classes", "abc").values, [1, 2, 2])
    with pytest.raises(InputError, match="task_test is not over the classes of task_train"):
        match_labels(
            test,
            "classes",
            ("a", "b"),
            name="task_test",
            known_from="over the classes of task_train",
        )
