"""What is known of the fit: whether sampling error is an excuse, and whose rows are fresh."""

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn.linear_model import LogisticRegression

import expunge as ex
from expunge.audit.residue import FitSize, expected_residue
from expunge.inputs import check_concept

LINEAR = ["logistic regression, ridge 0.01", "linear discriminant"]


def draw(rng, n, *, d=40, gap=3.0, leaning=0.5):
    y = (rng.random(n) < leaning).astype(int)
    return rng.normal(size=(n, d)) + gap * np.outer(y, np.eye(d)[0]), y


# -- the excuse ----------------------------------------------------------------------------------


def test_an_eraser_that_is_not_exact_has_no_excuse():
    """Fitted on 20,000 rows, audited by someone with few: their rows do not explain its faults."""
    rng = np.random.default_rng(0)
    X, y = draw(rng, 20_000, gap=2.0)
    eraser = ex.LEACE(strength=0.8).fit(X, y)
    assert not eraser.certificate_.erased
    few, labels = draw(rng, 900, gap=2.0)
    for rows in ((few, labels), (few[:450], labels[:450], few[450:], labels[450:])):
        a = ex.audit(eraser, *rows, probes=LINEAR)
        assert (a.verdict.linear, a.verdict.explained) == ("found", False)
        assert a.residue is None
        assert "no excuse" in a.verdict.headline
        assert "20 % of the covariance" in a.verdict.headline
        assert "which sampling error of the fit explains" not in str(a)


@pytest.mark.parametrize(
    "eraser",
    [
        ex.RLACE(strength=0.7),
        ex.RLACE(fit_intercept=False),
        ex.INLP(2),
        ex.OracleLEACE(strength=0.6),
    ],
    ids=["strength", "no intercept", "INLP", "oracle at part strength"],
)
def test_no_part_of_an_erasure_pleads_sampling_error(eraser):
    rng = np.random.default_rng(1)
    X, y = draw(rng, 3000, d=6)
    a = ex.audit(eraser.fit(X + 1, y), X + 1, y, *draw(rng, 1000, d=6), probes=LINEAR[:1])
    assert a.residue is None
    assert "no excuse" in a.verdict.excuse


@pytest.mark.parametrize(
    "eraser", [ex.RLACE(), ex.LEACE(), ex.SAL(), ex.MeanProjection(), ex.OracleLEACE()], ids=repr
)
def test_the_residue_is_that_of_the_fit_and_not_of_the_rows_at_hand(eraser):
    rng = np.random.default_rng(2)
    X, y = draw(rng, 6000)
    few = draw(rng, 600)
    a = ex.audit(eraser.fit(X, y), *few, probes=LINEAR)
    assert a.verdict.excuse == ""
    assert a.residue.n == 6000
    told = isinstance(eraser, ex.OracleLEACE)
    assert a.residue.q == pytest.approx((40 if told else 39) / 1500, rel=0.1)


def test_weights_make_a_fit_smaller():
    """Half of the rows count nine times as much: the fit is worth fewer rows than it has."""
    rng = np.random.default_rng(3)
    X, y = draw(rng, 4000)
    w = np.where(np.arange(4000) < 2000, 9.0, 1.0)
    whole = ex.LEACE().fit(X, y, sample_weight=w)
    parts = ex.LEACE()
    for i in range(4):
        parts.partial_fit(X[i::4], y[i::4], sample_weight=w[i::4])
    effective = w.sum() ** 2 / np.sum(w**2)
    for eraser in (whole, parts):
        assert eraser.erasure_.meta["fit"]["effective_n"] == pytest.approx(effective)
        a = ex.audit(eraser, *draw(rng, 600), probes=LINEAR[:1])
        assert a.residue.n_eff == pytest.approx(effective / 4, rel=0.01)
    assert ex.LEACE().fit(X, y).erasure_.meta["fit"]["effective_n"] == 4000


