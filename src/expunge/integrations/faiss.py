"""Erasures in FAISS: a transform that an index applies to vectors and to queries."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.erasure import Erasure
from expunge.errors import InputError
from expunge.inputs import check_width
from expunge.integrations.dense_map import dense_map
from expunge.maps import as_erasure
from expunge.optional import require

__all__ = ["erase_index", "to_faiss"]

faiss = require("faiss", "faiss")

TRAINING = 100_000  # vectors that an index learns from again
INSIDE = ("index", "storage", "base_index", "refine_index")  # where an index has another in it


def to_faiss(erasure: Erasure) -> Any:
    """The erasure as a linear transform of FAISS, x -> (I - L R) x + L R c + o, in float32.

    Parameters
    ----------
    erasure : Erasure or fitted eraser

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


def erase_index(
    index: Any, erasure: Erasure, *, vectors: Any = None, renormalize: bool = False
) -> Any:
    """A copy of an index in which the stored vectors are erased, and queries will be.

    The vectors are read back from flat, HNSW and IVF indexes, with an IndexIDMap around them or
    not. They keep their numbers. An index that compresses gives back other vectors than those of
    the fit, in which erasing leaves part of the concept: there, pass the vectors themselves.
    Whatever the index learnt from its vectors, as the cells of IVF and the codebooks of product
    quantization, is learnt again from the erased ones: a code says which entry of a codebook is
    nearest, and entries that differ in the concept would tell of it. An index that has learnt
    but is empty has to be trained again before anything is added.

    An index for cosines ("L2norm,Flat", say) holds vectors of length one, so that the erasure has
    to be one of such vectors. What is added and searched is normalised, then erased. Scores are
    inner products of erased vectors, which are shorter than one. Normalising them once more would
    make cosines of them, but their lengths tell of what was taken away, and a vector divided by
    its length tells of it again.

    Parameters
    ----------
    index : faiss.Index
        Left as it is.
    erasure : Erasure or fitted eraser
    vectors : array of shape (n, d), optional
        What was added to the index, in order; needed where it compresses.
    renormalize : bool
        Whether an index for cosines is to normalise erased vectors too. Nothing is promised then:
        measure what is left with `expunge.audit`.

    Returns
    -------
    faiss.IndexPreTransform

    Raises
    ------
    InputError
        For a compressing index without its vectors, and one that does not give them back in order.

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
    erasure = as_erasure(erasure)
    check_width(
        index.d,
        erasure.n_features,
        "The index holds vectors of",
        received=type(index).__name__,
        remedy="Pass an erasure that was fitted on these vectors",
    )
    norm, plain = _normalised(index)
    if renormalize and norm is None:
        raise InputError(
            "Only an index for cosines normalises",
            f"renormalize=True and {type(faiss.downcast_index(index)).__name__}",
            'Build it as "L2norm,Flat", or leave renormalize away',
        )
    rows, ids = _stored(plain) if vectors is None else _given(index, vectors), _ids(index)
    if norm is not None and vectors is not None:
        rows = norm.apply(rows)
    erased = erasure.transform(rows)
    if renormalize:
        erased = norm.apply(erased)
    clean = faiss.clone_index(plain)
    clean.reset()
    if norm is not None and ids is not None:  # the numbers lay around the normalisation
        clean = type(faiss.downcast_index(index))(clean)
    _train_again(clean, erased)
    if len(erased):
        clean.add(erased) if ids is None else clean.add_with_ids(erased, ids)
    if renormalize:
        clean = faiss.IndexPreTransform(_norm_like(norm), clean)
    found = faiss.IndexPreTransform(to_faiss(erasure), clean)
    return found if norm is None else faiss.IndexPreTransform(_norm_like(norm), found)


def _normalised(index: Any) -> tuple[Any, Any]:
    """The normalisation that an index begins with, and the index behind it; None without one."""
    outer = faiss.downcast_index(index)
    mapped = isinstance(outer, faiss.IndexIDMap | faiss.IndexIDMap2)
    inner = faiss.downcast_index(outer.index) if mapped else outer
    if not isinstance(inner, faiss.IndexPreTransform):
        return None, index
    steps = [faiss.downcast_VectorTransform(inner.chain.at(i)) for i in range(inner.chain.size())]
    if not steps or not all(isinstance(step, faiss.NormalizationTransform) for step in steps):
        return None, index
    behind = faiss.downcast_index(inner.index)
    return _norm_like(steps[0]), behind


def _norm_like(step: Any) -> Any:
    return faiss.NormalizationTransform(step.d_in, step.norm)


def _train_again(index: Any, vectors: NDArray[np.float32]) -> None:
    """Let an index forget what it learnt, and learn from these vectors; flat ones learn nothing.

    Without vectors it stays as before it learnt.
    """
    if not _forget_all(index) or not len(vectors):
        return
    sample = np.random.default_rng(0).permutation(len(vectors))[:TRAINING]
    index.train(np.ascontiguousarray(vectors[np.sort(sample)]))


def _forget_all(index: Any) -> bool:
    """Whether an index learns, itself or a part of it; one that does is as before it learnt."""
    level = faiss.downcast_index(index)
    if hasattr(level, "prq") or hasattr(level, "plsq"):
        raise InputError(
            "The codebooks of this index do not learn twice, and know the concept",
            type(level).__name__,
            "Build a new IndexPreTransform(to_faiss(erasure), ...), train it and add the vectors",
        )
    cells = getattr(level, "quantizer", None) or getattr(
        getattr(level, "q1", None), "quantizer", None
    )
    below = [getattr(level, part, None) for part in INSIDE]
    inside = [part for part in below if part is not None]
    learns = not inside and not isinstance(level, faiss.IndexFlat)
    for part in inside:
        learns |= _forget_all(part)
    if isinstance(level, faiss.IndexPreTransform):
        for i in range(level.chain.size()):
            learns |= _forget(faiss.downcast_VectorTransform(level.chain.at(i)))
    if cells is not None:
        _forget_all(cells)
        with suppress(RuntimeError):  # one that is not a list of cells, and is trained as a whole
            cells.reset()
    if learns:
        level.is_trained = False  # else the level above would not train it
    return learns


def _forget(step: Any) -> bool:
    """Whether a transform learns; one that does is then as before it learnt."""
    if not hasattr(step, "train") or isinstance(step, faiss.RandomRotationMatrix):
        return False
    step.is_trained = False
    return True


def _stored(index: Any) -> NDArray[np.float32]:
    """The vectors of an index in the order they were added."""
    inner = _inside(index)
    _check_lossless(index, inner)
    try:
        if isinstance(inner, faiss.IndexIVF):
            _check_in_order(inner)  # the call below would pass over vectors of other numbers
        found: NDArray[np.float32] = inner.reconstruct_n(0, index.ntotal)
        return found
    except RuntimeError as error:
        raise InputError(
            "The index does not give its vectors back in order",
            f"{type(index).__name__} ({str(error).rpartition(': ')[2]})",
            "Build a new IndexPreTransform(to_faiss(erasure), ...) and add the vectors again",
        ) from error


def _inside(index: Any) -> Any:
    """An index without the map of numbers around it."""
    inner = faiss.downcast_index(index)
    mapped = isinstance(inner, faiss.IndexIDMap | faiss.IndexIDMap2)
    return faiss.downcast_index(inner.index) if mapped else inner


def _ids(index: Any) -> NDArray[np.int64] | None:
    outer = faiss.downcast_index(index)
    mapped = isinstance(outer, faiss.IndexIDMap | faiss.IndexIDMap2)
    return faiss.vector_to_array(outer.id_map) if mapped else None


def _given(index: Any, vectors: Any) -> NDArray[np.float32]:
    rows = np.ascontiguousarray(vectors, dtype=np.float32)
    if rows.shape != (index.ntotal, index.d):
        raise InputError(
            "vectors must be those that were added to the index",
            f"shape {rows.shape} for {index.ntotal} vectors of {index.d} features",
            "Pass all of them, in the order they were added",
        )
    return rows


def _check_lossless(index: Any, inner: Any) -> None:
    storage = getattr(inner, "storage", None)
    holder = inner if storage is None else faiss.downcast_index(storage)
    if getattr(holder, "code_size", 0) != 4 * index.d:  # float32 numbers as they came
        raise InputError(
            "The index compresses its vectors: what it gives back is not what the erasure was "
            "fitted on, and its codes would tell of the concept",
            type(inner).__name__,
            "Pass the vectors that were added as vectors=",
        )


def _check_in_order(index: Any) -> None:
    """Refuse numbers other than 0, 1, 2, ... in an IVF index."""
    lists = index.invlists
    seen = np.zeros(index.ntotal, dtype=bool)
    for i in range(index.nlist):
        size = lists.list_size(i)
        if size:
            numbers = faiss.rev_swig_ptr(lists.get_ids(i), size)
            seen[numbers[(numbers >= 0) & (numbers < index.ntotal)]] = True
    if not seen.all():
        raise RuntimeError("the numbers of its vectors are not sequential ids")
