"""What an erasure remembers of its fit, against plain correlations of the rows."""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest

import expunge as ex
from expunge.erasers.record import columns_record, fit_record, rows_record
from expunge.erasers.solution import Solution, check_varies, jsonable
from expunge.erasers.statistics import Statistics
from expunge.fingerprint import Fingerprint
from planted import plant


def correlations(X, Z, w=None):
    """Sizes of the correlations of columns (d x m); 0 of what does not vary."""
    w = np.ones(len(X)) / len(X) if w is None else w / w.sum()
    C, D = X - w @ X, Z - w @ Z
    sx, sz = np.sqrt(w @ C**2), np.sqrt(w @ D**2)
    sx[sx < 1e-12], sz[sz < 1e-12] = np.inf, np.inf
    return np.abs(C.T @ (w[:, None] * D)) / np.outer(sx, sz)


@pytest.mark.parametrize("strength", [1.0, 0.75, 0.5, 0.0])
@pytest.mark.parametrize("name", ["LEACE", "SAL", "OracleLEACE", "QuadraticLEACE", "INLP"])
@pytest.mark.parametrize("weighted", [False, True])
def test_what_is_left_is_the_worst_share_of_a_correlation(name, strength, weighted):
    """In any units: one column of the concept, and one of the rows, is a million times wider."""
    kind = "classes" if name == "QuadraticLEACE" else "labels"
    data, rng = plant(kind), np.random.default_rng(1)
    X = data.X * [1, 1, 1, 1, 1, 1, 1, 50]
    w = rng.random(600) + 0.1 if weighted else None
    settings = {"strength": strength, **({"rank": 1} if name == "INLP" else {})}
    if name == "SAL":
        settings["rank"] = 2
    eraser = ex.ERASERS[name](**settings).fit(X, data.y, sample_weight=w)
    told = hasattr(eraser, "conditional_erasure_")
    clean = eraser.transform(X, concept=data.y) if told else eraser.transform(X)
    erasure = eraser.conditional_erasure_ if told else eraser.erasure_
    found = erasure.meta["fit"]
    v = np.ones(600) if w is None else w
    before, after = correlations(X, data.Z, v), correlations(clean, data.Z, v)
    spread = np.sqrt(v @ (X - v @ X / v.sum()) ** 2 / v.sum())
    C, D = clean - v @ clean / v.sum(), data.Z - v @ data.Z / v.sum()
    sz = np.sqrt(v @ D**2 / v.sum())
    left = np.abs(C.T @ (v[:, None] * D)) / v.sum() / np.outer(spread, sz)
    assert found["left"] == pytest.approx((left.max(0) / before.max(0)).max(), abs=1e-9)
    assert found["correlation"] == pytest.approx(after.max(), abs=1e-9)
    assert found["effective_n"] == pytest.approx(v.sum() ** 2 / (v @ v))
    np.testing.assert_allclose(found["variances"], v @ D**2 / v.sum(), rtol=1e-9)
    if strength == 1 and name not in ("SAL", "INLP"):
        assert found["left"] == 0.0


def statistics(X, Z, w=None, **more):
    moments = ex.Moments.of(X, Z, w)
    return Statistics(moments, None, **more)


def nothing_erased(d):
    return Solution(np.zeros((d, 0)), np.zeros((0, d)), None, "none", ())


def test_what_does_not_vary_has_no_correlation():
    """A constant column, one that is constant but for rounding, a constant concept, and noise."""
    rng = np.random.default_rng(0)
    z = np.tile([0.0, 1.0], 50)
    noise = np.repeat(rng.normal(size=50), 2)  # uncorrelated with z
    X = np.c_[z, noise, np.full(100, 7.0), 1e9 + 1e-9 * z]
    X[:, 3] += np.where(np.arange(100) < 50, 0.0, np.spacing(1e9)) * z
    Z = np.c_[z, np.full(100, 2.0), noise]
    seen = statistics(X, Z)
    found = fit_record(seen, nothing_erased(4), 1.0)
    assert found["left"] == pytest.approx(1.0)
    assert "correlation" not in found
    np.testing.assert_allclose(found["variances"], Z.var(axis=0), atol=1e-15)
    kept = SimpleNamespace(spreads=np.sqrt(seen.moments.squares / 100))
    assert fit_record(seen, nothing_erased(4), 1.0, kept)["correlation"] == pytest.approx(1.0)
    alone = statistics(X[:, 2:], Z)
    told = fit_record(alone, nothing_erased(2), 1.0, SimpleNamespace(spreads=np.zeros(2)))
    assert (told["left"], told["correlation"]) == (0.0, 0.0)


