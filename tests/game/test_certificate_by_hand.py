"""Certificates against the formula of the bound, written out, and what they say in words."""

from dataclasses import replace

import numpy as np
import pytest

import expunge as ex
from expunge.game import certificate as certificate_module
from expunge.game.certificate import Certificate, certify, certify_moments
from expunge.game.kept import kept_in_moments, kept_in_rows
from expunge.game.losses import ColumnLoss, Squared, loss_for
from expunge.game.predictor import fit_predictor
from expunge.inputs import check_concept, check_rows
from planted import plant

PAIRS = [
    ("binary", "cross_entropy"),
    ("binary", "squared"),
    ("classes", "cross_entropy"),
    ("classes", "squared"),
    ("labels", "squared_hinge"),
    ("labels", "cross_entropy"),
    ("number", "squared"),
    ("vector", "squared"),
]


def setting(kind, name, n=120, d=4):
    data = plant(kind, n=n, d=d)
    rows, concept = check_rows(data.X), check_concept(data.y, n)
    return data.X, rows, concept, loss_for(name, concept.kind, concept.width)


def by_hand(X, concept, loss, erasure, alpha, intercept, units):
    """Per column that is judged alone: V0 and V0 - Σ (G/u)² / 2α, from the erased rows."""
    Y = loss.encoder(concept)(0, len(X))
    clean, n = erasure(X), len(X)
    found = []
    alone = loss.separable and Y.shape[1] > 1
    for at in [[j] for j in range(Y.shape[1])] if alone else [[*range(Y.shape[1])]]:
        y, w = Y[:, at], np.full((n, 1), 1 / n)
        b = loss.null_intercept(y, w) if intercept else np.zeros(len(at))
        R = loss.null_residual(y, w, b)
        bound = loss.values(y, np.ones((n, 1)) * b).mean()
        G = clean.T @ R / n
        found.append((bound, bound - np.sum((G / units[:, None]) ** 2) / (2 * alpha)))
    return np.array(found).T


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("alpha", [20.0, 0.05])
@pytest.mark.parametrize(("kind", "name"), PAIRS)
def test_the_bound_without_training_is_the_formula(kind, name, alpha, intercept):
    X, rows, concept, loss = setting(kind, name)
    u = np.array([[0.6], [0.8], [0.0], [0.0]])
    erasure = ex.Erasure(u, 0.9 * u.T, X.mean(axis=0), offset=np.array([0.1, 0.0, 0.3, 0.0]))
    moments = rows.moments(concept)
    found = certify_moments(moments, erasure, loss, alpha=alpha, fit_intercept=intercept, tol=1e-5)
    spreads = erasure(X).std(axis=0)
    np.testing.assert_allclose(found.ridges, alpha * spreads**2, rtol=1e-9)
    assert found.ridge == pytest.approx(alpha * np.mean(spreads**2), rel=1e-9)
    bound, value = by_hand(X, concept, loss, erasure, alpha, intercept, spreads)
    proven = np.maximum(value, 0)
    assert found.bound == pytest.approx(bound.sum(), rel=1e-9)
    assert found.primal == found.bound
    assert found.value == pytest.approx(proven.sum(), rel=1e-9)
    assert found.gap == pytest.approx((bound - proven).sum(), rel=1e-9)
    assert found.gap > 0
    if loss.in_bits:
        assert found.bits_left == pytest.approx(found.gap / np.log(2))
    else:
        assert found.bits_left is None
    if len(bound) > 1:
        assert found.worst == moments.labels[np.argmax((bound - proven) / bound)]
    else:
        assert found.worst is None
    assert (found.erased, found.optimal) == (False, None)
    assert (found.loss, found.alpha, found.tol) == (name, alpha, 1e-5)
    kept = kept_in_moments(moments, erasure)
    assert (found.variance_kept, found.columns_kept) == (kept.variance, kept.columns)
    given = certify_moments(
        moments, erasure, loss, alpha=alpha, kept=replace(kept, spreads=2 * kept.spreads)
    )
    np.testing.assert_allclose(given.ridges, 4 * found.ridges, rtol=1e-9)


