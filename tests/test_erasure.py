"""The frozen affine map: its formula, its types, its memory, its algebra."""

import json
import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expunge import LEACE, Erasure, InputError, parallel
from expunge.rows.apply import CACHED


def orthonormal(d, r, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, r)))[0]


def orthogonal(d=8, r=2, seed=0, **points):
    Q = orthonormal(d, r, seed)
    return Erasure(Q, Q.T, **points)


def oblique(d=8, r=2, seed=0, scale=1.0, **points):
    """A projector that is not symmetric; `scale` is that of the data it was fitted on."""
    rng = np.random.default_rng(seed)
    L, R = rng.normal(size=(d, r)), rng.normal(size=(r, d))
    return Erasure(scale * L, np.linalg.solve(R @ L, R) / scale, **points)


def affine(d=8, seed=0, make=oblique, size=1.0, **options):
    rng = np.random.default_rng(seed + 100)
    points = {"center": size * rng.normal(size=d), "offset": size * rng.normal(size=d)}
    return make(d=d, seed=seed, **points, **options)


KINDS = {
    "orthogonal": orthogonal,
    "orthogonal with center": lambda **k: orthogonal(center=np.arange(8.0), **k),
    "oblique": oblique,
    "oblique with offset": lambda **k: oblique(offset=np.arange(8.0), **k),
    "affine": affine,
    "identity": lambda **k: Erasure(np.zeros((8, 0)), np.zeros((0, 8))),
}
every_kind = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)


def slow_transform(e, X):
    """The formula with the dense matrix, row by row, in float64."""
    c = np.zeros(e.n_features) if e.center is None else e.center
    o = np.zeros(e.n_features) if e.offset is None else e.offset
    return np.array([x - e.left @ (e.right @ (x - c)) + o for x in np.asarray(X, dtype=float)])


def data(n=50, d=8, seed=9):
    return np.random.default_rng(seed).normal(size=(n, d))


# -- the formula ---------------------------------------------------------------------------------


@every_kind
def test_the_formula(make):
    e, X = make(), data(1100)
    expected = slow_transform(e, X)
    np.testing.assert_allclose(e.transform(X), expected, atol=1e-12)
    np.testing.assert_array_equal(e(X), e.transform(X))
    np.testing.assert_allclose(e.matrix(), np.eye(8) - e.left @ e.right, atol=0)
    if e.center is None and e.offset is None:
        np.testing.assert_allclose(e(X), X @ e.matrix().T, atol=1e-12)
    assert e.rank == e.left.shape[1]
    assert e.n_features == 8


@pytest.mark.parametrize("r", [1, 2])
def test_an_orthogonal_erasure_removes_its_subspace_and_keeps_the_mean(r):
    X = 5 + data(300)
    e = orthogonal(r=r, center=X.mean(axis=0))
    gone = (e(X) - X.mean(axis=0)) @ e.basis.T
    assert np.abs(gone).max() < 1e-13
    assert np.linalg.matrix_rank(e(X) - X.mean(axis=0)) == 8 - r
    np.testing.assert_allclose(e(X).mean(axis=0), X.mean(axis=0), rtol=1e-13)


def test_rank_zero_is_the_identity():
    X = data()
    e = KINDS["identity"]()
    np.testing.assert_array_equal(e(X), X)
    assert e.rank == 0
    assert e.is_orthogonal
    assert e.basis.shape == (0, 8)


@pytest.mark.parametrize(
    ("left", "right", "points"),
    [
        (np.eye(3), np.eye(2), {}),
        (np.eye(3)[:, :1], np.eye(3)[:, :1], {}),
        (np.zeros(3), np.zeros(3), {}),
        (np.full((3, 1), np.nan), np.zeros((1, 3)), {}),
        (np.zeros((3, 1)), np.zeros((1, 3)), {"center": np.zeros(2)}),
        (np.zeros((3, 1)), np.zeros((1, 3)), {"offset": np.full(3, np.inf)}),
        (np.zeros((3, 1)), np.zeros((1, 3)), {"offset": np.zeros((1, 3))}),
    ],
)
def test_bad_parts_are_refused(left, right, points):
    with pytest.raises(InputError):
        Erasure(left, right, **points)


# -- types, shapes, out --------------------------------------------------------------------------


@every_kind
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f4"])
def test_floating_types_are_kept(make, dtype):
    X = data(700).astype(dtype)
    found = make()(X)
    assert found.dtype == np.dtype(dtype)
    expected = slow_transform(make(), X)
    tolerance = 4 * np.finfo(dtype).eps * max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(found.astype("f8"), expected, atol=10 * tolerance)


