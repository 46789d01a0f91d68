"""How INLP decides how many rounds it takes: held-out rows and their judge, against plain twins."""

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm, rankdata
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier

import expunge as ex
from expunge.erasers import inlp
from expunge.erasers.statistics import Data
from expunge.game.losses import loss_for
from expunge.game.problem import Problem
from expunge.inputs import check_concept, check_rows
from expunge.rows.dense import DenseRows
from planted import plant


def data_of(kind, *, weights=None, groups=None, n=200, seed=0):
    planted = plant(kind, n=n, seed=seed)
    rows = check_rows(planted.X)
    return planted, Data(rows, check_concept(planted.y, rows), weights, groups=groups)


# -- the test of ranks -----------------------------------------------------------------------------


def slow_separates(scores, Z):
    """Mann and Whitney, normal approximation, one of m tests at a level of 1/20 together."""
    n, m = Z.shape
    found = False
    for s, z in zip(scores.T, Z.T, strict=True):
        ones = z.sum()
        mean, sd = ones * (n + 1) / 2, np.sqrt(ones * (n - ones) * (n + 1) / 12)
        found |= rankdata(s)[z == 1].sum() - mean > norm.ppf(1 - 0.05 / m) * sd
    return bool(found)


@pytest.mark.parametrize("m", [1, 3])
def test_separation_is_that_of_mann_and_whitney(m):
    """Near the threshold, with ties, and for columns that are all ones or zeros."""
    rng, answers = np.random.default_rng(m), []
    for _ in range(450):
        n = int(rng.integers(3, 25))
        Z = (rng.random((n, m)) < rng.random()).astype(float)
        scores = np.round(rng.normal(size=(n, m)) + 0.8 * Z, int(rng.integers(0, 3)))
        answers.append(slow_separates(scores, Z))
        assert inlp._separates(scores, Z) is answers[-1]
    assert 0.1 < np.mean(answers) < 0.9


# -- rows that stand for others --------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_one_row_of_each_group_the_heaviest(weighted):
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.repeat(np.arange(40), 5))
    weights = rng.random(200) if weighted else None
    _, data = data_of("binary", weights=weights, groups=groups)
    chosen = inlp._one_each(data)
    assert sorted(groups[chosen]) == list(range(40))
    for group in range(40):
        own = np.flatnonzero(groups == group)
        best = own[0] if weights is None else own[np.argmax(weights[own])]
        assert chosen[best]
    _, alone = data_of("binary", weights=weights)
    assert inlp._one_each(alone).all()


@pytest.mark.parametrize("kind", ["binary", "classes", "labels", "number"])
def test_the_largest_row_of_every_class(kind):
    _, data = data_of(kind)
    size = np.random.default_rng(1).random(200) * 1e-3
    found = inlp._of_every_class(data.concept, size).tolist()
    Z = data.concept.columns()
    if kind == "number":
        parts = []
    elif kind == "labels":
        parts = [z == value for z in Z.T for value in (0, 1)]
    else:
        parts = [z == 1 for z in Z.T]
    assert found == [int(np.argmax(np.where(part, size, -1))) for part in parts]


class Counting(LogisticRegression):
    """Remembers how many rows it was taught, and how many of each class."""

    taught: list

    def fit(self, X, y, sample_weight=None):
        self.taught.append((len(X), np.unique(y).size))
        return super().fit(X, y, sample_weight)


class CountingRidge(Ridge):
    """Likewise."""

    taught: list

    def fit(self, X, y, sample_weight=None):
        self.taught.append((len(X), 0))
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize(
    ("share", "n", "kept"),
    [(0.2, 100, 80), (0.25, 40, 30), (0.9, 60, 6), (0.03, 50, 48), (0.5, 101, 50)],
)
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_share_of_the_rows_is_held_out(share, n, kept, grouped, seed):
    X, z = np.random.default_rng(0).normal(size=(2, n, 3))
    Counting.taught = taught = []
    y, groups = np.arange(n) % 2, np.arange(n)
    if grouped:
        X, y, groups = (np.repeat(a, 3, axis=0) for a in (X, y, groups))
    settings = {"validation_fraction": share, "random_state": seed}
    ex.INLP(classifier=Counting(), **settings).fit(X, y, groups=groups if grouped else None)
    assert taught[0] == ((1 + 2 * grouped) * kept, 2)
    assert taught[-1] == (len(X), 2)
    if not grouped:
        CountingRidge.taught = taught = []
        ex.INLP(classifier=CountingRidge(), **settings).fit(X, z[:, 0])
        assert taught[0][0] == kept


