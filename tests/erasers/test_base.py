"""What all erasers share: what is kept of a fit, what is refused, what is said."""

import warnings

import numpy as np
import pytest
import sklearn
from sklearn.exceptions import NotFittedError

import expunge as ex
from expunge.emptied import without_digits
from expunge.erasers.base import ERASERS, register
from expunge.game.result import Step
from expunge.rows.base import Rows
from expunge.rows.dense import DenseRows
from planted import plant

CLOSED = ("LEACE", "SPLINCE", "OracleLEACE", "QuadraticLEACE", "SAL", "MeanProjection")


def told(eraser, X, y):
    given = {"concept": y} if hasattr(eraser, "conditional_erasure_") else {}
    return eraser.transform(X, **given)


# -- what each says of itself ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ex.ERASERS)
def test_reasons_are_text(name):
    """Empty where there is none."""
    eraser = ex.ERASERS[name]()
    for reason in (eraser._why_not_streaming, eraser._why_not_moments, eraser._why_not_pooling):
        assert isinstance(reason(), str)
    assert bool(eraser._why_not_streaming()) is not hasattr(eraser, "partial_fit")
    if eraser._why_not_streaming():
        with pytest.raises(AttributeError, match="partial_fit"):
            _ = eraser.partial_fit
    streams = {"INLP": {"rank": 2, "loss": "squared"}}.get(name)
    if streams:
        assert ex.ERASERS[name](**streams)._why_not_streaming() == ""
    assert ex.ERASERS[name].__name__ == name


NEEDS_SECOND = {
    "RLACE": False,
    "LEACE": True,
    "SPLINCE": True,
    "SAL": False,
    "MeanProjection": False,
    "OracleLEACE": False,
    "QuadraticLEACE": False,
    "RayleighEraser": True,
    "INLP": True,
}


@pytest.mark.parametrize("name", NEEDS_SECOND)
def test_no_matrix_is_formed_that_nobody_needs(name):
    data = plant("classes", n=200)
    settings = {"rank": 2, "loss": "squared"} if name == "INLP" else {}
    for eraser in (ex.ERASERS[name](**settings), ex.ERASERS[name](**settings)):
        if eraser._why_not_streaming():
            continue
        eraser.partial_fit(data.X, data.y)
        assert (eraser._seen.moments.xx is not None) is NEEDS_SECOND[name]
        eraser.fit(data.X, data.y)
        assert (eraser._seen.moments.xx is not None) is NEEDS_SECOND[name]


@pytest.mark.parametrize(
    ("kind", "rank", "intercept", "formed"),
    [
        ("classes", "auto", True, False),
        ("classes", 3, True, False),  # of four classes
        ("classes", 4, True, True),
        ("classes", 4, False, False),
        ("classes", 3, False, True),
        ("binary", 1, True, False),
        ("binary", 1, False, False),
        ("binary", 2, False, True),
        ("labels", 3, True, False),
        ("labels", 2, True, True),
        ("vector", 2, True, False),
        ("vector", 1, True, True),
    ],
)
def test_rlace_forms_it_below_the_rank_of_the_concept(kind, rank, intercept, formed):
    data = plant(kind, n=60)
    eraser = ex.RLACE(rank, fit_intercept=intercept)
    checked = eraser._check(data.X, data.y, None, None, whole=True)
    assert eraser._second_for_fit(checked) is formed
    assert eraser._needs_second() is (rank != "auto")


@pytest.mark.parametrize("name", CLOSED)
def test_a_closed_form_reaches_its_optimum_in_one_step(name):
    data = plant("classes", n=200)
    eraser = ex.ERASERS[name]().fit(data.X, data.y)
    assert eraser.history_ == (Step(1, 0.0),)
    assert (eraser.n_iter_, eraser.solver_) == (1, "closed_form")
    if name == "QuadraticLEACE":
        free = ex.QuadraticLEACE(2, label_free=True).fit(data.X, data.y)
        assert (free.history_, free.rank_) == ((Step(1, 0.0),), 2)


