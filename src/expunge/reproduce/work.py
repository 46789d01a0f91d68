"""All runs of an experiment, by this process and, where it pays, by others beside it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from expunge.parallel import n_threads, one_blas_thread
from expunge.progress import Progress
from expunge.reproduce.experiment import Experiment, Loaded, Part, Settings, SkipPart
from expunge.reproduce.helper import helpers
from expunge.reproduce.results import SKIPPED, Results
from expunge.reproduce.runs import Folder, Run

__all__ = ["do_run", "run_all"]

MOST_HELPERS = 3

Work = Sequence[tuple[Part, int]]


def run_all(
    experiment: Experiment,
    loaded: Loaded,
    settings: Settings,
    folder: Folder,
    *,
    source: Path | None = None,
    verbose: bool = False,
) -> Results:
    """Do every part of every run that is not done yet.

    Runs are taken from the first on; helpers, if the experiment allows them, take them from the
    last on. What a helper has left undone is done here, so nothing depends on helpers but the time.

    Parameters
    ----------
    experiment : Experiment
    loaded : Loaded
    settings : Settings
    folder : Folder
    source : path, optional
        Where the data were loaded from.
    verbose : bool
        Whether to show a progress bar with the time left.

    Returns
    -------
    Results
        Of all parts, those found in the folder included.
    """
    work = _work(experiment, settings, range(settings.runs))
    missing = [(part, n) for part, n in work if folder.result(n, part.name) is None]
    folder.forget_claims()
    count = 0
    if experiment.parallel:
        count = min(n_threads(), len({n for _, n in missing}), MOST_HELPERS + 1) - 1
    with (
        Progress(experiment.name, 100, verbose) as progress,
        helpers(max(count, 0), experiment, settings, folder, source) as working,
    ):
        clock = _Clock(progress, missing, folder, settings.runs)
        for number in range(settings.runs):
            if folder.claim(number):
                do_run(experiment, loaded, settings, folder, number, clock)
        while working():
            time.sleep(0.2)
            clock.wait()
        for number in range(settings.runs):
            do_run(experiment, loaded, settings, folder, number, clock)
    folder.forget_claims()
    found: dict[str, list[Any]] = {part.name: [] for part in experiment.parts}
    for part, number in work:
        found[part.name].append(folder.result(number, part.name))
    return Results(settings, loaded, found, folder.arrays)


def do_run(
    experiment: Experiment,
    loaded: Loaded,
    settings: Settings,
    folder: Folder,
    number: int,
    clock: _Clock | None = None,
) -> None:
    """Do every part of one run that is not done yet.

    Parameters
    ----------
    experiment : Experiment
    loaded : Loaded
    settings : Settings
    folder : Folder
    number : int
    clock : optional
        Is told what is done.
    """
    for part, _ in _work(experiment, settings, [number]):
        if folder.result(number, part.name) is not None:
            continue
        if clock is not None:
            clock.start(part, number)
        tell = None if clock is None else clock.tell
        # one thread beside helpers and without them: sums of several could differ in a last digit
        with one_blas_thread() if experiment.parallel else nullcontext():
            _do(part, Run(folder, loaded, settings, number, tell), folder)


def _work(experiment: Experiment, settings: Settings, numbers: Sequence[int]) -> Work:
    return [
        (part, number)
        for number in numbers
        for part in experiment.parts
        if part.runs is None or number < part.runs
    ]


def _do(part: Part, run: Run, folder: Folder) -> None:
    """One part of one run, all of it or nothing."""
    start = time.perf_counter()
    with _interruptible() as run.interrupted:
        try:
            tree = dict(part.measure(run))
        except SkipPart as reason:
            tree = {SKIPPED: str(reason)}
    run.stop_if_interrupted()
    folder.keep_result(run.number, part.name, tree, time.perf_counter() - start)


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Notice Ctrl-C even where it is caught inside; yields whether it came."""
    asked, before = threading.Event(), signal.getsignal(signal.SIGINT)
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or before in (signal.SIG_IGN, None):  # another thread, or deaf in the background
        yield asked.is_set
        return

    def interrupt(number: int, frame: Any) -> None:
        asked.set()
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, before)


class _Clock:
    """Progress in percent of the expected work, with the time left at the pace so far.

    What is finished is seen from the files, so the work of helpers counts too.
    """

    def __init__(self, progress: Progress, missing: Work, folder: Folder, runs: int) -> None:
        self.progress, self.runs = progress, runs
        self.files = [(folder.part_file(n, part.name), part.weight) for part, n in missing]
        self.total = sum(part.weight for part, _ in missing)
        self.begun, self.weight, self.title = time.perf_counter(), 0.0, ""

    def start(self, part: Part, number: int) -> None:
        self.weight, self.title = part.weight, f"run {number + 1}/{self.runs}, {part.title}"
        self.tell(0.0)

    def wait(self) -> None:
        self.weight, self.title = 0.0, "the last runs"
        self.tell(0.0)

    def tell(self, share: float, note: str = "") -> None:
        if not self.progress.shown or not self.total:
            return
        finished = sum(weight for file, weight in self.files if file.exists())
        share = min((finished + share * self.weight) / self.total, 1.0)
        left = _duration((time.perf_counter() - self.begun) * (1 - share) / max(share, 1e-9))
        text = f"{self.title} {note}".strip()
        self.progress.update(int(100 * share), f"{left} left, {text}" if share > 0.005 else text)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
