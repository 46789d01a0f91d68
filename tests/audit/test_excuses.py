"""Who may plead sampling error: the worst column decides, and the concept that was measured."""

import numpy as np
import pytest

import expunge as ex
from expunge.audit.residue import expected_residue
from expunge.inputs import check_concept

LINEAR = ["logistic regression, ridge 0.01", "linear discriminant"]
RIDGE = ["ridge regression, ridge 0.01"]


def test_a_wide_concept_does_not_hide_what_is_left_of_another():
    rng = np.random.default_rng(0)
    n = 2000
    g, t, X = rng.integers(0, 2, n), rng.normal(size=n), rng.normal(size=(n, 20))
    X[:, 0] += 0.45 * g
    X[:, 1] += 2 * t

    def both(rows):
        return {"gender": g[rows], "when": 1e15 * t[rows]}

    fit, new = slice(0, 300), slice(300, None)
    e = ex.SAL(1).fit(X[fit], both(fit))
    assert not e.certificate_.erased
    assert e.erasure_.meta["fit"]["left"] > 0.01
    for rows in ((X[fit], both(fit)), ()):
        a = ex.audit(e, *rows, X_test=X[new], y_test=both(new), probes=RIDGE)
        assert a.verdict.explained is not True
        assert "no excuse" in a.verdict.excuse


@pytest.mark.filterwarnings("ignore::expunge.errors.UnitsMatter")
@pytest.mark.parametrize("eraser", [ex.SAL(1), ex.INLP(1)], ids=repr)
def test_a_wide_column_does_not_hide_what_is_left_in_others(eraser):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 500)
    X = rng.normal(size=(500, 10)) + 0.5 * np.eye(10)[y]
    X[:, 5] = 1e16 * (X[:, 5] + (y == 1)) + 1.7e18
    assert eraser.fit(X, y).erasure_.meta["fit"]["left"] > 0.01


@pytest.mark.parametrize(
    "eraser", [ex.LEACE(), ex.SAL(), ex.RLACE(), ex.MeanProjection(), ex.OracleLEACE()], ids=repr
)
@pytest.mark.parametrize("constant", [3.0, 1.7e18])
@pytest.mark.filterwarnings("ignore::expunge.errors.UnitsMatter")
def test_exact_erasers_are_exact_in_any_units(eraser, constant):
    rng = np.random.default_rng(2)
    y = rng.integers(0, 3, 400)
    X = rng.normal(size=(400, 6)) + np.eye(6)[y]
    X[:, 1] *= 1e3
    X[:, 5] = constant
    fitted = eraser.fit(X, y)
    map_ = getattr(fitted, "erasure_", None) or fitted.conditional_erasure_
    record = map_.meta["fit"]
    assert record["left"] < 1e-9
    assert record.get("correlation", 0.0) < 1e-6


