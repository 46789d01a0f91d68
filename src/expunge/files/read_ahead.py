"""The next block is read while this one is worked on."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from threading import Semaphore, Thread
from typing import TypeVar

__all__ = ["read_ahead"]

T = TypeVar("T")


def read_ahead(blocks: Iterator[T]) -> Iterator[T]:
    """The same blocks, of which one is read ahead in a thread.

    Never more than two of them are alive: the one at work and the one ahead. What goes wrong in the
    thread is raised here, and the thread ends when nobody wants more.

    Parameters
    ----------
    blocks : iterator
        Used by the thread alone.

    Yields
    ------
    what `blocks` yields, in order

    Examples
    --------
    >>> from expunge.files.read_ahead import read_ahead
    >>> list(read_ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    ready: deque[tuple[T | None, BaseException | None]] = deque()
    wanted, there = Semaphore(1), Semaphore(0)
    stopped: list[bool] = []

    def work() -> None:
        try:
            while True:
                wanted.acquire()
                if stopped:
                    break
                ready.append((next(blocks), None))
                there.release()
        except BaseException as error:  # StopIteration too: it is how the blocks end
            ready.append((None, error))
            there.release()
        finally:
            if close := getattr(blocks, "close", None):
                close()  # by the thread that used it

    thread = Thread(target=work, name="expunge-read-ahead", daemon=True)
    thread.start()
    try:
        while True:
            there.acquire()
            block, error = ready.popleft()
            if isinstance(error, StopIteration):
                return
            if error is not None:
                raise error
            wanted.release()
            yield block  # type: ignore[misc]
            del block
    finally:
        stopped.append(True)
        wanted.release()
        thread.join()
