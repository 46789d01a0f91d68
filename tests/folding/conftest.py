"""Trees on few rows: threads of theirs beside as many test processes would wait for each other."""

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True)
def one_thread_for_trees():
    with threadpool_limits(1, user_api="openmp"):
        yield
