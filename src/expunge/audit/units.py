"""Columns in units of their own: when to scale each by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.concept import Concept
from expunge.linalg import Array
from expunge.metrics.row_blocks import block_moments
from expunge.rows.dense import DenseRows

__all__ = ["own_units"]

UNEVEN = 10.0  # times the median spread of a column that make columns uneven


def own_units(X: NDArray[Any]) -> Array | None:
    """The spread of each column, if one spreads far more than they do in the middle; else None.

    The ridge and the distances of a probe go by the overall spread of the rows. In a table with
    units of its own in every column (income beside years) the column with the largest numbers
    would drown the others. Columns that vary by rounding alone are left as small as they are.

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
    >>> own_units(X * [1, 1, 1000]).round(-1)
    array([   0.,    0., 1020.])
    """
    moments = block_moments(DenseRows(X), Concept.none(len(X)), second=False)
    spread = np.sqrt(moments.squares / moments.weight)
    rounding = 32 * np.finfo(X.dtype if X.dtype.kind == "f" else np.float64).eps
    there = spread > rounding * max(float(X.max()), -float(X.min()))
    if not there.any() or spread.max() <= UNEVEN * np.median(spread[there]):
        return None
    return np.where(there, spread, np.sqrt(np.mean(spread**2)))