def test_a_concept_that_was_never_there_is_not_left():
    """Correlations of rounding, before and after, count as none."""
    rng = np.random.default_rng(0)
    z = np.tile([0.0, 1.0], 200)
    X = np.repeat(rng.normal(size=(200, 3)), 2, axis=0)
    seen = statistics(X, z)
    assert np.abs(correlations(X, z[:, None])).max() < 1e-14
    assert fit_record(seen, nothing_erased(3), 1.0)["left"] == 0.0


def test_offsets_take_their_digits_with_them():
    """Far from zero a covariance is known to the last digits of the mean: those are no leak."""
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, 400).astype(float)
    X = 1e6 + rng.normal(size=(400, 3)) + np.outer(z, [1, 1, 0])
    eraser = ex.LEACE().fit(X, z.astype(int))
    assert eraser.erasure_.meta["fit"]["left"] == 0.0
    assert ex.LEACE(strength=0.5).fit(X, z.astype(int)).erasure_.meta["fit"][
        "left"
    ] == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_are_remembered_to_six_digits(weighted):
    X, w = plant("number").X * [1, 1e-9, 1e9, 1, 1, 1, 1, 1], np.arange(1.0, 601)
    w = w if weighted else np.ones(600)
    found = rows_record(ex.Moments.of(X, X[:, 0], w))
    mean = w @ X / w.sum()
    spread = np.sqrt(w @ (X - mean) ** 2 / w.sum())
    assert found["mean"] == [float(f"{v:.6g}") for v in mean]
    assert found["spread"] == [float(f"{v:.6g}") for v in spread]
    assert found["mean"] != [float(f"{v:.7g}") for v in mean]


def test_columns_are_remembered_by_name():
    pd = pytest.importorskip("pandas")
    data = plant("binary")
    frame = pd.DataFrame(data.X, columns=list("abcdefgh"))
    meta = ex.LEACE().fit(frame, data.y).erasure_.meta
    assert meta["columns"]["vectors"] == list("abcdefgh")
    assert "columns" not in ex.LEACE().fit(data.X, data.y).erasure_.meta
    assert columns_record(statistics(data.X, data.Z)) == {}


# -- sums over chunks ------------------------------------------------------------------------------


def parts(weights=(None, None), **more):
    rng, found = np.random.default_rng(0), []
    for n, w in zip((20, 30), weights, strict=True):
        X = rng.normal(size=(n, 2))
        w = None if w is None else np.full(n, w)
        moments = ex.Moments.of(X, X[:, 0], w)
        squared = None if w is None else float(w @ w)
        found.append(Statistics(moments, Fingerprint.of(X), squared_weights=squared, **more))
    return found


@pytest.mark.parametrize("weights", [(None, None), (0.5, None), (None, 3.0), (0.5, 3.0)])
def test_weights_of_chunks_add_up(weights):
    a, b = parts(weights)
    w = np.concatenate([np.full(n, v or 1.0) for n, v in zip((20, 30), weights, strict=True)])
    both = a.merge(b)
    assert both.effective_n == pytest.approx(w.sum() ** 2 / (w @ w))
    assert (both.squared_weights is None) == (weights == (None, None))
    assert both.moments.n == 50
    assert both.own is both.moments


def test_a_fingerprint_of_some_chunks_is_none_of_all():
    a, b = parts()
    assert a.merge(b).seen.to_meta() == a.seen.merge(b.seen).to_meta()
    for one, two in ((a, replace(b, seen=None)), (replace(a, seen=None), b)):
        assert one.merge(two).seen is None


