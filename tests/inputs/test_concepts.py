"""Concepts: what is a class, a label or a number, and the three parts of every refusal."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from refused import assert_refused

from expunge.inputs import check_concept

NAN, INF = float("nan"), float("inf")


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
        (pl.LazyFrame({"g": [1, 2, 1]}), "y is a lazy frame", "y.collect()"),
        (np.ma.masked_equal([1, 2, 1], 2), "masked array", "drop those rows"),
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


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int16, np.int64, np.uint8, np.uint64])
@pytest.mark.parametrize("spread", [1, 50, 10**9])
def test_classes_of_whole_numbers_are_those_that_sorting_finds(dtype, spread):
    rng = np.random.default_rng(spread)
    kinds = rng.integers(-spread, spread + 1, 7)
    y = rng.choice(kinds, 200).astype(dtype)
    y[0] = 0
    found, codes = np.unique(y, return_inverse=True)
    concept = check_concept(y, 200)
    assert [type(label) for label in concept.labels] == [type(v) for v in found.tolist()]
    assert concept.labels == tuple(found.tolist())
    np.testing.assert_array_equal(concept.values, codes)
    assert concept.values.dtype == codes.dtype
