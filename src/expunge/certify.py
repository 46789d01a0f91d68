"""Certify any erasure on any labelled rows."""

from __future__ import annotations

from typing import Any

from expunge.erasure import Erasure
from expunge.errors import InputError
from expunge.game.certificate import Certificate
from expunge.game.certificate import certify as _certify
from expunge.game.losses import Loss, loss_for
from expunge.inputs import ConceptType, check_concept, check_rows, check_weights

__all__ = ["certify"]


def certify(
    erasure: Erasure,
    X: Any,
    y: Any,
    *,
    loss: str | Loss | None = None,
    fit_intercept: bool = True,
    alpha: float = 1e-4,
    tol: float = 1e-6,
    concept_type: ConceptType = "auto",
    sample_weight: Any = None,
) -> Certificate:
    """What is proven about an erasure on these rows, whoever made it.

    Parameters
    ----------
    erasure : Erasure
    X : array or frame of shape (n, d)
        Rows before erasure.
    y : array of shape (n,) or (n, m)
        The concept.
    loss : str or Loss, optional
        "cross_entropy" by default, "squared" for a continuous concept.
    fit_intercept : bool
        Whether the predictor has an intercept.
    alpha : float
        Ridge of the predictor, relative to the mean variance of a column.
    tol : float
        What still counts as erased, relative to the bound.
    concept_type : {"auto", "classes", "labels", "continuous"}
    sample_weight : array of shape (n,), optional

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
    >>> ex.certify(ex.RLACE().fit(X, y).erasure_, X, y).erased
    True
    >>> ex.certify(ex.RayleighEraser(objective="pca").fit(X).erasure_, X, y).erased
    False
    """
    rows = check_rows(X)
    if rows.n_features != erasure.n_features:
        raise InputError(
            f"X has {rows.n_features} features, but this erasure is expecting "
            f"{erasure.n_features} features as input",
            f"shape ({rows.n_samples}, {rows.n_features})",
            "Pass rows of the width it was fitted on",
        )
    weights = check_weights(sample_weight, rows.n_samples)
    concept = check_concept(y, rows.n_samples, concept_type=concept_type).with_weight(weights)
    name = loss or ("squared" if concept.kind == "continuous" else "cross_entropy")
    return _certify(
        rows,
        concept,
        erasure,
        loss_for(name, concept.kind, concept.width),
        weights=weights,
        fit_intercept=fit_intercept,
        alpha=alpha,
        tol=tol,
    )
