"""What an erasure remembers of its fit, so that an audit can say what sampling error leaves."""

from __future__ import annotations

from typing import Any

import numpy as np

from expunge.erasers.solution import Solution
from expunge.erasers.statistics import Statistics

__all__ = ["fit_record"]


def fit_record(seen: Statistics, solution: Solution, strength: float) -> dict[str, Any]:
    """How large the fit was, and whether it left anything of the concept on its own rows.

    Parameters
    ----------
    seen : Statistics
    solution : Solution
    strength : float

    Returns
    -------
    dict
        effective_n: rows without weights that estimate means as well. variances: of each column of
        the concept; π(1 - π) for a class. left: ‖M Σxz‖ / ‖Σxz‖, the share of the covariance with
        the concept that the map M leaves on the rows of the fit; 0 up to rounding if it is exact.
    """
    moments = seen.moments
    xz, zz = moments.xz, moments.zz
    if solution.shift is None:
        full = xz - solution.left @ (solution.right @ xz)
    else:
        full = xz - solution.shift @ zz
        if solution.maps is not None:
            full = np.einsum("kij,jk->ik", solution.maps, full)
    size = float(np.linalg.norm(xz))
    left = float(np.linalg.norm((1 - strength) * xz + strength * full))
    return {
        "effective_n": seen.effective_n,
        "variances": (np.diag(zz) / moments.weight).tolist(),
        "left": left / size if size > 0 else 0.0,
    }
