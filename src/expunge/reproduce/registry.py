"""The experiments by name. A new one is a module with an `EXPERIMENT`, and a line here."""

from __future__ import annotations

from importlib import import_module

from expunge.errors import InputError
from expunge.reproduce.runner.declaration import Experiment

__all__ = ["EXPERIMENTS", "find_experiment"]

EXPERIMENTS: dict[str, str] = {
    "glove": "expunge.reproduce.glove.experiment",
    "faces": "expunge.reproduce.faces.experiment",
    "bios": "expunge.reproduce.bios.experiment",
}


def find_experiment(name: str) -> Experiment:
    """The experiment of this name, in any case.

    Examples
    --------
    >>> from expunge.reproduce.registry import find_experiment
    >>> find_experiment("GloVe").name
    'glove'
    """
    module = EXPERIMENTS.get(str(name).lower())
    if module is None:
        raise InputError(
            "There is no such experiment", repr(name), f"Name one of {', '.join(EXPERIMENTS)}"
        )
    found: Experiment = import_module(module).EXPERIMENT
    return found
