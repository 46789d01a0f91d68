"""Second moments as the squared loss sees them, centred or about the origin."""

from __future__ import annotations

import numpy as np

from expunge.game.losses import Squared
from expunge.linalg import Array
from expunge.moments import Moments

__all__ = ["cross_moment", "second_moment"]


def second_moment(moments: Moments, center: bool) -> Array:
    """Σxx, or the raw second moment of x."""
    return moments.cov_xx if center else moments.cov_xx + np.outer(moments.mean_x, moments.mean_x)


def cross_moment(moments: Moments, center: bool) -> tuple[Array, Array]:
    """Σxz and Σzz in the encoding of the squared loss (one 0/1 column for two classes)."""
    C, Szz = moments.cov_xz, moments.cov_zz
    if not center:
        C = C + np.outer(moments.mean_x, moments.mean_z)
        Szz = Szz + np.outer(moments.mean_z, moments.mean_z)
    E = Squared().encode(np.eye(len(moments.labels)), moments.kind)
    return C @ E, E.T @ Szz @ E