def test_a_gap_up_to_the_tolerance_is_erased():
    _, rows, concept, loss = setting("binary", "squared")
    moments, identity = rows.moments(concept), ex.Erasure.identity(4)
    found = certify_moments(moments, identity, loss, alpha=100.0)
    relative = found.gap / found.bound
    assert 1e-4 < relative < 0.5
    for tol, erased in ((1.01 * relative, True), (0.99 * relative, False)):
        again = certify_moments(moments, identity, loss, alpha=100.0, tol=tol)
        assert again.erased == erased
        assert again.optimal == (True if erased else None)
    assert certify_moments(moments, identity, loss).alpha == 1e-4
    assert certify_moments(moments, identity, loss).tol == 1e-6
    assert not certify_moments(moments, identity, loss, alpha=1e-300).erased


def test_a_bound_below_zero_is_judged_as_it_is():
    """A loss is never negative, so zero is proven; but what is not proven is not erased."""
    _, rows, concept, loss = setting("binary", "squared")
    found = certify_moments(rows.moments(concept), ex.Erasure.identity(4), loss, tol=1.5)
    assert found.value == 0
    assert found.gap == found.bound
    assert not found.erased


@pytest.mark.parametrize("intercept", [True, False])
def test_in_the_smallest_units_nothing_can_hide(intercept):
    X, rows, concept, loss = setting("classes", "cross_entropy")
    X = X.copy()
    X[:, 3] = 2.0  # written to by the erasure
    X[:, 2] = 1.0  # neither varies nor is written to
    rows = check_rows(X)
    L, R = np.zeros((4, 1)), np.array([[0.5, 2.0, 0.0, 0.0]])
    L[0], L[3] = 1.0, -0.5
    moments = rows.moments(concept)
    erasure = ex.Erasure(L, R)
    found = certify_moments(moments, erasure, loss, smallest=True, fit_intercept=intercept)
    spread, mean = X.std(axis=0), np.abs(X.mean(axis=0))
    units = 1e-6 * spread + 1e-9 * mean
    units[2] = 1.0
    units[3] = 1e-6 * 0.5 * np.hypot(0.5 * spread[0], 2 * spread[1])
    np.testing.assert_allclose(np.sqrt(found.ridges / 1e-4), units, rtol=1e-9)
    assert found.variance_kept is None
    assert found.columns_kept is None
    unknown = certify_moments(rows.moments(concept, second=False), erasure, loss)
    np.testing.assert_allclose(np.sqrt(unknown.ridges / 1e-4), units, rtol=1e-9)


@pytest.mark.parametrize("kind", ["number", "vector"])
def test_digits_of_a_far_mean_are_not_called_erased(kind):
    """A last digit of the mean, times the spread of x, may be hidden in every sum."""
    X, rows, concept, loss = setting(kind, "squared")
    moments = rows.moments(concept)
    far = np.array([1e8, -3e7])[: concept.width]
    moments = replace(moments, xz=0 * moments.xz, mean_z=far)
    u = np.array([[0.6], [-0.8], [0.0], [0.0]])
    erasure, alpha = ex.Erasure(u, u.T), 1e-13
    kept = kept_in_moments(moments, erasure)
    found = certify_moments(moments, erasure, loss, alpha=alpha)
    slack = 4 * np.finfo(float).eps * np.outer(X.std(axis=0), np.abs(far))
    slack = slack + np.abs(u) @ (np.abs(u.T) @ slack)
    bound = concept.columns().var(axis=0)
    value = bound - np.sum((slack / kept.spreads[:, None]) ** 2, axis=0) / (2 * alpha)
    assert np.all(value > 0)
    assert found.bound == pytest.approx(bound.sum())
    assert found.value == pytest.approx(value.sum(), rel=1e-9)
    assert found.gap > 1e-3 * found.bound


# -- with training ---------------------------------------------------------------------------------


class Watched:
    """fit_predictor, and what it was asked."""

    def __init__(self, monkeypatch, change=lambda found: found):
        self.calls, self.change = [], change
        monkeypatch.setattr(certificate_module, "fit_predictor", self)

    def __call__(self, problem, **options):
        found = fit_predictor(problem, **options)
        self.calls.append((problem, options, found))
        return self.change(found)


@pytest.mark.parametrize(("tol", "precision"), [(0.0, 1e-11), (1e-6, 1e-7), (0.5, 1e-4)])
def test_a_predictor_is_trained_as_closely_as_is_asked(tol, precision, monkeypatch):
    _, rows, concept, loss = setting("binary", "hinge")
    watched = Watched(monkeypatch)
    certify(rows, concept, ex.Erasure.identity(4), loss, tol=tol, max_passes=77)
    widths = [problem.loss.width for problem, _, _ in watched.calls]
    assert widths == [part.width for part in loss.surrogates]
    start = None
    for _, options, found in watched.calls:
        assert options["tol"] == pytest.approx(precision)
        assert options["max_passes"] == 77
        assert options["start"] is start or all(
            np.array_equal(a, b) for a, b in zip(options["start"], start, strict=True)
        )
        start = found.coef, found.intercept
    watched.calls.clear()
    certify(rows, concept, ex.Erasure.identity(4), loss)
    assert watched.calls[0][1]["max_passes"] == 500


