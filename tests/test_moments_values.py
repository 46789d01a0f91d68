"""What can be read off moments, and what they refuse: each against NumPy on the rows themselves."""

import contextlib
from dataclasses import replace
from functools import reduce

import numpy as np
import pytest

from expunge import InputError, Moments, moments, parallel
from expunge.blockmath import BlockMath
from expunge.concept import Concept

FIELDS = ("mean_x", "mean_z", "xz", "zz", "squares", "xx")


def some(n=120, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d)
    Z = X[:, :3] ** 2 * [1.0, 10.0, 0.1] + rng.normal(size=(n, 3))
    return X, Z, rng.integers(0, 4, n).astype(float)


def in_classes(codes, labels="abcd"):
    return Concept("classes", np.asarray(codes), tuple(labels))


def assert_same(found, expected, rtol=1e-10):
    assert (found.n, found.weight) == (expected.n, expected.weight)
    assert (found.labels, found.kind, found.eps) == (expected.labels, expected.kind, expected.eps)
    for name in FIELDS:
        a, b = getattr(found, name), getattr(expected, name)
        assert (a is None) == (b is None), name
        if a is not None:
            np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * np.abs(b).max(), err_msg=name)


@pytest.mark.parametrize("weighted", [False, True])
def test_spreads_and_variances(weighted):
    X, Z, w = some()
    X[:, 2], Z[:, 1] = -7.0, 3.0  # neither varies
    m = Moments.of(X, Z, w if weighted else None)
    w = w if weighted else np.ones(len(X))
    C, D = (A - np.average(A, axis=0, weights=w) for A in (X, Z))
    var_x, var_z = np.average(C**2, axis=0, weights=w), np.average(D**2, axis=0, weights=w)
    np.testing.assert_allclose(m.spreads, np.where(np.arange(5) == 2, 1, np.sqrt(var_x)))
    np.testing.assert_allclose(m.concept_spreads, np.where(np.arange(3) == 1, 1, np.sqrt(var_z)))
    assert m.trace_xx == pytest.approx(w.sum() * var_x.sum())
    assert m.mean_variance == pytest.approx(var_x.mean())
    np.testing.assert_allclose(m.cov_xx, np.cov(X.T, aweights=w, ddof=0), atol=1e-12)
    np.testing.assert_allclose(m.cov_zz, np.cov(Z.T, aweights=w, ddof=0), atol=1e-9)
    np.testing.assert_allclose(m.cov_xz, C.T @ (w[:, None] * D) / w.sum(), atol=1e-10)
    assert m.n_features == 5


