"""INLP: the paper's propositions, exact fits, any linear classifier, when it stops."""

import warnings
from contextlib import suppress

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.metrics import roc_auc_score
from sklearn.svm import SVC, LinearSVC

import expunge as ex
from expunge.erasers.inlp import _separates
from expunge.game.inlp import glm_finder, nullspace
from expunge.game.losses import loss_for
from expunge.game.problem import Problem
from expunge.inputs import check_concept, check_rows
from planted import plant


def stretched(n=600, d=6, seed=0, share=0.5):
    """Two classes whose best predictor does not look along the difference of their means."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    mix = rng.normal(size=(d, d)) * np.geomspace(1, 0.1, d)
    return rng.normal(size=(n, d)) @ mix.T + np.outer(y, mix @ rng.normal(size=d)) + 3.0, y


# -- the propositions of the paper -----------------------------------------------------------------


@pytest.mark.parametrize("center", [True, False])
def test_one_round_of_squared_loss_is_the_regression_vector(center):
    X, y = stretched()
    C, t = (X - X.mean(0), y - y.mean()) if center else (X, y)
    theta = np.linalg.solve(C.T @ C, C.T @ t)  # (XᵀX)⁻¹Xᵀy
    eraser = ex.INLP(1, loss="squared", alpha=0.0, fit_intercept=center).fit(X, y)
    direction = eraser.erasure_.basis[0]
    np.testing.assert_allclose(np.abs(direction @ theta) / np.linalg.norm(theta), 1, atol=1e-10)
    if center:
        regression = LinearRegression().fit(X, y)
        cosine = direction @ regression.coef_ / np.linalg.norm(regression.coef_)
        assert abs(cosine) == pytest.approx(1, abs=1e-10)
    covariance = C.T @ t / np.linalg.norm(C.T @ t)
    assert abs(direction @ covariance) < 0.9  # and not Xᵀy


def test_one_round_of_squared_loss_is_not_optimal():
    X, y = stretched()
    bound = np.var(y)
    best = ex.RLACE(1, loss="squared").fit(X, y).certificate_
    greedy = ex.INLP(1, loss="squared", alpha=0.0).fit(X, y)
    assert best.value == pytest.approx(bound)
    left = greedy.transform(X)
    reached = np.mean((LinearRegression().fit(left, y).predict(left) - y) ** 2)
    assert reached < 0.9 * bound
    assert greedy.certificate_.value == pytest.approx(reached, rel=0.01)
    assert not greedy.certificate_.erased


def test_one_round_of_partial_least_squares_is_optimal():
    """The greedy direction of the quotient is Xᵀy, which leaves nothing to any predictor."""
    X, y = stretched()
    covariance = (X - X.mean(0)).T @ (y - y.mean())
    basis, _ = nullspace(
        lambda basis: _found(covariance[:, None]), ex.Moments.of(X, y), 1, verbose=False
    )
    pls = ex.RayleighEraser(1, objective="pls").fit(X, y)
    np.testing.assert_allclose(np.abs(basis.T @ pls.erasure_.basis.T), 1, atol=1e-10)
    assert pls.certificate_.erased
    assert LinearRegression().fit(X, y).score(X, y) > 0.2
    left = pls.transform(X)
    assert LinearRegression().fit(left, y).score(left, y) < 1e-10


def _found(coef):
    from expunge.game.inlp import Found

    return Found(coef, 0.0)


@pytest.mark.parametrize("rounds", [1, 2, 4])
def test_squared_loss_equals_a_plain_loop(rounds):
    X, y = stretched()
    C, t, P = X - X.mean(0), y - y.mean(), np.eye(6)
    for _ in range(rounds):
        theta = np.linalg.pinv(C @ P) @ t
        theta /= np.linalg.norm(theta)
        P = P - np.outer(theta, theta)  # theta is already in the range of P
    eraser = ex.INLP(rounds, loss="squared", alpha=0.0).fit(X, y)
    np.testing.assert_allclose(eraser.erasure_.matrix(), P, atol=1e-8)


# -- exactly K directions --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "rank"),
    [(loss, rank) for loss in ("cross_entropy", "squared") for rank in (1, 2, 3, 5, 7)]
    + [("squared_hinge", 5), ("hinge", 5)],
)
def test_exactly_the_rank_asked_for(loss, rank):
    """Of four classes a round gives three directions; five and seven are no multiple of it."""
    data = plant("classes")
    eraser = ex.INLP(rank, loss=loss).fit(data.X, data.y)
    B = eraser.erasure_.basis
    assert B.shape == (rank, 8)
    np.testing.assert_allclose(B @ B.T, np.eye(rank), atol=1e-12)
    assert eraser.erasure_.is_orthogonal
    assert [step.step for step in eraser.history_][-1] == rank


@pytest.mark.filterwarnings("ignore::expunge.errors.UnitsMatter")
def test_a_rank_above_what_can_be_found_is_filled_with_least_variance():
    """The second round of a concept in one column finds nothing: the rest costs the least."""
    y = np.tile([0, 1], 50)
    Q = np.linalg.qr(np.c_[np.ones(50), np.random.default_rng(0).normal(size=(50, 4))])[0][:, 1:]
    X = Q.repeat(2, axis=0) * [1, 5, 2, 1e-3]  # uncorrelated, in twins equal but for the concept
    X[:, 0] += y
    eraser = ex.INLP(2, loss="squared", alpha=0.0).fit(X, y)
    np.testing.assert_allclose(eraser.erasure_.matrix(), np.diag([0, 1.0, 1.0, 0]), atol=1e-9)
    assert eraser.certificate_.erased


@pytest.mark.parametrize("rank", [1, 3])
def test_history_tells_how_the_loss_rises(rank):
    X, y = stretched()
    values = [step.value for step in ex.INLP(rank).fit(X, y).history_]
    assert len(values) == rank
    assert values == sorted(values)


# -- every inner fit is exact ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cross_entropy", "squared_hinge"])
@pytest.mark.parametrize("kind", ["binary", "classes", "labels"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_round_is_fitted_to_a_gradient_of_1e_10(name, kind, dtype):
    data = plant(kind)
    X = data.X.astype(dtype)
    rows, concept = check_rows(X), check_concept(data.y, len(X))
    moments = rows.moments(concept)
    loss = loss_for(name, concept.kind, concept.width)
    find, found = glm_finder(Problem(rows, concept, loss, moments)), []

    def watched(basis):
        found.append((basis, find(basis)))
        return found[-1][1]

    nullspace(watched, moments, 5, verbose=False)
    assert len(found) >= 2
    unit = np.sqrt(X.astype(float).var(axis=0).mean())
    for basis, round_ in found:
        C = (X - X.astype(float).mean(0)) @ (np.eye(8) - basis @ basis.T) / unit
        theta = round_.coef * unit
        G = plain_gradient(name, kind, C, theta, data.Z)
        assert np.linalg.norm(G + 1e-4 * theta) < 3e-10
        assert np.linalg.norm(theta) > 1e-2


def plain_gradient(name, kind, C, theta, Z):
    """Gradient in the coefficients with the intercept at its optimum, by Newton steps in NumPy."""
    b = np.zeros(theta.shape[1])
    for _ in range(200):
        R, D = residual(name, kind, C @ theta + b, Z)
        g = R.mean(0)
        if np.abs(g).max() < 1e-15:
            break
        H = np.diag(D.mean(0))
        if kind == "classes" and name == "cross_entropy":
            p = R + Z
            H = np.diag(p.mean(0)) - p.T @ p / len(p)
        b = b - np.linalg.pinv(H) @ g
    return C.T @ R / len(C)


def residual(name, kind, S, Z):
    if name == "squared_hinge":
        sign = 2 * Z - 1
        slack = np.maximum(0, 1 - sign * S)
        return -2 * sign * slack, 2.0 * (slack > 0)
    if kind == "classes":
        p = softmax(S, axis=1)
        return p - Z, p * (1 - p)
    p = expit(S)
    return p - Z, p * (1 - p)


def test_one_round_equals_scikit_learn_trained_to_the_end():
    X, y = stretched()
    ridge = 1e-4 * X.var(axis=0).mean()
    model = LogisticRegression(C=1 / (len(X) * ridge), tol=1e-12, max_iter=10_000).fit(X, y)
    direction = ex.INLP(1).fit(X, y).erasure_.basis[0]
    cosine = abs(direction @ model.coef_[0]) / np.linalg.norm(model.coef_)
    assert cosine == pytest.approx(1, abs=1e-7)


@pytest.mark.parametrize("kind", ["binary", "classes"])
def test_the_default_tolerance_finds_the_directions_of_exact_rounds(kind):
    data = plant(kind)
    found, exact = (ex.INLP(4, tol=tol).fit(data.X, data.y) for tol in (1e-6, 0.0))
    cosines = np.linalg.svd(found.erasure_.basis @ exact.erasure_.basis.T)[1]
    assert cosines.min() > 0.999
    rough = ex.INLP(4, tol=10.0).fit(data.X, data.y)  # so far off that it tells
    assert np.linalg.svd(rough.erasure_.basis @ exact.erasure_.basis.T)[1].min() < cosines.min()


# -- any linear classifier -------------------------------------------------------------------------

CLASSIFIERS = [
    LogisticRegression(max_iter=2000),
    LinearSVC(),
    SVC(kernel="linear"),
    SGDClassifier(random_state=0),
    RidgeClassifier(),
]


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=lambda c: type(c).__name__)
@pytest.mark.parametrize("kind", ["binary", "classes"])
def test_any_linear_classifier_finds_directions(classifier, kind):
    data = plant(kind, n=300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        eraser = ex.INLP(3, classifier=classifier).fit(data.X, data.y)
        B = eraser.erasure_.basis
        assert B.shape == (3, 8)
        np.testing.assert_allclose(B @ B.T, np.eye(3), atol=1e-12)
        coef = np.atleast_2d(clone(classifier).fit(data.X, data.y).coef_)
    if kind == "binary":  # the first direction is the classifier's own
        residue = coef[0] - B.T @ (B @ coef[0])
        assert np.linalg.norm(residue) < 1e-6 * np.linalg.norm(coef)
    before = LogisticRegression(max_iter=2000).fit(data.X, data.y).score(data.X, data.y)
    clean = eraser.transform(data.X)
    assert LogisticRegression(max_iter=2000).fit(clean, data.y).score(clean, data.y) < before
    assert not hasattr(classifier, "coef_")  # the one passed in is left as it was


def test_a_regressor_finds_the_direction_of_a_number():
    data = plant("number")
    eraser = ex.INLP(1, classifier=Ridge(alpha=1.0)).fit(data.X, data.y)
    coef = Ridge(alpha=1.0).fit(data.X, data.y).coef_
    np.testing.assert_allclose(
        np.abs(eraser.erasure_.basis[0] @ coef), np.linalg.norm(coef), rtol=1e-10
    )


def test_a_classifier_takes_half_precision_tensors():
    torch = pytest.importorskip("torch")
    data = plant("binary", n=300)
    X = torch.tensor(data.X).bfloat16()
    found = ex.INLP(2, classifier=LogisticRegression()).fit(X, data.y).erasure_
    same = ex.INLP(2, classifier=LogisticRegression()).fit(X.double().numpy(), data.y).erasure_
    np.testing.assert_allclose(found.matrix(), same.matrix(), atol=1e-6)


def test_a_classifier_without_coefficients_is_refused():
    data = plant("binary")
    with pytest.raises(ex.InputError, match="coef_"):
        ex.INLP(1, classifier=SVC(kernel="rbf")).fit(data.X, data.y)


# -- rank="auto" -----------------------------------------------------------------------------------


def auc(change, X, y, X_new, y_new):
    model = LogisticRegression(C=100, max_iter=2000).fit(change(X), y)
    return roc_auc_score(y_new, model.decision_function(change(X_new)))


@pytest.mark.parametrize("classifier", [None, LogisticRegression(max_iter=2000)], ids=["glm", "lr"])
@pytest.mark.parametrize("share", [0.5, 0.05])
def test_auto_stops_when_held_out_rows_are_at_chance(classifier, share):
    """One planted direction among many of equal spread: few rounds, and then chance.

    With one row in twenty, a probe that never says "yes" is right on 95 % of them; that must not
    be taken for chance.
    """
    rng = np.random.default_rng(1)
    y = (rng.random(6000) < share).astype(int)
    X = rng.normal(size=(6000, 20))
    X[:, 3] += 1.5 * y
    train, new = slice(0, 4000), slice(4000, None)
    eraser = ex.INLP(classifier=classifier, random_state=0).fit(X[train], y[train])
    assert 1 <= eraser.rank_ <= 4
    assert auc(np.array, X[train], y[train], X[new], y[new]) > 0.8
    assert auc(eraser.transform, X[train], y[train], X[new], y[new]) < 0.6


@pytest.mark.parametrize("classifier", [None, LogisticRegression(max_iter=2000)], ids=["glm", "lr"])
def test_auto_goes_on_where_one_round_is_not_enough_and_classes_are_rare(classifier):
    X, y = stretched(n=8000, d=12, share=0.08)
    train, new = slice(0, 5000), slice(5000, None)
    one = ex.INLP(1).fit(X[train], y[train])
    assert auc(one.transform, X[train], y[train], X[new], y[new]) > 0.7
    eraser = ex.INLP(classifier=classifier, random_state=0).fit(X[train], y[train])
    assert eraser.rank_ > 3
    assert auc(eraser.transform, X[train], y[train], X[new], y[new]) < 0.62


@pytest.mark.parametrize("classifier", [None, LogisticRegression(max_iter=2000)], ids=["glm", "lr"])
def test_auto_judges_by_rows_of_other_groups(classifier):
    """Every row five times: copies of what was learnt make findings of noise."""
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(300), 5)
    y = rng.integers(0, 2, 300)
    X = (rng.normal(size=(300, 100)) + 3 * np.outer(y, np.eye(100)[3]))[who]
    settings = {"classifier": classifier, "random_state": 0}
    fooled = ex.INLP(**settings).fit(X, y[who])
    told = ex.INLP(**settings).fit(X, y[who], groups=who)
    assert fooled.rank_ >= 6
    assert told.rank_ <= 3


def test_auto_removes_one_direction_where_nothing_can_be_found():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 10)), rng.integers(0, 2, 2000)
    assert ex.INLP(random_state=0).fit(X, y).rank_ <= 2


@pytest.mark.parametrize("kind", ["labels", "number", "vector", "classes"])
def test_auto_takes_every_kind_of_concept(kind):
    data = plant(kind, n=1500)
    eraser = ex.INLP(random_state=0).fit(data.X, data.y)
    clean = eraser.transform(data.X)
    assert 1 <= eraser.rank_ <= 7
    before = LinearRegression().fit(data.X, data.Z).score(data.X, data.Z)
    assert before > 0.2
    assert LinearRegression().fit(clean, data.Z).score(clean, data.Z) < before / 4


def test_auto_with_a_classifier_of_labels_does_not_take_everything():
    """Several labels at once are rarely all right; that is not the measure."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, size=(3000, 2))
    X = rng.normal(size=(3000, 15))
    X[:, :2] += 1.5 * y
    eraser = ex.INLP(classifier=RidgeClassifier(), random_state=0).fit(X, y)
    assert eraser.rank_ <= 6
    clean = eraser.transform(X)
    assert LinearRegression().fit(X, y).score(X, y) > 0.2
    assert LinearRegression().fit(clean, y).score(clean, y) < 0.02


