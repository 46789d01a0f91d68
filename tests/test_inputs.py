"""The gate: what is accepted, as what, and the three parts of every refusal."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

from expunge.errors import InputError, NotNumeric
from expunge.inputs import (
    as_matrix,
    check_choice,
    check_concept,
    check_rank,
    check_rows,
    check_weights,
)

NAN, INF = float("nan"), float("inf")


def assert_refused(match, call, *args, kind=InputError, **options):
    """An InputError with three parts, all of them in its text; returns it."""
    with pytest.raises(kind, match=match) as caught:
        call(*args, **options)
    error = caught.value
    assert isinstance(error, ValueError)
    for part in (error.problem, error.received, error.remedy):
        assert part
        assert part in str(error)
        assert not part.endswith(".")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    return error


# -- rows ----------------------------------------------------------------------------------------


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


# -- concepts ------------------------------------------------------------------------------------


def summary(concept):
    return concept.kind, concept.labels, concept.values.tolist()


@pytest.mark.parametrize(
    ("y", "labels"),
    [
        ([3, 7, 7, 3], (3, 7)),
        (np.array([3, 7, 7, 3], dtype="u1"), (3, 7)),
        (["a", "b", "b", "a"], ("a", "b")),
        (np.array(["a", "b", "b", "a"]), ("a", "b")),
        (np.array(["a", "b", "b", "a"], dtype=object), ("a", "b")),
        ([False, True, True, False], (False, True)),
        ([1.0, 2.0, 2.0, 1.0], (1.0, 2.0)),
        (np.array([1, 2, 2, 1], dtype=object), (1, 2)),
        ([[3], [7], [7], [3]], (3, 7)),
        (pd.Series([3, 7, 7, 3], index=[9, 8, 7, 6]), (3, 7)),
        (pd.Series(["a", "b", "b", "a"]), ("a", "b")),
        (pd.Series(["a", "b", "b", "a"], dtype="string"), ("a", "b")),
        (pd.Series(["a", "b", "b", "a"], dtype="category"), ("a", "b")),
        (pd.Series([9, 10, 10, 9], dtype="category"), (9, 10)),
        (pd.Categorical(["a", "b", "b", "a"], categories=["b", "a"]), ("a", "b")),
        (pd.Series([1, 2, 2, 1], dtype="Int64"), (1, 2)),
        (pd.Series([False, True, True, False], dtype="boolean"), (False, True)),
        (pd.DataFrame({"g": ["a", "b", "b", "a"]}), ("a", "b")),
        (pl.Series(["a", "b", "b", "a"]), ("a", "b")),
        (pl.Series(["a", "b", "b", "a"], dtype=pl.Categorical), ("a", "b")),
        (pl.Series(["a", "b", "b", "a"], dtype=pl.Enum(["b", "a"])), ("a", "b")),
        (pl.Series([False, True, True, False]), (False, True)),
        (pl.DataFrame({"g": [3, 7, 7, 3]}), (3, 7)),
    ],
)
def test_classes(y, labels):
    concept = check_concept(y, 4)
    assert summary(concept) == ("classes", labels, [0, 1, 1, 0])
    assert [type(label) for label in concept.labels] == [type(label) for label in labels]


@pytest.mark.parametrize(
    ("y", "kind"),
    [
        ([0.5, 1.0, 2.0], "continuous"),
        (np.array([0.5, 1, 2], dtype=object), "continuous"),
        (pd.Series([0.5, 1.0, 2.0]), "continuous"),
        (pl.Series([0.5, 1.0, 2.0]), "continuous"),
        ([[0.5, 1.0], [2.0, 3.5], [0.0, 1.0]], "continuous"),
        ([[0, 1], [1, 1], [0, 0]], "labels"),
        (np.array([[False, True], [True, True], [False, False]]), "labels"),
        (np.array([[0, 1], [1, 1], [0, 0]], dtype=object), "labels"),
    ],
)
def test_numbers_and_indicators(y, kind):
    concept = check_concept(y, 3)
    expected = np.asarray(y, dtype=float).reshape(3, -1)
    assert concept.kind == kind
    assert concept.labels == tuple(range(expected.shape[1]))
    assert concept.values.dtype == np.float64
    np.testing.assert_array_equal(concept.values, expected)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_of_a_frame_name_the_labels(frame):
    assert check_concept(frame({"p": [0, 1, 1], "q": [1, 1, 0]}), 3).labels == ("p", "q")


def test_the_kind_can_be_said():
    assert check_concept([1, 2, 3], 3, concept_type="continuous").kind == "continuous"
    assert check_concept([0.5, 0.5, 1.5], 3, concept_type="classes").labels == (0.5, 1.5)
    assert check_concept([0, 1, 1], 3, concept_type="labels").values.shape == (3, 1)
    whole = check_concept([[1, 2], [3, 4], [5, 6]], 3, concept_type="continuous")
    assert whole.values.shape == (3, 2)


@pytest.mark.parametrize(
    ("y", "match", "advice"),
    [
        ([[1, 2], [3, 4], [1, 4]], "neither classes, labels nor numbers", "continuous"),
        ([["a", "b"], ["c", "d"], ["a", "a"]], "neither classes, labels nor numbers", "one class"),
        (None, "requires y to be passed", "concept="),
        ([1, 1, 1], "one class only", "two classes"),
        ([1, 2, 3], "as many classes as rows", "continuous"),
        (["a", "b", "c"], "as many classes as rows", "repeat"),
        ([0.5, 0.5, 0.5], "never varies", "differs"),
        ([[0, 1], [0, 1], [0, 1]], "never varies", "differs"),
        ([0, 1], "inconsistent numbers of samples: X has 3 rows, y has 2", "per row"),
        ([], "1d array", "one label"),
        (1, "1d array", "one label"),
        ("abc", "1d array", "one label"),
        (np.zeros((3, 1, 1)), "1d array", "one label"),
        ([[1, 2], [3], [4]], "cannot be read as labels", "one label"),
        (scipy.sparse.eye_array(3, format="csr"), "Sparse", "toarray"),
        ([1j, 2j, 1j], "Complex", "real"),
        (np.array([b"a", b"b", b"a"]), "not supported", "strings"),
        (np.array(["2020", "2021", "2020"], dtype="M8[Y]"), "not supported", "strings"),
    ],
)
def test_bad_concepts(y, match, advice):
    assert advice in assert_refused(match, check_concept, y, 3).remedy


@pytest.mark.parametrize(
    "y",
    [
        np.array(["a", 1, "a"], dtype=object),
        ["a", 1, "a"],
        ["a", True, "a"],
        np.array([(1, 2), "a", "b"], dtype=object),
        pd.Series(["a", 1, "a"]),
        np.array([b"a", b"b", b"a"], dtype=object),
    ],
)
def test_mixed_types(y):
    error = assert_refused("mixes types", check_concept, y, 3)
    assert "str" in error.received or "bytes" in error.received
    assert_refused("mixes types", check_concept, y, 3, concept_type="classes")


@pytest.mark.parametrize(
    "y",
    [
        [1.0, NAN, 2.0],
        [1.0, INF, 2.0],
        ["a", None, "b"],
        ["a", NAN, "b"],
        [1, None, 2],
        np.array(["a", pd.NA, "b"], dtype=object),
        np.array([1.5, NAN, "b"], dtype=object),
        [[0.0, 1.0], [NAN, 1.0], [1.0, 0.0]],
        pd.Series(["a", None, "b"]),
        pd.Series(["a", None, "b"], dtype="string"),
        pd.Series(["a", None, "b"], dtype="category"),
        pd.Series([1, None, 2], dtype="Int64"),
        pd.Series([True, None, False], dtype="boolean"),
        pl.Series(["a", None, "b"]),
        pl.Series(["a", None, "b"], dtype=pl.Categorical),
        pl.Series([1, None, 2]),
        pl.Series([True, None, False]),
    ],
)
def test_missing_labels(y):
    error = assert_refused("contains NaN", check_concept, y, 3)
    assert "1 such value" in error.received or "1 missing" in error.received
    assert "row 1" in error.received or "position 1" in error.received


@pytest.mark.parametrize(
    ("y", "concept_type", "match"),
    [
        ([0, 1, 2], "labels", "not a 0/1 indicator"),
        (["a", "b", "a"], "labels", "not numeric"),
        (["a", "b", "a"], "continuous", "not numeric"),
        ([[0, 1], [1, 1], [0, 0]], "classes", "1d array"),
        ([0, 1, 1], "class", "Unknown concept_type"),
        ([0, 1, 1], None, "Unknown concept_type"),
        ([0, 1, 1], ["auto"], "Unknown concept_type"),
    ],
)
def test_the_kind_said_must_fit(y, concept_type, match):
    assert_refused(match, check_concept, y, 3, concept_type=concept_type)


def test_a_chunk_may_hold_one_class():
    assert check_concept([1, 1], 2, whole=False).labels == (1,)
    assert check_concept(["a"], 1, whole=False).labels == ("a",)
    assert check_concept([0.5, 0.5], 2, whole=False).values.shape == (2, 1)


def test_messages_name_the_concept_and_its_owner():
    assert "gender" in str(assert_refused("samples", check_concept, [1, 2], 3, name="gender"))
    assert_refused("^LEACE requires", check_concept, None, 3, owner="LEACE")


# -- weights, rank, choices ----------------------------------------------------------------------


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
