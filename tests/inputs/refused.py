"""What every refusal of the gate has to look like."""

import pickle

import pytest

from expunge.errors import InputError


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