def test_auto_with_a_regressor_goes_on_while_held_out_rows_are_read():
    rng = np.random.default_rng(0)
    z = rng.normal(size=800)
    X = rng.normal(size=(800, 6)) * np.geomspace(1, 9, 6)
    X[:, :3] += np.outer(z, [1.0, 2.0, 4.0])
    eraser = ex.INLP(rank="auto", classifier=Ridge(), random_state=0).fit(X, z)
    assert 2 <= eraser.rank_ < 6
    assert Ridge().fit(X, z).score(X, z) > 0.5
    clean = eraser.transform(X)
    assert Ridge().fit(clean, z).score(clean, z) < 0.05


def test_auto_with_a_regressor_stops_when_held_out_rows_are_at_chance():
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(600, 8)), rng.normal(size=600)
    y = X[:, 3] + 0.5 * noise
    eraser = ex.INLP(classifier=Ridge(), random_state=0).fit(X, y)
    assert 1 <= eraser.rank_ <= 2
    assert LinearRegression().fit(X, y).score(X, y) > 0.7
    assert LinearRegression().fit(eraser.transform(X), y).score(eraser.transform(X), y) < 0.1
    assert ex.INLP(classifier=Ridge(), random_state=0).fit(X, noise).rank_ == 1


@pytest.mark.parametrize("weight", [0.25, 4.0])
def test_auto_with_a_classifier_judges_by_rows_of_any_weight(weight):
    """All weights by a factor change nothing but for the ridge, which is taken out here."""
    X, y = stretched(n=1500, d=6)
    ranks = []
    for w in (1.0, weight):
        classifier = LogisticRegression(C=1 / w, max_iter=2000)
        eraser = ex.INLP(classifier=classifier, random_state=0)
        ranks.append(eraser.fit(X, y, sample_weight=np.full(1500, w)).rank_)
    assert ranks[0] == ranks[1] > 1


