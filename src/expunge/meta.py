"""Meta data of an erasure: plain values that say what made it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from expunge.artifact import DEPTH, is_deep
from expunge.errors import BadArtifact, InputError
from expunge.fingerprint import Fingerprint

__all__ = ["check_record", "plain_meta"]


def plain_meta(meta: Any) -> dict[str, Any]:
    """A copy of meta data as JSON would give it back.

    Parameters
    ----------
    meta : mapping or None
        Of text, finite numbers, booleans, None, and lists and mappings of them.

    Returns
    -------
    dict

    Examples
    --------
    >>> from expunge.meta import plain_meta
    >>> plain_meta({"labels": ("f", "m")})
    {'labels': ['f', 'm']}
    """
    if meta is None:
        return {}
    if not isinstance(meta, Mapping):
        raise InputError("meta must be a mapping", type(meta).__name__, "Pass a dictionary")
    try:
        if is_deep(meta):
            raise ValueError(f"nested deeper than {DEPTH} levels")
        found: dict[str, Any] = json.loads(json.dumps(dict(meta), allow_nan=False))
        return found
    except (TypeError, ValueError) as error:
        raise InputError(
            "meta holds what JSON does not have",
            str(error),
            "Pass finite numbers, text, lists and dictionaries of them",
        ) from error


def check_record(meta: Mapping[str, Any]) -> None:
    """Refuse meta data from a file whose parts that are read later are not what they should be.

    Parameters
    ----------
    meta : mapping

    Raises
    ------
    BadArtifact
        When the concept, the steps or the fingerprint are damaged.
    """
    concept, steps = meta.get("concept"), meta.get("steps", [])
    if not (concept is None or isinstance(concept, Mapping)):
        raise BadArtifact("its meta data are damaged: the concept is no dictionary")
    if not isinstance(steps, list) or not all(isinstance(step, Mapping) for step in steps):
        raise BadArtifact("its meta data are damaged: the steps are no list of dictionaries")
    if "fingerprint" in meta:
        Fingerprint.from_meta(meta["fingerprint"])
    for step in steps:
        check_record(step)
