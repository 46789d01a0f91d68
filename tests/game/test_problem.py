"""Passes over rows and guesses of the Hessian: against plain NumPy, differences and twins."""

import numpy as np
import pytest

import expunge as ex
from expunge import parallel
from expunge.game.losses import LOSSES, SmoothHinge, loss_for
from expunge.game.predictor import Problem, fit_predictor
from expunge.inputs import check_concept, check_rows
from planted import plant

KINDS = {
    "binary": "classes",
    "classes": "classes",
    "labels": "labels",
    "number": "continuous",
    "vector": "continuous",
}
PAIRS = [
    (kind, name)
    for kind in KINDS
    for name in LOSSES
    if KINDS[kind] in loss_for(name, "classes", 4).kinds or name == "cross_entropy"
    if not (name == "cross_entropy" and KINDS[kind] == "continuous")
]


def softmax(S):
    E = np.exp(S)
    return E / E.sum(axis=1, keepdims=True)


def plain_loss(name, kind, Z, S):
    """Values (n), derivative (n x m) and second derivative (n x m x m), as in a textbook."""
    n, m = S.shape
    T = 2 * Z - 1
    diagonal = np.zeros((n, m))
    if name == "cross_entropy" and kind == "classes":
        p = softmax(S)
        H = np.einsum("ij,jk->ijk", p, np.eye(m)) - np.einsum("ij,ik->ijk", p, p)
        return -np.log(p[Z == 1]), p - Z, H
    if name == "cross_entropy":
        p = 1 / (1 + np.exp(-S))
        values, slopes = -(Z * np.log(p) + (1 - Z) * np.log(1 - p)), p - Z
        diagonal = p * (1 - p)
    elif name == "squared":
        values, slopes, diagonal = (Z - S) ** 2, 2 * (S - Z), diagonal + 2
    elif name == "huber":
        r = S - Z
        values = np.where(abs(r) <= 1, r**2 / 2, abs(r) - 0.5)
        slopes, diagonal = np.where(abs(r) <= 1, r, np.sign(r)), 1.0 * (abs(r) <= 1)
    elif name == "hinge":
        values, slopes = np.where(T * S < 1, 1 - T * S, 0), np.where(T * S < 1, -T, 0)
    else:
        u = np.where(T * S < 1, 1 - T * S, 0)
        values, slopes, diagonal = u**2, -2 * T * u, 2.0 * (u > 0)
    return values.sum(axis=1), slopes, np.einsum("ij,jk->ijk", diagonal, np.eye(m))


def plain_accuracy(name, kind, Z, S, w):
    if KINDS[kind] == "continuous":
        return np.nan
    if kind == "classes":
        return w @ (S.argmax(axis=1) == Z.argmax(axis=1)) / w.sum()
    says_yes = 0.5 if name in ("squared", "huber") else 0.0
    return w @ ((says_yes < S) == Z).mean(axis=1) / w.sum()


def setting(kind, loss, *, n=700, d=5, dtype=float, seed=0):
    """Rows of more than one block, their concept, the loss and a point for the predictor."""
    data = plant(kind, n=n, d=d)
    concept = check_concept(data.y, n)
    loss = loss_for(loss, concept.kind, concept.width) if isinstance(loss, str) else loss
    rng = np.random.default_rng(seed)
    m = data.Z.shape[1]
    point = rng.normal(size=(d, m)) / 3, rng.normal(size=m) / 3
    return check_rows(data.X.astype(dtype)), concept, loss, point, data


