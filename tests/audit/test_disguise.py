"""Rows of the fit in another type or rounded: they are never called fresh."""

import numpy as np
import pytest

import expunge as ex
from expunge.audit.disguise import resemblance
from expunge.audit.given import gather
from expunge.audit.roles import roles_of

LINEAR = ["linear discriminant"]


def half(X):
    return X.astype(np.float16)


def rounded(X):
    return X.round(2)


def draw(rng, n, d=50, gap=2.0):
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, d))
    X[:, 0] += gap * y
    return X.astype(np.float32), y


def roles(erasure, *rows):
    rows = [*rows, None, None][:4]
    given = gather(erasure, *rows, task=None, names=None, concept_type="auto")
    return roles_of(given, fresh=False)


def look(erasure, X, y, n):
    given = gather(erasure, X, y, None, None, task=None, names=None, concept_type="auto")
    return resemblance(given.train, erasure, n)


@pytest.mark.parametrize("form", [half, rounded])
@pytest.mark.parametrize("new", [200, 600])
def test_training_rows_in_another_form_do_not_join_the_fresh_ones(form, new):
    rng = np.random.default_rng(0)
    X, y = draw(rng, 600 + new)
    e = ex.LEACE().fit(X[:600], y[:600])
    Z = form(X)
    a = ex.audit(e, Z[:600], y[:600], Z[600:], y[600:], probes=LINEAR)
    data = a.to_dict()["data"]
    assert data["n_fresh"] == new
    assert data["n_train"] == 600
    assert not any("not in the fit" in note for note in data["notes"])
    assert any("another form" in note for note in data["notes"])
    plain = ex.audit(e, X[:600], y[:600], X[600:], y[600:], probes=LINEAR)
    assert a.verdict.linear == plain.verdict.linear
    after = a.fresh_rows.after["linear"].strongest.value
    assert after == pytest.approx(plain.fresh_rows.after["linear"].strongest.value, abs=0.01)


@pytest.mark.parametrize("form", [half, rounded])
@pytest.mark.parametrize("d", [2, 3, 8])
@pytest.mark.parametrize("role", ["train", "test"])
def test_few_columns_tell_too(form, d, role):
    rng = np.random.default_rng(1)
    X, y = draw(rng, 1000, d)
    e = ex.LEACE().fit(X, y).erasure_
    found = roles(e, *([None, None] if role == "test" else []), form(X), y)
    assert found.new is None
    assert "in the fit" in found.reason


@pytest.mark.parametrize("role", ["train", "test"])
def test_rows_of_a_fit_for_numbers_are_recognised(role):
    rng = np.random.default_rng(2)
    t, X = rng.normal(size=500), rng.normal(size=(500, 30))
    X[:, 0] += t
    e = ex.LEACE().fit(X, t).erasure_
    found = roles(e, *([None, None] if role == "test" else []), half(X), t)
    assert found.new is None
    assert "rows of the fit" in found.reason


def test_test_rows_that_are_the_training_rows_in_another_form_are_not_fresh():
    rng = np.random.default_rng(3)
    X, y = draw(rng, 600, 10)
    e = ex.LEACE().fit(X, y).erasure_
    found = roles(e, X, y, half(X), y)
    assert found.new is None
    assert "in another form" in found.reason
    own, labels = draw(rng, 300, 10)  # passed as rows of the fit, which they are not
    assert roles(e, own, labels, half(X), y).new is None


def test_a_part_of_the_fit_and_a_mixture_are_not_called_fresh():
    rng = np.random.default_rng(4)
    X, y = draw(rng, 1400)
    e = ex.LEACE().fit(X[:1000], y[:1000]).erasure_
    assert look(e, half(X[:600]), y[:600], 1000) != "none"
    assert look(e, half(X), y, 1000) != "none"


def test_a_fit_with_weights_leaves_it_open():
    rng = np.random.default_rng(5)
    X, y = draw(rng, 500, 6)
    e = ex.LEACE().fit(X, y, sample_weight=rng.random(500)).erasure_
    assert "cannot tell whether" in roles(e, half(X), y).reason


def test_fresh_rows_are_hardly_ever_suspected():
    """In other types, of few columns, after weak and strong concepts, centred or not."""
    rng = np.random.default_rng(6)
    found = []
    for i in range(60):
        n, d = int(rng.integers(100, 500)), int(rng.integers(2, 12))
        X, y = draw(rng, 2 * n, d, gap=rng.choice([0.0, 0.5, 3.0]))
        X = X - X[:n].mean(axis=0) if i % 2 else X + 1
        e = ex.LEACE().fit(X[:n], y[:n]).erasure_
        found.append(look(e, half(X[n:]) if i % 3 else X[n:], y[n:], n))
    assert set(found) == {"none"}


def test_rows_standardised_by_themselves_are_fresh():
    """Their mean is 0 by convention, as that of the fit is: it says nothing."""
    rng = np.random.default_rng(7)
    X, y = draw(rng, 1000, 6)
    one, two = ((part - part.mean(axis=0)) / part.std(axis=0) for part in (X[:500], X[500:]))
    e = ex.LEACE().fit(one, y[:500]).erasure_
    assert look(e, two, y[500:], 500) == "none"
    assert look(e, half(one), y[:500], 500) == "fit"


@pytest.mark.parametrize(("share", "spread"), [(0.1, 0.5), (0.05, 0.6), (0.3, 0.3)])
def test_rows_of_the_fit_with_a_narrow_class_are_known(share, spread):
    """Centred, so that their mean tells nothing: only the concept does."""
    rng = np.random.default_rng(0)
    y = (rng.random(6000) < share).astype(int)
    X = rng.normal(size=(6000, 20)) * np.where(y, spread, 1.0)[:, None]
    X[:, 0] += y
    X -= X[:3000].mean(axis=0)
    erasure = ex.LEACE().fit(X[:3000], y[:3000]).erasure_
    seen = ex.audit(erasure, X_test=X[:3000].round(3), y_test=y[:3000], probes=LINEAR)
    assert seen.fresh_rows is None
    new = ex.audit(erasure, X_test=X[3000:].round(3), y_test=y[3000:], probes=LINEAR)
    assert new.fresh_rows is not None


@pytest.mark.parametrize("columns", ["flags", "cauchy", "lognormal"])
def test_rare_classes_and_far_values_make_no_row_of_the_fit(columns):
    """Rows with 5 of 20,000 in a class, drawn anew, were "rows of the fit in another form"."""
    for seed in range(2):
        rng = np.random.default_rng(seed)

        def draw(n, rng=rng):
            y = np.zeros(n, int)
            y[rng.choice(n, 5, replace=False)] = 1
            if columns == "flags":
                X = (rng.random((n, 40)) < 5e-4).astype(float)
                X[:, 0] = rng.standard_cauchy(n)
            else:
                X = rng.normal(size=(n, 30))
                X = np.exp(2 * X) if columns == "lognormal" else rng.standard_cauchy((n, 30))
            return X, y

        (X, y), (F, g) = draw(20_000), draw(20_000)
        erasure = ex.LEACE().fit(X, y).erasure_
        a = ex.audit(erasure, X_test=F, y_test=g, probes=["linear discriminant"])
        assert a.fresh_rows is not None
        a = ex.audit(erasure, X_test=X.round(4), y_test=y, probes=["linear discriminant"])
        assert a.fresh_rows is None or columns == "flags"  # of flags rounding changes little