@pytest.mark.parametrize("second", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_moments_in_other_units_are_those_of_rescaled_rows(weighted, second):
    X, Z, w = some()
    units = np.array([1e-6, 0.5, 1.0, 30.0, 1e7])
    w = w if weighted else None
    m = Moments.of(X, Z, w, second=second)
    assert_same(m.in_units(units), Moments.of(X / units, Z, w, second=second))
    assert_same(m, Moments.of(X, Z, w, second=second), rtol=0)  # and they stay what they were


@pytest.mark.parametrize("columns", [[1], [2, 0]])
def test_some_columns_of_numbers(columns):
    X, Z, w = some()
    names = ("a", "b", "c")
    m = Moments.of(X, Concept("continuous", Z, names), w)
    part = Concept("continuous", Z[:, columns], tuple(names[j] for j in columns))
    assert_same(m.only(columns), Moments.of(X, part, w))


def test_some_classes_are_labels():
    """Without its other classes, a class is a label: the rest need not have one at all."""
    X, _, w = some()
    codes = np.arange(len(X)) % 4
    m = Moments.of(X, in_classes(codes), w)
    Y = np.eye(4)[codes][:, [3, 1]]
    assert_same(m.only([3, 1]), Moments.of(X, Concept("labels", Y, ("d", "b")), w))


def test_only_moments_of_the_same_columns_merge():
    X, Z, _ = some()
    m = Moments.of(X, Z)
    with pytest.raises(InputError, match="Only moments can be merged"):
        m.merge(X)
    with pytest.raises(InputError, match=r"5 features with .* and 4 features with"):
        m.merge(Moments.of(X[:, :4], Z))
    with pytest.raises(InputError, match="'continuous' concept and 5 features with a 'labels'"):
        m.merge(Moments.of(X, Concept("labels", (Z > 0).astype(float), (0, 1, 2))))


def test_classes_of_two_types_do_not_merge():
    X, _, _ = some()
    numbers, words = (
        Moments.of(X, in_classes(np.arange(len(X)) % 2, labels)) for labels in ((0, 1), ("0", "1"))
    )
    with pytest.raises(InputError, match="changed their type"):
        numbers.merge(words)


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_merging_with_rows_of_no_weight(share):
    """They are counted, and change nothing else."""
    X, Z, _ = some()
    empty = Moments.of(100 + X, 7 + Z, np.zeros(len(X)))
    assert empty.weight == 0
    other = Moments.of(X, Z, np.full(len(X), share))
    for merged in (empty.merge(other), other.merge(empty)):
        assert (merged.n, merged.weight) == (2 * len(X), other.weight)
        for name in FIELDS:
            assert np.isfinite(getattr(merged, name)).all()
        if share:
            np.testing.assert_allclose(merged.mean_x, np.mean(X, axis=0), rtol=1e-12)
            np.testing.assert_allclose(merged.xz, other.xz, rtol=1e-12)
            np.testing.assert_allclose(merged.zz, other.zz, rtol=1e-12)
            np.testing.assert_allclose(merged.xx, other.xx, rtol=1e-12)
            np.testing.assert_allclose(merged.squares, other.squares, rtol=1e-12)


@pytest.mark.parametrize(
    ("dtype", "eps"),
    [("f2", "f4"), ("f4", "f4"), ("f8", "f8"), ("i4", "f8"), ("?", "f8")],
)
def test_eps_is_that_of_the_type_products_are_formed_in(dtype, eps):
    X, Z, _ = some()
    m = Moments.of((10 * X).astype(dtype), Z)
    assert m.eps == np.finfo(eps).eps
    assert m.mean_x.dtype == m.xx.dtype == m.xz.dtype == np.float64


# -- numbers beyond what squares can hold ----------------------------------------------------------


@pytest.mark.parametrize("second", [True, False])
@pytest.mark.parametrize("scale", [1.01e-100, 1e-50, 1e50, 0.99e100])
def test_all_that_squares_can_hold_is_taken(scale, second):
    X, Z, _ = some()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X[:, 0] += 0.5
    m, plain = (Moments.of(rows, Z, second=second) for rows in (X * scale, X))
    np.testing.assert_allclose(m.mean_x / scale, plain.mean_x, atol=1e-12)
    np.testing.assert_allclose(m.xz / scale, plain.xz, rtol=1e-9)
    np.testing.assert_allclose(m.squares / scale**2, plain.squares, rtol=1e-9)


@pytest.mark.parametrize("scale", [0.99e-100, 1e-160, 1.01e100, 1e160])
@pytest.mark.parametrize("columns", [[3], [1, 4]])
def test_columns_whose_squares_are_lost_are_refused(scale, columns):
    X, Z, _ = some()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X[:, columns] *= scale
    named = f"{len(columns)} of 5 columns, the first is column {columns[0]} with mean"
    with pytest.raises(InputError, match="out of range") as refused:
        Moments.of(X, Z)
    assert named in refused.value.received


def test_a_constant_is_taken_unless_it_is_too_large():
    X, Z, _ = some()
    for value in (0.0, 1e-300, 1e90):
        X[:, 2] = value
        m = Moments.of(X, Z)
        assert m.squares[2] == 0
        assert m.mean_x[2] == value
    X[:, 2] = 1e101
    with pytest.raises(InputError, match="out of range"):
        Moments.of(X, Z)


def test_rows_of_no_weight_do_not_decide_whether_a_column_varies():
    X, Z, _ = some()
    w = np.ones(len(X))
    w[5] = 0
    X[:, 2] = 1.0
    X[5, 2] = 1.0 + 1e-9
    assert Moments.of(X, Z, w).squares[2] == 0
    X[:, 2], X[5, 2] = 0.0, 1e-150
    assert Moments.of(X, Z, w).squares[2] == 0
    with pytest.raises(InputError, match="out of range"):
        Moments.of(X, Z)  # here it counts, and its square is lost


@pytest.mark.parametrize("scale", [1.01e100, 1e160])
def test_a_concept_whose_squares_are_lost_is_refused(scale):
    X, Z, _ = some()
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    Moments.of(X, Z * [1, 0.99e100, 1])
    Z[:, 1] *= scale
    with pytest.raises(InputError, match="The concept has numbers or weights"):
        Moments.of(X, Z)
    with pytest.raises(InputError, match="The concept has numbers or weights"):
        Moments.of(X, np.full(len(X), scale))  # a constant as large


# -- any number of rows, blocks and classes --------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 511, 512, 513, 1025])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_at_the_edges_of_blocks_count_once(n, dtype, weighted):
    rng = np.random.default_rng(n)
    X, codes = rng.integers(-9, 9, (n, 3)).astype(dtype), np.arange(n) % 4
    w = rng.integers(1, 5, n).astype(float) if weighted else np.ones(n)
    labels = "abcd"[: codes.max() + 1]
    m = Moments.of(X, in_classes(codes, labels), w if weighted else None)
    mean = w @ X / w.sum()
    np.testing.assert_allclose(m.mean_x, mean, rtol=1e-12, atol=1e-12)
    hot = np.eye(len(labels))[codes]
    np.testing.assert_allclose(m.xz, (X - mean).T @ (w[:, None] * hot), atol=1e-9)
    np.testing.assert_allclose(m.mean_z, w @ hot / w.sum(), rtol=1e-12)
    np.testing.assert_allclose(m.xx, (X - mean).T @ (w[:, None] * (X - mean)), atol=1e-4)
    np.testing.assert_allclose(m.squares, w @ (X - mean) ** 2, atol=1e-9)


@pytest.mark.parametrize("k", [2, 31, 32, 33, 70])
def test_any_number_of_classes(k):
    rng = np.random.default_rng(k)
    codes = rng.permutation(np.arange(1200) % k)
    X, w = rng.normal(size=(1200, 3)), rng.random(1200)
    m = Moments.of(X, in_classes(codes, range(k)), w)
    hot = np.eye(k)[codes]
    D = hot - w @ hot / w.sum()
    np.testing.assert_allclose(m.xz, X.T @ (w[:, None] * D), atol=1e-10)
    np.testing.assert_allclose(m.zz, D.T @ (w[:, None] * D), atol=1e-10)
    np.testing.assert_allclose(m.mean_z, w @ hot / w.sum(), rtol=1e-12)


# -- what decides the digits, and the threads ------------------------------------------------------


@pytest.mark.parametrize("weight", [1e-9, 0.3, 1e9])
def test_all_weights_by_a_factor_change_sums_alone(weight):
    """However little all rows weigh together, they are not nothing."""
    X, Z, w = some()
    w, X = w / w.sum(), X * [1e-3, 1, 1, 1, 1e3]
    plain, scaled = Moments.of(X, Z, w), Moments.of(X[:40], Z[:40], weight * w[:40])
    scaled.update(X[40:], Z[40:], weight * w[40:])
    for name in ("mean_x", "mean_z", "spreads", "concept_spreads", "cov_xx", "cov_xz", "cov_zz"):
        a, b = getattr(scaled, name), getattr(plain, name)
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12 * np.abs(b).max(), err_msg=name)
    assert scaled.weight == pytest.approx(weight)
    np.testing.assert_allclose(plain.mean_x, w @ X, rtol=1e-9)
    np.testing.assert_allclose(plain.spreads, np.sqrt(w @ (X - w @ X) ** 2), rtol=1e-9)
    np.testing.assert_allclose(plain.concept_spreads, np.sqrt(w @ (Z - w @ Z) ** 2), rtol=1e-9)


