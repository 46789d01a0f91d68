"""Erasures in FAISS: searching cleaned vectors equals searching the transformed matrix."""

import numpy as np
import pytest

faiss = pytest.importorskip("faiss")

import expunge as ex  # noqa: E402
from expunge.integrations.faiss import erase_index, to_faiss  # noqa: E402

D, N = 16, 500
faiss.omp_set_num_threads(1)  # test processes already fill the cores


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


def bits_of_codes(index, y):
    """What the codes of an index tell of y: a linear probe on one column per code, cross-fitted."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss
    from sklearn.model_selection import cross_val_predict

    inner = faiss.downcast_index(index)
    codes = faiss.vector_to_array(inner.codes).reshape(inner.ntotal, -1)
    columns = np.concatenate([np.eye(256)[codes[:, i]] for i in range(codes.shape[1])], axis=1)
    columns = columns[:, columns.any(axis=0)]
    probe = LogisticRegression(max_iter=500, C=0.1)
    guess = cross_val_predict(probe, columns, y, cv=5, method="predict_proba")
    share = np.bincount(y) / len(y)
    return (-(share * np.log(share)).sum() - log_loss(y, guess)) / np.log(2)


@pytest.fixture(scope="module")
def coded():
    """Gaussian rows whose class moves the mean: erased, nothing at all is left of it."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 4000)
    move = rng.normal(size=D)
    X = (rng.normal(size=(4000, D)) + 2 * np.outer(y, move)).astype(np.float32)
    return X, y, ex.LEACE().fit(X, y).erasure_


@pytest.mark.parametrize("kind", ["PQ4x4", "IVF4,PQ4x4", "SQ8", "OPQ4,PQ4x4", "PCA8,Flat"])
def test_what_an_index_learnt_is_learnt_again(coded, kind):
    X, _, e = coded
    index = faiss.index_factory(D, kind)
    index.train(X)
    index.add(X)
    before = index.search(X[:5], 3)
    with pytest.raises(ex.InputError, match=r"compresses its vectors.*vectors="):
        erase_index(index, e)
    with pytest.raises(ex.InputError, match=r"shape \(9, 16\) for 4000 vectors"):
        erase_index(index, e, vectors=X[:9])
    clean = erase_index(index, e, vectors=X)
    np.testing.assert_array_equal(index.search(X[:5], 3)[1], before[1])  # left as it was
    fresh = faiss.index_factory(D, kind)
    fresh.train(e.transform(X))
    fresh.add(e.transform(X))
    distances, expected = (
        found.search(queries, 10)[0].mean()
        for found, queries in ((clean, X[:200]), (fresh, e.transform(X[:200])))
    )
    assert distances == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize(
    "kind",
    [
        "IVF4,PQ4x4np,RFlat",  # an index inside a refinement
        "PQ4x4,Refine(SQ8)",
        "IVF8(IVF4,Flat),Flat",  # cells of cells
        "LSQ4x4",
        "RaBitQ",
        "LSHrt",
        "ZnLattice2x3_3",
    ],
)
def test_what_any_part_of_an_index_learnt_is_learnt_again(coded, kind):
    X, _, e = coded
    X, erased = X[:1000], e.transform(X[:1000])
    index, fresh, kept = (faiss.index_factory(D, kind) for _ in range(3))
    for each, learnt_from, added in ((index, X, X), (fresh, erased, erased), (kept, X, erased)):
        each.train(learnt_from)
        each.add(added)
    expected = fresh.search(erased[:50], 5)
    assert (kept.search(erased[:50], 5)[1] == expected[1]).mean() < 0.95
    found = erase_index(index, e, vectors=X).search(X[:50], 5)
    assert (found[1] == expected[1]).mean() > 0.95
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-3, atol=1e-3)


def test_an_empty_index_does_not_keep_what_it_learnt(coded):
    X, _, e = coded
    index = faiss.index_factory(D, "IVF4,PQ4x4")
    index.train(X)
    clean = erase_index(index, e, vectors=X[:0])
    assert index.is_trained
    assert not clean.is_trained
    clean.train(X)
    clean.add(X)
    assert clean.ntotal == len(X)


