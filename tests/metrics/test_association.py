"""WEAT against plain enumeration, similarity files, neighbours; and all of it on real words."""

import itertools
import json

import numpy as np
import pytest
import scipy.stats
from sklearn.neighbors import NearestNeighbors

import expunge as ex
from expunge.data import WeatTest, WordSet, load_glove, load_simlex
from expunge.errors import InputError
from expunge.metrics.association import paper_weat_tests, weat, weat_tests
from expunge.metrics.neighbours import (
    nearest_neighbours,
    nearest_rows,
    neighbour_changes,
    neighbour_overlap,
)
from expunge.metrics.similarity import pearson, similarity_correlation, spearman


@pytest.fixture(scope="module")
def glove():
    return load_glove()


@pytest.fixture(scope="module")
def erased(glove):
    return ex.RLACE(rank=1).fit(glove.train.X, glove.train.y).transform(glove.vectors)


def cosine(a, b):
    return float(np.dot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b)))


def plain_weat(X, Y, A, B):
    """Everything by its definition, one word at a time."""

    def s(w):
        return np.mean([cosine(w, a) for a in A]) - np.mean([cosine(w, b) for b in B])

    scores = [s(w) for w in [*X, *Y]]
    statistic = sum(scores[: len(X)]) - sum(scores[len(X) :])
    d = (np.mean(scores[: len(X)]) - np.mean(scores[len(X) :])) / np.std(scores, ddof=1)
    everything = range(len(scores))
    count = total = 0
    for chosen in itertools.combinations(everything, len(X)):
        rest = [scores[i] for i in everything if i not in chosen]
        total += 1
        count += sum(scores[i] for i in chosen) - sum(rest) >= statistic - 1e-9
    return statistic, d, count / total, total


@pytest.mark.parametrize(("m", "n"), [(4, 4), (5, 3), (1, 4), (6, 6)])
def test_exact_p_is_that_of_plain_enumeration(m, n):
    rng = np.random.default_rng(m * n)
    X, Y = rng.normal(size=(m, 6)) + 0.4, rng.normal(size=(n, 6))
    A, B = rng.normal(size=(4, 6)) + 0.4, rng.normal(size=(3, 6))
    found = weat(X, Y, A, B)
    statistic, d, p, total = plain_weat(X, Y, A, B)
    assert found.exact
    assert found.partitions == total
    assert found.n_targets == (m, n)
    assert found.n_attributes == (4, 3)
    np.testing.assert_allclose(
        [found.statistic, found.effect_size, found.p_value], [statistic, d, p], rtol=1e-12
    )


def test_sampled_p_agrees_with_the_permutation_test_of_scipy():
    rng = np.random.default_rng(5)
    X, Y = rng.normal(size=(12, 8)) + 0.5, rng.normal(size=(11, 8))
    A, B = rng.normal(size=(6, 8)) + 0.4, rng.normal(size=(6, 8)) - 0.4
    sampled = weat(X, Y, A, B, permutations=20_000)
    assert not sampled.exact  # 1,352,078 partitions
    assert sampled.partitions == 20_000
    s = [np.mean([cosine(w, a) for a in A]) - np.mean([cosine(w, b) for b in B]) for w in [*X, *Y]]
    reference = scipy.stats.permutation_test(
        (s[:12], s[12:]),
        lambda x, y, axis: x.sum(axis=axis) - y.sum(axis=axis),
        alternative="greater",
        vectorized=True,
        n_resamples=20_000,
        rng=np.random.default_rng(0),
    )
    assert 0.01 < sampled.p_value < 0.5
    assert sampled.p_value == pytest.approx(reference.pvalue, abs=0.01)
    assert sampled.p_value * 20_001 == pytest.approx(round(sampled.p_value * 20_001))
    assert weat(X, Y, A, B, permutations=20_000) == sampled
    assert weat(X, Y, A, B, permutations=20_000, random_state=1) != sampled


