"""Runs that survive a crash: what a run has finished is in joblib's cache, and not done again."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from joblib import Memory, Parallel, delayed
from numpy.typing import NDArray

from expunge.parallel import n_threads, one_blas_thread
from expunge.progress import Progress
from expunge.report.values import cleaned
from expunge.reproduce.runner.declaration import (
    Experiment,
    ExperimentPart,
    LoadedData,
    RunSettings,
    SkipPart,
)
from expunge.reproduce.runner.experiment_results import SKIPPED, Arrays, ExperimentResults

__all__ = ["ExperimentRun", "run_all", "run_cache"]

T = TypeVar("T")

MOST_PROCESSES = 4
PROGRESS = "progress.txt"  # of a run: the weight of what is done, and what is being done


def run_cache(folder: Path) -> Any:
    """What the runs in a folder have finished: ``cache(key, number of the run, make)``."""
    return Memory(os.fspath(folder / "finished"), verbose=0).cache(_made, ignore=["make"])


def _made(key: str, number: int, make: Callable[[], Any] | None = None) -> Any:
    if make is None:
        raise KeyError(key)
    return make()


class ExperimentRun:
    """What a part may use: data, seed, arrays that are kept, ``tell(share done, note)``."""

    def __init__(
        self,
        folder: Path,
        loaded: LoadedData,
        settings: RunSettings,
        number: int,
        tell: Callable[..., None] = lambda share, note="": None,
    ) -> None:
        self.data, self.quick, self.tell = loaded.content, settings.quick, tell
        self.number, self.seed = number, settings.seeds[number]  # the number counts from 0
        self.interrupted: Callable[[], bool] = lambda: False
        self._folder, self._cache = folder, run_cache(folder)

    def kept(self, key: str, make: Callable[[], Mapping[str, NDArray[Any]]]) -> Arrays:
        """Arrays by name, made once and kept under a key: what costs much and is used again."""
        found: Arrays = self._cache(key, self.number, partial(self.whole, make))
        return found

    def measure(self, part: ExperimentPart) -> Any:
        """The result of a part, all of it or nothing: a tree of plain values."""

        def make() -> Any:
            try:
                return cleaned(part.measure(self))
            except SkipPart as reason:
                return {SKIPPED: str(reason)}

        return self._cache(_key(part), self.number, partial(self.whole, make))

    def has(self, part: ExperimentPart) -> bool:
        """Whether the part is done."""
        return bool(self._cache.check_call_in_cache(_key(part), self.number))

    def file(self, name: str, *, shared: bool = False) -> Path:
        """Where a file of this run, or of all runs together, is to be."""
        file = self._folder / ("" if shared else f"run-{self.number + 1:02d}") / name
        file.parent.mkdir(parents=True, exist_ok=True)
        return file

    def whole(self, make: Callable[[], T]) -> T:
        """What `make()` gives, unless Ctrl-C has cut it short."""
        made = make()
        if self.interrupted():  # a solver has answered Ctrl-C with its best so far
            raise KeyboardInterrupt
        return made


def _key(part: ExperimentPart) -> str:
    return f"part {part.name}"


def run_all(
    experiment: Experiment,
    loaded: LoadedData,
    settings: RunSettings,
    folder: Path,
    *,
    verbose: bool = False,
) -> ExperimentResults:
    """Do every part of every run that is not done yet; with a progress bar if verbose.

    Where the experiment allows it other processes do unfinished runs side by side. What they leave
    undone, by whatever death, is done here, so nothing depends on them but the time.
    """
    runs = [ExperimentRun(folder, loaded, settings, number) for number in range(settings.runs)]
    missing = [
        (part, run) for run in runs for part in experiment.parts_of(run.number) if not run.has(part)
    ]
    unfinished = sorted({run.number for _, run in missing})
    jobs = min(n_threads(), len(unfinished), MOST_PROCESSES) if experiment.parallel else 1
    do_run = partial(_do_run, experiment, loaded, settings, folder)
    total = sum(part.weight for part, _ in missing)
    with _progress(experiment.name, folder, total, verbose):
        if jobs > 1:
            with suppress(Exception):  # one that matters comes once more, here
                Parallel(n_jobs=jobs)(delayed(do_run)(n, os.getpid()) for n in unfinished)
        trees = [do_run(number) for number in range(settings.runs)]
    found = {
        part.name: [tree[part.name] for tree in trees if part.name in tree]
        for part in experiment.parts
    }
    return ExperimentResults(settings, loaded, found, run_cache(folder))


def _do_run(
    experiment: Experiment,
    loaded: LoadedData,
    settings: RunSettings,
    folder: Path,
    number: int,
    parent: int | None = None,
) -> dict[str, Any]:
    """The trees of one run by part, those found in the cache too; for a parent process or here."""
    if parent is not None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
        threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()
    run, done, found = ExperimentRun(folder, loaded, settings, number), 0.0, {}
    # one thread beside others and without them: sums of several could differ in a last digit
    blas = one_blas_thread() if experiment.parallel else nullcontext()
    with _interruptible() as run.interrupted, blas:
        for part in experiment.parts_of(number):
            if not run.has(part):
                title = f"run {number + 1}/{settings.runs}, {part.title}"
                run.tell = partial(_tell, run.file(PROGRESS), done, part.weight, title)
                run.tell(0.0)
                done += part.weight
            found[part.name] = run.measure(part)
    return found


def _leave_with(parent: int) -> None:
    """End this process soon after its parent, by whatever death that one died."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Notice Ctrl-C even where it is caught inside; yields whether it came."""
    asked, before = threading.Event(), signal.getsignal(signal.SIGINT)

    def interrupt(number: int, frame: Any) -> None:
        asked.set()
        raise KeyboardInterrupt

    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or before in (signal.SIG_IGN, None):  # deaf in the background
        yield asked.is_set
        return
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, before)


def _tell(file: Path, done: float, weight: float, title: str, share: float, note: str = "") -> None:
    file.write_text(f"{done + share * weight:.2f} {title} {note}".strip(), encoding="utf-8")


@contextmanager
def _progress(title: str, folder: Path, total: float, shown: bool) -> Iterator[None]:
    """A bar, with the time left, of what all processes say they have done."""
    files = partial(folder.glob, f"*/{PROGRESS}")
    for file in files():  # of a process that was killed
        file.unlink()
    stopped = threading.Event()
    with Progress(title, round(total), shown) as bar:

        def watch() -> None:
            while not stopped.wait(0.2):
                told = [file.read_text(encoding="utf-8").partition(" ") for file in files()]
                if told and all(text for _, _, text in told):  # none is being written
                    bar.update(round(sum(float(done) for done, _, _ in told)), told[-1][2])

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            stopped.set()
            watcher.join()
            for file in files():
                file.unlink()
