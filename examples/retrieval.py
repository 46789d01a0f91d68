"""Retrieval: LangChain, LlamaIndex and Chroma with documents and queries erased alike."""

import chromadb
import numpy as np
from chromadb.config import Settings
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import TextNode

import expunge as ex
from expunge.data import load_glove

glove = load_glove()  # words stand for documents, their vectors for an embedding model
words = [*glove.dev.words[:200], *glove.test.words[:200]]
labels = np.array([*glove.dev.y[:200], *glove.test.y[:200]])
eraser = ex.LEACE().fit(glove.train.X[::3], glove.train.y[::3])


class Glove(Embeddings):
    """An embedding model of LangChain."""

    def embed_documents(self, texts):
        return [glove.vector(text).tolist() for text in texts]

    def embed_query(self, text):
        return glove.vector(text).tolist()


class GloveOfLlama(BaseEmbedding):
    """The same for LlamaIndex."""

    def _get_text_embedding(self, text):
        return glove.vector(text).tolist()

    _get_query_embedding = _get_text_embedding

    async def _aget_query_embedding(self, query):
        return self._get_text_embedding(query)


def glove_of_chroma(input):
    return [glove.vector(text) for text in input]


def same(found):
    """Share of the words found whose gender is that of the query."""
    label = dict(zip(words, labels, strict=True))
    return np.mean([[label[word] == label[q] for word in hits] for q, hits in found.items()])


queries = words[::20]
# -- erase: LangChain
clean = ex.integrations.langchain.ErasedEmbeddings(Glove(), eraser)
store = InMemoryVectorStore.from_texts(words, clean)
# --
plain = InMemoryVectorStore.from_texts(words, Glove())
for name, which in (("before", plain), ("LangChain", store)):
    hits = {q: [d.page_content for d in which.similarity_search(q, k=11)][1:] for q in queries}
    print(f"{name}: {same(hits):.0%} of the words found are of the gender of the query")

# -- erase: LlamaIndex
model = ex.integrations.llama_index.ErasedEmbedding(GloveOfLlama(), eraser)
index = VectorStoreIndex([TextNode(text=w, id_=w) for w in words], embed_model=model)
# --
retriever = index.as_retriever(similarity_top_k=11)
hits = {q: [hit.node.id_ for hit in retriever.retrieve(q)][1:] for q in queries}
print(f"LlamaIndex: {same(hits):.0%}")

client = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
# -- erase: Chroma, which keeps the erasure with the collection
function = ex.integrations.chroma.ErasedEmbeddingFunction(glove_of_chroma, eraser)
collection = client.create_collection("words", embedding_function=function)
# --
collection.add(ids=words, documents=words)
found = collection.query(query_texts=queries, n_results=11)["ids"]
print(f"Chroma: {same({q: hits[1:] for q, hits in zip(queries, found, strict=True)}):.0%}")
print(eraser.certificate_)
