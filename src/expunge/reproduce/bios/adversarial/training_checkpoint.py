"""Where a training run stands, in one file: written atomically, read without running code.

The container is safetensors, with one JSON header like that of a saved erasure.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import save as to_bytes
from torch import Tensor

from expunge.artifact import metadata_of, reading, sealed, write_atomically
from expunge.errors import BadArtifact, InputError

__all__ = ["TrainingState", "read_checkpoint", "write_checkpoint"]

KIND = "training checkpoint"
PARTS = ("model", "momentum", "best")

State = dict[str, Tensor]


@dataclass(frozen=True)
class TrainingState:
    """All that a run needs to go on as if it had not stopped.

    Attributes
    ----------
    model : dict of tensors
        Weights and buffers now.
    momentum : dict of tensors
        The optimiser's momentum of each weight that has one.
    best : dict of tensors
        Weights and buffers at the lowest development loss.
    history : list of dict
        The evaluations so far, as plain values.
    """

    model: State
    momentum: State
    best: State
    history: list[dict[str, Any]]


def write_checkpoint(
    path: str | os.PathLike[str], state: TrainingState, identity: Mapping[str, Any]
) -> None:
    """Replace the file `path` by `state`, all of it or nothing.

    Parameters
    ----------
    path : path
    state : TrainingState
    identity : mapping
        What makes this run this run: settings, labels, hashes of data and first weights.

    Examples
    --------
    >>> import tempfile, torch
    >>> from expunge.reproduce.bios.adversarial.training_checkpoint import (
    ...     TrainingState, read_checkpoint, write_checkpoint)
    >>> state = TrainingState({"w": torch.ones(2)}, {}, {"w": torch.zeros(2)}, [{"step": 5}])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_checkpoint(f"{folder}/run.safetensors", state, {"seed": 0})
    ...     read_checkpoint(f"{folder}/run.safetensors", {"seed": 0}).best
    {'w': tensor([0., 0.])}
    """
    meta = {"identity": dict(identity), "history": state.history}
    tensors = {
        f"{part}.{name}": tensor.contiguous()
        for part in PARTS
        for name, tensor in getattr(state, part).items()
    }
    metadata = metadata_of({"kind": KIND, "meta": meta})
    write_atomically(path, *sealed(to_bytes(tensors, metadata)))


def read_checkpoint(
    path: str | os.PathLike[str], identity: Mapping[str, Any]
) -> TrainingState | None:
    """The state in the file `path`; None if there is no such file.

    Parameters
    ----------
    path : path
    identity : mapping
        That of the run which wants to go on.

    Returns
    -------
    TrainingState or None

    Raises
    ------
    BadArtifact
        When the file is damaged or holds something else.
    InputError
        When it was written by another run.
    """
    name = os.fspath(path)
    if not Path(path).exists():
        return None
    try:
        with reading(path, kind=KIND, framework="pt") as (header, file):
            meta = header["meta"]
            parts: dict[str, State] = {part: {} for part in PARTS}
            for key in file.keys():  # noqa: SIM118  # not a dict
                part, _, rest = key.partition(".")
                parts[part][rest] = file.get_tensor(key)
            _check_same_run(name, meta["identity"], identity)
            return TrainingState(**parts, history=list(meta["history"]))
    except (KeyError, TypeError, AttributeError) as error:
        raise BadArtifact(f"{name}: not a readable {KIND} ({error!r})") from error


def _check_same_run(path: str, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
    ours = json.loads(json.dumps(ours))
    names = sorted(theirs.keys() | ours.keys())
    differ = [name for name in names if theirs.get(name) != ours.get(name)]
    if differ:
        said = ", ".join(
            f"{key}={theirs.get(key)!r} instead of {ours.get(key)!r}" for key in differ
        )
        raise InputError(
            f"The checkpoint {path} was written by another run",
            said,
            "Pass another path as checkpoint=, or what that run was given",
        )