def test_what_chunks_bring_beside_their_moments():
    a, b = parts(rounding=0.25)
    assert (a.merge(b).rounding, parts()[0].rounding) == (0.5, 0.0)
    assert a.merge(b).columns is None
    assert replace(a, columns="A").merge(replace(b, columns="B")).columns == "A"
    assert a.merge(replace(b, columns="B")).columns == "B"
    with_task = replace(a, task=a.moments), replace(b, task=b.moments)
    assert with_task[0].merge(with_task[1]).task.n == 50
    for one, two in ((a, with_task[1]), (with_task[0], b)):
        with pytest.raises(ex.InputError, match="task is missing"):
            one.merge(two)
    assert a.merge(b).task is None
    one, two = (
        replace(p, by_class={k: p.moments, "all": p.moments})
        for k, p in zip("xy", (a, b), strict=True)
    )
    both = one.merge(two).by_class
    assert {label: m.n for label, m in both.items()} == {"x": 20, "all": 50, "y": 30}
    assert {*one.by_class} == {"x", "all"}  # as it was
    assert a.merge(b).by_class is None


def test_how_many_rows_it_is_worth():
    a, _ = parts()
    assert a.effective_n == 20
    assert replace(a, design=2.0).effective_n == 10
    pool = SimpleNamespace(variance=0.25)
    assert replace(a, pool=pool, design=2.0).effective_n == 40
    labelled = ex.Moments.of(np.eye(3), np.eye(3)[:, 0], np.array([1.0, 2.0, 3.0]))
    assert replace(a, labelled=labelled).effective_n == 3
    assert replace(a, labelled=labelled, squared_weights=14.0).effective_n == pytest.approx(36 / 14)
    assert replace(a, labelled=labelled).own is labelled
    assert a.folded == 0


def test_second_moments_are_put_together_from_those_of_classes():
    data = plant("classes")
    whole = ex.Moments.of(data.X, data.Z)
    classes = {c: ex.Moments.of(data.X[data.y == c], data.Z[data.y == c]) for c in set(data.y)}
    seen = Statistics(replace(whole, xx=None), None, by_class=classes)
    np.testing.assert_allclose(seen.with_covariances.xx, whole.xx, rtol=1e-9, atol=1e-9)
    assert Statistics(whole, None, by_class=classes).with_covariances is whole
    bare = Statistics(replace(whole, xx=None), None)
    assert bare.with_covariances is bare.moments


# -- parameters as JSON ----------------------------------------------------------------------------


@dataclass
class Setting:
    """Something with fields."""

    size: int = 3


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (3, 3),
        (0.5, 0.5),
        ("auto", "auto"),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (float("inf"), "inf"),
        (np.float64("nan"), "nan"),
        (np.zeros((2, 3)), "array of shape (2, 3)"),
        ({1: np.int8(2), "a": {"b": float("inf")}}, {"1": 2, "a": {"b": "inf"}}),
        (Setting(4), "Setting(size=4)"),
        (np.random.default_rng(0), "Generator"),
    ],
)
def test_parameters_as_json(value, expected):
    found = jsonable(value)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("scale", [1e-6, 1.0])
def test_a_concept_has_to_vary(scale):
    X = np.eye(4)
    check_varies(ex.Moments.of(X, scale * np.arange(4.0)))  # one column of numbers is enough
    check_varies(ex.Moments.of(X, ex.concept.Concept("classes", np.array([0, 1, 0, 1]), (0, 1))))
    with pytest.raises(ex.InputError, match="never varies"):
        check_varies(ex.Moments.of(X, np.full(4, scale)))
    with pytest.raises(ex.InputError, match="one class only"):
        check_varies(ex.Moments.of(X, ex.concept.Concept("classes", np.zeros(4, int), ("a",))))
    two = ex.concept.Concept("classes", np.zeros(4, int), ("a", "b"))
    with pytest.raises(ex.InputError, match="never varies"):
        check_varies(ex.Moments.of(X, two))
