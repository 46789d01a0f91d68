"""Saved erasures of any kind, and what a fit of the command line adds to them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from expunge.addresses import Where
from expunge.artifact import KEY
from expunge.commands.wording import to_type
from expunge.conditional import ConditionalErasure
from expunge.erasure import Erasure
from expunge.errors import InputError
from expunge.files.formats import FORMATS, ending_of
from expunge.files.naming import nearest
from expunge.fold_erasure import FoldErasure
from expunge.free_form_erasure import FreeFormErasure
from expunge.maps import Map
from expunge.nonlinear_erasure import NonlinearErasure

__all__ = ["check_erasure_name", "check_order", "load_erasure", "map_of_fit", "with_meta"]

ENDING = ".safetensors"
TABLES = {*FORMATS} - {ENDING}


def load_erasure(path: Path) -> Map:
    """A saved erasure, whether or not it has to be told the concept.

    Parameters
    ----------
    path : Path

    Returns
    -------
    Erasure, ConditionalErasure or NonlinearErasure

    Raises
    ------
    BadArtifact
    InputError
        For a file that is not there, with the nearest that is.
    """
    if not path.exists():
        folder = path.absolute().parent
        names = [p.name for p in folder.iterdir()] if folder.is_dir() else []
        raise InputError(
            f"There is no such file{nearest(path.name, names)}", str(path), "Check its name"
        )
    kinds: dict[str, type[Map]] = {
        kind.file_kind: kind for kind in (ConditionalErasure, FoldErasure, FreeFormErasure)
    }
    return kinds.get(_kind(path), Erasure).load(path)


def check_order(erasure: Path, vectors: Where) -> None:
    """Refuse a table in the place of the erasure, and an erasure in that of the vectors.

    Parameters
    ----------
    erasure : Path
    vectors : Path or Address

    Raises
    ------
    InputError
    """
    last = isinstance(vectors, Path) and bool(_kind(vectors))
    table = erasure.is_dir() or (erasure.is_file() and ending_of(erasure) in TABLES)
    if not _kind(erasure) and (last or table):
        swap = "Swap the two" if last else "Write the saved erasure (.safetensors) first"
        raise InputError(
            f"This is no erasure: {erasure}; the order is ERASURE first, then VECTORS",
            f"{erasure} {vectors}",
            swap,
        )
    if last:
        raise InputError(
            f"This is an erasure, not a file of vectors: {vectors}; the order is ERASURE first, "
            "then VECTORS",
            f"{erasure} {vectors}",
            "Write a file of vectors second",
        )


def check_erasure_name(path: Path, option: str = "-o") -> None:
    """Refuse a name for a new erasure that says it is something else.

    Parameters
    ----------
    path : Path
    option : str
        That it was given by.
    """
    folder = path.is_dir() or not path.name
    if folder or path.suffix.lower() != ENDING:
        better = path / f"erasure{ENDING}" if folder else path.with_suffix(ENDING)
        raise InputError(
            "The name of an erasure ends in .safetensors",
            repr(str(path)),
            f"Write {option} {to_type(better)}",
        )


def map_of_fit(eraser: Any) -> Map:
    """What a fitted eraser applies.

    Parameters
    ----------
    eraser : fitted eraser

    Returns
    -------
    Erasure, ConditionalErasure or NonlinearErasure
    """
    found: Map | None = getattr(eraser, "erasure_", None)
    return eraser.conditional_erasure_ if found is None else found


def with_meta(erasure: Map, **more: Any) -> Map:
    """The same map that knows more of what made it.

    Parameters
    ----------
    erasure : Erasure, ConditionalErasure or NonlinearErasure
    **more
        JSON values.

    Returns
    -------
    Erasure, ConditionalErasure or NonlinearErasure

    Examples
    --------
    >>> import expunge as ex
    >>> from expunge.commands.erasure_files import with_meta
    >>> with_meta(ex.Erasure([[1.0]], [[1.0]]), held_out=3).meta
    {'held_out': 3}
    """
    meta = {**erasure.meta, **more}
    if isinstance(erasure, NonlinearErasure):
        return erasure.with_(meta=meta)
    if isinstance(erasure, Erasure):
        return Erasure(erasure.left, erasure.right, erasure.center, erasure.offset, meta=meta)
    return ConditionalErasure(
        erasure.shift,
        erasure.mean_z,
        erasure.center,
        list(erasure.labels),
        erasure.kind,
        maps=erasure.maps,
        strength=erasure.strength,
        meta=meta,
    )


def _kind(path: Path) -> str:
    """What the header says the file is; the loader says what is wrong with it."""
    try:
        with safe_open(str(path), framework="numpy") as file:
            return str(json.loads(file.metadata()[KEY])["kind"])
    except (SafetensorError, OSError, ValueError, TypeError, KeyError, RecursionError):
        return ""
