"""Erasers that are told the concept: least change, equal covariances, files, refusals."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.linear_model import LinearRegression

import expunge as ex
from planted import plant

# of classes with few rows or little spread, which is what the test is about
few_or_narrow = pytest.mark.filterwarnings("ignore::expunge.errors.CovariancesDiffer")

KINDS = ["binary", "classes", "labels", "number", "vector"]


def class_gap(X, y):
    means = np.array([X[y == c].mean(axis=0) for c in np.unique(y)])
    return np.abs(means - means[0]).max()


def squared_change(A, X):
    return np.mean(np.sum((A - X) ** 2, axis=1))


# -- OracleLEACE -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_oracle_takes_away_what_least_squares_predicts_from_the_concept(kind):
    data = plant(kind)
    clean = ex.OracleLEACE().fit(data.X, data.y).transform(data.X, concept=data.y)
    predicted = LinearRegression().fit(data.Z, data.X).predict(data.Z)
    assert LinearRegression().fit(data.X, data.Z).score(data.X, data.Z) > 0.2
    np.testing.assert_allclose(clean, data.X - predicted + data.X.mean(0), atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_oracle_changes_the_rows_less_than_leace(kind):
    data = plant(kind)
    oracle = ex.OracleLEACE().fit(data.X, data.y)
    told = squared_change(oracle.transform(data.X, concept=data.y), data.X)
    blind = squared_change(ex.LEACE().fit_transform(data.X, data.y), data.X)
    assert 0.05 < told < blind - 1e-3
    assert oracle.certificate_.erased


def test_a_row_told_the_wrong_concept_gives_it_away():
    data = plant("binary", n=2000)
    eraser = ex.OracleLEACE().fit(data.X, data.y)
    assert class_gap(eraser.transform(data.X, concept=data.y), data.y) < 1e-10
    wrong = eraser.transform(data.X, concept=1 - data.y)
    assert class_gap(wrong, data.y) > 1.5 * class_gap(data.X, data.y)


def test_numbers_of_any_units_are_erased():
    """A column of z ten million times as wide as the other must not hide it."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(500, 2))
    X = z @ rng.normal(size=(2, 4)) + rng.normal(size=(500, 4))
    plain = ex.OracleLEACE().fit_transform(X, z)
    scaled = ex.OracleLEACE().fit_transform(X, z * [1.0, 1e7])
    assert squared_change(plain, X) > 0.5
    np.testing.assert_allclose(scaled, plain, atol=1e-8)


@pytest.mark.parametrize("name", ["OracleLEACE", "QuadraticLEACE"])
def test_the_concept_is_needed_and_has_to_be_a_known_one(name):
    data = plant("classes")
    eraser = ex.ERASERS[name]().fit(data.X, data.y)
    for call in (eraser.transform, eraser.conditional_erasure_.transform):
        with pytest.raises(ex.InputError):
            call(data.X)
        with pytest.raises(ex.InputError, match="not the one that was fitted"):
            call(data.X[:2], concept=["ant", "eel"])
        with pytest.raises(ex.InputError, match="samples"):
            call(data.X[:3], concept=["ant", "bee"])
        with pytest.raises(ex.InputError, match="features"):
            call(data.X[:2, :5], concept=["ant", "bee"])
    with pytest.raises(AttributeError, match="conditional_erasure_"):
        _ = eraser.erasure_
    few = eraser.transform(data.X[:3], concept=["dog", "dog", "dog"])  # not all classes: fine
    assert few.shape == (3, 8)


@pytest.mark.parametrize("labels", [[0, 1], [False, True], [0.0, 1.0]])
@pytest.mark.parametrize("later", [int, bool, float])
def test_equal_labels_of_another_type_are_the_same_classes(labels, later):
    X = np.arange(8.0).reshape(4, 2)
    y = np.array([labels[0], labels[1], labels[0], labels[1]])
    eraser = ex.OracleLEACE(concept_type="classes").fit(X, y)
    expected = eraser.transform(X, concept=y)
    np.testing.assert_array_equal(eraser.transform(X, concept=y.astype(later)), expected)
    with pytest.raises(ex.InputError, match="not the one that was fitted"):
        eraser.transform(X, concept=["0", "1", "0", "1"])


