"""Rows in blocks and samples: all that a measure may ask of rows that are not held in memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from expunge.concept import Concept
from expunge.moments import Moments
from expunge.parallel import blocks

__all__ = ["RowSource", "all_rows", "block_moments", "read_rows", "row_blocks"]

NUMBERS = 1 << 18  # of a block


class RowSource(Protocol):
    """n vectors of width d, some of which can be taken at a time."""

    @property
    def n_samples(self) -> int:
        """Number of rows."""

    @property
    def n_features(self) -> int:
        """Width of a row."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers."""

    def take(self, index: NDArray[np.intp]) -> Any:
        """The rows with these numbers, in memory."""


def read_rows(rows: RowSource, index: NDArray[np.intp]) -> NDArray[Any]:
    """Some of the rows as an array.

    Parameters
    ----------
    rows : rows of shape (n, d)
    index : int array of shape (k,)

    Returns
    -------
    array of shape (k, d)
    """
    return np.asarray(rows.take(index).array())


def all_rows(rows: RowSource) -> NDArray[Any]:
    """All rows as one array, where there are few: words, pairs, a sample.

    Parameters
    ----------
    rows : rows of shape (n, d)

    Returns
    -------
    array of shape (n, d)
    """
    return read_rows(rows, np.arange(rows.n_samples))


def row_blocks(rows: RowSource) -> Iterator[tuple[int, NDArray[Any]]]:
    """All rows in order, a block at a time.

    Parameters
    ----------
    rows : rows of shape (n, d)

    Yields
    ------
    (int, array of shape (b, d))
        The number of the first row of the block, and the block.

    Examples
    --------
    >>> from expunge.inputs import check_rows
    >>> from expunge.metrics.row_blocks import row_blocks
    >>> [(start, X.shape) for start, X in row_blocks(check_rows([[1, 2], [3, 4], [5, 6]]))]
    [(0, (3, 2))]
    """
    for lo, hi in blocks(0, rows.n_samples, max(NUMBERS // rows.n_features, 1)):
        yield lo, read_rows(rows, np.arange(lo, hi))


def block_moments(rows: RowSource, concept: Concept, *, second: bool = True) -> Moments:
    """Moments of all rows, merged block by block.

    Parameters
    ----------
    rows : rows of shape (n, d)
    concept : Concept
        Of the same rows.
    second : bool
        Whether to take second moments of the rows too.

    Returns
    -------
    Moments

    Examples
    --------
    >>> from expunge.concept import Concept
    >>> from expunge.inputs import check_rows
    >>> from expunge.metrics.row_blocks import block_moments
    >>> block_moments(check_rows([[1.0, 2.0], [3.0, 6.0]]), Concept.none(2)).mean_x
    array([2., 4.])
    """
    parts = (
        Moments.of(X, concept.take(slice(lo, lo + len(X))), second=second)
        for lo, X in row_blocks(rows)
    )
    return reduce(Moments.merge, parts)
