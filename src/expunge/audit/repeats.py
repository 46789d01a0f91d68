"""What an audit asks of equal rows: see `expunge.rows.equal_rows`; and whether a table was copied.

Copies in a table show by how often values occur. If rows are drawn at random, the number f_k of
values that occur k times is a mixture of Poisson probabilities, whatever the population, so that
k! f_k is log-convex in k (Cauchy and Schwarz):

    k f_k² ≤ (k + 1) f_{k-1} f_{k+1}.

Where every row is there twice, f_2 stands alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.rows.equal_rows import (
    Hashes,
    by_chance,
    hashed,
    numbered,
    real_share,
    repeated,
    row_hashes,
    spaced,
)

__all__ = [
    "Excess",
    "Hashes",
    "beyond_chance",
    "by_chance",
    "discrete",
    "hashed",
    "numbered",
    "real_share",
    "repeated",
    "row_hashes",
]

FEW_VALUES = 0.1  # different values of a column, as a share of its rows, that make it discrete
MOSTLY = 0.5  # share of the columns that makes a table discrete
SURE = 4.0  # standard errors by which a random sample never exceeds chance
TWICE = 0.5  # excess of the logarithm that matters
FEWEST = 5  # values that occur equally often


@dataclass(frozen=True)
class Excess:
    """Values that occur equally often, more of them than chance explains.

    Attributes
    ----------
    times : int
        How often each occurs.
    values : int
    chance : float
        The most that chance explains, by the values that occur once more and once less often.
    """

    times: int
    values: int
    chance: float


def beyond_chance(hashes: Hashes) -> Excess | None:
    """Whether rows occur so often as no random sample has them: then they were copied.

    Parameters
    ----------
    hashes : uint64 array of shape (n,)

    Returns
    -------
    Excess or None
        Where the excess is surest; None where chance explains all repeats.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.audit.repeats import beyond_chance, hashed
    >>> X = np.random.default_rng(0).integers(0, 9, size=(600, 3))
    >>> beyond_chance(hashed(X)) is None, beyond_chance(hashed(np.repeat(X, 3, axis=0))).times
    (True, 3)
    """
    f = np.bincount(np.bincount(np.unique(hashes, return_inverse=True)[1].reshape(-1)))
    f = np.append(f, 0).astype(np.float64)
    k = np.flatnonzero(f >= FEWEST)
    k = k[k > 1]
    if not len(k):
        return None
    below, above = f[k - 1] + 0.5, f[k + 1] + 0.5  # none may be there
    excess = np.log(k / (k + 1) * f[k] ** 2 / (below * above))
    sure = excess / np.sqrt(4 / f[k] + 1 / below + 1 / above)
    sure[excess < TWICE] = 0.0
    best = int(sure.argmax())
    if sure[best] < SURE:
        return None
    times = int(k[best])
    most = np.sqrt((times + 1) / times * below[best] * above[best])
    return Excess(times, int(f[times]), float(most))


def discrete(X: NDArray[Any]) -> bool:
    """Whether most columns of X have few different values.

    Parameters
    ----------
    X : array of shape (n, d)

    Returns
    -------
    bool
    """
    part = X[spaced(len(X))]
    few = [len(np.unique(column)) <= FEW_VALUES * len(part) for column in part.T]
    return bool(np.mean(few) >= MOSTLY)
