"""One block ahead, errors passed on, and no thread left behind."""

import threading
import time

import pytest

from expunge.files.read_ahead import read_ahead


def readers():
    return [t for t in threading.enumerate() if t.name == "expunge-read-ahead"]


def test_never_more_than_one_ahead():
    made = []

    def blocks():
        for k in range(10):
            made.append(k)
            yield k

    for k in read_ahead(blocks()):
        time.sleep(0.005)
        assert len(made) <= k + 2
    assert made == list(range(10))
    assert not readers()


def test_the_next_is_read_meanwhile():
    """Ten blocks of 20 ms to read and 20 ms to work on take little more than 200 ms."""

    def blocks():
        for k in range(10):
            time.sleep(0.02)
            yield k

    start = time.perf_counter()
    for _ in read_ahead(blocks()):
        time.sleep(0.02)
    assert time.perf_counter() - start < 0.36


def test_errors_reach_the_caller():
    def blocks():
        yield 1
        raise OSError("the disk is gone")

    found = read_ahead(blocks())
    assert next(found) == 1
    with pytest.raises(OSError, match="the disk is gone"):
        next(found)
    assert not readers()


def test_the_thread_ends_when_nobody_wants_more():
    closed = []

    def blocks():
        try:
            yield from range(1000)
        finally:
            closed.append(threading.current_thread().name)

    found = read_ahead(blocks())
    assert next(found) == 0
    assert readers()
    found.close()
    assert not readers()
    assert closed == ["expunge-read-ahead"]


def test_nothing_to_read():
    assert list(read_ahead(iter(()))) == []
