"""What an erasure remembers of its fit, so that an audit can say what sampling error leaves."""

from __future__ import annotations

from typing import Any

import numpy as np

from expunge.erasers.solution import Solution
from expunge.erasers.statistics import Statistics
from expunge.game.kept import Kept
from expunge.linalg import Array
from expunge.moments import Moments

__all__ = ["columns_record", "fit_record", "rows_record"]

DIGITS = 8 * float(np.finfo(np.float64).eps)  # rounding of a mean, relative to its size
SHOWN = 6  # digits of means and spreads: enough to tell whether other rows look like these
NOTHING = 1e-12  # a correlation that sums in float64 make of none


def fit_record(
    seen: Statistics, solution: Solution, strength: float, kept: Kept | None = None
) -> dict[str, Any]:
    """How large the fit was, and whether it left anything of the concept on its own rows.

    Every column of the rows and of the concept is measured in its own units, and the worst counts:
    one with large numbers hides nothing of the others.

    Parameters
    ----------
    seen : Statistics
    solution : Solution
    strength : float
    kept : Kept, optional
        How far each column spreads after the erasure.

    Returns
    -------
    dict
        effective_n: rows without weights that estimate means as well. variances: of each column of
        the concept; π(1 - π) for a class. left: the share of the covariance with the concept that
        the map leaves on the rows of the fit, of the worst column of the concept; 0 up to rounding
        if it is exact. correlation: the largest of a column after the erasure with a column of the
        concept; left out where spreads after the erasure are not known.
    """
    moments = seen.moments
    xz, zz = moments.xz, moments.zz
    if solution.covariance_left is not None:
        full = solution.covariance_left
    elif solution.shift is None:
        full = xz - solution.left @ (solution.right @ xz)
    else:
        full = xz - solution.shift @ zz
    after = (1 - strength) * xz + strength * full
    spreads = np.sqrt(moments.squares / moments.weight)
    start, end = (_correlations(moments, sums, spreads) for sums in (xz, after))
    found = {
        "effective_n": seen.effective_n,
        "variances": (np.diag(zz) / moments.weight).tolist(),
        "left": _worst_share(start, end),
    }
    if kept is not None:
        found["correlation"] = float(_correlations(moments, after, kept.spreads).max(initial=0.0))
    return found


def rows_record(moments: Moments) -> dict[str, list[float]]:
    """What the rows of the fit looked like, so that others can be compared with them.

    Parameters
    ----------
    moments : Moments

    Returns
    -------
    dict
        mean and spread (standard deviation) of each column, to six digits.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge import Moments
    >>> from expunge.erasers.record import rows_record
    >>> rows_record(Moments.of(np.array([[0.0, 5.0], [2.0, 5.0]]), np.array([0.0, 1.0])))
    {'mean': [1.0, 5.0], 'spread': [1.0, 0.0]}
    """
    spread = np.sqrt(moments.squares / moments.weight)
    return {"mean": _digits(moments.mean_x), "spread": _digits(spread)}


def columns_record(seen: Statistics) -> dict[str, Any]:
    """Which columns of a table the rows of the fit were, so that others can be put in order.

    Parameters
    ----------
    seen : Statistics

    Returns
    -------
    dict
        With one entry, "columns"; empty where the rows were no table with names.
    """
    columns = None if seen.columns is None else seen.columns.to_meta()
    return {} if columns is None else {"columns": columns}


def _digits(values: Array) -> list[float]:
    return [float(f"{value:.{SHOWN}g}") for value in values]


def _correlations(moments: Moments, sums: Array, spreads: Array) -> Array:
    """Sizes of the correlations (d x m) of columns with these spreads, less what rounding makes.

    A column that is constant but for rounding has none: rounding may make all of them.
    """
    unit = np.where(spreads > 0, spreads, np.inf)
    own = np.sqrt(np.diag(moments.zz) / moments.weight)
    scaled = np.abs(sums) / moments.weight / unit[:, None] / np.where(own > 0, own, np.inf)
    return np.maximum(scaled - (DIGITS * np.abs(moments.mean_x) / unit)[:, None], 0.0)


def _worst_share(start: Array, end: Array) -> float:
    """The largest correlation after over that before, of the column of the concept it is worst of.

    What was uncorrelated before, and is so after, counts as 0.
    """
    before, after = start.max(axis=0, initial=0.0), end.max(axis=0, initial=0.0)
    after = np.where(after > NOTHING, after, 0.0)
    return float(np.max(after / np.maximum(before, NOTHING), initial=0.0))
