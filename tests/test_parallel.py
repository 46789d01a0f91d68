import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from expunge import parallel


@given(st.integers(0, 3000), st.integers(0, 3000), st.integers(1, 700))
def test_blocks_tile_the_range(start, length, size):
    found = list(parallel.blocks(start, start + length, size))
    assert [row for lo, hi in found for row in range(lo, hi)] == list(range(start, start + length))
    assert all(0 < hi - lo <= size for lo, hi in found)


def test_spans_are_fixed_and_made_of_whole_blocks():
    assert parallel.SPAN % parallel.BLOCK == 0
    assert parallel.spans(parallel.SPAN + 1) == [
        (0, parallel.SPAN),
        (parallel.SPAN, parallel.SPAN + 1),
    ]
    assert parallel.spans(0) == []


@pytest.mark.parametrize("threads", [1, 4])
def test_results_come_in_row_order(monkeypatch, threads):
    monkeypatch.setattr(parallel, "n_threads", lambda: threads)
    n, names = 7 * parallel.SPAN + 3, set()

    def work(lo, hi):
        names.add(threading.current_thread().name)
        return lo, hi

    assert parallel.map_spans(work, n, parallel.WORTH_THREADS) == parallel.spans(n)
    assert (threading.main_thread().name in names) == (threads == 1)


def test_small_work_starts_no_thread(monkeypatch):
    monkeypatch.setattr(parallel, "n_threads", lambda: 4)
    names = parallel.map_spans(lambda lo, hi: threading.current_thread(), 3 * parallel.SPAN, 1)
    assert set(names) == {threading.current_thread()}


@pytest.mark.parametrize("threads", [1, 4])
def test_an_error_in_a_span_reaches_the_caller(monkeypatch, threads):
    monkeypatch.setattr(parallel, "n_threads", lambda: threads)

    def work(lo, hi):
        raise ZeroDivisionError(lo)

    with pytest.raises(ZeroDivisionError):
        parallel.map_spans(work, 3 * parallel.SPAN, parallel.WORTH_THREADS)


def blas_threads():
    """Threads now of every BLAS whose number is one for the process; OpenMP's is one per thread."""
    libraries = parallel.blas_controller().select(user_api="blas").info()
    return {lib["num_threads"] for lib in libraries if lib.get("threading_layer") != "openmp"}


@pytest.mark.parametrize("threads", [1, 4])
def test_blas_uses_one_thread_inside_and_is_given_back_after(monkeypatch, threads):
    monkeypatch.setattr(parallel, "n_threads", lambda: threads)
    if not blas_threads():
        pytest.skip("every BLAS here counts its threads with OpenMP")
    with parallel.blas_controller().limit(limits=2, user_api="blas"):
        inside = parallel.map_spans(lambda lo, hi: blas_threads(), 3 * parallel.SPAN, 1000)
        assert inside == [{1}] * 3
        assert blas_threads() == {2}


def test_sums_have_the_same_bits_in_any_number_of_threads(monkeypatch):
    x = np.random.default_rng(0).normal(size=5 * parallel.SPAN)
    totals = []

    def squares(lo, hi):
        return x[lo:hi] @ x[lo:hi]

    for threads in (1, 2, 5):
        monkeypatch.setattr(parallel, "n_threads", lambda threads=threads: threads)
        with parallel.blas_controller().limit(limits=3, user_api="blas"):
            totals.append(sum(parallel.map_spans(squares, len(x), 1000)))
    assert totals[0] == totals[1] == totals[2]


def test_threads_follow_the_cores_given_to_the_process():
    assert parallel.n_threads() >= 1