@pytest.mark.parametrize("m", [1, 4])
def test_a_probe_without_any_signal_is_believed_once_in_twenty_times(m):
    rng, n, times = np.random.default_rng(0), 40, 3000
    believed = sum(
        _separates(rng.normal(size=(n, m)), rng.integers(0, 2, size=(n, m)).astype(float))
        for _ in range(times)
    )
    assert 0.035 < believed / times < 0.065


def test_a_bar_on_request_says_the_loss(capfd):
    data = plant("classes", n=200)
    ex.INLP(2).fit(data.X, data.y)
    assert capfd.readouterr() == ("", "")
    ex.INLP(2, verbose=True).fit(data.X, data.y)
    out, err = capfd.readouterr()
    assert out == ""
    assert "INLP" in err
    assert "2/2" in err
    assert "loss" in err


def test_the_held_out_rows_are_fixed_by_the_seed():
    X, y = stretched(n=2000)
    first, again = (ex.INLP(random_state=3).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.erasure_.basis, again.erasure_.basis)


def test_labels_from_the_same_seed_are_no_trap():
    """Classes and held-out rows may both be drawn from a generator with seed 0."""
    X, _ = stretched(n=2000)
    y = (np.random.default_rng(0).random(2000) < 0.2).astype(int)
    X = X + np.outer(y, [2, 0, 0, 0, 0, 0])
    assert ex.INLP(random_state=0).fit(X, y).rank_ > 1


