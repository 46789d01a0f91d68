"""How far classes are apart, and what sampling error leaves where lengths go with the concept."""

import numpy as np
import pytest

import expunge as ex
from expunge.audit.residue import FitSize, expected_residue, recalls, residue_of_fit
from expunge.audit.separation import LabelledSample, concept_rank, separations
from expunge.inputs import check_concept, check_rows

PROBE = ["linear discriminant"]


def long_numbers(rng, n, d=30):
    """Rows that are the longer the larger their number."""
    z = rng.normal(size=n)
    return rng.normal(size=(n, d)) * (0.3 + z[:, None] ** 2) + np.outer(z, 3 * np.eye(d)[0]), z


def wide_rare_class(rng, n, d=30):
    y = (rng.random(n) < 0.1).astype(int)
    return rng.normal(size=(n, d)) * np.where(y, 3.0, 1.0)[:, None] + 4 * np.outer(
        y, np.eye(d)[0]
    ), y


def left_of(eraser, X, z):
    """The squared distance (ρ² of numbers) left in far more rows than the eraser had."""
    concept = check_concept(z, len(z))
    (part,) = separations(ex.Moments.of(eraser.transform(X), concept)).values()
    return part.squared


@pytest.mark.parametrize(
    ("draw", "probes"),
    [(long_numbers, ["ridge regression, ridge 0.01"]), (wide_rare_class, PROBE)],
    ids=["numbers", "classes"],
)
def test_the_residue_allows_for_rows_that_are_longer_where_the_concept_is_larger(draw, probes):
    rng = np.random.default_rng(0)
    many, their = draw(rng, 60_000)
    measured, said, alike = [], [], []
    for _ in range(8):
        X, z = draw(rng, 2000)
        eraser = ex.SAL().fit(X, z)
        measured.append(left_of(eraser, many, their))
        a = ex.audit(eraser, X, z, many[:1000], their[:1000], probes=probes)
        said.append(a.residue.q)
        alike.append(expected_residue(ex.Moments.of(X, check_concept(z, 2000)), 100).q)
    assert np.mean(measured) > 2 * np.mean(alike)  # with lengths alike it would be too small
    assert np.mean(said) == pytest.approx(np.mean(measured), rel=0.3)


def test_lengths_that_have_nothing_to_do_with_the_concept_change_nothing():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 3000)
    X = rng.normal(size=(3000, 20)) * rng.exponential(size=(3000, 1)) + 3 * np.outer(
        y, np.eye(20)[0]
    )
    concept = check_concept(y, 3000)
    (part,) = separations(
        ex.Moments.of(X, concept), sample=lambda: LabelledSample.of(check_rows(X), concept)
    ).values()
    assert part.excess == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("kind", ["classes", "continuous"])
def test_a_concept_that_is_not_there_is_not_made_of_long_rows(kind):
    rng = np.random.default_rng(2)
    found = []
    for _ in range(20):
        z = rng.standard_t(5, size=1500) if kind == "continuous" else rng.random(1500) < 0.1
        scale = np.abs(z.astype(float)) + 0.2
        X, concept = rng.normal(size=(1500, 30)) * scale[:, None], check_concept(z, 1500)
        assert concept.kind == kind
        sample, moments = LabelledSample.of(check_rows(X), concept), ex.Moments.of(X, concept)
        apart = (separations(moments, sample=s).values() for s in (None, lambda: sample))  # noqa: B023
        found.append([part.squared for parts in apart for part in parts])
    plain, mended = np.mean(found, axis=0)
    assert mended < plain / 2


