"""The laws of erasure, over every registered eraser. Each first shows the concept was there."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

import expunge as ex
from planted import KINDS, plant

KIND = {
    "binary": "classes",
    "classes": "classes",
    "labels": "labels",
    "number": "continuous",
    "vector": "continuous",
}


def takes(name, kind):
    return KIND[kind] in ex.ERASERS[name].kinds


def promises(name, *wanted):
    return ex.ERASERS[name].guarantees.issuperset(wanted)


CONFIGURATIONS = [
    pytest.param(name, kind, id=f"{name}-{kind}")
    for name in ex.ERASERS
    for kind in KINDS
    if takes(name, kind)
]
ERASING = [name for name in ex.ERASERS if promises(name, "zero_cross_covariance")]


def make(name, kind, **parameters):
    if name == "INLP" and kind in ("labels", "number"):
        parameters = {"rank": 2, **parameters}
    known = ex.ERASERS[name]().get_params()
    return ex.ERASERS[name](**{key: p for key, p in parameters.items() if key in known})


def cleaned(eraser, X, y):
    """Erased rows, whether or not the eraser has to be told the concept."""
    if hasattr(eraser, "conditional_erasure_"):
        return eraser.transform(X, concept=y)
    return eraser.transform(X)


def assert_same_map(a, b, data, atol):
    np.testing.assert_allclose(
        cleaned(a, data.X, data.y), cleaned(b, data.X, data.y), atol=atol * 10, rtol=0
    )


def cross_covariance(X, Z, weights=None):
    w = np.ones(len(X)) if weights is None else weights
    X, Z = X - np.average(X, axis=0, weights=w), Z - np.average(Z, axis=0, weights=w)
    return X.T @ (w[:, None] * Z) / w.sum()


def explained(X, Z):
    """Share of the concept's variance that least squares finds in X: an independent solver."""
    return LinearRegression().fit(X, Z).score(X, Z)


def class_gap(X, y):
    means = np.array([X[y == c].mean(axis=0) for c in np.unique(y)])
    return np.abs(means - means[0]).max()


# -- claims, each as the distance from being kept, measured on the rows of the fit -----------------


def mean_gap(X, Z):
    """Largest difference of means between rows that have a column of the concept and that lack it.

    A number counts in part: from 0 at its least value to 1 at its largest.
    """
    share = (Z - Z.min(axis=0)) / np.ptp(Z, axis=0)
    having, lacking = (part.T @ X / part.sum(axis=0)[:, None] for part in (share, 1 - share))
    return np.abs(having - lacking).max()


def equal_means(eraser, data):
    assert mean_gap(data.X, data.Z) > 0.5
    return mean_gap(cleaned(eraser, data.X, data.y), data.Z)


def zero_cross_covariance(eraser, data):
    assert np.abs(cross_covariance(data.X, data.Z)).max() > 0.1
    assert explained(data.X, data.Z) > 0.2
    clean = cleaned(eraser, data.X, data.y)
    return max(np.abs(cross_covariance(clean, data.Z)).max(), explained(clean, data.Z))


def mean_preserved(eraser, data):
    clean = cleaned(eraser, data.X, data.y)
    assert np.abs(clean - data.X).max() > 0.1
    return np.abs(clean.mean(axis=0) - data.X.mean(axis=0)).max()


def orthogonal(eraser, data):
    """How far the rows are from being moved by an orthogonal projector, the same for all."""
    X, clean = data.X, cleaned(eraser, data.X, data.y)
    X, clean = X - X.mean(axis=0), clean - clean.mean(axis=0)
    P = np.linalg.lstsq(X, clean, rcond=None)[0]
    assert np.abs(P - np.eye(len(P))).max() > 0.1
    return max(np.abs(error).max() for error in (X @ P - clean, P - P.T, P @ P - P))


def least_squares_optimal(eraser, data):
    """First-order condition of min E‖x' - x‖² under Σx'z = 0, and the constraint itself.

    A change x' + Nx keeps the constraint iff NΣxz = 0, and costs nothing in the first order iff
    tr NᵀE[(x' - x)xᵀ] = 0; so the rows of E[(x' - x)xᵀ] lie in the span of the columns of Σxz.
    """
    clean = cleaned(eraser, data.X, data.y)
    moved = cross_covariance(clean - data.X, data.X)
    U, s, _ = np.linalg.svd(cross_covariance(data.X, data.Z), full_matrices=False)
    U = U[:, s > 1e-10 * s[0]]
    assert np.abs(moved).max() > 0.1
    left = np.abs(cross_covariance(clean, data.Z)).max()
    return max(left, np.abs(moved - moved @ U @ U.T).max())


