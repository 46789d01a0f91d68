"""Work on partitions, given to Dask: merged as a tree, streamed with few in flight, with one error.

Imports Dask only when there is something to run.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from expunge.errors import LostCluster
from expunge.optional import require

__all__ = ["Recipe", "Runner", "each", "tree"]

FAN = 8  # values that one task merges
AHEAD = 2  # partitions that are made while another is worked on


class Recipe(ABC):
    """A value that is made inside the task that uses it, and gone when that is done.

    What a task of its own makes would lie in a worker's memory until somebody uses it.
    """

    @abstractmethod
    def make(self) -> Any:
        """The value."""


class _Making:
    """A function whose recipes are made before it is called.

    One with a true `by_blocks` takes its first argument by blocks, as the recipe gives them.
    """

    def __init__(self, work: Callable[..., Any]) -> None:
        self.work, self.__name__ = work, getattr(work, "__name__", "work")

    def __call__(self, *arguments: Any) -> Any:
        first, *rest = arguments
        if isinstance(first, Recipe) and not getattr(self.work, "by_blocks", False):
            first = first.make()
        return self.work(first, *(a.make() if isinstance(a, Recipe) else a for a in rest))


def _itself(value: Any) -> Any:
    return value


def each(work: Callable[..., Any], *columns: Sequence[Any]) -> list[Any]:
    """Lazy calls of a function, one for each partition.

    Parameters
    ----------
    work : function
    *columns : sequences of one length
        Arguments: values, recipes of them, or lazy values that Dask fills in.

    Returns
    -------
    list of Delayed

    Examples
    --------
    >>> from expunge.rows.dask_graph import Runner, each
    >>> Runner().compute(each(max, [1, 2], [3, 0]))
    [3, 2]
    """
    lazy = require("dask", "dask").delayed(_Making(work), pure=False, traverse=False)
    return [lazy(*arguments) for arguments in zip(*columns, strict=True)]


def tree(values: Sequence[Any], merge: Callable[[Sequence[Any]], Any]) -> Any:
    """One lazy value, merged from many by eights; neighbours first, and always in this order.

    Parameters
    ----------
    values : sequence of Delayed
        At least one.
    merge : function of a list of values

    Returns
    -------
    Delayed

    Examples
    --------
    >>> from expunge.rows.dask_graph import Runner, each, tree
    >>> Runner().compute([tree(each(abs, range(-20, 0)), sum)])
    [210]
    """
    lazy = require("dask", "dask").delayed(merge, pure=False)
    level = list(values)
    while len(level) > 1:
        level = [
            level[at] if at + 1 == len(level) else lazy(level[at : at + FAN])
            for at in range(0, len(level), FAN)
        ]
    return level[0]


class Runner:
    """Whoever runs the work: the client that was given, the current one, or Dask by itself.

    Parameters
    ----------
    client : distributed.Client, optional
    """

    def __init__(self, client: Any = None) -> None:
        self.client = client

    def _client(self) -> Any:
        """The client to use, or None for Dask's own choice of a scheduler in this process."""
        if self.client is not None or "distributed" not in sys.modules:
            return self.client
        dask = require("dask", "dask")
        if dask.config.get("scheduler", None) not in (None, "distributed", "dask.distributed"):
            return None  # the user asked for another one
        try:
            return sys.modules["distributed"].default_client()
        except ValueError:
            return None

    def compute(self, values: Sequence[Any]) -> list[Any]:
        """Values of lazy ones, all at once.

        Parameters
        ----------
        values : sequence of Delayed

        Returns
        -------
        list

        Raises
        ------
        LostCluster
            When the scheduler went away, or workers died again and again.
        """
        dask, client = require("dask", "dask"), self._client()
        with _watched(client):
            return list(dask.compute(*values, **({} if client is None else {"scheduler": client})))

    def stream(self, values: Sequence[Any], ahead: int = AHEAD) -> Iterator[Any]:
        """Values of lazy ones in order, one at a time; a few more are made meanwhile.

        From a cluster they come from the workers that hold them, where these can be reached.

        Parameters
        ----------
        values : sequence of Delayed or Recipe
        ahead : int
            How many more than the one at work.

        Yields
        ------
        object
        """
        client = self._client()
        values = [each(_itself, [v])[0] if isinstance(v, Recipe) else v for v in values]
        if client is None:
            for at in range(0, len(values), ahead + 1):
                yield from self.compute(values[at : at + ahead + 1])
            return
        waiting: deque[Any] = deque()
        for value in values:
            with _watched(client):
                waiting.append(client.compute(value))
                ready = len(waiting) > ahead
                found = client.gather(waiting.popleft(), direct=True) if ready else None
            if ready:
                yield found
        while waiting:
            with _watched(client):
                found = client.gather(waiting.popleft(), direct=True)
            yield found


@contextmanager
def _watched(client: Any) -> Iterator[None]:
    """One clear error for a cluster that went away; what tasks raise is left as it is."""
    try:
        yield
    except BaseException as error:
        if client is None or not _is_loss(client, error):
            raise
        where = getattr(getattr(client, "scheduler", None), "address", "an address unknown")
        names = {kind.__name__ for kind in type(error).__mro__}
        if "KilledWorker" in names:
            raise LostCluster(
                f"Workers of the cluster at {where} died again and again on the same partition "
                f"({error}). Nothing was replaced. Give them more memory, or cut the rows into "
                "smaller partitions"
            ) from error
        raise LostCluster(
            f"The connection to the scheduler at {where} was lost ({type(error).__name__}). "
            "Nothing was replaced. Start the cluster again and repeat the call"
        ) from error


LOSSES = {"CommClosedError", "ClosedClientError", "CancelledError"}


def _is_loss(client: Any, error: BaseException) -> bool:
    """Whether an error says that the cluster went away, not that a task failed."""
    names = {kind.__name__ for kind in type(error).__mro__}
    if "KilledWorker" in names:
        return True
    if not isinstance(error, Exception) and "CancelledError" not in names:
        return False  # somebody interrupts
    gone = getattr(client, "status", "") != "running"
    return bool(names & LOSSES) or (gone and isinstance(error, OSError | RuntimeError))
