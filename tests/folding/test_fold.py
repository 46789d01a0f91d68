"""The fold: hidden from probes of another kind than chose it, exact for linear ones, everywhere."""

import warnings

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import balanced_accuracy_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

import expunge as ex
import expunge.folding.build as build_module
from expunge.commands.info import describe
from expunge.erasers.fold import _readings
from expunge.fold_erasure import Cells
from expunge.folding.build import FoldPlan, build
from expunge.folding.choice import Choice, choose, probe_accuracy
from expunge.folding.class_predictor import logistic
from expunge.folding.gaussian import ClassMoments, gaussian_maps
from expunge.folding.local_moves import fit_cells
from expunge.game.barycenter import barycenter, maps_to
from expunge.inputs import check_concept, check_rows
from expunge.report import render


def shaped(n=3000, d=6, seed=0, classes=2):
    """Classes that differ in mean and in covariance; the first column tells them."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    turn = np.random.default_rng(7).normal(size=(classes, d, d)) * (0.6 / np.sqrt(d))
    X = np.einsum("nij,nj->ni", (turn + np.eye(d))[y], rng.normal(size=(n, d)))
    X[:, 0] += 14 * y
    return X, y


def network(A, ya, B, yb):
    """A probe of another kind than those that choose."""
    unit = StandardScaler().fit(A)
    found = MLPClassifier((64,), max_iter=200, early_stopping=True, random_state=0)
    found.fit(unit.transform(A), ya)
    return balanced_accuracy_score(yb, found.predict(unit.transform(B)))


def test_other_probes_find_far_less_on_new_rows_than_after_leace():
    X, y = shaped()
    new, new_y = shaped(seed=1)
    test, test_y = shaped(seed=2)
    fold, leace = ex.FoldEraser().fit(X, y), ex.LEACE().fit(X, y)
    before = network(new, new_y, test, test_y)
    linear = network(leace.transform(new), new_y, leace.transform(test), test_y)
    left = network(fold.transform(new), new_y, fold.transform(test), test_y)
    assert before > 0.99
    assert linear > 0.65
    assert left < 0.55
    assert fold.solver_ == "fold"
    assert fold.choice_.accuracy["fold"] < fold.choice_.accuracy["leace"] - 0.05


@pytest.mark.parametrize("rounds", [0, 2])
@pytest.mark.parametrize("classes", [2, 3])
def test_linear_guarantee_is_exact_on_the_rows_of_the_fit(rounds, classes):
    X, y = shaped(1200, classes=classes)
    fold = ex.FoldEraser(rounds=rounds, shrinkage=0.1).fit(X, y)
    clean = fold.transform(X)
    means = np.stack([clean[y == k].mean(axis=0) for k in range(classes)])
    assert np.ptp(np.stack([X[y == k].mean(axis=0) for k in range(classes)]), axis=0).max() > 5
    assert_allclose(means, np.tile(X.mean(axis=0), (classes, 1)), atol=1e-9)
    assert fold.certificate_.erased
    assert len(fold.erasure_.cells) == rounds


def test_maps_are_those_of_full_optimal_transport_when_every_direction_counts():
    X, y = shaped(4000)
    whole = [ex.Moments.of(X[y == k], np.zeros(np.sum(y == k))) for k in (0, 1)]
    found = gaussian_maps(ClassMoments(whole), shrinkage=0.0, directions=6)
    shares = ClassMoments(whole).shares
    covariances = np.stack([part.cov_xx for part in whole])
    slow = maps_to(barycenter(covariances, shares, tol=1e-12, max_iter=1000), covariances)
    for k in (0, 1):
        fast = np.eye(6) + found.left @ found.maps[k] @ found.right
        assert_allclose(fast, slow[k], atol=2e-4)
        spread = fast @ covariances[k] @ fast.T
        other = np.eye(6) + found.left @ found.maps[1 - k] @ found.right
        assert_allclose(spread, other @ covariances[1 - k] @ other.T, atol=1e-9)


def test_classes_of_one_covariance_are_not_mapped():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 2000)
    X = rng.normal(size=(2000, 40))
    X[:, 0] += 9 * y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ex.NothingToFold)
        tuned = ex.FoldEraser().fit(X, y).erasure_
    blind = ex.FoldEraser(shrinkage=0.0, directions=40).fit(X, y).erasure_
    moved = [
        np.abs(e.left @ e.maps[0] @ e.right).max() if e.left.size else 0.0 for e in (tuned, blind)
    ]
    assert moved[0] < 0.2 * moved[1]


def test_few_rows_of_wide_classes_end_at_leace_where_an_unshrunk_fold_is_worse():
    rng = np.random.default_rng(0)

    def draw(n):
        y = rng.integers(0, 2, n)
        X = rng.normal(size=(n, 150))
        X[:, 0] += 10 * y
        return X, y

    X, y = draw(400)
    new, new_y = draw(1500)
    test, test_y = draw(1500)
    blind = ex.FoldEraser(shrinkage=0.0, directions=150).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ex.NothingToFold)
        tuned = ex.FoldEraser().fit(X, y)
    leace = ex.LEACE().fit(X, y)
    read = {
        name: probe_accuracy(e.transform(new), new_y, e.transform(test), test_y, 2)
        for name, e in (("blind", blind), ("tuned", tuned), ("leace", leace))
    }
    assert read["blind"] > read["leace"] + 0.05
    assert read["tuned"] < read["leace"] + 0.02


def test_a_concept_that_x_does_not_determine_ends_at_leace_and_says_so():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 5)), rng.integers(0, 2, 600)
    with pytest.warns(ex.NothingToFold, match="no more than LEACE"):
        fold = ex.FoldEraser().fit(X, y)
    assert fold.solver_ == "leace"
    assert_allclose(fold.transform(X), ex.LEACE().fit(X, y).transform(X), atol=1e-9)


def test_rounds_mix_clusters_that_a_gaussian_map_leaves():
    rng = np.random.default_rng(0)

    def draw(n):  # equal means and covariances up to the first column, but other places
        y = rng.integers(0, 2, n)
        side = rng.integers(0, 2, n) * 2 - 1
        X = 0.3 * rng.normal(size=(n, 4))
        X[:, 1] += side
        X[:, 2] += np.where(y == 1, side, -side)
        X[:, 0] += 8 * y
        return X, y

    X, y = draw(3000)
    new, new_y = draw(1500)
    test, test_y = draw(1500)
    left = {}
    for rounds in (0, 3):
        e = ex.FoldEraser(rounds=rounds, shrinkage=0.0).fit(X, y)
        probe = KNeighborsClassifier(15).fit(e.transform(new), new_y)
        left[rounds] = probe.score(e.transform(test), test_y)
    assert left[0] > 0.75
    assert left[3] < left[0] - 0.05


def test_cells_hold_every_class_in_the_same_shares():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 4000)
    X = rng.normal(size=(4000, 2)) + 1.5 * y[:, None]
    cells = fit_cells(X, y, np.ones(4000), np.array([0.5, 0.5]), 500, rng)
    shares = np.stack([cells.shares(X[y == k], k).mean(axis=0) for k in (0, 1)])
    apart = np.abs(shares[0] - shares[1]).sum()
    plain = Cells(cells.centers, cells.units, 0 * cells.potentials, cells.shifts, cells.width)
    without = np.stack([plain.shares(X[y == k], k).mean(axis=0) for k in (0, 1)])
    assert np.abs(without[0] - without[1]).sum() > 0.6
    assert apart < 0.15


def test_rows_without_labels_make_the_fold_hold_better():
    X, y = shaped(600, d=20)
    new, new_y = shaped(4000, d=20, seed=1)
    half = new[:2000], new_y[:2000], new[2000:], new_y[2000:]
    alone = ex.FoldEraser(shrinkage=0.0).fit(X, y)
    helped = ex.FoldEraser(shrinkage=0.0).fit(X, y, unlabelled=new)
    read = [
        probe_accuracy(e.transform(half[0]), half[1], e.transform(half[2]), half[3], 2)
        for e in (alone, helped)
    ]
    assert read[1] < read[0] - 0.05
    assert helped.certificate_.erased


@pytest.mark.parametrize("rounds", [0, 1])
def test_a_saved_fold_is_the_same_and_so_are_tensors_and_layers(tmp_path, rounds):
    X, y = shaped(800)
    fold = ex.FoldEraser(shrinkage=0.1, rounds=rounds, strength=0.8).fit(X, y).erasure_
    fold.save(tmp_path / "a.safetensors")
    again = ex.FoldErasure.load(tmp_path / "a.safetensors")
    again.save(tmp_path / "b.safetensors")
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
    clean = fold.transform(X)
    assert np.array_equal(again.transform(X), clean)
    from expunge.integrations.torch import ErasureLayer

    x = torch.tensor(X, requires_grad=True)
    layer = ErasureLayer(fold)
    assert_allclose(layer(x).detach().numpy(), clean, atol=1e-9)
    assert_allclose(fold.transform(x).detach().numpy(), clean, atol=1e-9)
    assert_allclose(ErasureLayer(fold).half()(torch.tensor(X)).numpy(), clean, atol=1e-9)
    fresh = ErasureLayer(ex.FoldEraser(shrinkage=0.3, rounds=rounds).fit(X, y))
    assert not np.allclose(fresh(x).detach().numpy(), clean, atol=1e-3)
    assert layer.state_dict().keys() == fresh.state_dict().keys()
    with pytest.raises(ex.InputError, match="not linear"):
        layer.fold_into(torch.nn.Linear(6, 2))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_fold_as_an_onnx_graph(dtype):
    onnxruntime = pytest.importorskip("onnxruntime")
    from expunge.integrations.onnx import to_onnx

    X, y = shaped(500, classes=3)
    fold = ex.FoldEraser(shrinkage=0.1, rounds=1, strength=0.9).fit(X, y)
    session = onnxruntime.InferenceSession(to_onnx(fold, dtype=dtype).SerializeToString())
    found = session.run(None, {"vectors": X.astype(dtype)})[0]
    assert_allclose(found, fold.transform(X), atol=2e-3 if dtype == "float32" else 1e-9)


def test_what_cannot_take_a_fold_says_why():
    X, y = shaped(500)
    fold = ex.FoldEraser(shrinkage=0.1).fit(X, y)
    from expunge.integrations.faiss import to_faiss

    for call in (to_faiss, ex.Erasure.identity(6).then):
        with pytest.raises(ex.InputError, match="not linear"):
            call(fold)


def test_damaged_folds_are_refused(tmp_path):
    X, y = shaped(300)
    path = tmp_path / "fold.safetensors"
    ex.FoldEraser(shrinkage=0.1).fit(X, y).erasure_.save(path)
    with pytest.raises(ex.BadArtifact, match="fold_erasure"):
        ex.Erasure.load(path)
    content = bytearray(path.read_bytes())
    content[-9] ^= 1
    path.write_bytes(content)
    with pytest.raises(ex.BadArtifact, match="checksum"):
        ex.FoldErasure.load(path)


def test_a_stream_gives_the_maps_of_a_fit():
    X, y = shaped(900)
    settings = {"shrinkage": 0.1, "directions": 4, "predictor": "discriminant"}
    whole = ex.FoldEraser(**settings).fit(X, y).erasure_
    stream = ex.FoldEraser(**settings)
    for part in np.array_split(np.arange(900), 4):
        stream.partial_fit(X[part], y[part])
    found = stream.erasure_
    for name in ("coef", "intercept", "shifts", "maps"):
        assert_allclose(getattr(found, name), getattr(whole, name), atol=1e-9)
    assert stream.certificate_ is None
    assert not hasattr(ex.FoldEraser(), "partial_fit")
    with pytest.raises(AttributeError) as refused:
        _ = ex.FoldEraser().partial_fit
    assert "discriminant" in str(refused.value.__cause__)


def test_float32_and_frames_and_files(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = shaped(400)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    fold = ex.FoldEraser(shrinkage=0.1).fit(frame, y)
    assert_allclose(fold.erasure_.transform(frame[list("fedcba")]), fold.transform(frame))
    assert fold.transform(frame.astype(np.float32)).dtype == np.float32
    np.save(tmp_path / "x.npy", X)
    rows = ex.open_rows(tmp_path / "x.npy")
    again = clone(fold).fit(rows, y)
    assert_allclose(again.transform(X), fold.transform(frame), atol=1e-9)
    clean = again.transform(rows, out=tmp_path / "clean.npy")
    assert_allclose(clean.array(), fold.transform(frame), atol=1e-9)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"transport": "sliced"}, "transport"),
        ({"shrinkage": 2.0}, "shrinkage"),
        ({"directions": 0.5}, "directions"),
        ({"rounds": -1}, "rounds"),
        ({"predictor": "tree"}, "predictor"),
    ],
)
def test_bad_parameters_are_refused(settings, told):
    X, y = shaped(100)
    with pytest.raises(ex.InputError, match=told):
        ex.FoldEraser(**settings).fit(X, y)


def test_weights_count_as_repeated_rows_do():
    X, y = shaped(500)
    w = np.random.default_rng(0).integers(1, 4, 500)
    settings = {"shrinkage": 0.1, "predictor": "discriminant"}
    heavy = ex.FoldEraser(**settings).fit(X, y, sample_weight=w.astype(float))
    rep = ex.FoldEraser(**settings).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    assert_allclose(heavy.transform(X), rep.transform(X), atol=1e-8)


def test_a_column_that_the_moves_make_constant_is_not_read():
    """Its rounding, scaled by its spread, would carry what is taken from the others."""
    rng = np.random.default_rng(3)
    y = np.arange(60) % 2
    X = np.column_stack([rng.normal(size=60) + 0.8 * y, rng.normal(size=60), y * 1.0])
    w = np.where(np.arange(60) % 5 == 0, 1e8, 1.0)
    fold = ex.FoldEraser(shrinkage=0.1).fit(X, y, sample_weight=w)
    clean = fold.transform(X)
    assert_allclose(w @ clean / w.sum(), w @ X / w.sum(), atol=1e-6)
    assert np.abs(fold.erasure_.closing.right).max(initial=0) < 1e6


def test_rows_without_labels_are_rows_of_the_fit_for_an_audit():
    X, y = shaped(300)
    pool = shaped(50, seed=1)[0]
    alone = ex.FoldEraser(shrinkage=0.1).fit(X, y).erasure_.meta["fingerprint"]
    helped = ex.FoldEraser(shrinkage=0.1).fit(X, y, unlabelled=pool).erasure_.meta["fingerprint"]
    whole = ex.FoldEraser(shrinkage=0.1).fit(np.vstack([X, pool]), np.r_[y, np.arange(50) % 2])
    assert helped != alone
    assert helped == whole.erasure_.meta["fingerprint"]


def test_a_choice_of_leace_says_what_was_read_after_both():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 1500)
    X = rng.normal(size=(1500, 5))
    X[:, 0] += 9 * y
    with pytest.warns(ex.NothingToFold, match=r"after the fold, .* after LEACE"):
        ex.FoldEraser().fit(X, y)


def test_rows_that_fall_together_in_a_round_are_saved_all_the_same(tmp_path):
    """With few different rows, later rounds have fewer of them than the first."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 200)
    X = (rng.random((200, 4)) < 0.3 + 0.5 * y[:, None]).astype(float)
    fold = ex.FoldEraser(rounds=3, shrinkage="none").fit(X, y).erasure_
    assert len(fold.cells) == 3
    fold.save(tmp_path / "fold.safetensors")
    assert_allclose(ex.FoldErasure.load(tmp_path / "fold.safetensors").transform(X), fold(X))