def test_a_class_of_two_rows_does_no_harm():
    """A held-out part may take them both."""
    rng = np.random.default_rng(0)
    y = np.zeros(300, dtype=int)
    y[:100], y[100:102] = 1, 2
    X = rng.normal(size=(300, 5)) + 2 * np.eye(5)[y]
    for seed in range(6):
        for classifier in (None, RidgeClassifier()):
            eraser = ex.INLP(random_state=seed, classifier=classifier).fit(X, y)
            assert 1 <= eraser.rank_ <= 4


@pytest.mark.parametrize("n", [3, 4, 6])
def test_auto_works_on_a_handful_of_rows(n):
    X, y = np.random.default_rng(n).normal(size=(n, 3)), np.arange(n) % 2
    assert 1 <= ex.INLP().fit(X, y).rank_ <= 2


# -- streams ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["binary", "classes", "number"])
def test_squared_loss_with_a_given_rank_streams(kind):
    data = plant(kind)
    whole = ex.INLP(4, loss="squared").fit(data.X, data.y)
    stream = ex.INLP(4, loss="squared")
    order = np.argsort(data.y, kind="stable")  # so that classes come one after another
    for part in np.array_split(order, 7):
        stream.partial_fit(data.X[part], data.y[part])
    np.testing.assert_allclose(stream.erasure_.matrix(), whole.erasure_.matrix(), atol=1e-8)
    for other in (ex.INLP(4), ex.INLP(loss="squared"), ex.INLP(4, classifier=Ridge())):
        assert not hasattr(other, "partial_fit")


