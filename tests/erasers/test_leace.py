"""LEACE: the published closed form, its optimality, shrinkage, hard data, and another package."""

import numpy as np
import pytest
import scipy.linalg
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import expunge as ex
from planted import plant

KINDS = ["binary", "classes", "labels", "number", "vector"]
SHRINKAGE = ["none", "ledoit_wolf", "oas", 0.0, 0.3, 1.0]


def covariances(X, Z):
    X, Z = X - X.mean(0), Z - Z.mean(0)
    return X.T @ X / len(X), X.T @ Z / len(X)


def published(S, C):
    """I - W⁻¹UUᵀW with W = S^(-1/2), U an orthonormal basis of col(WC); S of full rank."""
    values, V = np.linalg.eigh(S)
    W, root = (V / np.sqrt(values)) @ V.T, (V * np.sqrt(values)) @ V.T
    U = scipy.linalg.orth(W @ C, rcond=1e-10)
    return np.eye(len(S)) - root @ U @ U.T @ W


def class_means(X, y):
    return np.array([X[y == c].mean(axis=0) for c in np.unique(y)])


def class_gap(X, y):
    means = class_means(X, y)
    return np.abs(means - means[0]).max()


# -- the map ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_equals_the_published_formula(kind):
    data = plant(kind)
    eraser = ex.LEACE().fit(data.X, data.y)
    P = published(*covariances(data.X, data.Z))
    np.testing.assert_allclose(eraser.erasure_.matrix(), P, atol=1e-10)
    expected = data.X.mean(0) + (data.X - data.X.mean(0)) @ P.T
    np.testing.assert_allclose(eraser.transform(data.X), expected, atol=1e-10)


@pytest.mark.parametrize("kind", ["binary", "classes"])
@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e9])
def test_class_means_are_equal_to_ten_digits(kind, scale):
    data = plant(kind)
    X = data.X * scale
    before = class_gap(X, data.y)
    assert before > 0.5 * scale
    assert class_gap(ex.LEACE().fit(X, data.y).transform(X), data.y) < 1e-10 * before


@pytest.mark.parametrize("kind", KINDS)
def test_no_feasible_change_of_the_map_moves_the_rows_less(kind):
    """f(P + hN) with NΣxz = 0 has slope 0 at h = 0 and bends up; without that constraint it falls.

    f(P) = E‖Px + b - x‖² with b = mean - P mean, by its definition on the rows.
    """
    data = plant(kind)
    X = data.X - data.X.mean(0)
    _, C = covariances(data.X, data.Z)
    P = ex.LEACE().fit(data.X, data.y).erasure_.matrix()

    def cost(P):
        return np.mean(np.sum((X @ P.T - X) ** 2, axis=1))

    U = scipy.linalg.orth(C, rcond=1e-10)
    rng, h = np.random.default_rng(0), 1e-3
    for _ in range(20):
        N = rng.normal(size=P.shape) @ (np.eye(8) - U @ U.T)
        assert np.abs(N @ C).max() < 1e-10
        up, down = cost(P + h * N), cost(P - h * N)
        assert abs(up - down) / (2 * h) < 1e-8
        assert min(up, down) > cost(P)
    assert cost(P + h * (np.eye(8) - P)) < cost(P)  # less erasure: less change


def test_the_gradient_of_the_lagrangian_vanishes():
    """By automatic differentiation: no formula of a derivative is trusted."""
    torch = pytest.importorskip("torch")
    data = plant("classes")
    X = torch.tensor(data.X - data.X.mean(0))
    _, C = covariances(data.X, data.Z)
    P = torch.tensor(ex.LEACE().fit(data.X, data.y).erasure_.matrix(), requires_grad=True)
    cost = ((X @ P.T - X) ** 2).sum(dim=1).mean()
    (gradient,) = torch.autograd.grad(cost, P)
    gradient = gradient.numpy()
    multipliers = -np.linalg.lstsq(C, gradient.T, rcond=1e-10)[0].T  # of <M, PΣxz>
    assert np.abs(gradient).max() > 0.1
    np.testing.assert_allclose(gradient + multipliers @ C.T, 0, atol=1e-10)


# -- relatives -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_canonical_correlations_at_full_rank_are_the_same_map(kind):
    data = plant(kind)
    cca = ex.RayleighEraser(objective="cca").fit(data.X, data.y)
    leace = ex.LEACE().fit(data.X, data.y)
    np.testing.assert_allclose(leace.erasure_.matrix(), cca.erasure_.matrix(), atol=1e-9)


