"""Labels of word vectors: from the line between two words, or from lists of words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.commands.label_files import text_lines
from expunge.errors import InputError
from expunge.files.naming import listed, nearest
from expunge.rows.base import Rows

__all__ = ["by_lists", "by_pair", "words_of"]

SIDE = 7500  # words from each end, as in the paper
SHARE = 3  # of a small vocabulary, one in so many from each end
FEWEST = 6  # words, so that there are two at each end

Labels = tuple[NDArray[np.intp], NDArray[Any], str]


def words_of(rows: Rows, column: str, where: str) -> NDArray[Any]:
    """The word of each row.

    Parameters
    ----------
    rows : Rows
    column : str
    where : str
        What to call the table in messages.

    Returns
    -------
    array of str of shape (n,)
    """
    if column not in rows.columns:
        raise InputError(
            f"{where} has no column {column!r} of words{nearest(column, rows.columns)}",
            f"a table with the columns {listed(rows.columns)}",
            "Name the column of the words by --word-column",
        )
    return np.asarray(rows.column(column))


def by_pair(rows: Rows, words: NDArray[Any], pair: str) -> Labels:
    """Rows at either end of the line from one word to another, by projection on it.

    Parameters
    ----------
    rows : Rows
    words : array of shape (n,)
    pair : str
        Two words and a comma between them.

    Returns
    -------
    index : int array of shape (k,), ascending
        The labelled rows: 7,500 from each end, or a third of a small vocabulary.
    labels : array of shape (k,)
        The word whose end it is.
    note : str
        What was done.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.commands.word_labels import by_pair
    >>> from expunge.inputs import check_rows
    >>> words = np.array(["he", "she", "him", "her", "hat", "shoe"])
    >>> rows = check_rows([[2.0, 0], [-2.0, 0], [1, 0], [-1, 0], [0.1, 0], [-0.1, 0]])
    >>> index, labels, note = by_pair(rows, words, "he,she")
    >>> index, labels
    (array([0, 1, 2, 3]), array(['he', 'she', 'he', 'she'], dtype='<U3'))
    """
    ends = [part.strip() for part in pair.split(",")]
    if len(ends) != 2 or not all(ends) or ends[0] == ends[1]:
        raise InputError(
            "--pair takes two words with a comma between", repr(pair), "Write he,she, say"
        )
    if len(words) < FEWEST:
        raise InputError(
            "There are too few words to label", f"{len(words)}", f"Pass {FEWEST} or more"
        )
    at = [_place(word, words) for word in ends]
    first, second = np.asarray(rows.take(np.array(at)).array(), dtype=np.float64)
    line = first - second
    if not line.any():
        raise InputError("The two words have the same vector", repr(pair), "Take other words")
    places = np.empty(len(words))
    for start, X in rows.arrays():
        places[start : start + len(X)] = np.asarray(X, dtype=np.float64) @ line
    side = min(SIDE, len(words) // SHARE)
    order = np.argsort(places, kind="stable")
    index = np.concatenate([order[::-1][:side], order[:side]])
    labels = np.repeat(ends, side)
    by_row = np.argsort(index, kind="stable")
    note = f"{side:,} of {len(words):,} words labelled from each end of {ends[0]} - {ends[1]}"
    return index[by_row], labels[by_row], note


def by_lists(words: NDArray[Any], files: str) -> Labels:
    """Rows whose word is in a list, labelled by the name of the list.

    Parameters
    ----------
    words : array of shape (n,)
    files : str
        Names of files with one word per line, with commas between.

    Returns
    -------
    index, labels, note
        As of `by_pair`.
    """
    paths = [Path(part.strip()) for part in files.split(",") if part.strip()]
    names = [path.stem for path in paths]
    if len(paths) < 2 or len({*names}) < len(names):
        raise InputError(
            "--words takes two or more files of different names, with commas between",
            repr(files),
            "Write male.txt,female.txt, say",
        )
    label_of: dict[str, int] = {}
    for code, path in enumerate(paths):
        for word in _listed_words(path):
            if label_of.setdefault(word, code) != code:
                raise InputError(
                    "A word is in two lists",
                    f"{word!r} in {paths[label_of[word]]} and {path}",
                    "Leave it in one of them",
                )
    codes = np.array([label_of.get(word, -1) for word in words.tolist()])
    found = [len({*words[codes == code].tolist()}) for code in range(len(paths))]
    counts = [sum(code == own for own in label_of.values()) for code in range(len(paths))]
    told = ", ".join(
        f"{here} of {count} words of {path.name}"
        for here, count, path in zip(found, counts, paths, strict=True)
    )
    if not all(found):
        raise InputError(
            "No word of a list is among the vectors", told, "Check the list, and its case"
        )
    index = np.flatnonzero(codes >= 0)
    return index, np.array(names)[codes[index]], f"found {told}"


def _place(word: str, words: NDArray[Any]) -> int:
    """The row of a word, as it is written or else in any case."""
    found = np.flatnonzero(words == word)
    if not found.size:
        lower = word.lower()
        found = np.array([k for k, other in enumerate(words.tolist()) if other.lower() == lower])
    if not found.size:
        raise InputError(
            f"--pair: there is no such word{nearest(word, words.tolist())}",
            f"{word!r} among {len(words):,} words",
            "Take another pair",
        )
    return int(found[0])


def _listed_words(path: Path) -> Sequence[str]:
    if not path.is_file():
        raise InputError("--words: there is no such file", str(path), "Check its name")
    found = [word for line in text_lines(path) if (word := line.strip())]
    if not found:
        raise InputError("--words: a list is empty", str(path), "Write one word per line")
    return list(dict.fromkeys(found))
