"""Datasets of Hugging Face: a function for ``dataset.map``.

Erasers take datasets as they are: ``fit(dataset, vectors="embedding", concept="gender")``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.errors import InputError
from expunge.files.naming import check_name
from expunge.inputs.matrices import as_matrix
from expunge.maps import RowMap, as_row_map
from expunge.optional import require

__all__ = ["erase_batch"]

datasets = require("datasets", "datasets")


class _EraseBatch:
    """What `erase_batch` gives: an object of plain parts, so that `map` can send and hash it."""

    def __init__(self, erasure: RowMap, vectors: str, into: str) -> None:
        self.erasure, self.vectors, self.into = erasure, vectors, into

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        if self.vectors not in batch:
            check_name(self.vectors, list(batch), "column", "the dataset")
        rows = batch[self.vectors]
        missing = [i for i, row in enumerate(rows) if row is None]
        if missing:
            raise InputError(
                "A vector is missing (null)",
                f"row {missing[0]} of a batch of the column {self.vectors!r}",
                "Drop such rows first: dataset.filter(lambda row: row[name] is not None)",
            )
        X = as_matrix(rows, name=self.vectors)
        if X.ndim == 1:
            raise InputError(
                "One row came, not a batch of them",
                f"{self.vectors!r} of shape {X.shape}",
                "Call dataset.map(..., batched=True)",
            )
        return {self.into: np.asarray(self.erasure.transform(X))}


def erase_batch(
    erasure: Any, vectors: str = "embedding", into: str | None = None
) -> Callable[[Mapping[str, Any]], dict[str, NDArray[Any]]]:
    """A function for ``dataset.map(..., batched=True)`` that erases a column of vectors.

    Parameters
    ----------
    erasure : Erasure, NonlinearErasure or fitted eraser
    vectors : str
        The column of lists.
    into : str, optional
        The column to write; the same by default.

    Returns
    -------
    function of a batch
        It can be pickled, and equal erasures give equal fingerprints, so that `map` finds what it
        has computed before.

    Examples
    --------
    >>> import datasets
    >>> import expunge as ex
    >>> from expunge.integrations.datasets import erase_batch
    >>> people = datasets.Dataset.from_dict({"embedding": [[3.0, 4.0], [1.0, 2.0]]})
    >>> first = ex.Erasure([[1.0], [0.0]], [[1.0, 0.0]])
    >>> datasets.disable_progress_bars()
    >>> people.map(erase_batch(first, into="clean"), batched=True)["clean"][0]
    [0.0, 4.0]
    """
    return _EraseBatch(as_row_map(erasure), vectors, vectors if into is None else into)