@pytest.mark.parametrize("kind", ["classes", "labels"])
def test_means_of_all_classes_count_alike(kind):
    """MeanProjection below the rank, against the singular vectors of plain differences."""
    data = plant(kind)
    y = np.insert(data.Z, 1, 1.0, axis=1) if kind == "labels" else data.y
    C = data.X - data.X.mean(axis=0)
    if kind == "classes":
        A = np.stack([C[z == 1].mean(0) for z in data.Z.T], axis=1)
    else:  # each is a pair of classes; one that never varies has no difference
        A = np.stack([C[z == 1].mean(0) - C[z == 0].mean(0) for z in data.Z.T], axis=1)
    U, s, _ = np.linalg.svd(A)
    for rank in (1, 2):
        eraser = ex.MeanProjection(rank).fit(data.X, y)
        expected = np.eye(8) - U[:, :rank] @ U[:, :rank].T
        np.testing.assert_allclose(eraser.erasure_.matrix(), expected, atol=1e-9)
        assert eraser.history_[0].value == pytest.approx(s[rank])


# -- what is kept of a fit -------------------------------------------------------------------------


def test_nothing_is_there_before_a_fit():
    eraser = ex.LEACE()
    assert repr(eraser) == "LEACE()"
    for name in ("erasure_", "certificate_", "pool_", "rank_", "history_", "solver_"):
        with pytest.raises(NotFittedError):
            getattr(eraser, name)
    for one in (eraser, ex.OracleLEACE()):
        with pytest.raises(NotFittedError):
            one.transform(np.eye(3))


def test_a_fit_is_kept_until_the_next_one():
    data, other = plant("binary", n=100), plant("classes", n=100, seed=1)
    eraser = ex.LEACE().fit(data.X, data.y)
    assert repr(eraser) == "LEACE(), fitted: rank 1 by closed_form"
    first = eraser.erasure_
    assert eraser.erasure_ is first  # solved for once
    with pytest.raises(ex.InputError):
        eraser.fit(np.full((5, 8), np.nan), [0, 1, 0, 1, 0])
    assert eraser.erasure_ is first
    eraser.partial_fit(data.X[:10], data.y[:10])
    assert repr(eraser) == "LEACE()"
    assert eraser.erasure_.meta["n"] == 110
    assert eraser.erasure_ is eraser.erasure_
    eraser.fit(other.X[:, :5], other.y)
    assert (eraser.n_features_in_, eraser.rank_, eraser.erasure_.meta["n"]) == (5, 3, 100)
    with pytest.raises(ex.InputError, match="expecting 5 features"):
        eraser.partial_fit(data.X, data.y)
    with pytest.raises(ex.InputError, match="expecting 5 features"):
        eraser.transform(data.X)
    eraser.fit_moments(ex.Moments.of(data.X, data.Z))
    assert repr(eraser) == "LEACE(), fitted: rank 1 by closed_form"
    assert (eraser.n_features_in_, eraser.erasure_.n_features) == (8, 8)


def test_names_of_columns_are_those_of_the_last_fit():
    pd = pytest.importorskip("pandas")
    data = plant("binary", n=100)
    frame = pd.DataFrame(data.X, columns=list("abcdefgh"))
    eraser = ex.LEACE().fit(frame, data.y)
    assert list(eraser.feature_names_in_) == list("abcdefgh")
    assert list(eraser.get_feature_names_out()) == list("abcdefgh")
    with pytest.warns(UserWarning, match="valid feature names"):
        np.testing.assert_allclose(eraser.transform(data.X), eraser.transform(frame))
    for wrong in (frame[list("hgfedcba")], frame.rename(columns={"a": "z"})):
        with pytest.raises(ValueError, match="feature names"):
            eraser.transform(wrong)
    eraser.partial_fit(frame, data.y)
    assert eraser.erasure_.meta["columns"]["vectors"] == list("abcdefgh")
    stream = ex.LEACE().partial_fit(frame, data.y)
    assert stream.erasure_.columns.names == tuple("abcdefgh")
    eraser.fit_moments(ex.Moments.of(data.X, data.Z))
    assert not hasattr(eraser, "feature_names_in_")


