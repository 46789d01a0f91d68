"""Columns of Arrow that hold their values once, in a dictionary, and numbers of these by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from expunge.optional import require

__all__ = ["has_one_dictionary", "is_view", "spelt", "spelt_out"]

PASS = 1 << 16  # rows read at once


def has_one_dictionary(tables: Sequence[Any], name: str) -> bool:
    """Whether all batches of a column have the same dictionary; the column alone is read.

    Parameters
    ----------
    tables : sequence of ArrowTable
    name : str

    Returns
    -------
    bool
    """
    first = None
    for table in tables:
        for _, batch in table.batches(PASS, columns=(name,)):
            part = batch.column(0)
            if not _types().is_dictionary(part.type):
                return False
            first = part.dictionary if first is None else first
            if not first.equals(part.dictionary):
                return False
    return True


def spelt_out(kind: Any) -> Any:
    """The type of a column without its dictionary; views on text, which cannot be cast, as text.

    Parameters
    ----------
    kind : type of Arrow
        With a dictionary.

    Returns
    -------
    type of Arrow
    """
    text = require("pyarrow", "parquet").large_string()
    return text if is_view(kind.value_type) else kind.value_type


def spelt(part: Any, kind: Any) -> Any:
    """Values of a column, without a dictionary where `kind` has none.

    Parameters
    ----------
    part : array of Arrow
    kind : type of Arrow

    Returns
    -------
    array of Arrow
    """
    if not _types().is_dictionary(part.type) or _types().is_dictionary(kind):
        return part
    return part.dictionary.cast(spelt_out(part.type)).take(part.indices).cast(kind)


def is_view(kind: Any) -> bool:
    """Whether values are views on text, which few functions of Arrow take.

    Parameters
    ----------
    kind : type of Arrow

    Returns
    -------
    bool
    """
    check = getattr(_types(), "is_string_view", None)
    return bool(check and check(kind))


def _types() -> Any:
    return require("pyarrow", "parquet").types