def a_task(data):
    """Classes of a task that the rows show and that the concept has a part in."""
    rng = np.random.default_rng(5)
    score = data.X @ rng.normal(size=data.X.shape[1]) + rng.normal(size=len(data.X))
    return (score > np.median(score)).astype(int)


def task_covariance_kept(eraser, data):
    task = a_task(data)
    before = cross_covariance(data.X, task[:, None].astype(float))
    assert np.abs(before).max() > 0.1
    eraser = clone(eraser).fit(data.X, task, concept=data.y)
    clean = cleaned(eraser, data.X, data.y)
    kept = np.abs(cross_covariance(clean, task[:, None].astype(float)) - before).max()
    return max(kept, np.abs(cross_covariance(clean, data.Z)).max())


def equal_class_covariances(eraser, data):
    def spread(X):
        parts = [np.cov(X[data.y == c].T, ddof=0) for c in np.unique(data.y)]
        return max(np.abs(part - parts[0]).max() for part in parts)

    assert spread(data.X) > 0.05
    return spread(cleaned(eraser, data.X, data.y))


CLAIMS = {
    f.__name__: f
    for f in (
        equal_means,
        zero_cross_covariance,
        mean_preserved,
        orthogonal,
        least_squares_optimal,
        task_covariance_kept,
        equal_class_covariances,
    )
}
KEPT, BROKEN = 1e-9, 1e-3  # with nothing in between


@pytest.mark.parametrize(("name", "kind"), CONFIGURATIONS)
def test_keeps_its_promises(name, kind):
    data = plant(kind)
    eraser = make(name, kind).fit(data.X, data.y)
    assert eraser.guarantees
    for claim in eraser.guarantees:
        assert CLAIMS[claim](eraser, data) < KEPT, claim
    if hasattr(eraser, "erasure_") and "orthogonal" in eraser.guarantees:
        assert eraser.erasure_.is_orthogonal


def counterexample(name, claim, data):
    """A fit that breaks what its class does not promise: the default one, where that does."""
    if name == "RayleighEraser" and claim == "orthogonal":
        return ex.RayleighEraser(objective="cca").fit(data.X, data.y)
    if name == "SPLINCE":
        return ex.SPLINCE().fit(data.X, a_task(data), concept=data.y)
    if name == "FoldEraser":  # which may take LEACE, that promises more
        return ex.FoldEraser(shrinkage=0.1).fit(data.X, data.y)
    return make(name, "classes").fit(data.X, data.y)


UNPROMISED = [(name, claim) for name in ex.ERASERS for claim in CLAIMS if not promises(name, claim)]


@pytest.mark.parametrize(("name", "claim"), UNPROMISED)
def test_promises_no_less_than_it_could(name, claim):
    """Whatever an eraser does not promise is really not there."""
    data = plant("classes")
    assert CLAIMS[claim](counterexample(name, claim, data), data) > BROKEN


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "claim", ["equal_means", "zero_cross_covariance", "least_squares_optimal", "orthogonal"]
)
def test_the_erasure_of_another_concept_keeps_no_claim(claim, kind):
    data = plant(kind)
    order = np.random.default_rng(6).permutation(len(data.y))
    other = ex.LEACE().fit(data.X, data.y[order])
    assert CLAIMS[claim](other, data) > BROKEN


WITHOUT_CONCEPT = [
    p for p in CONFIGURATIONS if p.values[0] not in ("OracleLEACE", "QuadraticLEACE", "FoldEraser")
]
FILLS_UP = ("RLACE", "RayleighEraser", "INLP")


@pytest.mark.parametrize(("name", "kind"), WITHOUT_CONCEPT)
def test_idempotent_and_of_the_rank_it_says(name, kind):
    data = plant(kind)
    own = make(name, kind).fit(data.X, data.y)
    for eraser in (own, make(name, kind, rank=5).fit(data.X, data.y)):
        P = eraser.erasure_.matrix()
        np.testing.assert_allclose(P @ P, P, atol=1e-9)
        assert np.linalg.matrix_rank(np.eye(8) - P, tol=1e-8) == eraser.rank_
        once = eraser.transform(data.X)
        np.testing.assert_allclose(eraser.transform(once), once, atol=1e-9)
    assert eraser.rank_ == 5 if name in FILLS_UP else eraser.rank_ <= 5
    if promises(name, "zero_cross_covariance"):
        assert explained(data.X, data.Z) > 0.2
        assert explained(eraser.transform(data.X), data.Z) < 1e-10


