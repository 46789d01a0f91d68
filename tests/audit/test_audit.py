"""The audit as a whole: verdicts, refusals, kinds of concept, what it prints and writes."""

import inspect
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy.special import ndtr

import expunge as ex
from expunge.audit import Sizes
from expunge.audit.measures import ProbeScores
from expunge.audit.probe import Probe
from expunge.data import load_glove
from expunge.errors import InputError
from planted import plant

FAST = ["logistic regression, ridge 0.01", "linear discriminant", "nearest neighbours"]
SECTIONS = {
    "written_columns",
    "schema", "verdict", "same_rows", "fresh_rows", "training_rows", "residue", "certificates",
    "data", "concept", "erasure", "spectrum", "pca", "v_measure", "damage", "association",
    "fairness", "limits", "settings", "versions", "frontier",
}  # fmt: skip


def halves(kind="binary", n=1200, **changes):
    data = plant(kind, n=n, **changes)
    return data.X[: n // 2], data.y[: n // 2], data.X[n // 2 :], data.y[n // 2 :]


@pytest.fixture(scope="module")
def small():
    """An audit with everything in it: opposite corners of a square hide the class from lines."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 6))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    X[:, 2] += 4 * y
    leaning = X[:, 5] + 2 * y - 1 + rng.normal(size=6000)
    task = np.where(leaning > 0, "yes", "no")  # more often yes in class 1
    names = [f"row {i}" for i in range(6000)]
    fit, new = slice(0, 3000), slice(3000, None)
    return ex.audit(
        ex.RLACE().fit(X[fit], y[fit]),
        X[fit],
        y[fit],
        X[new],
        y[new],
        task=(task[fit], task[new]),
        words=(names[:3000], names[3000:]),
        probes=FAST,
        leak=0.05,
    )


# -- the words of the verdict --------------------------------------------------------------------


def test_verdict_tells_linear_from_nonlinear(small):
    assert small.verdict.linear == "at chance"
    assert small.verdict.nonlinear == "found"
    found = small.fresh_rows.after["nonlinear"].strongest.value
    assert small.verdict.headline == (
        f"Linear probes: at chance. Non-linear probes: still find it, {100 * found:.1f} %."
    )
    assert small.fresh_rows.before["linear"].status == "found"
    assert small.certificates["train"].certificate.erased


def test_text_fits_two_screens_and_names_what_matters(small):
    text = str(small)
    assert len(text.splitlines()) <= 70
    assert max(map(len, text.splitlines())) <= 100
    for words in (
        small.verdict.headline.split(".")[0],
        "trained on the rows of the fit, tested on new rows",
        "trained and tested on fresh rows",
        "sampling error of the fit",
        "Certificate on 3,000 training rows",
        "V-measure",
        "RMS gap",
        "What this does not show",
    ):
        assert words in text
    assert small.verdict.headline in repr(small)


def test_without_test_rows_nothing_is_called_erased():
    X, y, _, _ = halves()
    a = ex.audit(ex.RLACE().fit(X, y).erasure_, X, y, probes=FAST)
    assert (a.verdict.linear, a.verdict.nonlinear) == ("not shown", "not shown")
    assert "training rows only" in a.verdict.headline
    assert a.same_rows is None
    assert a.fresh_rows is None
    assert a.training_rows is not None
    assert "shows nothing about new rows" in str(a)
    assert a.certificates.keys() == {"train"}


def test_rows_of_the_fit_do_not_count_as_test_rows():
    X, y, _, _ = halves()
    a = ex.audit(ex.RLACE().fit(X, y).erasure_, X, y, X[:300], y[:300], probes=FAST)
    assert a.verdict.linear == "not shown"
    assert "all test rows are rows the eraser was fitted on" in a.verdict.headline


def test_a_handful_of_fresh_rows_shows_nothing():
    X, y, X_test, y_test = halves()
    erasure = ex.RLACE().fit(X, y).erasure_
    a = ex.audit(erasure, X, y, X_test[:6], y_test[:6], probes=FAST)
    assert a.verdict.linear == "not shown"
    assert "only 6 of the test rows are fresh" in a.verdict.headline


def test_an_eraser_that_does_nothing_is_found_out():
    X, y, X_test, y_test = halves()
    nothing = ex.Erasure(np.zeros((8, 0)), np.zeros((0, 8)))
    a = ex.audit(nothing, X, y, X_test, y_test, probes=FAST)
    assert (a.verdict.linear, a.verdict.nonlinear) == ("found", "found")
    assert a.verdict.explained is False
    assert not a.certificates["train"].certificate.erased
    assert a.to_dict()["damage"]["variance_kept"] == 1
    assert any("no fingerprint" in note for note in a.to_dict()["data"]["notes"])


def test_rows_that_are_not_those_of_the_fit_are_noted():
    X, y, X_test, y_test = halves()
    erasure = ex.RLACE().fit(X[:300], y[:300]).erasure_
    a = ex.audit(erasure, X, y, X_test, y_test, probes=FAST)
    assert a.to_dict()["data"]["share_of_fit"] == pytest.approx(0.5)
    assert any(
        "50% of the training rows belong to the fit" in n for n in a.to_dict()["data"]["notes"]
    )


# -- the word vectors ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def glove():
    data = load_glove()
    eraser = ex.RLACE().fit(data.train.X, data.train.y)
    return ex.audit(
        eraser,
        data.train.X,
        data.train.y,
        data.test.X,
        data.test.y,
        words=data.test.words,
        vocabulary=(data.words, data.vectors),
        probes=[*FAST, "RBF-SVM", "MLP, 128 ReLU"],
        sizes=Sizes(nonlinear_train=2500, nonlinear_test=2500, nonlinear_folds=2),
    )


def test_gender_is_gone_for_linear_probes_and_there_for_others(glove):
    before, after = glove.same_rows.before["linear"], glove.same_rows.after["linear"]
    assert before.strongest.low > 0.99
    assert after.status == "at chance"
    others = {p.name: p.measures for p in glove.same_rows.after["nonlinear"].probes}
    for name in ("RBF-SVM", "MLP, 128 ReLU"):
        assert others[name]["accuracy"].value > 0.85
    linear = glove.fresh_rows.after["linear"].strongest
    assert linear.low < glove.residue.balanced_accuracy_here < linear.high
    assert 0.52 < glove.residue.balanced_accuracy_here < glove.residue.balanced_accuracy < 0.56


def test_clusters_and_associations_fall_and_meaning_stays(glove):
    found = glove.to_dict()
    clusters = found["v_measure"]
    pairs = list(zip(clusters["before"]["mean"], clusters["after"]["mean"], strict=True))
    assert len(pairs) == 4
    assert all(after < before / 2 for before, after in pairs)
    words = found["association"]
    sizes = [(t["before"]["effect_size"], t["after"]["effect_size"]) for t in words["weat"]]
    assert len(sizes) == 3
    assert all(abs(after) < abs(before) for before, after in sizes)
    agreement = words["similarity"]
    for kind in ("pearson", "spearman"):
        assert abs(agreement["after"][kind] - agreement["before"][kind]) < 0.02
    assert "ocean" in [change["word"] for change in words["neighbours"]]
    shown = found["pca"]
    assert len(shown["names"]) == len(shown["labels"]) == len(shown["before"]) == 1500
    assert shown["n_rows"] == 4500


# -- kinds of concept, kinds of erasure ----------------------------------------------------------


@pytest.mark.parametrize("kind", ["classes", "labels", "number", "vector"])
def test_every_kind_of_concept_can_be_audited(kind):
    X, y, X_test, y_test = halves(kind, n=6000, seed=1)
    loss = "squared" if kind in ("number", "vector") else "cross_entropy"
    eraser = ex.RLACE(loss=loss).fit(X, y)
    probes = ["nearest neighbours", "means of neighbours", "linear discriminant", *FAST[:1]]
    probes += [f"ridge regression, ridge {r}" for r in ("0.01", "1")]
    a = ex.audit(eraser, X, y, X_test, y_test, probes=probes, leak=0.05)
    assert a.fresh_rows.before["linear"].status == "found"
    assert a.verdict.linear == "at chance"
    assert a.certificates["train"].certificate.erased
    statistic = a.fresh_rows.after["linear"].statistic
    assert statistic == ("r2" if loss == "squared" else "balanced_accuracy")
    json.loads(a.to_json())
    assert ("R²" if loss == "squared" else "balanced") in str(a)


def test_several_concepts_at_once_can_be_audited():
    rng = np.random.default_rng(0)
    sex, age = rng.integers(0, 2, 2000), rng.choice(["old", "young", "mid"], 2000)
    X = rng.normal(size=(2000, 6)) + np.outer(sex, np.eye(6)[0]) * 2
    X = X + np.outer(age == "old", np.eye(6)[1]) * 2
    cut = slice(0, 1000), slice(1000, None)
    both = [{"sex": sex[part], "age": age[part]} for part in cut]
    eraser = ex.RLACE().fit(X[cut[0]], both[0])
    a = ex.audit(eraser, X[cut[0]], both[0], X[cut[1]], both[1], probes=FAST, leak=0.05)
    assert a.to_dict()["concept"]["labels"] == ["sex=0", "sex=1", "age=mid", "age=old", "age=young"]
    assert a.fresh_rows.before["linear"].status == "found"
    assert a.same_rows.after["linear"].status == "at chance"


def test_numbers_that_were_erased_as_numbers_are_audited_as_numbers():
    rng = np.random.default_rng(0)
    age = rng.integers(18, 90, 1000)
    X = rng.normal(size=(1000, 4)) + np.outer(age, [0.05, 0, 0, 0])
    eraser = ex.RLACE(loss="squared", concept_type="continuous").fit(X[:500], age[:500])
    probes = ["ridge regression, ridge 0.01"]
    a = ex.audit(eraser, X[:500], age[:500], X[500:], age[500:], probes=probes)
    assert a.to_dict()["concept"]["kind"] == "continuous"


def test_an_erasure_that_needs_the_concept_is_given_it():
    X, y, X_test, y_test = halves("classes", n=3000)
    eraser = ex.OracleLEACE().fit(X, y)
    for subject in (eraser, eraser.conditional_erasure_):
        a = ex.audit(subject, X, y, X_test, y_test, probes=FAST, leak=0.05)
        assert a.same_rows.before["linear"].status == "found"
        assert a.same_rows.after["linear"].status == "at chance"
        assert a.certificates == {}  # it is no affine map of x alone
        assert any("told the concept" in note for note in a.to_dict()["data"]["notes"])


def test_anything_with_a_transform_can_be_audited():
    class Rounding:
        def transform(self, X):
            return np.round(X)

    X, y, X_test, y_test = halves()
    a = ex.audit(Rounding(), X, y, X_test, y_test, probes=FAST)
    assert a.verdict.linear == "found"
    assert a.to_dict()["erasure"]["type"] == "Rounding"


def test_a_transform_may_change_the_width():
    class FirstTwo:
        def transform(self, X):
            return X[:, :2]

    X, y, X_test, y_test = halves()
    a = ex.audit(FirstTwo(), X, y, X_test, y_test, probes=FAST)
    assert a.to_dict()["damage"] is None
    assert a.to_dict()["pca"] is None
    assert a.verdict.linear in ("found", "cannot tell")


@pytest.mark.filterwarnings("ignore::expunge.errors.NothingLeft")
def test_nothing_is_read_from_rounding_where_everything_was_erased():
    """One feature, all of it erased: rows differ in their last bits, which depend on the class."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 4000)
    X = rng.normal(size=(4000, 1)) + 2 * y[:, None] + 0.3
    erasure = ex.LEACE().fit(X[:2000], y[:2000]).erasure_
    a = ex.audit(erasure, X[:2000], y[:2000], X[2000:], y[2000:], probes=FAST)
    assert a.fresh_rows.before["linear"].status == "found"
    assert (a.verdict.linear, a.verdict.nonlinear) == ("at chance", "at chance")


def test_a_probe_of_ones_own_joins_in():
    """One that knows the leak: the fifth column gives the class away by its parity."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 2000)
    X = rng.normal(size=(2000, 5))
    X[:, 4] = 2 * rng.integers(0, 50, 2000) + y

    def parity(training, X, seed):
        odd = np.round(X[:, 4]) % 2
        return ProbeScores(np.column_stack([-odd, odd - 0.5]), False, training.prior)

    own = Probe("parity", "linear", ("classes",), parity)
    nothing = ex.Erasure(np.zeros((5, 0)), np.zeros((0, 5)))
    cut = slice(0, 1000), slice(1000, None)
    parts = X[cut[0]], y[cut[0]], X[cut[1]], y[cut[1]]
    assert ex.audit(nothing, *parts, probes=FAST[:2], leak=0.1).verdict.linear == "at chance"
    a = ex.audit(nothing, *parts, probes=[own, FAST[0]], leak=0.1)
    assert a.verdict.linear == "found"
    assert a.fresh_rows.after["linear"].worst == "parity"


# -- what comes out ------------------------------------------------------------------------------


def test_content_is_plain_and_complete(small, tmp_path):
    content = small.to_dict()
    assert content.keys() == SECTIONS
    path = tmp_path / "audit.json"
    text = small.to_json(path)
    assert path.read_text(encoding="utf-8") == text
    assert json.loads(text) == json.loads(json.dumps(content))  # and no NaN: JSON has no word
    assert "NaN" not in text
    assert content["erasure"]["method"] == "RLACE"
    assert "sketch" not in content["erasure"]["fingerprint"]
    change = content["association"]["neighbours"][0]
    assert len(change["before"]) == len(change["after"]) == 5
    assert content["association"]["weat"] == []  # none of its words is here
    assert content["association"]["similarity"] is None


def test_fairness_is_measured_by_group(small):
    """A classifier that leans on the class treats it unequally, until the class is erased."""
    found = small.to_dict()["fairness"]
    assert found["before"]["gaps"]["groups"] == ["0", "1"]
    assert found["before"]["gaps"]["classes"] == ["no", "yes"]
    assert found["before"]["accuracy"]["value"] > 0.75
    assert np.sum(found["after"]["gaps"]["counts"]) == found["n_test"] == 3000
    assert found["after"]["rms_low"] <= found["after"]["rms"] <= found["after"]["rms_high"]
    assert found["after"]["rms"] < 0.75 * found["before"]["rms"]


def test_frame_has_a_row_for_each_probe_protocol_and_stage(small):
    frame = small.to_frame()
    assert len(frame) == 2 * 2 * len(FAST)
    chosen = frame[
        (frame.protocol == "fresh_rows") & (frame.stage == "after") & (frame.family == "linear")
    ]
    assert chosen.balanced_accuracy.max() == small.fresh_rows.after["linear"].strongest.value
    assert (frame.accuracy_low <= frame.accuracy).all()


def test_report_is_written(small, tmp_path):
    small.to_html(tmp_path / "report.html")
    assert "still find it" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_equal_states_give_equal_numbers():
    X, y, X_test, y_test = halves(n=400)
    erasure = ex.RLACE().fit(X, y).erasure_
    sizes = Sizes(nonlinear_train=100, nonlinear_test=100, nonlinear_folds=2)

    def text(state, **changes):
        given = {"sizes": sizes, "random_state": state} | changes
        return ex.audit(erasure, X, y, X_test, y_test, **given).to_json()

    assert text(0) == text(np.random.default_rng(0))
    assert text(0, probes=FAST) != text(1, probes=FAST)


def test_progress_goes_to_standard_error_only(capsys):
    X, y, X_test, y_test = halves(n=400)
    ex.audit(ex.RLACE().fit(X, y), X, y, X_test, y_test, probes=FAST[:1], verbose=True)
    out = capsys.readouterr()
    assert out.out == ""
    assert "audit" in out.err


def test_expected_accuracy_of_a_known_leak_is_within_the_limits():
    """Nothing erased, one Gaussian direction: the best accuracy is Φ(gap/2)."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 20_000)
    X = rng.normal(size=(20_000, 3)) + np.outer(y, [1, 0, 0])
    nothing = ex.Erasure(np.zeros((3, 0)), np.zeros((0, 3)))
    a = ex.audit(nothing, X[:5000], y[:5000], X[5000:], y[5000:], probes=FAST[:2])
    found = a.fresh_rows.after["linear"].strongest
    assert found.low < ndtr(0.5) < found.high
    assert found.high - found.low < 0.02


# -- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"y_test": None}, "belong together"),
        ({"erasure": object()}, "cannot transform"),
        ({"probes": ["magic"]}, "no such probe"),
        ({"leak": 0.0}, "leak"),
        ({"confidence": 1.0}, "confidence"),
        ({"task": np.zeros(400)}, "pair"),
        ({"task": (np.arange(400) % 2, None)}, "cover the training and the test"),
        ({"words": ["a", "b"]}, "name every row"),
        ({"vocabulary": ["a"]}, "pair"),
        ({"vocabulary": (["a"], np.ones((2, 8)))}, "name every vector"),
        ({"y_test": np.full(400, 7)}, "does not go with"),
        ({"X_test": np.ones((400, 3))}, "features"),
        ({"random_state": "x"}, "random_state"),
    ],
)
def test_bad_input_is_refused_in_three_parts(changes, words):
    X, y, X_test, y_test = halves(n=800)
    given = {
        "erasure": ex.RLACE().fit(X, y).erasure_,
        "X_train": X,
        "y_train": y,
        "X_test": X_test,
        "y_test": y_test,
    }
    with pytest.raises(InputError, match=words) as caught:
        ex.audit(**(given | changes))
    assert caught.value.problem
    assert caught.value.received
    assert caught.value.remedy


# -- the name ------------------------------------------------------------------------------------


def test_the_package_is_called_as_its_function_whatever_is_imported():
    code = (
        "import expunge.audit.probes as probes, expunge.audit as package, expunge as ex\n"
        "from expunge.audit.residue import expected_residue\n"
        "from expunge.audit import Sizes, audit\n"
        "assert ex.audit is package and ex.audit.probes is probes and probes.PROBES\n"
        "import importlib; importlib.import_module('expunge.audit.verdict')\n"
        "assert callable(ex.audit) and ex.audit.audit is audit\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert inspect.signature(ex.audit) == inspect.signature(ex.audit.audit)
    assert pickle.loads(pickle.dumps(ex.audit)) is ex.audit


def test_learners_are_imported_only_when_they_are_run():
    code = (
        "import sys, expunge\n"
        "heavy = {'sklearn.svm', 'sklearn.ensemble', 'sklearn.neural_network', 'sklearn.cluster',"
        " 'sklearn.neighbors', 'expunge.report', 'plotly', 'jinja2'}\n"
        "print(*sorted(heavy & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
