"""Probes and what their scores amount to, against scikit-learn and against plain twins."""

import numpy as np
import pytest
import scipy.stats
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import balanced_accuracy_score, log_loss, r2_score, roc_auc_score
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

import expunge as ex
from expunge.audit.kernel_probes import choose_svm, svm_margins
from expunge.audit.measures import (
    Measure,
    ProbeScores,
    exact_binomial,
    measures_of,
    simultaneous_quantile,
)
from expunge.audit.probe import Probe, Training
from expunge.audit.probes import PROBES, choose_probes
from expunge.concept import Concept
from expunge.errors import InputError
from expunge.inputs import check_concept


def classes(y, labels=None):
    y = np.asarray(y)
    return Concept("classes", y, labels or tuple(range(int(y.max()) + 1)))


# -- measures ------------------------------------------------------------------------------------


@pytest.fixture
def three_classes():
    rng = np.random.default_rng(0)
    y = rng.choice(3, size=400, p=[0.6, 0.3, 0.1])
    P = rng.dirichlet(np.ones(3), size=400) + 0.5 * np.eye(3)[y]
    return P / P.sum(axis=1, keepdims=True), y


def test_measures_of_classes_are_those_of_scikit_learn(three_classes):
    P, y = three_classes
    flat = np.full(3, 1 / 3)  # with a flat prior nothing is corrected
    found = measures_of(ProbeScores(np.log(P), True, flat), classes(y))
    assert found["accuracy"].value == pytest.approx(np.mean(P.argmax(axis=1) == y))
    wanted = balanced_accuracy_score(y, P.argmax(axis=1))
    assert found["balanced_accuracy"].value == pytest.approx(wanted)
    assert found["auc"].value == pytest.approx(roc_auc_score(y, P, multi_class="ovr"))
    assert found["cross_entropy"].value == pytest.approx(log_loss(y, P))
    gain = (np.log(3) - log_loss(y, P)) / np.log(2)
    assert found["bits"].value == pytest.approx(gain)


@pytest.mark.parametrize("ties", [False, True])
def test_auc_of_two_classes_is_that_of_scikit_learn(ties):
    rng = np.random.default_rng(1)
    y = (rng.random(300) < 0.3).astype(int)
    s = rng.normal(size=300) + y
    s = np.round(s) if ties else s
    S = np.column_stack([np.zeros(300), s])
    found = measures_of(ProbeScores(S, False, np.array([0.7, 0.3])), classes(y))
    assert found["auc"].value == pytest.approx(roc_auc_score(y, s))


def test_standard_error_of_auc_is_that_of_delong():
    """The two variances of structural components, by double loops over pairs."""
    rng = np.random.default_rng(2)
    y = (rng.random(60) < 0.4).astype(int)
    s = np.round(rng.normal(size=60) + y, 1)
    S = np.column_stack([np.zeros(60), s])
    found = measures_of(ProbeScores(S, False, np.array([0.6, 0.4])), classes(y))["auc"]
    psi = np.array([[(a > b) + 0.5 * (a == b) for b in s[y == 0]] for a in s[y == 1]], dtype=float)
    p, q = psi.shape
    variance = psi.mean(axis=1).var(ddof=1) / p + psi.mean(axis=0).var(ddof=1) / q
    assert found.error == pytest.approx(np.sqrt(variance), rel=0.03)


@pytest.mark.parametrize("name", ["balanced_accuracy", "auc", "excess", "bits"])
def test_standard_errors_are_those_of_a_bootstrap(three_classes, name):
    P, y = three_classes
    prior = np.bincount(y) / len(y)
    found = measures_of(ProbeScores(np.log(P), True, prior), classes(y))[name]
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(400):
        rows = rng.integers(0, len(y), len(y))
        drawn = measures_of(ProbeScores(np.log(P[rows]), True, prior), classes(y[rows]))
        draws.append(drawn[name].value)
    assert found.error == pytest.approx(np.std(draws), rel=0.15)


def test_balanced_accuracy_corrects_for_the_prior():
    """A rare class that probabilities never favour is still told from the others."""
    rng = np.random.default_rng(0)
    y = (rng.random(4000) < 0.05).astype(int)
    x = rng.normal(size=4000) + y
    prior = np.array([0.95, 0.05])
    S = np.column_stack([np.zeros(4000), x - 0.5 + np.log(0.05 / 0.95)])  # the true log-odds
    found = measures_of(ProbeScores(S, True, prior), classes(y))
    assert abs(found["excess"].value) < 0.01  # accuracy sees nothing
    assert found["balanced_accuracy"].value > 0.63  # Φ(1/2) = 0.69
    assert found["bits"].value > 0.02