def test_artifacts_of_old_versions_say_that_it_is_not_known():
    rng = np.random.default_rng(4)
    X, y = draw(rng, 500)
    new = draw(rng, 4000)
    erasure = ex.RLACE().fit(X, y).erasure_
    meta = {key: value for key, value in erasure.meta.items() if key != "fit"}
    old = ex.Erasure(erasure.left, erasure.right, erasure.center, meta=meta)
    a = ex.audit(old, *new, probes=LINEAR)
    assert (a.verdict.linear, a.verdict.explained, a.residue) == ("found", None, None)
    assert "not known" in a.verdict.excuse
    assert "not known" in str(a)
    with_rows = ex.audit(old, X, y, *new, probes=LINEAR)  # whose fit is there to look at
    assert with_rows.verdict.excuse == ""
    assert with_rows.residue.n == 500


def test_another_concept_and_a_chain_of_erasures_have_no_known_excuse():
    rng = np.random.default_rng(5)
    X, y = draw(rng, 600, d=5)
    erasure = ex.RLACE().fit(X, y).erasure_
    names = np.array(["p", "q", "r"])[np.arange(600) % 3]
    a = ex.audit(erasure, X, names, *[rng.normal(size=(300, 5)), names[:300]], probes=LINEAR)
    assert "another concept" in a.verdict.excuse
    chain = erasure.then(ex.LEACE().fit(X, names).erasure_)
    a = ex.audit(chain, X, y, *draw(rng, 300, d=5), probes=LINEAR)
    assert "several erasures" in a.verdict.excuse


# -- the oracle ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("gap", "d"), [(0.3, 12), (3.0, 12)])
def test_the_oracle_leaves_all_of_the_sampling_error(gap, d):
    """With known means what survives is known: e for the oracle, a part of it for a projection."""
    rng = np.random.default_rng(6)
    means, left = gap * np.eye(d)[0], {"oracle": [], "projection": []}
    wanted = {"oracle": [], "projection": []}
    for _ in range(150):
        X, y = draw(rng, 400, d=d, gap=gap, leaning=0.8)
        moments = ex.Moments.of(X, check_concept(y, 400))
        oracle = ex.OracleLEACE().fit(X, y).conditional_erasure_
        moved = oracle.transform(np.vstack([0 * means, means]), concept=[0, 1])
        left["oracle"].append(np.sum((moved[1] - moved[0]) ** 2))
        left["projection"].append(np.sum((ex.RLACE().fit(X, y).erasure_.matrix() @ means) ** 2))
        wanted["oracle"].append(expected_residue(moments, 0, conditional=True).q)
        wanted["projection"].append(expected_residue(moments, 0).q)
    assert np.mean(left["oracle"]) == pytest.approx(np.mean(wanted["oracle"]), rel=0.15)
    assert np.mean(left["projection"]) == pytest.approx(np.mean(wanted["projection"]), rel=0.25)
    assert np.mean(left["oracle"]) > np.mean(left["projection"])


def test_a_given_size_of_the_fit_replaces_that_of_the_rows():
    rng = np.random.default_rng(7)
    X, y = draw(rng, 1000)
    moments = ex.Moments.of(X, check_concept(y, 1000))
    large = expected_residue(moments, 100, fit=FitSize(50_000, 50_000.0, (0.25, 0.25)))
    assert large.n == 50_000
    assert large.q == pytest.approx(39 / 12_500, rel=0.01)
    assert large.balanced_accuracy == pytest.approx(ndtr(np.sqrt(large.q) / 2), abs=1e-6)
    assert expected_residue(moments, 100).q > 20 * large.q


# -- whose rows are fresh ------------------------------------------------------------------------


