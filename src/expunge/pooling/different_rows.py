"""How many rows of a pool are news: different from the labelled ones, and from each other.

A row that is there twice teaches nothing the second time, and a labelled row that is in the pool
too teaches nothing at all. Labelled rows are known by the hashes of all of them, and left out in
the pass that reads the pool. How often other rows are there, the sketch of that pass tells: it
holds 2,048 different rows, a fair sample, each with the exact number of rows that equal it. The
size of the pool is the number of its rows over the mean of these numbers: exact where no row is
there twice, where all are equally often, and up to 2,048 different rows; else within some percent.

A value that a large share of rows has (a text that is empty) is no copy, it belongs to the
population. Nor are rows of a table that repeat by chance (`expunge.rows.equal_rows`): there all
rows stay. Those that equal a labelled one beyond chance do not count, and a table that is there
k times as a whole, each number a multiple of k, counts once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.fingerprint import Fingerprint
from expunge.rows.base import Rows
from expunge.rows.equal_rows import (
    Hashes,
    by_chance,
    hashed,
    real_share,
    repeated,
    row_hashes,
    spaced,
)

__all__ = ["NewRows", "different_rows", "what_does_not_count"]

ROWS = 20_000  # of a pool outside memory that a plan looks at
NOTABLE = 0.1  # share of a pool that does not count, from which on it is said
RARELY = 0.02  # share of rows that equal a labelled one by chance, up to which such are left out
FREQUENT = 0.05  # share of rows with one value that make it no copy,
TYPICAL = 3.0  # if it is there so many times as often as most
VALUES = 20  # different ones that do not have a common divisor by chance


@dataclass(eq=False)
class NewRows:
    """Rows of a pool without the labelled ones, block by block, and how many there are.

    Parameters
    ----------
    labelled : Rows

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.fingerprint import Fingerprint
    >>> from expunge.inputs import check_rows
    >>> from expunge.pooling.different_rows import NewRows
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> new, pool = NewRows(check_rows(X[:10])), np.vstack([X, X[10:]])
    >>> others = new.of(pool)
    >>> len(pool), len(others), new.count(check_rows(pool), Fingerprint.of(others))
    (90, 80, 40)
    """

    labelled: Rows
    seen: int = 0
    equal: int = 0

    def of(self, X: NDArray[Any]) -> NDArray[Any]:
        """Those of the rows X that are no labelled ones; all where values repeat by chance."""
        hashes = hashed(X)
        same = np.isin(hashes, self._hashes)
        self.seen += len(X)
        if not same.any():
            return X
        if self._left_out is not None:
            same = np.isin(hashes, self._left_out)
        self.equal += int(same.sum())
        return X if self._left_out is None else X[~same]

    def count(self, pool: Rows, others: Fingerprint | None, read: float = 1.0) -> int:
        """How many rows of the pool are different, and no labelled ones.

        Parameters
        ----------
        pool : Rows
        others : Fingerprint or None
            Of what `of` gave; None if that was nothing.
        read : float
            Share of the pool that was read, at random.

        Returns
        -------
        int
        """
        N = self.seen if read == 1 else pool.n_samples
        if others is None:
            return 0
        share = self.equal / self.seen
        if self._left_out is None and self.equal:
            found = real_share(self.equal, self.seen, self._chance, self.labelled.n_samples)
            share = 0.0 if found is None else found
        copies = _times(pool, others, read)
        return N if copies == 1 and share == 0 else round(N * (1 - share) / copies)

    @cached_property
    def _hashes(self) -> Hashes:
        return row_hashes(self.labelled)

    @cached_property
    def _chance(self) -> float:
        """Share of new rows that equal a labelled one by chance."""
        return repeated(self._hashes) if by_chance(self.labelled) else 0.0

    @cached_property
    def _left_out(self) -> Hashes | None:
        """Values of labelled rows that a pool is read without; None if they repeat by chance."""
        if self._chance > RARELY:
            return None
        values, counts = np.unique(self._hashes, return_counts=True)
        return np.asarray(values[~_frequent(counts)])


def different_rows(labelled: Rows, pool: Rows) -> int:
    """The same of a pool that no fit has read: of rows outside memory, from 20,000 at random.

    Parameters
    ----------
    labelled, pool : Rows

    Returns
    -------
    int
    """
    new, N, some = NewRows(labelled), pool.n_samples, pool
    if not pool.in_memory and N > ROWS:
        some = pool.subset(ROWS, np.random.default_rng(0))[0]
    others: Fingerprint | None = None
    for _, X in some.arrays():
        if len(X := new.of(X)):
            others = Fingerprint.of(X) if others is None else others.extended(X)
    return new.count(pool, others, some.n_samples / N)


def what_does_not_count(n_pool: int, n_different: int) -> str:
    """What to warn of where a notable share of a pool is no news; else empty.

    Parameters
    ----------
    n_pool, n_different : int

    Returns
    -------
    str
    """
    if n_pool - n_different <= NOTABLE * n_pool:
        return ""
    if n_different == 0:
        return (
            f"All {n_pool:,} rows without labels are labelled rows as well: they teach nothing "
            "more. Pass rows that are not among the labelled ones"
        )
    return (
        f"Of {n_pool:,} rows without labels {n_pool - n_different:,} are labelled rows as well, or "
        f"copies of others: they teach nothing more, and {n_different:,} count. Pass every row "
        "once, and none of the labelled ones"
    )


def _times(pool: Rows, others: Fingerprint, read: float) -> float:
    """How often a different row is there."""
    counts = others.counts
    if counts is None or (counts == 1).all():
        return 1.0
    if by_chance(pool.take(spaced(pool.n_samples))):
        together = int(np.gcd.reduce(counts)) if len(counts) >= VALUES else 1
        return float(together) if read == 1 else 1.0
    counts = counts[~_frequent(counts)]
    if read == 1:
        return float(counts.mean())
    others_like_it = float(counts @ (counts - 1) / counts.sum())  # of a row, among those read
    return 1 + others_like_it / read


def _frequent(counts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which values so many rows have that they are no copies."""
    most = np.maximum(FREQUENT * counts.sum(), TYPICAL * np.median(counts))
    return np.asarray(counts > most)