@pytest.mark.parametrize("dtype", ["i1", "u2", "i8", "?"])
def test_integers_and_booleans_give_float64(dtype):
    X = np.random.default_rng(0).integers(0, 100, (60, 8)).astype(dtype)
    found = affine()(X)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, slow_transform(affine(), X), rtol=1e-12, atol=1e-11)


@every_kind
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_out_and_in_place_give_the_same(make, dtype):
    e, X = make(), data(1300).astype(dtype)
    expected, out, before = e(X), np.empty_like(X), X.copy()
    assert e.transform(X, out=out) is out
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(X, before)
    assert e.transform(X, out=X) is X
    np.testing.assert_array_equal(X, expected)


@pytest.mark.parametrize("order", ["F", "strided"])
def test_layouts(order):
    X = data(900)
    Y = np.asfortranarray(X) if order == "F" else np.repeat(X, 2, axis=1)[:, ::2]
    out = np.empty_like(Y)
    np.testing.assert_allclose(affine()(Y), affine()(X), atol=1e-12)
    np.testing.assert_allclose(affine().transform(Y, out=out), affine()(X), atol=1e-12)
    np.testing.assert_allclose(affine().transform(Y, out=Y), affine()(X), atol=1e-12)


@pytest.mark.parametrize("shape", [(8,), (0, 8), (5, 8), (2, 3, 8), (2, 0, 8), (2, 2, 2, 8)])
def test_leading_axes_are_kept(shape):
    X = np.random.default_rng(0).normal(size=shape)
    expected = slow_transform(affine(), X.reshape(-1, 8)).reshape(shape)
    np.testing.assert_allclose(affine()(X), expected, atol=1e-12)
    swapped = np.swapaxes(X, 0, -2) if X.ndim > 2 else X  # a view that is not contiguous
    moved = np.swapaxes(expected, 0, -2) if X.ndim > 2 else expected
    np.testing.assert_allclose(affine()(swapped), moved, atol=1e-12)
    np.testing.assert_allclose(affine().transform(X, out=X), expected, atol=1e-12)


@pytest.mark.parametrize(
    "out",
    [
        np.empty((50, 8), dtype="f4"),
        np.empty((50, 7)),
        np.empty(400),
        [[0.0] * 8] * 50,
    ],
    ids=["type", "width", "dimensions", "list"],
)
def test_a_wrong_out_is_refused(out):
    with pytest.raises(InputError, match="out must be an array of shape"):
        affine().transform(data(), out=out)


def test_integers_cannot_be_erased_in_place():
    X = np.ones((4, 8), dtype=int)
    with pytest.raises(InputError, match="float64"):
        affine().transform(X, out=X)


def test_overlap_is_refused_and_neighbours_are_not():
    A = np.random.default_rng(0).normal(size=(60, 16))
    expected = affine()(A[:, :8])
    for X, out in ((A[:-1, :8], A[1:, :8]), (A[:, :8], A[::-1, :8]), (A[:, :8], A[:, 4:12])):
        with pytest.raises(InputError, match="overlaps"):
            affine().transform(X, out=out)
    affine().transform(A[:, :8], out=A[:, 8:])  # side by side in one array
    np.testing.assert_array_equal(A[:, 8:], expected)
    locked = A[:, :8].view()
    locked.flags.writeable = False
    affine().transform(locked, out=A[:, :8])  # the same memory, seen through a read-only view
    np.testing.assert_array_equal(A[:, :8], expected)


def test_a_strided_out_for_stacked_rows_is_refused():
    with pytest.raises(InputError, match="contiguous"):
        affine().transform(data(6).reshape(2, 3, 8), out=np.empty((2, 3, 16))[..., ::2])


@pytest.mark.parametrize("shape", [(5, 7), (9,), (), (8, 1)])
def test_a_wrong_width_is_refused(shape):
    with pytest.raises(InputError, match="expecting 8 features"):
        affine()(np.zeros(shape))


