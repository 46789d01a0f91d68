"""A column that is the concept becomes a constant, with no rounding for anyone to read."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import expunge as ex

ERASERS = [
    ex.LEACE(),
    ex.LEACE(predictor="random_features", n_components=50),
    ex.SPLINCE(),
    ex.FoldEraser(),
    ex.RLACE(scale="std"),
    ex.RayleighEraser(objective="cca"),
]


def standardised(n=600, *, twice, seed=0):
    """A table that holds the concept, as one column or as one for each class, scaled."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.3).astype(int)
    own = np.column_stack([y, 1 - y]) if twice else y[:, None]
    X = np.column_stack([rng.normal(size=(n, 4)) + np.outer(y, [0.5, 0, 1, 0]), own])
    return StandardScaler().fit_transform(X), y


TOLD = [ex.OracleLEACE(), ex.QuadraticLEACE(), ex.QuadraticLEACE(label_free=True)]


@pytest.mark.parametrize("as_tensor", [False, True])
@pytest.mark.parametrize("twice", [False, True], ids=["one column", "one for each class"])
@pytest.mark.parametrize("eraser", TOLD, ids=repr)
def test_nor_by_maps_that_are_told_the_concept(eraser, twice, as_tensor, tmp_path):
    X, y = standardised(twice=twice)
    assert read_by_a_line(X, y) == 1
    eraser = eraser.fit(X, y)
    told = {} if getattr(eraser, "label_free", False) else {"concept": y}
    clean = np.asarray(eraser.transform(torch.tensor(X) if as_tensor else X, **told))
    assert eraser.certificate_.erased
    assert read_by_a_line(clean, y) <= max(np.mean(y), 1 - np.mean(y)) + 0.01
    if told:
        assert np.ptp(clean[:, 4:], axis=0).tolist() == [0.0] * (X.shape[1] - 4)
        assert np.ptp(clean[:, :4], axis=0).min() > 1
        eraser.conditional_erasure_.save(tmp_path / "e.safetensors")
        loaded = ex.ConditionalErasure.load(tmp_path / "e.safetensors")
        np.testing.assert_array_equal(loaded.transform(X, concept=y), eraser.transform(X, **told))


def read_by_a_line(X, y):
    probe = make_pipeline(StandardScaler(), LogisticRegression(C=100, max_iter=1000))
    return probe.fit(X, y).score(X, y)


@pytest.mark.filterwarnings("ignore::expunge.NothingToFold", "ignore::expunge.OnlyLinear")
@pytest.mark.parametrize("twice", [False, True], ids=["one column", "one for each class"])
@pytest.mark.parametrize("eraser", ERASERS, ids=repr)
def test_rounding_of_the_concepts_own_column_is_not_left(eraser, twice):
    X, y = standardised(twice=twice)
    assert read_by_a_line(X, y) == 1
    eraser = eraser.fit(X, y)
    clean = eraser.transform(X)
    assert eraser.certificate_.erased
    assert read_by_a_line(clean, y) <= max(np.mean(y), 1 - np.mean(y)) + 0.01
    for column in clean.T[4:]:
        if np.ptp(column) < 1e-6:  # not of erasers that spread the concept over columns
            assert DecisionTreeClassifier().fit(column[:, None], y).tree_.node_count == 1


@pytest.mark.parametrize("twice", [False, True], ids=["one column", "one for each class"])
def test_new_rows_and_saved_maps_have_the_same_constant(twice, tmp_path):
    X, y = standardised(twice=twice)
    eraser = ex.LEACE().fit(X, y)
    eraser.erasure_.save(tmp_path / "e.safetensors")
    loaded = ex.Erasure.load(tmp_path / "e.safetensors")
    new = np.random.default_rng(1).normal(size=(50, X.shape[1]))
    assert eraser.rank_ == 1
    assert eraser.erasure_.emptied.tolist() == list(range(4, X.shape[1]))
    for clean in (eraser.transform(X), eraser.transform(new), loaded(new), loaded(new[0])[None]):
        assert (clean[:, 4:] == eraser.erasure_.constant).all()
    np.testing.assert_array_equal(loaded(new), eraser.transform(new))
    dense = new @ eraser.erasure_.matrix().T  # its center is zero, but for rounding
    np.testing.assert_allclose(dense, eraser.transform(new), atol=1e-12)


