"""Embeddings as other libraries pass them, erased: what all wrappers of embedding models share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.errors import InputError
from expunge.inputs.matrices import as_matrix
from expunge.maps import RowMap, as_row_map

__all__ = ["SOME", "EmbeddingEraser", "unit"]

SOME = 64  # erased vectors of a store that are compared before others are added to them
CLOSE = 1e-3  # relative to the length of a vector: what storage in float16 may change


class EmbeddingEraser:
    """Erases lists of embeddings, of documents and of queries alike.

    Parameters
    ----------
    erasure : Erasure, NonlinearErasure or fitted eraser
        Of what the embedding model gives.
    normalize : bool
        Whether erased embeddings get length one. Then nothing is promised: their lengths tell of
        what was taken away, and a vector divided by its length tells of it again. Inner products
        and Euclidean distances of erased embeddings need no normalising.

    Examples
    --------
    >>> import expunge as ex
    >>> from expunge.integrations.embedded import EmbeddingEraser
    >>> first = ex.Erasure([[1.0], [0.0]], [[1.0, 0.0]])
    >>> EmbeddingEraser(first, normalize=True).lists([[3.0, 4.0]])
    [[0.0, 1.0]]
    """

    def __init__(self, erasure: Any, normalize: bool = False) -> None:
        self.erasure: RowMap = as_row_map(erasure)
        self.normalize = bool(normalize)

    def array(self, embeddings: Any) -> NDArray[Any]:
        """Erased embeddings (n, d) of a list of them.

        Parameters
        ----------
        embeddings : list of lists, list of arrays or array of shape (n, d)

        Returns
        -------
        array of shape (n, d)
        """
        X = as_matrix(embeddings, name="embeddings")
        if X.ndim == 2 and not X.shape[1]:
            X = X.reshape(len(X), self.erasure.n_features)
        if not len(X):
            return np.empty((0, self.erasure.n_features))
        if X.ndim != 2:
            raise InputError(
                "Embeddings come as a list of vectors", f"shape {X.shape}", "Pass [vector] for one"
            )
        clean = np.asarray(self.erasure.transform(X))
        return unit(clean) if self.normalize else clean

    def lists(self, embeddings: Any) -> list[list[float]]:
        """The same as lists.

        Parameters
        ----------
        embeddings : list of lists, list of arrays or array of shape (n, d)

        Returns
        -------
        list of lists of float
        """
        return [list(map(float, row)) for row in self.array(embeddings)]

    def check_continues(
        self, before: Any, after: Any, what: str, remedy: str, *, by_cosine: bool = False
    ) -> None:
        """Refuse to go on with what another erasure began.

        Parameters
        ----------
        before, after : arrays of shape (n, d)
            Some vectors of a store, and what it holds as their erased twins.
        what : str
            What holds them, for the message.
        remedy : str
            How to begin anew.
        by_cosine : bool
            Whether the store gives all vectors length one.

        Raises
        ------
        InputError
        """
        if not len(before):
            return
        wanted, there = self.array(before).astype(np.float64), np.asarray(after, dtype=np.float64)
        if by_cosine:
            wanted, there = unit(wanted), unit(there)
        off = np.linalg.norm(wanted - there, axis=1)
        if (off > CLOSE * np.linalg.norm(wanted, axis=1).max()).any():
            raise InputError(
                f"{what} holds what another erasure made",
                f"vectors that differ by up to {off.max():.2g}",
                remedy,
            )


def unit(X: NDArray[Any]) -> NDArray[Any]:
    """Rows of length one.

    Parameters
    ----------
    X : array of shape (n, d)

    Returns
    -------
    array of shape (n, d)

    Raises
    ------
    InputError
        For a row without length.
    """
    lengths = np.linalg.norm(X.astype(np.float64), axis=1, keepdims=True)
    if not lengths.all():
        raise InputError(
            "Nothing is left of an embedding: it has no direction",
            f"row {int(np.flatnonzero(lengths[:, 0] == 0)[0])} of {len(X)}",
            "Do not normalise, or leave this text away",
        )
    found: NDArray[Any] = (X / lengths).astype(X.dtype)
    return found