# -- one pass --------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize(("kind", "name"), PAIRS)
def test_a_pass_is_what_a_textbook_says(kind, name, centred, weighted):
    rows, concept, loss, (coef, b), data = setting(kind, name)
    rng = np.random.default_rng(1)
    center = rng.normal(size=5) if centred else None
    w = rng.uniform(0.1, 3, 700) if weighted else None
    found = rows.glm_pass(loss, coef, b, concept, w, center=center)
    C = data.X - (center if centred else 0)
    w = np.ones(700) if w is None else w
    S = C @ coef + b
    values, R, H = plain_loss(name, kind, data.Z, S)
    W = w.sum()
    assert found.value == pytest.approx(w @ values / W, rel=1e-12)
    np.testing.assert_allclose(found.coef, C.T @ (R * w[:, None]) / W, atol=1e-12)
    np.testing.assert_allclose(found.intercept, w @ R / W, atol=1e-12)
    np.testing.assert_allclose(found.curvature, np.einsum("i,ijk->jk", w, H) / W, atol=1e-12)
    accuracy = plain_accuracy(name, kind, data.Z, S, w)
    assert found.accuracy == pytest.approx(accuracy, nan_ok=True, rel=1e-12)


def test_single_precision_rows_are_read_exactly():
    rows, concept, loss, point, _ = setting("classes", "cross_entropy", dtype=np.float32)
    wide = check_rows(rows.X.astype(np.float64))
    narrow, exact = (r.glm_pass(loss, *point, concept) for r in (rows, wide))
    np.testing.assert_array_equal(narrow.coef, exact.coef)
    H, exact_H = (r.glm_hessian(loss, *point, concept) for r in (rows, wide))
    np.testing.assert_array_equal(H, exact_H)
    assert H.dtype == np.float64


def test_threads_change_no_bit(monkeypatch):
    rows, concept, loss, point, _ = setting("classes", "cross_entropy")
    whole = rows.glm_pass(loss, *point, concept)
    monkeypatch.setattr(parallel, "SPAN", 64)
    monkeypatch.setattr(parallel, "WORTH_THREADS", 0)
    found = []
    for threads in (1, 2, 5):
        monkeypatch.setattr(parallel, "n_threads", lambda threads=threads: threads)
        found.append(rows.glm_pass(loss, *point, concept))
    for one in found:
        assert one.value == found[0].value
        np.testing.assert_array_equal(one.coef, found[0].coef)
        np.testing.assert_allclose(one.coef, whole.coef, atol=1e-14)


SMOOTH = [(kind, name) for kind, name in PAIRS if name != "hinge"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("kind", "name"), [*SMOOTH, ("classes", SmoothHinge(0.7))])
def test_the_hessian_is_the_derivative_of_the_gradient(kind, name, weighted, dtype):
    rows, concept, loss, (coef, b), _ = setting(kind, name, d=3, dtype=dtype)
    rng = np.random.default_rng(2)
    w = rng.uniform(0, 2, 700) if weighted else None
    center = rng.normal(size=3)
    H = rows.glm_hessian(loss, coef, b, concept, w, center=center)
    m, size, h = len(b), 4, 1e-5

    def gradient(z):
        got = rows.glm_pass(loss, z[:-1], z[-1], concept, w, center=center)
        return np.vstack([got.coef, got.intercept]).T  # (m, d + 1): class by class

    z = np.vstack([coef, b])
    slopes = np.zeros((m, size, m, size))
    for k in range(m):
        for i in range(size):
            step = np.zeros_like(z)
            step[i, k] = h
            slopes[k, i] = (gradient(z + step) - gradient(z - step)) / (2 * h)
    if H.ndim == 3:  # the scores do not interact
        full = np.zeros((m, size, m, size))
        full[np.arange(m), :, np.arange(m), :] = H
        H = full
    # a row may cross a kink of the squared hinge within the step
    atol = 1e-7 if name in ("cross_entropy", "squared") else 1e-3
    np.testing.assert_allclose(H, slopes, atol=atol)
    assert np.abs(H).max() > 0.05


# -- guesses of the inverse Hessian ----------------------------------------------------------------


