"""LangChain: an embedding model whose documents and queries are erased."""

from __future__ import annotations

from typing import Any

from expunge.errors import InputError
from expunge.integrations.embedded import EmbeddingEraser
from expunge.optional import require

__all__ = ["ErasedEmbeddings"]

Embeddings: Any = require("langchain_core.embeddings", "langchain").Embeddings


class ErasedEmbeddings(Embeddings):  # type: ignore[misc]
    """What another embedding model gives, erased: for any vector store of LangChain.

    Parameters
    ----------
    model : langchain_core.embeddings.Embeddings
    erasure : Erasure or fitted eraser
        Of what ``model.embed_documents`` gives.
    normalize : bool
        Whether erased embeddings get length one; see
        `expunge.integrations.embedded.EmbeddingEraser` for what that costs.

    Examples
    --------
    >>> from langchain_core.embeddings import DeterministicFakeEmbedding
    >>> import numpy as np
    >>> import expunge as ex
    >>> model = DeterministicFakeEmbedding(size=3)
    >>> first = ex.Erasure(np.eye(3)[:, :1], np.eye(3)[:1])
    >>> clean = ex.integrations.langchain.ErasedEmbeddings(model, first)
    >>> clean.embed_query("she works")[0], clean.embed_documents(["he works"])[0][0]
    (0.0, 0.0)
    """

    def __init__(self, model: Any, erasure: Any, *, normalize: bool = False) -> None:
        if not isinstance(model, Embeddings):
            raise InputError(
                "model is no Embeddings of LangChain", type(model).__name__, "Pass such a model"
            )
        self.model = model
        self.eraser = EmbeddingEraser(erasure, normalize)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Erased embeddings of documents."""
        return self.eraser.lists(self.model.embed_documents(texts))

    def embed_query(self, text: str) -> list[float]:
        """The erased embedding of a query."""
        return self.eraser.lists([self.model.embed_query(text)])[0]

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """Erased embeddings of documents, by the model's own asynchronous call."""
        return self.eraser.lists(await self.model.aembed_documents(texts))

    async def aembed_query(self, text: str) -> list[float]:
        """The erased embedding of a query, by the model's own asynchronous call."""
        return self.eraser.lists([await self.model.aembed_query(text)])[0]