@pytest.mark.parametrize(
    ("given", "result"),
    [(np.float16, np.float16), (np.float32, np.float32), (np.int32, np.float64)],
)
def test_types_are_kept(given, result):
    data = plant("binary")
    X = (data.X * 10).astype(given)
    for name in ("OracleLEACE", "QuadraticLEACE"):
        clean = ex.ERASERS[name]().fit(X, data.y).transform(X, concept=data.y)
        assert clean.dtype == result
        assert class_gap(clean.astype(float), data.y) < 0.05 < class_gap(X.astype(float), data.y)


@few_or_narrow
@pytest.mark.parametrize("name", ["OracleLEACE", "QuadraticLEACE"])
def test_rows_that_their_type_cannot_hold_after_erasure_are_refused(name):
    """Half precision ends at 65,504, and the mean of a class is moved beyond it."""
    X = np.array([[6e4, 1], [5.9e4, 2], [6.2e4, 0], [1, 1], [2, 5], [3, 2]], dtype=np.float16)
    y = [0, 0, 0, 1, 1, 1]
    eraser = ex.ERASERS[name]().fit(X, y)
    wrong = [1, 1, 1, 0, 0, 0]
    with pytest.raises(ex.InputError, match="can hold"):
        eraser.transform(X, concept=wrong)
    assert np.isfinite(eraser.transform(X.astype(np.float32), concept=wrong)).all()
    assert np.isfinite(eraser.transform(X, concept=y)).all()


# -- QuadraticLEACE --------------------------------------------------------------------------------