def test_a_fit_of_few_rows_learns_from_the_new_ones_how_far_classes_are_apart():
    """The upper end, that of classes very far apart, would excuse three times what is left."""
    rng = np.random.default_rng(3)
    d, n = 60, 62

    def draw(size):
        y = np.arange(size) % 2
        return rng.normal(size=(size, d)) + 1.5 * np.outer(y, np.eye(d)[0]), y

    X, y = draw(n)
    Z, new = draw(2000)
    eraser = ex.SAL().fit(X, y)
    a = ex.audit(eraser, X, y, Z, new, probes=PROBE)
    assert a.residue.n == n
    assert a.residue.separation == pytest.approx(1.5**2, rel=0.3)
    assert a.residue.q < 0.5 * (d - 1) / (n / 4)
    assert ex.audit(eraser, X_test=Z, y_test=new, probes=PROBE).residue.q == pytest.approx(
        a.residue.q, rel=0.05
    )


def test_columns_of_a_concept_that_follow_from_others_are_no_directions():
    rng = np.random.default_rng(4)
    z = rng.normal(size=(500, 2))
    X = rng.normal(size=(500, 6))
    for values, rank in [
        (z, 2),
        (np.c_[z, z @ [1.0, 2.0]], 2),
        (np.c_[z, 1e9 * z[:, 0] + 3], 2),
        (np.c_[z, np.ones(500)], 2),
    ]:
        assert concept_rank(ex.Moments.of(X, check_concept(values, 500))) == rank
    assert concept_rank(ex.Moments.of(X, check_concept(np.arange(500) % 5, 500))) == 4


@pytest.mark.parametrize("rare", [1, 3, 10, 50])
@pytest.mark.parametrize("n", [2000, 20_000])
def test_few_rows_of_a_class_say_nothing_of_its_lengths(n, rare):
    """One row of a class lies at its own mean: n_eff came out a thousand times too large."""
    rng = np.random.default_rng(5)
    y = (np.arange(n) < rare).astype(int)
    X = rng.normal(size=(n, 40)) * rng.exponential(size=(n, 1)) + 3 * np.outer(y, np.eye(40)[0])
    concept = check_concept(y, n)
    moments, sample = ex.Moments.of(X, concept), LabelledSample.of(check_rows(X), concept)
    (part,) = separations(moments, sample=lambda: sample).values()
    assert 0.4 < part.excess < 2.5


def test_a_number_of_one_far_row_says_nothing_of_lengths():
    rng = np.random.default_rng(6)
    z, X = rng.normal(size=1000), rng.normal(size=(1000, 20))
    z[0], X[0, 0] = 1e4, 1e4
    concept = check_concept(z, 1000)
    moments, sample = ex.Moments.of(X, concept), LabelledSample.of(check_rows(X), concept)
    (part,) = separations(moments, sample=lambda: sample).values()
    assert part.excess == 1.0


