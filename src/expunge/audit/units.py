"""Columns in units of their own: when to scale each by itself, and what is rounding alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.linalg import Array
from expunge.rows.base import Rows
from expunge.rows.lazy_rows import ChangedRows, extent
from expunge.rows.together import each_pair

__all__ = ["flattened", "own_units"]

UNEVEN = 10.0  # times the spread of the narrowest column that make columns uneven
ROUNDING = 32  # units in the last place that are left of a column of which all was erased
WRITTEN = 1e-12  # of the largest change, that rounding of a map in float64 writes to other columns


def own_units(X: NDArray[Any]) -> Array | None:
    """The spread of each column, if some spread far more than others; None if one unit does.

    The ridge and the distances of a probe go by the overall spread of the rows. In a table with
    units of its own in every column (income beside years) the columns with the largest numbers
    would drown the others. A constant column has the unit infinity: scaled, it is 0 on all rows,
    where its mean, if it is large, would be off by more than others vary.

    Parameters
    ----------
    X : array of shape (n, d)

    Returns
    -------
    array of shape (d,) or None

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.audit.units import own_units
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> own_units(X) is None
    True
    >>> [round(float(unit), -1) for unit in own_units(X * [10, 0, 1000])]
    [10.0, inf, 1020.0]
    """
    low, width = X.min(axis=0), _range(X)
    there = width > 0
    if not there.any():
        return None
    units = np.full(X.shape[1], np.inf)
    # about the least value and as shares of the range: a narrow column may lie far from 0
    shares = np.subtract(X[:, there], low[there], dtype=np.float64) / width[there]
    units[there] = width[there] * shares.std(axis=0, dtype=np.float64)
    if units[there].max() > UNEVEN * units[there].min():
        return units
    if there.all():
        return None
    units[there] = np.sqrt(np.sum(units[there] ** 2) / len(units))  # one for all: weights are kept
    return units


def flattened(after: Rows, before: Rows) -> Rows:
    """Rows after erasure, with columns that vary by rounding alone made constant.

    What rounding leaves of a column of which all was erased says nothing. The size of rounding is
    that of the column's own numbers, before and after. A column that the erasure did not narrow,
    however few digits it has, is left as it is. One that was constant stays so if what was written
    to it is rounding of the change as a whole: the directions of a map are exact to so many digits.

    Parameters
    ----------
    after, before : rows of shape (n, d)

    Returns
    -------
    rows of shape (n, d)

    Examples
    --------
    >>> from expunge.audit.units import flattened
    >>> from expunge.inputs import check_rows
    >>> before, after = [[0.1, 5.0], [0.7, 5.1]], [[1e-17, 5.0], [0.0, 5.1]]
    >>> flattened(check_rows(after), check_rows(before)).array()
    array([[0. , 5. ],
           [0. , 5.1]])
    """
    if after.n_features != before.n_features:
        return after
    (low, high, _), (least, most, _) = extent(after), extent(before)
    size = np.max(np.abs([low, high, least, most]), axis=0)
    width, was = high - low, most - least
    level = ROUNDING * after.eps * size
    written = (was == 0) & (width > 0)
    if written.any():
        moved = max(move for _, move in each_pair(before, after, _furthest))
        level[written] = np.maximum(level[written], WRITTEN * moved)
    small = width <= level
    narrowed = small & (width > 0) & ((was == 0) | (width < was / 2))
    if not narrowed.any():
        return after
    last = after.take(np.array([after.n_samples - 1])).array()[0, narrowed]

    def flat(X: NDArray[Any], index: Any) -> NDArray[Any]:
        X = X.copy()
        X[:, narrowed] = last
        return X

    return ChangedRows(after, flat, alike=True)


def _furthest(A: NDArray[Any], B: NDArray[Any]) -> float:
    """The largest change of a number."""
    return float(np.abs(np.subtract(B, A, dtype=np.float64)).max())


def _range(X: NDArray[Any]) -> Array:
    """Largest less smallest value of each column, in float64."""
    return np.asarray(X.max(axis=0).astype(np.float64) - X.min(axis=0).astype(np.float64))
