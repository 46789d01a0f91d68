"""SPLINCE: the concept gone, the task's covariance kept, at the least change there is."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

import expunge as ex
from planted import plant


def with_task(kind="classes", *, task="binary", n=800, seed=0):
    """Rows that carry a concept and a task; the two labels are correlated."""
    data, rng = plant(kind, n=n, seed=seed), np.random.default_rng(seed + 50)
    lean = data.Z[:, 0] - data.Z[:, 0].mean()
    score = rng.normal(size=n) + lean
    if task == "number":
        t, T = score, score[:, None]
    elif task == "classes":
        t = np.digitize(score, [-0.5, 0.8])
        T = np.eye(3)[t]
    else:
        t = (score > 0).astype(int)
        T = t[:, None].astype(float)
    X = data.X + T @ rng.normal(size=(T.shape[1], 8))
    return X, t, T, data.y, data.Z


def covariance(X, Z):
    return (X - X.mean(0)).T @ (Z - Z.mean(0)) / len(X)


TASKS = ["binary", "classes", "number"]


@pytest.mark.parametrize("kind", ["binary", "classes", "labels", "number"])
@pytest.mark.parametrize("task", TASKS)
def test_concept_gone_and_task_kept(kind, task):
    X, t, T, z, Z = with_task(kind, task=task)
    eraser = ex.SPLINCE().fit(X, t, concept=z)
    clean = eraser.transform(X)
    assert np.abs(covariance(X, Z)).max() > 0.1
    assert np.abs(covariance(clean, Z)).max() < 1e-10
    kept = covariance(X, T)
    assert np.abs(kept).max() > 0.1
    np.testing.assert_allclose(covariance(clean, T), kept, atol=1e-10)
    np.testing.assert_allclose(clean.mean(0), X.mean(0), atol=1e-12)
    assert eraser.certificate_.erased
    plain = ex.LEACE().fit(X, z).transform(X)  # which does not keep it
    assert np.abs(covariance(plain, T) - kept).max() > 1e-3


@pytest.mark.parametrize("kind", ["binary", "classes"])
@pytest.mark.parametrize("task", TASKS)
def test_the_least_change_among_all_such_maps(kind, task):
    """Row by row of P the problem is a quadratic with linear constraints: one linear system."""
    X, t, T, z, Z = with_task(kind, task=task)
    S, A = covariance(X, X), np.hstack([covariance(X, Z), covariance(X, T)])
    wanted = np.hstack([np.zeros_like(covariance(X, Z)), covariance(X, T)])
    m = A.shape[1]
    K = np.block([[2 * S, A], [A.T, np.zeros((m, m))]])
    P = np.linalg.lstsq(K, np.vstack([2 * S, wanted.T]), rcond=1e-12)[0][:8].T
    found = ex.SPLINCE().fit(X, t, concept=z).erasure_.matrix()
    np.testing.assert_allclose(found, P, atol=1e-8)


def test_any_other_map_that_keeps_both_promises_changes_more():
    X, t, T, z, Z = with_task()
    C, P = X - X.mean(0), ex.SPLINCE().fit(X, t, concept=z).erasure_.matrix()
    span = np.linalg.svd(np.hstack([covariance(X, Z), covariance(X, T)]))[0][:, :4]
    least = np.sum((C @ P.T - C) ** 2)
    rng = np.random.default_rng(0)
    for _ in range(20):
        N = rng.normal(size=(8, 8)) @ (np.eye(8) - span @ span.T)
        for h in (1e-3, -1e-3):
            assert np.sum((C @ (P + h * N).T - C) ** 2) > least


def test_without_a_task_it_is_leace():
    X, _, _, z, _ = with_task()
    leace = ex.LEACE().fit(X, z).erasure_.matrix()
    for eraser in (ex.SPLINCE().fit(X, z), ex.SPLINCE().fit(X, concept=z)):
        np.testing.assert_array_equal(eraser.erasure_.matrix(), leace)


def test_what_keeping_the_covariance_is_good_for():
    """Both project along the same directions, so plain least squares finds the same in both.

    It is a regularised predictor, which leans on large covariances, that does better.
    """
    X, t, T, z, _ = with_task("binary", n=4000)
    kept = ex.SPLINCE().fit(X, t, concept=z).transform(X)
    plain = ex.LEACE().fit(X, z).transform(X)
    assert np.mean((kept - X) ** 2) > np.mean((plain - X) ** 2)

    def score(model, A):
        return model.fit(A, T).score(A, T)

    assert score(LinearRegression(), kept) == pytest.approx(score(LinearRegression(), plain))
    strong = Ridge(alpha=1e5)
    assert score(strong, kept) > 1.1 * score(strong, plain)
    for A in (kept, plain):
        probe = LogisticRegression(max_iter=1000).fit(A, z)
        assert probe.score(A, z) == pytest.approx(max(z.mean(), 1 - z.mean()), abs=0.01)


@pytest.mark.parametrize("strength", [0.0, 0.3, 0.99])
def test_the_task_is_kept_at_any_strength(strength):
    X, t, T, z, Z = with_task()
    eraser = ex.SPLINCE(strength=strength).fit(X, t, concept=z)
    clean = eraser.transform(X)
    np.testing.assert_allclose(covariance(clean, T), covariance(X, T), atol=1e-10)
    np.testing.assert_allclose(covariance(clean, Z), (1 - strength) * covariance(X, Z), atol=1e-10)
    assert not eraser.certificate_.erased


@pytest.mark.parametrize("shrinkage", ["oas", "ledoit_wolf", 0.5, 1.0])
def test_shrinkage_breaks_neither_promise(shrinkage):
    X, t, T, z, Z = with_task(n=40)
    clean = ex.SPLINCE(shrinkage=shrinkage).fit(X, t, concept=z).transform(X)
    assert np.abs(covariance(X, Z)).max() > 0.1
    assert np.abs(covariance(clean, Z)).max() < 1e-10
    np.testing.assert_allclose(covariance(clean, T), covariance(X, T), atol=1e-10)


@pytest.mark.parametrize("same", ["copy", "reversed", "combination"])
def test_a_task_within_the_concept_is_refused(same):
    data = plant("labels")
    task = {
        "copy": data.y[:, 0],
        "reversed": 1 - data.y[:, 1],
        "combination": data.Z @ [1.0, 2.5, -1.0],
    }[same]
    with pytest.raises(ex.InputError) as refused:
        ex.SPLINCE().fit(data.X, task, concept=data.y)
    message = str(refused.value)
    assert "task lies in the span of the concept" in message
    assert "1 of 3 directions" in message
    assert "LEACE" in message


def test_a_task_that_leans_hard_on_the_concept_is_still_kept():
    """99 % of the rows have task and concept equal: possible, at the price of a large change."""
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, 20_000)
    t = np.where(rng.random(20_000) < 0.99, z, 1 - z)
    X = rng.normal(size=(20_000, 5)) + np.outer(z, np.eye(5)[0]) + np.outer(t, np.eye(5)[1])
    with pytest.warns(ex.RowsStretched):
        clean = ex.SPLINCE().fit(X, t, concept=z).transform(X)
    T, Z = t[:, None] * 1.0, z[:, None] * 1.0
    np.testing.assert_allclose(covariance(clean, T), covariance(X, T), atol=1e-10)
    assert np.abs(covariance(clean, Z)).max() < 1e-10
    assert np.mean((clean - X) ** 2) > np.mean((ex.LEACE().fit_transform(X, z) - X) ** 2) * 2


def test_a_task_of_no_covariance_costs_nothing():
    """Every combination of concept and task on the same rows: nothing to keep."""
    z, t = (column.ravel() for column in np.meshgrid([0, 1], [0, 1]))
    z, t = np.repeat(z, 20), np.repeat(t, 20)
    X = np.tile(np.random.default_rng(0).normal(size=(20, 4)), (4, 1)) + np.outer(z, np.ones(4))
    found = ex.SPLINCE().fit(X, t, concept=z).erasure_.matrix()
    np.testing.assert_allclose(found, ex.LEACE().fit(X, z).erasure_.matrix(), atol=1e-12)


def test_chunks_equal_the_whole_with_a_late_class_of_the_task():
    X, t, _, z, _ = with_task(task="classes")
    whole = ex.SPLINCE().fit(X, t, concept=z)
    stream = ex.SPLINCE()
    for part in np.array_split(np.argsort(t, kind="stable"), 6):
        stream.partial_fit(X[part], t[part], concept=z[part])
    np.testing.assert_allclose(stream.erasure_.matrix(), whole.erasure_.matrix(), atol=1e-9)


def test_weights_count_for_the_task_too():
    X, t, _, z, _ = with_task()
    w = np.random.default_rng(0).integers(0, 3, len(X))
    weighted = ex.SPLINCE().fit(X, t, concept=z, sample_weight=w)
    again = np.repeat(np.arange(len(X)), w)
    repeated = ex.SPLINCE().fit(X[again], t[again], concept=z[again])
    np.testing.assert_allclose(weighted.erasure_.matrix(), repeated.erasure_.matrix(), atol=1e-9)


def test_a_task_next_to_the_concept_stretches_the_rows_and_that_is_said():
    """Kept in full, it made the rows vary ten thousand times more, without a word."""
    rng = np.random.default_rng(0)
    z, n = np.arange(400) % 2, 400
    X = rng.normal(size=(n, 3)) + np.outer(z, [2.0, 0, 0])
    task = z + 0.02 * X[:, 1] + 0.01 * rng.normal(size=n)
    with pytest.warns(ex.RowsStretched, match="task less like the concept"):
        eraser = ex.SPLINCE().fit(X, task, concept=z)
    assert eraser.certificate_.erased
    assert np.var(eraser.transform(X), axis=0).max() > 100 * np.var(X, axis=0).max()
    ex.LEACE().fit(X, z)  # warnings are errors