def test_measures_of_labels_are_means_over_labels():
    rng = np.random.default_rng(0)
    Y = (rng.random((300, 3)) < [0.5, 0.2, 0.4]).astype(float)
    Y[:, 2] = 1.0  # a label every row has cannot be measured and is left out
    S = rng.normal(size=(300, 3)) + Y
    found = measures_of(
        ProbeScores(S, True, np.full(3, 0.5)), Concept("labels", Y, ("a", "b", "c"))
    )
    wanted = np.mean([roc_auc_score(Y[:, j], S[:, j]) for j in (0, 1)])
    assert found["auc"].value == pytest.approx(wanted)


def test_r2_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(200, 2)) * [1, 5]
    guess = Z + rng.normal(size=(200, 2))
    found = measures_of(ProbeScores(guess, False, Z.mean(axis=0)), Concept.of_numbers(Z))["r2"]
    assert found.value == pytest.approx(r2_score(Z, guess))
    draws = []
    for _ in range(400):
        rows = rng.integers(0, 200, 200)
        drawn = ProbeScores(guess[rows], False, Z.mean(axis=0)), Concept.of_numbers(Z[rows])
        draws.append(measures_of(*drawn)["r2"].value)
    assert found.error == pytest.approx(np.std(draws), rel=0.2)


# -- intervals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("hits", "n"), [(0, 20), (7, 20), (20, 20), (512, 1000)])
def test_exact_binomial_is_that_of_scipy(hits, n):
    wanted = scipy.stats.binomtest(hits, n).proportion_ci(0.9, method="exact")
    found = exact_binomial(hits, n, 0.9)
    assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high))


def test_simultaneous_quantile_knows_how_alike_measures_are():
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(5000, 6))
    alike = [Measure.of(0.5, columns[:, 0] + 1e-6 * c) for c in columns.T]
    apart = [Measure.of(0.5, c) for c in columns.T]
    normal = scipy.stats.norm.ppf
    assert simultaneous_quantile(alike, 0.95) == pytest.approx(normal(0.975), abs=0.02)
    independent = normal((1 + 0.95 ** (1 / 6)) / 2)
    assert simultaneous_quantile(apart, 0.95) == pytest.approx(independent, abs=0.03)


def test_simultaneous_limits_hold_for_all_at_once():
    """Coverage of six correlated means, by simulation."""
    rng = np.random.default_rng(1)
    mix = rng.normal(size=(3, 6))
    held = 0
    for _ in range(150):
        X = rng.normal(size=(200, 3)) @ mix
        measures = [Measure.of(x.mean(), x - x.mean(), least=-np.inf, most=np.inf) for x in X.T]
        quantile = simultaneous_quantile(measures, 0.9)
        limits = [m.interval(quantile) for m in measures]
        held += all(i.low <= 0 <= i.high for i in limits)
    assert 0.84 <= held / 150 <= 0.96


# -- probes --------------------------------------------------------------------------------------


@pytest.fixture
def two_gaussians():
    rng = np.random.default_rng(0)
    y = (rng.random(900) < 0.4).astype(int)
    X = rng.normal(size=(900, 6)) @ (np.eye(6) + 0.3 * rng.normal(size=(6, 6)))
    X = X + np.outer(y, [1, 0.5, 0, 0, 0, 0]) + 3.0
    return X[:600], y[:600], X[600:]


def test_logistic_regression_is_that_of_scikit_learn(two_gaussians):
    X, y, X_test = two_gaussians
    found = PROBES["logistic regression, ridge 0.01"].score(Training(X, classes(y)), X_test, 0)
    unit = X.var(axis=0).mean()  # alpha is relative to it; scikit-learn's C is 1/(n alpha unit)
    machine = LogisticRegression(C=1 / (len(X) * 0.01 * unit), tol=1e-8, max_iter=2000).fit(X, y)
    wanted = machine.decision_function(X_test)
    np.testing.assert_allclose(found.values[:, 1] - found.values[:, 0], wanted, atol=5e-3)


def test_discriminant_is_that_of_scikit_learn(two_gaussians):
    X, y, X_test = two_gaussians
    found = PROBES["linear discriminant"].score(Training(X, classes(y)), X_test, 0).values
    wanted = LinearDiscriminantAnalysis().fit(X, y).decision_function(X_test)
    S = found[:, 1] - found[:, 0]
    assert np.corrcoef(S, wanted)[0, 1] > 0.999
    np.testing.assert_allclose(S, wanted, atol=0.3)  # ours shrinks a little


