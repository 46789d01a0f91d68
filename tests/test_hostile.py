"""Odd values at every public door: each is taken for what it is or refused as an `InputError`.

A table of odd values meets a table of entry points. Nothing else may be raised, and nothing may
come out that is not finite.
"""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

import expunge as ex
from expunge.errors import ExpungeError, InputError

NAN, INF = float("nan"), float("inf")
RNG = np.random.default_rng(0)
N, D = 40, 4
Y = np.arange(N) % 2
X = RNG.normal(size=(N, D)) + np.outer(Y, np.ones(D))
OTHER = np.arange(N) // 2 % 2
NUMBERS = X[:, 0] ** 2
WORDS = [f"w{i}" for i in range(N)]

pytestmark = pytest.mark.filterwarnings("ignore")  # what odd values warn of is another matter


class Stubborn:
    """Answers every question with an error."""

    def __len__(self):
        raise RuntimeError("no length")

    def __iter__(self):
        raise RuntimeError("no entries")

    def __array__(self, *args, **options):
        raise RuntimeError("no array")

    def __bool__(self):
        raise RuntimeError("no truth")


def tensors():
    torch = pytest.importorskip("torch")
    eye = torch.eye(N, D)
    with warnings.catch_warnings(action="ignore"):  # torch calls some of these unfinished
        compressed = eye.to_sparse_csr()
        nested = torch.nested.nested_tensor([torch.zeros(2, D), torch.zeros(3, D)])
        quantised = torch.quantize_per_tensor(eye, 0.1, 0, torch.qint8)
    return {
        "sparse tensor": eye.to_sparse(),
        "compressed tensor": compressed,
        "meta tensor": torch.empty(N, D, device="meta"),
        "nested tensor": nested,
        "quantised tensor": quantised,
        "complex tensor": eye * 1j,
        "8-bit tensor": torch.zeros(N, D, dtype=torch.float8_e4m3fn),
        "NaN tensor": torch.full((N, D), NAN),
    }


