"""Certificates of maps that are told the concept: from moments, from rows, or none."""

import numpy as np
import pytest

import expunge as ex
from expunge.conditional import ConditionalErasure
from expunge.game.certificate import certify
from expunge.game.conditional_certificate import certify_conditional, erased_rows
from expunge.game.kept import kept_in_rows
from expunge.game.losses import loss_for
from expunge.inputs import check_concept, check_rows
from planted import plant


def setting(kind="classes", strength=1.0):
    data = plant(kind, n=200, d=4)
    rows, concept = check_rows(data.X), check_concept(data.y, 200)
    told = ex.OracleLEACE(strength=strength).fit(data.X, data.y).conditional_erasure_
    loss = loss_for("auto", concept.kind, concept.width)
    return data, rows, concept, told, loss


@pytest.mark.parametrize("kind", ["binary", "classes", "labels", "vector"])
def test_what_moments_prove_needs_no_rows(kind):
    data, rows, concept, told, loss = setting(kind)
    moments = rows.moments(concept)
    found = certify_conditional(told, moments, loss, alpha=1e-3)
    assert found.erased
    least = 1e-6 * data.X.std(axis=0) + 1e-9 * np.abs(data.X.mean(axis=0))
    np.testing.assert_allclose(found.ridges, 1e-3 * least**2, rtol=1e-9)
    assert found.variance_kept is None
    kept = kept_in_rows(rows, told, moments, concept, None)
    known = certify_conditional(told, moments, loss, kept=kept, alpha=1e-3)
    assert known.erased
    spreads = told(data.X, data.y).std(axis=0)
    np.testing.assert_allclose(known.ridges, 1e-3 * spreads**2, rtol=1e-9)
    assert known.variance_kept == kept.variance


@pytest.mark.parametrize("kind", ["binary", "classes"])
def test_a_share_of_a_told_map_needs_the_rows(kind):
    data, rows, concept, told, loss = setting(kind, strength=0.5)
    moments = rows.moments(concept)
    assert certify_conditional(told, moments, loss) is None
    assert certify_conditional(told, moments, loss, rows=rows) is None
    assert certify_conditional(told, moments, loss, concept=concept) is None
    loose = certify_conditional(told, moments, loss, alpha=1e14)
    assert 0 < loose.value < loose.bound  # a huge ridge proves something from moments alone
    assert not loose.erased
    found = certify_conditional(told, moments, loss, rows, concept)
    clean = told(data.X, data.y)
    by_hand = certify(check_rows(clean), concept, ex.Erasure.identity(4), loss)
    assert found.value == pytest.approx(by_hand.value, rel=1e-6)
    assert 0 < found.value < 0.9 * found.bound
    kept = kept_in_rows(rows, told, moments, concept, None)
    assert kept.variance < 0.99
    known = certify_conditional(told, moments, loss, rows, concept, kept=kept)
    assert known.variance_kept == kept.variance
    assert found.variance_kept == pytest.approx(1.0)


def test_weights_count():
    data, rows, concept, told, loss = setting(strength=0.5)
    w = np.random.default_rng(0).uniform(size=200)
    moments = rows.moments(concept, w)
    found = certify_conditional(told, moments, loss, rows, concept, w)
    clean = check_rows(told(data.X, data.y))
    by_hand = certify(clean, concept, ex.Erasure.identity(4), loss, weights=w)
    assert found.value == pytest.approx(by_hand.value, rel=1e-6)
    plain = certify(clean, concept, ex.Erasure.identity(4), loss)
    assert abs(plain.value - found.value) > 1e-3 * found.value


def test_a_column_that_is_left_with_rounding_is_no_column():
    """The floor of what is told apart comes from the rows before."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    X = np.column_stack([1e9 + 1e3 * y, rng.normal(size=(200, 2)) + y[:, None]])
    rows, concept = check_rows(X), check_concept(y, 200)
    moments = rows.moments(concept)
    shift = np.zeros((3, 2))
    shift[0] = [-500, 500]  # the second and third are not touched
    told = ConditionalErasure(shift, moments.mean_z, moments.mean_x, moments.labels, "classes")
    kept = kept_in_rows(rows, told, moments, concept, None)
    loss = loss_for("cross_entropy", "classes", 2)
    found = certify_conditional(told, moments, loss, rows, concept, kept=kept)
    assert found.ridges[0] == pytest.approx(1e-4 * kept.least[0] ** 2)
    assert 0.1 < kept.least[0] < 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_erased_as_they_are_read_in_full_precision(dtype):
    data, _, concept, told, _ = setting()
    X = data.X.astype(dtype)
    lazy = erased_rows(check_rows(X), told, concept)
    expected = told(X.astype(float), data.y)
    found = lazy.array()
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, atol=1e-12)
    some = np.array([3, 77, 150])
    np.testing.assert_allclose(lazy.take(some).array(), expected[some], atol=1e-12)