def test_weat_forgets_lengths_and_changes_sign_with_the_order():
    rng = np.random.default_rng(6)
    X, Y, A, B = (rng.normal(size=(4, 5)) for _ in range(4))
    found = weat(X, Y, A, B)
    scaled = weat(X * rng.uniform(0.1, 9, (4, 1)), Y, A * 7, B)
    assert scaled.effect_size == pytest.approx(found.effect_size)
    assert weat(Y, X, A, B).effect_size == pytest.approx(-found.effect_size)
    assert weat(X, Y, B, A).statistic == pytest.approx(-found.statistic)


def test_targets_that_are_all_alike_have_no_effect_size():
    same = np.array([[1.0, 2.0], [2.0, 4.0]])
    found = weat(same, 3 * same, [[1.0, 0.0]], [[0.0, 1.0]])
    assert np.isnan(found.effect_size)
    assert found.p_value == 1
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["effect_size"] is None


def test_bad_vectors_are_refused():
    V = np.eye(3)
    with pytest.raises(InputError, match=r"attributes_a has rows of zeros.*row 1"):
        weat(V, V, [[1.0, 0, 0], [0, 0, 0]], V)
    with pytest.raises(InputError, match="differ in width"):
        weat(V, V[:, :2] + 1, V, V)
    with pytest.raises(InputError, match="permutations"):
        weat(V, V, V, V, permutations=0)


def test_the_tests_of_the_paper(glove):
    tests = paper_weat_tests()
    assert [test.name for test in tests] == ["math-art", "professions-family", "science-art"]
    for test in tests:
        assert "john" in test.first_attribute.words
        assert "amy" in test.second_attribute.words
        assert all(len(part.words) == 8 for part in (test.first_target, test.second_target))
    assert tests[0].first_target.words[0] == "math"
    assert "executive" in tests[1].first_target.words
    assert "family" in tests[1].second_target.words
    assert "shakespeare" in tests[2].second_target.words


def test_association_with_first_names_falls_after_erasure(glove, erased):
    before, after = weat_tests(glove.vectors, glove.words), weat_tests(erased, glove.words)
    for old, new in zip(before, after, strict=True):
        assert old.missing == new.missing == ()
        assert old.weat.exact
        assert old.weat.partitions == 12_870
        assert old.weat.effect_size > 0.6
        assert new.weat.effect_size < old.weat.effect_size - 0.4
        assert abs(new.weat.statistic) < 0.6 * old.weat.statistic
    assert before[0].weat.effect_size > 1.4
    assert before[1].weat.effect_size > 1.6
    assert max(before[0].weat.p_value, before[1].weat.p_value) < 0.001
    assert min(t.weat.p_value for t in after) > 0.001
    test = paper_weat_tests()[0]
    sets = test.first_target, test.second_target, test.first_attribute, test.second_attribute
    *_, p, _ = plain_weat(*([glove.vector(w).astype(float) for w in s.words] for s in sets))
    assert before[0].weat.p_value == pytest.approx(p)


def test_missing_words_are_named(glove):
    test = WeatTest(
        "odd",
        WordSet("x", ("math", "qqqq", "algebra")),
        WordSet("y", ("art", "poetry")),
        WordSet("a", ("he", "zzzz")),
        WordSet("b", ("she",)),
    )
    (found,) = weat_tests(glove.vectors, glove.words, tests=[test])
    assert found.missing == ("qqqq", "zzzz")
    assert found.weat.n_targets == (2, 2)
    assert found.to_dict()["missing"] == ["qqqq", "zzzz"]
    assert found.to_dict()["n_attributes"] == [1, 1]
    with pytest.raises(InputError, match="No word of the set 'Math'"):
        weat_tests(np.eye(2), ["A", "B"])
    with pytest.raises(InputError, match="3 words and 2 vectors"):
        weat_tests(np.eye(2), ["a", "b", "c"])


def test_correlations_agree_with_scipy():
    rng = np.random.default_rng(7)
    a = rng.normal(size=300)
    b = np.round(a + rng.normal(size=300))  # with ties
    assert spearman(a, b) == pytest.approx(scipy.stats.spearmanr(a, b).statistic, abs=1e-14)
    assert pearson(a, b) == pytest.approx(scipy.stats.pearsonr(a, b).statistic, abs=1e-14)
    assert np.isnan(pearson(a, np.ones(300)))