def test_a_column_that_was_only_made_small_is_no_exact_erasure():
    """Nearly all of the one column that tells is gone, but what is left of it tells the same."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 500)
    X = np.column_stack([2.0 * y - 1, rng.normal(size=(500, 2)) * 1e-9])
    record = ex.LEACE(strength=1 - 1e-7).fit(X, y).erasure_.meta["fit"]
    assert record["left"] < 1e-6
    assert record["correlation"] > 0.01


def other_concept(n=2500, k=300):
    rng = np.random.default_rng(4)
    g, r, X = rng.integers(0, 2, n), rng.integers(0, 2, n), rng.normal(size=(n, 40))
    X[:, 0] += 3 * g
    X[:, 1] += 0.35 * r
    return X, g, r, ex.RLACE().fit(X[:k], g[:k]).erasure_, k


def test_another_concept_with_the_same_labels_has_no_excuse():
    X, _, r, e, k = other_concept()
    a = ex.audit(e, X[:k], r[:k], X[k:], r[k:], probes=LINEAR)
    assert (a.verdict.linear, a.verdict.explained) == ("found", False)
    assert "on the training rows" in a.verdict.headline
    alone = ex.audit(e, X_test=X[k:], y_test=r[k:], probes=LINEAR)
    assert alone.verdict.linear == "found"
    assert "if this is the concept it was fitted for" in alone.verdict.headline
    assert alone.verdict.condition in " ".join(str(alone).split())


def test_the_concept_of_the_fit_has_its_excuse_without_conditions():
    X, g, _, e, k = other_concept()
    a = ex.audit(e, X[:k], g[:k], X[k:], g[k:], probes=LINEAR)
    assert (a.verdict.linear, a.verdict.explained) == ("found", True)
    assert "if this" not in a.verdict.headline


@pytest.mark.parametrize("numbers", [False, True])
def test_a_concept_unlike_that_of_the_fit_is_not_excused(numbers):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(1500, 30))
    z = rng.normal(size=1500) if numbers else rng.integers(0, 2, 1500)
    X[:, 0] += 3 * z
    e = ex.LEACE().fit(X[:200], z[:200]).erasure_
    other = 7 * z if numbers else (rng.random(1500) < 0.1 + 0.2 * z).astype(int)
    a = ex.audit(e, X_test=X[200:], y_test=other[200:], probes="linear")
    assert a.verdict.explained is None
    assert "may be another concept" in a.verdict.excuse


def test_one_of_several_concepts_that_were_erased_together():
    rng = np.random.default_rng(6)
    n, k = 1500, 400
    g, lang, X = rng.integers(0, 2, n), rng.integers(0, 3, n), rng.normal(size=(n, 40))
    X[:, 0] += 3 * g
    X[:, 2] += lang == 1
    e = ex.LEACE().fit(X[:k], {"gender": g[:k], "lang": lang[:k]}).erasure_
    for y in (g, lang):
        a = ex.audit(e, X[:k], y[:k], X[k:], y[k:], probes=LINEAR[1:])
        assert a.certificates["train"].certificate.erased
        assert a.verdict.excuse == ""
        assert a.residue.n == k
        share = np.mean(y[:k] == 1) if y is g else 2 / 9  # of three classes, each against the rest
        wanted = k * share * (1 - share) if y is g else k * share
        assert a.residue.n_eff == pytest.approx(wanted, rel=0.05)
    a = ex.audit(e, X_test=X[k:], y_test={"gender": g[k:]}, probes=LINEAR[1:])
    assert "another concept" not in a.verdict.excuse
    assert a.residue is not None
    lang[lang == 0] = 2  # two of three classes, which only one of the concepts had
    a = ex.audit(e, X_test=X[k:], y_test={"lang": lang[k:]}, probes=LINEAR[1:])
    assert a.residue.n_eff == pytest.approx(k * 2 / 3 / 4, rel=0.1)


@pytest.mark.parametrize("factor", [1e6, 1e-6])
def test_the_residue_does_not_depend_on_units(factor):
    rng = np.random.default_rng(7)
    y, X = rng.integers(0, 2, 1000), rng.normal(size=(1000, 60))
    X[:, 0] += 2 * y
    concept = check_concept(y, 1000)
    plain = expected_residue(ex.Moments.of(X, concept), 4000)
    X[:, 59] = factor * X[:, 59] + 1e3 * factor
    found = expected_residue(ex.Moments.of(X, concept), 4000)
    assert found.d == plain.d == 60
    assert found.q == pytest.approx(plain.q, rel=1e-6)
    X[:, 59] = 1.7e18  # constant
    X[:, 58] = X[:, 57] - X[:, 56]
    assert expected_residue(ex.Moments.of(X, concept), 4000).d == 58


def test_the_residue_is_that_of_the_classes_that_are_tested():
    rng = np.random.default_rng(8)
    y = rng.integers(0, 3, 900)
    X = rng.normal(size=(900, 6)) + 1.5 * np.eye(6)[y]
    new = rng.integers(0, 2, 2000)
    Z = rng.normal(size=(2000, 6)) + 1.5 * np.eye(6)[new]
    e = ex.LEACE().fit(X, y).erasure_
    with_fit = ex.audit(e, X, y, Z, new, probes=LINEAR[1:])
    alone = ex.audit(e, X_test=Z, y_test=new, probes=LINEAR[1:])
    for a in (with_fit, alone):
        assert a.fresh_rows.after["linear"].chance == 0.5
        assert 0.5 < a.residue.balanced_accuracy < 0.56
        assert a.residue.n_eff == pytest.approx(600 / 4, rel=0.1)  # two classes of 300 rows each
    y[0], y[y == 2] = 2, 0  # a class of one row stays in the fit
    assert ex.compare(X, y, ["LEACE"], runs=1, probes=LINEAR[1:]).residue["here"] >= 0.5
    path = ex.rank_path(X, y, ranks=[2], X_test=Z, y_test=new)
    assert path.residue.here("balanced_accuracy") >= 0.5
