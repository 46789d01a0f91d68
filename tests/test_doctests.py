"""Every example in every docstring runs."""

import doctest
import importlib
import pkgutil

import pytest

import expunge

NAMES = [info.name for info in pkgutil.walk_packages(expunge.__path__, "expunge.")]


@pytest.mark.parametrize("name", NAMES)
def test_examples_in_docstrings(name):
    failures, _ = doctest.testmod(importlib.import_module(name))
    assert failures == 0