def test_rows_of_ones_own_are_fresh_whatever_they_are_called():
    rng = np.random.default_rng(8)
    X, y = draw(rng, 5000, d=8)
    erasure = ex.RLACE().fit(X, y).erasure_
    own, labels = draw(rng, 3000, d=8)
    found = [
        ex.audit(erasure, own, labels, probes=LINEAR),
        ex.audit(erasure, X_test=own, y_test=labels, probes=LINEAR),
        ex.audit(erasure, own[:1000], labels[:1000], own[1000:], labels[1000:], probes=LINEAR),
    ]
    for a in found:
        assert a.fresh_rows.before["linear"].strongest.low > 0.85
        assert a.verdict.linear != "not shown"
        assert "training rows only" not in str(a)
        assert a.same_rows is None
        assert a.fresh_rows.after["linear"].n_test == a.to_dict()["data"]["n_fresh"] == 3000
        assert a.to_dict()["data"]["n_train"] == 0
    values = {a.fresh_rows.after["linear"].strongest.value for a in found}
    assert len(values) == 1
    assert any("not in the fit" in note for note in found[0].to_dict()["data"]["notes"])
    assert found[1].certificates.keys() == {"test"}


def test_rows_of_the_fit_among_ones_own_are_set_aside():
    rng = np.random.default_rng(9)
    X, y = draw(rng, 1500, d=8)
    erasure = ex.RLACE().fit(X[:700], y[:700]).erasure_
    a = ex.audit(erasure, X, y, probes=LINEAR)
    assert a.fresh_rows.after["linear"].n_test == 800
    assert a.to_dict()["data"]["n_train"] == 700
    assert a.same_rows.after["linear"].status == "at chance"
    assert ex.audit(erasure, X[:700], y[:700], probes=LINEAR).verdict.linear == "not shown"


def test_rows_of_the_fit_in_another_form_are_not_called_fresh():
    """Rounded to 16 bits no fingerprint knows them; their means are too equal to be fresh."""
    rng = np.random.default_rng(10)
    X, y = draw(rng, 2000, d=8)
    erasure = ex.RLACE().fit(X, y).erasure_
    for rows in (X.astype(np.float16), X * (1 + 1e-6)):
        a = ex.audit(erasure, rows, y, probes=LINEAR)
        assert a.verdict.linear == "not shown"
        assert "in another form" in a.verdict.headline


def test_rows_of_16_bits_are_erased_as_the_fit_saw_them():
    rng = np.random.default_rng(11)
    X, y = draw(rng, 6000, d=20)
    half = (X + 10).astype(np.float16)
    erasure = ex.RLACE().fit(half[:3000], y[:3000]).erasure_
    a = ex.audit(erasure, half[:3000], y[:3000], half[3000:], y[3000:], probes="linear")
    assert a.fresh_rows.before["linear"].strongest.low > 0.85
    same = a.same_rows.after["linear"]
    assert same.status == "at chance"
    assert same.strongest.value == pytest.approx(0.5, abs=0.002)
    assert any("16 bits" in note for note in a.to_dict()["data"]["notes"])
    assert a.verdict.warnings == ()


def test_rows_of_16_bits_that_tell_the_concept_once_they_are_rounded_are_named():
    """It said "at chance" of rows erased in 32 bits; those that `transform` gives read 80 %."""
    rng = np.random.default_rng(0)

    def draw_years(n):
        y = rng.integers(0, 2, n)
        years = 2010.0 + rng.integers(0, 4, (n, 5)) + (rng.random((n, 5)) < 0.35 * y[:, None])
        proxy, wide = np.where(rng.random(n) < 0.8, y, 1 - y), 1e4 * rng.normal(size=n)
        return np.column_stack([years, proxy, wide]).astype(np.float16), y

    (X, y), (F, g) = draw_years(4000), draw_years(4000)
    with pytest.warns(ex.RoundingShows):  # though one column is wide
        eraser = ex.LEACE().fit(X, y)
    clean = [eraser.transform(A).astype(np.float64) for A in (X, F)]
    mean, spread = clean[0].mean(axis=0), clean[0].std(axis=0)
    probe = LogisticRegression().fit((clean[0] - mean) / spread, y)
    assert probe.score((clean[1] - mean) / spread, g) > 0.75
    a = ex.audit(eraser, X, y, F, g, probes="linear")
    assert any("written as float16 tell the concept" in said for said in a.verdict.warnings)
    assert "Warning: Erased rows written as float16" in str(a)


