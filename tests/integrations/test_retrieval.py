"""Retrieval: documents and queries erased alike, in the stores and chains that people use.

The embedding model is a table of vectors, so that what a store finds can be computed by NumPy.
"""

import asyncio
import os

import numpy as np
import pytest

os.environ["ANONYMIZED_TELEMETRY"] = "False"

import expunge as ex
from expunge.integrations.embedded import EmbeddingEraser

N, D = 120, 5
RNG = np.random.default_rng(0)
Y = RNG.integers(0, 2, N)
X = (RNG.normal(size=(N, D)) + 3 * np.outer(Y, [1, 0, 0, 1, 0])).astype(np.float32)
TEXTS = [f"text {i}" for i in range(N)]
TABLE = dict(zip(TEXTS, X.tolist(), strict=True))
ERASER = ex.LEACE().fit(X, Y)
CLEAN = ERASER.transform(X)


def nearest(rows, query, k=4):
    """Slow twin: the nearest by Euclidean distance."""
    return np.argsort(((rows - rows[query]) ** 2).sum(axis=1))[:k].tolist()


def by_cosine(rows, query, k=4):
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return np.argsort(-unit @ unit[query])[:k].tolist()


def test_erasing_changes_what_is_found():
    """Else nothing below would be shown."""
    assert any(nearest(X, i) != nearest(CLEAN, i) for i in range(5))
    assert any(by_cosine(X, i) != by_cosine(CLEAN, i) for i in range(5))
    assert not ex.certify(ex.Erasure.identity(D), X, Y).erased


def test_lists_of_embeddings():
    eraser = EmbeddingEraser(ERASER)
    np.testing.assert_allclose(eraser.lists(X[:3].tolist()), CLEAN[:3], atol=1e-5)
    assert eraser.lists([]) == []
    assert isinstance(eraser.lists([X[0]])[0][0], float)
    unit = EmbeddingEraser(ERASER, normalize=True).lists(X)
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1, atol=1e-6)
    with pytest.raises(ex.InputError, match="5 features"):
        eraser.lists([[1.0, 2.0]])
    with pytest.raises(ex.InputError, match="list of vectors"):
        eraser.lists(X[0].tolist())
    with pytest.raises(ex.InputError, match="no direction"):
        EmbeddingEraser(ex.Erasure(np.eye(2), np.eye(2)), normalize=True).lists([[1.0, 2.0]])
    with pytest.raises(ex.InputError, match="not an erasure"):
        EmbeddingEraser("LEACE")


def test_langchain():
    pytest.importorskip("langchain_core")
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import InMemoryVectorStore

    class Table(Embeddings):
        def embed_documents(self, texts):
            return [TABLE[text] for text in texts]

        def embed_query(self, text):
            return TABLE[text]

        async def aembed_query(self, text):
            return TABLE[text]

    clean = ex.integrations.langchain.ErasedEmbeddings(Table(), ERASER)
    np.testing.assert_allclose(clean.embed_documents(TEXTS), CLEAN, atol=1e-5)
    np.testing.assert_allclose(clean.embed_query(TEXTS[3]), CLEAN[3], atol=1e-5)
    np.testing.assert_allclose(asyncio.run(clean.aembed_query(TEXTS[3])), CLEAN[3], atol=1e-5)
    later = asyncio.run(clean.aembed_documents(TEXTS[:2]))
    np.testing.assert_allclose(later, CLEAN[:2], atol=1e-5)
    store = InMemoryVectorStore.from_texts(TEXTS, clean)
    for i in range(5):
        found = [document.page_content for document in store.similarity_search(TEXTS[i], k=4)]
        assert found == [TEXTS[j] for j in by_cosine(CLEAN, i)]
    unit = ex.integrations.langchain.ErasedEmbeddings(Table(), ERASER, normalize=True)
    assert np.linalg.norm(unit.embed_query(TEXTS[0])) == pytest.approx(1)
    with pytest.raises(ex.InputError, match="no Embeddings of LangChain"):
        ex.integrations.langchain.ErasedEmbeddings(TABLE, ERASER)