FITTED = ex.LEACE().fit(X, Y)
ERASURE = FITTED.erasure_
TOLD = ex.OracleLEACE().fit(X, Y).conditional_erasure_
ODD = {
    "None": None,
    "number": 3,
    "negative": -1,
    "fraction": 0.5,
    "NaN": NAN,
    "truth": True,
    "text": "abc",
    "bytes": b"abc",
    "empty list": [],
    "empty dict": {},
    "dict of rows": {"a": X},
    "set": {1, 2},
    "object": object(),
    "function": len,
    "class": np.ndarray,
    "module": np,
    "stubborn": Stubborn(),
    "ragged": [[1, 2], [3]] * (N // 2),
    "negative numbers": [-1.0] * N,
    "NaNs": [NAN] * N,
    "infinite matrix": X * INF,
    "NaN matrix": X * NAN,
    "numpy.matrix": np.asmatrix(X),
    "record": np.zeros(N, dtype=[("a", "f8")]),
    "masked": np.ma.masked_array(X, mask=X > 1),
    "complex": X * 1j,
    "void": np.zeros((N, D), "V8"),
    "durations": np.zeros((N, D), "m8[s]"),
    "objects": np.full((N, D), None),
    "no rows": np.zeros((0, D)),
    "no axes": np.array(3.0),
    "three axes": np.zeros((2, 3, D)),
    "sparse": scipy.sparse.csr_array(X),
    "text array": np.array(["a", "b"] * (N // 2)),
    "range": range(N),
    "same names": pd.DataFrame(X, columns=list("aabc")),
    "same names as text": pd.DataFrame(X, columns=[1, "1", 2, 3]),
    "categories": pd.DataFrame({"a": pd.Categorical(["x", "y"] * (N // 2))}),
    "missing": pd.array([1, None] * (N // 2), dtype="Int64"),
    "dates": pd.date_range("2020", periods=N),
    "lazy": pl.LazyFrame({"a": [1, 2]}),
    "unfitted eraser": ex.LEACE(),
    "fitted eraser": FITTED,
    "erasure": ERASURE,
    "conditional erasure": TOLD,
    **tensors(),
}


def fresh(odd):
    """Arrays are written to where they are taken."""
    return odd.copy() if isinstance(odd, np.ndarray) else odd


def entries():
    for name, make in ex.ERASERS.items():
        yield f"{name}.fit(X)", lambda odd, make=make: make().fit(odd, Y)
        yield f"{name}.fit(y)", lambda odd, make=make: make().fit(X, odd)
        yield (
            f"{name}.fit(sample_weight)",
            lambda odd, make=make: make().fit(X, Y, sample_weight=odd),
        )
    yield "LEACE.fit(concept)", lambda odd: ex.LEACE().fit(X, Y, concept=odd)
    yield "SPLINCE.fit(task)", lambda odd: ex.SPLINCE().fit(X, odd, concept=Y)
    yield "LEACE.partial_fit(X)", lambda odd: ex.LEACE().partial_fit(X, Y).partial_fit(odd, Y)
    yield "LEACE.partial_fit(y)", lambda odd: ex.LEACE().partial_fit(X, Y).partial_fit(X, odd)
    yield "PairPCA.from_pairs", lambda odd: ex.PairPCA.from_pairs(odd, X)
    yield "LEACE.transform", FITTED.transform
    oracle = ex.OracleLEACE().fit(X, Y)
    yield "OracleLEACE.transform", lambda odd: oracle.transform(odd, Y)
    yield "Erasure.transform", ERASURE.transform
    yield "Erasure.transform(out)", lambda odd: ERASURE.transform(X, out=fresh(odd))
    yield "Erasure.then", ERASURE.then
    yield "Erasure.load", ex.Erasure.load
    yield "Erasure(left)", lambda odd: ex.Erasure(odd, ERASURE.right)
    yield "Erasure(right)", lambda odd: ex.Erasure(ERASURE.left, odd)
    yield "Erasure(center)", lambda odd: ex.Erasure(ERASURE.left, ERASURE.right, odd)
    yield "Erasure(offset)", lambda odd: ex.Erasure(ERASURE.left, ERASURE.right, None, odd)
    yield "Erasure(meta)", lambda odd: ex.Erasure(ERASURE.left, ERASURE.right, meta=odd)
    parts = {
        "shift": TOLD.shift,
        "mean_z": TOLD.mean_z,
        "center": TOLD.center,
        "labels": TOLD.labels,
        "kind": TOLD.kind,
        "maps": None,
        "strength": 1.0,
        "meta": None,
    }
    for part in parts:
        yield (
            f"ConditionalErasure({part})",
            lambda odd, part=part: ex.ConditionalErasure(**{**parts, part: odd}),
        )
    yield "ConditionalErasure.transform(X)", lambda odd: TOLD.transform(odd, Y)
    yield "ConditionalErasure.transform(concept)", lambda odd: TOLD.transform(X, odd)
    yield "ConditionalErasure.load", ex.ConditionalErasure.load
    yield "Moments.of(X)", lambda odd: ex.Moments.of(odd, NUMBERS)
    yield "Moments.of(concept)", lambda odd: ex.Moments.of(X, odd)
    yield "Moments.of(weights)", lambda odd: ex.Moments.of(X, NUMBERS, odd)
    moments = ex.Moments.of(X, NUMBERS)
    yield "Moments.update(X)", lambda odd: ex.Moments.of(X, NUMBERS).update(odd, NUMBERS)
    yield (
        "Moments.update(weights)",
        lambda odd: ex.Moments.of(X, NUMBERS).update(X, NUMBERS, odd),
    )
    yield "Moments.merge", moments.merge
    yield "certify(X)", lambda odd: ex.certify(ERASURE, odd, Y)
    yield "certify(y)", lambda odd: ex.certify(ERASURE, X, odd)
    yield "audit(sizes)", lambda odd: ex.audit(ERASURE, X, Y, probes=["linear SVM"], sizes=odd)
    yield "RLACE(random_state)", lambda odd: ex.RLACE(random_state=odd).fit(X, Y)
    yield "LEACE(rank)", lambda odd: ex.LEACE(rank=odd).fit(X, Y)


METRICS = {
    "bits_left": {"losses": np.abs(X[:, 0]), "y": Y, "resamples": 5, "random_state": 0},
    "demographic_parity_difference": {"y_pred": Y, "group": OTHER},
    "equalised_odds_difference": {"y_true": Y, "y_pred": Y, "group": OTHER},
    "tpr_gaps": {"y_true": Y, "y_pred": Y, "group": OTHER, "positive": None, "shares": None},
    "tpr_gap_rms": {"y_true": Y, "y_pred": Y, "group": OTHER, "positive": None},
    "least_possible_change": {"X": X, "concept": Y},
    "nearest_neighbours": {"vectors": X, "words": WORDS, "queries": ["w1"], "k": 3},
    "neighbour_changes": {
        "before": X,
        "after": X,
        "words": WORDS,
        "queries": ["w1"],
        "k": 3,
    },
    "neighbour_overlap": {"before": X, "after": X, "k": 3, "random_state": 0},
    "similarity_correlation": {
        "vectors": X,
        "words": WORDS,
        "pairs": [("w1", "w2", 1.0), ("w2", "w3", 2.0), ("w3", "w4", 1.5)],
    },
    "v_measure_of": {"classes": Y, "clusters": OTHER},
    "weat": {
        "targets_x": X[:5],
        "targets_y": X[5:10],
        "attributes_a": X[10:15],
        "attributes_b": X[15:20],
        "permutations": 20,
        "random_state": 0,
    },
}


def metric_entries():
    for name, given in METRICS.items():
        for part in given:
            yield (
                f"{name}({part})",
                lambda odd, name=name, given=given, part=part: getattr(ex.metrics, name)(
                    **{**given, part: odd}
                ),
            )


ENTRIES = {**dict(entries()), **dict(metric_entries())}


@pytest.mark.parametrize("name", METRICS)
def test_the_metrics_work_as_they_are(name):
    getattr(ex.metrics, name)(**METRICS[name])


@pytest.mark.parametrize("entry", ENTRIES)
def test_odd_values_are_refused_by_name_or_taken(entry):
    raw = {}
    for name, odd in ODD.items():
        try:
            found = ENTRIES[entry](odd)
        except (ExpungeError, FileNotFoundError):
            continue
        except Exception as error:
            raw[name] = repr(error)
            continue
        if isinstance(found, np.ndarray):
            assert np.isfinite(found).all(), name
    assert not raw


REFUSED = [
    ("Erasure.transform", "same names"),
    ("Erasure.transform", "same names as text"),
    ("LEACE.fit(X)", "same names"),
    ("LEACE.fit(X)", "sparse tensor"),
    ("LEACE.fit(X)", "meta tensor"),
    ("LEACE.fit(X)", "NaN tensor"),
    ("LEACE.fit(y)", "same names"),
    ("LEACE.fit(y)", "meta tensor"),
    ("LEACE.fit(sample_weight)", "negative numbers"),
    ("LEACE.fit(sample_weight)", "NaNs"),
    ("Moments.of(weights)", "negative numbers"),
    ("Moments.of(weights)", "NaNs"),
    ("Moments.of(weights)", "text"),
    ("Moments.update(weights)", "negative numbers"),
    ("Moments.of(concept)", "NaNs"),
    ("Erasure.transform", "NaN matrix"),
    ("Erasure.transform", "NaN tensor"),
    ("Erasure.then", "None"),
    ("Erasure.then", "conditional erasure"),
    *(("audit(sizes)", odd) for odd in ("number", "text", "empty dict", "truth")),
    *(
        ("RLACE(random_state)", odd)
        for odd in (
            "text",
            "negative",
            "fraction",
            "empty list",
            "negative numbers",
            "truth",
            "NaN",
        )
    ),
    *(("LEACE(rank)", odd) for odd in ("text", "negative", "fraction", "empty list", "None")),
]


@pytest.mark.parametrize(("entry", "odd"), REFUSED)
def test_what_must_be_refused(entry, odd):
    with pytest.raises(InputError):
        ENTRIES[entry](ODD[odd])


def test_a_numpy_matrix_is_the_array_it_holds():
    """Its operators are not those of arrays."""
    for make in ex.ERASERS.values():
        expected = make().fit(X, Y)
        found = make().fit(np.asmatrix(X), np.asmatrix(Y).T)
        told = {"concept": Y} if hasattr(expected, "conditional_erasure_") else {}
        np.testing.assert_array_equal(
            found.transform(np.asmatrix(X), **told), expected.transform(X, **told)
        )
    clean = ERASURE.transform(np.asmatrix(X))
    assert type(clean) is np.ndarray
    np.testing.assert_array_equal(clean, ERASURE.transform(X))


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e200, 1e308])
def test_weights_out_of_range_are_refused(scale):
    weights = np.ones(N)
    with pytest.raises(InputError, match="out of range"):
        ex.LEACE().fit(X, Y, sample_weight=scale * weights)
    fitted = ex.LEACE().fit(X, Y, sample_weight=1e30 * weights)
    np.testing.assert_allclose(fitted.erasure_.matrix(), ERASURE.matrix(), atol=1e-12)


def test_a_fitted_eraser_can_follow_an_erasure():
    second = ex.LEACE().fit(ERASURE.transform(X), OTHER)
    np.testing.assert_array_equal(
        ERASURE.then(second).matrix(), ERASURE.then(second.erasure_).matrix()
    )


def test_labels_of_a_conditional_erasure_are_names_each_once():
    for labels in (["a", "a"], [["a"], "b"], [None, "b"], "ab", {"a": 1, "b": 2}, [1, 1.0]):
        with pytest.raises(InputError, match="labels"):
            ex.ConditionalErasure(TOLD.shift, TOLD.mean_z, TOLD.center, labels, "classes")


@pytest.mark.parametrize("seed", [np.int64(3), np.random.default_rng(3), np.random.RandomState(3)])
def test_seeds_that_are_taken(seed):
    ex.RLACE(random_state=seed).fit(X, Y)
