"""Erasures in FAISS: searching cleaned vectors equals searching the transformed matrix."""

import numpy as np
import pytest

faiss = pytest.importorskip("faiss")

import expunge as ex  # noqa: E402
from expunge.integrations.faiss import erase_index, to_faiss  # noqa: E402

D, N = 16, 500


@pytest.fixture(scope="module")
def data():
    """Vectors that lie far apart along the concept, so that erasing changes the neighbours."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, N)
    X = (rng.normal(size=(N, D)) + 4 * np.outer(y, np.eye(D)[0] + np.eye(D)[3])).astype(np.float32)
    return (
        X,
        ex.RLACE().fit(X, y).erasure_,
        X[:40] + rng.normal(size=(40, D)).astype(np.float32) / 5,
    )


def nearest(X, Q, k=5):
    """Slow twin: all distances by NumPy, in float64."""
    distances = ((Q[:, None].astype(float) - X[None].astype(float)) ** 2).sum(axis=-1)
    return np.argsort(distances, axis=1)[:, :k]


def test_the_transform_equals_numpy(data):
    X, e, _ = data
    full = ex.Erasure(e.left, e.right, e.center, np.arange(D) / 7.0)
    for erasure in (e, full, ex.Erasure(e.left, e.right)):
        np.testing.assert_allclose(to_faiss(erasure).apply(X), erasure.transform(X), atol=1e-5)


@pytest.mark.parametrize("kind", ["Flat", "HNSW16", "IVF4,Flat"])
def test_search_equals_search_in_the_transformed_matrix(data, kind):
    X, e, Q = data
    expected = nearest(e.transform(X), e.transform(Q))
    assert (expected != nearest(X, Q)).any()
    index = faiss.IndexPreTransform(to_faiss(e), make(kind))
    index.train(X)
    index.add(X)
    compare(index, Q, expected, kind)


@pytest.mark.parametrize("kind", ["Flat", "HNSW16", "IVF4,Flat"])
def test_an_index_that_is_already_filled(data, kind):
    X, e, Q = data
    index = make(kind)
    index.train(X)
    index.add(X)
    before = index.search(Q, 5)
    clean = erase_index(index, e)
    compare(clean, Q, nearest(e.transform(X), e.transform(Q)), kind)
    clean.add(X[:1] + 100)
    assert clean.ntotal == N + 1
    assert index.ntotal == N
    np.testing.assert_array_equal(index.search(Q, 5)[1], before[1])


@pytest.mark.parametrize("wrapper", [faiss.IndexIDMap, faiss.IndexIDMap2])
def test_an_index_with_numbers_of_its_own(data, wrapper):
    X, e, Q = data
    index = wrapper(faiss.IndexFlatL2(D))
    ids = np.arange(N) * 10 + 7
    index.add_with_ids(X, ids)
    clean = erase_index(index, e)
    expected = nearest(e.transform(X), e.transform(Q))
    np.testing.assert_array_equal(clean.search(Q, 5)[1], ids[expected])


def make(kind):
    index = faiss.index_factory(D, kind)
    if kind.startswith("IVF"):
        index.nprobe = 4  # all cells, so that the search is exact
    return index


def compare(index, Q, expected, kind):
    found = index.search(Q, 5)[1]
    if kind.startswith("HNSW"):  # approximate by design
        assert (found == expected).mean() > 0.95
    else:
        np.testing.assert_array_equal(found, expected)


def test_a_file_of_the_index_holds_the_transform(data, tmp_path):
    X, e, Q = data
    index = faiss.IndexPreTransform(to_faiss(e), faiss.IndexFlatL2(D))
    index.add(X)
    faiss.write_index(index, str(tmp_path / "index"))
    again = faiss.read_index(str(tmp_path / "index"))
    np.testing.assert_array_equal(again.search(Q, 5)[1], index.search(Q, 5)[1])


def test_bad_indexes(data):
    _, e, _ = data
    with pytest.raises(ex.InputError, match=r"holds vectors of 3 features.*expecting 16 features"):
        erase_index(faiss.IndexFlatL2(3), e)
    X = np.random.default_rng(0).normal(size=(200, D)).astype(np.float32)
    odd = make("IVF4,Flat")
    odd.train(X)
    odd.add_with_ids(X, np.arange(200) * 3)
    with pytest.raises(ex.InputError, match=r"vectors back in order.*IndexIVFFlat.*sequential ids"):
        erase_index(odd, e)