def test_tensors_and_frames_are_audited_like_arrays():
    torch = pytest.importorskip("torch")
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(12)
    X, y = draw(rng, 1200, d=5)
    X = X.astype(np.float32)
    eraser = ex.RLACE().fit(X[:600], y[:600])
    wanted = ex.audit(eraser, X[:600], y[:600], X[600:], y[600:], probes=LINEAR).fresh_rows
    for convert in (torch.from_numpy, pd.DataFrame):
        a = ex.audit(eraser, convert(X[:600]), y[:600], convert(X[600:]), y[600:], probes=LINEAR)
        found = a.fresh_rows.after["linear"].strongest
        assert found.value == pytest.approx(wanted.after["linear"].strongest.value, abs=0.01)
    half = torch.from_numpy(X).bfloat16()
    eraser = ex.RLACE().fit(half[:600], y[:600])
    a = ex.audit(eraser, half[:600], y[:600], half[600:], y[600:], probes=LINEAR)
    assert a.same_rows.after["linear"].strongest.value == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"X_train": None}, "belong together"),
        ({"X_train": None, "y_train": None}, "no rows to audit on"),
        ({"ids": np.arange(7)}, "name every row"),
        ({"ids": (np.arange(300), None), "X_test": None}, "belong together"),
    ],
)
def test_what_is_missing_is_named(changes, words):
    rng = np.random.default_rng(13)
    X, y = draw(rng, 300, d=4)
    given = {"erasure": ex.RLACE().fit(X, y).erasure_, "X_train": X, "y_train": y}
    if "X_test" in changes:
        given |= {"y_test": y}
    with pytest.raises(ex.errors.InputError, match=words):
        ex.audit(**(given | changes))


def test_new_rows_passed_for_training_beside_rows_of_the_fit_for_testing():
    """The other way round: it raised a TypeError when it was printed."""
    rng = np.random.default_rng(0)
    X, y = draw(rng, 2000, d=5)
    erasure = ex.LEACE().fit(X[:1000], y[:1000]).erasure_
    a = ex.audit(erasure, X[1000:], y[1000:], X[:1000], y[:1000], probes="linear")
    assert a.fresh_rows.after["linear"].n_test == 1000
    assert "1,000 are known from the fit" in " ".join(str(a).split())
    assert "in another form" not in a.verdict.headline


def test_a_few_rows_that_agree_in_single_precision_do_not_cost_all_others():
    """Two of 100,000 had the hash of a row of the fit, so 98,000 were called undecided."""
    rng = np.random.default_rng(0)

    def draw_sparse(n):
        y, X = rng.integers(0, 2, n), np.zeros((n, 4))
        X[:, 0] = rng.normal(size=n)
        X[:, 1:] = rng.exponential(size=(n, 3)) * (rng.random((n, 3)) < 0.03)
        X[:, 1] += 0.5 * y * (rng.random(n) < 0.1)
        return X, y

    (X, y), (F, g) = draw_sparse(100_000), draw_sparse(100_000)
    erasure = ex.LEACE().fit(X, y).erasure_
    a = ex.audit(erasure, X_test=F, y_test=g, probes=["linear discriminant"])
    assert a.to_dict()["data"]["n_fresh"] > 99_000
    # a tenth of the test rows are rows of the fit: those it cannot tell are left out as before
    F[:10_000], g[:10_000] = X[:10_000], y[:10_000]
    a = ex.audit(erasure, X_test=F, y_test=g, probes=["linear discriminant"])
    assert a.to_dict()["data"]["n_undecided"] > 80_000


