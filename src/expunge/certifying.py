"""Certify any erasure on any labelled rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from expunge.conditional import ConditionalErasure
from expunge.erasure import Erasure
from expunge.errors import InputError
from expunge.game.certificate import Certificate
from expunge.game.certificate import certify as _certify
from expunge.game.conditional_certificate import erased_rows
from expunge.game.kept import kept_in_rows
from expunge.game.losses import Loss, loss_for
from expunge.inputs import (
    ConceptType,
    check_concept,
    check_known,
    check_number,
    check_rows,
    check_weights,
)
from expunge.inputs.frames import rows_of_table
from expunge.inputs.swapped import refuse_swapped
from expunge.maps import as_map
from expunge.rows.mapped import MappedRows

__all__ = ["certify"]


def certify(
    erasure: Any,
    X: Any,
    y: Any,
    *,
    loss: str | Loss | None = "auto",
    fit_intercept: bool = True,
    alpha: float = 1e-4,
    tol: float = 1e-6,
    concept_type: ConceptType = "auto",
    sample_weight: Any = None,
    as_transformed: bool = False,
) -> Certificate:
    """What is proven about an erasure on these rows, whoever made it.

    Parameters
    ----------
    erasure : Erasure, ConditionalErasure, NonlinearErasure or fitted eraser
    X : array or frame of shape (n, d)
        Rows before erasure.
    y : array of shape (n,) or (n, m), or names of columns of the frame
        The concept.
    loss : str, Loss or None
        As in `RLACE`: "auto", or None, is squared for a continuous concept, cross-entropy
        otherwise.
    fit_intercept : bool
        Whether the predictor has an intercept.
    alpha : float
        Ridge of the predictor, relative to the variance of each column of the erased rows; at
        most 1, beyond which nothing is said of predictors that anyone would train.
    tol : float
        What still counts as erased, relative to the bound.
    concept_type : {"auto", "classes", "labels", "continuous"}
    sample_weight : array of shape (n,), optional
    as_transformed : bool
        Whether to speak of the rows that `transform` gives, rounded to the type of X, instead of
        the exact ones: in float16 or bfloat16 rounding may put some of the concept back.

    Returns
    -------
    Certificate

    Examples
    --------
    >>> import numpy as np
    >>> import expunge as ex
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 300)
    >>> X = rng.normal(size=(300, 4)) + np.outer(y, [2, 0, 0, 1])
    >>> ex.certify(ex.RLACE().fit(X, y), X, y).erased
    True
    >>> ex.certify(ex.RayleighEraser(objective="pca").fit(X), X, y).erased
    False
    """
    check_number(alpha, "alpha", strict=True, most=1.0)
    check_number(tol, "tol", most=float("inf"))
    found = as_map(erasure, others=(X, y))
    refuse_swapped(X, y)
    rows = check_rows(rows_of_table(X, y, sample_weight, known=found.columns))
    found.check_width((rows.n_samples, rows.n_features))
    weights = check_weights(sample_weight, rows)
    concept = check_concept(y, rows, concept_type=concept_type).with_weight(weights)
    if concept.kind == "classes" and concept.width < 2:
        raise InputError(
            "The rows that count have one class only: there is nothing to certify",
            f"weights above 0 for the class {concept.labels[0]!r} alone",
            "Give rows of at least two classes a positive weight",
        )
    chosen = loss_for("auto" if loss is None else loss, concept.kind, concept.width)
    terms: dict[str, Any] = {"fit_intercept": fit_intercept, "alpha": alpha, "tol": tol}
    moments = rows.moments(concept, weights, second=False)
    if not isinstance(found, ConditionalErasure):
        kept = kept_in_rows(rows, found, moments, concept, weights)
        if isinstance(found, Erasure) and not as_transformed:
            return _certify(
                rows, concept, found, chosen, weights=weights, moments=moments, kept=kept, **terms
            )
        # in the type that `transform` is given: halves between two numbers may round either way
        kept_type = (
            as_transformed and rows.dtype.kind == "f" and rows.eps == np.finfo(rows.dtype).eps
        )
        given = rows.dtype if kept_type else np.dtype(np.float64)
        clean = MappedRows(
            rows, lambda A, which: np.asarray(found.transform(A.astype(given, copy=False)), float)
        )
    else:
        known = check_known(y, rows, kind=found.kind, labels=found.labels)
        kept = kept_in_rows(rows, found, moments, known, weights)
        clean = erased_rows(rows, found, known)
    if as_transformed:
        clean = MappedRows(clean, lambda A, which: rows.rounded(A))
    return _certify(
        clean,
        concept,
        Erasure.identity(rows.n_features),
        chosen,
        weights=weights,
        kept=kept,
        floor=kept.least,
        **terms,
    )