def test_nothing_beside_nothing_stays_where_it_was():
    X, Z, _ = some()
    nothing = np.zeros(len(X))
    one, two = Moments.of(X, Z, nothing), Moments.of(9 + X, Z, nothing)
    np.testing.assert_array_equal(one.merge(two).mean_x, one.mean_x)
    np.testing.assert_array_equal(one.merge(two).xx, np.zeros((5, 5)))


@pytest.mark.parametrize("value", [0.1, -1 / 3, 1e-7 / 3, 1e15 / 3])
@pytest.mark.parametrize("n", [1, 3, 700])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_constant_is_its_own_mean_to_the_last_digit(value, n, weighted):
    """A mean formed from sums would differ by a digit, and the column seem to vary."""
    rng = np.random.default_rng(0)
    X, Z, w = rng.normal(size=(n + 1, 3)), rng.normal(size=(n + 1, 2)), rng.random(n + 1)
    X[:, 1] = value
    w[0], X[0, 1] = 0.0, 7.0  # which does not count
    m = Moments.of(X, Z, w) if weighted else Moments.of(X[1:], Z[1:])
    assert m.mean_x[1] == value
    assert m.squares[1] == 0
    np.testing.assert_array_equal(m.xx[1], 0.0)


@pytest.mark.parametrize("heavy", [1.0, 1e-3])
def test_rows_are_measured_from_those_that_count(heavy):
    """More rows of next to no weight about zero than a block holds, and few far away that count."""
    rng = np.random.default_rng(0)
    X, z = rng.normal(size=(1500, 4)), rng.normal(size=1500)
    X[1400:] += 1e7
    for light in (0.0, 1e-30):
        w = np.where(np.arange(1500) < 1400, light, heavy)
        m = Moments.of(X, z, w)
        C, t = X[1400:] - X[1400:].mean(axis=0), z[1400:] - z[1400:].mean()
        np.testing.assert_allclose(m.squares, heavy * (C**2).sum(axis=0), rtol=1e-7)
        np.testing.assert_allclose(m.xz[:, 0], heavy * C.T @ t, rtol=1e-6, atol=1e-6 * heavy)


