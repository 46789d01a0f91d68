"""How much features may have their way: the ridge under which they predict rows not seen best.

Everything is in the sums of folds: the predictor of all folds but one, its error on that one, and
the covariance with the concept that the map leaves there. So no row is read again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from expunge.free_form.readout import EPS, Blocks, Readout
from expunge.linalg import RCOND, Array
from expunge.moments import Moments

__all__ = ["RidgeChoice", "choose_ridge"]

SURE = 1.0  # standard errors up to which new rows show no more than after LEACE
SMALL = 1e-8  # share of the variance of a, which is no part of it
RIDGES = (np.inf, *(10.0 ** np.arange(1.5, -3.1, -0.5)))


@dataclass(frozen=True)
class RidgeChoice:
    """What held-out rows said of the predictors.

    Attributes
    ----------
    ridge : float
        In units of the mean variance of what features add to x; infinite for x alone.
    error, linear_error : float
        Share of the concept's variance that the predictor, and the linear one, leave on rows they
        were not trained on.
    leak : float
        Share of the concept's variance that such rows show in what features change after LEACE: the
        rows of the fit show none.
    chance : float
        The standard error of what they show by chance after LEACE; a leak is no larger.
    """

    ridge: float
    error: float
    linear_error: float
    leak: float
    chance: float

    def to_meta(self) -> dict[str, Any]:
        """As JSON values."""
        ridge = self.ridge if np.isfinite(self.ridge) else None
        found = {"ridge": ridge, "error": self.error, "linear_error": self.linear_error}
        return {**found, "leak": self.leak, "chance": self.chance}


def choose_ridge(folds: Sequence[Moments], d: int, m: int, effective_n: float) -> RidgeChoice:
    """The ridge of least held-out error, of those that leave no more than LEACE but chance.

    Parameters
    ----------
    folds : sequence of Moments
        Of [rows, features, concept] in units, fold by fold.
    d, m : int
        Columns of rows and concept.
    effective_n : float
        Independent rows, for the sampling error of what is left.

    Returns
    -------
    RidgeChoice

    Examples
    --------
    >>> import numpy as np
    >>> from expunge import Moments
    >>> from expunge.concept import Concept
    >>> from expunge.free_form.ridge_choice import choose_ridge
    >>> rng = np.random.default_rng(0)
    >>> u, noise = rng.normal(size=(900, 1)), rng.normal(size=(900, 1))
    >>> for z in (u + u**2, u + noise):
    ...     F = np.hstack([u, u**2, z])
    ...     folds = [Moments.of(part, Concept.none(300)) for part in np.split(F, 3)]
    ...     print(choose_ridge(folds, 1, 1, 900).ridge < 0.01)
    True
    False
    """
    if len(folds) < 2:
        return RidgeChoice(np.inf, 1.0, 1.0, 0.0, 0.0)
    total = sum(part.weight for part in folds)
    sums = [_Held(m) for _ in RIDGES]
    for number, held in enumerate(folds):
        rest = reduce(Moments.merge, (part for k, part in enumerate(folds) if k != number))
        readout, out = Readout(Blocks.of(rest, d, m)), Blocks.of(held, d, m)
        found = [readout.predictor(ridge) for ridge in RIDGES]
        linear = found[0][0] @ _inverse(found[0][1])
        for each, (coef, pz) in zip(sums, found, strict=True):
            each.add(held.weight / total, out, coef, coef @ _inverse(pz) - linear)
    zz = sums[0].zz
    scale = max(float(np.trace(zz)), EPS)
    errors, leaks = (np.array([getattr(s, n) for s in sums]) / scale for n in ("error", "leak"))
    # what a linear predictor finds by chance is Σ λ χ²(d) / n, with λ the eigenvalues of Σzz
    chance = float(np.sqrt(2 * d) * np.linalg.norm(zz) / effective_n / scale)
    best = int(np.argmin(np.where(leaks <= SURE * chance, errors, np.inf)))
    told = float(errors[best]), float(errors[0]), float(leaks[best]), chance
    return RidgeChoice(float(RIDGES[best]), *told)


def _inverse(pz: Array) -> Array:
    return np.asarray(np.linalg.pinv(pz, rcond=RCOND, hermitian=True))


class _Held:
    """Sums over held-out rows, for one ridge.

    With H = Σuz, LEACE gives u - H g and this map u - H (g + a), up to a sign: a is what features
    change in the reading. On the rows of the fit cov(a, z) = 0.
    """

    def __init__(self, m: int) -> None:
        self.error = 0.0
        self.zz, self.aa, self.az = (np.zeros((m, m)) for _ in range(3))

    def add(self, weight: float, out: Blocks, coef: Array, more: Array) -> None:
        """A fold with the coefficients ((d + D) x m) of p and of a."""
        seen = out.ff @ np.hstack([coef, more])
        pz, m = coef.T @ out.fz, out.m
        self.error += weight * float(np.trace(out.zz - pz - pz.T + coef.T @ seen[:, :m]))
        self.zz += weight * out.zz
        self.aa += weight * (more.T @ seen[:, m:])
        self.az += weight * (more.T @ out.fz)

    @property
    def leak(self) -> float:
        """The concept's variance that a linear predictor finds in a."""
        inverse = np.linalg.pinv(self.aa, rcond=SMALL, hermitian=True)
        return float(np.sum(self.az * (inverse @ self.az)))
