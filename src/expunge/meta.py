"""Meta data of an erasure: plain values that say what made it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from expunge.artifact import DEPTH, is_deep
from expunge.errors import BadArtifact, InputError
from expunge.fingerprint import Fingerprint

__all__ = ["plain_meta"]


def plain_meta(meta: Any) -> dict[str, Any]:
    """A copy of meta data as JSON would give it back.

    Parameters
    ----------
    meta : mapping or None
        Of text, finite numbers, booleans, None, and lists and mappings of them. The entries
        "concept", "steps", "columns" and "fingerprint" are those of a fit, if they are there.

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
    except (TypeError, ValueError) as error:
        raise InputError(
            "meta holds what JSON does not have",
            str(error),
            "Pass finite numbers, text, lists and dictionaries of them",
        ) from error
    _check_record(found)
    return found


def _check_record(meta: Mapping[str, Any]) -> None:
    """Refuse the parts that are read later where they are not what they should be."""
    concept, steps = meta.get("concept"), meta.get("steps", [])
    if not (concept is None or isinstance(concept, Mapping)):
        raise _damaged("the concept", concept)
    if not isinstance(steps, list) or not all(isinstance(step, Mapping) for step in steps):
        raise _damaged("the steps", steps)
    if "columns" in meta and not _names_columns(meta["columns"]):
        raise _damaged("the columns", meta["columns"])
    if "fingerprint" in meta:
        try:
            Fingerprint.from_meta(meta["fingerprint"])
        except BadArtifact as error:
            raise _damaged("the fingerprint", meta["fingerprint"]) from error
    for step in steps:
        _check_record(step)


def _names_columns(columns: Any) -> bool:
    """Whether this says which columns of a table the vectors are, and what may be beside them."""
    if not isinstance(columns, Mapping):
        return False
    vectors, beside = columns.get("vectors"), columns.get("beside")
    if isinstance(vectors, str):
        return beside is None
    if not isinstance(vectors, list) or not _is_text(vectors) or len({*vectors}) < len(vectors):
        return False
    return beside is None or _is_text(beside)


def _is_text(names: Any) -> bool:
    return isinstance(names, list) and all(isinstance(name, str) for name in names)


def _damaged(what: str, found: Any) -> InputError:
    return InputError(
        f"The meta data are damaged: {what} cannot be read",
        repr(found)[:80],
        "Take them from an erasure that was fitted, or leave this entry away",
    )
