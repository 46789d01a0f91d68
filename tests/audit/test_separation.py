"""How far classes are apart, and what sampling error leaves where lengths go with the concept."""

import numpy as np
import pytest

import expunge as ex
from expunge.audit.residue import expected_residue
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
        ex.Moments.of(X, concept), sample=LabelledSample.of(check_rows(X), concept)
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
        sample = LabelledSample.of(check_rows(X), concept)
        moments = ex.Moments.of(X, concept)
        found.append(
            [p.squared for s in (None, sample) for p in separations(moments, sample=s).values()]
        )
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
