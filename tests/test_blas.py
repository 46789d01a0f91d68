"""Products subtracted in place, against NumPy; and other threads go on meanwhile."""

import threading
import time

import numpy as np
import pytest

from expunge.blas import subtract_outer, subtract_product


def test_an_outer_product():
    rng = np.random.default_rng(0)
    block, x, y = rng.normal(size=(5, 3)), rng.normal(size=5), rng.normal(size=3)
    wanted = block - np.outer(x, y)
    subtract_outer(block, x, y)
    np.testing.assert_allclose(block, wanted, rtol=1e-14)


@pytest.mark.parametrize("rank", [0, 1, 4])
def test_a_product(rank):
    rng = np.random.default_rng(1)
    block, A, B = rng.normal(size=(5, 3)), rng.normal(size=(5, rank)), rng.normal(size=(rank, 3))
    wanted = block - A @ B
    subtract_product(block, A, B)
    np.testing.assert_allclose(block, wanted, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda b, x, y: (b.astype(np.float32), x, y),
        lambda b, x, y: (np.asfortranarray(b), x, y),
        lambda b, x, y: (b, x[:-1], y),
        lambda b, x, y: (b, np.repeat(x, 2)[::2], y),
        lambda b, x, y: (b, x, np.append(y, 1.0)),
    ],
)
def test_what_would_write_elsewhere_is_refused(wrong):
    given = wrong(np.zeros((4, 3)), np.ones(4), np.ones(3))
    with pytest.raises(AssertionError):
        subtract_outer(*given)


def test_other_threads_go_on():
    """While a large product is formed, another thread is never stopped for long."""
    block, A, B = np.zeros((1_500, 1_500)), np.ones((1_500, 2_000)), np.ones((2_000, 1_500))
    pauses, started, stop = [0.0], threading.Event(), threading.Event()

    def tick():
        last = time.perf_counter()
        started.set()
        while not stop.is_set():
            now = time.perf_counter()
            pauses[0], last = max(pauses[0], now - last), now

    other = threading.Thread(target=tick)
    other.start()
    started.wait()
    begin = time.perf_counter()
    subtract_product(block, A, B)
    taken = time.perf_counter() - begin
    stop.set()
    other.join()
    np.testing.assert_allclose(block, -2_000)
    assert pauses[0] < taken / 2