def gaussians(n=4000, d=6, seed=0, differ=2):
    """Two classes whose means differ a little and whose covariances differ in some directions."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    scale = np.ones((2, d))
    scale[1, :differ] = 3.0
    mix = np.random.default_rng(99).normal(size=(d, d)) / np.sqrt(d) + np.eye(d)
    X = (rng.normal(size=(n, d)) * scale[y] + 0.5 * np.outer(y, np.ones(d))) @ mix
    return X, y


def quadratic_probe(A, y, A_new, y_new):
    """Accuracy on new rows, in coordinates of the span that the erasure leaves."""
    _, s, Vt = np.linalg.svd(A - A.mean(0), full_matrices=False)
    left = Vt[s > 1e-8 * s[0]].T
    return QuadraticDiscriminantAnalysis().fit(A @ left, y).score(A_new @ left, y_new)


def test_a_quadratic_probe_on_new_rows_falls_to_chance():
    (X, y), (X_new, y_new) = gaussians(), gaussians(seed=1)
    leace, quadratic = ex.LEACE().fit(X, y), ex.QuadraticLEACE().fit(X, y)
    assert quadratic_probe(X, y, X_new, y_new) > 0.8
    assert quadratic_probe(leace.transform(X), y, leace.transform(X_new), y_new) > 0.75
    clean, new = quadratic.transform(X, concept=y), quadratic.transform(X_new, concept=y_new)
    assert quadratic_probe(clean, y, new, y_new) < 0.54
    assert quadratic_probe(new[:2000], y_new[:2000], new[2000:], y_new[2000:]) < 0.56


@pytest.mark.parametrize("rank", ["auto", 3])
def test_without_labels_a_quadratic_probe_falls_too(rank):
    """Means and two directions of the covariance: three directions are enough."""
    (X, y), (X_new, y_new) = gaussians(n=8000), gaussians(seed=1)
    eraser = ex.QuadraticLEACE(rank, label_free=True).fit(X, y)
    assert eraser.rank_ == 3
    leace = ex.LEACE().fit(X, y)
    assert quadratic_probe(leace.transform(X), y, leace.transform(X_new), y_new) > 0.75
    assert quadratic_probe(eraser.transform(X), y, eraser.transform(X_new), y_new) < 0.54
    assert eraser.certificate_.erased
    with pytest.raises(AttributeError, match="erasure_"):
        _ = eraser.conditional_erasure_


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
def test_without_labels_an_offset_adds_no_direction(offset):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 4000)
    X = rng.normal(size=(4000, 8)) + 2 * rng.normal(size=(4, 8))[y] + offset
    assert ex.QuadraticLEACE(label_free=True).fit(X, y).rank_ == 3


@pytest.mark.filterwarnings("ignore::expunge.errors.NothingLeft")
def test_without_labels_constant_columns_and_more_classes_than_columns_do_no_harm():
    X, y = gaussians(n=8000)
    wide = np.insert(X, 3, 7.0, axis=1)
    assert ex.QuadraticLEACE(label_free=True).fit(wide, y).rank_ == 3
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, 2000)
    X = rng.normal(size=(2000, 2)) + 3 * rng.normal(size=(5, 2))[y]
    eraser = ex.QuadraticLEACE(label_free=True).fit(X, y)
    assert eraser.rank_ == 2
    assert class_gap(eraser.transform(X), y) < 1e-10 < class_gap(X, y)


def spread(X, y):
    parts = [np.cov(X[y == c].T, ddof=0) for c in np.unique(y)]
    return max(np.abs(part - parts[0]).max() for part in parts)


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e-6])
def test_columns_of_small_scale_are_kept(scale):
    X, y = gaussians()
    units = np.array([1, 1, scale, 1, scale, 1])
    X = X * units
    clean = ex.QuadraticLEACE().fit(X, y).transform(X, concept=y)
    assert spread(X / units, y) > 1
    assert spread(clean / units, y) < 1e-6
    assert np.all(clean.std(axis=0) > 0.5 * X.std(axis=0))


@few_or_narrow
def test_classes_with_few_rows():
    """Five rows or fewer of eight columns: nothing singular, nothing blown up on new rows."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), [200, 5, 2, 1])
    X = rng.normal(size=(208, 8)) * np.array([1, 2, 1, 1])[y][:, None] + rng.normal(size=(4, 8))[y]
    for shrinkage in ("auto", "none", "oas", 0.2):
        eraser = ex.QuadraticLEACE(shrinkage=shrinkage).fit(X, y)
        assert class_gap(eraser.transform(X, concept=y), y) < 1e-9 < class_gap(X, y)
        new = rng.normal(size=(4, 8))
        moved = eraser.transform(new, concept=[0, 1, 2, 3])
        assert np.abs(moved).max() < 1e3
    free = ex.QuadraticLEACE(label_free=True).fit(X, y)
    assert class_gap(free.transform(X), y) < 1e-9


@few_or_narrow
def test_a_column_that_one_class_never_moves_is_not_blown_up():
    X, y = gaussians()
    X[y == 1, 0] = 5.0
    eraser = ex.QuadraticLEACE().fit(X, y)
    new = X[:2].copy()
    new[:, 0] += 1.0
    moved = eraser.transform(new, concept=[1, 1]) - eraser.transform(X[:2], concept=[1, 1])
    assert np.abs(moved).max() < 10


def test_equal_classes_are_left_alone():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(300, 4)), 2, axis=0)
    y = np.tile([0, 1], 300)
    np.testing.assert_allclose(ex.QuadraticLEACE().fit_transform(X, y), X, atol=1e-10)


def told(eraser, X, y):
    return eraser.transform(X, concept=y)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scale", [1.0, 1e-8, 1e8])
@pytest.mark.parametrize("rank", ["auto", 2])
def test_without_labels_a_column_that_is_constant_within_classes_is_erased(scale, dtype, rank):
    """It determines the class, and the spread within classes knows nothing of it."""
    X, y = gaussians(differ=0)
    X[:, 3] = np.where(y == 1, 5.0, -2.0) * scale
    eraser = ex.QuadraticLEACE(rank, label_free=True).fit(X.astype(dtype), y)
    assert class_gap(X[:, 3:4] / scale, y) == 7
    assert class_gap(eraser.transform(X) / np.where(np.arange(6) == 3, scale, 1), y) < 1e-5
    assert eraser.certificate_.erased


