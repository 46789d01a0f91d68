"""Tables of whole numbers: rows that repeat by chance, ids, trees, columns in their own units."""

import numpy as np
import pytest

import expunge as ex
from expunge.audit.fresh import fresh_rows
from expunge.audit.given import AuditedRows
from expunge.audit.kernel_probes import choose_ridge, ridge_values
from expunge.audit.probes import choose_probes
from expunge.audit.protocols import Sizes, Terms, fresh_protocol
from expunge.audit.repeats import by_chance, discrete
from expunge.audit.sampling import groups_of
from expunge.inputs import check_concept, check_rows

LINEAR = ["logistic regression, ridge 0.01", "linear discriminant"]
TREES = "boosted trees"


def table(rng, n):
    """Counts and flags, four in five of class 1; most rows have a twin by chance."""
    y = (rng.random(n) < 0.8).astype(int)
    counts = np.minimum(rng.geometric(0.45 - 0.1 * y, n), 12)
    few = rng.poisson(0.2, (n, 2))
    flags = rng.random((n, 3)) < 0.5
    return np.column_stack([counts, rng.integers(0, 6, n), few, flags]).astype(float), y


def part(X, y, ids=None):
    rows = check_rows(X)
    return AuditedRows(rows, rows, check_concept(y, len(y)), None, None, ids)


def terms(probes, **changes):
    given = {"sizes": Sizes(), "confidence": 0.95, "leak": 0.02, "seed": 0} | changes
    return Terms(probes=choose_probes(probes, "classes"), **given)


# -- repeats -------------------------------------------------------------------------------------


def test_new_people_with_old_numbers_are_kept():
    rng = np.random.default_rng(0)
    X, y = table(rng, 4000)
    erasure = ex.LEACE().fit(X[:2000], y[:2000]).erasure_
    by_value = {row.tobytes() for row in X[:2000]}
    repeats = sum(row.tobytes() in by_value for row in X[2000:])
    assert repeats > 1000  # by value, most rows would be taken for rows of the fit
    a = ex.audit(erasure, X[:2000], y[:2000], X[2000:], y[2000:], probes=LINEAR)
    data = a.to_dict()["data"]
    assert data["n_fresh"] == 2000
    assert data["n_repeats"] == repeats
    assert data["repeats_expected"] == pytest.approx(repeats / 2000, abs=0.05)
    assert a.to_dict()["concept"]["test_means"][1] == pytest.approx(0.8, abs=0.03)
    assert any("kept as fresh" in note for note in data["notes"])
    assert a.fresh_rows.after["linear"].n_test == 2000


def test_without_the_rows_of_the_fit_its_fingerprint_tells():
    rng = np.random.default_rng(1)
    X, y = table(rng, 6000)
    erasure = ex.LEACE().fit(X[:4000], y[:4000]).erasure_
    a = ex.audit(erasure, X[4000:], y[4000:], probes=LINEAR)
    assert a.to_dict()["data"]["n_fresh"] == 2000
    assert ex.audit(erasure, X[:4000], y[:4000], probes=LINEAR).verdict.linear == "not shown"


def test_rows_of_the_fit_in_a_table_are_recognised_all_the_same():
    rng = np.random.default_rng(2)
    X, y = table(rng, 4000)
    meta = ex.LEACE().fit(X[:2000], y[:2000]).erasure_.meta
    assert not fresh_rows(check_rows(X[500:1500]), check_rows(X[:2000]), meta).fresh.any()
    mixed = fresh_rows(check_rows(X[1000:3000]), check_rows(X[:2000]), meta)  # half of them
    assert mixed.unclear
    assert not mixed.fresh.any()
    erasure = ex.LEACE().fit(X[:2000], y[:2000]).erasure_
    a = ex.audit(erasure, X[:2000], y[:2000], X[1000:3000], y[1000:3000], probes=LINEAR)
    assert a.verdict.linear == "not shown"
    assert "pass ids" in a.verdict.headline


def test_copies_of_real_numbers_are_no_chance():
    """Every row four times, cut at random: a test row's copies are in the fit."""
    rng = np.random.default_rng(3)
    X = np.repeat(rng.normal(size=(500, 5)), 4, axis=0)[rng.permutation(2000)]
    assert not by_chance(check_rows(X))
    found = fresh_rows(check_rows(X[1000:]), check_rows(X[:1000]), {})
    assert found.fresh.mean() < 0.2
    assert found.n_repeats == 0
    assert by_chance(check_rows(table(rng, 2000)[0]))
    assert by_chance(check_rows(rng.integers(0, 2, (500, 1))))
    assert not by_chance(check_rows(rng.normal(size=(500, 3))))
    assert discrete(table(rng, 2000)[0])
    assert not discrete(rng.normal(size=(500, 3)))


@pytest.mark.parametrize("how", ["ids", "trust"])
def test_ids_or_trust_replace_values(how):
    rng = np.random.default_rng(4)
    X, y = table(rng, 3000)
    erasure = ex.LEACE().fit(X[:1500], y[:1500]).erasure_
    given = {"fresh": True} if how == "trust" else {"ids": (np.arange(1500), np.arange(1000, 2500))}
    a = ex.audit(erasure, X[:1500], y[:1500], X[1000:2500], y[1000:2500], probes=LINEAR, **given)
    data = a.to_dict()["data"]
    assert data["n_fresh"] == (1500 if how == "trust" else 1000)
    assert data["judged_by"] == how
    assert any(how in note for note in data["notes"])


