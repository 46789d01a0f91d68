import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import expunge as ex
from expunge import parallel
from planted import plant


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


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_spans_of_a_length_of_their_own(monkeypatch, threads):
    monkeypatch.setattr(parallel, "n_threads", lambda: threads)
    found = parallel.map_spans(lambda lo, hi: (lo, hi), 1003, parallel.WORTH_THREADS, span=10)
    assert found == list(parallel.blocks(0, 1003, 10))


def test_after_an_error_no_further_span_is_begun(monkeypatch):
    monkeypatch.setattr(parallel, "n_threads", lambda: 2)
    begun, failed = [], threading.Event()

    def work(lo, hi):
        begun.append(lo)
        if lo == 0:
            failed.set()
            raise IndexError("of the work itself")
        failed.wait(10)

    with pytest.raises(IndexError, match="of the work itself"):
        parallel.map_spans(work, 100_000, parallel.WORTH_THREADS, span=1)
    assert len(begun) < 90_000


def blas_threads():
    """Threads now of every BLAS whose number is one for the process, not one for each thread."""
    return {
        library["num_threads"]
        for library in parallel.blas_controller().info()
        if library["user_api"] == "blas"
        and library.get("threading_layer") != "openmp"
        and library["internal_api"] not in ("mkl", "blis")
    }


@pytest.fixture
def two_blas_threads():
    """BLAS at two threads, where one number holds for the whole process."""
    if not blas_threads():
        pytest.skip("every BLAS here counts its threads by thread")
    with parallel.blas_controller().limit(limits=2, user_api="blas"):
        assert blas_threads() == {2}
        yield


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.usefixtures("two_blas_threads")
def test_blas_uses_one_thread_inside_and_is_given_back_after(monkeypatch, threads):
    monkeypatch.setattr(parallel, "n_threads", lambda: threads)
    inside = parallel.map_spans(lambda lo, hi: blas_threads(), 3 * parallel.SPAN, 1000)
    assert inside == [{1}] * 3
    assert blas_threads() == {2}


@pytest.mark.usefixtures("two_blas_threads")
@pytest.mark.parametrize("first_out", ["first in", "last in"])
def test_holds_that_overlap_in_threads_are_given_back_by_the_last(first_out):
    """The first in must not be the only one who can restore, and no one may do so too early."""
    inside, out = threading.Barrier(3), [threading.Event(), threading.Event()]
    entered = threading.Event()

    def hold(number):
        if number == 1:
            entered.wait()
        with parallel.one_blas_thread():
            entered.set()
            inside.wait()
            out[number].wait()

    threads = [threading.Thread(target=hold, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    inside.wait()
    order = (0, 1) if first_out == "first in" else (1, 0)
    for left, number in zip(({1}, {2}), order, strict=True):
        assert blas_threads() == {1}
        out[number].set()
        threads[number].join()
        assert blas_threads() == left


@pytest.mark.usefixtures("two_blas_threads")
def test_the_last_out_restores_also_while_the_first_in_lives_on():
    with ThreadPoolExecutor(1) as first, ThreadPoolExecutor(1) as second:
        a, b = parallel.one_blas_thread(), parallel.one_blas_thread()
        first.submit(a.__enter__).result()
        second.submit(b.__enter__).result()
        first.submit(a.__exit__, None, None, None).result()
        assert blas_threads() == {1}
        second.submit(b.__exit__, None, None, None).result()
        assert blas_threads() == {2}


@pytest.mark.usefixtures("two_blas_threads")
def test_holds_nest_and_survive_errors():
    with parallel.one_blas_thread():
        with pytest.raises(ZeroDivisionError), parallel.one_blas_thread():
            raise ZeroDivisionError
        assert blas_threads() == {1}
    assert blas_threads() == {2}


@pytest.mark.usefixtures("two_blas_threads")
def test_a_generator_that_holds_may_be_left_or_closed_elsewhere():
    def numbers():
        with parallel.one_blas_thread():
            yield from range(3)

    left, closed = numbers(), numbers()
    assert (next(left), next(closed)) == (0, 0)
    assert blas_threads() == {1}
    del left
    assert blas_threads() == {1}
    other = threading.Thread(target=closed.close)
    other.start()
    other.join()
    assert blas_threads() == {2}


@pytest.mark.usefixtures("two_blas_threads")
def test_fits_in_many_threads_give_blas_back():
    data = plant("classes", n=300, d=24)
    names = [*ex.ERASERS, *ex.ERASERS]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda name: ex.ERASERS[name]().fit(data.X, data.y), names))
    assert len(found) == len(names)
    assert blas_threads() == {2}


