"""Moments in a file: arrays and a header, read without running code."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, get_args

import numpy as np

from expunge import artifact
from expunge.concept import Indicator, Kind

__all__ = ["read_moments", "write_moments"]

ARRAYS = ("mean_x", "mean_z", "xz", "zz", "squares")
NUMBERS = ("n", "weight", "eps")

Path_ = str | os.PathLike[str]


def write_moments(path: Path_, fields: Mapping[str, Any]) -> None:
    """Write the fields of `Moments` to a safetensors file, all of it or nothing.

    Parameters
    ----------
    path : str or path
    fields : mapping of str to value
    """
    tensors = {name: fields[name] for name in ARRAYS}
    if fields["xx"] is not None:
        tensors["xx"] = fields["xx"]
    labels = fields["labels"]
    moments = {
        **{name: fields[name] for name in NUMBERS},
        "concept": fields["kind"],
        "labels": [str(label) if isinstance(label, str) else label for label in labels],
        "indicators": [isinstance(label, Indicator) for label in labels],
    }
    artifact.write(path, tensors, {"kind": "moments", "moments": moments, "meta": {}})


def read_moments(path: Path_) -> dict[str, Any]:
    """The fields that `write_moments` wrote.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    dict

    Raises
    ------
    BadArtifact
        If the file is damaged, foreign or of a newer format.
    """
    header, tensors = artifact.read(path, kind="moments", names=lambda header: (ARRAYS, ("xx",)))
    try:
        found = header["moments"]
        fields = {**tensors, "xx": tensors.get("xx"), "kind": found["concept"]}
        fields.update({name: found[name] for name in NUMBERS})
        fields["labels"] = tuple(
            Indicator(label) if one else label
            for label, one in zip(found["labels"], found["indicators"], strict=True)
        )
        _check(fields)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise artifact.BadArtifact(
            f"{os.fspath(path)}: its moments are damaged ({error})"
        ) from error
    return fields


def _check(fields: Mapping[str, Any]) -> None:
    d, m = fields["mean_x"].size, len(fields["labels"])
    shapes = {"mean_x": (d,), "mean_z": (m,), "xz": (d, m), "zz": (m, m), "squares": (d,)}
    if fields["xx"] is not None:
        shapes["xx"] = (d, d)
    for name, shape in shapes.items():
        if fields[name].shape != shape or not np.isfinite(fields[name]).all():
            raise ValueError(f"{name} of shape {fields[name].shape} is not {shape} finite numbers")
    if fields["kind"] not in get_args(Kind):
        raise ValueError(f"there is no concept of kind {fields['kind']!r}")
    if type(fields["n"]) is not int or not fields["n"] >= 0 <= fields["weight"]:
        raise ValueError("the number of rows, or their weight, is none")