@pytest.mark.parametrize(("kind", "rank"), [("classes", 1), ("classes", 2), ("vector", 1)])
def test_fewer_directions_are_those_of_canonical_correlation(kind, rank):
    data = plant(kind)
    leace = ex.LEACE(rank).fit(data.X, data.y)
    cca = ex.RayleighEraser(rank, objective="cca").fit(data.X, data.y)
    np.testing.assert_allclose(leace.erasure_.matrix(), cca.erasure_.matrix(), atol=1e-9)
    assert leace.rank_ == rank
    assert not leace.certificate_.erased


def test_more_directions_than_the_concept_has_are_not_used():
    data = plant("classes")
    assert ex.LEACE(6).fit(data.X, data.y).rank_ == 3


def test_units_of_a_number_do_not_matter():
    """Canonical correlations have none; a column in millionths counts like any other."""
    data = plant("vector")
    for rank in (1, 2):
        plain = ex.LEACE(rank).fit(data.X, data.y)
        scaled = ex.LEACE(rank).fit(data.X, data.y * [1.0, 1e8])
        np.testing.assert_allclose(
            scaled.erasure_.matrix(), plain.erasure_.matrix(), atol=1e-6 if rank == 2 else 1e-9
        )


# -- shrinkage -------------------------------------------------------------------------------------


@pytest.mark.parametrize("shrinkage", SHRINKAGE)
@pytest.mark.parametrize("n", [600, 12])
def test_shrinkage_never_lets_the_concept_through(shrinkage, n):
    data = plant("classes", n=n)
    eraser = ex.LEACE(shrinkage=shrinkage).fit(data.X, data.y)
    _, C = covariances(data.X, data.Z)
    assert np.abs(C).max() > 0.1
    assert np.abs(eraser.erasure_.matrix() @ C).max() < 1e-12 * np.abs(C).max() + 1e-13
    assert eraser.certificate_.erased


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_a_given_share_is_the_formula_with_the_shrunk_covariance(share):
    data = plant("classes")
    S, C = covariances(data.X, data.Z)
    shrunk = (1 - share) * S + share * np.trace(S) / 8 * np.eye(8)
    found = ex.LEACE(shrinkage=share).fit(data.X, data.y).erasure_
    np.testing.assert_allclose(found.matrix(), published(shrunk, C), atol=1e-10)
    assert found.is_orthogonal == (share == 1.0)  # of the identity: an orthogonal projection


def test_shrinkage_helps_new_rows_of_a_wide_concept():
    """Forty rows of thirty columns: the shrunk map changes new rows much less."""
    rng = np.random.default_rng(0)
    y = np.tile([0, 1], 2020)
    X = rng.normal(size=(4040, 30)) + np.outer(y, np.full(30, 0.5))
    change = {}
    for shrinkage in ("none", "oas"):
        eraser = ex.LEACE(shrinkage=shrinkage).fit(X[:40], y[:40])
        change[shrinkage] = np.mean(np.sum((eraser.transform(X[40:]) - X[40:]) ** 2, axis=1))
    assert change["oas"] < 0.7 * change["none"]


@pytest.mark.parametrize("shrinkage", ["lw", -0.1, 1.1, None])
def test_bad_shrinkage_is_refused(shrinkage):
    data = plant("binary")
    with pytest.raises(ex.InputError, match="shrinkage"):
        ex.LEACE(shrinkage=shrinkage).fit(data.X, data.y)


# -- data that break careless numerics -------------------------------------------------------------


