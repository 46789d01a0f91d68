"""Chroma: an embedding function whose documents and queries are erased."""

from __future__ import annotations

import warnings
from typing import Any

from expunge.erasure import Erasure
from expunge.errors import InputError
from expunge.integrations.embedded import EmbeddingEraser
from expunge.maps import as_erasure
from expunge.optional import require

__all__ = ["ErasedEmbeddingFunction"]

EmbeddingFunction: Any = require("chromadb.api.types", "chroma").EmbeddingFunction
functions: Any = require("chromadb.utils.embedding_functions", "chroma")


@functions.register_embedding_function  # so that a collection never falls back on another
class ErasedEmbeddingFunction(EmbeddingFunction):  # type: ignore[misc]
    """What another embedding function gives, erased.

    Chroma keeps the erasure with the collection, and finds it again in ``get_collection(name)``;
    pass the function there once more if the one inside is not registered with Chroma. Inner
    products (``{"hnsw": {"space": "ip"}}``) and Euclidean distances, the default, are those of
    erased embeddings. The space "cosine" normalises them, which tells of the concept again; see
    `expunge.integrations.embedded.EmbeddingEraser`.

    Parameters
    ----------
    function : chromadb.EmbeddingFunction
    erasure : Erasure or fitted eraser
        Of what the function gives.
    normalize : bool
        Whether erased embeddings get length one.

    Examples
    --------
    >>> import numpy as np
    >>> import chromadb
    >>> import expunge as ex
    >>> class Letters(chromadb.EmbeddingFunction):
    ...     def __init__(self):
    ...         pass
    ...     def __call__(self, input):
    ...         return [np.array([text.count(c) for c in "she"], np.float32) for text in input]
    >>> first = ex.Erasure(np.eye(3)[:, :1], np.eye(3)[:1])
    >>> clean = ex.integrations.chroma.ErasedEmbeddingFunction(Letters(), first)
    >>> clean(["she sees"])
    [array([0., 1., 3.], dtype=float32)]
    """

    def __init__(self, function: Any, erasure: Any, *, normalize: bool = False) -> None:
        if not callable(function):
            raise InputError(
                "function is no embedding function", type(function).__name__, "Pass such a function"
            )
        self.function = function
        self.eraser = EmbeddingEraser(as_erasure(erasure), normalize)  # kept with a collection

    def __call__(self, input: Any) -> Any:
        """Erased embeddings of documents."""
        return list(self.eraser.array(self.function(input)))

    def embed_query(self, input: Any) -> Any:
        """Erased embeddings of queries."""
        own = getattr(self.function, "embed_query", self.function)
        return list(self.eraser.array(own(input)))

    @staticmethod
    def name() -> str:
        """What Chroma remembers with a collection."""
        return "expunge_erased"

    def get_config(self) -> dict[str, Any]:
        """What Chroma writes down: the numbers of the erasure, and the other function's own."""
        e = as_erasure(self.eraser.erasure)
        parts = {"left": e.left, "right": e.right, "center": e.center, "offset": e.offset}
        return {
            "erasure": {name: None if A is None else A.tolist() for name, A in parts.items()},
            "normalize": self.eraser.normalize,
            "function": _config_of(self.function),
        }

    @staticmethod
    def build_from_config(config: dict[str, Any]) -> Any:
        """The function of a collection, if the one inside it is known to Chroma."""
        erasure, normalize = Erasure(**config["erasure"]), bool(config["normalize"])
        own = _built(config["function"])
        return ErasedEmbeddingFunction(own, erasure, normalize=normalize)

    def is_legacy(self) -> bool:
        """No: it has a name and can be built from its config."""
        return False

    def default_space(self) -> str:
        """Euclidean distances, which need no normalising."""
        return "l2"


def _config_of(function: Any) -> dict[str, Any] | None:
    """Name and config of an embedding function; None for one that has no such."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of functions without a name
            if function.is_legacy():
                return None
        return {"name": function.name(), "config": function.get_config()}
    except Exception:  # whatever a function without these methods raises
        return None


def _built(config: dict[str, Any] | None) -> Any:
    """The function of that config; one that says what is missing where it cannot be built."""
    try:
        assert config is not None
        return functions.known_embedding_functions[config["name"]].build_from_config(
            config["config"]
        )
    except Exception:  # of any package that may be missing, and for no config at all
        return _Unknown(config)


class _Unknown:
    """Stands for an embedding function that a collection does not know."""

    def __init__(self, config: Any) -> None:
        self.config = config

    def __call__(self, input: Any) -> Any:
        raise InputError(
            "The collection does not know the embedding function inside the erased one",
            f"a collection made with {self.config}",
            "Pass the ErasedEmbeddingFunction to get_collection again",
        )