def test_rows_of_one_id_are_never_on_both_sides_and_no_independent_evidence():
    """60 people with 20 rows each and a label of their own: nothing is to be learnt of others."""
    rng = np.random.default_rng(5)
    who = np.repeat(np.arange(60), 20)
    X = rng.normal(size=(60, 5))[who] + 0.1 * rng.normal(size=(1200, 5))
    y = rng.integers(0, 2, 60)[who]
    near = terms(["nearest neighbours"])
    alone = fresh_protocol(part(X, y), near).after["nonlinear"]
    assert alone.strongest.low > 0.9  # people are recognised
    grouped = fresh_protocol(part(X, y, who), near).after["nonlinear"]
    assert grouped.status != "found"
    wide = grouped.strongest.high - grouped.strongest.low
    assert wide > 2 * (alone.strongest.high - alone.strongest.low)


def test_a_value_that_tells_the_class_is_learnt_from_others_who_have_it():
    """In a table equal rows are other people: a probe may learn from them."""
    rng = np.random.default_rng(6)
    X = rng.integers(0, 3, (3000, 4)).astype(float)
    code = X @ [1, 3, 9, 27]
    y = (rng.permutation(81)[code.astype(int)] % 2).astype(int)
    assert groups_of(check_rows(X)) is None
    found = fresh_protocol(part(X, y), terms([TREES, "nearest neighbours"])).after["nonlinear"]
    assert found.strongest.low > 0.95


# -- probes --------------------------------------------------------------------------------------


def test_trees_read_what_the_oracle_stamps_into_whole_numbers():
    rng = np.random.default_rng(7)
    X, y = table(rng, 4000)
    for eraser, told in ((ex.LEACE(), False), (ex.OracleLEACE(), True)):
        a = ex.audit(
            eraser.fit(X[:2000], y[:2000]),
            X[:2000],
            y[:2000],
            X[2000:],
            y[2000:],
            probes=[*LINEAR, TREES],
        )
        assert a.fresh_rows.before["nonlinear"].strongest.value < 0.65
        assert (a.fresh_rows.after["nonlinear"].strongest.value > 0.95) == told
        assert any("decimal point" in n for n in a.to_dict()["data"]["notes"]) == told
        assert a.residue.conditional == told


@pytest.mark.parametrize("probe", [*LINEAR, "RBF-SVM", "nearest neighbours"])
def test_a_column_in_large_units_does_not_drown_the_others(probe):
    """Income in cents beside a column of unit spread that gives the class away."""
    rng = np.random.default_rng(8)
    y = rng.integers(0, 2, 1500)
    X = np.column_stack([rng.normal(size=(1500, 3)), 1e6 * rng.normal(size=1500)])
    X[:, 0] += 3 * y
    (found,) = fresh_protocol(part(X, y), terms([probe])).after.values()
    assert found.strongest.low > 0.85


def test_the_kernel_machine_finds_what_a_tuned_one_finds():
    """Rings that a machine of the usual width and strength sees badly."""
    from sklearn.model_selection import GridSearchCV, cross_val_predict
    from sklearn.svm import SVC

    rng = np.random.default_rng(9)
    y = rng.integers(0, 2, 900)
    X = rng.normal(size=(900, 12))
    X[:, :3] *= (1 + 0.8 * y[:, None]) / 1.4
    X = X.astype(np.float32)
    grid = {"C": [0.1, 1, 3, 10, 30], "gamma": np.array([0.1, 0.3, 1, 3]) / (12 * X.var())}
    stock = GridSearchCV(SVC(class_weight="balanced"), grid, cv=3)
    reached = np.mean(cross_val_predict(stock, X, y, cv=3) == y)
    (found,) = fresh_protocol(part(X, y), terms(["RBF-SVM"])).after.values()
    assert reached > 0.6
    assert found.strongest.low < reached < found.strongest.high
    assert found.strongest.value > reached - 0.02


def test_kernel_regression_chooses_too():
    """Three waves across the rows: too fine for the usual width."""
    rng = np.random.default_rng(10)
    X = rng.normal(size=(900, 3)).astype(np.float32)
    z = np.sin(4 * X[:, 0]) + 0.3 * rng.normal(size=900)
    usual = ridge_values(X[:600], z[:600, None], X[600:], (1.0, 1.0))[:, 0]
    chosen = choose_ridge(X[:600], z[:600, None], 0)
    tuned = ridge_values(X[:600], z[:600, None], X[600:], chosen)[:, 0]
    errors = [np.mean((z[600:] - said) ** 2) / z[600:].var() for said in (usual, tuned)]
    assert errors[1] < min(0.7, errors[0] - 0.1)


# -- words ---------------------------------------------------------------------------------------


def test_word_tests_that_cannot_be_run_are_named_with_the_words_they_lack():
    from expunge.data import load_glove

    glove = load_glove()
    names = {"amy", "joan", "lisa", "sarah", "diana", "kate", "ann", "donna"}
    kept = np.array([word not in names for word in glove.words])
    words = [word for word, keep in zip(glove.words, kept, strict=True) if keep]
    erasure = ex.RLACE().fit(glove.train.X[:500], glove.train.y[:500]).erasure_
    a = ex.audit(
        erasure,
        glove.train.X[:500],
        glove.train.y[:500],
        vocabulary=(words, glove.vectors[kept]),
        probes=LINEAR[1:],
    )
    found = a.to_dict()["association"]
    assert found["weat"] == []
    skipped = {test["name"]: test for test in found["skipped"]}
    assert skipped.keys() == {"math-art", "professions-family", "science-art"}
    assert set(skipped["math-art"]["missing"]) == names
    assert "no word of the set" in skipped["math-art"]["reason"]
    text = str(a)
    assert "Skipped math-art" in text
    assert "amy" in text
