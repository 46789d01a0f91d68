"""The toy experiment in several processes, one of which dies."""

import os
import time
from dataclasses import replace

import numpy as np
import toy_experiment
from toy_experiment import measuring

from expunge.reproduce.runner.declaration import ExperimentPart


def first(run):
    run.kept("process", lambda: {"pid": np.array(os.getpid())})
    run.file("begun").touch()
    end = time.monotonic() + 60
    while len(list(run.file("", shared=True).glob("run-*/begun"))) < 2:  # both at the same time
        assert time.monotonic() < end, "no other process came"
        time.sleep(0.02)
    return measuring("first")(run)


def second(run):
    parent = int(run.file("parent", shared=True).read_text())
    if run.number == 1 and os.getpid() != parent:
        os._exit(1)
    return measuring("second")(run)


EXPERIMENT = replace(
    toy_experiment.EXPERIMENT,
    parts=(
        ExperimentPart("first", "first means", first),
        ExperimentPart("second", "second means", second),
        *toy_experiment.EXPERIMENT.parts[2:],
    ),
    parallel=True,
)