@pytest.mark.parametrize("strength", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("name", ["LEACE", "SAL", "INLP", "PairPCA"])
def test_strength(name, strength):
    data = plant("classes", n=200)
    settings = {"rank": 2} if name == "INLP" else {}
    full = ex.ERASERS[name](**settings).fit(data.X, data.y)
    part = ex.ERASERS[name](strength=strength, **settings).fit(data.X, data.y)
    expected = data.X + strength * (full.transform(data.X) - data.X)
    np.testing.assert_allclose(part.transform(data.X), expected, atol=1e-9)
    assert part.erasure_.rank == part.rank_ == (full.rank_ if strength else 0)
    assert part.erasure_.meta["parameters"]["strength"] == strength


def test_an_erasure_that_is_told_the_concept_is_another_thing():
    data = plant("classes", n=200)
    for eraser in (ex.OracleLEACE(), ex.QuadraticLEACE()):
        eraser.fit(data.X, data.y)
        with pytest.raises(AttributeError, match="needs the concept of every row"):
            _ = eraser.erasure_
        assert eraser.rank_ == eraser.conditional_erasure_.rank
        factors = eraser._settled()[2]  # there are none
        assert (factors.left.shape, factors.right.shape) == ((8, 0), (0, 8))
        clean = type(eraser)().fit_transform(data.X, data.y)
        np.testing.assert_allclose(clean, eraser.transform(data.X, concept=data.y))
        beside = type(eraser)().fit_transform(data.X, data.Z[:, 0], concept=data.y)
        np.testing.assert_allclose(clean, beside)
        with pytest.raises(ex.InputError, match="at transform time"):
            eraser.transform(data.X)
    free = ex.QuadraticLEACE(1, label_free=True).fit(data.X, data.y)
    with pytest.raises(AttributeError, match="needs no concept"):
        _ = free.conditional_erasure_
    np.testing.assert_allclose(free.transform(data.X), free.erasure_.transform(data.X))
    out = np.empty_like(data.X)
    assert free.transform(data.X, out=out) is out


@pytest.mark.parametrize("name", ["OracleLEACE", "LEACE", "SAL"])
def test_a_stream_is_certified_as_a_fit_is(name):
    data = plant("classes", n=200)
    whole, stream = ex.ERASERS[name]().fit(data.X, data.y), ex.ERASERS[name]()
    for part in (slice(0, 90), slice(90, 200)):
        assert stream.partial_fit(data.X[part], data.y[part]) is stream
    a, b = whole.certificate_, stream.certificate_
    assert a.erased
    assert b.erased
    assert a.bound == pytest.approx(b.bound)
    x, y = (told(e, data.X, data.y) for e in (whole, stream))
    np.testing.assert_allclose(x, y, atol=1e-9)
    assert whole._settled()[0].meta["fingerprint"] == stream._settled()[0].meta["fingerprint"]


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::expunge.errors.NothingLeft")
def test_how_many_rows_there_have_to_be():
    X, y = np.random.default_rng(0).normal(size=(4, 3)), [0, 1, 0, 1]
    with pytest.raises(ex.InputError):
        ex.LEACE().fit(X[:1], y[:1])
    ex.SAL().fit(X[:2], [0.5, 1.5])
    one = ex.LEACE().partial_fit(X[:1], y[:1])
    with pytest.raises(ex.InputError, match="one class only"):
        _ = one.erasure_
    assert one.partial_fit(X[1:], y[1:]).transform(X[:1]).shape == (1, 3)
    with pytest.raises(ex.InputError):
        one.transform(X[:0])
    for call in (ex.LEACE(strength=1.5).fit, ex.LEACE(strength=1.5).partial_fit):
        with pytest.raises(ex.InputError, match="strength"):
            call(X, y)
    with pytest.raises(ex.InputError, match="rank"):
        ex.LEACE(rank=7).partial_fit(X, y)


def test_what_was_wrong_is_named_as_it_was_given():
    X, y = np.random.default_rng(0).normal(size=(6, 3)), np.arange(6) % 2
    with pytest.raises(ex.InputError, match=", y has 4"):
        ex.LEACE().fit(X, y[:4])
    with pytest.raises(ex.InputError, match=", concept has 4"):
        ex.LEACE().fit(X, y, concept=y[:4])
    with pytest.raises(ex.InputError, match=r", y \(the task\) has 4"):
        ex.SPLINCE().fit(X, y[:4], concept=y)
    with pytest.raises(ex.InputError, match="of kind classes, labels only"):
        ex.MeanProjection().fit(X, X[:, 0])
    with pytest.raises(ex.InputError, match="X"):
        ex.LEACE().fit(X[:, :0], y)


def test_a_task_is_kept_only_where_it_is_asked_for():
    data = plant("classes", n=300)
    task = np.random.default_rng(0).integers(0, 3, 300)
    w = np.where(task == 2, 0.0, 1.0)  # one class of the task has no weight
    spl = ex.SPLINCE().fit(data.X, task, concept=data.y, sample_weight=w)
    assert spl._seen.task.labels == (0, 1)
    assert ex.SPLINCE().fit(data.X, data.y)._seen.task is None
    assert ex.SPLINCE().fit(data.X, concept=data.y)._seen.task is None
    assert ex.LEACE().fit(data.X, task, concept=data.y)._seen.task is None
    own = task < 2
    plain = ex.SPLINCE().fit(data.X[own], task[own], concept=data.y[own])
    np.testing.assert_allclose(spl.erasure_.matrix(), plain.erasure_.matrix(), atol=1e-9)


@pytest.mark.parametrize("asked", [True, "who", False, None])
def test_a_concept_that_was_promised_has_to_come(asked):
    X, y = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 2
    with sklearn.config_context(enable_metadata_routing=True):
        eraser = ex.LEACE().set_fit_request(concept=asked)
        for call in (eraser.fit, ex.LEACE().set_fit_request(concept=asked).partial_fit):
            if asked:
                with pytest.raises(ex.InputError, match="a concept would come, and none did"):
                    call(X, y)
            else:
                call(X, y)
            call(X, y, concept=y)
        none = ex.RayleighEraser(objective="pca").set_fit_request(concept=asked)
        assert none.fit(X, y).rank_ == 1


@pytest.mark.filterwarnings("ignore::expunge.errors.NothingLeft")
def test_moments_that_are_not_enough_or_too_few():
    X, z = np.random.default_rng(0).normal(size=(2, 6, 3))
    z = z[:, :1]
    assert ex.SAL().fit_moments(ex.Moments.of(X[:2], z[:2])).rank_ == 1
    light = ex.Moments.of(X, z, np.full(6, 0.1))
    assert ex.LEACE().fit_moments(light).rank_ == 1
    with pytest.raises(ex.InputError, match="too few rows to fit"):
        ex.LEACE().fit_moments(ex.Moments.of(X, z, np.zeros(6)))
    with pytest.raises(ex.InputError, match="Received ndarray"):
        ex.LEACE().fit_moments(X)
    with pytest.raises(ex.InputError, match="Received str"):
        ex.LEACE().fit_moments(light, fingerprint="f")
    with pytest.raises(ex.InputError, match="cannot stream a continuous concept"):
        ex.RLACE(loss="huber").fit_moments(light)
    for eraser in (ex.SAL(), ex.OracleLEACE(), ex.RLACE()):
        eraser.fit_moments(ex.Moments.of(X, z, second=False))
    for eraser in (ex.LEACE(), ex.RayleighEraser(), ex.INLP(1, loss="squared"), ex.RLACE(1)):
        with pytest.raises(ex.InputError, match="second=True"):
            eraser.fit_moments(ex.Moments.of(X, z, second=False))
    far = ex.Moments.of(X, z)
    far.squares = far.squares * 1e250
    with pytest.raises(ex.InputError, match="out of range"):
        ex.LEACE().fit_moments(far)


def test_tags():
    tags = ex.LEACE().__sklearn_tags__()
    assert tags.target_tags.required
    assert tags.transformer_tags.preserves_dtype == ["float64", "float32", "float16"]
    assert not ex.RayleighEraser(objective="pca").__sklearn_tags__().target_tags.required


# -- what is said ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "narrow", "warns"),
    [(20, 1, False), (20, 2, True), (39, 1, False), (39, 2, True), (19, 1, True), (3, 0, False)],
)
@pytest.mark.parametrize("offset", [0.0, 30.0])
def test_one_column_in_twenty_may_be_dead(columns, narrow, warns, offset):
    """Beyond them, spreads more than a thousand times apart are said to matter."""
    rng = np.random.default_rng(0)
    y = np.arange(100) % 2
    X = offset + rng.normal(size=(100, columns)) + np.outer(y, np.eye(columns)[-1])
    X[:, :narrow] = offset * 1e-4 + (X[:, :narrow] - offset) * 1e-4
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        ex.SAL().fit(X, y)
        ex.LEACE().fit(X, y)
    kinds = [type(w.message).__name__ for w in said]
    assert kinds == (["UnitsMatter"] if warns else [])
    if warns:
        assert "SAL depends on the units" in str(said[0].message)