def test_a_weak_direction_of_the_concept_is_kept_in_the_rank():
    """Ten million times weaker than the other: an absolute cut would leave it."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(500, 2))
    X = rng.normal(size=(500, 5)) * 1e-9 + z @ np.array([[1.0, 0, 0, 0, 0], [0, 1e-7, 0, 0, 0]])
    eraser = ex.LEACE().fit(X, z)
    assert eraser.rank_ == 2
    clean = eraser.transform(X)
    assert abs(np.corrcoef(X[:, 1], z[:, 1])[0, 1]) > 0.9
    assert abs(np.cov(clean[:, 1], z[:, 1])[0, 1]) < 1e-16


@pytest.mark.parametrize("narrow", [1e-5, 1e-11])
def test_a_narrow_column_is_erased_in_its_own_units(narrow):
    X = np.random.default_rng(0).normal(size=(500, 5))
    z = np.random.default_rng(1).normal(size=(500, 2))
    X[:, :2] += z
    X[:, 1] *= narrow
    eraser = ex.LEACE().fit(X, z)
    assert eraser.rank_ == 2
    assert eraser.certificate_.erased


def test_a_direction_at_the_edge_of_rounding_is_cut_with_a_warning():
    X = np.random.default_rng(0).normal(size=(500, 5))
    z = np.random.default_rng(1).normal(size=500)
    X[:, 0] += z
    z = np.column_stack([z, z + 1e-11 * X[:, 1]])  # two numbers that are next to one
    with pytest.warns(ex.RankTruncated, match="treated as zero"):
        assert ex.LEACE().fit(X, z).rank_ == 1


@pytest.mark.filterwarnings("ignore::expunge.errors.UnitsMatter")  # SAL, for comparison
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_huge_column_does_not_hide_the_others(dtype):
    """As in the hidden states of some networks: one column a thousand times as wide."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 5000)
    mix = np.eye(30) + rng.normal(size=(30, 30)) / 8
    X = rng.normal(size=(5000, 30)) @ mix + np.outer(y, rng.normal(size=30))
    X[:, 4] *= 1e3
    X = X.astype(dtype).astype(float)
    S, C = covariances(X, y[:, None])
    best = X.mean(0) + (X - X.mean(0)) @ published(S, C).T
    found = ex.LEACE().fit(X.astype(dtype), y).transform(X)
    least, change, orthogonal = (
        np.mean(np.sum((A - X) ** 2, axis=1)) for A in (best, found, ex.SAL().fit_transform(X, y))
    )
    assert orthogonal > 10 * least
    assert change == pytest.approx(least, rel=1e-3)
    assert class_gap(found, y) < 1e-10 * class_gap(X, y)


@pytest.mark.parametrize("kind", ["binary", "classes"])
def test_more_columns_than_rows(kind):
    """The optimum inside the span of the rows; what lies outside is neither read nor changed."""
    data = plant(kind, n=40, d=60)
    X, mean = data.X, data.X.mean(0)
    eraser = ex.LEACE().fit(X, data.y)
    _, s, Vt = np.linalg.svd(X - mean, full_matrices=True)
    inside, outside = Vt[: (s > 1e-10 * s[0]).sum()], Vt[(s > 1e-10 * s[0]).sum() :]
    S, C = covariances((X - mean) @ inside.T, data.Z)
    expected = mean + (X - mean) @ inside.T @ published(S, C).T @ inside
    assert class_gap(X, data.y) > 0.5
    np.testing.assert_allclose(eraser.transform(X), expected, atol=1e-9)
    moved = X[:5] + outside[:5]
    np.testing.assert_allclose(
        eraser.transform(moved), eraser.transform(X[:5]) + outside[:5], atol=1e-9
    )


def test_constant_columns_are_neither_read_nor_changed():
    data = plant("classes")
    X = np.insert(data.X, [2, 5], 7.0, axis=1)
    eraser = ex.LEACE().fit(X, data.y)
    clean = eraser.transform(X)
    np.testing.assert_array_equal(clean[:, [2, 6]], 7.0)
    plain = ex.LEACE().fit_transform(data.X, data.y)
    np.testing.assert_allclose(np.delete(clean, [2, 6], axis=1), plain, atol=1e-10)
    other = X.copy()
    other[:, 2] = np.arange(len(X))
    np.testing.assert_array_equal(np.delete(eraser.transform(other), 2, 1), np.delete(clean, 2, 1))


def test_a_concept_that_is_not_there_changes_nothing():
    X = np.repeat(np.random.default_rng(0).normal(size=(50, 4)), 2, axis=0)
    eraser = ex.LEACE().fit(X, np.tile([0, 1], 50))
    assert eraser.rank_ == 0
    np.testing.assert_array_equal(eraser.transform(X), X)


def test_streaming_with_a_late_class_and_weights():
    data = plant("classes")
    w = np.random.default_rng(3).random(600)
    whole = ex.LEACE(shrinkage="oas").fit(data.X, data.y, sample_weight=w)
    stream = ex.LEACE(shrinkage="oas")
    for part in np.array_split(np.argsort(data.y, kind="stable"), 9):
        stream.partial_fit(data.X[part], data.y[part], sample_weight=w[part])
    np.testing.assert_allclose(stream.erasure_.matrix(), whole.erasure_.matrix(), atol=1e-10)
    assert stream.certificate_.erased


# -- strength --------------------------------------------------------------------------------------


