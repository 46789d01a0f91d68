"""Stores that hold vectors already: Qdrant, LanceDB and FAISS, erased in place or beside."""

import tempfile

import faiss
import lancedb
import numpy as np
from qdrant_client import QdrantClient, models

import expunge as ex
from expunge.data import load_glove

glove = load_glove()
X, y, words = glove.train.X[::5], glove.train.y[::5], glove.train.words[::5]
d = X.shape[1]
eraser = ex.LEACE().fit(X, y)


def same(neighbours):
    """Share of the neighbours of some words, themselves left out, that are of their gender."""
    return np.mean([[y[j] == y[i] for j in row if j != i] for i, row in enumerate(neighbours)])


client = QdrantClient(":memory:")
client.create_collection("words", models.VectorParams(size=d, distance="Euclid"))
client.upload_collection("words", X, ids=range(len(X)))
# -- erase: Qdrant, into a second named vector; called again, it goes on where it ended
done = ex.integrations.qdrant.erase_collection(client, "words", eraser, into="clean")
# --
for name, Q in (("", X), ("clean", eraser.transform(X))):
    hits = [client.query_points("words", query=q, using=name, limit=11).points for q in Q[:50]]
    print(f"Qdrant {name or 'before'}: {same([[hit.id for hit in row] for row in hits]):.0%}")

with tempfile.TemporaryDirectory() as folder:
    db = lancedb.connect(folder)
    rows = [{"id": i, "word": words[i], "vector": X[i]} for i in range(len(X))]
    table = db.create_table("words", rows)
    # -- erase: LanceDB, into a new column
    done = ex.integrations.lancedb.erase_table(table, eraser, key="id", into="clean")
    # --
    found = table.search(eraser.transform(X)[0], vector_column_name="clean").limit(1).to_list()
    print(f"LanceDB: {done} rows erased, the nearest to {words[0]!r} is {found[0]['word']!r}")

unit = X / np.linalg.norm(X, axis=1, keepdims=True)
index = faiss.index_factory(d, "L2norm,Flat", faiss.METRIC_INNER_PRODUCT)
index.add(X)
# -- erase: FAISS with cosines; the erasure is one of vectors of length one
of_unit = ex.LEACE().fit(unit, y)
clean = ex.integrations.faiss.erase_index(index, of_unit)
# --
for name, which in (("before", index), ("clean", clean)):
    print(f"FAISS {name}: {same(which.search(X[:50], 11)[1]):.0%}")
print(of_unit.certificate_)
