"""What a linear predictor gains on rows it did not learn from."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.audit.linear_probes import LINEAR_PROBES
from expunge.audit.measures import measures_of
from expunge.audit.running import cross_fitted
from expunge.audit.sampling import FEWEST, fold_numbers, groups_of
from expunge.concept import Concept
from expunge.rows.dense import DenseRows

__all__ = ["held_out_gain"]

FOLDS = 5


def held_out_gain(
    X: NDArray[Any], concept: Concept, seed: int, ids: NDArray[Any] | None = None
) -> tuple[float | None, float | None]:
    """Bits per row and share of the loss that the best linear predictor gains, by cross-fitting.

    Each row is scored by predictors that learnt from others; of several ridges the best counts. A
    predictor that is worse than a constant answer gains nothing: labels at random give about 0.

    Parameters
    ----------
    X : array of shape (n, d)
    concept : Concept
    seed : int
    ids : array of shape (n,), optional
        Rows of one id are never on both sides.

    Returns
    -------
    (float or None, float or None)
        No bits of numbers; nothing where rows are too few to hold some out.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.audit.gain import held_out_gain
    >>> from expunge.inputs import check_concept
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 400)
    >>> X = rng.normal(size=(400, 20))
    >>> bits, share = held_out_gain(X, check_concept(y, 400), 0)
    >>> bits < 0.001, share < 0.001
    (True, True)
    >>> bits, share = held_out_gain(X + 9 * y[:, None], check_concept(y, 400), 0)
    >>> bits > 0.95, share > 0.95
    (True, True)
    """
    groups = groups_of(DenseRows(X), ids)
    few = len(X) if groups is None else len(np.unique(groups))
    if few < FEWEST or np.all(concept.values == concept.values[0]):
        return None, None
    probes = [p for p in LINEAR_PROBES if concept.kind in p.kinds and "regression" in p.name]
    folds = fold_numbers(concept, FOLDS, seed, groups)
    every = cross_fitted(probes, X, concept, folds, seed, lambda note: None)
    found = [measures_of(scores, concept) for scores in every]
    if concept.kind == "continuous":
        return None, max(0.0, *(measures["r2"].value for measures in found))
    labels = 1  # of labels the measures are means over those that vary
    if concept.kind == "labels":
        labels = int(np.sum(concept.values.std(axis=0) > 0))
    best = max(found, key=lambda measures: measures["bits"].value)
    bits = max(best["bits"].value, 0.0)
    null = best["bits"].value + best["cross_entropy"].value / float(np.log(2))
    return bits * labels, bits / null if null > 0 else 0.0
