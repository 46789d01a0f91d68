"""What an erasure costs, against plain twins, scikit-learn and the optimality of the bound."""

import json

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import expunge as ex
from expunge.data import load_glove
from expunge.errors import InputError
from expunge.metrics.bits import bits_left
from expunge.metrics.change import damage, least_possible_change
from expunge.metrics.neighbours import neighbour_overlap
from expunge.metrics.task import task_damage
from planted import KINDS, plant


@pytest.fixture(scope="module")
def changed():
    data = plant("binary", n=400)
    return data, ex.RLACE(rank=1).fit(data.X, data.y).transform(data.X)


def test_numbers_are_those_of_their_definitions(changed):
    data, after = changed
    X = data.X
    found = damage(X, after, concept=data.y)
    assert (found.n_rows, found.n_features) == X.shape
    assert found.variance_kept == pytest.approx(after.var(axis=0).sum() / X.var(axis=0).sum())
    change = np.mean(np.sum((X - after) ** 2, axis=1))
    assert found.mean_squared_change == pytest.approx(change)
    # an orthogonal erasure about the mean: what is lost is what was moved
    assert found.relative_change == pytest.approx(1 - found.variance_kept)
    cosines = [a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in zip(X, after, strict=True)]
    assert list(found.cosine) == [1, 5, 25, 50, 75, 95, 99]
    np.testing.assert_allclose(list(found.cosine.values()), np.percentile(cosines, [*found.cosine]))
    assert (found.n_queries, found.n_base) == (400, 400)
    for k in (1, 10, 100):
        assert found.neighbour_overlap[k] == pytest.approx(neighbour_overlap(X, after, k))
    assert found.least_change < change


def test_rank_correlation_is_that_of_all_pairs(changed):
    data, after = changed

    def similarities(X):
        U = X / np.linalg.norm(X, axis=1, keepdims=True)
        return (U @ U.T)[np.triu_indices(len(X), 1)]

    whole = scipy.stats.spearmanr(similarities(data.X), similarities(after)).statistic
    found = damage(data.X, after)
    assert found.rank_correlation == pytest.approx(whole, abs=0.02)
    assert found.n_pairs == 20_000
    assert found.least_change is None


def test_nothing_changed_is_no_damage():
    X = plant("binary").X
    found = damage(X, X)
    assert found.variance_kept == 1
    assert found.mean_squared_change == 0
    assert found.cosine[1] == pytest.approx(1)
    assert found.neighbour_overlap == {1: 1.0, 10: 1.0, 100: 1.0}
    assert found.rank_correlation == pytest.approx(1)


def test_everything_gone_is_all_damage():
    X = plant("binary", n=50).X
    found = damage(X, np.zeros_like(X))
    assert found.variance_kept == 0
    assert found.cosine[99] == 0
    assert list(found.neighbour_overlap) == [1, 10]  # 50 rows do not have 100 neighbours
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["rank_correlation"] is None


def test_rows_of_different_shapes_are_refused():
    with pytest.raises(InputError, match="same width"):
        damage(np.eye(3), np.eye(4))


def test_a_large_offset_and_single_precision_keep_the_numbers():
    data = plant("binary", n=300)
    erasure = ex.RLACE(rank=1).fit(data.X, data.y).erasure_
    plain = damage(data.X, erasure.transform(data.X), concept=data.y)
    far = data.X + 1e6
    moved = ex.RLACE(rank=1).fit(far, data.y).transform(far)
    found = damage(far, moved, concept=data.y)
    assert found.variance_kept == pytest.approx(plain.variance_kept, rel=1e-6)
    assert found.least_change == pytest.approx(plain.least_change, rel=1e-6)
    single = data.X.astype(np.float32)
    found = damage(single, erasure.transform(single), concept=data.y)
    assert found.mean_squared_change == pytest.approx(plain.mean_squared_change, rel=1e-4)
    assert found.least_change == pytest.approx(plain.least_change, rel=1e-4)


def covariances(data):
    X, Z = data.X - data.X.mean(axis=0), data.Z - data.Z.mean(axis=0)
    return X.T @ X / len(X), X.T @ Z / len(X)


@pytest.mark.parametrize("kind", KINDS)
def test_least_change_is_the_solution_of_its_least_squares_problem(kind):
    """Minimise tr(AΣAᵀ) subject to AΣxz = Σxz, row by row through the Lagrangian equations."""
    data = plant(kind)
    S, C = covariances(data)
    C = C[:, np.linalg.norm(C, axis=0) > 0]
    C = scipy.linalg.orth(C, rcond=1e-9)
    d, m = C.shape
    equations = np.block([[S, C], [C.T, np.zeros((m, m))]])
    A = np.linalg.solve(equations, np.vstack([np.zeros((d, d)), C.T]))[:d].T
    np.testing.assert_allclose(A @ C, C, atol=1e-8)
    assert least_possible_change(data.X, data.y) == pytest.approx(np.trace(A @ S @ A.T), rel=1e-9)


