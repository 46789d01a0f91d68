"""Row spans worked through by threads, with sums that do not depend on their number."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from threading import Lock, get_ident, local
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

__all__ = [
    "BLOCK",
    "SPAN",
    "alone",
    "blas_for",
    "blocks",
    "imap_spans",
    "map_spans",
    "n_threads",
    "one_blas_thread",
    "spans",
]

T = TypeVar("T")

BLOCK = 512  # rows handled at once: a few hundred kilobytes, so a block stays in cache
SPAN = 32 * BLOCK  # rows one thread sums before it hands its total over
TINY = 1 << 13  # numbers below which BLAS uses one thread by itself
WORTH_THREADS = 1 << 22  # numbers below which starting threads costs more than it saves
# Width up to which decompositions get one thread. On two shared cores of a Xeon at 2.8 GHz, with
# OpenBLAS, two threads took 1.6 to 5 times as long as one for every eigh and svd of 256 to 1024
# columns, at times 15; one takes a second at the most, so little is lost where cores are idle.
NARROW = 1024


_own = local()


def n_threads() -> int:
    """Cores that work begun in this thread may use."""
    return 1 if getattr(_own, "alone", False) else _cores()


@cache
def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def blas_controller() -> ThreadpoolController:
    """The BLAS libraries loaded with NumPy and SciPy, looked up once."""
    import scipy.linalg  # noqa: F401  # its BLAS must be loaded to be found

    return ThreadpoolController().select(user_api="blas")


@cache
def _shared_by_threads() -> list[Any]:
    """The BLAS libraries whose number of threads is one for the process."""
    return [lib for lib in blas_controller().lib_controllers if not _per_thread(lib)]


@cache
def _set_per_thread() -> ThreadpoolController:
    """Those whose number every thread has for itself: built upon OpenMP, MKL, BLIS."""
    libraries = blas_controller().lib_controllers
    return blas_controller().select(filepath=[x.filepath for x in libraries if _per_thread(x)])


def _per_thread(library: Any) -> bool:
    layer = getattr(library, "threading_layer", None)
    return layer == "openmp" or library.internal_api in ("mkl", "blis")


class _Hold:
    """The number of BLAS threads of the process at 1, for as long as anyone wants it.

    Limits that overlap without nesting, as those of fits in several threads do, cannot each put
    back what they found. Here the first in sets and the last out restores. Each is known by a
    token, so that a generator may be closed by another thread than the one that began it.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self.holders: dict[object, int] = {}  # token -> the thread that took it
        self.before: list[int] = []

    def enter(self, token: object) -> None:
        with self.lock:
            if not self.holders:
                self.before = [library.num_threads for library in _shared_by_threads()]
                self._set([1] * len(self.before))
            self.holders[token] = get_ident()

    def leave(self, token: object) -> None:
        with self.lock:
            if self.holders.pop(token, None) is not None and not self.holders:
                self._set(self.before)

    def after_fork(self) -> None:
        """In the child: forget threads that did not come along. The lock was taken before."""
        held, own = bool(self.holders), get_ident()
        self.holders = {token: at for token, at in self.holders.items() if at == own}
        if held and not self.holders:
            self._set(self.before)
        self.lock.release()

    @staticmethod
    def _set(numbers: list[int]) -> None:
        for library, number in zip(_shared_by_threads(), numbers, strict=True):
            # threadpoolctl from 3.8 on lets one thread at a time set OpenBLAS, the first to do so;
            # the last out may be another
            free = getattr(library, "clear_controlling_thread", lambda force=False: None)
            free(force=True)
            library.set_num_threads(number)
            free()


