"""PairPCA: against a plain PCA of centred differences, for pairs, sets and single precision."""

import numpy as np
import pytest
from sklearn.decomposition import PCA

import expunge as ex


def pairs(p=30, d=12, seed=0, far=1.0, dtype=np.float64):
    """Two sides of p pairs whose differences share two directions."""
    rng = np.random.default_rng(seed)
    middle = rng.normal(size=(p, d)) * far
    axes = np.linalg.qr(rng.normal(size=(d, 2)))[0]
    half = rng.normal(size=(p, 2)) * [3, 2] @ axes.T + 0.2 * rng.normal(size=(p, d))
    return (middle + half).astype(dtype), (middle - half).astype(dtype)


def plain(groups, rank):
    """Principal components of the rows of every set minus its mean (Bolukbasi et al. 2016)."""
    rows = np.vstack([g.astype(float) - g.astype(float).mean(axis=0) for g in groups])
    return np.linalg.svd(rows, full_matrices=False)[2][:rank]


def projector(basis):
    return basis.T @ basis


def test_equals_the_principal_components_of_centred_pairs():
    A, B = pairs()
    for rank in (1, 2, 5):
        found = ex.PairPCA.from_pairs(A, B, rank).erasure_
        expected = projector(plain(np.stack([A, B], axis=1), rank))
        np.testing.assert_allclose(np.eye(12) - found.matrix(), expected, atol=1e-10)
        centred = np.vstack([A - (A + B) / 2, B - (A + B) / 2])
        components = PCA(rank).fit(centred).components_  # centred already: ± the half differences
        np.testing.assert_allclose(projector(components), expected, atol=1e-10)


def test_the_map_goes_through_the_origin_and_removes_the_direction():
    A, B = pairs()
    eraser = ex.PairPCA.from_pairs(A, B, 1)
    u = plain(np.stack([A, B], axis=1), 1)[0]
    X = np.random.default_rng(1).normal(size=(50, 12)) + 4
    assert np.abs(X @ u).max() > 1
    np.testing.assert_allclose(eraser.transform(X), X - np.outer(X @ u, u), atol=1e-10)
    assert eraser.certificate_ is None


def test_fit_and_from_pairs_are_the_same():
    A, B = pairs()
    X, ids = np.vstack([A, B]), np.tile([f"pair {i}" for i in range(len(A))], 2)
    order = np.random.default_rng(0).permutation(len(X))
    by_sets = ex.PairPCA(2).fit(X[order], ids[order])
    np.testing.assert_allclose(
        by_sets.erasure_.matrix(), ex.PairPCA.from_pairs(A, B, 2).erasure_.matrix(), atol=1e-10
    )


def test_sets_of_any_size():
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 6, 40)  # a set of one row tells nothing, and does no harm
    ids = np.repeat(np.arange(40), sizes)
    axis = np.eye(7)[2]
    X = 5 * rng.normal(size=(40, 7))[ids] + np.outer(rng.normal(size=len(ids)), axis)
    X += 0.1 * rng.normal(size=X.shape)
    eraser = ex.PairPCA(2).fit(X, ids)
    expected = projector(plain([X[ids == i] for i in range(40)], 2))
    np.testing.assert_allclose(np.eye(7) - eraser.erasure_.matrix(), expected, atol=1e-9)
    assert abs(eraser.erasure_.basis[0] @ axis) > 0.99


