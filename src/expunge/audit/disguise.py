"""Rows of the fit in another form: rounded, or in another type, so that no fingerprint knows them.

The fit left its traces in the erasure. On its rows

- the concept is uncorrelated with what an exact eraser leaves of x,
- the mean of x is the center of the erasure.

Of m fresh rows both are off by sampling error: with k columns, and a concept of c columns, the
statistics (Hotelling's)

    m · tr(Szz⁺ Szx Sxx⁺ Sxz)   and   m · (x̄ - center)ᵀ Sxx⁺ (x̄ - center) / (1 + m/n)

are about χ² with ck and k degrees of freedom, n being the rows of the fit; larger where there is
more to find. Rows of the fit make them 0, a part of the rows of the fit makes them too small.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy.linalg
import scipy.special
from numpy.typing import NDArray

from expunge.audit.given import Part
from expunge.linalg import Array

__all__ = ["Resemblance", "resemblance"]

Resemblance = Literal["none", "unclear", "fit"]

NEVER = 1e-6  # probability of what is no luck
HARDLY = 1e-4  # probability of what may be luck, but not safely
CLAIMED = 1e-3  # the same where rows are passed as those of the fit
COUNTED = 0.05  # the same where there are also as many as the fit had
EQUAL = 1e-3  # squared distance, in units of its sampling error, that rounding may leave
CONVENTION = 1e-6  # a center this close to 0, in spreads, is that of rows that were centred
MOST = 256  # columns looked at: more tell no more
NUMBERS = 20_000_000  # looked at; of many rows fewer columns
CONTRASTS = 8  # columns of the concept looked at
ROWS_EACH = 10  # rows for each degree of freedom
RANK = 1e-8  # variances this small, of columns of one spread, relative to the largest are none


def resemblance(
    part: Part, subject: Any, fitted: int | None, *, claimed: bool = False
) -> Resemblance:
    """Whether rows that look fresh are rows of the fit in another form.

    Parameters
    ----------
    part : Part
        Rows that no fingerprint knows.
    subject : object
        The erasure; what it has for a `center` is looked at.
    fitted : int or None
        Rows of the fit, if that is known.
    claimed : bool
        Whether they were passed as rows of the fit: then less makes it unclear.

    Returns
    -------
    {"none", "unclear", "fit"}

    Examples
    --------
    >>> import numpy as np
    >>> import expunge as ex
    >>> from expunge.audit.disguise import resemblance
    >>> from expunge.audit.given import gather
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(900, 4)), np.arange(900) % 2
    >>> e = ex.LEACE().fit(X[:500], y[:500]).erasure_
    >>> for rows in (slice(500), slice(500, 900)):
    ...     given = gather(
    ...         e, X[rows].round(3), y[rows], None, None, task=None, names=None, concept_type="auto"
    ...     )
    ...     resemblance(given.train, e, 500)
    'fit'
    'none'
    """
    found = [_of_concept(part), _of_center(part, subject, fitted)]
    if any(p < NEVER and ratio < EQUAL for p, ratio in found):
        return "fit"
    product = max(float(np.prod([p for p, _ in found])), 1e-300)
    both = product * (1 - np.log(product))  # Fisher's, of two independent probabilities
    least = HARDLY
    if claimed:
        least = COUNTED if fitted == len(part) else CLAIMED
    return "unclear" if min(both, *(p for p, _ in found)) < least else "none"


def _of_concept(part: Part) -> tuple[float, float]:
    """How likely fresh rows have so little to do with the concept, and how little, as a ratio."""
    Z = part.concept.columns().astype(np.float64)
    Z = Z - Z.mean(axis=0)
    spread = Z.std(axis=0)
    chosen = np.argsort(-spread, kind="stable")[:CONTRASTS]
    chosen = chosen[spread[chosen] > 0]
    Z = _orthonormal(Z[:, chosen] / spread[chosen])
    if not Z.shape[1]:
        return 1.0, 1.0
    X = _white(part.after, len(part) // (ROWS_EACH * Z.shape[1]), Z)
    return _judged(float(np.sum((Z.T @ X) ** 2)), X.shape[1] * Z.shape[1])


def _of_center(part: Part, subject: Any, fitted: int | None) -> tuple[float, float]:
    """How likely the mean of fresh rows is so close to the center, and how close, as a ratio."""
    center = getattr(subject, "center", None)
    before = part.before
    if center is None or np.shape(center) != before.shape[1:]:
        return 1.0, 1.0
    spread = before.std(axis=0, dtype=np.float64)
    if np.all(np.abs(center) <= CONVENTION * spread):
        return 1.0, 1.0
    one = np.full((len(part), 1), len(part) ** -0.5)
    X = _white(before, len(part) // ROWS_EACH, one, center)
    extra = 1 + len(part) / fitted if fitted else 1.0
    return _judged(float(np.sum((one.T @ X) ** 2)) / extra, X.shape[1])


def _judged(statistic: float, freedom: int) -> tuple[float, float]:
    if not freedom:
        return 1.0, 1.0
    return float(scipy.special.chdtr(freedom, statistic)), statistic / freedom


def _white(
    X: NDArray[Any], most: int, Z: Array, center: NDArray[Any] | None = None
) -> NDArray[np.float64]:
    """Some of the columns about the center, or their mean, uncorrelated and of spread 1.

    The covariance is that of what Z (orthonormal columns) does not explain.
    """
    width = X.max(axis=0).astype(np.float64) - X.min(axis=0).astype(np.float64)
    there = np.flatnonzero(width > 0)
    count = min(len(there), MOST, most, max(NUMBERS // len(X), 1))
    if count < 1:
        return np.zeros((len(X), 0))
    chosen = there[np.linspace(0, len(there) - 1, count).astype(np.intp)]
    A = np.asarray(X[:, chosen], dtype=np.float64)
    A = (A - (A.mean(axis=0) if center is None else np.asarray(center)[chosen])) / width[chosen]
    left = A - Z @ (Z.T @ A)
    spread = np.sqrt(np.mean(left**2, axis=0))
    kept = spread > 0
    A, left = A[:, kept] / spread[kept], left[:, kept] / spread[kept]
    if not kept.any():
        return np.zeros((len(X), 0))
    values, vectors = scipy.linalg.eigh(left.T @ left / len(left))
    wide = values > RANK * values[-1]
    return np.asarray(A @ (vectors[:, wide] / np.sqrt(values[wide])))


def _orthonormal(Z: Array) -> Array:
    """Orthonormal columns that span those of Z."""
    if not Z.shape[1]:
        return Z
    U, s, _ = np.linalg.svd(Z, full_matrices=False)
    return np.asarray(U[:, s > 1e-8 * s[0]])