_hold = _Hold()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_hold.lock.acquire,
        after_in_parent=_hold.lock.release,
        after_in_child=_hold.after_fork,
    )


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread: for many small products, whose threads would only wait.

    May be nested and may be entered by many threads at once: the number there was before comes
    back when the last of them leaves.
    """
    token = object()
    _hold.enter(token)
    try:
        with _set_per_thread().limit(limits=1, user_api="blas"):
            yield
    finally:
        _hold.leave(token)


@contextmanager
def alone() -> Iterator[None]:
    """Work in this thread only: somebody else has given the other cores their work.

    Examples
    --------
    >>> from expunge.parallel import alone, n_threads
    >>> with alone():
    ...     n_threads()
    1
    """
    before = getattr(_own, "alone", False)
    _own.alone = True
    try:
        with one_blas_thread():
            yield
    finally:
        _own.alone = before


def blas_for(width: int) -> AbstractContextManager[None]:
    """What to do work on width x width matrices in: one BLAS thread, unless they are large."""
    return one_blas_thread() if width <= NARROW else nullcontext()


def blocks(start: int, stop: int, size: int = BLOCK) -> Iterator[tuple[int, int]]:
    """Yield consecutive (start, stop) pairs of at most `size` rows."""
    for lo in range(start, stop, size):
        yield lo, min(lo + size, stop)


def spans(n_rows: int) -> list[tuple[int, int]]:
    """Cut `n_rows` into the fixed spans that are summed one by one."""
    return list(blocks(0, n_rows, SPAN))


def map_spans(
    work: Callable[[int, int], T], n_rows: int, n_columns: int, *, span: int | None = None
) -> list[T]:
    """Apply `work(start, stop)` to every span, in threads where it pays; results in row order.

    The spans are the same whatever the number of threads, so totals are reproducible bit for bit.
    BLAS is held to one thread inside: the spans already occupy the cores, blocks are too small to
    share, and its own threads would add up in another order. Each thread takes the next span that
    is left, so that short spans, where there is nothing to sum, let all of them end together.

    Parameters
    ----------
    work : callable
        Of the first row of a span and the one after its last.
    n_rows, n_columns : int
        Of what is worked through.
    span : int, optional
        Rows of a span.

    Returns
    -------
    list
        What `work` gave, one entry per span.
    """
    cuts, size = list(blocks(0, n_rows, span or SPAN)), n_rows * n_columns
    if size < TINY:
        return [work(lo, hi) for lo, hi in cuts]
    workers = min(n_threads(), len(cuts)) if size >= WORTH_THREADS else 1
    with one_blas_thread():
        if workers == 1:
            return [work(lo, hi) for lo, hi in cuts]
        left, found = deque(enumerate(cuts)), dict[int, T]()

        def take_turns() -> None:
            with one_blas_thread():  # some BLAS libraries count their threads by thread
                while left:
                    try:
                        number, cut = left.popleft()
                    except IndexError:  # another thread took the last one
                        return
                    found[number] = work(*cut)

        with ThreadPoolExecutor(workers) as pool:
            turns = [pool.submit(take_turns) for _ in range(workers)]
            try:
                for turn in as_completed(turns):
                    turn.result()
            finally:
                left.clear()  # after an error or an interruption
        return [found[number] for number in range(len(cuts))]


def imap_spans(work: Callable[[int, int], T], n_rows: int, n_columns: int) -> Iterator[T]:
    """Results of `map_spans` one after the other, of which only a few exist at a time.

    Parameters
    ----------
    work, n_rows, n_columns
        As of `map_spans`.

    Yields
    ------
    object
        What `work` gave for a span.
    """
    cuts, size = spans(n_rows), n_rows * n_columns
    if size < TINY:
        yield from (work(lo, hi) for lo, hi in cuts)
        return
    workers = min(n_threads(), len(cuts)) if size >= WORTH_THREADS else 1
    if workers == 1:
        with one_blas_thread():
            yield from (work(lo, hi) for lo, hi in cuts)
        return

    def held(cut: tuple[int, int]) -> T:
        with one_blas_thread():  # some BLAS libraries count their threads by thread
            return work(*cut)

    with one_blas_thread(), ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[T]] = deque()
        for cut in cuts:
            if len(waiting) > workers:  # one result waits while all threads work
                yield waiting.popleft().result()
            waiting.append(pool.submit(held, cut))
        while waiting:
            yield waiting.popleft().result()