# -- what is said beside -------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [0, 1])
def test_labels_in_another_order_show_nothing(rank):
    """Shuffled, no probe finds them before or after: "at chance", even of an erasure of nothing."""
    rng = np.random.default_rng(0)
    X, y = draw(rng, 24_000, d=5)
    e = ex.LEACE().fit(X[:4000], y[:4000]).erasure_ if rank else ex.Erasure.identity(5)
    right = ex.audit(e, X_test=X[4000:], y_test=y[4000:], probes=LINEAR[1:], fresh=True)
    mixed = ex.audit(
        e, X_test=X[4000:], y_test=rng.permutation(y[4000:]), probes=LINEAR[1:], fresh=True
    )
    assert right.fresh_rows.before["linear"].status == "found"
    assert not any("in their order" in text for text in right.verdict.warnings)
    assert mixed.verdict.linear != "found"
    assert any("in their order" in text for text in mixed.verdict.warnings)
    assert "They did not find it before the erasure either" in mixed.verdict.headline


def test_bits_are_no_more_than_there_are():
    rng = np.random.default_rng(1)
    X, y = draw(rng, 60, d=30)
    a = ex.audit(ex.Erasure.identity(30), X_test=X, y_test=y, fresh=True, probes="linear")
    probes = a.fresh_rows.after["linear"].probes
    alone = [probe.intervals["bits"].high for probe in probes if "bits" in probe.intervals]
    assert max(alone) > 1
    bits = a.fresh_rows.after["linear"].bits
    share = y.mean()
    assert 0 <= bits.low <= bits.value <= bits.high
    assert bits.high <= -(share * np.log2(share) + (1 - share) * np.log2(1 - share)) + 1e-12
    for line in str(a).splitlines():
        assert len(line) <= 100


def test_the_least_change_is_not_that_of_maps_that_are_told_the_concept():
    rng = np.random.default_rng(2)
    X, y = draw(rng, 600, d=5)
    least = {}
    for eraser in (ex.LEACE(), ex.OracleLEACE()):
        a = ex.audit(
            eraser.fit(X[:300], y[:300]), X[:300], y[:300], X[300:], y[300:], probes=LINEAR[1:]
        )
        least[type(eraser).__name__] = a.to_dict()["damage"]["least_change"]
    assert least["LEACE"] > 0
    assert least["OracleLEACE"] is None


@pytest.mark.parametrize("frame", [False, True])
def test_whole_numbers_beside_classes_are_numbers_in_both_parts(frame):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(3)
    X, g = draw(rng, 1200, d=5)
    age = rng.integers(20, 60, 1200)
    X[:, 1] += age / 10
    both = pd.DataFrame({"g": g, "age": age}) if frame else {"g": g, "age": age}

    def part(rows):
        return both[rows] if frame else {name: column[rows] for name, column in both.items()}

    kinds = {"age": "continuous"}
    e = ex.LEACE(concept_type=kinds).fit(X[:600], part(slice(600)))
    for concept_type in ("auto", kinds):
        a = ex.audit(
            *(e, X[:600], part(slice(600)), X[600:], part(slice(600, None))),
            concept_type=concept_type,
            probes="linear",
        )
        assert a.to_dict()["concept"]["kind"] == "continuous"


@pytest.mark.parametrize("how", ["half", "digits"])
def test_rows_that_were_erased_before_are_known_by_few_digits_too(how):
    rng = np.random.default_rng(4)
    X, y = draw(rng, 2000, d=30)
    e = ex.LEACE().fit(X[:1000], y[:1000]).erasure_
    Z = e.transform(X[1000:])
    Z = Z.astype(np.float16).astype(np.float32) if how == "half" else Z.round(3)
    said = ex.audit(e, X_test=Z, y_test=y[1000:], probes=LINEAR[1:]).verdict.warnings
    assert any("as if they had been erased before" in text for text in said)
    said = ex.audit(e, X_test=X[1000:], y_test=y[1000:], probes=LINEAR[1:]).verdict.warnings
    assert not any("as if they had been erased before" in text for text in said)