def stretch(eraser, X, y):
    """The most that any class map stretches, in units of the pooled spread within classes."""
    centred = X - np.array([X[y == c].mean(axis=0) for c in np.unique(y)])[y]
    _, s, Vt = np.linalg.svd(centred / np.sqrt(len(X)), full_matrices=False)
    root, back = Vt.T * s, Vt / s[:, None]
    return max(np.linalg.norm(back @ A @ root, 2) for A in eraser.conditional_erasure_.maps)


NARROW_SPREADS = [0.3, 0.03, 1e-3, 1e-5, 1e-9, 0.0]


@few_or_narrow
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("narrow", NARROW_SPREADS)
def test_no_map_throws_rows_far_away(narrow, dtype):
    """A class that hardly varies in two directions: its map stretches by 141 at the most."""
    rng = np.random.default_rng(3)
    y, mix = rng.integers(0, 2, 4000), np.linalg.qr(rng.normal(size=(6, 6)))[0]
    X = rng.normal(size=(4000, 6)) + 0.5 * y[:, None]
    factor = np.where(y == 1, narrow, 1.0)
    X = (X * np.column_stack([factor, factor, *[np.ones(len(X))] * 4])) @ mix
    eraser = ex.QuadraticLEACE().fit(X.astype(dtype), y)
    assert stretch(eraser, X, y) < 142
    assert class_gap(told(eraser, X, y), y) < 1e-5
    if narrow >= 0.03:  # more than a hundredth: made equal
        assert spread(X, y) > 0.3
        assert spread(told(eraser, X, y), y) < 1e-3


@few_or_narrow
@pytest.mark.parametrize("scale", [1.0, 1e-8])
def test_rows_without_weight_are_not_thrown_far_away(scale):
    """What counts of class 1 lies almost in a plane; its rows of weight zero do not."""
    X, y = gaussians()
    rng = np.random.default_rng(4)
    counts = rng.random(len(X)) < 0.5
    flat = counts & (y == 1)
    X[flat, 2:] = 1e-4 * X[flat, 2:]
    X[:, 4] *= scale
    for weights in (counts.astype(float), np.where(y == 1, 3e-7, 1.0) * counts):
        eraser = ex.QuadraticLEACE().fit(X, y, sample_weight=weights)
        size = X.std(axis=0)
        moved = np.abs(told(eraser, X, y) - X) / size
        assert moved[~counts].max() < 300
        far = X + 1e3 * size * rng.normal(size=X.shape)
        assert (np.abs(told(eraser, far, y) - far) / size).max() < 1e6


def test_a_class_of_weight_zero_is_not_fitted_and_the_rest_is_as_without_it():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 900)
    X = rng.normal(size=(900, 4)) * np.array([1, 2, 3])[y][:, None] + rng.normal(size=(3, 4))[y]
    weights = np.where(y == 2, 0.0, rng.random(900))
    kept = y < 2
    for name in ("OracleLEACE", "QuadraticLEACE"):
        eraser = ex.ERASERS[name]().fit(X, y, sample_weight=weights)
        alone = ex.ERASERS[name]().fit(X[kept], y[kept], sample_weight=weights[kept])
        np.testing.assert_allclose(
            told(eraser, X[kept], y[kept]), told(alone, X[kept], y[kept]), atol=1e-10
        )
        with pytest.raises(ex.InputError, match="not the one that was fitted"):
            told(eraser, X, y)


@few_or_narrow
def test_rows_without_weight_do_not_decide_on_shrinkage():
    """Four rows count, of six columns; a hundred more of weight zero make no difference."""
    X, y = gaussians(n=400)
    some = np.flatnonzero(y == 1)
    weights = np.ones(400)
    weights[some[4:]] = 0
    kept = weights > 0
    eraser = ex.QuadraticLEACE().fit(X, y, sample_weight=weights)
    alone = ex.QuadraticLEACE().fit(X[kept], y[kept])
    np.testing.assert_allclose(
        told(eraser, X[kept], y[kept]), told(alone, X[kept], y[kept]), atol=1e-10
    )