@pytest.mark.filterwarnings("ignore")  # scikit-learn on the score of one row
def test_one_row_is_learnt_from_and_one_is_held_out_at_least():
    X, z = np.random.default_rng(0).normal(size=(2, 5, 3))
    for share, kept in ((0.9, 1), (1e-3, 4)):
        CountingRidge.taught = taught = []
        ex.INLP(classifier=CountingRidge(), validation_fraction=share).fit(X, z[:, 0])
        assert taught[0][0] == kept


@pytest.mark.parametrize("seed", range(8))
def test_every_class_is_learnt_with_some_weight(seed):
    """Of the rows of a rare class one alone has weight: it is never held out."""
    n = 30
    X, y, w = np.random.default_rng(0).normal(size=(n, 3)), np.arange(n) % 2, np.ones(n)
    y[[3, 9, 17]], w[[3, 17]] = 2, 0.0
    weights = []

    class Watching(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            weights.append([sample_weight[y == c].sum() for c in range(3)])
            return super().fit(X, y, sample_weight)

    eraser = ex.INLP(classifier=Watching(), random_state=seed, validation_fraction=0.8)
    eraser.fit(X, y, sample_weight=w)
    assert np.min(weights) > 0


@pytest.mark.filterwarnings("ignore::expunge.errors.NothingLeft")
@pytest.mark.parametrize("classifier", [None, LogisticRegression()])
def test_where_no_row_can_be_held_out_one_direction_goes(classifier):
    """Of three rows the one that would be held out is the only one of its class."""
    X, y = np.random.default_rng(3).normal(size=(3, 4)), np.array([0, 1, 1])
    seeds = [k for k in range(20) if np.random.default_rng(k).permutation(3)[0] == 0]
    assert len(seeds) > 3
    for seed in seeds:
        eraser = ex.INLP(classifier=classifier, random_state=seed, validation_fraction=0.1)
        assert eraser.fit(X, y).rank_ == 1


# -- the judge of a loss ---------------------------------------------------------------------------


def entropy(z, scores):
    """Cross-entropy of ones and zeros, row by row."""
    return np.logaddexp(0, scores) - z * scores


@pytest.mark.parametrize("share", [0.48, 0.3])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_judge_believes_what_luck_would_not_do(share, weighted):
    """Against the formula of its docstring, for predictors near the threshold of either test."""
    n, reasons = 120, set()
    for seed in range(110):
        rng = np.random.default_rng(seed)
        y = (rng.random(n) < share).astype(int)
        y[:2] = 0, 1
        X = rng.normal(size=(n, 3))
        X[:, 0] += rng.choice([0.0, 0.5, 1.0]) * y
        w = rng.integers(1, 5, n) / 7 if weighted else np.ones(n)
        held = rng.random(n) < 0.3
        rows = check_rows(X)
        concept = check_concept(y, rows)
        loss = loss_for("auto", concept.kind, concept.width)
        train = rows.moments(concept, w * ~held)
        problem = Problem(rows, concept, loss, train, weights=w * ~held)
        coef, b = rng.normal(size=3) * [1.0, 0.3, 0.3], rng.normal() + np.log(share / (1 - share))
        scores = (X - problem.center) @ coef + b
        p = np.average(y, weights=w * ~held)
        base = np.log(p / (1 - p))
        taught = np.average(entropy(y, scores), weights=w * ~held) + rng.choice([0.0, -0.3])

        v = w * held
        null, got = (np.average(entropy(y, s), weights=v) for s in (np.full(n, base), scores))
        right = [np.average((s > 0) == y, weights=v) for s in (np.full(n, base), scores)]
        count = v.sum() ** 2 / (v @ v)
        start = np.average(entropy(y, np.full(n, base)), weights=w * ~held)
        lucky = 2 * np.sqrt(null * max(start - taught, 0) / count)
        sure = norm.ppf(0.95)
        lower = null - got > sure * lucky
        surer = right[1] - right[0] > sure * np.sqrt(right[0] * (1 - right[0]) / count)
        reasons.add((bool(lower), bool(surer)))
        if abs(base) < 1e-9:
            continue  # a tie, which class wins is nobody's concern

        data = Data(rows, concept, w)
        at_chance = ex.INLP()._judge(problem, data, v)
        found = SimpleNamespace(coef=coef[:, None], intercept=np.array([b]), loss=taught)
        assert bool(at_chance(found)) is not bool(lower or surer)
    assert len(reasons) >= 3  # believed for either reason, and not at all


# -- the judge of a classifier ---------------------------------------------------------------------

ZERO = np.where(np.arange(200) % 5 == 0, 0.0, 0.5)


@pytest.mark.parametrize("weights", [None, ZERO], ids=["plain", "weights"])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(
    ("kind", "classifier"),
    [
        ("binary", LogisticRegression()),
        ("classes", LogisticRegression()),
        ("classes", RidgeClassifier()),
        ("labels", RidgeClassifier()),
        ("labels", Ridge()),
        ("number", Ridge()),
        ("vector", Ridge()),
    ],
)
def test_a_round_of_a_classifier_is_a_plain_fit(kind, classifier, grouped, weights):
    """Coefficients, score and whether held-out rows are at chance, on noise and on the concept."""
    groups = np.arange(200) // 2 if grouped else None
    planted, data = data_of(kind, weights=weights, groups=groups)
    train = np.random.default_rng(7).random(200) < 0.6
    held = ~train
    if grouped:
        held = held & np.isin(np.arange(200), _heaviest(groups, weights))
    if weights is not None:
        held = held & (weights > 0)
    moments = data.rows.moments(data.concept, weights)
    eraser = ex.INLP(classifier=classifier)
    basis = ex.LEACE().fit(planted.X, planted.y).erasure_.basis.T
    told = []
    for B in (np.zeros((8, 0)), np.linalg.qr(basis)[0]):
        X = planted.X - (planted.X - moments.mean_x) @ B @ B.T
        extra = {} if weights is None else {"sample_weight": weights[train]}
        model = type(classifier)().fit(X[train], planted.y[train], **extra)
        found = eraser._classifier_finder(data, moments, train)(B)
        coef = np.atleast_2d(model.coef_)
        np.testing.assert_allclose(found.coef, coef.T, rtol=1e-3, atol=1e-4)
        score = model.score(X, planted.y, sample_weight=weights)
        assert found.value == pytest.approx(score, abs=0.02)
        if data.concept.kind == "continuous":
            at_chance = model.score(X[held], planted.y[held]) <= 0
        else:
            Z = planted.Z[held]
            scores = (X[held] @ coef.T).reshape(len(Z), -1)
            at_chance = not slow_separates(scores, Z[:, -scores.shape[1] :])
        assert found.at_chance is bool(at_chance)
        told.append(found.at_chance)
    assert not told[0]
    everything = eraser._classifier_finder(data, moments, np.ones(200, bool))
    assert not everything(np.zeros((8, 0))).at_chance


def _heaviest(groups, weights):
    weights = np.ones(len(groups)) if weights is None else weights
    found = []
    for group in np.unique(groups):
        own = np.flatnonzero(groups == group)
        found.append(own[np.argmax(weights[own])])
    return found


def test_a_class_that_was_not_learnt_is_not_judged():
    """Held-out rows of a class without a column of scores count for the other classes alone."""
    planted, data = data_of("classes")
    train = (np.arange(200) % 2 == 0) & (planted.y != "bee")
    moments = data.rows.moments(data.concept)
    model = LogisticRegression().fit(planted.X[train], planted.y[train])
    found = ex.INLP(classifier=LogisticRegression())._classifier_finder(data, moments, train)
    scores, Z = model.decision_function(planted.X[~train]), planted.Z[~train][:, [0, 2, 3]]
    round_ = found(np.zeros((8, 0)))
    assert round_.coef.shape == (8, 3)
    assert round_.at_chance is not slow_separates(scores, Z)
    none = np.random.default_rng(0).permutation(200)  # nothing to be found
    noise = Data(check_rows(planted.X[none]), data.concept, None)
    model = LogisticRegression().fit(planted.X[none][train], planted.y[train])
    Z, scores = planted.Z[~train][:, [0, 2, 3]], model.decision_function(planted.X[none][~train])
    found = ex.INLP(classifier=LogisticRegression())._classifier_finder(noise, moments, train)
    assert found(np.zeros((8, 0))).at_chance is not slow_separates(scores, Z)


class FarRows(DenseRows):
    """Rows that are not in memory, as far as anyone knows."""

    in_memory = False


@pytest.mark.parametrize("weights", [None, ZERO], ids=["plain", "weights"])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("room", [50, 199, 200])
def test_rows_far_away_are_sampled_with_all_that_belongs_to_them(
    monkeypatch, room, grouped, weights
):
    groups = np.arange(200) // 2 if grouped else None
    planted, near = data_of("binary", weights=weights, groups=groups)
    far = Data(FarRows(planted.X), near.concept, weights, groups=groups)
    monkeypatch.setattr(inlp, "MOST", 8 * room + 3)
    train = np.arange(200) % 3 > 0
    eraser = ex.INLP(classifier=LogisticRegression(), random_state=5)
    moments = near.rows.moments(near.concept, weights)
    with pytest.warns(ex.errors.SampleTaken) if room < 200 else nullcontext():
        find = eraser._classifier_finder(far, moments, train)
    index = np.arange(200)
    if room < 200:
        index = np.sort(np.random.default_rng(5).choice(200, room, replace=False))
    own = train[index]
    X, y = planted.X[index], planted.y[index]
    extra = {} if weights is None else {"sample_weight": weights[index][own]}
    model = LogisticRegression().fit(X[own], y[own], **extra)
    found = find(np.zeros((8, 0)))
    np.testing.assert_allclose(found.coef, model.coef_.T, rtol=1e-3, atol=1e-4)
    everything = eraser._classifier_finder(near, moments, train)(np.zeros((8, 0)))  # no warning
    if room == 50:
        assert np.abs(everything.coef - found.coef).max() > 1e-3


# -- what the parameters do ------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.0, 1e-2, 0.5, 3.0])
def test_the_certificate_has_the_ridge_of_the_predictor(alpha):
    planted = plant("number")
    eraser = ex.INLP(1, loss="squared", alpha=alpha).fit(planted.X, planted.y)
    assert eraser.certificate_.alpha == (alpha or 1e-4)
    C, t = planted.X - planted.X.mean(0), planted.y - planted.y.mean()
    ridge = alpha * C.var(axis=0).mean()
    theta = np.linalg.solve(C.T @ C / 600 + ridge * np.eye(8), C.T @ t / 600)
    cosine = eraser.erasure_.basis[0] @ theta / np.linalg.norm(theta)
    assert abs(cosine) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_auto_with_the_squared_loss_judges_by_the_ridge_asked_for(alpha):
    data = plant("number", n=800)
    eraser = ex.INLP(loss="squared", alpha=alpha, random_state=0).fit(data.X, data.y)
    clean = eraser.transform(data.X)
    assert LinearRegression().fit(data.X, data.y).score(data.X, data.y) > 0.2
    assert LinearRegression().fit(clean, data.y).score(clean, data.y) < 0.1


@pytest.mark.parametrize("rank", [2, "auto"])
def test_without_an_intercept_the_origin_stays(rank):
    data = plant("binary")
    for classifier in (None, LogisticRegression(fit_intercept=False)):
        eraser = ex.INLP(rank, fit_intercept=False, classifier=classifier, random_state=0)
        eraser.fit(data.X, data.y)
        assert eraser.erasure_.center is None
        given = ex.INLP(rank, classifier=classifier, random_state=0).fit(data.X, data.y)
        np.testing.assert_allclose(given.erasure_.center, data.X.mean(axis=0), rtol=1e-12)


@pytest.mark.parametrize("classifier", [None, Ridge()])
def test_where_all_that_counts_would_be_held_out_one_direction_goes(classifier):
    """Of numbers nothing is sure to stay; weights may leave no row to learn from."""
    X, z = np.random.default_rng(0).normal(size=(2, 10, 3))
    w = np.where(np.arange(10) < 3, 1.0, 0.0)
    for seed in range(4):
        place = np.random.default_rng(seed).permutation(10)
        held = int((place[:3] < 9).sum())
        eraser = ex.INLP(classifier=classifier, random_state=seed, validation_fraction=0.9)
        if held == 3:
            assert eraser.fit(X, z[:, 0], sample_weight=w).rank_ == 1


def test_labels_have_names_that_a_classifier_does_not_know():
    _, data = data_of("labels")
    named = replace(data, concept=replace(data.concept, labels=("tall", "old", "rich")))
    moments = data.rows.moments(data.concept)
    train = np.random.default_rng(7).random(200) < 0.6
    eraser = ex.INLP(classifier=RidgeClassifier())
    plain, other = (
        eraser._classifier_finder(given, moments, train)(np.zeros((8, 0)))
        for given in (data, named)
    )
    np.testing.assert_array_equal(plain.coef, other.coef)
    assert plain.at_chance is other.at_chance is False


def test_rounds_are_fitted_to_a_hundredth_of_the_tolerance():
    assert ex.INLP(tol=0.5)._inner_tol == pytest.approx(0.005)
