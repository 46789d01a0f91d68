"""The two protocols, the residue of sampling error, and which rows are fresh."""

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

import expunge as ex
from expunge.audit.fresh import fresh_rows, share_of_fit
from expunge.audit.given import AuditedRows
from expunge.audit.probes import choose_probes
from expunge.audit.protocols import Sizes, Terms, fresh_protocol, same_protocol, stratified
from expunge.audit.residue import expected_residue
from expunge.concept import Concept
from expunge.errors import InputError
from expunge.inputs import check_concept, check_rows


def draw(rng, n, *, d=10, gap=3.0, extra=0.0):
    """Two classes apart by `gap` in one direction and by `extra` in another."""
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, d))
    X[:, 0] += gap * y
    X[:, 1] += extra * y
    return X, y


def part(erasure, X, y):
    before, after = check_rows(X), check_rows(erasure.transform(X))
    return AuditedRows(before, after, check_concept(y, len(y)), None, None)


def terms(probes="linear", **changes):
    given = {"sizes": Sizes(), "confidence": 0.95, "leak": 0.02, "seed": 0} | changes
    return Terms(probes=choose_probes(probes, "classes"), tell=lambda note: None, **given)


# -- protocols -----------------------------------------------------------------------------------


def test_same_rows_are_at_chance_by_construction_and_fresh_rows_are_not():
    """60 features and 300 rows: sampling error leaves a lot, which only fresh rows show."""
    rng = np.random.default_rng(0)
    X, y = draw(rng, 300, d=60)
    erasure = ex.RLACE().fit(X, y).erasure_
    train, test = part(erasure, X, y), part(erasure, *draw(rng, 6000, d=60))
    same, fresh = same_protocol(train, test, terms()), fresh_protocol(test, terms())
    for protocol in (same, fresh):
        assert protocol.before["linear"].status == "found"
        assert protocol.before["linear"].strongest.value > 0.9
    assert same.after["linear"].status == "at chance"
    assert fresh.after["linear"].status == "found"
    residue = expected_residue(train.before.moments(train.concept), fresh.after["linear"].n_train)
    found = fresh.after["linear"].strongest
    assert residue.balanced_accuracy_here == pytest.approx(found.value, abs=0.03)
    assert residue.balanced_accuracy_here > 0.6


def test_the_strongest_probe_is_reported_with_limits_that_hold_for_all():
    rng = np.random.default_rng(0)
    X, y = draw(rng, 800, gap=1.0)
    nothing = ex.Erasure(np.zeros((10, 0)), np.zeros((0, 10)))
    result = fresh_protocol(part(nothing, X, y), terms()).after["linear"]
    values = {probe.name: probe.measures["balanced_accuracy"].value for probe in result.probes}
    assert result.strongest.value == max(values.values()) == values[result.worst]
    alone = next(p for p in result.probes if p.name == result.worst).intervals["balanced_accuracy"]
    assert result.strongest.low <= alone.value <= alone.high <= result.strongest.high
    assert result.strongest.high - result.strongest.low >= alone.high - alone.low
    assert 1.959 < result.quantile < 2.64  # between one probe and six independent ones


