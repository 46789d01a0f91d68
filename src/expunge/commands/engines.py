"""Who does the work of a command: this process, block by block, or a cluster that Dask runs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from expunge.addresses import Address, Where
from expunge.errors import InputError

if TYPE_CHECKING:
    from expunge.files.table import VectorFile
    from expunge.rows.dask_rows import DaskRows

__all__ = ["Engine", "RowsOf", "Scheduler", "check_shared", "engine_of"]

RowsOf = Callable[["VectorFile"], "DaskRows"]  # a file as rows of an engine
ENGINES = ("files", "dask")
WAIT = "5s"  # for a scheduler to answer

Engine = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="NAME",
        help="Who works: 'files' reads block by block here; 'dask' gives the files of a folder to "
        "a cluster.",
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Of --engine dask: the address of a scheduler, as tcp://host:8786, or 'local' for a "
        "process on each core; without it, threads of this process.",
    ),
]


@contextmanager
def engine_of(engine: str, scheduler: str | None) -> Iterator[RowsOf | None]:
    """What makes rows of a file for this engine, while it is there; None for files as they are.

    Parameters
    ----------
    engine : {"files", "dask"}
    scheduler : str or None
        "local", the address of a scheduler, or None for threads.

    Yields
    ------
    function of a VectorFile, or None

    Raises
    ------
    InputError
        For another engine, and where no scheduler answers.

    Examples
    --------
    >>> from expunge.commands.engines import engine_of
    >>> with engine_of("files", None) as rows_of:
    ...     print(rows_of)
    None
    """
    if engine not in ENGINES:
        raise InputError("There is no such engine", repr(engine), f"Take {' or '.join(ENGINES)}")
    if engine == "files":
        if scheduler is not None:
            raise InputError(
                "--scheduler belongs to --engine dask", repr(scheduler), "Write --engine dask too"
            )
        yield None
        return
    from expunge.rows.dask_graph import Runner
    from expunge.rows.dask_parts import FileParts
    from expunge.rows.dask_rows import DaskRows

    with ExitStack() as stack:
        client = _client(scheduler, stack)

        def rows_of(file: VectorFile) -> DaskRows:
            check_shared(file.path, scheduler)
            return DaskRows(FileParts(file, Runner(client)))

        yield rows_of


def check_shared(place: Where | None, scheduler: str | None) -> None:
    """Refuse an address that only this process sees, for others to read or write.

    Parameters
    ----------
    place : Path, Address or None
    scheduler : str or None
        None where threads of this process work.
    """
    if scheduler is not None and isinstance(place, Address) and not place.shared:
        raise InputError(
            "Other processes do not see the memory of this one", str(place), "Leave out --scheduler"
        )


def _client(scheduler: str | None, stack: ExitStack) -> Any:
    """A client of the scheduler, which leaves when the stack is left; None for threads."""
    from expunge.optional import require

    require("dask", "dask")
    if scheduler is None:
        return None
    distributed = require("distributed", "dask")
    if scheduler == "local":
        made = distributed.LocalCluster(
            threads_per_worker=1,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,  # what is wrong is said here, in one line
        )
        cluster = stack.enter_context(made)
        return stack.enter_context(distributed.Client(cluster, set_as_default=False))
    try:
        client = distributed.Client(scheduler, timeout=WAIT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(
            "No scheduler answers there",
            f"--scheduler {scheduler} ({type(error).__name__})",
            "Write the address that 'dask scheduler' printed, as tcp://host:8786, or 'local'",
        ) from error
    return stack.enter_context(client)
