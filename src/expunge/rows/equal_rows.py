"""Equal rows: copies of one row, or different ones that happen to have the same numbers.

Tables of small integers repeat by chance. There two rows that agree in the finest column mostly
differ in another. Copies of a row of real numbers agree in all columns or in none. With

    a_row = share of pairs of rows that are equal,   a_j = share of pairs that agree in column j,

repeats are taken for chance where a_row is at most half of the smallest a_j.

How many new rows equal an old one by chance, the old rows say themselves (Good and Turing): as many
as there are old rows whose values occur more than once among them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.fingerprint import singles
from expunge.rows.base import Rows

__all__ = [
    "Hashes",
    "by_chance",
    "hashed",
    "numbered",
    "real_share",
    "repeated",
    "row_hashes",
    "spaced",
]

LOOKED_AT = 5_000  # rows whose pairs are counted
OFTEN = 20  # rows for each different one, beyond which they are no copies
DEVIATIONS = 3.0  # standard errors within which chance explains a share of repeats
SLACK = 0.02  # share of rows that may belong to the fit unnoticed in a table
NO_TELLING = 0.98  # of rows repeat by chance: then values tell nothing
FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd, without pattern
HALF = np.uint64(32)

Hashes = NDArray[np.uint64]


def hashed(X: NDArray[Any]) -> Hashes:
    """A hash of each row as float32, so that float64 and float32 copies agree.

    Column by column, for all rows at once, h becomes (h xor the bits of the number) times an odd
    number, with its upper half folded into the lower.

    Parameters
    ----------
    X : array of shape (n, d)

    Returns
    -------
    uint64 array of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.rows.equal_rows import hashed
    >>> a, b, c = hashed(np.array([[1.0, -0.0], [1.0, 0.0], [0.0, 1.0]])).tolist()
    >>> a == b, a == c
    (True, False)
    """
    found = np.zeros(len(X), dtype=np.uint64)
    for column in np.ascontiguousarray(singles(X).T).view(np.uint32):
        found = (found ^ column) * FACTOR
        found ^= found >> HALF
    return found


def row_hashes(rows: Rows) -> Hashes:
    """The hashes of all rows, read block by block.

    Parameters
    ----------
    rows : rows of shape (n, d)

    Returns
    -------
    uint64 array of shape (n,)
    """
    found = np.empty(rows.n_samples, dtype=np.uint64)
    for start, some in rows.each_block(_hashed_block):
        found[start : start + len(some)] = some
    return found


def _hashed_block(start: int, X: NDArray[Any]) -> Hashes:
    return hashed(X)


def numbered(rows: Rows) -> NDArray[np.intp]:
    """A number for each row; equal rows have the same. Numbers ascend with the first such row.

    Parameters
    ----------
    rows : rows of shape (n, d)

    Returns
    -------
    int array of shape (n,)

    Examples
    --------
    >>> from expunge.rows.equal_rows import numbered
    >>> from expunge.inputs import check_rows
    >>> numbered(check_rows([[3.0], [1.0], [3.0], [2.0]]))
    array([0, 1, 0, 2])
    """
    _, first, which = np.unique(row_hashes(rows), return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[which.reshape(-1)])


def repeated(hashes: Hashes) -> float:
    """Share of rows that equal another one: what new rows will repeat, if they repeat by chance.

    Parameters
    ----------
    hashes : uint64 array of shape (n,)

    Returns
    -------
    float
    """
    counts = np.unique(hashes, return_counts=True)[1]
    return float(1 - np.sum(counts == 1) / len(hashes)) if len(hashes) else 0.0


def by_chance(rows: Rows) -> bool:
    """Whether equal rows are different ones with the same numbers, not copies.

    Parameters
    ----------
    rows : rows of shape (n, d)
        5,000 of them, evenly spaced, are looked at.

    Returns
    -------
    bool
        False too where neither rows nor any one column repeat.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.rows.equal_rows import by_chance
    >>> from expunge.inputs import check_rows
    >>> rng = np.random.default_rng(0)
    >>> by_chance(check_rows(rng.integers(0, 9, size=(500, 4))))
    True
    >>> by_chance(check_rows(np.repeat(rng.normal(size=(100, 4)), 5, axis=0)))
    False
    """
    part = rows.take(spaced(rows.n_samples)).array()
    hashes = hashed(part)
    if len(part) < 2 or len(np.unique(hashes)) * OFTEN <= len(part):
        return len(part) > 1
    columns = [column for column in part.T if np.any(column != column[0])]
    finest = min((_agreement(column) for column in columns), default=0.0)
    return finest > 0 and _agreement(hashes) <= finest / 2


def real_share(equal: int, rows: int, chance: float, old: int) -> float | None:
    """Share s of the rows that are the very rows they equal, not only alike.

    With a share c that is equal by chance, the share o of equal rows is s + (1 - s) c.

    Parameters
    ----------
    equal, rows : int
        Rows that equal an old one, and all.
    chance : float
        c; 0 where rows do not repeat by chance.
    old : int
        Old rows that c was estimated from; its standard error is at most one over their root.

    Returns
    -------
    float or None
        0 where chance explains what is equal; None where nearly all rows repeat anyway.

    Examples
    --------
    >>> from expunge.rows.equal_rows import real_share
    >>> real_share(200, 600, 0.0, 600), real_share(800, 1000, 0.78, 4000)
    (0.3333333333333333, 0.0)
    >>> real_share(1000, 1000, 0.78, 4000)
    1.0
    """
    if chance > NO_TELLING:
        return None
    found = equal / max(rows, 1)
    error = np.sqrt(chance * (1 - chance) / max(rows, 1) + 1 / max(old, 1))  # of both shares
    if chance > 0 and found <= chance + DEVIATIONS * error + SLACK * (1 - chance):
        return 0.0
    return (found - chance) / (1 - chance)


def spaced(n: int) -> NDArray[np.intp]:
    """Numbers of evenly spaced rows, 5,000 at most.

    Parameters
    ----------
    n : int

    Returns
    -------
    int array
    """
    return np.arange(0, n, max(1, n // LOOKED_AT))[:LOOKED_AT]


def _agreement(values: NDArray[Any]) -> float:
    """Share of pairs that are equal."""
    counts = np.unique(values, return_counts=True)[1]
    n = len(values)
    return float(np.sum(counts * (counts - 1.0)) / (n * (n - 1.0)))
