"""Other people's libraries, each imported when its name is first used.

Models: `ex.integrations.transformers`, `.sentence_transformers`, `.torch`, `.onnx`, `.adversarial`.
Retrieval: `.langchain`, `.llama_index`, `.chroma`, `.qdrant`, `.lancedb`, `.faiss`. Tables and
cells: `.datasets`, `.anndata`. Without the package behind a name, the error says which extra to
install.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from expunge.errors import MissingPackage

__all__ = [
    "adversarial",
    "anndata",
    "chroma",
    "datasets",
    "faiss",
    "lancedb",
    "langchain",
    "llama_index",
    "onnx",
    "qdrant",
    "sentence_transformers",
    "torch",
    "transformers",
]

EXTRAS = {
    "adversarial": "transformers",
    "llama_index": "llama-index",
    "sentence_transformers": "sentence-transformers",
}


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return importlib.import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("expunge"):
            raise
        raise MissingPackage(error.name, EXTRAS.get(name, name)) from error


def __dir__() -> list[str]:
    return sorted(__all__)