@pytest.mark.parametrize(
    ("kind", "name", "widths"),
    [
        ("labels", "cross_entropy", [3]),
        ("classes", "squared", [4]),
        ("vector", "squared", [1, 1]),
        ("vector", "huber", [1, 1]),
        ("classes", "cross_entropy", [4]),
    ],
)
def test_labels_are_trained_together_and_numbers_each_alone(kind, name, widths, monkeypatch):
    X, rows, concept, loss = setting(kind, name)
    watched = Watched(monkeypatch)
    found = certify(rows, concept, ex.Erasure.identity(4), loss)
    assert [problem.concept.width for problem, _, _ in watched.calls] == widths
    bound, _ = by_hand(X, concept, loss, ex.Erasure.identity(4), 1e-4, True, np.ones(4))
    assert found.bound == pytest.approx(bound.sum())
    assert 0 < found.value <= found.primal < found.bound
    assert found.primal - found.value < 1e-4 * found.bound


def test_what_is_erased_already_is_not_trained(monkeypatch):
    X, rows, concept, loss = setting("labels", "cross_entropy")
    gap = X[concept.columns()[:, 1] == 1].mean(axis=0) - X[concept.columns()[:, 1] == 0].mean(
        axis=0
    )
    u = (gap / np.linalg.norm(gap))[:, None]
    watched = Watched(monkeypatch)
    found = certify(rows, concept, ex.Erasure(u, u.T), loss)
    (asked,) = watched.calls
    np.testing.assert_array_equal(asked[0].concept.columns(), concept.columns()[:, [0, 2]])
    assert not found.erased
    assert found.worst in (0, 2)
    watched.calls.clear()
    Q = np.linalg.qr(rows.moments(concept).xz)[0]
    assert certify(rows, concept, ex.Erasure(Q, Q.T), loss).erased
    assert not watched.calls


@pytest.mark.parametrize("kind", ["binary", "labels"])
def test_the_hinge_is_judged_by_the_hinge(kind):
    """Its smooth twins lie below it, so the upper bound is taken with the hinge itself."""
    _, rows, concept, loss = setting(kind, "hinge")
    found = certify(rows, concept, ex.Erasure.identity(4), loss)
    last = loss.surrogates[-1]
    twin = certify(rows, concept, ex.Erasure.identity(4), last)
    assert twin.value <= found.value + 1e-6
    assert found.value <= found.primal < found.bound
    m = 1 if kind == "binary" else 3
    assert 0 < found.primal - twin.primal <= m * last.width / 2 + 1e-6


@pytest.mark.parametrize(("above", "believed"), [(1e-12, True), (1e-6, False)])
def test_bounds_may_pass_each_other_by_rounding_alone(above, believed, monkeypatch, recwarn):
    _, rows, concept, loss = setting("binary", "cross_entropy")
    Watched(monkeypatch, lambda found: replace(found, lower_bound=found.value + above))
    found = certify(rows, concept, ex.Erasure.identity(4), loss)
    assert (found.primal < found.bound) == believed
    assert bool(recwarn) != believed
    assert found.value <= found.primal
    if believed:
        assert found.value == found.primal
    else:
        assert "contradict each other" in str(recwarn[0].message)
        assert found.value == 0


def test_a_loss_that_turns_out_negative_is_refused():
    """Where nothing but a predictor that errs by less than it was tried with shows it."""

    class Dips(ColumnLoss):
        name = "dips"
        kinds = frozenset({"classes", "labels"})

        def elements(self, Y, S):
            return (Y - S) ** 2 - 1e-7

        def derivative(self, Y, S):
            return 2 * (S - Y)

        def second(self, Y, S):
            return np.full_like(S, 2.0)

    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    X = np.column_stack([y, rng.normal(size=200)])
    rows, concept = check_rows(X), check_concept(y, 200)
    for loss, refused in ((Squared(), False), (loss_for(Dips(), "classes", 2), True)):
        if refused:
            with pytest.raises(ex.InputError, match="for a trained predictor"):
                certify(rows, concept, ex.Erasure.identity(2), loss, alpha=1e-12)
        else:
            assert not certify(rows, concept, ex.Erasure.identity(2), loss, alpha=1e-12).erased


