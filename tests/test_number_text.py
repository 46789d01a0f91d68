"""Numbers in sentences: no exponents where a reader expects a percentage or a factor."""

import re
from pathlib import Path

import pytest

import expunge as ex
from expunge.audit.fit import _left
from expunge.commands.info import _kept
from expunge.number_text import short

PERCENT = re.compile(r"\.\dg\} (%|percent|times)|100 \* [^{}]*:\.\dg\}")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((100.0, "100"), (99.6, "100"), (123.4, "120"), (1.0, "1"), (0.5, "0.5"), (12.34, "12")),
        *((12345.6, "12,000"), (-250.0, "-250"), (0.0, "0"), (1e-7, "1e-07"), (3.2e9, "3.2e+09")),
        *((float("inf"), "inf"), (float("nan"), "nan")),
    ],
)
def test_a_few_digits_without_an_exponent(value, text):
    assert short(value) == text


def test_all_that_is_left_is_100_percent():
    assert "100 % of the covariance" in _left({"left": 1.0})


def test_all_that_is_kept_and_more_is_no_power_of_ten():
    assert _kept({"variance": 12.0, "columns": 3, "of": 3}).startswith("1,200 % of the variance")


def test_no_percentage_or_factor_of_a_message_has_an_exponent():
    there = [
        f"{path.name}: {line.strip()}"
        for path in Path(ex.__file__).parent.rglob("*.py")
        for line in path.read_text().splitlines()
        if PERCENT.search(line)
    ]
    assert not there