@pytest.mark.parametrize(
    "options",
    [{"alpha": 0.0}, {"loss": "cubed"}, {"validation_fraction": 0.0}, {"rank": 8}, {"tol": -1.0}],
)
def test_bad_parameters_are_refused(options):
    data = plant("binary")
    with pytest.raises(ex.InputError):
        ex.INLP(**options).fit(data.X, data.y)


# -- predictors that fail --------------------------------------------------------------------------


class Stubborn(LogisticRegression):
    """A classifier whose coefficients come out as `value`, whatever it is taught."""

    def __init__(self, value=0.0):
        super().__init__()
        self.value = value

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.coef_ = np.full_like(self.coef_, self.value)
        return self


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf, 1e-300, 1e300])
@pytest.mark.parametrize("rank", [1, 3, "auto"])
def test_coefficients_of_any_size_or_none_at_all_end(value, rank):
    X, y = stretched()

    class Scores(Stubborn):
        def decision_function(self, X):
            return np.zeros(len(X))

        def score(self, X, y, sample_weight=None):
            return 0.5

    eraser = ex.INLP(rank, classifier=Scores(value)).fit(X, y)
    assert eraser.rank_ == (1 if rank == "auto" else rank)
    P = eraser.erasure_.matrix()
    np.testing.assert_allclose(P @ P, P, atol=1e-12)


