"""What all tests share."""

import pytest
import scipy.linalg  # noqa: F401  # loads SciPy's BLAS, so that it is limited too
import sklearn.ensemble  # noqa: F401  # the same for OpenMP
from threadpoolctl import threadpool_limits

from planted import KINDS, Planted, plant

# test processes already fill the cores; threads on small matrices would only wait for each other
threadpool_limits(1, user_api="blas")
threadpool_limits(1, user_api="openmp")


@pytest.fixture(params=KINDS)
def planted(request) -> Planted:
    return plant(request.param)
