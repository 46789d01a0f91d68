"""Lists where a label is wanted: one message, whatever they are passed as and wherever they go."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refused import assert_refused

import expunge as ex

N = 200
BROKEN = {
    "even": lambda lists: lists,
    "ragged": lambda lists: [part[: 1 + k % 2] for k, part in enumerate(lists)],
    "text": lambda lists: [["ab"[v] for v in part] for part in lists],
    "gap": lambda lists: [None, *lists[1:]],
    "gap inside": lambda lists: [[None, 1], *lists[1:]],
    "empty": lambda lists: [[], *lists[1:]],
}


@pytest.fixture(params=BROKEN)
def table(request):
    rng = np.random.default_rng(0)
    lists = BROKEN[request.param](rng.integers(0, 2, (N, 2)).tolist())
    columns = {f"e{j}": column for j, column in enumerate(rng.normal(size=(4, N)))}
    half = {"sex": np.arange(N) % 2}
    return pa.table({**columns, **half, "several": pa.array(lists)})


@pytest.mark.parametrize("missing", ["error", "unlabelled"])
@pytest.mark.parametrize("home", ["file", "frame", "series"])
def test_lists_are_no_labels(table, home, missing, tmp_path):
    pq.write_table(table, tmp_path / "t.parquet")
    frame = table.to_pandas()
    vectors = frame[["e0", "e1", "e2", "e3"]]
    X, y, more = vectors, frame["several"], {}
    if home == "file":
        X, y = ex.open_rows(tmp_path / "t.parquet", vectors="e*"), "several"
    elif home == "frame":
        X, y, more = frame, "several", {"vectors": "e*"}
    error = assert_refused("holds lists", ex.LEACE().fit, X, y, missing=missing, **more)
    assert error.received.startswith("a list of ")


def test_lists_are_no_groups(table):
    frame = table.to_pandas()
    fit = ex.LEACE().fit
    X, sex = frame[["e0", "e1"]], frame["sex"]
    assert_refused("groups holds lists", fit, X, sex, groups=frame["several"])


def test_lists_in_the_place_of_rows_are_counted_by_rows():
    y = np.empty((20, 2), object)
    y[:] = 0
    y[7, 1] = [1, 2]
    error = assert_refused("holds lists", ex.LEACE().fit, np.eye(20), y)
    assert error.received == "a list of 2 in row 7"


def test_a_tuple_among_text_is_a_list_too():
    y = np.array([(1, 2), "a", "b"], dtype=object)
    assert_refused("holds lists", ex.LEACE().fit, np.eye(3), y)


def test_pandas_na_is_a_missing_label_everywhere():
    from expunge.commands.missing_labels import labelled_rows

    y = pd.Series(["f", pd.NA, "m"], dtype=object).to_numpy()
    assert labelled_rows({"sex": y}, 3, "drop")[0].tolist() == [0, 2]