@pytest.mark.parametrize(("name", "kind"), CONFIGURATIONS)
def test_strength_goes_from_nothing_to_everything(name, kind):
    data = plant(kind)
    full = cleaned(make(name, kind).fit(data.X, data.y), data.X, data.y)
    none = cleaned(make(name, kind, strength=0.0).fit(data.X, data.y), data.X, data.y)
    np.testing.assert_array_equal(none, data.X)
    half = make(name, kind, strength=0.5).fit(data.X, data.y)
    np.testing.assert_allclose(cleaned(half, data.X, data.y), (full + data.X) / 2, atol=1e-9)
    if promises(name, "zero_cross_covariance"):
        assert not half.certificate_.erased
        assert explained(cleaned(half, data.X, data.y), data.Z) > 0.1


@pytest.mark.parametrize("name", ex.ERASERS)
@pytest.mark.parametrize("strength", [-0.1, 1.1, "full", None])
def test_strength_is_a_share(name, strength):
    data = plant("binary")
    with pytest.raises(ex.InputError, match="strength"):
        make(name, "binary", strength=strength).fit(data.X, data.y)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
@pytest.mark.parametrize(("name", "kind"), CONFIGURATIONS)
def test_scaling_changes_nothing_but_the_scale(name, kind, scale):
    data = plant(kind)
    plain = make(name, kind).fit(data.X, data.y)
    scaled = make(name, kind).fit(data.X * scale, data.y)
    np.testing.assert_allclose(
        cleaned(scaled, data.X * scale, data.y) / scale,
        cleaned(plain, data.X, data.y),
        atol=1e-6,
    )
    if plain.certificate_ is None:
        return
    erased = promises(name, "zero_cross_covariance")
    assert scaled.certificate_.erased == plain.certificate_.erased
    assert plain.certificate_.erased >= erased
    assert scaled.certificate_.bound == pytest.approx(plain.certificate_.bound)


@pytest.mark.parametrize(("name", "kind"), CONFIGURATIONS)
def test_rotating_the_rows_rotates_the_erasure(name, kind):
    data = plant(kind)
    R = np.linalg.qr(np.random.default_rng(1).normal(size=(8, 8)))[0]
    plain = cleaned(make(name, kind).fit(data.X, data.y), data.X, data.y)
    turned = cleaned(make(name, kind).fit(data.X @ R, data.y), data.X @ R, data.y)
    np.testing.assert_allclose(turned, plain @ R, atol=1e-8)


@pytest.mark.parametrize(("name", "kind"), CONFIGURATIONS)
def test_the_order_of_rows_does_not_matter(name, kind):
    data = plant(kind)
    order = np.random.default_rng(2).permutation(len(data.X))
    fixed = {"rank": 2} if name == "INLP" else {}  # "auto" holds out rows by their place
    plain = make(name, kind, **fixed).fit(data.X, data.y)
    mixed = make(name, kind, **fixed).fit(data.X[order], data.y[order])
    assert_same_map(mixed, plain, data, 1e-9)
    a, b = mixed._settled()[0].meta, plain._settled()[0].meta
    assert a["fingerprint"]["digest"] == b["fingerprint"]["digest"]


STREAMING = [p for p in CONFIGURATIONS if hasattr(make(*p.values), "partial_fit")]


def test_what_cannot_stream_says_so():
    assert {p.values[0] for p in CONFIGURATIONS} - {p.values[0] for p in STREAMING} == {
        "INLP",
        "FoldEraser",
    }
    with pytest.raises(AttributeError, match="partial_fit") as refused:
        ex.INLP().partial_fit(np.eye(3), [0, 1, 0])
    assert "loss='squared' with a given rank streams" in str(refused.value.__cause__)


@pytest.mark.parametrize(("name", "kind"), STREAMING)
def test_chunks_equal_the_whole(name, kind):
    data = plant(kind)
    whole = make(name, kind).fit(data.X, data.y)
    stream = make(name, kind)
    for part in np.array_split(np.arange(len(data.X)), [7, 8, 300, 599]):
        stream.partial_fit(data.X[part], data.y[part])
    if name == "PairPCA":  # a set has to come in one chunk
        stream = make(name, kind)
        for label in np.unique(data.y):
            stream.partial_fit(data.X[data.y == label], data.y[data.y == label])
    assert_same_map(stream, whole, data, 1e-9)
    if promises(name, "zero_cross_covariance"):
        assert stream.certificate_.erased
    assert stream._settled()[0].meta["n"] == 600


@pytest.mark.parametrize(("name", "kind"), CONFIGURATIONS)
def test_refitting_equals_a_fresh_fit_and_gives_equal_bytes(name, kind, tmp_path):
    data, other = plant(kind), plant("binary", d=5, seed=9)
    eraser = ex.ERASERS[name]()
    eraser.fit(other.X, other.y)
    if hasattr(eraser, "partial_fit"):
        eraser.partial_fit(other.X, other.y)
    eraser.fit(data.X, data.y)._settled()[0].save(tmp_path / "again")
    fresh = ex.ERASERS[name]().fit(data.X, data.y)
    fresh._settled()[0].save(tmp_path / "fresh")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "fresh").read_bytes()