@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e22])
@pytest.mark.parametrize("n", [100, 2500])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_wide_rows_of_float32_at_any_scale(scale, n, weighted, offset):
    """Where their squares would vanish or overflow in float32, they are formed in float64.

    Where they lie far from zero, they are measured from a number that float32 holds exactly.
    """
    rng = np.random.default_rng(0)
    X = (scale * (offset + rng.normal(size=(n, 64)))).astype(np.float32)
    w = rng.random(n) * 1e-3 if weighted else None
    m = Moments.of(X, rng.normal(size=n), w)
    D = X.astype(float) / scale
    w = np.ones(n) if w is None else w
    C = D - w @ D / w.sum()
    expected = C.T @ (w[:, None] * C)
    np.testing.assert_allclose(m.xx / scale**2, expected, atol=2e-6 * expected.max())


@pytest.mark.parametrize(
    ("second", "most", "threads", "serial", "wide"),
    [
        (True, 99_999, 4, False, True),
        (False, 99_999, 4, False, False),
        (True, 100_000, 4, False, False),
        (True, 99_999, 3, False, False),  # as many spans as threads
        (True, 100_000, 4, True, False),
    ],
    ids=["few spans", "no products", "few products", "enough spans", "serial"],
)
def test_who_has_the_threads(monkeypatch, second, most, threads, serial, wide):
    """Few spans of many products leave the threads to BLAS; else spans share them."""
    used = []

    class Math(BlockMath):
        pass

    Math.serial = serial
    monkeypatch.setattr(parallel, "SPAN", 400)
    monkeypatch.setattr(moments, "FEW_PRODUCTS", most)
    monkeypatch.setattr(moments, "n_threads", lambda: threads)
    monkeypatch.setattr(
        moments, "one_blas_thread", lambda: used.append("one") or contextlib.nullcontext()
    )
    monkeypatch.setattr(
        moments, "imap_spans", lambda *given: used.append("many") or parallel.imap_spans(*given)
    )
    X, z = np.random.default_rng(0).normal(size=(2, 1000, 10))
    found = list(moments.span_moments(X, Concept.of_numbers(z), second=second, math=Math()))
    assert [m.n for m in found] == [400, 400, 200]
    assert set(used) == ({"one"} if wide else set() if serial else {"many"})
    np.testing.assert_allclose(
        reduce(Moments.merge, found).squares, 1000 * X.var(axis=0), rtol=1e-12
    )
    assert (found[0].xx is None) is not second


def test_spans_have_second_moments_unless_told_otherwise():
    (found,) = moments.span_moments(np.eye(3), Concept.of_numbers(np.arange(3.0)))
    np.testing.assert_allclose(found.xx, np.eye(3) - 1 / 3)


# -- a range is looked at block by block -----------------------------------------------------------


