"""The inner problem against rows that are erased by hand, whatever the units and the erasure."""

from functools import partial

import numpy as np
import pytest
from test_problem import plain_loss

import expunge as ex
from expunge.game import problem as module
from expunge.game.losses import loss_for
from expunge.game.predictor import fit_predictor
from expunge.game.problem import Problem
from expunge.game.two_level import two_level_inverse
from expunge.inputs import check_concept, check_rows
from planted import plant

N, D = 120, 5
RNG = np.random.default_rng(0)
BASIS = np.linalg.qr(RNG.normal(size=(D, 2)))[0]
ERASURES = {
    "nothing": None,
    "projector": ex.Erasure(BASIS, BASIS.T),
    "about a point": ex.Erasure(BASIS, BASIS.T, RNG.normal(size=D)),
    "and moved": ex.Erasure(BASIS, BASIS.T, None, RNG.normal(size=D)),
    "oblique": ex.Erasure(RNG.normal(size=(D, 2)) / 3, RNG.normal(size=(2, D)), RNG.normal(size=D)),
    "half": ex.Erasure(BASIS * 0.7, BASIS.T * 0.7),
}
UNITS = np.array([0.5, 1.0, 2.0, 3.0, 0.7])


def make(kind="classes", *, loss="cross_entropy", erasure=None, second=True, n=N, d=D, **options):
    """A problem on rows of a mean that is not zero, with a ridge that matters."""
    data = plant(kind, n=n, d=d)
    rows, concept = check_rows(data.X), check_concept(data.y, n)
    loss = loss_for(loss, concept.kind, concept.width)
    moments = rows.moments(concept, options.get("weights"), second=second)
    options = {"alpha": 0.3, "erasure": erasure, **options}
    return data, Problem(rows, concept, loss, moments, **options)


