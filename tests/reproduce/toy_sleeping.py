"""The toy experiment in processes that say who they are, and sleep."""

import os
import time
from dataclasses import replace

import toy_experiment

from expunge.reproduce.runner.declaration import ExperimentPart


def sleep(run):
    run.file("pid").write_text(str(os.getpid()))
    time.sleep(120)
    return {}


EXPERIMENT = replace(
    toy_experiment.EXPERIMENT, parts=(ExperimentPart("sleep", "sleep", sleep),), parallel=True
)
