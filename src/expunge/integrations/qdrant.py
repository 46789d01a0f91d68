"""Qdrant: the vectors of a collection erased into a second named vector, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.errors import InputError
from expunge.files.naming import check_name
from expunge.inputs import check_number, check_width
from expunge.integrations.embedded import SOME, EmbeddingEraser
from expunge.optional import require

__all__ = ["erase_collection"]

models = require("qdrant_client.models", "qdrant")


def erase_collection(
    client: Any,
    collection: str,
    erasure: Any,
    *,
    vector: str = "",
    into: str = "erased",
    normalize: bool = False,
    batch_size: int = 1000,
) -> int:
    """Erase the vectors of a collection into another named vector of the same points.

    Points that have the new vector already are passed over, so that an interrupted call, or one
    after more points have come, goes on where the other ended. Points without the vector are left
    as they are. Search with ``using=into`` and erased queries: ``erasure(query[None])[0]``.

    Where vectors are compared by cosines Qdrant stores them with length one: fit the erasure on
    what it gives back. The new vector is made for inner products, since erased vectors that are
    normalised again tell of the concept again.

    Parameters
    ----------
    client : qdrant_client.QdrantClient
        Of a server (1.18 or later, if the new vector is not there yet), a folder or memory.
    collection : str
    erasure : Erasure or fitted eraser
    vector : str
        The name of the vector; "" is the one without a name.
    into : str
        The name of the new one, which is created if it is not there.
    normalize : bool
        Whether erased vectors get length one, and are compared by cosines; nothing is promised
        then.
    batch_size : int

    Returns
    -------
    int
        Number of points that were erased by this call.

    Raises
    ------
    InputError
        For names that are not there, vectors of another width, and a vector `into` that holds
        what another erasure made.

    Examples
    --------
    >>> import numpy as np
    >>> from qdrant_client import QdrantClient, models
    >>> import expunge as ex
    >>> client = QdrantClient(":memory:")
    >>> params = models.VectorParams(size=2, distance="Dot")
    >>> _ = client.create_collection("people", vectors_config=params)
    >>> _ = client.upsert("people", [models.PointStruct(id=1, vector=[3.0, 4.0])])
    >>> first = ex.Erasure([[1.0], [0.0]], [[1.0, 0.0]])
    >>> ex.integrations.qdrant.erase_collection(client, "people", first)
    1
    >>> client.retrieve("people", [1], with_vectors=["erased"])[0].vector
    {'erased': [0.0, 4.0]}
    """
    check_number(batch_size, "batch_size", least=1, whole=True)
    eraser = EmbeddingEraser(erasure, normalize)
    _prepare(client, collection, eraser, vector, into)
    _check_same(client, collection, eraser, vector, into)
    done = 0
    for points, X in _batches(client, collection, vector, into, int(batch_size)):
        clean = eraser.lists(X)
        changed = [
            models.PointVectors(id=point, vector={into: row})
            for point, row in zip(points, clean, strict=True)
        ]
        client.update_vectors(collection, changed)
        done += len(changed)
    return done


def _prepare(client: Any, collection: str, eraser: EmbeddingEraser, vector: str, into: str) -> None:
    """Check both vectors, and create the new one."""
    if not client.collection_exists(collection):
        there = [found.name for found in client.get_collections().collections]
        check_name(collection, there, "collection", "this Qdrant")
    params = client.get_collection(collection).config.params.vectors
    params = params if isinstance(params, dict) else {"": params}
    check_name(vector, list(params), "vector", f"the collection {collection!r}")
    if into == vector:
        raise InputError(
            "The erased vector needs a name of its own",
            f"vector={vector!r} and into={into!r}",
            "Pass another name as into=",
        )
    own = params[vector]
    for name in (vector, into):
        if name in params and params[name].multivector_config is not None:
            raise InputError(
                "A point has several vectors of this name",
                f"the multivector {name!r} of {collection!r}",
                "Erase each vector yourself, by Erasure.transform",
            )
        if name in params:
            check_width(
                params[name].size,
                eraser.erasure.n_features,
                f"Vectors {name!r} of the collection have",
                received=f"{collection!r} with vectors of size {params[name].size}",
            )
    if into not in params:
        cosine, dot = models.Distance.COSINE, models.Distance.DOT
        distance = dot if own.distance == cosine else own.distance
        config = models.DenseVectorConfig(
            size=own.size, distance=cosine if eraser.normalize else distance, datatype=own.datatype
        )
        client.create_vector_name(collection, into, models.DenseVectorNameConfig(dense=config))


def _batches(
    client: Any, collection: str, vector: str, into: str, size: int
) -> Iterator[tuple[list[Any], NDArray[np.float32]]]:
    """Numbers and vectors of points that have the one vector and not the other."""
    wanted = models.Filter(
        must=[models.HasVectorCondition(has_vector=vector)],
        must_not=[models.HasVectorCondition(has_vector=into)],
    )
    before: list[Any] = []
    while True:  # those that were written are no longer among them
        found, _ = client.scroll(
            collection,
            scroll_filter=wanted,
            limit=size,
            with_payload=False,
            with_vectors=[vector] if vector else True,
        )
        points = [point.id for point in found]
        if not points:
            return
        if points == before:
            raise InputError(
                "What was written does not appear in the collection",
                f"{len(points)} points of {collection!r} that stay without the vector {into!r}",
                "Try again when it is there: points that are done are passed over",
            )
        yield points, _vectors(found, vector)
        before = points


def _check_same(
    client: Any, collection: str, eraser: EmbeddingEraser, vector: str, into: str
) -> None:
    """Refuse to go on with what another erasure began."""
    both = models.Filter(
        must=[models.HasVectorCondition(has_vector=name) for name in (vector, into)]
    )
    found, _ = client.scroll(
        collection, scroll_filter=both, limit=SOME, with_payload=False, with_vectors=True
    )
    if not found:
        return
    distance = client.get_collection(collection).config.params.vectors[into].distance
    eraser.check_continues(
        _vectors(found, vector),
        _vectors(found, into),
        f"The vector {into!r} of the collection {collection!r}",
        "Pass another name as into=, or remove it first by delete_vector_name",
        by_cosine=distance == models.Distance.COSINE,
    )


def _vectors(points: list[Any], name: str) -> NDArray[np.float32]:
    rows = [p.vector[name] if isinstance(p.vector, dict) else p.vector for p in points]
    return np.asarray(rows, dtype=np.float32)
