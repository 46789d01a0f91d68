"""Word vectors: labels from a pair of words and from lists, files in the formats of word2vec."""

import numpy as np
import pytest

import expunge as ex
from expunge.data import load_glove
from expunge.reproduce.glove.labelled_words import label_words
from expunge.reproduce.glove.word_vectors import WordVectors

WORDS = 900


@pytest.fixture
def glove(tmp_path, monkeypatch):
    """Some words of the embedded slice, as GloVe writes them."""
    monkeypatch.chdir(tmp_path)
    full = load_glove()
    words = [*full.words[: WORDS - 2], "actress", "actor"]
    words = list(dict.fromkeys(words))
    V = np.stack([full.vector(word) for word in words])
    lines = [
        " ".join([word, *map(repr, vector)])
        for word, vector in zip(words, V.astype(float).tolist(), strict=True)
    ]
    (tmp_path / "glove.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return words, V


def test_a_pair_labels_words_as_the_experiments_do(glove, run):
    words, V = glove
    code, out, err = run("fit", "glove.txt", "--pair", "he,she", "-o", "g.safetensors")
    assert code == 0
    third = len(words) // 3
    assert err == f"expunge: {third} of {len(words)} words labelled from each end of he - she\n"
    found = ex.Erasure.load("g.safetensors")
    assert found.meta["concept"]["labels"] == ["he", "she"]
    labelled = label_words(WordVectors(tuple(words), V, "GloVe, text"))
    parts = (labelled.train, labelled.dev, labelled.test)
    X, y = (np.concatenate([getattr(part, name) for part in parts]) for name in "Xy")
    wanted = ex.RLACE().fit(X, y).erasure_
    np.testing.assert_allclose(found(V.astype(float)), wanted(V.astype(float)), atol=1e-6)
    assert "erased: every linear predictor" in out


def test_lists_of_words(glove, run, refused):
    words, V = glove
    lists = {"male": "he\nhis\nman\n\nzzzz\n", "female": "she\nher\nwoman\nactress"}
    for name, text in lists.items():
        with open(f"{name}.txt", "w") as stream:
            stream.write(text)
    code, _, err = run(
        "fit", "glove.txt", "--words", "male.txt,female.txt", "-m", "leace", "-o", "g.safetensors"
    )
    assert code == 0
    assert "found 3 of 4 words of male.txt, 4 of 4 words of female.txt" in err
    listed = {word: name for name, text in lists.items() for word in text.split()}
    index = [row for row, word in enumerate(words) if word in listed]
    wanted = ex.LEACE().fit(V[index].astype(float), [listed[words[row]] for row in index])
    found = ex.Erasure.load("g.safetensors")
    assert found.meta["n"] == 7
    np.testing.assert_allclose(found(V.astype(float)), wanted.erasure_(V.astype(float)), atol=1e-4)
    with open("other.txt", "w") as stream:
        stream.write("he\n")
    assert "in two lists" in refused(
        "fit", "glove.txt", "--words", "male.txt,other.txt", "-o", "x.safetensors"
    )
    with open("none.txt", "w") as stream:
        stream.write("qqqq\n")
    assert "0 of 1 words of none.txt" in refused(
        "fit", "glove.txt", "--words", "male.txt,none.txt", "-o", "x.safetensors"
    )


@pytest.mark.parametrize("ending", [".bin", ".vec", ".txt", ".bin.gz"])
def test_all_words_come_back_in_the_format_asked_for(ending, glove, run):
    words, V = glove
    assert run("fit", "glove.txt", "--pair", "he,she", "-o", "g.safetensors")[0] == 0
    assert run("apply", "g.safetensors", "glove.txt", "-o", f"clean{ending}")[0] == 0
    rows = ex.open_rows(f"clean{ending}")
    assert rows.column("word").tolist() == words
    wanted = ex.Erasure.load("g.safetensors")(V)
    np.testing.assert_allclose(rows.array(), wanted, rtol=1e-6, atol=1e-6)


def test_pairs_that_are_not_there(glove, refused, tmp_path):
    def said(pair, *more, file="glove.txt"):
        return refused("fit", file, "--pair", pair, *more, "-o", "x.safetensors")

    assert "two words" in said("he")
    assert "two words" in said("he,he")
    assert "no such word" in said("he,xqzv")
    assert "Leave out the others" in said("he,she", "-c", "word")
    np.save("rows.npy", np.eye(8))
    assert "--word-column" in said("he,she", file="rows.npy")


def test_all_words_look_like_those_of_a_fit_on_a_few(glove, run):
    for name, text in {"male": "he\nhis\nman", "female": "she\nher\nwoman"}.items():
        with open(f"{name}.txt", "w") as stream:
            stream.write(text)
    for number, labels in enumerate((("--words", "male.txt,female.txt"), ("--pair", "he,she"))):
        out = f"{number}.safetensors"
        assert run("fit", "glove.txt", *labels, "-m", "mean-projection", "-o", out)[0] == 0
        assert run("apply", out, "glove.txt", "-o", "clean.vec")[2] == ""


def test_a_pair_in_any_case(glove, run):
    assert run("fit", "glove.txt", "--pair", "He,SHE", "-o", "g.safetensors")[0] == 0