@few_or_narrow
@pytest.mark.parametrize("label_free", [False, True])
def test_shrunk_classes_are_erased_whatever_the_units_of_the_columns(label_free):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [40, 5, 4])
    X = rng.normal(size=(49, 6)) + 2 * rng.normal(size=(3, 6))[y]
    units = 10.0 ** np.array([-8, 8, 0, -4, 3, 0])
    eraser = ex.QuadraticLEACE(label_free=label_free)
    clean = eraser.fit(X, y).transform(X, **({} if label_free else {"concept": y}))
    scaled = eraser.fit(X * units, y).transform(X * units, **({} if label_free else {"concept": y}))
    assert class_gap(X, y) > 1
    assert class_gap(clean, y) < 1e-10
    assert class_gap(scaled / units, y) < 1e-8


@pytest.mark.parametrize("strength", [0.25, 0.9])
@pytest.mark.parametrize("name", ["OracleLEACE", "QuadraticLEACE"])
def test_part_of_the_strength_with_weights_and_in_a_stream(name, strength):
    """The weighted mean stays, what is left of class means is in proportion, chunks add up."""
    data = plant("classes")
    w = np.random.default_rng(1).random(600)
    whole = ex.ERASERS[name](strength=strength).fit(data.X, data.y, sample_weight=w)
    clean = told(whole, data.X, data.y)
    np.testing.assert_allclose(w @ clean, w @ data.X, rtol=1e-10)
    for label in np.unique(data.y):
        own = data.y == label
        gap, left = (
            np.average(A[own], axis=0, weights=w[own]) - np.average(A, axis=0, weights=w)
            for A in (data.X, clean)
        )
        np.testing.assert_allclose(left, (1 - strength) * gap, atol=1e-10)
    assert not whole.certificate_.erased
    stream = ex.ERASERS[name](strength=strength)
    for part in np.array_split(np.argsort(data.y, kind="stable"), 5):
        stream.partial_fit(data.X[part], data.y[part], sample_weight=w[part])
    np.testing.assert_allclose(told(stream, data.X, data.y), clean, atol=1e-9)
    assert stream.certificate_ is None  # sums alone prove nothing below full strength


# -- files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["OracleLEACE", "QuadraticLEACE"])
@pytest.mark.parametrize("strength", [1.0, 0.5])
def test_a_file_gives_the_same_map_and_the_same_bytes(name, strength, tmp_path):
    data = plant("classes")
    found = ex.ERASERS[name](strength=strength).fit(data.X, data.y).conditional_erasure_
    found.save(tmp_path / "a")
    again = ex.ConditionalErasure.load(tmp_path / "a")
    again.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    fresh = ex.ERASERS[name](strength=strength).fit(data.X, data.y).conditional_erasure_
    fresh.save(tmp_path / "c")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "c").read_bytes()
    np.testing.assert_array_equal(again(data.X, data.y), found(data.X, data.y))
    assert (again.labels, again.kind, again.meta) == (found.labels, found.kind, found.meta)
    assert again.meta["method"] == name
    assert name in repr(again)


@pytest.mark.parametrize("labels", [[0, 1], [True, False], ["ä", "b"], [0.5, 1.5]])
def test_labels_come_back_from_a_file_as_they_were(labels, tmp_path):
    X, y = np.arange(8.0).reshape(4, 2), [*labels, *labels]
    found = ex.OracleLEACE(concept_type="classes").fit(X, y).conditional_erasure_
    found.save(tmp_path / "a")
    again = ex.ConditionalErasure.load(tmp_path / "a")
    assert again.labels == found.labels
    assert [type(a) for a in again.labels] == [type(a) for a in found.labels]
    np.testing.assert_array_equal(again(X, y), found(X, y))