@pytest.mark.parametrize(
    "classifier",
    [LogisticRegression(max_iter=1), LinearSVC(max_iter=1), SGDClassifier(max_iter=1)],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_classifiers_that_do_not_converge_give_directions_nevertheless(classifier):
    X, y = stretched()
    assert ex.INLP(3, classifier=classifier).fit(X, y).rank_ == 3


@pytest.mark.filterwarnings("ignore::expunge.errors.NothingLeft")
@pytest.mark.parametrize("loss", ["cross_entropy", "squared", "hinge"])
def test_more_directions_than_there_are_in_the_rows(loss):
    """Rows in a plane of six dimensions: the other directions cost nothing, and there are five.

    Nothing is left of any column, and the map says so of each.
    """
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    X = (rng.normal(size=(300, 2)) + 2 * np.outer(y, [1, 0])) @ rng.normal(size=(2, 6))
    eraser = ex.INLP(5, loss=loss).fit(X, y)
    assert eraser.rank_ == 5
    basis = eraser.erasure_.basis
    np.testing.assert_allclose(basis @ basis.T, np.eye(len(basis)), atol=1e-10)
    assert eraser.erasure_.emptied.tolist() == list(range(6))
    assert LinearRegression().fit(X, y).score(X, y) > 0.2
    assert np.ptp(X, axis=0).max() > 1
    assert np.ptp(eraser.transform(X), axis=0).max() == 0


@pytest.mark.parametrize("classifier", [None, Ridge(), RidgeClassifier()])
@pytest.mark.parametrize("rank", [2, "auto"])
def test_a_label_that_never_varies_does_no_harm(classifier, rank):
    data = plant("labels")
    y = np.insert(data.y, 1, 1, axis=1)
    eraser = ex.INLP(rank, classifier=classifier).fit(data.X, y)
    assert eraser.rank_ >= 1
    assert np.isfinite(eraser.transform(data.X)).all()


@pytest.mark.parametrize("rank", [1, 3, "auto"])
@pytest.mark.parametrize("loss", ["cross_entropy", "squared"])
def test_no_number_makes_it_run_for_ever(loss, rank):
    """Whether such rows are refused or erased, it comes to an end."""
    X, y = stretched(n=200)
    X[0, 0] = 1e155
    with warnings.catch_warnings(), np.errstate(all="ignore"), suppress(ex.InputError):
        warnings.simplefilter("ignore")
        assert ex.INLP(rank, loss=loss).fit(X, y).rank_ >= 1
