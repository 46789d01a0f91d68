"""Matrices and weights: what is accepted, as what, and the three parts of every refusal."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from refused import assert_refused

from expunge.errors import NotNumeric
from expunge.inputs import as_matrix, check_rows, check_weights

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("X", "match"),
    [
        (scipy.sparse.eye_array(3, format="csr"), "Sparse"),
        (np.eye(3) * 1j, "Complex"),
        (np.arange(3.0), "Expected 2D array, got 1D"),
        (5.0, "Expected 2D array, got 0D"),
        (None, "Expected 2D array, got 0D"),
        (np.zeros((2, 2, 2)), "Expected 2D array, got 3D"),
        (np.zeros((0, 3)), "0 sample"),
        (np.zeros((1, 3)), "minimum of 2"),
        (np.zeros((3, 0)), "0 feature"),
        ([], "Expected 2D array"),
        ([[1, 2], [3]], "cannot be read as a matrix"),
        (pl.LazyFrame({"a": [1, 2]}), "lazy"),
        (pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}), "could not convert string to float"),
        (pl.DataFrame({"a": [1, 2], "b": ["x", "y"]}), "could not convert string to float"),
        (pd.DataFrame({"a": pd.to_datetime(["2020", "2021"])}), "not numbers"),
        (pd.DataFrame({"a": pd.Series([1, None], dtype="Int64")}), "NaN"),
        (pl.DataFrame({"a": [1, None]}), "NaN"),
        (pd.Series([1.0, 2.0]), "Expected 2D array, got 1D"),
    ],
)
def test_bad_rows(X, match):
    assert_refused(match, check_rows, X)


@pytest.mark.parametrize(
    "X",
    [
        [["a", "b"], ["c", "d"]],
        [["1", "2"], ["3", "4"]],
        np.array([["a", 1.0], ["b", 2.0]], dtype=object),
        np.array([[{}, 1], [1, 2]], dtype=object),
        "some text",
        [[10**400, 1], [1, 2]],
        np.array([["2020-01-01"], ["2021-01-01"]], dtype="M8[D]"),
    ],
    ids=["text", "digits", "objects", "dict", "string", "huge", "dates"],
)
def test_what_is_not_a_number(X):
    assert_refused("not numeric", check_rows, X, kind=NotNumeric)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "O"])
@pytest.mark.parametrize("order", ["C", "F", "strided"])
@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_nan_and_infinity_are_counted_and_located(dtype, order, bad):
    X = np.ones((10_000, 3), dtype=dtype)
    X[7000, 1] = bad
    X = {"C": X, "F": np.asfortranarray(X), "strided": np.repeat(X, 2, axis=0)[::2]}[order]
    error = assert_refused("NaN or infinity", check_rows, X)
    assert error.received == "1 such value, the first in row 7000, column 1"
    X[9999, 2] = X[8000, 0] = -bad
    error = assert_refused("NaN or infinity", check_rows, X, name="X_test")
    assert error.received == "3 such values, the first in row 7000, column 1"
    assert "X_test" in error.problem


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_finite_numbers_whose_squares_overflow_are_fine(dtype):
    X = np.full((4, 2), np.finfo(dtype).max, dtype=dtype)
    assert check_rows(X).X is X


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "u8", "?"])
def test_arrays_pass_without_a_copy(dtype, tmp_path):
    for X in (
        np.ones((3, 2), dtype=dtype),
        np.ones((3, 2), dtype=dtype, order="F"),
        np.memmap(tmp_path / "X", dtype=dtype, mode="w+", shape=(3, 2)),
    ):
        rows = check_rows(X)
        assert rows.X is X
        assert (rows.n_samples, rows.n_features, rows.dtype) == (3, 2, np.dtype(dtype))


@pytest.mark.parametrize(
    "X",
    [
        [[1, 0], [2, 1], [3, 0]],
        ((1.0, 0.0), (2.0, 1.0), (3.0, 0.0)),
        np.array([[1, False], [2.0, True], [3, 0]], dtype=object),
        pd.DataFrame({"a": [1, 2, 3], "b": [False, True, False]}),
        pd.DataFrame({"a": pd.array([1, 2, 3], dtype="Int64"), "b": [0.0, 1.0, 0.0]}),
        pd.DataFrame({"a": pd.Series([1, 2, 3], dtype=object), "b": [0.0, 1.0, 0.0]}),
        pl.DataFrame({"a": [1, 2, 3], "b": [0.0, 1.0, 0.0]}),
        pl.DataFrame({"a": [1, 2, 3], "b": [False, True, False]}),
    ],
    ids=["list", "tuple", "objects", "pandas", "nullable", "object frame", "polars", "booleans"],
)
def test_what_becomes_a_matrix(X):
    found = check_rows(X).X
    np.testing.assert_array_equal(found, [[1, 0], [2, 1], [3, 0]])
    assert found.dtype.kind in "fi"


def test_frames_keep_their_precision():
    X = np.eye(3, dtype="f4")
    assert as_matrix(pd.DataFrame(X)).dtype == np.float32
    assert as_matrix(pl.DataFrame(X)).dtype == np.float32


def test_a_single_row_can_be_allowed():
    assert check_rows(np.ones((1, 2)), least=1).n_samples == 1
    assert_refused("0 sample", check_rows, np.ones((0, 2)), least=1)


def test_weights():
    assert check_weights(None, 3) is None
    assert check_weights(2.0, 3) is None  # the same for all
    for w in (
        [1, 0, 2],
        np.array([1, 0, 2], dtype="f4"),
        pd.Series([1, 0, 2]),
        pl.Series([1, 0, 2]),
    ):
        found = check_weights(w, 3)
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, [1, 0, 2])


@pytest.mark.parametrize(
    ("w", "match"),
    [
        ([1, -1, 1], "non-negative"),
        ([0, 0, 0], "not all zero"),
        ([1, 1], "expected"),
        ([[1], [1], [1]], "1D"),
        ([1, NAN, 1], "NaN"),
        (["a", "b", "c"], "not numeric"),
        ("balanced", "not numeric"),
        (-1.0, "non-negative"),
        (0, "not all zero"),
        (NAN, "NaN"),
    ],
)
def test_bad_weights(w, match):
    assert_refused(match, check_weights, w, 3)


# -- masked arrays -------------------------------------------------------------------------------


def test_masked_entries_are_refused_and_counted():
    X = np.ma.masked_greater(np.arange(6.0).reshape(3, 2), 3.5)
    error = assert_refused("X is a masked array", check_rows, X)
    assert error.received == "2 masked of 6"
    assert "filled" in error.remedy
    assert_refused("sample_weight is a masked", check_weights, np.ma.masked_equal([1, 2, 3], 2), 3)


def test_a_masked_array_without_masked_entries_is_an_array():
    X = np.ma.array(np.eye(3))
    found = as_matrix(X)
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, np.eye(3))