@pytest.mark.parametrize("strength", [0.0, 0.25, 0.9])
def test_below_full_strength_the_class_means_stay_apart(strength):
    data = plant("classes")
    eraser = ex.LEACE(strength=strength).fit(data.X, data.y)
    before, after = class_means(data.X, data.y), class_means(eraser.transform(data.X), data.y)
    before, after = before - data.X.mean(0), after - data.X.mean(0)
    np.testing.assert_allclose(after, (1 - strength) * before, atol=1e-10)
    assert not eraser.certificate_.erased


def test_strength_can_be_searched_for_in_a_pipeline():
    """The task leans on the concept, so the score falls with the strength: the grid finds that."""
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, 800)
    task = np.where(rng.random(800) < 0.8, z, 1 - z)
    X = rng.normal(size=(800, 6)) + np.outer(z, [2, 1, 0, 0, 0, 0])
    with config_context(enable_metadata_routing=True):
        eraser = ex.LEACE().set_fit_request(concept=True)
        search = GridSearchCV(
            make_pipeline(eraser, LogisticRegression()),
            {"leace__strength": [0.0, 0.5, 0.9, 1.0]},
            cv=4,
        ).fit(X, task, concept=z)
    scores = search.cv_results_["mean_test_score"]
    assert search.best_params_["leace__strength"] < 1
    assert scores[0] > 0.7
    assert scores[3] < 0.6


# -- against the authors' package, where it is installed -------------------------------------------


def theirs(X, Z, **options):
    package = pytest.importorskip("concept_erasure")
    torch = pytest.importorskip("torch")
    options = {"shrinkage": False, "constrain_cov_trace": False, "svd_tol": 1e-10, **options}
    X = torch.as_tensor(X)
    fitter = package.LeaceFitter.fit(X, torch.as_tensor(Z), **options)
    return fitter.eraser(X).numpy()


@pytest.mark.parametrize("kind", KINDS)
def test_same_map_as_the_authors_package(kind):
    data = plant(kind)
    ours = ex.LEACE().fit_transform(data.X, data.y)
    np.testing.assert_allclose(ours, theirs(data.X, data.Z), atol=1e-6)


def test_classes_given_as_numbers():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 1000)
    X = rng.normal(size=(1000, 6)) + 2 * rng.normal(size=(4, 6))[y]
    assert class_gap(theirs(X, y.astype(float)), y) > 0.5  # taken as one number
    assert class_gap(ex.LEACE().fit_transform(X, y), y) < 1e-10


def test_a_rare_class():
    rng = np.random.default_rng(0)
    y = (np.arange(20_000) < 100).astype(int)
    X = rng.normal(size=(20_000, 10))
    X[:100, 4] += 1.4
    assert class_gap(theirs(X, y[:, None].astype(float), svd_tol=0.01), y) > 1  # its default
    assert class_gap(ex.LEACE().fit_transform(X, y), y) < 1e-10


def test_half_precision_and_arrays():
    package = pytest.importorskip("concept_erasure")
    torch = pytest.importorskip("torch")
    data = plant("binary")
    X, Z = data.X.astype(np.float16), data.Z.astype(np.float16)
    with pytest.raises(NotImplementedError):
        _ = package.LeaceFitter.fit(torch.as_tensor(X), torch.as_tensor(Z)).eraser
    with pytest.raises(TypeError):
        package.LeaceFitter.fit(X, Z)
    clean = ex.LEACE().fit(X, data.y).transform(X.astype(float))
    assert class_gap(X.astype(float), data.y) > 0.5
    assert class_gap(clean, data.y) < 1e-6


@pytest.mark.parametrize("eraser", [ex.LEACE, ex.SPLINCE])
@pytest.mark.parametrize("shrinkage", [0.5, 1.0, "oas", "ledoit_wolf"])
def test_shrinkage_leaves_a_narrow_column_narrow(eraser, shrinkage):
    """Towards a multiple of I it was as wide as the widest, and what it says was lost."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    X = rng.normal(size=(200, 4)) + 2 * rng.normal(size=(3, 4))[y]
    X /= X.std(axis=0)
    wide = X * [1e12, 1, 1, 1]
    plain = eraser(shrinkage=shrinkage).fit(X, y).transform(X)
    clean = eraser(shrinkage=shrinkage).fit(wide, y).transform(wide) / [1e12, 1, 1, 1]
    assert np.abs(X[y == 1].mean(axis=0) - X.mean(axis=0)).min() > 0.2
    np.testing.assert_allclose(clean, plain, atol=1e-6)
    np.testing.assert_allclose(clean[y == 1].mean(axis=0), X.mean(axis=0), atol=1e-6)