def looked_at(*blocks):
    """A check that has seen these blocks of rows, and the moments of them all."""
    check, total = moments.RangeCheck(), None
    for X, w in blocks:
        own = Moments.of(np.add(X, [0.0, 1e-3]), np.arange(float(len(X))), w)
        own = replace(own, squares=own.squares * [1, 0])  # as of numbers whose squares vanish
        assert check.see(X, own, w) is check
        total = own if total is None else total.merge(own)
    return check, replace(total, squares=total.squares * [1, 0])


def block(second, n=4, w=None):
    X = np.c_[np.arange(float(n)), np.full(n, second)]
    return X, w


NO, ONE = np.zeros(4), np.array([0.0, 0.5, 0.0, 0.0])


@pytest.mark.parametrize(
    ("blocks", "constant"),
    [
        ([block(1e-150)], True),
        ([block(1e-150), block(1e-150)], True),
        ([block(1e-150), block(2e-150)], False),
        ([block(1e-150), block(1e-150), block(2e-150)], False),
        ([block([1e-150, 1e-150, 1e-150, 2e-150])], False),
        ([block([1e-150, 2e-150, 1e-150, 1e-150], w=ONE)], True),
        ([block([1e-150, 2e-150, 1e-150, 1e-150], w=ONE), block(2e-150)], True),
        ([block([1e-150, 2e-150, 1e-150, 1e-150], w=ONE), block(1e-150)], False),
        ([block(1e-150), block([1e-150, 1e-150, 1e-150, 2e-150])], False),
        ([block([1e-150, 1e-150, 1e-150, 2e-150]), block(1e-150)], False),
        ([block(5e-150, w=NO), block(1e-150)], True),
        ([block(1e-150), block(5e-150, w=NO)], True),
    ],
)
def test_a_column_that_varies_from_block_to_block_does_vary(blocks, constant):
    def settles(check, total):
        if constant:
            return check.settle(total)
        with pytest.raises(InputError) as refused:
            check.settle(total)
        assert "1 of 2 columns, the first is column 1" in refused.value.received

    check, total = looked_at(*blocks)
    settles(check, total)
    parts = [looked_at(one)[0] for one in blocks]
    none = moments.RangeCheck()
    joined = reduce(moments.RangeCheck.joined, [none, *parts, none])
    settles(joined, total)
    assert none.seen is None


def test_moments_that_hold_no_numbers_are_refused():
    X, Z, _ = some()
    m = Moments.of(X, Z)
    moments.RangeCheck().settle(m)
    for name in ("mean_x", "squares"):
        with pytest.raises(InputError, match="X has columns out of range"):
            moments.RangeCheck().settle(replace(m, **{name: getattr(m, name) * np.nan}))
    for name in ("mean_z", "zz", "xz"):
        with pytest.raises(InputError, match="The concept has numbers"):
            moments.RangeCheck().settle(replace(m, **{name: getattr(m, name) * np.nan}))
    slightly = replace(m, zz=m.zz - np.diag(np.diag(m.zz)) - 1e-20 * np.eye(3))  # by rounding
    moments.RangeCheck().settle(slightly)
    np.testing.assert_array_equal(slightly.concept_spreads, 1.0)


# -- columns that come late ------------------------------------------------------------------------


def test_what_changed_is_said_in_order():
    X, Z, _ = some()
    one = Moments.of(X, Concept("labels", (Z > 0).astype(float), ("a", "b", "c")))
    two = Moments.of(X, Concept("labels", (Z > 0).astype(float), ("a", "b", "d")))
    with pytest.raises(InputError, match="changed its columns") as refused:
        one.merge(two)
    assert "('a', 'b', 'c') and then ('a', 'b', 'd')" in str(refused.value)


@pytest.mark.parametrize("value", [1.0, 0.1, 1e9 / 3])
def test_a_concept_that_is_constant_stays_so_in_a_stream(value):
    """One label of several that all rows have: its variance is zero, not rounding."""
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(100, 3)), rng.random(100) * 10
    Z = np.column_stack([rng.normal(size=100), np.full(100, value)])
    parts = [
        Moments.of(X[part], Concept.of_numbers(Z[part]), w[part])
        for part in (slice(0, 37), slice(37, 64), slice(64, 100))
    ]
    found = parts[0].merge(parts[1]).merge(parts[2])
    assert found.mean_z[1] == value
    assert not found.zz[1].any()
    assert not found.xz[:, 1].any()
    assert found.zz[0, 0] > 0