def repeated(n, d, seed, gap):
    """Rows five times each, with a little noise, and the group of each; one covariance."""
    rng = np.random.default_rng(seed)
    y, who = rng.integers(0, 2, n), np.repeat(np.arange(n), 5)
    X = rng.normal(size=(n, d)) + gap * np.outer(y, np.eye(d)[0])
    order = rng.permutation(5 * n)
    return X[who][order], y[who][order], who[order]


def test_a_predictor_is_not_believed_for_copies_of_what_it_has_seen():
    """Labels that x does not determine: copies in other folds tell them all the same."""
    X, y, who = repeated(200, 80, seed=0, gap=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ex.NothingToFold)
        assert ex.FoldEraser(shrinkage=0.1).fit(X, y).solver_ == "fold"  # it is fooled
    with pytest.warns(ex.NothingToFold, match="a linear predictor tells [45]"):
        told = ex.FoldEraser(shrinkage=0.1).fit(X, y, groups=who)
    assert told.solver_ == "leace"


def test_held_out_rows_are_of_other_groups():
    """Labels that x does not determine: a probe that has seen copies tells them all the same."""
    X, y, who = repeated(500, 6, seed=1, gap=0.0)
    seen = []

    def candidates(rows, concept, weights, groups):
        numbers = {row.tobytes(): g for row, g in zip(X, who, strict=True)}

        def groups_of(A):
            return {numbers[row.tobytes()] for row in A}

        seen.append([groups_of(rows.array())])
        return {"leace": lambda A: seen[-1].append(groups_of(A)) or A}

    found = {}
    for name, groups in (("rows", None), ("groups", who)):
        given = check_rows(X), check_concept(y, len(y)), None, groups
        found[name] = choose(*given, candidates, np.random.default_rng(0))
    fooled, told = seen[0], seen[-1]  # of several splits
    assert fooled[0] & fooled[1]
    assert fooled[1] & fooled[2]
    assert len(told[0] | told[1] | told[2]) == sum(map(len, told))
    assert found["rows"].accuracy["leace"] > 0.75
    assert found["groups"].accuracy["leace"] < 0.6
    assert found["groups"].error > 2 * found["rows"].error  # groups are counted, not rows


