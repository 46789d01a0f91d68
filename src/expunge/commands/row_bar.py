"""A bar of rows with their rate and the time left, on the error stream of a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from expunge.commands.output import console

__all__ = ["row_bar"]


@contextmanager
def row_bar(title: str) -> Iterator[Callable[[int, int], None] | None]:
    """Yields what takes (rows done, rows): a bar, begun again by every pass; None if none is shown.

    Parameters
    ----------
    title : str
        Stands before the bar.

    Yields
    ------
    function or None
    """
    screen = console(stderr=True)
    if not screen.is_terminal:
        yield None
        return
    from rich.progress import (
        BarColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            rate = task.completed / task.elapsed if task.elapsed else 0.0
            return Text(f"{rate:,.0f} rows/s" if rate else "")

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f} rows"),
        Rate(),
        TimeRemainingColumn(),
        console=screen,
        transient=True,
    )
    passes, last, task = 0, 0, None

    def tell(done: int, total: int) -> None:
        nonlocal passes, last, task
        if task is None or done <= last:
            passes += 1
            name = title if passes == 1 else f"{title}, pass {passes}"
            if task is not None:
                bar.remove_task(task)
            task = bar.add_task(name, total=total)
        last = done
        bar.update(task, completed=done)

    with bar:
        yield tell
