"""What all tests share."""

import os
import signal

import pytest
import scipy.linalg  # noqa: F401  # loads SciPy's BLAS, so that it is limited too
from threadpoolctl import threadpool_limits

from planted import KINDS, Planted, plant

# test processes already fill the cores; BLAS threads on small matrices would only wait for each
# other
threadpool_limits(1, user_api="blas")
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # of processes that a test starts
    os.environ.setdefault(name, "1")

# a shell ignores interruptions of what it runs in the background, and so would all that is tested
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(params=KINDS)
def planted(request) -> Planted:
    return plant(request.param)