def test_rows_are_never_scored_by_a_probe_that_learnt_from_them():
    """Labels without any relation to the rows: a probe that saw a row would know its label."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 300)), rng.integers(0, 2, 400)  # separable by any linear probe
    nothing = ex.Erasure(np.zeros((300, 0)), np.zeros((0, 300)))
    result = fresh_protocol(part(nothing, X, y), terms()).after["linear"]
    assert abs(result.strongest.value - 0.5) < 0.08


def test_copies_of_a_row_do_not_teach_its_label():
    """Every row is there four times: a probe that learnt from a copy would know the label."""
    rng = np.random.default_rng(0)
    X, y = np.repeat(rng.normal(size=(150, 5)), 4, axis=0), np.repeat(rng.integers(0, 2, 150), 4)
    nothing = ex.Erasure(np.zeros((5, 0)), np.zeros((0, 5)))
    result = fresh_protocol(part(nothing, X, y), terms(["nearest neighbours"])).after["nonlinear"]
    assert abs(result.strongest.value - 0.5) < 0.1


@pytest.mark.parametrize(("n_test", "status"), [(20_000, "found"), (200, "cannot tell")])
def test_a_planted_leak_is_found_where_there_are_rows_to_find_it(n_test, status):
    """One half has the concept in one direction; the other half has 3 % more in another."""
    rng = np.random.default_rng(1)
    X, y = draw(rng, 30_000)
    erasure = ex.RLACE().fit(X, y).erasure_
    leaking = draw(rng, n_test, extra=0.1505)  # Φ(0.1505/2) = 0.53
    a = ex.audit(erasure, X, y, *leaking, probes="linear")
    assert a.fresh_rows.before["linear"].strongest.low > 0.85
    assert a.verdict.linear == status
    strongest = a.fresh_rows.after["linear"].strongest
    assert strongest.low < 0.53 < strongest.high
    if status == "found":
        assert "still find it" in a.verdict.headline
        assert a.verdict.explained is False  # the fit was large enough to exclude it
    else:
        assert "too few" in a.verdict.headline


def test_nearly_twice_chance_of_many_classes_is_no_chance():
    """Less than two points over chance, spread over all: none of the classes shows by itself."""
    rng = np.random.default_rng(2)
    y = rng.integers(0, 60, 10_000)
    X = rng.normal(size=(10_000, 8)) + 0.09 * rng.normal(size=(60, 8))[y]
    nothing = ex.Erasure(np.zeros((8, 0)), np.zeros((0, 8)))
    for labels, status in ((y, "found"), (rng.permutation(y), "at chance")):
        found = fresh_protocol(part(nothing, X, labels), terms(["linear discriminant"]))
        result = found.after["linear"]
        assert result.strongest.high < 1 / 60 + 0.02
        assert result.part is None
        assert result.status == status


def test_what_sampling_error_explains_is_said_to_be():
    rng = np.random.default_rng(2)
    X, y = draw(rng, 500, d=40)
    erasure = ex.RLACE().fit(X, y).erasure_
    a = ex.audit(erasure, X, y, *draw(rng, 8000, d=40), probes="linear")
    assert (a.verdict.linear, a.verdict.explained) == ("found", True)
    assert "sampling error" in a.verdict.headline


def test_standard_errors_of_cross_fitting_are_those_of_repetition():
    """Rows teach each other's probes: errors of independent rows would be a quarter too small."""
    rng = np.random.default_rng(4)
    nothing = ex.Erasure(np.zeros((5, 0)), np.zeros((0, 5)))
    alone = terms(["linear discriminant"])
    found = []
    for _ in range(250):
        X, y = rng.normal(size=(200, 5)), rng.integers(0, 2, 200)
        (probe,) = fresh_protocol(part(nothing, X, y), alone).after["linear"].probes
        found.append(probe.measures)
    for name, most in (("balanced_accuracy", 1.15), ("auc", 1.15), ("bits", 1.6)):
        error = np.mean([measures[name].error for measures in found])
        repeated = np.std([measures[name].value for measures in found])
        assert 0.87 < error / repeated < most, name


def test_false_alarms_are_rare():
    """Nothing there, 24 times, six probes each: the largest must not count as found."""
    rng = np.random.default_rng(3)
    nothing = ex.Erasure(np.zeros((5, 0)), np.zeros((0, 5)))
    alarms = 0
    for _ in range(24):
        X, y = rng.normal(size=(300, 5)), rng.integers(0, 2, 300)
        found = fresh_protocol(part(nothing, X, y), terms()).after["linear"]
        alarms += found.status == "found"
    assert alarms <= 3  # 0.6 expected


# -- samples -------------------------------------------------------------------------------------


def test_samples_keep_the_shares_of_classes():
    y = np.repeat([0, 1, 2], [7000, 2500, 500])
    rows = stratified(Concept("classes", y, (0, 1, 2)), 200, 0)
    assert len(np.unique(rows)) == 200
    np.testing.assert_array_equal(np.bincount(y[rows]), [140, 50, 10])
    np.testing.assert_array_equal(rows, stratified(Concept("classes", y, (0, 1, 2)), 200, 0))
    assert not np.array_equal(rows, stratified(Concept("classes", y, (0, 1, 2)), 200, 1))