def dense_inverse(kind, name, data, theta, b, *, alpha, U, intercept, w):
    """Inverse of the scaled problem's Hessian at Θ, on steps orthogonal to U, as one big matrix."""
    n, d = data.X.shape
    w = np.ones(n) if w is None else w
    mean = w @ data.X / w.sum()
    unit = np.sqrt(np.mean(w @ (data.X - mean) ** 2 / w.sum()))
    C = (data.X - mean if intercept else data.X) / unit
    H_rows = plain_loss(name, kind, data.Z, C @ theta + b)[2]
    C1 = np.hstack([C, np.full((n, 1), float(intercept))])
    H = np.einsum("n,nkl,ni,nj->kilj", w / w.sum(), H_rows, C1, C1)
    m = len(b)
    H = H.reshape(m * (d + 1), -1) + np.diag(np.tile([alpha] * d + [1e-8], m))
    N = np.linalg.svd(np.eye(d) - U @ U.T)[0][:, : d - U.shape[1]]
    free = np.zeros((d + 1, d + 1 - U.shape[1]))
    free[:d, :-1], free[-1, -1] = N, 1
    Z = np.kron(np.eye(m), free)
    return Z @ np.linalg.solve(Z.T @ H @ Z, Z.T)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("K", [0, 1, 3])
@pytest.mark.parametrize("kind", ["classes", "labels", "binary"])
def test_the_guess_of_the_inverse_is_exact_where_it_was_formed(kind, K, intercept, weighted):
    rows, concept, loss, (theta, b), data = setting(kind, "cross_entropy", n=150)
    rng = np.random.default_rng(3)
    w = rng.uniform(0.1, 2, 150) if weighted else None
    U = np.linalg.qr(rng.normal(size=(5, K)))[0]
    erasure = ex.Erasure(U, U.T) if K else None
    problem = Problem(
        rows,
        concept,
        loss,
        rows.moments(concept, w),
        weights=w,
        alpha=1e-2,
        fit_intercept=intercept,
        erasure=erasure,
    )
    b = b if intercept else 0 * b
    assert problem.may_form_hessian
    problem.form_hessian(theta, b)
    solve = problem.inverse(np.eye(len(b)))
    seen = theta - U @ (U.T @ theta)
    twin = dense_inverse(
        kind, "cross_entropy", data, seen, b, alpha=1e-2, U=U, intercept=intercept, w=w
    )
    G = rng.normal(size=(6, len(b)))
    G[-1] -= G[-1].mean() if kind == "classes" else 0  # equal shifts of all scores do nothing
    G[-1] *= intercept
    found, expected = solve(G), (twin @ G.T.ravel()).reshape(len(b), 6).T
    rows_used = slice(None) if intercept else slice(None, -1)
    np.testing.assert_allclose(found[rows_used], expected[rows_used], atol=1e-6 * len(b))
    assert np.abs(U.T @ found[:-1]).max(initial=0) < 1e-7


@pytest.mark.parametrize("kind", ["classes", "labels"])
def test_the_hessian_follows_the_erasure_and_the_ridge(kind):
    rows, concept, loss, (theta, b), data = setting(kind, "cross_entropy", n=150)
    problem = Problem(rows, concept, loss, rows.moments(concept), alpha=1e-2)
    problem.form_hessian(theta, b)
    problem.inverse(np.eye(len(b)))  # whatever is cached here must not be used below
    U = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 2)))[0]
    problem.set_erasure(ex.Erasure(U, U.T))
    problem.alpha = 0.3
    twin = dense_inverse(
        kind, "cross_entropy", data, theta, b, alpha=0.3, U=U, intercept=True, w=None
    )
    G = np.random.default_rng(1).normal(size=(6, len(b)))
    G[-1] -= G[-1].mean()
    expected = (twin @ G.T.ravel()).reshape(len(b), 6).T
    np.testing.assert_allclose(problem.inverse(np.eye(len(b)))(G), expected, atol=1e-6)