def test_lists_and_frames():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    X, names = data(), list("abcdefgh")
    for same in (X.tolist(), pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        np.testing.assert_allclose(affine()(same), affine()(X), atol=1e-13)


def test_threads_give_the_same_bits(monkeypatch):
    X = data(3 * parallel.SPAN + 5)
    alone = affine()(X)
    monkeypatch.setattr(parallel, "WORTH_THREADS", 0)
    monkeypatch.setattr(parallel, "n_threads", lambda: 3)
    np.testing.assert_array_equal(affine()(X), alone)
    np.testing.assert_array_equal(affine().transform(X, out=X), alone)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("in_place", [False, True])
def test_no_second_array_of_the_size_of_the_rows(monkeypatch, dtype, in_place):
    monkeypatch.setattr(parallel, "n_threads", lambda: 2)
    X = np.ones((240_000, 64), dtype=dtype)
    out, e = X if in_place else np.empty_like(X), affine(d=64, r=3)
    e.transform(X[:10])
    tracemalloc.start()
    e.transform(X, out=out)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * CACHED * 8  # a few blocks
    assert peak < X.nbytes / 4


def test_without_out_only_the_result_is_allocated():
    X, e = np.ones((240_000, 64)), affine(d=64, r=3)
    e.transform(X[:10])
    tracemalloc.start()
    e(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert X.nbytes <= peak < 1.1 * X.nbytes


@pytest.mark.parametrize("offset", [1e6, -1e6])
def test_a_large_common_offset_keeps_precision(offset):
    X = offset + data(300)
    e = orthogonal(center=X.mean(axis=0))
    gone = (e(X) - X.mean(axis=0)) @ e.basis.T
    assert np.abs(gone).max() < 1e-8
    Xf = X.astype("f4")
    step = np.spacing(np.float32(offset))
    assert np.abs(e(Xf) - slow_transform(e, Xf)).max() <= 4 * abs(step)


# -- frozen, meta, pickle ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["left", "right", "center", "offset", "basis"])
def test_arrays_are_read_only(name):
    e = affine()
    with pytest.raises(ValueError, match="read-only"):
        getattr(e, name)[0] = 0


@pytest.mark.parametrize(
    "name",
    ["left", "center", "meta", "rank", "basis", "is_orthogonal", "_left", "something_new"],
)
def test_attributes_cannot_be_set(name):
    e = affine()
    for _ in range(2):  # also after a cached value exists
        with pytest.raises(AttributeError):
            setattr(e, name, 1)
        _ = e.basis, e.is_orthogonal


def test_the_callers_arrays_are_copied():
    left, center = np.eye(3)[:, :1].copy(), np.ones(3)
    e = Erasure(left, left.T, center)
    left[:], center[:] = 7, 7
    np.testing.assert_array_equal(e([[1.0, 2.0, 3.0]]), [[1.0, 2.0, 3.0]])


def test_meta_is_a_json_copy():
    source = {"method": "LEACE", "labels": ("f", "m"), "deep": {"list": [1, 2]}}
    e = orthogonal(meta=source)
    source["deep"]["list"].append(3)
    e.meta["deep"]["list"].append(4)
    e.meta["new"] = 1
    assert e.meta == {"method": "LEACE", "labels": ["f", "m"], "deep": {"list": [1, 2]}}
    assert json.loads(json.dumps(e.meta)) == e.meta
    assert orthogonal().meta == {}
    for bad in ({"function": len}, {"nan": float("nan")}, [1], "text"):
        with pytest.raises(InputError, match="meta"):
            orthogonal(meta=bad)


def test_repr():
    assert repr(orthogonal(meta={"method": "RLACE"})) == (
        "Erasure(rank 2 of 8 features, orthogonal, by RLACE)"
    )
    assert repr(oblique()) == "Erasure(rank 2 of 8 features, oblique)"


@every_kind
def test_pickle_round_trip(make):
    e, X = make(), data()
    _ = e.basis
    back = pickle.loads(pickle.dumps(e))
    np.testing.assert_array_equal(back(X), e(X))
    assert back.meta == e.meta
    assert not back.left.flags.writeable


# -- basis, is_orthogonal ------------------------------------------------------------------------


@every_kind
@pytest.mark.parametrize("scale", [1.0, 1e-8, 1e8])
def test_basis_is_orthonormal_and_spans_what_is_read(make, scale):
    e = Erasure(make().left * scale, make().right / scale)
    B = e.basis
    assert B.shape == (e.rank, 8)
    np.testing.assert_allclose(B @ B.T, np.eye(e.rank), atol=1e-12)
    np.testing.assert_allclose(scale * (e.right - e.right @ B.T @ B), 0, atol=1e-12)


@pytest.mark.parametrize(
    ("e", "expected"),
    [
        (orthogonal(), True),
        (orthogonal(center=np.ones(8), offset=np.ones(8)), True),
        (Erasure(3 * orthogonal().left, orthogonal().right / 3), True),
        (oblique(), False),
        (oblique(scale=1e-8), False),
        (Erasure(orthogonal().left / 2, orthogonal().right), False),  # shrinks, does not project
        (Erasure(orthogonal().left, orthogonal(seed=1).right), False),
    ],
)
def test_is_orthogonal(e, expected):
    assert e.is_orthogonal is expected


# -- then ----------------------------------------------------------------------------------------

kinds = st.sampled_from(list(KINDS))


@settings(deadline=None, max_examples=60)
@given(kinds, kinds, st.integers(0, 50))
def test_then_is_one_after_the_other(one, two, seed):
    first, second, X = KINDS[one](seed=seed), KINDS[two](seed=seed + 1), data(seed=seed)
    both = first.then(second)
    size = np.prod([1 + np.linalg.norm(e.left) * np.linalg.norm(e.right) for e in (first, second)])
    atol = 1e-14 * size * max(1.0, np.abs(second(first(X))).max())  # oblique ones amplify rounding
    np.testing.assert_allclose(both(X), second(first(X)), atol=atol, rtol=1e-12)
    np.testing.assert_allclose(both.matrix(), second.matrix() @ first.matrix(), atol=1e-14 * size)
    assert both.rank <= first.rank + second.rank


@pytest.mark.parametrize("make", [orthogonal, oblique, KINDS["orthogonal with center"]])
def test_the_same_twice_has_the_same_rank(make):
    e = make()
    twice = e.then(e)
    assert twice.rank == e.rank == 2
    assert twice.offset is None
    np.testing.assert_allclose(twice(data()), e(data()), atol=1e-12)
    assert twice.then(e).rank == 2


def test_then_reduces_to_the_joint_subspace():
    Q = orthonormal(8, 3)
    a, b = Erasure(Q[:, :2], Q[:, :2].T), Erasure(Q[:, 1:], Q[:, 1:].T)
    both = a.then(b)
    assert both.rank == 3
    assert both.is_orthogonal
    np.testing.assert_allclose(both.basis.T @ both.basis, Q @ Q.T, atol=1e-13)
    identity = KINDS["identity"]()
    assert identity.then(a).rank == a.then(identity).rank == 2
    assert identity.then(identity).rank == 0


def test_then_undoes():
    e = Erasure(np.eye(8)[:, :1], -np.eye(8)[:1])  # doubles one entry
    back = Erasure(np.eye(8)[:, :1], np.eye(8)[:1] / 2)  # halves it
    assert e.then(back).rank == 0
    np.testing.assert_array_equal(e.then(back)(data()), data())


def test_then_at_a_large_common_offset():
    rng = np.random.default_rng(0)
    c = 1e6 + rng.normal(size=300)
    X = c + rng.normal(size=(50, 300))
    for step in (0.0, 1e-6, 1.0):
        Q = orthonormal(300, 2)
        a = Erasure(Q[:, :1], Q[:, :1].T, center=c)
        b = Erasure(Q[:, 1:], Q[:, 1:].T, center=c + step * Q[:, 1])
        assert np.abs(a.then(b)(X) - b(a(X))).max() < 2e-9


@pytest.mark.parametrize("scale", [1e-8, 1e-12, 1e8])
def test_then_at_any_scale(scale):
    """An offset of a millionth of the data is no rounding, however small the data are."""
    X = scale * data(d=300)
    a = affine(d=300, make=orthogonal, size=1e-6 * scale)
    b = affine(d=300, make=oblique, size=1e-6 * scale, seed=1)
    for first, second in ((a, b), (b, a), (Erasure(a.left, a.right, offset=a.offset), b)):
        error = np.abs(first.then(second)(X) - second(first(X))).max()
        assert error < 1e-12 * np.abs(second(first(X))).max()


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1e12])
def test_then_keeps_small_parts_of_unevenly_scaled_factors(scale):
    u, v = orthonormal(8, 2).T
    a = Erasure(scale * u[:, None], (u + v)[None] / scale)
    w = (u + 1e-6 * v) / np.linalg.norm(u + 1e-6 * v)
    b = Erasure(w[:, None], w[None])
    both = a.then(b)
    assert both.rank == 2
    np.testing.assert_allclose(both.matrix(), b.matrix() @ a.matrix(), atol=1e-14)


