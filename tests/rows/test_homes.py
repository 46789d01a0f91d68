"""One suite over all homes of rows: every operation and every eraser, against plain arrays."""

import tracemalloc

import numpy as np
import pytest
from homes import HOMES, LazyRows, computed
from sklearn.linear_model import LogisticRegression

import expunge as ex
from expunge.concept import Concept
from expunge.game.losses import loss_for
from expunge.inputs import check_concept, check_rows
from expunge.rows import batches
from expunge.rows.dense import DenseRows
from planted import KINDS, plant

every_home = pytest.mark.parametrize("home", HOMES)
CLOSE = 1e-9


def placed(home, X, folder):
    return HOMES[home](np.asarray(X), folder)


def weights_with_zeros(n):
    weights = np.random.default_rng(1).random(n)
    weights[: n // 3] = 0  # so that whole blocks weigh nothing
    return weights


def assert_close(found, expected, close=CLOSE):
    size = max(float(np.abs(expected).max(initial=0.0)), 1e-300)
    np.testing.assert_allclose(found, expected, rtol=0, atol=close * size)


# -- operations ----------------------------------------------------------------------------------


@every_home
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_moments(home, kind, weighted, tmp_path):
    data = plant(kind, n=700)
    rows, concept = placed(home, data.X + 3, tmp_path), check_concept(data.y, 700)
    weights = weights_with_zeros(700) if weighted else None
    found, expected = (where.moments(concept, weights) for where in (rows, DenseRows(data.X + 3)))
    for name in ("mean_x", "mean_z", "xz", "zz", "squares", "weight", "xx"):
        assert_close(getattr(found, name), getattr(expected, name), 1e-12)
    assert (found.n, found.labels, found.kind) == (700, expected.labels, expected.kind)
    assert rows.moments(concept, weights, second=False).xx is None
    plain = np.cov((data.X + 3).T, aweights=weights, ddof=0)  # a second road
    assert_close(found.cov_xx, plain, 1e-12)


@every_home
@pytest.mark.parametrize("kind", KINDS)
def test_passes_of_a_linear_model(home, kind, tmp_path):
    data, rng = plant(kind, n=700), np.random.default_rng(2)
    rows, concept = placed(home, data.X, tmp_path), check_concept(data.y, 700)
    name = "squared" if concept.kind == "continuous" else "cross_entropy"
    loss = loss_for(name, concept.kind, concept.width)
    m = loss.encoder(concept)(0, 1).shape[1]
    model = (loss, rng.normal(size=(8, m)), rng.normal(size=m), concept, weights_with_zeros(700))
    for center in (data.X.mean(axis=0), None):
        found, expected = (w.glm_pass(*model, center=center) for w in (rows, DenseRows(data.X)))
        for part in ("value", "coef", "intercept", "curvature", "accuracy"):
            if part != "accuracy" or concept.kind != "continuous":
                assert_close(getattr(found, part), getattr(expected, part), 1e-12)
        found, expected = (w.glm_hessian(*model, center=center) for w in (rows, DenseRows(data.X)))
        assert_close(found, expected, 1e-12)


@every_home
def test_one_reading_tells_everything(home, tmp_path):
    data = plant("classes", n=700)
    rows, concept = placed(home, data.X, tmp_path), check_concept(data.y, 700)
    task, look = Concept.of_numbers(data.X[:, :2] ** 2), np.array([0, 96, 97, 98, 500, 699])
    weights = weights_with_zeros(700)
    found = rows.read(concept, weights, task=task, by_class=True, look=look)
    assert_close(found.moments.xx, DenseRows(data.X).moments(concept, weights).xx, 1e-12)
    assert_close(found.task.xz, DenseRows(data.X).moments(task, weights).xz, 1e-12)
    assert found.fingerprint.to_meta() == DenseRows(data.X).fingerprint().to_meta()
    np.testing.assert_array_equal(found.look, data.X[look])
    for code, label in enumerate(concept.labels):
        own = (concept.values == code) & (weights > 0)
        expected = np.cov(data.X[own].T, aweights=weights[own], ddof=0)
        assert_close(found.by_class[label].cov_xx, expected, 1e-12)
        assert found.by_class[label].n == own.sum()
    if isinstance(rows, LazyRows):
        assert (rows.passes, rows.taken) == (1, 0)


@every_home
def test_rows_by_number_and_in_order(home, tmp_path):
    X = plant("binary", n=300).X
    rows, index = placed(home, X, tmp_path), np.array([299, 3, 3, 150])
    np.testing.assert_array_equal(rows.take(index).array(), X[index])
    np.testing.assert_array_equal(rows.array(), X)
    part, index = rows.subset(40, np.random.default_rng(0))
    assert len(set(index)) == 40
    np.testing.assert_array_equal(part.array(), X[index])
    assert (rows.n_samples, rows.n_features, rows.dtype) == (300, 8, np.float64)


@every_home
@pytest.mark.parametrize("pool", [batches.POOL, 128])
def test_batches_are_the_same_in_every_home(home, pool, tmp_path, monkeypatch):
    """From a pool of all rows, and from pools of some runs of neighbours."""
    monkeypatch.setattr(batches, "POOL", pool)
    monkeypatch.setattr(batches, "RUN", 32)
    X = plant("binary", n=300).X
    rows, expected = placed(home, X, tmp_path), DenseRows(X)
    seen: set[int] = set()
    pairs = zip(*(w.batches(16, np.random.default_rng(0)) for w in (rows, expected)), strict=True)
    for (found, numbers), (_, others) in (next(pairs) for _ in range(200)):
        np.testing.assert_array_equal(numbers, others)
        np.testing.assert_array_equal(found, X[numbers])
        seen |= set(numbers.tolist())
    assert len(seen) > 290  # sooner or later every row


@every_home
def test_erased_rows(home, tmp_path):
    data = plant("binary", n=300)
    rows = placed(home, data.X, tmp_path)
    erasure = ex.LEACE().fit(data.X, data.y).erasure_
    expected = erasure.transform(data.X)
    assert_close(computed(rows.transform(erasure)), expected, 1e-12)
    assert_close(computed(ex.LEACE().fit(rows, data.y).transform(rows)), expected, CLOSE)
    told = ex.QuadraticLEACE().fit(data.X, data.y).conditional_erasure_
    assert_close(computed(told.transform(rows, data.y)), told.transform(data.X, data.y), 1e-12)


@every_home
def test_nan_is_found_and_placed(home, tmp_path):
    X = plant("binary", n=300).X.copy()
    X[200, 5] = np.nan
    y = np.arange(300) % 2
    for fit in (ex.LEACE().fit, ex.RLACE().fit, ex.PairPCA().fit, ex.INLP(1).fit):
        with pytest.raises(ex.InputError, match=r"NaN or infinity.*row 200, column 5"):
            fit(placed(home, X, tmp_path), y)


# -- erasers -------------------------------------------------------------------------------------

# passes over rows that are not in memory, certificate and all; None where they depend on the data
PASSES = {
    "RLACE": 1,
    "LEACE": 1,
    "OracleLEACE": 1,
    "QuadraticLEACE": 1,
    "MeanProjection": 1,
    "SAL": 1,
    "SPLINCE": 1,
    "RayleighEraser": 1,
    "PairPCA": 2,
    "INLP": None,
    "FoldEraser": None,  # of the predictor, its classes, the moved rows, the certificate
}
SETTINGS = {
    **{name: {} for name in ex.ERASERS},
    "INLP": {"rank": 2, "tol": 0.0},  # further on it goes by the noise
    "RLACE with a rank": {"rank": 5},
    "RLACE by subspace ascent": {"rank": 1},
    "RLACE by descent-ascent": {
        "rank": 1,
        "solver": "descent_ascent",
        "max_iter": 60,
        "evaluate_every": 30,
    },
    "RLACE in units": {"scale": "std"},
    "RayleighEraser of correlations": {"objective": "cca"},
    "QuadraticLEACE without labels": {"label_free": True},
    "INLP by a classifier": {"rank": 2, "classifier": LogisticRegression(C=0.1, max_iter=500)},
    "LEACE in part": {"strength": 0.5},
    "LEACE free of form": {"predictor": "random_features", "n_components": 40},
    "FoldEraser with numbers": {"shrinkage": 0.1},
}


def test_every_eraser_has_its_passes_documented():
    assert PASSES.keys() == ex.ERASERS.keys()


@pytest.fixture(scope="module")
def fitted():
    known = {}

    def fit(settings, X, y):
        if settings not in known:
            known[settings] = make(settings).fit(X, y)
        return known[settings]

    return fit


def make(settings):
    return ex.ERASERS[settings.split()[0]](**SETTINGS[settings])


@every_home
@pytest.mark.parametrize("settings", SETTINGS)
def test_every_eraser_gives_what_it_gives_on_an_array(home, settings, tmp_path, fitted):
    data = plant("classes", n=400)
    rows = placed(home, data.X, tmp_path)
    found, expected = make(settings).fit(rows, data.y), fitted(settings, data.X, data.y)
    a, b = found._settled()[0], expected._settled()[0]
    close = (
        1e-6 if found.solver_ in ("subspace_ascent", "inlp") else CLOSE
    )  # it stops by a tolerance
    for part in {"left", "right", "shift", "maps", "center", "coef"} & {*dir(a)}:
        if getattr(b, part) is not None:
            assert_close(getattr(a, part), getattr(b, part), close)
    if expected.certificate_ is not None:
        for part in ("value", "bound", "erased", "variance_kept"):
            ours, theirs = (getattr(w.certificate_, part) for w in (found, expected))
            assert_close(ours, theirs, close)
    assert a.meta["fingerprint"] == b.meta["fingerprint"]
    if isinstance(rows, LazyRows):
        assert rows.largest == rows.size  # never more than a block was held
        passes = PASSES[settings.split()[0]]
        if passes is not None and (found.solver_ == "closed_form" and found.strength == 1):
            assert rows.passes == passes
            assert rows.taken == 0


@pytest.mark.parametrize("name", [name for name in ex.ERASERS if PASSES[name] == 1])
def test_single_precision_is_read_once_too(name):
    """Though a look is taken at what rounding does to these rows."""
    data = plant("binary", n=600)
    rows = LazyRows(data.X.astype(np.float32))
    ex.ERASERS[name]().fit(rows, data.y)
    assert (rows.passes, rows.taken) == (1, 0)


def test_free_form_leace_reads_rows_three_times():
    """For sums, for sums of features, and for the certificate; never more than a block."""
    data = plant("classes", n=400)
    rows = LazyRows(data.X)
    found = make("LEACE free of form").fit(rows, data.y)
    assert found.solver_ == "random_features"
    assert (rows.passes, rows.taken, rows.largest) == (3, 0, rows.size)


def test_a_task_is_read_in_the_same_pass():
    data = plant("binary", n=600)
    rows, task = LazyRows(data.X), data.X[:, 0] > 0
    found = ex.SPLINCE().fit(rows, task, concept=data.y)
    assert rows.passes == 1
    expected = ex.SPLINCE().fit(data.X, task, concept=data.y)
    assert_close(found.erasure_.matrix(), expected.erasure_.matrix())


def test_the_gate_takes_rows_as_they_are():
    rows = check_rows(plant("binary").X)
    assert check_rows(rows) is rows
    with pytest.raises(ex.InputError, match="minimum of 700"):
        check_rows(rows, least=700)
    with pytest.raises(ex.InputError, match="expecting 8 features"):
        ex.LEACE().fit(rows, plant("binary").y).transform(LazyRows(np.ones((4, 3))))


class MadeRows(LazyRows):
    """Rows that exist only while they are looked at."""

    def __init__(self, n):
        self.n, self.size = n, 4096
        self.passes = self.taken = self.largest = 0

    n_samples = property(lambda self: self.n)
    n_features = property(lambda self: 48)
    dtype = property(lambda self: np.dtype(np.float32))

    def blocks(self):
        for lo in range(0, self.n, self.size):
            rng = np.random.default_rng(lo)
            yield lo, rng.normal(size=(min(self.size, self.n - lo), 48)).astype(np.float32)


@pytest.mark.parametrize("name", ["LEACE", "RLACE", "QuadraticLEACE"])
def test_memory_does_not_grow_with_the_rows(name):
    def peak(n):
        y = np.arange(n, dtype=np.int64) % 2
        ex.ERASERS[name]().fit(MadeRows(4096), y[:4096])  # whatever is loaded once
        tracemalloc.start()
        ex.ERASERS[name]().fit(MadeRows(n), y)
        most = tracemalloc.get_traced_memory()[1] - 40 * n  # labels and their copies
        tracemalloc.stop()
        return most

    assert peak(80_000) < 1.2 * peak(20_000)


@pytest.mark.parametrize("second", [False, True])
def test_an_array_is_summed_within_a_few_matrices(second, monkeypatch):
    """Ten times the spans, no more memory: sums are merged as they come."""
    from expunge import parallel

    monkeypatch.setattr(parallel, "SPAN", 512)

    def peak(n):
        X, concept = np.ones((n, 200), np.float32), Concept.none(n)
        tracemalloc.start()
        DenseRows(X).moments(concept, second=second)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    few, many = peak(2048), peak(20_480)
    assert many < few + 6 * 200 * 200 * 8


def test_a_classifier_says_that_it_saw_a_sample(monkeypatch):
    from expunge.erasers import inlp

    data = plant("binary", n=600)
    monkeypatch.setattr(inlp, "MOST", 8 * 200)
    eraser = ex.INLP(1, classifier=LogisticRegression())
    with pytest.warns(ex.errors.SampleTaken, match="200 random rows of 600"):
        eraser.fit(LazyRows(data.X), data.y)
    full = ex.INLP(1, classifier=LogisticRegression()).fit(data.X, data.y)
    assert abs(float(eraser.erasure_.basis[0] @ full.erasure_.basis[0])) > 0.9
