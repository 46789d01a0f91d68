"""Runs that survive a crash: every finished part of a run is a file, and is not done again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge._version import __version__
from expunge.artifact import atomic_file, write_atomically
from expunge.errors import InputError
from expunge.reproduce.experiment import Loaded, Settings
from expunge.reproduce.numbers import plain

__all__ = ["Arrays", "Folder", "Run"]

Arrays = dict[str, NDArray[Any]]

CLAIM = "taken"  # a file that says that a process is at work on a run


class Folder:
    """The files of an experiment: a plan, and below it one folder for each run.

    Parameters
    ----------
    path : path
        Made if it is not there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def open(self, experiment: str, settings: Settings, fingerprint: str, *, resume: bool) -> None:
        """Write the plan, or check that the plan found is the same.

        Parameters
        ----------
        experiment : str
        settings : Settings
        fingerprint : str
            Of the data.
        resume : bool
            Whether finished runs may be there. Their number may differ.

        Raises
        ------
        InputError
            When there are runs and they were not expected, or are of another experiment.
        """
        plan = {
            "experiment": experiment,
            "quick": settings.quick,
            "seed": settings.seed,
            "options": dict(settings.options),
            "data": fingerprint,
            "version": __version__,
        }
        file = self.path / "runs" / "plan.json"
        found = _read_json(file)
        if found is None:
            file.parent.mkdir(parents=True, exist_ok=True)
            _write_json(file, plan)
        elif not resume:
            raise InputError(
                "The folder holds runs already",
                str(self.path),
                "Go on with them (--resume, resume=True) or name another folder",
            )
        elif differing := [key for key in plan if plan[key] != found.get(key)]:
            was = ", ".join(f"{key} {found.get(key)!r}, not {plan[key]!r}" for key in differing)
            raise InputError(
                "The runs in the folder were made otherwise, so they cannot be resumed",
                was,
                "Name another folder, or ask for the same as before",
            )

    def claim(self, number: int) -> bool:
        """Take a run for this process; False if another has it."""
        file = self.run_file(CLAIM, number)
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            file.touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def forget_claims(self) -> None:
        """Free all runs, those of processes that have died too."""
        for file in self.path.glob(f"runs/run-*/{CLAIM}"):
            file.unlink()

    def part_file(self, number: int, part: str) -> Path:
        """Where the result of a part of a run is."""
        return self.run_file(f"{part}.json", number)

    def result(self, number: int, part: str) -> Any:
        """The tree of a finished part of a run; None if it is not finished."""
        found = _read_json(self.part_file(number, part))
        return None if found is None else found.get("result")

    def keep_result(self, number: int, part: str, tree: Any, seconds: float) -> None:
        """Write the result of a part of a run."""
        file = self.part_file(number, part)
        file.parent.mkdir(parents=True, exist_ok=True)
        _write_json(file, {"seconds": round(seconds, 2), "result": plain(tree)})

    def arrays(self, key: str, number: int | None) -> Arrays:
        """The arrays that a run, or for None all runs together, have kept under a key."""
        with np.load(self._array_file(key, number), allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}

    def has_arrays(self, key: str, number: int | None) -> bool:
        """Whether something is kept under a key."""
        return self._array_file(key, number).exists()

    def keep_arrays(self, key: str, number: int | None, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Write arrays of a run, or for None of all runs."""
        file = self._array_file(key, number)
        file.parent.mkdir(parents=True, exist_ok=True)
        named: dict[str, Any] = {name: np.asarray(array) for name, array in arrays.items()}
        if any(array.dtype.hasobject for array in named.values()):
            raise TypeError(f"{key}: arrays of objects cannot be kept")
        with atomic_file(file) as stream:
            np.savez(stream, **named)

    def run_file(self, name: str, number: int) -> Path:
        """A file of a run."""
        return self.path / "runs" / f"run-{number + 1:02d}" / name

    def _array_file(self, key: str, number: int | None) -> Path:
        name = f"{key}.npz"
        return self.path / "runs" / name if number is None else self.run_file(name, number)


class Run:
    """What a part may use: the data, the seed, arrays kept by this run, the progress bar.

    Attributes
    ----------
    data : object
        `Loaded.content`.
    number, seed : int
        Counted from 0; and what fixes every random choice of the run.
    quick : bool

    Parameters
    ----------
    folder : Folder
    loaded : Loaded
    settings : Settings
    number : int
    tell : callable, optional
        ``tell(share, note)``.
    """

    def __init__(
        self,
        folder: Folder,
        loaded: Loaded,
        settings: Settings,
        number: int,
        tell: Callable[[float, str], None] | None = None,
    ) -> None:
        self.data, self.quick = loaded.content, settings.quick
        self.number, self.seed = number, settings.seeds[number]
        self._folder, self._tell = folder, tell
        self.interrupted: Callable[[], bool] = lambda: False

    def kept(
        self, key: str, make: Callable[[], Mapping[str, NDArray[Any]]], *, shared: bool = False
    ) -> Arrays:
        """Arrays made once and kept in a file: what costs much and is used again.

        Parameters
        ----------
        key : str
            A short name, also of the file.
        make : callable
            Without arguments; gives arrays by name.
        shared : bool
            Whether they are the same for all runs; the file then stands beside the runs.

        Returns
        -------
        dict from str to array
        """
        number = None if shared else self.number
        if not self._folder.has_arrays(key, number):
            arrays = make()
            self.stop_if_interrupted()
            self._folder.keep_arrays(key, number, arrays)
        return self._folder.arrays(key, number)

    def file(self, name: str) -> Path:
        """Where a file of this run is to be, for work that keeps its own state."""
        file = self._folder.run_file(name, self.number)
        file.parent.mkdir(parents=True, exist_ok=True)
        return file

    def stop_if_interrupted(self) -> None:
        """Stop where a solver has answered Ctrl-C with its best so far, which is not the result."""
        if self.interrupted():
            raise KeyboardInterrupt

    def tell(self, share: float, note: str = "") -> None:
        """Say how much of this part is done.

        Parameters
        ----------
        share : float
            From 0 to 1.
        note : str
        """
        if self._tell is not None:
            self._tell(share, note)


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None


def _write_json(path: Path, value: Any) -> None:
    write_atomically(path, f"{json.dumps(value, indent=1, allow_nan=False)}\n".encode())
