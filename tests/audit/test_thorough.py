"""The hardest probes find what they are for, and the strongest is chosen without the test rows."""

import numpy as np
import pytest

import expunge as ex
from expunge.audit import Sizes, strongest_probe
from expunge.audit.measures import ProbeScores, measures_of
from expunge.audit.probe import Choosing, Probe, Training
from expunge.audit.probes import PROBES, choose_probes
from expunge.audit.running import cross_fitted, transferred
from expunge.audit.thorough_probes import THOROUGH_PROBES
from expunge.concept import Concept
from expunge.errors import InputError
from expunge.inputs import check_concept

HALF = 600  # rows to learn from, and as many to be tested on
QUICK = ["logistic regression, ridge 0.01", "RBF-SVM", "nearest neighbours", "Gaussian classes"]


def corners(rng):
    """Opposite corners of a square."""
    X = rng.normal(size=(2 * HALF, 4))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def ring(rng):
    """One class around the other: equal means, unequal spread."""
    y = rng.integers(0, 2, 2 * HALF)
    return rng.normal(size=(2 * HALF, 6)) * (1 + y)[:, None], y


def clusters(rng):
    """Thirty places, each of one class."""
    centres, own = rng.normal(size=(30, 5)) * 4, rng.permutation(np.arange(30) % 2)
    at = rng.integers(0, 30, 2 * HALF)
    return centres[at] + 0.3 * rng.normal(size=(2 * HALF, 5)), own[at]


def faint(rng):
    """A circle in two columns that hardly vary, beside eight that do."""
    X = rng.normal(size=(2 * HALF, 10))
    y = (np.linalg.norm(X[:, :2], axis=1) > 1.18).astype(int)
    scaled = X * np.r_[0.15, 0.15, np.ones(8)]
    return scaled @ np.linalg.qr(rng.normal(size=(10, 10)))[0], y


PLANTED = {
    "RBF-SVM, wide grid": [corners, ring, clusters],
    "RBF-SVM, whitened rows": [ring, clusters, faint],
    "MLP, 512 ReLU": [corners, ring],
    "MLP, 256 and 128 ReLU": [corners, clusters],
    "boosted trees, 300 rounds": [corners, clusters],
    "nearest neighbours, number chosen": [corners, clusters],
    "Gaussian classes": [ring],
}


def read(name, X, y):
    concept = Concept("classes", y, (0, 1))
    X = X.astype(np.float32)
    training = Training(X[:HALF], concept.take(slice(0, HALF)))
    (scores,) = transferred([PROBES[name]], training, X[HALF:], 0, lambda note: None)
    return measures_of(scores, concept.take(slice(HALF, None)))["balanced_accuracy"].value


@pytest.mark.parametrize(
    ("name", "plant"), [(name, plant) for name, plants in PLANTED.items() for plant in plants]
)
def test_each_probe_finds_what_it_is_for(name, plant):
    X, y = plant(np.random.default_rng(0))
    assert read(name, X, y) > 0.8
    if plant is not clusters:  # a line may tell some of thirty places by luck
        assert read("logistic regression, ridge 0.01", X, y) < 0.6


def test_whitened_rows_show_what_hardly_varies():
    X, y = faint(np.random.default_rng(0))
    assert read("RBF-SVM, whitened rows", X, y) > read("RBF-SVM", X, y) + 0.1


def test_there_is_a_test_for_every_kind_of_classifier():
    assert {p.name for p in THOROUGH_PROBES if "classes" in p.kinds} == PLANTED.keys()


