"""Names stand for columns where rows have such, and for themselves elsewhere."""

import numpy as np
import pytest

import expunge as ex
from expunge.inputs.columns import by_name, count_of
from expunge.rows.dense import DenseRows


class TableRows(DenseRows):
    """Three rows with two columns: any home may have some."""

    columns = ("sex", "age")

    def column(self, name):
        return {"sex": np.array(["f", "m", "f"]), "age": np.array([31, 24, 57])}[name]


ROWS = TableRows(np.eye(3))


def test_names():
    assert by_name("age", ROWS).tolist() == [31, 24, 57]
    assert by_name(["age"], ROWS).tolist() == [31, 24, 57]
    assert [*by_name(["sex", "age"], ROWS)] == ["sex", "age"]
    assert by_name({"how old": "age", "other": [1, 2, 3]}, ROWS)["how old"].tolist() == [31, 24, 57]
    assert count_of(ROWS) == count_of(3) == 3


@pytest.mark.parametrize("values", [None, 2.0, ["f", "m", "f"], ["sex", "f", "age"], [1, 2], []])
def test_values_stay(values):
    assert by_name(values, ROWS) is values


def test_rows_without_columns():
    plain = DenseRows(np.eye(2))
    assert by_name(["a", "b"], plain) == ["a", "b"]
    assert by_name("sex", 2) == "sex"
    with pytest.raises(ex.InputError, match=r"these rows have none. Received 'sex'"):
        by_name("sex", plain)
    with pytest.raises(ex.InputError, match="have no columns"):
        plain.column("sex")