def test_then_remembers_its_steps():
    both = orthogonal(meta={"method": "A"}).then(oblique(meta={"method": "B"}))
    assert both.meta == {"method": "then", "steps": [{"method": "A"}, {"method": "B"}]}


def test_then_needs_the_same_width():
    with pytest.raises(InputError, match="same width"):
        orthogonal(d=8).then(orthogonal(d=9))


def test_then_takes_a_fitted_eraser():
    X = data()
    eraser = LEACE().fit(X, X[:, 0] > 0)
    e = affine()
    np.testing.assert_allclose(e.then(eraser)(X), eraser.transform(e(X)), atol=1e-12)
    assert e.then(eraser).meta["steps"][1]["method"] == "LEACE"
    with pytest.raises(InputError):
        e.then("an erasure")


def test_then_of_then_remembers_every_step():
    a, b, c = (orthogonal(seed=k, meta={"method": "ABC"[k]}) for k in range(3))
    for both in (a.then(b).then(c), a.then(b.then(c))):
        assert [step["method"] for step in both.meta["steps"]] == ["A", "B", "C"]


@pytest.mark.parametrize("second", [None, "same", "turned"])
def test_then_knows_the_columns_of_a_table(second):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(data(), columns=list("abcdefgh"))
    y = frame["a"] > 0
    e = LEACE().fit(frame, y).erasure_
    turned = LEACE().fit(frame[list("hgfedcba")], y).erasure_
    other = {None: orthogonal(), "same": e, "turned": turned}[second]
    if second == "turned":
        with pytest.raises(InputError, match="same columns in the same order"):
            e.then(other)
        return
    for both in (e.then(other), other.then(e)):
        assert both.columns.names == e.columns.names
        assert both.meta["columns"] == e.meta["columns"]
        np.testing.assert_array_equal(both(frame[list("hgfedcba")]), both(data()))
    assert "columns" not in orthogonal().then(orthogonal()).meta


