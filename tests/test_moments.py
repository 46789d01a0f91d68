"""Moments against a slow twin in extended precision: chunks, weights, types, scales, threads."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expunge import InputError, Moments, parallel
from expunge.concept import Concept

SUMS = ("mean_x", "mean_z", "xz", "zz", "xx", "squares")


def slow_moments(X, Z, w=None):
    """The definitions, term by term, in long double."""
    X, Z = np.asarray(X).astype(np.longdouble), np.asarray(Z).astype(np.longdouble)
    w = np.ones(len(X), np.longdouble) if w is None else np.asarray(w).astype(np.longdouble)
    mean_x, mean_z = w @ X / w.sum(), w @ Z / w.sum()
    C, D = X - mean_x, Z - mean_z
    xx = np.einsum("n,ni,nj->ij", w, C, C)
    xz, zz = np.einsum("n,ni,nj->ij", w, C, D), np.einsum("n,ni,nj->ij", w, D, D)
    return dict(zip(SUMS, (mean_x, mean_z, xz, zz, xx, np.diag(xx)), strict=True))


def relative(found, expected):
    """Largest error, relative to the largest entry."""
    return float(np.max(np.abs(found - expected)) / np.max(np.abs(expected)))


def assert_moments(found, expected, rtol=1e-10, **other):
    expected = expected if isinstance(expected, dict) else vars(expected)
    for name in SUMS:
        error = relative(getattr(found, name), expected[name])
        assert error <= other.get(name, rtol), (name, error)


def classes(codes, labels=None):
    codes = np.asarray(codes)
    return Concept("classes", codes, tuple(labels or range(codes.max() + 1)))


def seen(codes):
    """What a chunk of a stream knows: only its own classes, by name."""
    found, inverse = np.unique(codes, return_inverse=True)
    return Concept("classes", inverse, tuple(found.tolist()))


def planted(n=200, d=6, k=3, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, k, n)
    codes[:k] = np.arange(k)
    return rng.normal(size=(k, d))[codes] + rng.normal(size=(n, d)), codes


def one_hot(codes):
    return np.eye(codes.max() + 1)[codes]


cuts = st.lists(st.integers(1, 199), unique=True, max_size=12).map(lambda c: [0, *sorted(c), 200])


@pytest.mark.parametrize("kind", ["classes", "labels", "continuous"])
def test_one_batch_is_the_definition(kind):
    X, codes = planted()
    Z = {
        "classes": one_hot(codes),
        "labels": (X[:, :2] > 0).astype(float),
        "continuous": X[:, :2] ** 2,
    }[kind]
    concept = classes(codes) if kind == "classes" else Concept(kind, Z, (0, 1))
    m = Moments.of(X, concept)
    assert_moments(m, slow_moments(X, Z), rtol=1e-13)
    assert (m.n, m.weight, m.kind, m.n_features) == (200, 200.0, kind, 6)
    np.testing.assert_allclose(m.cov_xx, np.cov(X.T, bias=True), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(m.mean_variance, X.var(axis=0).mean(), rtol=1e-12)
    np.testing.assert_array_equal(m.cov_xz, m.xz / 200)
    np.testing.assert_array_equal(m.cov_zz, m.zz / 200)


@settings(deadline=None, max_examples=40)
@given(cuts, st.randoms(use_true_random=False), st.booleans(), st.booleans())
def test_chunks_in_any_order_equal_one_batch(cut, random, by_class, weighted):
    X, codes = planted()
    if by_class:
        order = np.argsort(codes, kind="stable")
        X, codes = X[order], codes[order]
    w = np.random.default_rng(1).random(200) if weighted else None
    whole = Moments.of(X, classes(codes), w)
    parts = [slice(a, b) for a, b in pairwise(cut)]
    random.shuffle(parts)
    chunks = [(X[p], seen(codes[p]), None if w is None else w[p]) for p in parts]

    streamed = Moments.of(*chunks[0])
    for chunk in chunks[1:]:
        assert streamed.update(*chunk) is streamed
    assert streamed.labels == whole.labels
    assert streamed.n == 200
    assert_moments(streamed, whole)

    level = [Moments.of(*chunk) for chunk in chunks]
    while len(level) > 1:  # a tree of merges, as a cluster would
        pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
        level = [p[0].merge(p[1]) if len(p) == 2 else p[0] for p in pairs]
    assert_moments(level[0], whole)


def test_a_class_first_seen_in_the_last_chunk():
    X, codes = planted(k=4)
    order = np.argsort(codes, kind="stable")
    X, names = X[order], np.array(["d", "a", "c", "b"])[codes[order]]
    streamed = Moments.of(X[:50], seen(names[:50]))
    for lo in range(50, 200, 50):
        streamed.update(X[lo : lo + 50], seen(names[lo : lo + 50]))
    assert streamed.labels == ("a", "b", "c", "d")
    assert_moments(streamed, Moments.of(X, seen(names)))


def test_merge_is_pure_and_update_is_in_place():
    X, codes = planted()
    a, b = (Moments.of(X[p], seen(codes[p])) for p in (slice(0, 90), slice(90, 200)))
    before = {name: np.copy(getattr(m, name)) for m in (a, b) for name in SUMS}
    merged = a.merge(b)
    assert all(np.array_equal(before[name], getattr(b, name)) for name in SUMS)
    assert a.n == 90
    a.update(X[90:], seen(codes[90:]))
    assert a.n == merged.n == 200
    assert_moments(a, merged, rtol=0)


def same_state(m, state):
    return all(np.array_equal(vars(m)[name], state[name]) for name in state)


@pytest.mark.parametrize(
    ("X", "concept"),
    [
        (np.zeros((3, 2)), classes([0, 1, 1], ["x", "y"])),
        (np.zeros((3, 5)), classes([0, 1, 1])),
        (np.zeros((3, 2)), np.zeros(3)),
    ],
    ids=["labels of another type", "another width", "another kind"],
)
def test_a_failed_update_changes_nothing(X, concept):
    m = Moments.of(np.arange(8.0).reshape(4, 2), classes([0, 1, 0, 1]))
    before = {name: np.copy(value) for name, value in vars(m).items()}
    with pytest.raises(InputError):
        m.update(X, concept)
    assert same_state(m, before)


def test_concept_columns_may_not_change_between_chunks():
    m = Moments.of(np.eye(3), np.eye(3)[:, :2])
    with pytest.raises(InputError, match="changed its columns"):
        m.update(np.eye(3), np.eye(3))


def test_no_rows_have_no_moments():
    with pytest.raises(InputError, match=r"no rows.*shape \(0, 3\)"):
        Moments.of(np.zeros((0, 3)), np.zeros(0))


def test_without_the_second_moments():
    X, codes = planted()
    m, full = Moments.of(X, classes(codes), second=False), Moments.of(X, classes(codes))
    assert m.xx is None
    m.update(X, classes(codes))
    assert m.xx is None
    assert full.merge(m).xx is None
    np.testing.assert_allclose(m.trace_xx, 2 * np.trace(full.xx), rtol=1e-12)
    np.testing.assert_allclose(m.xz, 2 * full.xz, rtol=1e-12)
    with pytest.raises(ValueError, match="second=False"):
        _ = m.cov_xx


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(0, 3), min_size=60, max_size=60).filter(lambda w: sum(w) > 0))
def test_weights_are_repeated_rows(w):
    X, codes = planted(n=60)
    w = np.array(w)
    weighted = Moments.of(X, classes(codes).with_weight(w), w)
    repeated = Moments.of(np.repeat(X, w, axis=0), seen(np.repeat(codes, w)))
    assert weighted.labels == repeated.labels  # classes without weight are dropped
    assert weighted.weight == repeated.n == repeated.weight
    atol = 1e-12 * max(1.0, repeated.trace_xx)
    for name in SUMS:
        found, expected = getattr(weighted, name), getattr(repeated, name)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=atol, err_msg=name)


@pytest.mark.parametrize("wild", [1.0, 1e4])
def test_rows_without_weight_do_not_count(wild):
    X, codes = planted()
    X, w = X.copy(), np.ones(200)
    w[:100] = 0  # a whole chunk of them, far away
    X[:100] *= wild
    kept = Moments.of(X[100:], seen(codes[100:]))
    assert_moments(Moments.of(X, classes(codes), w), kept)
    stream = Moments.of(X[:100], classes(codes[:100]), w[:100])
    assert_moments(stream.update(X[100:], seen(codes[100:]), w[100:]), kept)


def test_classes_of_no_weight_leave_the_moments():
    X, codes = planted(k=4)
    w = (codes != 2).astype(float)
    m = Moments.of(X, classes(codes, ["a", "b", "c", "d"]).with_weight(w), w)
    assert m.labels == ("a", "b", "d")
    assert m.xz.shape == (6, 3)
    assert_moments(m, slow_moments(X[codes != 2], np.eye(4)[codes[codes != 2]][:, [0, 1, 3]]))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(("offset", "scale"), [(0, 1), (0, 1e-8), (1e6, 1), (1e-2, 1e-8)])
@pytest.mark.parametrize("weighted", [False, True])
def test_offsets_and_scales(dtype, offset, scale, weighted):
    X, codes = planted(n=1500)
    if dtype == "float16":
        offset, scale = min(offset, 1e3), max(scale, 1e-3)
    X = (offset + scale * X).astype(dtype)
    w = np.random.default_rng(2).random(1500) if weighted else None
    loose = {} if dtype == "float64" else {"xx": 1e-6}
    assert_moments(Moments.of(X, classes(codes), w), slow_moments(X, one_hot(codes), w), **loose)
    streamed = Moments.of(X[:700], seen(codes[:700]), None if w is None else w[:700])
    streamed.update(X[700:], seen(codes[700:]), None if w is None else w[700:])
    assert_moments(streamed, slow_moments(X, one_hot(codes), w), **loose)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scale", [1e-18, 1e18])
def test_squares_do_not_vanish_or_overflow(dtype, scale):
    X, codes = planted()
    X = (scale * X).astype(dtype)
    loose = {} if dtype == "float64" else {"xx": 1e-6}
    assert_moments(Moments.of(X, classes(codes)), slow_moments(X, one_hot(codes)), **loose)


@pytest.mark.parametrize(("offset", "scale"), [(1e6, 1), (0, 1e-8), (-1e-2, 1e-8)])
def test_offsets_and_scales_of_a_continuous_concept(offset, scale):
    X, _ = planted()
    Z = offset + scale * X[:, :2] ** 2
    assert_moments(Moments.of(X, Z), slow_moments(X, Z))
    assert_moments(Moments.of(X[:30], Z[:30]).update(X[30:], Z[30:]), slow_moments(X, Z))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_many_classes(dtype):
    X, codes = planted(n=2000, k=100)
    X = X.astype(dtype)
    w = np.random.default_rng(0).random(2000)
    loose = {} if dtype == "float64" else {"xx": 1e-6}
    assert_moments(Moments.of(X, classes(codes), w), slow_moments(X, one_hot(codes), w), **loose)


def test_layouts_and_types_give_the_same_moments(tmp_path):
    X, codes = planted(n=700)
    X = np.round(10 * X)
    expected = slow_moments(X, one_hot(codes))
    mapped = np.memmap(tmp_path / "X", dtype="f8", mode="w+", shape=X.shape)
    mapped[:] = X
    strided = np.repeat(X, 2, axis=0)[::2]
    for same in (np.asfortranarray(X), mapped, strided, X.astype("int16"), X.astype(">f8")):
        assert_moments(Moments.of(same, classes(codes)), expected)
    mask = X > 0
    assert_moments(Moments.of(mask, classes(codes)), slow_moments(mask, one_hot(codes)))
    big = (10**6 + X).astype("int64")
    assert_moments(Moments.of(big, classes(codes)), slow_moments(big, one_hot(codes)))


def test_eps_is_the_precision_of_the_worst_chunk():
    X, codes = planted()
    m = Moments.of(X, classes(codes))
    assert m.eps == np.finfo("f8").eps
    assert m.update(X.astype("f4"), classes(codes)).eps == np.finfo("f4").eps


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["classes", "continuous"])
def test_many_spans_and_any_number_of_threads(monkeypatch, dtype, kind):
    n = 3 * parallel.SPAN + 777
    X, codes = planted(n=n, d=40)
    X = (3 + X).astype(dtype)
    concept = classes(codes) if kind == "classes" else Concept.of_numbers(X[:, 0] ** 2)
    w = np.random.default_rng(3).random(n)
    found = []
    monkeypatch.setattr(parallel, "WORTH_THREADS", 0)
    for threads in (1, 2, 5):
        monkeypatch.setattr(parallel, "n_threads", lambda threads=threads: threads)
        with parallel.blas_controller().limit(limits=threads, user_api="blas"):
            found.append(Moments.of(X, concept, w))
    assert all(same_state(m, vars(found[0])) for m in found[1:])  # bit for bit
    loose = {} if dtype == "float64" else {"xx": 1e-6}
    assert_moments(found[0], slow_moments(X, concept.columns(), w), **loose)
