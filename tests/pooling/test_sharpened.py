"""Few labels and many rows: unbiased, never worse than labels alone, and back to them in doubt."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.random import default_rng
from scipy.special import softmax

import expunge as ex
from expunge.inputs import check_concept, check_rows
from expunge.pooling.cross_fitting import CrossFit, cross_fit, fold_numbers
from expunge.pooling.membership import told_apart
from expunge.pooling.sharpened import influence_of, sharpen

POOLING = {
    "RLACE": ex.RLACE,
    "LEACE": ex.LEACE,
    "MeanProjection": ex.MeanProjection,
    "SAL": ex.SAL,
    "SPLINCE": ex.SPLINCE,
    "OracleLEACE": ex.OracleLEACE,
    "pls": ex.RayleighEraser,
    "cca": lambda: ex.RayleighEraser(objective="cca"),
}


def planted(n, d=20, gap=2.5, classes=2, seed=0):
    rng = default_rng(seed)
    y = rng.integers(0, classes, n)
    directions = np.linalg.qr(default_rng(99).normal(size=(d, classes)))[0].T
    return rng.normal(size=(n, d)) + gap * directions[y], y


def left_on_new_rows(eraser, X, y):
    """Length of the differences of class means, after erasure, in units of the spread."""
    clean = eraser.transform(X)
    means = np.stack([clean[y == k].mean(axis=0) for k in np.unique(y)])
    return float(np.linalg.norm(means - means.mean(axis=0)))


@pytest.mark.parametrize("name", [name for name in POOLING if name != "OracleLEACE"])
@pytest.mark.parametrize("classes", [2, 4])
def test_less_is_left_on_new_rows(name, classes):
    X, y = planted(3100, classes=classes, gap=4.0)
    new, new_y = planted(40_000, classes=classes, gap=4.0, seed=5)
    alone = POOLING[name]().fit(X[:100], y[:100])
    helped = POOLING[name]().fit(X[:100], y[:100], unlabelled=X[100:])
    assert helped.pool_.share > 0.5
    assert helped.pool_.variance < 0.5
    before, after = (left_on_new_rows(e, new, new_y) for e in (alone, helped))
    assert before > 0.3  # there is something to be gained
    assert after < 0.7 * before


@pytest.mark.parametrize("name", POOLING)
def test_the_sharpened_covariance_is_removed_exactly_and_that_of_the_labelled_rows_is_not(name):
    X, y = planted(2000)
    eraser = POOLING[name]().fit(X[:100], y[:100], unlabelled=X[100:])
    A = eraser._seen.moments.cov_xz
    assert np.abs(A).max() > 0.1
    if name == "OracleLEACE":
        e = eraser.conditional_erasure_
        left = e.cross_covariance_left(eraser._seen.moments.xz, eraser._seen.moments.zz)
        own = e.cross_covariance_left(eraser._seen.labelled.xz, eraser._seen.labelled.zz) / 100
    else:
        M = np.eye(20) - eraser.erasure_.left @ eraser.erasure_.right
        left, own = M @ A, M @ eraser._seen.labelled.cov_xz
    assert np.abs(left).max() < 1e-9 * np.abs(A).max() * len(X)
    assert np.abs(own).max() > 1e-3
    certificate = eraser.certificate_
    assert not certificate.erased
    assert "labelled rows alone" in str(certificate)
    assert eraser._result[0].meta["pool"]["n_pool"] == 1900
    assert eraser._result[0].meta["n"] == 100


@pytest.mark.parametrize("name", POOLING)
def test_labels_that_nothing_predicts_give_the_fit_of_labelled_rows_to_the_last_bit(name):
    X, y = planted(2000, gap=0.0)
    alone, helped = POOLING[name]().fit(X[:200], y[:200]), POOLING[name]()
    helped.fit(X[:200], y[:200], unlabelled=X[200:])
    assert helped.pool_.share == 0
    assert "of no use" in str(helped.pool_)
    rows = {"concept": y[:50]} if name == "OracleLEACE" else {}
    np.testing.assert_array_equal(alone.transform(X[:50], **rows), helped.transform(X[:50], **rows))
    assert str(alone.certificate_) == str(helped.certificate_)


@pytest.mark.parametrize("kind", ["labels", "continuous", "several"])
def test_other_kinds_of_concept(kind):
    before, after = 0.0, 0.0
    for seed in range(6):
        rng = default_rng(seed)
        X, new = rng.normal(size=(2500, 12)), rng.normal(size=(20_000, 12))
        z = X[:, :2] * 1.5 + 0.3 * rng.normal(size=(2500, 2))
        few = z[:150]
        if kind == "labels":
            few = (few > 0).astype(int)
        if kind == "several":
            few = {"sign": (few[:, 0] > 0).astype(int), "size": few[:, 1]}
        alone, helped = ex.SAL().fit(X[:150], few), ex.SAL().fit(X[:150], few, unlabelled=X[150:])
        assert helped.pool_.variance < 0.6
        truth = new[:, :2] - new[:, :2].mean(axis=0)
        before += float(np.sum((alone.transform(new).T @ truth) ** 2))
        after += float(np.sum((helped.transform(new).T @ truth) ** 2))
    assert after < 0.5 * before


# -- unbiased ------------------------------------------------------------------------------------


def good(X):
    p = 1 / (1 + np.exp(-(X @ [1.0, 0.5, 0.0] - 0.6)))
    return np.column_stack([1 - p, p])


def wrong(X):
    """Follows another column, and is far too sure of it."""
    p = (X[:, 2] + 0.5 * X[:, 0] > 0.3).astype(float)
    return np.column_stack([1 - p, p])


@pytest.mark.parametrize("predict", [good, wrong])
def test_it_is_unbiased_for_a_good_predictor_and_for_a_wrong_one(predict):
    """Ten thousand draws; the covariance of x with the class is a quarter of the gap."""
    draws, n = 10_000, 30
    rng = default_rng(7)
    truth = np.array([0.25, 0.125, 0.0]) * (1 - 1 / n)  # covariances divide by n
    alone = np.empty((draws, 3))
    helped = np.empty((draws, 3))
    for k in range(draws):
        n_pool = 60
        y = rng.integers(0, 2, n + n_pool)
        X = rng.normal(size=(n + n_pool, 3)) + np.outer(y, [1.0, 0.5, 0.0])
        f = predict(X)[:, 1]
        own, pool = slice(0, n), slice(n, None)
        cov = lambda a, b: (a - a.mean(axis=0)).T @ (b - b.mean()) / len(a)  # noqa: E731
        alone[k] = cov(X[own], y[own])
        apart = cov(X[own], f[own]) - cov(X[pool], f[pool]) * (1 - 1 / n) / (1 - 1 / n_pool)
        helped[k] = alone[k] - 0.6 * apart
    error = helped.std(axis=0) / np.sqrt(draws)
    assert (np.abs(helped.mean(axis=0) - truth) < 4 * error).all()
    assert (helped.var(axis=0).sum() < alone.var(axis=0).sum()) == (predict is good)


def test_the_estimator_is_the_formula():
    """The plain twin: covariances by hand."""
    rng = default_rng(1)
    X, y = planted(60)
    concept, rows = check_concept(y[:40], 40), check_rows(X[:40])
    moments, f = rows.moments(concept), rng.random((40, 2))
    found = influence_of(rows, concept, f, moments, None, None)
    centred = X[:40] - X[:40].mean(axis=0)
    np.testing.assert_allclose(found.f, centred.T @ (f - f.mean(axis=0)) / 40, atol=1e-12)
    u = X[:40].std(axis=0)
    Z = np.eye(2)[y[:40]]
    g = np.stack([np.outer(x / u, z) for x, z in zip(centred, Z - Z.mean(axis=0), strict=True)])
    h = np.stack([np.outer(x / u, z) for x, z in zip(centred, f - f.mean(axis=0), strict=True)])
    q = g.mean(axis=0)[:, 1] / np.linalg.norm(g.mean(axis=0)[:, 1])  # errors along it do not count
    g, h = (a - a.mean(axis=0) for a in (g, h))
    g, h = (a - np.einsum("i,j,njk->nik", q, q, a) for a in (g, h))
    np.testing.assert_allclose(found.zz, np.sum(g * g) / 1600, rtol=1e-10)
    np.testing.assert_allclose(found.zf, np.sum(g * h) / 1600, rtol=1e-10)
    np.testing.assert_allclose(found.ff, np.sum(h * h) / 1600, rtol=1e-10)


def wrong_models(X, moments):
    """A predictor that reads the concept, and a column that has nothing to do with it."""
    coef = np.zeros((5, X.shape[1], 2))
    coef[:, :, 1] = 5 * moments.cov_xz[:, 1] / moments.spreads
    coef[:, 3, 1] += 3.0
    blank = CrossFit(
        np.zeros((0, 2)),
        9.0,
        1.0,
        moments.mean_x,
        moments.spreads,
        coef,
        np.zeros((5, 2)),
        softmaxed,
    )
    return replace(blank, own=blank.predict(X))


def softmaxed(S):
    return softmax(S, axis=1)


@pytest.mark.parametrize("wrong", [False, True])
def test_the_sharpened_covariance_is_the_formula(wrong):
    """Right predictions stand in for labels; wrong ones are corrected by them, without bias."""
    X, y = planted(1100)
    rows, pool = check_rows(X[:400]), check_rows(X[400:])
    concept = check_concept(y[:400], 400)
    moments = rows.moments(concept)
    models = cross_fit(rows, concept, moments, None, None, default_rng(0))
    if wrong:
        models = wrong_models(X[:400], moments)
    influence = influence_of(rows, concept, models.own, moments, None, None)
    found = sharpen(moments, influence, models, pool, second=True)
    assert found.record.corrected == wrong
    omega = found.record.share * 700 / 1100
    assert omega > 0.1
    cov = [
        (A - A.mean(axis=0)).T @ (f - f.mean(axis=0)) / len(A)
        for A, f in ((X[:400], np.eye(2)[y[:400]]), (X[:400], models.own))
    ]
    there = models.predict(X[400:])
    cov.append((X[400:] - X[400:].mean(axis=0)).T @ (there - there.mean(axis=0)) / 700)
    less = cov[1] - cov[2] if wrong else cov[0] - cov[2]
    np.testing.assert_allclose(found.moments.cov_xz, cov[0] - omega * less, atol=1e-9)
    np.testing.assert_allclose(found.moments.cov_xx, np.cov(X.T, ddof=0), atol=1e-9)
    np.testing.assert_allclose(found.moments.mean_x, X.mean(axis=0), atol=1e-12)


def test_predictions_in_place_of_labels_are_nearer_than_corrected_ones_and_worth_what_is_said():
    """Where rows do not determine the concept, correcting by few labels brings their noise back."""
    truth = planted(200_000, gap=1.5, seed=77)
    A = np.cov(truth[0].T, truth[1], ddof=0)[:-1, -1]
    far = {"alone": [], "corrected": [], "instead": []}
    said = []
    for seed in range(40):
        X, y = planted(1600, gap=1.5, seed=seed)
        rows, concept = check_rows(X[:150]), check_concept(y[:150], 150)
        moments = rows.moments(concept)
        models = cross_fit(rows, concept, moments, None, None, default_rng(0))
        influence = influence_of(rows, concept, models.own, moments, None, None)
        found = sharpen(moments, influence, models, check_rows(X[150:]), second=False)
        said.append(found.record.variance)
        there = np.cov(X[150:].T, models.predict(X[150:])[:, 1], ddof=0)[:-1, -1]
        own = moments.cov_xz[:, 1]
        corrected = own - 0.9 * (influence.f[:, 1] - there)
        for name, a in (
            ("alone", own),
            ("corrected", corrected),
            ("instead", found.moments.cov_xz[:, 1]),
        ):
            cosine = a @ A / np.linalg.norm(a) / np.linalg.norm(A)
            far[name].append(1 / cosine**2 - 1)
    alone, corrected, instead = (float(np.mean(values)) for values in far.values())
    assert corrected < 0.9 * alone
    assert instead < 0.8 * corrected
    assert 0.5 < np.mean(said) / (instead / alone) < 2


def test_groups_count_together():
    """Every row twice: by rows the error seems half of what it is."""
    X, y = planted(80)
    twice, labels, groups = np.repeat(X, 2, axis=0), np.repeat(y, 2), np.repeat(np.arange(80), 2)
    rows, concept = check_rows(twice), check_concept(labels, 160)
    moments, f = rows.moments(concept), np.zeros((160, 2))
    alone = influence_of(rows, concept, f, moments, None, None)
    together = influence_of(rows, concept, f, moments, None, groups)
    np.testing.assert_allclose(together.zz, 2 * alone.zz, rtol=1e-9)
    eraser = ex.LEACE().fit(twice, labels, groups=groups)
    np.testing.assert_allclose(eraser.erasure_.meta["fit"]["effective_n"], 80, rtol=1e-9)
    assert eraser.pool_ is None
    plain = ex.LEACE().fit(twice, labels)
    np.testing.assert_array_equal(plain.erasure_.left, eraser.erasure_.left)


def test_rows_of_a_group_share_their_fold():
    groups = np.repeat(np.arange(30), 4)
    concept = check_concept(np.tile([0, 1], 60), 120)
    for given in (groups, None):
        folds = fold_numbers(concept, given, default_rng(0))
        assert len(np.unique(folds)) == 5
        if given is not None:
            assert all(len(np.unique(folds[groups == g])) == 1 for g in range(30))


def test_own_predictions_come_from_models_that_have_not_seen_the_label():
    """Noise labels in many columns: a model that has seen them is right on all."""
    rng = default_rng(0)
    X, y = rng.normal(size=(60, 100)), rng.integers(0, 2, 60)
    rows, concept = check_rows(X), check_concept(y, 60)
    moments, ridges = rows.moments(concept), np.array([1e-4])
    found = cross_fit(rows, concept, moments, None, None, rng, ridges=ridges)
    right = np.mean(found.own.argmax(axis=1) == y)
    assert right < 0.75
    assert not found.informative
    assert np.mean(found.predict(X).argmax(axis=1) == y) > 0.9  # these have seen most


# -- another population --------------------------------------------------------------------------


def test_a_pool_of_another_population_is_named_and_not_trusted():
    X, y = planted(3000)
    other = X[300:].copy()
    gap = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
    other[:, 0] += other @ gap / np.linalg.norm(gap)  # one more column follows the classes
    other[:, 1] += 2
    with pytest.warns(ex.PoolDiffers, match="AUC of 0.9"):
        helped = ex.LEACE().fit(X[:300], y[:300], unlabelled=other)
    assert helped.pool_.bias > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fair = ex.LEACE().fit(X[:300], y[:300], unlabelled=X[300:])
    assert fair.pool_.bias == 0
    assert helped.pool_.share < 0.5 * fair.pool_.share


def test_one_population_is_seldom_taken_for_two():
    wrong = 0
    for seed in range(40):
        X, _ = planted(700, seed=seed)
        wrong += told_apart(check_rows(X[:200]), check_rows(X[200:]), default_rng(seed))[1]
    assert wrong <= 1


# -- what is given -------------------------------------------------------------------------------


@pytest.mark.parametrize("absent", [None, float("nan"), ""])
def test_rows_without_a_label_may_be_in_x(absent):
    X, y = planted(1200)
    words = np.where(y == 1, "f", "m").astype(object)
    words[200:] = absent
    with pytest.raises(ex.InputError):
        ex.SAL().fit(X, words if absent != "" else [None, *words[1:]])
    found = ex.SAL().fit(X, words, missing="unlabelled")
    named = ex.SAL().fit(X[:200], words[:200].astype(str), unlabelled=X[200:])
    np.testing.assert_allclose(found.erasure_.left, named.erasure_.left, atol=1e-9)
    assert found.pool_.n_pool == 1000


def test_labels_of_two_types_are_refused_whether_or_not_some_are_missing():
    X, y = planted(40)
    mixed = np.array([1 if one else "m" for one in y], dtype=object)
    some = mixed.copy()
    some[::4] = None
    for labels, missing in ((mixed, "error"), (some, "unlabelled")):
        with pytest.raises(ex.InputError, match="mixes types"):
            ex.SAL().fit(X, labels, missing=missing)


def test_numbers_may_be_missing_too():
    X, _ = planted(800)
    z = X[:, 0] + 0.1 * default_rng(0).normal(size=800)
    z[100:] = np.nan
    assert ex.LEACE().fit(X, z, missing="unlabelled").pool_.n_pool == 700


def test_a_task_and_weights_stay_with_their_rows():
    X, y = planted(900)
    task, w = default_rng(1).integers(0, 2, 900), default_rng(2).random(900) + 0.5
    known = np.array([*y[:300], *[None] * 600], dtype=object)
    found = ex.SPLINCE().fit(
        X, task, concept=known, sample_weight=w, missing="unlabelled", groups=np.arange(900)
    )
    named = ex.SPLINCE().fit(
        X[:300],
        task[:300],
        concept=y[:300],
        sample_weight=w[:300],
        unlabelled=X[300:],
        groups=np.arange(300),
    )
    np.testing.assert_allclose(found.erasure_.left, named.erasure_.left, atol=1e-8)


def test_a_pool_may_live_anywhere(tmp_path):
    import torch

    X, y = planted(1000)
    few = (X[:150], y[:150])
    wanted = ex.LEACE().fit(*few, unlabelled=X[150:]).erasure_
    np.save(tmp_path / "pool.npy", X[150:])
    for pool in (torch.tensor(X[150:]), ex.open_rows(tmp_path / "pool.npy"), X[150:].tolist()):
        found = ex.LEACE().fit(*few, unlabelled=pool).erasure_
        np.testing.assert_allclose(found.matrix(), wanted.matrix(), atol=1e-9)


@pytest.mark.parametrize(
    ("eraser", "said"),
    [
        (ex.INLP(1), "INLP cannot use rows without labels"),
        (ex.QuadraticLEACE(), "QuadraticLEACE cannot use rows without labels"),
        (ex.RayleighEraser(1, objective="pca"), "no concept"),
        (ex.RLACE(1), "sharpen closed forms only"),
    ],
)
def test_what_cannot_use_them_says_why(eraser, said):
    X, y = planted(400, classes=3)
    with pytest.raises(ex.InputError, match=said):
        eraser.fit(X[:200], y[:200], unlabelled=X[200:])
    assert not hasattr(eraser, "n_features_in_")


def test_bad_pools_and_groups_are_refused():
    X, y = planted(100)
    with pytest.raises(ex.InputError, match="features"):
        ex.LEACE().fit(X, y, unlabelled=X[:, :5])
    with pytest.raises(ex.InputError, match="NaN"):
        ex.LEACE().fit(X, y, unlabelled=np.full((5, 20), np.nan))
    with pytest.raises(ex.InputError, match="one entry per row"):
        ex.LEACE().fit(X, y, groups=np.arange(5))
    with pytest.raises(ex.InputError, match="one group"):
        ex.LEACE().fit(X, y, groups=np.zeros(100))
    with pytest.raises(ex.InputError, match="missing"):
        ex.LEACE().fit(X, y, missing="guess")
    with pytest.raises(ex.InputError, match="No row has a label"):
        ex.LEACE().fit(X, [None] * 100, missing="unlabelled")


def test_with_every_row_labelled_nothing_changes():
    X, y = planted(300)
    plain, same = ex.LEACE().fit(X, y), ex.LEACE().fit(X, y, missing="unlabelled")
    np.testing.assert_array_equal(plain.erasure_.left, same.erasure_.left)
    assert same.pool_ is None


def test_a_sharper_fit_leaves_an_audit_less_to_expect():
    X, y = planted(4000)
    alone = ex.LEACE().fit(X[:150], y[:150])
    helped = ex.LEACE().fit(X[:150], y[:150], unlabelled=X[150:2000])
    expected = []
    for eraser in (alone, helped):
        found = ex.audit(eraser, X_test=X[2000:], y_test=y[2000:], probes="linear")
        expected.append(found.to_dict()["residue"]["balanced_accuracy"])
    assert expected[1] < expected[0] - 0.05
