"""A progress bar on request; silent otherwise."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

__all__ = ["Progress"]


class Progress:
    """A bar on standard error while `shown`, nothing otherwise.

    Parameters
    ----------
    title : str
        Stands before the bar.
    total : int
        Steps until it is full.
    shown : bool
        Whether there is a bar at all.

    Examples
    --------
    >>> from expunge.progress import Progress
    >>> with Progress("work", 10, shown=False) as progress:
    ...     progress.update(5, "half way")
    """

    def __init__(self, title: str, total: int, shown: bool) -> None:
        self.title, self.total, self.shown = title, total, shown
        self.bar: Any = None
        self.task: Any = None

    def __enter__(self) -> Self:
        if self.shown:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            self.bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.completed:,.0f}/{task.total:,.0f}"),
                TimeRemainingColumn(),
                TextColumn("{task.fields[note]}"),
                console=Console(stderr=True),
            )
            self.task = self.bar.add_task(self.title, total=self.total, note="")
            self.bar.start()
        return self

    def update(self, done: int, note: str = "") -> None:
        """Move the bar and show a short note beside it."""
        if self.bar is not None:
            self.bar.update(self.task, completed=done, note=note)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.bar is not None:
            self.bar.stop()