def point(p, seed=1):
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=p.null.gradient.shape) / 3
    return theta, rng.normal(size=theta.shape[1]) / 3


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("units", [None, UNITS], ids=["one unit", "many"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", ERASURES)
@pytest.mark.parametrize("kind", ["labels", "classes"])
def test_the_objective_is_that_of_rows_erased_by_hand(kind, name, intercept, units, weighted):
    w = np.random.default_rng(3).uniform(0.2, 2, N) if weighted else np.ones(N)
    erasure = ERASURES[name]
    options = {"weights": w if weighted else None, "units": units, "fit_intercept": intercept}
    data, p = make(kind, erasure=erasure, **options)
    theta, b = point(p)
    unit = np.full(D, np.sqrt(np.mean(w @ (data.X - w @ data.X / w.sum()) ** 2 / w.sum())))
    unit = unit if units is None else units
    erased = data.X if erasure is None else erasure(data.X)
    if intercept:
        erased = erased - w @ erased / w.sum()
    F = erased / unit
    values, R, _ = plain_loss("cross_entropy", kind, data.Z, F @ theta + b)
    value, gradient, gradient_b, _ = p.evaluate(theta, b)
    assert value == pytest.approx(w @ values / w.sum() + 0.15 * np.sum(theta**2), rel=1e-12)
    R = R * w[:, None] / w.sum()
    np.testing.assert_allclose(gradient, F.T @ R + 0.3 * theta, atol=1e-12)
    np.testing.assert_allclose(gradient_b, R.sum(axis=0), atol=1e-12)
    assert p.ridge == pytest.approx(0.3 * np.mean(unit**2), rel=1e-12)
    assert p.offset == pytest.approx(np.max(np.abs(w @ data.X / w.sum()) / unit), rel=1e-12)
    if units is None:
        moves = name in ("about a point", "and moved")
        assert p.is_projector == (name in ("nothing", "projector") or (moves and intercept))


def dense_hessian(p, theta, b, h=1e-5):
    """Slopes of the gradient in (Θ, b), class by class, and a little for b."""
    z = np.vstack([theta, b])

    def gradient(z):
        _, g, g_b, _ = p.evaluate(z[:-1], z[-1])
        return np.vstack([g, g_b if p.fit_intercept else 0 * g_b]).T.ravel()

    slopes = []
    for step in np.eye(z.size).reshape(-1, *z.T.shape):
        slopes.append((gradient(z + h * step.T) - gradient(z - h * step.T)) / (2 * h))
    H = np.array(slopes).T
    if not p.fit_intercept:  # the gradient in b is no part of the problem
        H = H.reshape(len(b), -1, len(b), z.shape[0])
        H[:, -1], H[:, :, :, -1] = 0, 0
    return H.reshape(z.size, z.size) + np.diag(np.tile([*[0] * len(theta), 1e-8], len(b)))


def settled(step):
    """With a softmax equal shifts of all scores do nothing, so that rounding decides on them."""
    step = step.copy()
    step[-1] -= step[-1].mean()
    return step


def applied(H, G):
    return np.linalg.solve(H, G.T.ravel()).reshape(G.shape[1], -1).T


NO_PROJECTORS = [
    (name, intercept)
    for name in ("nothing", "oblique", "half", "and moved")
    for intercept in (True, False)
    if not (name == "and moved" and intercept)  # a projector with an intercept, tested elsewhere
]


@pytest.mark.parametrize("units", [None, UNITS], ids=["one unit", "many"])
@pytest.mark.parametrize(("name", "intercept"), NO_PROJECTORS)
@pytest.mark.parametrize("kind", ["labels", "classes", "binary"])
def test_the_formed_hessian_is_inverted_whatever_the_erasure(kind, name, intercept, units):
    _, p = make(kind, erasure=ERASURES[name], fit_intercept=intercept, units=units)
    theta, b = point(p)
    p.form_hessian(theta, b)
    G = np.random.default_rng(2).normal(size=(D + 1, len(b)))
    G[-1] -= G[-1].mean() if kind == "classes" else 0  # equal shifts of all scores do nothing
    found, expected = p.inverse(np.eye(len(b)))(G), applied(dense_hessian(p, theta, b), G)
    if kind == "classes":
        found, expected = settled(found), settled(expected)
    seen = slice(None) if intercept else slice(-1)
    np.testing.assert_allclose(found[seen], expected[seen], atol=2e-6)
    assert np.abs(expected[seen]).max() > 0.1


@pytest.mark.parametrize("kind", ["labels", "classes"])
def test_one_inverse_serves_every_projector(kind, monkeypatch):
    _, p = make(kind)
    theta, b = point(p)
    made, inverse = [], module._spd_inverse
    monkeypatch.setattr(module, "_spd_inverse", lambda H: made.append(len(H)) or inverse(H))
    once = len(b) if kind == "labels" else 1
    p.form_hessian(theta, b)
    for U in (BASIS, BASIS[:, :1]):
        p.set_erasure(ex.Erasure(U, U.T))
        p.inverse(np.eye(len(b)))
        assert len(made) == once
    p.set_erasure(ERASURES["half"])
    half = p.inverse(np.eye(len(b)))(np.ones((D + 1, len(b))))
    assert len(made) == 2 * once
    p.set_erasure(None)  # what was made for the other erasure does not serve this one
    whole = p.inverse(np.eye(len(b)))(np.ones((D + 1, len(b))))
    assert np.abs(whole - half).max() > 1e-3
    p.form_hessian(2 * theta, b)
    assert np.abs(whole - p.inverse(np.eye(len(b)))(np.ones((D + 1, len(b))))).max() > 1e-3


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("units", [None, UNITS], ids=["one unit", "many"])
@pytest.mark.parametrize("name", ["oblique", "half"])
def test_the_first_guess_where_the_erasure_is_no_projector(name, units, intercept):
    data, p = make(erasure=ERASURES[name], units=units, fit_intercept=intercept)
    A = np.random.default_rng(4).normal(size=(4, 4))
    C = A @ A.T + np.eye(4)
    erasure, F = ERASURES[name], data.X - data.X.mean(axis=0) if intercept else data.X
    F = (F - F @ erasure.right.T @ erasure.left.T) / (p.unit if units is None else units)
    kappa = np.trace(C) / 4 * (1 + 1e-3)  # a little more than the mean, as for all curvatures
    G = np.random.default_rng(5).normal(size=(D + 1, 4))
    found = p.inverse(C)(G)
    H = kappa * F.T @ F / N + 0.3 * np.eye(D)
    np.testing.assert_allclose(found[:-1], np.linalg.solve(H, G[:-1]), rtol=1e-7)
    lifted = C + 1e-3 * np.trace(C) / 4 * np.eye(4)
    np.testing.assert_allclose(found[-1], np.linalg.solve(lifted, G[-1]), rtol=1e-10)


@pytest.mark.parametrize("name", ["projector", "half"])
def test_the_first_guess_without_second_moments_knows_one_curvature(name):
    _, p = make(erasure=ERASURES[name], second=False)
    G = np.random.default_rng(5).normal(size=(D + 1, 4))
    found = p.inverse(2 * np.eye(4))(G)
    np.testing.assert_allclose(found[:-1], G[:-1] / (2 * (1 + 1e-3) + 0.3), rtol=1e-12)
    np.testing.assert_allclose(found[-1], G[-1] / (2 * (1 + 1e-3)), rtol=1e-12)


@pytest.mark.parametrize("name", ["nothing", "half"])
def test_the_first_guess_where_the_loss_has_no_curvature_is_the_ridge(name):
    _, p = make(erasure=ERASURES[name])
    G = np.random.default_rng(5).normal(size=(D + 1, 4))
    found = p.inverse(np.zeros((4, 4)))(G)
    np.testing.assert_allclose(found[:-1], G[:-1] / 0.3, rtol=1e-2)
    np.testing.assert_allclose(found[-1], G[-1] / (1e-3 * 0.3), rtol=1e-10)


# -- which passes and which guesses ----------------------------------------------------------------


def test_rows_without_spread_are_measured_in_units_of_one():
    rows, concept = check_rows(np.full((20, 3), 7.0)), check_concept(np.arange(20) % 2, 20)
    p = Problem(rows, concept, loss_for("cross_entropy", "classes", 2), rows.moments(concept))
    assert (p.unit, p.offset) == (1.0, 7.0)


@pytest.mark.parametrize("offset", [0.0, 20.0, 40.0])
def test_products_in_single_precision_only_where_tolerance_and_offset_allow(offset):
    data = plant("classes", n=N, d=D)
    spread = np.sqrt(data.X.var(axis=0).mean())
    X = (data.X - data.X.mean(axis=0) + offset * spread).astype(np.float32)
    rows, concept = check_rows(X), check_concept(data.y, N)
    loss = loss_for("cross_entropy", "classes", 4)
    p = Problem(rows, concept, loss, rows.moments(concept))
    exact = p.evaluate(*point(p))[0]  # unless they are asked for
    same = {}
    for tol in (1e-3, 1e-5, 1e-7):
        p.allow_single(tol)
        same[tol] = p.evaluate(*point(p))[0] == exact
    assert same == {1e-3: offset == 40, 1e-5: offset == 40, 1e-7: True}
    p.allow_single(1e-3)
    null = p.evaluate(np.zeros((D, 4)), p.null.intercept)[0]
    assert null == pytest.approx(p.null.value, rel=1e-12)  # all erasures share it: never single


def test_rows_are_held_once(monkeypatch):
    _, p = make()
    passes = p.n_passes
    assert passes == 0
    expected = p.evaluate(*point(p))[0]
    p.hold_rows()
    p.rows = check_rows(np.zeros((N, D)))
    p.hold_rows()
    assert p.evaluate(*point(p))[0] == pytest.approx(expected, rel=1e-13)
    assert p.n_passes == 2


@pytest.mark.parametrize(
    ("kind", "d", "m", "formed"),
    [
        ("classes", 9, 3, True),  # three classes of ten numbers each: one block
        ("classes", 10, 3, False),
        ("classes", 9, 4, False),
        ("labels", 29, 2, True),  # blocks of thirty
        ("labels", 30, 2, False),
        ("labels", 29, 16, True),  # many of them
        ("labels", 29, 17, False),
    ],
)
def test_how_large_a_hessian_may_be(monkeypatch, kind, d, m, formed):
    monkeypatch.setattr(module, "SMALL", 30)
    rng = np.random.default_rng(0)
    y = np.arange(60) % m if kind == "classes" else rng.integers(0, 2, (60, m))
    rows, concept = check_rows(rng.normal(size=(60, d))), check_concept(y, 60)
    loss = loss_for("cross_entropy", kind, m)
    p = Problem(rows, concept, loss, rows.moments(concept, second=False))
    assert p.null.gradient.shape == (d, m)
    assert p.may_form_hessian == formed


# -- two levels ------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("units", [None, UNITS], ids=["one unit", "many"])
def test_two_levels_on_all_rows_are_those_of_the_full_hessian(monkeypatch, units, weighted):
    monkeypatch.setattr(module, "SMALL", 1)
    w = np.random.default_rng(3).uniform(0.2, 2, N) if weighted else None
    data, p = make(weights=w, units=units)
    U = np.linalg.qr(np.random.default_rng(6).normal(size=(D, 1)))[0]
    p.set_erasure(ex.Erasure(U, U.T))
    assert p.two_level
    theta, b = point(p)
    unit = np.full(D, p.unit) if units is None else units
    w = np.ones(N) if w is None else w
    F = (data.X - w @ data.X / w.sum()) / unit
    S = F.T @ (F * w[:, None]) / w.sum()
    seen = theta - U @ (U.T @ theta)
    own = plain_loss("cross_entropy", "classes", data.Z, F @ seen + b)[2]

    def hessian(D):
        Z = np.hstack([F @ D, np.ones((N, 1))])
        H = np.einsum("n,nkl,ni,nj->kilj", w / w.sum(), own, Z, Z)
        return H.reshape(4 * Z.shape[1], -1)

    B = np.linalg.svd(p.null.gradient / unit[:, None], full_matrices=False)[0][:, :3]
    A = np.random.default_rng(4).normal(size=(4, 4))
    C = A @ A.T + np.eye(4)
    lifted = C + 1e-3 * np.trace(C) / 4 * np.eye(4)
    twin = two_level_inverse(*np.linalg.eigh(S), lifted, 0.3, U, B, hessian)
    G = settled(np.random.default_rng(5).normal(size=(D + 1, 4)))
    found, expected = p.inverse(C, theta, b)(G), twin(G)
    np.testing.assert_allclose(settled(found), settled(expected), rtol=1e-4, atol=1e-4)
    plain = p.inverse(C)(G)  # without a point there is one level
    assert np.abs(plain - expected).max() > 1e-2


def test_two_levels_are_for_three_scores_and_more(monkeypatch):
    monkeypatch.setattr(module, "SMALL", 1)
    two, three = (np.random.default_rng(0).integers(0, 2, (60, m)) for m in (2, 3))
    rows = check_rows(np.random.default_rng(1).normal(size=(60, 4)))
    for y, expected in ((two, False), (three, True)):
        concept = check_concept(y, 60)
        loss = loss_for("cross_entropy", "labels", 2)
        for second in (True, False):
            p = Problem(rows, concept, loss, rows.moments(concept, second=second))
            assert p.two_level == (expected and second)
    p.hessian = np.zeros(1)  # one that was formed is better
    assert not p.two_level


@pytest.mark.parametrize(("most", "q"), [(512, 3), (8, 2), (11, 2), (4, 1)])
def test_a_coarse_space_has_few_directions_of_few_rows(monkeypatch, most, q):
    """As many as tell classes apart, but no more than fit, and the rows are drawn."""
    monkeypatch.setattr(module, "SMALL", 1)
    monkeypatch.setattr(module, "COARSE", most)
    monkeypatch.setattr(module, "COARSE_ROWS", 50)
    data, p = make(weights=np.arange(1.0, N + 1))
    made = []
    monkeypatch.setattr(module, "two_level_inverse", lambda *a: made.append(a))
    monkeypatch.setattr(
        module, "coarse_hessian", lambda sample, loss, theta, b, D: (sample, theta, b, D)
    )
    theta, b = point(p)
    p.inverse(np.eye(4), theta, b)
    *_, U, B, hessian = made[0]
    assert U.shape == (D, 0)
    assert B.shape == (D, q)
    sample = hessian(None)[0]
    assert sample.X.shape == (50, D)
    index = (sample.weights - 1).astype(int)  # weights tell which rows they are
    assert len(set(index)) == 50
    np.testing.assert_array_equal(sample.Y, p.loss.encoder(p.concept)(0, N)[index])
    mean = p.moments.mean_x
    np.testing.assert_allclose(sample.X, (data.X[index] - mean) / p.unit, rtol=1e-4, atol=1e-5)


def test_a_solve_may_be_repeated_at_another_point_of_the_path():
    """What is kept from one solve to the next changes no answer."""
    _, p = make(alpha=1e-3)
    fresh = partial(make, alpha=1e-3)
    for name in ("projector", "nothing", "half", "projector"):
        p.set_erasure(ERASURES[name])
        found = fit_predictor(p, tol=1e-11)
        exact = fit_predictor(fresh(erasure=ERASURES[name])[1], tol=1e-11)
        assert found.value == pytest.approx(exact.value, rel=1e-9)
