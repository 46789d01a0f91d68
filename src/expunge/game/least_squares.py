"""Second moments as the squared loss sees them, and in units that no scale can spoil."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from expunge.game.losses import Squared
from expunge.linalg import Array
from expunge.moments import Moments

__all__ = ["cross_moment", "second_moment", "spreads"]

EPS = float(np.finfo(np.float64).eps)
LAST_DIGITS = 8 * EPS  # of a mean, which rounding may have changed


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


def spreads(variance: Array, mean: Array, eps: float = 0.0) -> tuple[Array, NDArray[np.bool_]]:
    """Units in which columns of any scale count alike, and which columns vary at all.

    With `eps`, a column narrower than the last digits of the others (networks have some, of spreads
    from 1e-8 to 1e-32) gets a unit of their size: in its own a map would read it through a
    coefficient of 1e32.

    Parameters
    ----------
    variance, mean : arrays of shape (d,)
        Of the columns. A spread below the last digits of the mean is rounding.
    eps : float
        Relative precision of the rows, or 0.

    Returns
    -------
    sd : array of shape (d,)
        Standard deviations, none below 8 `eps` times their median; of a constant column the least
        of the others, or 1.
    varies : boolean array of shape (d,)

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.game.least_squares import spreads
    >>> sd, varies = spreads(np.array([4.0, 0.0, 1e-20]), np.array([0.0, 1.0, 1e8]))
    >>> sd, varies
    (array([2., 2., 2.]), array([ True, False, False]))
    """
    varies = variance > (LAST_DIGITS * mean) ** 2
    if not varies.any():
        return np.ones(len(variance)), varies
    sd = np.sqrt(variance[varies])
    least = max(float(sd.min()), 8 * eps * float(np.median(sd)))
    return np.sqrt(np.where(varies, np.maximum(variance, least**2), least**2)), varies
