"""How much memory may be used, and how many rows that is."""

from __future__ import annotations

import re
from typing import Any

from expunge.errors import InputError

__all__ = ["check_memory", "rows_within"]

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
BINARY = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?\s*", re.IGNORECASE)
COPIES = 4  # a block at work, one read ahead, and what either becomes on its way
MOST = 1 << 15  # rows of a block: more of them at once are no faster


def check_memory(memory: Any) -> int:
    """A number of bytes, from a number or from text such as "512MB".

    Parameters
    ----------
    memory : int or str
        Text has a unit: B, KB, MB, GB or TB, or KiB, MiB, GiB or TiB.

    Returns
    -------
    int

    Raises
    ------
    InputError

    Examples
    --------
    >>> from expunge.files.budget import check_memory
    >>> check_memory("1.5GB"), check_memory("8 MiB"), check_memory(4096)
    (1500000000, 8388608, 4096)
    """
    found = AMOUNT.fullmatch(str(memory)) if not isinstance(memory, bool) else None
    size = 0
    if found is not None:
        unit = found[2].upper()
        factor = BINARY.get(unit, 1) if found[3] else UNITS[unit]
        size = int(float(found[1]) * factor)
    if size < 1:
        raise InputError(
            "memory must be a number of bytes above 0, or text with a unit",
            repr(memory),
            'Pass memory="512MB", say',
        )
    return size


def rows_within(memory: int, n_features: int, itemsize: int, *, most: int | None = MOST) -> int:
    """Rows of a block, so that all copies of blocks at work fit into the memory.

    Parameters
    ----------
    memory : int
        Bytes.
    n_features : int
    itemsize : int
        Bytes of a number.
    most : int or None
        Rows that are enough.

    Returns
    -------
    int
        At least 1.

    Examples
    --------
    >>> from expunge.files.budget import rows_within
    >>> rows_within(8_000_000, 64, 2)
    15625
    """
    rows = max(1, memory // (COPIES * max(1, n_features) * itemsize))
    return rows if most is None else min(rows, most)
