"""An erasure as a matrix and a vector, for libraries that know no factors."""

from __future__ import annotations

import numpy as np

from expunge.erasure import Erasure
from expunge.linalg import Array
from expunge.maps import as_erasure

__all__ = ["dense_map"]


def dense_map(erasure: Erasure) -> tuple[Array, Array]:
    """Weight W = I - L R (d x d) and bias b = L R c + o (d,): the erasure is x -> W x + b.

    Examples
    --------
    >>> import expunge as ex
    >>> from expunge.integrations.dense_map import dense_map
    >>> W, b = dense_map(ex.Erasure([[1.0], [0.0]], [[1.0, 0.0]], center=[2.0, 5.0]))
    >>> W.tolist(), b.tolist()
    ([[0.0, 0.0], [0.0, 1.0]], [2.0, 0.0])
    """
    erasure = as_erasure(erasure)
    zero = np.zeros(erasure.n_features)
    center, offset = (zero if v is None else v for v in (erasure.center, erasure.offset))
    return erasure.matrix(), erasure.left @ (erasure.right @ center) + offset