def test_every_one_learns_every_kind_it_claims():
    rng = np.random.default_rng(0)
    kinds = {
        "classes": rng.integers(0, 3, 700),  # enough to set some aside that tell when to stop
        "labels": (rng.random((700, 2)) < [0.5, 0.3]).astype(int),
        "continuous": rng.normal(size=(700, 1)),
    }
    for kind, y in kinds.items():
        concept = check_concept(y, 700, concept_type=kind)
        X = rng.normal(size=(700, 5)) + 3 * concept.columns() @ rng.normal(size=(concept.width, 5))
        training = Training(X[:500], concept.take(slice(0, 500)))
        probes = [probe for probe in THOROUGH_PROBES if kind in probe.kinds]
        scores = transferred(probes, training, X[500:], 0, lambda note: None)
        for probe, found in zip(probes, scores, strict=True):
            measures = measures_of(found, concept.take(slice(500, None)))
            least = {"r2": 0.4} if kind == "continuous" else {"auc": 0.85, "balanced_accuracy": 0.7}
            for name, value in least.items():
                assert measures[name].value > value, probe.name


def test_a_class_that_no_training_row_has_is_never_answered():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 100) * 2  # classes 0 and 2 of three
    X = rng.normal(size=(100, 3)) + np.outer(y, [1, 0, 0])
    training = Training(X, Concept("classes", y, ("a", "b", "c")))
    probes = [probe for probe in THOROUGH_PROBES if "classes" in probe.kinds]
    for found in transferred(probes, training, X, 0, lambda note: None):
        assert np.isfinite(found.values).all()
        assert np.mean(found.values.argmax(axis=1) == y) > 0.75
        assert not np.any(found.values.argmax(axis=1) == 1)


def halves(X, y):
    return X[:HALF], y[:HALF], X[HALF:], y[HALF:]


def test_the_choice_does_not_look_at_the_test_rows():
    rng = np.random.default_rng(0)
    X, y, X_test, y_test = halves(*ring(rng))
    found = strongest_probe(X, y, X_test, y_test, probes=QUICK)
    assert found.name in ("Gaussian classes", "RBF-SVM")
    assert found.low > 0.85
    other = strongest_probe(X, y, X_test, rng.permutation(y_test), probes=QUICK)
    assert (other.name, other.validated) == (found.name, found.validated)
    assert other.value < 0.6
    assert other.low < 0.5 < other.high


def test_the_chosen_probe_is_the_one_that_reads_best_inside_the_training_rows():
    X, y, X_test, y_test = halves(*corners(np.random.default_rng(1)))
    found = strongest_probe(X, y, X_test, y_test, probes=QUICK)
    assert found.name == max(found.validated, key=found.validated.get)
    assert list(found.validated) == QUICK
    assert found.low < found.value < found.high
    alone = strongest_probe(X, y, X_test, y_test, probes=[found.name])
    assert (alone.value, alone.low, alone.high) == (found.value, found.low, found.high)


def test_labels_at_random_stay_within_the_interval_of_chance():
    rng = np.random.default_rng(0)
    for _ in range(3):
        X, y = rng.normal(size=(2 * HALF, 5)), rng.integers(0, 3, 2 * HALF)
        found = strongest_probe(*halves(X, y), probes=QUICK, confidence=0.999)
        assert found.low < found.chance < found.high
        assert found.chance == pytest.approx(1 / 3)


def test_groups_are_not_cut_when_the_choice_is_made():
    """Forty people of thirty rows, each of one class by lot: neighbours recognise the person."""
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(40), 30)
    X = rng.normal(size=(40, 5))[who] * 3 + 0.2 * rng.normal(size=(1200, 5))
    y = rng.permutation(np.arange(40) % 2)[who]
    fooled = strongest_probe(*halves(X, y), probes=QUICK)
    assert max(fooled.validated.values()) > 0.95
    aware = strongest_probe(*halves(X, y), probes=QUICK, groups=(who[:HALF], who[HALF:]))
    assert max(aware.validated.values()) < 0.8
    assert aware.high - aware.low > 2 * (fooled.high - fooled.low)  # twenty people, not 600 rows
    with pytest.raises(InputError, match="Split the rows by group"):
        strongest_probe(*halves(X, y), probes=QUICK, groups=(who[:HALF], who[:HALF]))