# of packages that LlamaIndex brings
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_llama_index():
    pytest.importorskip("llama_index.core")
    from llama_index.core import VectorStoreIndex
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.schema import TextNode

    class Table(BaseEmbedding):
        def _get_text_embedding(self, text):
            return TABLE[text]

        def _get_query_embedding(self, query):
            return TABLE[query]

        async def _aget_query_embedding(self, query):
            return TABLE[query]

    clean = ex.integrations.llama_index.ErasedEmbedding(Table(model_name="table"), ERASER)
    assert clean.model_name == "table"
    assert clean.class_name() == "ErasedEmbedding"
    np.testing.assert_allclose(clean.get_text_embedding_batch(TEXTS), CLEAN, atol=1e-5)
    np.testing.assert_allclose(clean.get_text_embedding(TEXTS[1]), CLEAN[1], atol=1e-5)
    np.testing.assert_allclose(clean.get_query_embedding(TEXTS[3]), CLEAN[3], atol=1e-5)
    for call in (clean.aget_query_embedding, clean.aget_text_embedding):
        np.testing.assert_allclose(asyncio.run(call(TEXTS[3])), CLEAN[3], atol=1e-5)
    later = asyncio.run(clean.aget_text_embedding_batch(TEXTS[:3]))
    np.testing.assert_allclose(later, CLEAN[:3], atol=1e-5)
    nodes = [TextNode(text=text, id_=text) for text in TEXTS]
    retriever = VectorStoreIndex(nodes, embed_model=clean).as_retriever(similarity_top_k=4)
    for i in range(5):
        found = [hit.node.id_ for hit in retriever.retrieve(TEXTS[i])]
        assert found == [TEXTS[j] for j in by_cosine(CLEAN, i)]
    with pytest.raises(ex.InputError, match="no BaseEmbedding"):
        ex.integrations.llama_index.ErasedEmbedding(TABLE, ERASER)


@pytest.fixture(scope="module")
def chroma():
    chromadb = pytest.importorskip("chromadb")
    from chromadb.config import Settings

    return chromadb.EphemeralClient(Settings(anonymized_telemetry=False))


def test_chroma(chroma):
    import chromadb
    from chromadb.utils.embedding_functions import register_embedding_function

    @register_embedding_function
    class Table(chromadb.EmbeddingFunction):
        def __init__(self):
            pass

        def __call__(self, input):
            return [np.array(TABLE[text], dtype=np.float32) for text in input]

        @staticmethod
        def name():
            return "a_table_of_the_tests"

        def get_config(self):
            return {}

        @staticmethod
        def build_from_config(config):
            return Table()

    clean = ex.integrations.chroma.ErasedEmbeddingFunction(Table(), ERASER)
    np.testing.assert_allclose(clean(TEXTS[:3]), CLEAN[:3], atol=1e-5)
    people = chroma.create_collection("people", embedding_function=clean)
    people.add(ids=TEXTS, documents=TEXTS)
    again = chroma.get_collection("people")  # the erasure is kept with the collection
    for i in range(5):
        for collection in (people, again):
            (found,) = collection.query(query_texts=[TEXTS[i]], n_results=4)["ids"]
            assert found == [TEXTS[j] for j in nearest(CLEAN, i)]
    unit = ex.integrations.chroma.ErasedEmbeddingFunction(Table(), ERASER, normalize=True)
    assert np.linalg.norm(unit.embed_query(TEXTS[:1])[0]) == pytest.approx(1)
    with pytest.raises(ex.InputError, match="no embedding function"):
        ex.integrations.chroma.ErasedEmbeddingFunction("table", ERASER)


