"""Other processes that do some of the runs.

Results are files, so a helper needs to tell nobody what it found, and it may die at any time: what
it leaves undone is done by the process that started it. A helper ends when that process ends.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path

from expunge.reproduce.experiment import Experiment, Settings
from expunge.reproduce.registry import EXPERIMENTS
from expunge.reproduce.runs import Folder

__all__ = ["helpers"]


@contextmanager
def helpers(
    count: int, experiment: Experiment, settings: Settings, folder: Folder, source: Path | None
) -> Iterator[Callable[[], bool]]:
    """Start helpers; yields whether some are still at work, and stops them at the end.

    Parameters
    ----------
    count : int
        How many; none if 0.
    experiment : Experiment
        In the registry.
    settings : Settings
    folder : Folder
    source : path, optional
        The data; None for those that come with the package.
    """
    order = {
        "module": EXPERIMENTS.get(experiment.name, ""),
        "folder": str(folder.path.absolute()),
        "source": None if source is None else str(source.absolute()),
        "runs": settings.runs,
        "quick": settings.quick,
        "seed": settings.seed,
        "options": dict(settings.options),
    }
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # Ctrl-C is for the process that started it
        )
        for _ in range(count)
    ]
    try:
        for process in processes:
            with suppress(OSError):  # it is dead already
                assert process.stdin is not None
                process.stdin.write(f"{json.dumps(order)}\n".encode())
                process.stdin.flush()
        yield lambda: any(process.poll() is None for process in processes)
    finally:
        for process in processes:
            process.kill()
            with suppress(OSError):
                process.communicate()


def _help() -> None:
    """Do the runs that nobody has taken, from the last on."""
    from expunge.reproduce.work import do_run

    order = json.loads(sys.stdin.readline())
    threading.Thread(target=_leave_with_the_other, daemon=True).start()
    experiment: Experiment = import_module(order["module"]).EXPERIMENT
    settings = Settings(order["runs"], order["quick"], order["seed"], order["options"])
    source = None if order["source"] is None else Path(order["source"])
    loaded, folder = experiment.load(source, settings), Folder(Path(order["folder"]))
    folder.open(experiment.name, settings, loaded.fingerprint, resume=True)
    for number in reversed(range(settings.runs)):
        if folder.claim(number):
            do_run(experiment, loaded, settings, folder, number)


def _leave_with_the_other() -> None:
    """End this process when the one that started it closes the pipe, by whatever death."""
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    _help()