FORK = """
import os, sys, threading
from expunge import parallel

def threads():
    return {library.num_threads for library in parallel._shared_by_threads()}

def in_child(check):
    child = os.fork()
    if child == 0:
        try:
            good = check()
        except BaseException:
            good = False
        os._exit(0 if good else 1)
    return os.waitpid(child, 0)[1] == 0

if not threads():
    sys.exit(0)
limits = parallel.blas_controller().limit(limits=2, user_api="blas")
entered, leave = threading.Event(), threading.Event()

def hold():
    with parallel.one_blas_thread():
        entered.set()
        leave.wait()

def held_then_given_back():
    with parallel.one_blas_thread():
        held = threads() == {1}
    return held and threads() == {2}

other = threading.Thread(target=hold)
other.start()
entered.wait()
assert threads() == {1}
assert in_child(lambda: threads() == {2}), "a thread that is gone still holds"
assert in_child(held_then_given_back), "the child cannot hold"
with parallel.one_blas_thread():
    assert in_child(lambda: threads() == {1}), "the child's own hold is lost"
leave.set()
other.join()
assert threads() == {2}
assert in_child(held_then_given_back)
"""


@pytest.mark.skipif(not hasattr(parallel.os, "fork"), reason="no fork here")
def test_a_fork_takes_along_the_hold_of_its_own_thread_only():
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("backend", ["loky", "threading"])
@pytest.mark.usefixtures("two_blas_threads")
def test_fits_under_joblib_give_blas_back(backend):
    from joblib import Parallel, delayed

    data = plant("binary", n=200)
    work = (delayed(ex.LEACE().fit)(data.X, data.y) for _ in range(6))
    with Parallel(n_jobs=2, backend=backend) as run:
        found = run(work)
    assert {eraser.rank_ for eraser in found} == {1}
    assert blas_threads() == {2}


@pytest.mark.usefixtures("two_blas_threads")
def test_narrow_work_gets_one_thread_and_wide_work_what_there_is():
    with parallel.blas_for(parallel.NARROW):
        assert blas_threads() == {1}
    with parallel.blas_for(parallel.NARROW + 1):
        assert blas_threads() == {2}
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


DECOMPOSITIONS = {
    "scipy.linalg": ("cho_factor", "cho_solve", "eigh", "orth", "qr", "svd"),
    "scipy.linalg.lapack": ("dpotrf", "dtrtri", "dpotri", "dpocon"),
    "numpy.linalg": ("eigh", "eigvalsh", "inv", "matrix_rank", "pinv", "qr", "solve", "svd"),
}


@pytest.fixture
def threads_of_decompositions(monkeypatch, two_blas_threads):
    """What was decomposed, and in how many BLAS threads."""
    seen = []

    def watched(name, function):
        def call(*args, **kwargs):
            seen.append((name, blas_threads()))
            return function(*args, **kwargs)

        return call

    for module, names in DECOMPOSITIONS.items():
        for name in names:
            home = sys.modules[module]
            monkeypatch.setattr(home, name, watched(name, getattr(home, name)))
    return seen


VARIANTS = {
    **{name: {} for name in ex.ERASERS},
    "RayleighEraser-cca": {"objective": "cca"},
    "QuadraticLEACE-label_free": {"label_free": True},
    "RLACE-rank": {"rank": 1, "solver": "subspace_ascent", "max_iter": 3},
    "INLP-squared": {"rank": 3, "loss": "squared"},
}


@pytest.mark.filterwarnings("ignore::expunge.errors.NotConverged")
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("stream", [False, True])
def test_every_eraser_decomposes_narrow_matrices_in_one_thread(
    variant, stream, threads_of_decompositions
):
    """Threads that wait for each other made a fit of half a second last for a minute."""
    data, eraser = plant("classes", n=400, d=30), ex.ERASERS[variant.split("-")[0]]
    eraser = eraser(**VARIANTS[variant])
    if stream and (variant == "RLACE-rank" or not hasattr(eraser, "partial_fit")):
        pytest.skip("does not stream")
    (eraser.partial_fit if stream else eraser.fit)(data.X, data.y)
    assert eraser.rank_ >= 1
    _ = eraser.certificate_
    told = hasattr(eraser, "conditional_erasure_")
    clean = eraser.transform(data.X, concept=data.y) if told else eraser.transform(data.X)
    assert clean.shape == data.X.shape
    if not told and isinstance(eraser.erasure_, ex.Erasure):
        assert eraser.erasure_.basis.shape[1] == 30
        P = eraser.erasure_.matrix()
        assert eraser.erasure_.is_orthogonal == np.allclose(P, P.T, rtol=0, atol=1e-10)
    assert threads_of_decompositions
    assert {(name, *held) for name, held in threads_of_decompositions if held != {1}} == set()
