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

from expunge.audit.given import AuditedRows
from expunge.concept import Concept
from expunge.linalg import Array
from expunge.moments import Moments
from expunge.rows.base import Rows
from expunge.rows.lazy_rows import ChangedRows, extent

__all__ = ["Resemblance", "resemblance"]

Resemblance = Literal["none", "unclear", "fit"]

NEVER = 1e-6  # probability of what is no luck
HARDLY = 1e-4  # probability of what may be luck, but not safely
CLAIMED = 1e-3  # the same where rows are passed as those of the fit
COUNTED = 0.05  # the same where there are also as many as the fit had
EQUAL = 1e-3  # squared distance, in units of its sampling error, that rounding may leave
CONVENTION = 1e-6  # a center this close to 0, in spreads, is that of rows that were centred
MOST = 256  # columns looked at: more tell no more
CONTRASTS = 8  # columns of the concept looked at
MEET = 0.5  # share of a product of spreads that rows have in which both are far from the mean
FEWEST_MET = 10  # rows expected far from the mean in both, from which on meeting is no luck
ROWS_EACH = 10  # rows for each degree of freedom
RANK = 1e-8  # variances this small, of columns of one spread, relative to the largest are none


def resemblance(
    part: AuditedRows, subject: Any, fitted: int | None, *, claimed: bool = False
) -> Resemblance:
    """Whether rows that look fresh are rows of the fit in another form.

    Parameters
    ----------
    part : AuditedRows
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


def _of_concept(part: AuditedRows) -> tuple[float, float]:
    """How likely fresh rows have so little to do with the concept, and how little, as a ratio."""
    Z = part.concept.columns()
    spread = Z.std(axis=0)
    at = np.argsort(-spread, kind="stable")[:CONTRASTS]
    at = at[spread[at] > 0]
    if not at.size:
        return 1.0, 1.0
    contrasts = Concept.of_numbers(Z[:, at] / spread[at])
    rows = _some_columns(part.after, len(part) // (ROWS_EACH * at.size))
    if rows is not None:
        rows = _met_by_the_concept(rows, contrasts)
    if rows is None:
        return 1.0, 1.0
    found = _in_units(rows, contrasts)
    inverse = np.linalg.pinv(found.cov_zz, rcond=RANK, hermitian=True)
    C, explained = found.cov_xz, found.cov_xz @ inverse @ found.cov_xz.T
    roots = _inverse_roots(found.cov_xx - explained, found.eps)
    freedom = roots.shape[1] * int(np.linalg.matrix_rank(found.cov_zz, tol=RANK, hermitian=True))
    return _judged(len(part) * float(np.trace(C.T @ roots @ (roots.T @ C) @ inverse)), freedom)


def _of_center(part: AuditedRows, subject: Any, fitted: int | None) -> tuple[float, float]:
    """How likely the mean of fresh rows is so close to the center, and how close, as a ratio."""
    center, n = getattr(subject, "center", None), len(part)
    if center is None or np.shape(center) != (part.before.n_features,):
        return 1.0, 1.0
    about = ChangedRows(
        part.before, lambda X, index: np.subtract(X, center, dtype=np.float64), alike=True
    )
    whole = about.moments(Concept.none(n), second=False)
    if np.all(np.abs(center) <= CONVENTION * np.sqrt(whole.squares / n)):
        return 1.0, 1.0
    rows = _some_columns(about, n // ROWS_EACH)
    if rows is None:
        return 1.0, 1.0
    found = _in_units(rows, Concept.none(n))
    roots = _inverse_roots(found.cov_xx, found.eps)
    extra = 1 + n / fitted if fitted else 1.0
    return _judged(n * float(np.sum((found.mean_x @ roots) ** 2)) / extra, roots.shape[1])


def _judged(statistic: float, freedom: int) -> tuple[float, float]:
    if not freedom:
        return 1.0, 1.0
    return float(scipy.special.chdtr(freedom, max(statistic, 0.0))), statistic / freedom


def _some_columns(rows: Rows, most: int) -> Rows | None:
    """Some of the columns that vary, or None."""
    low, high, _ = extent(rows)
    there = np.flatnonzero(high > low)
    count = min(len(there), MOST, most)
    if count < 1:
        return None
    return _only(rows, there[np.linspace(0, len(there) - 1, count).astype(np.intp)])


def _only(rows: Rows, at: NDArray[np.intp]) -> Rows:
    return ChangedRows(rows, lambda X, index: np.asarray(X[:, at], dtype=np.float64), alike=True)


def _met_by_the_concept(rows: Rows, contrasts: Concept) -> Rows | None:
    """The columns whose rows of large values are met by all parts of the concept, or None.

    A covariance of few rows in a hundred thousand, of a rare class and a column with few entries
    or far ones, is no sum of many alike: it is next to 0 as long as they do not meet. Then the mean
    of x̃²z̃² is well below the product of the means of x̃² and of z̃². So it is of a class that is
    narrower than the others; but there n over the product of the kurtoses, about how many rows are
    far from the mean in both if nothing is against it, is no small number.
    """
    moments = rows.moments(contrasts, second=False)
    Z = contrasts.values - moments.mean_z
    varies, n = moments.squares > 0, len(Z)
    spread = np.sqrt(np.where(varies, moments.squares / moments.weight, 1.0))
    squares = ChangedRows(
        rows, lambda X, index: np.square((X - moments.mean_x) / spread), alike=True
    )
    Z = np.square(Z) / np.mean(Z**2, axis=0)
    found = squares.moments(Concept.of_numbers(Z), second=False)
    both = found.cov_xz + np.outer(found.mean_x, found.mean_z)
    fourth = found.squares / found.weight + found.mean_x**2
    expected = n / np.outer(np.maximum(fourth, 1.0), np.mean(Z**2, axis=0))
    fine = (both >= MEET) | (expected >= FEWEST_MET)
    met = np.flatnonzero(np.all(fine, axis=1) & varies)
    return _only(rows, met) if met.size else None


def _in_units(rows: Rows, concept: Concept) -> Moments:
    """Moments of columns in units of their spread."""
    found = rows.moments(concept)
    return found.in_units(found.spreads)


def _inverse_roots(S: Array, eps: float) -> Array:
    """B with B Bᵀ the inverse of a covariance, on the directions that vary."""
    values, vectors = scipy.linalg.eigh(S)
    wide = values > max(RANK, len(S) * eps) * values[-1]
    return np.asarray(vectors[:, wide] / np.sqrt(values[wide]))
