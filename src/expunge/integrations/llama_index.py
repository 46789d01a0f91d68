"""LlamaIndex: an embedding model whose texts and queries are erased."""

from __future__ import annotations

from typing import Any

from expunge.errors import InputError
from expunge.integrations.embedded import EmbeddingEraser
from expunge.optional import require

__all__ = ["ErasedEmbedding"]

BaseEmbedding: Any = require("llama_index.core.base.embeddings.base", "llama-index").BaseEmbedding
private = require("llama_index.core.bridge.pydantic", "llama-index").PrivateAttr


class ErasedEmbedding(BaseEmbedding):  # type: ignore[misc]
    """What another embedding model gives, erased: for any index of LlamaIndex.

    Parameters
    ----------
    model : llama_index.core.base.embeddings.base.BaseEmbedding
    erasure : Erasure or fitted eraser
        Of what ``model.get_text_embedding`` gives.
    normalize : bool
        Whether erased embeddings get length one; see
        `expunge.integrations.embedded.EmbeddingEraser` for what that costs.
    **settings : anything
        Of BaseEmbedding, such as `embed_batch_size`; by default those of the model.

    Examples
    --------
    >>> from llama_index.core.embeddings import MockEmbedding
    >>> import numpy as np
    >>> import expunge as ex
    >>> first = ex.Erasure(np.eye(3)[:, :1], np.eye(3)[:1])
    >>> model = MockEmbedding(embed_dim=3)
    >>> clean = ex.integrations.llama_index.ErasedEmbedding(model, first)
    >>> clean.get_text_embedding("he works"), clean.get_query_embedding("she works")
    ([0.0, 0.5, 0.5], [0.0, 0.5, 0.5])
    """

    _model: Any = private()
    _eraser: EmbeddingEraser = private()

    def __init__(
        self, model: Any, erasure: Any, *, normalize: bool = False, **settings: Any
    ) -> None:
        if not isinstance(model, BaseEmbedding):
            raise InputError(
                "model is no BaseEmbedding of LlamaIndex", type(model).__name__, "Pass such a model"
            )
        own = {"model_name": model.model_name, "embed_batch_size": model.embed_batch_size}
        super().__init__(**{**own, **settings})
        self._model = model
        self._eraser = EmbeddingEraser(erasure, normalize)

    @classmethod
    def class_name(cls) -> str:
        """What LlamaIndex calls it."""
        return "ErasedEmbedding"

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._eraser.lists([self._model._get_query_embedding(query)])[0]

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._eraser.lists([self._model._get_text_embedding(text)])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._eraser.lists(self._model._get_text_embeddings(texts))

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._eraser.lists([await self._model._aget_query_embedding(query)])[0]

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return self._eraser.lists([await self._model._aget_text_embedding(text)])[0]

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._eraser.lists(await self._model._aget_text_embeddings(texts))