def test_tensors_have_the_constant_too():
    torch = pytest.importorskip("torch")
    X, y = standardised(twice=True)
    erasure = ex.LEACE().fit(X + 3, y).erasure_
    for rows in (torch.tensor(X + 3), torch.tensor(X + 3, requires_grad=True)):
        clean = erasure(rows).detach().numpy()
        assert (clean[:, 4:] == erasure.constant).all()
        np.testing.assert_allclose(clean, erasure(X + 3), atol=1e-12)


def test_a_number_that_is_a_column_is_written_over():
    rng = np.random.default_rng(0)
    z = rng.gamma(2.0, size=500)
    X = np.column_stack([rng.normal(size=(500, 3)) + z[:, None], 1e6 * (z - z.mean())])
    clean = ex.LEACE().fit(X, z).transform(X)
    assert np.ptp(clean[:, 3]) == 0
    assert np.ptp(clean[:, :3], axis=0).min() > 1


def test_a_column_that_keeps_something_is_not_written_over():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 500)
    X = np.column_stack([rng.normal(size=(500, 2)), y + 1e-4 * rng.normal(size=500), y])
    erasure = ex.LEACE().fit(X[:, :3], y).erasure_
    assert erasure.emptied.size == 0
    assert np.ptp(erasure(X[:, :3])[:, 2]) > 1e-5
    assert ex.LEACE(strength=0.5).fit(X, y).erasure_.emptied.size == 0


def dummies(n=600, seed=0):
    """One column for each class, standardised, and one more; classes of their own shares."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    X = np.column_stack([np.eye(3)[y], rng.normal(size=n) + (y == 1)])
    return (X - X.mean(axis=0)) / X.std(axis=0), y


@pytest.mark.parametrize("stream", [False, True], ids=["fit", "partial_fit"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_of_the_classes_are_emptied_in_every_type(dtype, stream):
    """Covariances of float32 cannot tell what is left of a column; sums with the concept can."""
    X, y = dummies()
    X = X.astype(dtype)
    assert read_by_a_line(X, y) == 1
    eraser = ex.LEACE()
    eraser = (
        eraser.partial_fit(X[:300], y[:300]).partial_fit(X[300:], y[300:])
        if stream
        else eraser.fit(X, y)
    )
    clean = eraser.transform(X)
    assert eraser.erasure_.emptied.tolist() == [0, 1, 2]
    assert np.ptp(clean[:, :3], axis=0).max() == 0
    assert np.ptp(clean[:, 3]) > 1
    assert read_by_a_line(clean, y) <= 0.52


@pytest.mark.parametrize("name", ["RLACE", "SAL", "MeanProjection", "LEACE"])
def test_columns_that_tell_each_other_are_emptied_by_projections_too(name):
    """A balanced design: the other column, of few values, keeps every digit."""
    y, other, _ = np.indices((3, 5, 40)).reshape(3, -1)
    X = np.column_stack([np.eye(3)[y], other])
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    eraser = ex.ERASERS[name]().fit(X, y)
    clean = eraser.transform(X)
    assert eraser.certificate_.erased
    assert eraser.erasure_.emptied.tolist() == [0, 1, 2]
    assert np.ptp(clean[:, :3], axis=0).max() == 0
    np.testing.assert_array_equal(clean[:, 3], X[:, 3])
    if name == "RLACE":
        np.testing.assert_array_equal(eraser.erasure_.left, eraser.erasure_.right.T)


@pytest.mark.parametrize("unit", [1.0, 1e6, 1e-6])
def test_numbers_of_unlike_units_are_told_in_float32(unit):
    """The smaller of two numbers was taken for none, and what it told for something else."""
    rng = np.random.default_rng(0)
    Z = rng.integers(0, 8, size=(2000, 2)).astype(float)
    told = Z @ [[0.5, 0.0, 0.25], [1.0, 0.7, 0.675]]
    X = np.hstack([told, rng.normal(size=(2000, 3)) + 0.5 * Z.sum(axis=1)[:, None]])
    eraser = ex.LEACE(concept_type="continuous").fit(X.astype(np.float32), Z * [unit, 1.0])
    assert eraser.erasure_.emptied.tolist() == [0, 1, 2]
