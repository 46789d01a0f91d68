"""Moments as the one value that other engines bring: merged, pickled, saved, fitted on."""

import pickle
from functools import reduce

import numpy as np
import pytest

import expunge as ex
from expunge.concept import Indicator
from expunge.fingerprint import Fingerprint
from expunge.inputs import check_concept
from planted import KINDS, plant

NEEDS_MORE = {
    "INLP": "every round fits a predictor",
    "QuadraticLEACE": "covariance of each class",
    "PairPCA": "rows of each set",
    "FoldEraser": "needs the rows",
}


def parts_of(data, n, count=4, **terms):
    concept = check_concept(data.y, n)
    cuts = np.array_split(np.arange(n), count)
    return [ex.Moments.of(data.X[cut], concept.take(cut), **terms) for cut in cuts]


@pytest.mark.parametrize("name", ex.ERASERS)
def test_every_eraser_is_fitted_or_says_why_not(name):
    data = plant("classes", n=500)
    moments = reduce(ex.Moments.merge, parts_of(data, 500))
    if name in NEEDS_MORE:
        with pytest.raises(ex.InputError, match=NEEDS_MORE[name]):
            ex.ERASERS[name]().fit_moments(moments)
        return
    found = ex.ERASERS[name]().fit_moments(moments)
    expected = ex.ERASERS[name]().fit(data.X, data.y)
    a, b = found._settled()[0], expected._settled()[0]
    for part in {"left", "right", "shift", "center"} & {*dir(a)}:
        if getattr(b, part) is not None:
            np.testing.assert_allclose(getattr(a, part), getattr(b, part), atol=1e-9)
    assert "fingerprint" not in a.meta
    assert (a.meta["n"], a.meta["concept"]) == (500, b.meta["concept"])
    assert found.certificate_.erased == expected.certificate_.erased


def test_what_can_be_told_beside_the_moments():
    data = plant("binary", n=500)
    moments = reduce(ex.Moments.merge, parts_of(data, 500))
    found = ex.LEACE().fit_moments(moments, fingerprint=Fingerprint.of(data.X))
    assert found.erasure_.meta["fingerprint"] == Fingerprint.of(data.X).to_meta()
    found.partial_fit(data.X, data.y)
    assert found.erasure_.meta["n"] == 1000
    rest = ex.LEACE().fit_moments(moments).partial_fit(data.X, data.y)
    np.testing.assert_allclose(rest.erasure_.matrix(), found.erasure_.matrix())
    assert "fingerprint" not in rest.erasure_.meta
    ex.LEACE().fit_moments(moments).transform(data.X)


def test_what_is_refused():
    data = plant("number", n=300)
    moments = ex.Moments.of(data.X, data.Z)
    first = reduce(ex.Moments.merge, parts_of(data, 300, second=False))
    for call, match in [
        (lambda: ex.LEACE().fit_moments(data.X), "takes Moments"),
        (lambda: ex.LEACE().fit_moments(moments, fingerprint="f"), "takes Moments"),
        (lambda: ex.LEACE().fit_moments(first), "second=True"),
        (lambda: ex.MeanProjection().fit_moments(moments), "of kind classes, labels only"),
        (lambda: ex.LEACE(rank=99).fit_moments(moments), "rank"),
        (lambda: ex.LEACE(strength=2).fit_moments(moments), "strength"),
        (lambda: ex.LEACE().fit_moments(ex.Moments.of(data.X[:1], data.Z[:1])), "too few rows"),
    ]:
        with pytest.raises(ex.InputError, match=match):
            call()
    assert ex.SAL().fit_moments(first).certificate_.erased
    classes = plant("classes", n=500)
    with pytest.raises(ex.InputError, match="fit"):
        ex.RLACE(rank=1).fit_moments(reduce(ex.Moments.merge, parts_of(classes, 500)))


def same(a, b):
    assert (a.n, a.weight, a.kind, a.eps, a.labels) == (b.n, b.weight, b.kind, b.eps, b.labels)
    assert [type(label) for label in a.labels] == [type(label) for label in b.labels]
    for name in ("mean_x", "mean_z", "xz", "zz", "squares", "xx"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


@pytest.mark.parametrize("kind", KINDS)
def test_moments_are_saved_and_pickled(kind, tmp_path):
    data = plant(kind, n=300)
    for part in [*parts_of(data, 300, 2), *parts_of(data, 300, 2, second=False)]:
        part.save(tmp_path / "m.safetensors")
        same(ex.Moments.load(tmp_path / "m.safetensors"), part)
        before = (tmp_path / "m.safetensors").read_bytes()
        part.save(tmp_path / "m.safetensors")
        assert (tmp_path / "m.safetensors").read_bytes() == before
        same(pickle.loads(pickle.dumps(part)), part)


def test_joined_concepts_merge_after_a_file(tmp_path):
    data = plant("classes", n=300)
    both = check_concept({"animal": data.y, "big": data.X[:, 0] > 0}, 300)
    moments = ex.Moments.of(data.X, both)
    moments.save(tmp_path / "m.safetensors")
    loaded = ex.Moments.load(tmp_path / "m.safetensors")
    assert all(isinstance(label, Indicator) for label in loaded.labels)
    assert loaded.merge(moments).n == 600


def test_damaged_files(tmp_path):
    data, path = plant("binary", n=50), tmp_path / "m.safetensors"
    moments = ex.Moments.of(data.X, data.Z)
    for field, value in [("mean_x", np.zeros(3)), ("kind", "odd"), ("n", -1), ("labels", (1, 2))]:
        good = getattr(moments, field)
        setattr(moments, field, value)
        moments.save(path)
        with pytest.raises(ex.BadArtifact, match="moments are damaged"):
            ex.Moments.load(path)
        setattr(moments, field, good)
    moments.save(path)
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(ex.BadArtifact):
        ex.Moments.load(path)
    ex.LEACE().fit(data.X, data.y).erasure_.save(path)
    with pytest.raises(ex.BadArtifact, match="not a 'moments'"):
        ex.Moments.load(path)


@pytest.mark.parametrize("heavy", [0, 1])
def test_chunks_with_and_without_weights_count_as_they_are(heavy):
    rng, y = np.random.default_rng(0), np.arange(60) % 2
    X, w = rng.normal(size=(60, 3)), rng.uniform(0.1, 5, 60)
    stream = ex.LEACE()
    for number in (0, 1):
        given = {"sample_weight": w} if number == heavy else {}
        stream.partial_fit(X, y, **given)
    expected = (60 + w.sum()) ** 2 / (60 + (w**2).sum())
    found = stream.erasure_.meta["fit"]["effective_n"]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