def test_discriminant_without_shrinkage_is_that_of_scikit_learn(two_gaussians):
    X, y, X_test = two_gaussians
    found = PROBES["linear discriminant, not shrunk"].score(Training(X, classes(y)), X_test, 0)
    wanted = LinearDiscriminantAnalysis().fit(X, y).decision_function(X_test)
    np.testing.assert_allclose(
        found.values[:, 1] - found.values[:, 0], wanted, rtol=1e-2, atol=1e-2
    )


def test_least_squares_are_those_of_scikit_learn(two_gaussians):
    X, _, X_test = two_gaussians
    z = X @ np.arange(6.0) + np.random.default_rng(0).normal(size=len(X))
    found = PROBES["least squares"].score(Training(X, Concept.of_numbers(z)), X_test, 0)
    wanted = LinearRegression().fit(X, z).predict(X_test)
    np.testing.assert_allclose(found.values[:, 0], wanted, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("number", [False, True])
def test_a_difference_of_two_nearly_equal_columns_is_read(number, dtype):
    """Gross and net: what lies between them is a thousandth of their spread."""
    rng = np.random.default_rng(0)
    n = 4000
    z = rng.normal(size=n) if number else rng.integers(0, 2, n)
    gross = rng.normal(50, 15, n)
    net = gross - 0.02 * z - 0.004 * rng.normal(size=n)
    X = np.column_stack([gross, net, rng.normal(size=n)]).astype(dtype)
    a = ex.audit(ex.Erasure.identity(3), X_test=X, y_test=z, probes="linear", fresh=True)
    plain = LinearRegression() if number else LinearDiscriminantAnalysis()
    wanted = cross_val_score(plain, X.astype(np.float64), z).mean()
    assert wanted > 0.9
    assert a.verdict.linear == "found"
    found = a.fresh_rows.after["linear"].strongest
    assert found.low - 0.005 < wanted < found.high + 0.01  # a ridge keeps rounding out of float32
    blind = [p for p in PROBES if "0.1" in p or p == "linear SVM"]
    assert (
        ex.audit(ex.Erasure.identity(3), X_test=X, y_test=z, probes=blind, fresh=True)
        .fresh_rows.after["linear"]
        .strongest.value
        < 0.7
    )


def test_ridge_is_that_of_scikit_learn(two_gaussians):
    X, _, X_test = two_gaussians
    z = X @ np.arange(6.0) + np.random.default_rng(0).normal(size=len(X))
    training = Training(X, Concept.of_numbers(z))
    found = PROBES["ridge regression, ridge 0.1"].score(training, X_test, 0)
    alpha = 0.1 * X.var(axis=0).mean() * len(X)
    np.testing.assert_allclose(found.values[:, 0], Ridge(alpha).fit(X, z).predict(X_test))


def test_kernel_machine_is_that_of_scikit_learn(two_gaussians):
    X, y, X_test = (np.asarray(part) for part in two_gaussians)
    width, C = choose_svm(X, y, 0)
    found = {(width, C): PROBES["RBF-SVM"].score(Training(X, classes(y)), X_test, 0).values}
    found[1.0, 1.0] = svm_margins(X, y, X_test, (1.0, 1.0))
    for (width, C), S in found.items():
        gamma = width / (X.shape[1] * X.var())
        machine = SVC(C=C, gamma=gamma, class_weight="balanced").fit(X, y)
        np.testing.assert_allclose(S[:, 1] - S[:, 0], machine.decision_function(X_test), atol=1e-2)


def test_neighbours_vote():
    X = np.array([[0.0], [0.1], [0.2], [10.0], [10.1], [10.2]])
    y = np.array([0, 0, 1, 1, 1, 1])
    training = Training(np.repeat(X, 4, axis=0), classes(np.repeat(y, 4)))
    found = PROBES["nearest neighbours"].score(training, np.array([[0.0], [10.1]]), 0).values
    shares = np.exp(found)
    near = 8 / 11  # of the 11 nearest to 0.0: all 8 of class 0 and 3 of the 4 others
    prior = np.array([1 / 3, 2 / 3])
    np.testing.assert_allclose(shares[0], (11 * np.array([near, 1 - near]) + prior) / 12)
    np.testing.assert_allclose(shares[1], (11 * np.array([0, 1]) + prior) / 12)


NONLINEAR = ["RBF-SVM", "MLP, 128 ReLU", "boosted trees", "nearest neighbours"]


@pytest.mark.parametrize("name", NONLINEAR)
def test_nonlinear_probes_find_what_linear_ones_cannot(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 2)).astype(np.float32)
    y = (X[:, 0] * X[:, 1] > 0).astype(int)  # opposite corners: no linear predictor helps
    training, truth = Training(X[:1000], classes(y[:1000])), classes(y[1000:])
    found = measures_of(PROBES[name].score(training, X[1000:], 0), truth)
    assert found["balanced_accuracy"].value > 0.85
    blind = PROBES["logistic regression, ridge 0.01"].score(training, X[1000:], 0)
    assert measures_of(blind, truth)["balanced_accuracy"].value < 0.6