@pytest.mark.parametrize("trained", [False, True])
def test_no_unit_lies_below_the_floor(trained):
    X, rows, concept, loss = setting("binary", "cross_entropy")
    Q = np.eye(4)[:, :1] if trained else np.eye(4)
    erasure = ex.Erasure(Q, Q.T, X.mean(axis=0))
    clean = erasure(X).std(axis=0)
    floor = np.array([0.5, 0.01, 1e3, 0.0])
    found = certify(rows, concept, erasure, loss, floor=floor)
    assert found.erased != trained
    kept = kept_in_rows(rows, erasure, rows.moments(concept), concept, None).spreads
    np.testing.assert_allclose(kept, np.maximum(clean, 1e-6 * X.std(0) + 1e-9 * abs(X.mean(0))))
    expected = 1e-4 * np.maximum(kept, floor) ** 2
    np.testing.assert_allclose(found.ridges, expected, rtol=1e-9)
    plain = certify(rows, concept, erasure, loss)
    np.testing.assert_allclose(plain.ridges, 1e-4 * kept**2, rtol=1e-9)
    assert plain.variance_kept == pytest.approx((clean**2).sum() / X.var(axis=0).sum(), abs=1e-12)


def test_what_is_known_is_not_asked_again():
    _, rows, concept, loss = setting("classes", "cross_entropy")
    moments, erasure = rows.moments(concept), ex.Erasure(np.eye(4)[:, :1], np.eye(4)[:1])
    kept = kept_in_rows(rows, erasure, moments, concept, None)
    plain = certify(rows, concept, erasure, loss)
    given = certify(rows, concept, erasure, loss, moments=moments, kept=kept)
    assert given.value == pytest.approx(plain.value, rel=1e-9)
    assert given.variance_kept == pytest.approx(plain.variance_kept)
    other = certify(rows, concept, erasure, loss, kept=replace(kept, variance=0.25, columns=2))
    assert (other.variance_kept, other.columns_kept) == (0.25, 2)
    np.testing.assert_allclose(other.ridges, plain.ridges, rtol=1e-9)  # those are from moments


# -- in words --------------------------------------------------------------------------------------


def some(**changes):
    fields = {
        "value": 0.5,
        "primal": 0.6,
        "bound": 0.75,
        "gap": 0.25,
        "bits_left": 0.36,
        "erased": False,
        "optimal": None,
        "loss": "cross_entropy",
        "alpha": 1e-4,
        "ridge": 2e-4,
        "tol": 1e-6,
        "worst": "left",
        "variance_kept": 0.875,
        "columns_kept": 2,
        "rows": "the second half",
        "ridges": np.full(3, 2e-4),
    }
    return Certificate(**(fields | changes))


def test_in_words():
    assert str(some()) == (
        "NOT erased: the best linear predictor has cross_entropy loss plus ridge term between 0.5 "
        "and 0.6, most of all of 'left'; ignoring x gives 0.75, at most 0.36 bits per row left "
        "(coefficients charged 0.0001 of the variance of each column)\n"
        "rows: the second half\n"
        "kept: 87.5 % of the variance, 2 of 3 columns"
    )
    assert str(some(erased=True, bits_left=None, rows="", variance_kept=None)) == (
        "erased: every linear predictor has cross_entropy loss >= 0.5; ignoring x gives 0.75 "
        "(coefficients charged 0.0001 of the variance of each column)"
    )
    assert "most of all" not in str(some(worst=None))
    assert "most of all of 0;" in str(some(worst=0))
    plain = some().to_dict()
    assert "ridges" not in plain
    assert plain["bound"] == 0.75
    assert some() == some(ridges=np.zeros(7))


def test_the_same_bound_in_other_units():
    _, rows, concept, _ = setting("binary", "squared")
    kept = kept_in_moments(rows.moments(concept), ex.Erasure.identity(4))
    found = some().in_units(kept)
    np.testing.assert_allclose(found.ridges, 1e-4 * kept.spreads**2)
    assert found.ridge == pytest.approx(1e-4 * np.mean(kept.spreads**2))
    assert (found.variance_kept, found.columns_kept) == (kept.variance, 4)
    assert (found.value, found.bound) == (0.5, 0.75)