def test_chroma_never_falls_back_on_another_function(chroma):
    """A query that is not erased would be compared with documents that are."""

    def plain(input):
        return [np.array(TABLE[text], dtype=np.float32) for text in input]

    clean = ex.integrations.chroma.ErasedEmbeddingFunction(plain, ERASER)
    people = chroma.create_collection("others", embedding_function=clean)
    people.add(ids=TEXTS, documents=TEXTS)
    with pytest.raises(ex.InputError, match="Pass the ErasedEmbeddingFunction"):
        chroma.get_collection("others").query(query_texts=[TEXTS[0]], n_results=1)
    (found,) = chroma.get_collection("others", embedding_function=clean).query(
        query_texts=[TEXTS[0]], n_results=4
    )["ids"]
    assert found == [TEXTS[j] for j in nearest(CLEAN, 0)]


class Broken(Exception):
    """An interruption."""


def breaking(call, after):
    """The same call, which breaks after so many."""
    calls = []

    def broken(*args, **options):
        if len(calls) == after:
            raise Broken
        calls.append(1)
        return call(*args, **options)

    return broken


LACKING = {5, 6, 77}  # points without the vector


def points(models, named):
    for i, row in enumerate(X.tolist()):
        vector = {"other": [1.0, 2.0]} if i in LACKING and named else row
        yield models.PointStruct(id=i, vector={"text": row} if vector is row and named else vector)


@pytest.mark.parametrize("named", [True, False])
def test_qdrant(named, monkeypatch):
    qdrant = pytest.importorskip("qdrant_client")
    models = qdrant.models
    client = qdrant.QdrantClient(":memory:")
    own = models.VectorParams(size=D, distance="Euclid")
    other = models.VectorParams(size=2, distance="Euclid")
    client.create_collection("p", {"text": own, "other": other} if named else own)
    client.upsert("p", list(points(models, named)))
    erase, name = ex.integrations.qdrant.erase_collection, "text" if named else ""
    lacking = len(LACKING) if named else 0
    with monkeypatch.context() as patch:
        patch.setattr(client, "update_vectors", breaking(client.update_vectors, 2))
        with pytest.raises(Broken):
            erase(client, "p", ERASER, vector=name, batch_size=30)
    assert erase(client, "p", ERASER, vector=name, batch_size=30) == N - lacking - 60
    assert erase(client, "p", ERASER, vector=name) == 0
    found, _ = client.scroll("p", limit=N, with_vectors=["erased"])
    there = {p.id: p.vector["erased"] for p in found if "erased" in (p.vector or {})}
    assert set(range(N)) - set(there) == (LACKING if named else set())
    np.testing.assert_allclose([there[i] for i in sorted(there)], CLEAN[sorted(there)], atol=1e-5)
    kept = client.retrieve("p", [0], with_vectors=True)[0].vector[name]
    np.testing.assert_allclose(kept, X[0], atol=1e-6)
    hits = client.query_points("p", query=CLEAN[1].tolist(), using="erased", limit=1).points
    assert hits[0].id == 1
    client.upsert("p", [models.PointStruct(id=999, vector={name: X[0].tolist()})])
    assert erase(client, "p", ERASER, vector=name) == 1  # one that came later
    with pytest.raises(ex.InputError, match="another erasure"):
        erase(client, "p", ex.LEACE().fit(X, X[:, 1] > 0), vector=name)
    for call, match in [
        (lambda: erase(client, "q", ERASER), "no collection 'q'"),
        (lambda: erase(client, "p", ERASER, vector="txt"), "no vector 'txt'"),
        (lambda: erase(client, "p", ERASER, vector=name, into=name), "name of its own"),
        (lambda: erase(client, "p", ex.Erasure.identity(3), vector=name), "expecting 3 features"),
        (lambda: erase(client, "p", ERASER, vector=name, batch_size=0), "batch_size"),
    ]:
        with pytest.raises(ex.InputError, match=match):
            call()