@pytest.mark.parametrize(("name", "kind"), CONFIGURATIONS)
def test_weights_equal_repetition(name, kind):
    data = plant(kind)
    w = np.random.default_rng(4).integers(0, 4, len(data.X))
    fixed = {"rank": 2} if name == "INLP" else {}
    weighted = make(name, kind, **fixed).fit(data.X, data.y, sample_weight=w)
    repeated = np.repeat(np.arange(len(w)), w)
    plain = make(name, kind, **fixed).fit(data.X[repeated], data.y[repeated])
    assert_same_map(weighted, plain, data, 1e-9)
    if promises(name, "zero_cross_covariance"):
        clean = cleaned(weighted, data.X, data.y)
        assert np.abs(cross_covariance(clean, data.Z, w)).max() < 1e-12


# -- data that break careless numerics -------------------------------------------------------------


@pytest.mark.parametrize("name", ERASING)
def test_a_rare_class_is_fully_erased(name):
    """0.5 % of the rows, 1.4 standard deviations away: a covariance of 0.007."""
    rng = np.random.default_rng(0)
    y = np.zeros(20_000, dtype=int)
    y[:100] = 1
    X = rng.normal(size=(20_000, 10))
    X[:100, 4] += 1.4
    assert class_gap(X, y) > 1.2
    eraser = ex.ERASERS[name]().fit(X, y)
    assert class_gap(cleaned(eraser, X, y), y) < 1e-10
    assert eraser.certificate_.erased


@pytest.mark.parametrize("name", ERASING)
def test_integer_labels_are_classes_not_numbers(name):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 2000)
    X = rng.normal(size=(2000, 10)) + rng.normal(size=(4, 10))[y]
    eraser = ex.ERASERS[name]().fit(X, y)
    assert eraser.rank_ == 3
    assert class_gap(X, y) > 1
    assert class_gap(cleaned(eraser, X, y), y) < 1e-10


@pytest.mark.parametrize("name", ERASING)
def test_half_precision_input(name):
    data = plant("binary", n=4000)
    X = data.X.astype(np.float16)
    eraser = ex.ERASERS[name]().fit(X, data.y)
    assert eraser.certificate_.erased
    assert cleaned(eraser, X, data.y).dtype == np.float16
    wide = X.astype(np.float64)
    assert class_gap(wide, data.y) > 0.5
    assert class_gap(cleaned(eraser, wide, data.y), data.y) < 1e-6


@pytest.mark.parametrize("name", ERASING)
def test_a_large_common_offset_in_single_precision(name):
    data = plant("binary", n=20_000)
    X = (data.X + 1e6).astype(np.float32)
    wide = X.astype(np.float64)
    within = np.mean([wide[data.y == c].std(axis=0) for c in (0, 1)], axis=0)
    assert class_gap(wide / within, data.y) > 0.5
    eraser = ex.ERASERS[name]().fit(X, data.y)
    assert class_gap(cleaned(eraser, wide, data.y) / within, data.y) < 1e-5
    assert eraser.certificate_.erased


@pytest.mark.filterwarnings("ignore::expunge.errors.CovariancesDiffer")  # of few rows
@pytest.mark.parametrize("name", ERASING)
@pytest.mark.parametrize("case", ["more columns than rows", "constant columns", "repeated rows"])
def test_degenerate_rows(name, case):
    rng = np.random.default_rng(0)
    n, d = (40, 60) if case == "more columns than rows" else (60, 10)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, d)) + np.outer(y, rng.normal(size=d))
    if case == "constant columns":
        X[:, [2, 5]] = 7.0
    if case == "repeated rows":
        X, y = np.repeat(X[:6], 10, axis=0), np.repeat(y[:6], 10)
    assert class_gap(X, y) > 0.5
    eraser = ex.ERASERS[name]().fit(X, y)
    assert class_gap(cleaned(eraser, X, y), y) < 1e-9
    assert eraser.certificate_.erased


@pytest.mark.filterwarnings("ignore::expunge.errors.NothingLeft")  # INLP of numbers takes all
@pytest.mark.parametrize("value", [0.0, 0.1, -7.0])
@pytest.mark.parametrize(("name", "kind"), CONFIGURATIONS)
def test_a_column_that_never_varies_stays_as_it_is(name, kind, value):
    """Rounding there would be all its variance, and a probe that rescales columns would read it."""
    data = plant(kind)
    X = np.insert(data.X, 3, value, axis=1)
    clean = cleaned(make(name, kind).fit(X, data.y), X, data.y)
    assert np.abs(clean - X).max() > 0.1
    np.testing.assert_array_equal(clean[:, 3], X[:, 3])
