"""The toy experiment for several processes; the helper dies in the second run that it takes."""

import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import toy_experiment
from toy_experiment import measuring

from expunge.reproduce.experiment import Part


def first(run):
    run.kept("process", lambda: {"pid": np.array(os.getpid())})
    if run.number == 0:  # the first process waits here until the helper has done the last run
        _wait_for(Path(os.environ["TOY_FOLDER"]) / "run-02" / "first.json")
    return measuring("first")(run)


def second(run):
    if run.number == 1 and os.getpid() != int(os.environ["TOY_PARENT"]):
        os._exit(1)
    return measuring("second")(run)


def _wait_for(file):
    end = time.monotonic() + 60
    while not file.exists():
        assert time.monotonic() < end, "no helper came"
        time.sleep(0.02)


EXPERIMENT = replace(
    toy_experiment.EXPERIMENT,
    parts=(
        Part("first", "first means", first),
        Part("second", "second means", second),
        *toy_experiment.EXPERIMENT.parts[2:],
    ),
    parallel=True,
)