def test_columns_that_vary_by_rounding_have_no_units():
    rng = np.random.default_rng(0)
    y = np.arange(100) % 2
    X = rng.normal(size=(100, 4)) + np.outer(y, [1, 0, 0, 0])
    X[:, 3] = 1e6 + 1e-4 * X[:, 3]  # a ten billionth of its mean
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ex.SAL().fit(X, y)
    X[:, 3] = (X[:, 3] - 1e6) + 10.0
    with pytest.warns(ex.errors.UnitsMatter, match="factor of"):
        ex.SAL().fit(X, y)


@pytest.mark.parametrize(("gap", "warns"), [(0.05, True), (0.3, False)])
def test_what_leaves_next_to_nothing_is_said(gap, warns):
    """Less than a hundredth of the variance of the average column."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(300, 3))
    X = np.c_[z, z[:, 0]] + gap * rng.normal(size=(300, 4))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        ex.LEACE().fit(X, z)
    assert [type(w.message).__name__ for w in said] == (["NothingLeft"] if warns else [])
    if warns:
        assert "3 columns" in str(said[0].message)
        assert "Take fewer columns of the concept" in str(said[0].message)


def test_digits_in_constant_columns_are_taken_out():
    left = np.array([[1.0, 1e3], [1e-13, 1e-13], [1e-3, 1e-3], [1e-13, 1.0]])
    right = np.array([[0.5, 1e-14, 1e-14, 1e-14], [0.5, 1e-3, 1e-14, 1e-14]])
    moments = ex.Moments.of(np.array([[1.0, 5, 5, 1], [2.0, 5, 5, 3]]), [0, 1])  # two are constant
    a, b = without_digits(left, right, moments)
    np.testing.assert_array_equal(a, [[1.0, 1e3], [0, 0], [1e-3, 1e-3], [1e-13, 1.0]])
    np.testing.assert_array_equal(b, [[0.5, 0, 1e-14, 1e-14], [0.5, 1e-3, 1e-14, 1e-14]])
    empty = without_digits(np.zeros((4, 0)), np.zeros((0, 4)), moments)
    assert (empty[0].shape, empty[1].shape) == ((4, 0), (0, 4))


@pytest.mark.parametrize("kind", ["classes", "labels"])
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("SAL", {"rank": 2}),
        ("RayleighEraser", {"objective": "pca"}),
        ("MeanProjection", {"rank": 1}),
    ],
)
def test_constant_columns_among_others_are_neither_read_nor_written(name, settings, kind):
    """Singular vectors have entries of 1e-17 there, which a small spread would blow up."""
    for seed in range(5):
        data = plant(kind, n=60, seed=seed)
        X = np.insert(data.X, [1, 4, 4, 6], [0.0, 1e6 / 3, 7.0, 1 / 3], axis=1)
        found = ex.ERASERS[name](**settings).fit(X, data.y).erasure_
        constant = np.ptp(X, axis=0) == 0
        assert constant.sum() == 4
        assert not found.left[constant].any()
        assert not found.right[:, constant].any()
        assert np.abs(found.left).max() > 0.1


class Blocks(Rows):
    """Rows that come a few at a time; counts the passes."""

    def __init__(self, X):
        self._X, self.passes = X, 0

    n_samples = property(lambda self: len(self._X))
    n_features = property(lambda self: self._X.shape[1])
    dtype = property(lambda self: self._X.dtype)

    def blocks(self):
        self.passes += 1
        for lo in range(0, len(self._X), 37):
            yield lo, np.array(self._X[lo : lo + 37])

    def take(self, index):
        return DenseRows(np.array(self._X[index]))


@pytest.mark.parametrize("name", ["LEACE", "SAL", "MeanProjection"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_far_away_are_read_once(name, dtype):
    """What a certificate looks at is kept from the first pass."""
    data = plant("classes", n=200)
    X = data.X.astype(dtype)
    rows, w = Blocks(X), np.random.default_rng(0).random(200)
    far = ex.ERASERS[name]().fit(rows, data.y, sample_weight=w)
    near = ex.ERASERS[name]().fit(X, data.y, sample_weight=w)
    assert rows.passes == 1
    np.testing.assert_allclose(far.erasure_.matrix(), near.erasure_.matrix(), atol=1e-6)
    assert far.certificate_.erased
    assert far.certificate_.value == pytest.approx(near.certificate_.value)
    assert far.erasure_.meta["kept"] == pytest.approx(near.erasure_.meta["kept"])


def test_a_loss_that_cannot_stream_says_so_with_the_first_chunk():
    data = plant("number", n=50)
    eraser = ex.RLACE(loss="huber")
    with pytest.raises(ex.InputError, match="cannot stream a continuous concept"):
        eraser.partial_fit(data.X, data.y)
    assert not hasattr(eraser, "n_features_in_")
    assert ex.RLACE(loss="squared").partial_fit(data.X, data.y).rank_ == 1


def test_registered_erasers_are_found_by_name():
    class Another(ex.LEACE):
        pass

    assert register(Another) is Another
    assert ERASERS.pop("Another") is Another


def test_what_is_recorded():
    data = plant("classes", n=200)
    meta = ex.LEACE(shrinkage=np.float64(0.25)).fit(data.X, data.y).erasure_.meta
    assert (meta["method"], meta["solver"], meta["n"]) == ("LEACE", "closed_form", 200)
    assert meta["parameters"]["shrinkage"] == 0.25
    assert meta["concept"] == {"kind": "classes", "labels": ["ant", "bee", "cat", "dog"]}
    assert meta["pool"] is None
    assert set(meta["kept"]) >= {"variance"}
    assert meta["versions"]["numpy"] == np.__version__
    pairs = ex.PairPCA().fit(data.X, data.y).erasure_.meta
    assert pairs["fit"] is None
    assert ex.PairPCA().fit(data.X, data.y).certificate_ is None
    stream = ex.OracleLEACE().partial_fit(data.X, data.y).conditional_erasure_.meta
    assert "correlation" not in stream["fit"] or stream["kept"] is not None


def test_names_of_columns_that_are_partly_text_are_refused():
    pd = pytest.importorskip("pandas")
    data = plant("binary")
    frame = pd.DataFrame(data.X).assign(more=1.0)
    with pytest.raises(ex.InputError, match="names that are text and others have not"):
        ex.LEACE().fit(frame, data.y)
    frame.columns = frame.columns.astype(str)
    eraser = ex.LEACE().fit(frame, data.y)
    assert eraser.transform(frame).shape == frame.shape
    frame.columns = [*range(frame.shape[1] - 1), "more"]
    with pytest.raises(ex.InputError):
        eraser.transform(frame)