def test_no_numeric_search_finds_less():
    data = plant("classes", n=300, d=4)
    S, C = covariances(data)
    C = scipy.linalg.orth(C, rcond=1e-9)
    free = np.eye(4) - C @ C.T

    def cost(entries):
        A = C @ C.T + entries.reshape(4, 4) @ free  # every A with AC = C
        return np.trace(A @ S @ A.T)

    best = min(
        scipy.optimize.minimize(cost, np.random.default_rng(seed).normal(size=16), tol=1e-12).fun
        for seed in range(3)
    )
    found = least_possible_change(data.X, data.y)
    assert found == pytest.approx(best, rel=1e-5)
    assert cost(np.zeros(16)) > 1.05 * found  # the orthogonal projection is not the cheapest


@pytest.mark.parametrize("kind", KINDS)
def test_the_least_possible_is_what_canonical_erasure_does(kind):
    data = plant(kind)
    after = ex.RayleighEraser(objective="cca").fit(data.X, data.y).transform(data.X)
    found = damage(data.X, after, concept=data.y)
    assert found.mean_squared_change == pytest.approx(found.least_change, rel=1e-8)
    orthogonal = ex.RayleighEraser(objective="pls").fit(data.X, data.y)
    other = damage(data.X, orthogonal.transform(data.X), concept=data.y)
    assert other.mean_squared_change > 1.01 * other.least_change


def test_least_change_with_constant_and_repeated_columns():
    data = plant("binary")
    wide = np.hstack([data.X, data.X[:, :1], np.full((len(data.X), 1), 3.0)])
    after = ex.RayleighEraser(objective="cca").fit(wide, data.y).transform(wide)
    found = damage(wide, after, concept=data.y)
    assert found.least_change == pytest.approx(found.mean_squared_change, rel=1e-6)


def test_a_concept_that_is_not_there_costs_nothing():
    X = np.array([[1.0, 0.0], [-1.0, 0.0], [1.0, 1.0], [-1.0, 1.0]])
    assert least_possible_change(X, [0, 0, 1, 1]) == pytest.approx(0.25)
    assert least_possible_change(X[:, :1], [0, 0, 1, 1]) == 0


def test_erasing_gender_from_words_is_cheap():
    glove = load_glove()
    erasure = ex.RLACE(rank=1).fit(glove.train.X, glove.train.y).erasure_
    found = damage(glove.test.X, erasure.transform(glove.test.X), concept=glove.test.y)
    assert 0.9 < found.variance_kept < 0.97
    assert found.cosine[50] > 0.95
    assert found.neighbour_overlap[10] > 0.5
    assert found.rank_correlation > 0.7
    assert found.least_change < found.mean_squared_change < 2 * found.least_change
    assert (found.n_queries, found.n_base) == (1000, 4500)


def split(n=900):
    """Rows with a task of four classes and a concept that helps with it."""
    data = plant("classes", n=n)
    half = n // 2
    return data, slice(half), slice(half, n)


def test_task_agrees_with_scikit_learn():
    data, train, test = split()
    after = data.X.copy()
    after[:, :3] = 0
    alpha = 0.05
    found = task_damage(
        data.X[train], after[train], data.y[train], data.X[test], after[test], data.y[test],
        alpha=alpha,
    )  # fmt: skip
    assert (found.n_train, found.n_test) == (450, 450)
    shown = []
    for X in (data.X, after):
        ridge = alpha * X[train].var(axis=0).mean()
        model = LogisticRegression(C=1 / (450 * ridge), tol=1e-10, max_iter=5000)
        model.fit(X[train] - X[train].mean(axis=0), data.y[train])
        centred = X[test] - X[train].mean(axis=0)
        loss = log_loss(data.y[test], model.predict_proba(centred), labels=model.classes_)
        shown += [model.score(centred, data.y[test]), loss]
    expected = [found.accuracy_before, found.cross_entropy_before]
    expected += [found.accuracy_after, found.cross_entropy_after]
    np.testing.assert_allclose(expected, shown, rtol=1e-5)
    assert found.accuracy_before > found.accuracy_after > found.majority
    labels, counts = np.unique(data.y[train], return_counts=True)
    assert found.majority == np.mean(data.y[test] == labels[counts.argmax()])
    assert json.loads(json.dumps(found.to_dict()))["n_test"] == 450


def test_erasing_the_task_itself_leaves_the_majority():
    data, train, test = split()
    after = ex.RLACE().fit(data.X[train], data.y[train]).transform(data.X)
    found = task_damage(
        data.X[train], after[train], data.y[train], data.X[test], after[test], data.y[test]
    )
    assert found.accuracy_before > found.majority + 0.2
    assert found.accuracy_after == pytest.approx(found.majority, abs=0.02)


def test_a_sample_of_training_rows_keeps_every_class():
    data, train, test = split()
    y = data.y.copy()
    y[0] = "yak"  # the only one
    found = task_damage(
        data.X[train], data.X[train], y[train], data.X[test], data.X[test], y[test], max_rows=100
    )
    assert found.n_train in (100, 101)
    assert np.isfinite(found.cross_entropy_before)
    assert found.accuracy_before == found.accuracy_after > 0.5


