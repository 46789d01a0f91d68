"""Word vectors from the files that GloVe and word2vec write: text or binary, packed or not."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from expunge.errors import InputError
from expunge.files.word_file import open_path

__all__ = ["WordVectors", "read_word_vectors"]


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Words with their vectors.

    Attributes
    ----------
    words : tuple of str
        In lower case, each once, in the order of the file.
    vectors : float32 array of shape (n, d)
    kind : str
        What the file is.
    """

    words: tuple[str, ...]
    vectors: NDArray[np.float32]
    kind: str


def read_word_vectors(path: str | os.PathLike[str], *, most: int = 400_000) -> WordVectors:
    r"""Read a file of GloVe or word2vec, text or binary, plain or gzipped.

    Parameters
    ----------
    path : str or path
    most : int
        Lines to read at the most: such files begin with the frequent words.

    Returns
    -------
    WordVectors
        In lower case; of words that differ in case only the first stays. Vectors of zeros are left
        out.

    Raises
    ------
    InputError
        With the line that cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from expunge.reproduce.glove.word_vectors import read_word_vectors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "glove.txt"
    ...     _ = path.write_text("the 0.5 1\nThe 9 9\nhe 2 -1\n")
    ...     found = read_word_vectors(path)
    >>> found.words, found.vectors.tolist()
    (('the', 'he'), [[0.5, 1.0], [2.0, -1.0]])
    """
    file = Path(path)
    if file.is_dir():
        raise InputError("Word vectors are one file", f"the folder {file}", "Name a file in it")
    try:
        stored = open_path(file)
        words = stored.words(most)
        vectors = stored.take(np.arange(len(words)))
    except OSError as error:
        raise InputError(
            "The file of word vectors cannot be read", f"{file} ({error})", "Name another file"
        ) from error
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if bad.size:
        raise InputError(
            "A vector has entries that are not finite numbers",
            f"the vector of {words[bad[0]]!r} in {file}",
            "Mend or remove it",
        )
    first: dict[str, int] = {}
    for row in np.flatnonzero(vectors.any(axis=1)).tolist():
        first.setdefault(words[row].lower(), row)
    if len(first) < 2:
        raise InputError(
            "The file holds no word vectors", str(file), "Name a file of GloVe or word2vec vectors"
        )
    return WordVectors(tuple(first), vectors[list(first.values())], stored.kind)