def four(n, shares, d=60, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.choice(4, n, p=shares)
    X = rng.normal(size=(n, d)) + 3 * np.eye(d)[codes]
    return X, np.array(["a", "b", "c", "d"])[codes]


@pytest.mark.parametrize("weighted", [False, True])
def test_new_rows_that_lack_a_class_stand_in_for_a_fit_that_tells_too_little(weighted):
    """Classes were counted in two ways, and an audit failed with an IndexError."""
    n, d = 3000, 60
    X, y = four(n, [0.4, 0.2, 0.35, 0.05])
    weights = np.random.default_rng(1).uniform(0.5, 1.5, n) if weighted else None
    e = ex.LEACE().fit(X, y, sample_weight=weights).erasure_
    Z, new = four(900, [0.5, 0, 0.44, 0.06], seed=1)
    few = slice(d)  # of the rows of the fit
    for a in (
        ex.audit(e, X[few], y[few], Z, new, probes=PROBE),
        ex.audit(e, X, y, Z, new, probes=PROBE),
    ):
        assert list(a.residue.parts_high) == [0, 2, 3]
        shares = np.array([np.sum(y == name) for name in "acd"]) / np.sum(y != "b")
        wanted = np.mean(shares * (1 - shares)) * np.sum(y != "b")
        assert a.residue.n_eff == pytest.approx(wanted, rel=0.1)
        high = a.residue.parts_high
        assert high[3] > max(high[0], high[2])  # the rarest class is known least


def test_a_class_is_excused_by_its_own_residue():
    """A class after one that is not tested was looked up under the number of another."""
    X, y = four(400, [0.35, 0.1, 0.5, 0.05])
    Z, new = four(6000, [1 / 3, 0, 1 / 3, 1 / 3], seed=1)
    a = ex.audit(ex.LEACE().fit(X, y), X, y, Z, new, probes=PROBE)
    part = a.fresh_rows.after["linear"].part
    assert part.label == "d"
    assert part.limits.value <= a.residue.parts_high[part.column]
    assert a.verdict.explained


def test_rows_that_cannot_tell_are_not_read_again():
    """Of the new rows the same is asked once, and of very many columns no d x d sums."""
    rng = np.random.default_rng(7)
    passes = []

    class Counted(type(check_rows(np.zeros((2, 2))))):
        def moments(self, concept, weights=None, *, second=True):
            passes.append(second)
            return super().moments(concept, weights, second=second)

    for d, wanted in ((50, [True]), (4100, [False])):
        passes.clear()
        rows, concept = Counted(rng.normal(size=(52, d))), check_concept(np.arange(52) % 2, 52)
        residue_of_fit(FitSize(52, 52.0), 20, (rows, concept), (rows, concept))
        assert passes == wanted


@pytest.mark.parametrize("lengths", [[0.1, 0.4, 0.02], [0.3, 0.3, 0.3, 0.3], [1e-12, 0.0, 0.5]])
def test_recalls_are_those_of_simulated_scores(lengths):
    rng = np.random.default_rng(0)
    c, a = len(lengths), np.array(lengths)
    means, found = np.diag(np.sqrt(a)), recalls(a)
    for j in range(c):
        X = rng.normal(size=(200_000, c)) + means[j]
        right = np.mean((X @ means.T - a / 2).argmax(axis=1) == j)
        if 0.0 in lengths and a[j] < 1e-9:
            continue  # of those of which nothing is left any may come first
        assert found[j] == pytest.approx(right, abs=0.005)


@pytest.mark.parametrize(
    ("shares", "d", "n"),
    [([1, 1 / 8, 1 / 27, 1 / 64], 40, 4000), ([0.55, 0.05, 0.2, 0.2], 40, 2000)],
)
def test_the_residue_of_classes_of_unequal_size_is_what_comes_back(shares, d, n):
    """All classes were taken to be alike: every second fit exceeded what one of twenty does."""
    shares = np.array(shares) / np.sum(shares)
    reached, said, high = [], [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        means = rng.normal(size=(4, d))
        y = rng.choice(4, n, p=shares)
        X = rng.normal(size=(n, d)) + means[y]
        M = ex.LEACE().fit(X, y).erasure_.matrix()
        V, values, _ = np.linalg.svd(M)  # unlimited rows: the Gaussian rule with the true means
        V = V[:, values > 1e-9]
        root = np.linalg.inv(np.linalg.cholesky(V.T @ M @ M.T @ V))
        left = means @ M.T @ V @ root.T
        labels = rng.integers(0, 4, 40_000)
        scores = (rng.normal(size=(40_000, left.shape[1])) + left[labels]) @ left.T
        right = (scores - (left**2).sum(axis=1) / 2).argmax(axis=1) == labels
        reached.append(np.mean([right[labels == k].mean() for k in range(4)]))
        rows, concept = check_rows(X), check_concept(y, n)
        found = residue_of_fit(FitSize(n, float(n)), 1000, (rows, concept), (rows, concept))
        said.append(found.balanced_accuracy)
        high.append(found.high("balanced_accuracy"))
    assert np.mean(reached) > 0.29
    assert np.mean(said) - 0.25 == pytest.approx(np.mean(reached) - 0.25, rel=0.1)
    assert np.sum(np.array(reached) > high) <= 2