def test_sizes_of_samples_are_stated():
    rng = np.random.default_rng(0)
    X, y = draw(rng, 900)
    erasure = ex.RLACE().fit(X[:500], y[:500]).erasure_
    sizes = Sizes(linear_test=100, linear_train=300, linear_before=200)
    a = ex.audit(erasure, X[:500], y[:500], X[500:], y[500:], probes="linear", sizes=sizes)
    same, fresh = a.same_rows.after["linear"], a.fresh_rows.after["linear"]
    assert (same.n_train, same.n_train_all, same.n_test, same.n_test_all) == (300, 500, 100, 400)
    assert a.same_rows.before["linear"].n_train == 200
    assert (fresh.n_train, fresh.n_test, fresh.n_test_all) == (80, 100, 400)
    assert "trained on 300 of 500 rows, tested on 100 of 400" in str(a)
    assert any("by construction" in note for note in a.to_dict()["data"]["notes"])
    with pytest.raises(InputError, match="folds"):
        Sizes(linear_folds=1)


# -- fresh rows ----------------------------------------------------------------------------------


def test_rows_of_the_fit_are_never_called_fresh():
    rng = np.random.default_rng(0)
    X, y = draw(rng, 1200)
    erasure = ex.RLACE().fit(X[:800], y[:800]).erasure_
    a = ex.audit(erasure, X[:800], y[:800], X[600:], y[600:], probes="linear")
    data = a.to_dict()["data"]
    assert (data["n_in_train"], data["n_known"], data["n_fresh"]) == (200, 200, 400)
    assert a.fresh_rows.after["linear"].n_test == 400
    assert any("200 test rows were left out" in note for note in data["notes"])


def test_rows_of_the_fit_that_were_not_passed_for_training_are_recognised():
    """The fit had 800 rows; only 500 are passed as training rows, 300 pose as test rows."""
    rng = np.random.default_rng(0)
    X, _ = draw(rng, 1000)
    meta = ex.RLACE().fit(X[:800], np.arange(800) % 2).erasure_.meta
    found = fresh_rows(check_rows(X[500:]), check_rows(X[:500]), meta)
    np.testing.assert_array_equal(np.flatnonzero(found.fresh), np.arange(300, 500))
    assert (found.n_in_train, found.n_known, found.n_undecided) == (0, 300, 0)
    assert share_of_fit(check_rows(X[700:]), meta) == pytest.approx(100 / 300)


def test_where_the_fingerprint_knows_a_part_only_the_proven_rows_are_fresh():
    """A fingerprint keeps 2,048 of 10,000 rows; the others of the fit must not slip through."""
    rng = np.random.default_rng(0)
    X, _ = draw(rng, 14_000)
    meta = ex.RLACE().fit(X[:10_000], np.arange(10_000) % 2).erasure_.meta
    # 5,000 of the fit and 4,000 others
    found = fresh_rows(check_rows(X[5_000:]), check_rows(X[:5_000]), meta)
    fresh = np.flatnonzero(found.fresh)
    assert found.n_known > 800
    assert found.n_undecided > 5_000
    assert 500 < len(fresh) < 1_200  # about 2,048 in 10,000 of the others can be proven
    assert fresh.min() >= 5_000
    # nothing recognised: nothing is in doubt
    honest = fresh_rows(check_rows(X[10_000:]), check_rows(X[:10_000]), meta)
    assert honest.fresh.all()


def test_composed_erasures_know_the_rows_of_their_steps():
    rng = np.random.default_rng(0)
    X, y = draw(rng, 300)
    first, second = (ex.RLACE().fit(X[rows], y[rows]).erasure_ for rows in (slice(100), slice(200)))
    found = fresh_rows(check_rows(X), None, first.then(second).meta)
    np.testing.assert_array_equal(found.fresh, np.arange(300) >= 200)


def test_copies_in_another_precision_are_the_same_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4))
    copy = check_rows(X.astype(np.float32))
    assert not fresh_rows(check_rows(X), copy, {}).fresh.any()


# -- the residue ---------------------------------------------------------------------------------