def test_bad_tasks_are_refused():
    X, y = np.arange(8.0).reshape(4, 2), [0, 1, 0, 1]
    with pytest.raises(InputError, match=r"task_test is not over the classes of task_train.*2"):
        task_damage(X, X, y, X, X, [0, 1, 2, 1])
    with pytest.raises(InputError, match="after_test does not go"):
        task_damage(X, X, y, X, X[:3], y)
    with pytest.raises(InputError, match="one class only"):
        task_damage(X, X, [1, 1, 1, 1], X, X, y)
    with pytest.raises(InputError, match="task_train must hold one class"):
        task_damage(X, X, [0.1, 0.2, 0.3, 0.7], X, X, y)


def test_bits_by_hand():
    y = ["a", "a", "a", "b"]
    entropy = scipy.stats.entropy([3, 1], base=2)
    found = bits_left(0.25 * np.log(2), y)
    assert found.entropy == pytest.approx(entropy)
    assert found.cross_entropy == pytest.approx(0.25)
    assert found.bits == found.gain == pytest.approx(entropy - 0.25)
    assert float(found) == found.bits
    assert found.low is None
    worse = bits_left(2.0, y)
    assert worse.bits == 0
    assert worse.gain == pytest.approx(entropy - 2 / np.log(2))
    with pytest.raises(InputError, match="losses must be"):
        bits_left([0.1, 0.2], y)


def test_the_interval_is_that_of_a_full_bootstrap():
    """The twin draws rows, counts their labels anew and subtracts the mean loss."""
    rng = np.random.default_rng(0)
    y = (rng.random(400) < 0.3).astype(int)
    losses = rng.gamma(2.0, 0.2, 400) + 0.1 * y
    found = bits_left(losses, y, resamples=4000)
    twin = []
    for _ in range(3000):
        i = rng.integers(0, 400, 400)
        twin.append(scipy.stats.entropy(np.bincount(y[i]), base=2) - losses[i].mean() / np.log(2))
    low, high = np.quantile(twin, [0.025, 0.975])
    assert 0 < found.low < found.bits < found.high
    assert found.low == pytest.approx(low, abs=0.01)
    assert found.high == pytest.approx(high, abs=0.01)
    assert bits_left(losses + 1, y).low == 0


def test_bits_of_a_probe_before_and_after():
    data = plant("binary", n=2000)
    erased = ex.RLACE().fit(data.X[:1000], data.y[:1000]).transform(data.X)
    found = []
    for X in (data.X, erased):
        model = LogisticRegression().fit(X[:1000], data.y[:1000])
        p = model.predict_proba(X[1000:])
        found.append(bits_left(-np.log(p[np.arange(1000), data.y[1000:]]), data.y[1000:]))
    assert found[0].low > 0.3
    assert found[1].bits < 0.02


@pytest.mark.parametrize("unit", [1e-4, 1.0, 1e4])
def test_a_task_does_not_depend_on_the_units_of_columns(unit):
    """Against scikit-learn on standardised columns; what is erased stays so in any unit."""
    rng = np.random.default_rng(0)
    n = 1500
    t, y = rng.integers(0, 2, n), rng.integers(0, 2, n)
    X = rng.normal(size=(n, 4)) + np.column_stack([t, 0.7 * t, y, t - y])
    X = np.column_stack([X, np.ones(n), y]) * [unit, 1, 1, 1, 1, 1]
    erasure = ex.LEACE().fit(X[:1000], y[:1000]).erasure_
    A, B, F, G = X[:1000], erasure(X[:1000]), X[1000:], erasure(X[1000:])
    found = ex.metrics.task_damage(A, B, t[:1000], F, G, t[1000:])
    for rows, test, accuracy in ((A, F, found.accuracy_before), (B, G, found.accuracy_after)):
        plain = make_pipeline(StandardScaler(), LogisticRegression(C=10)).fit(rows, t[:1000])
        assert plain.score(test, t[1000:]) > 0.7
        assert accuracy == pytest.approx(plain.score(test, t[1000:]), abs=0.012)
    gone = ex.metrics.task_damage(A, B, y[:1000], F, G, y[1000:])
    assert gone.accuracy_before == 1
    assert gone.accuracy_after < 0.55


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_of_what_was_taken_decides_no_task(dtype):
    """Of a float32 column that was the class a spread of 1e-8 is left: 100 % were read from it."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 3000)
    X = np.column_stack([0.1 + 0.7 * y, rng.normal(size=(3000, 4))]).astype(dtype)
    slope = np.linalg.lstsq(np.c_[np.ones(3000), y], X, rcond=None)[0][1]
    B = X - np.outer(y, slope).astype(dtype)
    found = ex.metrics.task_damage(X[:2000], B[:2000], y[:2000], X[2000:], B[2000:], y[2000:])
    assert found.accuracy_before == 1
    assert found.accuracy_after < 0.56