def test_noise_is_told_by_other_groups():
    X, y, who = repeated(600, 12, seed=2, gap=9.0)
    known = check_rows(X), check_concept(y, len(y)), None
    moments = known[0].moments(known[1])
    size = {}
    for name, groups in (("rows", None), ("groups", who)):
        rng = np.random.default_rng(0)
        predictor = logistic(*known[:2], moments, None, rng, groups)
        fold = build(*known, predictor, FoldPlan(), rng, groups=groups)
        size[name] = float(np.sum(fold.maps**2))
    assert size["groups"] < 0.3 * size["rows"]


def test_groups_that_are_single_rows_change_nothing():
    X, y = shaped(900)
    alone, told = (ex.FoldEraser().fit(X, y, groups=g) for g in (None, np.arange(900)))
    assert alone.solver_ == told.solver_ == "fold"
    assert told.choice_.error == pytest.approx(alone.choice_.error, rel=0.02)


def test_what_is_saved_tells_how_many_rows_without_labels_there_were(tmp_path):
    X, y = shaped(400)
    fit = ex.FoldEraser(shrinkage=0.1).fit(X, y, unlabelled=shaped(70, seed=1)[0])
    fit.erasure_.save(tmp_path / "f.safetensors")
    again = ex.FoldErasure.load(tmp_path / "f.safetensors")
    assert again.meta["pool"] == {"n_labelled": 400, "n_pool": 70}
    assert describe(again)["n_unlabelled"] == 70
    new, new_y = shaped(400, seed=2)
    a = ex.audit(again, X, y, new, new_y, probes=["linear discriminant"])
    assert a.to_dict()["erasure"]["n_unlabelled"] == 70
    assert "70 rows without labels" in str(a)
    assert "70 without labels" in render(a.to_dict())
    assert ex.FoldEraser(shrinkage=0.1).fit(X, y).erasure_.meta["pool"] is None