def test_the_first_guess_solves_the_squared_loss_exactly():
    """Every row has curvature 2 there, so the guess from moments is the Hessian itself."""
    rows, concept, loss, _, _ = setting("vector", "squared")
    U = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 2)))[0]
    problem = Problem(
        rows, concept, loss, rows.moments(concept), alpha=1e-12, erasure=ex.Erasure(U, U.T)
    )
    _, g, g_b, got = problem.evaluate(np.zeros((5, 2)), problem.null.intercept)
    step = problem.inverse(got.curvature)(np.vstack([g, g_b]))
    after = problem.evaluate(-step[:-1], problem.null.intercept - step[-1])
    assert np.linalg.norm(after[1]) < 0.01 * np.linalg.norm(g)


@pytest.mark.parametrize("share", [0.3, 1.4])
def test_an_erasure_that_is_no_projector_is_solved_too(share):
    """Its left and right factors agree, yet what it reads is not gone."""
    rows, concept, loss, _, _ = setting("classes", "cross_entropy")
    u = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 1)))[0] * np.sqrt(share)
    problem = Problem(
        rows, concept, loss, rows.moments(concept), alpha=1e-6, erasure=ex.Erasure(u, u.T)
    )
    found = fit_predictor(problem, tol=1e-10)
    assert found.converged
    hand = check_rows(ex.Erasure(u, u.T)(rows.X))
    plain = Problem(hand, concept, loss, hand.moments(concept), alpha=1e-6)
    plain.unit = problem.unit
    assert found.value == pytest.approx(fit_predictor(plain, tol=1e-10).value, rel=1e-7)


def test_without_second_moments_an_erasure_that_is_no_projector_is_solved_too():
    rows, concept, loss, _, _ = setting("classes", "cross_entropy")
    rng = np.random.default_rng(0)
    erasure = ex.Erasure(rng.normal(size=(5, 1)) / 3, rng.normal(size=(1, 5)) / 3)
    known, unknown = (rows.moments(concept, second=second) for second in (True, False))
    values = []
    for moments in (known, unknown):
        problem = Problem(rows, concept, loss, moments, alpha=1e-3, erasure=erasure)
        found = fit_predictor(problem)
        assert found.converged
        values.append(found.value)
    assert values[0] == pytest.approx(values[1], rel=1e-8)


@pytest.mark.parametrize("offset", [0.0, 5.0, 50.0])
def test_a_far_mean_costs_no_passes_without_an_intercept(offset):
    rows, concept, loss, _, _ = setting("classes", "cross_entropy", d=8)
    rows = check_rows(rows.X + offset)
    problem = Problem(rows, concept, loss, rows.moments(concept), alpha=1e-6, fit_intercept=False)
    found = fit_predictor(problem, tol=1e-12)
    assert found.converged
    assert found.n_passes <= 50


@pytest.mark.parametrize("K", [0, 2])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_first_guess_is_the_hessian_of_one_curvature_for_all_rows(intercept, K):
    rows, concept, loss, _, data = setting("classes", "cross_entropy", n=150)
    U = np.linalg.qr(np.random.default_rng(3).normal(size=(5, K)))[0]
    options = {"alpha": 1e-2, "fit_intercept": intercept, "erasure": ex.Erasure(U, U.T)}
    problem = Problem(rows, concept, loss, rows.moments(concept), **options)
    A = np.random.default_rng(4).normal(size=(4, 4))
    C = A @ A.T + np.eye(4)
    X = (data.X - data.X.mean(axis=0) if intercept else data.X) / problem.unit
    N = np.linalg.svd(np.eye(5) - U @ U.T)[0][:, : 5 - K]
    Z = np.kron(np.eye(4), N)
    H = Z.T @ np.kron(C, X.T @ X / 150) @ Z + 1e-2 * np.eye(Z.shape[1])
    G = np.random.default_rng(5).normal(size=(6, 4))
    expected = (Z @ np.linalg.solve(H, Z.T @ G[:-1].T.ravel())).reshape(4, 5).T
    found = problem.inverse(C)(G)
    np.testing.assert_allclose(found[:-1], expected, rtol=0.02, atol=0.02 * np.abs(expected).max())


