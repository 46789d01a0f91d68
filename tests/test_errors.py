import pickle

import pytest
from sklearn.exceptions import ConvergenceWarning

from expunge import errors


@pytest.mark.parametrize("kind", [errors.InputError, errors.NotNumeric])
def test_an_input_error_has_three_parts_and_survives_pickling(kind):
    error = pickle.loads(pickle.dumps(kind("X is empty", "shape (0, 3)", "Pass rows")))
    assert type(error) is kind
    assert (error.problem, error.received, error.remedy) == (
        "X is empty",
        "shape (0, 3)",
        "Pass rows",
    )
    assert str(error) == "X is empty. Received shape (0, 3). Pass rows."


def test_a_missing_package_names_its_extra_and_survives_pickling():
    error = pickle.loads(pickle.dumps(errors.MissingPackage("torch", "transformers")))
    assert type(error) is errors.MissingPackage
    assert str(error) == "torch is not installed; get it with: pip install 'expunge[transformers]'"


@pytest.mark.parametrize(
    ("name", "bases"),
    [
        ("InputError", (errors.ExpungeError, ValueError)),
        ("NotNumeric", (errors.InputError, TypeError)),
        ("BadArtifact", (errors.ExpungeError, ValueError)),
        ("MissingPackage", (errors.ExpungeError, ImportError)),
        ("NotConverged", (ConvergenceWarning,)),
        ("RankTruncated", (UserWarning,)),
        ("RoundingShows", (UserWarning,)),
        ("SampleTaken", (UserWarning,)),
    ],
)
def test_families(name, bases):
    assert name in errors.__all__
    for base in bases:
        assert issubclass(getattr(errors, name), base)