def measured(kind, *, n, d, gap, seed, fits=4, fresh=20_000):
    """AUC (R² for numbers) and balanced accuracy on new rows, averaged over a few fits."""
    rng = np.random.default_rng(seed)
    means = gap * rng.normal(size=(4, d)) / np.sqrt(2 * d)
    direction = rng.normal(size=d) / np.sqrt(d)

    def rows(size):
        if kind == "number":
            y = rng.normal(size=size)
            return rng.normal(size=(size, d)) + gap * np.outer(y, direction), y
        if kind == "classes":
            y = rng.integers(0, 4, size)
            return rng.normal(size=(size, d)) + means[y], y
        y = (rng.random(size) < 0.3).astype(int)
        return rng.normal(size=(size, d)) + gap * np.outer(y, direction), y

    found, expected = [], []
    for _ in range(fits):
        X, y = rows(n)
        erasure = ex.RLACE(loss="squared" if kind == "number" else "cross_entropy").fit(X, y)
        wanted = expected_residue(ex.Moments.of(X, check_concept(y, n)), 1000)
        A, a = rows(fresh)
        B, b = rows(fresh)
        A, B = erasure.transform(A), erasure.transform(B)
        if kind == "number":
            found.append([LinearRegression().fit(A, a).score(B, b)])
            expected.append([wanted.r2])
            continue
        probe = LinearDiscriminantAnalysis(
            priors=np.full(4, 0.25) if kind == "classes" else [0.5] * 2
        )
        P = probe.fit(A, a).predict_proba(B)
        auc = roc_auc_score(b, P if kind == "classes" else P[:, 1], multi_class="ovr")
        found.append([auc, balanced_accuracy_score(b, P.argmax(axis=1))])
        expected.append([wanted.auc, wanted.balanced_accuracy])
    return np.mean(found, axis=0), np.mean(expected, axis=0)


@pytest.mark.parametrize(
    ("kind", "n", "d", "gap", "least"),
    [
        ("binary", 1000, 40, 3.0, 0.10),  # well separated: q = (d - 1)/n_eff
        ("binary", 400, 40, 1.0, 0.10),  # badly separated: less can come back
        ("classes", 1500, 40, 3.0, 0.07),
        ("number", 800, 40, 1.0, 0.02),
    ],
)
def test_the_expected_residue_is_what_comes_back(kind, n, d, gap, least):
    found, expected = measured(kind, n=n, d=d, gap=gap, seed=0)
    chance = [0.0] if kind == "number" else [0.5, 0.25 if kind == "classes" else 0.5]
    excess, wanted = found - chance, expected - chance
    assert excess[0] > least  # there is something to expect
    np.testing.assert_allclose(excess, wanted, rtol=0.2)


def test_the_residue_of_single_fits_varies_as_stated():
    """With known means what survives is known: its mean is q, one in twenty is above high."""
    rng = np.random.default_rng(0)
    found, q, high = [], [], []
    for _ in range(300):
        X, y = draw(rng, 400, d=8)
        erasure = ex.RLACE().fit(X, y).erasure_
        wanted = expected_residue(ex.Moments.of(X, check_concept(y, 400)), 100)
        left = erasure.matrix() @ (3.0 * np.eye(8)[0])  # of the true difference of the means
        found.append(left @ left)
        q.append(wanted.q)
        high.append(wanted.high("auc"))
    assert np.mean(found) == pytest.approx(np.mean(q), rel=0.1)
    above = ndtr(np.sqrt(np.array(found) / 2)) > high
    assert 0.02 < above.mean() < 0.09


def test_a_residue_without_enough_rows_supposes_well_separated_classes():
    rng = np.random.default_rng(0)
    X, y = draw(rng, 60, d=100)
    found = expected_residue(ex.Moments.of(X, check_concept(y, 60)), 100)
    assert found.separation is None
    assert found.q == pytest.approx((found.d - 1) / found.n_eff)


@pytest.mark.filterwarnings("ignore::expunge.errors.NothingLeft")
@pytest.mark.parametrize("scale", [1.0, 1e6])
@pytest.mark.parametrize("erased", [False, True])
def test_rows_that_are_nothing_but_their_class_can_be_audited(erased, scale):
    """Within classes nothing varies: what was left of that, rounding, was solved with."""
    y = np.random.default_rng(0).integers(0, 3, 300)
    for X in (np.eye(3)[y], np.column_stack([[0.1, 0.7, 0.4], [0.3, 0.2, 0.9]])[y]):
        X = scale * X
        erasure = ex.LEACE().fit(X, y).erasure_ if erased else ex.Erasure.identity(X.shape[1])
        a = ex.audit(erasure, X_test=X, y_test=y, fresh=True, probes="linear")
        found = {
            probe.name: probe.measures["accuracy"].value
            for probe in a.fresh_rows.after["linear"].probes
        }
        assert (min(found.values()) == 1) is not erased, found
