"""Cut the embedded example out of GloVe: gendered words, benchmark words, frequent words.

    python scripts/build_glove_slice.py VECTORS.npy WORDS.txt LEXICAL_DIR OUT_DIR

VECTORS.npy is a float16 matrix with one row per word, WORDS.txt has one word per line; both in
order of frequency. LEXICAL_DIR holds weat_caliskan.json, simlex999.tsv and bolukbasi_gender.json.
The same input gives the same bytes. What is written, and where it comes from:
src/expunge/data/SOURCES.md.
"""

from __future__ import annotations

import argparse
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

PER_SIDE = 7500  # most male- and most female-biased words, as in the paper
SPLIT = {"train": 7350, "dev": 3150, "test": 4500}
SEED = 0
FREQUENT = 10_000  # so that nearest neighbours are among common words
NEIGHBOUR_WORDS = [
    *("ocean", "museum", "lol", "twenty", "sample", "storm", "state", "electrical", "papers"),
    *("contributions", "lab", "joke", "hear", "detail", "extreme"),
]
WEAT_SETS = ("first_target", "second_target", "first_attribute", "second_attribute")


def main() -> None:
    """Read, select, write."""
    arguments = parse()
    vectors = np.load(arguments.vectors, allow_pickle=False)
    words = arguments.words.read_text(encoding="utf-8").split()
    if len(words) != len(vectors) or len(set(words)) != len(words):
        raise SystemExit(f"{len(words)} words for {len(vectors)} vectors, or a word twice")
    lists = word_lists(arguments.lexical)
    pairs = simlex(arguments.lexical / "simlex999.tsv")

    rows, labels = biased(vectors, words)
    wanted = {*listed(lists), *(word for first, second, _ in pairs for word in (first, second))}
    known = {word: row for row, word in enumerate(words)}
    extra = [known[word] for word in wanted if word in known]
    kept = np.unique(np.concatenate([rows, np.array(extra), np.arange(FREQUENT)]))
    place = {int(row): new for new, row in enumerate(kept)}

    arrays = {"vectors": vectors[kept].astype("<f2")}
    for name, chosen in split(len(rows)).items():
        arrays[f"rows_{name}"] = np.array([place[int(r)] for r in rows[chosen]], dtype="<i4")
        arrays[f"labels_{name}"] = labels[chosen]
    out = arguments.out
    (out / "glove_gender.npz").write_bytes(npz(arrays))
    write_text(out / "glove_words.txt", "".join(f"{words[row]}\n" for row in kept))
    write_text(out / "word_lists.json", json.dumps(lists, indent=1) + "\n")
    lines = ",\n".join(json.dumps(pair) for pair in pairs)
    write_text(out / "simlex999.json", f"[\n{lines}\n]\n")
    missing = sorted(wanted - set(known))
    print(f"{len(kept)} words; not in the vocabulary: {' '.join(missing) or 'none'}")


def parse() -> argparse.Namespace:
    """The four paths."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("vectors", type=Path, help="matrix of word vectors (.npy)")
    parser.add_argument("words", type=Path, help="its words, one per line")
    parser.add_argument("lexical", type=Path, help="folder of the lexical files")
    parser.add_argument("out", type=Path, help="folder to write to")
    return parser.parse_args()


def biased(vectors: NDArray[Any], words: list[str]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Rows of the words at both ends of he - she, and 1 for the female end."""
    X = vectors.astype(np.float64)
    direction = X[words.index("he")] - X[words.index("she")]
    cosine = (X * direction).sum(axis=1) / np.linalg.norm(X, axis=1)
    order = np.argsort(cosine, kind="stable")
    rows = np.concatenate([order[:PER_SIDE], order[-PER_SIDE:]])
    return rows, np.repeat(np.array([1, 0], dtype="i1"), PER_SIDE)


def split(n: int) -> dict[str, NDArray[Any]]:
    """Random disjoint positions for each part."""
    order = np.random.default_rng(SEED).permutation(n)
    ends = np.cumsum(list(SPLIT.values()))
    return dict(zip(SPLIT, np.split(order, ends[:-1]), strict=True))


def word_lists(folder: Path) -> dict[str, Any]:
    """WEAT tests, definitional pairs and neighbour words, in lower case."""
    tests = json.loads((folder / "weat_caliskan.json").read_text(encoding="utf-8"))
    pairs = json.loads((folder / "bolukbasi_gender.json").read_text(encoding="utf-8"))
    return {
        "weat": [weat(number, test) for number, test in enumerate(tests, start=1)],
        "definitional_pairs": [[w.lower() for w in pair] for pair in pairs["definitional_pairs"]],
        "neighbour_words": NEIGHBOUR_WORDS,
    }


def weat(number: int, test: dict[str, Any]) -> dict[str, Any]:
    """One association test: a name and its four sets."""
    sets = {}
    for key in WEAT_SETS:
        name = test[key]["name"].replace("\u2019", "'")
        sets[key] = {"name": name, "words": [word.lower() for word in test[key]["words"]]}
    first, second, third, fourth = (sets[key]["name"] for key in WEAT_SETS)
    return {"name": f"WEAT {number}: {first} / {second}, {third} / {fourth}", **sets}


def simlex(path: Path) -> list[tuple[str, str, float]]:
    """Pairs with their score."""
    lines = path.read_text(encoding="utf-8").splitlines()[1:]
    parts = [line.split("\t") for line in lines]
    return [(first.lower(), second.lower(), float(score)) for first, second, score in parts]


def listed(lists: dict[str, Any]) -> set[str]:
    """All words of the lists."""
    weat_words = (
        word for test in lists["weat"] for key in WEAT_SETS for word in test[key]["words"]
    )
    pair_words = (word for pair in lists["definitional_pairs"] for word in pair)
    return {*weat_words, *pair_words, *lists["neighbour_words"]}


def npz(arrays: dict[str, NDArray[Any]]) -> bytes:
    """A compressed npz file without dates."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            entry.compress_type, entry.create_system = zipfile.ZIP_DEFLATED, 3
            content = io.BytesIO()
            np.lib.format.write_array(content, np.ascontiguousarray(array), allow_pickle=False)
            archive.writestr(entry, content.getvalue(), compresslevel=9)
    return stream.getvalue()


def write_text(path: Path, text: str) -> None:
    """The same line ends on every system."""
    path.write_bytes(text.encode("utf-8"))


if __name__ == "__main__":
    main()