@pytest.mark.parametrize("size", [1.0, 1e6])
def test_then_is_compact_and_always_the_same(size):
    """Rows of `right` are orthonormal, with their largest entry positive; nothing is left over."""
    grow = Erasure(size * np.eye(8)[:, :1], -np.eye(8)[:1])
    back = Erasure(np.eye(8)[:, :1], size / (1 + size) * np.eye(8)[:1])
    assert grow.then(back).rank == 0
    both = Erasure(-size * orthonormal(8, 2), -orthonormal(8, 2, 1).T).then(orthogonal(seed=2))
    assert both.rank == 4
    np.testing.assert_allclose(both.right @ both.right.T, np.eye(4), atol=1e-12)
    assert (both.right[range(4), np.abs(both.right).argmax(axis=1)] > 0).all()


@pytest.mark.parametrize(("left", "right"), [(0.0, 1.0), (1.0, 0.0), (0.0, 0.0)])
def test_then_drops_what_does_nothing(left, right):
    e = Erasure(np.full((8, 1), left), np.full((1, 8), right))
    identity = KINDS["identity"]()
    assert e.rank == 1
    for both in (e.then(identity), identity.then(e), e.then(e)):
        assert both.rank == 0
        np.testing.assert_array_equal(both(data()), data())


def test_one_oblique_direction_is_not_orthogonal():
    u, v = orthonormal(8, 2).T
    assert Erasure(u[:, None], u[None]).is_orthogonal
    assert not Erasure(u[:, None], (u + v)[None]).is_orthogonal
    assert not Erasure(2 * u[:, None], u[None]).is_orthogonal
    assert not Erasure(u[:, None], (u + 1e-6 * v)[None]).is_orthogonal
    assert Erasure(u[:, None], (u + 1e-13 * v)[None]).is_orthogonal


@pytest.mark.parametrize("points", [(), ("center",), ("offset",), ("center", "offset")])
def test_an_emptied_column_becomes_a_constant(points):
    given = {"center": np.arange(1.0, 9.0), "offset": np.arange(10.0, 90.0, 10.0)}
    e = Erasure(np.eye(8)[:, [2, 5]], np.eye(8)[[2, 5]], **{name: given[name] for name in points})
    np.testing.assert_array_equal(e.emptied, [2, 5])
    expected = sum((given[name][[2, 5]] for name in points), np.zeros(2))
    np.testing.assert_array_equal(e.constant, expected)
    np.testing.assert_array_equal(e(data())[:, [2, 5]], np.tile(expected, (50, 1)))


@every_kind
def test_a_file_holds_what_there_is(make, tmp_path):
    e = make(meta={"method": "X"}) if make is not KINDS["identity"] else make()
    parts = {"left": e.left, "right": e.right, "center": e.center, "offset": e.offset}
    assert {*e.tensors()} == {name for name, part in parts.items() if part is not None}
    e.save(tmp_path / "e")
    back = Erasure.load(tmp_path / "e")
    assert back.meta == e.meta
    for name, part in e.tensors().items():
        np.testing.assert_array_equal(part, parts[name])
        np.testing.assert_array_equal(getattr(back, name), part)
    np.testing.assert_array_equal(back(data()), e(data()))


def test_the_identity_changes_nothing():
    e = Erasure.identity(8)
    assert (e.rank, e.n_features, e.left.shape, e.right.shape) == (0, 8, (8, 0), (0, 8))
    np.testing.assert_array_equal(e(data()), data())
