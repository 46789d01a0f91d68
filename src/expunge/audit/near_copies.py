"""Rows that lie in small bunches: takes of one item, crops, paraphrases, rows of one person.

In a bunch of k + 1 rows the k-th neighbour of a row is near and the next one far. Of independent
rows with a smooth density in D dimensions the distances grow steadily: the chance that the next one
is `FAR` times as large is FAR^(-kD), a tenth for D = 1 and all k together, and next to none beyond.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from expunge.audit.units import own_units
from expunge.rows.base import Rows

__all__ = ["share_in_bunches"]

FAR = 10.0  # times as far as the last of a bunch: the first row outside of it
LARGEST = 30  # rows in a bunch
ASKED = 300  # rows whose neighbours are looked at
ROWS = 20_000  # among which
FEWER = 2_000  # of these, so that large bunches become small ones too
NUMBERS = 10_000_000  # held at once


def share_in_bunches(rows: Rows, seed: int = 0) -> float:
    """Share of the rows that lie in a bunch with others, as far as a sample tells.

    Parameters
    ----------
    rows : rows of shape (n, d)
    seed : int

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.audit.near_copies import share_in_bunches
    >>> from expunge.inputs import check_rows
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(900, 6))
    >>> share_in_bunches(check_rows(X)) < 0.01
    True
    >>> takes = np.repeat(X, 3, axis=0) + 1e-4 * rng.normal(size=(2700, 6))
    >>> share_in_bunches(check_rows(takes)) > 0.99
    True
    """
    n, room = rows.n_samples, NUMBERS // rows.n_features
    some = np.random.default_rng(seed).permutation(n)[: min(ROWS, room)]
    if len(some) < 3:
        return 0.0
    X = np.array(rows.take(np.sort(some)).array(), np.float64)
    units = own_units(X)
    X -= X.mean(axis=0)
    X /= float(np.linalg.norm(X) / np.sqrt(len(X))) or 1.0 if units is None else units
    few = X[:: -(-len(X) // FEWER)]
    return max(_share(X), _share(few) if len(few) < len(X) else 0.0)


def _share(X: NDArray[np.float64]) -> float:
    from sklearn.neighbors import NearestNeighbors

    asked = np.linspace(0, len(X) - 1, min(ASKED, len(X))).astype(np.intp)
    single = X.astype(np.float32)  # tell who is near, if not how near
    neighbours = NearestNeighbors(n_neighbors=min(LARGEST + 2, len(X)), algorithm="brute")
    near = neighbours.fit(single).kneighbors(single[asked])[1]
    pairs = zip(near, asked, strict=True)  # differences first: no digits are lost
    distances = np.sort([np.linalg.norm(X[at] - X[i], axis=1) for at, i in pairs], axis=1)
    last, following = distances[:, :-1], distances[:, 1:]
    return float(np.mean(np.any((last > 0) & (following > FAR * last), axis=1)))