def test_anti_clustering_bets_against_neighbours():
    """Rows among rows of the other class: the neighbours are wrong, their reverse is right."""
    rng = np.random.default_rng(0)
    side = rng.integers(0, 2, 600)
    X = rng.normal(size=(600, 3)) + 8 * np.outer(side, [1, 0, 0])
    y = np.where(np.arange(600) < 400, side, 1 - side)  # the test rows are on the other side
    training, truth = Training(X[:400], classes(y[:400])), classes(y[400:])
    with_them = measures_of(PROBES["nearest neighbours"].score(training, X[400:], 0), truth)
    against = measures_of(PROBES["anti-clustering"].score(training, X[400:], 0), truth)
    assert with_them["accuracy"].value == 0
    assert against["accuracy"].value == 1
    assert against["auc"].value == pytest.approx(1 - with_them["auc"].value)
    assert against["bits"].value > 0.5


@pytest.mark.parametrize("kind", ["classes", "labels", "continuous"])
def test_every_probe_learns_every_kind_it_claims(kind):
    rng = np.random.default_rng(0)
    y = {
        "classes": rng.integers(0, 3, 300),
        "labels": (rng.random((300, 2)) < [0.5, 0.3]).astype(int),
        "continuous": rng.normal(size=(300, 2)),
    }[kind]
    concept = check_concept(y, 300, concept_type=kind)
    X = rng.normal(size=(300, 5)) + 3 * concept.columns() @ rng.normal(size=(concept.width, 5))
    training, truth = Training(X[:200], concept.take(slice(0, 200))), concept.take(slice(200, None))
    for probe in choose_probes("default", kind):
        found = measures_of(probe.score(training, X[200:], 0), truth)
        if probe.name == "anti-clustering":
            assert found["auc"].value < 0.3
        elif kind == "continuous":
            assert found["r2"].value > 0.4, probe.name
        else:
            assert found["auc"].value > 0.85, probe.name


LEARNERS = [*NONLINEAR, "logistic regression, ridge 0.01", "linear SVM", "linear discriminant"]


@pytest.mark.parametrize("name", LEARNERS)
def test_a_class_that_no_training_row_has_is_never_answered(name):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 100) * 2  # classes 0 and 2 of three
    X = rng.normal(size=(100, 3)) + np.outer(y, [1, 0, 0])
    training = Training(X, Concept("classes", y, ("a", "b", "c")))
    found = PROBES[name].scores(training, X, 0).values
    assert found.shape == (100, 3)
    assert np.isfinite(found).all()
    assert np.mean(found.argmax(axis=1) == y) > 0.75
    assert not np.any(found.argmax(axis=1) == 1)


@pytest.mark.parametrize("name", LEARNERS)
def test_nothing_is_said_of_a_label_that_all_training_rows_share(name):
    rng = np.random.default_rng(0)
    Y = np.column_stack([rng.integers(0, 2, 100), np.ones(100)]).astype(float)
    X = rng.normal(size=(100, 3)) + np.outer(Y[:, 0], [3, 0, 0])
    found = PROBES[name].scores(Training(X, Concept("labels", Y, ("a", "b"))), X, 0).values
    assert roc_auc_score(Y[:, 0], found[:, 0]) > 0.9
    assert not found[:, 1].any()


def test_probes_are_chosen_by_name_family_or_as_objects():
    own = Probe("mine", "linear", ("classes",), lambda training, X, seed: None)
    assert choose_probes([own, "RBF-SVM"], "classes") == (own, PROBES["RBF-SVM"])
    assert {p.family for p in choose_probes("nonlinear", "labels")} == {"nonlinear"}
    assert choose_probes("RBF-SVM", "classes") == (PROBES["RBF-SVM"],)
    with pytest.raises(InputError, match="no such probe"):
        choose_probes(["SVM of the neighbours"], "classes")
    with pytest.raises(InputError, match="can learn"):
        choose_probes(["RBF-SVM"], "continuous")
    with pytest.raises(InputError, match="word or a list"):
        choose_probes(3, "classes")