@pytest.mark.parametrize("kind", ["labels", "continuous"])
def test_other_kinds_of_concept_have_a_strongest_probe_too(kind):
    X, y = ring(np.random.default_rng(0))
    size = np.linalg.norm(X, axis=1)
    z = np.column_stack([y, X[:, 0] > 0]).astype(int) if kind == "labels" else size
    probes = ["RBF-SVM", "kernel ridge, RBF", "linear discriminant", "ridge regression, ridge 0.01"]
    found = strongest_probe(*halves(X, z), probes=probes, concept_type=kind)
    assert found.name == ("RBF-SVM" if kind == "labels" else "kernel ridge, RBF")
    assert found.statistic == ("balanced_accuracy" if kind == "labels" else "r2")
    assert found.low > (0.8 if kind == "labels" else 0.6)


def quick_choice(*names):
    some = [PROBES[name] for name in names]
    return [*some, Choosing.among(tuple(some), "nonlinear", "classes")]


def test_an_audit_reports_the_probe_that_was_chosen():
    X, y = ring(np.random.default_rng(0))
    e = ex.LEACE().fit(X[:HALF], y[:HALF]).erasure_
    probes = quick_choice("nearest neighbours", "Gaussian classes")
    found = ex.audit(e, *halves(X, y), probes=probes).fresh_rows.after["nonlinear"]
    last = found.probes[-1]
    assert last.name == "the strongest, chosen beforehand"
    assert found.worst == "Gaussian classes"
    own = last.intervals["balanced_accuracy"]
    assert (found.strongest.value, found.strongest.low) == (own.value, own.low)
    assert found.strongest.high > own.high  # those of all probes at once
    assert found.status == "found"
    assert "auc" in last.intervals
    assert last.intervals["auc"].value > 0.9


def test_a_choice_over_folds_keeps_the_answers_of_what_was_chosen():
    """Margins in one fold, log-probabilities of rare classes in another: one scale."""
    rng = np.random.default_rng(0)
    y = (rng.random(300) < 0.2).astype(int)
    X = rng.normal(size=(300, 2)) + np.outer(y, [2.5, 0])
    concept = Concept("classes", y, (0, 1))

    def says_margin(training, rows, seed):
        s = rows[:, 0] - 1.25
        return ProbeScores(np.column_stack([-s, s]), False, training.prior)

    def says_nats(training, rows, seed):
        s = 100 * (rows[:, 0] - 1.25) + np.log(training.prior[1] / training.prior[0])
        return ProbeScores(np.column_stack([np.zeros_like(s), s]), True, training.prior)

    for learn in (says_margin, says_nats):
        probe = Probe("one", "nonlinear", ("classes",), learn)
        choice = Choosing.among((probe,), "nonlinear", "classes")
        folds = np.arange(300) % 3
        scores = cross_fitted([choice, probe], X, concept, folds, 0, lambda note: None)
        assert scores[0].by == "one"
        a, b = (measures_of(s, concept)["balanced_accuracy"].value for s in scores)
        assert a == b > 0.8


def test_thorough_is_all_there_are_and_the_choice_among_the_non_linear_ones():
    chosen = choose_probes("thorough", "classes")
    names = [probe.name for probe in chosen]
    assert set(PLANTED) < set(names)
    assert {probe.name for probe in choose_probes("default", "classes")} < set(names)
    assert not {probe.name for probe in choose_probes("default", "classes")} & PLANTED.keys()
    assert isinstance(chosen[-1], Choosing)
    assert {p.name for p in chosen[-1].candidates} == {
        p.name for p in chosen[:-1] if p.family == "nonlinear"
    }


def test_a_comparison_takes_the_same_probes():
    X, y = ring(np.random.default_rng(0))
    sizes = Sizes(nonlinear_train=300, nonlinear_test=300)
    probes = quick_choice("Gaussian classes", "nearest neighbours")
    table = ex.compare(X, y, ["LEACE"], runs=1, probes=probes, sizes=sizes)
    assert table.rows[1].nonlinear.status == "found"
    assert table.rows[1].nonlinear.low > 0.75
