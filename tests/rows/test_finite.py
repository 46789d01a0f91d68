"""NaN, infinity and numbers too large for their type never come out of an erasure unnoticed."""

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import expunge as ex
from expunge import Erasure, InputError, parallel
from expunge.rows.apply import overlaps_itself

NAN, INF = float("nan"), float("inf")
D = 8


def erasure(rank, seed=0):
    """Reads only the first half of the columns, so that the others meet zeros."""
    Q = np.zeros((D, rank))
    Q[: D // 2] = np.linalg.qr(np.random.default_rng(seed).normal(size=(D // 2, rank)))[0]
    return Erasure(Q, Q.T, center=np.arange(D), offset=np.ones(D))


def rows(n=1200, dtype="f8", seed=1):
    return np.random.default_rng(seed).normal(size=(n, D)).astype(dtype)


@pytest.mark.parametrize("rank", [0, 1, 2, 4])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f4"])
@pytest.mark.parametrize("bad", [NAN, INF, -INF])
@pytest.mark.parametrize("column", [0, 3, 7])
@pytest.mark.parametrize("where", ["result", "out", "in place"])
def test_nan_and_infinity_are_refused(rank, dtype, bad, column, where):
    e, X = erasure(rank), rows(dtype=dtype)
    good = e.transform(X)
    assert np.isfinite(good).all()
    X[[700, 900], column] = bad
    out = {"result": None, "out": np.empty_like(X), "in place": X}[where]
    with pytest.raises(InputError, match="NaN or infinity") as caught:
        e.transform(X, out=out)
    assert "2 such rows, the first is row 700" in str(caught.value)
    if out is not None:  # all other rows have been erased, as the message says
        others = np.setdiff1d(np.arange(len(X)), [700, 900])
        np.testing.assert_array_equal(out[others], good[others])


@pytest.mark.parametrize("shape", [(D,), (2, 3, D), (4, D)])
def test_of_any_shape(shape):
    X = np.zeros(shape)
    assert erasure(1)(X).shape == shape
    X[..., -1] = NAN
    with pytest.raises(InputError, match="NaN"):
        erasure(1)(X)
    assert erasure(1)(np.zeros((0, D))).shape == (0, D)


def test_in_frames_and_lists():
    pd = pytest.importorskip("pandas")
    X = rows(5)
    X[2, 5] = INF
    for given in (X.tolist(), pd.DataFrame(X), X.astype(object), np.asfortranarray(X)):
        with pytest.raises(InputError, match="NaN or infinity"):
            erasure(2)(given)


@pytest.mark.parametrize("where", ["result", "in place"])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_results_beyond_the_range_of_the_type_are_refused(dtype, where):
    largest = np.finfo(dtype).max
    e = Erasure(np.ones((D, 1)), -np.eye(D)[:1])  # adds the first column to all
    X = np.full((600, D), largest / 4, dtype=dtype)
    assert np.isfinite(e.transform(X)).all()
    X[500] = 0.75 * largest
    with pytest.raises(InputError, match="can hold" if where == "result" else "too large"):
        e.transform(X, out=X if where == "in place" else None)


def test_threads_are_watched_too(monkeypatch):
    monkeypatch.setattr(parallel, "WORTH_THREADS", 0)
    monkeypatch.setattr(parallel, "n_threads", lambda: 3)
    X = rows(3 * parallel.SPAN + 5)
    X[-1, 7] = NAN
    with pytest.raises(InputError, match=f"row {len(X) - 1}"):
        erasure(2)(X)
    X = np.full((3 * parallel.SPAN, D), 1e4, dtype="f2")
    X[2 * parallel.SPAN, 1] = 65000
    big = Erasure(np.ones((D, 1)), -np.ones((1, D)) / D)
    with pytest.raises(InputError, match="float16"):
        big.transform(X)


@pytest.mark.parametrize("dtype", ["f2", "f4"])
def test_conditional_erasures_too(dtype):
    X = np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 0.0], [5.0, 1.0]], dtype=dtype)
    z = ["a", "a", "b", "b"]
    shift = np.array([[float(np.finfo(dtype).max), 0.0], [0.0, 0.0]])
    e = ex.ConditionalErasure(shift, [0.5, 0.5], [0.0, 0.0], ["a", "b"], "classes")
    assert np.isfinite(e.transform(X, z)).all()
    with pytest.raises(InputError, match="can hold"):
        e.transform(X - np.array([np.finfo(dtype).max, 0], dtype=dtype), z)
    X[0, 0] = NAN
    with pytest.raises(InputError, match="NaN"):
        e.transform(X, z)


@pytest.mark.parametrize("make", [ex.LEACE, ex.RLACE, ex.SAL, ex.MeanProjection, ex.INLP])
def test_erasers_too(make):
    X, y = rows(100), np.arange(100) % 2
    eraser = make().fit(X, y)
    X[3, 3] = NAN
    with pytest.raises(InputError, match="NaN"):
        eraser.transform(X)


# -- out -------------------------------------------------------------------------------------------


def writable(view):
    view.flags.writeable = True
    return view