@pytest.mark.parametrize("predictor", ["logistic", "discriminant"])
@pytest.mark.parametrize("rounds", [0, 1])
def test_columns_that_never_vary_stay_as_they_are(predictor, rounds):
    """Rounding that differs between classes is what trees read, however small."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    X = rng.normal(size=(400, 60)) * np.where(y, 2.0, 1.0)[:, None]
    X += 1.5 * y[:, None] * rng.normal(size=60)
    X[:, 3], X[:, 6] = 0.1, np.float16(0.0123)
    fold = ex.FoldEraser(shrinkage=0.5, rounds=rounds, predictor=predictor).fit(X, y)
    assert fold.solver_ == "fold"
    assert len(np.unique(fold.transform(X)[:, [3, 6]], axis=0)) == 1
    assert fold.certificate_.erased


def test_where_predictions_are_poor_leace_closes_and_leaves_less_to_trees(monkeypatch):
    def drawn(seed, flipped):
        rng = np.random.default_rng(seed)
        z = rng.integers(0, 2, 2000)
        X = rng.normal(size=(2000, 12)) + 3 * np.outer(z, np.eye(12)[0])
        X[:, 1] *= np.where(z, 2.0, 1.0)
        return X, np.where(rng.random(2000) < flipped, 1 - z, z)

    told = {}
    for unseen in (build_module.UNSEEN, np.inf):
        monkeypatch.setattr(build_module, "UNSEEN", unseen)
        for flipped in (0.0, 0.1):
            e = ex.FoldEraser(shrinkage=0.1).fit(*drawn(0, flipped))
            assert e.erasure_.closing.rank == (unseen < 1)
            (A, a), (B, b) = drawn(1, flipped), drawn(2, flipped)
            trees = HistGradientBoostingClassifier(max_iter=60).fit(e.transform(A), a)
            told.setdefault(unseen < 1, []).append(trees.score(e.transform(B), b))
    assert np.mean(told[True]) < np.mean(told[False]) - 0.01


def test_what_is_read_after_the_fold_is_the_least_of_the_numbers():
    found = Choice("leace", {"leace": 0.5, "shrunk fold": 1.0, "fold": 0.875}, 0.01)
    assert "tells 87.5 % of held-out rows after the fold, 50.0 % after LEACE" in _readings(found)
