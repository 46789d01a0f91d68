"""The embedded example: what it holds, and that it shows what the demonstration claims."""

import subprocess
import sys
from importlib.resources import files

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import expunge as ex
from expunge.data import load_glove, load_simlex, load_word_lists

MEGABYTE = 2**20


@pytest.fixture(scope="module")
def glove():
    return load_glove()


def test_sizes(glove):
    assert len(glove) == len(glove.words) == len(set(glove.words)) == glove.vectors.shape[0]
    assert glove.vectors.shape[1] == 100
    assert glove.vectors.dtype == np.float32
    assert np.isfinite(glove.vectors).all()
    assert [len(part) for part in (glove.train, glove.dev, glove.test)] == [7350, 3150, 4500]


def test_embedded_files_are_small():
    folder = files("expunge.data")
    assert sum(len(f.read_bytes()) for f in folder.iterdir() if f.is_file()) < 6 * MEGABYTE


def test_parts_are_disjoint_and_balanced(glove):
    parts = (glove.train, glove.dev, glove.test)
    assert len({word for part in parts for word in part.words}) == 15_000
    assert sum(int(part.y.sum()) for part in parts) == 7_500
    for part in parts:
        assert set(np.unique(part.y)) == {0, 1}
        assert part.X.shape == (len(part), 100)


def test_rows_belong_to_their_words(glove):
    for part in (glove.train, glove.dev, glove.test):
        for place in (0, 17, len(part) - 1):
            np.testing.assert_array_equal(part.X[place], glove.vector(part.words[place]))


def test_labels_follow_he_minus_she(glove):
    direction = glove.vector("he").astype(float) - glove.vector("she")

    def cosine(X):
        return X.astype(float) @ direction / np.linalg.norm(X.astype(float), axis=1)

    X = np.concatenate([part.X for part in (glove.train, glove.dev, glove.test)])
    y = np.concatenate([part.y for part in (glove.train, glove.dev, glove.test)])
    assert cosine(X[y == 1]).max() < cosine(X[y == 0]).min()
    outside = np.isin(glove.words, [*glove.train.words, *glove.dev.words, *glove.test.words])
    middle = cosine(glove.vectors[~outside])
    assert cosine(X[y == 1]).max() <= middle.min()
    assert middle.max() <= cosine(X[y == 0]).min()


def test_words_are_in_order_of_frequency(glove):
    assert glove.words[:3] == ("the", "of", "to")
    assert glove.index("he") < glove.index("ocean") < glove.index("receptionist")


def test_every_call_gives_the_same_fresh_copy(glove):
    again = load_glove()
    assert again.words == glove.words
    np.testing.assert_array_equal(again.vectors, glove.vectors)
    np.testing.assert_array_equal(again.test.y, glove.test.y)
    again.vectors[0] = 0
    assert load_glove().vectors[0].any()


def test_word_lists(glove):
    lists = load_word_lists()
    assert len(lists.weat) == len({test.name for test in lists.weat}) == 10
    assert len(lists.definitional_pairs) == 10
    assert ("mary", "john") in lists.definitional_pairs
    assert len(lists.neighbour_words) == 15
    assert all(word in glove for pair in lists.definitional_pairs for word in pair)
    assert all(word in glove for word in lists.neighbour_words)
    for number in (5, 6, 7):  # the three tests on gender
        test = lists.weat[number]
        sets = (
            test.first_target,
            test.second_target,
            test.first_attribute,
            test.second_attribute,
        )
        assert all(word == word.lower() and word in glove for s in sets for word in s.words)


def test_simlex(glove):
    simlex = load_simlex()
    assert len(simlex) == len(simlex.scores) == 999
    assert all(word in glove for pair in simlex.pairs for word in pair)
    assert simlex.scores.min() >= 0
    assert simlex.scores.max() <= 10


def test_neighbours(glove):
    found = glove.neighbours("twenty", k=5)
    assert len(found) == 5
    assert "twenty" not in found
    assert found[0] == "thirty"
    assert glove.neighbours("twenty", k=5, vectors=3 * glove.vectors) == found


def test_neighbours_agree_with_a_slow_twin(glove):
    V = glove.vectors.astype(float)
    v = V[glove.index("museum")]
    cosine = {
        word: (V[i] @ v) / np.sqrt((V[i] @ V[i]) * (v @ v)) for i, word in enumerate(glove.words)
    }
    del cosine["museum"]
    assert glove.neighbours("museum", k=4) == tuple(sorted(cosine, key=cosine.get)[:-5:-1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda g: g.vector("qwertyuiop"), "not in the embedded slice"),
        (lambda g: g.neighbours("ocean", k=0), "k must be"),
        (lambda g: g.neighbours("ocean", vectors=g.vectors[:9]), "one row for each"),
    ],
)
def test_bad_questions_are_refused(glove, call, message):
    with pytest.raises(ex.InputError, match=message):
        call(glove)


def test_erasure_takes_a_linear_probe_to_chance(glove):
    train, test = glove.train, glove.test
    before = LogisticRegression(max_iter=1000).fit(train.X, train.y).score(test.X, test.y)
    assert before > 0.99
    eraser = ex.RLACE().fit(train.X, train.y)
    probe = LogisticRegression(max_iter=1000).fit(eraser.transform(train.X), train.y)
    after = probe.score(eraser.transform(test.X), test.y)
    majority = max(test.y.mean(), 1 - test.y.mean())
    assert abs(after - majority) < 0.01


def test_nothing_is_read_at_import():
    code = (
        "import sys; opened = []\n"
        "sys.addaudithook(lambda e, a: opened.append(str(a[0])) if e == 'open' else None)\n"
        "import expunge.data\n"
        "names = ('glove_gender', 'glove_words', 'word_lists', 'simlex999')\n"
        "assert not [o for o in opened if any(n in o for n in names)], opened\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
