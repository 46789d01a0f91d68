"""Numbers of float16: every one of them to wider types, and back from between any two of them."""

import warnings

import numpy as np
import pytest

from expunge import half
from expunge.half import are_finite, copy_numbers

ALL = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
NUMBERS = ALL[np.isfinite(ALL)]
WIDE = [np.float32, np.float64]


def same_bits(a, b):
    whole = f"u{a.dtype.itemsize}"
    np.testing.assert_array_equal(a.view(whole), b.view(whole))


def copied(X, dtype):
    found = np.empty(X.shape, dtype)
    copy_numbers(found, X)
    return found


@pytest.mark.parametrize("wide", WIDE)
def test_every_number_to_wider_types(wide, monkeypatch):
    monkeypatch.setattr(half, "PIECE", 5000)
    monkeypatch.setattr(half, "_own", half.local())
    same_bits(copied(NUMBERS, wide), NUMBERS.astype(wide))
    np.testing.assert_array_equal(copied(ALL, wide), ALL.astype(wide))  # with NaN and infinity


@pytest.mark.parametrize("wide", WIDE)
def test_back_from_between_any_two(wide):
    """Middles are rounded to even, and what is next to a middle to its own side."""
    known = np.sort(NUMBERS.astype(wide))
    middle = known[1:] / 2 + known[:-1] / 2
    near = [np.nextafter(middle, wide(side)) for side in (-np.inf, np.inf)]
    rounded_twice = [middle * wide(1 + sign * 2.0**-23) for sign in (-1, 1)]
    rng = np.random.default_rng(0)
    drawn = [(rng.normal(size=70_000) * size).astype(wide) for size in (1, 1e4, 1e-5, 1e-7)]
    X = rng.permutation(np.concatenate([known, middle, *near, *rounded_twice, *drawn]))
    X = X[np.abs(X) < 65519]
    same_bits(copied(X, np.float16), X.astype(np.float16))


def test_a_float32_in_between_would_round_otherwise():
    """The number just above a middle: the test before can fail."""
    X = np.full(half.FEW, 1 + 2.0**-11 + 2.0**-30)
    assert X.astype(np.float32).astype(np.float16)[0] == 1
    assert X.astype(np.float16)[0] > 1
    same_bits(copied(X, np.float16), X.astype(np.float16))


@pytest.mark.parametrize("value", [65519.99, 65520.0, -65520.0, 1e30, 1e300, np.nan, -np.inf])
def test_too_large_and_no_numbers(value):
    X = np.linspace(-3, 3, 2 * half.FEW)
    X[-1] = value
    told = []
    with np.errstate(over="call", call=lambda *event: told.append(event)):
        found = copied(X, np.float16)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found, X.astype(np.float16))
    assert bool(told) == (65520 <= abs(value) < np.inf)
    assert are_finite(found) == (abs(value) < 65520)


def test_nothing_is_said_of_small_numbers():
    X = np.full(half.FEW, 1e-320)
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        assert not copied(X, np.float16).any()


@pytest.mark.parametrize(("of", "to"), [("f4", "f8"), ("f8", "f4"), ("i4", "f8"), ("f2", "f2")])
def test_other_types(of, to):
    X = np.arange(3000).reshape(3, 1000).astype(of)
    same_bits(copied(X, to), X.astype(to))


def test_views_that_are_not_in_one_piece():
    X = np.random.default_rng(0).normal(size=(60, 100))
    out = np.zeros((60, 200), np.float16)
    copy_numbers(out[:, ::2], X)
    np.testing.assert_array_equal(out[:, ::2], X.astype(np.float16))
    assert not out[:, 1::2].any()
    same_bits(copied(X.T.astype(np.float16), np.float64), X.T.astype(np.float16).astype(float))


def test_a_processor_that_takes_small_numbers_for_zero(monkeypatch):
    monkeypatch.setattr(half, "SUBNORMAL", np.zeros(1, np.float32))  # as it would see them
    same_bits(copied(NUMBERS, np.float64), NUMBERS.astype(np.float64))


def test_whether_they_are_finite():
    assert are_finite(NUMBERS)
    assert are_finite(NUMBERS[:0])
    assert not any(are_finite(ALL[[i]]) for i in np.flatnonzero(~np.isfinite(ALL)))