def test_many_labels_do_not_fill_the_memory():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 1000)), rng.integers(0, 2, (30, 100))
    rows, concept = check_rows(X), check_concept(Y, 30)
    loss = loss_for("cross_entropy", "labels", 100)
    moments = rows.moments(concept, second=False)
    assert not Problem(rows, concept, loss, moments).may_form_hessian
    few = check_concept(Y[:, :3], 30)
    assert Problem(rows, few, loss, rows.moments(few, second=False)).may_form_hessian


def test_the_ridge_follows_alpha_wherever_it_is_changed():
    rows, concept, loss, _, _ = setting("classes", "cross_entropy")
    problem = Problem(rows, concept, loss, rows.moments(concept), alpha=1e-4)
    fit_predictor(problem)
    assert problem.curvature_pairs
    unit = problem.ridge / 1e-4
    problem.alpha = 0.5
    assert problem.ridge == pytest.approx(0.5 * unit)
    assert not problem.curvature_pairs  # they were of another ridge
    fresh = Problem(rows, concept, loss, rows.moments(concept), alpha=0.5)
    assert problem.ridge == fresh.ridge
    assert fit_predictor(problem).value == pytest.approx(fit_predictor(fresh).value, rel=1e-9)
    with pytest.raises(AttributeError):
        problem.ridge = 1.0  # it has no value of its own


# -- passes that are saved -------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_rows_that_are_held_give_the_same_passes(dtype, fit_intercept):
    rng = np.random.default_rng(0)
    X, y = (3 + rng.normal(size=(900, 7))).astype(dtype), rng.integers(0, 3, 900)
    rows, concept = check_rows(X), check_concept(y, 900)
    loss = loss_for("cross_entropy", "classes", 3)
    theta, b = rng.normal(size=(7, 3)), rng.normal(size=3)
    found = []
    for hold in (False, True):
        moments = rows.moments(concept)
        p = Problem(rows, concept, loss, moments, fit_intercept=fit_intercept)
        if hold:
            p.hold_rows()
            p.rows = None  # they are not asked again
        p.form_hessian(theta, b)
        found.append((*p.evaluate(theta, b)[:3], p.hessian))
    for plain, held in zip(*found, strict=True):
        np.testing.assert_allclose(held, plain, rtol=1e-12, atol=1e-14)


def test_many_rows_are_not_held(monkeypatch):
    monkeypatch.setattr("expunge.game.problem.HELD", 100)
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    rows, concept = check_rows(X), check_concept(y, 60)
    loss = loss_for("cross_entropy", "classes", 2)
    p = Problem(rows, concept, loss, rows.moments(concept))
    p.hold_rows()
    p.rows = None
    with pytest.raises(AttributeError):
        p.evaluate(np.ones((2, 1)), np.zeros(1))


def test_the_pass_of_the_null_model_is_made_once_for_all_erasures():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), rng.integers(0, 3, 300)
    rows, concept = check_rows(X), check_concept(y, 300)
    loss = loss_for("cross_entropy", "classes", 3)
    p = Problem(rows, concept, loss, rows.moments(concept))
    zero, b = np.zeros_like(p.null.gradient), p.null.intercept
    for U in (np.eye(4)[:, :1], np.eye(4)[:, 1:3]):
        p.set_erasure(ex.Erasure(U, U.T, p.moments.mean_x))
        value, gradient, _, _ = p.evaluate(zero, b)
        fresh = Problem(rows, concept, loss, rows.moments(concept), erasure=ex.Erasure(U, U.T))
        expected = fresh.evaluate(zero, b)
        assert value == expected[0] == pytest.approx(p.null.value)
        np.testing.assert_allclose(gradient, expected[1], atol=1e-15)
        assert np.abs(U.T @ gradient).max() < 1e-15
    assert p.n_passes == 1
    p.evaluate(zero, b + 0.1)
    assert p.n_passes == 2
