"""Free-form LEACE: exact for linear predictors, of less change than LEACE, honest on new rows."""

import json
import warnings

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

import expunge as ex
from expunge.concept import Concept
from expunge.data import load_glove
from expunge.free_form import fitting, ridge_choice
from expunge.free_form.readout import Blocks, Readout
from expunge.inputs import check_rows
from expunge.metrics.change import relative_change
from planted import KINDS, plant


def bent(n=4000, d=6, seed=0):
    """A class that x tells by a curve, and by a line in part."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.3 * np.random.default_rng(7).normal(size=(d, d)))
    return X, (np.abs(X[:, 0] + 1) + 0.2 * rng.normal(size=n) < 1).astype(int)


def free(**settings):
    return ex.LEACE(predictor="random_features", **{"n_components": 100, **settings})


def change(eraser, X):
    return relative_change(check_rows(X), check_rows(eraser.transform(X)))


def gap(X, y, w=None):
    w = np.ones(len(X)) if w is None else w
    first, second = (np.average(X[y == k], axis=0, weights=w[y == k]) for k in (0, 1))
    return np.abs(first - second).max()


# -- the mathematics -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("settings", [{}, {"rank": 1}, {"shrinkage": 0.3}], ids=str)
def test_with_linear_features_alone_it_is_leace(kind, settings):
    data = plant(kind)
    leace = ex.LEACE(**settings).fit(data.X, data.y).erasure_
    moments = ex.Moments.of(np.hstack([data.X, data.Z]), Concept.none(len(data.X)))
    blocks = Blocks.of(moments, 8, data.Z.shape[1])
    assert blocks.rr.size == 0
    shrunk = None
    if settings.get("shrinkage"):
        uu = blocks.uu
        shrunk = 0.7 * uu + 0.3 * np.trace(uu) / 8 * np.eye(8)
    read = Readout(blocks, shrunk).reading(leace.right @ blocks.uz, np.inf)
    assert np.abs(leace.right).max() > 0.1
    assert_allclose(read.T, leace.right, atol=1e-9)


def test_it_is_the_predictors_formula():
    """x - ΣxzΣpz⁺(p(x) - mean p), with p the ridge predictor, by another road."""
    X, y = bent()
    eraser = free().fit(X, y)
    e, Z = eraser.erasure_, np.eye(2)[y]
    C, u = X - X.mean(axis=0), X.std(axis=0)
    F = np.cos(C @ e.frequencies + e.phases)
    V = F - LinearRegression().fit(C, F).predict(C)
    ridge = eraser.choice_.ridge * V.var(axis=0).mean() * len(X)
    z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    p = LinearRegression().fit(C / u, z).predict(C / u)
    p = p + V @ np.linalg.solve(V.T @ V + ridge * np.eye(V.shape[1]), V.T @ z)
    Spz, Sxz = p.T @ z / len(X), C.T @ z / len(X)
    expected = X - (p - p.mean(axis=0)) @ np.linalg.pinv(Spz, rcond=1e-8).T @ Sxz.T
    assert np.abs(expected - ex.LEACE().fit(X, y).transform(X)).max() > 0.1
    assert_allclose(eraser.transform(X), expected, atol=1e-8)


@pytest.mark.parametrize("ridge", [1e-4, 1e-2, 1.0, 100.0])
def test_no_ridge_changes_the_rows_of_the_fit_more_than_leace(ridge, monkeypatch):
    monkeypatch.setattr(ridge_choice, "RIDGES", (ridge,))
    monkeypatch.setattr(ridge_choice, "SURE", np.inf)
    data = plant("classes", n=300)
    eraser, leace = free().fit(data.X, data.y), ex.LEACE().fit(data.X, data.y)
    assert eraser.solver_ == "random_features"
    assert change(leace, data.X) > 0.05
    assert change(eraser, data.X) < change(leace, data.X)
    assert eraser.certificate_.erased


@pytest.mark.parametrize("kind", KINDS)
def test_keeps_the_promises_of_leace_for_every_kind_of_concept(kind):
    data = plant(kind, n=1500)
    Z, bend = data.Z, np.random.default_rng(1).normal(size=(1500, 8))
    X = np.hstack([data.X, bend + 2 * (data.X**2 / 4)])  # so that x tells more than by lines
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ex.OnlyLinear)
        eraser = free().fit(X, data.y)
    clean, leace = eraser.transform(X), ex.LEACE().fit(X, data.y)

    def covariance(A):
        return np.abs((A - A.mean(axis=0)).T @ Z / len(A)).max()

    assert covariance(X) > 0.3
    assert LinearRegression().fit(X, Z).score(X, Z) > 0.2
    assert covariance(clean) < 1e-9
    assert LinearRegression().fit(clean, Z).score(clean, Z) < 1e-9
    assert_allclose(clean.mean(axis=0), X.mean(axis=0), atol=1e-9)
    assert eraser.certificate_.erased
    assert eraser.rank_ == leace.rank_
    assert change(eraser, X) <= change(leace, X) + 1e-12


def test_a_lower_rank_leaves_what_leace_of_that_rank_leaves_at_less_change():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 5))
    y = np.digitize(np.abs(X[:, 0] + 1) + 0.3 * X[:, 1], [0.7, 1.5])
    eraser, leace = free(rank=1).fit(X, y), ex.LEACE(rank=1).fit(X, y)
    assert eraser.rank_ == 1
    clean = eraser.transform(X), leace.transform(X)
    left = [np.stack([rows[y == k].mean(axis=0) for k in range(3)]) for rows in clean]
    assert np.ptp(left[1], axis=0).max() > 0.1
    assert_allclose(left[0], left[1], atol=1e-9)
    assert change(eraser, X) < 0.95 * change(leace, X)
    assert_allclose(eraser.erasure_.meta["fit"]["left"], leace.erasure_.meta["fit"]["left"])


# -- what it is for ------------------------------------------------------------------------------


def test_less_change_than_leace_on_old_and_new_rows_and_nothing_more_to_find():
    X, y = bent()
    new, new_y = bent(20_000, seed=1)
    eraser, leace = free(n_components=200).fit(X, y), ex.LEACE().fit(X, y)
    assert gap(X, y) > 0.5
    assert gap(eraser.transform(X), y) < 1e-12
    assert eraser.certificate_.erased
    for rows in (X, new):
        assert change(eraser, rows) < 0.8 * change(leace, rows)
    found = [
        LinearRegression().fit(e.transform(new), new_y).score(e.transform(new), new_y)
        for e in (eraser, leace)
    ]
    chance = np.sqrt(2 * 6) / len(X)  # of the share that sampling error of the fit shows
    assert LinearRegression().fit(new, new_y).score(new, new_y) > 0.2
    assert found[0] < found[1] + 2 * chance


def test_word_vectors_change_less_and_show_no_more():
    glove = load_glove()
    X, y = glove.train.X.astype(float), glove.train.y
    new = np.vstack([glove.dev.X, glove.test.X]).astype(float)
    new_y = np.concatenate([glove.dev.y, glove.test.y])
    eraser, leace = free(n_components=300).fit(X, y), ex.LEACE().fit(X, y)
    assert gap(X, y) > 0.3
    assert gap(eraser.transform(X), y) < 1e-12
    assert eraser.certificate_.erased
    oracle = ex.OracleLEACE().fit(X, y)  # which knows the label: no predictor changes less
    least = relative_change(check_rows(X), check_rows(oracle.transform(X, concept=y)))
    for rows in (X, new):
        assert change(eraser, rows) < change(leace, rows) - 0.0005
    assert change(leace, X) > change(eraser, X) > least

    def found(e):
        clean = e.transform(new)
        return LinearRegression().fit(clean, new_y).score(clean, new_y)

    assert found(eraser) < found(leace) + 2 * np.sqrt(2 * 100) / len(X)


def test_where_lines_tell_everything_it_is_leace_and_says_so():
    rng = np.random.default_rng(0)
    z = rng.normal(size=800)
    X = rng.normal(size=(800, 5)) + np.outer(z, [2, 1, 0, 0, 0])
    with pytest.warns(ex.OnlyLinear, match="no more than LEACE"):
        eraser = free().fit(X, z)
    assert eraser.solver_ == "linear"
    assert eraser.choice_.ridge == np.inf
    assert_allclose(eraser.transform(X), ex.LEACE().fit(X, z).transform(X), atol=1e-12)
    assert eraser.certificate_.erased


def test_what_is_not_exact_is_not_taken(monkeypatch):
    X, y = bent(800)
    assert free().fit(X, y).solver_ == "random_features"
    monkeypatch.setattr(fitting, "EXACT", -1.0)
    with pytest.warns(ex.OnlyLinear, match="rounding would leave some"):
        eraser = free().fit(X, y)
    assert_allclose(eraser.transform(X), ex.LEACE().fit(X, y).transform(X), atol=1e-12)


def test_too_few_rows_to_hold_some_out_say_so():
    X, y = bent(15)
    with pytest.warns(ex.OnlyLinear, match="too few rows"):
        free().fit(X, y)


def test_features_that_would_leave_new_rows_more_are_not_taken(monkeypatch):
    rng = np.random.default_rng(0)

    def draw(n):
        X = rng.normal(size=(n, 40))  # in which noise bends as much as the concept does
        told = X[:, 0] + X[:, 1] ** 2 + X[:, 2] * X[:, 3] + rng.normal(size=n)
        return X, (told > 1).astype(int)

    (X, y), (new, new_y) = draw(1500), draw(30_000)
    with pytest.warns(ex.OnlyLinear):
        careful = free(n_components=400).fit(X, y)
    monkeypatch.setattr(ridge_choice, "SURE", np.inf)
    bold = free(n_components=400).fit(X, y)
    assert bold.solver_ == "random_features"
    assert bold.certificate_.erased
    assert bold.choice_.error < bold.choice_.linear_error
    left = []
    for eraser in (careful, bold, ex.LEACE().fit(X, y)):
        clean = eraser.transform(new)
        left.append(LinearRegression().fit(clean, new_y).score(clean, new_y))
    assert left[0] == pytest.approx(left[2])
    assert LinearRegression().fit(new, new_y).score(new, new_y) > 0.1
    assert left[1] > left[2] + 2 * np.sqrt(2 * 40) / len(X)


def test_groups_are_held_out_together():
    X, y = bent(300)
    X, y = np.repeat(X, 8, axis=0), np.repeat(y, 8)  # the same row again and again
    groups = np.repeat(np.arange(300), 8)
    by_row = free(n_components=300).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ex.OnlyLinear)
        by_group = free(n_components=300).fit(X, y, groups=groups)
    assert by_row.choice_.error < by_group.choice_.error - 0.05


def test_weights_count_as_repeated_rows_do_but_for_who_is_held_out(monkeypatch):
    monkeypatch.setattr(ridge_choice, "RIDGES", (0.1,))
    X, y = bent(1200)
    w = np.random.default_rng(0).integers(0, 4, 1200)
    heavy = free().fit(X, y, sample_weight=w.astype(float))
    assert gap(X, y, w) > 0.5
    assert gap(heavy.transform(X), y, w) < 1e-12
    assert heavy.certificate_.erased
    again = free().fit(X, y, sample_weight=2.0 * w)
    assert_allclose(again.transform(X), heavy.transform(X), atol=1e-9)


def test_units_and_places_do_not_matter():
    X, y = bent(1500)
    units, place = 10.0 ** np.arange(-3, 3), np.array([0, 1e5, -3, 1e4, 0, 7])
    plain, other = free().fit(X, y), free().fit(X * units + place, y)
    assert plain.solver_ == other.solver_ == "random_features"
    back = (other.transform(X * units + place) - place) / units
    assert_allclose(back, plain.transform(X), atol=1e-6)


@pytest.mark.parametrize("n", [3, 12, 40])
def test_few_rows_and_constant_columns_end_well(n):
    rng = np.random.default_rng(n)
    y = np.arange(n) % 2
    X = np.column_stack([rng.normal(size=(n, 6)) + y[:, None], np.full(n, 3.0)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", (ex.OnlyLinear, ex.NothingLeft))
        eraser = free().fit(X, y)
    assert gap(eraser.transform(X), y) < 1e-9


# -- the value, everywhere -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    X, y = bent(1500)
    return X, y, free(strength=0.8).fit(X, y)


def test_default_and_same_seed_are_the_same_to_the_last_bit(fitted, tmp_path):
    X, y, eraser = fitted
    again = clone(eraser).fit(X, y)
    assert np.array_equal(again.transform(X), eraser.transform(X))
    other = clone(eraser).set_params(random_state=1).fit(X, y)
    assert not np.allclose(other.transform(X), eraser.transform(X), atol=1e-6)
    assert type(ex.LEACE().fit(X, y).erasure_) is ex.Erasure


def test_a_saved_one_is_the_same_and_so_are_tensors_and_layers(fitted, tmp_path):
    X, _, eraser = fitted
    e, clean = eraser.erasure_, eraser.transform(X)
    assert isinstance(e, ex.FreeFormErasure)
    e.save(tmp_path / "a.safetensors")
    again = ex.FreeFormErasure.load(tmp_path / "a.safetensors")
    again.save(tmp_path / "b.safetensors")
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
    assert np.array_equal(again.transform(X), clean)
    with pytest.raises(ex.BadArtifact, match="free_form_erasure"):
        ex.Erasure.load(tmp_path / "a.safetensors")
    from expunge.integrations.torch import ErasureLayer, fold_into

    layer, x = ErasureLayer(eraser), torch.tensor(X, requires_grad=True)
    assert_allclose(layer(x).detach().numpy(), clean, atol=1e-9)
    assert_allclose(e.transform(x).detach().numpy(), clean, atol=1e-9)
    assert torch.autograd.gradcheck(layer, torch.tensor(X[:3], requires_grad=True))
    half = layer.half()(torch.tensor(X))  # factors are never rounded
    assert_allclose(half.numpy(), clean, atol=1e-9)
    assert e.transform(torch.tensor(X).bfloat16()).dtype == torch.bfloat16
    for refused in (lambda: layer.fold_into(torch.nn.Linear(6, 2)), lambda: layer.erasure):
        with pytest.raises(ex.InputError, match="Free-form LEACE is not linear"):
            refused()
    with pytest.raises(ex.InputError, match="Free-form LEACE is not linear"):
        fold_into(eraser, torch.nn.Linear(6, 2))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_as_an_onnx_graph(fitted, dtype):
    onnxruntime = pytest.importorskip("onnxruntime")
    from expunge.integrations.onnx import attach, to_onnx

    X, _, eraser = fitted
    graph = to_onnx(eraser, dtype=dtype)
    twice = attach(graph, eraser)
    once = eraser.transform(X)
    for model, expected in ((graph, once), (twice, eraser.transform(once))):
        session = onnxruntime.InferenceSession(model.SerializeToString())
        found = session.run(None, {"vectors": X.astype(dtype)})[0]
        assert_allclose(found, expected, atol=1e-4 if dtype == "float32" else 1e-9)


def test_what_needs_a_matrix_says_why(fitted):
    from expunge.integrations.faiss import to_faiss

    for call in (to_faiss, ex.Erasure.identity(6).then):
        with pytest.raises(ex.InputError, match="Free-form LEACE is not linear, so no matrix"):
            call(fitted[2])


def test_frames_files_and_narrow_types(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = bent(1500)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    eraser = free().fit(frame, y)
    clean = eraser.erasure_.transform(X)
    assert_allclose(eraser.erasure_.transform(frame[list("fedcba")]), clean)
    assert eraser.transform(frame.astype(np.float32)).dtype == np.float32
    np.save(tmp_path / "x.npy", X)
    rows = ex.open_rows(tmp_path / "x.npy")
    again = free().fit(rows, y)
    assert_allclose(again.transform(X), clean, atol=1e-9)
    written = again.transform(rows, out=tmp_path / "clean.npy")
    assert_allclose(written.array(), clean, atol=1e-9)
    many = free().fit(frame.assign(y=y, z=X[:, 1] ** 2), ["y", "z"])
    assert many.certificate_.erased
    wrong = X.copy()
    wrong[7, 2] = np.nan
    with pytest.raises(ex.InputError, match="NaN or infinity"):
        eraser.erasure_.transform(wrong)


def test_audit_certify_and_compare_take_it(fitted):
    X, y, _ = fitted
    new, new_y = bent(800, seed=3)
    eraser = free().fit(X, y)
    assert ex.certify(eraser, X, y).erased
    assert not ex.certify(eraser, new, new_y).erased
    assert "LEACE" in str(ex.audit(eraser, X, y, new, new_y, probes=["linear discriminant"]))
    table = str(ex.compare(X, y, methods=[ex.LEACE(), free()], runs=1))
    assert "predictor='random_features'" in table


def test_what_it_cannot_do_is_said_in_one_line(fitted):
    X, y, _ = fitted
    with pytest.raises(ex.InputError, match="'random_features' needs the concept of every row"):
        free().fit(X, y, unlabelled=X)
    assert not hasattr(free(), "partial_fit")
    with pytest.raises(AttributeError) as refused:
        _ = free().partial_fit
    assert "needs the rows; take 'linear'" in str(refused.value.__cause__)
    with pytest.raises(ex.InputError, match="needs the rows; take 'linear'"):
        free().fit_moments(ex.Moments.of(X, y.astype(float)))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"predictor": "tree"}, "predictor"),
        ({"n_components": 0}, "n_components"),
        ({"n_components": 2.5}, "n_components"),
        ({"random_state": "x"}, "random_state"),
    ],
)
def test_bad_parameters_are_refused(settings, told):
    X, y = bent(100)
    with pytest.raises(ex.InputError, match=told):
        ex.LEACE(**{"predictor": "random_features", **settings}).fit(X, y)


def test_parts_that_do_not_fit_are_refused(fitted):
    e = fitted[2].erasure_
    with pytest.raises(ex.InputError, match="do not fit 6 features"):
        e.with_(phases=e.phases[1:])
    with pytest.raises(ex.InputError, match="coef must be finite"):
        e.with_(coef=e.coef * np.nan)


def test_the_command_line_fits_shows_applies_and_audits(tmp_path):
    from expunge.cli import main

    X, y = bent(2000)
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", y)
    names = ("x.npy", "y.npy", "e.safetensors", "clean.npy")
    files = {name: str(tmp_path / name) for name in names}
    told = ["--concept", files["y.npy"]]
    more = ["--set", "predictor=random_features", "--set", "n_components=100"]
    fit = ["fit", files["x.npy"], *told, "--method", "leace", *more, "-o", files["e.safetensors"]]
    assert main(fit) == 0
    assert main(["info", files["e.safetensors"], "--json", str(tmp_path / "info.json")]) == 0
    info = json.loads((tmp_path / "info.json").read_text())
    assert info["projection"].startswith("none")
    assert info["parameters"]["predictor"] == "random_features"
    assert main(["apply", files["e.safetensors"], files["x.npy"], "-o", files["clean.npy"]]) == 0
    erasure = ex.FreeFormErasure.load(files["e.safetensors"])
    assert_allclose(np.load(files["clean.npy"]), erasure.transform(X))
    assert main(["audit", files["e.safetensors"], files["x.npy"], *told]) == 0


@pytest.mark.parametrize("count", [0, 2.5, "many", 10**9])
def test_features_are_a_number_that_memory_holds(count):
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    with pytest.raises(ex.InputError, match="n_components must be"):
        free(n_components=count).fit(X, y)
