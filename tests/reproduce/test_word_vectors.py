"""Files of word vectors as GloVe and word2vec write them, and what is wrong with broken ones."""

import gzip

import numpy as np
import pytest

from expunge.errors import InputError
from expunge.reproduce.glove.word_vectors import read_word_vectors

WORDS = ("the", "he", "she", "new york")
VECTORS = np.array([[0.5, -1.25, 3.0], [1.0, 2.0, 0.0], [-0.5, 0.25, 8.0], [1e-3, 7.0, -2.0]])


def lines(words=WORDS, vectors=VECTORS):
    return "".join(f"{w} {' '.join(map(str, v))}\n" for w, v in zip(words, vectors, strict=True))


def binary(end):
    rows = zip(WORDS[:3], VECTORS[:3].astype("<f4"), strict=True)
    return b"3 3\n" + b"".join(word.encode() + b" " + row.tobytes() + end for word, row in rows)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("content", "kind", "n"),
    [
        (lines().encode(), "GloVe, text", 4),
        (f"4 3\n{lines()}".encode(), "word2vec, text", 4),
        (binary(b""), "word2vec, binary", 3),
        (binary(b"\n"), "word2vec, binary", 3),
    ],
)
def test_every_form_gives_the_same_vectors(tmp_path, content, kind, n, packed):
    path = tmp_path / "vectors"
    path.write_bytes(gzip.compress(content, mtime=0) if packed else content)
    found = read_word_vectors(path)
    assert found.kind == kind
    assert found.words == WORDS[:n]
    assert found.vectors.dtype == np.float32
    np.testing.assert_array_equal(found.vectors, VECTORS[:n].astype(np.float32))


def test_case_zeros_and_the_tail_are_left_out(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("He 1 2\nnothing 0 0\nhe 3 4\nÉtat 5 6\nlate 7 8\n")
    found = read_word_vectors(path, most=4)
    assert found.words == ("he", "état")
    assert found.vectors.tolist() == [[1, 2], [5, 6]]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no word vectors"),
        (b"the 1 2\n", "no word vectors"),
        (b"the 1 2\nhe 3\n", "line 2"),
        (b"2 2\nthe 1 2\nhe 3 x\n", "line 3"),
        (b"the 1 2\nhe 3 nan\n", "not finite"),
        (b"just words here\n", "line 1"),
        (b"\x00\xff\x01", "line 1"),
        (binary(b"")[:-4], "truncated.*row 2 of 3"),
        (gzip.compress(lines().encode(), mtime=0)[:-20], "not a gzipped file that can be read"),
    ],
)
def test_broken_files_are_refused_with_the_place(tmp_path, content, said):
    path = tmp_path / "broken"
    path.write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_word_vectors(path)


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match="one file"):
        read_word_vectors(tmp_path)
