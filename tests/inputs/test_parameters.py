"""Ranks, numbers, choices and seeds."""

import numpy as np
import pytest
from refused import assert_refused

from expunge.inputs import check_choice, check_number, check_rank, check_rng

NAN = float("nan")


@pytest.mark.parametrize("rank", [1, 4, np.int64(2), np.uint8(3)])
def test_rank(rank):
    assert check_rank(rank, 5) == rank
    assert type(check_rank(rank, 5)) is int
    assert check_rank("auto", 5) == "auto"


@pytest.mark.parametrize("rank", [0, 5, -1, True, np.True_, 2.0, "2", None, [1], NAN])
def test_bad_rank(rank):
    assert repr(rank) in assert_refused("from 1 to 4", check_rank, rank, 5).received


def test_no_rank_fits_a_single_feature():
    assert_refused("none fits", check_rank, 1, 1)


def test_choices():
    check_choice("a", ("a", "b"), "letter")
    assert (
        "'a', 'b'"
        in assert_refused("Unknown letter", check_choice, "c", ("a", "b"), "letter").remedy
    )


@pytest.mark.parametrize(
    ("value", "options"),
    [
        (1, {}),
        (0, {}),
        (np.float32(0.5), {"strict": True}),
        (np.int64(3), {"whole": True, "least": 3}),
        (1.0, {"most": 1}),
        (float("inf"), {"most": float("inf")}),
    ],
)
def test_numbers(value, options):
    check_number(value, "it", **options)


@pytest.mark.parametrize(
    ("value", "options", "match"),
    [
        (-1, {}, "number of at least 0"),
        (0.0, {"strict": True}, "number above 0"),
        (2.0, {"whole": True}, "whole number of at least 0"),
        (True, {}, "number"),
        (np.True_, {}, "number"),
        (NAN, {}, "number"),
        (float("inf"), {}, "number"),
        (1.5, {"most": 1}, "at least 0 and at most 1"),
        ("1", {}, "number"),
        (None, {}, "number"),
        (1j, {}, "number"),
    ],
)
def test_bad_numbers(value, options, match):
    error = assert_refused(match, check_number, value, "it", **options)
    assert error.received == f"it={value!r}"


def test_seeds():
    assert check_rng(None).integers(1 << 30) == check_rng(0).integers(1 << 30)
    assert check_rng(1).integers(1 << 30) != check_rng(0).integers(1 << 30)
    own = np.random.default_rng(5)
    assert check_rng(own) is own
    for bad in ("seed", -1, 1.5):
        assert repr(bad) in assert_refused("random_state", check_rng, bad).received