def test_codebooks_that_do_not_learn_twice_are_refused(coded):
    X, _, e = coded
    index = faiss.index_factory(D, "PRQ2x2x4")
    index.train(X[:500])
    index.add(X[:500])
    with pytest.raises(ex.InputError, match="do not learn twice"):
        erase_index(index, e, vectors=X[:500])


def test_codes_do_not_tell_the_concept(coded):
    X, y, e = coded
    index = faiss.index_factory(D, "PQ4x4")
    index.train(X)
    index.add(X)
    assert bits_of_codes(index, y) > 0.5
    kept = faiss.clone_index(index)  # what came of erased vectors in codebooks of unerased ones
    kept.reset()
    kept.add(e.transform(index.reconstruct_n(0, len(X))))
    assert bits_of_codes(kept, y) > 0.1
    whole = erase_index(index, e, vectors=X)  # owns the index inside it
    assert bits_of_codes(whole.index, y) < 0.005


def test_erasing_an_index_is_about_as_fast_as_by_hand():
    import time

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, 32)).astype(np.float32)
    e = ex.Erasure(np.eye(32)[:, :1], np.eye(32)[:1])
    index = faiss.IndexFlatL2(32)
    index.add(X)

    def by_hand():
        clean = faiss.IndexFlatL2(32)
        clean.add(e.transform(index.reconstruct_n(0, index.ntotal)))
        return faiss.IndexPreTransform(to_faiss(e), clean)

    def shortest(work):
        times = []
        for _ in range(7):
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
        return min(times)

    assert shortest(lambda: erase_index(index, e)) < 3.5 * shortest(by_hand)


@pytest.mark.parametrize(
    "kind", ["L2norm,Flat", "L2norm,HNSW16", "IDMap,L2norm,Flat", "L2norm,SQ8"]
)
def test_an_index_for_cosines(data, kind):
    """Normalised, then erased: what it finds is what NumPy finds."""
    X, _, Q = data
    unit, queries = (A / np.linalg.norm(A, axis=1, keepdims=True) for A in (X, Q))
    y = X[:, 0] + X[:, 3] > 4
    eraser = ex.LEACE().fit(unit, y)
    index = faiss.index_factory(D, kind, faiss.METRIC_INNER_PRODUCT)
    index.train(X)
    numbers = np.arange(N) * 3 + 1
    mapped = kind.startswith("IDMap")
    index.add_with_ids(X, numbers) if mapped else index.add(X)
    compressed = kind.endswith("SQ8")
    if compressed:
        with pytest.raises(ex.InputError, match="compresses"):
            erase_index(index, eraser)
    clean = erase_index(index, eraser, vectors=X if compressed else None)
    scores = eraser.transform(queries) @ eraser.transform(unit).T
    assert (np.argmax(scores, axis=1) != np.argmax(queries @ unit.T, axis=1)).any()
    found, places = clean.search(Q, 1)
    np.testing.assert_allclose(found[:, 0], scores.max(axis=1), atol=0.02 if compressed else 1e-5)
    if not compressed:
        best = np.argmax(scores, axis=1)
        np.testing.assert_array_equal(places[:, 0], numbers[best] if mapped else best)
    again = erase_index(index, eraser, vectors=X, renormalize=True)
    assert again.search(Q, 1)[0].max() <= 1 + 1e-3
    assert again.search(Q, 1)[0].mean() > found.mean()


def test_renormalising_is_for_cosines(data):
    X, e, _ = data
    index = faiss.IndexFlatL2(D)
    index.add(X)
    with pytest.raises(ex.InputError, match="Only an index for cosines"):
        erase_index(index, e, renormalize=True)


def test_normalising_after_erasing_tells_of_the_concept_again():
    """Why it is not done unless it is asked for."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 2000)
    X = rng.normal(size=(2000, D)) + 1 + 3 * np.outer(y, np.eye(D)[0] + np.eye(D)[3])
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    eraser = ex.LEACE().fit(unit, y)
    clean = eraser.transform(unit)
    again = clean / np.linalg.norm(clean, axis=1, keepdims=True)
    nothing = ex.Erasure.identity(D)
    assert ex.certify(nothing, clean, y).erased
    assert not ex.certify(nothing, again, y).erased