def test_qdrant_with_cosines_and_writes_that_vanish(monkeypatch):
    qdrant = pytest.importorskip("qdrant_client")
    models, client = qdrant.models, qdrant.QdrantClient(":memory:")
    client.create_collection("p", models.VectorParams(size=D, distance="Cosine"))
    client.upsert("p", list(points(models, False)))
    stored = np.array([p.vector for p in client.scroll("p", limit=N, with_vectors=True)[0]])
    np.testing.assert_allclose(np.linalg.norm(stored, axis=1), 1, atol=1e-5)
    eraser = ex.LEACE().fit(stored, Y)
    erase = ex.integrations.qdrant.erase_collection
    assert erase(client, "p", eraser) == N
    assert client.get_collection("p").config.params.vectors["erased"].distance == "Dot"
    found, _ = client.scroll("p", limit=N, with_vectors=["erased"])
    clean = np.array([p.vector["erased"] for p in found])
    assert not ex.certify(ex.Erasure.identity(D), stored, Y).erased
    assert ex.certify(ex.Erasure.identity(D), clean, Y).erased
    assert erase(client, "p", eraser, into="unit", normalize=True) == N
    assert erase(client, "p", eraser, into="unit", normalize=True) == 0
    assert client.get_collection("p").config.params.vectors["unit"].distance == "Cosine"
    monkeypatch.setattr(client, "update_vectors", lambda *args: None)
    with pytest.raises(ex.InputError, match="does not appear"):
        erase(client, "p", eraser, into="third")


@pytest.fixture
def lance(tmp_path):
    lancedb = pytest.importorskip("lancedb")
    import pyarrow as pa

    vectors = [None if i in LACKING else row for i, row in enumerate(X.tolist())]
    table = pa.table(
        {
            "Row id": pa.array(TEXTS),
            "twice": pa.array([i // 2 for i in range(N)]),
            "Vector": pa.array(vectors, pa.list_(pa.float32(), D)),
            "free": pa.array(X.tolist()),
        }
    )
    return lancedb.connect(tmp_path).create_table("people", table)


def test_lancedb(lance, monkeypatch):
    erase, names = ex.integrations.lancedb.erase_table, {"key": "Row id", "vector": "Vector"}
    with monkeypatch.context() as patch:
        patch.setattr(lance, "merge_insert", breaking(lance.merge_insert, 2))
        with pytest.raises(Broken):
            erase(lance, ERASER, **names, batch_size=30)
    done = N - lance.count_rows("erased IS NULL")
    assert 0 < done < N - len(LACKING)
    assert erase(lance, ERASER, **names, batch_size=30) == N - len(LACKING) - done
    assert erase(lance, ERASER, **names) == 0
    assert lance.count_rows() == N
    rows = {row["Row id"]: row for row in lance.to_arrow().to_pylist()}
    for i, text in enumerate(TEXTS):
        assert rows[text]["twice"] == i // 2
        if i in LACKING:
            assert rows[text]["erased"] is None
        else:
            np.testing.assert_allclose(rows[text]["erased"], CLEAN[i], atol=1e-5)
            np.testing.assert_allclose(rows[text]["Vector"], X[i], atol=1e-6)
    hit = lance.search(CLEAN[1], vector_column_name="erased").limit(1).to_list()
    assert hit[0]["Row id"] == TEXTS[1]
    unit = erase(lance, ERASER, **names, into="unit", normalize=True)
    assert unit == N - len(LACKING)
    for call, match in [
        (lambda: erase(lance, ex.LEACE().fit(X, X[:, 1] > 0), **names), "another erasure"),
        (lambda: erase(lance, ERASER, key="twice", vector="Vector", into="b"), "different value"),
        (lambda: erase(lance, ERASER, key="Row id", vector="vec"), "no column 'vec'"),
        (lambda: erase(lance, ERASER, key="Row id", vector="free"), "lists of one size"),
        (lambda: erase(lance, ERASER, **names, into="Vector"), "column of their own"),
        (lambda: erase(lance, ERASER, **names, into="a`b"), "backtick"),
        (lambda: erase(lance, ex.Erasure.identity(3), **names), "expecting 3 features"),
    ]:
        with pytest.raises(ex.InputError, match=match):
            call()
    assert "b" not in lance.schema.names
