"""Rates and gaps: hand-computed tables, a plain twin, empty cells, intervals."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import recall_score

from expunge.errors import InputError
from expunge.metrics.fairness import gap_correlation, tpr_gap_rms, tpr_gaps
from expunge.metrics.parity import demographic_parity_difference, equalised_odds_difference


def rows(table):
    """Rows of a table {(class, group): (right, wrong)}; a wrong answer is another class."""
    classes = sorted({label for label, _ in table})
    y_true, y_pred, group = [], [], []
    for (label, g), (right, wrong) in table.items():
        other = classes[(classes.index(label) + 1) % len(classes)]
        y_true += [label] * (right + wrong)
        y_pred += [label] * right + [other] * wrong
        group += [g] * (right + wrong)
    return y_true, y_pred, group


# TPR by hand: nurse f 9/10, m 1/2; judge f 3/4, m 1; poet f 2/3, m 2/3
BY_HAND = {
    ("nurse", "f"): (9, 1),
    ("nurse", "m"): (1, 1),
    ("judge", "f"): (3, 1),
    ("judge", "m"): (6, 0),
    ("poet", "f"): (2, 1),
    ("poet", "m"): (4, 2),
}


def test_table_by_hand():
    found = tpr_gaps(*rows(BY_HAND))
    assert found.classes == ("judge", "nurse", "poet")
    assert found.groups == ("f", "m")
    assert found.gap_groups == ("m",)
    assert found.counts.tolist() == [[4, 6], [10, 2], [3, 6]]
    np.testing.assert_allclose(found.tpr, [[0.75, 1], [0.9, 0.5], [2 / 3, 2 / 3]])
    np.testing.assert_allclose(found.gaps[:, 0], [0.25, -0.4, 0], atol=1e-15)
    np.testing.assert_allclose(found.shares[:, 0], [0.6, 2 / 12, 6 / 9])
    assert found.rms == pytest.approx(math.sqrt((0.25**2 + 0.4**2) / 3))
    assert found.correlation == pytest.approx(
        np.corrcoef([0.25, -0.4, 0], [0.6, 1 / 6, 2 / 3])[0, 1]
    )
    assert found.n_gaps == 3
    assert found.undefined == ()
    assert tpr_gap_rms(*rows(BY_HAND)) == found.rms
    assert gap_correlation(*rows(BY_HAND)) == found.correlation


def test_the_other_group_has_the_opposite_gaps():
    men, women = tpr_gaps(*rows(BY_HAND)), tpr_gaps(*rows(BY_HAND), positive="f")
    np.testing.assert_allclose(women.gaps, -men.gaps)
    np.testing.assert_allclose(women.shares, 1 - men.shares)
    assert women.rms == pytest.approx(men.rms)
    assert women.correlation == pytest.approx(men.correlation)


def test_rates_agree_with_scikit_learn_on_many_groups():
    rng = np.random.default_rng(0)
    y_true, group = rng.integers(0, 4, 3000), rng.choice(["x", "y", "z"], 3000)
    y_pred = np.where(rng.random(3000) < 0.6, y_true, rng.integers(0, 5, 3000))
    found = tpr_gaps(y_true, y_pred, group)
    assert found.classes == (0, 1, 2, 3)  # 4 is predicted, but no row is of it
    assert found.gap_groups == ("x", "y", "z")
    squares = []
    for j, g in enumerate(found.groups):
        inside = recall_score(
            y_true[group == g], y_pred[group == g], labels=[0, 1, 2, 3], average=None
        )
        outside = recall_score(
            y_true[group != g], y_pred[group != g], labels=[0, 1, 2, 3], average=None
        )
        np.testing.assert_allclose(found.tpr[:, j], inside)
        np.testing.assert_allclose(found.gaps[:, j], inside - outside)
        squares += [(inside - outside) ** 2]
    assert found.rms == pytest.approx(math.sqrt(np.mean(squares)))
    one = tpr_gaps(y_true, y_pred, group, positive="y")
    np.testing.assert_array_equal(one.gaps[:, 0], found.gaps[:, 1])
    assert one.n_gaps == 4


def test_a_class_without_members_of_a_group_is_named_and_left_out():
    table = {key: value for key, value in BY_HAND.items() if key != ("nurse", "m")}
    found = tpr_gaps(*rows(table))
    assert found.undefined == (("nurse", "m"),)
    assert np.isnan(found.tpr[1, 1])
    assert np.isnan(found.gaps[1, 0])
    assert found.tpr[1, 0] == 0.9
    assert found.n_gaps == 2
    assert found.rms == pytest.approx(math.sqrt(0.25**2 / 2))
    assert "RMS gap 0.1768 over 2 of 3 gaps" in str(found)
    assert "no rows: nurse in m" in str(found)
    with pytest.warns(UndefinedMetricWarning, match="class 'nurse' in group 'm'"):
        assert tpr_gap_rms(*rows(table)) == found.rms
    with pytest.warns(UndefinedMetricWarning, match="1 rate has no rows"):
        gap_correlation(*rows(table))
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["tpr"][1] == [0.9, None]
    assert plain["undefined"] == [["nurse", "m"]]
    assert plain["counts"][1] == [10, 0]


def test_one_missing_cell_of_three_groups_leaves_the_other_gaps():
    table = {("a", g): (1, 1) for g in "xyz"} | {("b", "x"): (2, 0), ("b", "y"): (1, 1)}
    found = tpr_gaps(*rows(table))
    assert found.undefined == (("b", "z"),)
    np.testing.assert_allclose(found.gaps[1], [0.5, -0.5, np.nan])
    assert found.n_gaps == 5


def test_nothing_to_compare_gives_nan_and_not_zero():
    found = tpr_gaps(["a", "a", "b"], ["a", "a", "b"], [0, 0, 1])
    assert math.isnan(found.rms)
    assert math.isnan(found.correlation)
    assert found.to_dict()["rms"] is None
    assert found.n_gaps == 0


def test_shares_may_come_from_other_rows():
    shares = {"judge": 0.1, "nurse": 0.5, "poet": 0.9}
    found = tpr_gaps(*rows(BY_HAND), shares=shares)
    assert found.correlation == pytest.approx(np.corrcoef([0.25, -0.4, 0], [0.1, 0.5, 0.9])[0, 1])
    with pytest.raises(InputError, match="no share for \\['poet'\\]"):
        tpr_gaps(*rows(BY_HAND), shares={"judge": 0.1, "nurse": 0.5})


def test_inputs_of_any_kind():
    y_true, y_pred, group = rows(BY_HAND)
    expected = tpr_gaps(y_true, y_pred, group).rms
    series = [pd.Series(column, dtype="category") for column in (y_true, y_pred, group)]
    assert tpr_gap_rms(*series) == expected
    flags = np.array(group) == "m"
    assert tpr_gap_rms(np.array(y_true), np.array(y_pred, dtype=object), flags) == expected


@pytest.mark.parametrize(
    ("columns", "match"),
    [
        ((["a", "b"], ["a", "b"], ["f", "f"]), "one group only"),
        ((["a", "b"], ["a", "b", "b"], ["f", "m"]), "y_true has 2 rows and y_pred has 3"),
        ((["a", "b"], [0, 1], ["f", "m"]), "labels of different types"),
        (([0, 1], [0.2, 0.7], ["f", "m"]), "y_pred must hold one class per row"),
        ((["a", None], ["a", "b"], ["f", "m"]), "y_true contains NaN"),
    ],
)
def test_bad_columns_are_refused(columns, match):
    with pytest.raises(InputError, match=match):
        tpr_gaps(*columns)


def test_an_unknown_positive_group_is_refused():
    with pytest.raises(InputError, match="positive is not one of the groups"):
        tpr_gaps(*rows(BY_HAND), positive="x")


# rows of each class in each group, and the rates: of two groups, of five with rare ones, of many
# classes; the gaps large, small, and none
TWO = [[900, 1400], [110, 600]]
FIVE = [[1000, 300, 100, 20, 8], [400, 150, 40, 12, 6]]
MANY = [[20 + 10 * k, 60 + 5 * k] for k in range(20)]
COVERED = {
    "two, large": (TWO, [[0.97, 0.90], [0.42, 0.64]]),
    "two, small": (TWO, [[0.92, 0.95], [0.50, 0.40]]),
    "two, none": (TWO, [[0.90, 0.90], [0.60, 0.60]]),
    "five, large": (FIVE, [[0.9, 0.6, 0.95, 0.5, 0.9], [0.6, 0.3, 0.65, 0.8, 0.2]]),
    "five, small": (FIVE, [[0.90, 0.85, 0.92, 0.8, 0.9], [0.6, 0.5, 0.65, 0.7, 0.5]]),
    "five, none": (FIVE, [[0.8] * 5, [0.6] * 5]),
    "many, large": (MANY, [[0.8 - 0.02 * k, 0.6] for k in range(20)]),
    "many, none": (MANY, [[0.7, 0.7]] * 20),
}


def table_of(counts, hits):
    """The gaps of so many rows, of which so many were classified rightly."""
    cells = [(k, g) for k in range(len(counts)) for g in range(len(counts[0]))]
    return tpr_gaps(*rows({(k, g): (hits[k][g], counts[k][g] - hits[k][g]) for k, g in cells}))


@pytest.mark.parametrize("name", COVERED)
def test_the_interval_covers_the_true_value(name):
    """At 95 % of 200 draws; binomial error leaves 0.91 to 0.99, and a limit may be cautious."""
    counts, rates = map(np.array, COVERED[name])
    rng = np.random.default_rng(5)
    true = table_of(counts * 1000, np.rint(counts * 1000 * rates).astype(int)).rms
    drawn = [rng.binomial(counts, rates) for _ in range(200)]
    low, high = np.array([table_of(counts, hits).rms_interval() for hits in drawn]).T
    assert np.all((low >= 0) & (low <= high) & (high > 0))
    assert np.mean((low <= true) & (true <= high)) >= 0.92
    assert np.mean(high < true) <= 0.06
    if "large" in name:
        assert np.median(low) > true / 4


def test_a_gap_that_is_certain_keeps_the_lower_limit_off_zero():
    """One gap of a dozen standard errors, one that is measured badly."""
    found = table_of([[4000, 7000], [530, 2900]], [[3960, 6510], [265, 1783]])
    low, high = found.rms_interval()
    assert 0.04 < low < found.rms < high < 0.15


def test_rates_without_errors_are_no_certainty():
    low, high = table_of([[20, 30], [20, 30]], [[20, 30], [20, 30]]).rms_interval()
    assert low == 0
    assert 0.05 < high < 0.3


def test_a_wider_level_gives_a_wider_interval():
    found = table_of([[50, 40], [30, 60]], [[45, 20], [20, 50]])
    limits = [found.rms_interval(level=level) for level in (0.5, 0.9, 0.99)]
    lows, highs = zip(*limits, strict=True)
    assert sorted(lows, reverse=True) == list(lows)
    assert sorted(highs) == list(highs)
    with pytest.raises(InputError, match="level"):
        found.rms_interval(level=0)


def test_no_gap_has_no_interval():
    assert np.isnan(tpr_gaps(["a", "a", "b"], ["a", "a", "b"], [0, 0, 1]).rms_interval()).all()


def test_parity_by_hand():
    y_pred = ["a", "a", "b", "b", "b", "a", "b", "c", "c", "c"]
    group = ["f"] * 5 + ["m"] * 5  # f: 2/5 3/5 0; m: 1/5 1/5 3/5
    assert demographic_parity_difference(y_pred, group) == pytest.approx(0.6)
    two = [1, 1, 0, 0, 0, 1, 0, 0, 0, 0]
    assert demographic_parity_difference(two, group) == pytest.approx(0.2)
    assert demographic_parity_difference([0, 1] * 4, ["f", "f", "m", "m"] * 2) == 0


def test_odds_by_hand_and_by_a_plain_twin():
    rng = np.random.default_rng(3)
    y_true, group = rng.integers(0, 3, 400), rng.choice(["x", "y", "z"], 400)
    y_pred = np.where(rng.random(400) < 0.5, y_true, rng.integers(0, 4, 400))
    worst = 0.0
    for k in (0, 1, 2):
        for rows_in in (y_true == k, y_true != k):
            rates = [np.mean(y_pred[rows_in & (group == g)] == k) for g in ("x", "y", "z")]
            worst = max(worst, max(rates) - min(rates))
    assert equalised_odds_difference(y_true, y_pred, group) == pytest.approx(worst)
    # two classes: TPR f 1, m 1/2; FPR f 1/4, m 3/4
    y_true = [1, 1, 1, 1, 0, 0, 0, 0] * 2
    y_pred = [1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0]
    assert equalised_odds_difference(y_true, y_pred, ["f"] * 8 + ["m"] * 8) == 0.5


def test_odds_name_what_has_no_rows():
    with pytest.warns(
        UndefinedMetricWarning, match=r"class 'b' in group 'm'.*'not a' in group 'm'"
    ):
        found = equalised_odds_difference(
            ["a", "b", "a", "a"], ["a", "b", "b", "a"], ["f", "f", "m", "m"]
        )
    assert found == 0.5  # TPR of a: f 1, m 1/2; nothing else can be compared but FPR of b: 0, 1/2
