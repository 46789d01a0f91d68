"""Row spans worked through by threads, with sums that do not depend on their number."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

__all__ = ["BLOCK", "blocks", "map_spans", "one_blas_thread", "spans"]

T = TypeVar("T")

BLOCK = 512  # rows handled at once: a few hundred kilobytes, so a block stays in cache
SPAN = 32 * BLOCK  # rows one thread sums before it hands its total over
TINY = 1 << 13  # numbers below which BLAS uses one thread by itself
WORTH_THREADS = 1 << 22  # numbers below which starting threads costs more than it saves


@cache
def n_threads() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def blas_controller() -> ThreadpoolController:
    """The BLAS libraries loaded with NumPy and SciPy, looked up once."""
    import scipy.linalg  # noqa: F401  # its BLAS must be loaded to be found

    return ThreadpoolController()


_held = ContextVar("_held", default=False)  # whether this context already holds BLAS


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread: for many small products, whose threads would only wait."""
    if _held.get():
        yield
        return
    token = _held.set(True)
    try:
        with blas_controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        _held.reset(token)


def blocks(start: int, stop: int, size: int = BLOCK) -> Iterator[tuple[int, int]]:
    """Yield consecutive (start, stop) pairs of at most `size` rows."""
    for lo in range(start, stop, size):
        yield lo, min(lo + size, stop)


def spans(n_rows: int) -> list[tuple[int, int]]:
    """Cut `n_rows` into the fixed spans that are summed one by one."""
    return list(blocks(0, n_rows, SPAN))


def map_spans(work: Callable[[int, int], T], n_rows: int, n_columns: int) -> list[T]:
    """Apply `work(start, stop)` to every span, in threads where it pays; results in row order.

    The spans are the same whatever the number of threads, so totals are reproducible bit for bit.
    BLAS is held to one thread inside: the spans already occupy the cores, blocks are too small to
    share, and its own threads would add up in another order.
    """
    cuts, size = spans(n_rows), n_rows * n_columns
    if size < TINY:
        return [work(lo, hi) for lo, hi in cuts]
    workers = min(n_threads(), len(cuts)) if size >= WORTH_THREADS else 1
    with one_blas_thread():
        if workers == 1:
            return [work(lo, hi) for lo, hi in cuts]
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(lambda cut: work(*cut), cuts))