@pytest.mark.parametrize("count", [255, 256, 257, 700])
def test_many_sets(count):
    A, B = pairs(p=count)
    found = ex.PairPCA.from_pairs(A, B, 2).erasure_
    expected = projector(plain(np.stack([A, B], axis=1), 2))
    np.testing.assert_allclose(np.eye(12) - found.matrix(), expected, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("far", [1.0, 1e4])
def test_sets_that_are_far_apart(dtype, far):
    """Differences of size 1 between middles of size 10,000: products in float32 would drown them.

    The rows are few numbers with few digits, so that float32 holds them exactly.
    """
    A, B = pairs(far=1.0)
    middle = np.round(np.random.default_rng(5).normal(size=(30, 12)) * far)
    A, B = (middle + np.round(side * 64) / 64 for side in ((A - B) / 2, (B - A) / 2))
    found = ex.PairPCA.from_pairs(A.astype(dtype), B.astype(dtype), 2).erasure_
    expected = projector(plain(np.stack([A, B], axis=1), 2))
    np.testing.assert_allclose(np.eye(12) - found.matrix(), expected, atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rank_is_at_most_the_number_of_pairs(dtype):
    A, B = pairs(p=4, d=30, dtype=dtype)
    eraser = ex.PairPCA.from_pairs(A, B, 10)
    assert eraser.rank_ == 4
    basis = eraser.erasure_.basis
    D = (A - B).astype(float)
    np.testing.assert_allclose(D, D @ basis.T @ basis, atol=1e-5)


def test_one_pair_is_its_difference():
    he, she = np.array([[2.0, 1.0, 0.0]]), np.array([[0.0, 1.0, 0.0]])
    eraser = ex.PairPCA.from_pairs(he, she)
    np.testing.assert_allclose(np.abs(eraser.erasure_.basis), [[1.0, 0, 0]], atol=1e-12)
    by_fit = ex.PairPCA().fit(np.vstack([he, she]), ["he-she", "he-she"])
    np.testing.assert_array_equal(by_fit.erasure_.basis, eraser.erasure_.basis)


def test_shares_of_the_covariance_are_those_of_the_components():
    A, B = pairs()
    eraser = ex.PairPCA.from_pairs(A, B)
    assert eraser.rank_ == 1
    shares = eraser.explained_variance_ratio_
    s = np.linalg.svd(A - B, compute_uv=False) ** 2
    np.testing.assert_allclose(shares, s / s.sum(), atol=1e-10)
    assert shares[:2].sum() > 0.9


def test_weights_equal_repetition():
    """Of whole pairs: a pair of weight 2 counts twice."""
    A, B = pairs()
    w = np.random.default_rng(0).integers(0, 3, len(A))
    ids = np.tile(np.arange(len(A)), 2)
    weighted = ex.PairPCA(2).fit(np.vstack([A, B]), ids, sample_weight=np.tile(w, 2))
    again = np.repeat(np.arange(len(A)), w)
    repeated = ex.PairPCA.from_pairs(A[again], B[again], 2)
    np.testing.assert_allclose(weighted.erasure_.matrix(), repeated.erasure_.matrix(), atol=1e-10)


def test_chunks_of_whole_sets_equal_one_fit():
    A, B = pairs()
    stream = ex.PairPCA(2)
    for at in np.array_split(np.arange(len(A)), 4):
        stream.partial_fit(np.vstack([A[at], B[at]]), np.tile(at, 2))
    whole = ex.PairPCA.from_pairs(A, B, 2)
    np.testing.assert_allclose(stream.erasure_.matrix(), whole.erasure_.matrix(), atol=1e-10)


def test_the_definitional_direction_of_word_vectors():
    """In GloVe the leading component of a few pairs is near the direction from he to she."""
    from expunge.data import load_glove

    glove = load_glove()
    at = {word: i for i, word in enumerate(glove.words)}
    named = [("he", "she"), ("his", "her"), ("man", "woman"), ("father", "mother")]
    found = [(a, b) for a, b in named if a in at and b in at]
    assert len(found) >= 3
    A = glove.vectors[[at[a] for a, _ in found]]
    B = glove.vectors[[at[b] for _, b in found]]
    eraser = ex.PairPCA.from_pairs(A, B)
    difference = (A - B).astype(float)
    cosines = difference @ eraser.erasure_.basis[0] / np.linalg.norm(difference, axis=1)
    assert np.abs(cosines).min() > 0.5
    clean = eraser.transform(A).astype(float) - eraser.transform(B)
    assert np.all(np.linalg.norm(clean, axis=1) < np.linalg.norm(difference, axis=1))


def test_rows_that_form_no_pair_are_refused():
    X = np.random.default_rng(0).normal(size=(6, 3))
    with pytest.raises(ex.InputError):
        ex.PairPCA().fit(X, np.arange(6))
    with pytest.raises(ex.InputError, match="nothing to compare"):
        ex.PairPCA().fit(np.repeat(X[:3], 2, axis=0), np.repeat([0, 1, 2], 2))  # equal rows
    with pytest.raises(ex.InputError, match="same shape"):
        ex.PairPCA.from_pairs(X[:3], X[:2])
    with pytest.raises(ex.InputError, match="sample"):
        ex.PairPCA().fit(X[:1], [0])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("count", [2, 5])
def test_rounding_is_no_direction(dtype, count):
    """Sets far apart that differ in one direction: what rounding adds is no rank.

    The direction has entries that the type does not hold, so every other direction is rounding.
    """
    rng = np.random.default_rng(0)
    far, near = {np.float64: (1e8, 1.0), np.float32: (1e3, 1.0), np.float16: (30.0, 3.0)}[dtype]
    middle = far * rng.normal(size=(20, 10))
    ids = np.repeat(np.arange(20), count)
    axis = np.linalg.qr(rng.normal(size=(10, 1)))[0][:, 0]
    X = middle[ids] + near * np.outer(rng.normal(size=len(ids)), axis)
    eraser = ex.PairPCA(6).fit(X.astype(dtype), ids)
    assert eraser.rank_ == 1
    assert abs(eraser.erasure_.basis[0] @ axis) > 0.99


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("count", [2, 3, 7])
def test_equal_rows_are_no_difference(dtype, count):
    """A mean of three equal numbers may differ from them in the last digit."""
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(30), count)
    X = (1e3 * rng.normal(size=(30, 5)))[ids].astype(dtype)
    for weights in (None, rng.random(len(ids))):
        with pytest.raises(ex.InputError, match="nothing to compare"):
            ex.PairPCA().fit(X, ids, sample_weight=weights)
    X[0, 2] += 64
    eraser = ex.PairPCA(3).fit(X, ids)
    assert eraser.rank_ == 1
    np.testing.assert_array_equal(np.abs(eraser.erasure_.basis), np.eye(5)[[2]])


def test_the_last_digit_that_a_type_holds_exactly_is_a_difference():
    X = np.array([[1000, 0, 1], [1001, 0, 1], [512, 7, 0], [513, 7, 0]], dtype=np.float16)
    eraser = ex.PairPCA(2).fit(X, [0, 0, 1, 1])
    np.testing.assert_array_equal(np.abs(eraser.erasure_.basis), [[1.0, 0.0, 0.0]])


def test_sets_of_more_rows_than_are_summed_at_once():
    from expunge.parallel import SPAN

    rng = np.random.default_rng(0)
    ids = rng.integers(0, 3, 2 * SPAN + 5)
    X = 1e6 * rng.normal(size=(3, 4))[ids] + rng.normal(size=(len(ids), 4)) * [3, 1, 2, 1]
    found = ex.PairPCA(2).fit(X, ids).erasure_
    expected = projector(plain([X[ids == i] for i in range(3)], 2))
    np.testing.assert_allclose(np.eye(4) - found.matrix(), expected, atol=1e-6)
