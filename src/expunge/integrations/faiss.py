"""Erasures in FAISS: a transform that an index applies to vectors and to queries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.erasure import Erasure
from expunge.errors import InputError
from expunge.inputs import check_width
from expunge.integrations.dense_map import dense_map
from expunge.optional import require
from expunge.parallel import blocks

__all__ = ["erase_index", "to_faiss"]

faiss = require("faiss", "faiss")

CHUNK = 65_536  # vectors moved at once


def to_faiss(erasure: Erasure) -> Any:
    """The erasure as a linear transform of FAISS, x -> (I - L R) x + L R c + o, in float32.

    Parameters
    ----------
    erasure : Erasure

    Returns
    -------
    faiss.LinearTransform
        For ``faiss.IndexPreTransform(transform, index)``, which then erases everything that is
        added and every query. What is in `index` already stays as it is; see `erase_index`.

    Examples
    --------
    >>> import faiss
    >>> import numpy as np
    >>> import expunge as ex
    >>> transform = ex.integrations.faiss.to_faiss(ex.Erasure([[1.0], [0.0]], [[1.0, 0.0]]))
    >>> index = faiss.IndexPreTransform(transform, faiss.IndexFlatL2(2))
    >>> index.add(np.array([[9, 4], [3, 0]], dtype=np.float32))
    >>> index.search(np.array([[3, 4]], dtype=np.float32), 1)[1]
    array([[0]])
    """
    weight, bias = dense_map(erasure)
    transform = faiss.LinearTransform(len(bias), len(bias), True)
    faiss.copy_array_to_vector(weight.astype(np.float32).ravel(), transform.A)
    faiss.copy_array_to_vector(bias.astype(np.float32), transform.b)
    transform.is_trained = True
    transform.set_is_orthonormal()
    return transform


def erase_index(index: Any, erasure: Erasure) -> Any:
    """A copy of an index in which the stored vectors are erased, and queries will be.

    The vectors are read back from the index, so it must hold them: flat, HNSW and IVF indexes do,
    with an IndexIDMap around them or not; compressed ones give back what compression left. They
    keep their numbers.

    Parameters
    ----------
    index : faiss.Index
        Left as it is.
    erasure : Erasure

    Returns
    -------
    faiss.IndexPreTransform

    Examples
    --------
    >>> import faiss
    >>> import numpy as np
    >>> import expunge as ex
    >>> index = faiss.IndexFlatL2(2)
    >>> index.add(np.array([[9, 4], [3, 0]], dtype=np.float32))
    >>> first = ex.Erasure([[1.0], [0.0]], [[1.0, 0.0]])
    >>> index.search(np.array([[3, 4]], dtype=np.float32), 1)[1]
    array([[1]])
    >>> clean = ex.integrations.faiss.erase_index(index, first)
    >>> clean.search(np.array([[3, 4]], dtype=np.float32), 1)[1]
    array([[0]])
    """
    check_width(
        index.d,
        erasure.n_features,
        "The index holds vectors of",
        received=type(index).__name__,
        remedy="Pass an erasure that was fitted on these vectors",
    )
    empty = faiss.clone_index(index)
    empty.reset()
    clean = faiss.IndexPreTransform(to_faiss(erasure), empty)
    for vectors, ids in _stored(index):
        clean.add(vectors) if ids is None else clean.add_with_ids(vectors, ids)
    return clean


def _stored(index: Any) -> Iterator[tuple[NDArray[np.float32], NDArray[np.int64] | None]]:
    """The vectors of an index in the order they were added, with their numbers if it maps them."""
    owner, ids = faiss.clone_index(index), None
    inner = owner
    if isinstance(owner, faiss.IndexIDMap | faiss.IndexIDMap2):
        ids, inner = faiss.vector_to_array(owner.id_map), faiss.downcast_index(owner.index)
    try:
        if hasattr(inner, "make_direct_map"):
            inner.make_direct_map()
        for lo, hi in blocks(0, index.ntotal, CHUNK):
            vectors = np.empty((hi - lo, index.d), dtype=np.float32)
            for i in range(lo, hi):  # by ones: the call for many ends the process where it fails
                inner.reconstruct(i, vectors[i - lo])
            yield vectors, None if ids is None else ids[lo:hi]
    except RuntimeError as error:
        raise InputError(
            "The index does not give its vectors back in order",
            f"{type(index).__name__} ({str(error).rpartition(': ')[2]})",
            "Build a new IndexPreTransform(to_faiss(erasure), ...) and add the vectors again",
        ) from error
