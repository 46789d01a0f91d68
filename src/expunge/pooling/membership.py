"""Whether rows with labels and rows without come from one population."""

from __future__ import annotations

import warnings

import numpy as np

from expunge.rows.base import Rows
from expunge.rows.dense import DenseRows
from expunge.rows.equal_rows import by_chance, numbered

__all__ = ["told_apart"]

ROWS = 2000  # of each side
SURE = 4.5  # standard errors of ranks over one half; those of cross-fitted scores are larger
WORTH = 0.05  # over one half that matters


def told_apart(labelled: Rows, pool: Rows, rng: np.random.Generator) -> tuple[float, bool]:
    """How well a linear classifier tells the two apart on rows it has not seen.

    Parameters
    ----------
    labelled, pool : Rows
        Of one width; samples of at most 2,000 rows are taken.
    rng : Generator

    Returns
    -------
    auc : float
        One half where they are alike.
    sure : bool
        Whether it is above one half beyond chance.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.inputs import check_rows
    >>> from expunge.pooling.membership import told_apart
    >>> rng = np.random.default_rng(0)
    >>> some, others = rng.normal(size=(300, 3)), rng.normal(size=(400, 3)) + 2
    >>> told_apart(check_rows(some), check_rows(others), rng)[1]
    True
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import (
        StratifiedGroupKFold,
        StratifiedKFold,
        cross_val_predict,
    )

    parts = [_sample(rows, rng) for rows in (labelled, pool)]
    X = np.vstack(parts)
    same = numbered(DenseRows(X))
    copied = same.max() + 1 < len(X) and not by_chance(DenseRows(X))
    spread = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    side = np.repeat([0, 1], [len(part) for part in parts])
    n, m = (len(np.unique(same[side == k])) if copied else len(parts[k]) for k in (0, 1))
    folds = min(5, n, m)
    if folds < 2:
        return 0.5, False
    model = LogisticRegression(C=1 / (0.1 * len(X)), max_iter=100, class_weight="balanced")
    rule = StratifiedGroupKFold if copied else StratifiedKFold  # copies are never on both sides
    cut = rule(folds, shuffle=True, random_state=int(rng.integers(2**31)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a classifier that stops early will do
        scores = cross_val_predict(model, X, side, groups=same, cv=cut, method="decision_function")
    auc = float(roc_auc_score(side, scores))
    error = np.sqrt((n + m + 1) / (12 * n * m))  # of ranks that tell nothing
    return auc, bool(auc - 0.5 > max(SURE * error, WORTH))


def _sample(rows: Rows, rng: np.random.Generator) -> np.ndarray:
    some, _ = rows.subset(min(ROWS, rows.n_samples), rng)
    return np.asarray(some.array(), dtype=np.float64)