def test_simlex_hardly_changes(glove, erased):
    before = similarity_correlation(glove.vectors, glove.words)
    after = similarity_correlation(erased, glove.words)
    assert before.n_used == before.n_pairs == 999
    assert before.pearson > 0.3
    assert abs(before.pearson - after.pearson) < 0.02
    simlex = load_simlex()
    plain = [cosine(glove.vector(a), glove.vector(b)) for a, b in simlex.pairs]
    assert before.pearson == pytest.approx(scipy.stats.pearsonr(plain, simlex.scores).statistic)
    assert before.spearman == pytest.approx(scipy.stats.spearmanr(plain, simlex.scores).statistic)


PAIRS = [("Sea", "ocean", 8.5), ("cat", "dog", 7.0), ("cat", "ocean", 1.25), ("sea", "qqqq", 3.0)]
FILES = {
    "header.tsv": "word1\tword2\tscore\n{}",
    "simlex.txt": "word1\tword2\tPOS\tSimLex999\tconc(w1)\n{}",
    "wordsim.csv": "Word 1,Word 2,Human (mean)\n{}",
    "reordered.csv": "score,word2,word1\n{}",
    "semicolons.csv": "w1;w2;similarity\n{}",
    "bare.tsv": "{}",
    "spaces.txt": "# a comment\n\n{}\n\n",
    "bom.tsv": "\ufeffword1\tword2\tscore\n{}",
    "quoted.csv": "word1,word2,score\n{}",
}


def written(name):
    form = {
        "simlex.txt": "{}\t{}\tN\t{}\t1.0",
        "wordsim.csv": "{},{},{}",
        "reordered.csv": "{2},{1},{0}",
        "semicolons.csv": "{};{};{}",
        "spaces.txt": "{} {}  {}",
        "quoted.csv": '"{}","{}",{}',
    }.get(name, "{}\t{}\t{}")
    return FILES[name].format("\n".join(form.format(*pair) for pair in PAIRS))


@pytest.mark.parametrize("name", FILES)
def test_tables_of_every_shape(tmp_path, glove, name):
    path = tmp_path / name
    path.write_text(written(name), encoding="utf-8")
    expected = similarity_correlation(glove.vectors, glove.words, PAIRS)
    assert similarity_correlation(glove.vectors, glove.words, path) == expected
    assert similarity_correlation(glove.vectors, glove.words, str(path)) == expected
    assert (expected.n_used, expected.n_pairs, expected.missing) == (3, 4, ("qqqq",))


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "is empty"),
        ("word1\tword2\nsea\tocean", "columns of the two words"),
        ("word1\tword2\tscore\nsea\tocean\tmuch", "'much' in .*line 2"),
        ("word1\tword2\tscore\nsea\tocean\t1\ncat\tdog", "2 columns in .*line 3"),
        ("sea\tocean\t1\nqqqq\tdog\t2", "1 of 2 pairs, without qqqq"),
    ],
)
def test_bad_tables_are_refused_with_their_place(tmp_path, glove, text, match):
    path = tmp_path / "pairs.tsv"
    path.write_text(text)
    with pytest.raises(InputError, match=match):
        similarity_correlation(glove.vectors, glove.words, path)


def test_unreadable_pairs_are_refused(tmp_path, glove):
    with pytest.raises(InputError, match="cannot be read"):
        similarity_correlation(glove.vectors, glove.words, tmp_path / "nowhere.tsv")
    (tmp_path / "latin.tsv").write_bytes("caf\xe9\tsea\t1".encode("latin-1"))
    with pytest.raises(InputError, match="cannot be read"):
        similarity_correlation(glove.vectors, glove.words, tmp_path / "latin.tsv")
    with pytest.raises(InputError, match="two words and a number"):
        similarity_correlation(glove.vectors, glove.words, [("sea", "ocean")])
    with pytest.raises(InputError, match="'x' in pair 0"):
        similarity_correlation(glove.vectors, glove.words, [("sea", "ocean", "x")])


