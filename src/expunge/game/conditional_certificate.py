"""The certificate of a map that is told the concept of each row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.concept import Concept
from expunge.conditional import ConditionalErasure
from expunge.erasure import Erasure
from expunge.game.certificate import Certificate, certify, certify_moments
from expunge.game.kept import Kept
from expunge.game.losses import Loss
from expunge.linalg import Array
from expunge.moments import Moments
from expunge.rows.base import Rows
from expunge.rows.mapped import MappedRows

__all__ = ["certify_conditional", "erased_rows"]

EPS = float(np.finfo(np.float64).eps)


def certify_conditional(
    erasure: ConditionalErasure,
    moments: Moments,
    loss: Loss,
    rows: Rows | None = None,
    concept: Concept | None = None,
    weights: Array | None = None,
    kept: Kept | None = None,
    **terms: Any,
) -> Certificate | None:
    """Certificate of a conditional erasure, from moments where they suffice, else from rows.

    Parameters
    ----------
    erasure : ConditionalErasure
    moments : Moments
        Of rows and concept before the erasure.
    loss : Loss
    rows, concept, weights : optional
        The rows themselves, without which only full erasure can be certified.
    kept : Kept, optional
        What the erasure leaves of the rows, for the words on it.
    **terms
        Of `certify`: fit_intercept, alpha, tol.

    Returns
    -------
    Certificate or None
        None where the moments prove nothing and there are no rows.
    """
    identity = Erasure.identity(moments.n_features)
    moved = replace(moments, xz=erasure.cross_covariance_left(moments.xz, moments.zz), xx=None)
    slack = np.abs(erasure.shift) @ _rounding_of_concept(moments)
    quick = certify_moments(moved, identity, loss, smallest=True, slack=slack, **terms)
    if quick.erased:
        return quick if kept is None else quick.in_units(kept)
    if rows is None or concept is None:
        return quick if quick.value > 0 else None
    clean, floor = erased_rows(rows, erasure, concept), None if kept is None else kept.least
    return certify(clean, concept, identity, loss, weights=weights, kept=kept, floor=floor, **terms)


def _rounding_of_concept(moments: Moments) -> Array:
    """What the digits of the means of numbers hide of their covariances (m x m).

    The shift carries it from a number far from zero to columns of the concept that are not.
    """
    size, spread = np.abs(moments.mean_z), np.sqrt(np.diag(moments.zz) / moments.weight)
    return np.asarray(4 * EPS * (np.outer(size, spread) + np.outer(spread, size)))


def erased_rows(rows: Rows, erasure: ConditionalErasure, concept: Concept) -> MappedRows:
    """Rows as a conditional erasure leaves them, in float64; they are erased as they are read.

    Parameters
    ----------
    rows : Rows
    erasure : ConditionalErasure
    concept : Concept
        Over the labels of the erasure.

    Returns
    -------
    MappedRows
    """

    def erase(X: NDArray[Any], which: Any) -> NDArray[Any]:
        return erasure.transform_known(np.asarray(X, dtype=np.float64), concept.take(which))

    return MappedRows(rows, erase)