BASE = rows(60)
OVERLAPPING = {
    "one row for all": lambda: as_strided(np.zeros(D), (60, D), (0, 8)),
    "one column for all": lambda: as_strided(np.zeros(60), (60, D), (8, 0)),
    "sliding": lambda: as_strided(np.zeros(60 + D), (60, D), (8, 8)),
    "half over": lambda: as_strided(np.zeros(60 * D), (60, D), (4 * 8, 8)),
    "broken entries": lambda: as_strided(np.zeros(60 * D), (60, D), (4 * D, 4)),
    "reversed": lambda: as_strided(np.zeros(60 + D)[::-1], (60, D), (-8, -8)),
}


@pytest.mark.parametrize("make", OVERLAPPING.values(), ids=OVERLAPPING)
def test_an_out_whose_rows_overlap_is_refused(make):
    with pytest.raises(InputError, match="share their memory"):
        erasure(1).transform(BASE, out=make())
    same = make()
    with pytest.raises(InputError, match="share their memory"):
        erasure(1).transform(same, out=same)
    np.testing.assert_array_equal(erasure(1)(make()), erasure(1)(make().copy()))  # as input it may


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_broadcast_out_is_refused():
    out = np.broadcast_to(np.zeros(D), (60, D))
    with pytest.raises(InputError, match="written"):
        erasure(1).transform(BASE, out=out)
    with pytest.raises(InputError, match="share their memory"):
        erasure(1).transform(BASE, out=writable(out))


def test_a_read_only_out_is_refused():
    out = np.zeros((60, D))
    out.flags.writeable = False
    with pytest.raises(InputError, match="written"):
        erasure(1).transform(BASE, out=out)


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_other_classes_of_arrays_are_no_out():
    for out in (np.asmatrix(BASE.copy()), np.ma.masked_array(BASE.copy())):
        with pytest.raises(InputError, match="out must be an array"):
            erasure(1).transform(BASE, out=out)


@pytest.mark.parametrize("order", ["C", "F"])
def test_layouts_that_do_not_overlap_are_taken(order, tmp_path):
    expected = erasure(1)(BASE)
    wide = np.zeros((120, 3 * D), order=order)
    stored = np.memmap(tmp_path / "m", "f8", "w+", shape=(60, D))
    for out in (wide[::2, ::3], wide[60:, -D:], wide[::-2, D:0:-1], stored):
        assert erasure(1).transform(BASE, out=out) is out
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(
    ("shape", "strides", "expected"),
    [
        ((3, 2), (2, 1), False),
        ((3, 2), (1, 3), False),
        ((3, 2), (-2, 1), False),
        ((3, 2), (1, 1), True),
        ((3, 2), (0, 1), True),
        ((1, 2), (0, 1), False),
        ((0, 2), (0, 0), False),
        ((2, 3, 4), (12, 4, 1), False),
        ((2, 3, 4), (8, 4, 1), True),
        ((), (), False),
    ],
)
def test_overlap(shape, strides, expected):
    assert overlaps_itself(shape, strides) is expected


# -- tensors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("large", [False, True])
def test_tensors(dtype, large):
    torch = pytest.importorskip("torch")
    X = torch.zeros((1 << 18 if large else 20, D), dtype=getattr(torch, dtype))
    e = erasure(1)
    assert torch.isfinite(e.transform(X)).all()
    X[11, 7] = NAN
    for out in (None, torch.empty_like(X)):
        with pytest.raises(InputError, match=r"NaN or infinity.*row 11"):
            e.transform(X, out=out)
    X[11, 7] = torch.finfo(X.dtype).max
    grows = Erasure(np.ones((D, 1)), -2 * np.eye(D)[7:])
    with pytest.raises(InputError, match=f"{dtype} can hold"):
        grows.transform(X)


def test_tensors_with_gradients_are_left_alone():
    torch = pytest.importorskip("torch")
    X = torch.full((3, D), NAN, requires_grad=True)
    assert erasure(1).transform(X).isnan().all()
    assert erasure(1).transform(torch.empty((3, D), device="meta")).is_meta


def test_an_out_tensor_whose_rows_overlap_is_refused():
    torch = pytest.importorskip("torch")
    X, line = torch.zeros(60, D), torch.zeros(60 + D)
    for out in (line[:D].expand(60, D), line.as_strided((60, D), (1, 1))):
        with pytest.raises(InputError, match="share their memory"):
            erasure(1).transform(X, out=out)
    shared = np.zeros((61, D), dtype="f4")  # two tensors that do not know of each other
    with pytest.raises(InputError, match="overlaps"):
        erasure(1).transform(torch.from_numpy(shared[:-1]), out=torch.from_numpy(shared[1:]))
    halves = torch.zeros(120, D)
    erasure(1).transform(halves[:60], out=halves[60:])
    assert torch.equal(halves[60:], erasure(1).transform(halves[:60]))


def test_conditional_erasures_of_tensors():
    torch = pytest.importorskip("torch")
    e = ex.ConditionalErasure([[1e5, 0.0]], [0.5, 0.5], [0.0], ["a", "b"], "classes")
    assert torch.isfinite(e.transform(torch.zeros(2, 1), ["a", "b"])).all()
    with pytest.raises(InputError, match="float16 can hold"):
        e.transform(torch.full((2, 1), 6e4, dtype=torch.float16), ["b", "b"])