def test_neighbours_agree_with_the_slice_and_with_scikit_learn(glove):
    queries = ["doctor", "storm", "she"]
    found = nearest_neighbours(glove.vectors, glove.words, queries, k=7)
    assert found["storm"] == glove.neighbours("storm", k=7)
    model = NearestNeighbors(n_neighbors=8, metric="cosine").fit(glove.vectors)
    _, rows = model.kneighbors(np.array([glove.vector(q) for q in queries]))
    for query, row in zip(queries, rows, strict=True):
        assert found[query] == tuple(glove.words[i] for i in row[1:])
    with pytest.raises(InputError, match="'qqqq'"):
        nearest_neighbours(glove.vectors, glove.words, ["storm", "qqqq"])
    with pytest.raises(InputError, match="k must be"):
        nearest_neighbours(glove.vectors, glove.words, ["storm"], k=len(glove))


def test_neighbour_changes(glove, erased):
    changes = neighbour_changes(glove.vectors, erased, glove.words, ["ocean", "she"], k=5)
    ocean, she = changes
    assert ocean.before == glove.neighbours("ocean", k=5)
    assert ocean.after == glove.neighbours("ocean", k=5, vectors=erased)
    assert ocean.kept == 1
    assert she.kept < 1
    assert she.to_dict()["kept"] == she.kept
    assert she.to_dict()["before"] == list(she.before)


def brute_overlap(before, after, k):
    def near(X):
        S = np.array([[cosine(a, b) for b in X] for a in X])
        np.fill_diagonal(S, -2)
        return [set(np.argsort(-row)[:k]) for row in S]

    pairs = zip(near(before), near(after), strict=True)
    return np.mean([len(a & b) / k for a, b in pairs])


@pytest.mark.parametrize("k", [1, 5, 20])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_overlap_is_that_of_brute_force(k, dtype):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(90, 6)).astype(dtype)
    Y = (X * [0, 1, 1, 1, 1, 1]).astype(dtype)
    expected = brute_overlap(X, Y, k)
    assert 0.1 < expected < 0.95
    assert neighbour_overlap(X, Y, k) == pytest.approx(expected)


def test_overlap_of_a_sample_is_near_that_of_all_queries():
    rng = np.random.default_rng(9)
    X = rng.normal(size=(3000, 8))
    Y = X * [0, 1, 1, 1, 1, 1, 1, 1]
    whole = neighbour_overlap(X, Y, 10, max_queries=3000)
    assert neighbour_overlap(X, Y, 10, max_queries=500) == pytest.approx(whole, abs=0.03)
    fewer = neighbour_overlap(X, Y, 10, max_queries=500, max_base=1000)
    assert fewer == neighbour_overlap(X, Y, 10, max_queries=500, max_base=1000)
    assert neighbour_overlap(X, rng.normal(size=X.shape), 10) < 0.02


def test_overlap_takes_other_widths_and_rows_of_zeros():
    rng = np.random.default_rng(10)
    X = rng.normal(size=(50, 4))
    assert neighbour_overlap(X, np.hstack([X, np.zeros((50, 3))]), 5) == 1
    Y = X.copy()
    Y[:25] = 0
    assert 0 < neighbour_overlap(X, Y, 5) < 0.9
    with pytest.raises(InputError, match="50 and 49 rows"):
        neighbour_overlap(X, X[:49], 5)
    with pytest.raises(InputError, match="k must be"):
        neighbour_overlap(X, X, 50)


def test_neighbours_of_copies_and_of_zeros_are_others():
    rng = np.random.default_rng(0)
    X = np.vstack([np.tile([[1.0, 2.0, 3.0]], (6, 1)), rng.normal(size=(20, 3)), np.zeros((2, 3))])
    queries = np.arange(len(X))
    for k in (1, 4, 9):
        near = nearest_rows(X, queries, k)
        assert near.shape == (28, k)
        assert not np.any(near == queries[:, None])  # never the row itself, however many copies
        assert all(len(set(row)) == k for row in near)
    assert set(nearest_rows(X, np.array([3]), 5)[0]) == {0, 1, 2, 4, 5}
    cosines = X[6:26] @ X[6:26].T / np.outer(*[np.linalg.norm(X[6:26], axis=1)] * 2)
    np.fill_diagonal(cosines, -2)
    wanted = np.argsort(-cosines, axis=1)[:, :3]
    np.testing.assert_array_equal(nearest_rows(X[6:26], np.arange(20), 3), wanted)