@pytest.fixture
def saved(tmp_path):
    data = plant("binary", n=50, d=3)
    path = tmp_path / "good"
    ex.QuadraticLEACE().fit(data.X, data.y).conditional_erasure_.save(path)
    return path


def rewrite(path, change_header=None, **tensors):
    """The same file with another header or other arrays."""
    from safetensors import safe_open

    with safe_open(str(path), framework="numpy") as file:
        header = json.loads(file.metadata()["expunge"])
    if change_header:
        change_header(header)
    save_file({**load_file(path), **tensors}, path, {"expunge": json.dumps(header)})


HEADERS = {
    "no strength": lambda h: h.pop("strength"),
    "strength as text": lambda h: h.update(strength="full"),
    "strength beyond 1": lambda h: h.update(strength=7.0),
    "unknown kind": lambda h: h["concept"].update(kind="secret"),
    "no labels": lambda h: h["concept"].pop("labels"),
    "labels that do not fit": lambda h: h["concept"].update(labels=[1, 2, 3]),
    "no concept": lambda h: h.update(concept=None),
    "another thing": lambda h: h.update(kind="erasure"),
    "a later format": lambda h: h.update(format=99),
    "no meta": lambda h: h.update(meta="none"),
}


@pytest.mark.parametrize("damage", HEADERS)
def test_a_damaged_header_is_refused(damage, saved):
    rewrite(saved, HEADERS[damage])
    with pytest.raises(ex.BadArtifact, match="good"):
        ex.ConditionalErasure.load(saved)


@pytest.mark.parametrize(
    "tensors",
    [
        {"shift": np.full((3, 2), np.nan)},
        {"center": np.array([1.0, np.inf, 0.0])},
        {"shift": np.zeros((2, 3))},
        {"center": np.zeros((3, 1))},
        {"maps": np.zeros((2, 3))},
        {"mean_z": np.zeros(2, dtype=np.float32)},
    ],
    ids=["nan", "infinity", "transposed", "column", "maps", "single"],
)
def test_damaged_arrays_are_refused(tensors, saved):
    rewrite(saved, **tensors)
    with pytest.raises(ex.BadArtifact, match="good"):
        ex.ConditionalErasure.load(saved)


def test_foreign_and_cut_files_are_refused(saved, tmp_path):
    whole = saved.read_bytes()
    for at in (0, 7, 100, len(whole) - 1):
        saved.write_bytes(whole[:at])
        with pytest.raises(ex.BadArtifact):
            ex.ConditionalErasure.load(saved)
    save_file({"shift": np.zeros((3, 2))}, tmp_path / "foreign")
    with pytest.raises(ex.BadArtifact, match="not one written by expunge"):
        ex.ConditionalErasure.load(tmp_path / "foreign")
    with pytest.raises(FileNotFoundError):
        ex.ConditionalErasure.load(tmp_path / "nothing")


def test_the_two_kinds_of_file_are_not_confused(saved, tmp_path):
    with pytest.raises(ex.BadArtifact, match="conditional_erasure"):
        ex.Erasure.load(saved)
    data = plant("binary")
    ex.LEACE().fit(data.X, data.y).erasure_.save(tmp_path / "plain")
    with pytest.raises(ex.BadArtifact):
        ex.ConditionalErasure.load(tmp_path / "plain")


def test_a_map_cannot_be_changed_by_accident(saved):
    found = ex.ConditionalErasure.load(saved)
    for name in ("shift", "mean_z", "center", "maps"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(found, name)[...] = 0.0
    found.meta["method"] = "another"
    assert found.meta["method"] == "QuadraticLEACE"


def test_parts_that_do_not_fit_are_refused():
    good = {"shift": np.zeros((3, 2)), "mean_z": np.zeros(2), "center": np.zeros(3)}
    for name in good:
        with pytest.raises(ex.InputError, match="do not fit"):
            ex.ConditionalErasure(**{**good, name: np.zeros(5)}, labels=["a", "b"], kind="classes")
