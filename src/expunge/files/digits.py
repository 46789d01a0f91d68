"""Numbers as text: as many digits as it takes to read the same number again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

__all__ = ["as_text"]

AT_ONCE = 1 << 16  # numbers; text takes twenty times their room


def as_text(X: NDArray[Any]) -> Iterator[list[str]]:
    """Rows of a matrix as lists of text.

    Parameters
    ----------
    X : array of shape (k, d)

    Yields
    ------
    list of str

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.files.digits import as_text
    >>> list(as_text(np.array([[0.1, 2]], np.float32)))
    [['0.1', '2.0']]
    """
    size = max(1, AT_ONCE // X.shape[1])
    for lo in range(0, len(X), size):
        yield from X[lo : lo + size].astype(str).tolist()
